//! Our own Parquet files, read row group by row group, all columns side by side.

use super::format::Source;
use crate::chunk::{Chunk, MOST_BYTES, MOST_IDS};
use crate::depend::MOST_BACK;
use crate::guard::{Ending, inside, sound, unpacks};
use crate::input::Meter;
use crate::parquet::{KEY, Metadata, VERSION};
use crate::summary::{Extent, Summary};
use crate::{Batch, Error, ErrorKind, Info, NO_OBJECT, NONE, Object, Result, wide};
use parquet::basic::{Compression, Type};
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Requests of a batch.
const BATCH: usize = 1 << 16;

/// The columns of the request table, whether they may be null, and their type.
const COLUMNS: [(&str, bool, Type); 8] = [
    ("time", false, Type::INT64),
    ("op", false, Type::INT32),
    ("object", false, Type::INT32),
    ("offset", true, Type::INT64),
    ("size", true, Type::INT64),
    ("latency", true, Type::INT64),
    ("flags", false, Type::INT32),
    ("actor", false, Type::INT32),
];

/// Columns that a trace may have besides: name, whether there may be nulls, physical type.
const FURTHER: [(&str, bool, Type); 5] = [
    ("content", false, Type::INT64),
    ("result", true, Type::INT64),
    ("other", true, Type::INT32),
    ("after", false, Type::INT32),
    ("think", true, Type::INT64),
];

/// Whether a file starts as Parquet does.
///
/// # Errors
/// When it cannot be opened.
pub fn is(path: &Path) -> Result<bool> {
    let failed = |e| Error::io("cannot open", path, e);
    // A pipe is opened once, and by whoever reads it.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Ok(false);
    }
    let (mut magic, mut file) = ([0; 4], File::open(path).map_err(failed)?);
    Ok(file.read_exact(&mut magic).is_ok() && &magic == b"PAR1")
}

/// Opens a file; also what its metadata says.
///
/// # Errors
/// When it is damaged, is no request table, or is of a newer version.
pub fn open(path: &Path, meter: &Meter) -> Result<(impl Source + use<>, Info, Option<Summary>)> {
    let file = File::open(path).map_err(|e| Error::io("cannot open", path, e))?;
    let damaged = |e: ParquetError| {
        Error::malformed(format!("damaged Parquet: {e}")).path(path).help("copy or convert it again")
    };
    let reader = inside(|| SerializedFileReader::new(Ending::new(file)?)).map_err(damaged)?;
    let footer = reader.metadata().file_metadata();
    let keys = footer.key_value_metadata();
    let json = keys.into_iter().flatten().find(|kv| kv.key == KEY).and_then(|kv| kv.value.as_deref());
    let (mut info, mut summary) = (Info { format: "parquet".into(), ..Info::default() }, None);
    match json {
        None => info.warnings.push("written by another program: its extents and losses are not known".into()),
        Some(json) => {
            let version =
                serde_json::from_str::<serde_json::Value>(json).ok().and_then(|v| v["version"].as_u64());
            if version.is_some_and(|v| v > u64::from(VERSION)) {
                return Err(Error::malformed(format!(
                    "is of version {}, this build reads up to {VERSION}",
                    version.unwrap_or(0)
                ))
                .path(path)
                .help("use a newer loadstone"));
            }
            let metadata: Metadata = serde_json::from_str(json).map_err(|e| {
                Error::malformed(format!("damaged metadata: {e}")).path(path).help("convert it again")
            })?;
            info = metadata.info;
            summary = Some(metadata.summary);
        }
    }
    // These are counted anew by the reader.
    info.counts.requests = 0;
    let mut columns = vec![0; COLUMNS.len()];
    let schema = footer.schema_descr();
    for (slot, (name, _, kind)) in columns.iter_mut().zip(COLUMNS) {
        let found = (0..schema.num_columns()).find(|&i| schema.column(i).path().string() == name);
        let missing = || {
            Error::malformed(format!("has no column {name} of the request table"))
                .path(path)
                .help("docs/reference/formats/trace.md says which columns there must be")
        };
        let index = found.ok_or_else(missing)?;
        let column = schema.column(index);
        // Most writers say of every column that it may have nulls. Whether it has some is seen when it is read.
        if column.physical_type() != kind || column.max_rep_level() != 0 || column.max_def_level() > 1 {
            return Err(Error::malformed(format!("column {name} has another type than the request table's"))
                .path(path));
        }
        *slot = index;
    }
    // Reserved columns are passed over where they are of another kind.
    let mut further = Vec::new();
    for (at, (name, _, kind)) in FURTHER.into_iter().enumerate() {
        let index = (0..schema.num_columns()).find(|&i| {
            let column = schema.column(i);
            let flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
            column.path().string() == name && column.physical_type() == kind && flat
        });
        if let Some(index) = index {
            columns.push(index);
            further.push(at);
        }
    }
    // Neither says anything without the other.
    let waits = |at: &usize| matches!(FURTHER[*at].0, "after" | "think");
    if further.iter().filter(|at| waits(at)).count() == 1
        && let Some(lone) = further.iter().position(waits)
    {
        further.remove(lone);
        columns.remove(COLUMNS.len() + lone);
    }
    let length = std::fs::metadata(path).map_or(0, |m| m.len());
    let rows = reader.metadata().row_groups().iter();
    let rows =
        rows.fold(0, |sum: u64, group| sum.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0)));
    let ids = Bound::of(rows, &info);
    if let Some(wrong) = ids.refuses(&info, summary.as_ref()) {
        return Err(Error::malformed(format!("damaged metadata: {wrong}"))
            .path(path)
            .help("convert it again"));
    }
    by_id(&mut info.objects);
    for group in reader.metadata().row_groups() {
        let codecs =
            columns.iter().filter_map(|&column| group.columns().get(column)).map(|c| c.compression());
        if let Some(codec) = codecs.into_iter().find(|codec| !unpacks(*codec)) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("is packed by {}, which is not read", name(codec)),
            )
            .path(path)
            .help("write it with zstd, Snappy or LZ4_RAW"));
        }
        if !columns.iter().all(|&column| sound(group, column, length, false)) {
            return Err(damaged(ParquetError::General("a column lies outside the file".into())));
        }
    }
    let source = Table {
        path: path.into(),
        groups: reader.num_row_groups(),
        reader,
        columns,
        further,
        ids,
        rows: 0,
        group: 0,
        open: Vec::new(),
        left: 0,
        levels: Vec::new(),
        longs: Vec::new(),
        ints: Vec::new(),
        meter: meter.clone(),
    };
    Ok((source, info, summary))
}

