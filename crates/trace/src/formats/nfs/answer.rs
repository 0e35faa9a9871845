//! Replies of NFS version 2 and 3 (RFC 1094, RFC 1813): what became of a call, and the handles they tell.

use super::names::Told;
use super::xdr::Xdr;
use crate::Op;

/// Bytes of attributes: of version 2, of version 3, and of those before a change.
const FATTR2: usize = 68;
const FATTR3: usize = 84;
const BEFORE: usize = 24;

/// Longest name of an entry.
const NAME: usize = 1 << 12;

/// A status as a negative errno of Linux (RFC 1813, section 2.6); 0 stays 0.
pub fn errno(status: u32) -> i64 {
    let errno = match status {
        // The first ones are those of Unix.
        0..=2 | 5 | 6 | 13 | 17..=22 | 27 | 28 | 30 | 31 => status,
        63 => 36,                       // NAMETOOLONG
        66 => 39,                       // NOTEMPTY
        69 => 122,                      // DQUOT
        70 | 10_001 => 116,             // STALE, BADHANDLE
        71 => 66,                       // REMOTE
        10_002 | 10_003 | 10_005 => 22, // NOT_SYNC, BAD_COOKIE, TOOSMALL
        10_004 => 95,                   // NOTSUPP
        10_007 => 22,                   // BADTYPE
        10_008 => 11,                   // JUKEBOX
        _ => 5,
    };
    -i64::from(errno)
}

/// What a reply says to a call; as far as it is there, for the capture may have cut it.
pub fn told<'a>(op: Op, version: u8, status: Option<u32>, results: &'a [u8]) -> Told<'a> {
    let mut told = Told { result: status.map_or(-5, errno), ..Told::default() };
    if told.result == 0 {
        let mut xdr = Xdr(results);
        let _ = if version == 3 { third(op, &mut told, &mut xdr) } else { second(op, &mut told, &mut xdr) };
    }
    told
}

fn third<'a>(op: Op, told: &mut Told<'a>, xdr: &mut Xdr<'a>) -> Option<()> {
    match op {
        Op::Lookup => told.handle = Some(xdr.handle(3)?),
        Op::Create | Op::Mkdir | Op::Symlink | Op::Mknod => {
            told.handle = if xdr.word()? != 0 { Some(xdr.handle(3)?) } else { None };
        }
        Op::Read => {
            xdr.perhaps(FATTR3)?;
            told.count = Some(xdr.word()?);
        }
        Op::Write => {
            xdr.perhaps(BEFORE)?;
            xdr.perhaps(FATTR3)?;
            told.count = Some(xdr.word()?);
        }
        Op::Readdirplus => {
            xdr.perhaps(FATTR3)?;
            xdr.fixed(8)?;
            while xdr.word()? != 0 {
                xdr.fixed(8)?;
                let name = xdr.bytes(NAME)?;
                xdr.fixed(8)?;
                xdr.perhaps(FATTR3)?;
                if xdr.word()? != 0 {
                    told.entries.push((name, xdr.handle(3)?));
                }
            }
        }
        _ => {}
    }
    Some(())
}

fn second<'a>(op: Op, told: &mut Told<'a>, xdr: &mut Xdr<'a>) -> Option<()> {
    match op {
        Op::Lookup | Op::Create | Op::Mkdir => told.handle = Some(xdr.handle(2)?),
        Op::Read => {
            xdr.fixed(FATTR2)?;
            told.count = Some(xdr.word()?);
        }
        _ => {}
    }
    Some(())
}

/// The handle that a mount was given, by a version of that protocol.
pub fn mounted(version: u8, status: Option<u32>, results: &[u8]) -> Option<&[u8]> {
    if status == Some(0) { Xdr(results).handle(version) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_be_bytes()).collect()
    }

    #[test]
    fn counts_and_handles() {
        assert_eq!(told(Op::Write, 3, Some(0), &words(&[0, 0, 2048])).count, Some(2048));
        assert_eq!(told(Op::Write, 3, Some(0), &words(&[1, 0])).count, None);
        let made = [words(&[1, 5]), b"abcde\0\0\0".to_vec()].concat();
        assert_eq!(told(Op::Create, 3, Some(0), &made).handle, Some(&b"abcde"[..]));
        assert_eq!(told(Op::Create, 3, Some(0), &words(&[0])).handle, None);
        assert_eq!(told(Op::Lookup, 3, Some(0), &words(&[65])).handle, None);
        assert_eq!(told(Op::Lookup, 2, Some(0), &[7; 100]).handle, Some(&[7; 32][..]));
        assert_eq!(mounted(3, Some(0), &made[4..]), Some(&b"abcde"[..]));
    }

    #[test]
    fn entries_of_a_directory_as_far_as_they_are_there() {
        let entry = |name: &[u8; 4], handle: u32| {
            [&words(&[1, 0, 9, 4])[..], name, &words(&[0, 1, 0, 1, 4, handle])].concat()
        };
        let all = [words(&[0, 0, 0]), entry(b"name", 0x6161_6161), entry(b"more", 0x6262_6262)].concat();
        let found = told(Op::Readdirplus, 3, Some(0), &all);
        assert_eq!(found.entries, [(&b"name"[..], &b"aaaa"[..]), (b"more", b"bbbb")]);
        for end in 0..all.len() {
            assert!(told(Op::Readdirplus, 3, Some(0), &all[..end]).entries.len() < 2);
        }
    }

    #[test]
    fn statuses_are_errnos() {
        let known = [0, 2, 17, 66, 63, 69, 70, 10_004, 99, 4242].map(errno);
        assert_eq!(known, [0, -2, -17, -39, -36, -122, -116, -95, -5, -5]);
        assert_eq!(told(Op::Read, 3, None, &[]).result, -5);
    }
}
