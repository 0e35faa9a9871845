//! Which file a generated request goes to, and where in it.
//!
//! Files are those that were generated so far, by when they were used and what happened to them, or new ones. Whatever
//! is chosen, the request can come to what was drawn: what is to succeed finds its file, what is to fail does not.

pub(crate) mod cell_index;
pub(crate) mod directories;
pub(crate) mod offsets;
pub(crate) mod recent_offsets;
pub(crate) mod sampler;

use crate::feature::files::catalog::{Kind, ROOT};
use crate::feature::node::{Need, Node, is_failure};
use crate::random::{Random, below};
use crate::room;
use crate::sample::block::ledger::Ledger;
use crate::sample::block::recency::Blocks;
use crate::sample::column::Column;
use crate::sample::file::directories::Directories;
use crate::sample::file::offsets::{Again, Reach, Wanted};
use crate::sample::file::recent_offsets::RecentOffsets;
use crate::schema::cells::KeyField;
use loadstone_trace::{NO_OBJECT, NONE, Object, Op, Recency};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Files looked at for one that will do.
const LOOKS: usize = 32;

/// The dimensions of files.
#[derive(Default)]
pub(crate) struct Parts {
    pub file: Column,
    pub state: Column,
    pub near: Column,
    pub length: Column,
    pub other: Column,
    pub result: Column,
    pub seek: Column,
    /// Where the model has it.
    pub reuse: Option<Column>,
}

/// A file that was generated.
struct File {
    node: Node,
    kind: Kind,
    name: String,
    /// The directory it is in, and the one that it is.
    parent: u32,
    own: Option<u32>,
    /// Code of its length, its state's number, and when it was used last.
    length: u32,
    state: i64,
    when: u64,
    class: u32,
    reach: Reach,
}

/// A request's file and place.
pub(crate) struct Use {
    pub object: u32,
    /// Second object, or [`NO_OBJECT`].
    pub other: u32,
    /// First byte, or [`NONE`].
    pub offset: i64,
    /// Bytes, or [`NONE`].
    pub size: i64,
    /// 0 or a negative errno, or [`NONE`].
    pub result: i64,
    /// What had happened to the file.
    pub state: i64,
    /// It is not the file, or not the place, that was drawn.
    pub astray: bool,
}

/// How well a request must fit what was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// In all.
    Exact,
    /// Its file may have been used earlier or later.
    Aged,
    /// And it may start over in a file that it would run out of.
    Anew,
    /// And what happened to the file may be something else, if it is as long.
    Length,
    /// Its file is as near as can be, or a new one.
    Forced,
}

/// Files, directories, and when they were used.
pub(crate) struct Files {
    parts: Parts,
    files: Vec<File>,
    directories: Directories,
    used: Recency,
    /// Number of a class of files by code of the length and state, and its files by time of last use.
    numbers: FxHashMap<(u32, i64), u32>,
    classes: Vec<BTreeMap<u64, u32>>,
    /// Whether those of a class were not used before.
    new: Vec<bool>,
    clock: u64,
    recent_offsets: RecentOffsets,
    /// By code of an age: at which time it was looked up, and when files of it were used, oldest and newest.
    ages: Vec<(u64, Option<(u64, u64)>)>,
    opens: bool,
    /// Blocks used, where the model knows their stack distances.
    blocks: Option<Blocks>,
}

impl Files {
    /// `opens`: whether files are opened and closed, so that one without a name may be held.
    pub fn new(parts: Parts, opens: bool, ledger: Option<Ledger>) -> Files {
        Files {
            opens,
            blocks: ledger.map(Blocks::new),
            recent_offsets: RecentOffsets::default(),
            ages: Vec::new(),
            parts,
            files: Vec::new(),
            directories: Directories::default(),
            used: Recency::default(),
            numbers: FxHashMap::default(),
            classes: Vec::new(),
            new: Vec::new(),
            clock: 0,
        }
    }

    /// Where in a key the codes are of when a file was used, of what happened to it, and of its length.
    pub fn alike(&self) -> (KeyField, KeyField, KeyField) {
        (self.parts.file.place, self.parts.state.place, self.parts.length.place)
    }

    /// Number of the class of files of a length, by code, in a state.
    fn class(&mut self, length: u32, state: i64) -> u32 {
        let next = self.classes.len() as u32;
        let class = *self.numbers.entry((length, state)).or_insert(next);
        if class == next {
            self.classes.push(BTreeMap::new());
            self.new.push(Node::is_new(state));
        }
        class
    }

