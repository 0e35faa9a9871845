//! Chunks for new and modified files: fresh ones, and those that other files have or had.

use super::draw::{Deck, Draw};
use super::populate::LEAST;
use super::shared::Shared;
use crate::Result;
use crate::chunks::Chunks;
use crate::profile::Step;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// Chunks that are passed over, at most, in search of one that can be where it is wanted.
const LOOK: usize = 64;

/// Where in its file a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Only,
    Inner,
    Last,
}

/// How often a fresh chunk is to be in the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    Once,
    Twice,
    Often,
}

/// Chunks, each to be used once for every time it is there, in order. Those that can only end a file are apart, so that they
/// are in nobody's way.
#[derive(Default)]
pub(super) struct Line {
    any: VecDeque<(u32, u32)>,
    ends: VecDeque<(u32, u32)>,
    length: u32,
}

impl Line {
    pub fn push(&mut self, chunk: u32, ends: bool) {
        let line = if ends { &mut self.ends } else { &mut self.any };
        line.push_back((self.length, chunk));
        self.length += 1;
    }

    /// The first that can be there and is not among those that are used.
    fn take(&mut self, place: Place, used: &FxHashSet<u32>) -> Option<u32> {
        for line in [&mut self.any, &mut self.ends] {
            while line.front().is_some_and(|(_, chunk)| used.contains(chunk)) {
                line.pop_front();
            }
        }
        let first = |line: &VecDeque<(u32, u32)>| line.front().map_or(u32::MAX, |(at, _)| *at);
        let end = place != Place::Inner && first(&self.ends) < first(&self.any);
        let found = if end { self.ends.pop_front() } else { self.any.pop_front() };
        found.map(|(_, chunk)| chunk)
    }
}

/// Chunks of the snapshot before, by how often they were in it: once, twice, more often.
pub(super) struct Pools {
    /// Those that no file kept, each to be used once.
    pub gone: [Line; 3],
    /// Those that some file kept and that are to be there more often, once for each time.
    pub due: [Line; 3],
    /// Those that some file kept, in the order of the files.
    pub stay: [Vec<u32>; 3],
    /// Those that went with files that were moved as a whole.
    pub used: FxHashSet<u32>,
    at: [usize; 3],
}

impl Pools {
    pub fn new() -> Pools {
        Pools {
            gone: Default::default(),
            due: Default::default(),
            stay: Default::default(),
            used: FxHashSet::default(),
            at: [0; 3],
        }
    }

    /// Moves on to another file's chunks, so that runs of duplicates are those of files.
    pub fn jump(&mut self, draw: &mut Draw) {
        for (at, stay) in self.at.iter_mut().zip(&self.stay) {
            *at = draw.below(stay.len());
        }
    }
}

/// All that chunks of one generation come from.
pub(super) struct Supply<'a> {
    only: Deck<'a>,
    inner: Deck<'a>,
    last: Deck<'a>,
    /// Fresh chunks that are there more than once.
    shared: Shared,
    /// How often those are there that are there more than twice, to be drawn one by one.
    times: Vec<u32>,
    step: &'a Step,
    pub pools: Pools,
    /// Smallest chunk that another one can follow.
    least: u32,
}

impl<'a> Supply<'a> {
    pub fn new(step: &'a Step, factor: f64, (least, most): (u32, u32), pools: Pools) -> Supply<'a> {
        Supply {
            only: Deck::new(&step.only, LEAST, most),
            inner: Deck::new(&step.inner, least, most),
            last: Deck::new(&step.last, LEAST, most),
            shared: Shared::new(step, factor),
            times: Vec::new(),
            step,
            pools,
            least,
        }
    }

    /// Goes on to another file: how many of its chunks are fresh and there twice, how many more often, and of these in
    /// itself before. Tells whether those that are there twice are those of a copy.
    pub fn begin(&mut self, times: (u32, u32), own: (u32, u32), draw: &mut Draw) -> bool {
        self.pools.jump(draw);
        self.shared.begin(times, own)
    }

    /// A chunk that was not in the snapshot before.
    pub fn fresh(&mut self, chunks: &mut Chunks, times: Times, place: Place, draw: &mut Draw) -> Result<u32> {
        let fits = |chunk: u32, chunks: &Chunks| place != Place::Inner || chunks.size(chunk) >= self.least;
        if times != Times::Once
            && let Some(chunk) = self.shared.take(times == Times::Often, place, &|chunk| fits(chunk, chunks))
        {
            return Ok(chunk);
        }
        let deck = match place {
            Place::Only => &mut self.only,
            Place::Inner => &mut self.inner,
            Place::Last => &mut self.last,
        };
        let (size, ratio) = deck.draw(draw);
        let chunk = chunks.push(size, ratio)?;
        match times {
            Times::Once => {}
            Times::Twice => self.shared.made(false, chunk, 1, place),
            Times::Often => {
                let left = self.draw_times(draw) - 1;
                self.shared.made(true, chunk, left, place);
            }
        }
        Ok(chunk)
    }

    fn draw_times(&mut self, draw: &mut Draw) -> u32 {
        if self.times.is_empty() {
            // Of very many a part stands for all.
            let all: u64 = self.step.often.iter().map(|(_, count)| u64::from(*count)).sum();
            let share = (1e6 / all.max(1) as f64).min(1.0);
            for (times, count) in &self.step.often {
                self.times.extend(std::iter::repeat_n(*times, draw.scaled(*count, share) as usize));
            }
            draw.shuffle(&mut self.times);
        }
        self.times.pop().unwrap_or(3)
    }

    /// A chunk that was in the snapshot before: once (0), twice (1), or more often (2); a fresh one where there is none.
    pub fn repeated(
        &mut self,
        chunks: &mut Chunks,
        class: usize,
        moved: bool,
        place: Place,
        draw: &mut Draw,
    ) -> Result<u32> {
        let fits = |chunk: u32| place != Place::Inner || chunks.size(chunk) >= self.least;
        let line = if moved { &mut self.pools.gone[class] } else { &mut self.pools.due[class] };
        if let Some(chunk) = line.take(place, &self.pools.used) {
            return Ok(chunk);
        }
        // The nearest class that has any.
        for class in [class, class ^ 1, 2 - class.min(2), 0, 1, 2] {
            let (stay, at) = (&self.pools.stay[class.min(2)], &mut self.pools.at[class.min(2)]);
            for _ in 0..LOOK.min(stay.len()) {
                let chunk = stay[*at % stay.len()];
                *at = (*at + 1) % stay.len();
                if fits(chunk) {
                    return Ok(chunk);
                }
            }
        }
        self.fresh(chunks, Times::Once, place, draw)
    }
}
