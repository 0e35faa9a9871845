//! How much stays of chunks that change, and in how many pieces.

use crate::tree::{Series, Stays};
use loadstone_fstree::{Stretch, replaced};
use rustc_hash::{FxHashSet, FxHasher};
use std::hash::Hasher;

/// What is compared of a chunk.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    /// Hashes of its sixteenths, a byte each. Two may be the same of what is not.
    sixteenths: [u8; Stays::PARTS],
    /// Hashes and lengths of what a chunker of smaller chunks cuts it into.
    pieces: Box<[Piece]>,
}

/// The upper bits are a hash, the lower 16 the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Piece(u64);

impl Piece {
    /// How many of a chunk there are, about: finer readers find what is as long.
    const EACH: u32 = 8;

    fn bytes(self) -> f64 {
        (self.0 & 0xffff) as f64
    }
}

impl Parts {
    /// Of a chunk, where chunks have so many bytes on average.
    pub fn of(chunk: &[u8], average: u32) -> Parts {
        let part = |part: usize| chunk.len() * part / Stays::PARTS;
        let sixteenths = std::array::from_fn(|i| (hash(&chunk[part(i)..part(i + 1)]) >> 56) as u8);
        let average = (average / Piece::EACH).max(256) as usize;
        let piece = |cut: fastcdc::v2020::Chunk| {
            let bytes = &chunk[cut.offset..cut.offset + cut.length];
            Piece(hash(bytes) << 16 | cut.length as u64 & 0xffff)
        };
        let cuts = fastcdc::v2020::FastCDC::new(chunk, average / 4, average, 4 * average);
        Parts { sixteenths, pieces: cuts.map(piece).collect() }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// How many bytes of a chunk stay, and how many edits it has, told by its pieces: their bytes, and whether they stay. An edit is
/// anywhere in the first and in the last piece that it changes, so half of both stays. Where no piece does nothing stays.
fn stay(pieces: impl Iterator<Item = (f64, bool)>) -> (f64, u32) {
    let (mut bytes, mut edits, mut run, mut some) = (0.0, 0, None, false);
    for (length, stays) in pieces.chain([(0.0, true)]) {
        some |= stays && length > 0.0;
        match (stays, run) {
            (true, Some(last)) => {
                bytes += length + last / 2.0;
                run = None;
            }
            (true, None) => bytes += length,
            (false, Some(_)) => run = Some(length),
            (false, None) => {
                (edits, run) = (edits + 1, Some(length));
                bytes += length / 2.0;
            }
        }
    }
    if some { (bytes, edits) } else { (0.0, 0) }
}

/// How much stays, told by what is compared of all chunks; nothing where none changed.
pub(super) fn stays(series: &Series, parts: &[Parts]) -> Option<Stays> {
    let mut stays = Stays::default();
    replaced(series, &mut |all| {
        for stretch in all {
            add(&mut stays, series, parts, &stretch);
        }
    });
    (stays != Stays::default()).then_some(stays)
}

fn add(stays: &mut Stays, series: &Series, parts: &[Parts], stretch: &Stretch) {
    let was = stretch.was.iter().flat_map(|chunk| &parts[*chunk as usize].pieces);
    let was: FxHashSet<Piece> = was.copied().collect();
    let sixteenths = |share: f64| (share * Stays::PARTS as f64).round() as usize;
    // No more of what comes can have been there than there was.
    let most = (stretch.was_bytes() as f64 / stretch.bytes() as f64).min(1.0);
    for new in &stretch.new {
        let one = &parts[new.chunk as usize];
        let (counts, share, edits) = if let Some(of) = new.whole {
            let both = one.sixteenths.iter().zip(&parts[of as usize].sixteenths);
            let (share, edits) = stay(both.map(|(one, other)| (1.0, one == other)));
            (&mut stays.parts[..], share / Stays::PARTS as f64, edits)
        } else {
            stays.others = stays.others.saturating_add(1);
            if stretch.was.is_empty() {
                continue;
            }
            let (bytes, edits) = stay(one.pieces.iter().map(|piece| (piece.bytes(), was.contains(piece))));
            let counts = if stretch.is_alone() { &mut stays.alone } else { &mut stays.several };
            (&mut counts[..], bytes / f64::from(series.chunks.size(new.chunk)) / most, edits)
        };
        let part = sixteenths(share).min(counts.len() - 1);
        counts[part] = counts[part].saturating_add(1);
        if part > 0 {
            stays.edits = stays.edits.saturating_add(edits);
        }
    }
}
