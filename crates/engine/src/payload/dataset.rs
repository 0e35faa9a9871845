//! Chunks of a dataset as what is written: which part of its tape every file and every write gets.
//!
//! What is made before the run gets the beginning of the tape, file after file, each from a whole chunk on. Writes of the
//! run get what follows, so nothing comes twice but what the dataset has twice. Threads lease stretches of it: a write
//! goes on where its thread's last one ended if that is so in the file, too, and begins with the next whole chunk if not.

use crate::{Error, Result};
use loadstone_fstree::{Piece, Tape};
use loadstone_plan::Plan;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that a thread leases at once: with chunks of 8 KiB less than one in a hundred is cut at the end of a stretch.
const STRETCH: u64 = 1 << 20;
/// Beyond what any file or run holds, bytes.
const MOST: u64 = 1 << 62;

/// The dataset of a run.
pub struct Dataset {
    tape: Tape,
    /// By the numbers of their contents, ascending, where on the tape the files begin that are made before the run.
    begins: Vec<(u64, u64)>,
    /// Where the next stretch begins.
    next: AtomicU64,
}

/// The tape that a plan asks for. Nothing but the dataset's file is touched.
///
/// # Errors
/// When it cannot be read.
pub fn of_plan(plan: &Plan) -> Result<Option<Tape>> {
    let Some((content, artefact)) = plan.content.as_ref().zip(plan.dataset()) else { return Ok(None) };
    let tape = Tape::load(&artefact.path, content.snapshot.map(|snapshot| snapshot as usize), plan.seed);
    tape.map(Some).map_err(|e| Error::Content(e.to_string()))
}

impl Dataset {
    /// For a run before which these files are made: numbers of their contents and bytes.
    pub fn new(tape: Tape, files: impl Iterator<Item = (u64, u64)>) -> Dataset {
        let mut position = 0;
        let place = |(number, size): (u64, u64)| {
            let begin = position;
            position = tape.next(size.saturating_add(position).min(MOST));
            (number, begin)
        };
        let mut begins: Vec<_> = files.map(place).collect();
        begins.sort_unstable();
        Dataset { begins, next: AtomicU64::new(position), tape }
    }

    /// What a file has from byte `at` on before the run.
    pub fn before(&self, file: u64, at: u64, bytes: &mut [u8], piece: &mut Piece) {
        let begin = self.begins.binary_search_by_key(&file, |(number, _)| *number);
        let begin = begin.map_or(0, |found| self.begins[found].1);
        self.tape.fill(begin + at, bytes, piece);
    }
}

/// What is left of a thread's stretch, and where its last write ended: file and byte.
#[derive(Default)]
pub struct Lease {
    next: u64,
    end: u64,
    after: (u64, u64),
}

impl Lease {
    /// Where on the tape a write begins.
    fn take(&mut self, dataset: &Dataset, file: u64, at: u64, size: u64) -> u64 {
        let tape = &dataset.tape;
        let mut begin = if (file, at) == self.after { self.next } else { tape.next(self.next) };
        if begin + size > self.end {
            // What lies before the first whole chunk of a stretch belongs to the one before it.
            let length = STRETCH.max(size + tape.largest());
            let stretch = dataset.next.fetch_add(length, Relaxed);
            begin = tape.next(stretch);
            self.end = tape.next(stretch + length);
        }
        (self.next, self.after) = (begin + size, (file, at + size));
        begin
    }
}

/// Makes one write after the other.
pub struct Chunks {
    dataset: Arc<Dataset>,
    /// Shared by all that one thread has in flight, so nobody waits for it.
    lease: Arc<Mutex<Lease>>,
    piece: Piece,
}

impl Chunks {
    /// Of one thread, or of one of its requests in flight.
    pub fn new(dataset: Arc<Dataset>, lease: Arc<Mutex<Lease>>) -> Chunks {
        Chunks { dataset, lease, piece: Piece::default() }
    }

