//! Files that are alike and change alike: copies with another version in them, or one program built twice.

use crate::profile::Changed;
use rustc_hash::FxHashMap;

/// A file that changes: its chunks before, and its row.
pub(super) type File<'a> = (&'a [u32], &'a Changed);

/// Files that change by one row and have most chunks in common, place by place; each file is in one group, alone where it has
/// no twin. Each is told by its number among `files`.
pub(super) fn groups(files: &[File<'_>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut first: FxHashMap<(&Changed, usize), usize> = FxHashMap::default();
    for (i, (chunks, row)) in files.iter().enumerate() {
        let group = *first.entry((row, chunks.len())).or_insert(groups.len());
        let other = groups.get(group).map_or(&[][..], |group| files[group[0]].0);
        let same = chunks.iter().zip(other).filter(|(one, other)| one == other).count();
        if 2 * same > chunks.len() {
            groups[group].push(i);
        } else {
            groups.push(vec![i]);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::create::layout::tests::row;
    use crate::profile::Pattern;

    #[test]
    fn twins_have_one_row_and_most_chunks_in_common() {
        let (one, other) = (row(4, 4, 3, Pattern::M), row(4, 4, 3, Pattern::B));
        let files: [File<'_>; 6] = [
            (&[1, 2, 3, 4], &one),
            (&[9, 8, 7, 6], &one),
            (&[5, 2, 3, 4], &one),
            (&[5, 2, 3, 4], &other),
            (&[5, 2, 3, 4, 6], &one),
            (&[1, 2, 7, 8], &one),
        ];
        assert_eq!(groups(&files), [vec![0, 2], vec![1], vec![3], vec![4], vec![5]]);
    }
}
