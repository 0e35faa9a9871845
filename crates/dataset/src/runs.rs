//! Lengths of runs as a deduplicator meets them: what a container or extent holds (Tarasov, section 4.5.1).

use crate::profile::regular;
use crate::tree::Series;
use serde::Serialize;
use std::collections::BTreeMap;

/// Nowhere yet.
const NEVER: u64 = u64::MAX;

/// Runs of one snapshot, read file after file in the order of paths: how many there are of each length, in chunks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunLengths {
    /// Chunks that were stored at no time before.
    pub fresh: BTreeMap<u32, u64>,
    /// Chunks that were stored before, each right after the one before it.
    pub repeated: BTreeMap<u32, u64>,
}

/// Runs of every snapshot of a series.
pub fn run_lengths(series: &Series) -> Vec<RunLengths> {
    let mut stored = vec![NEVER; series.chunks.len()];
    let mut next = 0;
    let of_tree = |tree: &crate::Tree| {
        let mut files: Vec<(std::path::PathBuf, u32)> =
            regular(tree).map(|file| (tree.path(&series.names, file), file)).collect();
        files.sort_unstable();
        let mut runs = RunLengths::default();
        let (mut length, mut last) = (0u32, None);
        for chunk in files.iter().flat_map(|(_, file)| tree.chunks_of(*file)) {
            let place = &mut stored[*chunk as usize];
            let fresh = *place == NEVER;
            if fresh {
                *place = next;
                next += 1;
            }
            let goes_on = matches!(last, Some((was, at)) if was == fresh && (fresh || at + 1 == *place));
            if !goes_on {
                runs.end(last, length);
                length = 0;
            }
            (length, last) = (length + 1, Some((fresh, *place)));
        }
        runs.end(last, length);
        runs
    };
    series.trees.iter().map(of_tree).collect()
}

impl RunLengths {
    fn end(&mut self, last: Option<(bool, u64)>, length: u32) {
        if let Some((fresh, _)) = last {
            let all = if fresh { &mut self.fresh } else { &mut self.repeated };
            *all.entry(length).or_insert(0) += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::{Parts, scanned};

    #[test]
    fn runs_end_where_what_was_stored_does() {
        let file = |name: &str, seeds: &[u64]| -> Parts {
            (name.into(), seeds.iter().map(|seed| (*seed, 4096)).collect())
        };
        let series = scanned(&[
            vec![file("a", &[1, 2, 3]), file("b", &[4, 5])],
            vec![file("a", &[1, 9, 3]), file("b", &[4, 5]), file("c", &[2, 3, 8])],
        ]);
        let runs = run_lengths(&series);
        assert_eq!((runs[0].fresh.clone(), runs[0].repeated.len()), (BTreeMap::from([(5, 1)]), 0));
        // 1; 9; 3 4 5; 2 3; 8.
        assert_eq!(runs[1].fresh, BTreeMap::from([(1, 2)]));
        assert_eq!(runs[1].repeated, BTreeMap::from([(1, 1), (2, 1), (3, 1)]));
    }
}
