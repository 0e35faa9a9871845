//! Where a source's requests lie on the targets: looked up for a whole batch before any is due.

use crate::request::{ATOMIC, DSYNC, FAILED, NEVER, Request, lack, op};
use crate::{Error, Result};
use loadstone_plan::{Backend, Extent, Offsets, Order, Pace, Plan, SyncMode, TargetKind, Worker};
use loadstone_trace::tree::Lack;
use loadstone_trace::{Batch, NO_OBJECT, NONE, Op, flag};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

const MOST: u64 = loadstone_plan::MAX_TRANSFER;
/// Offsets are scaled, and targets cut off when wrapping, in units of this.
const BLOCK: u64 = 4096;

/// An object's place, with all lookups done.
#[derive(Clone, Copy)]
struct Slot {
    target: u16,
    base: u64,
    /// Usable bytes of the target.
    room: u64,
    /// End of the last extent on that target, for scaling.
    span: u64,
    recorded_sync: bool,
    /// Flags of its writes.
    write_flags: u8,
}

/// PathLocks rows of a source into requests on targets.
pub struct Placer {
    worker: usize,
    slots: Vec<Option<Slot>>,
    offsets: Offsets,
    /// 1/speed where the pace is open.
    stretch: Option<f64>,
    /// What think times are multiplied with, where requests wait for others.
    think: Option<f64>,
    /// Requests go to names.
    named: bool,
    /// Rows to come that lack something.
    lacks: VecDeque<(u64, Lack)>,
    row: u64,
}

impl Placer {
    /// For worker number `worker` of `plan`; target numbers are positions in `plan.targets`.
    ///
    /// # Errors
    /// When what the plan maps to a target does not fit it.
    pub fn new(plan: &Plan, worker: usize) -> Result<Placer> {
        let w: &Worker = &plan.workers[worker];
        let mut slots = Vec::new();
        let numbers: FxHashMap<_, _> =
            plan.targets.iter().map(|target| target.id.as_str()).zip(0..).collect();
        let mut spans = vec![1; plan.targets.len()];
        let target = |extent: &Extent| numbers[extent.target.as_str()];
        for extent in &w.map.objects {
            let span: &mut u64 = &mut spans[target(extent)];
            *span = extent.base.saturating_add(extent.size).max(*span);
        }
        for extent in &w.map.objects {
            let target = target(extent);
            let (room, span) = (plan.targets[target].size, spans[target]);
            // Keep alignment: a target of 10,000 bytes wraps at 8,192.
            let room =
                if w.map.offsets == Offsets::Error || room < BLOCK { room } else { room / BLOCK * BLOCK };
            let recorded_sync = plan.targets[target].sync == SyncMode::Recorded
                && plan.targets[target].kind != TargetKind::Null;
            let object = extent.object as usize;
            if object >= 1 << 24 {
                return Err(Error::Request {
                    worker,
                    row: 0,
                    what: format!("object {object} is beyond the {} objects a map can hold", 1 << 24),
                });
            }
            if slots.len() <= object {
                slots.resize(object + 1, None);
            }
            let write_flags = if plan.targets[target].atomic { ATOMIC } else { 0 };
            slots[object] = Some(Slot {
                target: target as u16,
                base: extent.base,
                room,
                span,
                recorded_sync,
                write_flags,
            });
        }
        let stretch = match w.pace {
            Pace::Closed => None,
            Pace::Open { speed } => Some(1.0 / speed),
        };
        let named = w.backend == Backend::Files;
        let think = (w.order == Order::Dependency).then(|| if w.think > 0.0 { 1.0 / w.think } else { 0.0 });
        Ok(Placer {
            worker,
            slots,
            offsets: w.map.offsets,
            stretch,
            think,
            named,
            lacks: VecDeque::new(),
            row: 0,
        })
    }

    /// Says which rows lack something, in their order.
    pub fn lacking(&mut self, rows: &[(u64, Lack)]) {
        self.lacks = rows.iter().copied().collect();
    }

    /// The read of `size` bytes at the beginning of an extent, where all requests of that size within it lie where they
    /// say and wait for nothing; else nothing.
    pub fn first(&self, extent: &Extent, size: u64) -> Option<Request> {
        let slot = (*self.slots.get(extent.object as usize)?)?;
        let fits = extent.base.checked_add(extent.size)? <= slot.room && size <= MOST;
        let plain = self.stretch.is_none() && self.think.is_none() && !self.named;
        (fits && plain && self.offsets != Offsets::Scale).then(|| Request {
            offset: slot.base,
            size,
            completed: NEVER,
            target: slot.target,
            write_flags: slot.write_flags,
            ..Request::default()
        })
    }

