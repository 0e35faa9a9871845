//! Files made by hand, packed in every way, as there are no samples of some.

use super::codec::{lzf, unpack};
use super::extents::Extents;
use super::hash::{lookup2, mixed};
use super::types::{ExtentType, Kind};
use crate::input::Input;
use crate::options::OpenOptions;
use std::path::Path;

fn input(bytes: Vec<u8>) -> Input {
    Input::from_bytes(Path::new("made.ds"), bytes).unwrap()
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Variable data with its texts, and where each lies.
pub(super) fn texts(texts: &[&str]) -> (Vec<u8>, Vec<i32>) {
    let (mut data, mut places) = (vec![0; 4], Vec::new());
    for text in texts {
        places.push(data.len() as i32);
        data.extend((text.len() as i32).to_le_bytes());
        data.extend(text.as_bytes());
        let fill = (12 - text.len() % 8) % 8;
        data.resize(data.len() + fill, 0);
    }
    (data, places)
}

/// An extent; `packed` is what the codec makes of the rows.
pub(super) struct Made<'a> {
    pub name: &'a str,
    pub rows: &'a [u8],
    pub records: usize,
    pub texts: &'a [&'a str],
    pub codec: u8,
    pub packed: Vec<u8>,
}

pub(super) struct File {
    bytes: Vec<u8>,
    chained: u32,
}

impl File {
    pub(super) fn new(types: &[&str]) -> File {
        let mut bytes = b"DSv1".to_vec();
        bytes.extend(0x1234_5678u32.to_le_bytes());
        bytes.extend(0x1234_5678_9abc_def0u64.to_le_bytes());
        for number in [std::f64::consts::PI, f64::INFINITY, f64::NAN] {
            bytes.extend(number.to_le_bytes());
        }
        let mut file = File { bytes, chained: 0 };
        let (_, places) = texts(types);
        let rows: Vec<u8> = places.iter().flat_map(|at| at.to_le_bytes().into_iter().chain([0; 4])).collect();
        file.add(&Made {
            name: "DataSeries: XmlType",
            rows: &rows,
            records: types.len(),
            texts: types,
            codec: 0,
            packed: rows.clone(),
        });
        file
    }

    pub(super) fn add(&mut self, made: &Made) {
        let (variable, _) = texts(made.texts);
        let lengths: Vec<u8> = made.texts.iter().flat_map(|t| (t.len() as i32).to_le_bytes()).collect();
        let hash = lookup2(lookup2(lookup2(1972, made.rows), &variable), &lengths);
        let mut head = Vec::new();
        for number in [made.packed.len(), variable.len() - 4, made.records, variable.len(), 0] {
            head.extend((number as u32).to_le_bytes());
        }
        head.extend(hash.to_le_bytes());
        head.extend([made.codec, 0, made.name.len() as u8, 0]);
        head.extend(made.name.as_bytes());
        let mut whole = padded(head);
        whole.extend(padded(made.packed.clone()));
        whole.extend(padded(variable[4..].to_vec()));
        let mut adler = adler2::Adler32::new();
        adler.write_slice(&whole[..16]);
        adler.write_slice(&whole[20..]);
        whole[16..20].copy_from_slice(&adler.checksum().to_le_bytes());
        self.chained = mixed(hash ^ adler.checksum(), self.chained, 1972);
        self.bytes.extend(whole);
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        let at = self.bytes.len() as i64;
        self.add(&Made {
            name: "DataSeries: ExtentIndex",
            rows: &[],
            records: 0,
            texts: &[],
            codec: 0,
            packed: Vec::new(),
        });
        let size = (self.bytes.len() as i64 - at) as u32;
        let mut tail = vec![0xff; 4];
        for number in [size, !size, self.chained] {
            tail.extend(number.to_le_bytes());
        }
        tail.extend(at.to_le_bytes());
        tail.extend(lookup2(1776, &tail).to_le_bytes());
        self.bytes.extend(tail);
        self.bytes
    }
}

const NUMBERS: &str = r#"<ExtentType name="numbers"><field type="int32" name="a" pack_relative="a"/>
    <field type="int32" name="b" pack_relative="a"/><field type="int64" name="c"/></ExtentType>"#;

/// Rows of a, b and c as they are packed: a from the row before, b from a.
fn numbers(rows: &[(i32, i32, i64)]) -> Vec<u8> {
    let mut before = 0;
    let mut out = Vec::new();
    for &(a, b, c) in rows {
        out.extend((a - before).to_le_bytes());
        out.extend((b - a).to_le_bytes());
        out.extend(c.to_le_bytes());
        before = a;
    }
    out
}

fn read(bytes: Vec<u8>) -> Vec<(i32, i32, i64)> {
    let mut extents = Extents::new(input(bytes), false).unwrap();
    let kind = extents.kind("numbers").unwrap().clone();
    let (a, b) = (kind.need("a", Kind::Int32).unwrap(), kind.need("b", Kind::Int32).unwrap());
    let c = kind.need("c", Kind::Int64).unwrap();
    let mut found = Vec::new();
    while let Some(extent) = extents.next().unwrap() {
        found.extend(extent.rows().map(|r| (r.int(&a).unwrap(), r.int(&b).unwrap(), r.long(&c).unwrap())));
    }
    found
}

