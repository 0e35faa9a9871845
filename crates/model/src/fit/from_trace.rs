//! A model from trace files: reading and looking back on one thread, encoding and counting on others.

use crate::error::{Error, ErrorKind, Result};
use crate::feature::Field;
use crate::feature::files::catalog::Catalog;
use crate::fit::early::{Ahead, Early};
use crate::fit::{FitOptions, Fitter, is_of_files};
use crate::model::Model;
use crate::schema::dimension::{Role, Spec};
use loadstone_trace::{Batch, OpenOptions, Reader, Requests};
use std::path::PathBuf;
use std::sync::mpsc;

/// Batches between the reader and the counter; they are passed around and never allocated again. As many as let reading
/// go on while what was kept for calibration is counted.
const IN_FLIGHT: usize = 16;

/// Fits a model to a trace of any known format.
///
/// `progress(done, total)`, in bytes, is called after every batch; an error of it stops the work.
///
/// # Errors
/// When the trace cannot be read or holds what no model can (see [`Fitter::push`]), or when
/// `progress` says so. Where keys have no room for the usual dimensions it is read again and fitted with
/// fewer, which the model's warnings say.
pub fn fit_trace(
    paths: &[PathBuf],
    open: &OpenOptions,
    options: &FitOptions,
    progress: &mut dyn FnMut(u64, u64) -> loadstone_trace::Result<()>,
) -> Result<Model> {
    let (mut options, asked) = (options.clone(), options.dimensions.clone());
    let objects = |s: &Spec| s.role == Role::Sets && s.feature.kind().field == Field::Object;
    loop {
        let reader = loadstone_trace::open(paths, open)?;
        options.files |= is_of_files(&reader.info().layer) && !options.dimensions.iter().any(objects);
        match fit_reader(reader, (paths, open), &options, progress) {
            Err(error) if options.spare(&error, &asked) => {}
            Err(error) => return Err(paths.iter().take(1).fold(error, |error, path| error.path(path))),
            Ok(mut model) => {
                model.header.source.warnings.extend(options.spared());
                return Ok(model);
            }
        }
    }
}

/// The same of an open trace.
fn fit_reader(
    mut reader: Reader,
    (paths, open): (&[PathBuf], &OpenOptions),
    options: &FitOptions,
    progress: &mut dyn FnMut(u64, u64) -> loadstone_trace::Result<()>,
) -> Result<Model> {
    let mut fitter = Fitter::new(options)?;
    if options.files {
        // What is in which directory is known once all was read.
        let mut first = loadstone_trace::open(paths, open)?;
        let watch = |reader: &Reader| progress(0, reader.progress().1);
        fitter.set_catalog(Catalog::of(&mut first, |reader| reader.info().objects, watch)?);
    }
    if fitter.needs_span()
        && let Some(span) = reader.span_ns()
    {
        fitter.set_span(span);
    }
    let (full, to_count) = mpsc::sync_channel::<Ahead>(IN_FLIGHT);
    let (empty, to_fill) = mpsc::channel::<Ahead>();
    for _ in 0..IN_FLIGHT {
        let _ = empty.send(Ahead::default());
    }
    let mut early = fitter.take_early();
    let (fitter, reader) = std::thread::scope(|scope| -> Result<(Fitter, Reader)> {
        let count = move || -> Result<Fitter> {
            for mut ahead in to_count {
                fitter.push_ahead(&mut ahead)?;
                if fitter.waits_for_span() {
                    fitter.set_span(last_time(paths, open)?);
                }
                let _ = empty.send(ahead);
            }
            Ok(fitter)
        };
        let thread = std::thread::Builder::new().name("loadstone-count".into());
        let counter = thread.spawn_scoped(scope, count);
        let counter =
            counter.map_err(|e| Error::new(ErrorKind::Defect, format!("no thread could be started: {e}")))?;
        let read = feed(&mut reader, &mut early, full, to_fill, progress);
        // What stopped the counter also ended the feed, so its error comes first.
        let fitter = counter.join().map_err(|_| {
            Error::new(ErrorKind::Defect, "counting failed; this is a defect of the program")
        })??;
        read.map(|()| (fitter, reader))
    })?;
    let mut model = fitter.finish()?;
    model.set_source(&reader.info());
    Ok(model)
}

/// Hands batches over until the trace or the counter ends.
fn feed(
    reader: &mut Reader,
    early: &mut Early,
    full: mpsc::SyncSender<Ahead>,
    to_fill: mpsc::Receiver<Ahead>,
    progress: &mut dyn FnMut(u64, u64) -> loadstone_trace::Result<()>,
) -> Result<()> {
    while let Ok((mut batch, mut known)) = to_fill.recv() {
        if !reader.next(&mut batch)? {
            break;
        }
        early.numbers(&batch, &mut known);
        if full.send((batch, known)).is_err() {
            break;
        }
        let (done, total) = reader.progress();
        progress(done, total)?;
    }
    Ok(())
}

/// Time of the last request, by reading the trace once more.
fn last_time(paths: &[PathBuf], open: &OpenOptions) -> Result<i64> {
    let mut reader = loadstone_trace::open(paths, open)?;
    let (mut batch, mut last) = (Batch::default(), 0);
    while reader.next(&mut batch)? {
        last = batch.time.last().copied().unwrap_or(last);
    }
    Ok(last)
}
