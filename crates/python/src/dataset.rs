//! Datasets: file trees with their chunks over generations.

use crate::error::{check_utf8, error, options, to_py};
use crate::mutator::Function;
use crate::progress::Teller;
use loadstone_dataset::{
    self as dataset, By, Chain, Chunking, Commits, Compress, Counts, CreateOptions, Form, Initial, Measured,
    Order, Profile, Report, ScanOptions, Series, Start, WriteOptions,
};
use loadstone_fstree::{Share, Tape};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn counts(counts: &Counts) -> Value {
    let mut told = json!(counts);
    told["dedup_ratio"] = json!(counts.dedup_ratio());
    told["compress_ratio"] = json!(counts.compress_ratio());
    told
}

fn snapshot(one: &Measured) -> Value {
    let mut told = json!(one);
    told["alone"] = counts(&one.alone);
    told["together"] = counts(&one.together);
    told
}

/// What a profile has but its histograms.
fn profiled(profile: &Profile) -> Value {
    let steps = profile.steps.iter().map(|step| {
        let files = |counts: &mut dyn Iterator<Item = u32>| counts.map(u64::from).sum::<u64>();
        json!({
            "before": step.before,
            "new": files(&mut step.new.iter().map(|row| row.count)),
            "deleted": files(&mut step.gone.iter().map(|row| row.count)),
            "modified": files(&mut step.changed.iter().map(|row| row.count)),
            "rows": step.new.len() + step.gone.len() + step.changed.len(),
        })
    });
    json!({"chunking": profile.chunking, "chunker": profile.chunker, "codec": profile.codec, "resemblance": profile.resemblance,
        "stays": profile.stays.map(|stays| stays.share()),
        "extensions": profile.extensions.len(), "markov": profile.markov, "patterns": profile.patterns,
        "steps": steps.collect::<Vec<_>>(), "snapshots": profile.measured.iter().map(snapshot).collect::<Vec<_>>()})
}

/// What is in a series, as `dataset describe` tells it.
fn told(series: &Series) -> Value {
    let mut snapshots: Vec<_> = dataset::measure(series).iter().map(snapshot).collect();
    for (told, tree) in snapshots.iter_mut().zip(&series.trees) {
        told["path_bytes"] = json!(tree.path_bytes(&series.names));
    }
    json!({"meta": series.meta, "chunks": series.chunks.len(), "bits": 8 * series.chunks.width(),
        "snapshots": snapshots})
}

/// Options as Python gives them.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    chunking: Chunking,
    bits: u32,
    compress: Compress,
    key: Option<PathBuf>,
    strip: usize,
    settled: Option<f64>,
    threads: usize,
}

impl Given {
    fn options(self) -> PyResult<ScanOptions> {
        let Given { chunking, bits, compress, key, strip, settled, threads } = self;
        let settled = settled.map(Duration::try_from_secs_f64).transpose();
        let settled = settled.map_err(|e| error(format!("settled: {e}; give seconds")))?;
        Ok(ScanOptions { chunking, bits, compress, key, strip, settled, threads })
    }
}

