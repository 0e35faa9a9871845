//! Features: functions from a batch of requests, and their own state, to one number per request.
//!
//! A feature is one constant; adding one touches its file and [`TABLE`]. Numbers that do not
//! exist for a request (the offset of a flush) are [`NONE`]. Definitions follow the feature
//! functions of the MDH thesis, section 3.2.

pub(crate) mod columns;
pub(crate) mod files;
pub(crate) mod node;
pub(crate) mod offsets;
mod previous;
pub(crate) mod recency;
pub(crate) mod recent;
pub(crate) mod times;
mod user;

use crate::error::{Error, ErrorKind, Result};
use crate::feature::files::catalog::Catalog;
use crate::feature::recency::distances::Distances;
use loadstone_trace::{Batch, NO_OBJECT, NONE};
pub(crate) use offsets::PAGE;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
pub use user::{PREFIX, Start, register};

/// A feature at work: fills `out` with one number per request of `batch`, in the order of the stream.
pub trait Feature: Send {
    /// Replaces the content of `out`.
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>);

    /// The stack distances of all blocks so far, of a feature that looks at them.
    fn distances(&self) -> Option<Distances> {
        None
    }
}

/// A feature that takes one request after the other.
struct Each<F>(F);

impl<F: FnMut(&Rows<'_>, usize) -> i64 + Send> Feature for Each<F> {
    fn values(&mut self, rows: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend((0..rows.len()).map(|i| (self.0)(rows, i)));
    }
}

/// A feature of the numbers that `number` gives for the request at a position.
fn each(number: impl FnMut(&Rows<'_>, usize) -> i64 + Send + 'static) -> Box<dyn Feature> {
    Box::new(Each(number))
}

/// Neighbouring requests of a batch, column by column; few enough that all a model computes of them stays
/// in the cache.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Nanoseconds.
    pub time: &'a [i64],
    /// Frozen op codes.
    pub op: &'a [u8],
    /// Dense ids.
    pub object: &'a [u32],
    /// Bytes; [`loadstone_trace::NONE`] where there is none.
    pub offset: &'a [i64],
    /// Bytes; [`loadstone_trace::NONE`] where there is none.
    pub size: &'a [i64],
    /// Nanoseconds; [`loadstone_trace::NONE`] where not known.
    pub latency: &'a [i64],
    /// Bits of [`loadstone_trace::flag`].
    pub flags: &'a [u32],
    /// Dense ids.
    pub actor: &'a [u32],
    /// Rows back, 0 for none; empty where the stream does not say.
    pub after: &'a [u32],
    /// Nanoseconds; [`loadstone_trace::NONE`] for none; empty where the stream does not say.
    pub think: &'a [i64],
    /// Bytes or a negative errno, or [`loadstone_trace::NONE`]; empty where the source has none.
    pub result: &'a [i64],
    /// Dense ids of second objects, or [`NO_OBJECT`]; empty where the source has none.
    pub other: &'a [u32],
}

