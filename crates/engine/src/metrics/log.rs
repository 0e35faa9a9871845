//! The full log: every request as a row, written by a thread of its own.
//!
//! Recording never waits: rows leave in blocks over a bounded channel, and a block that finds it
//! full is dropped and counted. The writer puts the rows of all threads into order of issue: each
//! block carries a watermark, the time before which its thread will deliver nothing more.

use crate::host::scheduling::in_background;
use crate::request::Request;
use crate::{Error, Result};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Rows per block.
const BLOCK: usize = 4096;
/// Blocks on their way.
const QUEUE: usize = 256;
/// Rows the writer holds at most while it waits for the slowest thread; beyond, blocks are dropped and counted.
const PENDING: u64 = 4 << 20;
/// Of the memory that can be had when a log begins, the share that these rows may take: one part of so many.
const PART: u64 = 16;

/// One request as it was performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Issue, ns from the start of the run.
    pub time: i64,
    /// When it should have been issued, ns from the start; equals `time` where the pace is closed.
    pub intended: i64,
    /// Completion minus issue, ns.
    pub latency: i64,
    /// Bytes transferred or negative errno.
    pub result: i64,
    /// First byte on the target.
    pub offset: i64,
    /// Bytes asked for.
    pub size: i64,
    /// Flags of the source.
    pub flags: u32,
    /// Actor of the source.
    pub actor: u32,
    /// Position of the target in the plan.
    pub target: u16,
    /// Frozen op code.
    pub op: u8,
}

impl Row {
    #[inline]
    pub(crate) fn new(
        r: &Request,
        intended: i64,
        issued: i64,
        now: i64,
        result: i64,
        start: i64,
        open: bool,
    ) -> Row {
        Row {
            time: issued - start,
            intended: if open { intended - start } else { issued - start },
            latency: now - issued,
            result,
            offset: r.offset as i64,
            size: r.size as i64,
            flags: r.flags,
            actor: r.actor,
            target: r.target,
            op: r.op,
        }
    }
}

/// Where the ordered rows go.
pub trait Sink: Send {
    /// Takes the next rows in order of time.
    fn rows(&mut self, rows: &[Row]) -> Result<()>;
    /// Makes what was taken whole and visible.
    fn finish(self: Box<Self>, dropped: u64, started_unix_ns: i64) -> Result<()>;
}

struct Block {
    thread: usize,
    rows: Vec<Row>,
    /// No later block of this thread holds a row issued before this.
    watermark: i64,
}

/// A recording thread's end of the log.
pub struct Logger {
    thread: usize,
    blocks: SyncSender<Block>,
    spent: Receiver<Vec<Row>>,
    rows: Vec<Row>,
    oldest: i64,
    /// `oldest` is told from outside.
    told: bool,
    lost: u64,
}

impl Logger {
    /// Takes a row; hands a full block over.
    #[inline]
    pub fn push(&mut self, row: Row) {
        if !self.told {
            self.oldest = row.time + row.latency;
        }
        self.rows.push(row);
        if self.rows.len() >= BLOCK {
            self.send();
        }
    }

    /// Says that requests issued at `time` (ns from the start) may still be in flight. A thread with
    /// several in flight says so before the first; one that performs one at a time need not.
    pub fn outstanding_since(&mut self, time: i64) {
        self.oldest = time;
        self.told = true;
    }

    /// Hands over what there is, so that the log never lags far behind.
    pub fn flush(&mut self) {
        self.send();
    }

    fn send(&mut self) {
        let empty = self.spent.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK));
        let rows = std::mem::replace(&mut self.rows, empty);
        let count = rows.len() as u64;
        match self.blocks.try_send(Block { thread: self.thread, rows, watermark: self.oldest }) {
            Ok(()) => {}
            Err(TrySendError::Full(b) | TrySendError::Disconnected(b)) => {
                self.lost += count;
                self.rows = b.rows;
                self.rows.clear();
            }
        }
    }

    /// Hands over the rest, waiting for room, as the run is over; returns the rows dropped.
    pub fn finish(mut self) -> u64 {
        let rows = std::mem::take(&mut self.rows);
        let count = rows.len() as u64;
        if self.blocks.send(Block { thread: self.thread, rows, watermark: i64::MAX }).is_err() {
            self.lost += count;
        }
        self.lost
    }
}

/// The writer of the log, to be finished once every logger is.
pub struct Log {
    writer: JoinHandle<Written>,
}

/// What the writing thread hands back.
struct Written {
    sink: Box<dyn Sink>,
    written: u64,
    dropped: u64,
    failure: Option<Error>,
}

/// Starts the writer and makes one logger per recording thread.
///
/// # Errors
/// When the file or its thread cannot be made.
pub fn start(sink: Box<dyn Sink>, threads: usize) -> Result<(Log, Vec<Logger>)> {
    let (blocks, incoming) = sync_channel::<Block>(QUEUE);
    let (returns, spents): (Vec<_>, Vec<_>) = (0..threads).map(|_| sync_channel(4)).unzip();
    let writer = std::thread::Builder::new()
        .name("loadstone-log".into())
        .spawn(move || {
            in_background();
            write(sink, &incoming, &returns)
        })
        .map_err(|e| Error::thread("that writes the log", e))?;
    let loggers = spents.into_iter().enumerate().map(|(thread, spent)| Logger {
        thread,
        blocks: blocks.clone(),
        spent,
        rows: Vec::with_capacity(BLOCK),
        oldest: i64::MIN,
        told: false,
        lost: 0,
    });
    Ok((Log { writer }, loggers.collect()))
}

