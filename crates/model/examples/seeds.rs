//! Writes the seeds of the model's fuzz targets: small models of requests made up here, and models that are named.
//!
//!     cargo run --release -p loadstone-model --example seeds -- fuzz/seeds [MODEL.mdh ...]

use loadstone_model::chain::Formula;
use loadstone_model::{FitOptions, Fitter, Model, Result, exercise};
use loadstone_trace::{Batch, NONE};
use std::path::{Path, PathBuf};

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "fuzz/seeds".into()));
    for (name, dimensions) in [
        ("plain", vec![]),
        ("given", vec!["given:previous(op)", "given:previous(size)=log2:1"]),
        ("observed", vec!["observed:previous(jump)", "size=linear:512"]),
        ("chain", vec!["observed:previous(jump)"]),
        ("formula", vec![]),
        ("distances", vec!["reuse_distance"]),
    ] {
        let options = FitOptions {
            window_ns: Some(1_000_000),
            group: Some(20),
            dimensions: dimensions.iter().map(|d| d.parse()).collect::<Result<_>>()?,
            cell_bits: match name {
                "chain" => Some(4.0),
                "formula" => Some(1e6),
                _ => None,
            },
            ..FitOptions::default()
        };
        let mut fitter = Fitter::new(&options)?;
        let mut batch = Batch::default();
        // A few requests are told best one by one.
        for i in 0..if name == "formula" { 1500i64 } else { 60 } {
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
        let mut model = fitter.finish()?;
        if name == "formula" {
            exercise::evaluate();
            model = model.approximated(vec![formula(&model)])?;
        }
        write(&folder, name, &model)?;
    }
    for path in std::env::args().skip(2).map(PathBuf::from) {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        write(&folder, &name.unwrap_or_default(), &Model::load(&path)?)?;
    }
    Ok(())
}

/// Writes a seed of both targets.
fn write(folder: &Path, name: &str, model: &Model) -> Result<()> {
    for target in ["model", "model_parts"] {
        let path =
            folder.join(target).join(format!("{name}.{}", if target == "model" { "mdh" } else { "bin" }));
        let io = |e| loadstone_trace::Error::io("cannot write", &path, e);
        std::fs::create_dir_all(folder.join(target)).map_err(io)?;
        match target {
            "model" => model.save(&path, true)?,
            _ => std::fs::write(&path, exercise::to_parts(model)).map_err(io)?,
        }
    }
    Ok(())
}

/// One for all gaps, which in a chain of dear cells are given nothing.
fn formula(model: &Model) -> (usize, Formula) {
    let gap = model.dimension("gap").expect("it is drawn");
    let links = &model.header.chain.as_ref().expect("factored").links;
    let at = links.iter().position(|link| link.dimension == gap).expect("every dimension has a link");
    let formula = Formula {
        matrix: None,
        given: Vec::new(),
        family: "expon".into(),
        parameters: vec![3.0, 1.0, 2.0],
        codes: (1, 20),
        requests: 0,
    };
    (at, formula)
}
