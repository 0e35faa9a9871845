//! NFS in captures of network packets: classic pcap, either byte order, microseconds or nanoseconds
//! (draft-ietf-opsawg-pcap).

use super::capture::{self, Frame, Frames, LARGEST, LINKS, Link};
use super::pcapng;
use crate::cursor::Cursor;
use crate::formats::{Format, Known, Opened, single};
use crate::input::Input;
use crate::reader::OpenOptions;
use crate::{Error, Info, Result};

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "pcap",
    title: "pcap of NFSv2 and v3 (TCP, UDP)",
    extensions: &["pcap"],
    known: Known::Content,
    detect: |head, _| magic(head).is_some(),
    open,
};

/// Bytes of the file's head and of a packet's.
const HEAD: usize = 24;
const PACKET: usize = 16;

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
            .place(Error::new("is no pcap file"))
            .help("the file is damaged or of another format"));
    };
    if head.len() < HEAD {
        return Err(packets.place(Error::new(format!("truncated head: {} of {HEAD} bytes", head.len()))));
    }
    let link = Link::of(word(&head, 20, big) & 0x0fff_ffff);
    if let Link::Unknown(number) = link {
        return Err(packets
            .place(Error::new(format!("packets of link type {number} are not read")))
            .help(LINKS));
    }
    packets.skip(HEAD);
    Ok(capture::source(Pcap { packets, big, tick, link }, options))
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
}

impl Frames for Pcap {
    fn next(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Frame>> {
        let (big, tick) = (self.big, self.tick);
        let head = self.packets.peek(PACKET)?;
        if head.is_empty() {
            return Ok(None);
        }
        if head.len() < PACKET {
            let what = format!("truncated packet: {} of {PACKET} bytes of its head", head.len());
            return Err(self.packets.place(Error::new(what)).help("the copy or capture was cut short"));
        }
        let (seconds, fraction) = (word(head, 0, big), word(head, 4, big));
        let captured = word(head, 8, big) as usize;
        if captured > LARGEST || i64::from(fraction) * tick >= 1_000_000_000 {
            let what = format!("a packet of {captured} bytes at {seconds} s and {fraction} ticks");
            return Err(self.packets.place(Error::new(what)).help("the file is damaged here"));
        }
        let time = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * tick;
        let whole = self.packets.peek(PACKET + captured)?;
        if whole.len() < PACKET + captured {
            let what = format!("truncated packet: {} of {captured} bytes", whole.len() - PACKET);
            return Err(self.packets.place(Error::new(what)).help("the copy or capture was cut short"));
        }
        bytes.clear();
        bytes.extend_from_slice(&whole[PACKET..]);
        self.packets.skip(PACKET + captured);
        Ok(Some(Frame { time: Some(time), link: self.link }))
    }

    fn at(&self) -> u64 {
        self.packets.at()
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = self.tick;
    }
}