impl<'a> Rows<'a> {
    /// These rows of a batch.
    pub fn of(batch: &'a Batch, rows: Range<usize>) -> Rows<'a> {
        Rows {
            time: &batch.time[rows.clone()],
            op: &batch.op[rows.clone()],
            object: &batch.object[rows.clone()],
            offset: &batch.offset[rows.clone()],
            size: &batch.size[rows.clone()],
            latency: &batch.latency[rows.clone()],
            flags: &batch.flags[rows.clone()],
            actor: &batch.actor[rows.clone()],
            after: batch.after.get(rows.clone()).unwrap_or_default(),
            think: batch.think.get(rows.clone()).unwrap_or_default(),
            result: batch.result.get(rows.clone()).unwrap_or_default(),
            other: batch.other.get(rows).unwrap_or_default(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }
}

/// The second object of a request.
fn second(rows: &Rows<'_>, i: usize) -> Option<u32> {
    rows.other.get(i).copied().filter(|other| *other != NO_OBJECT)
}

/// Which part of a generated request a feature sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// What is asked for.
    Op,
    /// What is touched.
    Object,
    /// Bytes touched.
    Size,
    /// The offset, relative to the end of the previous request on the object.
    Jump,
    /// The offset, by its region of the object.
    Region,
    /// The time since the previous request.
    Gap,
    /// The offset, by its remainder in a page.
    Align,
    /// The offset, by how long ago it was used.
    Reuse,
    /// The offset, by how many blocks were used since its last block was.
    Distance,
    /// The offset, by how long ago the request was from which it goes on.
    Resume,
    /// Who asks.
    Actor,
    /// Which request of its actor it waits for.
    After,
    /// The time since that was answered.
    Think,
    /// What is touched, by how many others were used since.
    File,
    /// What is touched, by what happened to it.
    State,
    /// The directory of what is new.
    Near,
    /// How far what is new reaches.
    Length,
    /// What else is touched.
    Other,
    /// What it comes to.
    Result,
    /// Nothing: it follows from the others, how long a run is.
    Run,
    /// Nothing by itself: it follows from the others.
    Derived,
    /// Nothing: only a trace has it, not what is drawn.
    Seen,
}

impl Field {
    /// What a model draws only if asked to: who waits for what, for how long.
    pub const WAITS: [Field; 3] = [Field::Actor, Field::After, Field::Think];
}

/// What is known of a feature without running it.
pub struct Kind {
    /// Name as typed and stored.
    pub name: &'static str,
    /// What it sets in a generated request.
    pub field: Field,
    /// Unit of its numbers.
    pub unit: &'static str,
    /// Whether it can be negative.
    pub signed: bool,
    /// Bucket rule when none is asked for, as [`crate::RuleSpec`] reads it.
    pub rule: &'static str,
    make: fn(&Context) -> Box<dyn Feature>,
}

impl Kind {
    /// One whose numbers are not negative.
    const fn new(
        name: &'static str,
        field: Field,
        unit: &'static str,
        rule: &'static str,
        make: fn(&Context) -> Box<dyn Feature>,
    ) -> Kind {
        Kind { name, field, unit, signed: false, rule, make }
    }

    /// The same with numbers that may be.
    const fn signed(self) -> Kind {
        Kind { signed: true, ..self }
    }

    /// Whether it is of files, whose names and results are drawn with them.
    pub fn is_of_files(&self) -> bool {
        use Field::{File, Length, Near, Other, Result, State};
        matches!(self.field, File | Length | Near | Other | Result | State)
    }

    /// Whether a number of it can be drawn and sets something of a request.
    pub fn is_drawn(&self) -> bool {
        !matches!(self.field, Field::Run | Field::Derived | Field::Seen)
    }
}

/// What features may need to know of the stream as a whole.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// log2 of the width of a region in bytes, by object.
    pub region_shift: Arc<Vec<u8>>,
    /// The same for objects that were not seen when regions were laid out.
    pub other_shift: u8,
    /// What the stream says of its files, where it is one of files.
    pub catalog: Arc<Catalog>,
}

impl Context {
    /// log2 of the width of a region of this object in bytes.
    pub fn shift(&self, object: u32) -> u8 {
        self.region_shift.get(object as usize).copied().unwrap_or(self.other_shift)
    }
}

/// Every feature there is.
pub const TABLE: &[Kind] = &[
    columns::OP,
    columns::OBJECT,
    columns::SIZE,
    offsets::JUMP,
    offsets::REGION,
    times::GAP,
    offsets::ALIGN,
    offsets::OP_JUMP,
    recency::REUSE,
    offsets::RESUME,
    offsets::RUN,
    columns::LATENCY,
    columns::ACTOR,
    columns::FLAGS,
    times::OUTSTANDING,
    times::THINK,
    recency::REUSE_DISTANCE,
    offsets::STREAM,
    recency::REUSE_TIME,
    recency::AGE,
    recency::POPULARITY,
    files::FILE,
    files::STATE,
    files::NEAR,
    files::LENGTH,
    files::OTHER,
    columns::RESULT,
    offsets::SEEK,
    times::AFTER,
];

/// A number that is kept of a drawn request, as the next ones may be given it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Op,
    Object,
    Size,
    Jump,
    Region,
    Gap,
    Align,
    OpJump,
    Run,
    State,
}

impl Kept {
    /// All of them, by the name of the feature.
    const ALL: [(&str, Kept); 10] = [
        (columns::OP.name, Kept::Op),
        (columns::OBJECT.name, Kept::Object),
        (columns::SIZE.name, Kept::Size),
        (offsets::JUMP.name, Kept::Jump),
        (offsets::REGION.name, Kept::Region),
        (times::GAP.name, Kept::Gap),
        (offsets::ALIGN.name, Kept::Align),
        (offsets::OP_JUMP.name, Kept::OpJump),
        (offsets::RUN.name, Kept::Run),
        (files::STATE.name, Kept::State),
    ];
}

/// The kept numbers of the last request; [`NONE`] where there is none.
pub(crate) struct Last([i64; Kept::ALL.len()]);

impl Default for Last {
    fn default() -> Last {
        Last([NONE; Kept::ALL.len()])
    }
}

impl std::ops::Index<Kept> for Last {
    type Output = i64;