/// A scan by `work`, saved; answers what was found, as JSON.
fn scanned(
    py: Python<'_>,
    (out, force): (PathBuf, bool),
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(dataset::Watch<'_>) -> dataset::Result<Option<(Series, Vec<Report>)>> + Send,
) -> PyResult<String> {
    let mut teller = Teller::new(progress);
    let scanned = py.detach(|| -> dataset::Result<_> {
        dataset::may_write(&out, force)?;
        let scanned = work(&mut |done, of| teller.tell(done, of))?;
        if let Some((series, _)) = &scanned {
            series.save(&out, force)?;
        }
        Ok(scanned)
    });
    let (series, reports) = teller.settle_whole(scanned)?;
    let mut told = py.detach(|| told(&series));
    told["scanned"] = json!(reports);
    Ok(told.to_string())
}

/// Scans directories, archives and hash files to one series in a file; answers what was found, as JSON.
#[pyfunction]
#[pyo3(signature = (paths, options_json, out, force, progress=None))]
fn dataset_scan(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    options_json: &str,
    out: PathBuf,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = options::<Given>(options_json)?.options()?;
    scanned(py, (out, force), progress, |watch| dataset::scan(&paths, &options, watch))
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenCommits {
    revisions: Option<String>,
    tags: Option<String>,
    every: usize,
}

/// Scans commits of a git repository to one series in a file; answers what was found, as JSON.
#[pyfunction]
#[pyo3(signature = (repo, commits_json, options_json, out, force, progress=None))]
fn dataset_scan_git(
    py: Python<'_>,
    repo: PathBuf,
    commits_json: &str,
    options_json: &str,
    out: PathBuf,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let GivenCommits { revisions, tags, every } = options(commits_json)?;
    let commits = Commits { revisions, tags, every };
    let options = options::<Given>(options_json)?.options()?;
    scanned(py, (out, force), progress, |watch| dataset::scan_git(&repo, &commits, &options, watch))
}

/// The snapshots in a directory, in order: `"name"`, `"reverse"` or `"created"`.
#[pyfunction]
fn dataset_snapshots(py: Python<'_>, folder: PathBuf, order_json: &str) -> PyResult<Vec<OsString>> {
    let order: Order = options(order_json)?;
    let found = py.detach(|| dataset::snapshots(&folder, order)).map_err(to_py)?;
    Ok(found.into_iter().map(PathBuf::into_os_string).collect())
}

/// What is in a series, as JSON.
#[pyfunction]
fn dataset_describe(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| Ok(told(&Series::load(Path::new(&path))?).to_string())).map_err(|e: dataset::Error| to_py(e))
}

/// Lengths of runs of every snapshot of a series, as JSON.
#[pyfunction]
fn dataset_runs(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| Ok(json!(dataset::run_lengths(&Series::load(&path)?)).to_string()))
        .map_err(|e: dataset::Error| to_py(e))
}

/// Profiles a series, to a file unless there is none to write; answers what the profile has, as JSON.
#[pyfunction]
fn dataset_profile(
    py: Python<'_>,
    path: PathBuf,
    out: Option<PathBuf>,
    runs: bool,
    force: bool,
) -> PyResult<String> {
    let made = py.detach(|| -> dataset::Result<Value> {
        if let Some(out) = &out {
            dataset::may_write(out, force)?;
        }
        let series = Series::load(&path)?;
        let profile = if runs { Profile::with_runs(&series)? } else { Profile::of(&series)? };
        out.map(|out| profile.save(&out, force)).transpose()?;
        Ok(profiled(&profile))
    });
    Ok(made.map_err(to_py)?.to_string())
}

/// What a profile in a file has, as JSON.
#[pyfunction]
fn dataset_load_profile(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| Ok(profiled(&Profile::load(&path)?).to_string())).map_err(|e: dataset::Error| to_py(e))
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenCreate {
    /// A series to go on with, or distributions of a first tree; neither: a profile makes it.
    series: Option<PathBuf>,
    initial: Option<Initial>,
    /// What changes trees, unless a mutator does.
    profile: Option<PathBuf>,
    chain: Option<Chain>,
    generations: Option<u32>,
    seed: u64,
    scale: f64,
    users: u32,
    memory: u64,
}

