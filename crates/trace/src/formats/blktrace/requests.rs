//! Requests from events: queue events joined with completions, and what is known besides.

use super::event::{Action, Category, Event};
use super::join::Join;
use crate::chunk::{Chunk, Ids, Key, Origin};
use crate::{Info, Object, Result};
use rustc_hash::FxHashMap;

/// Collects the events of a capture in order of time.
#[derive(Default)]
pub struct Requests {
    join: Join,
    objects: Ids,
    actors: Ids,
    comms: FxHashMap<u32, String>,
    genesis: Option<u64>,
    /// Events since the last delivery that make no request.
    pub other: u64,
    /// Events that the capture lost.
    pub lost: u64,
}

impl Requests {
    /// Takes the time of an event: that of the first one is the trace's zero.
    pub fn begin(&mut self, time: u64) {
        self.genesis.get_or_insert(time);
    }

    /// Takes an event.
    pub fn take(&mut self, event: &Event) {
        self.begin(event.time);
        match event.action {
            _ if event.category.contains(Category::PC) => self.other += 1,
            Action::Queue => {
                let object = self.objects.number(u64::from(event.device));
                let actor = self.actors.number(u64::from(event.pid));
                self.join.queue(event, object, actor);
            }
            Action::Complete => self.join.complete(event),
            Action::Issue => {
                self.other += 1;
                self.join.issue(event);
            }
            Action::Other => self.other += 1,
        }
    }

    /// Learns the name of a process; the first one stands.
    pub fn name(&mut self, pid: u32, comm: &[u8]) {
        self.comms.entry(pid).or_insert_with(|| String::from_utf8_lossy(comm).into_owned());
    }

    /// Moves the requests whose fate is known to a chunk; all of them when the capture has `ended`. Whether
    /// there may be more.
    ///
    /// # Errors
    /// When there are too many devices or processes.
    pub fn deliver(&mut self, chunk: &mut Chunk, ended: bool) -> Result<bool> {
        self.objects.check()?;
        self.actors.check()?;
        chunk.other += std::mem::take(&mut self.other);
        self.join.deliver(&mut chunk.batch, ended);
        chunk.origin = Origin::Unknown;
        Ok(!ended || !chunk.batch.is_empty() || chunk.other > 0)
    }

    /// Adds what is known.
    pub fn info(&self, info: &mut Info) {
        info.objects = self.objects.objects();
        for (object, key) in info.objects.iter_mut().zip(self.objects.keys()) {
            if let Key::Number(device) = key {
                object.name = format!("{},{}", device >> 20, device & 0xf_ffff);
            }
        }
        info.actors = self.actors.objects();
        for Object { name, .. } in &mut info.actors {
            if let Some(comm) = name.parse().ok().and_then(|pid: u32| self.comms.get(&pid)) {
                *name = format!("{name} {comm}");
            }
        }
        info.counts.lost = info.counts.lost.saturating_add(self.lost);
        info.counts.unfinished += self.join.unfinished;
        info.counts.failed += self.join.failed;
        if self.join.orphans > 0 {
            let n = self.join.orphans;
            info.warnings.push(format!("{n} completions belong to requests queued before the capture began"));
        }
        if self.lost > 0 {
            info.warnings.push(format!("the capture lost {} events", self.lost));
        }
    }

    /// Time of the first event.
    pub fn zero(&self) -> Option<i64> {
        self.genesis.map(u64::cast_signed)
    }
}
