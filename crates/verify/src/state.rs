//! What is kept of a verification in a file, so that targets can be verified later, and loads go on where they ended.
//!
//! `LSVERIFY`, the version (u32), the length of the header (u32), the header as JSON, then one Zstandard frame with 24
//! bytes for every block of every file: latest, floor, durable, epoch, filled (u32), writes under way (u16), flags (u8), 0.
//! `docs/reference/formats/verify-state.md`.

use crate::blocks::Blocks;
use crate::ledger::{About, Entry, Ledger, MOST_GENERATION};
use crate::verifier::Verifier;
use crate::{Error, Result, SECTOR, memory};
use loadstone_content::{Content, MOST_UNIT, Wanted};
use loadstone_files::{Aside, open_regular};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

pub(crate) const MAGIC: &[u8; 8] = b"LSVERIFY";
pub(crate) const VERSION: u32 = 3;
const MOST_HEADER: u32 = 1 << 24;
/// Bytes of an entry.
const ENTRY: usize = 24;

/// Content that is made again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Remade {
    /// What it is made from.
    pub seed: u64,
    /// Blocks for each unique one.
    pub dedupe: f64,
    /// How many times smaller codecs make it.
    pub compress: f64,
    /// Blocks it was asked for.
    pub blocks: u64,
}

/// What makes the blocks of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// Bytes of a block.
    pub unit: usize,
    /// Key of marks.
    pub key: u64,
    /// Content in place of marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Remade>,
}

