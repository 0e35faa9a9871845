//! Bytes of a trace file: opened, decompressed as its magic says, counted for progress.

use crate::{Error, ErrorKind, Result};
use std::cmp::Ordering;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Bytes looked at to tell the format.
pub const HEAD: usize = 64 << 10;

/// Bytes that are unpacked at once where damage of the compression is an end.
const SALVAGED: usize = 4 << 10;

/// How far reading has come, in bytes as they lie on disk; shared with whoever shows it.
#[derive(Debug, Default, Clone)]
pub struct Meter(Arc<AtomicU64>);

impl Meter {
    /// Bytes read so far.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Counts bytes read.
    pub fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Relaxed);
    }
}

/// What was wrong with the compression of a file that is salvaged: reading ends there.
#[derive(Debug, Default, Clone)]
pub struct Damage(Arc<OnceLock<String>>);

impl Damage {
    /// What was wrong, once reading has come there.
    pub fn found(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// A decoder whose first error is the end of the file, and noted. Errors of the file itself stay errors.
struct Salvaged {
    body: Box<dyn Read + Send>,
    damage: Damage,
    unreadable: Arc<AtomicBool>,
}

impl Read for Salvaged {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.damage.found().is_some() {
            return Ok(0);
        }
        // What a decoder had unpacked in the very call that fails is lost.
        let most = buffer.len().min(SALVAGED);
        match self.body.read(&mut buffer[..most]) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted && !self.unreadable.load(Relaxed) => {
                let _ = self.damage.0.set(e.to_string());
                Ok(0)
            }
            read => read,
        }
    }
}

struct Counted {
    /// Whether the file could not be read.
    unreadable: Arc<AtomicBool>,
    file: File,
    /// As it was when it was opened.
    opened: Metadata,
    meter: Meter,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = || {
            let n = self.file.read(buffer)?;
            if n == 0 && !buffer.is_empty() {
                unchanged(&self.opened, &self.file.metadata()?)?;
            }
            Ok(n)
        };
        let read: io::Result<usize> = read();
        match &read {
            Ok(n) => self.meter.add(*n as u64),
            Err(e) if e.kind() != io::ErrorKind::Interrupted => self.unreadable.store(true, Relaxed),
            Err(_) => {}
        }
        read
    }
}

