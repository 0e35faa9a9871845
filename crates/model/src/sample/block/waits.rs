//! Who asks, and after which answer: what a model that draws think times gives its requests besides times.
//!
//! Both are drawn for each request by itself. Two things that hold in every trace are kept, as the length of a run in
//! order of dependencies hangs on the longest chain of think times:
//! - The first request of an actor waits for nothing. Where another one drew that, the two change places, or a chain
//!   would be cut at the latter and its parts run side by side.
//! - Nobody asks before the think time after the answer is over. Of an actor with several requests under way, long think
//!   times in a row would lead beyond the time of the request: an earlier answer of the same chain is taken then.

use crate::random::Random;
use crate::sample::column::Column;
use loadstone_trace::depend::MOST_BACK;
use loadstone_trace::{Batch, NONE};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Requests of the actor back to the one whose answer is waited for, and the think time after it, ns.
type Wait = (i64, i64);

/// Turns drawn numbers, which count requests of an actor, into dependencies, which count rows.
pub(crate) struct Waits {
    actor: Column,
    after: Column,
    think: Column,
    /// What was drawn for the requests that have no times yet.
    drawn: Vec<Option<Wait>>,
    actors: FxHashMap<u32, Actor>,
    row: u64,
    /// The last rows.
    past: VecDeque<Past>,
}

#[derive(Default)]
struct Actor {
    /// Rows of its last requests.
    rows: VecDeque<u64>,
    /// What its first request drew and cannot have.
    owed: Option<Wait>,
}

/// A row that others may wait for.
struct Past {
    /// When it would go out if every answer came at once, ns.
    at: i64,
    /// Rows back to the one that it waits for; 0: none.
    back: usize,
}

impl Waits {
    pub fn new(actor: Column, after: Column, think: Column) -> Waits {
        let (drawn, actors, past) = (Vec::new(), FxHashMap::default(), VecDeque::new());
        Waits { actor, after, think, drawn, actors, row: 0, past }
    }

    /// Draws for the request just appended to `batch` its actor and what it waits for.
    pub fn note(&mut self, key: u64, rng: &mut Random, batch: &mut Batch) {
        let mut draw = |column: &Column| column.draw(key, rng);
        batch.actor.push(draw(&self.actor).max(0) as u32);
        let (after, think) = (draw(&self.after), draw(&self.think));
        self.drawn.push((after != NONE && think != NONE).then_some((after, think)));
    }

    /// Gives the requests of a batch, whose times are known, what they wait for.
    pub fn settle(&mut self, batch: &mut Batch) {
        for (i, mut wait) in std::mem::take(&mut self.drawn).into_iter().enumerate() {
            let (time, actor) = (batch.time[i], self.actors.entry(batch.actor[i]).or_default());
            if actor.rows.is_empty() {
                actor.owed = wait.take();
            } else if wait.is_none() {
                wait = actor.owed.take();
            }
            let found = wait.and_then(|wait| cause(&self.past, &actor.rows, self.row, wait, time));
            let (back, at, think) = match found {
                Some((back, at, think)) => (back, at.saturating_add(think), think),
                None => (0, time, NONE),
            };
            batch.after.push(back as u32);
            batch.think.push(think);
            actor.rows.push_back(self.row);
            self.past.push_back(Past { at, back });
            if actor.rows.len() as u64 > MOST_BACK {
                actor.rows.pop_front();
            }
            if self.past.len() as u64 > MOST_BACK {
                self.past.pop_front();
            }
            self.row += 1;
        }
    }
}

/// What a request waits for: rows back, when that goes out, and the think time; nothing where it is too far back.
fn cause(
    past: &VecDeque<Past>,
    rows: &VecDeque<u64>,
    row: u64,
    (after, think): Wait,
    time: i64,
) -> Option<(usize, i64, i64)> {
    let after = usize::try_from(after).unwrap_or(1).max(1);
    // At the start of a stream an actor has not asked so often yet: it waits for the first.
    let mut back = (row - rows.get(rows.len().saturating_sub(after))?) as usize;
    let mut found = past.get(past.len().checked_sub(back)?)?;
    // Who has one request under way at a time keeps to that.
    while after > 1
        && found.at.saturating_add(think) > time
        && found.back > 0
        && let Some(earlier) = past.len().checked_sub(back + found.back)
    {
        back += found.back;
        found = &past[earlier];
    }
    Some((back, found.at, think))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of one actor that wait so, and when they go out.
    fn past(rows: &[(usize, i64)]) -> VecDeque<Past> {
        rows.iter().map(|&(back, at)| Past { at, back }).collect()
    }

    #[test]
    fn no_answer_is_thought_about_beyond_the_time_of_the_request() {
        let (past, rows) = (past(&[(0, 100), (1, 150), (1, 190), (2, 170)]), VecDeque::from([0, 1, 2, 3]));
        let wait = |after, think| cause(&past, &rows, 4, (after, think), 200);
        assert_eq!(wait(2, 10), Some((2, 190, 10)));
        assert_eq!(wait(2, 20), Some((3, 150, 20)), "an earlier one of the chain");
        assert_eq!(wait(2, 51), Some((4, 100, 51)));
        assert_eq!(wait(2, 900), Some((4, 100, 900)), "none is early enough: the first");
        assert_eq!(wait(1, 900), Some((1, 170, 900)), "one at a time");
        assert_eq!(wait(9, 5), Some((4, 100, 5)));
    }
}
