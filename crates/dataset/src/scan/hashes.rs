//! FSL hash files, each as one snapshot: chunks with the fingerprints that they were given.

use super::archive::{Counted, parts, plain};
use super::build::{Build, KEPT, Member, TAKEN};
use super::{Report, Scan, Watch};
use crate::chunks::{Packed, Ratio};
use crate::file::Damage;
use crate::fsl::{Chunk, FileHead, Head, MAGIC, Method, Reader};
use crate::tree::{Chunking, Kind, Tree, is_target, tag};
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::io::{BufReader, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// How fingerprints are made, by number; of MD5 there are shortened ones.
const HASHES: [&str; 7] = ["unknown", "MD5", "SHA-256", "MD5", "Murmur", "MD5", "SHA-1"];

/// Whether a file is a hash file, plain or compressed. One that is only named like one is refused.
pub fn is_one(path: &Path) -> Result<bool> {
    let file = loadstone_files::open_for_reading(path).map_err(|e| Error::io("cannot be opened", path, e))?;
    let mut first = Vec::new();
    // What cannot be unpacked is none; as an archive it is told why.
    let read = plain(BufReader::new(file)).and_then(|plain| plain.take(4).read_to_end(&mut first));
    let is_one = read.is_ok() && first == MAGIC;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !is_one && (name.ends_with(".hash") || name.ends_with(".hash.anon")) {
        return Err(Error::file(
            path,
            "is named like an FSL hash file and does not begin with 0xdeaddead; copy it again",
        ));
    }
    Ok(is_one)
}

/// A snapshot of a hash file; nothing where `watch` ends it.
pub fn scan(scan: &mut Scan, path: &Path, report: &mut Report, watch: Watch<'_>) -> Result<Option<Tree>> {
    let failed = |e| Error::io("cannot be read", path, e);
    let file = loadstone_files::open_for_reading(path).map_err(failed)?;
    let total = file.metadata().map_err(failed)?.len();
    let done = AtomicU64::new(0);
    let plain = plain(BufReader::with_capacity(1 << 16, Counted(file, &done))).map_err(failed)?;
    let mut tell = || watch(done.load(Ordering::Relaxed), total);
    import(scan, path, BufReader::with_capacity(1 << 16, plain), report, &mut tell)
}

/// The same of a file that is open.
pub fn import(
    scan: &mut Scan,
    path: &Path,
    from: impl Read,
    report: &mut Report,
    tell: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Option<Tree>> {
    let mut reader = Reader::new(from).map_err(|e| e.of(path))?;
    let head = reader.told().clone();
    adopt(scan, path, &head)?;
    if head.version < 3 && matches!(head.method, Method::Variable { .. }) {
        report.notes.push(format!(
            "{}: version {} does not tell the sizes of chunks; each counts as its share of the first file that has it",
            path.display(),
            head.version
        ));
    }
    let (build, inodes) = (Build::new(path), FxHashMap::default());
    let most = u64::from(scan.series.meta.chunking.most());
    let mut import = Import { head: &head, most, build, inodes, clashes: 0 };
    let mut chunks = Vec::new();
    while let Some(file) = reader.file().map_err(|e| e.of(path))?.cloned() {
        chunks.clear();
        while let Some(chunk) = reader.chunk().map_err(|e| e.of(path))? {
            if chunk.size > most {
                let what = format!("has before byte {} a chunk of {} bytes", reader.position(), chunk.size);
                return Err(
                    Damage::Wrong(format!("{what}, its head says {most} at most; copy it again")).of(path)
                );
            }
            chunks.push(chunk);
        }
        import.file(scan, path, &file, &chunks, report)?;
        if tell().is_break() {
            return Ok(None);
        }
    }
    if import.clashes > 0 {
        report.notes.push(format!(
            "{}: {} chunks have the hash of a chunk of another size and count as that",
            path.display(),
            import.clashes
        ));
    }
    import.build.finish().map(Some)
}

/// Says of the series what the first hash file says; later ones have to say the same.
fn adopt(scan: &mut Scan, path: &Path, head: &Head) -> Result<()> {
    let chunking = chunking(head.method);
    let hashing = HASHES.get(head.hashing as usize).unwrap_or(&HASHES[0]);
    let how = match head.method {
        Method::Fixed { .. } => "fixed".to_string(),
        Method::Variable { algorithm, .. } => format!("variable, algorithm {algorithm}"),
    };
    let chunker = format!("FSL hash file, {how}, {hashing} of {} bits", head.bits);
    let meta = &mut scan.series.meta;
    if scan.series.trees.is_empty() {
        chunking.check().map_err(|e| Error::file(path, e.to_string()))?;
        meta.codec = (head.version >= 6).then(|| "FSL hash file, tenths".into());
        (meta.chunking, meta.chunker) = (chunking, chunker);
        scan.cut.width = head.bits as usize / 8;
        scan.series.chunks.width = scan.cut.width;
        scan.hashes = true;
    } else if !scan.hashes || meta.chunking != chunking || meta.chunker != chunker {
        let what = format!(
            "has {chunker} and {chunking:?}, what was scanned before {} and {:?}; chunks cannot be \
             compared: scan it by itself",
            meta.chunker, meta.chunking
        );
        return Err(Error::file(path, what));
    }
    Ok(())
}

/// Chunks of variable size are taken as if FastCDC had cut them, with the same limits and average.
fn chunking(method: Method) -> Chunking {
    match method {
        Method::Fixed { size } => Chunking::Fixed { size },
        Method::Variable { min, max, .. } => {
            let even = |size: u32| size & !1;
            let bits = method.bits();
            let max = even(max).clamp(4096, 8 << 20);
            let average = if (1..=22).contains(&bits) { 1 << bits } else { max / 8 };
            let average = even(average).clamp(256, max.min(4 << 20));
            Chunking::Fastcdc { min: even(min).clamp(256, average.min(1 << 20)), average, max }
        }
    }
}

struct Import<'a> {
    head: &'a Head,
    /// Largest chunk, bytes.
    most: u64,
    build: Build,
    /// First names of files that have several, by device and inode.
    inodes: FxHashMap<(u64, u64), u32>,
    /// Chunks that have the hash of another.
    clashes: u64,
}

impl Import<'_> {
    fn file(
        &mut self,
        scan: &mut Scan,
        path: &Path,
        file: &FileHead,
        chunks: &[Chunk],
        report: &mut Report,
    ) -> Result<()> {
        let root = &self.head.root[..];
        let below =
            file.path.strip_prefix(root).filter(|below| root.ends_with(b"/") || below.starts_with(b"/"));
        let below = below.unwrap_or(&file.path);
        if chunks.iter().map(|chunk| chunk.size).sum::<u64>() > file.size {
            report.changed += 1;
            report.trouble(&path.join(String::from_utf8_lossy(below).as_ref()), "grew while it was scanned");
        }
        let Some((name, above)) = parts(below, scan.strip).and_then(|parts| {
            let (name, above) = parts.split_last()?;
            Some((name.to_vec(), above.iter().map(|part| part.to_vec()).collect::<Vec<_>>()))
        }) else {
            report.unreadable(
                &path.join(String::from_utf8_lossy(below).as_ref()),
                "has a path that leads nowhere below",
            );
            return Ok(());
        };
        let above: Vec<&[u8]> = above.iter().map(Vec::as_slice).collect();
        let version = self.head.version;
        let full = || path.join(String::from_utf8_lossy(below).as_ref());
        let (is_dir, gone) = (file.is(version, libc::S_IFDIR), self.build.gone());
        let last: &[&[u8]] = if is_dir { &[&name] } else { &[] };
        let dir = self.build.dir(scan, &[&above[..], last].concat())?;
        for _ in gone..self.build.gone() {
            report.unreadable(&full(), TAKEN);
        }
        if is_dir {
            return Ok(());
        }
        let names = &mut scan.series.names;
        let interned = scan.interner.name(names, &name)?;
        if self.build.is_dir(dir, interned) {
            report.unreadable(&full(), KEPT);
            return Ok(());
        }
        let mut member = Member {
            dir,
            name: interned,
            extension: scan.interner.extension(names, &name),
            kind: Kind::File,
            size: file.size,
            records: Vec::new(),
            chunks: Vec::new(),
        };
        let special = [libc::S_IFCHR, libc::S_IFBLK, libc::S_IFIFO, libc::S_IFSOCK];
        if file.is(version, libc::S_IFLNK) {
            member.kind = if is_target(&file.target) { Kind::Symlink } else { Kind::Unreadable };
            member.records.push((tag::LINK, file.target.clone()));
        } else if special.iter().any(|kind| file.is(version, *kind)) {
            member.kind = Kind::Other;
        } else if file.mode & 0o111 != 0 {
            member.records.push((tag::EXECUTABLE, Vec::new()));
        }
        let inode = (file.device, file.inode);
        let first = self.inodes.get(&inode).filter(|first| file.links > 1 && !self.build.is_gone(**first));
        if let Some(first) = first {
            self.build.link(member, *first);
            return Ok(());
        }
        if member.kind == Kind::File {
            for chunk in chunks {
                member.chunks.push(self.chunk(scan, file, chunk, chunks.len() as u64)?);
            }
            report.bytes +=
                member.chunks.iter().map(|chunk| u64::from(scan.series.chunks.size(*chunk))).sum::<u64>();
        }
        let links = file.links > 1 && member.kind == Kind::File;
        let number = self.build.put(member);
        if links {
            self.inodes.insert(inode, number);
        }
        Ok(())
    }

    fn chunk(&mut self, scan: &mut Scan, file: &FileHead, chunk: &Chunk, count: u64) -> Result<u32> {
        let told = chunk.size > 0;
        let size = if told { chunk.size } else { (file.size / count).clamp(1, self.most) };
        let ratio =
            if chunk.ratio == 0 { Ratio::UNKNOWN } else { Ratio::nearest(f64::from(chunk.ratio) / 10.0) };
        let packed = Packed::new(size as u32, ratio);
        let print = &chunk.hash[..scan.cut.width];
        let number = scan.known.enter(&mut scan.series.chunks, packed, print)?;
        self.clashes += u64::from(told && u64::from(scan.series.chunks.size(number)) != size);
        Ok(number)
    }
}
