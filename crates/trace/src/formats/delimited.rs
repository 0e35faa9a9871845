//! Delimited text of any layout, read by a declared column map ([`crate::columns::Columns`]).

use super::format::{Format, Known, Source, head_lines, single};
use crate::chunk::{Chunk, Ids};
use crate::columns::{Columns, Plan, Scale, When, Zero};
use crate::input::Input;
use crate::lines::{LineFormat, Lines};
use crate::options::OpenOptions;
use crate::scan::{Fields, decimal, extent, quote, trim, uint};
use crate::{Error, ErrorKind, Info, NONE, Place, Result};

/// The table's entry; it is never detected, as nothing may be guessed.
pub static FORMAT: Format = Format {
    name: "delimited",
    title: "delimited text by a column map",
    extensions: &[],
    known: Known::Name,
    header: &[],
    detect: |_, _| false,
    open,
};

/// Fields looked at of a line.
const MOST: usize = 1024;

/// Nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// Lines looked at to tell a table by its map.
const LOOK: usize = 16;

fn open(inputs: Vec<Input>, options: &OpenOptions) -> Result<Box<dyn Source>> {
    let Some(columns) = &options.columns else {
        return Err(Error::new(ErrorKind::Option, "delimited text needs a column map")
            .help("for instance `columns` time=0:us,offset=1:sector,size=2:byte,op=3 `reads` R `writes` W"));
    };
    open_as(columns, inputs, options)
}

/// Reads a table by this map.
///
/// # Errors
/// When the map is not whole, or the header does not have its columns.
pub fn open_as(columns: &Columns, inputs: Vec<Input>, options: &OpenOptions) -> Result<Box<dyn Source>> {
    let mut input = single(inputs)?;
    let needs = columns.needs_header();
    let mut header = Vec::new();
    let count = columns.lines_before();
    for _ in 0..count {
        header = input.skip_line().ok_or_else(|| {
            Error::new(ErrorKind::Truncated, "ends within the lines to skip").path(&input.path)
        })?;
    }
    let separator = columns.separator()?;
    let names = if needs { names(&header, separator) } else { Vec::new() };
    let plan = columns.plan(&names).map_err(|e| if needs { e.at(Place::Line(count)) } else { e })?;
    let zero_is_first = columns.origin != Zero::Start;
    let unix = columns.origin == Zero::Epoch;
    let (clock, rate) = match plan.time {
        When::Column(scale) => (scale.unit as i64, None),
        When::Rate(rate) => (SECOND / i64::from(rate), Some(rate)),
    };
    let object = plan.object.is_some();
    let lines = Lines::start(input, Parser { plan }, options.threads, options.max_damaged);
    Ok(Box::new(Delimited { lines, zero_is_first, unix, clock, object, rate, requests: 0 }))
}

/// The names of a header line; some begin as a comment does.
fn names(header: &[u8], separator: Option<u8>) -> Vec<String> {
    let header = header.strip_prefix(b"#").unwrap_or(header);
    split(header, separator).map(|f| String::from_utf8_lossy(f).into_owned()).collect()
}

/// Whether the first lines are of the table that the map describes; `fields` in each, 0: any number.
pub fn fits(columns: &Columns, fields: usize, head: &[u8], all: bool) -> bool {
    let mut lines = head_lines(head, all);
    let Ok(separator) = columns.separator() else { return false };
    let header = (0..columns.lines_before()).map(|_| lines.next()).last().flatten();
    let names = header.map_or_else(Vec::new, |header| names(header, separator));
    let Ok(plan) = columns.plan(&names) else { return false };
    let parser = Parser { plan };
    let (mut read, mut all) = (0, 0);
    for line in lines.take(LOOK) {
        let whole = parser.line(line, &mut Ids::default(), &mut Chunk::default()).is_ok();
        read += usize::from(whole && (fields == 0 || split(line, separator).count() == fields));
        all += 1;
    }
    // Damage at the start does not hide what a file is.
    2 * read > all
}

