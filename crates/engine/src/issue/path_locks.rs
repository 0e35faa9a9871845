//! PathLocks that requests take at what they claim (`loadstone_trace::claims`): who changes a path waits for all that used
//! it, and those after that for the change.
//!
//! Requests at one turn form a *group*. It is closed once somebody waits for it, and over when all in it are done.

use loadstone_trace::claims::{Call, Claim, Claims};

/// A group by its slot, and which of the groups there it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Id {
    at: u32,
    made: u32,
}

/// Who waits for a group.
#[derive(Debug, Clone, Copy)]
enum Waiter {
    /// A request, by its number.
    Request(u32),
    /// A group that is not over before.
    Group(u32),
}

#[derive(Debug, Default)]
struct Group {
    made: u32,
    /// Requests and groups in it that are not done.
    left: u32,
    closed: bool,
    waiters: Vec<Waiter>,
}

/// The groups of a key: those before are closed.
#[derive(Debug, Clone, Copy, Default)]
struct Key {
    /// Of who changed it last, and of those who have used it since.
    changed: Option<Id>,
    using: Option<Id>,
    /// Of those who lengthened it, up to the last that read it and since.
    longer: Option<Id>,
    lengthening: Option<Id>,
}

/// Groups of the requests that were read and are not done.
#[derive(Debug)]
pub struct PathLocks {
    claims: Claims,
    claimed: Vec<(u32, Claim)>,
    keys: Vec<Key>,
    groups: Vec<Group>,
    free: Vec<u32>,
    /// Slots of the groups that each request is in, by its number.
    within: Vec<Vec<u32>>,
    over: Vec<u32>,
}

impl PathLocks {
    /// Of calls from the start of a trace.
    pub fn new(claims: Claims) -> PathLocks {
        PathLocks {
            claims,
            claimed: Vec::new(),
            keys: Vec::new(),
            groups: Vec::new(),
            free: Vec::new(),
            within: Vec::new(),
            over: Vec::new(),
        }
    }

    /// Takes the next call of the trace as request `number`; for how many groups it waits.
    pub fn take(&mut self, number: u32, call: &Call) -> u32 {
        let mut claimed = std::mem::take(&mut self.claimed);
        claimed.clear();
        self.claims.next(call, &mut claimed);
        if self.within.len() <= number as usize {
            self.within.resize_with(number as usize + 1, Vec::new);
        }
        let mut waits = 0;
        for (name, claim) in &claimed {
            let name = *name as usize;
            if self.keys.len() <= name {
                self.keys.resize(name + 1, Key::default());
            }
            let mut key = self.keys[name];
            waits += u32::from(self.claim(number, &mut key, *claim));
            self.keys[name] = key;
        }
        self.claimed = claimed;
        waits
    }

    /// Whether the request waits for a group of the key.
    fn claim(&mut self, number: u32, key: &mut Key, claim: Claim) -> bool {
        match claim {
            Claim::Use => {
                let waits = self.wait(key.changed, Waiter::Request(number));
                let using = *key.using.get_or_insert_with(|| self.group());
                self.join(number, using);
                waits
            }
            Claim::Change => {
                // Whoever uses it has waited for the change before.
                let using = key.using.take().and_then(|using| self.close(using));
                let waits = self.wait(using.or(key.changed), Waiter::Request(number));
                let change = self.group();
                self.join(number, change);
                self.close(change);
                key.changed = Some(change);
                waits
            }
            Claim::Read => {
                if let Some(lengthening) = key.lengthening.take() {
                    key.longer = self.close(lengthening);
                }
                self.wait(key.longer, Waiter::Request(number))
            }
            Claim::Lengthen => {
                let before = key.longer;
                let lengthening = *key.lengthening.get_or_insert_with(|| {
                    let next = self.group();
                    let waits = self.wait(before, Waiter::Group(next.at));
                    self.groups[next.at as usize].left += u32::from(waits);
                    next
                });
                self.join(number, lengthening);
                false
            }
        }
    }

    fn group(&mut self) -> Id {
        let at = self.free.pop().unwrap_or_else(|| {
            self.groups.push(Group::default());
            self.groups.len() as u32 - 1
        });
        Id { at, made: self.groups[at as usize].made }
    }

    fn join(&mut self, number: u32, group: Id) {
        self.groups[group.at as usize].left += 1;
        self.within[number as usize].push(group.at);
    }

    /// Nobody joins a group any more; it, unless it is over by that.
    fn close(&mut self, id: Id) -> Option<Id> {
        let group = &mut self.groups[id.at as usize];
        group.closed = true;
        if group.left > 0 {
            return Some(id);
        }
        self.end(id.at);
        None
    }

    /// Waits for a group, if it is not over.
    fn wait(&mut self, id: Option<Id>, waiter: Waiter) -> bool {
        let found = id.and_then(|id| Some((self.groups.get_mut(id.at as usize)?, id)));
        match found {
            Some((group, id)) if group.made == id.made => {
                group.waiters.push(waiter);
                true
            }
            _ => false,
        }
    }

