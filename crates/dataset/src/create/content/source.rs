//! Chunks for new and modified files: fresh ones, and those that other files have or had.

use crate::Result;
use crate::chunks::{Chunks, Ratio};
use crate::create::content::populate::LEAST;
use crate::create::content::shared::{Place, Shared};
use crate::create::draw::{CellDraw, Draw};
use crate::profile::{Again, Sizes, Step, class};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Chunks that are passed over, at most, in search of one that can be where it is wanted.
const LOOK: usize = 64;

/// Chunks, each to be used once for every time it is there, in order. Those that can only end a file are apart, so that they
/// are in nobody's way.
#[derive(Default)]
pub(crate) struct ChunkQueue {
    any: VecDeque<(u32, u32)>,
    ends: VecDeque<(u32, u32)>,
    length: u32,
}

impl ChunkQueue {
    pub fn push(&mut self, chunk: u32, ends: bool) {
        let line = if ends { &mut self.ends } else { &mut self.any };
        line.push_back((self.length, chunk));
        self.length += 1;
    }

    /// The first that can be there.
    fn take(&mut self, place: Place) -> Option<u32> {
        let first = |line: &VecDeque<(u32, u32)>| line.front().map_or(u32::MAX, |(at, _)| *at);
        let end = place != Place::Inner && first(&self.ends) < first(&self.any);
        let found = if end { self.ends.pop_front() } else { self.any.pop_front() };
        found.map(|(_, chunk)| chunk)
    }
}

/// Chunks of the snapshot before, by how often they were in it: once, twice, more often.
pub(crate) struct Pools {
    /// Those that no file kept, each to be used once.
    pub gone: [ChunkQueue; 3],
    /// Those that some file kept, in the order of the files.
    pub stay: [Vec<u32>; 3],
    at: [usize; 3],
}

impl Pools {
    pub fn new() -> Pools {
        Pools { gone: Default::default(), stay: Default::default(), at: [0; 3] }
    }

    /// Moves on to another file's chunks, so that runs of duplicates are those of files.
    pub fn jump(&mut self, draw: &mut Draw) {
        for (at, stay) in self.at.iter_mut().zip(&self.stay) {
            *at = draw.below(stay.len());
        }
    }
}

/// Places that chunks for one are taken from, in this order.
fn places(place: Place) -> [Place; 4] {
    [place, Place::Inner, Place::Last, Place::Only]
}

/// Chunks by the class of their size.
fn by_class(sizes: &Sizes) -> FxHashMap<u32, CellDraw> {
    let mut cells: FxHashMap<u32, Vec<_>> = FxHashMap::default();
    for (size, ratio, count) in &sizes.cells {
        cells.entry(class(u64::from(Sizes::range(*size).0))).or_default().push((*size, *ratio, 1, *count));
    }
    cells.into_iter().map(|(class, cells)| (class, CellDraw::new(cells.into_iter()))).collect()
}

/// All that chunks of one generation come from.
pub(crate) struct ChunkSource<'a> {
    /// By kind, of which none is the first, and by place: chunks that are there once.
    once: Vec<(u8, [CellDraw; 3])>,
    /// By place: chunks that are there twice, and more often.
    again: [[CellDraw; 2]; 3],
    /// Which of the kinds the file has that is made.
    at: usize,
    /// Fresh chunks that are there more than once.
    shared: Shared,
    /// How often those are there that are there more than twice, to be drawn one by one.
    times: Vec<u32>,
    step: &'a Step,
    pub pools: Pools,
    /// Smallest chunk that another one can follow, and largest.
    sizes: (u32, u32),
    /// Size and ratio of the next chunk that is to be there once, where something tells them.
    pub like: Option<(u32, Ratio)>,
    /// The same where there is nothing to draw from.
    pub near: Option<(u32, Ratio)>,
    /// Class of the size of a chunk that is alone in its file; 0 where that is not told.
    pub class: u32,
    /// Chunks that are alone in their files and there once, by class.
    alone: FxHashMap<u32, CellDraw>,
}