impl Recipe {
    /// The blocks.
    ///
    /// # Errors
    /// For units and ratios that cannot be had.
    pub fn blocks(&self) -> Result<Blocks> {
        if self.unit == 0 || !self.unit.is_multiple_of(SECTOR) || self.unit > MOST_UNIT {
            return Err(Error::Unit(self.unit));
        }
        let Some(Remade { seed, dedupe, compress, blocks }) = self.content else {
            return Ok(Blocks::marked(self.key, self.unit));
        };
        let content = Content::new(seed, &Wanted { dedupe, compress, unit: self.unit }, blocks);
        content.map(Blocks::of_content).map_err(|e| Error::Content(e.to_string()))
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    recipe: Recipe,
    /// The run was going on.
    running: bool,
    files: Vec<Kept>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    about: About,
    epoch: u32,
    synced: u32,
}

/// A verification as it was kept.
pub struct State {
    /// What makes the blocks.
    pub recipe: Recipe,
    /// What the files should hold.
    pub verifier: Verifier,
    /// The run was still going on: there may be later writes than are known.
    pub running: bool,
}

/// Keeps what is known in a new file, which takes the place of one at `path` where it may `replace` that.
///
/// # Errors
/// When it cannot be written, or there is one.
pub fn save(path: &Path, recipe: &Recipe, verifier: &Verifier, running: bool, replace: bool) -> Result<()> {
    let failed = |e: std::io::Error| Error::Write(path.into(), e.to_string());
    let (aside, file) = Aside::create(path, replace)?;
    let written = (|| -> std::io::Result<File> {
        // The syncs of all files before any entry: none is then taken for stable that is not.
        let kept = |ledger: &Ledger| {
            let (epoch, synced) = ledger.syncs();
            Kept { about: ledger.about.clone(), epoch, synced }
        };
        let header =
            Header { recipe: *recipe, running, files: verifier.files.iter().map(|l| kept(l)).collect() };
        let header = serde_json::to_vec(&header)?;
        let mut file = BufWriter::new(file);
        file.write_all(MAGIC)?;
        file.write_all(&VERSION.to_le_bytes())?;
        file.write_all(&(header.len() as u32).to_le_bytes())?;
        file.write_all(&header)?;
        let mut packed = zstd::Encoder::new(file, 1)?;
        packed.include_checksum(true)?;
        let mut out = BufWriter::with_capacity(ENTRY << 12, packed);
        for entry in verifier.files.iter().flat_map(|ledger| ledger.entries()) {
            out.write_all(&pack(&entry))?;
        }
        let file = out.into_inner().map_err(|e| e.into_error())?.finish()?;
        file.into_inner().map_err(|e| e.into_error())
    })();
    Ok(aside.keep(&written.map_err(failed)?)?)
}

fn pack(entry: &Entry) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    for (place, number) in
        bytes.chunks_exact_mut(4).zip([entry.latest, entry.floor, entry.durable, entry.epoch, entry.filled])
    {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes[20..22].copy_from_slice(&entry.flying.to_le_bytes());
    bytes[22] = entry.flags;
    bytes
}

fn unpack(bytes: &[u8; ENTRY]) -> Entry {
    let four = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Entry {
        latest: four(0),
        floor: four(4),
        durable: four(8),
        epoch: four(12),
        filled: four(16),
        flying: u16::from_le_bytes([bytes[20], bytes[21]]),
        flags: bytes[22],
    }
}

/// Reads what was kept.
///
/// # Errors
/// When there is no such file, or it is none of these, or damaged.
pub fn load(path: &Path) -> Result<State> {
    let file = open_regular(path, true)?;
    read(BufReader::new(file)).map_err(|what| Error::State(path.into(), what))
}

/// The same from any bytes; an error says what is wrong with them.
///
/// # Errors
/// Says what keeps it from being a state.
pub fn read(mut from: impl Read) -> std::result::Result<State, String> {
    let short = |e: std::io::Error| format!("is cut short or damaged: {e}");
    let mut head = [0; 16];
    from.read_exact(&mut head).map_err(|_| "is no state of a verification: it is too short".to_string())?;
    if head[..8] != *MAGIC {
        return Err("is no state of a verification (loadstone run --verify-state keeps one)".into());
    }
    let four = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if four(8) != VERSION {
        return Err(format!(
            "has version {}, and this build reads version {VERSION}: verify by the Loadstone that kept it, or run again",
            four(8)
        ));
    }
    if four(12) > MOST_HEADER {
        return Err(format!("is damaged: a header of {} bytes", four(12)));
    }
    let mut header = Vec::new();
    from.by_ref().take(four(12).into()).read_to_end(&mut header).map_err(short)?;
    let header: Header =
        serde_json::from_slice(&header).map_err(|e| format!("is damaged: its header: {e}"))?;
    let blocks = header.recipe.blocks().map_err(|e| format!("is damaged: {e}"))?;
    // A size is a few bytes, and so are very many blocks of which nothing is known once they are packed.
    let blocks_of = |kept: &Kept| kept.about.size.div_ceil(header.recipe.unit as u64);
    let told = header.files.iter().map(blocks_of).fold(0, u64::saturating_add);
    memory::check(told).map_err(|why| format!("tells of {why}"))?;
    let mut packed = BufReader::with_capacity(ENTRY << 12, zstd::Decoder::new(from).map_err(short)?);
    let mut files = Vec::new();
    for kept in header.files {
        let next = || {
            let mut bytes = [0; ENTRY];
            packed.read_exact(&mut bytes).map_err(short)?;
            let entry = unpack(&bytes);
            let Entry { latest, floor, durable, .. } = entry;
            match floor <= latest && latest <= MOST_GENERATION && (durable == u32::MAX || durable <= floor) {
                true => Ok(entry),
                false => Err(format!("is damaged: a block of generations {floor} to {latest}")),
            }
        };
        files.push(Ledger::restore(kept.about, header.recipe.unit, (kept.epoch, kept.synced), next)?);
    }
    let mut more = [0];
    match packed.read(&mut more) {
        Ok(0) => {}
        Ok(_) => return Err("is damaged: it has more blocks than its files".into()),
        Err(e) => return Err(short(e)),
    }
    Ok(State { recipe: header.recipe, verifier: Verifier::new(blocks, files), running: header.running })
}
