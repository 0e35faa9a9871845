//! What stands in the blocks of a file, by generation: marks, or content that can be made again.

use crate::mark::{Mark, Marks, SECTOR};
use loadstone_content::Content;

/// Where a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block {
    /// Number of the file.
    pub file: u64,
    /// Which of its blocks, from 0.
    pub block: u64,
}

/// What was in a file before anything was written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Before {
    /// Generation 0 of its blocks, made like all others.
    Filled,
    /// Zeros.
    Zeros,
    /// Nobody knows.
    Unknown,
}

/// How blocks are made.
pub enum Kind {
    /// With marks.
    Marked(Marks),
    /// With a stated dedupe ratio and compressibility: they are made again to be compared.
    Content(Box<Content>),
}

/// Makes blocks, and tells whether bytes are theirs.
pub struct Blocks {
    unit: usize,
    kind: Kind,
}

impl Blocks {
    /// Blocks with marks, of `unit` bytes, a multiple of [`SECTOR`].
    pub fn marked(key: u64, unit: usize) -> Blocks {
        Blocks { unit, kind: Kind::Marked(Marks::new(key)) }
    }

    /// Blocks of a content's unit.
    pub fn of_content(content: Content) -> Blocks {
        Blocks { unit: content.unit(), kind: Kind::Content(Box::new(content)) }
    }

    /// Bytes of a block.
    #[inline(always)]
    pub fn unit(&self) -> usize {
        self.unit
    }

    /// How they are made.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Number of the first sector of a block.
    #[inline(always)]
    fn sector(&self, at: Block) -> u64 {
        at.block * (self.unit / SECTOR) as u64
    }

    /// Makes a generation of a block, from byte `inside` of it on.
    #[inline(always)]
    pub fn fill(&self, at: Block, generation: u32, inside: usize, bytes: &mut [u8], scratch: &mut Vec<u8>) {
        match &self.kind {
            Kind::Marked(marks) => {
                let sector = self.sector(at) + (inside / SECTOR) as u64;
                marks.of(at.file, generation, sector).fill(inside % SECTOR, bytes);
            }
            Kind::Content(content) => {
                let first = at.block * self.unit as u64 + inside as u64;
                content.fill(at.file, generation.into(), first, bytes, scratch);
            }
        }
    }

    /// Makes `size` bytes of blocks that are all of one generation, from byte `inside` of the first on, in a strip, and says
    /// where in it they begin; nothing where they cannot be made so.
    #[inline]
    pub fn fill_strip(
        &self,
        first: Block,
        generation: u32,
        inside: usize,
        size: usize,
        strip: &mut [u8],
    ) -> Option<usize> {
        match &self.kind {
            Kind::Marked(marks) => {
                let sector = self.sector(first) + (inside / SECTOR) as u64;
                marks.of(first.file, generation, sector).fill_strip(inside % SECTOR, size, strip)
            }
            Kind::Content(_) => None,
        }
    }

    /// Whether these are bytes of a generation of a block, from byte `inside` of it on.
    #[inline(always)]
    pub fn holds(&self, at: Block, generation: u32, inside: usize, bytes: &[u8], room: &mut Room) -> bool {
        match &self.kind {
            Kind::Marked(marks) => {
                let sector = self.sector(at) + (inside / SECTOR) as u64;
                marks.of(at.file, generation, sector).holds(inside % SECTOR, bytes)
            }
            Kind::Content(content) => {
                room.made.resize(bytes.len(), 0);
                let first = at.block * self.unit as u64 + inside as u64;
                content.fill(at.file, generation.into(), first, &mut room.made, &mut room.scratch);
                room.made == bytes
            }
        }
    }

    /// Whether these are the bytes of whole blocks from one on, all of one generation; false, too, where blocks must be
    /// compared one by one.
    #[inline]
    pub fn hold(&self, first: Block, generation: u32, bytes: &[u8]) -> bool {
        match &self.kind {
            Kind::Marked(marks) => marks.of(first.file, generation, self.sector(first)).holds(0, bytes),
            Kind::Content(_) => false,
        }
    }

    /// The mark of a sector, where blocks have marks.
    pub fn mark(&self, sector: &[u8]) -> Option<Mark> {
        match &self.kind {
            Kind::Marked(_) => Mark::parse(sector),
            Kind::Content(_) => None,
        }
    }
}

/// Memory to make blocks in.
#[derive(Default)]
pub struct Room {
    /// A block as it should be.
    made: Vec<u8>,
    /// What content needs besides.
    pub scratch: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_content::Wanted;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_part_of_a_block_is_told_by_its_generation(
            marked: bool, block in 0u64..1 << 40, generation: u32, from in 0usize..8192, to in 0usize..8192,
        ) {
            let wanted = Wanted { dedupe: 1.0, compress: 2.0, unit: 8192 };
            let blocks = match marked {
                true => Blocks::marked(5, 8192),
                false => Blocks::of_content(Content::new(5, &wanted, 1 << 50).unwrap()),
            };
            let (at, mut room) = (Block { file: 3, block }, Room::default());
            let (mut whole, mut part) = (vec![0; 8192], vec![0; from.abs_diff(to)]);
            blocks.fill(at, generation, 0, &mut whole, &mut room.scratch);
            blocks.fill(at, generation, from.min(to), &mut part, &mut room.scratch);
            prop_assert!(whole[from.min(to)..from.max(to)] == part);
            prop_assert!(blocks.holds(at, generation, from.min(to), &part, &mut room));
            prop_assert!(blocks.holds(at, generation, 0, &whole, &mut room));
            prop_assert!(!blocks.holds(at, generation ^ 1, 0, &whole, &mut room));
            for other in [Block { file: 4, block }, Block { file: 3, block: block ^ 1 }] {
                prop_assert!(!blocks.holds(other, generation, 0, &whole, &mut room));
            }
        }
    }
}
