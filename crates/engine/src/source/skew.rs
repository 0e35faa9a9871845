//! Random blocks of which some are hotter than others, spread over the space by a permutation.

use crate::source::random::{below, unit};
use loadstone_content::seed::{self, derive};
use loadstone_plan::{Skew, Zone};
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Draws ranks: 0 is the hottest block.
enum Rank {
    Uniform,
    /// By rejection-inversion, exact for any number of blocks.
    Zipf(Zipf<f64>),
    /// The power that a uniform number is raised to.
    Pareto(f64),
    HotCold {
        accesses: f64,
        hot: u64,
    },
    /// Share of the requests up to and with each zone, its first block and how many it has.
    Zones(Vec<(f64, u64, u64)>),
}

/// Draws blocks.
pub struct Blocks {
    rank: Rank,
    count: u64,
    place: Permutation,
}

impl Blocks {
    /// Of `count` blocks, at least one; `seed` says which are the hot ones. `None` for a law that cannot be drawn from,
    /// which the plan's check leaves none of.
    pub fn new(skew: &Skew, count: u64, seed: u64) -> Option<Blocks> {
        let rank = match skew {
            Skew::Uniform => Rank::Uniform,
            Skew::Zipf { exponent } => Rank::Zipf(Zipf::new(count as f64, *exponent).ok()?),
            Skew::Pareto { share } => Rank::Pareto(share.ln() / (1.0 - share).ln()),
            Skew::HotCold { accesses, space } => {
                let hot = ((space * count as f64).round() as u64).clamp(1, count);
                // Without cold blocks all requests go to hot ones.
                Rank::HotCold { accesses: if hot == count { 1.0 } else { *accesses }, hot }
            }
            Skew::Zones { zones } => Rank::Zones(placed(zones, count)),
        };
        Some(Blocks { rank, count, place: Permutation::new(count, seed) })
    }

    /// A block.
    #[inline]
    pub fn draw(&self, random: &mut Xoshiro256PlusPlus) -> u64 {
        let rank = match &self.rank {
            Rank::Uniform => return below(random, self.count),
            // Its ranks begin at 1.
            Rank::Zipf(law) => law.sample(random) as u64 - 1,
            Rank::Pareto(power) => (self.count as f64 * unit(random).powf(*power)) as u64,
            Rank::Zones(zones) => {
                let at = unit(random);
                let (_, first, blocks) =
                    zones[zones.partition_point(|zone| zone.0 <= at).min(zones.len() - 1)];
                return first + below(random, blocks);
            }
            Rank::HotCold { accesses, hot } => {
                if unit(random) < *accesses {
                    below(random, *hot)
                } else {
                    hot + below(random, self.count - hot)
                }
            }
        };
        self.place.of(rank.min(self.count - 1))
    }
}

/// Zones of `count` blocks; each has one block at least.
fn placed(zones: &[Zone], count: u64) -> Vec<(f64, u64, u64)> {
    let sum: f64 = zones.iter().map(|zone| zone.share).sum();
    let (mut share, mut space) = (0.0, 0.0);
    let block = |space: f64| ((space * count as f64).round() as u64).min(count);
    let mut found = Vec::new();
    for zone in zones {
        let first = block(space).min(count - 1);
        share += zone.share / sum;
        space += zone.space;
        if zone.share > 0.0 {
            found.push((share, first, (block(space).max(first + 1)) - first));
        }
    }
    found
}

/// Rounds of the network; with three or more, near ranks come to lie far apart.
const ROUNDS: usize = 4;

/// A permutation of the numbers below `count`, by a Feistel network over pairs (a number and its remainder), whose domain
/// is hardly larger than `count`; what falls beyond goes through it again (Black and Rogaway 2002).
pub struct Permutation {
    count: u64,
    rows: u64,
    columns: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Of `count` numbers, at least one.
    pub fn new(count: u64, seed: u64) -> Permutation {
        let columns = ((count as f64).sqrt() as u64).max(1);
        let keys = std::array::from_fn(|i| derive(seed, "round", i as u64));
        Permutation { count, rows: count.div_ceil(columns), columns, keys }
    }

    /// Where a number below `count` goes.
    #[inline]
    pub fn of(&self, number: u64) -> u64 {
        let mut at = number;
        loop {
            let (mut row, mut column) = (at / self.columns, at % self.columns);
            for keys in self.keys.chunks_exact(2) {
                row += scaled(mix(column, keys[0]), self.rows);
                row -= if row >= self.rows { self.rows } else { 0 };
                column += scaled(mix(row, keys[1]), self.columns);
                column -= if column >= self.columns { self.columns } else { 0 };
            }
            at = row * self.columns + column;
            if at < self.count {
                return at;
            }
        }
    }
}

