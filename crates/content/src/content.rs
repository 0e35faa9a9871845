//! Content as a run asks for it: a dedupe ratio, a compression ratio and a unit, for any range of any file.

use crate::{Generator, Identities, Place, Result, Shape};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// Blocks for each unique one; 1: all differ.
    pub dedupe: f64,
    /// How many times smaller codecs make a block; 1: not at all.
    pub compress: f64,
    /// Bytes of a block: what is deduplicated, and compressible by itself.
    pub unit: usize,
}

/// Makes what stands in any range of any file.
#[derive(Clone)]
pub struct Content {
    generator: Generator,
    identities: Identities,
    shape: Option<Shape>,
    unit: usize,
}

impl Content {
    /// As `wanted`, where all files together have so many blocks.
    ///
    /// # Errors
    /// For ratios and units that cannot be had.
    pub fn new(seed: u64, wanted: &Wanted, blocks: u64) -> Result<Content> {
        let shape = Shape::new(wanted.compress, wanted.unit)?;
        let identities = Identities::new(seed, blocks, wanted.dedupe)?;
        Ok(Content { generator: Generator::new(seed), identities, shape, unit: wanted.unit })
    }

    /// Bytes of a block.
    pub fn unit(&self) -> usize {
        self.unit
    }

    /// Which content is where.
    pub fn identities(&self) -> &Identities {
        &self.identities
    }

    /// What generation `generation` of `file` has from byte `at` on. Of blocks that `bytes` covers in part that part is
    /// made; `scratch` has room for a block, or gets it.
    pub fn fill(&self, file: u64, generation: u64, at: u64, mut bytes: &mut [u8], scratch: &mut Vec<u8>) {
        let unit = self.unit as u64;
        let (mut block, mut inside) = (at / unit, (at % unit) as usize);
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at_mut((self.unit - inside).min(bytes.len()));
            let id = self.identities.at(Place { file, block, generation });
            match &self.shape {
                None => self.generator.fill_from(id, inside, piece),
                Some(shape) if piece.len() == self.unit => {
                    self.generator.fill(id, piece);
                    shape.press(piece);
                }
                Some(shape) => {
                    scratch.resize(self.unit, 0);
                    self.generator.fill(id, scratch);
                    shape.press(scratch);
                    piece.copy_from_slice(&scratch[inside..inside + piece.len()]);
                }
            }
            (block, inside, bytes) = (block + 1, 0, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(content: &Content, file: u64, generation: u64, at: u64, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        content.fill(file, generation, at, &mut bytes, &mut Vec::new());
        bytes
    }

    #[test]
    fn the_bytes_of_a_place_never_change() {
        let wanted = Wanted { dedupe: 2.0, compress: 3.0, unit: 8192 };
        let bytes = made(&Content::new(1, &wanted, 1 << 17).unwrap(), 2, 3, 0, 1 << 16);
        assert_eq!(blake3::hash(&bytes).to_hex().as_str()[..16], *"afb6df83c17f064a");
    }

    #[test]
    fn threads_make_what_one_makes() {
        let wanted = Wanted { dedupe: 1.5, compress: 2.0, unit: 4096 };
        let content = Content::new(4, &wanted, 1 << 8).unwrap();
        let alone = made(&content, 1, 0, 0, 1 << 20);
        let mut together = vec![0; 1 << 20];
        std::thread::scope(|scope| {
            for (i, part) in together.chunks_mut(3 << 12).enumerate() {
                let content = &content;
                scope.spawn(move || content.fill(1, 0, (i * (3 << 12)) as u64, part, &mut Vec::new()));
            }
        });
        assert!(alone == together);
    }

    proptest! {
        #[test]
        fn any_range_is_that_of_the_whole(
            at in 0usize..100_000, size in 0usize..100_000, compress in prop::sample::select(&[1.0, 1.5, 4.0][..]),
            unit in prop::sample::select(&[4096, 16384, 69632][..]), generation: u64,
        ) {
            let content = Content::new(3, &Wanted { dedupe: 1.2, compress, unit }, 1 << 20).unwrap();
            let whole = made(&content, 7, generation, 0, at + size);
            prop_assert!(whole[at..] == made(&content, 7, generation, at as u64, size));
        }

        #[test]
        fn places_generations_and_seeds_differ(seed: u64, file: u64, generation: u64, block in 0u64..1 << 50) {
            let wanted = Wanted { dedupe: 1.0, compress: 1.5, unit: 4096 };
            let content = Content::new(seed, &wanted, 1 << 40).unwrap();
            let one = made(&content, file, generation, block * 4096, 4096);
            for (file, generation, block) in
                [(file ^ 1, generation, block), (file, generation ^ 1, block), (file, generation, block + 1)]
            {
                prop_assert!(one != made(&content, file, generation, block * 4096, 4096));
            }
            let other = Content::new(seed ^ 1, &wanted, 1 << 40).unwrap();
            prop_assert!(one != made(&other, file, generation, block * 4096, 4096));
        }
    }
}
