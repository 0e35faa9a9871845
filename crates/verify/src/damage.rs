//! What is wrong with a block, and how that is told.

use crate::blocks::{Before, Block, Blocks, Kind, Room};
use crate::ledger::{ANY, Allowed};
use crate::mark::SECTOR;
use serde::Serialize;

/// Kinds of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wrong {
    /// Parts of it are of different generations, though one write made it and no other was under way.
    Torn,
    /// It holds an older generation than the last one that must have arrived: a write was lost.
    Stale,
    /// It holds zeros: a write was lost, or the block was given back.
    Lost,
    /// It holds what belongs elsewhere.
    Misplaced,
    /// It holds what another run wrote.
    Foreign,
    /// It holds a generation that had not been written.
    Unwritten,
    /// It holds what nobody wrote.
    Corrupt,
}

/// A damaged block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// What is wrong.
    pub wrong: Wrong,
    /// Number of the file.
    pub file: u64,
    /// First byte of what was looked at.
    pub at: u64,
    /// Bytes that were looked at.
    pub size: u64,
    /// Oldest generation it may hold.
    pub low: u32,
    /// Newest.
    pub high: u32,
    /// Generations that were found, each once; at most 8.
    pub found: Vec<u32>,
    /// File and byte to which what was found belongs.
    pub belongs: Option<(u64, u64)>,
    /// First byte that differs from the newest generation, and how many do.
    pub differs: (u64, u64),
    /// How often it was found so.
    pub times: u64,
}

/// Where the bytes of a mark begin that its generation decides: that itself, and the checksum.
const NUMBERED: usize = SECTOR - 8;
/// Generations that are tried to find out what a block without marks holds.
const TRIED: u32 = 64;
/// The same where they are all that tells: what is read may be the oldest of them.
const MADE: u32 = 4096;
/// Most that are told.
const TOLD: usize = 8;

/// A block as it was read.
pub struct Read<'a> {
    /// Where it is.
    pub block: Block,
    /// From which byte of it on it was read.
    pub inside: usize,
    /// The bytes.
    pub bytes: &'a [u8],
    /// What it may hold.
    pub allowed: Allowed,
    /// What was in its file before.
    pub before: Before,
}

