//! Which of the draws go to which part of the time line.

use crate::random::{Random, below};
use crate::sample::stream::Part;
use std::collections::BinaryHeap;

/// A drawn cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Draw {
    pub cell: u32,
    /// Where it waits for its turn.
    pub pool: u32,
    /// Time since the request before, nanoseconds.
    pub gap: i64,
}

/// Deals draws so that the gaps of each part about fill it: long gaps go where there is
/// time for them, the longest first, so that few must be cut. The order of draws without replacement is
/// free, so this changes nothing of their histogram.
pub(crate) struct Schedule {
    /// The time of each part.
    room: Vec<i64>,
    /// Only gaps above it need a part of their own.
    short: i64,
    long: Vec<Draw>,
    /// Of the others, how many they are and how much time they take.
    rest: (usize, f64),
}

impl Schedule {
    /// Of what is to be drawn for the parts; `now` is when the last request was.
    pub fn new(parts: &[Part], now: i64) -> Schedule {
        // A part also has the time since the last request, that of empty parts before it.
        let mut last = now;
        let room: Vec<i64> =
            parts.iter().map(|part| part.end - std::mem::replace(&mut last, part.end)).collect();
        let short = match &*room {
            [] | [_] => i64::MAX,
            _ => room.iter().copied().min().unwrap_or(0) / 8,
        };
        Schedule { room, short, long: Vec::new(), rest: (0, 0.0) }
    }

    /// Takes a draw that has a long gap; `false`: it may go to any part.
    #[inline]
    pub fn takes(&mut self, draw: Draw) -> bool {
        let takes = draw.gap > self.short;
        if takes {
            self.long.push(draw);
        } else {
            self.rest = (self.rest.0 + 1, self.rest.1 + draw.gap as f64);
        }
        takes
    }

    /// What was taken, by part.
    pub fn hands(mut self, parts: &[Part], rng: &mut Random) -> Vec<Vec<Draw>> {
        let mut hands: Vec<Vec<Draw>> = vec![Vec::new(); parts.len()];
        let mean = self.rest.1 / self.rest.0.max(1) as f64;
        self.long.sort_unstable_by_key(|d| std::cmp::Reverse(d.gap));
        let expected = |requests: usize| (mean * requests as f64) as i64;
        let mut free: BinaryHeap<(i64, u64, usize)> = (parts.iter().zip(self.room).enumerate())
            .filter(|(_, (part, _))| part.requests > 0)
            .map(|(j, (part, room))| (room.saturating_sub(expected(part.requests)), below(rng, u64::MAX), j))
            .collect();
        for draw in self.long {
            let Some((left, luck, j)) = free.pop() else { break };
            hands[j].push(draw);
            if hands[j].len() < parts[j].requests {
                free.push((left.saturating_sub(draw.gap), luck, j));
            }
        }
        hands
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    fn draw(cell: u32, gap: i64) -> Draw {
        Draw { cell, pool: 0, gap }
    }

    fn deal(draws: &[Draw], parts: &[Part], rng: &mut Xoshiro256PlusPlus) -> (Vec<Vec<Draw>>, Vec<Draw>) {
        let mut deal = Schedule::new(parts, 0);
        let rest = draws.iter().copied().filter(|draw| !deal.takes(*draw)).collect();
        (deal.hands(parts, rng), rest)
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_part_overflows(gaps in proptest::collection::vec(0i64..1000, 1..200), cuts in 1usize..20, seed in any::<u64>()) {
            let mut draws: Vec<Draw> = gaps.iter().zip(0..).map(|(&gap, cell)| draw(cell, gap)).collect();
            let parts: Vec<Part> = (0..cuts)
                .map(|j| Part {
                    start: j as i64 * 500,
                    end: (j as i64 + 1) * 500,
                    requests: gaps.len() * (j + 1) / cuts - gaps.len() * j / cuts,
                    budget: 0,
                })
                .collect();
            let (hands, rest) = deal(&draws, &parts, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
            prop_assert!(hands.iter().zip(&parts).all(|(hand, part)| hand.len() <= part.requests));
            let mut all = [hands.concat(), rest].concat();
            all.sort_unstable_by_key(|d| d.cell);
            draws.sort_unstable_by_key(|d| d.cell);
            prop_assert_eq!(all, draws);
        }
    }

    #[test]
    fn long_gaps_go_where_there_is_time() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        // A busy part, then three silent ones, then a request after them.
        let part = |j: i64, requests| Part { start: j * 100, end: (j + 1) * 100, requests, budget: 0 };
        let parts = [part(0, 10), part(1, 0), part(2, 0), part(3, 0), part(4, 1)];
        let draws: Vec<Draw> = (0..11).map(|i| draw(i, if i == 3 { 350 } else { 9 })).collect();
        assert_eq!(deal(&draws, &parts, &mut rng).0[4], [draw(3, 350)]);
    }
}
