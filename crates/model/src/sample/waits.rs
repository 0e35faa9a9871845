//! Who asks, and after which answer: what a model that draws think times gives its requests besides times.

use super::decode::Decoder;
use crate::cells;
use loadstone_trace::depend::MOST_BACK;
use loadstone_trace::{Batch, NONE};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// How the numbers of a dimension are drawn, and where its code lies in a key.
type Drawn = (Decoder, cells::Place);

/// Turns drawn numbers, which count requests of an actor, into dependencies, which count rows.
pub(super) struct Waits {
    actor: Drawn,
    after: Drawn,
    think: Drawn,
    row: u64,
    /// Rows of each actor's last requests.
    rows: FxHashMap<u32, VecDeque<u64>>,
}

impl Waits {
    pub fn new(actor: Drawn, after: Drawn, think: Drawn) -> Waits {
        Waits { actor, after, think, row: 0, rows: FxHashMap::default() }
    }

    /// Gives the request just appended to `batch` its actor and what it waits for.
    pub fn note(&mut self, key: u64, rng: &mut Xoshiro256PlusPlus, batch: &mut Batch) {
        let mut draw = |(decoder, place): &Drawn| decoder.draw(place.code(key), rng);
        let actor = draw(&self.actor).max(0) as u32;
        let (after, think) = (draw(&self.after), draw(&self.think));
        let rows = self.rows.entry(actor).or_default();
        // At the start of a stream an actor has not asked so often yet: it waits for the first.
        let cause = if after == NONE || think == NONE {
            None
        } else {
            let at = rows.len().saturating_sub(usize::try_from(after).unwrap_or(1).max(1));
            rows.get(at).map(|row| self.row - row).filter(|back| *back <= MOST_BACK)
        };
        batch.actor.push(actor);
        batch.after.push(cause.map_or(0, |back| back as u32));
        batch.think.push(if cause.is_some() { think } else { NONE });
        rows.push_back(self.row);
        if rows.len() as u64 > MOST_BACK {
            rows.pop_front();
        }
        self.row += 1;
    }
}
