//! What calls on files must leave to each other so that all of them stay possible, whoever makes them.
//!
//! A call on a path comes after what made, removed or renamed it or a directory above it, and before what does so next;
//! what is read was written before; a descriptor is used after it was opened and before it is closed. ARTC (SOSP '13)
//! orders its replays by such rules.

use crate::tree::Tree;
use crate::{NO_OBJECT, Op};
use rustc_hash::FxHashMap;

/// No path, or nobody.
const NONE: u32 = u32::MAX;

/// How a call claims a key: a path, or a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// Together with others that use it.
    Use,
    /// Alone.
    Change,
    /// After all that lengthened it.
    Read,
    /// Together with others that lengthen it.
    Lengthen,
}

/// A file-level request.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// What it does.
    pub op: Op,
    /// Whether it failed in the trace.
    pub failed: bool,
    /// Who makes it.
    pub actor: u32,
    /// First object.
    pub object: u32,
    /// Second object, or [`NO_OBJECT`].
    pub other: u32,
    /// One past the last byte it moves.
    pub end: u64,
}

/// What is known of a path.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The nearest directory above it that is ever changed.
    above: u32,
    /// Whether something is there now.
    there: bool,
    /// Bytes that it has at least.
    end: u64,
    /// Who opened it last.
    opener: u32,
    /// Where it leads, if it is a symbolic link that the trace made.
    leads: u32,
}

/// Links followed at most, one that leads to another: as many as the kernel does (path_resolution(7)).
const LINKS: usize = 40;

/// Follows a trace's calls from its start.
#[derive(Debug, Default)]
pub struct Claims {
    /// Place of each object.
    of: Vec<u32>,
    places: Vec<Place>,
    /// Keys of descriptors, by place and actor; whether anything is opened at all.
    descriptors: FxHashMap<(u32, u32), u32>,
    opened: bool,
    keys: u32,
}

impl Claims {
    /// Of calls on the tree that they found when they began.
    pub fn new(tree: &Tree) -> Claims {
        let mut known: FxHashMap<&str, u32> = FxHashMap::default();
        let (mut places, mut of) = (Vec::new(), Vec::new());
        for path in tree.paths.iter().map(Option::as_deref) {
            let next = places.len() as u32;
            let place = path.map_or(NONE, |path| *known.entry(path).or_insert(next));
            if let (Some(path), true) = (path, place == next) {
                let end = tree.entries.get(path).map_or(0, crate::tree::Entry::bytes);
                let there = path == "." || tree.entries.contains_key(path);
                places.push(Place { above: NONE, there, end, opener: NONE, leads: NONE });
            }
            of.push(place);
        }
        for (path, place) in &known {
            let mut above = path.rmatch_indices('/').map(|(at, _)| &path[..at]);
            let nearest = above.find_map(|path| known.get(path).filter(|_| tree.changed.contains(path)));
            places[*place as usize].above = nearest.copied().unwrap_or(NONE);
        }
        let keys = places.len() as u32;
        Claims { of, places, descriptors: FxHashMap::default(), opened: tree.opened, keys }
    }

    /// Takes the next call of the trace: appends its claims, of each key the strongest one of its kind.
    pub fn next(&mut self, call: &Call, out: &mut Vec<(u32, Claim)>) {
        use Op::{
            Close, CopyRange, Create, Fallocate, Link, Mkdir, Mknod, Mmap, Open, Read, Remove, Rename, Rmdir,
            Symlink, Truncate, Write,
        };
        let place = |object: u32| self.of.get(object as usize).copied().unwrap_or(NONE);
        let (first, second) = (place(call.object), place(call.other));
        let failed = call.failed;
        if self.opened {
            self.descriptor(call, first, out);
        }
        match call.op {
            Close => {}
            Create | Mknod | Mkdir if !failed => self.change(first, true, out),
            Symlink if !failed => {
                self.change(first, true, out);
                if let Some(link) = self.places.get_mut(first as usize) {
                    link.leads = second;
                }
            }
            Open if !failed && !self.is_there(first) => self.change(first, true, out),
            // One that failed does so again only after all that came before.
            Remove | Rmdir => self.change(first, failed && self.is_there(first), out),
            Rename => {
                let leads = self.places.get(first as usize).map_or(NONE, |place| place.leads);
                self.change(first, failed && self.is_there(first), out);
                self.change(second, !failed || self.is_there(second), out);
                if let (Some(place), false) = (self.places.get_mut(second as usize), failed) {
                    place.leads = leads;
                }
            }
            Link if !failed => {
                self.change(first, true, out);
                self.change(second, true, out);
            }
            Truncate if !failed => {
                self.uses(first, out);
                self.change(self.followed(first), true, out);
            }
            Write | Fallocate | CopyRange if !failed => {
                if call.op == CopyRange && call.other != NO_OBJECT {
                    self.uses(second, out);
                    claim(self.followed(second), Claim::Read, out);
                }
                self.uses(first, out);
                self.lengthen(self.followed(first), call.end, out);
            }
            Read | Mmap if !failed => {
                self.uses(first, out);
                claim(self.followed(first), Claim::Read, out);
            }
            _ => self.uses(first, out),
        }
        if failed && call.op != Rename {
            self.uses(second, out);
        }
        out.sort_unstable();
        // A call that changes what it also uses has it alone.
        out.dedup_by(|next, kept| {
            let same =
                next.0 == kept.0 && (next.1 == kept.1 || (kept.1, next.1) == (Claim::Use, Claim::Change));
            if same {
                kept.1 = next.1;
            }
            same
        });
    }

