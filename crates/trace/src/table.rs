//! Any Parquet table as plain columns, such as those of bundles: read whole, with memory bounded by the size of its file.

use crate::guard::{Ending, inside, sound};
use parquet::basic::{ConvertedType, LogicalType, PageType, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

/// Bytes that the columns of a file may take, and as many times its size: what repeats is packed well.
const ROOM: u64 = 64 << 20;
const MOST: u64 = 1000;
const MORE: &str = "it holds far more than its size lets expect";
/// Rows read at once.
const ROWS: usize = 1 << 14;

/// What the rows of a column hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Int(Vec<i64>),
    /// Whole numbers without a sign, of 64 bits.
    Unsigned(Vec<u64>),
    /// Numbers.
    Float(Vec<f64>),
    /// Texts.
    Text(Vec<String>),
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values, those of all lists one after the other.
    pub values: Values,
    /// Of a column of lists: where each begins, and the end of the last.
    pub offsets: Option<Vec<i64>>,
}

/// Reads a table.
///
/// # Errors
/// When it is damaged, has nulls or types other than whole numbers, floats, texts and lists of these, or holds far more
/// than its size lets expect.
pub fn read(file: impl ChunkReader + 'static) -> Result<Vec<Column>> {
    // The library panics on some damage.
    inside(|| whole(file))
}

fn whole(file: impl ChunkReader + 'static) -> Result<Vec<Column>> {
    let length = file.len();
    let reader = SerializedFileReader::new(Ending::new(file)?)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut columns = schema.columns().iter().map(|column| empty(column)).collect::<Result<Vec<_>>>()?;
    let levels: Vec<_> = schema.columns().iter().map(|column| column.max_def_level()).collect();
    let mut left = ROOM.saturating_add(length.saturating_mul(MOST));
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number)?;
        let rows =
            usize::try_from(group.metadata().num_rows()).map_err(|_| wrong("it has fewer rows than none"))?;
        for (at, column) in columns.iter_mut().enumerate() {
            let repeated = column.offsets.is_some();
            if !sound(group.metadata(), at, length, repeated) {
                return Err(wrong("its columns lie outside of it"));
            }
            // Pages may tell of more values than their column has, and of billions in some bytes.
            let values = u64::try_from(group.metadata().column(at).num_values()).unwrap_or(u64::MAX);
            let bytes = values.saturating_mul(size_of::<u64>() as u64);
            left = left.checked_sub(bytes).ok_or_else(|| wrong(MORE))?;
            let pages = Box::new(Pages { pages: group.get_column_page_reader(at)?, left: values });
            let mut reader = get_column_reader(schema.column(at), pages);
            column.values.reserve(values)?;
            let mut done = 0;
            while done < rows {
                let got = some(&mut reader, column, (rows - done).min(ROWS), levels[at], &mut left)?;
                if got == 0 {
                    return Err(wrong("it has fewer rows than it says"));
                }
                done += got;
            }
        }
    }
    Ok(columns)
}

fn wrong(what: &str) -> ParquetError {
    ParquetError::General(what.into())
}

/// A column without rows.
fn empty(column: &ColumnDescriptor) -> Result<Column> {
    let unsigned = match column.logical_type_ref() {
        Some(LogicalType::Integer(kind)) => !kind.is_signed,
        _ => column.converted_type() == ConvertedType::UINT_64,
    };
    let values = match column.physical_type() {
        Type::INT64 if unsigned => Values::Unsigned(Vec::new()),
        Type::INT32 | Type::INT64 => Values::Int(Vec::new()),
        Type::FLOAT | Type::DOUBLE => Values::Float(Vec::new()),
        Type::BYTE_ARRAY => Values::Text(Vec::new()),
        kind => {
            return Err(wrong(&format!(
                "its column {} is of a type it should not have: {kind}",
                column.name()
            )));
        }
    };
    if column.max_rep_level() > 1 {
        return Err(wrong(&format!("its column {} has lists of lists", column.name())));
    }
    let name = column.path().parts().first().cloned().unwrap_or_default();
    Ok(Column { name, values, offsets: (column.max_rep_level() == 1).then(|| vec![0]) })
}

