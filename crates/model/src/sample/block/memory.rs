//! Ends of the last requests that nothing went on from.

use crate::feature::recent::REACH;
use loadstone_trace::NONE;

/// An end no request is of.
const NOBODY: u32 = u32::MAX;

/// Where the last [`REACH`] requests that have an offset ended, by op of an object, and whether one went on from there.
///
/// Nothing is looked up when a request is noted, only when one is asked for.
pub(crate) struct Open {
    /// An object's op, and the end.
    slots: Box<[(u32, i64)]>,
    /// Requests so far.
    next: usize,
}

impl Open {
    pub fn new() -> Open {
        Open { slots: vec![(NOBODY, NONE); REACH].into_boxed_slice(), next: 0 }
    }

    /// Takes the next request.
    #[inline]
    pub fn note(&mut self, owner: u32, end: i64) {
        self.slots[self.next % REACH] = (owner, end);
        self.next += 1;
    }

    /// Where the request so many requests ago lies, if it is within reach.
    #[inline]
    fn at(&self, ago: i64) -> Option<usize> {
        (1..REACH as i64).contains(&ago).then(|| self.next.wrapping_sub(ago as usize) % REACH)
    }

    /// End of the request so many requests ago, if it is of this owner and none went on from it.
    #[inline]
    pub fn ago(&self, owner: u32, ago: i64) -> Option<i64> {
        let (of, end) = self.slots[self.at(ago)?];
        (of == owner).then_some(end)
    }

    /// The next request goes on from the one so many requests ago.
    #[inline]
    pub fn go_on(&mut self, ago: i64) {
        if let Some(at) = self.at(ago) {
            self.slots[at].0 = NOBODY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_reach_is_forgotten() {
        let mut open = Open::new();
        open.note(0, 512);
        (0..REACH as i64 - 2).for_each(|end| open.note(1, end));
        let oldest = REACH as i64 - 1;
        assert_eq!(open.ago(0, oldest), Some(512));
        open.note(0, 7);
        assert_eq!((open.ago(0, oldest), open.ago(0, oldest + 1)), (None, None));
        assert_eq!((open.ago(0, 0), open.ago(0, -1)), (None, None));
    }

    #[test]
    fn nothing_goes_on_twice_from_one_end() {
        let mut open = Open::new();
        open.note(0, 512);
        open.note(0, 1024);
        assert_eq!((open.ago(0, 2), open.ago(1, 2)), (Some(512), None));
        open.go_on(2);
        assert_eq!((open.ago(0, 2), open.ago(0, 1)), (None, Some(1024)));
    }
}