/// The name of a codec, without its level.
fn name(codec: Compression) -> String {
    let told = codec.to_string();
    told.split('(').next().unwrap_or_default().into()
}

struct Table {
    path: PathBuf,
    reader: SerializedFileReader<Ending<File>>,
    columns: Vec<usize>,
    /// Which of [`FURTHER`] come after the eight.
    further: Vec<usize>,
    ids: Bound,
    /// Rows that were read.
    rows: u64,
    group: usize,
    groups: usize,
    open: Vec<ColumnReader>,
    left: usize,
    levels: Vec<i16>,
    longs: Vec<i64>,
    ints: Vec<i32>,
    meter: Meter,
}

impl Table {
    fn open_group(&mut self) -> parquet::errors::Result<()> {
        let group = self.reader.get_row_group(self.group)?;
        self.left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        self.open.clear();
        for &column in &self.columns {
            self.open.push(group.get_column_reader(column)?);
        }
        let bytes =
            |&column: &usize| u64::try_from(group.metadata().column(column).compressed_size()).unwrap_or(0);
        self.meter.add(self.columns.iter().map(bytes).sum());
        self.group += 1;
        Ok(())
    }

    fn read(&mut self, batch: &mut Batch) -> parquet::errors::Result<()> {
        let rows = self.left.min(BATCH);
        for (number, column) in self.open.iter_mut().enumerate() {
            let (name, nullable, _) = match number.checked_sub(COLUMNS.len()) {
                None => COLUMNS[number],
                Some(at) => FURTHER[self.further[at]],
            };
            let further = (number >= COLUMNS.len()).then_some(name);
            match column {
                ColumnReader::Int64ColumnReader(column) => {
                    self.levels.clear();
                    let to = match number {
                        0 => &mut batch.time,
                        3 => &mut batch.offset,
                        4 => &mut batch.size,
                        5 => &mut batch.latency,
                        _ if further == Some("result") => &mut batch.result,
                        _ if further == Some("think") => &mut batch.think,
                        _ => {
                            self.longs.clear();
                            &mut self.longs
                        }
                    };
                    let (records, values, _) = column.read_records(rows, Some(&mut self.levels), None, to)?;
                    same(records, rows)?;
                    if values < rows {
                        known(name, nullable)?;
                        spread(to, &self.levels);
                    }
                    same(to.len(), rows)?;
                    if further == Some("content") {
                        batch.content.extend(self.longs.iter().map(|v| v.cast_unsigned()));
                    }
                }
                ColumnReader::Int32ColumnReader(column) => {
                    self.ints.clear();
                    self.levels.clear();
                    let (records, values, _) =
                        column.read_records(rows, Some(&mut self.levels), None, &mut self.ints)?;
                    same(records, rows)?;
                    if values < rows {
                        known(name, nullable)?;
                        let mut values = self.ints.iter().map(|v| v.cast_unsigned());
                        let mut value = |level: &i16| match level {
                            0 => NO_OBJECT,
                            _ => values.next().unwrap_or(NO_OBJECT),
                        };
                        batch.other.extend(self.levels.iter().map(&mut value));
                        same(batch.other.len(), rows)?;
                        continue;
                    }
                    same(self.ints.len(), rows)?;
                    let values = self.ints.iter();
                    match number {
                        1 => batch.op.extend(values.map(|&v| u8::try_from(v).unwrap_or(u8::MAX))),
                        2 => batch.object.extend(values.map(|&v| v.cast_unsigned())),
                        6 => batch.flags.extend(values.map(|&v| v.cast_unsigned())),
                        _ if further == Some("after") => {
                            batch.after.extend(values.map(|&v| v.cast_unsigned()))
                        }
                        _ if further.is_some() => batch.other.extend(values.map(|&v| v.cast_unsigned())),
                        _ => batch.actor.extend(values.map(|&v| v.cast_unsigned())),
                    }
                }
                _ => return Err(ParquetError::General("unexpected column type".into())),
            }
        }
        self.left -= rows;
        Ok(())
    }
}

