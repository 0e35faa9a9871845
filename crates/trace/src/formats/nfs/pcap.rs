//! NFS in captures of network packets (classic pcap, either byte order, microseconds or nanoseconds).
//!
//! IPv4 and IPv6 over Ethernet, Linux "cooked" or raw; datagrams are put together from fragments, connections
//! from segments however they come. NFSv2 and v3 calls become requests; other programs, version 4 and
//! everything else count as other. Packets may be cut short by the capture: what a request needs comes first.

use super::answer;
use super::calls::Key;
use super::rpc::{self, Message};
use super::stream::Stream;
use crate::chunk::{Chunk, Origin};
use crate::cursor::Cursor;
use crate::formats::{Format, Known, Opened, Source, single};
use crate::input::Input;
use crate::reader::OpenOptions;
use crate::{Error, Info, Result};
use etherparse::defrag::IpDefragPool;
use etherparse::{EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, SlicedPacket, TransportSlice};
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "pcap",
    title: "pcap of NFSv2 and v3 (TCP, UDP)",
    extensions: &["pcap"],
    known: Known::Content,
    detect: |head, _| magic(head).is_some() || head.starts_with(&NEXT_GENERATION),
    open,
};

/// Magic of pcapng.
const NEXT_GENERATION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Bytes of the file's head and of a packet's.
const HEAD: usize = 24;
const PACKET: usize = 16;

/// Largest packet; more is damage.
const LARGEST: usize = 1 << 18;

/// Packets read before a chunk is handed on.
const STEP: usize = 1 << 14;

/// Most connections that are put together at once.
const MOST_STREAMS: usize = 1 << 14;

/// Fragments wait so long for the others, nanoseconds.
const FRAGMENTS: i64 = 30_000_000_000;

/// Link types.
const ETHERNET: u32 = 1;
const RAW: u32 = 101;
const COOKED: u32 = 113;

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
    if head.starts_with(&NEXT_GENERATION) {
        return Err(packets
            .place(Error::new("is pcapng, which is not read"))
            .help("convert it: editcap -F pcap IN OUT"));
    }
    let Some((big, tick)) = magic(&head) else {
        return Err(packets
            .place(Error::new("is no pcap file"))
            .help("the file is damaged or of another format"));
    };
    if head.len() < HEAD {
        return Err(packets.place(Error::new(format!("truncated head: {} of {HEAD} bytes", head.len()))));
    }
    let link = word(&head, 20, big) & 0x0fff_ffff;
    if ![ETHERNET, RAW, COOKED].contains(&link) {
        return Err(packets
            .place(Error::new(format!("packets of link type {link} are not read")))
            .help("Ethernet (1), raw IP (101) and Linux cooked (113) are"));
    }
    packets.skip(HEAD);
    Ok(Box::new(Pcap {
        packets,
        big,
        tick,
        link,
        lenient: options.max_damaged > 0,
        ended: false,
        fragments: IpDefragPool::new(),
        streams: FxHashMap::default(),
        lost: 0,
        talk: Talk::default(),
    }))
}

