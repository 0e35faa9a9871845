//! How much stays of chunks that change.

use crate::tree::{Series, Stays};
use loadstone_fstree::{Replaced, Successor, replaced};
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Lengths of beginnings and ends of chunks that are compared: each a quarter larger than the one before, the first a 32nd of
/// an average chunk.
const LENGTHS: usize = 24;

/// What is compared of a chunk: bytes of hashes. Two may be the same of what is not.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parts {
    /// Of its sixteenths.
    parts: [u8; Stays::PARTS],
    /// Of its beginnings.
    heads: [u8; LENGTHS],
    /// Of its ends.
    ends: [u8; LENGTHS],
}

/// The `n`th length, bytes.
fn length(n: usize, average: u32) -> usize {
    (f64::from(average) / 32.0 * (n as f64 / 3.0).exp2()) as usize
}

impl Parts {
    /// Of a chunk, where chunks have so many bytes on average.
    pub fn of(chunk: &[u8], average: u32) -> Parts {
        let part = |part: usize| chunk.len() * part / Stays::PARTS;
        let mut parts = Parts {
            parts: std::array::from_fn(|i| hash(FxHasher::default(), &chunk[part(i)..part(i + 1)]).1),
            ..Parts::default()
        };
        let (mut head, mut end) = (FxHasher::default(), FxHasher::default());
        let (mut at, mut rest) = (0, chunk.len());
        for (n, (heads, ends)) in parts.heads.iter_mut().zip(&mut parts.ends).enumerate() {
            let length = length(n, average);
            if length > chunk.len() {
                break;
            }
            (head, *heads) = hash(head, &chunk[at..length]);
            (end, *ends) = hash(end, &chunk[chunk.len() - length..rest]);
            (at, rest) = (length, chunk.len() - length);
        }
        parts
    }

    /// How many sixteenths two chunks of one length have in common, before and behind what is not the same.
    fn whole(&self, other: &Parts) -> usize {
        let both = self.parts.iter().zip(&other.parts);
        let before = alike(both.clone());
        // They differ in one at least.
        (before + alike(both.rev())).min(Stays::PARTS - 1)
    }
}

fn hash(mut before: FxHasher, bytes: &[u8]) -> (FxHasher, u8) {
    before.write(bytes);
    let byte = (before.finish() >> 56) as u8;
    (before, byte)
}

fn alike<'a>(both: impl Iterator<Item = (&'a u8, &'a u8)>) -> usize {
    both.take_while(|(one, other)| one == other).count()
}

/// About how many bytes of two chunks' beginnings, or ends, are the same, if the shorter has so many.
fn bytes(one: &[u8; LENGTHS], other: &[u8; LENGTHS], shorter: usize, average: u32) -> f64 {
    let lengths = (0..LENGTHS).take_while(|n| length(*n, average) <= shorter).count();
    match alike(one.iter().zip(other).take(lengths)) {
        0 => 0.0,
        // Between this length and the next.
        n => {
            let next = if n < lengths { length(n, average) } else { shorter };
            (length(n - 1, average) as f64 * next as f64).sqrt()
        }
    }
}

/// How much stays, told by what is compared of all chunks; nothing where none changed.
pub(super) fn stays(series: &Series, parts: &[Parts]) -> Option<Stays> {
    let mut stays = Stays::default();
    let average = series.meta.chunking.average();
    for Replaced { successors, others } in replaced(series) {
        for Successor { chunk, whole, .. } in &successors {
            if let Some(of) = whole {
                stays.parts[parts[*chunk as usize].whole(&parts[*of as usize])] += 1;
            }
        }
        for new in successors.iter().filter(|new| new.whole.is_none()) {
            let part = |of: u32| {
                let [one, other] = [new.chunk, of].map(|chunk| &parts[chunk as usize]);
                let sizes = [new.chunk, of].map(|chunk| series.chunks.size(chunk) as usize);
                let shorter = sizes[0].min(sizes[1]);
                let heads = bytes(&one.heads, &other.heads, shorter, average);
                let ends = bytes(&one.ends, &other.ends, shorter, average);
                let sixteenths = |bytes: f64| (bytes / shorter as f64 * Stays::PARTS as f64).round() as usize;
                [heads + ends, heads, ends].map(|bytes| sixteenths(bytes).min(Stays::PARTS))
            };
            if let Some(of) = new.alone() {
                stays.alone[part(of)[0]] += 1;
                continue;
            }
            if let Some(of) = new.first {
                stays.first[part(of)[1]] += 1;
            }
            if let Some(of) = new.last {
                stays.last[part(of)[2]] += 1;
            }
        }
        stays.others = stays.others.saturating_add(others);
    }
    (stays != Stays::default()).then_some(stays)
}