fn write(sink: Box<dyn Sink>, incoming: &Receiver<Block>, returns: &[SyncSender<Vec<Row>>]) -> Written {
    let mut marks = vec![i64::MIN; returns.len()];
    let mut pending: Vec<Row> = Vec::new();
    let room = loadstone_files::available_memory() / PART / size_of::<Row>() as u64;
    let most = room.clamp(BLOCK as u64, PENDING) as usize;
    let mut out = Written { sink, written: 0, dropped: 0, failure: None };
    while let Ok(mut block) = incoming.recv() {
        let mark = &mut marks[block.thread];
        *mark = block.watermark.max(*mark);
        if pending.len() + block.rows.len() > most || out.failure.is_some() {
            out.dropped += block.rows.len() as u64;
        } else {
            pending.extend_from_slice(&block.rows);
        }
        block.rows.clear();
        let _ = returns[block.thread].try_send(block.rows);
        let safe = marks.iter().copied().min().unwrap_or(i64::MAX);
        // Stable and quick on rows that come in long sorted runs.
        pending.sort_by_key(|r| r.time);
        let ready = pending.partition_point(|r| r.time < safe);
        if ready >= BLOCK || (ready > 0 && safe == i64::MAX) {
            out.emit(&pending[..ready]);
            pending.drain(..ready);
        }
    }
    out.emit(&pending);
    out
}

impl Written {
    fn emit(&mut self, rows: &[Row]) {
        match if rows.is_empty() { Ok(()) } else { self.sink.rows(rows) } {
            Ok(()) => self.written += rows.len() as u64,
            Err(e) => {
                self.dropped += rows.len() as u64;
                self.failure = Some(e);
            }
        }
    }
}

impl Log {
    /// Waits for the writer, given the rows the loggers dropped and when the run started (ns since
    /// 1970). Returns rows written and dropped, and why there is no log, as a run outlives its log.
    pub fn finish(self, lost: u64, started_unix_ns: i64) -> ((u64, u64), Option<Error>) {
        let Ok(out) = self.writer.join() else {
            return ((0, lost), Some(Error::Thread("loadstone-log".into())));
        };
        let Written { sink, written, dropped, failure } = out;
        match failure.map_or_else(|| sink.finish(lost + dropped, started_unix_ns), Err) {
            Ok(()) => ((written, lost + dropped), None),
            Err(e) => ((0, lost + written + dropped), Some(e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    struct Keep(Arc<Mutex<Vec<Row>>>);
    impl Sink for Keep {
        fn rows(&mut self, rows: &[Row]) -> Result<()> {
            self.0.lock().unwrap().extend_from_slice(rows);
            Ok(())
        }
        fn finish(self: Box<Self>, _: u64, _: i64) -> Result<()> {
            Ok(())
        }
    }

    fn row(time: i64, latency: i64) -> Row {
        let (intended, result, offset, size) = (time, 1, 0, 1);
        Row { time, intended, latency, result, offset, size, flags: 0, actor: 0, target: 0, op: 0 }
    }

    #[test]
    fn rows_of_several_threads_come_out_in_order_of_issue() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (log, loggers) = start(Box::new(Keep(kept.clone())), 3).unwrap();
        let threads: Vec<_> = loggers
            .into_iter()
            .enumerate()
            .map(|(k, mut logger)| {
                std::thread::spawn(move || {
                    if k == 2 {
                        logger.outstanding_since(-60);
                    }
                    for i in 0..20_000i64 {
                        // Every 100th request of thread 2 was issued long before it completed.
                        let late = if k == 2 && i % 100 == 99 { 50 } else { 0 };
                        logger.push(row(i * 3 + k as i64 - late, 1 + late));
                        if k == 2 {
                            logger.outstanding_since(i * 3 + k as i64 - 60);
                        }
                    }
                    logger.finish()
                })
            })
            .collect();
        let lost: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
        let ((written, dropped), failure) = log.finish(lost, 0);
        assert!(failure.is_none());
        assert_eq!(written + dropped, 60_000);
        let kept = kept.lock().unwrap();
        assert_eq!(kept.len() as u64, written);
        assert!(kept.is_sorted_by_key(|r| r.time));
    }

    struct Full;
    impl Sink for Full {
        fn rows(&mut self, _: &[Row]) -> Result<()> {
            Err(Error::Thread("full".into()))
        }
        fn finish(self: Box<Self>, _: u64, _: i64) -> Result<()> {
            panic!("a log that failed is not finished")
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_tells_so_and_counts_its_rows_as_dropped() {
        let (log, mut loggers) = start(Box::new(Full), 1).unwrap();
        let mut logger = loggers.remove(0);
        for i in 0..10_000 {
            logger.push(row(i, 1));
        }
        let (counts, failure) = log.finish(logger.finish(), 0);
        assert_eq!(counts, (0, 10_000));
        assert!(failure.unwrap().to_string().contains("full"));
    }
}
