//! The extents of a file, checked and unpacked one after the other.

use super::codec::{MOST, unpack};
use super::hash::{lookup2, mixed};
use super::types::{ExtentType, Field, bit, long, word};
use crate::cursor::Cursor;
use crate::input::Input;
use crate::{Error, ErrorKind, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Bytes of the head of a file, of an extent before its type's name, and of the tail.
const HEAD: usize = 40;
const EXTENT: usize = 28;
const TAIL: usize = 28;

/// Most bytes of a packed part.
const PACKED: usize = 1 << 29;

/// Seeds of the hashes.
const SEED: u32 = 1972;
const TAIL_SEED: u32 = 1776;

const XML: &str = "DataSeries: XmlType";
const INDEX: &str = "DataSeries: ExtentIndex";

/// An unpacked extent: rows of fields, and the variable fields' data.
pub struct Extent {
    /// Its type.
    pub kind: Arc<ExtentType>,
    rows: Vec<u8>,
    variable: Vec<u8>,
    big: bool,
}

/// A row of an extent.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    extent: &'a Extent,
    bytes: &'a [u8],
}

impl Extent {
    /// Its rows in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.chunks_exact(self.kind.row.max(1)).map(|bytes| Row { extent: self, bytes })
    }
}

impl<'a> Row<'a> {
    fn is_null(&self, field: &Field) -> bool {
        field.null.is_some_and(|null| bit(self.bytes, &self.extent.kind.fields[null]))
    }

    /// A bool.
    pub fn bool(&self, field: &Field) -> bool {
        bit(self.bytes, field)
    }

    /// An int32, `None` for null.
    pub fn int(&self, field: &Field) -> Option<i32> {
        (!self.is_null(field)).then(|| word(self.bytes, field.at, self.extent.big))
    }

    /// An int64, `None` for null.
    pub fn long(&self, field: &Field) -> Option<i64> {
        (!self.is_null(field)).then(|| long(self.bytes, field.at, self.extent.big))
    }

    /// A double without its base, `None` for null.
    pub fn double(&self, field: &Field) -> Option<f64> {
        self.long(field).map(|bits| f64::from_bits(bits as u64))
    }

    /// A byte, `None` for null.
    pub fn byte(&self, field: &Field) -> Option<u8> {
        (!self.is_null(field)).then(|| self.bytes[field.at])
    }

    /// A variable field's bytes, `None` for null or where they lie outside.
    pub fn text(&self, field: &Field) -> Option<&'a [u8]> {
        let at = usize::try_from(self.int(field)?).ok()?;
        let length = self.extent.variable.get(at..at.checked_add(4)?)?;
        let length = usize::try_from(word(length, 0, self.extent.big)).ok()?;
        self.extent.variable.get(at + 4..(at + 4).checked_add(length)?)
    }
}

/// Numbers at the start of an extent.
#[derive(Clone)]
struct Head {
    fixed: usize,
    variable: usize,
    records: usize,
    size: usize,
    adler: u32,
    hash: u32,
    codecs: [u8; 2],
    name: String,
}

impl Head {
    /// Bytes up to the fixed part, and of both parts with what fills them up.
    fn lengths(&self) -> [usize; 3] {
        let padded = |n: usize| n.next_multiple_of(4);
        [padded(EXTENT + self.name.len()), padded(self.fixed), padded(self.variable)]
    }

    fn whole(&self) -> usize {
        self.lengths().iter().sum()
    }
}

/// Reads the extents of a file.
pub struct Extents {
    bytes: Cursor,
    big: bool,
    types: FxHashMap<String, Arc<ExtentType>>,
    chained: u32,
    /// Whether damaged extents are passed over.
    salvage: bool,
    /// Where extents were read.
    seen: FxHashSet<i64>,
    /// Whether the checksum over all extents fits, once the tail was read.
    pub chained_fits: bool,
    /// What was damaged and passed over: where, and why.
    pub damaged: Vec<(u64, Error)>,
    /// Where checksums are to be made right: extents with their bytes and what their hashes should be.
    mended: Option<Vec<(u64, usize, u32)>>,
    ended: bool,
}

