//! The same packets as pcap and as pcapng are the same requests; what is wrong in a file is told to the byte.

mod common;

use common::{format, read, read_bytes, shared};
use loadstone_trace::{Batch, Info, OpenOptions};
use std::io::Write;

/// How a file is written.
#[derive(Clone, Copy)]
struct Style {
    big: bool,
    /// The option's byte: a power of ten, or with the highest bit one of two.
    resolution: u8,
    /// Seconds that the file's clock begins after 1970.
    offset: i64,
    /// Obsolete blocks in place of enhanced ones.
    obsolete: bool,
}

const PLAIN: Style = Style { big: false, resolution: 6, offset: 0, obsolete: false };

impl Style {
    fn half(self, n: u16) -> [u8; 2] {
        if self.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn word(self, n: u32) -> [u8; 4] {
        if self.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn long(self, n: u64) -> [u8; 8] {
        if self.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn block(self, kind: u32, parts: &[&[u8]]) -> Vec<u8> {
        let mut body = parts.concat();
        body.resize(body.len().div_ceil(4) * 4, 0);
        let length = self.word(body.len() as u32 + 12);
        [&self.word(kind)[..], &length, &body, &length].concat()
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut out = [self.half(code), self.half(value.len() as u16)].concat();
        out.extend(value);
        out.resize(out.len().div_ceil(4) * 4, 0);
        out
    }

    fn section(self) -> Vec<u8> {
        let numbers = [&self.word(0x1a2b_3c4d)[..], &self.half(1), &self.half(0), &[0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &[&numbers, &self.option(4, b"a test"), &self.option(0, b"")])
    }

    fn interface(self, link: u16) -> Vec<u8> {
        let numbers = [&self.half(link)[..], &self.half(0), &self.word(0)].concat();
        let (resolution, offset) =
            (self.option(9, &[self.resolution]), self.option(14, &self.long(self.offset as u64)));
        self.block(1, &[&numbers, &self.option(2, b"eth0"), &resolution, &offset, &self.option(0, b"")])
    }

    fn ticks(self, ns: i64) -> u64 {
        let ns = (ns - self.offset * 1_000_000_000) as u128;
        let power = u32::from(self.resolution & 0x7f);
        // Upwards, so that the time is the same again where a tick is shorter than that of the other file.
        let ticks = if self.resolution & 0x80 == 0 { ns * 10u128.pow(power) } else { ns << power };
        ticks.div_ceil(1_000_000_000) as u64
    }

    fn packet(self, interface: u16, ns: i64, bytes: &[u8], original: u32) -> Vec<u8> {
        let ticks = self.ticks(ns);
        let rest =
            [(ticks >> 32) as u32, ticks as u32, bytes.len() as u32, original].map(|n| self.word(n)).concat();
        if self.obsolete {
            return self.block(2, &[&self.half(interface), &self.half(1), &rest, bytes]);
        }
        let mut data = bytes.to_vec();
        data.resize(data.len().div_ceil(4) * 4, 0);
        // One packet was lost before it, and nobody knows flags.
        let options = [self.option(4, &self.long(1)), self.option(2, &[0; 4]), self.option(0, b"")].concat();
        self.block(6, &[&self.word(interface.into()), &rest, &data, &options])
    }

    fn statistics(self, interface: u32, dropped: [u64; 2]) -> Vec<u8> {
        let numbers = [interface, 0, 0].map(|n| self.word(n)).concat();
        let [by_interface, by_system] = dropped.map(|n| self.long(n));
        self.block(5, &[&numbers, &self.option(5, &by_interface), &self.option(7, &by_system)])
    }
}

/// Time (ns), bytes and original length.
type Packet<'a> = (i64, &'a [u8], u32);

/// Link type and packets of a classic file in little-endian order.
fn packets(file: &[u8]) -> (u16, Vec<Packet<'_>>) {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!(word(0), 0xa1b2_c3d4, "microseconds, little-endian");
    let (mut at, mut all) = (24, Vec::new());
    while at < file.len() {
        let (time, length) =
            (i64::from(word(at)) * 1_000_000_000 + i64::from(word(at + 4)) * 1000, word(at + 8));
        all.push((time, &file[at + 16..at + 16 + length as usize], word(at + 12)));
        at += 16 + length as usize;
    }
    (word(20) as u16, all)
}

fn seed(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../fuzz/seeds/pcap/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn same(a: &(Batch, Info), b: &(Batch, Info)) {
    assert_eq!(a.0, b.0);
    assert_eq!(
        (&a.1.objects, &a.1.actors, a.1.start_unix_ns),
        (&b.1.objects, &b.1.actors, b.1.start_unix_ns)
    );
    assert_eq!(a.1.counts.other, b.1.counts.other);
}

#[test]
#[ignore = "needs ../shared/traces"]
fn real_captures_are_the_same_in_every_style() {
    let tens = [6, 9].map(|resolution| Style { resolution, ..PLAIN });
    let styles = [
        tens[0],
        Style { big: true, ..tens[1] },
        Style { resolution: 0x80 | 30, ..PLAIN },
        Style { big: true, resolution: 10, offset: 1_000_000_000, obsolete: true },
    ];
    for name in ["eth-ipv6-tcp-nfsv3-bad_alloc", "eth-ipv4-udp-nfsv3-dup-retransm"] {
        let path = shared(&format!("nfs-pcap/{name}.pcap"));
        let file = std::fs::read(&path).unwrap();
        let (link, all) = packets(&file);
        let classic = read(&path, &OpenOptions::default()).unwrap();
        for (i, style) in styles.into_iter().enumerate() {
            let mut next = [style.section(), style.interface(link)].concat();
            // Every other packet is of another interface; blocks of other kinds stand between.
            next.extend(Style { resolution: 9, offset: 0, ..style }.interface(link));
            let lost = all.len() as u64;
            for (n, (time, bytes, original)) in all.iter().enumerate() {
                let other = Style { resolution: 9, offset: 0, ..style };
                let of = if n % 2 == 0 { style } else { other };
                next.extend(of.packet((n % 2) as u16, *time, bytes, *original));
                if n % 1000 == 0 {
                    next.extend(style.block(4, &[&[0; 4]]));
                    next.extend(style.block(0x8000_0bad, &[b"somebody's own"]));
                }
            }
            if i == 1 {
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                packed.write_all(&next).unwrap();
                next = packed.finish().unwrap();
            }
            let told = read_bytes(next, &OpenOptions::default()).unwrap();
            assert_eq!(told.1.format, "pcapng");
            same(&told, &classic);
            assert_eq!(told.1.counts.lost, classic.1.counts.lost + lost, "{name} {i}");
        }
    }
}

#[test]
fn sections_of_both_orders_in_one_file() {
    let classic = read_bytes(seed("little.pcap"), &OpenOptions::default()).unwrap();
    let (all, info) = read_bytes(seed("next.pcapng"), &OpenOptions::default()).unwrap();
    assert_eq!((&all, info.format.as_str()), (&classic.0, "pcapng"));
    // Three in each section, and a packet of the last block that has no time.
    assert_eq!((info.counts.lost, info.counts.other), (6, classic.1.counts.other + 1));
    for text in ["lost 6 packets", "1 packets have no time"] {
        assert!(info.warnings.iter().any(|w| w.contains(text)), "{:?}", info.warnings);
    }
    // Whoever says pcap means captures of packets.
    let (named, _) = read_bytes(seed("next.pcapng"), &format("pcap")).unwrap();
    assert_eq!(named, all);
}

/// What comes before a packet, by its protocol.
type Header = fn(&[u8]) -> Vec<u8>;

#[test]
#[ignore = "needs ../shared/traces"]
fn headers_of_every_link_type_lead_to_the_same_requests() {
    for name in ["eth-ipv6-tcp-nfsv3-bad_alloc", "eth-ipv4-udp-nfsv3-dup-retransm"] {
        let path = shared(&format!("nfs-pcap/{name}.pcap"));
        let file = std::fs::read(&path).unwrap();
        let (_, all) = packets(&file);
        let classic = read(&path, &OpenOptions::default()).unwrap();
        // Of an Ethernet header the last two bytes are the protocol.
        let before: [(u16, Header); 4] = [
            (101, |_| Vec::new()),
            (if name.contains("ipv6") { 229 } else { 228 }, |_| Vec::new()),
            (113, |protocol| [&[0; 14], protocol].concat()),
            (276, |protocol| [protocol, &[0; 18]].concat()),
        ];
        for (link, header) in before {
            let mut next = [PLAIN.section(), PLAIN.interface(link)].concat();
            for (time, bytes, original) in &all {
                let bytes = [header(&bytes[12..14]), bytes[14..].to_vec()].concat();
                next.extend(PLAIN.packet(0, *time, &bytes, *original));
            }
            let told = read_bytes(next, &OpenOptions::default()).unwrap();
            assert!(!told.0.is_empty(), "{name}, link type {link}");
            same(&told, &classic);
        }
        // A header that is cut is no packet, and nothing else.
        let short = PLAIN.packet(0, all[0].0, &[8, 0, 1], 3);
        let cut = [PLAIN.section(), PLAIN.interface(276), short].concat();
        assert!(read_bytes(cut, &OpenOptions::default()).unwrap_err().to_string().contains("no requests"));
    }
}

#[test]
fn drops_are_counted_once() {
    let file = seed("little.pcap");
    let (link, all) = packets(&file);
    let style = Style { big: true, ..PLAIN };
    let mut next = [style.section(), style.interface(link), style.statistics(0, [2, 1])].concat();
    all.iter().for_each(|(time, bytes, original)| next.extend(style.packet(0, *time, bytes, *original)));
    // Between the packets 10 were lost; the interface's last count has those and others.
    next.extend(style.statistics(0, [20, 3]));
    let (_, info) = read_bytes(next, &OpenOptions::default()).unwrap();
    assert_eq!((all.len(), info.counts.lost), (10, 23));
}

/// All behind a damaged packet was left out, and nothing told how much that was.
#[test]
fn classic_files_go_on_at_the_next_packet() {
    let file = seed("little.pcap");
    let (_, all) = packets(&file);
    let options = OpenOptions { salvage: true, ..OpenOptions::default() };
    let mut at = 24;
    for (_, bytes, _) in &all {
        let end = at + 16 + bytes.len();
        let without = [&file[..at], &file[end..]].concat();
        let mut damaged = file.clone();
        damaged[at..at + 16].fill(0xff);
        let (salvaged, info) = read_bytes(damaged, &options).unwrap();
        assert_eq!(salvaged, read_bytes(without, &options).unwrap().0, "byte {at}");
        assert_eq!(info.counts.damaged, 1);
        let passed = format!("{} bytes were passed over", end - at);
        assert!(info.warnings.iter().any(|warning| warning.contains(&passed)), "{:?}", info.warnings);
        at = end;
    }
}

#[test]
fn what_is_wrong_is_told_to_the_byte() {
    let file = seed("little.pcap");
    let (link, all) = packets(&file);
    let (time, bytes, original) = all[0];
    let head = [PLAIN.section(), PLAIN.interface(link)].concat();
    let packet = PLAIN.packet(0, time, bytes, original);
    let (start, end) = (head.len(), head.len() + packet.len());
    let message = |file: &[u8], options: &OpenOptions| read_bytes(file, options).unwrap_err().to_string();
    let damage = |at: usize, with: &[u8]| {
        let mut file = [&head[..], &packet[..], &packet[..]].concat();
        file[at..at + with.len()].copy_from_slice(with);
        message(&file, &OpenOptions::default())
    };
    let whole = [&head[..], &packet[..], &packet[..]].concat();
    for (cut, says) in [
        (end + 5, format!("byte {end}: truncated block: 5 of 12 bytes")),
        (end + 50, format!("byte {end}: truncated block: 50 of {} bytes", packet.len())),
    ] {
        let told = message(&whole[..cut], &OpenOptions::default());
        assert!(told.contains(&says) && told.contains("cut short"), "{told}");
    }
    // With leave to pass over damage what came before is kept.
    let mut long = head.clone();
    all.iter().for_each(|(time, bytes, original)| long.extend(PLAIN.packet(0, *time, bytes, *original)));
    let (kept, _) = read_bytes(long.clone(), &OpenOptions::default()).unwrap();
    long.extend(&packet[..30]);
    let options = OpenOptions { salvage: true, ..OpenOptions::default() };
    let (salvaged, info) = read_bytes(long, &options).unwrap();
    assert_eq!((salvaged, info.counts.damaged), (kept, 1));
    assert!(info.warnings.iter().any(|warning| warning.contains("30 bytes were passed over")));
    for (at, with, says) in [
        (start + 4, &[13u8, 0, 0, 0][..], format!("byte {}: a block of type 0x6 and 13 bytes", start + 4)),
        (start + 4, &[8, 0, 0, 0], format!("byte {}: a block of type 0x6 and 8 bytes; it has 32", start + 4)),
        (start + 7, &[0xff], format!("byte {}: a block of type 0x6", start + 4)),
        (end - 4, &[0, 0, 0, 0], format!("byte {}: a block of {} bytes ends with", end - 4, packet.len())),
        (start + 8, &[7], format!("byte {}: interface 7 of a section that has told 1", start + 8)),
        (start + 20, &[0xff, 0xff], format!("byte {}: a packet of 65535 bytes", start + 20)),
        (start + 12, &[0xff; 8], format!("byte {}: a packet 1844674407", start + 12)),
        (12, &[2, 0], "byte 12: a section of version 2".into()),
        (
            PLAIN.section().len() + 18,
            &[0xff],
            format!("byte {}: an option goes on", PLAIN.section().len() + 16),
        ),
    ] {
        let told = damage(at, with);
        assert!(told.contains(&says) && told.contains("damaged here"), "{told}\n{says}");
    }
    // A link type that is not read fails nothing: other interfaces may be.
    let other = [PLAIN.section(), PLAIN.interface(127), packet.clone()].concat();
    let told = message(&other, &OpenOptions::default());
    assert!(told.contains("link type 127"), "{told}");
}
