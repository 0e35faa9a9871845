//! Files of which all that guards them is right, whatever is in them: checksums, lengths and marks are computed.

use crate::parquet::{KEY, SCHEMA};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// The format that the first byte chooses, and a file of it made of the others.
pub fn made(bytes: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    let (&kind, bytes) = bytes.split_first()?;
    match kind {
        b'd' => {
            let mut bytes = bytes.to_vec();
            crate::formats::dataseries::mend(&mut bytes);
            Some(("dataseries", bytes))
        }
        b'b' => Some(("blktrace", blktrace(bytes))),
        b'n' => Some(("pcap", pcap(bytes))),
        b'p' => Some(("parquet", parquet(bytes)?)),
        _ => None,
    }
}

/// Records of 48 bytes with their magic, and with no more behind them than there is.
fn blktrace(bytes: &[u8]) -> Vec<u8> {
    let (mut bytes, mut at) = (bytes.to_vec(), 0);
    while at + 48 <= bytes.len() {
        bytes[at..at + 4].copy_from_slice(&[7, 0x74, 0x61, 0x65]);
        (bytes[at + 46], bytes[at + 47]) = (bytes[at + 46] & 0x1f, 0);
        at += 48 + usize::from(bytes[at + 46]);
    }
    bytes.truncate(at);
    bytes
}

/// Packets between a client and a server, each from six bytes: milliseconds since the one before, flags (to the client, SYN,
/// FIN, ACK, UDP, cut), a step of the number, one of what is acknowledged, and the length of what follows in two.
fn pcap(mut bytes: &[u8]) -> Vec<u8> {
    let mut file =
        [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0; 8], &[0xff, 0xff, 0, 0, 1, 0, 0, 0]].concat();
    let (mut time, mut next) = (1_700_000_000_000u64, [1000u32, 5000]);
    while let Some((&[step, flags, ahead, behind, high, low], rest)) = bytes.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
        let (data, rest) = rest.split_at(length);
        bytes = rest;
        time += u64::from(step);
        let of = usize::from(flags & 1);
        let number = next[of].wrapping_add_signed(i32::from(ahead.cast_signed()) * 100);
        let acknowledged = next[1 - of].wrapping_add_signed(i32::from(behind.cast_signed()) * 100);
        let (ends, udp) = ([[10, 0, 0, 1, 3, 0xe7], [10, 0, 0, 2, 8, 1]], flags & 16 != 0);
        let (from, to) = (ends[of], ends[1 - of]);
        let mut transport = [&from[4..], &to[4..]].concat();
        if udp {
            transport.extend((8 + length as u16).to_be_bytes());
            transport.extend([0, 0]);
        } else {
            transport.extend(number.to_be_bytes());
            transport.extend(acknowledged.to_be_bytes());
            transport.extend([0x50, flags & 2 | flags >> 2 & 1 | (flags & 8) << 1, 0xff, 0xff, 0, 0, 0, 0]);
            next[of] = number.wrapping_add(length as u32).wrapping_add(u32::from(flags >> 1 & 1));
        }
        let total = (20 + transport.len() + length) as u16;
        let mut ip = [0x45, 0, 0, 0, 0, 1, 0, 0, 64, if udp { 17 } else { 6 }, 0, 0].to_vec();
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        ip.extend(from[..4].iter().chain(&to[..4]));
        let frame = [&[2; 12][..], &[8, 0], &ip, &transport, data].concat();
        let kept = if flags & 32 != 0 { frame.len().min(96) } else { frame.len() };
        for number in [time / 1000, time % 1000 * 1000, kept as u64, frame.len() as u64] {
            file.extend((number as u32).to_le_bytes());
        }
        file.extend(&frame[..kept]);
    }
    file
}

/// Metadata up to a zero byte, then rows of the eight columns as numbers of 7 bits to a byte, the least significant first.
fn parquet(bytes: &[u8]) -> Option<Vec<u8>> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let metadata = KeyValue::new(KEY.into(), String::from_utf8_lossy(&bytes[..end]).into_owned());
    let (mut columns, mut number, mut shift, mut at) = (vec![Vec::new(); 8], 0u64, 0, 0);
    for &byte in bytes.get(end + 1..).unwrap_or_default() {
        number |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 || shift > 56 {
            columns[at % 8].push(number.cast_signed());
            (at, number, shift) = (at + 1, 0, 0);
        }
    }
    let rows = columns[7].len();
    columns.iter_mut().for_each(|column| column.truncate(rows));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![metadata])).build();
    let schema = parse_message_type(SCHEMA).ok()?;
    let mut writer = SerializedFileWriter::new(Vec::new(), schema.into(), properties.into()).ok()?;
    let mut group = writer.next_row_group().ok()?;
    for (number, values) in columns.iter().enumerate() {
        let mut column = group.next_column().ok()??;
        match number {
            0 => column.typed::<Int64Type>().write_batch(values, None, None),
            3..=5 => {
                let levels: Vec<i16> = values.iter().map(|value| i16::from(*value != 0)).collect();
                let values: Vec<i64> = values.iter().filter(|value| **value != 0).map(|v| v - 1).collect();
                column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)
            }
            _ => {
                let values: Vec<i32> = values.iter().map(|value| *value as i32).collect();
                column.typed::<Int32Type>().write_batch(&values, None, None)
            }
        }
        .ok()?;
        column.close().ok()?;
    }
    group.close().ok()?;
    writer.into_inner().ok()
}
