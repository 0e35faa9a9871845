//! Drives every line-oriented format: blocks of whole lines, parsed by several threads, in order.
//!
//! Whichever worker is free takes the next block from the file (decompressing it while it holds the
//! lock), parses it without the lock and hands it over with its number; the consumer puts the
//! blocks in order, gives objects their ids in order of first appearance and knows the line numbers.
//! The number of blocks under way is fixed, so memory is bounded whatever the size of the file.

use crate::chunk::{Chunk, Ids, Origin};
use crate::input::Input;
use crate::{Error, ErrorKind, Place, Result};
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of text in a block.
const BLOCK: usize = 1 << 20;

/// Longest line of a text trace.
const LONGEST: usize = 1 << 20;

/// One line-oriented format.
pub trait LineFormat: Send + Sync + 'static {
    /// Appends the request of a line to the chunk, with object ids from `ids`; a line that is none
    /// appends nothing and counts itself in the chunk.
    ///
    /// # Errors
    /// Says what is wrong with the line; the driver adds the place.
    fn line(&self, line: &[u8], ids: &mut Ids, chunk: &mut Chunk) -> Result<()>;

    /// Appends the requests of the lines that a text begins with, one each, as long as they are the usual ones
    /// that a format reads faster than line by line; answers how many lines and bytes these are.
    fn usual(&self, _text: &[u8], _ids: &mut Ids, _chunk: &mut Chunk) -> (u64, usize) {
        (0, 0)
    }
}

/// A block after parsing.
#[derive(Default)]
struct Parsed {
    chunk: Chunk,
    ids: Ids,
    lines: u64,
}

/// Bytes in memory that is written again and again, and never cleared.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    used: usize,
}

