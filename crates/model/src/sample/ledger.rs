//! How many blocks are still owed to each stack distance.
//!
//! A draw says when the last block of its request was used; where a run leads, and when the other blocks of a request
//! were used, follows from what was before. So not every request goes where its own draw says, but draws are owed:
//! each puts as many blocks as it has on the account of its distance, and every block that is used is taken off the
//! account of the distance at which it was. A place will do where its accounts are not overdrawn, and requests that may
//! go anywhere go to what is owed most.

use super::blocks::Recall;
use super::decode::Decoder;
use crate::cells::{Cells, Place};
use crate::distances::{Distances, MOST, fine};
use loadstone_trace::lru::blocks;
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// Blocks that an account may be overdrawn by, and the share of all that were put on it. New blocks may be by less:
/// how many there are is the footprint.
const LEAST: f64 = 32.0;
const SHARE: f64 = 0.1;
const SHARE_NEW: f64 = 0.02;

/// How many times as far runs may overdraw accounts of used blocks, while more than one in so many of those that were
/// to go on straight did not: a run that is broken off breaks those that would come over it later.
const FURTHER: f64 = 1.5;
const BROKEN: u64 = 50;

/// How many times as far what continues the request before may then.
const STRAIGHT: f64 = 4.0;

/// Accounts of the buckets of stack distances; number 0 is that of new blocks.
pub(super) struct Ledger {
    /// Account by fine bucket.
    accounts: Vec<u16>,
    /// Smallest distance of each account but the first.
    first: Vec<u64>,
    due: Vec<f64>,
    /// What an account must be above to be drawn from.
    floor: Vec<f64>,
    /// What a block of a draw puts on which account, by code of the distance; and a block of any draw.
    credits: FxHashMap<u32, Vec<(u16, f64)>>,
    always: Vec<(u16, f64)>,
    /// First account of which no block is there yet, as fewer were used, and what is due of it and those after it.
    deep: usize,
    beyond: f64,
    /// Blocks that were used.
    used: u64,
    /// New blocks in all.
    new: u64,
    /// Requests that were to go on from the one before, and that did.
    straight: u64,
    kept: u64,
    /// The account that most is owed of, and of how many blocks that was asked, until an account changes: of each
    /// request's draws most ask for it again.
    most: Cell<Option<(u64, usize)>>,
}