struct Delimited {
    lines: Lines,
    zero_is_first: bool,
    unix: bool,
    clock: i64,
    object: bool,
    /// Requests per second where the table has no times, and how many there were.
    rate: Option<u32>,
    requests: u64,
}

impl Source for Delimited {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let more = self.lines.next(chunk)?;
        if let Some(rate) = self.rate {
            for time in &mut chunk.batch.time {
                let ns = u128::from(self.requests) * SECOND as u128 / u128::from(rate);
                *time = i64::try_from(ns).unwrap_or(i64::MAX);
                self.requests += 1;
            }
        }
        Ok(more)
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = self.clock;
        info.objects = self.lines.ids.objects();
        info.actors = self.lines.actors.objects();
        if !self.object
            && let Some(object) = info.objects.first_mut()
        {
            object.name = "all".into();
        }
        if let Some(rate) = self.rate {
            info.warnings.push(format!("the table has no times: {rate} requests per second were assumed"));
        }
        if self.unix {
            info.start_unix_ns = Some(0);
        }
    }

    fn zero_is_first(&self) -> bool {
        self.zero_is_first
    }

    fn span(&self) -> Option<i64> {
        if self.rate.is_some() {
            return None;
        }
        if self.zero_is_first { self.lines.span() } else { self.lines.last_time() }
    }
}

/// The fields of a line without blanks and quotes around them.
fn split(line: &[u8], separator: Option<u8>) -> impl Iterator<Item = &[u8]> {
    let (mut by_byte, mut by_blank) = match separator {
        Some(byte) => (Some(Fields::new(line, byte)), None),
        None => (None, Some(line.split(|c| matches!(c, b' ' | b'\t')).filter(|f| !f.is_empty()))),
    };
    std::iter::from_fn(move || match (&mut by_byte, &mut by_blank) {
        (Some(fields), _) => match fields.quoted() {
            Some(field) => Some(trim(field)),
            None => fields.next(),
        },
        (_, Some(fields)) => fields.next(),
        _ => None,
    })
    .map(|field| match field {
        [b'"', inner @ .., b'"'] => trim(inner),
        field => field,
    })
}

/// Times farther from their zero than this are of no clock: 146 years, ns.
const LATEST: i64 = 1 << 62;

struct Parser {
    plan: Plan,
}

impl Parser {
    fn time(&self, text: &[u8], unit: u64) -> Result<i64> {
        let plan = &self.plan;
        let ticks = |text| i64::try_from(uint(text)?).ok()?.checked_sub(plan.epoch as i64);
        let time = match plan.epoch {
            0 => decimal(text, unit),
            _ => ticks(text).and_then(|ticks| ticks.checked_mul(unit as i64)),
        };
        let time = time.filter(|time| (-LATEST..LATEST).contains(time));
        let time = time.ok_or_else(|| not_a_number(text, "time"))?;
        if plan.from_start && time < 0 {
            let what = format!("time {} lies before the start of the trace", quote(text));
            return Err(Error::malformed(what).help("times from another zero have `origin` first or epoch"));
        }
        if plan.whole_times && whole(text, "time").is_err() {
            return Err(fraction(text));
        }
        Ok(time)
    }
}

#[cold]
fn fraction(time: &[u8]) -> Error {
    Error::malformed(format!("time {} is not a whole number of nanoseconds", quote(time))).help(
        "times of another unit are of another format: DiskSim's are in ms (`format` disksim), `columns` declares others",
    )
}

/// A whole number; a fraction of zeros is let pass.
fn whole(text: &[u8], name: &str) -> Result<u64> {
    let digits = match text.iter().position(|&c| c == b'.') {
        Some(at) if at > 0 && text[at + 1..].iter().all(|&c| c == b'0') => &text[..at],
        _ => text,
    };
    uint(digits).ok_or_else(|| not_a_number(text, name))
}

