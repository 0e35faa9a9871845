//! Fresh chunks that are in the new tree more than once, and the files that share them.

use super::supply::Place;
use crate::profile::Step;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};

/// Two files with as many chunks that are there twice are copies of each other; fewer are as many by chance.
const COPIES: u32 = 8;

/// Files of an extension, at least, that share chunks with each other only; a chunk that is there more than twice is in three.
const FEW: f64 = 3.0;
/// The group of those that share them with any.
const ANY: u32 = u32::MAX;

/// Chunks that are looked at for one that a twin can have as well.
const LOOK: usize = 64;

/// Which of two files with one row that share most of what is new in them: copies with another version in them, or the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Twin {
    #[default]
    Alone,
    /// What it has that is there more often must be left for the other.
    First,
    /// It has what the first has, in its order.
    Second,
}

impl Twin {
    /// Of the files of a row its `number`th of `count`, with so many new chunks, of which so many are there more often.
    pub fn of(number: u32, count: u32, fresh: u32, shared: u32) -> Twin {
        if shared < COPIES || u64::from(shared) * 4 < u64::from(fresh) * 3 || number / 2 * 2 + 1 >= count {
            return Twin::Alone;
        }
        if number.is_multiple_of(2) { Twin::First } else { Twin::Second }
    }
}

/// A chunk that is to be there so many times more.
struct Open {
    chunk: u32,
    left: u32,
    /// It begins a stretch that is in one piece wherever it is.
    begins: bool,
}

/// Chunks in the order in which the last file has them.
#[derive(Default)]
struct Queue {
    others: VecDeque<Open>,
    /// Those that the file has which is made.
    own: VecDeque<Open>,
    file: u32,
}

impl Queue {
    /// Those that `file` has, or that others have: those of the file before are the last of them, or a twin's first.
    fn of(&mut self, (file, twin): (u32, Twin), own: bool) -> &mut VecDeque<Open> {
        if self.file != file {
            if twin == Twin::Second {
                self.own.drain(..).rev().for_each(|one| self.others.push_front(one));
            } else {
                self.others.append(&mut self.own);
            }
            self.file = file;
        }
        if own { &mut self.own } else { &mut self.others }
    }
}

/// Chunks that files of one group share.
#[derive(Default)]
struct Line {
    inner: Queue,
    /// Those that were made for the end of a file.
    ends: Queue,
    /// Times that they are still to be there.
    owed: u64,
    /// Places that are still to be filled.
    places: u64,
}

impl Line {
    /// A chunk that another file has, or (`own`) this one.
    fn take(
        &mut self,
        file: (u32, Twin),
        own: bool,
        place: Place,
        fits: &dyn Fn(u32) -> bool,
    ) -> Option<(u32, bool)> {
        let (look, least) = if file.1 == Twin::First { (LOOK, 2) } else { (1, 1) };
        let queues = if place == Place::Inner {
            [&mut self.inner, &mut self.ends]
        } else {
            [&mut self.ends, &mut self.inner]
        };
        for queue in queues {
            let found = queue.of(file, own);
            let at = found.iter().take(look).position(|one| one.left >= least && fits(one.chunk));
            if let Some(Open { chunk, left, begins }) = at.and_then(|at| found.remove(at)) {
                self.owed -= 1;
                if left > 1 {
                    queue.of(file, true).push_back(Open { chunk, left: left - 1, begins });
                }
                return Some((chunk, begins));
            }
        }
        None
    }
}

/// What the file that is made has of one kind of chunks.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    /// Its group.
    key: u32,
    /// Chunks in all, those that are still to come, and how many of these the file has itself before.
    all: u32,
    left: u32,
    own: u32,
}

/// Chunks that are there twice, and more often.
#[derive(Default)]
pub(super) struct Shared {
    lines: [FxHashMap<u32, Line>; 2],
    /// Files to come of those that go in pairs, by how many of their chunks are there twice.
    pairs: FxHashMap<u32, u64>,
    shares: [Share; 2],
    file: (u32, Twin),
    /// Files to come, the one that is made among them, by their group of chunks that are there more than twice and by how many
    /// of these they have.
    files: BTreeMap<(u32, u32), f64>,
    /// Extensions that too few files have.
    few: FxHashSet<u32>,
    among: u32,
}

