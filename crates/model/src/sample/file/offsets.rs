//! Where in its file a generated request goes.

use crate::feature::PAGE;
use crate::feature::node::Need;
use crate::random::{Random, below};
use crate::sample::file::recent_offsets::RecentOffsets;
use loadstone_trace::Op;

/// Places looked at for one that was not used.
const LOOKS: usize = 32;

/// What is in a file, bytes.
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    /// Where the next request goes on.
    pub position: i64,
    /// How far the file is known to reach; what is beyond may have been there at the start, unless it is fresh.
    pub end: i64,
    pub fresh: bool,
    /// How far requests reached.
    pub reached: i64,
    /// How far requests are to reach, at least and at most.
    pub least: i64,
    pub limit: i64,
}

/// Whether a request goes to a place that was used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// The model does not say.
    Any,
    /// Not among the last requests.
    New,
    /// Some time.
    Used,
    /// So many requests ago.
    Ago(i64, i64),
}

/// What a request asks of its file.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub op: Op,
    pub result: i64,
    pub need: Need,
    /// Bytes moved.
    pub size: i64,
    /// Distance from the file's position, [`NONE`] if that does not say where it goes.
    pub seek: i64,
    /// Smallest and largest distance.
    pub seeks: (i64, i64),
    pub again: Again,
    /// Whether it must lie within the file.
    pub strict: bool,
}

impl Reach {
    /// Whether an op finds no more in the file than is known to be in it.
    pub fn ends_now(&self, op: Op) -> bool {
        self.fresh && op == Op::Read
    }

    /// Whether a request at an offset lies in the file.
    pub fn holds(&self, offset: i64, wanted: &Wanted) -> bool {
        let end = offset.saturating_add(wanted.size);
        let most = if self.ends_now(wanted.op) { self.end } else { self.limit };
        offset >= 0 && (wanted.size == 0 || end <= most)
    }

    /// Where in its file a request goes, if it lies in that: best to an offset that `suits`.
    pub fn offset(
        &self,
        recent_offsets: &RecentOffsets,
        file: Option<u32>,
        wanted: &Wanted,
        rng: &mut Random,
        suits: impl Fn(i64) -> bool,
    ) -> Option<i64> {
        let holds = |offset: i64| self.holds(offset, wanted);
        let short = self.reached < self.least && !self.ends_now(wanted.op);
        // Some request must reach as far as the file does: the first that can.
        let reach = |(low, high): (i64, i64)| {
            let (first, last) = ((self.least - wanted.size).max(low), (self.limit - wanted.size).min(high));
            let last = aligned(last, wanted.size);
            (short && first <= last && holds(last)).then_some(last)
        };
        if let Again::Ago(low, high) = wanted.again {
            return reach((0, i64::MAX)).or_else(|| {
                let mut ago = |fits: &dyn Fn(i64) -> bool| recent_offsets.ago(file?, (low, high), rng, fits);
                ago(&|at| holds(at) && suits(at)).or_else(|| ago(&holds))
            });
        }
        let offset = self.position.saturating_add(wanted.seek);
        let (low, high) = wanted.seeks;
        if low == high {
            return holds(offset).then_some(offset);
        }
        let (low, high) = (self.position.saturating_add(low).max(0), self.position.saturating_add(high));
        if let Some(offset) = reach((low, high)) {
            return Some(offset);
        }
        match (wanted.again, file) {
            (Again::Used, Some(file)) => {
                let mut between =
                    |fits: &dyn Fn(i64) -> bool| recent_offsets.between(file, (low, high), rng, fits);
                between(&|at| holds(at) && suits(at)).or_else(|| between(&holds))
            }
            _ => {
                let step = alignment(wanted.size);
                let first = low.saturating_add((-low).rem_euclid(step));
                let n = high.min(self.limit).checked_sub(first).filter(|n| *n >= 0)? / step + 1;
                let other = |offset: &i64| {
                    wanted.again != Again::New || !file.is_some_and(|file| recent_offsets.has(file, *offset))
                };
                let mut found = None;
                for _ in 0..LOOKS {
                    let offset = first + below(rng, n as u64) as i64 * step;
                    if !holds(offset) || !other(&offset) {
                        continue;
                    }
                    if suits(offset) {
                        return Some(offset);
                    }
                    found = Some(offset);
                }
                found
            }
        }
    }
}

/// What the offset of a request of this size is a multiple of, as a rule: of what its size is, up to a page.
fn alignment(size: i64) -> i64 {
    if size == 0 { 1 } else { (size & -size).min(PAGE) }
}

fn aligned(offset: i64, size: i64) -> i64 {
    offset - offset.rem_euclid(alignment(size))
}