    #[inline]
    fn index(&self, kept: Kept) -> &i64 {
        &self.0[kept as usize]
    }
}

impl std::ops::IndexMut<Kept> for Last {
    #[inline]
    fn index_mut(&mut self, kept: Kept) -> &mut i64 {
        &mut self.0[kept as usize]
    }
}

/// What is known of every feature that can be computed.
pub fn kinds() -> impl Iterator<Item = &'static Kind> {
    TABLE.iter().chain(user::all())
}

/// A feature by name, possibly of the previous request: `size` or `previous(size)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FeatureId {
    /// Position in [`TABLE`], or beyond it in the list of those that users brought.
    index: u16,
    /// Whether it is the previous request's number.
    pub previous: bool,
}

impl FeatureId {
    /// What is known of the feature.
    pub fn kind(self) -> &'static Kind {
        match TABLE.get(self.index()) {
            Some(kind) => kind,
            None => &user::get(self.index() - TABLE.len()).kind,
        }
    }

    /// Whether a user brought it.
    pub(crate) fn is_users(self) -> bool {
        self.index() >= TABLE.len()
    }

    /// Position in [`TABLE`].
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// What is kept of a drawn request of it, if anything is.
    pub(crate) fn kept(self) -> Option<Kept> {
        Kept::ALL.iter().find(|(name, _)| *name == self.kind().name).map(|(_, kept)| *kept)
    }

    /// A feature ready to run from the start of a stream.
    pub fn start(self, context: &Context) -> Box<dyn Feature> {
        let users = self.is_users().then(|| user::get(self.index() - TABLE.len()).start.as_ref());
        let feature = match users.flatten() {
            Some(start) => start(),
            None => (self.kind().make)(context),
        };
        if self.previous { Box::new(previous::Previous::new(feature)) } else { feature }
    }
}

/// The name without `previous()`, and whether it was there.
fn inner(text: &str) -> (&str, bool) {
    match text.strip_prefix("previous(").and_then(|t| t.strip_suffix(')')) {
        Some(name) => (name, true),
        None => (text, false),
    }
}

impl FeatureId {
    /// The feature of this position, user's features following those of the table.
    fn at(index: usize, previous: bool) -> FeatureId {
        FeatureId { index: index as u16, previous }
    }

    fn find(text: &str) -> Option<FeatureId> {
        let (name, previous) = inner(text);
        let users = || user::find(name).map(|number| TABLE.len() + number);
        let index = TABLE.iter().position(|k| k.name == name).or_else(users)?;
        Some(FeatureId::at(index, previous))
    }
}

impl FromStr for FeatureId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = FeatureId::find(text);
        known.filter(|id| !id.is_users() || kinds().any(|kind| std::ptr::eq(kind, id.kind()))).ok_or_else(
            || {
                let names: Vec<_> = kinds().map(|k| k.name).collect();
                let error = Error::new(ErrorKind::Asked, format!("there is no feature {text:?}"));
                if inner(text).0.starts_with(PREFIX) {
                    error.help("name the file that defines it with `plugins`, or install its package")
                } else {
                    error.help(format!("features are {}, and previous(F) of each", names.join(", ")))
                }
            },
        )
    }
}

impl std::fmt::Display for FeatureId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.previous {
            write!(f, "previous({})", self.kind().name)
        } else {
            f.write_str(self.kind().name)
        }
    }
}

/// From a file, which may have a user's feature that nobody brought.
impl TryFrom<String> for FeatureId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        let (name, previous) = inner(&text);
        match FeatureId::find(&text) {
            Some(id) => Ok(id),
            None if name.starts_with(PREFIX) => {
                user::find_or_absent(name).map(|number| FeatureId::at(TABLE.len() + number, previous))
            }
            None => text.parse(),
        }
    }
}

impl From<FeatureId> for String {
    fn from(id: FeatureId) -> String {
        id.to_string()
    }
}

/// End of the previous request on each object (or stream of one); the state of features about position.
#[derive(Debug, Default)]
pub(crate) struct Ends(Vec<i64>);

impl Ends {
    /// The slot of an object, [`loadstone_trace::NONE`] if it was not touched yet.
    #[inline]
    pub fn slot(&mut self, object: u32) -> &mut i64 {
        let i = object as usize;
        if i >= self.0.len() {
            self.0.resize(i + 1, loadstone_trace::NONE);
        }
        &mut self.0[i]
    }

