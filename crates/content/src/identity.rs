//! Which content a block has: a function of where it is and how often it was written.
//!
//! With a dedupe ratio of `d` and `n` blocks in all, each block draws one of `u` contents. As `n` draws among `u` find
//! `u (1 - (1 - 1/u)^n)` of them (the coupon collector's occupancy; Feller, An Introduction to Probability
//! Theory, volume 1, IV.2), `u` is what makes that `n / d`. Nothing is remembered: a block written anew draws anew, so
//! any mixture of old and new blocks has the same ratio, and whoever knows the place can make the bytes again.

use crate::generator::{Id, cipher, encipher};
use crate::{Error, Result};
use aes::Aes128;

/// Where a block is, and which one of those written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Which file or device.
    pub file: u64,
    /// Which block of it, from 0.
    pub block: u64,
    /// Which of those ever written there: 0 before a run, then numbers that never come again.
    pub generation: u64,
}

/// Gives places their contents.
#[derive(Clone)]
pub struct Identities {
    cipher: Aes128,
    /// Contents there are; nothing: every place has its own.
    contents: Option<u64>,
}

impl Identities {
    /// For `blocks` blocks in all of which there are `dedupe` for each that is unique.
    ///
    /// # Errors
    /// For a ratio that so many blocks cannot have.
    pub fn new(seed: u64, blocks: u64, dedupe: f64) -> Result<Identities> {
        if !(dedupe >= 1.0 && dedupe.is_finite()) {
            return Err(Error::Option(format!(
                "a dedupe ratio of {dedupe}: use 1 (all blocks differ) or more"
            )));
        }
        if dedupe > 1.0 && blocks == 0 {
            return Err(Error::Option(format!(
                "a dedupe ratio of {dedupe}: nothing is written, or nothing says how much: give the files of sets the size \
                 that they come to have, or leave the ratio out"
            )));
        }
        if dedupe > 1.0 && dedupe > blocks as f64 {
            return Err(Error::Option(format!(
                "a dedupe ratio of {dedupe}: {blocks} blocks cannot have it; use at most {blocks}, more data, or a \
                 smaller dedupe unit where it is above 4096 bytes"
            )));
        }
        let contents = (dedupe > 1.0).then(|| contents(blocks, dedupe));
        Ok(Identities { cipher: cipher("loadstone 2026 identity of blocks", seed), contents })
    }

    /// Contents there are to draw from; nothing where every place has its own.
    pub fn contents(&self) -> Option<u64> {
        self.contents
    }

    /// The content at a place.
    #[inline]
    pub fn at(&self, place: Place) -> Id {
        // The cipher chained over 32 bytes (CBC-MAC of a fixed length).
        let both = |low: u64, high: u64| u128::from(low) | u128::from(high) << 64;
        let first = encipher(&self.cipher, both(place.file, place.block).to_le_bytes());
        let second = u128::from_le_bytes(first) ^ both(place.generation, 0);
        let drawn = u128::from_le_bytes(encipher(&self.cipher, second.to_le_bytes()));
        match self.contents {
            None => Id(drawn),
            Some(contents) => Id(((drawn >> 64) * u128::from(contents)) >> 64),
        }
    }

    /// Blocks for each unique one that `blocks` of them are expected to have.
    pub fn expected(&self, blocks: u64) -> f64 {
        match self.contents {
            Some(contents) if blocks > 0 => blocks as f64 / unique(contents, blocks),
            _ => 1.0,
        }
    }
}

/// How many of `contents` are expected among `blocks` draws.
fn unique(contents: u64, blocks: u64) -> f64 {
    let contents = contents as f64;
    // (1 - 1/u)^n without losing the digits of a large u.
    -contents * (blocks as f64 * (-1.0 / contents).ln_1p()).exp_m1()
}

/// Contents to draw from, so that `blocks` draws find nearest to `blocks / dedupe` of them.
fn contents(blocks: u64, dedupe: f64) -> u64 {
    let wanted = blocks as f64 / dedupe;
    // More contents are found among more, so the number is between two that are halved.
    let (mut low, mut high) = (1, 1u64 << 62);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if unique(middle, blocks) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    let off = |contents| (unique(contents, blocks) - wanted).abs();
    if off(low) <= off(high) { low } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn place(file: u64, block: u64, generation: u64) -> Place {
        Place { file, block, generation }
    }

    #[test]
    fn no_two_places_have_one_content_unless_asked() {
        let (mut seen, identities) = (HashSet::new(), Identities::new(1, 1000, 1.0).unwrap());
        for file in [0, 1, u64::MAX] {
            for block in 0..100 {
                for generation in [0, 1, 1 << 48, u64::MAX] {
                    assert!(seen.insert(identities.at(place(file, block, generation))));
                }
            }
        }
        let other = Identities::new(2, 1000, 1.0).unwrap();
        assert!(seen.insert(other.at(place(0, 0, 0))));
    }

    #[test]
    fn blocks_old_and_new_have_the_ratio() {
        for dedupe in [1.05, 1.5, 2.0, 4.0, 20.0] {
            let blocks = 200_000;
            let identities = Identities::new(9, blocks, dedupe).unwrap();
            for rewritten in [0, 30, 100] {
                let generation = |block: u64| if block % 100 < rewritten { 7 + block } else { 0 };
                let ids: HashSet<_> =
                    (0..blocks).map(|b| identities.at(place(b % 3, b / 3, generation(b)))).collect();
                let is = blocks as f64 / ids.len() as f64;
                // The count of unique blocks deviates by less than sqrt(blocks) / 2.
                assert!((is / dedupe - 1.0).abs() < 0.01, "{dedupe} asked, {is} found");
            }
        }
    }

    #[test]
    fn what_so_few_blocks_cannot_have_is_refused() {
        let say = |blocks, dedupe| Identities::new(0, blocks, dedupe).err().unwrap().to_string();
        assert!(say(10, 20.0).contains("10 blocks cannot have it"));
        assert!(say(10, 0.9).contains("ratio of 0.9"));
        assert!(say(0, 2.0).contains("nothing says how much"));
        assert!(say(0, f64::NAN).contains("NaN"));
        assert_eq!(Identities::new(0, 10, 10.0).unwrap().contents(), Some(1));
        assert_eq!(Identities::new(0, 0, 1.0).unwrap().contents(), None);
    }

    proptest! {
        #[test]
        fn the_expected_ratio_is_the_asked_one(blocks in 1u64..1 << 40, share in 0.0f64..1.0) {
            // From 1 to all blocks alike, evenly by orders of magnitude.
            let dedupe = (blocks as f64).powf(share);
            let identities = Identities::new(0, blocks, dedupe).unwrap();
            let expected = identities.expected(blocks);
            // One content more or less is what there is to choose from.
            let unique = blocks as f64 / dedupe;
            prop_assert!((blocks as f64 / expected - unique).abs() <= 0.51 + unique * 1e-6, "{expected} {dedupe}");
        }
    }
}
