//! NFS in captures of network packets: pcapng, as Wireshark writes it (draft-ietf-opsawg-pcapng).
//!
//! Sections of either byte order with any number of interfaces, each with a link type and a clock of its own.
//! Packets stand in enhanced, simple (without a time) and obsolete blocks; blocks of other kinds are passed over by
//! their length.

use super::capture::{self, Frame, Frames, LARGEST, Passed};
use super::peel::Link;
use crate::cursor::Cursor;
use crate::formats::format::{Format, Known, Opened, single};
use crate::options::OpenOptions;
use crate::{Error, ErrorKind, Info, Place, Result};
use std::cell::Cell;

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "pcapng",
    title: "pcapng of NFSv2 and v3 (TCP, UDP)",
    extensions: &["pcapng"],
    known: Known::Content,
    header: &[],
    detect: |head, _| begins(head) && order(head).is_some(),
    open: |inputs, options| read(Cursor::new(single(inputs)?), options),
};

/// Types of blocks. That of a section is the same in both byte orders.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE: u32 = 2;
const SIMPLE: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED: u32 = 6;

/// Options of blocks.
const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;
const DROPPED_BY_INTERFACE: u16 = 5;
const DROPPED_BY_SYSTEM: u16 = 7;
const DROPPED_BEFORE: u16 = 4;

/// Bytes of a block besides its body: type, length, and the length again.
const FRAME: usize = 12;

/// Largest block; more is damage.
const LARGEST_BLOCK: usize = 1 << 24;

/// Whether a file begins as one of this format does.
pub fn begins(head: &[u8]) -> bool {
    head.starts_with(&SECTION.to_be_bytes())
}

/// Byte order of the section that begins here: big or not.
fn order(head: &[u8]) -> Option<bool> {
    match head.get(8..12)? {
        [0x1a, 0x2b, 0x3c, 0x4d] => Some(true),
        [0x4d, 0x3c, 0x2b, 0x1a] => Some(false),
        _ => None,
    }
}

/// Opens what [`begins`].
///
/// # Errors
/// When the first blocks are damaged.
pub fn read(packets: Cursor, options: &OpenOptions) -> Opened {
    let mut file = Pcapng { packets, big: false, interfaces: Vec::new(), tick: 0, lost: 0 };
    let head = file.packets.peek(FRAME)?;
    if !head.is_empty() && !begins(head) {
        return Err(file.wrong(0, "is no pcapng file").help("the file is damaged or of another format"));
    }
    Ok(capture::source(file, options))
}

/// Where packets of a section were captured.
#[derive(Debug)]
struct Interface {
    link: Link,
    /// Most bytes of a packet that were kept; 0: all.
    most: u32,
    clock: Ticks,
    /// Packets lost between those in the file, and all of them by the last count.
    between: u64,
    counted: u64,
}

impl Interface {
    /// Packets that it lost: both ways of counting are of the same ones.
    fn lost(&self) -> u64 {
        self.between.max(self.counted)
    }
}

/// The clock of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    /// A tick is this number's negative power of two, else of ten, in seconds.
    power: u32,
    binary: bool,
    /// Seconds to add.
    offset: i64,
}

impl Ticks {
    /// Nanoseconds since 1970, downwards; `None` where they do not fit.
    fn time(self, ticks: u64) -> Option<i64> {
        let ns = u128::from(ticks) * 1_000_000_000;
        let ns =
            if self.binary { ns >> self.power } else { 10u128.checked_pow(self.power).map_or(0, |d| ns / d) };
        self.offset.checked_mul(1_000_000_000)?.checked_add(i64::try_from(ns).ok()?)
    }

    /// Nanoseconds of a tick, at least 1.
    fn length(self) -> i64 {
        Ticks { offset: 0, ..self }.time(1).unwrap_or(i64::MAX).max(1)
    }
}

struct Pcapng {
    packets: Cursor,
    /// Byte order of the section.
    big: bool,
    /// Interfaces of the section.
    interfaces: Vec<Interface>,
    /// Nanoseconds of the longest tick so far.
    tick: i64,
    /// Packets lost in the sections before.
    lost: u64,
}