    /// Bytes from the position to `offset`; the request's end is the new position.
    #[inline]
    pub fn jump(&mut self, object: u32, offset: i64, size: i64) -> i64 {
        if offset == loadstone_trace::NONE {
            return offset;
        }
        let end = self.slot(object);
        let jump = if *end == loadstone_trace::NONE { *end } else { offset - *end };
        *end = offset + if size == loadstone_trace::NONE { 0 } else { size };
        jump
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, batches: &[Batch]) -> Vec<i64> {
        let context = Context { region_shift: Arc::new(vec![12, 14]), other_shift: 20, ..Context::default() };
        let mut feature = name.parse::<FeatureId>().unwrap().start(&context);
        let (mut all, mut out) = (Vec::new(), vec![99]);
        for batch in batches {
            feature.values(&Rows::of(batch, 0..batch.len()), &mut out);
            all.extend_from_slice(&out);
        }
        all
    }

    fn batches() -> Vec<Batch> {
        let row = |b: &mut Batch, time, op, object, offset, size| {
            b.time.push(time);
            b.op.push(op);
            b.object.push(object);
            b.offset.push(offset);
            b.size.push(size);
            // Of request 1 it is not known.
            b.latency.push(if time == 10 && op == 1 { NONE } else { 12 });
            b.flags.push(u32::from(op == 2) * 3);
            b.actor.push(u32::from(object == 0));
        };
        let (mut a, mut b) = (Batch::default(), Batch::default());
        row(&mut a, 0, 0, 0, 4096, 4096);
        row(&mut a, 10, 1, 1, 65536, 512);
        row(&mut a, 10, 0, 0, 8192, 512);
        row(&mut b, 35, 2, 0, NONE, NONE);
        row(&mut b, 40, 1, 0, 8192, 4096);
        row(&mut b, 41, 1, 1, 66048, 512);
        vec![a, b]
    }

    #[test]
    fn features_are_what_their_comments_say() {
        assert_eq!(run("op", &batches()), [0, 1, 0, 2, 1, 1]);
        assert_eq!(run("object", &batches()), [0, 1, 0, 0, 0, 1]);
        assert_eq!(run("size", &batches()), [4096, 512, 512, NONE, 4096, 512]);
        assert_eq!(run("gap", &batches()), [0, 10, 0, 25, 5, 1]);
        // Per object, and not disturbed by the flush.
        assert_eq!(run("jump", &batches()), [NONE, NONE, 0, NONE, -512, 0]);
        // Of the same op: the second read of object 0 continues the first, its write is the first of its kind.
        assert_eq!(run("op_jump", &batches()), [NONE, NONE, 0, NONE, NONE, 0]);
        assert_eq!(run("region", &batches()), [1, 4, 2, NONE, 2, 4]);
        assert_eq!(run("align", &batches()), [0, 0, 0, NONE, 0, 512]);
        // Offset 8192 was used by the request before, as the flush in between has no place.
        assert_eq!(run("reuse", &batches()), [NONE, NONE, NONE, NONE, 1, NONE]);
        // The read of object 0 goes on from the one before last, the last write from one three places back.
        assert_eq!(run("resume", &batches()), [NONE, NONE, 2, NONE, NONE, 3]);
        // Only the next request of the stream counts, not the next of its object.
        assert_eq!(run("run", &batches()), [0, 0, 0, NONE, 0, 0]);
        assert_eq!(run("latency", &batches()), [12, NONE, 12, 12, 12, 12]);
        assert_eq!(run("actor", &batches()), [1, 0, 1, 1, 1, 0]);
        assert_eq!(run("flags", &batches()), [0, 0, 0, 3, 0, 0]);
        // The first ends at 12, the third at 22, the fourth at 47, the fifth at 52.
        assert_eq!(run("outstanding", &batches()), [0, 1, 1, 0, 1, 2]);
        // Actor 1 is answered at 12, 22, 47 and 52; the other one never is before it asks again.
        assert_eq!(run("think", &batches()), [NONE, NONE, NONE, 13, 18, NONE]);
        assert_eq!(run("after", &batches()), [NONE, NONE, NONE, 1, 2, NONE]);
        // The second write goes on from the first one, three requests of their object and the flush between.
        assert_eq!(run("stream", &batches()), [0, 0, 1, NONE, 0, 1]);
        assert_eq!(run("reuse_time", &batches()), [NONE, NONE, NONE, NONE, 30, NONE]);
        // The first read touches block 1, the second and the write block 2; both writes to object 1 block 16.
        assert_eq!(run("age", &batches()), [0, 0, 0, NONE, 2, 4]);
        // Before the write of block 2 three blocks were used once; before the last one, block 2 twice.
        assert_eq!(run("popularity", &batches()), [0, 1, 2, NONE, 0, 1]);
        // Lag one in the stream, across batches.
        assert_eq!(run("previous(size)", &batches()), [NONE, 4096, 512, 512, NONE, 4096]);
    }

