//! What lies around an IP packet in a captured frame: links, tags, labels and tunnels are taken off.

use etherparse::EtherType;
use std::borrow::Cow;

/// How the bytes of a packet begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// With an Ethernet header.
    Ethernet,
    /// With an IP header.
    Raw,
    /// With a header of Linux "cooked" captures: where in it the protocol stands, and its bytes.
    Cooked(usize, usize),
    /// With the number of an address family, as loopback devices of BSD have it.
    Loopback,
    /// In a way that is not read; its number.
    Unknown(u32),
}

/// The link types that are read, for messages.
pub const LINKS: &str =
    "Ethernet (1), raw IP (101, 228, 229), Linux cooked (113, 276) and loopback (0, 108) are";

impl Link {
    /// By the number of the tcpdump registry.
    pub fn of(number: u32) -> Link {
        match number {
            1 => Link::Ethernet,
            12 | 14 | 101 | 228 | 229 => Link::Raw,
            0 | 108 => Link::Loopback,
            113 => Link::Cooked(14, 16),
            276 => Link::Cooked(0, 20),
            other => Link::Unknown(other),
        }
    }
}

/// Layers taken off at most; more is damage.
const MOST: usize = 16;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ETHERNET: u16 = 0x6558;

/// What a frame is that has no IP packet to be read, in words.
pub type What = Cow<'static, str>;

/// The IP packet in a frame and its version; else what the frame is.
///
/// # Errors
/// What the frame is instead.
pub fn ip(link: Link, bytes: &[u8]) -> Result<(EtherType, &[u8]), What> {
    let (mut kind, mut rest) = begin(link, bytes)?;
    for _ in 0..MOST {
        let next = match kind {
            ETHERNET => ethernet(rest),
            0x8100 | 0x88a8 | 0x9100 => half(rest, 2).zip(rest.get(4..)),
            0x8847 | 0x8848 => labelled(rest),
            0x8864 => half(rest, 6).and_then(ppp).zip(rest.get(8..)),
            IPV4 | IPV6 => match tunnelled(kind, rest) {
                Some(inner) => Some(inner),
                None => return Ok((EtherType(kind), rest)),
            },
            other => return Err(name(other)),
        };
        (kind, rest) = next.ok_or_else(cut)?;
    }
    Err("frames within frames without an end".into())
}

