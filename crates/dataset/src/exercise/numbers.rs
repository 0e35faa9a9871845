//! Files that are whole but for some numbers, with checksums that are right all the same: a fuzzer that mutates bytes finds few
//! of them.

use std::ops::Range;

/// Bytes of memory that a profile with other numbers may take.
const MEMORY: u64 = 2 << 20;
/// Bytes of a block of tar, and where its sum is.
const BLOCK: usize = 512;
const SUM: Range<usize> = 148..156;
/// Fields of a header of tar that are numbers: mode, size, type, pieces of a sparse file, its size.
const FIELDS: [Range<usize>; 13] = [
    100..108,
    124..136,
    156..157,
    386..398,
    398..410,
    410..422,
    422..434,
    434..446,
    446..458,
    458..470,
    470..482,
    482..483,
    483..495,
];

/// What is changed: place and value, four bytes each.
fn choices(input: &[u8]) -> impl Iterator<Item = (usize, [u8; 2])> {
    input.chunks_exact(4).map(|one| (usize::from(u16::from_le_bytes([one[0], one[1]])), [one[2], one[3]]))
}

/// A number in place of one.
fn value([what, power]: [u8; 2], old: u64) -> u64 {
    let bit = 1u64 << (power % 64);
    match what % 8 {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => bit,
        3 => bit - 1,
        4 => old ^ bit,
        5 => u64::MAX,
        6 => u64::from(power),
        _ => old.wrapping_mul(u64::from(power)),
    }
}

/// Puts another number in place of one of so many bytes.
fn put(bytes: &mut [u8], at: usize, width: usize, to: [u8; 2]) {
    let Some(field) = bytes.get_mut(at..at + width) else { return };
    let old = field.iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    field.copy_from_slice(&value(to, old).to_le_bytes()[..width]);
}

/// The same in a text: the number at this place or behind it.
fn put_text(text: &mut Vec<u8>, at: usize, to: [u8; 2]) {
    let numbers: Vec<Range<usize>> = text
        .chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit())
        .scan(0, |at, part| {
            let range = *at..*at + part.len();
            *at = range.end;
            Some((range, part[0].is_ascii_digit()))
        })
        .filter_map(|(range, is_number)| is_number.then_some(range))
        .collect();
    let Some(range) = numbers.get(at % numbers.len().max(1)).cloned() else { return };
    let old = std::str::from_utf8(&text[range.clone()]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    text.splice(range, value(to, old).to_string().into_bytes());
}

/// Reads series whose numbers are others, and writes them. `seeds` are whole files.
pub fn fstree_numbers(seeds: &[&[u8]], input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let seed = seeds[usize::from(*first) % seeds.len()];
    let (mut sections, mut at) = (Vec::new(), 16);
    while let Some(head) = seed.get(at..at + 24) {
        let length = head[8..16].try_into().map_or(0, u64::from_le_bytes) as usize;
        let Some(content) = seed.get(at + 24..at + 24 + length) else { break };
        sections.push((head[..8].to_vec(), content.to_vec()));
        at += 24 + length;
    }
    for (place, to) in choices(rest) {
        let count = sections.len();
        let (head, content) = &mut sections[place % count];
        let place = place / count;
        let width = match &head[..4] {
            b"meta" => {
                put_text(content, place, to);
                continue;
            }
            b"fsiz" => 8,
            b"fext" => 2,
            b"fmrk" | b"name" | b"exts" | b"cprt" | b"labl" => 1,
            // Numbers of all sizes, anywhere.
            b"priv" => [2, 4, 8][usize::from(to[0] >> 3) % 3],
            _ => 4,
        };
        let step = if &head[..4] == b"priv" { 1 } else { width };
        let places = (content.len() + step).saturating_sub(width) / step;
        put(content, place % places.max(1) * step, width, to);
    }
    let mut bytes = seed[..16].to_vec();
    for (head, content) in sections {
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&content);
    }
    let _ = super::fstree(&bytes);
}

/// Reads profiles whose numbers are others, and makes what they say where that takes little memory.
pub fn profile_numbers(seeds: &[&[u8]], input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let mut json = seeds[usize::from(*first) % seeds.len()].to_vec();
    for (place, to) in choices(rest) {
        put_text(&mut json, place, to);
    }
    let _ = super::profile_within(&json, Some(MEMORY));
}

/// Reads hash files whose numbers are others.
pub fn hash_file_numbers(seeds: &[&[u8]], input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let mut bytes = seeds[usize::from(*first) % seeds.len()].to_vec();
    // Not within the zeros behind texts.
    let places: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[at.saturating_sub(8)..].iter().take(17).any(|byte| *byte != 0))
        .collect();
    for (place, to) in choices(rest) {
        put(&mut bytes, places[place % places.len()], 1 << (to[0] >> 6), to);
    }
    let _ = super::hash_file(&bytes);
}

/// Reads archives whose numbers are others.
pub fn tar_numbers(seeds: &[&[u8]], input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let mut bytes = seeds[usize::from(*first) % seeds.len()].to_vec();
    let blocks: Vec<usize> = (0..bytes.len() / BLOCK)
        .map(|block| block * BLOCK)
        .filter(|at| loadstone_archive::is_head(&bytes[*at..*at + BLOCK]) && bytes[*at] != 0)
        .collect();
    for (place, to) in choices(rest) {
        let Some(at) = blocks.get(place % blocks.len().max(1)) else { return };
        let field = FIELDS[place / blocks.len() % FIELDS.len()].clone();
        let field = &mut bytes[at + field.start..at + field.end];
        let text = std::str::from_utf8(field).unwrap_or_default().trim_matches(['\0', ' ']);
        let new = value(to, u64::from_str_radix(text, 8).unwrap_or(0));
        let octal = format!("{new:0width$o}", width = field.len() - 1);
        if field.len() == 1 {
            field[0] = new as u8;
        } else if octal.len() < field.len() {
            field[..octal.len()].copy_from_slice(octal.as_bytes());
        } else {
            field.fill(0);
            let end = field.len();
            field[end - 7..].copy_from_slice(&new.to_be_bytes()[1..]);
            field[0] |= 0x80;
            if let Some(high) = end.checked_sub(8).filter(|high| *high > 0) {
                field[high] = new.to_be_bytes()[0];
            }
        }
    }
    for at in blocks {
        let block = &mut bytes[at..at + BLOCK];
        block[SUM].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[SUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    let _ = super::tar(&bytes);
}
