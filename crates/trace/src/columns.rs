//! The declared column map of delimited text: which column is what, in which unit, which value is a
//! read and which a write. Nothing of it is guessed.

use crate::{Error, ErrorKind, Op, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Declares the columns of a delimited text table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Columns {
    /// One byte between fields, or `tab`, or `blank` for any run of blanks and tabs; `,` when empty.
    pub separator: String,
    /// Lines to pass over at the start, a header line among them.
    pub skip: u64,
    /// Lines that begin with this are passed over and counted.
    pub comment: String,
    /// What time 0 of the column is.
    pub origin: Zero,
    /// When it was submitted.
    pub time: Option<Column>,
    /// First byte.
    pub offset: Option<Column>,
    /// Bytes.
    pub size: Option<Column>,
    /// Completion minus submission.
    pub latency: Option<Column>,
    /// What was asked for; its values are named in `values`.
    pub op: Option<Column>,
    /// Device, file or handle.
    pub object: Option<Column>,
    /// Process or client.
    pub actor: Option<Column>,
    /// For every op its values in the op column; `ignore` names values that are no requests.
    pub values: BTreeMap<String, Vec<String>>,
    /// The op of every request of a table without an op column.
    pub every: Option<String>,
    /// Requests per second of a table without a time column: they are spaced evenly.
    pub rate: Option<u32>,
    /// Whether a fraction of a time's unit shows that the table is another: known of formats, not declared.
    #[serde(skip)]
    pub whole_times: bool,
    /// Columns that some of a format's tables do not have: known of formats, not declared.
    #[serde(skip)]
    pub optional: &'static [&'static str],
}

/// What time 0 of the column is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Zero {
    /// Anything: the first request is the start.
    #[default]
    First,
    /// The start of the trace.
    Start,
    /// 1970, or 1601 for the unit `filetime`; the first request is the start.
    Epoch,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its position from 0, or its name in the header line.
    pub at: At,
    /// Its unit; required for times, offsets and sizes.
    #[serde(default)]
    pub unit: String,
}

/// Position or name of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum At {
    /// Position from 0.
    Position(usize),
    /// Name in the header line.
    Name(String),
}

/// How a number becomes nanoseconds or bytes, resolved from a [`Column`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Position of the column.
    pub at: usize,
    /// Nanoseconds or bytes of one.
    pub unit: u64,
}

/// What tells the time of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// A column.
    Column(Scale),
    /// Nothing: so many come in a second.
    Rate(u32),
}

/// [`Columns`] ready for parsing.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Byte between fields; `None`: runs of blanks and tabs.
    pub separator: Option<u8>,
    /// Start of comment lines.
    pub comment: Vec<u8>,
    /// Time column, or the rate of requests where there is none.
    pub time: When,
    /// Subtracted from the time before it is scaled: the ticks from 1601 to 1970.
    pub epoch: u64,
    /// Whether times count from the start of the trace, which none lies before.
    pub from_start: bool,
    /// Whether times have no fraction.
    pub whole_times: bool,
    /// Other columns.
    pub offset: Option<Scale>,
    /// Size column.
    pub size: Option<Scale>,
    /// Latency column.
    pub latency: Option<Scale>,
    /// Op column.
    pub op: Option<usize>,
    /// Object column.
    pub object: Option<usize>,
    /// Actor column.
    pub actor: Option<usize>,
    /// Values of the op column; `None`: no request.
    pub values: Vec<(Vec<u8>, Option<Op>)>,
    /// Op where there is no column.
    pub every: Op,
    /// Columns that must be there.
    pub most: usize,
}

/// 100 ns between 1601 and 1970.
const FILETIME: u64 = 116_444_736_000_000_000;

const HELP: &str = "for instance `columns` time=0:us,offset=1:sector,size=2:byte,op=3 `reads` R `writes` W";

fn wrong(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Option, format!("the column map {}", what.into())).help(HELP)
}

/// The names of a header as a message shows them: what is no text is escaped, and not all of a long one.
fn shown(header: &[String]) -> String {
    const MOST: usize = 300;
    let escape =
        |c: char| if c == char::REPLACEMENT_CHARACTER { '?'.escape_debug() } else { c.escape_debug() };
    let mut shown: String = header.join(", ").chars().flat_map(escape).take(MOST + 1).collect();
    if let Some((cut, _)) = shown.char_indices().nth(MOST) {
        shown.truncate(cut);
        shown.push_str("...");
    }
    shown
}

fn time_unit(unit: &str, what: &str) -> Result<u64> {
    Ok(match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "filetime" | "100ns" => 100,
        "" => return Err(wrong(format!("does not say the unit of {what}"))),
        _ => {
            return Err(wrong(format!(
                "gives {what} the unit {unit:?}; times are in ns, us, ms, s, 100ns or filetime"
            )));
        }
    })
}

fn byte_unit(unit: &str, what: &str) -> Result<u64> {
    Ok(match unit {
        "byte" | "bytes" | "b" => 1,
        "sector" | "sectors" => 512,
        "kib" => 1024,
        "" => return Err(wrong(format!("does not say the unit of {what}"))),
        other => other.parse().ok().filter(|&n: &u64| (1..=1 << 30).contains(&n)).ok_or_else(|| {
            wrong(format!(
                "gives {what} the unit {other:?}; it is byte, sector (512), kib, or a number of bytes"
            ))
        })?,
    })
}

impl Columns {
    /// Whether a header line is needed to find the columns.
    pub fn needs_header(&self) -> bool {
        self.all().any(|(_, column)| matches!(column.at, At::Name(_)))
    }

