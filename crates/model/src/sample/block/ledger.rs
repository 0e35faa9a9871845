//! How many blocks are still owed to each stack distance.
//!
//! A draw gives the stack distance of the last block of its request. The distances of its other blocks, and where a run
//! leads, follow from earlier requests. So a request need not have its own distance; only the sums must be right. Each
//! bucket of distances has an account. A draw adds its number of blocks to the account of its distance, and every block
//! that is used is taken off the account of the distance at which it was found. A place is accepted while its accounts
//! are not overdrawn. A request that may go anywhere goes to the account with the largest balance.
//!
//! Matrices most of whose requests come back soon have accounts of their own. A burst uses so many blocks that its error
//! exceeds all blocks of a quiet phase after it: if that phase had to make up for it, none of its requests would come
//! back where they should.

use crate::feature::recency::distances::{Distances, fine};
use crate::sample::block::recall::Recall;
use crate::sample::column::Column;
use crate::schema::cells::Cells;
use loadstone_trace::lru::{BLOCK, blocks};
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// Blocks that an account may be overdrawn by, and the share of all that were put on it. New blocks may be by less:
/// how many there are is the footprint.
const LEAST: f64 = 32.0;
const SHARE: f64 = 0.1;
const SHARE_NEW: f64 = 0.01;

/// How many times as far what continues the request before may overdraw them: a run that is broken off breaks those
/// that would come over it later.
const STRAIGHT: f64 = 4.0;

/// Distances below this come back soon: a MiB of other blocks.
const SOON: u64 = 256;

/// Draws of a code of the distance: what it says about when blocks were used, and how many they have.
pub(crate) struct Draws {
    pub code: u32,
    pub recall: Recall,
    /// Of most matrices, and of those whose requests come back soon.
    pub blocks: [f64; 2],
}

/// The dimensions that say which blocks a draw uses.
#[derive(Clone, Copy)]
pub(crate) struct Tells<'a> {
    pub distance: &'a Column,
    pub op: &'a Column,
    pub size: &'a Column,
    pub align: Option<&'a Column>,
}

/// What is due of each account.
struct Due {
    blocks: Vec<f64>,
    /// What an account must be above to be drawn from.
    floor: Vec<f64>,
    /// What is due of accounts of which no block is there yet.
    beyond: f64,
}

impl Due {
    fn of(accounts: usize) -> Due {
        Due { blocks: vec![0.0; accounts], floor: vec![-LEAST; accounts], beyond: 0.0 }
    }
}

/// Accounts of the buckets of stack distances; number 0 is that of new blocks.
pub(crate) struct Ledger {
    /// Account by fine bucket.
    accounts: Vec<u16>,
    /// Smallest distance of each account but the first.
    first: Vec<u64>,
    /// What is due to most matrices, and to those whose requests come back soon.
    dues: [Due; 2],
    /// Which of these is asked now, and by matrix whether it is the second.
    set: usize,
    soon: Vec<bool>,
    /// What a block of a draw puts on which account, by code of the distance and by set.
    credits: FxHashMap<u32, Vec<(u16, [f64; 2])>>,
    /// First account of which no block is there yet, as fewer were used.
    deep: usize,
    /// Blocks that were used.
    used: u64,
    /// New blocks in all.
    new: u64,
    /// The account that most is owed of, and of how many blocks that was asked, until an account changes: of each
    /// request's draws most ask for it again.
    most: Cell<Option<(u64, usize)>>,
}

