//! Makes a change of a tree: files go, stay, are modified and come (Tarasov, section 4.5.2).

use super::Generation;
use super::change::alignment::{align, places};
use super::change::growth::Lengths;
use super::change::layout::Piece;
use super::change::runs::Runs;
use super::change::{Change, GONE, KEPT, Newcomers};
use super::content::fresh::Fresh;
use super::content::law::Laws;
use super::content::populate::{Cut, LEAST, Populate};
use super::content::shared::Place;
use super::content::source::{ChunkSource, Pools};
use super::draw::Draw;
use super::pace::Pace;
use super::place::arrive::{Arrivals, Left};
use super::place::directories::{NewNames, come_again};
use crate::Result;
use crate::chunks::{Chunks, Ratio};
use crate::names::{Interner, Names};
use crate::profile::{Changed, New, Step, sizes_of_class};
use crate::tree::{Chunking, Entry, Kind, Mark, Meta, Series, State, Stays, Tree};
use loadstone_content::Cutter;

/// What makes series, and the one that is made.
pub(super) struct Maker<'a> {
    pub series: Series,
    pub names: NewNames,
    /// Smallest chunk that another can follow, and largest.
    pub sizes: (u32, u32),
    pub pace: Pace<'a>,
}

/// A file that is made or changed.
#[derive(Default)]
struct Drawn {
    chunks: Vec<u32>,
    kinds: Vec<Slot>,
    fresh: Fresh,
}

/// What goes where in a file.
#[derive(Clone, Copy)]
enum Slot {
    /// A chunk that the file did not have and no file had.
    Fresh,
    /// One that was there so often (0: once, 1: twice, 2: more), and whether it was moved.
    Repeated(usize, bool),
}

impl<'w> Maker<'w> {
    pub fn new(meta: Meta, pace: Pace<'w>) -> Maker<'w> {
        let sizes = match meta.chunking {
            Chunking::Fixed { size } => (size, size),
            Chunking::Fastcdc { min, average, max } => {
                let cutter = Cutter { min: min as usize, average: average as usize, max: max as usize };
                (cutter.least_inner() as u32, max)
            }
        };
        let series = Series { meta, chunks: Chunks::new(0), names: Names::new(), trees: Vec::new() };
        Maker { series, names: NewNames::default(), sizes, pace }
    }

    /// Takes over a series. Fingerprints are left out, as new chunks have none; new names are none of those there are.
    pub fn go_on(&mut self, series: Series) {
        self.series = series;
        (self.series.chunks.prints, self.series.chunks.width) = (Vec::new(), 0);
        self.names.0 = super::place::arrive::last_name(&self.series);
    }

    /// Numbers of extensions.
    pub fn extensions<'a>(&mut self, all: impl Iterator<Item = &'a String>) -> Vec<u16> {
        let names = &mut self.series.names;
        let mut interner = Interner::new(names);
        all.map(|extension| interner.known(names, extension.as_bytes().to_vec())).collect()
    }

