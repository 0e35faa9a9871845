//! The model file: one Parquet file, cells as rows, the header as JSON in its metadata.
//!
//! Format: `docs/reference/formats/model.md`. Files are untrusted: everything is checked when one is loaded.

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Matrix, Model, Stored, too_wide};
use crate::schema::cells::{Cells, Layout, bits_for};
use crate::schema::chain::{Link, LinkCells};
use crate::schema::header::{Header, Table, VERSION};
use crate::schema::rule::MAX_CODE;
use loadstone_files::{Aside, open_regular};
use loadstone_trace::guard::{Ending, guarded, unpacks};
use parquet::basic::{Compression, Encoding, Repetition, Type as Physical, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Key of the header in the file's metadata.
const KEY: &str = "loadstone.model";

/// Most rows a file may hold for each of its bytes; beyond, it is made to exhaust memory.
const ROWS_PER_BYTE: u64 = 64;
/// The same of files whose rows take more memory than [`LITTLE`]: models of real traces have less than one.
const MANY_ROWS_PER_BYTE: u64 = 4;
/// Bytes of memory that any file's rows may take.
const LITTLE: u64 = 512 << 20;

/// Cells up to which a file is compressed as hard as can be; beyond, that takes longer than fitting.
const SQUEEZED: u64 = 40_000;

/// Rows written or read at a time.
const STEP: usize = 1 << 16;

fn schema(header: &Header) -> std::result::Result<Type, ParquetError> {
    let column = |name: &str, physical, repetition| {
        Type::primitive_type_builder(name, physical).with_repetition(repetition).build().map(Arc::new)
    };
    let mut fields = vec![
        column("matrix", Physical::INT32, Repetition::REQUIRED)?,
        column("table", Physical::INT32, Repetition::REQUIRED)?,
    ];
    for dimension in &header.dimensions {
        fields.push(column(&dimension.feature.to_string(), Physical::INT32, Repetition::OPTIONAL)?);
    }
    fields.push(column("count", Physical::INT64, Repetition::REQUIRED)?);
    Type::group_type_builder("model").with_fields(fields).build()
}

impl Model {
    /// Writes the file: aside first, so that it is whole or not there; over an old one only by `force`.
    ///
    /// # Errors
    /// When the file is there and `force` is not given, or it cannot be written.
    pub fn save(&self, path: &Path, force: bool) -> Result<()> {
        let (aside, file) = Aside::create(path, force)?;
        self.write(&file)
            .map_err(|e| Error::new(ErrorKind::Asked, format!("cannot write the model: {e}")).path(path))?;
        Ok(aside.keep(&file)?)
    }

    fn write(&self, file: &File) -> std::result::Result<(), ParquetError> {
        let header = serde_json::to_string(&self.header).map_err(|e| ParquetError::External(Box::new(e)))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(if self.stored_cells() <= SQUEEZED {
                19
            } else {
                3
            })?))
            .set_dictionary_enabled(false)
            // Codes are small, so nearly all but the lowest byte of each is zero; apart they squeeze best.
            .set_encoding(Encoding::BYTE_STREAM_SPLIT)
            .set_column_encoding(ColumnPath::from("matrix"), Encoding::DELTA_BINARY_PACKED)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_data_page_size_limit(1 << 24)
            .set_data_page_row_count_limit(1 << 20)
            .set_created_by(concat!("loadstone ", env!("CARGO_PKG_VERSION")).into())
            .set_key_value_metadata(Some(vec![KeyValue::new(KEY.into(), header)]))
            .build();
        let mut writer = SerializedFileWriter::new(
            std::io::BufWriter::new(file),
            Arc::new(schema(&self.header)?),
            Arc::new(properties),
        )?;
        let mut group = writer.next_row_group()?;
        let parts = self.stored();
        write_i32(&mut group, parts.iter().map(|part| (part.matrix as i32, part.cells.len())))?;
        write_i32(&mut group, parts.iter().map(|part| (part.table as i32, part.cells.len())))?;
        for d in 0..self.header.dimensions.len() {
            write_dimension(&mut group, d, &parts)?;
        }
        let mut column = group.next_column()?.expect("count is in the schema");
        for part in &parts {
            let counts: Vec<i64> = part.cells.counts.iter().map(|&n| n as i64).collect();
            column.typed::<Int64Type>().write_batch(&counts, None, None)?;
        }
        column.close()?;
        group.close()?;
        writer.into_inner()?.into_inner().map_err(|e| ParquetError::General(e.to_string()))?;
        Ok(())
    }

    /// Reads a file and checks all of it.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] where a law of the format is broken, [`ErrorKind::Version`] where it is newer than this
    /// program, and [`ErrorKind::Trace`] where it cannot be read.
    pub fn load(path: &Path) -> Result<Model> {
        // From memory: a damaged page header can cost the library a system call for every byte it claims.
        let mut content = Vec::new();
        open_regular(path, true)?
            .read_to_end(&mut content)
            .map_err(|e| loadstone_trace::Error::io("cannot read", path, e))?;
        let size = content.len() as u64;
        if size == 0 {
            return Err(Error::new(ErrorKind::Damaged, "the file is empty")
                .path(path)
                .help("fit the model again"));
        }
        let content = bytes::Bytes::from(content);
        // The Parquet library panics on some damaged files.
        let opened = move || {
            let reader = SerializedFileReader::new(Ending::new(content)?)?;
            let mut chunks = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
            match chunks.find(|chunk| !unpacks(chunk.compression())) {
                Some(chunk) => {
                    Err(ParquetError::General(format!("no model is packed by {}", chunk.compression())))
                }
                None => Ok(reader),
            }
        };
        let work = move || read(&opened().map_err(damaged)?, size);
        guarded(work)
            .unwrap_or_else(|| Err(damaged(ParquetError::General("its pages make no sense".into()))))
            .map_err(|e| e.path(path))
    }

    /// A model of a header (JSON) and columns as the file has them (matrix, table, one for each
    /// dimension with -1 for null, count), with all the checks of [`Model::load`].
    ///
    /// # Errors
    /// When anything breaks a law of the format.
    pub fn from_columns(header: &str, columns: &[Vec<i64>]) -> Result<Model> {
        let header = read_header(header)?;
        let rows = columns.first().map_or(0, Vec::len);
        if columns.len() != header.dimensions.len() + 3 || columns.iter().any(|c| c.len() != rows) {
            return Err(Error::new(ErrorKind::Damaged, "the columns do not match the header"));
        }
        assemble(header, columns)
    }
}