impl Read<'_> {
    fn sectors(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let first = (SECTOR - self.inside % SECTOR) % SECTOR;
        let head = &self.bytes[..first.min(self.bytes.len())];
        let rest = &self.bytes[head.len()..];
        let whole = rest.chunks(SECTOR).scan(self.inside + head.len(), |at, bytes| {
            let here = *at;
            *at += bytes.len();
            Some((here, bytes))
        });
        std::iter::once((self.inside, head)).filter(|(_, head)| !head.is_empty()).chain(whole)
    }

    /// Whether `bytes` are those of a generation from byte `inside` on.
    #[inline(always)]
    fn is(&self, blocks: &Blocks, generation: u32, inside: usize, bytes: &[u8], room: &mut Room) -> bool {
        match self.before {
            Before::Unknown if generation == 0 => true,
            Before::Zeros if generation == 0 => bytes.iter().all(|byte| *byte == 0),
            _ => blocks.holds(self.block, generation, inside, bytes, room),
        }
    }

    /// Whether it holds what it may.
    #[inline]
    pub fn is_right(&self, blocks: &Blocks, room: &mut Room) -> bool {
        let Allowed { low, high, skip, .. } = self.allowed;
        if skip || (low == 0 && self.before == Before::Unknown) {
            return true;
        }
        if self.is(blocks, high, self.inside, self.bytes, room) {
            return true;
        }
        low < high && self.is_mixture(blocks, room)
    }

    #[cold]
    fn is_mixture(&self, blocks: &Blocks, room: &mut Room) -> bool {
        let Allowed { low, high, loose, open, .. } = self.allowed;
        // Without marks each generation is made, as far as there are not too many.
        let most = if matches!(blocks.kind(), Kind::Content(_)) { MADE } else { TRIED };
        if most == MADE && high - low >= MADE {
            return true;
        }
        let tried = || (low..=high).rev().take(most as usize).chain([low]);
        if !loose && !open {
            return tried().any(|generation| self.is(blocks, generation, self.inside, self.bytes, room));
        }
        self.sectors().all(|(inside, bytes)| match blocks.mark(bytes) {
            // Of so many generations each mark tells which.
            Some(mark)
                if (low..=high).contains(&mark.generation)
                    && self.is(blocks, mark.generation, inside, bytes, room) =>
            {
                true
            }
            _ if open => self.is_copied(blocks, inside, bytes, room),
            _ => tried().any(|generation| self.is(blocks, generation, inside, bytes, room)),
        })
    }

    /// Whether each byte of a sector is that of some generation, as where it was copied while it was being written.
    fn is_copied(&self, blocks: &Blocks, inside: usize, bytes: &[u8], room: &mut Room) -> bool {
        let Allowed { low, high, .. } = self.allowed;
        let many = high - low >= TRIED;
        if many && matches!(blocks.kind(), Kind::Content(_)) {
            // Of so many generations each byte is that of some one.
            return true;
        }
        // Marks of a run have two kinds of data in turn, so the newest have both.
        let tried = (low..=high).rev().take(TRIED as usize).chain([low]);
        let (mut right, mut explained) = (vec![0; bytes.len()], vec![false; bytes.len()]);
        for generation in tried {
            if generation > 0 || self.before == Before::Filled {
                blocks.fill(self.block, generation, inside, &mut right, &mut room.scratch);
            } else {
                right.fill(0);
            }
            explained.iter_mut().zip(bytes.iter().zip(&right)).for_each(|(known, (a, b))| *known |= a == b);
        }
        explained.iter().enumerate().all(|(at, known)| *known || many && (inside + at) % SECTOR >= NUMBERED)
    }

    /// What is wrong with it, where it is not right. `elsewhere`: blocks and generations that it might be instead, where
    /// there are no marks to tell.
    pub fn damage(
        &self,
        blocks: &Blocks,
        elsewhere: impl Iterator<Item = (Block, u32)>,
        room: &mut Room,
    ) -> Damage {
        let unit = blocks.unit() as u64;
        let at = self.block.block * unit + self.inside as u64;
        let mut damage = Damage {
            wrong: Wrong::Corrupt,
            file: self.block.file,
            at,
            size: self.bytes.len() as u64,
            low: self.allowed.low,
            high: self.allowed.high,
            found: Vec::new(),
            belongs: None,
            differs: (at, self.bytes.len() as u64),
            times: 1,
        };
        let mut right = vec![0; self.bytes.len()];
        if self.allowed.high > 0 || self.before == Before::Filled {
            blocks.fill(self.block, self.allowed.high, self.inside, &mut right, &mut room.scratch);
        }
        let wrong = || self.bytes.iter().zip(&right).enumerate().filter(|(_, (a, b))| a != b);
        damage.differs = (at + wrong().next().map_or(0, |(i, _)| i as u64), wrong().count() as u64);
        if self.bytes.iter().all(|byte| *byte == 0) {
            damage.wrong = Wrong::Lost;
            return damage;
        }
        match blocks.kind() {
            Kind::Marked(marks) => self.by_marks(blocks, marks.key(), &mut damage),
            Kind::Content(_) => self.by_trying(blocks, elsewhere, &mut damage, room),
        }
        damage
    }

    fn by_marks(&self, blocks: &Blocks, key: u64, damage: &mut Damage) {
        let sector = self.block.block * (blocks.unit() / SECTOR) as u64;
        let mut generations = Generations::default();
        let mut rank = 0;
        for (inside, bytes) in self.sectors().filter(|(_, bytes)| bytes.len() == SECTOR) {
            let here = sector + (inside / SECTOR) as u64;
            let (more, wrong) = match blocks.mark(bytes) {
                None if bytes.iter().all(|byte| *byte == 0) => {
                    generations.holes = true;
                    continue;
                }
                None => (4, Wrong::Corrupt),
                Some(mark) if mark.key != key => (3, Wrong::Foreign),
                Some(mark) if (mark.file, mark.sector) != (self.block.file, here) => {
                    damage.belongs.get_or_insert((mark.file, mark.sector * SECTOR as u64));
                    (2, Wrong::Misplaced)
                }
                Some(mark) => {
                    generations.add(mark.generation);
                    continue;
                }
            };
            if more > rank {
                (rank, damage.wrong) = (more, wrong);
            }
        }
        if rank == 0 {
            // Without a whole sector nothing tells more.
            damage.wrong = generations.verdict(&self.allowed).unwrap_or(Wrong::Corrupt);
        }
        damage.found = generations.found;
    }

    fn by_trying(
        &self,
        blocks: &Blocks,
        mut elsewhere: impl Iterator<Item = (Block, u32)>,
        damage: &mut Damage,
        room: &mut Room,
    ) {
        let Allowed { low, high, .. } = self.allowed;
        let tried: Vec<u32> = (0..=high + 1).rev().take(TRIED as usize).chain([low, 0]).collect();
        let mut generations = Generations::default();
        let mut all = true;
        for (inside, bytes) in self.sectors() {
            let own = |generation: &&u32| self.is(blocks, **generation, inside, bytes, room);
            match tried.iter().find(own) {
                Some(generation) => generations.add(*generation),
                None if bytes.iter().all(|byte| *byte == 0) => generations.holes = true,
                None => all = false,
            }
        }
        if let (true, Some(wrong)) = (all, generations.verdict(&self.allowed)) {
            (damage.wrong, damage.found) = (wrong, generations.found);
            return;
        }
        if generations.found.is_empty()
            && let Some((block, generation)) = elsewhere
                .find(|(block, generation)| blocks.holds(*block, *generation, self.inside, self.bytes, room))
        {
            damage.wrong = Wrong::Misplaced;
            damage.belongs = Some((block.file, block.block * blocks.unit() as u64 + self.inside as u64));
            damage.found.push(generation);
            return;
        }
        damage.found = generations.found;
    }
}