    /// What draws about so many files by laws.
    pub fn populate<'a>(&mut self, laws: &'a Laws, files: u64, draw: &mut Draw) -> Populate<'a> {
        let numbers = self.extensions(laws.extensions.iter().map(|one| &one.0));
        let cut = Cut::new(self.series.meta.chunking, self.sizes);
        Populate::new(laws, (numbers, cut), files, draw)
    }

    /// Changes a tree. `counts`: how often each chunk is in it; `pools` have its chunks.
    pub fn apply(
        &mut self,
        change: Change<'_, '_>,
        before: &Tree,
        (counts, pools): (&[u32], Pools),
        left: &mut Vec<Left>,
        draw: &mut Draw,
    ) -> Result<(Tree, Generation)> {
        let (step, known) = (change.step, self.series.chunks.len());
        let mut source = ChunkSource::new(step, change.factor, self.sizes, pools);
        let mut tree = self.names.directories(before, change.whole.then_some((step, change.factor)), draw);
        let (mut layouts, mut drawn) = (change.layouts.iter(), Drawn::default());
        self.pace.begin(change.fates.len() as u64 + change.newcomers.count(step, change.factor));
        let again = std::mem::take(left);
        let mut numbers = vec![KEPT; before.len()];
        for (file, fate) in crate::profile::regular(before).zip(&change.fates) {
            if !self.pace.step() {
                break;
            }
            let entry = before.file(file);
            let chunks = before.chunks_of(file);
            numbers[file as usize] = match *fate {
                KEPT => {
                    let mark = Mark::new(Kind::File, State::Unmodified);
                    let records: Vec<_> = before.private_of(file).collect();
                    tree.add_file(&Entry { mark, private: &records, ..entry }, chunks)?
                }
                GONE => {
                    left.push(Left { dir: entry.dir, name: entry.name, extension: entry.extension });
                    KEPT
                }
                row => {
                    let pieces = layouts.next().map_or(&[][..], Vec::as_slice);
                    let row = change.changes[row as usize];
                    self.change(row, chunks, pieces, counts, (&mut source, &mut drawn), draw)?;
                    let mark = Mark::new(Kind::File, State::Modified);
                    let size = self.bytes_of(&drawn.chunks);
                    tree.add_file(&Entry { mark, size, ..entry }, &drawn.chunks)?
                }
            };
        }
        let mut arrivals = Arrivals::new(&tree, again, change.again, draw);
        let new = match change.newcomers {
            Newcomers::Rows(extensions, runs) => {
                let place = (extensions, change.factor, runs);
                self.add_rows(step, place, (&mut arrivals, &mut tree), (&mut source, &mut drawn), draw)?
            }
            Newcomers::Laws(populate, count) => {
                self.add_drawn(populate, count, &mut arrivals, &mut tree, draw)?
            }
        };
        let wanted = change.whole.then_some((step, change.factor));
        self.names.add_links(before, &numbers, wanted, &mut tree, draw)?;
        let fresh = (self.series.chunks.len() - known) as u64;
        let again = arrivals.again;
        Ok((tree, Generation { new, again, fresh, ..Generation::default() }))
    }

    pub fn bytes_of(&self, chunks: &[u32]) -> u64 {
        chunks.iter().map(|chunk| u64::from(self.series.chunks.size(*chunk))).sum()
    }

    /// Chunks of a modified file, in `drawn`.
    fn change(
        &mut self,
        row: &Changed,
        old: &[u32],
        pieces: &[Piece],
        counts: &[u32],
        (source, drawn): (&mut ChunkSource<'_>, &mut Drawn),
        draw: &mut Draw,
    ) -> Result<()> {
        let mut kept = [0u32; 3];
        let (mut total, mut others) = (0, 0);
        for piece in pieces {
            match piece {
                Piece::Kept(from, count) => {
                    for chunk in &old[*from..from + count] {
                        kept[counts[*chunk as usize].clamp(1, 3) as usize - 1] += 1;
                    }
                    total += count;
                }
                Piece::Other(count) => (total, others) = (total + count, others + count),
            }
        }
        // Chunks of other files make up for what the descriptor has and the file did not keep.
        let fresh = (row.unique as usize + (row.kept as usize).saturating_sub(total - others)).min(others);
        source.begin(row.kind, draw);
        drawn.fresh = Fresh::of(fresh as u32, (row.twice, row.often));
        drawn.kinds.clear();
        drawn.kinds.extend(std::iter::repeat_n(Slot::Fresh, fresh));
        let mut dups = [row.dup1.saturating_sub(kept[0]), row.dup2.saturating_sub(kept[1]), u32::MAX];
        for _ in fresh..others {
            let class = dups.iter().position(|left| *left > 0).unwrap_or(2);
            dups[class] -= 1;
            drawn.kinds.push(Slot::Repeated(class, false));
        }
        drawn.chunks.clear();
        let mut kinds = std::mem::take(&mut drawn.kinds).into_iter();
        let places = places(pieces, row.in_place as usize, old.len());
        source.class = row.becomes;
        let mut lengths = Lengths::of(source.growth(), self.as_long(), row.becomes);
        let (mut at, mut from, mut first) = (0, 0, self.series.chunks.len() as u32);
        let (mut lacks, mut here) = (0, 0);
        for piece in pieces {
            match piece {
                Piece::Kept(start, count) if *count > 0 => {
                    let place = &places[at];
                    let (replaced, run) = (&old[place.gone.clone()], &drawn.chunks[from..]);
                    lacks = match place.stays {
                        true => align(&mut self.series.chunks, (run, first), (replaced, lacks), self.sizes),
                        false => self.bytes_of(replaced) as i64 + lacks - self.bytes_of(run) as i64,
                    };
                    drawn.chunks.extend_from_slice(&old[*start..start + count]);
                    (from, first) = (drawn.chunks.len(), self.series.chunks.len() as u32);
                    (at, here) = (at + 1, 0);
                }
                Piece::Kept(..) => {}
                Piece::Other(count) => {
                    let place = &places[at];
                    for slot in kinds.by_ref().take(*count) {
                        source.near =
                            old.get(place.gone.start).or(old.last()).map(|chunk| self.known(*chunk));
                        source.like = place.replaced(here).and_then(|was| {
                            let was = self.known(old[was]);
                            lengths.next(was, place.stays, at + 1 == places.len(), draw)
                        });
                        here += 1;
                        self.fill(slot, total, (source, drawn), draw)?;
                        source.like = None;
                    }
                }
            }
        }
        source.near = None;
        self.settle(drawn, source, draw)
    }

    /// Size and ratio of a chunk.
    fn known(&self, chunk: u32) -> (u32, Ratio) {
        (self.series.chunks.size(chunk), self.series.chunks.ratio(chunk))
    }

    /// Share of new chunks that are as long as what they took the place of; nothing where that is not told.
    fn as_long(&self) -> f64 {
        self.series.meta.stays.as_ref().map_or(0.0, Stays::replaced)
    }

    /// New files as a step has them, with their chunks.
    fn add_rows(
        &mut self,
        step: &Step,
        (extensions, factor, runs): (&[u16], f64, Option<Runs>),
        (arrivals, tree): (&mut Arrivals, &mut Tree),
        (source, drawn): (&mut ChunkSource<'_>, &mut Drawn),
        draw: &mut Draw,
    ) -> Result<u64> {
        let mut new = 0;
        for row in &step.new {
            let extension = extensions[row.file.extension as usize];
            let count = draw.scaled(row.count, factor);
            for _ in 0..count {
                if !self.pace.step() {
                    return Ok(new);
                }
                self.new_chunks(row, runs.as_ref(), source, drawn, draw)?;
                let size = self.bytes_of(&drawn.chunks);
                self.names.arrive(
                    arrivals,
                    (row.file.depth as usize, extension, size),
                    &drawn.chunks,
                    tree,
                    draw,
                )?;
                new += 1;
            }
        }
        Ok(new)
    }

    /// New files as laws have them.
    fn add_drawn(
        &mut self,
        populate: &mut Populate<'_>,
        count: u64,
        arrivals: &mut Arrivals,
        tree: &mut Tree,
        draw: &mut Draw,
    ) -> Result<u64> {
        let mut chunks = Vec::new();
        for _ in 0..count {
            if !self.pace.step() {
                break;
            }
            let size = populate.size(draw);
            let size = populate.chunks(size, &mut self.series.chunks, &mut chunks, draw)?;
            // A file that comes again has the place that it had, whatever the laws say.
            let old = arrivals.next();
            let place = (populate.depth(draw), populate.extension(draw), size);
            match old {
                Some(old) => come_again(&old, size, &chunks, tree)?,
                None => self.names.arrive(arrivals, place, &chunks, tree, draw)?,
            }
        }
        Ok(count)
    }

    fn new_chunks(
        &mut self,
        row: &New,
        runs: Option<&Runs>,
        source: &mut ChunkSource<'_>,
        drawn: &mut Drawn,
        draw: &mut Draw,
    ) -> Result<()> {
        let file = &row.file;
        let size = file.size as usize;
        drawn.kinds.clear();
        drawn.chunks.clear();
        let order = runs.and_then(|runs| runs.order(row, draw));
        source.begin(row.kind, draw);
        drawn.fresh = Fresh::of(file.unique, (row.twice, row.often));
        source.class = row.class;
        let known = self.series.chunks.len() as u32;
        drawn.kinds.extend(std::iter::repeat_n(Slot::Fresh, file.unique as usize));
        let rest = file.size - file.unique - file.dup1 - file.dup2;
        let mut moved = row.moved;
        for (class, count) in [file.dup1, file.dup2, rest].into_iter().enumerate() {
            let here = moved.min(count);
            moved -= here;
            let slots = (0..count).map(|i| Slot::Repeated(class, i < here));
            drawn.kinds.extend(slots);
        }
        if let Some(order) = order {
            let (mut new, mut other) = (0, file.unique as usize);
            let place = |unique: bool| {
                let at = if unique { &mut new } else { &mut other };
                *at += 1;
                drawn.kinds[*at - 1]
            };
            drawn.kinds = order.into_iter().map(place).collect();
        } else if draw.happens(0.5) {
            // Chunks of a kind follow each other; which comes first is drawn.
            drawn.kinds.rotate_left(file.unique as usize);
        }
        for slot in std::mem::take(&mut drawn.kinds) {
            self.fill(slot, size, (source, drawn), draw)?;
        }
        self.settle(drawn, source, draw)?;
        self.fit(&drawn.chunks, known, row.class);
        Ok(())
    }

    /// Makes the chunks of a file that are new from `known` on longer or shorter, so that the file has a size of a class.
    fn fit(&mut self, file: &[u32], known: u32, class: u32) {
        let bytes = self.bytes_of(file);
        let (least, most) = sizes_of_class(class);
        let wanted = if class == 0 { bytes } else { bytes.clamp(least, most) };
        if wanted == bytes || file.len() < 2 {
            return;
        }
        let times = wanted as f64 / bytes as f64;
        for (at, chunk) in file.iter().enumerate().filter(|(_, chunk)| **chunk >= known) {
            let size = self.series.chunks.size(*chunk);
            let least = if at + 1 < file.len() { self.sizes.0 } else { LEAST };
            let other = (f64::from(size) * times).ceil() as u32;
            self.series.chunks.resize(*chunk, other.clamp(least.min(size), self.sizes.1.max(size)));
        }
    }

    /// Adds a chunk to a file that has `size` of them in the end.
    fn fill(
        &mut self,
        slot: Slot,
        size: usize,
        (source, drawn): (&mut ChunkSource<'_>, &mut Drawn),
        draw: &mut Draw,
    ) -> Result<()> {
        let (chunks, place) = (&mut self.series.chunks, place(drawn.chunks.len(), size));
        drawn.chunks.push(match slot {
            Slot::Fresh => drawn.fresh.next(source, chunks, place, draw)?,
            Slot::Repeated(class, moved) => source.repeated(chunks, class, moved, place, draw)?,
        });
        Ok(())
    }

    /// Small chunks end files: where one that was kept is no longer the last it is replaced.
    fn settle(&mut self, drawn: &mut Drawn, source: &mut ChunkSource<'_>, draw: &mut Draw) -> Result<()> {
        let inner = drawn.chunks.len().saturating_sub(1);
        for i in 0..inner {
            if self.series.chunks.size(drawn.chunks[i]) < self.sizes.0 {
                if self.series.chunks.size(drawn.chunks[inner]) >= self.sizes.0 {
                    drawn.chunks.swap(i, inner);
                } else {
                    drawn.chunks[i] = source.once(&mut self.series.chunks, Place::Inner, draw)?;
                }
            }
        }
        Ok(())
    }
}

fn place(at: usize, of: usize) -> Place {
    match (at + 1 == of, of) {
        (_, 1) => Place::Only,
        (true, _) => Place::Last,
        _ => Place::Inner,
    }
}
