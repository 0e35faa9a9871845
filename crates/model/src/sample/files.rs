//! Which file a generated request goes to, and where in it.
//!
//! Files are those that were generated so far, by when they were used and what happened to them, or new ones. Whatever
//! is chosen, the request can come to what was drawn: what is to succeed finds its file, what is to fail does not.

use super::decode::{Decoder, below};
use super::folders::Directories;
use super::place::{Fit, Misfit};
use crate::catalog::{Kind, ROOT};
use crate::cells;
use crate::node::{Need, Node, is_failure};
use loadstone_trace::{NO_OBJECT, NONE, Object, Op, Recency};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Files looked at for one that will do.
const LOOKS: usize = 32;

/// A dimension's place in a key and its numbers.
#[derive(Default)]
pub(super) struct Part {
    pub place: cells::Place,
    pub decode: Decoder,
}

impl Part {
    fn draw(&self, key: u64, rng: &mut Xoshiro256PlusPlus) -> i64 {
        self.decode.draw(self.place.code(key), rng)
    }

    /// Smallest and largest number; `None` where there is no number.
    fn range(&self, key: u64) -> Option<(i64, i64)> {
        let code = self.place.code(key);
        (code != 0).then(|| self.decode.range(code))
    }
}

/// The dimensions of files.
#[derive(Default)]
pub(super) struct Parts {
    pub file: Part,
    pub state: Part,
    pub near: Part,
    pub length: Part,
    pub other: Part,
    pub result: Part,
    pub seek: Part,
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
    reach: Reach,
}

/// What is in a file, bytes.
#[derive(Clone, Copy)]
struct Reach {
    /// Where the next request goes on.
    position: i64,
    /// How far the file is known to reach; what is beyond may have been there at the start, unless it is fresh.
    end: i64,
    fresh: bool,
    /// How far requests are to reach.
    limit: i64,
}

/// A request's file and place.
pub(super) struct Use {
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

/// What a request asks of its file.
#[derive(Clone, Copy)]
struct Wanted {
    op: Op,
    result: i64,
    need: Need,
    /// Bytes moved.
    size: i64,
    /// Distance from the file's position, [`NONE`] if it has no offset.
    seek: i64,
    /// Whether it must lie within the file.
    strict: bool,
}

/// Files, directories, and when they were used.
pub(super) struct Files {
    parts: Parts,
    files: Vec<File>,
    directories: Directories,
    used: Recency,
    /// Files by code of the length, state and time of last use.
    states: FxHashMap<(u32, i64), BTreeMap<u64, u32>>,
    clock: u64,
}

impl Files {
    pub fn new(parts: Parts) -> Files {
        Files {
            parts,
            files: Vec::new(),
            directories: Directories::default(),
            used: Recency::default(),
            states: FxHashMap::default(),
            clock: 0,
        }
    }

    /// Names of the files so far.
    pub fn names(&self) -> Vec<Object> {
        (0..).zip(&self.files).map(|(id, file)| Object { id, name: file.name.clone() }).collect()
    }

