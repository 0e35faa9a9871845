//! Writing the request table as Parquet; the layout is frozen in `docs/reference/formats/trace.md`.

use crate::order::append;
use crate::summary::Summary;
use crate::{Batch, Error, ErrorKind, Info, NO_OBJECT, NONE, Result};
use loadstone_files::{Aside, ROOM};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

/// Version of the file format written by this build.
pub const VERSION: u32 = 1;

/// Most requests in a row group.
pub const GROUP: usize = 1 << 20;

/// Key of the metadata in the Parquet footer.
pub const KEY: &str = "loadstone.trace";

/// Compression unless the caller chooses.
pub const LEVEL: i32 = 9;

/// The columns in order.
pub const SCHEMA: &str = "message loadstone_trace {
    required int64 time;
    required int32 op (INTEGER(8, false));
    required int32 object (INTEGER(32, false));
    optional int64 offset;
    optional int64 size;
    optional int64 latency;
    required int32 flags (INTEGER(32, false));
    required int32 actor (INTEGER(32, false));
}";

/// Columns that not every trace has: those of the first requests.
const FURTHER: [(Further, &str); 5] = [
    (Further::Content, "required int64 content (INTEGER(64, false))"),
    (Further::Result, "optional int64 result"),
    (Further::Other, "optional int32 other (INTEGER(32, false))"),
    (Further::After, "required int32 after (INTEGER(32, false))"),
    (Further::Think, "optional int64 think"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Further {
    Content,
    Result,
    Other,
    After,
    Think,
}

impl Further {
    fn is_in(self, rows: &Batch) -> bool {
        match self {
            Further::Content => !rows.content.is_empty(),
            Further::Result => !rows.result.is_empty(),
            Further::Other => !rows.other.is_empty(),
            Further::After | Further::Think => !rows.after.is_empty(),
        }
    }
}

/// The JSON stored under [`KEY`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// Format version, [`VERSION`].
    pub version: u32,
    /// Where the trace came from and what reading it found.
    pub info: Info,
    /// Totals and extents.
    pub summary: Summary,
}

/// Writes a trace aside and renames it when it is whole; dropping it unfinished leaves nothing.
pub struct Writer {
    aside: Aside,
    /// Opened with the first requests, which show what columns there are.
    file: Option<SerializedFileWriter<BufWriter<File>>>,
    out: Option<BufWriter<File>>,
    zstd: ZstdLevel,
    rows: Batch,
    /// Further columns of 64-bit integers, by name.
    extra: Vec<(&'static str, Vec<i64>)>,
    summary: Summary,
}

impl Writer {
    /// Starts a file that replaces an existing one only when `force` is set.
    ///
    /// # Errors
    /// When the file exists and `force` is not set, or it cannot be created.
    pub fn create(path: &Path, force: bool) -> Result<Writer> {
        Writer::with_level(path, force, LEVEL)
    }

    /// As [`Writer::create`] with a zstd level from 1 to 22.
    ///
    /// # Errors
    /// Also when the level is out of range.
    pub fn with_level(path: &Path, force: bool, level: i32) -> Result<Writer> {
        Writer::with_columns(path, force, level, &[])
    }

    /// As [`Writer::with_level`] with further columns, all int64 and never null; fill them by
    /// [`Writer::write_with`]. Their names are those reserved in `docs/reference/formats/trace.md`.
    ///
    /// # Errors
    /// As [`Writer::with_level`].
    pub fn with_columns(path: &Path, force: bool, level: i32, extra: &[&'static str]) -> Result<Writer> {
        let zstd = ZstdLevel::try_new(level).map_err(|e| broken(path, &e))?;
        let (aside, file) = Aside::create(path, force)?;
        Ok(Writer {
            aside,
            file: None,
            out: Some(BufWriter::with_capacity(1 << 20, file)),
            zstd,
            rows: Batch::default(),
            extra: extra.iter().map(|name| (*name, Vec::new())).collect(),
            summary: Summary::default(),
        })
    }

    /// The file, started with the columns that the first requests have.
    fn file(&mut self) -> Result<&mut SerializedFileWriter<BufWriter<File>>> {
        if let Some(out) = self.out.take() {
            let further = FURTHER.iter().filter(|(column, _)| column.is_in(&self.rows));
            let further = further.map(|(_, text)| format!("    {text};\n"));
            let extra = self.extra.iter().map(|(name, _)| format!("    required int64 {name};\n"));
            let more: String = further.chain(extra).collect();
            let schema = SCHEMA.trim_end_matches('}').to_string() + &more + "}";
            let schema = parse_message_type(&schema).map_err(|e| broken(self.aside.path(), &e))?;
            let file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties(self.zstd)));
            self.file = Some(file.map_err(|e| self.failed(&e))?);
        }
        self.file.as_mut().ok_or_else(|| Error::new(ErrorKind::Defect, "is closed").path(self.aside.path()))
    }

    /// Appends requests, which must not be earlier than those before.
    ///
    /// # Errors
    /// When time goes back or the file cannot be written.
    pub fn write(&mut self, batch: &Batch) -> Result<()> {
        self.write_with(batch, &[])
    }

    /// As [`Writer::write`], with one slice per further column, each as long as the batch.
    ///
    /// # Errors
    /// Also when the slices do not fit the columns.
    pub fn write_with(&mut self, batch: &Batch, extra: &[&[i64]]) -> Result<()> {
        if extra.len() != self.extra.len() || extra.iter().any(|column| column.len() != batch.len()) {
            return Err(Error::new(ErrorKind::Option, "the further columns do not fit the requests")
                .path(self.aside.path()));
        }
        let last = self.rows.time.last().copied().unwrap_or(if self.summary.requests == 0 {
            i64::MIN
        } else {
            self.summary.span_ns
        });
        if batch.time.first().is_some_and(|&t| t < last) || !batch.time.is_sorted() {
            return Err(Error::new(ErrorKind::OutOfOrder, "requests must be written in time order")
                .path(self.aside.path()));
        }
        self.summary.add(batch);
        let mut at = 0;
        while at < batch.len() {
            let end = batch.len().min(at + GROUP - self.rows.len());
            append(&mut self.rows, batch, at..end);
            for ((_, column), values) in self.extra.iter_mut().zip(extra) {
                column.extend_from_slice(&values[at..end]);
            }
            at = end;
            if self.rows.len() == GROUP {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file()?;
        let Some(file) = self.file.as_mut() else {
            return Err(Error::new(ErrorKind::Defect, "is closed").path(self.aside.path()));
        };
        let written = file.next_row_group().and_then(|group| write_group(group, &self.rows, &self.extra));
        self.rows.clear();
        self.extra.iter_mut().for_each(|column| column.1.clear());
        written.map_err(|e| self.failed(&e))
    }

    /// Writes the rest and the metadata and gives the file its name; returns its totals.
    ///
    /// # Errors
    /// When the file cannot be written or, without `force`, has appeared meanwhile.
    pub fn finish(mut self, info: Info) -> Result<Summary> {
        if !self.rows.is_empty() {
            self.flush()?;
        }
        self.file()?;
        let summary = std::mem::take(&mut self.summary).finish();
        let metadata = Metadata { version: VERSION, info, summary };
        let json = serde_json::to_string(&metadata)
            .map_err(|e| Error::new(ErrorKind::Io, e.to_string()).path(self.aside.path()))?;
        let Some(mut file) = self.file.take() else {
            return Err(Error::new(ErrorKind::Defect, "is closed").path(self.aside.path()));
        };
        file.append_key_value_metadata(KeyValue::new(KEY.to_string(), json));
        let buffered = file.into_inner().map_err(|e| self.failed(&e))?;
        let file = buffered.into_inner().map_err(|e| self.aside.failed(e.into_error()))?;
        self.aside.keep(&file)?;
        Ok(metadata.summary)
    }

    fn failed(&self, error: &parquet::errors::ParquetError) -> Error {
        broken(self.aside.path(), error).help(ROOM)
    }
}

fn broken(path: &Path, error: &parquet::errors::ParquetError) -> Error {
    let text = match error {
        parquet::errors::ParquetError::External(inner) => inner.to_string(),
        other => other.to_string(),
    };
    Error::new(ErrorKind::Io, format!("cannot write: {text}")).path(path)
}

fn properties(level: ZstdLevel) -> WriterProperties {
    let column = |name: &str| ColumnPath::from(name);
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by(format!("loadstone {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(GROUP));
    // Measured on block traces: deltas pay for the sorted column only, dictionaries for few values.
    for (name, encoding) in
        [("time", Encoding::DELTA_BINARY_PACKED), ("offset", Encoding::PLAIN), ("latency", Encoding::PLAIN)]
    {
        builder = builder.set_column_dictionary_enabled(column(name), false);
        builder = builder.set_column_encoding(column(name), encoding);
    }
    builder.build()
}

/// Writes the columns of a row group in order.
fn write_group<W: std::io::Write + Send>(
    mut group: SerializedRowGroupWriter<'_, W>,
    rows: &Batch,
    extra: &[(&'static str, Vec<i64>)],
) -> parquet::errors::Result<()> {
    let further: Vec<Further> =
        FURTHER.iter().map(|(column, _)| *column).filter(|column| column.is_in(rows)).collect();
    let (mut ints, mut longs, mut levels) = (Vec::<i32>::new(), Vec::<i64>::new(), Vec::<i16>::new());
    let mut number = 0;
    while let Some(mut column) = group.next_column()? {
        let more = usize::checked_sub(number, 8).and_then(|at| further.get(at)).copied();
        match column.untyped() {
            ColumnWriter::Int32ColumnWriter(_) if more == Some(Further::Other) => {
                ints.clear();
                levels.clear();
                ints.extend(rows.other.iter().filter(|&&v| v != NO_OBJECT).map(|&v| v.cast_signed()));
                levels.extend(rows.other.iter().map(|&v| i16::from(v != NO_OBJECT)));
                column.typed::<Int32Type>().write_batch(&ints, Some(&levels), None)?;
            }
            ColumnWriter::Int32ColumnWriter(_) => {
                ints.clear();
                match number {
                    1 => ints.extend(rows.op.iter().map(|&v| i32::from(v))),
                    2 => ints.extend(rows.object.iter().map(|&v| v.cast_signed())),
                    6 => ints.extend(rows.flags.iter().map(|&v| v.cast_signed())),
                    _ if more == Some(Further::After) => {
                        ints.extend(rows.after.iter().map(|&v| v.cast_signed()));
                    }
                    _ => ints.extend(rows.actor.iter().map(|&v| v.cast_signed())),
                }
                column.typed::<Int32Type>().write_batch(&ints, None, None)?;
            }
            _ if more == Some(Further::Content) => {
                longs.clear();
                longs.extend(rows.content.iter().map(|v| v.cast_signed()));
                column.typed::<Int64Type>().write_batch(&longs, None, None)?;
            }
            _ => {
                let values = match number {
                    0 => &rows.time,
                    3 => &rows.offset,
                    4 => &rows.size,
                    5 => &rows.latency,
                    _ if more == Some(Further::Result) => &rows.result,
                    _ if more == Some(Further::Think) => &rows.think,
                    _ => &extra[number - 8 - further.len()].1,
                };
                longs.clear();
                levels.clear();
                longs.extend(values.iter().copied().filter(|&v| v != NONE));
                levels.extend(values.iter().map(|&v| i16::from(v != NONE)));
                let nullable = (3..=5).contains(&number) || more.is_some();
                column.typed::<Int64Type>().write_batch(&longs, nullable.then_some(&levels[..]), None)?;
            }
        }
        column.close()?;
        number += 1;
    }
    group.close()?;
    Ok(())
}