    /// The class of files that a draw asks for.
    pub fn asked(&mut self, key: u64) -> u32 {
        let state = self.parts.state.range(key).map_or(0, |(state, _)| state);
        self.class(self.parts.length.place.code(key), state)
    }

    /// Whether there are files of a class, or they are new; of an age by code, if one is asked for.
    pub fn has(&mut self, class: u32, age: Option<u32>) -> bool {
        if self.new[class as usize] || age == Some(0) {
            return true;
        }
        let Some(age) = age else { return !self.classes[class as usize].is_empty() };
        if self.classes[class as usize].is_empty() {
            return false;
        }
        let at = age as usize;
        if at >= self.ages.len() {
            self.ages.resize(at + 1, (u64::MAX, None));
        }
        if self.ages[at].0 != self.clock {
            self.ages[at] = (self.clock, self.times(self.parts.file.numbers.range(age)));
        }
        let between = |(oldest, newest)| self.classes[class as usize].range(oldest..=newest).next().is_some();
        self.ages[at].1.is_some_and(between)
    }

    /// Bytes of memory that the files and their blocks take, about.
    pub fn bytes(&self) -> u64 {
        self.files.len() as u64 * room::FILE + self.blocks.as_ref().map_or(0, Blocks::bytes)
    }

    /// Names of the files so far.
    pub fn names(&self) -> Vec<Object> {
        (0..).zip(&self.files).map(|(id, file)| Object { id, name: file.name.clone() }).collect()
    }

    /// Chooses the file of a request, if there is one that suits what was drawn.
    pub fn choose(&mut self, key: u64, code: u8, size: i64, fit: Match, rng: &mut Random) -> Option<Use> {
        let op = Op::from_code(code).unwrap_or(Op::Stat);
        let result = self.parts.result.draw(key, rng);
        let mut wanted = Wanted {
            op,
            result,
            need: Need::of(op, result),
            size: size.max(0),
            seek: self.parts.seek.draw(key, rng),
            seeks: self.parts.seek.range(key).unwrap_or((0, 0)),
            again: Again::Any,
            strict: true,
        };
        if let Some(reuse) = &self.parts.reuse {
            wanted.again = match reuse.range(key) {
                Some((0, 0)) => Again::Used,
                Some((low, high)) => Again::Ago(low, high),
                None => Again::New,
            };
        }
        let moves = wanted.seek != NONE || matches!(wanted.again, Again::Ago(..));
        let forced = fit == Match::Forced;
        let state = self.parts.state.draw(key, rng);
        if wanted.need == Need::Opened && Node::was_there(state) {
            wanted.need = Need::There;
        }
        let alike = (self.parts.length.place.code(key), state);
        let kind = kind_for(op, result, Kind::of(state));
        let distance = self.parts.file.range(key);
        let mut astray = false;
        let mut found = distance.and_then(|range| self.find(alike, range, wanted, rng));
        if let (None, Some(range)) = (found, distance) {
            if fit == Match::Exact {
                return None;
            }
            astray = true;
            found = self.find_later(alike, range, wanted);
            if found.is_none() && fit == Match::Aged {
                return None;
            }
            if found.is_none() {
                // It starts over in a file that it would run out of.
                wanted.strict = false;
                let again = self.find(alike, range, wanted, rng);
                found = again.or_else(|| self.find_later(alike, range, wanted));
            }
            if found.is_none() && fit != Match::Anew {
                found = self.find_alike((alike.0, kind), range, wanted, forced);
            }
            if found.is_none() && !forced {
                return None;
            }
        }
        if found.is_none() && wanted.need == Need::Full {
            wanted.need = Need::Gone;
        }
        let (mut offset, mut moved) = (NONE, size);
        if moves {
            let at = match found {
                Some(object) => self.files[object as usize].reach,
                None => self.new_reach(key, wanted.need),
            };
            let object = found.unwrap_or(self.files.len() as u32);
            let suits = |offset: i64| self.recalls(object, offset, &wanted);
            match at.offset(&self.recent_offsets, found, &wanted, rng, suits) {
                Some(there) => offset = there,
                None if wanted.strict && !forced => return None,
                None => {
                    astray = true;
                    (offset, moved) = (0, size.min(if at.ends_now(op) { at.end } else { at.limit }));
                }
            }
        }
        let object = match found {
            Some(object) => object,
            None => self.make(key, kind, wanted.need, rng),
        };
        let end = if offset == NONE { 0 } else { offset.saturating_add(moved.max(0)) };
        let other = self.other(key, object, &wanted, end, rng);
        let file = &self.files[object as usize];
        let state = file.state;
        self.note(object, other, code, result, (offset, moved));
        if let Some(blocks) = &mut self.blocks {
            blocks.note(code, object, (offset, moved), 0);
        }
        Some(Use { object, other, offset, size: moved, result, state, astray })
    }