fn write_i32<W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    runs: impl Iterator<Item = (i32, usize)>,
) -> std::result::Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("matrix and table are in the schema");
    for (value, rows) in runs {
        column.typed::<Int32Type>().write_batch(&vec![value; rows], None, None)?;
    }
    column.close()
}

fn write_dimension<W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    d: usize,
    parts: &[Stored<'_>],
) -> std::result::Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("every dimension is in the schema");
    for part in parts {
        let at = part.dimensions.iter().position(|x| *x == d);
        for keys in part.cells.keys.chunks(STEP) {
            let codes: Vec<i32> = match at {
                Some(at) => keys.iter().map(|&key| part.layout.code(key, at) as i32).collect(),
                None => Vec::new(),
            };
            let levels = vec![i16::from(at.is_some()); keys.len()];
            column.typed::<Int32Type>().write_batch(&codes, Some(&levels), None)?;
        }
    }
    column.close()
}

fn damaged(error: ParquetError) -> Error {
    Error::new(ErrorKind::Damaged, format!("this is not a model file, or it is damaged: {error}"))
        .help("fit the model again, or fetch the file again")
}

fn read(reader: &dyn FileReader, size: u64) -> Result<Model> {
    let metadata = reader.metadata();
    let text = (metadata.file_metadata().key_value_metadata().into_iter().flatten())
        .find(|kv| kv.key == KEY)
        .and_then(|kv| kv.value.as_deref())
        .ok_or_else(|| {
            Error::new(ErrorKind::Damaged, "this Parquet file is not a model")
                .help("make one of a trace with: loadstone model fit")
        })?;
    let header = read_header(text)?;
    let rows = (metadata.row_groups().iter())
        .try_fold(0u64, |sum, g| sum.checked_add(u64::try_from(g.num_rows()).ok()?));
    let row = (header.dimensions.len() as u64 + 3) * size_of::<i64>() as u64;
    let fits = |rows: u64| {
        let most = if rows.saturating_mul(row) > LITTLE { MANY_ROWS_PER_BYTE } else { ROWS_PER_BYTE };
        rows <= size.saturating_mul(most)
    };
    let rows = rows.filter(|rows| fits(*rows)).ok_or_else(|| {
        Error::new(ErrorKind::Damaged, "the model file is damaged: it claims more cells than can be in it")
            .help("fit the model again")
    })? as usize;
    let expected = schema(&header).map_err(damaged)?;
    let found = metadata.file_metadata().schema();
    let same = found.get_fields().len() == expected.get_fields().len()
        && (found.get_fields().iter().zip(expected.get_fields())).all(|(a, b)| {
            a.is_primitive() && a.name() == b.name() && a.get_physical_type() == b.get_physical_type()
        });
    if !same {
        return Err(Error::new(
            ErrorKind::Damaged,
            "the model file is damaged: its columns do not match its header",
        ));
    }
    let whole = |c: &ColumnChunkMetaData| {
        // The library takes it for granted that columns lie in the file.
        let start = u64::try_from(c.dictionary_page_offset().unwrap_or(c.data_page_offset()));
        let length = u64::try_from(c.compressed_size());
        let end = start.ok().zip(length.ok()).and_then(|(start, length)| start.checked_add(length));
        end.is_some_and(|end| end <= size) && c.data_page_offset() >= 0
    };
    if !metadata.row_groups().iter().all(|g| g.columns().iter().all(whole)) {
        return Err(Error::new(ErrorKind::Damaged, "the model file is damaged: a column lies outside of it"));
    }
    let columns = header.dimensions.len() + 3;
    let mut data: Vec<Vec<i64>> = vec![Vec::new(); columns];
    for g in 0..metadata.num_row_groups() {
        let group = reader.get_row_group(g).map_err(damaged)?;
        let rows = group.metadata().num_rows() as usize;
        for (c, column) in data.iter_mut().enumerate() {
            let reader = group.get_column_reader(c).map_err(damaged)?;
            read_column(reader, rows, column)?;
        }
    }
    if data.iter().any(|c| c.len() != rows) {
        return Err(Error::new(
            ErrorKind::Damaged,
            "the model file is damaged: its columns differ in length",
        ));
    }
    assemble(header, &data)
}