fn cut() -> What {
    "cut short within their heads".into()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// What a frame of a link begins with.
fn begin(link: Link, bytes: &[u8]) -> Result<(u16, &[u8]), What> {
    let version = |bytes: &[u8]| match bytes.first().map(|first| first >> 4) {
        Some(4) => Ok(IPV4),
        Some(6) => Ok(IPV6),
        Some(_) => Err("no IP".into()),
        None => Err(cut()),
    };
    match link {
        Link::Ethernet => Ok((ETHERNET, bytes)),
        Link::Raw => Ok((version(bytes)?, bytes)),
        // The number of the address family, in either byte order; what follows tells as much.
        Link::Loopback => {
            let rest = bytes.get(4..).ok_or_else(cut)?;
            Ok((version(rest)?, rest))
        }
        Link::Cooked(protocol, header) => half(bytes, protocol).zip(bytes.get(header..)).ok_or_else(cut),
        Link::Unknown(number) => Err(link_name(number)),
    }
}

fn ethernet(bytes: &[u8]) -> Option<(u16, &[u8])> {
    half(bytes, 12).zip(bytes.get(14..))
}

fn ppp(protocol: u16) -> Option<u16> {
    match protocol {
        0x0021 => Some(IPV4),
        0x0057 => Some(IPV6),
        // Control of the link, which is no IP; its number is that of no frame.
        _ => Some(protocol),
    }
}

/// Behind the labels of MPLS: IP by its version, or a whole frame behind a control word.
fn labelled(mut bytes: &[u8]) -> Option<(u16, &[u8])> {
    loop {
        let (label, rest) = bytes.split_at_checked(4)?;
        bytes = rest;
        if label[2] & 1 == 1 {
            break;
        }
    }
    match bytes.first()? >> 4 {
        4 => Some((IPV4, bytes)),
        6 => Some((IPV6, bytes)),
        0 => Some((ETHERNET, bytes.get(4..)?)),
        _ => Some((ETHERNET, bytes)),
    }
}

/// What an IP packet carries as a tunnel: GRE (RFC 2784, 2890), VXLAN (RFC 7348), Geneve (RFC 8926), or IP.
fn tunnelled(kind: u16, bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (protocol, payload) = if kind == IPV4 {
        // A fragment is put together first.
        let whole = half(bytes, 6)? & 0x3fff == 0;
        (*bytes.get(9).filter(|_| whole)?, bytes.get(usize::from(bytes[0] & 15) * 4..)?)
    } else {
        (*bytes.get(6)?, bytes.get(40..)?)
    };
    match protocol {
        4 => Some((IPV4, payload)),
        41 => Some((IPV6, payload)),
        47 => {
            let flags = half(payload, 0)?;
            let options = [0x8000, 0x2000, 0x1000].iter().filter(|bit| flags & **bit != 0).count();
            let rest = payload.get(4 + 4 * options..)?;
            (flags & 7 == 0).then_some((half(payload, 2)?, rest))
        }
        17 => {
            let rest = payload.get(8..)?;
            match half(payload, 2)? {
                4789 if rest.get(..4)? == [8, 0, 0, 0] && *rest.get(7)? == 0 => {
                    Some((ETHERNET, rest.get(8..)?))
                }
                6081 if rest.first()? >> 6 == 0 && half(rest, 2)? == ETHERNET => {
                    Some((ETHERNET, rest.get(8 + usize::from(rest[0] & 63) * 4..)?))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// What a frame of another type is.
fn name(kind: u16) -> What {
    match kind {
        0x0806 => "ARP".into(),
        0x8863 => "PPPoE discovery".into(),
        0x88cc => "LLDP".into(),
        0x8906 | 0x8914 => "Fibre Channel over Ethernet".into(),
        0x8915 => "RDMA over Ethernet".into(),
        0x88a2 => "ATA over Ethernet".into(),
        0x88e5 => "encrypted by MACsec".into(),
        0..=1535 => "IEEE 802.3 without a type".into(),
        other => format!("Ethernet of type 0x{other:04x}").into(),
    }
}

/// What a protocol above IP is called.
pub fn protocol(number: u8) -> What {
    match number {
        1 => "ICMP".into(),
        6 => "TCP".into(),
        17 => "UDP".into(),
        50 | 51 => "IPsec".into(),
        58 => "ICMPv6".into(),
        132 => "SCTP".into(),
        other => format!("IP protocol {other}").into(),
    }
}

/// What packets of a link are that is not read.
pub fn link_name(number: u32) -> What {
    let name = match number {
        105 => "IEEE 802.11",
        127 => "IEEE 802.11 with radiotap heads",
        189 | 220 => "USB",
        247 => "InfiniBand",
        252 => "exported upper PDUs",
        _ => return format!("link type {number}").into(),
    };
    format!("link type {number}, {name}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INNER: [u8; 20] = [0x45, 0, 0, 20, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];

    fn found(link: Link, bytes: &[u8]) -> Result<(u16, Vec<u8>), String> {
        ip(link, bytes).map(|(kind, rest)| (kind.0, rest.to_vec())).map_err(|what| what.to_string())
    }

    fn frame(kind: u16, rest: &[&[u8]]) -> Vec<u8> {
        [&[2; 12][..], &kind.to_be_bytes(), &rest.concat()].concat()
    }

    fn outer(protocol: u8, payload: &[&[u8]]) -> Vec<u8> {
        let mut head = INNER;
        head[9] = protocol;
        [&head[..], &payload.concat()].concat()
    }

    #[test]
    fn what_lies_around_ip_is_taken_off() {
        let plain = frame(IPV4, &[&INNER]);
        let vxlan = outer(17, &[&[0, 9, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0], &plain]);
        let geneve =
            outer(17, &[&[0, 9, 0x17, 0xc1, 0, 0, 0, 0, 1, 0, 0x65, 0x58, 0, 0, 7, 0, 9, 9, 9, 9], &plain]);
        for frame in [
            plain.clone(),
            frame(0x88a8, &[&[0, 5, 0x81, 0, 0, 7, 8, 0], &INNER]),
            frame(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64], &INNER]),
            frame(0x8847, &[&[0, 2, 1, 64, 0, 0, 0, 0], &plain]),
            frame(0x8864, &[&[0x11, 0, 0, 1, 0, 22, 0, 0x21], &INNER]),
            frame(IPV4, &[&outer(4, &[&INNER])]),
            frame(IPV4, &[&outer(47, &[&[0x20, 0, 8, 0, 0, 0, 0, 1], &INNER])]),
            frame(IPV4, &[&outer(47, &[&[0, 0, 0x65, 0x58], &plain])]),
            frame(IPV4, &[&vxlan]),
            frame(IPV4, &[&geneve]),
        ] {
            assert_eq!(found(Link::Ethernet, &frame), Ok((IPV4, INNER.to_vec())), "{frame:x?}");
            // Cut anywhere it is no panic, and no more than what is there.
            (0..frame.len()).for_each(|end| drop(ip(Link::Ethernet, &frame[..end])));
        }
        assert_eq!(found(Link::Loopback, &[&[2, 0, 0, 0][..], &INNER].concat()), Ok((IPV4, INNER.to_vec())));
    }

    #[test]
    fn what_is_no_ip_is_named() {
        assert_eq!(found(Link::Ethernet, &frame(0x0806, &[])).unwrap_err(), "ARP");
        assert_eq!(found(Link::Ethernet, &frame(0x8915, &[])).unwrap_err(), "RDMA over Ethernet");
        assert_eq!(
            found(Link::Ethernet, &frame(0x1234 | 0x8000, &[])).unwrap_err(),
            "Ethernet of type 0x9234"
        );
        assert_eq!(found(Link::Ethernet, &[0; 9]).unwrap_err(), "cut short within their heads");
        assert_eq!(
            found(Link::Unknown(127), &[]).unwrap_err(),
            "link type 127, IEEE 802.11 with radiotap heads"
        );
        let labels = frame(0x8847, &[&[0; 400]]);
        assert_eq!(found(Link::Ethernet, &labels).unwrap_err(), "cut short within their heads");
    }
}
