//! Writes the seeds of the model's fuzz targets: small models of requests made up here.
//!
//!     cargo run --release -p loadstone-model --example seeds -- fuzz/seeds

use loadstone_model::{FitOptions, Fitter, exercise};
use loadstone_trace::{Batch, NONE, Result};
use std::path::PathBuf;

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "fuzz/seeds".into()));
    for (name, dimensions) in [
        ("plain", vec![]),
        ("given", vec!["given:previous(op)", "given:previous(size)=log2:1"]),
        ("observed", vec!["observed:previous(jump)", "size=linear:512"]),
        ("chain", vec!["observed:previous(jump)"]),
    ] {
        let options = FitOptions {
            window_ns: Some(1_000_000),
            group: Some(20),
            dimensions: dimensions.iter().map(|d| d.parse()).collect::<Result<_>>()?,
            cell_bits: (name == "chain").then_some(4.0),
            ..FitOptions::default()
        };
        let mut fitter = Fitter::new(&options)?;
        let mut batch = Batch::default();
        for i in 0..60i64 {
            let flush = i % 20 == 19;
            batch.time.push(i * 50_000);
            batch.op.push(if flush { 2 } else { (i / 30) as u8 });
            batch.object.push((i % 7 / 6) as u32);
            batch.offset.push(if flush { NONE } else { (i * i * 7919) % 100_000 * 512 });
            batch.size.push(if flush { NONE } else { 512 << (i % 3) });
            batch.latency.push(NONE);
            batch.flags.push(0);
            batch.actor.push(0);
        }
        fitter.push(&batch)?;
        let model = fitter.finish()?;
        for target in ["model", "model_parts"] {
            let path =
                folder.join(target).join(format!("{name}.{}", if target == "model" { "mdh" } else { "bin" }));
            let io = |e| loadstone_trace::Error::io("cannot write", &path, e);
            std::fs::create_dir_all(folder.join(target)).map_err(io)?;
            match target {
                "model" => model.save(&path, true)?,
                _ => std::fs::write(&path, exercise::to_parts(&model)).map_err(io)?,
            }
        }
    }
    Ok(())
}
