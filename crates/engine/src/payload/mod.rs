//! What written blocks are made of: random data with a stamp, content of a stated dedupe ratio and compressibility, or
//! chunks of a dataset.
//!
//! Such content follows from three numbers: the file ([`of_target`], [`of_set`], [`of_object`]), the block, and the
//! generation, which is 0 for what was made before the run; a writer's run on from its number.

pub mod buffer;
pub mod dataset;

use crate::host::target::Open;
use crate::payload::dataset::{Chunks, Dataset, Lease};
use crate::{Error, Result};
use loadstone_content::seed::derive;
use loadstone_content::{Content, Wanted};
use loadstone_fstree::Piece;
use loadstone_plan::{Plan, Prepare};
use loadstone_verify::{Block, Checker, Verifier};
use std::sync::{Arc, Mutex};

/// Writers of a thread: each request in flight is one, and there is one more.
const PARTS: u64 = loadstone_plan::MAX_DEPTH as u64 + 1;

/// Requests in flight of a thread that have memory for strips: with more, the target is what takes the time.
const STRIPS: u64 = 64;

/// Bytes of the smallest block that a plan may ask for.
const SMALLEST: u32 = 4096;

/// Generation of what is there before the run.
pub const BEFORE: u64 = 0;

/// Number of a target's content.
pub fn of_target(target: usize) -> u64 {
    target as u64
}

/// Number of the content of a set's file, or while a run is verified of the content that number `file` of it got.
pub fn of_set(set: usize, file: u64) -> u64 {
    1 << 62 | (set as u64) << 40 | file
}

/// Number of the content of a tree's object.
pub fn of_object(object: u32) -> u64 {
    1 << 63 | u64::from(object)
}

/// The content that a plan asks for, and what came of it.
pub struct Made {
    /// Makes it.
    pub content: Content,
    /// Blocks that it was made for.
    pub blocks: u64,
    asked: loadstone_plan::Content,
    written: Mutex<Cuts>,
}

/// Writes, and how they lie to blocks.
#[derive(Debug, Default, Clone, Copy)]
struct Cuts {
    writes: u64,
    /// Of these, those that began or ended inside of a block.
    cut: u64,
    bytes: u64,
    /// Of these, those in blocks that were written whole.
    whole: u64,
}

impl Made {
    /// Why what was written is not quite as asked for, if it is not.
    pub fn note(&self) -> Option<String> {
        let Cuts { writes, cut, bytes, whole } = *self.written.lock().unwrap_or_else(|e| e.into_inner());
        let counts = self.asked.compress > 1.0 || self.asked.dedupe > 1.0;
        let smaller = if self.asked.unit > SMALLEST { " or a smaller dedupe unit" } else { "" };
        (counts && cut > 0).then(|| {
            format!(
                "{cut} of {writes} writes began or ended inside of blocks of {} bytes: {:.0} % of what was written lies in \
                 whole blocks, and only these are as alike and compressible as asked; aligned requests{smaller} would \
                 raise that share",
                self.asked.unit,
                100.0 * whole as f64 / bytes as f64
            )
        })
    }
}

/// What a plan asks of all that is written.
#[derive(Clone, Default)]
pub enum PayloadPlan {
    /// Random data with a stamp.
    #[default]
    Stamp,
    /// Content of a stated dedupe ratio and compressibility.
    Content(Arc<Made>),
    /// Chunks of a dataset.
    Dataset(Arc<Dataset>),
    /// What can be told from any other, of a stated content if there is one.
    Verified(Arc<Verifier>, Option<Arc<Made>>),
}

impl PayloadPlan {
    /// Of what a plan asks for; a dataset is never verified.
    pub fn new(
        made: Option<Arc<Made>>,
        dataset: Option<Arc<Dataset>>,
        verifier: Option<Arc<Verifier>>,
    ) -> PayloadPlan {
        match (verifier, made, dataset) {
            (Some(verifier), made, _) => PayloadPlan::Verified(verifier, made),
            (None, Some(made), _) => PayloadPlan::Content(made),
            (None, None, Some(dataset)) => PayloadPlan::Dataset(dataset),
            (None, None, None) => PayloadPlan::Stamp,
        }
    }

    /// The stated content.
    pub fn content(&self) -> Option<&Arc<Made>> {
        match self {
            PayloadPlan::Content(made) => Some(made),
            PayloadPlan::Verified(_, made) => made.as_ref(),
            PayloadPlan::Stamp | PayloadPlan::Dataset(_) => None,
        }
    }

    /// What verifies.
    pub fn verifier(&self) -> Option<&Arc<Verifier>> {
        match self {
            PayloadPlan::Verified(verifier, _) => Some(verifier),
            _ => None,
        }
    }