impl Ledger {
    /// Of the cells of a model, of which these dimensions say stack distance, op and size; `distances` are those of all
    /// blocks. Where they are not known, they are taken to be those of the last ones.
    pub fn of<'a>(
        distances: Option<&Distances>,
        cells: impl Iterator<Item = &'a Cells>,
        distance: &(Decoder, Place),
        op: &(Decoder, Place),
        size: &(Decoder, Place),
    ) -> Ledger {
        let mut draws: FxHashMap<u32, (Recall, f64)> = FxHashMap::default();
        for (&key, &count) in cells.flat_map(|cells| cells.keys.iter().zip(&cells.counts)) {
            let code = distance.1.code(key);
            let (least, most) = size.0.range(size.1.code(key));
            let op = op.0.range(op.1.code(key)).0.clamp(0, 255) as u8;
            let blocks = blocks(op, 0, least.midpoint(most)).count();
            let (_, all) = draws.entry(code).or_insert_with(|| (Recall::of(&distance.0, code), 0.0));
            *all += count as f64 * blocks as f64;
        }
        let draws: Vec<(u32, Recall, f64)> =
            draws.into_iter().map(|(code, (recall, blocks))| (code, recall, blocks)).collect();
        match distances {
            Some(distances) => Ledger::new(distances, &draws),
            None => Ledger::new(&last_ones(&draws), &draws),
        }
    }

    /// For references at these distances, of draws by code: what it says about when blocks were used, and how many it
    /// has.
    ///
    /// In the end as many blocks were put on each account as it has references, in proportion.
    pub fn new(distances: &Distances, draws: &[(u32, Recall, f64)]) -> Ledger {
        let first = distances.first.clone();
        let wanted: Vec<f64> =
            std::iter::once(&distances.new).chain(&distances.references).map(|n| *n as f64).collect();
        let mut ledger = Ledger {
            accounts: Vec::new(),
            due: vec![0.0; first.len() + 1],
            floor: vec![-LEAST; first.len() + 1],
            first,
            credits: FxHashMap::default(),
            always: Vec::new(),
            deep: 1,
            beyond: 0.0,
            used: 0,
            new: distances.new,
            straight: 0,
            kept: 0,
            most: Cell::new(None),
        };
        ledger.accounts = (0..=fine(ledger.first.last().copied().unwrap_or(0)))
            .map(|at| ledger.first.partition_point(|first| fine(*first) <= at) as u16)
            .collect();
        let shares: Vec<_> = draws.iter().map(|(_, recall, _)| ledger.shares(*recall, &wanted)).collect();
        let mut expected = vec![0.0; wanted.len()];
        for (shares, (_, _, blocks)) in shares.iter().zip(draws) {
            shares.iter().for_each(|(account, share)| expected[usize::from(*account)] += share * blocks);
        }
        let drawn = draws.iter().map(|(_, _, blocks)| blocks).sum::<f64>().max(1.0);
        let all = wanted.iter().sum::<f64>().max(1.0);
        let credit = |(account, share): (u16, f64)| {
            let at = usize::from(account);
            (account, share * (wanted[at] / all) / (expected[at] / drawn))
        };
        let is_drawn = |(account, _): &(u16, f64)| expected[usize::from(*account)] > 0.0;
        let codes = draws.iter().map(|(code, _, _)| *code).zip(shares);
        ledger.credits = codes
            .map(|(code, shares)| (code, shares.into_iter().filter(is_drawn).map(credit).collect()))
            .collect();
        let undrawn = (0u16..).zip(&wanted).filter(|(at, n)| expected[usize::from(*at)] == 0.0 && **n > 0.0);
        ledger.always = undrawn.map(|(at, n)| (at, n / all)).collect();
        ledger
    }

    /// How many new blocks there are in all.
    pub fn footprint(&self) -> u64 {
        self.new
    }

    /// The accounts that a draw may be of, and how likely each is.
    fn shares(&self, recall: Recall, wanted: &[f64]) -> Vec<(u16, f64)> {
        // Where no block was used again, everything is new.
        let (Recall::Used(low, high), false) = (recall, self.first.is_empty()) else { return vec![(0, 1.0)] };
        let mut shares: Vec<(u16, f64)> = (self.account(Some(low))..=self.account(Some(high)))
            .map(|at| {
                let (first, last) = self.range(at);
                let (from, to) = (first.max(low), last.min(high));
                let part = (to.saturating_sub(from) as f64 + 1.0) / ((last - first) as f64 + 1.0);
                (at as u16, wanted[at] * part)
            })
            .collect();
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
        for &(account, share) in of.chain(&self.always) {
            let (account, blocks) = (usize::from(account), share * blocks as f64);
            self.due[account] += blocks;
            self.beyond += if account >= self.deep { blocks } else { 0.0 };
            self.floor[account] -= blocks * if account == 0 { SHARE_NEW } else { SHARE };
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
            self.beyond = self.due[self.deep..].iter().sum();
            self.most.set(None);
        }
    }

    /// What is due of an account, of new blocks with what is owed and not there.
    #[inline]
    fn owed(&self, account: usize) -> f64 {
        match account {
            // No more than there are in all.
            0 => (self.due[0] + self.beyond).min(self.new as f64 - self.used as f64),
            _ => self.due[account],
        }
    }

    /// Takes so many blocks that were used.
    #[inline]
    pub fn debit(&mut self, distance: Option<u64>, blocks: u64) {
        let account = self.account(distance);
        self.due[account] -= blocks as f64;
        self.most.set(None);
    }

    /// Takes a request that was to go on from the one before.
    pub fn note_straight(&mut self, did: bool) {
        self.straight += 1;
        self.kept += u64::from(did);
    }

    /// Whether too many of those that were to go on straight did not.
    #[inline]
    fn breaks(&self) -> bool {
        self.kept + self.straight / BROKEN < self.straight
    }

    /// Whether a block may be used that was used so long ago, by a request that goes on from another or not.
    #[inline]
    pub fn owes(&self, distance: Option<u64>, goes_on: bool) -> bool {
        let account = self.account(distance);
        let further = goes_on && account > 0 && self.breaks();
        self.owed(account) > self.floor[account] * if further { FURTHER } else { 1.0 }
    }

    /// Whether what continues the request before may use a block that was used so long ago, while too many are broken
    /// off: new ones, until there are as many as there should be.
    pub fn keeps(&self, distance: Option<u64>) -> bool {
        match self.account(distance) {
            _ if !self.breaks() => self.owes(distance, true),
            0 => self.used < self.new,
            account => self.due[account] > self.floor[account] * STRAIGHT,
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
                (self.account(Some(low))..=self.account(Some(high))).any(|account| self.due[account] > 0.0)
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

/// Distances as draws say them of the last blocks.
fn last_ones(draws: &[(u32, Recall, f64)]) -> Distances {
    let mut found = Distances { first: vec![0], references: vec![0], ..Distances::default() };
    let mut used: Vec<(u64, u64)> = Vec::new();
    for &(_, recall, blocks) in draws {
        match recall {
            Recall::Used(low, _) => used.push((low, blocks as u64)),
            _ => found.new = found.new.saturating_add(blocks as u64),
        }
    }
    used.sort_unstable();
    for (low, blocks) in used {
        if found.first.len() < MOST && found.first.last().is_some_and(|first| *first < low) {
            found.first.push(low);
            found.references.push(0);
        }
        let last = found.references.last_mut().expect("one");
        *last = last.saturating_add(blocks);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs().max(1.0)
    }

    proptest! {
        #[test]
        fn draws_put_on_each_account_what_it_should_have(
            new in 0u64..1000,
            buckets in proptest::collection::btree_map(1u64..5000, 0u64..1000, 0..20),
            ranges in proptest::collection::vec((0u64..4000, 0u64..3000, 1u64..500), 0..20),
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
            let mut draws = vec![(0, Recall::New, unknown as f64)];
            let used = (1u32..).zip(&ranges).map(|(code, (low, more, n))| (code, Recall::Used(*low, low + more), *n as f64));
            draws.extend(used);
            let mut ledger = Ledger::new(&distances, &draws);
            for (code, _, blocks) in &draws {
                // A draw at a time or all at once.
                ledger.credit(*code, *blocks as u64 / 2);
                ledger.credit(*code, *blocks as u64 - *blocks as u64 / 2);
            }
            let (drawn, all) = (draws.iter().map(|draw| draw.2).sum::<f64>(), distances.total() as f64);
            let wanted = std::iter::once(&distances.new).chain(&distances.references).map(|n| *n as f64);
            for (at, (due, n)) in ledger.due.iter().zip(wanted).enumerate() {
                prop_assert!(close(*due, n / all * drawn), "account {}: {} of {}", at, due, n / all * drawn);
            }
            // All blocks are there, and any number of new ones may be made.
            ledger.reach(10_000);
            ledger.used = 0;
            // All that was put on an account and no more can be taken off.
            for distance in [None, Some(0), Some(77), Some(u64::MAX)] {
                let account = ledger.account(distance);
                // One more than that, as sums of fractions are rounded.
                let least = (ledger.due[account] - ledger.floor[account]).ceil() as u64 + 1;
                prop_assert!(ledger.due[account] as u64 <= least);
                (0..least).for_each(|_| ledger.debit(distance, 1));
                prop_assert!(!ledger.owes(distance, false));
            }
        }
    }

    #[test]
    fn what_is_not_told_of_all_blocks_is_taken_from_the_last_ones() {
        let draws = [(0, Recall::New, 30.0), (1, Recall::Used(8, 9), 20.0), (2, Recall::Used(0, 1), 10.0)];
        let found = last_ones(&draws);
        assert_eq!(found, Distances { new: 30, first: vec![0, 8], references: vec![10, 20] });
    }

    #[test]
    fn runs_may_go_further_while_too_many_are_broken() {
        let distances = Distances { new: 10, first: vec![0], references: vec![10] };
        let draws = [(0, Recall::New, 10.0), (1, Recall::Used(0, 9), 10.0)];
        let mut ledger = Ledger::new(&distances, &draws);
        for distance in [None, Some(5)] {
            (0..LEAST as u64).for_each(|_| ledger.debit(distance, 1));
        }
        let owes = |ledger: &Ledger| [None, Some(5)].map(|distance| ledger.owes(distance, true));
        (0..49).for_each(|_| ledger.note_straight(true));
        ledger.note_straight(false);
        assert_eq!(owes(&ledger), [false, false]);
        ledger.note_straight(false);
        assert_eq!(owes(&ledger), [false, true]);
        assert!(!ledger.owes(Some(5), false));
        (0..LEAST as u64 / 2).for_each(|_| ledger.debit(Some(5), 1));
        assert_eq!(owes(&ledger), [false, false]);
    }

    #[test]
    fn where_no_block_was_used_again_all_are_new() {
        // A damaged file says so, and its cells something else.
        let distances = Distances { new: 10, ..Distances::default() };
        let mut ledger = Ledger::new(&distances, &[(1, Recall::Used(3, 9), 10.0)]);
        ledger.credit(1, 10);
        assert_eq!(ledger.due, [10.0]);
        assert_eq!(ledger.most_owed(Recall::Used(3, 9), 100), Recall::Used(3, 9));
        (0..50).for_each(|_| ledger.debit(Some(5), 1));
        assert!(!ledger.owes(None, false) && !ledger.owes(Some(5), false));
        assert_eq!(ledger.most_owed(Recall::Used(3, 9), 100), Recall::New);
    }

    #[test]
    fn only_what_was_used_can_be_owed() {
        let distances = Distances { new: 10, first: vec![0, 100], references: vec![10, 80] };
        let draws =
            [(0, Recall::New, 10.0), (1, Recall::Used(0, 9), 10.0), (2, Recall::Used(100, 200), 80.0)];
        let mut ledger = Ledger::new(&distances, &draws);
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
        let draws = [(0, Recall::New, 100.0), (1, Recall::Used(50, 99), 900.0)];
        let mut ledger = Ledger::new(&distances, &draws);
        ledger.credit(1, 500);
        ledger.reach(40);
        ledger.note_straight(false);
        // Nothing lies at 50 yet.
        assert!(ledger.owes(None, false) && ledger.keeps(None));
        assert_eq!(ledger.most_owed(Recall::Used(50, 99), 40), Recall::New);
        ledger.reach(100);
        assert!(!ledger.keeps(None));
        assert_eq!(ledger.most_owed(Recall::New, 100), Recall::Used(50, u64::MAX));
        // What continues may overdraw accounts further than what goes on from an earlier request, though not without end.
        let least = (ledger.due[2] - ledger.floor[2] * FURTHER).ceil() as u64;
        ledger.debit(Some(60), least);
        assert!(!ledger.owes(Some(60), true) && ledger.keeps(Some(60)));
        ledger.debit(Some(60), 4 * least);
        assert!(!ledger.keeps(Some(60)));
    }
}
