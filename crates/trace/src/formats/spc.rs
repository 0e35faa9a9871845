//! SPC, the format of the UMass Financial and WebSearch traces (SPC Trace File Format 1.0.1).
//!
//! One request a line: unit, block (512 bytes), size in **bytes**, `r R w W`, seconds from the
//! start; then optional fields that are passed over. Lower case occurs in the real files.

use super::format::{Format, Known, Source, begins_with, single};
use crate::chunk::{Chunk, Ids};
use crate::input::Input;
use crate::lines::{LineFormat, Lines};
use crate::options::OpenOptions;
use crate::scan::{self, Fields, POW10, Window, decimal, digits, extent, quote, uint};
use crate::{Error, Info, Op, Result, wide};

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "spc",
    title: "SPC text (UMass)",
    extensions: &["spc"],
    known: Known::Content,
    header: &["asu|unit", "lba|block", "size", "opcode|op|type", "timestamp|time"],
    detect: |head, all| begins_with(head, all, |line| fast(line).is_some() || careful(line).is_ok()),
    open,
};

const SECTOR: u64 = 512;
/// Bytes that a line hardly falls below.
const USUAL: usize = 24;

const SECOND: u64 = 1_000_000_000;

fn open(inputs: Vec<Input>, options: &OpenOptions) -> Result<Box<dyn Source>> {
    let input = single(inputs)?;
    Ok(Box::new(Spc { lines: Lines::start(input, Parser, options.threads, options.max_damaged) }))
}

struct Spc {
    lines: Lines,
}

impl Source for Spc {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.lines.next(chunk)
    }

    fn info(&self, info: &mut Info) {
        info.objects = self.lines.ids.objects();
        info.clock_ns = 1000;
    }

    fn zero_is_first(&self) -> bool {
        false
    }

    fn span(&self) -> Option<i64> {
        self.lines.last_time()
    }
}

struct Row {
    unit: u64,
    block: u64,
    size: u64,
    op: Op,
    time: i64,
    repaired: bool,
}

struct Parser;

impl LineFormat for Parser {
    #[inline]
    fn line(&self, line: &[u8], ids: &mut Ids, chunk: &mut Chunk) -> Result<()> {
        let row = match fast(line) {
            Some(row) => row,
            None if line.trim_ascii().is_empty() => {
                chunk.other += 1;
                return Ok(());
            }
            None => careful(line)?,
        };
        let (offset, size) = extent(row.block, row.size, SECTOR, 1)?;
        chunk.repaired += u64::from(row.repaired);
        chunk.push(row.time, row.op as u8, ids.number(row.unit), offset, size);
        Ok(())
    }

    fn usual(&self, text: &[u8], ids: &mut Ids, chunk: &mut Chunk) -> (u64, usize) {
        usual_lines(text, ids, chunk)
    }
}

wide! {
    fn usual_lines(text: &[u8], ids: &mut Ids, chunk: &mut Chunk) -> (u64, usize) {
        let (mut lines, mut at) = (0, 0);
        chunk.reserve(text.len() / USUAL);
        while let Some(window) = text[at..].first_chunk()
            && let Some((row, length)) = usual(window)
            && let Ok((offset, size)) = extent(row.block, row.size, SECTOR, 1)
        {
            chunk.push(row.time, row.op as u8, ids.number(row.unit), offset, size);
            lines += 1;
            at += length;
        }
        (lines, at)
    }
}

/// A line of five plain fields, as nearly all are, at the start of a text, and its length.
#[inline(always)]
fn usual(window: &Window) -> Option<(Row, usize)> {
    let mut others = scan::others(window);
    let mut next = || {
        let at = others.trailing_zeros() as usize;
        others &= others.wrapping_sub(1);
        at
    };
    // Where there are fewer the last is 64.
    let (unit, block, size, op) = (next(), next(), next(), next());
    let (after, seconds, end) = (next(), next(), next());
    let byte = |at: usize| u32::from(window[at % 128]);
    let read = byte(op) | 0x20 == u32::from(b'r');
    let letter = read | (byte(op) | 0x20 == u32::from(b'w'));
    let commas = byte(unit) | byte(block) << 8 | byte(size) << 16 | byte(after) << 24;
    let ends = byte(seconds) | byte(end) << 8;
    let plain = (commas == u32::from_le_bytes(*b",,,,"))
        & (ends == u32::from(b'.') | u32::from(b'\n') << 8)
        & letter
        & (op == size + 1)
        & (after == op + 1)
        & (end < 64);
    let gap = |from: usize, to: usize| to.wrapping_sub(from).wrapping_sub(1);
    let digits = [unit, gap(unit, block), gap(block, size), gap(after, seconds), gap(seconds, end)];
    let fits = (digits[0].wrapping_sub(1) < 8)
        & (digits[1].wrapping_sub(1) < 16)
        & (digits[2].wrapping_sub(1) < 8)
        & (digits[3].wrapping_sub(1) < 8)
        & (digits[4].wrapping_sub(1) < 8);
    if !(plain & fits) {
        return None;
    }
    let time = scan::short(window, after + 1, digits[3]) * SECOND
        + scan::short(window, seconds + 1, digits[4]) * POW10[(9 - digits[4]) % 16];
    let row = Row {
        unit: scan::short(window, 0, unit),
        block: scan::long(window, unit + 1, digits[1]),
        size: scan::short(window, block + 1, digits[2]),
        op: if read { Op::Read } else { Op::Write },
        time: time as i64,
        repaired: false,
    };
    Some((row, end + 1))
}

