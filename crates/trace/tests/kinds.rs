//! What kind of error a trace gives, which callers may choose by.

use loadstone_trace::input::Input;
use loadstone_trace::{Batch, ErrorKind, OpenOptions, Place, Requests, from_inputs, open};
use std::path::Path;

fn error(bytes: &[u8], options: &OpenOptions) -> loadstone_trace::Error {
    let read = || -> loadstone_trace::Result<()> {
        let mut reader = from_inputs(vec![Input::from_bytes(Path::new("input"), bytes.to_vec())?], options)?;
        let mut batch = Batch::default();
        while reader.next(&mut batch)? {}
        Ok(())
    };
    read().expect_err("it cannot be read")
}

fn of(format: &str) -> OpenOptions {
    OpenOptions { format: Some(format.into()), ..OpenOptions::default() }
}

/// A record of blktrace, little endian: a write of 4 KiB that is queued.
fn record(number: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(48);
    bytes.extend(0x6561_7407_u32.to_le_bytes());
    bytes.extend((number + 1).to_le_bytes());
    bytes.extend((u64::from(number) * 1000).to_le_bytes());
    bytes.extend((u64::from(number) * 8).to_le_bytes());
    bytes.extend(4096_u32.to_le_bytes());
    bytes.extend((1_u32 | 1 << 17).to_le_bytes());
    bytes.extend([0; 16]);
    bytes
}

#[test]
fn each_kind_is_told() {
    let plain = OpenOptions::default();
    let back = b"0,1,512,R,5\n0,1,512,R,6\n0,1,512,R,2\n";
    let cases: [(&[u8], &OpenOptions, ErrorKind, Place); 8] = [
        (b"", &plain, ErrorKind::Empty, Place::Whole),
        (b"nothing of any format\n", &plain, ErrorKind::Unrecognised, Place::Whole),
        (back, &of("nonesuch"), ErrorKind::Option, Place::Whole),
        (b"0,1,512,R,0\n0,x,512,R,1\n", &of("spc"), ErrorKind::Malformed, Place::Line(2)),
        (back, &of("spc"), ErrorKind::OutOfOrder, Place::Line(3)),
        (&record(0)[..40], &of("blktrace"), ErrorKind::Truncated, Place::Byte(0)),
        (b"fio version 9 iolog\n", &of("iolog"), ErrorKind::Unsupported, Place::Line(1)),
        (&vec![b'1'; 2 << 20], &of("spc"), ErrorKind::TooLarge, Place::Whole),
    ];
    for (bytes, options, kind, place) in cases {
        let error = error(bytes, options);
        assert_eq!((error.kind(), error.place()), (kind, place), "{error}");
    }
    let missing = open(&["nonesuch".into()], &plain).err().expect("there is none");
    assert_eq!(missing.kind(), ErrorKind::Io);
    assert_eq!(missing.cause().map(std::io::Error::kind), Some(std::io::ErrorKind::NotFound));
    assert_eq!(missing.file(), Some(Path::new("nonesuch")));
}