    fn refuse<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(Error::Request { worker: self.worker, row: self.row, what: what.into() })
    }

    /// Appends the rows `range` of `batch` to `out`.
    ///
    /// # Errors
    /// When a request fits no target.
    pub fn place(
        &mut self,
        batch: &Batch,
        range: std::ops::Range<usize>,
        out: &mut Vec<Request>,
    ) -> Result<()> {
        for i in range {
            if self.named {
                out.push(self.by_name(batch, i)?);
            } else {
                self.one(batch, i, out)?;
            }
            if let (Some(factor), Some(request)) = (self.think, out.last_mut()) {
                wait(batch, i, factor, request);
            }
            self.row += 1;
        }
        Ok(())
    }

    /// Row `i` as a request that goes to names.
    fn by_name(&mut self, batch: &Batch, i: usize) -> Result<Request> {
        let (time, latency) = (batch.time[i], batch.latency[i]);
        let result = batch.result.get(i).copied().unwrap_or(NONE);
        let known = |value: i64| if value == NONE { 0 } else { value.max(0).unsigned_abs() };
        let (code, size) = (batch.op[i], known(batch.size[i]));
        if size > MOST && matches!(Op::from_code(code), Some(Op::Read | Op::Write)) {
            return self.refuse(format!("transfers {size} bytes; one request can move at most {MOST}"));
        }
        let failed = if result < 0 && result != NONE { FAILED } else { 0 };
        let lacking = match self.lacks.front().filter(|(row, _)| *row == self.row) {
            Some((_, Lack::File)) => lack::FILE,
            Some((_, Lack::Directory)) => lack::DIRECTORY,
            Some((_, Lack::Nothing)) => lack::NOTHING,
            None => 0,
        };
        if lacking != 0 {
            self.lacks.pop_front();
        }
        Ok(Request {
            due: self.due(time),
            offset: known(batch.offset[i]),
            size,
            submitted: time,
            completed: if latency == NONE { NEVER } else { time.saturating_add(latency) },
            flags: batch.flags[i] & !(FAILED | lack::ANY) | failed | lacking,
            actor: batch.actor[i],
            op: code,
            object: batch.object[i],
            other: batch.other.get(i).copied().unwrap_or(NO_OBJECT),
            ..Request::default()
        })
    }

    #[inline(always)]
    fn due(&self, time: i64) -> i64 {
        self.stretch.map_or(0, |s| if s == 1.0 { time } else { (time as f64 * s) as i64 })
    }

    /// Appends row `i`; returned as a value, a request would be copied twice.
    #[inline(always)]
    fn one(&self, batch: &Batch, i: usize, out: &mut Vec<Request>) -> Result<()> {
        let (object, code) = (batch.object[i], batch.op[i]);
        let Some(Some(slot)) = self.slots.get(object as usize) else {
            return self.refuse(format!(
                "object {object} has no place on a target; add it with --map {object}=TARGET"
            ));
        };
        let code = if usize::from(code) < op::COUNT { code } else { self.of_blocks(code)? };
        let time = batch.time[i];
        let latency = batch.latency[i];
        let flags = batch.flags[i];
        let (mut offset, mut size) = (0, 0);
        if code != op::FLUSH {
            if batch.offset[i] < 0 || batch.size[i] < 0 {
                return self.refuse(match (batch.offset[i], batch.size[i]) {
                    (NONE, _) | (_, NONE) => "has no offset or no size, so it cannot be placed".into(),
                    (o, s) => format!("offset {o} and size {s} must not be negative"),
                });
            }
            size = batch.size[i] as u64;
            offset = self.fit(slot, batch.offset[i] as u64, size)?;
            if size > MOST && code != op::DISCARD {
                return self.refuse(format!("transfers {size} bytes; one request can move at most {MOST}"));
            }
        }
        let stable =
            slot.recorded_sync && code == op::WRITE && flags & (flag::FUA | flag::SYNC | flag::STABLE) != 0;
        out.push(Request {
            due: self.due(time),
            offset,
            size,
            submitted: time,
            completed: if latency == NONE { NEVER } else { time.saturating_add(latency) },
            flags,
            actor: batch.actor[i],
            tag: 0,
            target: slot.target,
            op: code,
            write_flags: slot.write_flags | if stable { DSYNC } else { 0 },
            object: 0,
            other: 0,
        });
        Ok(())
    }

    /// The op on a block target that one of files comes to.
    #[cold]
    fn of_blocks(&self, code: u8) -> Result<u8> {
        match Op::from_code(code) {
            Some(Op::Sync | Op::Datasync | Op::Commit) => Ok(op::FLUSH),
            known => {
                let name = known.map_or_else(|| code.to_string(), |op| op.name().into());
                self.refuse(format!(
                    "op {name} cannot be performed on a block target; keep read, write, flush and discard only"
                ))
            }
        }
    }

    #[inline]
    fn fit(&self, slot: &Slot, offset: u64, size: u64) -> Result<u64> {
        let Some(whole) = slot.base.checked_add(offset) else {
            return self.refuse(format!("offset {offset} is beyond any target"));
        };
        if self.offsets == Offsets::Error {
            return match whole.checked_add(size) {
                Some(end) if end <= slot.room => Ok(whole),
                _ => self.refuse(format!(
                    "ends at byte {} of a target of {} bytes; use a larger target, or --offsets wrap or scale",
                    whole.saturating_add(size),
                    slot.room
                )),
            };
        }
        if size > slot.room {
            return self
                .refuse(format!("needs {size} bytes but the target has {}; use a larger target", slot.room));
        }
        let start = match self.offsets {
            Offsets::Scale => {
                (u128::from(whole) * u128::from(slot.room) / u128::from(slot.span)) as u64 / BLOCK * BLOCK
            }
            _ if whole < slot.room => whole,
            _ => whole % slot.room,
        };
        if start + size <= slot.room {
            return Ok(start);
        }
        // Never across the end: moved back to the last place with the same alignment.
        let align = 1u64 << (start | BLOCK).trailing_zeros();
        Ok((slot.room - size) & !(align - 1))
    }
}

