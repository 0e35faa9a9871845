//! Calling libraries that trust their input: what panics on it, or never sees its end.

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};
use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

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

/// A file for the Parquet library whose end is an error to whoever reads on: a damaged header may claim
/// billions of elements, and the library skips them one by one without noticing that there are none.
pub struct Ending<R>(pub R);

impl<R: Length> Length for Ending<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Ending<R> {
    type T = Ending<R::T>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
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
        let mut read = Ending(Bytes::from_static(b"abc")).get_read(1).unwrap();
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