/// A block's numbers, by their byte from the block's start.
#[derive(Clone, Copy)]
struct Block<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Block<'a> {
    /// End of the body.
    fn end(self) -> usize {
        self.bytes.len() - 4
    }

    fn half(self, at: usize) -> u16 {
        let bytes = [self.bytes[at], self.bytes[at + 1]];
        if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn word(self, at: usize) -> u32 {
        word(self.bytes, at, self.big)
    }

    /// Two words, the higher first, as times are kept whatever the byte order.
    fn ticks(self, at: usize) -> u64 {
        u64::from(self.word(at)) << 32 | u64::from(self.word(at + 4))
    }

    /// Code, place and bytes of the options from `at` on; an error is the place of one that does not end.
    fn options(self, at: usize) -> impl Iterator<Item = std::result::Result<(u16, usize, &'a [u8]), usize>> {
        let at = Cell::new(at);
        std::iter::from_fn(move || {
            let start = at.get();
            if start >= self.end() {
                return None;
            }
            if start + 4 > self.end() {
                at.set(self.end());
                return Some(Err(start));
            }
            let (code, length) = (self.half(start), usize::from(self.half(start + 2)));
            let value = self.bytes[..self.end()].get(start + 4..start + 4 + length);
            at.set(if code == 0 { self.end() } else { start + 4 + padded(length) });
            match value {
                _ if code == 0 => None,
                Some(value) => Some(Ok((code, start + 4, value))),
                None => {
                    at.set(self.end());
                    Some(Err(start))
                }
            }
        })
    }

    /// A number of eight bytes in an option.
    fn long(self, value: &[u8]) -> Option<u64> {
        let bytes = value.try_into().ok()?;
        Some(if self.big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }
}

fn word(bytes: &[u8], at: usize, big: bool) -> u32 {
    let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// Up to whole words.
fn padded(length: usize) -> usize {
    length.div_ceil(4) * 4
}

/// What is wrong in a block, and at which of its bytes.
type Wrong = (usize, String);

/// A packet in a block: its interface, ticks where it has a time, and its bytes.
struct Packet<'a> {
    interface: usize,
    ticks: Option<u64>,
    bytes: &'a [u8],
    /// Whether the packet was longer.
    cut: bool,
}

impl Pcapng {
    fn wrong(&self, at: usize, what: impl Into<String>) -> Error {
        Error::malformed(what).path(self.packets.path()).at(Place::Byte(self.packets.at() + at as u64))
    }

    fn cut(&self, found: usize, of: usize) -> Error {
        let what = format!("truncated block: {found} of {of} bytes");
        self.packets.place(Error::new(ErrorKind::Truncated, what)).help("the copy or capture was cut short")
    }

    /// Type and length of the block that comes, with both lengths equal and all of it there; `None` at the end.
    fn block(&mut self) -> Result<Option<(u32, usize)>> {
        let damaged = "the file is damaged here";
        let head = self.packets.peek(FRAME)?.to_vec();
        if head.is_empty() {
            return Ok(None);
        }
        if head.len() < FRAME {
            return Err(self.cut(head.len(), FRAME));
        }
        if begins(&head) {
            // Its lengths are in the order that it tells.
            let Some(big) = order(&head) else {
                return Err(self.wrong(8, "a section without a byte order").help(damaged));
            };
            self.lost += self.interfaces.drain(..).map(|i| i.lost()).sum::<u64>();
            self.big = big;
        }
        let (kind, length) = (word(&head, 0, self.big), word(&head, 4, self.big) as usize);
        let least = FRAME + least(kind);
        if !length.is_multiple_of(4) || length < least || length > LARGEST_BLOCK {
            let what =
                format!("a block of type {kind:#x} and {length} bytes; it has {least} to {LARGEST_BLOCK}");
            return Err(self.wrong(4, what).help(damaged));
        }
        let whole = self.packets.peek(length)?;
        if whole.len() < length {
            let found = whole.len();
            return Err(self.cut(found, length));
        }
        let again = word(whole, length - 4, self.big) as usize;
        if again != length {
            let what = format!("a block of {length} bytes ends with the length {again}");
            return Err(self.wrong(length - 4, what).help(damaged));
        }
        Ok(Some((kind, length)))
    }

    /// Takes in a block that is whole; the packet in it, if there is one.
    fn take(&mut self, kind: u32, length: usize) -> Result<Option<Packet<'_>>> {
        let Pcapng { packets, big, interfaces, tick, .. } = self;
        let (path, at) = (packets.path().to_path_buf(), packets.at());
        let block = Block { bytes: packets.peek(length)?, big: *big };
        let found = match kind {
            SECTION => version(block).map(|()| None),
            INTERFACE => interface(block).map(|found| {
                *tick = (*tick).max(found.clock.length());
                interfaces.push(found);
                None
            }),
            STATISTICS => statistics(block, interfaces).map(|()| None),
            ENHANCED | OBSOLETE => packet(block, kind, interfaces).map(Some),
            SIMPLE => simple(block, interfaces).map(Some),
            _ => Ok(None),
        };
        found.map_err(|(byte, what)| {
            Error::malformed(what)
                .path(&path)
                .at(Place::Byte(at + byte as u64))
                .help("the file is damaged here")
        })
    }
}