impl Shared {
    /// For the files of a step, times a factor.
    pub fn new(step: &Step, factor: f64) -> Shared {
        let mut shared = Shared::default();
        let new = step.new.iter().map(|row| (&row.file, row.count, row.twice, row.often));
        let changed = step.changed.iter().map(|row| (&row.file, row.count, row.twice, row.often));
        let rows: Vec<_> = new.chain(changed).filter(|(.., twice, often)| twice + often > 0).collect();
        let mut kinds: FxHashMap<u32, f64> = FxHashMap::default();
        for (file, count, ..) in rows.iter().filter(|(.., often)| *often > 0) {
            *kinds.entry(file.extension).or_default() += f64::from(*count) * factor;
        }
        shared.few = kinds.into_iter().filter(|(_, files)| *files < FEW).map(|(kind, _)| kind).collect();
        let mut places = 0.0;
        let mut files: FxHashMap<u32, f64> = FxHashMap::default();
        let mut often_places: FxHashMap<u32, f64> = FxHashMap::default();
        for (file, count, twice, often) in rows {
            let count = f64::from(count) * factor;
            places += count * f64::from(twice);
            if often > 0 {
                let kind = shared.kind(file.extension);
                *often_places.entry(kind).or_default() += count * f64::from(often);
                *shared.files.entry((kind, often)).or_default() += count;
            }
            if twice >= COPIES {
                *files.entry(twice).or_default() += count;
            }
        }
        for (twice, files) in files {
            let files = (files / 2.0 + 1e-9) as u64 * 2;
            let there = files * u64::from(twice);
            places -= there as f64;
            shared.pairs.insert(twice, files);
            shared.lines[0].insert(twice, Line { places: there, ..Line::default() });
        }
        let line = |places: f64| Line { places: places.max(0.0).round() as u64, ..Line::default() };
        shared.lines[0].insert(0, line(places));
        shared.lines[1].extend(often_places.into_iter().map(|(kind, places)| (kind, line(places))));
        shared
    }

    /// Files that share many chunks are of one kind; those of a kind with too few for that share what they have with any.
    fn kind(&self, extension: u32) -> u32 {
        if self.few.contains(&extension) { ANY } else { extension }
    }

    /// Goes on to another file with such an extension, of whose chunks so many are there twice and more often, and of these so many
    /// in the file itself before. Tells whether another file has those that are there twice, as a copy does.
    pub fn begin(&mut self, extension: u32, (twice, often): (u32, u32), own: (u32, u32), twin: Twin) -> bool {
        let [_, Share { key, all, .. }] = self.shares;
        if let Some(files) = self.files.get_mut(&(key, all)) {
            *files -= 1.0;
        }
        self.file = (self.file.0 + 1, twin);
        let files = self.pairs.get_mut(&twice).filter(|files| **files > 0);
        let paired = files.map(|files| *files -= 1).is_some();
        let key = if paired { twice } else { 0 };
        let share = |key, all, own| Share { key, all, left: all, own };
        let kind = self.kind(extension);
        self.shares = [share(key, twice, own.0), share(kind, often, own.1)];
        // Those with at least half as many can have most of what it has.
        let files = self.files.range((kind, often.div_ceil(2))..=(kind, u32::MAX)).map(|(_, files)| files);
        self.among = if own.1 > 0 { u32::MAX } else { files.sum::<f64>().round().max(1.0) as u32 };
        paired
    }

    /// Files that can have what the one has that is made of the chunks that are there more than twice, itself and those to come. As
    /// many as you like where it may have one several times.
    pub fn among(&self) -> u32 {
        self.among
    }

    /// A chunk that is there already, for the next place of the file, and whether it begins a stretch; `often`: of those that
    /// are there more than twice.
    pub fn take(&mut self, often: bool, place: Place, fits: &dyn Fn(u32) -> bool) -> Option<(u32, bool)> {
        let share = &mut self.shares[usize::from(often)];
        let own = share.left <= share.own;
        share.left = share.left.saturating_sub(1);
        let line = self.lines[usize::from(often)].entry(share.key).or_default();
        line.places = line.places.saturating_sub(1);
        // Where as many are owed as there are places, nothing new can be there again.
        let whole = line.owed > 0 && line.owed >= line.places;
        let first = line.take(self.file, own, place, fits);
        // Then also what would be left for a twin.
        let alone = (self.file.0, Twin::Alone);
        let first = first.or_else(|| if whole { line.take(alone, own, place, fits) } else { None });
        first.or_else(|| if own || whole { line.take(alone, !own, place, fits) } else { None })
    }

