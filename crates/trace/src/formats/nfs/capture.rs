//! What NFS clients and servers say in captured packets, whatever file these stand in.
//!
//! IPv4 and IPv6 over Ethernet, Linux "cooked" or raw; datagrams are put together from fragments, connections
//! from segments however they come. NFSv2 and v3 calls become requests; other programs, version 4 and
//! everything else count as other. Packets may be cut short by the capture: what a request needs comes first.

use super::answer;
use super::calls::Key;
use super::fragments::Fragments;
use super::peel::{self, LINKS, Link, What};
use super::rpc::{self, Message};
use super::stream::{LONGEST_GAP, Stream};
use crate::chunk::{Chunk, Origin};
use crate::formats::format::Source;
use crate::options::OpenOptions;
use crate::{ErrorKind, Info, Result};
use etherparse::{EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, SlicedPacket, TransportSlice};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Largest packet; more is damage.
pub const LARGEST: usize = 1 << 18;

/// Packets read before a chunk is handed on.
const STEP: usize = 1 << 14;

/// Kinds of packets that are told apart.
const MOST_KINDS: usize = 64;

/// Most connections that are put together at once.
const MOST_STREAMS: usize = 1 << 14;

/// Source and destination of a message.
type Ends = [(IpAddr, u16); 2];

/// A file of packets, one at a time.
pub trait Frames: Send {
    /// Puts the next packet's bytes in place of those in the buffer; `None` at the end of the file.
    ///
    /// # Errors
    /// Names file and byte of what is damaged or cut short.
    fn next(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Frame>>;

    /// Where the next packet stands, in bytes.
    fn at(&self) -> u64;

    /// Passes over damage, to the next packet if one can be found.
    ///
    /// # Errors
    /// When the file cannot be read.
    fn resume(&mut self) -> Result<Passed>;

    /// Adds what the file says besides: its clock, and packets that the capture lost.
    fn info(&self, info: &mut Info);
}

/// What was passed over behind damage.
pub struct Passed {
    /// Bytes of it.
    pub bytes: u64,
    /// Whether a packet follows; else the file is at its end.
    pub found: bool,
}

/// What is known of a packet besides its bytes.
pub struct Frame {
    /// Nanoseconds since 1970; `None` where the file does not say.
    pub time: Option<i64>,
    /// How its bytes begin.
    pub link: Link,
    /// Whether the capture has not all of it.
    pub cut: bool,
}

/// What is said in packets, whatever file they stand in.
struct Capture<F> {
    frames: F,
    bytes: Vec<u8>,
    /// Whether damage is passed over instead of failing the trace.
    lenient: bool,
    /// Bytes that were passed over.
    passed: u64,
    ended: bool,
    fragments: Fragments,
    streams: FxHashMap<Ends, Stream>,
    /// Connections in which segments wait for others, and since when.
    gaps: VecDeque<(i64, Ends)>,
    /// Stretches lost in connections that are over.
    lost: u64,
    /// Packets without a time.
    timeless: u64,
    /// Packets, and those that the capture cut short.
    packets: u64,
    cut: u64,
    /// Packets by what they are.
    kinds: BTreeMap<What, u64>,
    talk: Talk,
}

/// A source of the requests in packets.
pub fn source(frames: impl Frames + 'static, options: &OpenOptions) -> Box<dyn Source> {
    Box::new(Capture {
        frames,
        bytes: Vec::new(),
        lenient: options.max_damaged > 0,
        passed: 0,
        ended: false,
        fragments: Fragments::new(),
        streams: FxHashMap::default(),
        gaps: VecDeque::new(),
        lost: 0,
        timeless: 0,
        packets: 0,
        cut: 0,
        kinds: BTreeMap::new(),
        talk: Talk::default(),
    })
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
    /// Calls of version 2 and 3, and those of them that are cut short.
    calls: u64,
    cut: u64,
    /// Calls of version 4.
    version4: u64,
}

/// Whether bytes are the start of a call of NFS that is read: a transaction id, 0, RPC version 2, program and version.
fn is_call(bytes: &[u8]) -> bool {
    let word = |at: usize| bytes.get(at..at + 4).map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]]));
    [word(4), word(8), word(12)] == [Some(0), Some(2), Some(100_003)] && matches!(word(16), Some(2 | 3))
}