/// Puts the values of a column to the rows that have one.
fn spread(values: &mut Vec<i64>, levels: &[i16]) {
    let mut left = values.len();
    values.resize(levels.len(), NONE);
    for (row, level) in levels.iter().enumerate().rev() {
        values[row] = match left.checked_sub(1) {
            Some(last) if *level != 0 => {
                left = last;
                values[last]
            }
            _ => NONE,
        };
    }
}

/// An error where a column has a null that must have none.
fn known(name: &str, nullable: bool) -> parquet::errors::Result<()> {
    if nullable { Ok(()) } else { Err(ParquetError::General(format!("column {name} has no value in a row"))) }
}

fn same(found: usize, rows: usize) -> parquet::errors::Result<()> {
    if found == rows {
        Ok(())
    } else {
        Err(ParquetError::General(format!("{found} rows where {rows} were announced")))
    }
}

impl Source for Table {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let damaged = |path: &Path, e: ParquetError| {
            Error::malformed(format!("damaged Parquet: {e}")).path(path).help("copy or convert it again")
        };
        while self.left == 0 {
            if self.group == self.groups {
                return Ok(false);
            }
            inside(|| self.open_group()).map_err(|e| damaged(&self.path, e))?;
        }
        chunk.clear();
        inside(|| self.read(&mut chunk.batch)).map_err(|e| damaged(&self.path, e))?;
        check(&chunk.batch, self.ids, self.rows).map_err(|e| e.path(&self.path))?;
        self.rows += chunk.batch.len() as u64;
        Ok(true)
    }

    fn info(&self, _: &mut Info) {}

    fn zero_is_first(&self) -> bool {
        false
    }
}

/// Below it are the ids of objects that a file of so many requests may have: tables by id are to take memory for what is
/// there.
#[derive(Debug, Clone, Copy)]
struct Bound(u32);

impl Bound {
    fn of(rows: u64, info: &Info) -> Bound {
        // Requests may name a second object; those of other programs may leave out a few.
        let most = rows.saturating_mul(2).saturating_add(info.objects.len() as u64).max(1 << 12);
        Bound(most.min(MOST_IDS as u64) as u32)
    }

    /// What of the metadata is impossible.
    fn refuses(self, info: &Info, summary: Option<&Summary>) -> Option<String> {
        let extents = summary.map_or(&[][..], |summary| &summary.objects);
        let ids = |objects: &[Object]| objects.iter().map(|object| object.id).collect::<Vec<_>>();
        let told = [
            ("object", ids(&info.objects), self.0),
            ("object", extents.iter().map(|extent| extent.object).collect(), self.0),
            ("actor", ids(&info.actors), u32::MAX),
        ];
        for (what, mut ids, most) in told {
            ids.sort_unstable();
            if let Some(id) = ids.last().filter(|id| **id >= most) {
                return Some(format!("{what} id {id} is not dense"));
            }
            if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
                return Some(format!("{what} id {} is there twice", twice[0]));
            }
        }
        let absurd = |e: &&Extent| e.start < 0 || e.end < e.start || e.end > MOST_BYTES;
        if let Some(Extent { object, start, end, .. }) = extents.iter().find(absurd) {
            return Some(format!("object {object} reaches from byte {start} to {end}"));
        }
        let backwards = summary.filter(|summary| summary.span_ns < summary.first_ns);
        backwards.map(|summary| {
            format!("the last request is at {} ns, the first at {} ns", summary.span_ns, summary.first_ns)
        })
    }
}

