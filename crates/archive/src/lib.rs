//! Tar archives that nobody vouches for, read member by member (POSIX.1-2017, pax; GNU tar's manual, "Basic Tar Format").
//!
//! No number of an archive decides how much memory is taken: what describes a member is read up to a limit, and content is
//! passed on as it comes. Names come as they are; the caller checks where they lead.

#![warn(clippy::missing_errors_doc)]

mod head;
mod sparse;

use head::{BLOCK, Head, is_blank, number, text};
use sparse::{Pieces, Told as Sparse};
use std::io::{self, Read};

pub use head::is_head;

/// Most bytes of a header that only describes a member, as of a long name. Other readers take as much.
pub const MOST_HEADER: u64 = 1 << 20;
/// Most pieces of a sparse file.
pub const MOST_PIECES: usize = 1 << 20;
/// Bytes that are passed over at once.
const SKIP: usize = 32 << 10;

/// Most bytes behind the end that are read in search of something.
const MOST_BLANK: u64 = 1 << 30;

/// What a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file, with its content.
    File,
    /// A file whose data follows without its holes.
    Sparse,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A further name of a member before.
    Hard,
    /// A device or a pipe.
    Special,
    /// No member, but what an archive is called.
    Label,
    /// Of a type that is not known here, as the rest of a file that another volume has: its content is passed over.
    Other,
}

/// A member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its path, as it is told: it may lead anywhere.
    pub path: Vec<u8>,
    /// Where a link leads.
    pub link: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Bytes of the file, holes among them.
    pub size: u64,
    /// Permissions.
    pub mode: u64,
    /// Where the data of a sparse file lies, offset and length, ascending: the content is those pieces, one after the other.
    pub pieces: Vec<(u64, u64)>,
}

/// Reads an archive from its beginning to its end. Reading it gives the content of the member at hand.
pub struct Archive<R> {
    from: R,
    /// Bytes that were read.
    at: u64,
    /// Bytes of content that are left, and of what fills its last block.
    left: u64,
    fill: u64,
    begun: bool,
    ended: bool,
}

/// What headers say of the member behind them.
#[derive(Default)]
struct Told {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    sparse: Option<Sparse>,
}

impl<R: Read> Archive<R> {
    /// An archive from its first byte on, not compressed.
    pub fn new(from: R) -> Archive<R> {
        Archive { from, at: 0, left: 0, fill: 0, begun: false, ended: false }
    }

    /// Whether a header was met: what has none is no archive.
    pub fn is_begun(&self) -> bool {
        self.begun
    }

    /// Whether the blocks were met that end an archive. One without them may be cut short.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// The next member; nothing behind the last. What was not read of the one before is passed over.
    ///
    /// # Errors
    /// When the archive cannot be read, is damaged or describes a member by more than a mebibyte: what is wrong, at which byte.
    pub fn member(&mut self) -> io::Result<Option<Member>> {
        let mut told = Told::default();
        loop {
            self.pass()?;
            let at = self.at;
            let mut block = [0; BLOCK];
            if self.ended || !self.block(&mut block)? {
                return Ok(None);
            }
            if is_blank(&block) {
                (self.begun, self.ended) = (true, true);
                return Ok(None);
            }
            let head = Head::new(&block).map_err(|what| wrong(at, what))?;
            self.begun = true;
            match block[156] {
                b'L' => told.path = Some(self.text(&head, at)?),
                b'K' => told.link = Some(self.text(&head, at)?),
                b'x' => self.records(&head, at, &mut told)?,
                // What it says is of all members, and none of what is used of these.
                b'g' => self.content(head.size, at)?,
                flag => return self.described(&head, flag, (&block, at), told).map(Some),
            }
        }
    }

