//! NFS messages: types `common`, `attr-ops` and `read-write`, which are joined by the numbers of records.

use super::Convert;
use super::extents::{Extent, Extents};
use super::types::{ExtentType, Field, Kind};
use crate::chunk::{Chunk, Ids, Key};
use crate::formats::nfs::calls::{Call, Calls};
use crate::formats::nfs::names::{Asked, Change, Entry, Names, Told};
use crate::formats::nfs::{errno, op};
use crate::scan::extent as placed;
use crate::{Error, Info, NONE, Op, Result};
use rustc_hash::FxHashMap;

/// Most details that are kept for calls to come.
const MOST: usize = 1 << 20;

/// The three types, by what their names end in.
const TYPES: [&str; 3] = ["common", "attr-ops", "read-write"];

/// Which of the types one is: of namespaces and versions there are several.
fn which(name: &str) -> Option<usize> {
    let own = name.strip_prefix("Trace::NFS::").or_else(|| name.strip_prefix("NFS trace: "))?;
    TYPES.iter().position(|kind| *kind == own)
}

/// Fields of messages.
struct Common {
    at: Field,
    /// Nanoseconds of a unit of time, as a fraction.
    unit: (i128, i128),
    source: Field,
    source_port: Field,
    dest: Field,
    dest_port: Field,
    is_request: Field,
    xid: Field,
    operation: Field,
    status: Field,
    record: Field,
}

/// Fields that tell the file and place of a call.
struct Detail {
    request: Field,
    handle: Field,
    /// Directory and name by which it was looked up.
    entry: Option<(Field, Field)>,
    place: Option<(Field, Field)>,
}

/// What is known of a call: its handle, the directory and name of a lookup, offset and size.
struct Known {
    node: u32,
    entry: Option<Entry>,
    place: Option<(i64, i64)>,
}

/// What makes requests of NFS messages.
pub struct Nfs {
    common: Common,
    details: [Option<Detail>; 2],
    calls: Calls,
    /// Calls that wait for their details, by record, and of which type those are.
    wanted: FxHashMap<i64, (u64, usize)>,
    /// Details whose calls have not come yet, by type.
    early: [FxHashMap<i64, Known>; 2],
    /// Details that were dropped, as their calls did not come.
    dropped: u64,
    names: Names,
    clients: Ids,
}

/// Name of a field that is spelled with hyphens or underscores.
fn need(kind: &ExtentType, name: &str, of: Kind) -> Result<Field> {
    kind.need(name, of).or_else(|e| kind.need(&name.replace('-', "_"), of).map_err(|_| e))
}

impl Nfs {
    /// For a file that has the types.
    ///
    /// # Errors
    /// When a type lacks a field or does not tell its unit.
    pub fn of(extents: &Extents) -> Result<Option<Nfs>> {
        let mut kinds = [None, None, None];
        for name in extents.names() {
            if let (Some(which), Some(kind)) = (which(name), extents.kind(name)) {
                kinds[which] = Some(kind.clone());
            }
        }
        let [Some(common), attributes, data] = kinds else { return Ok(None) };
        let at = need(&common, "packet-at", Kind::Int64)?;
        let unit = match &at.says {
            says if says.contains("nanosecond") => (1, 1),
            says if says.contains("2^-32") => (1_000_000_000, 1 << 32),
            _ => {
                return Err(Error::malformed("the file's types do not say the unit of packet-at")
                    .help("this reader knows nanoseconds and 2^-32 seconds"));
            }
        };
        let attributes = attributes.map(|kind| -> Result<Detail> {
            Ok(Detail {
                request: need(&kind, "request-id", Kind::Int64)?,
                handle: need(&kind, "filehandle", Kind::Variable)?,
                entry: need(&kind, "lookup-dir-filehandle", Kind::Variable)
                    .and_then(|directory| Ok((directory, need(&kind, "filename", Kind::Variable)?)))
                    .ok(),
                place: None,
            })
        });
        let data = data.map(|kind| -> Result<Detail> {
            Ok(Detail {
                request: need(&kind, "request-id", Kind::Int64)?,
                handle: need(&kind, "filehandle", Kind::Variable)?,
                entry: None,
                place: Some((need(&kind, "offset", Kind::Int64)?, need(&kind, "bytes", Kind::Int32)?)),
            })
        });
        let field = |name: &str, kind| need(&common, name, kind);
        Ok(Some(Nfs {
            common: Common {
                unit,
                source: field("source", Kind::Int32)?,
                source_port: field("source-port", Kind::Int32)?,
                dest: field("dest", Kind::Int32)?,
                dest_port: field("dest-port", Kind::Int32)?,
                is_request: field("is-request", Kind::Bool)?,
                xid: field("transaction-id", Kind::Int32)?,
                operation: field("operation", Kind::Variable)?,
                status: field("rpc-status", Kind::Int32)?,
                record: field("record-id", Kind::Int64)?,
                at,
            },
            details: [attributes.transpose()?, data.transpose()?],
            calls: Calls::default(),
            wanted: FxHashMap::default(),
            early: Default::default(),
            dropped: 0,
            names: Names::default(),
            clients: Ids::default(),
        }))
    }