fn read_header(text: &str) -> Result<Header> {
    #[derive(serde::Deserialize)]
    struct Version {
        version: u32,
    }
    let wrong =
        |e: serde_json::Error| Error::new(ErrorKind::Damaged, format!("the model's header is damaged: {e}"));
    let Version { version } = serde_json::from_str(text).map_err(wrong)?;
    if version > VERSION {
        return Err(Error::new(
            ErrorKind::Version,
            format!("the model has format version {version}, this program reads up to {VERSION}"),
        )
        .help("use a newer loadstone, or fit the model again with this one"));
    }
    let header: Header = serde_json::from_str(text).map_err(wrong)?;
    header.check()?;
    Ok(header)
}

/// Appends a column of a row group; null is -1.
fn read_column(reader: ColumnReader, rows: usize, out: &mut Vec<i64>) -> Result<()> {
    let (mut levels, mut left) = (Vec::new(), rows);
    macro_rules! read {
        ($reader:expr) => {{
            let mut reader = $reader;
            let mut values = Vec::new();
            while left > 0 {
                values.clear();
                levels.clear();
                let (n, _, _) = reader
                    .read_records(left.min(STEP), Some(&mut levels), None, &mut values)
                    .map_err(damaged)?;
                if n == 0 {
                    break;
                }
                left -= n.min(left);
                if levels.is_empty() {
                    out.extend(values.iter().map(|&v| i64::from(v)));
                } else {
                    let mut values = values.iter();
                    out.extend(levels.iter().map(|&l| match l {
                        0 => -1,
                        _ => values.next().map_or(-1, |&v| i64::from(v)),
                    }));
                }
            }
        }};
    }
    match reader {
        ColumnReader::Int32ColumnReader(r) => read!(r),
        ColumnReader::Int64ColumnReader(r) => read!(r),
        _ => {
            return Err(Error::new(
                ErrorKind::Damaged,
                "the model file is damaged: a column has another type",
            ));
        }
    }
    Ok(())
}

/// A table of the file.
struct FileTable {
    dimensions: Vec<usize>,
    /// Whether all matrices share it.
    shared: bool,
}

/// The tables that a file of this header has, in the order of their numbers.
fn file_tables(header: &Header) -> Vec<FileTable> {
    let own = |(_, table): (usize, &Table)| FileTable { dimensions: table.dimensions.clone(), shared: false };
    let tables = header.tables.iter().enumerate();
    let Some(chain) = &header.chain else { return tables.map(own).collect() };
    let link = |link: &Link| FileTable { dimensions: link.dimensions(), shared: !link.by_matrix };
    let drawn = header.drawn_table();
    chain.links.iter().map(link).chain(tables.filter(|(t, _)| *t != drawn).map(own)).collect()
}

