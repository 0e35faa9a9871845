//! A header: one block of fields of fixed places.

/// Bytes of a block.
pub const BLOCK: usize = 512;
/// Where the sum of a header is.
const SUM: std::ops::Range<usize> = 148..156;

/// Fields of a header.
pub struct Head {
    pub path: Vec<u8>,
    pub link: Vec<u8>,
    pub size: u64,
    pub mode: u64,
}

impl Head {
    /// Those of a block, or what is wrong with it.
    pub fn new(block: &[u8; BLOCK]) -> Result<Head, String> {
        if !has_sum(block) {
            return Err("no header of tar: its checksum differs".into());
        }
        let mut path = text(&block[..100]).to_vec();
        // Of GNU's headers this place is another field's.
        let prefix = text(&block[345..500]);
        if &block[257..263] == b"ustar\0" && !prefix.is_empty() {
            path = [prefix, b"/", &path].concat();
        }
        let (size, mode) = (number(&block[124..136])?, number(&block[100..108]).unwrap_or(0o644));
        Ok(Head { path, link: text(&block[157..257]).to_vec(), size, mode })
    }
}

/// Whether a block is a header of tar, or ends an archive that holds nothing.
pub fn is_head(block: &[u8]) -> bool {
    block.first_chunk::<BLOCK>().is_some_and(|block| is_blank(block) || has_sum(block))
}

pub fn is_blank(block: &[u8; BLOCK]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

/// Whether the sum is that of a header whose own field is blank; some old programs took bytes for signed.
fn has_sum(block: &[u8; BLOCK]) -> bool {
    let (field, blank) = (&block[SUM], 8 * i64::from(b' '));
    let sum = |of: fn(u8) -> i64| {
        block.iter().map(|b| of(*b)).sum::<i64>() - field.iter().map(|b| of(*b)).sum::<i64>()
    };
    let digits: String = field.iter().map(|b| char::from(*b)).filter(char::is_ascii_digit).collect();
    let told = i64::from_str_radix(&digits, 8);
    told.is_ok_and(|told| [sum(i64::from) + blank, sum(|b| i64::from(b as i8)) + blank].contains(&told))
}

/// What a field has before its first zero byte.
pub fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    &field[..end]
}

/// A number in octal digits, or in binary where the first bit is set.
///
/// # Errors
/// When the field holds no number.
pub fn number(field: &[u8]) -> Result<u64, String> {
    let wrong = || format!("a number \"{}\" in a header", field.escape_ascii());
    if field[0] & 0x80 == 0 {
        let digits = std::str::from_utf8(text(field)).map_err(|_| wrong())?.trim();
        return if digits.is_empty() { Ok(0) } else { u64::from_str_radix(digits, 8).map_err(|_| wrong()) };
    }
    let mut all = 0u64;
    for (i, byte) in field.iter().enumerate() {
        let byte = u64::from(if i == 0 { byte & 0x7f } else { *byte });
        all = all.checked_mul(256).ok_or_else(wrong)? | byte;
    }
    Ok(all)
}
