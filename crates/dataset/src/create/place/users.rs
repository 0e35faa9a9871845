//! The space dimension (Tarasov, section 4.3.1): many users or virtual machines that begin with one tree and diverge.

use crate::create::place::arrive::{Left, USERS};
use crate::names::Name;
use crate::profile::{occurrences, see};
use crate::tree::{Entry, Series, Tree, tag};
use crate::{Error, Result};

/// One user's tree over the generations.
#[derive(Default)]
pub(crate) struct Lineage {
    /// Where there are several users: otherwise the series has it.
    tree: Option<Tree>,
    /// Files that were deleted by the last change.
    pub left: Vec<Left>,
    /// How often each chunk was in all trees before this one, up to what profiles tell apart.
    pub seen: Vec<u8>,
}

/// So many users with the last tree each; a single one has none of its own.
pub(crate) fn part(series: &Series, users: u32) -> Vec<Lineage> {
    let mut seen = vec![0; series.chunks.len()];
    let before = series.trees.len().saturating_sub(1);
    for tree in &series.trees[..before] {
        see(&mut seen, &occurrences(tree, series.chunks.len()));
    }
    let tree = || series.trees.last().filter(|_| users > 1).cloned();
    (0..users).map(|_| Lineage { tree: tree(), left: Vec::new(), seen: seen.clone() }).collect()
}

/// The tree that a user has.
pub(crate) fn take(series: &mut Series, users: &mut [Lineage], user: usize) -> Tree {
    let own = users[user].tree.take();
    let last = if own.is_none() && users.len() == 1 { series.trees.pop() } else { None };
    own.or(last).unwrap_or_else(|| Tree::new(""))
}

/// Gives a user its next tree; the one before stays in the series, if it was there.
pub(crate) fn put(series: &mut Series, users: &mut [Lineage], user: usize, before: Option<Tree>, tree: Tree) {
    if users.len() > 1 {
        users[user].tree = Some(tree);
    } else {
        series.trees.extend(before);
        series.trees.push(tree);
    }
}
/// One tree that has those of all users, each in a directory of its own.
pub(crate) fn join(users: &[Lineage]) -> Result<Tree> {
    let mut joined = Tree::new("");
    let trees = || (1..).zip(users.iter().filter_map(|user| user.tree.as_ref()));
    let mut dirs: Vec<Vec<u32>> = Vec::new();
    for (number, tree) in trees() {
        let mut own = vec![joined.add_dir(0, user_name(number))];
        for dir in 1..tree.dirs() {
            let above = own[tree.dirs.parent[dir] as usize];
            own.push(joined.add_dir(above, Name(tree.dirs.name[dir])));
        }
        dirs.push(own);
    }
    for ((_, tree), dirs) in trees().zip(&dirs) {
        let first =
            u32::try_from(joined.len()).map_err(|_| Error::Option("2^32 files: use fewer users".into()))?;
        for file in 0..tree.len() as u32 {
            let entry = tree.file(file);
            let linked = tree.linked(file).map(|to| (first + to).to_le_bytes());
            let mut records: Vec<(u16, &[u8])> = tree.private_of(file).collect();
            for record in &mut records {
                if let (tag::HARD, Some(to)) = (record.0, &linked) {
                    record.1 = to;
                }
            }
            let dir = dirs[entry.dir as usize];
            joined.add_file(&Entry { dir, private: &records, ..entry }, tree.chunks_of(file))?;
        }
    }
    Ok(joined)
}

/// Names of users' directories come from the far end of the numbers, which no file gets to.
fn user_name(number: u32) -> Name {
    Name::made(USERS + number)
}