    /// A file of a length in a state that was used as long ago as a range of distances says.
    fn find(&self, alike: (u32, i64), range: (i64, i64), wanted: Wanted, rng: &mut Random) -> Option<u32> {
        let all = &self.classes[*self.numbers.get(&alike)? as usize];
        let (oldest, newest) = self.times(range)?;
        let first = oldest + below(rng, newest - oldest + 1);
        let times = all.range(first..=newest).chain(all.range(oldest..first));
        times.take(LOOKS).map(|(_, &object)| object).find(|&object| self.suits(object, &wanted))
    }

    /// The file at a stack distance.
    fn used_at(&self, distance: u64) -> Option<u32> {
        self.used.at(distance).map(|(_, object)| object as u32)
    }

    /// When files of a range of distances were used, oldest and newest.
    fn times(&self, (low, high): (i64, i64)) -> Option<(u64, u64)> {
        let most = (self.used.len() as u64).checked_sub(1)?;
        let when = |distance: u64| Some(self.files[self.used_at(distance)? as usize].when);
        Some((when((high.max(0) as u64).min(most))?, when(low.max(0) as u64)?))
    }

    /// The same where none was used then: one used earlier or later, as little as can be.
    fn find_later(&self, alike: (u32, i64), range: (i64, i64), wanted: Wanted) -> Option<u32> {
        let all = &self.classes[*self.numbers.get(&alike)? as usize];
        let (oldest, newest) = self.times(range).unwrap_or((0, 0));
        let suits = |(_, object): &(&u64, &u32)| self.suits(**object, &wanted);
        let earlier = all.range(..oldest).rev().take(LOOKS).find(suits);
        let later = all.range(newest..).take(LOOKS).find(suits);
        let far = |(when, _): &(&u64, &u32)| oldest.abs_diff(**when);
        earlier.into_iter().chain(later).min_by_key(far).map(|(_, object)| *object)
    }

    /// One of the same kind that will do, whatever its state; best of the same length.
    fn find_alike(
        &self,
        (length, kind): (u32, Kind),
        (low, _): (i64, i64),
        wanted: Wanted,
        forced: bool,
    ) -> Option<u32> {
        let distances = (low.max(0) as u64..).take(LOOKS).chain(0..LOOKS as u64);
        // One of another length must not go away, or nothing of its own finds it any more.
        let stays =
            forced && !matches!(wanted.op, Op::Remove | Op::Rmdir | Op::Rename | Op::Truncate | Op::Create);
        let mut other = None;
        for object in distances.filter_map(|distance| self.used_at(distance)) {
            let file = &self.files[object as usize];
            if file.kind == kind
                && (file.length == length || (stays && other.is_none()))
                && self.suits(object, &wanted)
            {
                if file.length == length {
                    return Some(object);
                }
                other = Some(object);
            }
        }
        other
    }

    /// Whether a request can come to what it should on a file.
    fn suits(&self, object: u32, wanted: &Wanted) -> bool {
        let file = &self.files[object as usize];
        let there = file.node.there;
        let above = self.directories.is_there(file.parent);
        let empty = file.own.is_none_or(|own| self.directories.is_empty(own));
        let sure = file.own.is_none_or(|own| self.directories.is_sure(own)) || wanted.op != Op::Rename;
        let can = match wanted.need {
            Need::There => there,
            Need::Held => there || (self.opens && file.node.open > 0),
            // A file that lost its name while it was open must not be taken for another of that name.
            Need::Free => !there && above && file.node.open == 0,
            Need::Directory => above && (there || file.node.open == 0),
            Need::Opened => there || (above && file.own.is_none() && file.node.open == 0),
            Need::Full => there && !empty,
            Need::Empty => there && empty,
            Need::Gone => !there,
            Need::Orphan => !above,
        };
        let (low, high) = wanted.seeks;
        let place =
            || low != high || file.reach.holds(file.reach.position.saturating_add(wanted.seek), wanted);
        can && sure
            && kind_for(wanted.op, wanted.result, file.kind) == file.kind
            && (!wanted.strict || wanted.seek == NONE || place())
    }

