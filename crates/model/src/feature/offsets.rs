//! Features of where a request goes, seen from the requests before it.

use crate::feature::node::is_failure;
use crate::feature::recent::{Back, Recent};
use crate::feature::{Ends, Feature, Field, Kind, Rows, each};
use loadstone_trace::{NONE, Op};

/// Bytes of a page.
pub(crate) const PAGE: i64 = 4096;

/// Ops told apart: read, write, flush, discard; whatever else counts as the last of them.
pub(crate) const CLASSES: u32 = 4;

/// Where an object's requests of this op leave their position, among all objects' and ops'.
#[inline]
pub(crate) fn class(object: u32, op: u8) -> u32 {
    object.saturating_mul(CLASSES).saturating_add(u32::from(op).min(CLASSES - 1))
}

/// Offset modulo 4 KiB. Partitions and files keep most requests at one remainder, and storage that
/// must read, change and write pages feels the difference, which buckets of jumps and regions lose. Source: the
/// alignment that `blockalign` of fio(1) sets.
pub(crate) const ALIGN: Kind = Kind::new("align", Field::Align, "byte", "exact+linear:4096", |_| {
    each(|rows, i| if rows.offset[i] == NONE { NONE } else { rows.offset[i] % PAGE })
});

/// Bytes from the end of the previous request on the same object to the start of this one; 0 is
/// sequential, negative is backwards. None for the first request of an object and for requests
/// without offset, which leave the position as it was. Source: "inter-arrival distance", MDH thesis
/// section 3.2, measured from the end so that sequential access is one value whatever its size.
pub(crate) const JUMP: Kind = Kind::new("jump", Field::Jump, "byte", "exact+log2:1", |_| {
    let mut ends = Ends::default();
    each(move |rows, i| ends.jump(rows.object[i], rows.offset[i], rows.size[i]))
})
.signed();

/// Like `jump`, from the end of the previous request *of the same op* on the object. A copy reads in
/// one place and writes in another in turns: every jump is far, yet both streams are sequential, and
/// the block layer merges them. On cloudPhysicsIO 26 % of the requests continue the one before them
/// and 50 % the one before of their op. Source: "jump distance", MDH thesis section 5.4.3, by
/// the op that it leaves out.
pub(crate) const OP_JUMP: Kind = Kind::new("op_jump", Field::Jump, "byte", "exact+log2:1", |_| {
    let mut ends = Ends::default();
    each(move |rows, i| ends.jump(class(rows.object[i], rows.op[i]), rows.offset[i], rows.size[i]))
})
.signed();

/// Offset minus the end of the request before on the same object, or minus 0 where that was opened or made since, or
/// is new. As `jump`, but a file that is read again from its start does not jump back, and its first request has a
/// number. Source: lseek(2); "seek distance", MDH thesis section 3.1.
pub(crate) const SEEK: Kind = Kind::new("seek", Field::Jump, "byte", "exact+log2:1", |_| {
    let mut ends = Ends::default();
    each(move |rows, i| {
        let failed = is_failure(rows.result.get(i).copied().unwrap_or(NONE));
        let opens = matches!(Op::from_code(rows.op[i]), Some(Op::Open | Op::Create));
        let end = ends.slot(rows.object[i]);
        if *end == NONE || (opens && !failed) {
            *end = 0;
        }
        ends.jump(rows.object[i], rows.offset[i], rows.size[i])
    })
})
.signed();

/// Offset divided by the width of a region of that object (a power of two, in the model's header).
/// Source: "offset distribution", MDH thesis section 3.2.
pub(crate) const REGION: Kind = Kind::new("region", Field::Region, "region", "log2:64", |context| {
    let context = context.clone();
    each(move |rows, i| match rows.offset[i] {
        NONE => NONE,
        offset => offset >> context.shift(rows.object[i]),
    })
});

/// Requests directly before this one in the stream that are of its op and object and each end where the
/// next one starts: 0 for one that continues nothing, none for one without an offset. These are what the
/// block layer makes one request of, if they come together; runs of 5, as copies make them, and of 300
/// merge quite differently from runs of random length with the same mean. Source: sequential runs, Ousterhout et al., SOSP
/// 1985, of a stream in place of a file.
pub(crate) const RUN: Kind = Kind::new("run", Field::Run, "request", "log2:2", |_| {
    let mut run = Run::default();
    each(move |rows, i| run.note(rows.op[i], rows.object[i], rows.offset[i], rows.size[i]))
});

/// The run at the end of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    op: u8,
    object: u32,
    end: i64,
    run: i64,
}

impl Default for Run {
    fn default() -> Run {
        Run { op: 0, object: 0, end: NONE, run: NONE }
    }
}

impl Run {
    /// Takes the next request and answers its number.
    #[inline]
    pub fn note(&mut self, op: u8, object: u32, offset: i64, size: i64) -> i64 {
        let goes_on = offset != NONE && offset == self.end && object == self.object && op == self.op;
        self.run = match offset {
            NONE => NONE,
            _ if goes_on => self.run + 1,
            _ => 0,
        };
        self.op = op;
        self.object = object;
        self.end = if offset == NONE { NONE } else { offset + if size == NONE { 0 } else { size } };
        self.run
    }
}

/// Requests since the last one of the same op (read, write, flush, discard; others together) on the
/// object that ended where this one begins, and from where nothing went on since; counting those that
/// have an offset, none where it was not among the last 65,535.
///
/// This tells streams apart however many there are and whatever comes between: a copy reads in one place
/// and writes in another in turns, and a log is written on after metadata elsewhere. On cloudPhysicsIO
/// 26 % of the requests go on from the one before, 41 % from an earlier one. Source: the seek distance of Ahmad,
/// IISWC 2007, from the nearest of the last requests: here, from which one it is 0.
pub(crate) const RESUME: Kind =
    Kind::new("resume", Field::Resume, "request", "log2:1", |_| Box::new(Resume::default()));

#[derive(Default)]
struct Resume(Recent);

impl Feature for Resume {
    fn values(&mut self, rows: &Rows<'_>, out: &mut Vec<i64>) {
        let end = |i: usize| rows.offset[i].saturating_add(rows.size[i].max(0));
        let steps = (0..rows.len()).map(|i| (class(rows.object[i], rows.op[i]), rows.offset[i], end(i)));
        self.0.steps(steps, out);
    }
}

/// Requests of its stream before this one: 0 for one that goes on from none of the last 65,535 of its op and object,
/// else one more than the request has that it goes on from (`resume`). Unlike `run`, streams may be interleaved: a
/// copy of one file to another is two of them. Which run a request is a member of, and where in it. Source: as of `run`
/// and `resume`.
pub(crate) const STREAM: Kind = Kind::new("stream", Field::Derived, "request", "log2:1", |_| {
    Box::new(Back::new(Resume::default(), |_, _, before| {
        let length = before.map_or(0, |length| length + 1);
        (length, length)
    }))
});