/// Makes the checksums of a file fit its bytes, as far as these can be read; for fuzzing.
pub fn mend(bytes: &mut [u8]) {
    let input = Input::from_bytes(std::path::Path::new("mended"), bytes.to_vec());
    let Ok(mut extents) = input.and_then(|input| Extents::begin(input, Some(Vec::new()))) else { return };
    // The types come first, and what follows is of them.
    let _ = extents.library().map(|()| while matches!(extents.next(), Ok(Some(_))) {});
    let (big, chained) = (extents.big, extents.chained);
    let end = extents.bytes.at() as usize;
    let put = |bytes: &mut [u8], number: u32| {
        bytes.copy_from_slice(&if big { number.to_be_bytes() } else { number.to_le_bytes() });
    };
    for (at, whole, hash) in extents.mended.unwrap_or_default() {
        let extent = &mut bytes[at as usize..][..whole];
        put(&mut extent[20..24], hash);
        let sum = adler(extent);
        put(&mut extent[16..20], sum);
    }
    if let Some(tail) = bytes.get_mut(end..).filter(|tail| tail.len() == TAIL) {
        put(&mut tail[12..16], chained);
        let sum = lookup2(TAIL_SEED, &tail[..TAIL - 4]);
        put(&mut tail[TAIL - 4..], sum);
    }
}

/// The checksum of an extent, which leaves itself out.
fn adler(extent: &[u8]) -> u32 {
    let mut adler = adler2::Adler32::new();
    adler.write_slice(&extent[..16]);
    adler.write_slice(&extent[20..]);
    adler.checksum()
}

/// What stands where an extent may begin.
enum Next {
    Extent(Head),
    Tail,
    End,
}

impl Extents {
    /// Reads the head of a file and its types.
    ///
    /// # Errors
    /// When they are damaged; without the types nothing can be read.
    pub fn new(input: Input, salvage: bool) -> Result<Extents> {
        let mut extents = Extents::begin(input, None)?;
        extents.library()?;
        extents.salvage = salvage;
        Ok(extents)
    }

    /// Reads the head of a file.
    fn begin(input: Input, mended: Option<Vec<(u64, usize, u32)>>) -> Result<Extents> {
        let mut bytes = Cursor::new(input);
        let head = bytes.peek(HEAD)?;
        let big = match head.get(..8) {
            Some([b'D', b'S', b'v', b'1', 0x78, 0x56, 0x34, 0x12]) => false,
            Some([b'D', b'S', b'v', b'1', 0x12, 0x34, 0x56, 0x78]) => true,
            _ => {
                return Err(
                    bytes.place(Error::new(ErrorKind::Unrecognised, "is no DataSeries file of version 1"))
                );
            }
        };
        if head.len() < HEAD {
            let n = head.len();
            return Err(
                bytes.place(Error::new(ErrorKind::Truncated, format!("truncated head: {n} of {HEAD} bytes")))
            );
        }
        bytes.skip(HEAD);
        let mut extents = Extents {
            bytes,
            big,
            types: FxHashMap::default(),
            chained: 0,
            salvage: false,
            seen: FxHashSet::default(),
            chained_fits: true,
            damaged: Vec::new(),
            mended,
            ended: false,
        };
        for (name, xml) in [
            (
                XML,
                r#"<ExtentType name="DataSeries: XmlType"><field type="variable32" name="xmltype"/></ExtentType>"#,
            ),
            (
                INDEX,
                r#"<ExtentType name="DataSeries: ExtentIndex"><field type="int64" name="offset"/>
                <field type="variable32" name="extenttype"/></ExtentType>"#,
            ),
        ] {
            extents.types.insert(name.into(), Arc::new(ExtentType::parse(xml)?));
        }
        Ok(extents)
    }

    /// Reads the types.
    fn library(&mut self) -> Result<()> {
        let at = self.bytes.at();
        let library = match self.peek()? {
            Next::Extent(head) if head.name == XML => self.read(&head),
            _ => Err(Error::malformed("no extent of types follows the head")),
        };
        let library = library.map_err(|e| {
            let e = e.path(self.bytes.path()).at(crate::Place::Byte(at));
            e.help("without its types no extent can be read; fetch the file again")
        })?;
        let field = library.kind.need("xmltype", super::types::Kind::Variable)?;
        for row in library.rows() {
            let xml = String::from_utf8_lossy(row.text(&field).unwrap_or_default());
            let kind = ExtentType::parse(&xml).map_err(|e| self.bytes.place(e))?;
            self.types.insert(kind.name.clone(), Arc::new(kind));
        }
        Ok(())
    }

    /// Byte where the next extent begins.
    pub fn at(&self) -> u64 {
        self.bytes.at()
    }

    /// The type of this name.
    pub fn kind(&self, name: &str) -> Option<&Arc<ExtentType>> {
        self.types.get(name)
    }