    /// Whether the blocks of a request were used when blocks should have been.
    fn recalls(&self, object: u32, offset: i64, wanted: &Wanted) -> bool {
        let moves = matches!(wanted.op, Op::Read | Op::Write) && wanted.size > 0;
        !moves || self.blocks.as_ref().is_none_or(|blocks| blocks.suit(object, offset, wanted.size))
    }

    /// What is in a new file.
    fn new_reach(&self, key: u64, need: Need) -> Reach {
        let (least, limit) = self.parts.length.range(key).unwrap_or((0, 0));
        Reach { position: 0, end: 0, fresh: !need.is_there(), least, limit, reached: 0 }
    }

    /// A new file, of which what is needed holds.
    fn make(&mut self, key: u64, kind: Kind, need: Need, rng: &mut Random) -> u32 {
        let near = self.parts.near.range(key).unwrap_or((0, 0));
        let parent = self.directories.choose(near, need, rng);
        let length = self.parts.length.place.code(key);
        self.add(parent, (kind, length), need.is_there(), self.new_reach(key, need))
    }

    fn add(&mut self, parent: u32, (kind, length): (Kind, u32), there: bool, reach: Reach) -> u32 {
        let id = self.files.len() as u32;
        self.directories.tell(parent, true);
        let own = (kind == Kind::Directory).then(|| self.directories.make(parent, there));
        let name = match own {
            Some(own) => self.directories.own_path(own),
            None => {
                self.directories.path(parent, &format!("{}{id}", if kind == Kind::Link { 'l' } else { 'f' }))
            }
        };
        if there && own.is_none() {
            self.directories.changed(parent, true);
        }
        let node = Node { there, ..Node::default() };
        let state = node.state(kind);
        self.files.push(File { node, kind, name, parent, own, length, state, when: 0, class: 0, reach });
        id
    }

    /// The second object of a request, or [`NO_OBJECT`].
    fn other(&mut self, key: u64, first: u32, wanted: &Wanted, end: i64, rng: &mut Random) -> u32 {
        let Some((low, high)) = self.parts.other.range(key) else { return NO_OBJECT };
        let file = &self.files[first as usize];
        let (kind, parent) = (file.kind, file.parent);
        let from = matches!(wanted.op, Op::CopyRange | Op::Symlink);
        let need = match wanted.op {
            Op::CopyRange => Need::Held,
            Op::Symlink => Need::There,
            Op::Rename if kind != Kind::Directory => Need::Directory,
            _ => Need::Free,
        };
        let kind = if from { Kind::File } else { kind };
        // What is copied must be in it; a name is moved or made, whatever it was.
        let op = if from { Op::Read } else { Op::Stat };
        let second = Wanted {
            op,
            result: 0,
            need,
            size: end,
            seek: NONE,
            seeks: (0, 0),
            again: Again::Any,
            strict: false,
        };
        let copied = |reach: Reach| wanted.op != Op::CopyRange || !reach.fresh || end <= reach.end;
        if high >= 0 {
            let (low, high) = (low.max(0) as u64, high as u64);
            let start = low + below(rng, high - low + 1);
            let distances = (start..=high).chain(low..start).take(LOOKS).chain(0..LOOKS as u64);
            let suits = |&object: &u32| {
                let file = &self.files[object as usize];
                let replaced = wanted.op == Op::Rename && file.node.open > 0;
                object != first
                    && !replaced
                    && file.kind == kind
                    && copied(file.reach)
                    && self.suits(object, &second)
            };
            if let Some(found) = distances.filter_map(|distance| self.used_at(distance)).find(suits) {
                return found;
            }
        }
        let parent = match need {
            Need::Held | Need::There => self.directories.choose((0, 0), need, rng),
            _ => parent,
        };
        let parent = if self.directories.is_there(parent) { parent } else { ROOT };
        let File { length, reach: Reach { least, limit, .. }, .. } = self.files[first as usize];
        self.add(
            parent,
            (kind, length),
            from,
            Reach { position: 0, end: 0, fresh: !from, least, limit, reached: 0 },
        )
    }

