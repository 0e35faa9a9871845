//! What must hold of programs, the sets they work on and the variables they draw from.

use crate::check::{MAX_TRANSFER, invalid};
use crate::{Act, Backend, Error, Layout, Op, Order, Pace, Plan, Source, Step, TargetKind, Value};
use std::collections::{HashMap, HashSet};
use std::path::{Component, PathBuf};

/// Descriptors a thread of a program may have.
const SLOTS: u32 = 4096;
/// Groups may hold groups this deep.
const NESTED: usize = 64;
/// Largest number that a plan says.
const MOST: f64 = (1u64 << 63) as f64;
/// Entries of all sets together.
const ENTRIES: u64 = 1 << 31;

impl Plan {
    /// Checks sets and variables.
    pub(crate) fn check_sets(&self) -> Result<(), Error> {
        let mut names = HashSet::new();
        for (i, variable) in self.variables.iter().enumerate() {
            let place = format!("variables[{i}]");
            if !names.insert(&variable.id) {
                return invalid(place, format!("id {:?} is used twice", variable.id));
            }
            if let Some((part, fault)) = variable.fault() {
                return invalid(format!("{place}{part}"), fault);
            }
        }
        if !(self.events_per_s >= 0.0 && self.events_per_s <= 1e9) {
            return invalid("events_per_s", format!("is {}; use 0 to 1e9", self.events_per_s));
        }
        let (mut names, mut places, mut sum) =
            (HashSet::new(), HashMap::<(&String, &PathBuf), usize>::new(), 0u64);
        for (i, set) in self.sets.iter().enumerate() {
            let place = |part: &str| format!("sets[{i}]{part}");
            if !names.insert(&set.id) {
                return invalid(place(""), format!("id {:?} is used twice", set.id));
            }
            let Some(target) = self.targets.iter().find(|target| target.id == set.target) else {
                return invalid(place(".target"), format!("no target has id {:?}", set.target));
            };
            self.check_value(&set.size, || place(".size"))?;
            if set.digits[0] < 8 || set.digits[1] < set.digits[0] {
                let what = format!("is {:?}; use fewest and most digits, 8 to 255", set.digits);
                return invalid(place(".digits"), what);
            }
            if let Some(depth) = &set.depth {
                self.check_value(depth, || place(".depth"))?;
            }
            if matches!(target.kind, TargetKind::File | TargetKind::Device) {
                if set.entries != 1 || set.leaf_directories != 0 {
                    return invalid(
                        place(".entries"),
                        "must be 1, and no directories: the target is its file",
                    );
                }
                if self.sets[..i].iter().any(|other| other.target == set.target) {
                    return invalid(place(".target"), "is the file of another set already; use that set");
                }
                continue;
            }
            let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
            if !set.path.components().all(inside) || set.path.components().next().is_none() {
                return invalid(
                    place(".path"),
                    format!("is {:?}; name a directory below the target's", set.path.display().to_string()),
                );
            }
            for ((target, path), other) in &places {
                let nested = set.path.starts_with(path) || path.starts_with(&set.path);
                if **target == set.target && nested {
                    return invalid(
                        place(".path"),
                        format!("lies in that of sets[{other}]; give each set a directory of its own"),
                    );
                }
            }
            places.insert((&set.target, &set.path), i);
            if set.entries == 0 && set.leaf_directories == 0 {
                return invalid(place(".entries"), "is 0, and so is leaf_directories; give one of them");
            }
            sum = sum.saturating_add(set.entries).saturating_add(set.leaf_directories);
            if sum > ENTRIES {
                return invalid(
                    place(".entries"),
                    format!("makes {sum} in all; at most {ENTRIES} are possible"),
                );
            }
            if set.layout == Layout::Flat && set.depth.is_some() {
                return invalid(
                    place(".depth"),
                    "is for the layout gamma; flat has one level of directories",
                );
            }
            if !(set.width >= 1.0 && set.width.is_finite()) {
                return invalid(place(".width"), format!("is {}; use 1 or more", set.width));
            }
            if !(set.shape >= 0.0 && set.shape.is_finite()) {
                return invalid(place(".shape"), format!("is {}; use 0 or more", set.shape));
            }
            if !(0.0..=1.0).contains(&set.present) {
                return invalid(place(".present"), format!("is {}; use a share from 0 to 1", set.present));
            }
        }
        Ok(())
    }