    /// A group is over; its slot is another's from now on.
    fn end(&mut self, at: u32) {
        let group = &mut self.groups[at as usize];
        (group.made, group.closed) = (group.made.wrapping_add(1), false);
        self.free.push(at);
    }

    /// A request is done; appends those that waited for a group that is over by that, once for each.
    pub fn done(&mut self, number: u32, released: &mut Vec<u32>) {
        let Some(within) = self.within.get_mut(number as usize) else { return };
        let mut over = std::mem::take(&mut self.over);
        over.append(within);
        while let Some(at) = over.pop() {
            let group = &mut self.groups[at as usize];
            group.left -= 1;
            if group.left > 0 || !group.closed {
                continue;
            }
            let mut waiters = std::mem::take(&mut group.waiters);
            for waiter in waiters.drain(..) {
                match waiter {
                    Waiter::Request(number) => released.push(number),
                    Waiter::Group(at) => over.push(at),
                }
            }
            self.groups[at as usize].waiters = waiters;
            self.end(at);
        }
        self.over = over;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_trace::tree::{Entry, Tree};
    use loadstone_trace::{NO_OBJECT, Op};
    use proptest::prelude::*;

    const PATHS: [&str; 5] = ["a", "a/b", "a/b/c", "a/d", "e"];
    const OPS: [Op; 9] =
        [Op::Stat, Op::Create, Op::Remove, Op::Mkdir, Op::Rmdir, Op::Rename, Op::Read, Op::Write, Op::Link];

    fn locks() -> PathLocks {
        let paths = PATHS.map(|path| Some(path.to_string())).into();
        let entries = PATHS.map(|path| (path.to_string(), Entry::File(0))).into();
        let changed = PATHS.map(String::from).into();
        PathLocks::new(Claims::new(&Tree { paths, entries, changed, ..Tree::default() }))
    }

    /// Paths that a call changes, and those that it uses.
    fn does(call: &Call) -> (Vec<&'static str>, Vec<&'static str>) {
        let (first, second) = (PATHS[call.object as usize], PATHS.get(call.other as usize));
        match call.op {
            Op::Stat | Op::Read | Op::Write => (Vec::new(), vec![first]),
            _ => (std::iter::once(first).chain(second.copied()).collect(), vec![first]),
        }
    }

    /// Whether the second of two calls must wait for the first.
    fn conflict(first: &Call, second: &Call) -> bool {
        let within = |path: &str, above: &str| path == above || path.starts_with(&format!("{above}/"));
        let touches = |(changed, used): &(Vec<&str>, Vec<&str>), (others, _): &(Vec<&str>, Vec<&str>)| {
            let mut all = changed.iter().chain(used);
            all.any(|path| others.iter().any(|above| within(path, above)))
        };
        let (a, b) = (does(first), does(second));
        let read = first.op == Op::Write && second.op == Op::Read && first.object == second.object;
        touches(&a, &b) || touches(&b, &a) || (read && first.end > 0)
    }

    proptest! {
        #[test]
        fn all_get_their_turn_and_none_before_what_it_needs(
            rows in proptest::collection::vec((0usize..9, 0u32..5, 0u32..5, 0u64..3), 1..60),
            picks in proptest::collection::vec(0usize..100, 60),
        ) {
            let call = |&(op, object, other, end): &(usize, u32, u32, u64)| {
                let other = if matches!(OPS[op], Op::Rename | Op::Link) { other } else { NO_OBJECT };
                Call { op: OPS[op], failed: false, actor: 0, object, other, end }
            };
            let calls: Vec<Call> = rows.iter().map(call).collect();
            let mut locks = locks();
            let mut waits: Vec<u32> = (0..).zip(&calls).map(|(i, call)| locks.take(i, call)).collect();
            let (mut done, mut released) = (vec![false; calls.len()], Vec::new());
            // Those of the first write that reached the end are known; of others no read has to wait.
            let mut ends = [0u64; 5];
            let mut longer = Vec::new();
            for call in &calls {
                let end = &mut ends[call.object as usize];
                longer.push(call.op == Op::Write && call.end > *end);
                *end = if call.op == Op::Write { call.end.max(*end) } else { *end };
                for path in does(call).0 {
                    ends[PATHS.iter().position(|known| *known == path).unwrap()] = 0;
                }
            }
            for pick in picks.iter().cycle().take(calls.len()) {
                let ready: Vec<usize> = (0..calls.len()).filter(|&i| !done[i] && waits[i] == 0).collect();
                prop_assert!(!ready.is_empty(), "all wait");
                let next = ready[pick % ready.len()];
                for i in (0..next).filter(|&i| !done[i]) {
                    let only_written = calls[i].op == Op::Write && calls[next].op == Op::Read && !longer[i];
                    prop_assert!(only_written || !conflict(&calls[i], &calls[next]), "{i} before {next}");
                }
                done[next] = true;
                locks.done(next as u32, &mut released);
                released.drain(..).for_each(|number| waits[number as usize] -= 1);
            }
            let open = locks.groups.iter().filter(|group| group.left > 0).count();
            prop_assert_eq!(open, 0);
        }
    }
}
