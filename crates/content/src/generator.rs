//! Random bytes from an identity: AES-128 in counter mode (NIST SP 800-38A, section 6.5).
//!
//! The counter of a block begins at the cipher of its identity. As the cipher is a permutation, two blocks share 16
//! bytes only where their counters meet: among 10^12 blocks of 128 KiB with a chance of 10^-10. The key is made
//! from the seed by BLAKE3, so neighbouring seeds have nothing in common.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};

/// Bytes of a block of the cipher.
const STEP: usize = 16;
/// Counters that are enciphered at once: they fit the first-level cache beside what else a thread uses.
const BATCH: usize = 64;

/// What a block's content follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id(pub u128);

/// Makes the content of blocks from their identities.
#[derive(Clone)]
pub struct Generator {
    cipher: Aes128,
}

impl Generator {
    /// One whose blocks differ from those of every other seed.
    pub fn new(seed: u64) -> Generator {
        Generator { cipher: cipher("loadstone 2026 content of blocks", seed) }
    }

    /// Random bytes of the block `id` from its byte 0 on.
    #[inline]
    pub fn fill(&self, id: Id, bytes: &mut [u8]) {
        self.fill_from(id, 0, bytes);
    }

    /// Random bytes of the block `id` from its byte `first` on.
    pub fn fill_from(&self, id: Id, first: usize, mut bytes: &mut [u8]) {
        let start = u128::from_le_bytes(encipher(&self.cipher, id.0.to_le_bytes()));
        let mut counter = start.wrapping_add((first / STEP) as u128);
        let inside = first % STEP;
        if inside > 0 {
            let (head, rest) = bytes.split_at_mut((STEP - inside).min(bytes.len()));
            let whole = encipher(&self.cipher, counter.to_le_bytes());
            head.copy_from_slice(&whole[inside..inside + head.len()]);
            counter = counter.wrapping_add(1);
            bytes = rest;
        }
        let (steps, tail) = bytes.as_chunks_mut::<STEP>();
        for batch in steps.chunks_mut(BATCH) {
            for (i, step) in batch.iter_mut().enumerate() {
                *step = counter.wrapping_add(i as u128).to_le_bytes();
            }
            counter = counter.wrapping_add(batch.len() as u128);
            self.cipher.encrypt_blocks(Block::cast_slice_from_core_mut(batch));
        }
        if !tail.is_empty() {
            let whole = encipher(&self.cipher, counter.to_le_bytes());
            tail.copy_from_slice(&whole[..tail.len()]);
        }
    }
}

/// The cipher of a purpose, keyed by a seed.
pub(crate) fn cipher(purpose: &str, seed: u64) -> Aes128 {
    let key = blake3::derive_key(purpose, &seed.to_le_bytes());
    let mut half = [0; STEP];
    half.copy_from_slice(&key[..STEP]);
    Aes128::new(&half.into())
}

/// One block of a cipher.
#[inline]
pub(crate) fn encipher(cipher: &Aes128, bytes: [u8; STEP]) -> [u8; STEP] {
    let mut block = Block::from(bytes);
    cipher.encrypt_block(&mut block);
    block.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn made(generator: &Generator, id: u128, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        generator.fill(Id(id), &mut bytes);
        bytes
    }

    #[test]
    fn it_is_aes_in_counter_mode() {
        // NIST SP 800-38A, F.5.1: the first block of the cipher of a counter.
        let key = 0x2b7e151628aed2a6abf7158809cf4f3c_u128.to_be_bytes();
        let counter = 0xf0f1f2f3f4f5f6f7f8f9fafbfcfdfeff_u128.to_be_bytes();
        let stream = 0xec8cdf7398607cb0f2d21675ea9ea1e4_u128.to_be_bytes();
        assert_eq!(encipher(&Aes128::new(&key.into()), counter), stream);
    }

    #[test]
    fn the_bytes_of_an_identity_never_change() {
        let bytes = made(&Generator::new(1), 2, 4096);
        assert_eq!(blake3::hash(&bytes).to_hex().as_str()[..16], *"c219cdd2e36dd222");
    }

    #[test]
    fn no_sixteen_bytes_of_any_blocks_are_alike() {
        let mut seen = HashSet::new();
        for seed in 0..2 {
            let generator = Generator::new(seed);
            for id in (0..64).chain([u128::MAX, 1 << 64, 1 << 127]) {
                for step in made(&generator, id, 8192).chunks_exact(16) {
                    assert!(seen.insert(step.to_vec()), "seed {seed}, block {id}");
                }
            }
        }
    }

    #[test]
    fn bytes_are_random() {
        let bytes = made(&Generator::new(7), 7, 1 << 20);
        let mut counts = [0f64; 256];
        bytes.iter().for_each(|b| counts[usize::from(*b)] += 1.0);
        // Chi-square with 255 degrees of freedom: 341 is exceeded by one in 4,000 seeds.
        let expected = (1 << 12) as f64;
        let chi: f64 = counts.iter().map(|n| (n - expected).powi(2) / expected).sum();
        assert!((180.0..341.0).contains(&chi), "{chi}");
    }

    proptest! {
        #[test]
        fn a_part_is_what_the_whole_has_there(id: u128, first in 0usize..5000, size in 0usize..3000) {
            let generator = Generator::new(3);
            let whole = made(&generator, id, first + size);
            let mut part = vec![0; size];
            generator.fill_from(Id(id), first, &mut part);
            prop_assert_eq!(&whole[first..], &part[..]);
        }
    }
}