#[cold]
fn not_a_number(text: &[u8], name: &str) -> Error {
    let header = text.first().is_some_and(u8::is_ascii_alphabetic);
    let hint = if header {
        "of a header line with other names than the format's, the columns are declared by `columns`, with names or `skip` 1"
    } else {
        "check the column map; numbers are decimal and not negative"
    };
    Error::malformed(format!("{name} {} is not a number", quote(text))).help(hint)
}

impl LineFormat for Parser {
    fn line(&self, line: &[u8], ids: &mut Ids, chunk: &mut Chunk) -> Result<()> {
        let plan = &self.plan;
        let comment = !plan.comment.is_empty() && line.trim_ascii_start().starts_with(&plan.comment);
        if comment || trim(line).is_empty() {
            chunk.other += 1;
            return Ok(());
        }
        let mut fields = [b"".as_slice(); 32];
        let mut many = Vec::new();
        let fields: &[&[u8]] = if plan.most < fields.len() {
            let mut n = 0;
            for field in split(line, plan.separator).take(plan.most + 1) {
                fields[n] = field;
                n += 1;
            }
            &fields[..n]
        } else {
            many.extend(split(line, plan.separator).take(MOST));
            &many
        };
        if fields.len() <= plan.most {
            let what = format!(
                "{} has {} fields, but the map names column {}",
                quote(line),
                fields.len(),
                plan.most
            );
            return Err(Error::malformed(what)
                .help("columns count from 0; check the separator, or the line is cut short"));
        }
        if let Some(open) = fields.iter().find(|field| field.first() == Some(&b'"')) {
            let what = format!("the field {} begins with a quote, and no quote ends it", quote(open));
            return Err(Error::malformed(what).help("check the separator, or the line is cut short"));
        }
        let op = match plan.op {
            None => plan.every,
            Some(at) => match plan.values.iter().find(|(value, _)| value == fields[at]) {
                Some((_, Some(op))) => *op,
                Some((_, None)) => {
                    chunk.other += 1;
                    return Ok(());
                }
                None => {
                    return Err(Error::malformed(format!("unknown op code {}", quote(fields[at]))).help(
                        "with `columns`, say what it is by `reads`, `writes`, `flushes`, `discards` or `ignore`",
                    ));
                }
            },
        };
        let time = match plan.time {
            When::Column(Scale { at, unit }) => self.time(fields[at], unit)?,
            When::Rate(_) => 0,
        };
        let number = |scale: Option<crate::columns::Scale>, name: &str| -> Result<Option<(u64, u64)>> {
            scale.map(|s| Ok((whole(fields[s.at], name)?, s.unit))).transpose()
        };
        let (offset, size) = (number(plan.offset, "offset")?, number(plan.size, "size")?);
        let ((o, offset_unit), (s, size_unit)) = (offset.unwrap_or((0, 1)), size.unwrap_or((0, 1)));
        let (o, s) = extent(o, s, offset_unit, size_unit)?;
        let object = match plan.object {
            None => ids.number(0),
            Some(at) => match uint(fields[at])
                .filter(|_| fields[at].first() != Some(&b'0') || fields[at].len() == 1)
            {
                Some(number) => ids.number(number),
                None => ids.text(fields[at]),
            },
        };
        let latency = match plan.latency {
            // Some traces leave the field empty or negative where it is not known.
            Some(scale) if !fields[scale.at].is_empty() => {
                let value = decimal(fields[scale.at], scale.unit)
                    .ok_or_else(|| not_a_number(fields[scale.at], "latency"))?;
                if value < 0 { NONE } else { value }
            }
            _ => NONE,
        };
        chunk.push(time, op as u8, object, offset.map_or(NONE, |_| o), size.map_or(NONE, |_| s));
        chunk.batch.latency.push(latency);
        if let Some(at) = plan.actor {
            let actor = chunk.actors.text(fields[at]);
            chunk.batch.actor.push(actor);
        }
        Ok(())
    }
}