impl Talk {
    fn message(&mut self, time: i64, ends: &Ends, bytes: &[u8]) {
        let [source, destination] = ends;
        let mut key = |(address, port): &(IpAddr, u16), xid: u32| {
            (self.nfs.clients.text(address.to_string().as_bytes()), *port, xid)
        };
        match rpc::message(bytes) {
            Some(Message::Call { xid, version, asked }) => {
                self.calls += 1;
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
            None if is_call(bytes) => {
                self.other += 1;
                self.cut += 1;
            }
            Some(Message::Other) | None => self.other += 1,
        }
    }
}

impl<F: Frames> Capture<F> {
    /// Takes the next packet; `false` at the end of the file.
    fn packet(&mut self) -> Result<bool> {
        let mut bytes = std::mem::take(&mut self.bytes);
        let Some(frame) = self.frames.next(&mut bytes)? else { return Ok(false) };
        self.packets += 1;
        self.cut += u64::from(frame.cut);
        let (kind, understood) = match (frame.time, peel::ip(frame.link, &bytes)) {
            (None, _) => {
                self.timeless += 1;
                ("without a time".into(), None)
            }
            (_, Err(what)) => (what, None),
            (Some(time), Ok((version, bytes))) => {
                let protocol = match version {
                    EtherType::IPV4 => bytes.get(9),
                    _ => bytes.get(6),
                };
                let kind =
                    protocol.map_or_else(|| "cut short within their heads".into(), |p| peel::protocol(*p));
                (kind, self.network(time, version, bytes))
            }
        };
        if self.kinds.len() < MOST_KINDS || self.kinds.contains_key(&kind) {
            *self.kinds.entry(kind).or_default() += 1;
        }
        if understood.is_none() {
            self.talk.other += 1;
        }
        self.bytes = bytes;
        Ok(true)
    }