    /// Makes what is in a file before a run, from byte `at` on, where the plan asks for anything.
    pub fn before(&self, file: u64, at: u64, bytes: &mut [u8], scratch: &mut Vec<u8>) -> bool {
        match self {
            PayloadPlan::Verified(verifier, _) => {
                let unit = verifier.blocks.unit() as u64;
                let (mut block, mut inside, mut rest) = (at / unit, (at % unit) as usize, bytes);
                while !rest.is_empty() {
                    let (piece, after) = rest.split_at_mut((unit as usize - inside).min(rest.len()));
                    verifier.blocks.fill(Block { file, block }, BEFORE as u32, inside, piece, scratch);
                    (block, inside, rest) = (block + 1, 0, after);
                }
            }
            PayloadPlan::Content(made) => before(&made.content, file, at, bytes, scratch),
            PayloadPlan::Dataset(dataset) => dataset.before(file, at, bytes, &mut Piece::default()),
            PayloadPlan::Stamp => return false,
        }
        true
    }
}

/// What one thread, or one of its requests in flight, writes.
#[derive(Clone)]
pub struct Payload {
    /// What random data is drawn from.
    pub seed: u64,
    plan: PayloadPlan,
    writer: u64,
    lease: Arc<Mutex<Lease>>,
}

impl Payload {
    /// Of the thread number `thread` of a run.
    pub fn new(seed: u64, plan: PayloadPlan, thread: usize) -> Payload {
        Payload { seed, plan, writer: thread as u64 * PARTS, lease: Arc::default() }
    }

    /// That of request number `part` in flight, from 0.
    pub fn part(&self, part: usize) -> Payload {
        Payload {
            seed: derive(self.seed, "part", part as u64),
            plan: self.plan.clone(),
            writer: self.writer + 1 + part as u64,
            lease: self.lease.clone(),
        }
    }

    /// Whether verified writes may be made in a strip.
    pub fn strips(&self) -> bool {
        self.plan.verifier().is_some() && self.writer % PARTS <= STRIPS
    }

    /// Whether the bytes of every write are made for it, from first to last.
    pub fn makes(&self) -> bool {
        !matches!(self.plan, PayloadPlan::Stamp)
    }

    /// What makes the bytes of writes, where the plan asks for any.
    pub fn generator(&self) -> Generator {
        match &self.plan {
            PayloadPlan::Verified(verifier, made) => {
                let counter = made.as_ref().map(|made| Counter::new(made.clone()));
                Generator::Verified(Box::new(Checker::new(verifier.clone())), counter)
            }
            PayloadPlan::Content(made) => {
                Generator::Content(Box::new(Contents::new(made.clone(), self.writer << 32)))
            }
            PayloadPlan::Dataset(dataset) => {
                Generator::Chunks(Box::new(Chunks::new(dataset.clone(), self.lease.clone())))
            }
            PayloadPlan::Stamp => Generator::Stamp,
        }
    }
}

/// Makes the bytes of one write after the other.
pub enum Generator {
    /// Random data with a stamp.
    Stamp,
    /// Of a stated dedupe ratio and compressibility.
    Content(Box<Contents>),
    /// Chunks of a dataset.
    Chunks(Box<Chunks>),
    /// What can be told from any other; where it has content, too, its writes are counted.
    Verified(Box<Checker>, Option<Counter>),
}

/// Makes the content of one write after the other.
pub struct Contents {
    /// That of the last write: the writer's number and how many it has written.
    generation: u64,
    counter: Counter,
    scratch: Vec<u8>,
}

impl Contents {
    fn new(made: Arc<Made>, generation: u64) -> Contents {
        Contents { generation, counter: Counter::new(made), scratch: Vec::new() }
    }

    /// Content of the next write, which goes to byte `at` of `file`.
    pub fn make(&mut self, file: u64, at: u64, bytes: &mut [u8]) {
        self.generation += 1;
        self.counter.count(at, bytes.len() as u64);
        self.counter.made.content.fill(file, self.generation, at, bytes, &mut self.scratch);
    }
}

/// Counts the writes of one writer, and adds them to the others' at its end.
pub struct Counter {
    made: Arc<Made>,
    cuts: Cuts,
}

impl Counter {
    fn new(made: Arc<Made>) -> Counter {
        Counter { made, cuts: Cuts::default() }
    }

    /// Takes note of a write of `size` bytes to byte `at` of a file.
    pub fn count(&mut self, at: u64, size: u64) {
        let unit = self.made.content.unit() as u64;
        let whole = ((at + size) / unit).saturating_sub(at.div_ceil(unit)) * unit;
        self.cuts.writes += 1;
        self.cuts.cut += u64::from(whole < size);
        self.cuts.bytes += size;
        self.cuts.whole += whole;
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let mut all = self.made.written.lock().unwrap_or_else(|e| e.into_inner());
        all.writes += self.cuts.writes;
        all.cut += self.cuts.cut;
        all.bytes += self.cuts.bytes;
        all.whole += self.cuts.whole;
    }
}