/// Number `value ^ key` of what SplitMix64 draws from the seed 0, counted from 1.
#[inline(always)]
fn mix(value: u64, key: u64) -> u64 {
    seed::mix((value ^ key).wrapping_sub(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A number of 64 bits as one below `count`.
#[inline(always)]
fn scaled(number: u64, count: u64) -> u64 {
    ((u128::from(number) * u128::from(count)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::variables::tests::fits;
    use rand_xoshiro::rand_core::SeedableRng;

    /// How often each block is drawn, by rank.
    fn counts(skew: &Skew, count: u64, draws: u64) -> Vec<u64> {
        let blocks = Blocks::new(skew, count, 5).unwrap();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut seen = vec![0u64; count as usize];
        (0..draws).for_each(|_| seen[blocks.draw(&mut random) as usize] += 1);
        match blocks.rank {
            Rank::Uniform | Rank::Zones(_) => seen,
            _ => (0..count).map(|rank| seen[blocks.place.of(rank) as usize]).collect(),
        }
    }

    #[test]
    fn a_permutation_meets_every_number_once() {
        for count in (1..300).chain([1023, 1024, 1025, 10_007, 65_536]) {
            for seed in [0, 1, u64::MAX] {
                let place = Permutation::new(count, seed);
                let mut seen = vec![false; count as usize];
                for i in 0..count {
                    assert!(!std::mem::replace(&mut seen[place.of(i) as usize], true), "{count} {seed} {i}");
                }
            }
        }
    }

    #[test]
    fn blocks_stay_where_their_seed_puts_them() {
        let place = |count, seed| move |number| Permutation::new(count, seed).of(number);
        assert_eq!([0, 1, 2].map(place(1 << 38, 0)), [162_178_481_134, 242_492_870_142, 140_908_254_686]);
        assert_eq!([0, 1, 2, 3].map(place(1000, 7)), [588, 830, 972, 894]);
    }

    #[test]
    fn hot_blocks_are_spread_over_the_space_and_follow_from_the_seed() {
        let count = 1 << 38;
        let mut first = Vec::new();
        for seed in 0..4 {
            let place = Permutation::new(count, seed);
            let mut cells = [0u64; 64];
            (0..6_400).for_each(|rank| cells[(place.of(rank) >> 32) as usize] += 1);
            fits(&cells, &[1.0 / 64.0; 64]);
            assert_eq!(place.of(0), Permutation::new(count, seed).of(0));
            first.push(place.of(0));
        }
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 4);
    }

    #[test]
    fn zipf_is_exact_to_its_last_block() {
        for exponent in [0.0, 0.5, 1.0, 1.2] {
            let weights: Vec<f64> = (1..=100).map(|i| f64::from(i).powf(-exponent)).collect();
            let sum: f64 = weights.iter().sum();
            let seen = counts(&Skew::Zipf { exponent }, 100, 400_000);
            fits(&seen, &weights.iter().map(|w| w / sum).collect::<Vec<_>>());
        }
    }

    #[test]
    fn pareto_gives_each_share_of_the_blocks_what_is_left_of_the_whole() {
        for share in [0.1f64, 0.2, 0.5] {
            let power = (1.0 - share).ln() / share.ln();
            let until = |i: u32| (f64::from(i) / 50.0).powf(power);
            let weights: Vec<_> = (0..50).map(|i| until(i + 1) - until(i)).collect();
            // Twenty in a hundred of the blocks get eighty of the requests.
            assert!((until((50.0 * share) as u32) - (1.0 - share)).abs() < 1e-9);
            fits(&counts(&Skew::Pareto { share }, 50, 200_000), &weights);
        }
    }

    #[test]
    fn zones_lie_where_they_are_said_to_and_nothing_behind_them_is_drawn() {
        let zone = |share, space| Zone { share, space };
        let zones = vec![zone(60.0, 0.1), zone(0.0, 0.2), zone(30.0, 0.4), zone(10.0, 0.001), zone(0.0, 0.1)];
        let seen = counts(&Skew::Zones { zones }, 50, 200_000);
        let weights = (0..50).map(|i| match i {
            0..5 => 0.12,
            15..35 => 0.015,
            35 => 0.1,
            _ => 0.0,
        });
        assert!(
            seen.iter().zip(weights.clone()).all(|(count, weight)| (*count > 0) == (weight > 0.0)),
            "{seen:?}"
        );
        let drawn = |all: &[u64]| all.iter().copied().filter(|n| *n > 0).collect::<Vec<_>>();
        fits(&drawn(&seen), &weights.filter(|w| *w > 0.0).collect::<Vec<_>>());
        let fault = |zones: Vec<Zone>| Skew::Zones { zones }.fault();
        assert!(fault(vec![zone(1.0, 0.5), zone(1.0, 0.5)]).is_none());
        assert!(fault(vec![]).is_some() && fault(vec![zone(0.0, 1.0)]).is_some());
        assert!(fault(vec![zone(1.0, 1.1)]).is_some() && fault(vec![zone(f64::NAN, 0.1)]).is_some());
    }

    #[test]
    fn hot_blocks_get_their_share_and_cold_ones_the_rest() {
        let seen = counts(&Skew::HotCold { accesses: 0.9, space: 0.1 }, 50, 200_000);
        let weights: Vec<_> = (0..50).map(|i| if i < 5 { 0.18 } else { 0.1 / 45.0 }).collect();
        fits(&seen, &weights);
        // So few blocks that all are hot.
        assert_eq!(counts(&Skew::HotCold { accesses: 0.1, space: 0.9 }, 1, 100), [100]);
        let none = counts(&Skew::HotCold { accesses: 0.0, space: 0.5 }, 4, 100);
        assert_eq!(none[..2], [0, 0]);
    }
}