#[inline]
fn eat(text: &[u8], at: &mut usize, byte: u8) -> Option<()> {
    let there = text.get(*at) == Some(&byte);
    *at += 1;
    there.then_some(())
}

/// The usual line without blanks; anything else is left to [`careful`].
#[inline]
fn fast(line: &[u8]) -> Option<Row> {
    let mut at = 0;
    let unit = digits(line, &mut at)?;
    eat(line, &mut at, b',')?;
    let block = digits(line, &mut at)?;
    eat(line, &mut at, b',')?;
    let size = digits(line, &mut at)?;
    eat(line, &mut at, b',')?;
    let op = match line.get(at)? {
        b'R' | b'r' => Op::Read,
        b'W' | b'w' => Op::Write,
        _ => return None,
    };
    at += 1;
    eat(line, &mut at, b',')?;
    let seconds = digits(line, &mut at)?;
    if seconds > 9_000_000_000 {
        return None;
    }
    let mut time = seconds * SECOND;
    if line.get(at) == Some(&b'.') {
        at += 1;
        let start = at;
        let fraction = digits(line, &mut at)?;
        time += match at - start {
            n @ ..=9 => fraction * POW10[9 - n],
            n => fraction / POW10[n - 9],
        };
    }
    match line.get(at) {
        None | Some(b',') => Some(Row { unit, block, size, op, time: time as i64, repaired: false }),
        Some(_) => None,
    }
}

/// Any line, with a message for what is wrong.
#[cold]
fn careful(line: &[u8]) -> Result<Row> {
    let fields: Vec<&[u8]> = Fields::new(line, b',').take(5).collect();
    let [unit, block, size, op, time] = fields[..] else {
        let what = format!("{} has {} of the 5 fields unit,block,size,op,time", quote(line), fields.len());
        return Err(Error::malformed(what)
            .help("the line is cut short or the file is not SPC; `format` names another format"));
    };
    let number = |text: &[u8], name: &str| {
        uint(text).ok_or_else(|| {
            let header = text.first().is_some_and(u8::is_ascii_alphabetic);
            let hint = if header {
                "SPC has no header line: remove it"
            } else {
                "it must be a whole number, not negative"
            };
            Error::malformed(format!("{name} {} is not a number", quote(text))).help(hint)
        })
    };
    let (unit, block, size) = (number(unit, "unit")?, number(block, "block")?, number(size, "size")?);
    let op = match op {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        _ => {
            return Err(
                Error::malformed(format!("unknown op code {}", quote(op))).help("SPC knows r, R, w and W")
            );
        }
    };
    // The specification's own example has a timestamp whose dot is a blank.
    let dotted: Vec<u8> = time.iter().map(|&c| if c == b' ' { b'.' } else { c }).collect();
    let value = decimal(&dotted, SECOND).filter(|&t| t >= 0).ok_or_else(|| {
        Error::malformed(format!("time {} is not a number of seconds from the start", quote(time)))
            .help("it must look like 12.345678")
    })?;
    Ok(Row { unit, block, size, op, time: value, repaired: dotted != time })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Digits of any number that may be in a file, and some that may not.
    fn number() -> impl Strategy<Value = String> {
        prop_oneof![8 => "[0-9]{1,9}", 1 => "[0-9]{10,20}", 1 => "[ -]?[0-9]{0,3}"]
    }

    fn line() -> impl Strategy<Value = String> {
        let op = prop_oneof![8 => "[rRwW]", 1 => "[xX,]?"];
        let end = prop_oneof![8 => Just(""), 1 => Just("\r"), 1 => Just(",7,8"), 1 => Just(" ")];
        let time = ("[0-9]{1,9}", prop_oneof![8 => r"\.[0-9]{1,9}", 1 => r"\.?[0-9]{0,12}"]);
        (number(), number(), number(), op, time, end).prop_map(|(unit, block, size, op, (s, ns), end)| {
            format!("{unit},{block},{size},{op},{s}{ns}{end}\n")
        })
    }

    proptest! {
        #[test]
        fn usual_lines_are_read_as_all_are(lines in proptest::collection::vec(line(), 1..12)) {
            // The last line of a text is never the usual way's.
            let text = lines.concat() + &"\n".repeat(200);
            let (mut ids, mut chunk) = (Ids::default(), Chunk::default());
            let (usual, bytes) = Parser.usual(text.as_bytes(), &mut ids, &mut chunk);
            let (mut one_ids, mut one) = (Ids::default(), Chunk::default());
            for line in &lines[..usual as usize] {
                let line = line.as_bytes().strip_suffix(b"\n").unwrap();
                prop_assert!(Parser.line(line, &mut one_ids, &mut one).is_ok());
            }
            prop_assert_eq!(&chunk.batch, &one.batch);
            prop_assert_eq!(bytes, lines[..usual as usize].concat().len());
            // Where it stops there is a line that is none of the usual ones.
            if let Some(line) = lines.get(usual as usize) {
                let plain = line.strip_suffix('\n').unwrap().split([',', '.']).all(|f| f.len() < 9 && !f.is_empty());
                prop_assert!(!plain || line.contains([' ', '-', '\r', 'x', 'X']) || line.matches([',', '.']).count() != 5
                    || fast(line.trim_end().as_bytes()).is_none());
            }
        }
    }
}
