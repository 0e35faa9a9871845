//! How requests concentrate on regions of the objects.

use rustc_hash::FxHashMap;
use serde::Serialize;

/// Most regions counted; when there are more, regions become twice as long.
const MOST: usize = 1 << 19;

/// Requests by region.
#[derive(Debug)]
pub struct Popularity {
    /// Region length as a power of two.
    shift: u32,
    counts: FxHashMap<(u32, u64), u64>,
    objects: usize,
}

/// Popularity as it is shown.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Shown {
    /// Length of a region, bytes.
    pub region_bytes: u64,
    /// Regions touched.
    pub regions: u64,
    /// Share of the requests that go to the most popular 1 % of the touched regions.
    pub top_1_percent: f64,
    /// The same for 10 %.
    pub top_10_percent: f64,
    /// Share of the touched regions, most popular first, and the share of requests on them.
    pub curve: Vec<(f64, f64)>,
}

impl Default for Popularity {
    fn default() -> Self {
        Popularity { shift: 20, counts: FxHashMap::default(), objects: 0 }
    }
}

impl Popularity {
    /// Counts a request at an offset.
    pub fn add(&mut self, object: u32, offset: u64) {
        *self.counts.entry((object, offset >> self.shift)).or_default() += 1;
        self.objects = self.objects.max(object as usize + 1);
        // Objects with one region each do not become fewer.
        if self.counts.len() > MOST.max(2 * self.objects) && self.shift < u64::BITS - 1 {
            self.shift += 1;
            let mut merged = FxHashMap::default();
            for ((object, region), n) in self.counts.drain() {
                *merged.entry((object, region >> 1)).or_default() += n;
            }
            self.counts = merged;
        }
    }

    /// As it is shown; `None` when no request has an offset.
    pub fn show(&self) -> Option<Shown> {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        if counts.is_empty() {
            return None;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let total: u64 = counts.iter().sum();
        let regions = counts.len();
        let mut curve = Vec::new();
        let (mut seen, mut next) = (0, 0.0);
        let share = |fraction: f64| {
            let n = ((regions as f64 * fraction).ceil() as usize).clamp(1, regions);
            counts[..n].iter().sum::<u64>() as f64 / total as f64
        };
        for (index, n) in counts.iter().enumerate() {
            seen += n;
            let at = (index + 1) as f64 / regions as f64;
            if at >= next || index + 1 == regions {
                curve.push((at, seen as f64 / total as f64));
                // Close together at the popular end, where the curve bends.
                next = (at * 1.1).max(at + 1e-4);
            }
        }
        Some(Shown {
            region_bytes: 1 << self.shift,
            regions: regions as u64,
            top_1_percent: share(0.01),
            top_10_percent: share(0.1),
            curve,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_found() {
        let mut popularity = Popularity::default();
        for region in 0..100u64 {
            for _ in 0..if region == 7 { 101 } else { 1 } {
                popularity.add(0, region << 20);
            }
        }
        let shown = popularity.show().unwrap();
        assert_eq!((shown.regions, shown.region_bytes), (100, 1 << 20));
        assert!((shown.top_1_percent - 101.0 / 200.0).abs() < 1e-12);
        assert!((shown.top_10_percent - 110.0 / 200.0).abs() < 1e-12);
    }

    #[test]
    fn more_objects_than_regions_are_told_too() {
        let mut popularity = Popularity::default();
        for object in 0..MOST as u32 + 10 {
            popularity.add(object, 1 << 40);
        }
        let shown = popularity.show().unwrap();
        assert_eq!((shown.region_bytes, shown.regions), (1 << 20, MOST as u64 + 10));
        popularity.add(0, u64::MAX);
        assert_eq!(popularity.show().unwrap().regions, MOST as u64 + 11);
    }

    #[test]
    fn regions_grow_when_there_are_many() {
        let mut popularity = Popularity::default();
        for region in 0..2 * MOST as u64 {
            popularity.add(0, region << 20);
        }
        let shown = popularity.show().unwrap();
        assert_eq!((shown.region_bytes, shown.regions), (2 << 20, MOST as u64));
    }
}
