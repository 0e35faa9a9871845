//! Writing hash files.

use super::{Chunk, FileHead, Head, MAGIC, MOST_HASH, MOST_PATH, Method, NEWEST, PARAMETERS};
use std::io::{self, Seek, SeekFrom, Write};

/// Writes a hash file, file by file; what its head counts is put there at the end.
pub struct Writer<W> {
    into: W,
    head: Head,
    buffer: Vec<u8>,
}

/// A head as its version has it.
pub(super) fn head_bytes(head: &Head) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&head.version.to_le_bytes());
    bytes.extend_from_slice(&head.files.to_le_bytes());
    text(&mut bytes, &head.root);
    bytes.extend_from_slice(&head.chunks.to_le_bytes());
    let mut told = [0; PARAMETERS];
    let kind: i32 = match head.method {
        Method::Fixed { size } => {
            told[..4].copy_from_slice(&size.to_le_bytes());
            1
        }
        Method::Variable { algorithm, rule, min, max } => {
            told[..4].copy_from_slice(&algorithm.to_le_bytes());
            told[4..36].copy_from_slice(&rule);
            told[36..40].copy_from_slice(&min.to_le_bytes());
            told[40..].copy_from_slice(&max.to_le_bytes());
            2
        }
    };
    bytes.extend_from_slice(&kind.to_le_bytes());
    bytes.extend_from_slice(&told);
    bytes.extend_from_slice(&head.hashing.to_le_bytes());
    bytes.extend_from_slice(&head.bits.to_le_bytes());
    if head.version >= 3 {
        text(&mut bytes, &head.system);
        bytes.extend_from_slice(&head.start.to_le_bytes());
        bytes.extend_from_slice(&head.end.to_le_bytes());
    }
    if head.version >= 5 {
        bytes.extend_from_slice(&head.bytes.to_le_bytes());
    }
    bytes
}

/// A text in 4096 bytes.
fn text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend_from_slice(text);
    bytes.resize(bytes.len() + MOST_PATH - text.len(), 0);
}

impl<W: Write + Seek> Writer<W> {
    /// Begins with a head, whose numbers of files, chunks and bytes are counted anew.
    ///
    /// # Errors
    /// When there is no such version, hashes are longer than 256 bits, or a text than 4095 bytes; when it cannot be
    /// written.
    pub fn new(mut into: W, head: Head) -> io::Result<Writer<W>> {
        let odd = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        if !(1..=NEWEST).contains(&head.version) {
            return Err(odd(format!("FSL hash files of version {}: 1 to {NEWEST} are known", head.version)));
        }
        if !(8..=8 * MOST_HASH as u32).contains(&head.bits) || !head.bits.is_multiple_of(8) {
            return Err(odd(format!("hashes of {} bits: use 8 to 256, in whole bytes", head.bits)));
        }
        let longest = head.root.len().max(head.system.len());
        if longest >= MOST_PATH {
            return Err(odd(format!("a root or system of {longest} bytes: use {} at most", MOST_PATH - 1)));
        }
        let head = Head { files: 0, chunks: 0, bytes: 0, ..head };
        into.write_all(&head_bytes(&head))?;
        Ok(Writer { into, head, buffer: Vec::new() })
    }

    /// Writes a file and its chunks; how many there are is counted.
    ///
    /// # Errors
    /// When a path or chunk is longer than the version can tell, and when it cannot be written.
    pub fn file(&mut self, file: &FileHead, chunks: &[Chunk]) -> io::Result<()> {
        let version = self.head.version;
        let most = if version == 1 { MOST_PATH - 1 } else { MOST_PATH };
        let longest = file.path.len().max(file.target.len());
        if longest > most {
            let text =
                format!("a path of {longest} bytes: hash files of version {version} have {most} at most");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let count = chunks.len() as u64;
        let target = if file.is(version, libc::S_IFLNK) { &file.target[..] } else { &[] };
        let into = &mut self.buffer;
        into.clear();
        if version == 1 {
            text(into, &file.path);
        }
        into.extend_from_slice(&file.size.to_le_bytes());
        if version >= 5 {
            into.extend_from_slice(&file.blocks.to_le_bytes());
        }
        if version >= 4 {
            into.extend_from_slice(&file.uid.to_le_bytes());
            into.extend_from_slice(&file.gid.to_le_bytes());
            let times = [file.mode, file.atime, file.mtime, file.ctime];
            for number in times.into_iter().chain([file.links, file.device, file.inode]) {
                into.extend_from_slice(&number.to_le_bytes());
            }
        }
        into.extend_from_slice(&count.to_le_bytes());
        if version >= 2 {
            into.extend_from_slice(&(file.path.len() as u32).to_le_bytes());
            if version >= 4 {
                into.extend_from_slice(&(target.len() as u32).to_le_bytes());
            }
            into.extend_from_slice(&file.path);
            into.extend_from_slice(target);
        }
        for chunk in chunks {
            self.chunk(chunk)?;
        }
        self.into.write_all(&self.buffer)?;
        self.head.files += 1;
        self.head.chunks += count;
        Ok(())
    }

    fn chunk(&mut self, chunk: &Chunk) -> io::Result<()> {
        if let Method::Variable { .. } = self.head.method {
            match self.head.version {
                NEWEST => {
                    let size = u32::try_from(chunk.size).map_err(|_| {
                        let text = format!("a chunk of {} bytes: version 7 has 4 GiB at most", chunk.size);
                        io::Error::new(io::ErrorKind::InvalidInput, text)
                    })?;
                    self.buffer.extend_from_slice(&size.to_le_bytes());
                }
                3.. => self.buffer.extend_from_slice(&chunk.size.to_le_bytes()),
                _ => {}
            }
        }
        self.buffer.extend_from_slice(&chunk.hash[..self.head.bits as usize / 8]);
        if self.head.version >= 6 {
            self.buffer.push(chunk.ratio);
        }
        self.head.bytes = self.head.bytes.saturating_add(chunk.size);
        Ok(())
    }

    /// Puts what was counted into the head.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.into.seek(SeekFrom::Start(0))?;
        self.into.write_all(&head_bytes(&self.head))?;
        self.into.flush()?;
        Ok(self.into)
    }
}
