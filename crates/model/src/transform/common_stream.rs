//! The common stream of several loads, each on objects of its own.

use crate::error::{Error, ErrorKind, Result};
use crate::model::Model;
use crate::sample::Sampler;
use loadstone_content::seed::derive;
use loadstone_trace::depend::MOST_BACK;
use loadstone_trace::{Batch, NO_OBJECT, NONE, Object, Requests};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Requests handed on at once.
const BATCH: usize = 1 << 14;

/// A drawn stream on its way into the common one.
struct Part {
    sampler: Sampler,
    batch: Batch,
    at: usize,
    shift_ns: i64,
    objects: Objects,
    /// Its actors in the common stream.
    actors: FxHashMap<u32, u32>,
    /// Rows of its last requests in the common stream, where they depend on each other.
    rows: VecDeque<u64>,
}

/// What a part's objects are in the common stream.
enum Objects {
    /// Those of the model, after so many of other parts.
    After(u32),
    /// Files, which are made up one by one.
    Made(Vec<u32>),
}

/// What all parts together count.
#[derive(Default)]
struct Common {
    rows: u64,
    /// Objects that were made up.
    made: u32,
    actors: u32,
    forgotten: u64,
}

impl Objects {
    fn common(&mut self, object: u32, common: &mut Common) -> u32 {
        match self {
            Objects::After(others) => object + *others,
            Objects::Made(known) => {
                let at = object as usize;
                if at >= known.len() {
                    known.resize(at + 1, NO_OBJECT);
                }
                if known[at] == NO_OBJECT {
                    known[at] = common.made;
                    common.made += 1;
                }
                known[at]
            }
        }
    }
}

impl Part {
    /// Time of its next request.
    fn time(&mut self) -> Result<Option<i64>> {
        if self.at == self.batch.len() {
            self.at = 0;
            if !self.sampler.next(&mut self.batch)? {
                self.batch.clear();
                return Ok(None);
            }
        }
        Ok(Some(self.batch.time[self.at].saturating_add(self.shift_ns)))
    }

    /// Moves its next request.
    fn take(&mut self, time: i64, to: &mut Batch, common: &mut Common) {
        let (from, i) = (&self.batch, self.at);
        let mut actor = from.actor[i];
        if let (Some(&after), Some(&think)) = (from.after.get(i), from.think.get(i)) {
            // Between a request and what it waits for are now those of the others.
            let own = self.rows.len().checked_sub(after as usize).filter(|_| after > 0);
            let back = own.and_then(|at| self.rows.get(at)).map(|row| common.rows - row);
            let back = back.filter(|back| *back <= MOST_BACK).and_then(|back| u32::try_from(back).ok());
            common.forgotten += u64::from(after > 0 && back.is_none());
            to.after.push(back.unwrap_or(0));
            to.think.push(if back.is_some() { think } else { NONE });
            self.rows.push_back(common.rows);
            if self.rows.len() as u64 > MOST_BACK {
                self.rows.pop_front();
            }
            // Whoever asks has nothing to do with the other's first, second, ...
            actor = *self.actors.entry(actor).or_insert_with(|| {
                common.actors += 1;
                common.actors - 1
            });
        }
        common.rows += 1;
        to.time.push(time);
        to.op.push(from.op[i]);
        to.object.push(self.objects.common(from.object[i], common));
        to.offset.push(from.offset[i]);
        to.size.push(from.size[i]);
        to.latency.push(from.latency[i]);
        to.flags.push(from.flags[i]);
        to.actor.push(actor);
        if let Some(&result) = from.result.get(i) {
            to.result.push(result);
        }
        if let Some(&other) = from.other.get(i) {
            let none = other == NO_OBJECT;
            to.other.push(if none { other } else { self.objects.common(other, common) });
        }
        self.at += 1;
    }
}

/// Requests drawn from several models, by time.
pub(super) struct Together {
    parts: Vec<Part>,
    objects: Vec<Object>,
    common: Common,
}

impl Together {
    /// Each model's from its shift on.
    ///
    /// # Errors
    /// When a shift is negative, and those of drawing.
    pub fn new(models: &[Arc<Model>], shifts_ns: &[i64], seed: u64) -> Result<Together> {
        if let Some(shift) = shifts_ns.iter().find(|shift| **shift < 0) {
            return Err(Error::new(ErrorKind::Asked, format!("a shift of {shift} ns is before the start"))
                .help("shift the others instead"));
        }
        let mut parts = Vec::new();
        let (mut objects, mut base) = (Vec::<Object>::new(), 0);
        for (i, model) in models.iter().enumerate() {
            let of_files = model.header.is_of_files();
            parts.push(Part {
                sampler: Sampler::new(Arc::clone(model), derive(seed, "part", i as u64))?,
                batch: Batch::default(),
                at: 0,
                shift_ns: shifts_ns.get(i).copied().unwrap_or(0),
                objects: if of_files { Objects::Made(Vec::new()) } else { Objects::After(base) },
                actors: FxHashMap::default(),
                rows: VecDeque::new(),
            });
            let first = base;
            for object in &model.header.objects {
                let id = first + object.id;
                let taken = objects.iter().any(|other| other.name == object.name && !other.name.is_empty());
                let name = if taken { format!("{} of {}", object.name, i + 1) } else { object.name.clone() };
                objects.push(Object { id, name });
                base = base.max(id + 1);
            }
        }
        Ok(Together { parts, objects, common: Common::default() })
    }

    /// Requests so far.
    pub fn rows(&self) -> u64 {
        self.common.rows
    }

    /// Requests that wait for one too far back in the common stream, and so for none.
    pub fn forgotten(&self) -> u64 {
        self.common.forgotten
    }

    /// The objects; each part's files are in a directory of its own.
    pub fn objects(&self) -> Vec<Object> {
        let mut objects = self.objects.clone();
        for (number, part) in (1..).zip(&self.parts) {
            let Objects::Made(known) = &part.objects else { continue };
            for file in part.sampler.names() {
                match known.get(file.id as usize) {
                    Some(&id) if id != NO_OBJECT => {
                        objects.push(Object { id, name: format!("{number}/{}", file.name) });
                    }
                    _ => {}
                }
            }
        }
        objects
    }
}

impl Requests for Together {
    fn next(&mut self, batch: &mut Batch) -> loadstone_trace::Result<bool> {
        batch.clear();
        while batch.len() < BATCH {
            let mut soonest: Option<(i64, usize)> = None;
            for (p, part) in self.parts.iter_mut().enumerate() {
                if let Some(time) = part.time()? {
                    soonest = Some(soonest.map_or((time, p), |least| least.min((time, p))));
                }
            }
            let Some((time, p)) = soonest else { break };
            self.parts[p].take(time, batch, &mut self.common);
        }
        Ok(!batch.is_empty())
    }
}