#[test]
fn every_codec_and_relative_values() {
    use std::io::Write;
    let wanted = [(5, 7, -1), (6, 6, 1 << 40), (-3, 100, 0)];
    let rows = numbers(&wanted);
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(&rows).unwrap();
    let mut bzip = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    bzip.write_all(&rows).unwrap();
    // Literals alone, as runs of at most 32 of them.
    let plain: Vec<u8> = rows
        .chunks(32)
        .flat_map(|run| [run.len() as u8 - 1].into_iter().chain(run.iter().copied()))
        .collect();
    assert_eq!(lzf(&plain, rows.len()).unwrap(), rows);
    // LZO: a first byte above 17 starts that many less 17 literals; 17, 0, 0 ends.
    let mut lzo = vec![17 + rows.len() as u8];
    lzo.extend(&rows);
    lzo.extend([17, 0, 0]);
    let all = [
        (0, rows.clone()),
        (1, lzo),
        (2, zlib.finish().unwrap()),
        (3, bzip.finish().unwrap()),
        (4, plain),
        (5, snap::raw::Encoder::new().compress_vec(&rows).unwrap()),
        (6, lz4_flex::block::compress(&rows)),
        (7, lz4_flex::block::compress(&rows)),
    ];
    for (codec, packed) in all {
        assert_eq!(unpack(codec, &packed, rows.len()).unwrap(), rows, "{codec}");
        let mut file = File::new(&[NUMBERS]);
        file.add(&Made { name: "numbers", rows: &rows, records: 3, texts: &[], codec, packed });
        assert_eq!(read(file.end()), wanted, "{codec}");
    }
}

#[test]
fn nulls_left_out_of_rows_come_back() {
    let xml = r#"<ExtentType name="compact" pack_null_compact="non_bool"><field type="bool" name="flag"/>
        <field type="byte" name="small" opt_nullable="yes"/><field type="int32" name="number" opt_nullable="yes"/>
        <field type="int64" name="large"/></ExtentType>"#;
    let kind = ExtentType::parse(xml).unwrap();
    // Bools, small, two bytes of filling, number, large.
    assert_eq!(kind.row, 16);
    let mut rows = Vec::new();
    for (bools, small, number, large) in [(0b001, 7, 70, -1i64), (0b110, 0, 0, 8)] {
        rows.extend([bools, small, 0, 0]);
        rows.extend(i32::to_le_bytes(number));
        rows.extend(large.to_le_bytes());
    }
    let mut packed = vec![0b001, 7, 0, 0];
    packed.extend(70i32.to_le_bytes());
    packed.extend((-1i64).to_le_bytes());
    packed.extend([0b110, 0, 0, 0, 0, 0, 0, 0]);
    packed.extend(8i64.to_le_bytes());
    assert_eq!(kind.spread(&packed, 2).unwrap(), rows);
    let mut file = File::new(&[xml]);
    file.add(&Made { name: "compact", rows: &rows, records: 2, texts: &[], codec: 0, packed });
    let mut extents = Extents::new(input(file.end()), false).unwrap();
    let extent = extents.next().unwrap().unwrap();
    let small = kind.need("small", Kind::Byte).unwrap();
    let found: Vec<_> = extent.rows().map(|row| row.byte(&small)).collect();
    assert_eq!(found, [Some(7), None]);
    assert!(extents.next().unwrap().is_none());
}

#[test]
fn damage_is_placed_and_what_is_sound_is_salvaged() {
    let wanted = [(5, 7, -1), (6, 6, 2), (9, 9, 9)];
    let mut file = File::new(&[NUMBERS]);
    let mut starts = Vec::new();
    for row in wanted {
        starts.push(file.bytes.len());
        let rows = numbers(&[row]);
        file.add(&Made {
            name: "numbers",
            rows: &rows,
            records: 1,
            texts: &[],
            codec: 0,
            packed: rows.clone(),
        });
    }
    let mut bytes = file.end();
    bytes[starts[1] + 40] ^= 1;
    let mut extents = Extents::new(input(bytes.clone()), false).unwrap();
    assert!(extents.next().is_ok());
    let message = extents.next().err().unwrap().to_string();
    assert!(message.contains(&format!("byte {}", starts[1])) && message.contains("`salvage`"), "{message}");
    let mut extents = Extents::new(input(bytes.clone()), true).unwrap();
    let mut found = 0;
    while let Some(extent) = extents.next().unwrap() {
        found += extent.rows().count();
    }
    assert_eq!((found, extents.damaged.len()), (2, 1));
    // It makes no requests, which is told with the damage whether that is passed over or not.
    for salvage in [false, true] {
        let options = OpenOptions { salvage, ..OpenOptions::default() };
        let message = super::open(vec![input(bytes.clone())], &options).err().unwrap().to_string();
        assert!(message.contains(&format!("byte {}", starts[1])), "{message}");
        assert!(message.contains("besides, the file holds numbers"), "{message}");
    }
}