impl<'a> ChunkSource<'a> {
    pub fn new(step: &'a Step, factor: f64, sizes: (u32, u32), pools: Pools) -> ChunkSource<'a> {
        let cells = |sizes: &Sizes| {
            CellDraw::new(sizes.cells.iter().map(|(size, ratio, count)| (*size, *ratio, 1, *count)))
        };
        let kinds =
            step.kinds.iter().map(|one| (one.kind, [&Sizes::default(), &one.inner, &one.last].map(cells)));
        let Again { only, inner, last } = &step.shared;
        let again = [only, inner, last].map(|shared| {
            [|times| times == 2, |times| times > 2].map(|wanted: fn(u32) -> bool| {
                let cells = shared.iter().filter(|(times, ..)| wanted(*times));
                CellDraw::new(cells.map(|(times, size, ratio, count)| (*size, *ratio, *times, *count)))
            })
        });
        ChunkSource {
            once: [(0, [&step.only, &step.inner, &step.last].map(cells))].into_iter().chain(kinds).collect(),
            again,
            at: 0,
            shared: Shared::new(step, factor),
            times: Vec::new(),
            step,
            pools,
            sizes,
            like: None,
            near: None,
            class: 0,
            alone: by_class(&step.only),
        }
    }

    /// Goes on to another file: of what kind its fresh chunks are.
    pub fn begin(&mut self, kind: u8, draw: &mut Draw) {
        self.pools.jump(draw);
        self.at = self.once.binary_search_by_key(&kind, |one| one.0).unwrap_or_else(|at| at - 1);
        self.shared.begin();
    }

    /// A chunk that was not in the snapshot before and is to be there once.
    pub fn once(&mut self, chunks: &mut Chunks, place: Place, draw: &mut Draw) -> Result<u32> {
        if let Some((size, ratio)) = self.like.take() {
            return chunks.push(size.clamp(self.least(place), self.sizes.1), ratio);
        }
        let (size, ratio, _) = self.draw(place, draw);
        chunks.push(size, ratio)
    }

    /// By how much places of changed files become longer; nothing where that is not told.
    pub fn growth(&self) -> Option<[f64; 2]> {
        self.step.growth
    }

    /// One that is to be there twice, or more often: what another file has, or else a new one.
    pub fn again(&mut self, chunks: &mut Chunks, often: bool, place: Place, draw: &mut Draw) -> Result<u32> {
        let least = self.least(place);
        let fits = |chunk| chunks.size(chunk) >= least;
        if let Some(chunk) = self.shared.take(often, place, &fits) {
            return Ok(chunk);
        }
        let limits = (least, self.sizes.1);
        let mut cells = places(place).map(|at| (at as usize, usize::from(often))).into_iter();
        let drawn = cells.find_map(|(at, cell)| self.again[at][cell].draw(limits, draw));
        let (size, ratio, told) = drawn.unwrap_or_else(|| self.draw(place, draw));
        let chunk = chunks.push(size, ratio)?;
        let all = match often {
            false => 2,
            true if told > 2 => told,
            true => self.draw_times(draw),
        };
        self.shared.made(often, chunk, all - 1, place);
        Ok(chunk)
    }

    /// Size and ratio of a chunk that is to be there once at such a place.
    fn draw(&mut self, place: Place, draw: &mut Draw) -> (u32, Ratio, u32) {
        let limits = (self.least(place), self.sizes.1);
        // Chunks that are alone are of no kind.
        let at = if place == Place::Only { 0 } else { self.at };
        if place == Place::Only
            && let Some(drawn) = self.alone.get_mut(&self.class).and_then(|cell| cell.draw(limits, draw))
        {
            return drawn;
        }
        if let Some(drawn) = self.once[at].1[place as usize].draw(limits, draw) {
            return drawn;
        }
        // At another place before those of another kind, and of the kinds the nearest one that has any.
        let mut kinds: Vec<usize> = (0..self.once.len()).collect();
        kinds.sort_by_key(|other| other.abs_diff(at));
        let cells = kinds.into_iter().flat_map(|kind| places(place).map(|place| (kind, place as usize)));
        let mut drawn = cells.filter_map(|(kind, at)| self.once[kind].1[at].draw(limits, draw));
        // Where nothing is told all that came took the place of something.
        let (size, ratio) = self.near.unwrap_or((8192, Ratio::UNKNOWN));
        drawn.next().unwrap_or((size.clamp(limits.0, limits.1), ratio, 1))
    }

    /// Bytes of a chunk at a place, at least.
    fn least(&self, place: Place) -> u32 {
        if place == Place::Inner { self.sizes.0 } else { LEAST }
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
        let least = self.least(place);
        if moved && let Some(chunk) = self.pools.gone[class].take(place) {
            return Ok(chunk);
        }
        // The nearest class that has any.
        for class in [class, class ^ 1, 2 - class.min(2), 0, 1, 2] {
            let (stay, at) = (&self.pools.stay[class.min(2)], &mut self.pools.at[class.min(2)]);
            for _ in 0..LOOK.min(stay.len()) {
                let chunk = stay[*at % stay.len()];
                *at = (*at + 1) % stay.len();
                if chunks.size(chunk) >= least {
                    return Ok(chunk);
                }
            }
        }
        self.once(chunks, place, draw)
    }
}