    fn messages(&mut self, extent: &Extent, chunk: &mut Chunk) -> Result<()> {
        for row in extent.rows() {
            let c = &self.common;
            let number = |field: &Field| row.int(field).unwrap_or(0).cast_unsigned();
            let Some(op) = row.text(&c.operation).and_then(op) else {
                chunk.other += 1;
                continue;
            };
            let time = i128::from(row.long(&c.at).unwrap_or(-1)) * c.unit.0 / c.unit.1;
            let time = i64::try_from(time).ok().filter(|time| *time >= 0);
            let time = time.ok_or_else(|| Error::malformed("a message has an impossible time"))?;
            let record = row.long(&c.record).unwrap_or(0);
            let xid = number(&c.xid);
            let (client, port) =
                if row.bool(&c.is_request) { (&c.source, &c.source_port) } else { (&c.dest, &c.dest_port) };
            let actor = self.clients.number(u64::from(number(client)));
            let key = (actor, number(port) as u16, xid);
            if !row.bool(&c.is_request) {
                chunk.other += 1;
                let result = errno(row.int(&c.status).unwrap_or(0).cast_unsigned());
                if let Some(call) = self.calls.reply(key, time, result) {
                    moved(call);
                }
                continue;
            }
            let (name, second, leads) = (None, None, None);
            let asked = Asked { op, handle: b"", name, second, leads, offset: NONE, size: NONE, flags: 0 };
            let mut call = Call::new(time, 3, actor, &asked);
            // Reads and writes have attributes too, which do not tell their place.
            let which = usize::from(matches!(op, Op::Read | Op::Write));
            self.early[1 - which].remove(&record);
            let known = self.early[which].remove(&record);
            let waits = known.is_none();
            match known {
                Some(known) => apply(&mut call, &mut self.names, known),
                None => call.object = self.names.unknown(),
            }
            // Calls that fail have no details and are handed on when patience ends.
            if let Some(number) = self.calls.call(key, call, u8::from(waits))
                && waits
            {
                self.wanted.insert(record, (number, which));
            }
        }
        Ok(())
    }

    fn details(&mut self, extent: &Extent, which: usize) -> Result<()> {
        let Some(detail) = &self.details[which] else { return Ok(()) };
        for row in extent.rows() {
            let record = row.long(&detail.request).unwrap_or(0);
            let handle = row.text(&detail.handle).unwrap_or_default();
            let fields = detail.entry.as_ref();
            let entry = fields.and_then(|(directory, name)| row.text(directory).zip(row.text(name)));
            let entry = entry.filter(|(directory, _)| !directory.is_empty());
            let entry = entry.and_then(|(directory, name)| {
                let directory = self.names.node(directory);
                self.names.entry(directory, name)
            });
            if let Some(entry) = &entry {
                let told = Told { handle: Some(handle), ..Told::default() };
                self.names.answer(Change::Found(entry.clone()), &told);
            }
            let place = match &detail.place {
                None => None,
                Some((offset, bytes)) => {
                    let offset = u64::try_from(row.long(offset).unwrap_or(0)).unwrap_or(u64::MAX);
                    let bytes = u64::from(row.int(bytes).unwrap_or(0).cast_unsigned());
                    Some(placed(offset, bytes, 1, 1)?)
                }
            };
            let known = Known { node: self.names.node(handle), entry, place };
            match self.wanted.get(&record) {
                Some(&(number, wanted)) if wanted == which => {
                    self.wanted.remove(&record);
                    if let Some(call) = self.calls.more(number) {
                        apply(call, &mut self.names, known);
                    }
                }
                Some(_) => {}
                None => {
                    let early = &mut self.early[which];
                    if early.len() == MOST {
                        self.dropped += MOST as u64;
                        early.clear();
                    }
                    early.insert(record, known);
                }
            }
        }
        Ok(())
    }
}

/// Adds to a call what its details say.
fn apply(call: &mut Call, names: &mut Names, known: Known) {
    let on_name = matches!(call.op, Op::Lookup | Op::Create | Op::Mkdir | Op::Symlink | Op::Mknod);
    call.object = match known.entry {
        Some(entry) if on_name => names.object_at(&entry),
        _ => names.object(known.node),
    };
    if let Some((offset, size)) = known.place {
        (call.offset, call.size) = (offset, size);
    }
    moved(call);
}

/// A read or write that was granted moved as many bytes as its details say.
fn moved(call: &mut Call) {
    if matches!(call.op, Op::Read | Op::Write)
        && call.latency != NONE
        && (call.result >= 0 || call.result == NONE)
    {
        call.result = call.size;
    }
}

impl Convert for Nfs {
    fn take(&mut self, extent: &Extent, chunk: &mut Chunk) -> Result<()> {
        match which(&extent.kind.name) {
            Some(0) => self.messages(extent, chunk)?,
            Some(which) => self.details(extent, which - 1)?,
            None => chunk.other += extent.rows().count() as u64,
        }
        self.names.check()?;
        self.clients.check()?;
        self.calls.deliver(chunk, false);
        let base = self.calls.base();
        if self.wanted.len() > MOST {
            self.wanted.retain(|_, (number, _)| *number >= base);
        }
        Ok(())
    }

    fn end(&mut self, chunk: &mut Chunk) {
        self.calls.deliver(chunk, true);
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = 1;
        info.layer = "nfs".into();
        info.start_unix_ns = Some(0);
        info.objects = self.names.objects();
        info.actors = self.clients.objects();
        for (actor, key) in info.actors.iter_mut().zip(self.clients.keys()) {
            if let Key::Number(address) = key {
                actor.name = std::net::Ipv4Addr::from(*address as u32).to_string();
            }
        }
        if self.dropped > 0 {
            info.warnings
                .push(format!("places of {} calls were dropped, as the calls did not come", self.dropped));
        }
        self.calls.info(info);
    }
}