    /// Chooses the file of a request, if there is one that suits what was drawn.
    pub fn choose(
        &mut self,
        key: u64,
        code: u8,
        size: i64,
        fit: Fit,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Result<Use, Misfit> {
        let op = Op::from_code(code).unwrap_or(Op::Stat);
        let result = self.parts.result.draw(key, rng);
        let mut wanted = Wanted {
            op,
            result,
            need: Need::of(op, result),
            size: size.max(0),
            seek: self.parts.seek.draw(key, rng),
            strict: true,
        };
        let forced = fit == Fit::Forced;
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
            if fit == Fit::Exact {
                return Err(Misfit { ends: None });
            }
            astray = true;
            found = self.find_later(alike, range, wanted);
            if found.is_none() {
                // It starts over in a file that it would run out of.
                wanted.strict = false;
                let again = self.find(alike, range, wanted, rng);
                found = again.or_else(|| self.find_later(alike, range, wanted));
            }
            if found.is_none() && !forced {
                return Err(Misfit { ends: None });
            }
            found = found.or_else(|| self.find_alike((alike.0, kind), range, wanted));
        }
        if found.is_none() && wanted.need == Need::Full {
            wanted.need = Need::Gone;
        }
        let (mut offset, mut moved) = (NONE, size);
        if wanted.seek != NONE {
            let at = match found {
                Some(object) => self.files[object as usize].reach,
                None => self.new_reach(key, wanted.need),
            };
            offset = at.position.saturating_add(wanted.seek);
            if !at.holds(offset, &wanted) {
                if wanted.strict && !forced {
                    return Err(Misfit { ends: None });
                }
                astray = true;
                (offset, moved) = (0, if at.ends_now(op) { size.min(at.end) } else { size });
            }
        }
        let object = match found {
            Some(object) => object,
            None => self.make(key, kind, wanted.need, rng),
        };
        let end = if offset == NONE { 0 } else { offset.saturating_add(moved.max(0)) };
        let other = self.other(key, object, &wanted, end, rng);
        let state = self.files[object as usize].state;
        self.note(object, other, code, result, (offset, moved));
        Ok(Use { object, other, offset, size: moved, result, state, astray })
    }