    /// Content of the next write, which goes to byte `at` of `file`.
    pub fn make(&mut self, file: u64, at: u64, bytes: &mut [u8]) {
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = lease.take(&self.dataset, file, at, bytes.len() as u64);
        drop(lease);
        self.dataset.tape.fill(begin, bytes, &mut self.piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_fstree::chunks::{Chunks as Table, Ratio};
    use loadstone_fstree::names::{Name, Names};
    use loadstone_fstree::tree::{Chunking, Entry, Kind, Mark, Meta, Series, State, Tree};
    use std::collections::HashSet;

    const CHUNK: usize = 5000;

    /// A file of 1,000 chunks, no two alike.
    fn tape() -> Tape {
        let (mut chunks, mut tree) = (Table::new(0), Tree::new(""));
        let all: Vec<u32> =
            (0..1000).map(|_| chunks.push(CHUNK as u32, Ratio::nearest(1.0)).unwrap()).collect();
        let mark = Mark::new(Kind::File, State::New);
        let size = (1000 * CHUNK) as u64;
        let entry = Entry { dir: 0, name: Name::made(0), extension: 0, mark, size, private: &[] };
        tree.add_file(&entry, &all).unwrap();
        let meta = Meta { seed: Some(1), ..Meta::new(Chunking::default(), "") };
        Tape::new(Series { meta, chunks, names: Names::new(), trees: vec![tree] }, None, 0).unwrap()
    }

    fn whole(tape: &Tape, position: u64, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        tape.fill(position, &mut bytes, &mut Piece::default());
        bytes
    }

    #[test]
    fn files_get_the_beginning_one_after_the_other() {
        let dataset = Dataset::new(tape(), [(7, 12_000), (3, 0), (5, 10_000), (9, 100)].into_iter());
        let read = |file, at, size| {
            let mut bytes = vec![0; size];
            dataset.before(file, at, &mut bytes, &mut Piece::default());
            bytes
        };
        let place = |chunk: usize, size| whole(&dataset.tape, (chunk * CHUNK) as u64, size);
        assert!(read(7, 0, 12_000) == place(0, 12_000));
        assert!(read(7, 5000, 100) == place(1, 100));
        // Whole chunks in each, whatever the one before left of its last.
        assert!(read(5, 0, 10_000) == place(3, 10_000));
        assert!(read(9, 0, 100) == place(5, 100));
    }

    #[test]
    fn writes_go_on_where_they_go_on_in_the_file() {
        let dataset = Arc::new(Dataset::new(tape(), [(0, 5000)].into_iter()));
        let lease = Arc::<Mutex<Lease>>::default();
        // Requests in flight of one thread, in turn.
        let mut makers =
            [Chunks::new(dataset.clone(), lease.clone()), Chunks::new(dataset.clone(), lease.clone())];
        let mut write = |turn: usize, file, at, size: usize| {
            let mut bytes = vec![0; size];
            makers[turn % 2].make(file, at, &mut bytes);
            bytes
        };
        let sequential: Vec<u8> = (0..10).flat_map(|i| write(i, 0, 4096 * i as u64, 4096)).collect();
        assert!(sequential == whole(&dataset.tape, 5000, 40_960));
        // Elsewhere, and in another file: each with the next whole chunk.
        assert!(write(0, 0, 1 << 20, 4096) == whole(&dataset.tape, 10 * 5000, 4096));
        assert!(write(1, 1, (1 << 20) + 4096, 4096) == whole(&dataset.tape, 11 * 5000, 4096));
        // The same place again gets what comes next, too.
        assert!(write(0, 1, (1 << 20) + 4096, 4096) == whole(&dataset.tape, 12 * 5000, 4096));
    }

    #[test]
    fn no_chunk_comes_twice_whatever_threads_do() {
        let dataset = Arc::new(Dataset::new(tape(), std::iter::empty()));
        let beginnings = |thread: u64| {
            let mut maker = Chunks::new(dataset.clone(), Arc::default());
            let write = |i: u64| {
                let chunks = if i.is_multiple_of(50) { 700 } else { 1 + (i % 3) as usize };
                let mut bytes = vec![0; chunks * CHUNK];
                maker.make(thread, i << 30, &mut bytes);
                bytes.chunks_exact(CHUNK).map(<[u8]>::to_vec).collect::<Vec<_>>()
            };
            (0..200).flat_map(write).collect::<Vec<_>>()
        };
        let mut seen = HashSet::new();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || beginnings(thread))).collect();
            for chunk in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
                assert!(seen.insert(chunk));
            }
        });
        // More than the tape has: the later ones are of further passes.
        assert!(seen.len() > 2 * 1000);
    }
}