    /// Names of all types but those of the format itself.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> =
            self.types.keys().map(String::as_str).filter(|n| *n != XML && *n != INDEX).collect();
        names.sort_unstable();
        names
    }

    /// The next extent of data; `None` at the end.
    ///
    /// # Errors
    /// When it is damaged, unless such are passed over.
    pub fn next(&mut self) -> Result<Option<Extent>> {
        while !self.ended {
            let at = self.bytes.at();
            let found = match self.peek() {
                Ok(Next::Extent(head)) => self.read(&head).map(|extent| Some((head, extent))),
                Ok(Next::Tail) => self.tail().map(|()| None),
                Ok(Next::End) => {
                    Err(Error::new(ErrorKind::Truncated, "ends without its index and tail").help(COPY))
                }
                Err(error) => Err(error),
            };
            match found {
                Ok(Some((head, extent))) if head.name != INDEX => return Ok(Some(extent)),
                Ok(Some((_, index))) => match self.missing(&index) {
                    Some(missing) if !self.salvage => {
                        self.ended = true;
                        let what =
                            format!("the index names an extent at byte {missing}, where none was read");
                        return Err(Error::malformed(what)
                            .path(self.bytes.path())
                            .at(crate::Place::Byte(at))
                            .help(SALVAGE));
                    }
                    _ => {}
                },
                Ok(None) => self.ended = true,
                Err(error) => {
                    let error = error.path(self.bytes.path()).at(crate::Place::Byte(at));
                    if !self.salvage || error.kind() == ErrorKind::Io {
                        self.ended = true;
                        return Err(error);
                    }
                    self.damaged.push((at, error));
                    self.resume()?;
                }
            }
        }
        Ok(None)
    }

    /// Looks at what comes next.
    fn peek(&mut self) -> Result<Next> {
        let big = self.big;
        let head = self.bytes.peek(EXTENT + usize::from(u8::MAX))?;
        if head.is_empty() {
            return Ok(Next::End);
        }
        if head.starts_with(&[0xff; 4]) {
            return Ok(Next::Tail);
        }
        if head.len() < EXTENT {
            let what = format!("truncated extent: {} of {EXTENT} bytes of its head", head.len());
            return Err(Error::new(ErrorKind::Truncated, what).help(COPY));
        }
        let number = |at: usize| word(head, at, big).cast_unsigned();
        let name = head.get(EXTENT..EXTENT + usize::from(head[26])).unwrap_or_default();
        let codecs = [head[24], head[25]];
        let sound = head[27] == 0 && !name.is_empty() && codecs.iter().all(|codec| *codec <= 7);
        let name = std::str::from_utf8(name).ok().filter(|_| sound);
        let name = name.ok_or_else(|| Error::malformed("no extent begins here").help(SALVAGE))?;
        if !self.types.contains_key(name) {
            return Err(Error::malformed(format!(
                "an extent of type {name:?}, which is not in the file's types"
            ))
            .help(SALVAGE));
        }
        Ok(Next::Extent(Head {
            fixed: number(0) as usize,
            variable: number(4) as usize,
            records: number(8) as usize,
            size: number(12) as usize,
            adler: number(16),
            hash: number(20),
            codecs,
            name: name.into(),
        }))
    }

    /// Unpacks the extent that comes next and passes over it.
    fn read(&mut self, head: &Head) -> Result<Extent> {
        let kind = self
            .types
            .get(&head.name)
            .cloned()
            .ok_or_else(|| Error::malformed("an extent of unknown type"))?;
        if head.fixed > PACKED || head.variable > PACKED {
            return Err(
                Error::new(ErrorKind::TooLarge, "an extent larger than 512 MiB is announced").help(SALVAGE)
            );
        }
        let [start, fixed, variable] = head.lengths();
        let whole = head.whole();
        let big = self.big;
        let bytes = self.bytes.peek(whole)?;
        if bytes.len() < whole {
            let what = format!("truncated extent: {} of {whole} bytes", bytes.len());
            return Err(Error::new(ErrorKind::Truncated, what).help(COPY));
        }
        let sum = adler(bytes);
        if sum != head.adler && self.mended.is_none() {
            return Err(Error::malformed("the extent's checksum does not fit its bytes").help(SALVAGE));
        }
        let whole_extent = if self.mended.is_some() { bytes.to_vec() } else { Vec::new() };
        let size = head.records.checked_mul(kind.row).filter(|size| *size <= MOST);
        let size = size.ok_or_else(|| {
            Error::new(ErrorKind::TooLarge, "an extent of more than 512 MiB of rows is announced")
        })?;
        let packed = &bytes[start..start + head.fixed];
        let rows = if kind.compact() {
            // Its unpacked size is not told; rows are no smaller compacted than spread.
            let loose = unpack_up_to(head.codecs[0], packed, size)?;
            kind.spread(&loose, head.records)?
        } else {
            unpack(head.codecs[0], packed, size)?
        };
        let mut text = vec![0; 4];
        let more = unpack(
            head.codecs[1],
            &bytes[start + fixed..start + fixed + head.variable],
            head.size.saturating_sub(4),
        )?;
        text.extend_from_slice(&more);
        let mut extent = Extent { kind, rows, variable: text, big };
        let hash = extent.hash();
        let mut head = (head.hash, head.adler);
        if let Some(mended) = &mut self.mended {
            let mut right = whole_extent;
            let number = if big { hash.to_be_bytes() } else { hash.to_le_bytes() };
            right[20..24].copy_from_slice(&number);
            head = (hash, adler(&right));
            mended.push((self.bytes.at(), whole, hash));
        }
        if hash != head.0 {
            return Err(Error::malformed("the extent's hash does not fit what it unpacks to").help(SALVAGE));
        }
        extent.kind.clone().unpack_values(&mut extent.rows, big);
        self.chained = mixed(head.0 ^ head.1, self.chained, SEED);
        self.seen.insert(self.bytes.at().cast_signed());
        self.bytes.skip(start + fixed + variable);
        Ok(extent)
    }

    /// The first extent that the index names and that was not read.
    fn missing(&self, index: &Extent) -> Option<i64> {
        let offset = index.kind.field("offset")?;
        index.rows().filter_map(|row| row.long(offset)).find(|at| !self.seen.contains(at))
    }

    /// Checks the tail.
    fn tail(&mut self) -> Result<()> {
        let big = self.big;
        let tail = self.bytes.peek(TAIL + 1)?;
        if tail.len() != TAIL {
            let error = if tail.len() < TAIL {
                Error::new(ErrorKind::Truncated, "a truncated tail")
            } else {
                Error::malformed("bytes after the tail")
            };
            return Err(error.help(COPY));
        }
        let number = |at: usize| word(tail, at, big).cast_unsigned();
        if lookup2(TAIL_SEED, &tail[..TAIL - 4]) != number(TAIL - 4) || number(4) != !number(8) {
            return Err(Error::malformed("the tail's checksum does not fit its bytes").help(SALVAGE));
        }
        // Some writers computed it otherwise; what is missing shows in the index.
        self.chained_fits = number(12) == self.chained;
        Ok(())
    }

    /// Finds the next sound extent, or the end, behind a damaged place.
    fn resume(&mut self) -> Result<()> {
        loop {
            if self.bytes.peek(4)?.len() < 4 {
                self.ended = true;
                return Ok(());
            }
            self.bytes.skip(4);
            // The name of a known type is seldom there by chance; the checksum then tells.
            let next = match self.peek() {
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                next => next,
            };
            if let Ok(Next::Extent(head)) = next
                && head.fixed <= PACKED
                && head.variable <= PACKED
            {
                let whole = head.whole();
                let bytes = self.bytes.peek(whole)?;
                if bytes.len() == whole && adler(bytes) == head.adler {
                    return Ok(());
                }
            }
        }
    }
}