    fn is_there(&self, place: u32) -> bool {
        self.places.get(place as usize).is_some_and(|place| place.there)
    }

    /// Uses a place and what is above it, and where it leads with what is above that.
    fn uses(&self, place: u32, out: &mut Vec<(u32, Claim)>) {
        for at in self.leads(place) {
            let mut at = at;
            while let Some(Place { above, .. }) = self.places.get(at as usize) {
                out.push((at, Claim::Use));
                at = *above;
            }
        }
    }

    /// The place, and where each link leads that it is.
    fn leads(&self, place: u32) -> impl Iterator<Item = u32> {
        let next = |at: &u32| self.places.get(*at as usize).map(|place| place.leads).filter(|at| *at != NONE);
        std::iter::successors(Some(place), next).take(LINKS)
    }

    /// Where a place leads in the end.
    fn followed(&self, place: u32) -> u32 {
        self.leads(place).last().unwrap_or(place)
    }

    /// Afterwards something is there, or nothing is.
    fn change(&mut self, place: u32, there: bool, out: &mut Vec<(u32, Claim)>) {
        self.uses(place, out);
        if let Some(found) = self.places.get_mut(place as usize) {
            // What is there now may be shorter, and is no link until that is said.
            (found.there, found.end, found.leads) = (there, 0, NONE);
            claim(place, Claim::Change, out);
        }
    }

    fn lengthen(&mut self, place: u32, end: u64, out: &mut Vec<(u32, Claim)>) {
        if let Some(found) = self.places.get_mut(place as usize)
            && end > found.end
        {
            found.end = end;
            claim(place, Claim::Lengthen, out);
        }
    }

    /// What a call asks of the descriptor that it goes through: its actor's, else that of who opened the file last.
    fn descriptor(&mut self, call: &Call, place: u32, out: &mut Vec<(u32, Claim)>) {
        let Some(found) = self.places.get_mut(place as usize) else { return };
        let claims = match call.op {
            Op::Open | Op::Create if !call.failed => {
                found.opener = call.actor;
                let next = self.keys;
                let key = *self.descriptors.entry((place, call.actor)).or_insert(next);
                self.keys += u32::from(key == next);
                return out.push((key, Claim::Change));
            }
            Op::Close => Claim::Change,
            _ => Claim::Use,
        };
        let own = self.descriptors.get(&(place, call.actor));
        if let Some(key) = own.or_else(|| self.descriptors.get(&(place, found.opener))) {
            out.push((*key, claims));
        }
    }
}