    fn described(
        &mut self,
        head: &Head,
        flag: u8,
        (block, at): (&[u8; BLOCK], u64),
        told: Told,
    ) -> io::Result<Member> {
        let path = told.path.unwrap_or_else(|| head.path.clone());
        let kind = match flag {
            // Old archives tell directories by their names.
            0 | b'0' if path.ends_with(b"/") => Kind::Directory,
            0 | b'0' | b'7' => Kind::File,
            b'S' => Kind::Sparse,
            b'5' => Kind::Directory,
            b'2' => Kind::Symlink,
            b'1' => Kind::Hard,
            b'3' | b'4' | b'6' => Kind::Special,
            // What an archive or a volume is called (GNU tar).
            b'V' => Kind::Label,
            _ => Kind::Other,
        };
        // Others have no content, whatever their size says (POSIX.1-2017, pax, "ustar Interchange Format").
        let size = match kind {
            Kind::File | Kind::Sparse | Kind::Other => told.size.unwrap_or(head.size),
            Kind::Directory | Kind::Symlink | Kind::Hard | Kind::Special | Kind::Label => 0,
        };
        let mut member = Member {
            path,
            link: told.link.unwrap_or_else(|| head.link.clone()),
            kind,
            size,
            mode: head.mode,
            pieces: Vec::new(),
        };
        if kind == Kind::Sparse {
            self.map(block, at, &mut member)?;
        }
        self.content(size, at)?;
        if let Some(sparse) = told.sparse.filter(|_| kind == Kind::File) {
            self.sparse(sparse, at, &mut member)?;
        }
        Ok(member)
    }

    /// Makes a member sparse as records of pax say. In version 1.0 its content begins with where its data lies.
    fn sparse(&mut self, told: Sparse, at: u64, member: &mut Member) -> io::Result<()> {
        let (mut pieces, size) = (told.pieces, told.size.unwrap_or(member.size));
        match told.version {
            None | Some((0, _)) => {}
            Some((1, 0)) => pieces = sparse::listed(&mut *self).map_err(|e| sparse::at(e, at))?,
            Some((major, minor)) => {
                return Err(wrong(at, format!("a sparse file of version {major}.{minor}")));
            }
        }
        pieces.check(size, self.left).map_err(|what| wrong(at, what))?;
        if let Some(name) = told.name {
            member.path = name;
        }
        (member.kind, member.size, member.pieces) = (Kind::Sparse, size, pieces.all);
        Ok(())
    }

    /// Where the data of a sparse file lies: four pieces in its header, and more in blocks behind it.
    fn map(&mut self, block: &[u8; BLOCK], at: u64, member: &mut Member) -> io::Result<()> {
        let mut pieces = Pieces::default();
        pieces.fields(&block[386..482]).map_err(|what| wrong(at, what))?;
        let mut more = block[482] != 0;
        while more {
            let (mut block, at) = ([0; BLOCK], self.at);
            if !self.block(&mut block)? {
                return Err(cut(self.at));
            }
            pieces.fields(&block[..504]).map_err(|what| wrong(at, what))?;
            more = block[504] != 0;
        }
        let size = number(&block[483..495]).map_err(|what| wrong(at, what))?;
        pieces.check(size, member.size).map_err(|what| wrong(at, what))?;
        (member.size, member.pieces) = (size, pieces.all);
        Ok(())
    }

    /// A header's content, which ends at its first zero byte.
    fn text(&mut self, head: &Head, at: u64) -> io::Result<Vec<u8>> {
        let bytes = self.whole(head, at)?;
        Ok(text(&bytes).to_vec())
    }

