//! Reading hash files.

use super::{Chunk, FileHead, Head, MAGIC, MOST_HASH, MOST_PATH, Method, NEWEST, PARAMETERS};
use crate::file::Damage;
use std::io::Read;

type Result<T> = std::result::Result<T, Damage>;

/// Reads a hash file from its beginning to its end: [`Reader::file`], and after each file its chunks.
pub struct Reader<R> {
    from: R,
    at: u64,
    head: Head,
    /// Files that were read, and chunks and bytes of chunks in them.
    files: u64,
    chunks: u64,
    bytes: u64,
    /// The file that is read, and how many of its chunks were.
    file: FileHead,
    of_file: u64,
}

/// A whole hash file in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashFile {
    /// Its head.
    pub head: Head,
    /// Files with their chunks.
    pub files: Vec<(FileHead, Vec<Chunk>)>,
}

impl<R: Read> Reader<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// When it is not that of a hash file of a known version, or cannot be read.
    pub fn new(from: R) -> Result<Reader<R>> {
        let nothing = Head {
            version: 0,
            files: 0,
            root: Vec::new(),
            chunks: 0,
            method: Method::Fixed { size: 0 },
            hashing: 0,
            bits: 0,
            system: Vec::new(),
            start: 0,
            end: 0,
            bytes: 0,
        };
        let (file, at) = (FileHead::default(), 0);
        let mut reader = Reader { from, at, head: nothing, files: 0, chunks: 0, bytes: 0, file, of_file: 0 };
        reader.head = reader.head()?;
        Ok(reader)
    }

    /// What the head says.
    pub fn told(&self) -> &Head {
        &self.head
    }

    /// Where the reader is, bytes.
    pub fn position(&self) -> u64 {
        self.at
    }

    fn head(&mut self) -> Result<Head> {
        if self.array::<4>("the head")? != MAGIC {
            return Err(Damage::Wrong("is no FSL hash file: it does not begin with 0xdeaddead".into()));
        }
        let version = self.u32("the head")?;
        if !(1..=NEWEST).contains(&version) {
            return Err(Damage::Wrong(format!(
                "is an FSL hash file of version {version}; 1 to {NEWEST} are known"
            )));
        }
        let files = self.u64("the head")?;
        let root = self.text("the head")?;
        let chunks = self.u64("the head")?;
        let method = self.method()?;
        let hashing = self.u32("the head")? as i32;
        let bits = self.u32("the head")?;
        if !(8..=8 * MOST_HASH as u32).contains(&bits) || !bits.is_multiple_of(8) {
            return Err(self.wrong(4, &format!("hashes of {bits} bits; 8 to 256 in whole bytes can be read")));
        }
        let (mut system, mut start, mut end, mut bytes) = (Vec::new(), 0, 0, 0);
        if version >= 3 {
            system = self.text("the head")?;
            (start, end) = (self.u64("the head")?, self.u64("the head")?);
        }
        if version >= 5 {
            bytes = self.u64("the head")?;
        }
        Ok(Head { version, files, root, chunks, method, hashing, bits, system, start, end, bytes })
    }

    fn method(&mut self) -> Result<Method> {
        let kind = self.u32("the head")?;
        let told = self.array::<PARAMETERS>("the head")?;
        let number = |at: usize| told[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        match kind {
            1 if number(0) > 0 => Ok(Method::Fixed { size: number(0) }),
            1 => Err(self.wrong(PARAMETERS as u64, "chunks of 0 bytes")),
            2 => {
                let mut rule = [0; 32];
                rule.copy_from_slice(&told[4..36]);
                let (algorithm, min, max) = (number(0) as i32, number(36), number(40));
                Ok(Method::Variable { algorithm, rule, min, max })
            }
            _ => {
                Err(self.wrong(4 + PARAMETERS as u64, &format!("chunking method {kind}; 1 and 2 are known")))
            }
        }
    }

    /// The next file; nothing behind the last. Chunks that were not read are passed over.
    ///
    /// # Errors
    /// When the file ends before its head says, or after, and when a path is too long or chunks are more than all.
    pub fn file(&mut self) -> Result<Option<&FileHead>> {
        while self.chunk()?.is_some() {}
        if self.files == self.head.files {
            return self.end().map(|()| None);
        }
        let version = self.head.version;
        let begun = self.at;
        let what = format!("file {} of {}", self.files + 1, self.head.files);
        let mut file = FileHead::default();
        if version == 1 {
            file.path = self.text(&what)?;
        }
        file.size = self.u64(&what)?;
        if version >= 5 {
            file.blocks = self.u64(&what)?;
        }
        if version >= 4 {
            (file.uid, file.gid) = (self.u32(&what)?, self.u32(&what)?);
            let fields = [&mut file.mode, &mut file.atime, &mut file.mtime, &mut file.ctime];
            for field in fields.into_iter().chain([&mut file.links, &mut file.device, &mut file.inode]) {
                *field = self.u64(&what)?;
            }
        }
        file.chunks = self.u64(&what)?;
        if version >= 2 {
            let length = self.length(&what, "a path")?;
            let target = if version >= 4 { self.length(&what, "a target")? } else { 0 };
            file.path = self.bytes(length, &what)?;
            if file.is(version, libc::S_IFLNK) {
                file.target = self.bytes(target, &what)?;
            }
        }
        if file.chunks > self.head.chunks - self.chunks {
            let text = format!("{} chunks, where the head says {} in all", file.chunks, self.head.chunks);
            return Err(self.wrong(self.at - begun, &text));
        }
        self.files += 1;
        self.of_file = 0;
        self.file = file;
        Ok(Some(&self.file))
    }

    /// The next chunk of the file; nothing behind its last.
    ///
    /// # Errors
    /// When the file ends before.
    pub fn chunk(&mut self) -> Result<Option<Chunk>> {
        if self.of_file == self.file.chunks {
            return Ok(None);
        }
        let (version, begun) = (self.head.version, self.at);
        let what = "a chunk";
        let size = match self.head.method {
            Method::Fixed { size } => {
                let (size, last) = (u64::from(size), self.of_file + 1 == self.file.chunks);
                // A file that grew while it was scanned has more chunks than its size, and its last is a whole one.
                let left =
                    self.of_file.checked_mul(size).and_then(|before| self.file.size.checked_sub(before));
                if last { left.filter(|left| *left > 0).map_or(size, |left| left.min(size)) } else { size }
            }
            Method::Variable { .. } if version >= NEWEST => u64::from(self.u32(what)?),
            Method::Variable { .. } if version >= 3 => self.u64(what)?,
            Method::Variable { .. } => 0,
        };
        let told = version >= 3 || matches!(self.head.method, Method::Fixed { .. });
        self.bytes = self.bytes.saturating_add(size);
        if told && size == 0 {
            return Err(self.wrong(self.at - begun, "a chunk of 0 bytes"));
        }
        let mut hash = [0; MOST_HASH];
        let length = self.head.bits as usize / 8;
        self.exact(&mut hash[..length], what)?;
        let ratio = if version >= 6 { self.array::<1>(what)?[0] } else { 0 };
        self.of_file += 1;
        self.chunks += 1;
        Ok(Some(Chunk { size, hash, ratio }))
    }

    /// Everything was read: it has to be all that the head says.
    fn end(&mut self) -> Result<()> {
        if self.from.read(&mut [0]).map_err(Damage::Io)? > 0 {
            return Err(self.wrong(0, &format!("more bytes behind the last of {} files", self.head.files)));
        }
        if self.chunks != self.head.chunks {
            let text =
                format!("the end after {} chunks, where the head says {}", self.chunks, self.head.chunks);
            return Err(self.wrong(0, &text));
        }
        if self.head.version >= 5 && self.bytes != self.head.bytes {
            let text =
                format!("the end after {} bytes of chunks, the head says {}", self.bytes, self.head.bytes);
            return Err(self.wrong(0, &text));
        }
        Ok(())
    }

    fn length(&mut self, what: &str, of: &str) -> Result<usize> {
        let length = self.u32(what)? as usize;
        if length <= MOST_PATH {
            return Ok(length);
        }
        Err(self.wrong(4, &format!("{of} of {length} bytes in {what}; {MOST_PATH} at most can be")))
    }

    /// A text of a fixed length that ends with a zero byte.
    fn text(&mut self, what: &str) -> Result<Vec<u8>> {
        let mut text = self.bytes(MOST_PATH, what)?;
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        text.truncate(end);
        Ok(text)
    }

    fn bytes(&mut self, length: usize, what: &str) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.exact(&mut bytes, what)?;
        Ok(bytes)
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.exact(&mut bytes, what)?;
        Ok(bytes)
    }

    fn exact(&mut self, into: &mut [u8], what: &str) -> Result<()> {
        let (at, length) = (self.at, into.len());
        self.from.read_exact(into).map_err(|e| {
            let files = self.files;
            Damage::short(e, || {
                Damage::Wrong(format!(
                    "ends within {what}, at byte {at} or behind it, after {files} files; it was cut short: copy it \
                     again"
                ))
            })
        })?;
        self.at += length as u64;
        Ok(())
    }

    /// Something wrong that begins some bytes before.
    fn wrong(&self, back: u64, what: &str) -> Damage {
        Damage::Wrong(format!("has at byte {} {what}; it was damaged: copy it again", self.at - back))
    }
}

impl HashFile {
    /// Reads all of a hash file.
    ///
    /// # Errors
    /// As of [`Reader`].
    pub fn read(from: impl Read) -> Result<HashFile> {
        let mut reader = Reader::new(from)?;
        let mut files = Vec::new();
        while let Some(file) = reader.file()?.cloned() {
            let mut chunks = Vec::new();
            while let Some(chunk) = reader.chunk()? {
                chunks.push(chunk);
            }
            files.push((file, chunks));
        }
        Ok(HashFile { head: reader.head, files })
    }
}
