//! nfsdump text as DataSeries has it: type `Trace::NFS::Ellard`, a row for every line.

use super::Convert;
use super::extents::{Extent, Extents, Row};
use super::types::{ExtentType, Field, Kind};
use crate::chunk::Chunk;
use crate::formats::nfs::{Line, Talk, errno, op};
use crate::{Error, Info, Result};
use std::borrow::Cow;

/// The type's name.
const TYPE: &str = "Trace::NFS::Ellard";

/// What makes requests of the rows.
pub struct Ellard {
    time: Field,
    /// Address and port of the source, then of the destination.
    from: [Field; 2],
    to: [Field; 2],
    is_call: Field,
    version: Field,
    xid: Field,
    procedure: Field,
    status: Field,
    /// What may be said of a file; versions of the type have more and more of it.
    handle: [Option<Field>; 2],
    offset: [Option<Field>; 2],
    count: Option<Field>,
    total: Option<Field>,
    length: Option<Field>,
    name: [Option<Field>; 2],
    target: Option<Field>,
    second: [Option<Field>; 2],
    leads: Option<Field>,
    stable: Option<Field>,
    /// A line that could not be understood; only the time is right then.
    garbage: Option<Field>,
    talk: Talk,
}

impl Ellard {
    /// For a file that has the type.
    ///
    /// # Errors
    /// When the type lacks a field or its times are not in microseconds.
    pub fn of(extents: &Extents) -> Result<Option<Ellard>> {
        let Some(kind) = extents.kind(TYPE) else { return Ok(None) };
        let time = kind.need("time", Kind::Int64)?;
        if !time.says.contains("microseconds") {
            return Err(Error::malformed(format!("the type {TYPE} does not say the unit of its times"))
                .help("this reader knows microseconds"));
        }
        let ends = |end: &str| -> Result<[Field; 2]> {
            let field = |what: &str| kind.need(&format!("{end}_{what}"), Kind::Int32);
            Ok([field("ip")?, field("port")?])
        };
        let text = |name: &str| perhaps(kind, name, Kind::Variable);
        let int = |name: &str| perhaps(kind, name, Kind::Int32);
        let long = |name: &str| perhaps(kind, name, Kind::Int64);
        Ok(Some(Ellard {
            time,
            from: ends("source")?,
            to: ends("dest")?,
            is_call: kind.need("is_call", Kind::Bool)?,
            version: kind.need("nfs_version", Kind::Byte)?,
            xid: kind.need("rpc_transaction_id", Kind::Int32)?,
            procedure: kind.need("rpc_function", Kind::Variable)?,
            status: kind.need("return_value", Kind::Int32)?,
            handle: [text("fh"), text("file")],
            offset: [long("off"), int("offset")],
            count: int("count"),
            total: int("tcount"),
            length: long("size"),
            name: [text("name"), text("fn")],
            target: text("fh2"),
            second: [text("name2"), text("fn2")],
            leads: text("sdata"),
            stable: perhaps(kind, "stable", Kind::Byte),
            garbage: text("garbage"),
            talk: Talk::default(),
        }))
    }

    fn row(&mut self, row: &Row<'_>, chunk: &mut Chunk) -> Result<()> {
        let is_garbage = self.garbage.as_ref().is_some_and(|field| row.text(field).is_some());
        let known = row.text(&self.procedure).filter(|_| !is_garbage).and_then(op);
        let is_call = row.bool(&self.is_call);
        chunk.other += u64::from(known.is_none() || !is_call);
        let Some(op) = known else { return Ok(()) };
        let time = row.long(&self.time).filter(|time| *time >= 0).and_then(|time| time.checked_mul(1000));
        let time = time.ok_or_else(|| Error::malformed("a message has an impossible time"))?;
        let word = |field: &Field| row.int(field).unwrap_or(0).cast_unsigned();
        let [address, port] = if is_call { &self.from } else { &self.to };
        // Addresses are names like those in the text.
        let actor = self.talk.clients.text(format!("{:x}", word(address)).as_bytes());
        let key = (actor, word(port) as u16, word(&self.xid));
        let text = |fields: &[Option<Field>]| fields.iter().flatten().find_map(|field| row.text(field));
        let number = |field: &Option<Field>| match field {
            Some(field) if field.kind == Kind::Int64 => row.long(field).map(i64::cast_unsigned),
            Some(field) => row.int(field).map(|n| u64::from(n.cast_unsigned())),
            None => None,
        };
        let line = Line {
            handle: text(&self.handle).map(Cow::Borrowed),
            offset: self.offset.iter().find_map(number),
            count: number(&self.count),
            total: number(&self.total),
            length: number(&self.length),
            name: text(&self.name),
            target: self.target.as_ref().and_then(|field| row.text(field)).map(Cow::Borrowed),
            second: text(&self.second),
            leads: self.leads.as_ref().and_then(|field| row.text(field)),
            stable: self.stable.as_ref().and_then(|field| row.byte(field)),
        };
        let status = row.int(&self.status).unwrap_or(0).cast_unsigned();
        let reply = (!is_call).then(|| errno(status));
        self.talk.line(time, key, row.byte(&self.version).unwrap_or(3), reply, op, &line)
    }
}

