//! Numbers and fields from bytes, without UTF-8 and without floats.

use crate::chunk::MOST_BYTES;
use crate::{Error, Result};

/// Powers of ten that fit in 64 bits.
pub const POW10: [u64; 19] = {
    let mut table = [1u64; 19];
    let mut i = 1;
    while i < 19 {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// Without blanks at either end.
#[inline]
pub fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// A decimal unsigned integer; `None` when it is not one or needs more than 64 bits.
#[inline]
pub fn uint(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut value = 0u64;
    for &c in text {
        let digit = c.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Eight bytes at a position as a little-endian word; zeros beyond the end of the text.
#[inline(always)]
fn word(text: &[u8], at: usize) -> u64 {
    if let Some(bytes) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        return u64::from_le_bytes(*bytes);
    }
    let left = text.len().saturating_sub(at);
    match text.last_chunk::<8>() {
        Some(bytes) if left > 0 => u64::from_le_bytes(*bytes) >> (8 * (8 - left)),
        _ => (0..left).fold(0, |word, i| word | u64::from(text[at + i]) << (8 * i)),
    }
}

const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The number that eight digits are, the first in the lowest byte.
#[inline(always)]
fn sum(digits: u64) -> u64 {
    let tens = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let hundreds = tens.wrapping_mul(100).wrapping_add(tens >> 16) & 0x0000_ffff_0000_ffff;
    hundreds.wrapping_mul(10_000).wrapping_add(hundreds >> 32) & 0xffff_ffff
}

/// Bytes of a text that are looked at together: the first 64, and so many more that no index needs a check.
pub type Window = [u8; 136];

/// The bytes of a window that are no digits, from the lowest bit on.
#[inline(always)]
pub fn others(window: &Window) -> u64 {
    let mut others = 0;
    for (i, bytes) in window[..64].as_chunks::<16>().0.iter().enumerate() {
        others |= u64::from(others16(bytes)) << (16 * i);
    }
    others
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn others16(bytes: &[u8; 16]) -> u16 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_set1_epi8, _mm_sub_epi8,
    };
    // SAFETY: sixteen bytes are loaded from an array of as many, and every such processor has SSE2.
    unsafe {
        let values = _mm_sub_epi8(_mm_loadu_si128(bytes.as_ptr().cast()), _mm_set1_epi8(b'0' as i8));
        let digits = _mm_cmpeq_epi8(_mm_min_epu8(values, _mm_set1_epi8(9)), values);
        !_mm_movemask_epi8(digits) as u16
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn others16(bytes: &[u8; 16]) -> u16 {
    (0..16).fold(0, |others, i| others | u16::from(!bytes[i].is_ascii_digit()) << i)
}

#[inline(always)]
fn word_in(window: &Window, at: usize) -> u64 {
    let bytes = window[at % 128..].first_chunk::<8>().expect("more are behind it");
    u64::from_le_bytes(*bytes) ^ ZEROS
}

/// The number of one to eight digits that a window has at this place.
#[inline(always)]
pub fn short(window: &Window, at: usize, digits: usize) -> u64 {
    // What shifts out of 64 bits is left out of the shift's length, too.
    sum(word_in(window, at).wrapping_shl((8 * (8 - digits as i32)) as u32))
}

/// The number of one to sixteen digits; nothing branches on how many they are.
#[inline(always)]
pub fn long(window: &Window, at: usize, digits: usize) -> u64 {
    let first = sum(word_in(window, at).wrapping_shl((8 * (8 - digits as i32)) as u32));
    let last = sum(word_in(window, (at + digits).wrapping_sub(8)));
    let more = digits > 8;
    first * (1 + u64::from(more) * 99_999_999) + (last & u64::from(more).wrapping_neg())
}

/// Reads up to 19 digits from a position and moves it behind them; `None` when there are none or more.
///
/// Eight at a time and without a branch for each, as fields of varying length would mispredict it:
/// the high bit of `(d + 0x76) | d` tells a byte that is no digit `d`, and three multiplications
/// add up the digits of a word (D. Lemire, "Quickly parsing eight digits").
#[inline(always)]
pub fn digits(text: &[u8], at: &mut usize) -> Option<u64> {
    let (start, mut value) = (*at, 0u64);
    loop {
        let word = word(text, *at) ^ ZEROS;
        let other = (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080;
        let n = other.trailing_zeros() as usize / 8;
        if n == 0 {
            break;
        }
        value = value.wrapping_mul(POW10[n]).wrapping_add(sum(word << (8 * (8 - n))));
        *at += n;
        if n < 8 {
            break;
        }
    }
    // 19 digits always fit in 64 bits.
    (*at > start && *at - start <= 19).then_some(value)
}

/// A decimal number with an optional sign and fraction, times `unit`, truncated towards zero.
///
/// `decimal(b"0.0114", 1_000_000_000)` is 11,400,000. `None` when it is not a number or does not
/// fit in 63 bits.
pub fn decimal(text: &[u8], unit: u64) -> Option<i64> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let point = text.iter().position(|&c| c == b'.').unwrap_or(text.len());
    let (whole, fraction) = (&text[..point], text.get(point + 1..).unwrap_or(b""));
    if whole.is_empty() && fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { uint(whole)? };
    let fraction = &fraction[..fraction.len().min(18)];
    let part = uint(fraction).unwrap_or(0);
    let scale = POW10[fraction.len()];
    let part = match unit.checked_rem(scale) {
        Some(0) => part * (unit / scale),
        _ => (u128::from(part) * u128::from(unit) / u128::from(scale)) as u64,
    };
    let value = whole.checked_mul(unit)?.checked_add(part).and_then(|v| i64::try_from(v).ok())?;
    Some(if negative { -value } else { value })
}

/// Offset and size of a request in bytes from their units.
///
/// # Errors
/// When the request ends beyond [`MOST_BYTES`].
#[inline]
pub fn extent(offset: u64, size: u64, offset_unit: u64, size_unit: u64) -> Result<(i64, i64)> {
    let bytes = offset.checked_mul(offset_unit).zip(size.checked_mul(size_unit));
    match bytes.and_then(|(o, s)| o.checked_add(s).map(|end| (o, s, end))) {
        Some((o, s, end)) if end <= MOST_BYTES.cast_unsigned() => Ok((o.cast_signed(), s.cast_signed())),
        _ => Err(absurd(offset, size, offset_unit, size_unit)),
    }
}

#[cold]
fn absurd(offset: u64, size: u64, offset_unit: u64, size_unit: u64) -> Error {
    let times = |value: u64, unit: u64| {
        if unit == 1 { format!("{value}") } else { format!("{value} (times {unit} bytes)") }
    };
    Error::malformed(format!(
        "offset {} with size {} lies beyond any device (1 EiB)",
        times(offset, offset_unit),
        times(size, size_unit)
    ))
    .help("the record is damaged or a unit is wrong; `max_damaged` N passes over up to N such records and counts them")
}

/// The fields of a line, split at one byte.
pub struct Fields<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Fields<'a> {
    /// Splits a line.
    pub fn new(line: &'a [u8], separator: u8) -> Self {
        Fields { rest: Some(line), separator }
    }

    /// The next field where it is in quotes, without them: separators in it are of the field (RFC 4180, section 2).
    /// `None` where it is not, or no quote ends it.
    #[inline]
    pub fn quoted(&mut self) -> Option<&'a [u8]> {
        let text = trim(self.rest?);
        if text.first() != Some(&b'"') {
            return None;
        }
        let mut at = 1;
        while let Some(quote) = text[at..].iter().position(|&c| c == b'"').map(|found| at + found) {
            let rest = text[quote + 1..].trim_ascii_start();
            if rest.is_empty() || rest[0] == self.separator {
                self.rest = rest.split_first().map(|(_, rest)| rest);
                return Some(&text[1..quote]);
            }
            // Two quotes in quotes are one of the field.
            at = quote + 1 + usize::from(text.get(quote + 1) == Some(&b'"'));
        }
        None
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    /// The next field without blanks around it.
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        match rest.iter().position(|&c| c == self.separator) {
            Some(at) => {
                self.rest = Some(&rest[at + 1..]);
                Some(trim(&rest[..at]))
            }
            None => {
                self.rest = None;
                Some(trim(rest))
            }
        }
    }
}

/// Bytes as they are quoted in messages: printable, at most some thirty of them.
pub fn quote(text: &[u8]) -> String {
    let shown: String =
        text.iter().take(32).flat_map(|&c| std::ascii::escape_default(c)).map(char::from).collect();
    if text.len() > 32 { format!("\"{shown}...\"") } else { format!("\"{shown}\"") }
}

/// A message for others than whoever has the trace: what it quotes of that is left out.
pub fn without_quotes(text: &str) -> String {
    quoting(text, |_| false)
}

/// A text in which only those quotes stay that `keeps` says, which is given each as it stands, without its marks.
pub(crate) fn quoting(text: &str, keeps: impl Fn(&str) -> bool) -> String {
    let (mut told, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('"') {
        // A quote in a quote has a backslash.
        let mut escaped = false;
        let end = after.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let quote = &after[..end.unwrap_or(after.len())];
        rest = after.get(quote.len() + 1..).unwrap_or_default();
        told.extend([before, "\"", if keeps(quote) { quote } else { "..." }, "\""]);
    }
    told + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_for_others_quote_nothing() {
        let told = format!("line 7: {} is no time, and {} no op", quote(br#"se"cret\"#), quote(b"x"));
        assert_eq!(without_quotes(&told), r#"line 7: "..." is no time, and "..." no op"#);
        assert_eq!(without_quotes("none"), "none");
        assert_eq!(without_quotes(r#"an "open one"#), r#"an "...""#);
    }

    #[test]
    fn decimals() {
        assert_eq!(decimal(b"0.011413", 1_000_000_000), Some(11_413_000));
        assert_eq!(decimal(b"5", 1_000_000_000), Some(5_000_000_000));
        assert_eq!(decimal(b".5", 1000), Some(500));
        assert_eq!(decimal(b"5.", 1000), Some(5000));
        assert_eq!(decimal(b"-1.25", 100), Some(-125));
        assert_eq!(decimal(b"1.9999999999999999999999", 1), Some(1));
        for bad in [&b""[..], b".", b"-", b"1e5", b"1.2.3", b"x", b"1 2", b"99999999999999999999"] {
            assert_eq!(decimal(bad, 1_000_000_000), None, "{}", quote(bad));
        }
    }

    proptest! {
        #[test]
        fn integers_are_read_as_std_reads_them(text in "[0-9]{0,22}") {
            prop_assert_eq!(uint(text.as_bytes()), text.parse::<u64>().ok().filter(|_| text.len() <= 20));
        }

        #[test]
        fn digits_are_those_up_to_the_first_other_byte(text in "[0-9]{0,21}[^0-9]{0,3}[0-9]{0,3}", at in 0usize..4) {
            let text = text.as_bytes();
            let run = text.iter().skip(at).take_while(|c| c.is_ascii_digit()).count();
            let mut moved = at;
            let found = digits(text, &mut moved);
            prop_assert_eq!(moved - at, run);
            let expected = if run <= 19 { uint(&text[at.min(text.len())..][..run]) } else { None };
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn numbers_of_a_window_are_read_as_std_reads_them(text in "[0-9]{1,16}", at in 0usize..48, other in 0u8..=255) {
            let mut window: Window = [other; 136];
            window[at..at + text.len()].copy_from_slice(text.as_bytes());
            let value: u64 = text.parse().unwrap();
            prop_assert_eq!(long(&window, at, text.len()), value);
            if text.len() <= 8 {
                prop_assert_eq!(short(&window, at, text.len()), value);
            }
            for (i, byte) in window[..64].iter().enumerate() {
                prop_assert_eq!(others(&window) >> i & 1 == 0, byte.is_ascii_digit());
            }
        }

        #[test]
        fn nanoseconds_are_exact(s in 0u64..9_000_000_000, ns in 0u64..1_000_000_000) {
            let text = format!("{s}.{ns:09}");
            prop_assert_eq!(decimal(text.as_bytes(), 1_000_000_000), i64::try_from(s * 1_000_000_000 + ns).ok());
        }
    }
}