/// What is made before a run, as a file's bytes from `at` on.
pub fn before(content: &Content, file: u64, at: u64, bytes: &mut [u8], scratch: &mut Vec<u8>) {
    content.fill(file, BEFORE, at, bytes, scratch);
}

/// The content that a plan asks for; `others` tells how many blocks of a unit trees and sets have besides targets.
///
/// # Errors
/// When there is too little data for the ratio.
pub fn of_plan(plan: &Plan, targets: &[Open], others: impl Fn(u64) -> u64) -> Result<Option<Arc<Made>>> {
    let Some(asked) = plan.content.clone().filter(|asked| asked.dataset.is_none()) else { return Ok(None) };
    let wanted = Wanted { dedupe: asked.dedupe, compress: asked.compress, unit: asked.unit as usize };
    let written = |target: &&Open| target.writable || target.prepare == Prepare::Fill;
    let unit = u64::from(asked.unit);
    let own = targets.iter().filter(written).map(|target| target.size.div_ceil(unit));
    let blocks = own.fold(others(unit), u64::saturating_add);
    let content = Content::new(plan.seed, &wanted, blocks).map_err(|e| Error::Content(e.to_string()))?;
    Ok(Some(Arc::new(Made { content, blocks, asked, written: Mutex::default() })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::buffer::Pair;
    use loadstone_verify::Blocks;
    use std::collections::HashSet;

    fn made() -> Arc<Made> {
        let plan =
            r#"{"version": 1, "targets": [], "workers": [], "steps": [], "content": {"compress": 1.5}}"#;
        of_plan(&serde_json::from_str(plan).unwrap(), &[], |_| 1 << 18).unwrap().unwrap()
    }

    fn payload_plan(made: &Arc<Made>) -> PayloadPlan {
        PayloadPlan::Content(made.clone())
    }

    #[test]
    fn no_two_writers_write_the_same() {
        let (made, mut seen) = (made(), HashSet::new());
        let mut bytes = vec![0; 4096];
        before(&made.content, 0, 0, &mut bytes, &mut Vec::new());
        assert!(seen.insert(bytes.clone()));
        for thread in [0, 1, 4095, 4096, 1 << 20] {
            let own = Payload::new(0, payload_plan(&made), thread);
            for writer in [own.clone(), own.part(0), own.part(1), own.part(4095)] {
                let Generator::Content(mut maker) = writer.generator() else { panic!("no content") };
                for _ in 0..3 {
                    maker.make(0, 0, &mut bytes);
                    assert!(seen.insert(bytes.clone()), "thread {thread}");
                }
            }
        }
    }

    #[test]
    fn files_have_numbers_of_their_own() {
        let of = [
            of_target(0),
            of_target(1),
            of_set(0, 0),
            of_set(1, 0),
            of_set(0, 1),
            of_object(0),
            of_object(1),
        ];
        assert_eq!(HashSet::from(of).len(), of.len());
    }

    #[test]
    fn writes_that_cut_blocks_are_told() {
        let made = made();
        let Generator::Content(mut maker) = Payload::new(0, payload_plan(&made), 0).generator() else {
            panic!("no content")
        };
        maker.make(0, 8192, &mut [0; 8192]);
        maker.make(0, 4096, &mut [0; 100]);
        assert_eq!(made.note(), None);
        drop(maker);
        let note = made.note().unwrap();
        assert!(note.starts_with("1 of 2 writes"), "{note}");
        assert!(note.contains("99 % of what was written lies in whole blocks"), "{note}");
        // No block is smaller than these.
        assert!(note.ends_with("; aligned requests would raise that share"), "{note}");
    }

    #[test]
    fn only_what_covers_a_block_is_whole() {
        let made = made();
        let mut counter = Counter::new(made);
        for (at, size, cut, whole) in [
            (0, 4096, 0, 4096),
            (100, 4096, 1, 0),
            (4000, 8288, 1, 8192),
            (8192, 4196, 1, 4096),
            (10, 20, 1, 0),
        ] {
            counter.cuts = Cuts::default();
            counter.count(at, size);
            assert_eq!((counter.cuts.cut, counter.cuts.whole), (cut, whole), "{at} {size}");
        }
    }

    #[test]
    fn verified_writes_are_counted_too() {
        let (made, blocks) = (made(), Blocks::marked(1, 4096));
        let verifier = Some(Arc::new(Verifier::new(blocks, Vec::new())));
        let payload = Payload::new(0, PayloadPlan::new(Some(made.clone()), None, verifier), 0);
        let mut pair = Pair::new(&payload);
        pair.for_write(4096, 0, 0);
        pair.for_write(100, 0, 4096);
        drop(pair);
        assert!(made.note().unwrap().starts_with("1 of 2 writes"));
    }

    #[test]
    fn nothing_is_made_where_nothing_is_asked_for() {
        assert!(matches!(Payload::new(3, PayloadPlan::default(), 1).part(2).generator(), Generator::Stamp));
    }
}
