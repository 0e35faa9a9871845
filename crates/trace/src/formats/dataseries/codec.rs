//! The codecs of an extent's parts; each payload is the bare stream of its library.

use crate::{Error, ErrorKind, Result};
use std::io::Read;

/// Most bytes that a part may unpack to.
pub const MOST: usize = 1 << 29;

fn bad(codec: &str, why: impl std::fmt::Display) -> Error {
    Error::malformed(format!("its {codec} data is damaged: {why}"))
}

/// Unpacks a part, which must be of `size` bytes then.
///
/// # Errors
/// When the data is damaged, of another size, or of an unknown codec.
pub fn unpack(codec: u8, packed: &[u8], size: usize) -> Result<Vec<u8>> {
    if size > MOST {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("an extent of {size} bytes is larger than {MOST}"),
        ));
    }
    let (name, found) = match codec {
        0 => ("plain", packed.to_vec()),
        1 => ("lzo", lzo(packed, size)?),
        2 => ("zlib", read(flate2::read::ZlibDecoder::new(packed), "zlib", size)?),
        3 => ("bzip2", read(bzip2::read::BzDecoder::new(packed), "bzip2", size)?),
        4 => ("lzf", lzf(packed, size).ok_or_else(|| bad("lzf", "a reference lies outside"))?),
        5 => {
            let length = snap::raw::decompress_len(packed).map_err(|e| bad("snappy", e))?;
            if length != size {
                return Err(bad("snappy", format!("{length} bytes where {size} were announced")));
            }
            ("snappy", snap::raw::Decoder::new().decompress_vec(packed).map_err(|e| bad("snappy", e))?)
        }
        6 | 7 => ("lz4", lz4_flex::block::decompress(packed, size).map_err(|e| bad("lz4", e))?),
        other => return Err(Error::new(ErrorKind::Unsupported, format!("unknown codec {other}"))),
    };
    if found.len() != size {
        return Err(bad(name, format!("{} bytes where {size} were announced", found.len())));
    }
    Ok(found)
}

/// LZO1X of at most so many bytes.
///
/// # Errors
/// When the data is damaged, or more than `most` bytes.
pub fn lzo(packed: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; most];
    let n = ::lzo::decompress_into(packed, &mut out).map_err(|e| bad("lzo", e))?;
    out.truncate(n);
    Ok(out)
}

/// What a decoder gives, of at most so many bytes and one.
///
/// # Errors
/// When the data is damaged, or more than `most` bytes.
pub fn read(from: impl Read, name: &str, size: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    // One more, so that too many are noticed.
    from.take(size as u64 + 1).read_to_end(&mut out).map_err(|e| bad(name, e))?;
    Ok(out)
}

/// LibLZF: below 32 a run of literals, else a reference of a length and distance.
pub fn lzf(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(size.min(packed.len().saturating_mul(300)));
    let mut bytes = packed.iter();
    while let Some(&control) = bytes.next() {
        let control = usize::from(control);
        if control < 32 {
            let literals = bytes.as_slice().get(..=control)?;
            out.extend_from_slice(literals);
            bytes = bytes.as_slice()[control + 1..].iter();
        } else {
            let mut length = control >> 5;
            if length == 7 {
                length += usize::from(*bytes.next()?);
            }
            let distance = ((control & 31) << 8) + usize::from(*bytes.next()?) + 1;
            let from = out.len().checked_sub(distance)?;
            for i in from..from + length + 2 {
                out.push(out[i]);
            }
        }
        if out.len() > size {
            return None;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lzf_runs_and_references() {
        // Three literals, then nine bytes from three back, over what it just wrote.
        assert_eq!(lzf(&[2, b'a', b'b', b'c', 7 << 5, 0, 2], 12).unwrap(), b"abcabcabcabc");
        assert_eq!(lzf(&[0, b'a', 1 << 5, 4], 10), None);
        assert_eq!(lzf(&[5, b'a'], 10), None);
    }

    #[test]
    fn what_is_of_another_size_is_damaged() {
        assert!(unpack(0, b"abc", 4).is_err());
        assert!(unpack(9, b"abc", 3).is_err());
        for codec in 1..=7 {
            assert!(unpack(codec, &[0xff; 40], 100).is_err(), "{codec}");
        }
    }
}