const COPY: &str = "the copy or capture was cut short; `salvage` reads what is good";
const SALVAGE: &str = "the file is damaged here; `salvage` reads what is good and counts what is lost";

/// Unpacks a part of unknown size.
fn unpack_up_to(codec: u8, packed: &[u8], most: usize) -> Result<Vec<u8>> {
    match codec {
        0 if packed.len() <= most => Ok(packed.to_vec()),
        2 => super::codec::read(flate2::read::ZlibDecoder::new(packed), "zlib", most),
        3 => super::codec::read(bzip2::read::BzDecoder::new(packed), "bzip2", most),
        1 => super::codec::lzo(packed, most),
        4 => super::codec::lzf(packed, most).ok_or_else(|| Error::malformed("its lzf data is damaged")),
        _ => Err(Error::new(
            ErrorKind::Unsupported,
            format!("compacted rows packed by codec {codec} are not known to this reader"),
        )),
    }
}

impl Extent {
    /// The hash over rows, variable data and the lengths of texts, as the writer computes it.
    fn hash(&self) -> u32 {
        let hash = lookup2(lookup2(SEED, &self.rows), &self.variable);
        let mut lengths = Vec::with_capacity(4096);
        let mut hash = hash;
        let mut at = 4;
        while let Some(length) = self.variable.get(at..at + 4) {
            lengths.extend_from_slice(length);
            let length = usize::try_from(word(length, 0, self.big)).unwrap_or(usize::MAX / 2);
            at = at.saturating_add(4).saturating_add(length);
            at = at.saturating_add((12 - length % 8) % 8);
            if lengths.len() == 4096 {
                hash = lookup2(hash, &lengths);
                lengths.clear();
            }
        }
        lookup2(hash, &lengths)
    }
}
