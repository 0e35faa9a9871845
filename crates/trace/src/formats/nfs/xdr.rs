//! Numbers and bytes of an XDR stream (RFC 4506).

/// Most bytes of a file handle of NFSv3.
pub const HANDLE: usize = 64;

/// What is left of a stream.
pub struct Xdr<'a>(pub &'a [u8]);

impl<'a> Xdr<'a> {
    /// A number of 32 bits.
    pub fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*word))
    }

    /// A number of 64 bits.
    pub fn long(&mut self) -> Option<u64> {
        Some(u64::from(self.word()?) << 32 | u64::from(self.word()?))
    }

    /// So many bytes and what fills them up to a multiple of four.
    pub fn fixed(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let found = self.0.get(..bytes)?;
        self.0 = self.0.get(bytes.next_multiple_of(4)..).unwrap_or_default();
        Some(found)
    }

    /// Bytes behind their number, which is at most `most`.
    pub fn bytes(&mut self, most: usize) -> Option<&'a [u8]> {
        let length = self.word()? as usize;
        if length <= most { self.fixed(length) } else { None }
    }

    /// A file handle of a version of NFS.
    pub fn handle(&mut self, version: u8) -> Option<&'a [u8]> {
        if version == 3 { self.bytes(HANDLE) } else { self.fixed(32) }
    }

    /// Something that may be there or not, of so many bytes; whether it is.
    pub fn perhaps(&mut self, bytes: usize) -> Option<bool> {
        let there = self.word()? != 0;
        if there {
            self.fixed(bytes)?;
        }
        Some(there)
    }
}
