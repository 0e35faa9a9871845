//! Which of the draws go to which part of the time line.

use super::decode::below;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BinaryHeap;

/// A drawn cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Draw {
    /// Its key.
    pub key: u64,
    /// Time since the request before, nanoseconds.
    pub gap: i64,
    /// Code of the alignment it asks for where it goes on; `None`: it does not go on.
    pub ends: Option<u32>,
}

/// A stretch of time and how many requests lie in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// When it starts, nanoseconds.
    pub start: i64,
    /// When it ends.
    pub end: i64,
    /// Requests in it.
    pub requests: usize,
    /// Which budget they are of.
    pub budget: usize,
}

/// Which draws belong where.
pub(super) struct Dealt {
    /// Draws with long gaps, by part.
    pub hands: Vec<Vec<Draw>>,
    /// Draws that may go to any part.
    pub rest: Vec<Draw>,
}

/// Deals draws so that the gaps of each part about fill it: long gaps go where there is
/// time for them, the longest first, so that few must be cut. The order of draws without replacement is
/// free, so this changes nothing of their histogram.
pub(super) fn deal(draws: Vec<Draw>, parts: &[Part], now: i64, rng: &mut Xoshiro256PlusPlus) -> Dealt {
    let mut hands: Vec<Vec<Draw>> = vec![Vec::new(); parts.len()];
    if parts.len() < 2 {
        return Dealt { hands, rest: draws };
    }
    // A part also has the time since the last request, that of empty parts before it.
    let mut last = now;
    let mut room: Vec<i64> = Vec::with_capacity(parts.len());
    for part in parts {
        room.push(part.end - last);
        last = part.end;
    }
    // Only few draws need sorting.
    let short = room.iter().copied().min().unwrap_or(0) / 8;
    let (mut long, rest): (Vec<Draw>, Vec<Draw>) = draws.iter().partition(|d| d.gap > short);
    let mean = rest.iter().map(|d| d.gap as f64).sum::<f64>() / rest.len().max(1) as f64;
    long.sort_unstable_by_key(|d| std::cmp::Reverse(d.gap));
    let expected = |requests: usize| (mean * requests as f64) as i64;
    let mut free: BinaryHeap<(i64, u64, usize)> = (parts.iter().enumerate())
        .filter(|(_, part)| part.requests > 0)
        .map(|(j, part)| (room[j].saturating_sub(expected(part.requests)), below(rng, u64::MAX), j))
        .collect();
    for draw in long {
        let Some((left, luck, j)) = free.pop() else { break };
        hands[j].push(draw);
        if hands[j].len() < parts[j].requests {
            free.push((left.saturating_sub(draw.gap), luck, j));
        }
    }
    Dealt { hands, rest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::rand_core::SeedableRng;

    fn draw(key: u64, gap: i64) -> Draw {
        Draw { key, gap, ends: None }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_part_overflows(gaps in proptest::collection::vec(0i64..1000, 1..200), cuts in 1usize..20, seed in any::<u64>()) {
            let mut draws: Vec<Draw> = gaps.iter().zip(0..).map(|(&gap, key)| draw(key, gap)).collect();
            let parts: Vec<Part> = (0..cuts)
                .map(|j| Part {
                    start: j as i64 * 500,
                    end: (j as i64 + 1) * 500,
                    requests: gaps.len() * (j + 1) / cuts - gaps.len() * j / cuts,
                    budget: 0,
                })
                .collect();
            let dealt = deal(draws.clone(), &parts, 0, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
            prop_assert!(dealt.hands.iter().zip(&parts).all(|(hand, part)| hand.len() <= part.requests));
            let mut all = [dealt.hands.concat(), dealt.rest].concat();
            all.sort_unstable_by_key(|d| d.key);
            draws.sort_unstable_by_key(|d| d.key);
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
        assert_eq!(deal(draws, &parts, 0, &mut rng).hands[4], [draw(3, 350)]);
    }
}