    /// Takes a request: what was used, and what became of it.
    fn note(&mut self, object: u32, other: u32, code: u8, result: i64, (offset, size): (i64, i64)) {
        let failed = is_failure(result);
        let own = self.files[object as usize].own;
        if let (Some(own), false) = (own, failed) {
            let tells =
                matches!(Op::from_code(code), Some(Op::Mkdir | Op::Rmdir | Op::Readdir | Op::Readdirplus));
            self.directories.tell(own, tells);
        }
        if other != NO_OBJECT {
            self.note_second(object, other, code, result);
        }
        let was_there = self.files[object as usize].node.there;
        self.change(object, |node| node.take(code, result));
        let reach = &mut self.files[object as usize].reach;
        let end = if offset == NONE { 0 } else { offset.saturating_add(size.max(0)) };
        if offset != NONE {
            reach.position = end;
            self.recent_offsets.note(object, offset);
        }
        if !failed {
            reach.reached = reach.reached.max(end);
        }
        match Op::from_code(code) {
            _ if failed => {}
            Some(Op::Create) => (reach.position, reach.end, reach.fresh) = (0, 0, true),
            Some(Op::Open) if was_there => reach.position = 0,
            Some(Op::Open) => (reach.position, reach.end, reach.fresh) = (0, 0, true),
            Some(Op::Mknod | Op::Symlink | Op::Remove | Op::Rename) => (reach.end, reach.fresh) = (0, true),
            Some(Op::Truncate) => (reach.end, reach.fresh) = (size.max(0), true),
            // What is looked at was there at the start, unless the file is fresh.
            Some(op) if !reach.fresh || matches!(op, Op::Write | Op::CopyRange | Op::Fallocate) => {
                reach.end = reach.end.max(end);
            }
            _ => {}
        }
        self.touch(object);
    }

    fn note_second(&mut self, object: u32, other: u32, code: u8, result: i64) {
        let end = self.files[object as usize].reach.end;
        let moves = matches!(Op::from_code(code), Some(Op::Rename | Op::Link)) && !is_failure(result);
        self.change(other, |node| node.take_second(code, result));
        if let (true, Some(from), Some(to)) =
            (moves, self.files[object as usize].own, self.files[other as usize].own)
        {
            let sure = self.directories.is_sure(from);
            self.directories.tell(to, sure);
        }
        if moves {
            // What it held before it had this name was another's.
            let reach = &mut self.files[other as usize].reach;
            (reach.end, reach.fresh) = (end, true);
        }
        self.touch(other);
    }

    /// Changes what is known of a file, and of its directory with it.
    fn change(&mut self, object: u32, change: impl FnOnce(&mut Node)) {
        let file = &mut self.files[object as usize];
        let before = file.node.there;
        // The first request does not say what was there: it was made so.
        file.node.last = file.node.last.or(Some((0, false)));
        change(&mut file.node);
        let there = file.node.there;
        if there != before {
            self.directories.changed(file.parent, there);
            if let Some(own) = file.own {
                self.directories.set_there(own, there);
            }
        }
    }

    /// Uses a file and its directory.
    fn touch(&mut self, object: u32) {
        let file = &mut self.files[object as usize];
        let before = file.when;
        self.clock += 1;
        (file.state, file.when) = (file.node.state(file.kind), self.clock);
        let (length, state, class) = (file.length, file.state, file.class);
        if before > 0 {
            self.classes[class as usize].remove(&before);
        }
        let class = self.class(length, state);
        self.classes[class as usize].insert(self.clock, object);
        let file = &mut self.files[object as usize];
        file.class = class;
        self.directories.touch(file.parent);
        if let Some(own) = file.own {
            self.directories.touch(own);
        }
        self.used.touch(0, object.into());
    }
}

/// The kind of file that an op goes to where it is to succeed, if this kind will not do.
fn kind_for(op: Op, result: i64, kind: Kind) -> Kind {
    use Op::{
        CopyRange, Create, Fallocate, Mkdir, Mknod, Mmap, Read, Readdir, Readdirplus, Readlink, Remove,
        Rmdir, Symlink, Truncate, Write,
    };
    match op {
        _ if is_failure(result) => kind,
        Mkdir | Rmdir | Readdir | Readdirplus => Kind::Directory,
        Readlink | Symlink => Kind::Link,
        Create | Mknod => Kind::File,
        Read | Write | CopyRange | Truncate | Fallocate | Mmap | Remove if kind == Kind::Directory => {
            Kind::File
        }
        _ => kind,
    }
}
