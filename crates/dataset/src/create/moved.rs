//! New files that are another version of one that went: a directory or a library had its name changed, and something in it.

use super::draw::Draw;
use super::layout::{Piece, merge, nudge, slide, split};
use super::level::Sums;
use super::maker::GONE;
use super::runs::Runs;
use crate::chunks::Chunks;
use crate::profile::{Changed, File, New, Pattern, Step};
use crate::tree::Tree;
use rustc_hash::FxHashMap;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::iter::repeat_n;

/// Times that a file is laid out otherwise, and those in a row that bring nothing before that ends.
const TRIES: usize = 4000;
const IDLE: usize = 400;

/// Files that went, by extension and chunks, each of which can be one new file.
pub(super) struct Sources<'a> {
    before: &'a Tree,
    files: BTreeMap<(u16, usize), Vec<u32>>,
}

/// A new file as a change of one that went.
pub(super) struct Moved<'a> {
    pub old: &'a [u32],
    pub change: Changed,
    pub pieces: Vec<Piece>,
    /// How often more it has the chunk that the other one has most often.
    more: usize,
}

impl<'a> Sources<'a> {
    /// Of a tree, for the rows of a step.
    pub fn of(before: &'a Tree, files: &[u32], fates: &[u32], step: &Step) -> Sources<'a> {
        let mut sources = Sources { before, files: BTreeMap::new() };
        if step.new.iter().any(|row| row.in_place > 0) {
            for (file, _) in files.iter().zip(fates).filter(|(_, fate)| **fate == GONE) {
                let key = (before.file(*file).extension, before.chunks_of(*file).len());
                // One chunk, which ends its file, cannot be repeated before another.
                if key.1 > 1 {
                    sources.files.entry(key).or_default().push(*file);
                }
            }
        }
        sources
    }

    /// A new file with such an extension as a change of one, of those that have as many chunks as it keeps the one that is
    /// nearest in size; nothing where there is none.
    pub fn take(
        &mut self,
        row: &New,
        extension: u16,
        (runs, chunks, sizes): (&Runs, &Chunks, (u32, u32)),
        draw: &mut Draw,
    ) -> Option<Moved<'a>> {
        let others = row.file.size - row.file.unique;
        let more = row.own_more.min(others);
        let (size, kept) = (row.file.size - more, others - more);
        if row.in_place == 0 || kept == 0 || row.runs.abs_diff(row.gaps) > 1 {
            return None;
        }
        let (least, near) = ((extension, kept as usize), (extension, size.max(kept) as usize));
        let smaller = self.files.range(least..near).next_back();
        let larger = self.files.range(near..=(extension, usize::MAX)).next();
        let found = smaller.into_iter().chain(larger).map(|(key, _)| *key);
        let key = found.min_by_key(|(_, chunks)| chunks.abs_diff(size as usize))?;
        let files = self.files.get_mut(&key)?;
        let file = files.swap_remove(draw.below(files.len()));
        if files.is_empty() {
            self.files.remove(&key);
        }
        let old = self.before.chunks_of(file);
        let change = Changed { size, kept, ..change(row, draw) };
        let pieces = runs.layout(&change, old.len(), draw)?;
        let pieces = steer(pieces, row, &Sums::of(old, chunks, sizes), draw);
        Some(Moved { old, change, pieces, more: more as usize })
    }
}

impl Moved<'_> {
    /// Chunks that are kept.
    pub fn kept(&self) -> impl Iterator<Item = u32> {
        let stretches = self.pieces.iter().map(|piece| match *piece {
            Piece::Kept(from, count) => &self.old[from..from + count],
            Piece::Other(_) | Piece::Own(_) => &[],
        });
        stretches.flatten().copied()
    }

    /// Repeats the chunk that the other file has most often, before the last one: nothing moves by that.
    pub fn repeat(&self, chunks: &mut Vec<u32>) {
        let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
        let inner = &self.old[..self.old.len().saturating_sub(1)];
        inner.iter().for_each(|chunk| *counts.entry(*chunk).or_default() += 1);
        let most = counts.into_iter().max_by_key(|(chunk, count)| (*count, Reverse(*chunk)));
        if let Some((most, _)) = most {
            let at = chunks.len().saturating_sub(1);
            chunks.splice(at..at, repeat_n(most, self.more));
        }
    }
}

/// What a new file is as a change: of two equal numbers of runs either kind may be at the beginning.
fn change(row: &New, draw: &mut Draw) -> Changed {
    let pattern = match row.runs.cmp(&row.gaps) {
        Ordering::Less => Pattern::M,
        Ordering::Greater => Pattern::BEM,
        Ordering::Equal if draw.happens(0.5) => Pattern::BM,
        Ordering::Equal => Pattern::ME,
    };
    let File { size, unique, dup1, dup2, .. } = row.file;
    Changed {
        file: row.file,
        bits: 0,
        state: 0,
        size,
        unique,
        dup1,
        dup2,
        kept: size - unique,
        in_place: row.in_place,
        twice: row.twice,
        often: row.often,
        own_twice: row.own_twice,
        own_often: row.own_often,
        stretches: row.stretches,
        aligned: row.aligned,
        kind: row.kind,
        runs: row.runs,
        pattern,
        count: 1,
    }
}

/// Lays a file out otherwise as long as what is in place comes nearer to as many bytes as it has.
fn steer(mut pieces: Vec<Piece>, row: &New, sums: &Sums, draw: &mut Draw) -> Vec<Piece> {
    let off = |pieces: &[Piece]| {
        let bytes = sums.staying(pieces, row.in_place as usize).bytes >> 10;
        let places = (2 * row.runs as usize + 1).abs_diff(pieces.len()).saturating_sub(2);
        (bytes.abs_diff(u64::from(row.in_place_kib)), places)
    };
    let (mut best, mut idle) = (off(&pieces), 0);
    for _ in 0..TRIES {
        if idle == IDLE || best.0 * 50 <= u64::from(row.in_place_kib) {
            break;
        }
        let other = match draw.below(8) {
            0..3 => nudge(&pieces, None, draw),
            3..6 => slide(&pieces, draw),
            6 => split(&pieces, draw),
            _ => merge(&pieces, draw),
        };
        idle += 1;
        if let Some(other) = other {
            let here = off(&other);
            if here.0 <= best.0 && here.1 <= best.1.max(2) {
                if here.0 < best.0 {
                    idle = 0;
                }
                (pieces, best) = (other, here);
            }
        }
    }
    pieces
}
