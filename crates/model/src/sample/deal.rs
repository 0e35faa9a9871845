//! Which of a window's draws go to which part of it.

use super::decode::below;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BinaryHeap;

/// A drawn cell's key and the gap drawn from it.
pub(super) type Draw = (u64, i64);

/// A stretch of time and how many requests lie in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// When it starts, nanoseconds.
    pub start: i64,
    /// When it ends.
    pub end: i64,
    /// Requests in it.
    pub requests: usize,
}

/// Orders independent draws (key, gap) so that those of each part come together and their gaps about
/// fill it: long gaps go where there is time for them, the longest first, so that few must be cut.
///
/// The order of independent draws is free, so this changes nothing of their histogram. Answers up to
/// which length gaps were dealt blindly.
pub(super) fn deal(draws: &mut Vec<Draw>, parts: &[Part], now: i64, rng: &mut Xoshiro256PlusPlus) -> i64 {
    if parts.len() < 2 {
        return i64::MAX;
    }
    // A part also has the time since the last request, that of empty parts before it.
    let mut last = now;
    let mut room: Vec<i64> = Vec::with_capacity(parts.len());
    for part in parts {
        room.push(part.end - last);
        last = part.end;
    }
    let blindly = room.iter().copied().min().unwrap_or(0) / 8;
    // Short gaps are dealt blindly, so only few draws need sorting.
    let (mut long, short): (Vec<Draw>, Vec<Draw>) = draws.iter().partition(|d| d.1 > blindly);
    let mean = short.iter().map(|d| i128::from(d.1)).sum::<i128>() / (short.len().max(1) as i128);
    long.sort_unstable_by_key(|d| std::cmp::Reverse(d.1));
    let expected = |requests: usize| mean.saturating_mul(requests as i128).min(i128::from(i64::MAX)) as i64;
    let mut free: BinaryHeap<(i64, u64, usize)> = (parts.iter().enumerate())
        .filter(|(_, part)| part.requests > 0)
        .map(|(j, part)| (room[j].saturating_sub(expected(part.requests)), below(rng, u64::MAX), j))
        .collect();
    let mut dealt: Vec<Vec<Draw>> = parts.iter().map(|p| Vec::with_capacity(p.requests)).collect();
    for draw in long {
        let Some((left, luck, j)) = free.pop() else { break };
        dealt[j].push(draw);
        if dealt[j].len() < parts[j].requests {
            free.push((left.saturating_sub(draw.1), luck, j));
        }
    }
    let mut short = short.into_iter();
    draws.clear();
    for (mut hand, part) in dealt.into_iter().zip(parts) {
        hand.extend(short.by_ref().take(part.requests - hand.len()));
        // Long gaps came first; they belong anywhere in the part.
        for i in (1..hand.len()).rev() {
            hand.swap(i, below(rng, i as u64 + 1) as usize);
        }
        draws.extend(hand);
    }
    blindly
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::rand_core::SeedableRng;

    proptest! {
        #[test]
        fn nothing_is_lost(gaps in proptest::collection::vec(0i64..1000, 1..200), cuts in 1usize..20, seed in any::<u64>()) {
            let mut draws: Vec<(u64, i64)> = gaps.iter().enumerate().map(|(i, &g)| (i as u64, g)).collect();
            let parts: Vec<Part> = (0..cuts)
                .map(|j| Part {
                    start: j as i64 * 500,
                    end: (j as i64 + 1) * 500,
                    requests: gaps.len() * (j + 1) / cuts - gaps.len() * j / cuts,
                })
                .collect();
            let before = draws.clone();
            deal(&mut draws, &parts, 0, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
            draws.sort_unstable();
            prop_assert_eq!(draws, before);
        }
    }

    #[test]
    fn long_gaps_go_where_there_is_time() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        // A busy part, then three silent ones, then a request after them.
        let part = |j: i64, requests| Part { start: j * 100, end: (j + 1) * 100, requests };
        let parts = [part(0, 10), part(1, 0), part(2, 0), part(3, 0), part(4, 1)];
        let mut draws: Vec<(u64, i64)> = (0..11).map(|i| (i, if i == 3 { 350 } else { 9 })).collect();
        deal(&mut draws, &parts, 0, &mut rng);
        assert_eq!(draws[10], (3, 350));
    }
}
