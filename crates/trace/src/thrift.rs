//! Thrift's compact protocol as far as is needed to see that bytes claim no more elements than they can hold. The Parquet
//! library skips fields that it does not know, and booleans of a list take no bytes when it does: one number in a file of
//! a hundred bytes keeps it busy for seconds, and there may be many.

/// Depth of values in values at which the library gives up, and more.
const DEEPEST: u8 = 64;

/// Why a value was not walked to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It goes on behind the bytes that are there.
    Short,
    /// It is no such value: whoever reads it will find so, too.
    Wrong,
    /// It claims more elements without bytes than there are bytes.
    Absurd,
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Elements without bytes that may still come.
    left: u64,
}

/// Walks a struct that bytes begin with, as the library skips one; the bytes it takes.
///
/// # Errors
/// Where the struct ends too early, or holds what no struct may.
pub fn walk(bytes: &[u8]) -> Result<usize, Stop> {
    let mut walk = Walk { bytes, at: 0, left: bytes.len() as u64 };
    walk.fields(DEEPEST)?;
    Ok(walk.at)
}

/// Bytes of a page that a header begins with, unpacked and as they are; nothing where it is no such header.
pub fn page(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut walk = Walk { bytes, at: 0, left: 0 };
    // All writers put the fields in order: kind, bytes unpacked, bytes packed. The numbers are in zigzag.
    let mut field = || (walk.byte() == Ok(0x15)).then(|| walk.number().ok()).flatten().map(|n| n >> 1);
    field()?;
    Some((field()?, field()?))
}

impl Walk<'_> {
    fn byte(&mut self) -> Result<u8, Stop> {
        let byte = *self.bytes.get(self.at).ok_or(Stop::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, Stop> {
        let (mut number, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Stop> {
        let rest = (self.bytes.len() - self.at) as u64;
        if bytes > rest {
            return Err(Stop::Short);
        }
        self.at += bytes as usize;
        Ok(())
    }

    fn fields(&mut self, depth: u8) -> Result<(), Stop> {
        loop {
            let head = self.byte()?;
            if head & 0xf == 0 {
                return Ok(());
            }
            if head >> 4 == 0 {
                // The number of the field, in full.
                self.number()?;
            }
            self.value(head & 0xf, depth)?;
        }
    }

    fn value(&mut self, kind: u8, depth: u8) -> Result<(), Stop> {
        let depth = depth.checked_sub(1).ok_or(Stop::Wrong)?;
        match kind {
            1 | 2 => Ok(()),
            3 => self.skip(1),
            4..=6 => self.number().map(|_| ()),
            7 => self.skip(8),
            8 => {
                let length = self.number()?;
                self.skip(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let size = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
                self.elements(size, &[head & 0xf], depth)
            }
            11 => {
                let size = self.number()?;
                let kinds = if size > 0 { self.byte()? } else { 0 };
                self.elements(size, &[kinds >> 4, kinds & 0xf], depth)
            }
            12 => self.fields(depth),
            13 => self.skip(16),
            _ => Err(Stop::Wrong),
        }
    }

    fn elements(&mut self, size: u64, kinds: &[u8], depth: u8) -> Result<(), Stop> {
        if kinds.iter().all(|kind| matches!(kind, 1 | 2)) {
            self.left = self.left.checked_sub(size).ok_or(Stop::Absurd)?;
            return Ok(());
        }
        for _ in 0..size {
            kinds.iter().try_for_each(|kind| self.value(*kind, depth))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_walked_to_their_ends() {
        // i32, then a list of three i32, a text, a struct with a boolean, a map from bytes to texts.
        let whole = [
            0x15, 0x80, 0x01, 0x19, 0x35, 2, 4, 6, 0x18, 2, b'a', b'b', 0x1c, 0x11, 0, 0x1b, 1, 0x38, 7, 1,
            b'x', 0,
        ];
        assert_eq!(walk(&whole), Ok(whole.len()));
        assert_eq!(walk(&[&whole[..], b"more"].concat()), Ok(whole.len()));
        (0..whole.len()).for_each(|end| assert_eq!(walk(&whole[..end]), Err(Stop::Short), "{end}"));
    }

    #[test]
    fn sizes_of_a_page_are_read() {
        assert_eq!(page(&[0x15, 0, 0x15, 0x80, 0x01, 0x15, 6, 0x2c]), Some((64, 3)));
        assert_eq!(page(&[0x15, 4, 0x19, 0x80, 0x01, 0x15, 6]), None);
        assert_eq!(page(&[0x15, 4, 0x15, 0x80]), None);
    }

    #[test]
    fn what_claims_too_much_is_absurd() {
        // Lists of 2^31 - 1 booleans, by themselves, in a list, in a map.
        let many = [0xff, 0xff, 0xff, 0xff, 0x07];
        let list = [&[0x19, 0xf1][..], &many, &[0]].concat();
        assert_eq!(walk(&list), Err(Stop::Absurd));
        assert_eq!(walk(&[&[0x19, 0x29, 0x11, 0xf2][..], &many].concat()), Err(Stop::Absurd));
        assert_eq!(walk(&[&[0x1b][..], &many, &[0x12]].concat()), Err(Stop::Absurd));
        // As many as there are bytes are none too many; lists in lists end somewhere, and so do elements with bytes.
        assert_eq!(walk(&[0x19, 0x31, 0]), Ok(3));
        assert_eq!(walk(&[0x19; 300]), Err(Stop::Wrong));
        assert_eq!(walk(&[&[0x19, 0xf3][..], &many].concat()), Err(Stop::Short));
    }
}
