//! Where in a file chunks changed (Tarasov, section 4.5.2 and table 4.3).

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

/// Beginning, end, middle, and what they can be together; in the order of table 4.3.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
#[repr(u8)]
pub enum Pattern {
    #[default]
    B,
    E,
    M,
    BE,
    BM,
    ME,
    BEM,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Pattern; 7] =
        [Pattern::B, Pattern::E, Pattern::M, Pattern::BE, Pattern::BM, Pattern::ME, Pattern::BEM];

    /// Whether the beginning, the middle and the end changed.
    pub fn parts(self) -> (bool, bool, bool) {
        use Pattern::{B, BE, BEM, BM, E, M, ME};
        (
            matches!(self, B | BE | BM | BEM),
            matches!(self, M | BM | ME | BEM),
            matches!(self, E | BE | ME | BEM),
        )
    }

    /// Of a file's chunks before and after.
    ///
    /// Runs of chunks that the file did not have tell: one at the beginning is B, one at the end E, any other M. Of a
    /// file that changed as a whole one chunk is B, as in the thesis, two are BE, and more BEM. Where there is no such run
    /// chunks were only taken away, or moved, and the same is asked of those that are missing.
    pub fn of(before: &[u32], after: &[u32]) -> Pattern {
        let runs = |of: &[u32], in_: &[u32]| {
            let has: FxHashSet<u32> = in_.iter().copied().collect();
            parts_of(of.iter().map(|chunk| !has.contains(chunk)))
        };
        let parts = runs(after, before).or_else(|| runs(before, after)).unwrap_or_else(|| {
            let differs = (0..before.len().max(after.len())).map(|i| before.get(i) != after.get(i));
            parts_of(differs).unwrap_or((true, false, false))
        });
        match parts {
            (true, false, false) => Pattern::B,
            (false, false, true) => Pattern::E,
            (true, false, true) => Pattern::BE,
            (true, true, false) => Pattern::BM,
            (false, true, true) => Pattern::ME,
            (true, true, true) => Pattern::BEM,
            (false, _, false) => Pattern::M,
        }
    }
}

/// Whether there are changes at the beginning, in the middle and at the end; nothing where there are none.
fn parts_of(changed: impl Iterator<Item = bool>) -> Option<(bool, bool, bool)> {
    let changed: Vec<bool> = changed.collect();
    let first = changed.iter().position(|changed| *changed)?;
    if changed.iter().all(|changed| *changed) {
        return Some((true, changed.len() > 2, changed.len() > 1));
    }
    let last = changed.iter().rposition(|changed| *changed)?;
    // Runs at the ends are left away; what is left then is in the middle.
    let begin = changed.iter().position(|changed| !*changed)?;
    let end = changed.iter().rposition(|changed| !*changed)?;
    let middle = changed[begin..=end].iter().any(|changed| *changed);
    Some((first == 0, middle, last + 1 == changed.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_tell_where_chunks_changed() {
        use Pattern::{B, BE, BEM, BM, E, M, ME};
        let before = [1, 2, 3, 4, 5, 6];
        for (after, pattern) in [
            (&[9, 2, 3, 4, 5, 6][..], B),
            (&[9, 1, 2, 3, 4, 5, 6], B),
            (&[1, 2, 3, 4, 5, 9], E),
            (&[1, 2, 3, 4, 5, 6, 9, 8], E),
            (&[1, 2, 9, 4, 5, 6], M),
            (&[9, 2, 3, 4, 5, 8], BE),
            (&[9, 2, 8, 4, 5, 6], BM),
            (&[1, 9, 3, 4, 5, 8], ME),
            (&[9, 2, 8, 4, 5, 7], BEM),
            (&[9, 8, 7], BEM),
            (&[9, 8], BE),
            (&[9], B),
            // Taken away.
            (&[1, 2, 3], E),
            (&[4, 5, 6], B),
            (&[1, 2, 5, 6], M),
            // Moved.
            (&[1, 2, 4, 3, 5, 6], M),
        ] {
            assert_eq!(Pattern::of(&before, after), pattern, "{after:?}");
        }
    }
}
