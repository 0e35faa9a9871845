//! How many requests of each op a stretch of the time line has.

use crate::schema::header::Windows;

/// Requests by class of op, of windows that were counted together; below 0 where too many were taken.
pub(crate) type Budget = Vec<i64>;

/// Tells the requests of a time line apart by op, as its groups do: each op they name is a class, all
/// others are class 0.
#[derive(Default)]
pub(crate) struct Mix {
    codes: Vec<u32>,
    /// The group that is taken from next.
    group: usize,
    /// One past its last window.
    end: usize,
    left: Vec<u64>,
}

impl Mix {
    pub fn new(line: &Windows) -> Mix {
        let codes: Vec<u32> = line.groups.ops.iter().map(|ops| ops.code).collect();
        Mix { left: vec![0; codes.len() + 1], codes, group: 0, end: 0 }
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.left.len()
    }

    /// The class of an op's code.
    #[inline]
    pub fn class(&self, code: u32) -> usize {
        self.codes.iter().position(|c| *c == code).map_or(0, |at| at + 1)
    }

    /// Takes the next `n` requests of the time line, which lie in window `at`: their budget is the last of
    /// `budgets`, and a new one if a group begins.
    pub fn take(&mut self, line: &Windows, at: usize, n: u64, budgets: &mut Vec<Budget>) {
        let groups = &line.groups;
        let mut begins = budgets.is_empty();
        while at >= self.end && self.group < groups.windows.len() {
            let windows = groups.windows[self.group] as usize;
            let all: u64 = line.counts[self.end..self.end + windows].iter().sum();
            for (left, ops) in self.left[1..].iter_mut().zip(&groups.ops) {
                *left = ops.requests[self.group];
            }
            self.left[0] = all - self.left[1..].iter().sum::<u64>();
            (self.group, self.end) = (self.group + 1, self.end + windows);
            begins = true;
        }
        if begins {
            budgets.push(vec![0; self.classes()]);
        }
        let budget = budgets.last_mut().expect("not empty");
        if self.codes.is_empty() {
            budget[0] += n as i64;
            return;
        }
        // A cut group gives of each class its share of what is left, and what that leaves over as it comes.
        let all: u128 = self.left.iter().map(|n| u128::from(*n)).sum::<u128>().max(1);
        let mut over = n;
        let shares: Vec<u64> =
            self.left.iter().map(|left| (u128::from(*left) * u128::from(n) / all) as u64).collect();
        for (class, share) in shares.into_iter().enumerate() {
            self.left[class] -= share;
            budget[class] += share as i64;
            over -= share;
        }
        for (left, budget) in self.left.iter_mut().zip(budget) {
            let more = over.min(*left);
            *left -= more;
            *budget += more as i64;
            over -= more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::header::{Groups, OpCounts};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_group_gives_exactly_its_ops_however_it_is_cut(
            groups in proptest::collection::vec((1usize..4, proptest::collection::vec(0u64..50, 3)), 1..8),
            piece in 1u64..40,
        ) {
            // The requests of each group lie in its first window.
            let mut line = Windows { length_ns: 1, ..Windows::default() };
            for (windows, ops) in &groups {
                line.counts.push(ops.iter().sum());
                line.counts.resize(line.counts.len() + windows - 1, 0);
            }
            let requests = |class: usize| groups.iter().map(|g| g.1[class]).collect();
            line.groups = Groups {
                windows: groups.iter().map(|g| g.0 as u64).collect(),
                ops: (1..3).map(|class| OpCounts { code: 9 + class as u32, requests: requests(class) }).collect(),
            };
            let mut mix = Mix::new(&line);
            prop_assert_eq!([9, 10, 11].map(|code| mix.class(code)), [0, 1, 2]);
            let (mut taken, mut of) = (Vec::new(), Vec::new());
            for (at, &all) in line.counts.iter().enumerate() {
                let mut left = all;
                while left > 0 {
                    let n = left.min(piece);
                    mix.take(&line, at, n, &mut taken);
                    left -= n;
                    prop_assert!(taken.iter().flatten().sum::<i64>() as u64 == line.counts[..=at].iter().sum::<u64>() - left);
                }
                of.push(taken.len());
            }
            let empty = |ops: &Budget| ops.iter().sum::<i64>() == 0;
            let signed = |ops: Vec<u64>| ops.into_iter().map(|n| n as i64).collect::<Budget>();
            let expected: Vec<Budget> = groups.into_iter().map(|g| signed(g.1)).filter(|ops| !empty(ops)).collect();
            prop_assert_eq!(taken.into_iter().filter(|ops| !empty(ops)).collect::<Vec<_>>(), expected);
        }
    }
}