/// Refuses the end of a file that somebody cut or wrote over while it was read; one that grew is a capture that goes on.
fn unchanged(opened: &Metadata, now: &Metadata) -> io::Result<()> {
    let (was, is) = (opened.len(), now.len());
    let what = match is.cmp(&was) {
        _ if !opened.is_file() => return Ok(()),
        Ordering::Less => format!("it was cut from {was} to {is} bytes while it was read"),
        Ordering::Equal if opened.modified()? != now.modified()? => {
            "somebody wrote to it while it was read".to_owned()
        }
        Ordering::Equal | Ordering::Greater => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

/// A file being read from its start, decompressed, with its first bytes kept for detection.
pub struct Input {
    /// Where it lies.
    pub path: PathBuf,
    /// Bytes on disk.
    pub total: u64,
    /// Name of the compression, empty for none.
    pub compression: &'static str,
    /// Lines passed over by [`Input::skip_line`].
    pub lines_skipped: u64,
    meter: Meter,
    head: Vec<u8>,
    head_is_all: bool,
    taken: usize,
    damage: Damage,
    body: Box<dyn Read + Send>,
}

/// What some programs begin text with; no binary format does.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether these are the first bytes of text of two bytes a letter, with a byte order mark or without.
fn is_utf16(head: &[u8]) -> bool {
    let (marked, rest) = match head {
        [0xff, 0xfe, rest @ ..] | [0xfe, 0xff, rest @ ..] => (true, rest),
        _ => (false, head),
    };
    // Numbers of a binary format may be as a mark is; rows of small letters and zeros are none of their heads.
    let letters = rest.get(..if marked { 8 } else { 32 }).unwrap_or(rest);
    let text = |high: usize| {
        letters
            .chunks(2)
            .all(|pair| pair.len() == 2 && pair[high] == 0 && matches!(pair[1 - high], 9 | 10 | 13 | 32..127))
    };
    letters.len() >= 8 && (text(0) || text(1))
}

/// Reads until `buffer` is full or the end.
///
/// # Errors
/// Those of `from`, but for interruptions by signals.
pub fn read_full(from: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < buffer.len() {
        match from.read(&mut buffer[n..]) {
            Ok(0) => break,
            Ok(k) => n += k,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(n)
}

impl Input {
    /// Opens a file; `meter` counts the bytes taken from it. With `salvage` a damaged compression ends it.
    ///
    /// # Errors
    /// When it cannot be opened or its compressed head is damaged.
    pub fn open(path: &Path, meter: &Meter, salvage: bool) -> Result<Input> {
        let fail = |e| Error::io("cannot open", path, e);
        let file = loadstone_files::open_for_reading(path).map_err(fail)?;
        let kind = file.metadata().map_err(fail)?;
        if kind.is_dir() {
            return Err(Error::new(ErrorKind::Option, "is a directory")
                .path(path)
                .help("name the trace file in it"));
        }
        let total = kind.len();
        let unreadable = Arc::default();
        let source =
            Counted { unreadable: Arc::clone(&unreadable), file, opened: kind, meter: meter.clone() };
        Input::new(path, total, meter, source, salvage.then_some(unreadable))
    }

    /// Reads from bytes in memory, as the fuzzer does.
    ///
    /// # Errors
    /// When they are packed and the packing is damaged, or they are text in UTF-16.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Input> {
        Input::new(path, bytes.len() as u64, &Meter::default(), Cursor::new(bytes), None)
    }

    /// `salvage`: damage of the compression is an end, as long as the file itself can be read.
    fn new(
        path: &Path,
        total: u64,
        meter: &Meter,
        mut source: impl Read + Send + 'static,
        salvage: Option<Arc<AtomicBool>>,
    ) -> Result<Input> {
        let mut magic = [0u8; 6];
        let n = read_full(&mut source, &mut magic).map_err(|e| Error::io("cannot read", path, e))?;
        let start = Cursor::new(magic[..n].to_vec());
        let magic = &magic[..n];
        let (compression, mut body): (_, Box<dyn Read + Send>) = if magic.starts_with(&[0x1f, 0x8b]) {
            (
                "gzip",
                Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(
                    1 << 18,
                    start.chain(source),
                ))),
            )
        } else if matches!(magic, [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) {
            // A frame, or one that is passed over (RFC 8878, section 3.1.2).
            let decoder = zstd::Decoder::new(start.chain(source))
                .map_err(|e| Error::io("cannot decompress", path, e))?;
            ("zstd", Box::new(decoder))
        } else if magic.starts_with(b"BZh") {
            (
                "bzip2",
                Box::new(bzip2::bufread::MultiBzDecoder::new(BufReader::with_capacity(
                    1 << 18,
                    start.chain(source),
                ))),
            )
        } else if magic.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
            let stream =
                liblzma::stream::Stream::new_stream_decoder(128 << 20, liblzma::stream::CONCATENATED)
                    .map_err(|e| Error::malformed(format!("cannot decompress: {e}")).path(path))?;
            let buffered = BufReader::with_capacity(1 << 18, start.chain(source));
            ("xz", Box::new(liblzma::bufread::XzDecoder::new_stream(buffered, stream)))
        } else {
            ("", Box::new(start.chain(source)))
        };
        let damage = Damage::default();
        if let Some(unreadable) = salvage.filter(|_| !compression.is_empty()) {
            body = Box::new(Salvaged { body, damage: damage.clone(), unreadable });
        }
        let mut head = vec![0; HEAD];
        let verb = if compression.is_empty() { "cannot read" } else { "cannot decompress" };
        let n = read_full(&mut body, &mut head)
            .map_err(|e| Error::io(verb, path, e).help("the file is damaged or cut short"))?;
        head.truncate(n);
        let head_is_all = n < HEAD;
        if let Some(text) = head.strip_prefix(BYTE_ORDER_MARK) {
            head = text.to_vec();
        }
        if is_utf16(&head) {
            return Err(Error::new(ErrorKind::Unsupported, "is text in UTF-16, and only UTF-8 is read")
                .path(path)
                .help("convert it: iconv -f UTF-16 -t UTF-8"));
        }
        Ok(Input {
            path: path.into(),
            total,
            compression,
            lines_skipped: 0,
            meter: meter.clone(),
            head,
            head_is_all,
            taken: 0,
            damage,
            body,
        })
    }

    /// The first bytes, up to [`HEAD`]; they are still to be read.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The part of the head that is still to be read.
    pub fn unread(&self) -> &[u8] {
        &self.head[self.taken..]
    }

    /// Passes over the next line, which must lie within the head; `None` when there is none.
    pub fn skip_line(&mut self) -> Option<Vec<u8>> {
        let rest = self.unread();
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        if end == 0 {
            return None;
        }
        let line = rest[..end].trim_ascii_end().to_vec();
        self.taken += end;
        self.lines_skipped += 1;
        Some(line)
    }

    /// Whether [`Input::head`] is all there is.
    pub fn head_is_all(&self) -> bool {
        self.head_is_all
    }

    /// What is found of damage to the compression, where that is salvaged.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// The meter that counts this input's bytes.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Names the file in an error met while reading it.
    pub fn error(&self, cause: io::Error) -> Error {
        let verb = if self.compression.is_empty() { "cannot read" } else { "cannot decompress" };
        Error::io(verb, &self.path, cause).help("the file is damaged or cut short")
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken < self.head.len() {
            let n = buffer.len().min(self.head.len() - self.taken);
            buffer[..n].copy_from_slice(&self.head[self.taken..self.taken + n]);
            self.taken += n;
            return Ok(n);
        }
        self.body.read(buffer)
    }
}
