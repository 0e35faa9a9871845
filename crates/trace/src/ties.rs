//! Requests that a coarse clock gave one time, spread evenly until it ticks again.

use crate::look::Look;
use crate::order::append;
use crate::{Batch, Error, ErrorKind, Result};

/// Most requests of one time that are held back.
const MOST: usize = 1 << 22;

/// Requests that are looked at for how the clock ticks.
const LOOK: usize = 1 << 16;

/// Spreads requests of one time over the tick that the clock took.
#[derive(Debug)]
pub struct Ties {
    /// Nanoseconds, as the source declares them.
    declared: i64,
    /// As they show in the times, once enough were seen.
    tick: Option<i64>,
    /// Requests of one time, which may not be all of them yet.
    held: Batch,
    /// Requests whose time was changed.
    pub spread: u64,
}

impl Ties {
    /// Of a clock that is said to tick every so many nanoseconds.
    pub fn new(declared: i64) -> Ties {
        Ties { declared, tick: None, held: Batch::default(), spread: 0 }
    }

    /// The tick that requests are spread over, once it is known; 1 where the clock is not coarse, so none are.
    pub fn tick(&self) -> Option<i64> {
        self.tick
    }

    /// Takes requests in order of time and replaces them by those whose group is whole; all when `ended`.
    ///
    /// # Errors
    /// When too many have one time.
    pub fn take(&mut self, batch: &mut Batch, ended: bool) -> Result<()> {
        append(&mut self.held, batch, 0..batch.len());
        batch.clear();
        let Some(&last) = self.held.time.last() else { return Ok(()) };
        if self.tick.is_none() && self.held.len() < LOOK && !ended {
            return Ok(());
        }
        let tick = *self.tick.get_or_insert_with(|| {
            let mut look = Look::default();
            look.add(&self.held);
            look.clock(self.declared).max(1)
        });
        if tick == 1 {
            std::mem::swap(batch, &mut self.held);
            return Ok(());
        }
        let whole = if ended { self.held.len() } else { self.held.time.partition_point(|time| *time < last) };
        if self.held.len() - whole > MOST {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("more than {MOST} requests have one time, and spreading must hold them"),
            )
            .help("read the trace without `spread_ties`"));
        }
        let rest = whole..self.held.len();
        append(batch, &self.held, 0..whole);
        let mut left = Batch::default();
        append(&mut left, &self.held, rest);
        self.held = left;
        let mut from = 0;
        while from < batch.len() {
            let time = batch.time[from];
            let group = batch.time[from..].iter().take_while(|t| **t == time).count();
            // A clock that was said to be coarse may tick in between all the same.
            let next = batch.time.get(from + group).or(self.held.time.first());
            let room = next.map_or(tick, |next| tick.min(next.saturating_sub(time)));
            for (k, time) in batch.time[from..from + group].iter_mut().enumerate().skip(1) {
                let shift = i128::from(room) * k as i128 / group as i128;
                *time = time.saturating_add(shift as i64);
                self.spread += 1;
            }
            from += group;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn batch(times: &[i64]) -> Batch {
        let n = times.len();
        Batch {
            time: times.to_vec(),
            op: vec![0; n],
            object: (0..n as u32).collect(),
            offset: vec![0; n],
            size: vec![0; n],
            latency: vec![0; n],
            flags: vec![0; n],
            actor: vec![0; n],
            ..Batch::default()
        }
    }

    proptest! {
        #[test]
        fn groups_are_spread_however_they_are_cut(sizes in prop::collection::vec(1usize..20, 1..20), cut in 1usize..15) {
            let times: Vec<i64> = sizes.iter().zip(0i64..).flat_map(|(n, t)| vec![t * 1000; *n]).collect();
            let (mut ties, mut found) = (Ties::new(1000), Vec::new());
            for part in times.chunks(cut) {
                let mut b = batch(part);
                ties.take(&mut b, false)?;
                found.extend(b.time);
            }
            let mut rest = Batch::default();
            ties.take(&mut rest, true)?;
            found.extend(rest.time);
            let expected: Vec<i64> = sizes.iter().zip(0i64..)
                .flat_map(|(n, t)| (0..*n as i64).map(move |k| t * 1000 + 1000 * k / *n as i64)).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(ties.spread as usize, times.len() - sizes.len());
        }
    }

    #[test]
    fn a_tick_in_between_is_not_passed() {
        let (mut ties, mut all) = (Ties::new(1000), batch(&[0, 0, 0, 0, 6, 6, 5000]));
        ties.take(&mut all, true).unwrap();
        assert_eq!(all.time, [0, 1, 3, 4, 6, 506, 5000]);
    }

    /// Where times had fractions of the declared second, requests were spread over all of it.
    #[test]
    fn the_tick_is_the_one_that_shows() {
        let times: Vec<i64> = (0..60).map(|i| i / 3 * 100 + i / 51 * 900).collect();
        let (mut ties, mut all) = (Ties::new(100_000), batch(&times));
        ties.take(&mut all, false).unwrap();
        assert!(all.is_empty() && ties.tick().is_none());
        ties.take(&mut all, true).unwrap();
        assert_eq!((ties.tick(), ties.spread), (Some(100), 40));
        assert_eq!(all.time[48..54], [1600, 1633, 1666, 2600, 2633, 2666]);
        let (mut ties, mut all) = (Ties::new(1), batch(&[0, 0, 6]));
        ties.take(&mut all, true).unwrap();
        assert_eq!((all.time, ties.tick(), ties.spread), (vec![0, 0, 6], Some(1), 0));
    }
}