fn word(bytes: &[u8], at: usize, big: bool) -> u32 {
    let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// Source and destination of a message.
type Ends = [(IpAddr, u16); 2];

struct Pcap {
    packets: Cursor,
    big: bool,
    tick: i64,
    link: u32,
    /// Whether damage ends the trace instead of failing it.
    lenient: bool,
    ended: bool,
    fragments: IpDefragPool<i64, ()>,
    streams: FxHashMap<Ends, Stream>,
    /// Stretches lost in connections that are over.
    lost: u64,
    talk: Talk,
}

/// Most mounts that wait for their replies.
const MOST_MOUNTS: usize = 1 << 10;

/// What is said in the messages.
#[derive(Default)]
struct Talk {
    nfs: super::Talk,
    /// Directories whose handles are to come, and the versions of their calls.
    mounts: FxHashMap<Key, (u8, Vec<u8>)>,
    other: u64,
    /// Calls of version 4.
    version4: u64,
}

impl Talk {
    fn message(&mut self, time: i64, ends: &Ends, bytes: &[u8]) {
        let [source, destination] = ends;
        let mut key = |(address, port): &(IpAddr, u16), xid: u32| {
            (self.nfs.clients.text(address.to_string().as_bytes()), *port, xid)
        };
        match rpc::message(bytes) {
            Some(Message::Call { xid, version, asked }) => {
                let key = key(source, xid);
                self.nfs.call(time, key, version, &asked);
            }
            Some(Message::Reply { xid, status, results }) => {
                self.other += 1;
                let key = key(destination, xid);
                // Replies of other programs answer nothing that was asked here.
                if let Some(call) = self.nfs.calls.waiting(key) {
                    let told = answer::told(call.op, call.version, status, results);
                    self.nfs.reply(time, key, &told);
                } else if let Some((version, path)) = self.mounts.remove(&key)
                    && let Some(handle) = answer::mounted(version, status, results)
                {
                    self.nfs.names.mounted(&path, handle);
                }
            }
            Some(Message::Mount { xid, version, path }) => {
                self.other += 1;
                if self.mounts.len() == MOST_MOUNTS {
                    self.mounts.clear();
                }
                let key = key(source, xid);
                self.mounts.insert(key, (version, path.to_vec()));
            }
            Some(Message::Version4) => {
                self.other += 1;
                self.version4 += 1;
            }
            Some(Message::Other) | None => self.other += 1,
        }
    }
}

impl Pcap {
    /// Takes the next packet; `false` at the end of the file.
    fn packet(&mut self) -> Result<bool> {
        let (big, tick) = (self.big, self.tick);
        let head = self.packets.peek(PACKET)?;
        if head.is_empty() {
            return Ok(false);
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
        let bytes = whole[PACKET..].to_vec();
        self.packets.skip(PACKET + captured);
        if self.network(time, &bytes).is_none() {
            self.talk.other += 1;
        }
        Ok(true)
    }

    /// Finds the message or segment in a packet; `None` if there is none.
    fn network(&mut self, time: i64, bytes: &[u8]) -> Option<()> {
        let cooked = |bytes: &[u8]| Some(EtherType(u16::from_be_bytes([*bytes.get(14)?, *bytes.get(15)?])));
        let lax = match self.link {
            ETHERNET => LaxSlicedPacket::from_ethernet(bytes).ok()?,
            RAW => LaxSlicedPacket::from_ip(bytes).ok()?,
            _ => LaxSlicedPacket::from_ether_type(cooked(bytes)?, &bytes[16..]),
        };
        let (addresses, payload) = match lax.net.as_ref()? {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                ([IpAddr::from(header.source_addr()), IpAddr::from(header.destination_addr())], ip.payload())
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                ([IpAddr::from(header.source_addr()), IpAddr::from(header.destination_addr())], ip.payload())
            }
            LaxNetSlice::Arp(_) => return None,
        };
        if payload.fragmented {
            let strict = match self.link {
                ETHERNET => SlicedPacket::from_ethernet(bytes).ok()?,
                RAW => SlicedPacket::from_ip(bytes).ok()?,
                _ => SlicedPacket::from_ether_type(cooked(bytes)?, &bytes[16..]).ok()?,
            };
            let whole = self.fragments.process_sliced_packet(&strict, time, ()).ok()?;
            self.fragments.retain(|since| time.saturating_sub(*since) < FRAGMENTS);
            if let Some(whole) = whole {
                if whole.ip_number == IpNumber::UDP {
                    self.datagram(time, addresses, &whole.payload);
                }
                self.fragments.return_buf(whole);
            }
            return Some(());
        }
        match lax.transport.as_ref()? {
            TransportSlice::Udp(_) => self.datagram(time, addresses, payload.payload),
            TransportSlice::Tcp(tcp) => {
                let ends = [(addresses[0], tcp.source_port()), (addresses[1], tcp.destination_port())];
                // The capture may have cut the packet, whose own length says what there was.
                let length = match lax.net.as_ref()? {
                    LaxNetSlice::Ipv4(ip) => {
                        usize::from(ip.header().total_len()).saturating_sub(ip.header().slice().len())
                    }
                    LaxNetSlice::Ipv6(_) if payload.incomplete => ip6_length(&lax)?,
                    _ => payload.payload.len(),
                };
                let header = tcp.slice().len() - tcp.payload().len();
                let length = length.max(payload.payload.len()).saturating_sub(header);
                // Padding of short frames is no data.
                let data = &tcp.payload()[..tcp.payload().len().min(length)];
                self.segment(
                    time,
                    ends,
                    (tcp.sequence_number(), tcp.syn(), tcp.fin() || tcp.rst() && data.is_empty()),
                    data,
                    length,
                );
            }
            _ => return None,
        }
        Some(())
    }

    fn datagram(&mut self, time: i64, [source, destination]: [IpAddr; 2], bytes: &[u8]) {
        let port = |at: usize| bytes.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
        if let (Some(from), Some(to), Some(message)) = (port(0), port(2), bytes.get(8..)) {
            self.talk.message(time, &[(source, from), (destination, to)], message);
        }
    }

    fn segment(
        &mut self,
        time: i64,
        ends: Ends,
        (number, syn, over): (u32, bool, bool),
        data: &[u8],
        length: usize,
    ) {
        if self.streams.len() >= MOST_STREAMS && !self.streams.contains_key(&ends) {
            self.lost += self.streams.drain().map(|(_, stream)| 1 + stream.lost()).sum::<u64>();
        }
        let Pcap { streams, talk, .. } = self;
        let stream = streams.entry(ends).or_default();
        let mut record = |time: i64, bytes: &[u8]| talk.message(time, &ends, bytes);
        stream.segment((time, number, syn), data, length, &mut record);
        if over && let Some(stream) = self.streams.remove(&ends) {
            self.lost += stream.lost();
        }
    }
}

/// Bytes behind the header of an IPv6 packet that was cut, without its extensions.
fn ip6_length(packet: &LaxSlicedPacket) -> Option<usize> {
    match packet.net.as_ref()? {
        LaxNetSlice::Ipv6(ip) => Some(usize::from(ip.header().payload_length())),
        _ => None,
    }
}

impl Source for Pcap {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.origin = Origin::Unknown;
        for _ in 0..STEP {
            if self.ended {
                break;
            }
            let at = self.packets.at();
            match self.packet() {
                Ok(more) => self.ended = !more,
                Err(error) if self.lenient => {
                    // Without a length that can be trusted the next packet cannot be found.
                    self.ended = true;
                    chunk.damaged.push((at, error));
                }
                Err(error) => return Err(error),
            }
        }
        self.talk.nfs.check()?;
        chunk.other += std::mem::take(&mut self.talk.other);
        self.talk.nfs.calls.deliver(&mut chunk.batch, self.ended);
        chunk.fill();
        Ok(!self.ended || !chunk.batch.is_empty() || chunk.other > 0 || !chunk.damaged.is_empty())
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = self.tick;
        self.talk.nfs.info(info);
        let lost = self.lost + self.streams.values().map(Stream::lost).sum::<u64>();
        info.counts.lost += lost;
        if lost > 0 {
            info.warnings.push(format!("the capture lost segments in {lost} places"));
        }
        if self.talk.version4 > 0 {
            info.warnings.push(format!(
                "{} calls of NFS version 4 were passed over: it is not read",
                self.talk.version4
            ));
        }
    }
}
