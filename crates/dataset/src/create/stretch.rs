//! What lies where of a file's fresh chunks: those that it shares in stretches, and what it has alone between them.
//!
//! A stretch is in one piece wherever it is, so a reader whose pieces hold many chunks finds it again, and nothing across its
//! ends. So where one ends is a matter of the chunks, not of the file: whichever file has them puts its own between, as long as it
//! is to have more stretches.

use super::draw::Draw;
use super::supply::{Place, Supply};
use crate::Result;
use crate::chunks::Chunks;
use crate::profile::{Changed, New};

/// Of one file, the fresh chunks that are still to come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fresh {
    /// Those that are there once, twice and more often.
    once: u32,
    twice: u32,
    often: u32,
    /// Of these, those that are there twice come first, as in the other of a pair.
    pair: bool,
    /// Stretches that are still to begin, where they are told.
    stretches: Option<u32>,
    /// Shared chunks since the last stretch began.
    passed: u32,
    /// Shared chunks to come that are where another file has them.
    aligned: u32,
    /// What would come last comes first.
    ahead: bool,
    /// Chunks of its own that come before what waits.
    due: u32,
    waiting: Option<u32>,
    /// How many of these have come, and whether they are as long as those of another file.
    nth: u32,
    as_long: bool,
}

impl Fresh {
    /// Of a new file.
    pub fn of_new(row: &New, paired: bool) -> Fresh {
        Fresh::of(row.file.unique, (row.twice, row.often), row.stretches, paired).placed(row.aligned)
    }

    /// Of a modified file, of which so many chunks are fresh; `ahead`: one of those that it has alone comes first,
    /// or of those that the fewest have. Where most of it stays that is between them, and files that change alike have the
    /// same in the same places.
    pub fn of_changed(row: &Changed, fresh: u32, paired: bool, ahead: bool) -> Fresh {
        let is_new = fresh > row.kept;
        let stretches = if is_new { row.stretches } else { 0 };
        let all = Fresh::of(fresh, (row.twice, row.often), stretches, paired);
        if is_new {
            return all.placed(row.aligned);
        }
        Fresh { due: if ahead { all.once } else { 0 }, ahead: ahead && all.once == 0, ..all }
    }

    /// The same with so many shared chunks where other files have them. What is elsewhere has something of its own before.
    fn placed(self, aligned: u32) -> Fresh {
        let elsewhere = self.stretches.is_some() && 2 * aligned < self.twice + self.often;
        Fresh { due: u32::from(elsewhere).min(self.once), aligned, ..self }
    }

    fn of(fresh: u32, (twice, often): (u32, u32), stretches: u32, pair: bool) -> Fresh {
        let twice = twice.min(fresh);
        let often = often.min(fresh - twice);
        let once = fresh - twice - often;
        // Copies begin alike, as what they share is where it is in both.
        let pair = pair && twice > often;
        Fresh {
            once,
            twice,
            often,
            pair,
            stretches: (stretches > 0).then_some(stretches),
            ..Fresh::default()
        }
    }

    /// Without so many that are there twice and more often, as it has them where it meets other files.
    pub fn without(&mut self, [twice, often]: [u32; 2]) {
        self.twice = self.twice.saturating_sub(twice);
        self.often = self.often.saturating_sub(often);
    }

    /// The next one.
    pub fn next(
        &mut self,
        supply: &mut Supply<'_>,
        chunks: &mut Chunks,
        place: Place,
        draw: &mut Draw,
    ) -> Result<u32> {
        if self.due == 0 {
            if let Some(chunk) = self.waiting.take() {
                return Ok(chunk);
            }
            if self.twice + self.often > 0 {
                let (chunk, begins) = self.shared(supply, chunks, place, draw)?;
                let known = supply.before(chunk).len() as u32;
                self.as_long = self.aligned > 0 && known > 0;
                self.due = match begins {
                    true if self.as_long => known.min(self.once),
                    true => self.between(draw),
                    false => 0,
                };
                if self.due == 0 {
                    return Ok(chunk);
                }
                (self.waiting, self.nth) = (Some(chunk), 0);
            }
        }
        self.due = self.due.saturating_sub(1);
        self.once = self.once.saturating_sub(1);
        let Some(chunk) = self.waiting else { return supply.once(chunks, place, None, draw) };
        let size = supply.before(chunk).get(self.nth as usize).copied().filter(|_| self.as_long);
        let own = supply.once(chunks, place, size, draw)?;
        if !self.as_long {
            supply.note_before(chunk, self.nth, chunks.size(own));
        }
        self.nth += 1;
        Ok(own)
    }

    /// How many that the file has alone are still to come.
    pub fn alone(&self) -> u32 {
        self.once
    }

    /// One that the file has alone, or the next one where all such have their places.
    pub fn own(
        &mut self,
        supply: &mut Supply<'_>,
        chunks: &mut Chunks,
        place: Place,
        draw: &mut Draw,
    ) -> Result<u32> {
        if self.once <= self.due {
            return self.next(supply, chunks, place, draw);
        }
        self.once -= 1;
        supply.once(chunks, place, None, draw)
    }

    /// A chunk that is there more than once, and whether another stretch begins with it.
    fn shared(
        &mut self,
        supply: &mut Supply<'_>,
        chunks: &mut Chunks,
        place: Place,
        draw: &mut Draw,
    ) -> Result<(u32, bool)> {
        let all = self.twice + self.often;
        let ahead = std::mem::take(&mut self.ahead);
        let often = self.twice == 0 || (self.often > 0 && self.pair == ahead);
        if often {
            self.often -= 1
        } else {
            self.twice -= 1
        };
        let Some(left) = self.stretches else {
            return Ok((supply.again(chunks, often, 1.0, place, draw)?.0, false));
        };
        let chance = if self.passed > 0 { f64::from(left) / f64::from(all) } else { 1.0 };
        let (chunk, begins, is_new) = supply.again(chunks, often, chance, place, draw)?;
        // What ends another file's stretch may go on here, where that one has its own and this one has nothing.
        let due = f64::from(left) * f64::from(self.passed) / f64::from(all);
        // What is to be where another file has it goes on where that one does, with as much between.
        let is_told = self.aligned > 0 && !supply.before(chunk).is_empty();
        let may_begin = is_new || is_told || self.aligned == 0 && draw.happens(due);
        let begins = self.passed == 0 || begins && left > 0 && may_begin;
        self.aligned = self.aligned.saturating_sub(1);
        let is_first = self.passed == 0;
        if begins {
            (self.stretches, self.passed) = (Some(left.saturating_sub(1)), 0);
        }
        self.passed += 1;
        Ok((chunk, begins && !is_first))
    }

    /// How many of its own chunks come between two stretches: they are spread over the ends of all that are left.
    fn between(&self, draw: &mut Draw) -> u32 {
        let mean = f64::from(self.once) / f64::from(self.stretches.unwrap_or(0) + 2);
        if mean < 1.0 {
            return u32::from(draw.happens(mean));
        }
        let more = (1.0 - mean) * (1.0 - draw.uniform()).ln();
        (1 + draw.rounded(more).min(u64::from(self.once)) as u32).min(self.once)
    }
}
