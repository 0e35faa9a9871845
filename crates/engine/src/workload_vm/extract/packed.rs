//! The tar stream of an archive that may be compressed.

use loadstone_archive::is_head;
use loadstone_files::open_regular;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes read of an archive at once.
const AHEAD: usize = 128 << 10;
/// Bytes of a header of tar (POSIX.1-2017, pax, ustar format).
const BLOCK: u64 = 512;
/// What files of these formats begin with (RFC 1952, section 2.3.1; RFC 8878, section 3.1.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The tar stream of an archive, whatever it is compressed by.
///
/// # Errors
/// When the path leads to no regular file, it cannot be read, or is not compressed as it says.
pub fn opened(path: &Path) -> io::Result<Box<dyn Read>> {
    // A plan may be a stranger's, and opening a pipe waits, while opening a device may do something.
    let file = open_regular(path, true).map_err(|e| e.cause.unwrap_or_else(|| io::Error::other(e.what)))?;
    decompressed(file)
}

/// The stream of an open archive.
fn decompressed(mut file: File) -> io::Result<Box<dyn Read>> {
    let mut magic = [0u8; 4];
    let known = file.read(&mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    let file = BufReader::with_capacity(AHEAD, file);
    Ok(match &magic[..known] {
        [a, b, ..] if [*a, *b] == GZIP => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        begin if begin == ZSTD => Box::new(zstd::Decoder::with_buffer(file)?),
        _ => Box::new(file),
    })
}

/// Why a file cannot be unpacked, if it cannot: its first header is looked at, nothing more.
pub fn unfit(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    let file = match open_regular(path, true) {
        Ok(file) => file,
        Err(e) => return Some(e.to_string()),
    };
    let read = decompressed(file).and_then(|stream| stream.take(BLOCK).read_to_end(&mut head));
    let of_system = read.err().filter(|e| e.raw_os_error().is_some());
    match of_system {
        Some(e) => Some(format!("{}: {e}", path.display())),
        None if is_head(&head) => None,
        None => Some(format!("{} is no tar archive (plain, gzip or zstd)", path.display())),
    }
}