/// Bytes that the body of a block has at least.
fn least(kind: u32) -> usize {
    match kind {
        SECTION => 16,
        INTERFACE => 8,
        OBSOLETE | ENHANCED => 20,
        SIMPLE => 4,
        STATISTICS => 12,
        _ => 0,
    }
}

fn version(block: Block) -> std::result::Result<(), Wrong> {
    match block.half(12) {
        1 => Ok(()),
        other => Err((12, format!("a section of version {other}; version 1 is read"))),
    }
}

fn interface(block: Block) -> std::result::Result<Interface, Wrong> {
    let mut clock = Ticks { power: 6, binary: false, offset: 0 };
    for option in block.options(16) {
        let (code, at, value) = option.map_err(endless)?;
        match (code, value) {
            (RESOLUTION, [power]) => {
                (clock.power, clock.binary) = (u32::from(power & 0x7f), power & 0x80 != 0)
            }
            (OFFSET, value) if block.long(value).is_some() => {
                clock.offset = block.long(value).unwrap_or_default() as i64;
            }
            (RESOLUTION | OFFSET, value) => {
                return Err((at, format!("an option {code} of {} bytes", value.len())));
            }
            _ => {}
        }
    }
    let link = Link::of(u32::from(block.half(8)));
    Ok(Interface { link, most: block.word(12), clock, between: 0, counted: 0 })
}

/// An option that goes on beyond its block.
fn endless(at: usize) -> Wrong {
    (at, "an option goes on beyond its block".into())
}

fn known(interfaces: &mut [Interface], number: usize) -> std::result::Result<&mut Interface, Wrong> {
    let all = interfaces.len();
    let what = || format!("interface {number} of a section that has told {all} so far");
    interfaces.get_mut(number).ok_or_else(|| (8, what()))
}

fn statistics(block: Block, interfaces: &mut [Interface]) -> std::result::Result<(), Wrong> {
    let found = known(interfaces, block.word(8) as usize)?;
    let mut dropped = 0u64;
    for option in block.options(20) {
        let (code, at, value) = option.map_err(endless)?;
        if let DROPPED_BY_INTERFACE | DROPPED_BY_SYSTEM = code {
            let what = || (at, format!("an option {code} of {} bytes", value.len()));
            dropped = dropped.saturating_add(block.long(value).ok_or_else(what)?);
        }
    }
    // Counts go on from one such block to the next.
    found.counted = found.counted.max(dropped);
    Ok(())
}