/// Generations that sectors of a block have, in the order in which they come.
#[derive(Default)]
struct Generations {
    found: Vec<u32>,
    /// Some have zeros.
    holes: bool,
}

impl Generations {
    fn add(&mut self, generation: u32) {
        if self.found.len() < TOLD && !self.found.contains(&generation) {
            self.found.push(generation);
        }
    }

    fn verdict(&self, allowed: &Allowed) -> Option<Wrong> {
        match *self.found.as_slice() {
            [] => None,
            [one] if !self.holes && one < allowed.low => Some(Wrong::Stale),
            [one] if !self.holes && one > allowed.high => Some(Wrong::Unwritten),
            [one] if !self.holes && (allowed.low..=allowed.high).contains(&one) => None,
            _ => Some(Wrong::Torn),
        }
    }
}

impl Damage {
    /// In words; `path` names files by their numbers.
    pub fn tell(&self, path: impl Fn(u64) -> String) -> String {
        let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let wanted = match (self.low, self.high) {
            (low, high) if low == high => format!("generation {high}"),
            (low, ANY) => format!("generation {low} or a later one"),
            (low, high) => format!("generations {low} to {high}"),
        };
        let found = match self.wrong {
            Wrong::Torn => format!("is torn: its sectors are of generations {}", list(&self.found)),
            Wrong::Stale => format!("is stale: it holds generation {}", list(&self.found)),
            Wrong::Lost => "is lost: it holds zeros".into(),
            Wrong::Misplaced => match self.belongs {
                Some((file, at)) => {
                    format!("is misplaced: it holds what belongs to byte {at} of {}", path(file))
                }
                None => "is misplaced".into(),
            },
            Wrong::Foreign => "was written by another run".into(),
            Wrong::Unwritten => {
                format!("holds generation {}, which was not written", list(&self.found))
            }
            Wrong::Corrupt => {
                format!("is corrupt: {} of its bytes differ, from byte {} on", self.differs.1, self.differs.0)
            }
        };
        let zeros = if self.wrong == Wrong::Torn && self.found.len() < 2 { " and zeros" } else { "" };
        let times = if self.times > 1 { format!(" ({} times)", self.times) } else { String::new() };
        format!(
            "{}: the block at byte {} ({} bytes) {found}{zeros}, where {wanted} should be{times}",
            path(self.file),
            self.at,
            self.size
        )
    }
}