impl Ledger {
    /// Of the cells of a model; `distances` are those of all blocks.
    pub fn of<'a>(
        distances: &Distances,
        cells: impl Iterator<Item = &'a Cells> + Clone,
        tells: &Tells<'_>,
    ) -> Ledger {
        let Tells { distance, op, size, align } = *tells;
        // Code of the distance, requests, and blocks of each.
        let each = |cells: &'a Cells| {
            cells.keys.iter().zip(&cells.counts).map(|(&key, &count)| {
                let op = op.range(key).map_or(0, |(op, _)| op).clamp(0, 255) as u8;
                // Where in a block it begins.
                let offset = align.map_or(0, |align| align.middle(key).clamp(0, BLOCK - 1));
                let blocks = blocks(op, offset, size.middle(key)).count();
                (distance.code(key), count as f64, blocks as f64)
            })
        };
        // Of the requests that have a place, those that come back soon and the others.
        let come_back = cells.clone().map(|cells| {
            each(cells).filter(|(_, _, blocks)| *blocks > 0.0).fold(
                (0.0, 0.0),
                |(soon, others), (code, n, _)| match Recall::of(&distance.numbers, code) {
                    Recall::Used(low, _) if low < SOON => (soon + n, others),
                    _ => (soon, others + n),
                },
            )
        });
        let come_back: Vec<(f64, f64)> = come_back.collect();
        let is_soon = |(soon, others): &(f64, f64)| soon > others;
        let are_others = come_back.iter().any(|all| !is_soon(all) && all.1 > 0.0);
        let soon: Vec<bool> = come_back.iter().map(|all| are_others && is_soon(all)).collect();
        let mut draws: FxHashMap<u32, Draws> = FxHashMap::default();
        for (cells, soon) in cells.zip(&soon) {
            for (code, n, blocks) in each(cells) {
                let recall = Recall::of(&distance.numbers, code);
                let draws = draws.entry(code).or_insert(Draws { code, recall, blocks: [0.0; 2] });
                draws.blocks[usize::from(*soon)] += n * blocks;
            }
        }
        let draws: Vec<Draws> = draws.into_values().collect();
        Ledger { soon, ..Ledger::new(distances, &draws) }
    }

    /// For references at these distances, of draws by code.
    ///
    /// Requests of matrices that come back soon are taken at their word, and the others put on each account what is left:
    /// in the end it was given as many blocks as it has references, in proportion, or more where the former say more.
    pub fn new(distances: &Distances, draws: &[Draws]) -> Ledger {
        let first = distances.first.clone();
        let wanted: Vec<f64> =
            std::iter::once(&distances.new).chain(&distances.references).map(|n| *n as f64).collect();
        let mut ledger = Ledger {
            accounts: Vec::new(),
            dues: [(); 2].map(|()| Due::of(first.len() + 1)),
            set: 0,
            soon: Vec::new(),
            first,
            credits: FxHashMap::default(),
            deep: 1,
            used: 0,
            new: distances.new,
            most: Cell::new(None),
        };
        ledger.accounts = (0..=fine(ledger.first.last().copied().unwrap_or(0)))
            .map(|at| ledger.first.partition_point(|first| fine(*first) <= at) as u16)
            .collect();
        let shares: Vec<_> = draws.iter().map(|draws| ledger.shares(draws.recall, &wanted)).collect();
        let mut expected = vec![[0.0; 2]; wanted.len()];
        for (shares, draws) in shares.iter().zip(draws) {
            for (account, share) in shares {
                let expected = &mut expected[usize::from(*account)];
                expected
                    .iter_mut()
                    .zip(draws.blocks)
                    .for_each(|(expected, blocks)| *expected += share * blocks);
            }
        }
        let drawn = draws.iter().map(|draws| draws.blocks[0] + draws.blocks[1]).sum::<f64>().max(1.0);
        let all = wanted.iter().sum::<f64>().max(1.0);
        let mut left: Vec<f64> =
            wanted.iter().zip(&expected).map(|(n, [_, soon])| (n / all * drawn - soon).max(0.0)).collect();
        let others: f64 = draws.iter().map(|draws| draws.blocks[0]).sum();
        let scale = others / left.iter().sum::<f64>().max(1.0);
        left.iter_mut().for_each(|n| *n *= scale);
        let part = |account: u16| {
            let (left, [others, _]) = (left[usize::from(account)], expected[usize::from(account)]);
            [if others > 0.0 { left / others } else { 0.0 }, 1.0]
        };
        let codes = draws.iter().map(|draws| draws.code).zip(shares);
        ledger.credits = codes
            .map(|(code, shares)| {
                let credit = |(account, share)| (account, part(account).map(|part| share * part));
                (code, shares.into_iter().map(credit).collect())
            })
            .collect();
        ledger
    }

    /// Of draws that do not say when their blocks were used: each block is put on all accounts, on each its share.
    pub fn plain(distances: &Distances) -> Ledger {
        let mut ledger = Ledger::new(distances, &[]);
        let all = distances.total().max(1) as f64;
        let wanted = std::iter::once(&distances.new).chain(&distances.references);
        let shares = (0..).zip(wanted).map(|(account, n)| (account, [*n as f64 / all; 2]));
        ledger.credits.insert(0, shares.collect());
        ledger
    }

    /// Goes on with draws of another matrix.
    pub fn turn_to(&mut self, matrix: usize) {
        let set = usize::from(self.soon.get(matrix).copied().unwrap_or(false));
        if set != self.set {
            self.set = set;
            self.sum_beyond();
        }
    }

    /// How many new blocks there are in all.
    pub fn footprint(&self) -> u64 {
        self.new
    }

    /// The accounts that a draw may be of, and how likely each is.
    fn shares(&self, recall: Recall, wanted: &[f64]) -> Vec<(u16, f64)> {
        // Where no block was used again, everything is new.
        let (Recall::Used(low, high), false) = (recall, self.first.is_empty()) else { return vec![(0, 1.0)] };
        let parts = (self.account(Some(low))..=self.account(Some(high))).map(|at| {
            let (first, last) = self.range(at);
            // Nothing lies deeper than all that is used.
            let last = last.min(self.new.max(first));
            let (from, to) = (first.max(low), last.min(high));
            (at, (to.saturating_sub(from) as f64 + 1.0) / ((last - first) as f64 + 1.0))
        });
        let parts: Vec<(usize, f64)> = parts.collect();
        // Only a damaged file has draws where no block was used again.
        let told = parts.iter().any(|(at, part)| wanted[*at] * part > 0.0);
        let share = |&(at, part): &(usize, f64)| (at as u16, if told { wanted[at] * part } else { part });
        let mut shares: Vec<(u16, f64)> = parts.iter().map(share).collect();
        let sum: f64 = shares.iter().map(|(_, share)| share).sum();
        shares.retain(|(_, share)| *share > 0.0);
        shares.iter_mut().for_each(|(_, share)| *share /= sum);
        shares
    }

    /// The account of a distance; `None`: of new blocks.
    #[inline]
    fn account(&self, distance: Option<u64>) -> usize {
        let last = self.accounts.len() - 1;
        distance.map_or(0, |distance| usize::from(self.accounts[fine(distance).min(last)]))
    }

    /// Smallest and largest distance of an account above 0.
    fn range(&self, account: usize) -> (u64, u64) {
        (self.first[account - 1], self.first.get(account).map_or(u64::MAX, |next| next - 1))
    }

    /// Takes a draw that was placed, with the code of its distance and its blocks.
    #[inline]
    pub fn credit(&mut self, code: u32, blocks: u64) {
        let of = self.credits.get(&code).into_iter().flatten();
        let of = of.map(|(account, shares)| (*account, shares[self.set]));
        let due = &mut self.dues[self.set];
        for (account, share) in of {
            let (account, blocks) = (usize::from(account), share * blocks as f64);
            due.blocks[account] += blocks;
            due.beyond += if account >= self.deep { blocks } else { 0.0 };
            due.floor[account] -= blocks * if account == 0 { SHARE_NEW } else { SHARE };
        }
        self.most.set(None);
    }

    /// Takes how many blocks were used so far.
    ///
    /// What lies deeper in the stack is owed, but not there. Who asks for it gets a new block, which no cache of that
    /// size has either; and once there are so many, what would be new gets one of these.
    #[inline]
    pub fn reach(&mut self, used: u64) {
        self.used = used;
        let there =
            self.first.get(self.deep - 1..).map_or(0, |rest| rest.partition_point(|first| *first < used));
        if there > 0 {
            self.deep += there;
            self.sum_beyond();
        }
    }

    /// Sums up what is due of accounts of which no block is there yet, to the matrices that are asked for now.
    fn sum_beyond(&mut self) {
        let due = &mut self.dues[self.set];
        due.beyond = due.blocks[self.deep..].iter().sum();
        self.most.set(None);
    }

    /// What is due of an account, of new blocks with what is owed and not there.
    #[inline]
    fn owed(&self, account: usize) -> f64 {
        let due = &self.dues[self.set];
        match account {
            // No more than there are in all.
            0 => (due.blocks[0] + due.beyond).min(self.new as f64 - self.used as f64),
            _ => due.blocks[account],
        }
    }

    /// What an account must be above to be drawn from.
    #[inline]
    fn floor(&self, account: usize) -> f64 {
        self.dues[self.set].floor[account]
    }

    /// Takes so many blocks that were used.
    #[inline]
    pub fn debit(&mut self, distance: Option<u64>, blocks: u64) {
        let account = self.account(distance);
        self.dues[self.set].blocks[account] -= blocks as f64;
        self.most.set(None);
    }

    /// Whether a block may be used that was used so long ago.
    #[inline]
    pub fn owes(&self, distance: Option<u64>) -> bool {
        let account = self.account(distance);
        self.owed(account) > self.floor(account)
    }

    /// Whether what continues the request before may use a block that was used so long ago: new ones, until there are
    /// as many as there should be.
    pub fn keeps(&self, distance: Option<u64>) -> bool {
        match self.account(distance) {
            0 => self.used < self.new,
            account => self.owed(account) > self.floor(account) * STRAIGHT,
        }
    }

    /// Where a request should go that was drawn so, of `used` blocks: there, if anything is owed, else to what is owed
    /// most.
    pub fn most_owed(&self, drawn: Recall, used: u64) -> Recall {
        let drawn = match drawn {
            Recall::Used(low, _) if low >= used => Recall::New,
            other => other,
        };
        let owed = match drawn {
            Recall::Any => true,
            Recall::New => self.owed(0) > 0.0,
            Recall::Used(low, high) => {
                (self.account(Some(low))..=self.account(Some(high))).any(|account| self.owed(account) > 0.0)
            }
        };
        if owed {
            return drawn;
        }
        match self.fullest(used) {
            0 => Recall::New,
            account => {
                let (low, high) = self.range(account);
                Recall::Used(low, high)
            }
        }
    }

    /// The account that most is owed of, among those that can have any of `used` blocks.
    #[inline]
    fn fullest(&self, used: u64) -> usize {
        match self.most.get() {
            Some((of, account)) if of == used => account,
            _ => {
                let there = self.first.partition_point(|first| *first < used);
                let account = (0..=there).max_by(|a, b| self.owed(*a).total_cmp(&self.owed(*b))).unwrap_or(0);
                self.most.set(Some((used, account)));
                account
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A ledger of so many blocks for each draw, numbered, and of how many of them come back soon.
    fn ledger(distances: &Distances, draws: &[(Recall, [f64; 2])]) -> Ledger {
        let draws: Vec<Draws> =
            (0..).zip(draws).map(|(code, &(recall, blocks))| Draws { code, recall, blocks }).collect();
        Ledger { soon: vec![false, true], ..Ledger::new(distances, &draws) }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs().max(1.0)
    }

    proptest! {
        #[test]
        fn draws_put_on_each_account_what_it_should_have(
            // The first block of a stream is new.
            new in 1u64..1000,
            buckets in proptest::collection::btree_map(1u64..5000, 0u64..1000, 0..20),
            ranges in proptest::collection::vec((0u64..4000, 0u64..3000, 1u64..500, 0u64..50), 0..20),
            unknown in 1u64..500,
        ) {
            let mut distances = Distances { new, first: vec![0], references: vec![7] };
            for (first, n) in buckets {
                // As the fit makes them: where fine buckets begin.
                if distances.first.iter().all(|other| fine(*other) != fine(first)) {
                    distances.first.push(first);
                    distances.references.push(n);
                }
            }
            let mut draws = vec![(Recall::New, [unknown as f64, 0.0])];
            let used = ranges.iter().map(|(low, more, n, soon)| (Recall::Used(*low, low + more), [*n as f64, *soon as f64]));
            draws.extend(used);
            let mut ledger = ledger(&distances, &draws);
            let sum = |draws: &[(Recall, [f64; 2])]| draws.iter().flat_map(|draws| draws.1).sum::<f64>();
            for (code, (_, blocks)) in (0..).zip(&draws) {
                for (set, blocks) in blocks.iter().enumerate() {
                    ledger.turn_to(set);
                    // A draw at a time or all at once.
                    ledger.credit(code, *blocks as u64 / 2);
                    ledger.credit(code, *blocks as u64 - *blocks as u64 / 2);
                }
            }
            let (drawn, all) = (sum(&draws), distances.total() as f64);
            let soon: f64 = draws.iter().map(|draws| draws.1[1]).sum();
            let due = |set: usize| ledger.dues[set].blocks.iter().sum::<f64>();
            // What no draw asks for is put on no account.
            prop_assert!(due(0) <= (drawn - soon) * (1.0 + 1e-6) + 1e-6, "{} of {} less {}", due(0), drawn, soon);
            prop_assert!(close(due(1), soon), "{} of {}", due(1), soon);
            let wanted = std::iter::once(&distances.new).chain(&distances.references).map(|n| *n as f64);
            for (at, n) in wanted.enumerate() {
                let [others, soon] = [0, 1].map(|set: usize| ledger.dues[set].blocks[at]);
                let n = n / all * drawn;
                // What comes back soon is what it says, and all others together are the rest.
                let is_so = if ledger.dues[1].blocks.iter().any(|due| *due > 0.0) {
                    others <= (n - soon).max(0.0) + 1e-6 * drawn
                } else {
                    close(others, n) || others == 0.0
                };
                prop_assert!(is_so, "account {}: {} and {} of {}", at, others, soon, n);
            }
            // All blocks are there, and any number of new ones may be made.
            ledger.reach(10_000);
            ledger.used = 0;
            // All that was put on an account and no more can be taken off.
            for distance in [None, Some(0), Some(77), Some(u64::MAX)] {
                let account = ledger.account(distance);
                // One more than that, as sums of fractions are rounded.
                let due = ledger.dues[ledger.set].blocks[account];
                let least = (due - ledger.floor(account)).ceil() as u64 + 1;
                prop_assert!(due as u64 <= least);
                (0..least).for_each(|_| ledger.debit(distance, 1));
                prop_assert!(!ledger.owes(distance));
            }
        }
    }

    #[test]
    fn where_no_block_was_used_again_all_are_new() {
        // A damaged file says so, and its cells something else.
        let distances = Distances { new: 10, ..Distances::default() };
        let mut ledger = ledger(&distances, &[(Recall::Used(3, 9), [10.0, 0.0])]);
        ledger.credit(0, 10);
        assert_eq!(ledger.dues[0].blocks, [10.0]);
        assert_eq!(ledger.most_owed(Recall::Used(3, 9), 100), Recall::Used(3, 9));
        (0..50).for_each(|_| ledger.debit(Some(5), 1));
        assert!(!ledger.owes(None) && !ledger.owes(Some(5)));
        assert_eq!(ledger.most_owed(Recall::Used(3, 9), 100), Recall::New);
    }

    #[test]
    fn draws_that_say_nothing_put_on_each_account_its_share() {
        let distances = Distances { new: 10, first: vec![0, 100], references: vec![30, 60] };
        let mut ledger = Ledger::plain(&distances);
        ledger.credit(0, 50);
        assert_eq!(ledger.dues[0].blocks, [5.0, 15.0, 30.0]);
        // It may be overdrawn by 32 blocks and a tenth.
        ledger.debit(Some(200), 64);
        assert!(ledger.owes(Some(200)));
        ledger.debit(Some(200), 1);
        assert!(!ledger.owes(Some(200)) && ledger.owes(Some(50)) && ledger.owes(None));
    }

    #[test]
    fn who_comes_back_soon_does_not_pay_for_others() {
        let distances = Distances { new: 10, first: vec![0, 100], references: vec![10, 80] };
        let draws = [
            (Recall::New, [10.0, 0.0]),
            (Recall::Used(0, 9), [0.0, 10.0]),
            (Recall::Used(100, 200), [80.0, 0.0]),
        ];
        let mut ledger = ledger(&distances, &draws);
        ledger.reach(150);
        ledger.credit(2, 50);
        ledger.debit(Some(5), 50);
        let drawn = Recall::Used(0, 9);
        let state = |ledger: &Ledger| (ledger.owes(Some(5)), ledger.most_owed(drawn, 150));
        let others = (false, Recall::Used(100, u64::MAX));
        assert_eq!(state(&ledger), others);
        ledger.turn_to(1);
        ledger.credit(1, 1);
        assert_eq!(state(&ledger), (true, drawn));
        // A matrix that no cells were told of is one of the others.
        ledger.turn_to(7);
        assert_eq!(state(&ledger), others);
        ledger.turn_to(1);
        assert_eq!(state(&ledger), (true, drawn));
    }

    #[test]
    fn only_what_was_used_can_be_owed() {
        let distances = Distances { new: 10, first: vec![0, 100], references: vec![10, 80] };
        let draws = [
            (Recall::New, [10.0, 0.0]),
            (Recall::Used(0, 9), [10.0, 0.0]),
            (Recall::Used(100, 200), [80.0, 0.0]),
        ];
        let mut ledger = ledger(&distances, &draws);
        ledger.credit(2, 8);
        ledger.credit(0, 2);
        ledger.debit(None, 1);
        assert_eq!(ledger.most_owed(Recall::New, 1000), Recall::New);
        // Most is owed to what is not there yet: whoever asks for it gets a new block.
        assert_eq!(ledger.most_owed(Recall::Used(3, 4), 100), Recall::New);
        assert_eq!(ledger.most_owed(Recall::Used(150, 160), 100), Recall::New);
        ledger.debit(None, 1);
        assert_eq!(ledger.most_owed(Recall::New, 100), Recall::New);
        // Once it is there, it is owed itself, and new blocks are not.
        ledger.reach(101);
        ledger.used = 2;
        assert_eq!(ledger.most_owed(Recall::New, 1000), Recall::Used(100, u64::MAX));
        assert_eq!(ledger.most_owed(Recall::Used(150, 160), 1000), Recall::Used(150, 160));
    }

    #[test]
    fn there_are_never_more_new_blocks_than_there_should_be() {
        let distances = Distances { new: 100, first: vec![0, 50], references: vec![10, 900] };
        let draws = [(Recall::New, [100.0, 0.0]), (Recall::Used(50, 99), [900.0, 0.0])];
        let mut ledger = ledger(&distances, &draws);
        ledger.credit(1, 500);
        ledger.reach(40);
        // Nothing lies at 50 yet.
        assert!(ledger.owes(None) && ledger.keeps(None));
        assert_eq!(ledger.most_owed(Recall::Used(50, 99), 40), Recall::New);
        ledger.reach(100);
        assert!(!ledger.keeps(None));
        assert_eq!(ledger.most_owed(Recall::New, 100), Recall::Used(50, u64::MAX));
        // What continues may overdraw accounts further than what goes on from an earlier request, though not without end.
        let least = (ledger.owed(2) - ledger.floor(2)).ceil() as u64;
        ledger.debit(Some(60), least);
        assert!(!ledger.owes(Some(60)) && ledger.keeps(Some(60)));
        ledger.debit(Some(60), 4 * least);
        assert!(!ledger.keeps(Some(60)));
    }
}