/// The packet of an enhanced or obsolete block.
fn packet<'a>(
    block: Block<'a>,
    kind: u32,
    interfaces: &mut [Interface],
) -> std::result::Result<Packet<'a>, Wrong> {
    let enhanced = kind == ENHANCED;
    let interface = if enhanced { block.word(8) as usize } else { block.half(8).into() };
    let found = known(interfaces, interface)?;
    let bytes = captured(block, 20, block.word(20) as usize)?;
    if !enhanced && block.half(10) != u16::MAX {
        found.between = found.between.saturating_add(block.half(10).into());
    }
    for option in block.options(28 + padded(bytes.len())) {
        let (code, at, value) = option.map_err(endless)?;
        if enhanced && code == DROPPED_BEFORE {
            let what = || (at, format!("an option {code} of {} bytes", value.len()));
            found.between = found.between.saturating_add(block.long(value).ok_or_else(what)?);
        }
    }
    let cut = bytes.len() < block.word(24) as usize;
    Ok(Packet { interface, ticks: Some(block.ticks(12)), bytes, cut })
}

/// The packet of a simple block: of the first interface, as long as that lets it be.
fn simple<'a>(block: Block<'a>, interfaces: &mut [Interface]) -> std::result::Result<Packet<'a>, Wrong> {
    let most = known(interfaces, 0)?.most;
    let length = block.word(8).min(if most == 0 { u32::MAX } else { most }) as usize;
    let cut = length < block.word(8) as usize;
    Ok(Packet { interface: 0, ticks: None, bytes: captured(block, 8, length)?, cut })
}

/// The bytes of a packet, whose length stands at a place and which follow the block's numbers.
fn captured<'a>(block: Block<'a>, at: usize, length: usize) -> std::result::Result<&'a [u8], Wrong> {
    // The length of enhanced and obsolete blocks is followed by the original one.
    let start = if at == 8 { 12 } else { 28 };
    let there = block.end() - start;
    if length > LARGEST || length > there {
        let what = format!("a packet of {length} bytes in a block with {there}, and {LARGEST} are the most");
        return Err((at, what));
    }
    Ok(&block.bytes[start..start + length])
}

impl Frames for Pcapng {
    fn next(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Frame>> {
        while let Some((kind, length)) = self.block()? {
            let mut found = None;
            if let Some(packet) = self.take(kind, length)? {
                bytes.clear();
                bytes.extend_from_slice(packet.bytes);
                found = Some((packet.interface, packet.ticks, packet.cut));
            }
            if let Some((interface, ticks, cut)) = found {
                let Interface { link, clock, .. } = self.interfaces[interface];
                let time = match ticks {
                    Some(ticks) => match clock.time(ticks) {
                        Some(time) => Some(time),
                        None => {
                            let what = format!("a packet {ticks} ticks after its clock's start, beyond 2262");
                            return Err(self.wrong(12, what).help("the file is damaged here"));
                        }
                    },
                    None => None,
                };
                self.packets.skip(length);
                return Ok(Some(Frame { time, link, cut }));
            }
            self.packets.skip(length);
        }
        Ok(None)
    }

    fn at(&self) -> u64 {
        self.packets.at()
    }

    /// Without a length that can be trusted the next block cannot be found.
    fn resume(&mut self) -> Result<Passed> {
        Ok(Passed { bytes: self.packets.skip_rest()?, found: false })
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = self.tick;
        let lost = self.interfaces.iter().map(Interface::lost).fold(self.lost, u64::saturating_add);
        info.counts.lost = info.counts.lost.saturating_add(lost);
        if lost > 0 {
            info.warnings.push(format!("the capture lost {lost} packets, as its interfaces counted"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_both_kinds() {
        let of = |power, binary, offset| Ticks { power, binary, offset };
        assert_eq!(of(6, false, 0).time(1_500_001), Some(1_500_001_000));
        assert_eq!(of(9, false, 2).time(7), Some(2_000_000_007));
        assert_eq!(of(12, false, 0).time(1_999), Some(1));
        assert_eq!(of(10, true, -1).time(1536), Some(500_000_000));
        assert_eq!(of(127, false, 3).time(u64::MAX), Some(3_000_000_000));
        assert_eq!(of(127, true, 3).time(u64::MAX), Some(3_000_000_000));
        assert_eq!(of(0, false, 0).time(u64::MAX), None);
        assert_eq!(of(6, false, i64::MAX).time(0), None);
        assert_eq!([6, 9, 12].map(|p| of(p, false, 5).length()), [1000, 1, 1]);
        assert_eq!(of(20, true, 0).length(), 953);
    }
}
