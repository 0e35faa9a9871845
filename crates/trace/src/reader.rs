//! Opening a trace of any format and reading it in time order.

use crate::chunk::Chunk;
use crate::depend::Causes;
use crate::formats::{self, Format, Known, Source};
use crate::input::{Damage, Input, Meter};
use crate::look::Look;
use crate::options::OpenOptions;
use crate::order::{Window, append};
use crate::sort::Sorter;
use crate::summary::Summary;
use crate::ties::Ties;
use crate::{Batch, Error, ErrorKind, Info, Requests, Result};
use rustc_hash::FxHashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How requests come into time order.
enum Order {
    Window(Window),
    Sort(Box<Sorter>),
}

/// A trace being read; its requests come in time order.
pub struct Reader {
    /// What is found of damage to the compression of files.
    damages: Vec<(PathBuf, Damage)>,
    path: PathBuf,
    files: Vec<PathBuf>,
    source: Box<dyn Source>,
    order: Order,
    max_damaged: u64,
    reorder_ns: i64,
    look: Look,
    chunk: Chunk,
    ended: bool,
    ties: Option<Ties>,
    causes: Option<Causes>,
    zero: Option<i64>,
    info: Info,
    meter: Meter,
    total: u64,
    summary: Option<Summary>,
}

/// Opens a trace: a file, or the per-CPU files of one blktrace capture (or their common base).
///
/// # Errors
/// When a file cannot be read, is empty, or is of no known format.
pub fn open(paths: &[PathBuf], options: &OpenOptions) -> Result<Reader> {
    let meter = Meter::default();
    let paths = formats::blktrace::expand(paths)?;
    let [first, ..] = &paths[..] else {
        return Err(Error::new(ErrorKind::Option, "no trace was named").help("give the path of a trace"));
    };
    if parquet_wanted(first, options)? {
        return from_parquet(&paths, meter, options);
    }
    refuse_twice(&paths)?;
    let mut inputs = Vec::with_capacity(paths.len());
    for path in &paths {
        inputs.push(Input::open(path, &meter, options.salvage || options.max_damaged > 0)?);
    }
    from_inputs(inputs, options)
}

/// Refuses a file that is named twice, by whatever names: its requests would count double.
fn refuse_twice(paths: &[PathBuf]) -> Result<()> {
    let mut seen = FxHashSet::default();
    let twice = |path: &&PathBuf| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && !seen.insert((meta.dev(), meta.ino())))
    };
    match paths.iter().find(twice) {
        Some(path) => Err(Error::new(ErrorKind::Option, "is named twice")
            .path(path)
            .help("name each file of a capture once")),
        None => Ok(()),
    }
}

/// Reads already opened files, the way [`open`] does; they cannot be Parquet.
///
/// # Errors
/// As [`open`].
pub fn from_inputs(mut inputs: Vec<Input>, options: &OpenOptions) -> Result<Reader> {
    let headed = header(&mut inputs, options);
    let [first, ..] = &inputs[..] else { return Err(Error::new(ErrorKind::Option, "no trace was named")) };
    let (path, meter) = (first.path.clone(), first.meter().clone());
    let files = inputs.iter().map(|i| i.path.clone()).collect();
    let damages = inputs.iter().map(|i| (i.path.clone(), i.damage().clone())).collect();
    let total = inputs.iter().map(|i| i.total).sum();
    if inputs.iter().all(|i| i.head().is_empty()) {
        return Err(Error::new(ErrorKind::Empty, "is empty")
            .path(&path)
            .help("nothing was captured, or the copy failed"));
    }
    let mut info = Info::default();
    let lenient = OpenOptions { max_damaged: u64::MAX, ..options.clone() };
    let options = if options.salvage { &lenient } else { options };
    info.counts.other += u64::from(headed.is_some());
    let format = match headed {
        Some(format) => format,
        None => choose(first, options, &mut info.warnings)?,
    };
    refuse_columns(format.name, options, &path)?;
    info.format = format.name.into();
    info.layer = "block".into();
    let source = (format.open)(inputs, options).map_err(|e| e.path(&path))?;
    let order = if options.sort {
        by_sorting(options)
    } else {
        Order::Window(Window::new(options.reorder_ns.max(0)))
    };
    Ok(Reader { files, damages, ..Reader::new(path, source, order, options, info, meter, total) })
}