/// Columns of the file (matrix, table, dimensions..., count) to matrices.
fn assemble(header: Header, data: &[Vec<i64>]) -> Result<Model> {
    let wrong = |row: usize, what: &str| {
        Error::new(ErrorKind::Damaged, format!("the model file is damaged: {what} in row {row}"))
            .help("fit it again")
    };
    let dimensions = header.dimensions.len();
    let (matrix, table, count) = (&data[0], &data[1], &data[dimensions + 2]);
    let codes = &data[2..dimensions + 2];
    let tables = file_tables(&header);
    let mut largest = vec![0u32; dimensions];
    for (d, column) in codes.iter().enumerate() {
        let rule = &header.dimensions[d].rule;
        let mut checked = rustc_hash::FxHashSet::default();
        for (row, &code) in column.iter().enumerate() {
            let has = usize::try_from(table[row]).ok().and_then(|t| tables.get(t));
            let has = has.ok_or_else(|| wrong(row, "an unknown table"))?.dimensions.contains(&d);
            if (code < 0) == has || code > i64::from(MAX_CODE) {
                return Err(wrong(row, "a code that cannot be"));
            }
            if code > 0 && checked.insert(code) && rule.range(code as u32).is_none() {
                return Err(wrong(row, "a code its bucket rule does not have"));
            }
            largest[d] = largest[d].max(code.max(0) as u32);
        }
    }
    for link in header.chain.iter().flat_map(|chain| &chain.links) {
        let most = link.formulas.iter().map(|formula| formula.codes.1).max();
        largest[link.dimension] = largest[link.dimension].max(most.unwrap_or(0).min(MAX_CODE));
    }
    let used = header.windows.matrices.iter().map(|run| i64::from(run.1) + 1).max().unwrap_or(0);
    if used as usize > header.windows.counts.len() {
        return Err(Error::new(ErrorKind::Damaged, "the model file is damaged: more matrices than windows"));
    }
    let layouts = (tables.iter())
        .map(|table| {
            let bits: Vec<u8> = table.dimensions.iter().map(|&d| bits_for(largest[d])).collect();
            Layout::new(&bits).ok_or_else(|| too_wide(&header, table.dimensions.iter().copied(), &bits))
        })
        .collect::<Result<Vec<Layout>>>()?;
    let mut pairs: Vec<Vec<Vec<(u64, u64)>>> =
        tables.iter().map(|t| vec![Vec::new(); if t.shared { 1 } else { used as usize }]).collect();
    let mut all = 0u64;
    for row in 0..matrix.len() {
        let t = table[row] as usize;
        let key = layouts[t].pack(tables[t].dimensions.iter().map(|&d| codes[d][row].max(0) as u32));
        let count = u64::try_from(count[row])
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| wrong(row, "a count below one"))?;
        let m = if tables[t].shared { matrix[row].checked_add(1) } else { Some(matrix[row]) };
        let part = m.and_then(|m| usize::try_from(m).ok()).and_then(|m| pairs[t].get_mut(m));
        part.ok_or_else(|| wrong(row, "a matrix that no window uses"))?.push((key, count));
        // Of no table may the sum be more than can be counted, with formulas on top.
        all = all.checked_add(count).filter(|n| *n < 1 << 62).ok_or_else(|| wrong(row, "a huge count"))?;
    }
    let mut cells = layouts.into_iter().zip(pairs).map(|(layout, parts)| {
        let cells = parts.into_iter().map(distinct).collect::<Result<Vec<Cells>>>()?;
        Ok((layout, cells))
    });
    if let Some(chain) = &header.chain {
        let link = |(layout, cells)| LinkCells { layout, cells };
        let links = cells.by_ref().take(chain.links.len()).map(|part| part.map(link));
        let links = links.collect::<Result<Vec<LinkCells>>>()?;
        return Model::of_chain(header, links, cells.collect::<Result<_>>()?);
    }
    let mut model = Model { header, layouts: Vec::new(), matrices: Vec::new(), links: Vec::new() };
    model.matrices.resize_with(used as usize, Matrix::default);
    for part in cells {
        let (layout, cells) = part?;
        model.layouts.push(layout);
        for (matrix, cells) in model.matrices.iter_mut().zip(cells) {
            matrix.tables.push(cells);
        }
    }
    model.check()?;
    Ok(model)
}

/// Sorted cells of pairs with distinct keys.
fn distinct(mut pairs: Vec<(u64, u64)>) -> Result<Cells> {
    pairs.sort_unstable();
    if pairs.windows(2).any(|w| w[0].0 == w[1].0) {
        return Err(Error::new(ErrorKind::Damaged, "the model file is damaged: a cell is there twice"));
    }
    Ok(Cells { keys: pairs.iter().map(|p| p.0).collect(), counts: pairs.iter().map(|p| p.1).collect() })
}