fn perhaps(kind: &ExtentType, name: &str, of: Kind) -> Option<Field> {
    kind.need(name, of).ok()
}

impl Convert for Ellard {
    fn take(&mut self, extent: &Extent, chunk: &mut Chunk) -> Result<()> {
        if extent.kind.name == TYPE {
            for row in extent.rows() {
                self.row(&row, chunk)?;
            }
        } else {
            chunk.other += extent.rows().count() as u64;
        }
        self.talk.check()?;
        self.talk.calls.deliver(chunk, false);
        Ok(())
    }

    fn end(&mut self, chunk: &mut Chunk) {
        self.talk.calls.deliver(chunk, true);
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = 1000;
        self.talk.info(info);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{File, Made, texts};
    use super::*;
    use crate::input::Input;
    use crate::order::append;
    use crate::{Batch, NONE, OpenOptions, Requests, from_inputs};
    use std::path::Path;

    /// Texts that are handles are told in hexadecimal.
    const HANDLES: [&str; 3] = ["fh", "fh2", "file"];

    /// A row as text, packed: in full, and without its nulls.
    fn packed(kind: &ExtentType, values: &[&str], before: &mut [i64], places: &[i32]) -> (Vec<u8>, Vec<u8>) {
        let (mut row, mut compact) = (vec![0u8; kind.row], Vec::new());
        let visible = || kind.fields.iter().enumerate().filter(|(_, field)| !field.name.starts_with(' '));
        let null = |field: &Field, value: &str| field.null.is_some() && value == "null";
        let mut numbers = vec![0i64; kind.fields.len()];
        for (((at, field), value), place) in visible().zip(values).zip(places) {
            if null(field, value) {
                let hidden = &kind.fields[field.null.unwrap()];
                row[hidden.at] |= 1 << hidden.bit;
                continue;
            }
            numbers[at] = match field.kind {
                Kind::Bool => i64::from(["UDP", "call", "SHORT_PACKET", "true"].contains(value)),
                Kind::Variable => i64::from(*place),
                _ => value.parse().unwrap(),
            };
        }
        let told = numbers.clone();
        for (((at, field), value), _) in visible().zip(values).zip(places) {
            if null(field, value) {
                continue;
            }
            let number = match field.relative() {
                None => told[at],
                Some(other) if other == at => told[at] - std::mem::replace(&mut before[at], told[at]),
                Some(other) => told[at] - told[other],
            };
            match field.kind {
                Kind::Bool => row[field.at] |= (number as u8) << field.bit,
                kind => {
                    let bytes = number.to_le_bytes();
                    row[field.at..field.at + kind.bytes()].copy_from_slice(&bytes[..kind.bytes()]);
                }
            }
        }
        let bools = kind.fields.iter().filter(|f| f.kind == Kind::Bool).map(|f| f.at + 1).max().unwrap();
        compact.extend(&row[..bools]);
        let mut order: Vec<_> = visible().zip(values).filter(|((_, f), v)| !null(f, v)).collect();
        order.sort_by_key(|((_, field), _)| field.at);
        for width in [1, 4, 8] {
            let mut of = order.iter().filter(|((_, f), _)| f.kind.bytes() == width).peekable();
            if of.peek().is_some() {
                compact.resize(compact.len().next_multiple_of(width), 0);
            }
            of.for_each(|((_, field), _)| compact.extend(&row[field.at..field.at + width]));
        }
        compact.resize(compact.len().next_multiple_of(4), 0);
        (row, compact)
    }

    /// What a program that prints such files said of one, as a file again.
    fn again(printed: &str) -> Vec<u8> {
        let at = printed.find("<ExtentType namespace").unwrap();
        let end = at + printed[at..].find("</ExtentType>").unwrap() + "</ExtentType>".len();
        let xml = &printed[at..end];
        let kind = ExtentType::parse(xml).unwrap();
        let visible: Vec<&Field> = kind.fields.iter().filter(|field| !field.name.starts_with(' ')).collect();
        let lines = printed[end..].lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
        let lines: Vec<Vec<&str>> = lines.map(|line| line.split(' ').collect()).collect();
        // The writer takes texts; the bytes of handles are letters that stand for them.
        let raw = |field: &Field, value: &str| match HANDLES.contains(&field.name.as_str()) {
            true => (0..value.len() / 2)
                .map(|i| char::from(u8::from_str_radix(&value[2 * i..2 * i + 2], 16).unwrap() & 0x7f))
                .collect(),
            false => value.to_string(),
        };
        let all: Vec<String> = (lines.iter().flat_map(|values| visible.iter().zip(values)))
            .filter(|(field, value)| field.kind == Kind::Variable && **value != "null" && !value.is_empty())
            .map(|(field, value)| raw(field, value))
            .collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let mut at = texts(&all).1.into_iter();
        let (mut rows, mut compact, mut before) = (Vec::new(), Vec::new(), vec![0; kind.fields.len()]);
        for values in &lines {
            assert_eq!(values.len(), visible.len());
            let place = |(field, value): (&&Field, &&str)| match field.kind {
                Kind::Variable if *value != "null" && !value.is_empty() => at.next().unwrap(),
                _ => 0,
            };
            let places: Vec<i32> = visible.iter().zip(values).map(place).collect();
            let (row, short) = packed(&kind, values, &mut before, &places);
            rows.extend(row);
            compact.extend(short);
        }
        let mut file = File::new(&[xml]);
        let records = lines.len();
        file.add(&Made { name: TYPE, rows: &rows, records, texts: &all, codec: 0, packed: compact });
        file.end()
    }

    fn read(name: &str, bytes: Vec<u8>) -> (Batch, Info) {
        let input = Input::from_bytes(Path::new(name), bytes).unwrap();
        // Lines of several traces one after the other.
        let options = OpenOptions { sort: true, ..OpenOptions::default() };
        let mut reader = from_inputs(vec![input], &options).unwrap();
        let (mut all, mut batch) = (Batch::default(), Batch::default());
        while reader.next(&mut batch).unwrap() {
            append(&mut all, &batch, 0..batch.len());
        }
        (all, reader.info())
    }

    #[test]
    #[ignore = "needs ../shared/traces"]
    fn rows_say_what_the_lines_say() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces/nfsdump"));
        let printed = std::fs::read_to_string(folder.join("ellard.ds.txt.ref")).unwrap();
        // Two lines were garbage to the program that made the rows, though they can be read.
        let rows = printed.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
        let garbage: Vec<bool> = rows.map(|row| row.split(' ').nth(2) == Some("0")).collect();
        let text = std::fs::read_to_string(folder.join("ellard-raw-data.txt")).unwrap();
        let lines: Vec<&str> =
            text.lines().zip(&garbage).filter(|(_, garbage)| !**garbage).map(|(line, _)| line).collect();
        let text = lines.join("\n").into_bytes();
        let ((rows, of_rows), (lines, of_lines)) = (read("a.ds", again(&printed)), read("a.nfsdump", text));
        assert_eq!((of_rows.format.as_str(), of_lines.format.as_str()), ("dataseries", "nfsdump"));
        assert_eq!((rows.len(), garbage.iter().filter(|garbage| **garbage).count()), (78, 2));
        assert_eq!(
            (&rows.time, &rows.op, &rows.offset, &rows.size, &rows.latency),
            (&lines.time, &lines.op, &lines.offset, &lines.size, &lines.latency)
        );
        assert_eq!((&rows.flags, &rows.result), (&lines.flags, &lines.result));
        assert!(rows.latency.iter().filter(|latency| **latency != NONE).count() > 60);
        let names = |info: &Info, ids: &[u32]| -> Vec<String> {
            let name = |id: &u32| info.actors.iter().find(|actor| actor.id == *id).unwrap().name.clone();
            ids.iter().map(name).collect()
        };
        assert_eq!(names(&of_rows, &rows.actor), names(&of_lines, &lines.actor));
        assert_eq!(of_rows.counts.other, of_lines.counts.other + 2);
        // The same files, whatever they are called: handles are cut to letters here.
        let same = |ids: &[u32]| ids.iter().map(|id| ids.iter().position(|x| x == id)).collect::<Vec<_>>();
        assert_eq!(same(&rows.object), same(&lines.object));
        assert_eq!(same(&rows.other), same(&lines.other));
    }
}