    /// Finds the message or segment in an IP packet; `None` if there is none.
    fn network(&mut self, time: i64, version: EtherType, bytes: &[u8]) -> Option<()> {
        let lax = LaxSlicedPacket::from_ether_type(version, bytes);
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
            let strict = SlicedPacket::from_ether_type(version, bytes).ok()?;
            if let Some(whole) = self.fragments.add(time, &strict) {
                if whole.ip_number == IpNumber::UDP {
                    self.datagram(time, addresses, &whole.payload);
                }
                self.fragments.done(whole);
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
                    tcp.ack().then(|| tcp.acknowledgment_number()),
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
        acknowledged: Option<u32>,
        data: &[u8],
        length: usize,
    ) {
        self.give_up(time);
        if self.streams.len() >= MOST_STREAMS && !self.streams.contains_key(&ends) {
            self.end_streams();
        }
        let Capture { streams, talk, gaps, .. } = self;
        let [source, destination] = ends;
        let back = [destination, source];
        if let (Some(number), Some(other)) = (acknowledged, streams.get_mut(&back)) {
            other.acknowledge(number, &mut |time, bytes| talk.message(time, &back, bytes));
        }
        let stream = streams.entry(ends).or_default();
        let mut record = |time: i64, bytes: &[u8]| talk.message(time, &ends, bytes);
        let had_gap = stream.has_gap();
        stream.segment((time, number, syn), data, length, &mut record);
        if over {
            stream.give_up_all(&mut record);
            self.lost += self.streams.remove(&ends).map_or(0, |stream| stream.lost());
        } else if stream.has_gap() && !had_gap {
            gaps.push_back((time, ends));
        }
    }

    /// Gives up segments that others have waited for too long.
    fn give_up(&mut self, now: i64) {
        let Capture { streams, talk, gaps, .. } = self;
        while let Some(&(since, ends)) = gaps.front() {
            if now.saturating_sub(since) <= LONGEST_GAP {
                break;
            }
            gaps.pop_front();
            let Some(stream) = streams.get_mut(&ends) else { continue };
            match stream.gap_since() {
                Some(since) if now.saturating_sub(since) <= LONGEST_GAP => gaps.push_back((since, ends)),
                _ => stream.give_up_all(&mut |time, bytes| talk.message(time, &ends, bytes)),
            }
        }
    }

    /// Ends all connections, those first whose segments wait the longest.
    fn end_streams(&mut self) {
        self.give_up(i64::MAX);
        let Capture { streams, talk, lost, .. } = self;
        for (ends, mut stream) in streams.drain() {
            stream.give_up_all(&mut |time, bytes| talk.message(time, &ends, bytes));
            *lost += stream.lost();
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

impl<F: Frames> Source for Capture<F> {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.origin = Origin::Unknown;
        for _ in 0..STEP {
            if self.ended {
                break;
            }
            let at = self.frames.at();
            match self.packet() {
                Ok(more) => self.ended = !more,
                Err(error) if self.lenient && error.kind() != ErrorKind::Io => {
                    let Passed { bytes, found } = self.frames.resume()?;
                    self.passed += bytes;
                    self.ended = !found;
                    chunk.damaged.push((at, error));
                }
                Err(error) => return Err(error),
            }
        }
        if self.ended {
            self.fragments.end();
            self.end_streams();
        }
        self.talk.nfs.check()?;
        chunk.other += std::mem::take(&mut self.talk.other);
        self.talk.nfs.calls.deliver(chunk, self.ended);
        chunk.fill();
        Ok(!self.ended || !chunk.batch.is_empty() || chunk.other > 0 || !chunk.damaged.is_empty())
    }

    fn info(&self, info: &mut Info) {
        // First what may be why there are no requests.
        if self.talk.cut > 0 {
            let (calls, cut, packets) = (self.talk.cut, self.cut, self.packets);
            info.warnings.push(format!(
                "{calls} calls are cut short before all that they ask for, as the capture has only the start of {cut} of \
                 its {packets} packets; capture whole packets: tcpdump -s 0"
            ));
        }
        if self.talk.version4 > 0 {
            info.warnings.push(format!(
                "{} calls of NFS version 4 were passed over: it is not read",
                self.talk.version4
            ));
        }
        if self.talk.calls == 0 && self.packets > 0 {
            let mut kinds: Vec<(&What, u64)> = self.kinds.iter().map(|(kind, n)| (kind, *n)).collect();
            kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
            let kinds: Vec<String> = kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
            let (packets, kinds) = (self.packets, kinds.join(", "));
            info.warnings.push(format!(
                "none of {packets} packets ({kinds}) has a whole call of NFS version 2 or 3, over TCP or UDP"
            ));
        }
        let unknown = |what: &&What| what.starts_with("link type ");
        for (link, packets) in self.kinds.iter().filter(|(what, _)| unknown(what)) {
            info.warnings.push(format!("{packets} packets of {link} are not read; {LINKS}"));
        }
        if self.passed > 0 {
            info.warnings.push(format!("{} bytes were passed over as damaged", self.passed));
        }
        if self.timeless > 0 {
            info.warnings.push(format!("{} packets have no time and were passed over", self.timeless));
        }
        self.frames.info(info);
        self.talk.nfs.info(info);
        let lost = self.lost + self.streams.values().map(Stream::lost).sum::<u64>();
        info.counts.lost = info.counts.lost.saturating_add(lost);
        if lost > 0 {
            let places = if lost == 1 { "one place".into() } else { format!("{lost} places") };
            info.warnings.push(format!("the capture lost segments in {places}"));
        }
        let parts = self.fragments.lost();
        info.counts.lost = info.counts.lost.saturating_add(parts);
        if parts > 0 {
            info.warnings.push(format!("fragments of {parts} datagrams are missing; these were passed over"));
        }
    }
}
