//! Any Parquet table as plain columns, such as those of bundles: read whole, with memory bounded by the size of its file.

use crate::guard::{Ending, inside, sound};
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;

/// Bytes that the columns of a file may take, and as many times its size: what repeats is packed well.
const ROOM: u64 = 64 << 20;
const MOST: u64 = 1000;
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
pub fn read(file: File) -> Result<Vec<Column>> {
    let length = file.metadata().map_err(|e| ParquetError::External(e.into()))?.len();
    // The library panics on some damage.
    inside(|| whole(file, length))
}

fn whole(file: File, length: u64) -> Result<Vec<Column>> {
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
            let mut reader = group.get_column_reader(at)?;
            let mut done = 0;
            while done < rows {
                let before = column.values.len();
                let got = some(&mut reader, column, (rows - done).min(ROWS), levels[at])?;
                let took = column.values.size(before) + (got * size_of::<i64>()) as u64;
                left = left
                    .checked_sub(took)
                    .ok_or_else(|| wrong("it holds far more than its size lets expect"))?;
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
    fn len(&self) -> usize {
        match self {
            Values::Int(all) => all.len(),
            Values::Unsigned(all) => all.len(),
            Values::Float(all) => all.len(),
            Values::Text(all) => all.len(),
        }
    }

    /// Bytes of memory that those from one on take.
    fn size(&self, from: usize) -> u64 {
        match self {
            Values::Text(all) => {
                all[from..].iter().map(|text| (size_of::<String>() + text.len()) as u64).sum()
            }
            all => ((all.len() - from) * size_of::<u64>()) as u64,
        }
    }
}

/// Reads some rows; how many there were. `most`: the definition level of values.
fn some(reader: &mut ColumnReader, column: &mut Column, rows: usize, most: i16) -> Result<usize> {
    let Column { values, offsets, .. } = column;
    let mut lists = Lists { offsets: offsets.as_mut(), most };
    match (reader, values) {
        (ColumnReader::Int32ColumnReader(reader), Values::Int(to)) => {
            let found = lists.read(reader, rows)?;
            to.extend(found.values.into_iter().map(i64::from));
            Ok(found.rows)
        }
        (ColumnReader::Int64ColumnReader(reader), Values::Int(to)) => {
            let found = lists.read(reader, rows)?;
            to.extend(found.values);
            Ok(found.rows)
        }
        (ColumnReader::Int64ColumnReader(reader), Values::Unsigned(to)) => {
            let found = lists.read(reader, rows)?;
            to.extend(found.values.into_iter().map(i64::cast_unsigned));
            Ok(found.rows)
        }
        (ColumnReader::FloatColumnReader(reader), Values::Float(to)) => {
            let found = lists.read(reader, rows)?;
            to.extend(found.values.into_iter().map(f64::from));
            Ok(found.rows)
        }
        (ColumnReader::DoubleColumnReader(reader), Values::Float(to)) => {
            let found = lists.read(reader, rows)?;
            to.extend(found.values);
            Ok(found.rows)
        }
        (ColumnReader::ByteArrayColumnReader(reader), Values::Text(to)) => {
            let found = lists.read(reader, rows)?;
            for value in found.values {
                to.push(value.as_utf8().map_err(|_| wrong("it has text that is no UTF-8"))?.into());
            }
            Ok(found.rows)
        }
        _ => Err(wrong("its column is of another type than it says")),
    }
}

/// Rows of a column that were read.
struct Found<T> {
    rows: usize,
    values: Vec<T>,
}

/// Where lists end, of a column that has lists.
struct Lists<'a> {
    offsets: Option<&'a mut Vec<i64>>,
    most: i16,
}

impl Lists<'_> {
    fn read<T: DataType>(&mut self, reader: &mut ColumnReaderImpl<T>, rows: usize) -> Result<Found<T::T>> {
        let (mut defined, mut repeated, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let levels = self.offsets.is_some().then_some(&mut repeated);
        let (rows, _, _) = reader.read_records(rows, Some(&mut defined), levels, &mut values)?;
        match &mut self.offsets {
            None if values.len() != rows => return Err(wrong("it has nulls")),
            None => {}
            Some(offsets) => ends(offsets, &defined, &repeated, self.most, values.len())?,
        }
        Ok(Found { rows, values })
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