fn claim(place: u32, claim: Claim, out: &mut Vec<(u32, Claim)>) {
    if place != NONE {
        out.push((place, claim));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Claim::{Change, Lengthen, Read, Use};

    const PATHS: [&str; 5] = ["d", "d/f", "d/g", "old", "e/x"];

    fn claims(opened: bool) -> Claims {
        let changed = ["d", "d/f", "d/g"].map(String::from).into();
        let entries = [("old".to_string(), crate::tree::Entry::File(4096))].into();
        let paths = PATHS.map(|path| Some(path.to_string())).into();
        Claims::new(&Tree { entries, paths, opened, changed, ..Tree::default() })
    }

    fn next(
        claims: &mut Claims,
        op: Op,
        object: u32,
        other: u32,
        end: u64,
        failed: bool,
    ) -> Vec<(u32, Claim)> {
        let mut out = Vec::new();
        claims.next(&Call { op, failed, actor: 7, object, other, end }, &mut out);
        out
    }

    #[test]
    fn names_are_changed_alone_and_used_together() {
        let mut claims = claims(false);
        let mut next = |op, object, other, failed| next(&mut claims, op, object, other, 0, failed);
        assert_eq!(next(Op::Mkdir, 0, NO_OBJECT, false), [(0, Change)]);
        assert_eq!(next(Op::Create, 1, NO_OBJECT, false), [(0, Use), (1, Change)]);
        assert_eq!(next(Op::Stat, 1, NO_OBJECT, false), [(0, Use), (1, Use)]);
        assert_eq!(next(Op::Rename, 1, 2, false), [(0, Use), (1, Change), (2, Change)]);
        // An open makes what is not there; a failed call comes to the same only after all before it.
        assert_eq!(next(Op::Open, 2, NO_OBJECT, false), [(0, Use), (2, Use)]);
        assert_eq!(next(Op::Open, 1, NO_OBJECT, false), [(0, Use), (1, Change)]);
        assert_eq!(next(Op::Rmdir, 0, NO_OBJECT, true), [(0, Change)]);
        assert_eq!(next(Op::Mkdir, 0, NO_OBJECT, true), [(0, Use)]);
        // Nobody changes what is above this one, and what has no path has no claims.
        assert_eq!(next(Op::Lookup, 4, NO_OBJECT, true), [(4, Use)]);
        assert_eq!(next(Op::Stat, 99, NO_OBJECT, false), []);
    }

    #[test]
    fn what_is_read_was_written_before() {
        let mut claims = claims(false);
        let mut next = |op, object, other, end| next(&mut claims, op, object, other, end, false);
        assert_eq!(next(Op::Write, 3, NO_OBJECT, 4096), [(3, Use)], "it was as long");
        assert_eq!(next(Op::Write, 3, NO_OBJECT, 8192), [(3, Use), (3, Lengthen)]);
        assert_eq!(next(Op::Read, 3, NO_OBJECT, 100), [(3, Use), (3, Read)]);
        assert_eq!(next(Op::CopyRange, 3, 3, 9000), [(3, Use), (3, Read), (3, Lengthen)]);
        assert_eq!(next(Op::Truncate, 3, NO_OBJECT, 10), [(3, Change)]);
        assert_eq!(next(Op::Write, 3, NO_OBJECT, 10), [(3, Use), (3, Lengthen)]);
    }

    #[test]
    fn a_link_is_used_with_what_it_leads_to() {
        let mut claims = claims(false);
        let mut next = |op, object, other, end| next(&mut claims, op, object, other, end, false);
        assert_eq!(next(Op::Symlink, 2, 3, 0), [(0, Use), (2, Change)]);
        assert_eq!(next(Op::Read, 2, NO_OBJECT, 100), [(0, Use), (2, Use), (3, Use), (3, Read)]);
        assert_eq!(next(Op::Write, 2, NO_OBJECT, 8192), [(0, Use), (2, Use), (3, Use), (3, Lengthen)]);
        assert_eq!(next(Op::Truncate, 2, NO_OBJECT, 10), [(0, Use), (2, Use), (3, Change)]);
        // Moved, it leads there still; a link to itself leads nowhere; removed, it is none.
        assert_eq!(next(Op::Rename, 2, 1, 0), [(0, Use), (1, Change), (2, Change), (3, Use)]);
        assert_eq!(next(Op::Stat, 1, NO_OBJECT, 0), [(0, Use), (1, Use), (3, Use)]);
        assert_eq!(next(Op::Symlink, 2, 2, 0), [(0, Use), (2, Change)]);
        assert_eq!(next(Op::Stat, 2, NO_OBJECT, 0), [(0, Use), (2, Use)]);
        assert_eq!(next(Op::Remove, 1, NO_OBJECT, 0), [(0, Use), (1, Change), (3, Use)]);
        assert_eq!(next(Op::Create, 1, NO_OBJECT, 0), [(0, Use), (1, Change)]);
        assert_eq!(next(Op::Stat, 1, NO_OBJECT, 0), [(0, Use), (1, Use)]);
    }

    #[test]
    fn descriptors_are_used_between_open_and_close() {
        let mut claims = claims(true);
        let mut next = |op, actor| {
            let mut out = Vec::new();
            claims.next(&Call { op, failed: false, actor, object: 3, other: NO_OBJECT, end: 0 }, &mut out);
            out
        };
        assert_eq!(next(Op::Read, 1), [(3, Use), (3, Read)], "it was open before");
        assert_eq!(next(Op::Open, 1), [(3, Use), (5, Change)]);
        assert_eq!(next(Op::Open, 2), [(3, Use), (6, Change)]);
        assert_eq!(next(Op::Read, 1), [(3, Use), (3, Read), (5, Use)]);
        assert_eq!(next(Op::Stat, 9), [(3, Use), (6, Use)], "it was handed down");
        assert_eq!(next(Op::Close, 2), [(6, Change)]);
    }
}