fn by_sorting(options: &OpenOptions) -> Order {
    Order::Sort(Box::new(Sorter::new(options.temp_dir.clone().unwrap_or_else(std::env::temp_dir))))
}

/// Refuses a column map for a format that has its own.
fn refuse_columns(format: &str, options: &OpenOptions, path: &Path) -> Result<()> {
    if options.columns.is_none() || format == "delimited" {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Option, format!("is read as {format}, which has columns of its own"))
        .path(path)
        .help("leave out the column map, or name `format` delimited"))
}

/// Passes over a line that names the columns of a format: of the one asked for, or of any that its names tell.
fn header(inputs: &mut [Input], options: &OpenOptions) -> Option<&'static Format> {
    let [input] = inputs else { return None };
    let line = formats::head_lines(input.unread(), input.head_is_all()).next()?;
    let asked = |f: &&Format| options.format.as_deref().is_none_or(|name| name == f.name);
    let found =
        formats::all().filter(asked).find(|f| input.unread().starts_with(line) && f.is_header(line))?;
    input.skip_line()?;
    Some(found)
}

fn parquet_wanted(path: &Path, options: &OpenOptions) -> Result<bool> {
    match options.format.as_deref() {
        Some(name) => Ok(name == "parquet"),
        None => formats::parquet::is(path),
    }
}

fn from_parquet(paths: &[PathBuf], meter: Meter, asked: &OpenOptions) -> Result<Reader> {
    let [path] = paths else {
        return Err(
            Error::new(ErrorKind::Option, "several Parquet files were given").help("give one file at a time")
        );
    };
    refuse_columns("parquet", asked, path)?;
    let (source, info, summary) = formats::parquet::open(path, &meter)?;
    let total = std::fs::metadata(path).map_or(0, |m| m.len());
    // Our own files are in order, so nothing needs to be held back unless somebody asks for it.
    let usual = asked.reorder_ns == OpenOptions::default().reorder_ns;
    let order = match asked.sort {
        true => by_sorting(asked),
        false => Order::Window(Window::new(if usual { 0 } else { asked.reorder_ns.max(0) })),
    };
    let (spread_ties, dependencies_ns) = (asked.spread_ties, asked.dependencies_ns);
    let reorder_ns = asked.reorder_ns;
    let options = OpenOptions { spread_ties, dependencies_ns, reorder_ns, ..OpenOptions::default() };
    let mut reader = Reader::new(path.clone(), Box::new(source), order, &options, info, meter, total);
    reader.summary = summary;
    Ok(reader)
}

/// The format of a file: the one asked for, or the one its content shows.
fn choose(input: &Input, options: &OpenOptions, warnings: &mut Vec<String>) -> Result<&'static Format> {
    if let Some(name) = &options.format {
        return formats::by_name(name).ok_or_else(|| {
            let names: Vec<&str> = formats::titles().map(|(name, _)| name).collect();
            Error::new(ErrorKind::Option, format!("no format is called {name}"))
                .help(format!("known: {}", names.join(", ")))
        });
    }
    let looks = |f: &&Format| (f.detect)(input.unread(), input.head_is_all());
    let (found, alike): (Vec<_>, Vec<_>) =
        formats::all().filter(looks).partition(|f| f.known == Known::Content);
    let found = found.first().copied();
    let promised = promised(&input.path);
    match (found, promised) {
        (Some(found), Some(promised)) if !std::ptr::eq(found, promised) => {
            warnings.push(format!(
                "the name says {} but the content is {}; read as that",
                promised.name, found.name
            ));
            Ok(found)
        }
        (Some(found), _) => Ok(found),
        // The head is damaged or has a header: the format's own message says more.
        (None, Some(promised)) => Ok(promised),
        (None, None) if !alike.is_empty() => {
            let names: Vec<_> = alike.iter().map(|f| format!("`format` {} ({})", f.name, f.title)).collect();
            let what = match alike.len() {
                1 => "the content fits one format, and alone does not prove that it is of it",
                _ => "the content may be of more than one format, and their units or polarities differ",
            };
            Err(Error::new(ErrorKind::Unrecognised, what)
                .path(&input.path)
                .help(format!("say which: {}", names.join(", "))))
        }
        (None, None) => Err(Error::new(ErrorKind::Unrecognised, "the content is of no known format")
            .path(&input.path)
            .help("name the format with `format`, or declare the columns of a text table with `columns`")),
    }
}