/// Has a request wait for another as row `i` says: its due time then counts from the other's completion.
fn wait(batch: &Batch, i: usize, factor: f64, request: &mut Request) {
    request.tag = batch.after.get(i).copied().unwrap_or(0);
    if request.tag > 0 {
        request.due = (batch.think[i].max(0) as f64 * factor) as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(offsets: &str, size: u64, extents: &[(u32, u64, u64)]) -> Plan {
        let objects: Vec<_> = extents
            .iter()
            .map(
                |(o, base, size)| serde_json::json!({"object": o, "target": "t", "base": base, "size": size}),
            )
            .collect();
        let json = serde_json::json!({
            "version": 1,
            "targets": [{"id": "t", "kind": "null", "size": size}],
            "workers": [{"source": {"kind": "uniform", "reads": 1.0, "size": 4096}, "backend": "null",
                         "map": {"objects": objects, "offsets": offsets}}],
            "steps": [{"step": "run"}],
        });
        Plan::parse(&json.to_string()).unwrap()
    }

    fn row(object: u32, op: u8, offset: i64, size: i64) -> Batch {
        Batch {
            time: vec![0],
            op: vec![op],
            object: vec![object],
            offset: vec![offset],
            size: vec![size],
            latency: vec![NONE],
            flags: vec![0],
            actor: vec![0],
            ..Batch::default()
        }
    }

    fn placed(plan: &Plan, batch: &Batch) -> Result<Request> {
        let mut out = Vec::new();
        Placer::new(plan, 0)?.place(batch, 0..1, &mut out)?;
        Ok(out[0])
    }

    proptest! {
        #[test]
        fn wrapped_and_scaled_requests_stay_inside_and_aligned(
            room in 64u64..1 << 20, offset in 0i64..1 << 40, blocks in 1i64..32, scale: bool,
        ) {
            let (room, offset) = (room * 4096 + 77, offset / 4096 * 4096);
            let p = plan(if scale { "scale" } else { "wrap" }, room, &[(0, 0, 1 << 41)]);
            let r = placed(&p, &row(0, op::READ, offset, blocks * 4096)).unwrap();
            prop_assert!(r.offset + r.size <= room);
            prop_assert_eq!(r.offset % 4096, 0);
            if !scale && (offset + blocks * 4096) as u64 <= room / 4096 * 4096 {
                prop_assert_eq!(r.offset, offset as u64);
            }
        }
    }

    #[test]
    fn what_cannot_be_placed_is_refused_with_its_row() {
        let p = plan("error", 1 << 20, &[(0, 0, 1 << 19), (1, 1 << 19, 1 << 19)]);
        assert_eq!(placed(&p, &row(1, op::WRITE, 4096, 4096)).unwrap().offset, (1 << 19) + 4096);
        for (batch, text) in [
            (row(2, 0, 0, 1), "object 2 has no place"),
            (row(0, 16, 0, 1), "op open cannot be performed"),
            (row(0, 0, NONE, 1), "no offset"),
            (row(0, 0, -5, 1), "must not be negative"),
            (row(1, 0, 1 << 19, 1), "--offsets wrap or scale"),
        ] {
            let error = placed(&p, &batch).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("request 0"), "{error}");
        }
        assert_eq!(placed(&p, &row(0, op::FLUSH, NONE, NONE)).unwrap().size, 0);
    }
}