    /// A place of the file has a chunk that other files have, too, and that is not told here.
    pub fn pass(&mut self, often: bool) {
        let share = &mut self.shares[usize::from(often)];
        share.left = share.left.saturating_sub(1);
        let line = self.lines[usize::from(often)].entry(share.key).or_default();
        line.places = line.places.saturating_sub(1);
    }

    /// A chunk that was made for a place of the file, begins a stretch or goes on with one, and is to be there so many times
    /// more.
    pub fn made(&mut self, often: bool, (chunk, begins): (u32, bool), left: u32, place: Place) {
        let line = self.lines[usize::from(often)].entry(self.shares[usize::from(often)].key).or_default();
        line.owed += u64::from(left);
        let queue = if place == Place::Inner { &mut line.inner } else { &mut line.ends };
        queue.of(self.file, true).push_back(Open { chunk, left, begins });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{File, New};

    #[test]
    fn what_a_file_has_is_apart_from_what_others_have() {
        // Six files of three such chunks: more places than chunks are owed, so that files need not repeat their own.
        let file = File { depth: 0, extension: 0, size: 3, unique: 3, dup1: 0, dup2: 0 };
        let row = New { file, often: 3, count: 6, ..New::default() };
        let mut shared = Shared::new(&Step { new: vec![row], ..Step::default() }, 1.0);
        let take = |shared: &mut Shared, place| shared.take(true, place, &|_| true).map(|found| found.0);
        shared.begin(0, (0, 5), (0, 2), Twin::Alone);
        assert_eq!(take(&mut shared, Place::Inner), None);
        shared.made(true, (1, true), 3, Place::Inner);
        assert_eq!(take(&mut shared, Place::Inner), None, "it has it already");
        shared.made(true, (2, true), 1, Place::Last);
        // Its last two places are for what it has before: a last chunk first where a file ends.
        shared.begin(0, (0, 2), (0, 0), Twin::Alone);
        assert_eq!(take(&mut shared, Place::Inner), Some(1));
        assert_eq!(take(&mut shared, Place::Last), Some(2));
        shared.begin(0, (0, 2), (0, 1), Twin::Alone);
        assert_eq!(take(&mut shared, Place::Inner), Some(1));
        assert_eq!(take(&mut shared, Place::Inner), Some(1), "the second time it is its own");
        shared.begin(0, (0, 1), (0, 0), Twin::Alone);
        assert_eq!(take(&mut shared, Place::Inner), None, "nothing is left");
    }

    #[test]
    fn files_of_one_kind_with_as_many_are_those_that_can_share() {
        let row = |extension, often, count| {
            let file = File { depth: 0, extension, size: often, unique: often, dup1: 0, dup2: 0 };
            New { file, often, count, ..New::default() }
        };
        let new =
            vec![row(0, 40, 3), row(0, 3, 1), row(1, 30, 1), row(1, 90, 2), row(2, 50, 1), row(3, 50, 1)];
        let mut shared = Shared::new(&Step { new, ..Step::default() }, 1.0);
        let mut begin = |extension, often, own| {
            shared.begin(extension, (0, often), (0, own), Twin::Alone);
            shared.among()
        };
        assert_eq!([begin(0, 40, 0), begin(0, 40, 0), begin(0, 40, 0), begin(0, 3, 0)], [3, 2, 1, 1]);
        assert_eq!([begin(1, 30, 0), begin(1, 90, 0), begin(1, 90, 0)], [3, 2, 1]);
        // One of each kind: with each other.
        assert_eq!([begin(2, 50, 0), begin(3, 50, 0)], [2, 1]);
        assert_eq!(begin(1, 30, 2), u32::MAX, "it may have one several times");
    }

    #[test]
    fn a_file_of_very_many_of_its_own_takes_as_long_as_it_has() {
        // Behind as many that are others': what moves all of them for each one takes hours.
        const MANY: u32 = 1 << 21;
        let mut shared = Shared::default();
        shared.begin(0, (0, MANY), (0, 0), Twin::Alone);
        (0..MANY).for_each(|chunk| shared.made(true, (chunk, true), 1, Place::Inner));
        shared.begin(0, (0, 2 * MANY), (0, MANY), Twin::Alone);
        (MANY..2 * MANY).for_each(|chunk| shared.made(true, (chunk, true), 1, Place::Inner));
        shared.shares[1].left = MANY;
        let own = (0..MANY).map(|_| shared.take(true, Place::Inner, &|_| true));
        assert!(own.eq((MANY..2 * MANY).map(|chunk| Some((chunk, true)))));
    }
}