    fn check_value(&self, value: &Value, place: impl Fn() -> String) -> Result<(), Error> {
        match value {
            Value::Number(number) if !(0.0..=MOST).contains(number) => {
                invalid(place(), format!("is {number}; use 0 or more, up to 2^63"))
            }
            Value::Drawn { variable } if !self.variables.iter().any(|known| known.id == *variable) => {
                invalid(place(), format!("no variable has id {variable:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Whether a set is a file or device that the plan's user has, and no tree of the run's own.
    fn is_one_file(&self, set: &str) -> bool {
        let target = self.sets.iter().find(|known| known.id == *set).map(|set| &set.target);
        let target = self.targets.iter().find(|known| Some(&known.id) == target);
        target.is_some_and(|target| matches!(target.kind, TargetKind::File | TargetKind::Device))
    }

    /// Checks a worker that follows a program.
    pub(crate) fn check_program(&self, i: usize) -> Result<(), Error> {
        let worker = &self.workers[i];
        let place = |part: &str| format!("workers[{i}].{part}");
        let Source::Program { ops, .. } = &worker.source else { return Ok(()) };
        if !matches!(worker.backend, Backend::Posix | Backend::Null) {
            return invalid(place("backend"), "must be posix or null: a program says its system calls");
        }
        if worker.pace != Pace::Closed || worker.order != Order::None {
            return invalid(place("pace"), "and order are those of requests; a program waits by its ops");
        }
        if !worker.map.objects.is_empty() {
            return invalid(place("map.objects"), "must be empty: a program uses sets");
        }
        if self.log.is_some() {
            return invalid("log", "programs cannot be logged yet; leave it out");
        }
        let prepared = self.steps.iter().take_while(|step| !matches!(step, Step::Run { .. }));
        if !self.sets.is_empty() && !prepared.into_iter().any(|step| *step == Step::Prepare) {
            return invalid("steps", "has no prepare before the run: the sets would not be there");
        }
        if self.workers.iter().any(|other| !matches!(other.source, Source::Program { .. })) {
            return invalid(place("source"), "is a program, but not that of every worker");
        }
        self.check_ops(ops, &place("source.ops"), 0)
    }

    fn check_ops(&self, ops: &[Op], place: &str, depth: usize) -> Result<(), Error> {
        if ops.is_empty() {
            return invalid(place, "is empty; nothing would be done");
        }
        if depth > NESTED {
            return invalid(place, format!("has groups nested more than {NESTED} deep"));
        }
        for (j, op) in ops.iter().enumerate() {
            let place = format!("{place}[{j}]");
            for (part, value) in [
                ("times", &op.times),
                ("size", &op.size),
                ("working_set", &op.working_set),
                ("value", &op.value),
            ] {
                self.check_value(value, || format!("{place}.{part}"))?;
            }
            if let Value::Number(size) = op.size
                && op.act.transfers()
                && size > MAX_TRANSFER as f64
            {
                return invalid(
                    format!("{place}.size"),
                    format!(
                        "is {size} bytes; one request has at most {MAX_TRANSFER} (256m): use more of them"
                    ),
                );
            }
            if let Some(index) = &op.index {
                self.check_value(index, || format!("{place}.index"))?;
            }
            if let Some(position) = &op.position {
                self.check_value(position, || format!("{place}.position"))?;
                if !matches!(op.act, Act::Read | Act::Write) {
                    return invalid(
                        format!("{place}.position"),
                        "is for read and write; others know where they begin",
                    );
                }
            }
            if op.timed && op.act != Act::Group {
                return invalid(
                    format!("{place}.timed"),
                    "is for groups; the time of any other op is told anyway",
                );
            }
            let any_names = |id: &String| self.sets.iter().any(|set| set.id == *id && set.any_names);
            if op.act == Act::Extract && (op.archive.is_none() || !op.set.as_ref().is_some_and(any_names)) {
                return invalid(place, "extract needs an archive, and a set with any_names to unpack it in");
            }
            if op.again && !matches!(op.act, Act::Read | Act::Write) {
                return invalid(format!("{place}.again"), "is for read and write");
            }
            if op.direct && matches!(op.act, Act::Fread | Act::Fwrite | Act::Getc | Act::Putc) {
                return invalid(
                    format!("{place}.direct"),
                    "is not for streams of the C library, whose buffers are not aligned",
                );
            }
            match &op.set {
                Some(set) if !self.sets.iter().any(|known| known.id == *set) => {
                    return invalid(format!("{place}.set"), format!("no set has id {set:?}"));
                }
                Some(set) if !op.act.fits_one_file() && self.is_one_file(set) => {
                    return invalid(
                        format!("{place}.act"),
                        format!("is {:?}, which needs a tree: the set {set:?} is one file or device", op.act),
                    );
                }
                None if op.act.needs_set() => {
                    return invalid(format!("{place}.set"), format!("is missing: {:?} uses files", op.act));
                }
                _ => {}
            }
            if op.slot >= SLOTS || op.other_slot.is_some_and(|slot| slot >= SLOTS) {
                return invalid(place, format!("uses a descriptor beyond the {SLOTS} a thread may have"));
            }
            match &op.target {
                None if op.act.needs_target() => {
                    return invalid(format!("{place}.target"), "is missing: whom is it for?");
                }
                Some(target) if !self.workers.iter().any(|worker| has_op(worker, target)) => {
                    return invalid(format!("{place}.target"), format!("no op is called {target:?}"));
                }
                _ => {}
            }
            if op.act == Act::Group {
                self.check_ops(&op.ops, &format!("{place}.ops"), depth + 1)?;
            }
        }
        Ok(())
    }
}

fn has_op(worker: &crate::Worker, name: &str) -> bool {
    fn among(ops: &[Op], name: &str) -> bool {
        ops.iter().any(|op| op.name == name || among(&op.ops, name))
    }
    matches!(&worker.source, Source::Program { ops, .. } if among(ops, name))
}