    #[test]
    fn features_of_files_are_what_their_comments_say() {
        use loadstone_trace::{NO_OBJECT, Object, Op, Requests};
        struct Rows(Option<Batch>);
        impl Requests for Rows {
            fn next(&mut self, batch: &mut Batch) -> loadstone_trace::Result<bool> {
                let next = self.0.take();
                *batch = next.clone().unwrap_or_default();
                Ok(next.is_some())
            }
        }
        // A file is looked for, made, written, and gets the name of another; a directory and what is in it are found.
        let names = ["/a/new", "/a/old", "/b/c", "/b/c/x", "/b/c/y"];
        let rows = [
            (Op::Stat, 0, NO_OBJECT, NONE, NONE, -2),
            (Op::Create, 0, NO_OBJECT, NONE, NONE, 0),
            (Op::Write, 0, NO_OBJECT, 0, 4096, 4096),
            (Op::Write, 0, NO_OBJECT, 8192, 4096, 4096),
            (Op::Rename, 0, 1, NONE, NONE, 0),
            (Op::Stat, 2, NO_OBJECT, NONE, NONE, 0),
            (Op::Stat, 3, NO_OBJECT, NONE, NONE, 0),
            (Op::Open, 1, NO_OBJECT, NONE, NONE, 0),
            (Op::Read, 1, NO_OBJECT, 0, 100, 100),
            (Op::Open, 4, NO_OBJECT, NONE, NONE, -13),
            (Op::Read, 1, NO_OBJECT, 100, 100, NONE),
        ];
        let mut batch = Batch::default();
        for (time, (op, object, other, offset, size, result)) in (0..).zip(rows) {
            batch.time.push(time);
            batch.op.push(op as u8);
            batch.object.push(object);
            batch.other.push(other);
            batch.offset.push(offset);
            batch.size.push(size);
            batch.result.push(result);
            batch.latency.push(NONE);
            batch.flags.push(0);
            batch.actor.push(0);
        }
        let objects: Vec<Object> =
            (0..).zip(names).map(|(id, name)| Object { id, name: name.into() }).collect();
        let catalog = Catalog::of(&mut Rows(Some(batch.clone())), |_| objects, |_| Ok(())).unwrap();
        let context = Context { catalog: Arc::new(catalog), ..Context::default() };
        let run = |name: &str| {
            let mut feature = name.parse::<FeatureId>().unwrap().start(&context);
            let mut all = Vec::new();
            // In two pieces, as batches come.
            for rows in [0..4, 4..batch.len()] {
                let mut out = Vec::new();
                feature.values(&super::Rows::of(&batch, rows), &mut out);
                all.extend(out);
            }
            all
        };
        // The rename uses its second object, then the first; three files were used since when the second is opened.
        assert_eq!(run("file"), [NONE, 0, 0, 0, 0, NONE, NONE, 3, 0, NONE, 1]);
        assert_eq!(run("other")[..5], [NONE, NONE, NONE, NONE, -1]);
        // `/a` is new; so are `/b` and then, as a directory that is used itself, `/b/c`.
        assert_eq!(run("near"), [-1, NONE, NONE, NONE, NONE, -1, 0, NONE, NONE, 1, NONE]);
        assert_eq!(run("length"), [12288, 12288, 12288, 12288, 12288, 0, 0, 200, 200, 0, 200]);
        assert_eq!(run("seek"), [NONE, NONE, 0, 4096, NONE, NONE, NONE, NONE, 0, NONE, 0]);
        assert_eq!(run("result"), [-2, 0, 0, 0, 0, 0, 0, 0, 0, -13, NONE]);
        let (new, there, second) = (255 << 4, 4, 8);
        let after = |op: Op| (op as i64) << 4;
        let written = after(Op::Write) | there;
        assert_eq!(
            run("state"),
            [
                new,
                after(Op::Stat),
                after(Op::Create) | there,
                written,
                written,
                new | 1,
                new,
                after(Op::Rename) | second | there,
                after(Op::Open) | there,
                new,
                after(Op::Read) | there,
            ]
        );
    }

    #[test]
    fn names_are_read_and_written() {
        assert_eq!("state".parse::<FeatureId>().unwrap().kept(), Some(Kept::State));
        let id: FeatureId = "previous(jump)".parse().unwrap();
        assert_eq!(id.to_string(), "previous(jump)");
        assert!("previous(x)".parse::<FeatureId>().is_err());
    }
}
