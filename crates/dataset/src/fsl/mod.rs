//! Hash files of the File systems and Storage Lab (FSL), versions 1 to 7: the chunks of a file system by their hashes,
//! as fs-hasher writes them and the traces "Homes" and "MacOS" (SNIA IOTTA 5228) have them.
//!
//! Numbers are little-endian and packed. A head is followed by files, each a head of its own and its chunks:
//!
//! - The head is magic u32 `0xdeaddead`, version u32, files u64, root \[4096\], chunks u64, [`Method`] i32 and 44
//!   bytes, hashing i32, bits of a hash u32; from version 3 on system \[4096\], start and end u64; from 5 on bytes u64.
//! - A file is in version 1 path \[4096\], size u64, chunks u64; in 2 and 3 size u64, chunks u64, length of the path
//!   u32, path; from 4 on size u64, from 5 on blocks u64, uid and gid u32, mode, atime, mtime, ctime, links, device,
//!   inode, chunks, all u64, lengths of path and target u32, path, and of a symbolic link its target.
//! - A chunk of variable size has its size first: u64 from version 3 on, u32 in 7. Then its hash, and from version 6 on
//!   its ratio u8, in tenths.
//!
//! Where chunks have one size the last is what is left of the file, at most as large as the others.

mod read;
mod write;

pub use read::{HashFile, Reader};
pub use write::Writer;

/// What a hash file begins with.
pub const MAGIC: [u8; 4] = 0xdead_dead_u32.to_le_bytes();
/// The newest version.
pub const NEWEST: u32 = 7;
/// Longest path, bytes.
pub const MOST_PATH: usize = 4096;
/// Longest hash, bytes.
pub const MOST_HASH: usize = 32;
/// Bytes of the parameters of a method, whichever it is.
const PARAMETERS: usize = 44;

/// How content was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Chunks of one size.
    Fixed {
        /// Bytes.
        size: u32,
    },
    /// Cut where the content says.
    Variable {
        /// 1: at random, 2: where bits match a pattern, 3: where a Rabin fingerprint does.
        algorithm: i32,
        /// What the algorithm needs: a probability, or bits, patterns and polynomials.
        rule: [u8; 32],
        /// Smallest chunk, bytes.
        min: u32,
        /// Largest, bytes.
        max: u32,
    },
}

impl Method {
    /// Bits that are compared where content is cut, so that a chunk has 2^bits bytes on average; 0 where it is not
    /// known.
    pub fn bits(&self) -> u32 {
        let Method::Variable { algorithm, rule, .. } = self else { return 0 };
        let number = |at: usize| rule[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        match algorithm {
            2 => number(0),
            3 => number(20),
            _ => 0,
        }
    }
}

/// The head of a hash file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// 1 to 7.
    pub version: u32,
    /// How many files follow.
    pub files: u64,
    /// Where the scan began.
    pub root: Vec<u8>,
    /// Chunks of all files.
    pub chunks: u64,
    /// How they were cut.
    pub method: Method,
    /// 1: MD5, 2: SHA-256, 3: MD5 of 48 bits, 4: Murmur, 5: MD5 of 64 bits, 6: SHA-1.
    pub hashing: i32,
    /// Bits of a hash, in whole bytes.
    pub bits: u32,
    /// The system that was scanned; from version 3 on.
    pub system: Vec<u8>,
    /// When the scan began, seconds since 1970; from version 3 on.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Bytes of all chunks; from version 5 on.
    pub bytes: u64,
}

/// A file, without its chunks. Before version 4 only size, chunks and path are told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHead {
    /// Bytes.
    pub size: u64,
    /// Blocks of 512 bytes; from version 5 on.
    pub blocks: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Type and permissions (inode(7)).
    pub mode: u64,
    /// Last access, seconds since 1970.
    pub atime: u64,
    /// Last change of content.
    pub mtime: u64,
    /// Last change of any kind.
    pub ctime: u64,
    /// Names that the file has.
    pub links: u64,
    /// The device it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// How many chunks follow.
    pub chunks: u64,
    /// Path.
    pub path: Vec<u8>,
    /// Where a symbolic link leads.
    pub target: Vec<u8>,
}

impl FileHead {
    /// Whether it is of a type of inode(7).
    pub fn is(&self, version: u32, kind: libc::mode_t) -> bool {
        version >= 4 && self.mode & u64::from(libc::S_IFMT) == u64::from(kind)
    }
}

/// A chunk of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Bytes; 0 where the version does not tell it.
    pub size: u64,
    /// Its hash, and zeros.
    pub hash: [u8; MOST_HASH],
    /// How many times smaller a codec makes it, in tenths; 0 where that is not told.
    pub ratio: u8,
}

#[cfg(test)]
mod tests;