/// The format that a file's ending promises, below an ending of compression.
fn promised(path: &Path) -> Option<&'static Format> {
    let mut name = path.file_name()?.to_str()?.to_ascii_lowercase();
    for ending in [".gz", ".zst", ".bz2", ".xz"] {
        if let Some(stem) = name.strip_suffix(ending) {
            name = stem.into();
        }
    }
    let (_, ending) = name.rsplit_once('.')?;
    formats::all().find(|f| f.extensions.contains(&ending))
}

impl Reader {
    fn new(
        path: PathBuf,
        source: Box<dyn Source>,
        order: Order,
        options: &OpenOptions,
        info: Info,
        meter: Meter,
        total: u64,
    ) -> Reader {
        let mut found = info.clone();
        source.info(&mut found);
        let ties = options.spread_ties.then(|| Ties::new(found.clock_ns));
        Reader {
            files: vec![path.clone()],
            damages: Vec::new(),
            path,
            source,
            order,
            max_damaged: options.max_damaged,
            reorder_ns: options.reorder_ns.max(0),
            look: Look::default(),
            chunk: Chunk::default(),
            ended: false,
            ties,
            causes: options.dependencies_ns.map(Causes::new),
            zero: None,
            info,
            meter,
            total,
            summary: None,
        }
    }

    /// What is known of the trace so far; final after the last request.
    pub fn info(&self) -> Info {
        let mut info = self.info.clone();
        self.source.info(&mut info);
        if let (Some(unix), Some(zero)) = (info.start_unix_ns, self.zero)
            && self.source.zero_is_first()
        {
            info.start_unix_ns = unix.checked_add(zero);
        }
        info.counts.reordered += match &self.order {
            Order::Window(window) => window.reordered,
            Order::Sort(sorter) => sorter.reordered,
        };
        if let Some(ties) = self.ties.as_ref().filter(|ties| ties.spread > 0) {
            let seconds = ties.tick().unwrap_or(0) as f64 / 1e9;
            info.history.push(format!(
                "{} requests of one time with others were spread evenly over {seconds} s, a tick of the clock",
                ties.spread
            ));
        }
        if self.ties.as_ref().is_some_and(|ties| ties.tick() == Some(1)) {
            info.warnings
                .push("the clock of the source is not known to be coarse: no times were spread".into());
        }
        if let Some(causes) = self.causes.as_ref().filter(|causes| causes.completed > 0) {
            info.history.push(format!(
                "{} requests waited for a completion of their actor at most {} s before",
                causes.dependent,
                causes.within_ns as f64 / 1e9
            ));
        }
        if self.summary.is_none() {
            self.look.warn(&mut info.warnings);
            info.clock_ns = self.look.clock(info.clock_ns);
        }
        info
    }

    /// Bytes read and bytes altogether, as they lie on disk.
    pub fn progress(&self) -> (u64, u64) {
        (self.meter.get().min(self.total), self.total)
    }

    /// The meter behind [`Reader::progress`], to be watched from another thread.
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// Time of the last request where it is known without reading everything.
    pub fn span_ns(&self) -> Option<i64> {
        match &self.summary {
            Some(summary) => Some(summary.span_ns),
            None => self.source.span(),
        }
    }

