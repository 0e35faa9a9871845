//! Where in their files the last requests began.

use crate::feature::recent::REACH;
use crate::random::{Random, below};
use std::collections::{BTreeMap, VecDeque};

/// Places looked at for one that will do.
const LOOKS: usize = 16;

/// Places of one file.
#[derive(Default)]
struct Places {
    /// Number of the request and its offset, oldest first.
    requests: VecDeque<(u64, i64)>,
    /// Number of the last request by offset.
    last: BTreeMap<i64, u64>,
}

/// The last [`REACH`] requests that have an offset.
#[derive(Default)]
pub(crate) struct RecentOffsets {
    files: Vec<Places>,
    /// Files of the requests, oldest first.
    order: VecDeque<u32>,
    next: u64,
}

impl RecentOffsets {
    /// Takes the next request.
    pub fn note(&mut self, object: u32, offset: i64) {
        let at = object as usize;
        if at >= self.files.len() {
            self.files.resize_with(at + 1, Places::default);
        }
        if self.order.len() == REACH
            && let Some(oldest) = self.order.pop_front()
        {
            let places = &mut self.files[oldest as usize];
            if let Some((number, offset)) = places.requests.pop_front()
                && places.last.get(&offset) == Some(&number)
            {
                places.last.remove(&offset);
            }
        }
        let places = &mut self.files[at];
        places.requests.push_back((self.next, offset));
        places.last.insert(offset, self.next);
        self.order.push_back(object);
        self.next += 1;
    }

    /// Whether a request began at an offset of a file.
    pub fn has(&self, object: u32, offset: i64) -> bool {
        self.files.get(object as usize).is_some_and(|places| places.last.contains_key(&offset))
    }

    /// An offset where a request began as many requests ago as a range says, and none since.
    pub fn ago(
        &self,
        object: u32,
        (low, high): (i64, i64),
        rng: &mut Random,
        fits: impl Fn(i64) -> bool,
    ) -> Option<i64> {
        let places = self.files.get(object as usize)?;
        let oldest = self.next.saturating_sub(high.max(0) as u64);
        let newest = self.next.saturating_sub(low.max(0) as u64);
        let first = places.requests.partition_point(|(number, _)| *number < oldest);
        let end = places.requests.partition_point(|(number, _)| *number <= newest);
        let n = end.checked_sub(first).filter(|n| *n > 0)?;
        let start = below(rng, n as u64) as usize;
        (0..n.min(LOOKS))
            .map(|i| places.requests[first + (start + i) % n])
            .find(|(number, offset)| places.last.get(offset) == Some(number) && fits(*offset))
            .map(|(_, offset)| offset)
    }

    /// An offset between two where a request began.
    pub fn between(
        &self,
        object: u32,
        (low, high): (i64, i64),
        rng: &mut Random,
        fits: impl Fn(i64) -> bool,
    ) -> Option<i64> {
        let places = self.files.get(object as usize)?;
        if low > high {
            return None;
        }
        let start = low + below(rng, high.abs_diff(low).saturating_add(1)) as i64;
        let all = places.last.range(start..=high).chain(places.last.range(low..start));
        all.map(|(offset, _)| *offset).take(LOOKS).find(|offset| fits(*offset))
    }
}
