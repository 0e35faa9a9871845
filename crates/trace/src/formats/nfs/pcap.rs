//! NFS in captures of network packets: classic pcap, either byte order, microseconds or nanoseconds
//! (draft-ietf-opsawg-pcap).

use super::capture::{self, Frame, Frames, LARGEST, Passed};
use super::pcapng;
use super::peel::{LINKS, Link};
use crate::cursor::Cursor;
use crate::formats::format::{Format, Known, Opened, single};
use crate::input::Input;
use crate::options::OpenOptions;
use crate::{Error, ErrorKind, Info, Result};

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "pcap",
    title: "pcap of NFSv2 and v3 (TCP, UDP)",
    extensions: &["pcap"],
    known: Known::Content,
    header: &[],
    detect: |head, _| magic(head).is_some(),
    open,
};

/// Bytes of the file's head and of a packet's.
const HEAD: usize = 24;
const PACKET: usize = 16;

const SECOND: i64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND as u64;
const YEAR: u64 = 366 * DAY;

/// Byte order (big) and nanoseconds of a tick.
fn magic(head: &[u8]) -> Option<(bool, i64)> {
    match head.get(..4)? {
        [0xd4, 0xc3, 0xb2, 0xa1] => Some((false, 1000)),
        [0xa1, 0xb2, 0xc3, 0xd4] => Some((true, 1000)),
        [0x4d, 0x3c, 0xb2, 0xa1] => Some((false, 1)),
        [0xa1, 0xb2, 0x3c, 0x4d] => Some((true, 1)),
        _ => None,
    }
}

fn open(inputs: Vec<Input>, options: &OpenOptions) -> Opened {
    let mut packets = Cursor::new(single(inputs)?);
    let head = packets.peek(HEAD)?.to_vec();
    if pcapng::begins(&head) {
        return pcapng::read(packets, options);
    }
    let Some((big, tick)) = magic(&head) else {
        return Err(packets
            .place(Error::new(ErrorKind::Unrecognised, "is no pcap file"))
            .help("the file is damaged or of another format"));
    };
    if head.len() < HEAD {
        return Err(packets.place(Error::new(
            ErrorKind::Truncated,
            format!("truncated head: {} of {HEAD} bytes", head.len()),
        )));
    }
    // Above it stands how many bytes of check sum end each packet, which the lengths inside leave out.
    let link = Link::of(word(&head, 20, big) & 0xffff);
    if let Link::Unknown(number) = link {
        return Err(packets
            .place(Error::new(ErrorKind::Unsupported, format!("packets of link type {number} are not read")))
            .help(LINKS));
    }
    packets.skip(HEAD);
    Ok(capture::source(Pcap { packets, big, tick, link, first: None }, options))
}

fn word(bytes: &[u8], at: usize, big: bool) -> u32 {
    let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

struct Pcap {
    packets: Cursor,
    big: bool,
    tick: i64,
    link: Link,
    /// Time of the first packet; that of a later one may be damaged.
    first: Option<i64>,
}

/// The numbers before a packet.
struct Head {
    seconds: u32,
    fraction: u32,
    captured: usize,
    whole: usize,
}

impl Head {
    fn of(bytes: &[u8], big: bool) -> Option<Head> {
        let bytes = bytes.get(..PACKET)?;
        let word = |at: usize| word(bytes, at, big);
        let (captured, whole) = (word(8) as usize, word(12) as usize);
        Some(Head { seconds: word(0), fraction: word(4), captured, whole })
    }

    /// When it was captured, if it can be of a packet.
    fn time(&self, tick: i64) -> Option<i64> {
        let fraction = i64::from(self.fraction) * tick;
        (self.captured <= LARGEST && fraction < SECOND).then(|| i64::from(self.seconds) * SECOND + fraction)
    }

    /// Whether it is likely to be of a packet, so near to another in time: its bytes are some, and no more than it had.
    fn is_likely(&self, tick: i64, near: Option<i64>, by: u64) -> bool {
        let time = self.time(tick).filter(|time| near.is_none_or(|near| time.abs_diff(near) < by));
        time.is_some() && self.captured > 0 && self.captured <= self.whole && self.whole <= LARGEST
    }
}

impl Pcap {
    /// Whether two packets seem to follow one another here, or one the end of the file.
    fn is_packet(&mut self) -> Result<bool> {
        let (big, tick, first) = (self.big, self.tick, self.first);
        let head = Head::of(self.packets.peek(PACKET)?, big);
        let Some(head) = head.filter(|head| head.is_likely(tick, first, YEAR)) else { return Ok(false) };
        let end = PACKET + head.captured;
        let both = self.packets.peek(end + PACKET)?;
        let next = Head::of(both.get(end..).unwrap_or_default(), big);
        Ok(both.len() == end || next.is_some_and(|next| next.is_likely(tick, head.time(tick), DAY)))
    }
}

impl Frames for Pcap {
    fn next(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Frame>> {
        let (big, tick) = (self.big, self.tick);
        let head = self.packets.peek(PACKET)?;
        if head.is_empty() {
            return Ok(None);
        }
        let Some(found) = Head::of(head, big) else {
            let what = format!("truncated packet: {} of {PACKET} bytes of its head", head.len());
            return Err(self
                .packets
                .place(Error::new(ErrorKind::Truncated, what))
                .help("the copy or capture was cut short"));
        };
        let Head { seconds, fraction, captured, whole: sent } = found;
        let Some(time) = found.time(tick) else {
            let what = format!("a packet of {captured} bytes at {seconds} s and {fraction} ticks");
            return Err(self.packets.place(Error::malformed(what)).help("the file is damaged here"));
        };
        let whole = self.packets.peek(PACKET + captured)?;
        if whole.len() < PACKET + captured {
            let what = format!("truncated packet: {} of {captured} bytes", whole.len() - PACKET);
            return Err(self
                .packets
                .place(Error::new(ErrorKind::Truncated, what))
                .help("the copy or capture was cut short"));
        }
        bytes.clear();
        bytes.extend_from_slice(&whole[PACKET..]);
        self.packets.skip(PACKET + captured);
        self.first.get_or_insert(time);
        Ok(Some(Frame { time: Some(time), link: self.link, cut: captured < sent }))
    }

    fn at(&self) -> u64 {
        self.packets.at()
    }

    fn resume(&mut self) -> Result<Passed> {
        let (from, mut found) = (self.packets.at(), false);
        while !found && !self.packets.peek(1)?.is_empty() {
            self.packets.skip(1);
            found = self.is_packet()?;
        }
        Ok(Passed { bytes: self.packets.at() - from, found })
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = self.tick;
    }
}