    /// Lines before the first request: those to skip, and a header that is needed.
    pub fn lines_before(&self) -> u64 {
        if self.needs_header() { self.skip.max(1) } else { self.skip }
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, &Column)> {
        [
            ("time", &self.time),
            ("offset", &self.offset),
            ("size", &self.size),
            ("latency", &self.latency),
            ("op", &self.op),
            ("object", &self.object),
            ("actor", &self.actor),
        ]
        .into_iter()
        .filter_map(|(name, column)| Some((name, column.as_ref()?)))
    }

    /// The byte between fields; `None` for runs of blanks.
    ///
    /// # Errors
    /// When it is not one byte.
    pub fn separator(&self) -> Result<Option<u8>> {
        match self.separator.as_bytes() {
            [] => Ok(Some(b',')),
            b"tab" => Ok(Some(b'\t')),
            b"blank" => Ok(None),
            [b] if *b != b'\n' && *b != b'"' => Ok(Some(*b)),
            _ => Err(wrong(format!(
                "separates fields by {:?}; it must be one character, tab or blank",
                self.separator
            ))),
        }
    }

    /// Resolves positions and units; `header` are the names of the header line.
    ///
    /// # Errors
    /// When a unit or the polarity is missing or a name is not in the header.
    pub fn plan(&self, header: &[String]) -> Result<Plan> {
        let place = |column: &Column, what: &str| -> Result<usize> {
            match &column.at {
                At::Position(n) if *n < 1024 => Ok(*n),
                At::Position(n) => Err(wrong(format!("puts {what} into column {n}; there are at most 1024"))),
                At::Name(name) => {
                    let mut found = (0..header.len()).filter(|n| header[*n] == *name);
                    match (found.next(), found.next()) {
                        (Some(n), None) => Ok(n),
                        (Some(first), Some(second)) => Err(wrong(format!(
                            "puts {what} into column {name:?}, which the header has twice: use the position, \
                             {first} or {second}"
                        ))),
                        (None, _) => Err(wrong(format!(
                            "puts {what} into column {name:?}, which the header does not have: {}",
                            shown(header)
                        ))),
                    }
                }
            }
        };
        let scale = |column: &Option<Column>, what: &str, time: bool| -> Result<Option<Scale>> {
            let Some(column) = column else { return Ok(None) };
            let unit = if time { time_unit(&column.unit, what) } else { byte_unit(&column.unit, what) }?;
            Ok(Some(Scale { at: place(column, what)?, unit }))
        };
        let plain = |column: &Option<Column>, what: &str| -> Result<Option<usize>> {
            match column.as_ref().map(|c| place(c, what)) {
                Some(Err(_)) if self.optional.contains(&what) => Ok(None),
                place => place.transpose(),
            }
        };
        let time = match (scale(&self.time, "time", true)?, self.rate) {
            (Some(scale), None) => When::Column(scale),
            (None, Some(rate)) if rate > 0 => When::Rate(rate),
            (None, Some(_)) => return Err(wrong("gives a rate of 0 requests per second")),
            (Some(_), Some(_)) => return Err(wrong("names a time column, and `rate` gives times, too")),
            (None, None) => {
                return Err(wrong(
                    "names no time column; a table without one needs `rate`, requests per second",
                ));
            }
        };
        let filetime = self.time.as_ref().is_some_and(|c| c.unit == "filetime");
        let mut values: Vec<(Vec<u8>, Option<Op>)> = Vec::new();
        for (name, list) in &self.values {
            let op = match name.as_str() {
                "ignore" => None,
                name => Some(op_named(name)?),
            };
            for value in list {
                let before = values.iter().find(|(known, _)| known == value.as_bytes());
                if let Some((_, other)) = before.filter(|(_, other)| *other != op) {
                    let other = other.map_or("ignore", Op::name);
                    return Err(wrong(format!("calls the value {value:?} both {other} and {name}")));
                }
                values.push((value.as_bytes().to_vec(), op));
            }
        }
        let op = plain(&self.op, "op")?;
        let every = match (&self.every, op) {
            (Some(name), None) => op_named(name)?,
            (None, Some(_)) => Op::Read,
            (Some(_), Some(_)) => return Err(wrong("names an op column, and `every` gives the op, too")),
            (None, None) => {
                return Err(wrong("names no op column; a table without one needs `every` read or the like"));
            }
        };
        let known = |op: Op| values.iter().any(|(_, v)| *v == Some(op));
        if op.is_some() && !(known(Op::Read) && known(Op::Write)) {
            return Err(wrong("does not say which values are reads and which are writes"));
        }
        let mut plan = Plan {
            separator: self.separator()?,
            comment: self.comment.clone().into_bytes(),
            time,
            epoch: if filetime { FILETIME } else { 0 },
            from_start: self.origin == Zero::Start,
            whole_times: self.whole_times,
            offset: scale(&self.offset, "offset", false)?,
            size: scale(&self.size, "size", false)?,
            latency: scale(&self.latency, "latency", true)?,
            op,
            object: plain(&self.object, "object")?,
            actor: plain(&self.actor, "actor")?,
            values,
            every,
            most: 0,
        };
        let time = match plan.time {
            When::Column(scale) => Some(scale),
            When::Rate(_) => None,
        };
        let scales = [time, plan.offset, plan.size, plan.latency].into_iter().flatten().map(|s| s.at);
        plan.most = scales.chain([plan.op, plan.object, plan.actor].into_iter().flatten()).max().unwrap_or(0);
        Ok(plan)
    }
}

fn op_named(name: &str) -> Result<Op> {
    let found = Op::ALL.iter().copied().find(|op| op.name() == name);
    found.ok_or_else(|| wrong(format!("names an op {name:?}; docs/reference/formats/trace.md lists them")))
}