    /// Extents and totals where the file carries them; see [`crate::summarize`] for the others.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The files that are read.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The file the trace was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn pull(&mut self) -> Result<()> {
        self.chunk.clear();
        if !self.source.next(&mut self.chunk)? {
            self.ended = true;
            for (path, damage) in std::mem::take(&mut self.damages) {
                if let Some(what) = damage.found() {
                    self.pass_over(Error::malformed(format!("cannot decompress: {what}")).path(&path))?;
                }
            }
            return Ok(());
        }
        if self.max_damaged > 0 {
            self.drop_cut();
        }
        let counts = &mut self.info.counts;
        counts.other += self.chunk.other;
        counts.repaired += self.chunk.repaired;
        for (_, error) in std::mem::take(&mut self.chunk.damaged) {
            self.pass_over(error)?;
        }
        match &mut self.order {
            Order::Window(window) => window.push(&mut self.chunk),
            Order::Sort(sorter) => sorter.push(&self.chunk.batch),
        }
    }

    /// Counts something damaged; the error itself where there is too much.
    fn pass_over(&mut self, error: Error) -> Result<()> {
        let counts = &mut self.info.counts;
        counts.damaged += 1;
        if counts.damaged > self.max_damaged {
            return Err(error);
        }
        if self.info.warnings.len() < 8 {
            self.info.warnings.push(format!("passed over: {error}"));
        }
        Ok(())
    }

    /// Takes a last line out that was cut within its time, which then goes back by more than any order explains.
    fn drop_cut(&mut self) {
        let [.., last] = self.chunk.batch.time[..] else { return };
        if !self.chunk.open {
            return;
        }
        let before = self.chunk.batch.time.iter().rev().nth(1);
        if before.is_none_or(|before| before.saturating_sub(last) <= self.reorder_ns) {
            let what = "the last line has no end: it may be cut short, and its last number with it";
            self.info.warnings.push(format!("{}: {what}", self.path.display()));
            return;
        }
        let rest = self.chunk.batch.len() - 1;
        let error = Error::new(
            ErrorKind::Truncated,
            "the last line is cut short: its time goes back, and it has no end",
        )
        .path(&self.path)
        .at(self.chunk.place(rest));
        let all = std::mem::take(&mut self.chunk.batch);
        append(&mut self.chunk.batch, &all, 0..rest);
        self.chunk.damaged.push((rest as u64, error));
    }

    /// Makes time count from the trace's start.
    fn rebase(&mut self, batch: &mut Batch) -> Result<()> {
        let first = batch.time.first().copied().unwrap_or(0);
        let zero = *self.zero.get_or_insert(if self.source.zero_is_first() {
            self.source.zero().unwrap_or(first).min(first)
        } else {
            0
        });
        if zero != 0 {
            for time in &mut batch.time {
                *time = time.checked_sub(zero).ok_or_else(|| {
                    Error::malformed("the times span more than 292 years")
                        .help("check the unit and the origin of the time column")
                })?;
            }
        }
        Ok(())
    }
}

impl Requests for Reader {
    fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        let path = self.path.clone();
        loop {
            let popped = match &mut self.order {
                Order::Window(window) => window.pop(batch, self.ended),
                Order::Sort(sorter) => self.ended && sorter.pop(batch)?,
            };
            let popped = match &mut self.ties {
                Some(ties) if popped || self.ended => {
                    if !popped {
                        batch.clear();
                    }
                    ties.take(batch, self.ended && !popped).map_err(|e| e.path(&path))?;
                    if popped && batch.is_empty() {
                        continue;
                    }
                    !batch.is_empty()
                }
                _ => popped,
            };
            if popped {
                self.rebase(batch).map_err(|e| e.path(&path))?;
                if let Some(causes) = &mut self.causes {
                    causes.fill(batch);
                }
                self.look.add(batch);
                self.info.counts.requests += batch.len() as u64;
                return Ok(true);
            }
            if self.ended {
                batch.clear();
                let nothing = |causes: &Causes| causes.completed == 0 && causes.dependent == 0;
                if self.info.counts.requests > 0 && self.causes.as_ref().is_some_and(nothing) {
                    return Err(Error::new(
                        ErrorKind::Option,
                        "has no latencies, so nothing tells what waited for what",
                    )
                    .path(&path)
                    .help("capture completions too, or leave the dependencies out"));
                }
                return if self.info.counts.requests == 0 {
                    let why = self.info().warnings.into_iter().next();
                    Err(Error::new(ErrorKind::Empty, "holds no requests").path(&path).help(
                        why.unwrap_or_else(|| "nothing was captured, or the filter left nothing".into()),
                    ))
                } else {
                    Ok(false)
                };
            }
            self.pull().map_err(|e| e.path(&path))?;
        }
    }
}