impl Block {
    fn text(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Reads so many bytes more, fewer only at the end of the input; answers how many.
    fn read(&mut self, input: &mut Input, want: usize) -> std::io::Result<usize> {
        let (start, most) = (self.used, self.used + want);
        if self.bytes.len() < most {
            self.bytes.resize(most, 0);
        }
        while self.used < most {
            match input.read(&mut self.bytes[self.used..most]) {
                Ok(0) => break,
                Ok(n) => self.used += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(self.used - start)
    }
}

/// The part of the file not yet taken.
struct Text {
    input: Input,
    rest: Block,
    blocks: u64,
    ended: bool,
}

impl Text {
    /// Puts the next whole lines into `block`; its number, or `None` at the end.
    fn take(&mut self, block: &mut Block) -> Result<Option<u64>> {
        block.used = 0;
        if self.ended {
            return Ok(None);
        }
        std::mem::swap(block, &mut self.rest);
        loop {
            let n = block.read(&mut self.input, BLOCK).map_err(|e| self.input.error(e))?;
            if n < BLOCK {
                self.ended = true;
                break;
            }
            if let Some(end) = memchr::memrchr(b'\n', block.text()) {
                let rest = &block.bytes[end + 1..block.used];
                self.rest.used = rest.len();
                if self.rest.bytes.len() < rest.len() {
                    self.rest.bytes.resize(rest.len(), 0);
                }
                self.rest.bytes[..rest.len()].copy_from_slice(rest);
                block.used = end + 1;
                break;
            }
            if block.used > LONGEST {
                self.ended = true;
                return Err(Error::new(ErrorKind::TooLarge, "a line is longer than 1 MiB")
                    .path(&self.input.path)
                    .help("this is no text trace"));
            }
        }
        if block.used == 0 {
            return Ok(None);
        }
        self.blocks += 1;
        Ok(Some(self.blocks - 1))
    }
}

/// Requests of a text file, in source order.
pub struct Lines {
    path: PathBuf,
    /// Why there is no thread at all.
    unstarted: Option<std::io::Error>,
    parsed: Receiver<(u64, Result<Parsed>)>,
    free: Option<SyncSender<Parsed>>,
    waiting: BTreeMap<u64, Result<Parsed>>,
    text: Arc<Mutex<Text>>,
    next: u64,
    lines: u64,
    /// Objects by their dense id.
    pub ids: Ids,
    /// Actors by their dense id.
    pub actors: Ids,
    map: Vec<u32>,
    /// Times of the first and the last line, where the file can be looked at from its end.
    ends: Option<(i64, i64)>,
}

/// Time of a line that holds a request.
fn time(format: &impl LineFormat, line: &[u8]) -> Option<i64> {
    let mut chunk = Chunk::default();
    format.line(line.trim_ascii(), &mut Ids::default(), &mut chunk).ok()?;
    chunk.batch.time.first().copied()
}

/// Times of the first and last line of an uncompressed file.
fn ends(input: &Input, format: &impl LineFormat) -> Option<(i64, i64)> {
    if !input.compression.is_empty() || input.total == 0 {
        return None;
    }
    let first = input.unread().split(|&c| c == b'\n').find_map(|line| time(format, line))?;
    let mut file = std::fs::File::open(&input.path).ok()?;
    let from = input.total.saturating_sub(1 << 16);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut tail = Vec::new();
    file.take(1 << 16).read_to_end(&mut tail).ok()?;
    let last = tail.rsplit(|&c| c == b'\n').find_map(|line| time(format, line))?;
    Some((first, last))
}

impl Lines {
    /// Starts `threads` workers on a file; up to `max_damaged` lines may be damaged.
    pub fn start(input: Input, format: impl LineFormat, threads: usize, max_damaged: u64) -> Lines {
        let threads = threads.max(1);
        let blocks = 2 * threads + 2;
        let path = input.path.clone();
        let ends = ends(&input, &format);
        let lines = input.lines_skipped;
        let text = Arc::new(Mutex::new(Text { input, rest: Block::default(), blocks: 0, ended: false }));
        let (free, free_out) = sync_channel(blocks);
        for _ in 0..blocks {
            let _ = free.send(Parsed::default());
        }
        let free_out = Arc::new(Mutex::new(free_out));
        let (done, parsed) = sync_channel(blocks);
        let format = Arc::new(format);
        let mut unstarted = None;
        for number in 0..threads {
            let (text, free, done, format) = (text.clone(), free_out.clone(), done.clone(), format.clone());
            let work = move || worker(&text, &free, &done, &*format, max_damaged);
            let started = std::thread::Builder::new().name("loadstone-parse".into()).spawn(work);
            // Fewer do it, too; with none the file would look empty.
            if let Err(cause) = started {
                unstarted = (number == 0).then_some(cause);
                break;
            }
        }
        Lines {
            path,
            unstarted,
            parsed,
            free: Some(free),
            waiting: BTreeMap::new(),
            text,
            next: 0,
            lines,
            ids: Ids::default(),
            actors: Ids::default(),
            map: Vec::new(),
            ends,
        }
    }

    /// Time of the last line, as it stands.
    pub fn last_time(&self) -> Option<i64> {
        self.ends.map(|(_, last)| last)
    }

    /// Time from the first line to the last.
    pub fn span(&self) -> Option<i64> {
        self.ends.and_then(|(first, last)| last.checked_sub(first)).filter(|&span| span >= 0)
    }

    /// Replaces the chunk by the next one; `false` at the end.
    ///
    /// # Errors
    /// Those of the file; damaged lines are in the chunk.
    pub fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        loop {
            let Some(mut parsed) = self.next_block()? else { return Ok(false) };
            std::mem::swap(chunk, &mut parsed.chunk);
            self.settle(chunk, &parsed)?;
            self.lines += parsed.lines;
            if let Some(free) = &self.free {
                parsed.chunk.clear();
                // Never blocks: the channel has room for every block there is.
                let _ = free.send(parsed);
            }
            let nothing = chunk.other == 0 && chunk.repaired == 0 && chunk.damaged.is_empty();
            if !chunk.batch.is_empty() || !nothing {
                return Ok(true);
            }
        }
    }

    fn next_block(&mut self) -> Result<Option<Parsed>> {
        if let Some(cause) = &self.unstarted {
            let what = format!("cannot be read: no thread could be started ({cause})");
            return Err(Error::new(ErrorKind::Io, what)
                .path(&self.path)
                .help("let more be started (ulimit -u, pids.max)"));
        }
        while !self.waiting.contains_key(&self.next) {
            match self.parsed.recv() {
                Ok((number, block)) => {
                    self.waiting.insert(number, block);
                }
                Err(_) => {
                    let blocks = self.text.lock().unwrap_or_else(PoisonError::into_inner).blocks;
                    if self.next == blocks {
                        return Ok(None);
                    }
                    return Err(Error::new(ErrorKind::Defect, "a parsing thread ended early")
                        .path(&self.path)
                        .help("please report this"));
                }
            }
        }
        let block = self.waiting.remove(&self.next).transpose();
        self.next += 1;
        block.map_err(|e| e.path(&self.path))
    }

    /// Gives objects their final ids and damaged lines their numbers.
    fn settle(&mut self, chunk: &mut Chunk, parsed: &Parsed) -> Result<()> {
        chunk.origin = Origin::Line(self.lines + 1);
        rename(&parsed.ids, &mut self.ids, &mut self.map, &mut chunk.batch.object);
        rename(&chunk.actors, &mut self.actors, &mut self.map, &mut chunk.batch.actor);
        self.ids.check().and_then(|()| self.actors.check()).map_err(|e| e.path(&self.path))?;
        for (line, error) in std::mem::take(&mut chunk.damaged) {
            let line = self.lines + line;
            chunk.damaged.push((line, error.path(&self.path).at(Place::Line(line))));
        }
        Ok(())
    }
}

/// Replaces ids within a block by those of the whole file.
fn rename(block: &Ids, file: &mut Ids, map: &mut Vec<u32>, column: &mut [u32]) {
    map.clear();
    map.extend(block.keys().iter().map(|key| file.key(key)));
    if map.iter().enumerate().any(|(local, &id)| local as u32 != id) {
        for id in column {
            *id = map[*id as usize];
        }
    }
}

fn worker(
    text: &Mutex<Text>,
    free: &Mutex<Receiver<Parsed>>,
    done: &SyncSender<(u64, Result<Parsed>)>,
    format: &impl LineFormat,
    max_damaged: u64,
) {
    let mut block = Block::default();
    loop {
        let Ok(mut parsed) = free.lock().unwrap_or_else(PoisonError::into_inner).recv() else { return };
        let taken = {
            let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = text.take(&mut block);
            if taken.is_err() {
                text.blocks += 1;
            }
            taken.map_err(|e| (text.blocks - 1, e))
        };
        let message = match taken {
            Ok(None) => return,
            Err((number, error)) => (number, Err(error)),
            // Of a thread that is gone the reader would wait for this block for ever.
            Ok(Some(number)) => match catch_unwind(AssertUnwindSafe(|| {
                parse(block.text(), format, &mut parsed, max_damaged);
                parsed
            })) {
                Ok(parsed) => (number, Ok(parsed)),
                Err(_) => (number, Err(defect())),
            },
        };
        let failed = message.1.is_err();
        if done.send(message).is_err() || failed {
            return;
        }
    }
}

#[cold]
fn defect() -> Error {
    Error::new(ErrorKind::Defect, "a line stopped the parser; this is a defect of the program")
        .help("please report it, with the lines if they may be shown")
}

fn parse(block: &[u8], format: &impl LineFormat, parsed: &mut Parsed, max_damaged: u64) {
    let Parsed { chunk, ids, lines } = parsed;
    chunk.clear();
    ids.clear();
    *lines = 0;
    let mut skipped = 0;
    let mut rest = block;
    loop {
        let (usual, bytes) = format.usual(rest, ids, chunk);
        *lines += usual;
        rest = &rest[bytes..];
        if rest.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        let is_open = end == rest.len();
        rest = rest.get(end + 1..).unwrap_or(b"");
        *lines += 1;
        let before = chunk.batch.len();
        let result = format.line(line.strip_suffix(b"\r").unwrap_or(line), ids, chunk);
        if let Err(error) = result {
            chunk.damaged.push((*lines, error));
            if chunk.damaged.len() as u64 > max_damaged {
                break;
            }
        }
        if chunk.batch.time.len() == before {
            skipped += 1;
            chunk.skips.push((before, skipped));
        } else {
            chunk.open = is_open;
        }
    }
    chunk.fill();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Takes numbers, and stops at anything else as a faulty parser may.
    struct Faulty;

    impl LineFormat for Faulty {
        fn line(&self, line: &[u8], ids: &mut Ids, chunk: &mut Chunk) -> Result<()> {
            let number = std::str::from_utf8(line).unwrap().parse().unwrap();
            chunk.push(number, 0, ids.number(0), 0, 0);
            Ok(())
        }
    }

    #[test]
    fn a_parser_that_panics_is_an_error_and_nobody_waits_for_it() {
        for threads in [1, 4] {
            // Several blocks, so that some are under way.
            let mut text = b"12345678\n".repeat(6 * BLOCK / 9);
            text.extend_from_slice(b"boom\n");
            text.extend_from_slice(&b"12345678\n".repeat(20 * BLOCK / 9));
            let input = Input::from_bytes(Path::new("t"), text).unwrap();
            let mut lines = Lines::start(input, Faulty, threads, 0);
            let (mut chunk, mut rows) = (Chunk::default(), 0);
            let error = loop {
                match lines.next(&mut chunk) {
                    Ok(true) => rows += chunk.batch.len(),
                    Ok(false) => panic!("the end was reached"),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.starts_with("t: ") && error.contains("defect of the program"), "{error}");
            assert!(rows >= 5 * BLOCK / 9, "what came before it is read");
        }
    }
}