#[test]
fn a_checksum_over_all_extents_that_does_not_fit_is_noticed() {
    let mut file = File::new(&[NUMBERS]);
    let rows = numbers(&[(1, 2, 3)]);
    file.chained = 7;
    file.add(&Made { name: "numbers", rows: &rows, records: 1, texts: &[], codec: 0, packed: rows.clone() });
    let mut extents = Extents::new(input(file.end()), false).unwrap();
    while extents.next().unwrap().is_some() {}
    assert!(!extents.chained_fits);
}

/// A real file beside the project, for tests that are ignored where there is none.
fn real(name: &str, salvage: bool) -> crate::Result<Extents> {
    let path =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces/dataseries")).join(name);
    let input = Input::open(&path, &crate::input::Meter::default(), false).unwrap();
    Extents::new(input, salvage)
}

/// All values of a file as text, row by row.
fn values(mut extents: Extents) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(extent) = extents.next().unwrap() {
        for row in extent.rows() {
            let mut line = String::new();
            for field in extent.kind.fields.iter().filter(|field| !field.name.starts_with(' ')) {
                line += &match field.kind {
                    Kind::Bool => format!("{} ", row.bool(field)),
                    Kind::Byte => format!("{:?} ", row.byte(field)),
                    Kind::Int32 => format!("{:?} ", row.int(field)),
                    Kind::Int64 => format!("{:?} ", row.long(field)),
                    // The machines that wrote them rounded differently in the last place.
                    Kind::Double => format!("{:.8?} ", row.double(field)),
                    _ => format!("{:02X?} ", row.text(field)),
                };
            }
            found.push(line);
        }
    }
    found
}

#[test]
#[ignore = "needs ../shared/traces"]
fn both_byte_orders_hold_the_same_rows() {
    let little = real("complex.ds-littleend", false);
    let (little, big) = (values(little.unwrap()), values(real("complex.ds-bigend", false).unwrap()));
    assert_eq!(little.len(), 10_000);
    for (a, b) in little.iter().zip(&big) {
        assert_eq!(a, b);
    }
    assert_eq!(little.len(), big.len());
    // The first row of the reference text: F T 49 226 -285888682 null -5809765599669558022 null ...
    let first =
        "false true Some(49) Some(226) Some(-285888682) None Some(-5809765599669558022) None Some(0.52667552";
    assert!(little[0].starts_with(first), "{}", little[0]);
    assert!(
        little[0].contains("Some(102339.53") && little[0].contains("Some([32, 30, 44, 41"),
        "{}",
        little[0]
    );
}

#[test]
#[ignore = "needs ../shared/traces"]
fn bzip2_and_shared_texts() {
    let extents = real("pss5.ds-littleend", false);
    let found = values(extents.unwrap());
    assert_eq!(found.len(), 200_000);
}

#[test]
#[ignore = "needs ../shared/traces"]
fn what_recovery_leaves_is_what_salvage_finds() {
    let whole = real("recovery/original.ds", false);
    let whole = values(whole.unwrap());
    for (name, lost) in [("100-zeros-at-50K", 1), ("stomp-end", 1), ("two-extents", 2)] {
        let mut damaged = real(&format!("recovery/corrupt-{name}.ds"), false).unwrap();
        let message = loop {
            match damaged.next() {
                Ok(Some(_)) => {}
                other => break other.err().map(|e| e.to_string()),
            }
        };
        assert!(message.as_ref().is_some_and(|m| m.contains("byte ")), "{name}: {message:?}");
        let mut salvaged = real(&format!("recovery/corrupt-{name}.ds"), true).unwrap();
        while salvaged.next().unwrap().is_some() {}
        assert_eq!(salvaged.damaged.len(), lost, "{name}: {:?}", salvaged.damaged);
        let found = values(real(&format!("recovery/corrupt-{name}.ds"), true).unwrap());
        let recovered = values(real(&format!("recovery/recovered-{name}.ds"), false).unwrap());
        assert!(found == recovered, "{name}: {} rows, {} recovered", found.len(), recovered.len());
        assert_eq!(found.len() == whole.len(), name == "stomp-end");
    }
    let message = real("recovery/corrupt-stomp-beginning.ds", true).err().unwrap().to_string();
    assert!(message.contains("byte 40") && message.contains("types"), "{message}");
}

/// What has no numbers, or none of that kind, is packed by none.
#[test]
fn only_numbers_are_packed_as_numbers() {
    for kind in ["byte", "bool", "variable32", "fixedwidth\" size=\"3"] {
        let xml =
            |key: &str| format!(r#"<ExtentType name="x"><field type="{kind}" name="a" {key}/></ExtentType>"#);
        let refused = ExtentType::parse(&xml("pack_relative=\"a\"")).err().unwrap().to_string();
        assert!(refused.contains("\"a\"") && refused.contains("only numbers"), "{refused}");
        // A scale is of doubles alone.
        let scaled = ExtentType::parse(&xml("pack_scale=\"1e-6\"")).unwrap();
        let mut rows = vec![7; 2 * scaled.row];
        scaled.unpack_values(&mut rows, false);
        assert_eq!(rows, vec![7; 2 * scaled.row], "{kind}");
    }
}