/// Makes a series, or goes on with one; `progress` is told of files, and `mutator` is asked for changes. Answers what was
/// made, as JSON.
#[pyfunction]
#[pyo3(signature = (options_json, out, force, mutator=None, progress=None))]
fn dataset_create(
    py: Python<'_>,
    options_json: &str,
    out: PathBuf,
    force: bool,
    mutator: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let given: GivenCreate = options(options_json)?;
    let GivenCreate { seed, scale, users, memory, .. } = given;
    let mut teller = Teller::new(progress);
    let mut mutator = mutator.map(Function::new);
    let made = py.detach(|| -> dataset::Result<_> {
        dataset::may_write(&out, force)?;
        let profile = given.profile.map(|path| Profile::load(&path)).transpose()?;
        let generations = given.generations.or(profile.as_ref().map(|one| one.steps.len() as u32));
        let options = CreateOptions { generations: generations.unwrap_or(1), seed, scale, users, memory };
        let series = given.series.map(|path| Series::load(&path)).transpose()?;
        let start = match (series, &given.initial) {
            (Some(series), _) => Start::Series(Box::new(series)),
            (None, Some(initial)) => Start::Laws(initial),
            (None, None) => Start::Nothing,
        };
        let by = match (&profile, &given.chain, &mut mutator) {
            (Some(profile), ..) => By::Profile(profile),
            (None, Some(chain), _) => By::Chain(chain),
            (None, None, Some(function)) => By::Mutator(function),
            (None, None, None) => By::Nothing,
        };
        let made = dataset::create(start, by, &options, &mut |done, of| teller.tell(done, of))?;
        if let Some((series, _)) = &made {
            series.save(&out, force)?;
        }
        Ok(made)
    });
    if let Some(raised) = mutator.and_then(|function| function.raised) {
        return Err(raised);
    }
    let (series, generations) = teller.settle_whole(made)?;
    let mut told = py.detach(|| told(&series));
    told["generations"] = json!(generations);
    Ok(told.to_string())
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenWrite {
    snapshots: Vec<usize>,
    form: Form,
    only_changed: bool,
    seed: u64,
    threads: usize,
}

/// Writes snapshots of a series, each to a directory, a tar archive or a hash file, of which several are `within` a directory;
/// answers what was written, as JSON.
#[pyfunction]
#[pyo3(signature = (path, options_json, to, within, force, progress=None))]
fn dataset_write(
    py: Python<'_>,
    path: PathBuf,
    options_json: &str,
    to: Vec<PathBuf>,
    within: Option<PathBuf>,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let GivenWrite { snapshots, form, only_changed, seed, threads } = options(options_json)?;
    to.iter().try_for_each(|path| check_utf8(path))?;
    let mut teller = Teller::new(progress);
    let written = py.detach(|| -> dataset::Result<_> {
        let series = Series::load(&path)?;
        let all: Vec<_> = snapshots
            .iter()
            .map(|snapshot| WriteOptions { snapshot: *snapshot, only_changed, seed, threads })
            .collect();
        let watch = &mut |done, of| teller.tell(done, of);
        let written = dataset::write_snapshots(&series, (&all, form), &to, within.as_deref(), force, watch)?;
        let told = |written: Vec<dataset::Written>| -> Vec<Value> {
            let told = all.iter().zip(&to).zip(written);
            told.map(|((one, to), written)| json!({"snapshot": one.snapshot, "path": to, "written": written}))
                .collect()
        };
        Ok(written.map(told))
    });
    Ok(json!(teller.settle_whole(written)?).to_string())
}

/// What loads write of a series, or of one snapshot of it: bytes, bytes of each block where all have as many, and the
/// ratios, of its first `bytes` bytes or of all there are before it repeats.
#[pyfunction]
fn dataset_share<'py>(
    py: Python<'py>,
    path: PathBuf,
    snapshot: Option<usize>,
    bytes: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let told = py.detach(|| -> dataset::Result<(u64, Option<u32>, Share)> {
        let tape = Tape::load(&path, snapshot, 0)?;
        let share = tape.share(bytes.unwrap_or(tape.bytes()));
        Ok((tape.bytes(), tape.block(), share))
    });
    let (bytes, block, share) = told.map_err(to_py)?;
    let d = PyDict::new(py);
    d.set_item("bytes", bytes)?;
    d.set_item("block", block)?;
    d.set_item("dedupe", share.dedupe())?;
    d.set_item("compress", share.compress())?;
    Ok(d)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(dataset_scan, m)?)?;
    m.add_function(wrap_pyfunction!(dataset_scan_git, m)?)?;
    m.add_function(wrap_pyfunction!(dataset_snapshots, m)?)?;
    m.add_function(wrap_pyfunction!(dataset_describe, m)?)?;
    m.add_function(wrap_pyfunction!(dataset_profile, m)?)?;
    m.add_function(wrap_pyfunction!(dataset_load_profile, m)?)?;
    m.add_function(wrap_pyfunction!(dataset_runs, m)?)?;
    m.add_function(wrap_pyfunction!(dataset_create, m)?)?;
    m.add_function(wrap_pyfunction!(dataset_write, m)?)?;
    m.add_function(wrap_pyfunction!(dataset_share, m)?)
}
