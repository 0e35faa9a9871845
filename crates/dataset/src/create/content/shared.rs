//! Fresh chunks that are in the new tree more than once.

use crate::profile::Step;
use std::collections::VecDeque;
use std::mem::take;

/// Where in its file a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Only,
    Inner,
    Last,
}

/// A chunk that is to be there so many times more.
struct Open {
    chunk: u32,
    left: u32,
}

/// Chunks in the order in which files have them.
#[derive(Default)]
struct Queue {
    others: VecDeque<Open>,
    /// Those that the file has which is made.
    own: VecDeque<Open>,
}

impl Queue {
    /// Takes the first that fits; what is still to be there more often goes behind what the file has.
    fn take(&mut self, own: bool, fits: &dyn Fn(u32) -> bool) -> Option<u32> {
        let from = if own { &mut self.own } else { &mut self.others };
        let at = from.iter().position(|one| fits(one.chunk))?;
        let Open { chunk, left } = from.remove(at)?;
        if left > 1 {
            self.own.push_back(Open { chunk, left: left - 1 });
        }
        Some(chunk)
    }
}

/// Chunks that are there twice, or more often.
#[derive(Default)]
struct ChunkQueue {
    inner: Queue,
    /// Those that were made for the end of a file.
    ends: Queue,
    /// Times that they are still to be there.
    owed: u64,
    /// Places that are still to be filled.
    places: u64,
}

/// Chunks that are there twice, and more often.
pub(crate) struct Shared([ChunkQueue; 2]);

impl Shared {
    /// For the files of a step, times a factor.
    pub fn new(step: &Step, factor: f64) -> Shared {
        let new = step.new.iter().map(|row| (row.count, [row.twice, row.often]));
        let changed = step.changed.iter().map(|row| (row.count, [row.twice, row.often]));
        let mut places = [0.0; 2];
        for (count, shared) in new.chain(changed) {
            let add = |(places, shared): (&mut f64, u32)| *places += f64::from(count) * f64::from(shared);
            places.iter_mut().zip(shared).for_each(add);
        }
        Shared(
            places.map(|places| ChunkQueue {
                places: (places * factor).round() as u64,
                ..ChunkQueue::default()
            }),
        )
    }

    /// Goes on to another file: what the last one has others can have as well.
    pub fn begin(&mut self) {
        for queue in self.0.iter_mut().flat_map(|line| [&mut line.inner, &mut line.ends]) {
            queue.others.append(&mut take(&mut queue.own));
        }
    }

    /// A chunk that is there already, for the next place of the file; `often`: of those that are there more than twice.
    pub fn take(&mut self, often: bool, place: Place, fits: &dyn Fn(u32) -> bool) -> Option<u32> {
        let line = &mut self.0[usize::from(often)];
        line.places = line.places.saturating_sub(1);
        // Where as many are owed as there are places, nothing new can be there again, and a file may have one several times.
        let whole = line.owed > 0 && line.owed >= line.places;
        for own in [false, true].into_iter().take(1 + usize::from(whole)) {
            let mut queues = [&mut line.inner, &mut line.ends];
            if place != Place::Inner {
                queues.reverse();
            }
            if let Some(chunk) = queues.into_iter().find_map(|queue| queue.take(own, fits)) {
                line.owed -= 1;
                return Some(chunk);
            }
        }
        None
    }

    /// A chunk that was made for a place of the file, and is to be there so many times more.
    pub fn made(&mut self, often: bool, chunk: u32, left: u32, place: Place) {
        let line = &mut self.0[usize::from(often)];
        line.owed += u64::from(left);
        let queue = if place == Place::Inner { &mut line.inner } else { &mut line.ends };
        queue.own.push_back(Open { chunk, left });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{File, New};

    #[test]
    fn what_a_file_has_is_for_others_unless_there_are_no_other_places() {
        let file = File { depth: 0, extension: 0, size: 3, unique: 3, dup1: 0, dup2: 0 };
        let row = New { file, often: 3, count: 2, ..New::default() };
        let mut shared = Shared::new(&Step { new: vec![row], ..Step::default() }, 1.0);
        let take = |shared: &mut Shared, place| shared.take(true, place, &|_| true);
        assert_eq!(take(&mut shared, Place::Inner), None);
        shared.made(true, 1, 2, Place::Inner);
        assert_eq!(take(&mut shared, Place::Inner), None, "the file has it, and others have room");
        shared.made(true, 2, 1, Place::Last);
        assert_eq!(take(&mut shared, Place::Last), Some(2), "three are owed, and three places are left");
        shared.begin();
        assert_eq!([take(&mut shared, Place::Last), take(&mut shared, Place::Inner)], [Some(1), Some(1)]);
        assert_eq!(take(&mut shared, Place::Inner), None, "nothing is left");
    }
}
