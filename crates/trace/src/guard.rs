//! Calling libraries that trust their input: what panics on it, or never sees its end.

use crate::thrift::{self, Stop};
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length};
use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

/// Bytes of a page's header: nearly always, with long statistics, and at most.
const HEADERS: [u64; 3] = [256, 64 << 10, 16 << 20];

/// Bytes that any page may unpack to, and how many times its own bytes a larger one may. The codecs that make room
/// first pack fewer than 256 bytes into one.
const PAGE: (u64, u64) = (64 << 20, 256);

thread_local! {
    /// Whether a panic of this thread is expected and therefore not told.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs work of which a panic is one more error: `None`, and nothing is printed. Whatever the work had in
/// hand then must not be used again.
///
/// The hook is that of this copy of Rust's runtime. The Python module has one of its own, of which nothing is exported, so
/// panics of other modules in the process never come here (a test looks at the module's symbols).
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !EXPECTED.get() {
                usual(panic);
            }
        }));
    });
    let before = EXPECTED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    EXPECTED.set(before);
    done.ok()
}

/// Runs work of the Parquet library, where a panic is damage. What it leaves behind must not be used again.
///
/// # Errors
/// Those of the work, and one for a panic.
pub fn inside<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    guarded(work).unwrap_or_else(|| Err(ParquetError::General("its pages contradict themselves".into())))
}

/// Whether a codec is read. The library unpacks no more of it than a page says. Of gzip and Hadoop's LZ4 it unpacks all
/// there is.
pub fn unpacks(codec: Compression) -> bool {
    use Compression::{LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
    matches!(codec, UNCOMPRESSED | SNAPPY | LZ4_RAW | ZSTD(_))
}

/// Whether a column of a row group lies within the file, and has a value a row unless it is `repeated`; the library takes
/// that for granted.
pub fn sound(group: &RowGroupMetaData, column: usize, length: u64, repeated: bool) -> bool {
    if column >= group.num_columns() || group.num_rows() < 0 {
        return false;
    }
    let chunk = group.column(column);
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let (Ok(start), Ok(size)) = (u64::try_from(start), u64::try_from(chunk.compressed_size())) else {
        return false;
    };
    let inside = start.checked_add(size).is_some_and(|end| end <= length);
    inside
        && unpacks(chunk.compression())
        && chunk.data_page_offset() >= 0
        && chunk.uncompressed_size() >= 0
        && (repeated || chunk.num_values() == group.num_rows())
}

/// A file for the Parquet library whose end is an error to whoever reads on, and so are headers that claim more than they
/// hold: a damaged one may claim billions of elements, and the library skips them one by one without noticing that there
/// are none.
pub struct Ending<R>(R);

impl<R: ChunkReader> Ending<R> {
    /// Looks at the footer first.
    ///
    /// # Errors
    /// When it cannot be read, or claims too much.
    pub fn new(file: R) -> Result<Ending<R>> {
        // Length of the footer and the format's mark, which the library looks at more closely.
        const TAIL: u64 = 8;
        if let Some(tail) = file.len().checked_sub(TAIL) {
            let end = file.get_bytes(tail, TAIL as usize)?;
            let length = end.first_chunk().map_or(0, |length| u32::from_le_bytes(*length));
            if let Some(begin) = tail.checked_sub(u64::from(length)) {
                checked(thrift::walk(&file.get_bytes(begin, length as usize)?))?;
            }
        }
        Ok(Ending(file))
    }
}

/// An error of what claims too much; all else the library finds by itself.
fn checked(walked: std::result::Result<usize, Stop>) -> Result<()> {
    match walked {
        Err(Stop::Absurd) => Err(ParquetError::General("a header claims more elements than it holds".into())),
        _ => Ok(()),
    }
}

impl<R: Length> Length for Ending<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Ending<R> {
    type T = Ending<R::T>;

    /// What the library reads so begins with the header of a page.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        for most in HEADERS {
            let length = self.0.len().saturating_sub(start).min(most);
            let bytes = self.0.get_bytes(start, length as usize)?;
            let (least, times) = PAGE;
            if thrift::page(&bytes).is_some_and(|(all, packed)| all > least.max(packed.saturating_mul(times)))
            {
                return Err(ParquetError::General("a page claims far more bytes than it can hold".into()));
            }
            match thrift::walk(&bytes) {
                Err(Stop::Short) if length == most => {}
                walked => {
                    checked(walked)?;
                    break;
                }
            }
        }
        self.0.get_read(start).map(Ending)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 if !buffer.is_empty() => Err(ErrorKind::UnexpectedEof.into()),
            n => Ok(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_on_at_the_end_is_an_error() {
        let mut read = Ending::new(Bytes::from_static(b"abc")).unwrap().get_read(1).unwrap();
        let mut buffer = [0; 8];
        assert_eq!(read.read(&mut buffer).unwrap(), 2);
        assert_eq!(read.read(&mut []).unwrap(), 0);
        assert_eq!(read.read(&mut buffer).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_panic_is_no_result_and_the_next_one_is_told_again() {
        assert_eq!(guarded(|| 7), Some(7));
        assert_eq!(guarded(|| -> u8 { panic!("damaged") }), None);
        assert!(!EXPECTED.get());
        assert_eq!(guarded(|| (guarded(|| -> u8 { panic!("inner") }), EXPECTED.get())), Some((None, true)));
    }
}