impl Values {
    /// Makes room for so many more, and for no others.
    fn reserve(&mut self, more: u64) -> Result<()> {
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        let made = match self {
            Values::Int(all) => all.try_reserve_exact(more),
            Values::Unsigned(all) => all.try_reserve_exact(more),
            Values::Float(all) => all.try_reserve_exact(more),
            Values::Text(_) => Ok(()),
        };
        made.map_err(|_| wrong("there is no memory for what it holds"))
    }
}

/// Pages of a column, which have as many values together as the column at most, and dictionaries as many as they have bytes.
struct Pages {
    pages: Box<dyn PageReader>,
    left: u64,
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(page) = self.pages.get_next_page()? else { return Ok(None) };
        if page.page_type() != PageType::DICTIONARY_PAGE {
            let left = self.left.checked_sub(page.num_values().into());
            self.left = left.ok_or_else(|| wrong("its pages have more values than their column"))?;
        } else if page.num_values() as usize > page.buffer().len() {
            // The library makes room for all of them first.
            return Err(wrong("a dictionary has more values than bytes"));
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

/// Reads some rows; how many there were. `most`: the definition level of values; `left`: bytes that texts may take.
fn some(
    reader: &mut ColumnReader,
    column: &mut Column,
    rows: usize,
    most: i16,
    left: &mut u64,
) -> Result<usize> {
    let Column { values, offsets, .. } = column;
    let mut lists = Lists { offsets: offsets.as_mut(), most };
    match (reader, values) {
        (ColumnReader::Int32ColumnReader(reader), Values::Int(to)) => {
            lists.read(reader, rows, to, |value| Ok(value.into()))
        }
        (ColumnReader::Int64ColumnReader(reader), Values::Int(to)) => lists.read(reader, rows, to, Ok),
        (ColumnReader::Int64ColumnReader(reader), Values::Unsigned(to)) => {
            lists.read(reader, rows, to, |value| Ok(value.cast_unsigned()))
        }
        (ColumnReader::FloatColumnReader(reader), Values::Float(to)) => {
            lists.read(reader, rows, to, |value| Ok(value.into()))
        }
        (ColumnReader::DoubleColumnReader(reader), Values::Float(to)) => lists.read(reader, rows, to, Ok),
        (ColumnReader::ByteArrayColumnReader(reader), Values::Text(to)) => {
            lists.read(reader, rows, to, |value| {
                let bytes = (size_of::<String>() + value.len()) as u64;
                *left = left.checked_sub(bytes).ok_or_else(|| wrong(MORE))?;
                Ok(value.as_utf8().map_err(|_| wrong("it has text that is no UTF-8"))?.into())
            })
        }
        _ => Err(wrong("its column is of another type than it says")),
    }
}

/// Where lists end, of a column that has lists.
struct Lists<'a> {
    offsets: Option<&'a mut Vec<i64>>,
    most: i16,
}

impl Lists<'_> {
    /// Reads some rows, and adds their values to `to`; how many rows there were.
    fn read<T: DataType, V>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        rows: usize,
        to: &mut Vec<V>,
        mut as_value: impl FnMut(T::T) -> Result<V>,
    ) -> Result<usize> {
        let (mut defined, mut repeated, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let levels = self.offsets.is_some().then_some(&mut repeated);
        let (rows, _, _) = reader.read_records(rows, Some(&mut defined), levels, &mut values)?;
        match &mut self.offsets {
            None if values.len() != rows => return Err(wrong("it has nulls")),
            None => {}
            Some(offsets) => ends(offsets, &defined, &repeated, self.most, values.len())?,
        }
        for value in values {
            to.push(as_value(value)?);
        }
        Ok(rows)
    }
}

/// Adds where lists end, of which each has an entry at least: what has another level than values have is an empty list.
fn ends(offsets: &mut Vec<i64>, defined: &[i16], repeated: &[i16], most: i16, values: usize) -> Result<()> {
    let begin = offsets.last().copied().unwrap_or(0);
    let mut end = begin;
    for (at, level) in repeated.iter().enumerate() {
        let is_value = most == 0 || defined.get(at) == Some(&most);
        if *level == 0 && at > 0 {
            offsets.push(end);
        }
        if *level != 0 && !is_value {
            return Err(wrong("it has nulls in lists"));
        }
        end += i64::from(is_value);
    }
    if !repeated.is_empty() {
        offsets.push(end);
    }
    if end - begin == values as i64 {
        Ok(())
    } else {
        Err(wrong("its lists and values contradict each other"))
    }
}