    /// A file of a length in a state that was used as long ago as a range of distances says.
    fn find(
        &self,
        alike: (u32, i64),
        range: (i64, i64),
        wanted: Wanted,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Option<u32> {
        let all = self.states.get(&alike)?;
        let (oldest, newest) = self.times(range)?;
        let first = oldest + below(rng, newest - oldest + 1);
        let times = all.range(first..=newest).chain(all.range(oldest..first));
        times.take(LOOKS).map(|(_, &object)| object).find(|&object| self.suits(object, &wanted))
    }

    /// When files of a range of distances were used, oldest and newest.
    fn times(&self, (low, high): (i64, i64)) -> Option<(u64, u64)> {
        let most = (self.used.len() as u64).checked_sub(1)?;
        let when = |distance: u64| {
            let (object, _) = self.used.at(distance)?;
            Some(self.files[object as usize].when)
        };
        Some((when((high.max(0) as u64).min(most))?, when(low.max(0) as u64)?))
    }

    /// The same where none was used then: one used earlier or later, as little as can be.
    fn find_later(&self, alike: (u32, i64), range: (i64, i64), wanted: Wanted) -> Option<u32> {
        let all = self.states.get(&alike)?;
        let (oldest, newest) = self.times(range).unwrap_or((0, 0));
        let suits = |(_, object): &(&u64, &u32)| self.suits(**object, &wanted);
        let earlier = all.range(..oldest).rev().take(LOOKS).find(suits);
        let later = all.range(newest..).take(LOOKS).find(suits);
        let far = |(when, _): &(&u64, &u32)| oldest.abs_diff(**when);
        earlier.into_iter().chain(later).min_by_key(far).map(|(_, object)| *object)
    }

    /// One of the same kind that will do, whatever its state; best of the same length.
    fn find_alike(&self, (length, kind): (u32, Kind), (low, _): (i64, i64), wanted: Wanted) -> Option<u32> {
        let distances = (low.max(0) as u64..).take(LOOKS).chain(0..LOOKS as u64);
        let mut other = None;
        for (object, _) in distances.filter_map(|distance| self.used.at(distance)) {
            let file = &self.files[object as usize];
            if file.kind == kind && (file.length == length || other.is_none()) && self.suits(object, &wanted)
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
        let can = match wanted.need {
            Need::There => there,
            Need::Held => there || file.node.open > 0,
            // A file that lost its name while it was open must not be taken for another of that name.
            Need::Free => !there && above && file.node.open == 0,
            Need::Directory => above && (there || file.node.open == 0),
            Need::Opened => there || (above && file.own.is_none() && file.node.open == 0),
            Need::Full => there && !empty,
            Need::Empty => there && empty,
            Need::Gone => !there,
            Need::Orphan => !above,
        };
        let place = || file.reach.holds(file.reach.position.saturating_add(wanted.seek), wanted);
        can && kind_for(wanted.op, wanted.result, file.kind) == file.kind
            && (!wanted.strict || wanted.seek == NONE || place())
    }

    /// What is in a new file.
    fn new_reach(&self, key: u64, need: Need) -> Reach {
        let limit = self.parts.length.range(key).map_or(0, |(_, most)| most);
        Reach { position: 0, end: 0, fresh: !need.is_there(), limit }
    }

    /// A new file, of which what is needed holds.
    fn make(&mut self, key: u64, kind: Kind, need: Need, rng: &mut Xoshiro256PlusPlus) -> u32 {
        let near = self.parts.near.range(key).unwrap_or((0, 0));
        let parent = self.directories.choose(near, need, rng);
        let length = self.parts.length.place.code(key);
        self.add(parent, (kind, length), need.is_there(), self.new_reach(key, need))
    }

    fn add(&mut self, parent: u32, (kind, length): (Kind, u32), there: bool, reach: Reach) -> u32 {
        let id = self.files.len() as u32;
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
        self.files.push(File { node, kind, name, parent, own, length, state, when: 0, reach });
        id
    }

    /// The second object of a request, or [`NO_OBJECT`].
    fn other(
        &mut self,
        key: u64,
        first: u32,
        wanted: &Wanted,
        end: i64,
        rng: &mut Xoshiro256PlusPlus,
    ) -> u32 {
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
        let second = Wanted { op, result: 0, need, size: end, seek: NONE, strict: false };
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
            let at = |distance| self.used.at(distance).map(|(object, _)| object);
            if let Some(found) = distances.filter_map(at).find(suits) {
                return found;
            }
        }
        let parent = match need {
            Need::Held | Need::There => self.directories.choose((0, 0), need, rng),
            _ => parent,
        };
        let parent = if self.directories.is_there(parent) { parent } else { ROOT };
        let File { length, reach: Reach { limit, .. }, .. } = self.files[first as usize];
        self.add(parent, (kind, length), from, Reach { position: 0, end: 0, fresh: !from, limit })
    }

    /// Takes a request: what was used, and what became of it.
    fn note(&mut self, object: u32, other: u32, code: u8, result: i64, (offset, size): (i64, i64)) {
        let failed = is_failure(result);
        if other != NO_OBJECT {
            self.note_second(object, other, code, result);
        }
        let was_there = self.files[object as usize].node.there;
        self.change(object, |node| node.take(code, result));
        let reach = &mut self.files[object as usize].reach;
        let end = if offset == NONE { 0 } else { offset.saturating_add(size.max(0)) };
        if offset != NONE {
            reach.position = end;
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
        if let Some(times) = self.states.get_mut(&(file.length, file.state)) {
            times.remove(&file.when);
        }
        self.clock += 1;
        (file.state, file.when) = (file.node.state(file.kind), self.clock);
        self.states.entry((file.length, file.state)).or_default().insert(self.clock, object);
        self.directories.touch(file.parent);
        if let Some(own) = file.own {
            self.directories.touch(own);
        }
        self.used.touch(object, 0);
    }
}

impl Reach {
    /// Whether an op finds no more in the file than is known to be in it.
    fn ends_now(&self, op: Op) -> bool {
        self.fresh && op == Op::Read
    }

    /// Whether a request at an offset lies in the file.
    fn holds(&self, offset: i64, wanted: &Wanted) -> bool {
        let end = offset.saturating_add(wanted.size);
        let most = if self.ends_now(wanted.op) { self.end } else { self.limit };
        offset >= 0 && (wanted.size == 0 || end <= most)
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