/// Puts objects where their ids say, those that are not told without a name.
fn by_id(objects: &mut Vec<Object>) {
    objects.sort_by_key(|object| object.id);
    let most = objects.last().map_or(0, |last| last.id + 1);
    if objects.len() < most as usize {
        let mut told = std::mem::take(objects).into_iter().peekable();
        let own = |id| told.next_if(|object| object.id == id).unwrap_or(Object { id, name: String::new() });
        objects.extend((0..most).map(own));
    }
}

wide! {
    /// Whether all requests are on ids below `most` and between offset 0 and [`MOST_BYTES`].
    fn placed(objects: &[u32], offsets: &[i64], sizes: &[i64], most: u32) -> bool {
        let dense = objects.iter().fold(0, |most, &object| most.max(object)) < most;
        let mut wrong = false;
        for (&offset, &size) in offsets.iter().zip(sizes) {
            let (o, s) = (if offset == NONE { 0 } else { offset }, if size == NONE { 0 } else { size });
            // What is beyond all numbers is negative.
            let end = o.wrapping_add(s);
            wrong |= ((o | s | end) < 0) | (end > MOST_BYTES);
        }
        dense && !wrong
    }
}

wide! {
    /// Whether none is negative.
    fn from_zero(values: &[i64]) -> bool {
        values.iter().fold(true, |all, &value| all & (value >= 0))
    }
}

wide! {
    /// Whether all that is known is not negative.
    fn positive(values: &[i64]) -> bool {
        values.iter().fold(true, |all, &value| all & ((value >= 0) | (value == NONE)))
    }
}

/// Values that the rest may rely on, in rows after `before` others.
fn check(batch: &Batch, ids: Bound, before: u64) -> Result<()> {
    let ops = {
        let mut seen = [false; 256];
        batch.op.iter().for_each(|&op| seen[op as usize] = true);
        (0..=u8::MAX).all(|op| !seen[op as usize] || crate::Op::from_code(op).is_some())
    };
    let others = batch.other.iter().all(|&other| other == NO_OBJECT || other < ids.0);

    let waits = (before..).zip(&batch.after).all(|(row, &after)| u64::from(after) <= MOST_BACK.min(row));
    if ops
        && others
        && waits
        && placed(&batch.object, &batch.offset, &batch.size, ids.0)
        && from_zero(&batch.time)
        && positive(&batch.latency)
        && positive(&batch.think)
    {
        return Ok(());
    }
    Err(wrong(batch, ids, before).help("the file is damaged or was made by a faulty program"))
}

/// What of a batch is wrong.
#[cold]
fn wrong(batch: &Batch, ids: Bound, before: u64) -> Error {
    if let Some(op) = batch.op.iter().find(|&&op| crate::Op::from_code(op).is_none()) {
        return Error::malformed(format!("unknown op code {op}"));
    }
    let others = batch.other.iter().filter(|&&o| o != NO_OBJECT);
    if let Some(object) = batch.object.iter().chain(others).find(|&&o| o >= ids.0) {
        return Error::malformed(format!("object id {object} is not dense"));
    }
    for (&offset, &size) in batch.offset.iter().zip(&batch.size) {
        let (o, s) = (if offset == NONE { 0 } else { offset }, if size == NONE { 0 } else { size });
        if o < 0 || s < 0 || o.checked_add(s).is_none_or(|end| end > MOST_BYTES) {
            return Error::malformed(format!("offset {o} with size {s} lies beyond any device (1 EiB)"));
        }
    }
    for (what, times) in [("latency", &batch.latency), ("think time", &batch.think)] {
        if let Some(time) = times.iter().find(|&&t| t < 0 && t != NONE) {
            return Error::malformed(format!("{what} {time} is negative"));
        }
    }
    if let Some(time) = batch.time.iter().find(|&&t| t < 0) {
        return Error::malformed(format!("time {time} is negative; times count from the start of the trace"));
    }
    let early = (before..).zip(&batch.after).find(|&(row, &after)| u64::from(after) > row);
    if let Some((row, after)) = early {
        return Error::malformed(format!("row {row} waits for one {after} rows before, where there is none"));
    }
    let after = batch.after.iter().max().copied().unwrap_or(0);
    Error::malformed(format!("a request waits for one {after} rows before, at most {MOST_BACK} are kept"))
}