    /// Records of pax: length in digits, a space, key, `=`, value, and a line end.
    fn records(&mut self, head: &Head, at: u64, told: &mut Told) -> io::Result<()> {
        let bytes = self.whole(head, at)?;
        let mut rest = &bytes[..];
        // Zero bytes may fill the end.
        while rest.first().is_some_and(|byte| *byte != 0) {
            let place = at + BLOCK as u64 + (bytes.len() - rest.len()) as u64;
            let record = (|| {
                let space = rest.iter().take(8).position(|byte| *byte == b' ')?;
                let length: usize = std::str::from_utf8(&rest[..space]).ok()?.parse().ok()?;
                let record = rest.get(space + 1..length)?.strip_suffix(b"\n")?;
                let equals = record.iter().position(|byte| *byte == b'=')?;
                Some((&record[..equals], &record[equals + 1..], length))
            })();
            let (key, value, length) =
                record.ok_or_else(|| wrong(place, "a record of a pax header that is none".into()))?;
            match key {
                b"path" => told.path = Some(value.to_vec()),
                b"linkpath" => told.link = Some(value.to_vec()),
                b"size" => {
                    let size = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                    told.size = Some(size.ok_or_else(|| wrong(place, "a size that is no number".into()))?);
                }
                _ => {
                    if let Some(key) = key.strip_prefix(b"GNU.sparse.") {
                        let sparse = told.sparse.get_or_insert_default();
                        sparse.record(key, value).map_err(|what| wrong(place, what))?;
                    }
                }
            }
            rest = &rest[length..];
        }
        Ok(())
    }

    /// All of a header's content.
    fn whole(&mut self, head: &Head, at: u64) -> io::Result<Vec<u8>> {
        if head.size > MOST_HEADER {
            let what = format!(
                "a header of {} bytes that describes a member: at most {MOST_HEADER} are read",
                head.size
            );
            return Err(wrong(at, what));
        }
        self.content(head.size, at)?;
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// So many bytes of content come.
    fn content(&mut self, size: u64, at: u64) -> io::Result<()> {
        if size > i64::MAX as u64 {
            return Err(wrong(at, format!("a member of {size} bytes, beyond 2^63")));
        }
        (self.left, self.fill) = (size, size.next_multiple_of(BLOCK as u64) - size);
        Ok(())
    }

    /// Whether anything but zeros comes behind the end, as where archives were put one behind another. Of many zeros only
    /// the first gibibyte is looked at.
    ///
    /// # Errors
    /// The rest cannot be read: a compressed stream may be cut in its trailer.
    pub fn goes_on(&mut self) -> io::Result<bool> {
        let mut room = [0; SKIP];
        let mut passed = 0;
        // A compressed stream tells only at its end whether it is whole.
        while passed < MOST_BLANK {
            match self.from.read(&mut room) {
                Ok(0) => return Ok(false),
                Ok(n) if room[..n].iter().all(|byte| *byte == 0) => passed += n as u64,
                Ok(_) => return Ok(true),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(false)
    }

    /// Passes over what is left of a member.
    fn pass(&mut self) -> io::Result<()> {
        let mut room = [0; SKIP];
        while self.left > 0 {
            self.read(&mut room).map(drop)?;
        }
        (self.left, self.fill) = (self.fill, 0);
        while self.left > 0 {
            match self.read(&mut room) {
                // The last block of the last member may be cut.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => self.left = 0,
                read => read.map(drop)?,
            }
        }
        Ok(())
    }

    /// A whole block; false where the archive has no more.
    fn block(&mut self, block: &mut [u8; BLOCK]) -> io::Result<bool> {
        let mut filled = 0;
        while filled < BLOCK {
            match self.from.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(cut(self.at)),
                Ok(n) => (filled, self.at) = (filled + n, self.at + n as u64),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }
}

impl<R: Read> Read for Archive<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let room = (into.len() as u64).min(self.left) as usize;
        let n = self.from.read(&mut into[..room])?;
        if n == 0 && room > 0 && self.left > 0 {
            return Err(cut(self.at));
        }
        (self.at, self.left) = (self.at + n as u64, self.left - n as u64);
        Ok(n)
    }
}

fn wrong(at: u64, what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("byte {at}: {what}"))
}

fn cut(at: u64) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("byte {at}: ends within a member; it was cut short"))
}

#[cfg(test)]
mod tests;
