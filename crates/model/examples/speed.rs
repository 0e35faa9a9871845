//! How long counting and sampling take, without reading and without I/O; of a model only sampling, so many times.
//!
//!     cargo run --release -p loadstone-model --example speed -- TRACE|MODEL [ROUNDS]

use loadstone_model::{FitOptions, Fitter, Model, Sampler};
use loadstone_trace::{Batch, OpenOptions, Requests, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().unwrap_or_else(|| "examples/loop0.parquet".into()));
    let rounds: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(10);
    if path.extension().is_some_and(|extension| extension == "mdh") {
        let model = Arc::new(Model::load(&path)?);
        return (1..=rounds).try_for_each(|_| sample(model.clone()));
    }
    let mut reader = loadstone_trace::open(&[path], &OpenOptions::default())?;
    let (mut batches, mut batch) = (Vec::new(), Batch::default());
    while reader.next(&mut batch)? {
        batches.push(batch.clone());
    }
    let span = batches.last().and_then(|b| b.time.last()).copied().unwrap_or(0);
    // The trace again and again, so that what is done once weighs little.
    let options = FitOptions { span_ns: Some((span + 1) * rounds as i64), ..FitOptions::default() };
    let mut fitter = Fitter::new(&options)?;
    let begun = Instant::now();
    for round in 0..rounds as i64 {
        for batch in &batches {
            let mut batch = batch.clone();
            batch.time.iter_mut().for_each(|t| *t += (span + 1) * round);
            fitter.push(&batch)?;
        }
    }
    let requests = fitter.requests();
    let model = Arc::new(fitter.finish()?);
    report("counting", requests, begun);
    println!("{} cells", model.cells());
    sample(model)
}

fn sample(model: Arc<Model>) -> Result<()> {
    let mut sampler = Sampler::new(model, 1)?;
    let (begun, mut batch, mut sum) = (Instant::now(), Batch::default(), 0i64);
    while sampler.next(&mut batch)? {
        sum = batch.offset.iter().fold(sum, |sum, &o| sum.wrapping_add(o));
    }
    let tally = sampler.tally();
    report("sampling", tally.requests, begun);
    println!("{} displaced, sum {sum}", tally.displaced);
    Ok(())
}

fn report(what: &str, requests: u64, begun: Instant) {
    let seconds = begun.elapsed().as_secs_f64();
    let rate = requests as f64 / seconds / 1e6;
    println!(
        "{what}: {requests} requests, {rate:.2} million/s, {:.0} ns each",
        seconds * 1e9 / requests as f64
    );
}
