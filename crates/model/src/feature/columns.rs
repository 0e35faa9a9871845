//! Features that are columns of the trace.

use crate::feature::{Field, Kind, each};
use loadstone_trace::NONE;

/// The frozen op code, `docs/reference/formats/trace.md`. Source: "operation type", MDH thesis section 3.2.
pub(crate) const OP: Kind =
    Kind::new("op", Field::Op, "op code", "category", |_| each(|rows, i| i64::from(rows.op[i])));

/// Dense id of the device, file or handle. Source: "offset distribution", MDH thesis section 3.2, whose offsets are of
/// one device; the device number of blkparse(1), the file handle of RFC 1813.
pub(crate) const OBJECT: Kind = Kind::new("object", Field::Object, "object id", "category", |_| {
    each(|rows, i| i64::from(rows.object[i]))
});

/// Bytes touched. Source: "I/O size", MDH thesis section 3.2.
pub(crate) const SIZE: Kind =
    Kind::new("size", Field::Size, "byte", "exact+log2:2", |_| each(|rows, i| rows.size[i]));

/// Nanoseconds from submission to completion; none where the trace does not tell. Source: "response time", a
/// parameter of the system and not of the workload, so it is observed and never drawn.
pub(crate) const LATENCY: Kind =
    Kind::new("latency", Field::Seen, "ns", "log2:2", |_| each(|rows, i| rows.latency[i]));

/// Dense id of the process, thread or client; 0 where the trace has none. Source: "process identifier", MDH thesis
/// section 3.2.
pub(crate) const ACTOR: Kind =
    Kind::new("actor", Field::Actor, "actor id", "category", |_| each(|rows, i| i64::from(rows.actor[i])));

/// The request's flags together as one number, bits as frozen in `docs/reference/formats/trace.md`. Source: the RWBS field of
/// blkparse(1).
pub(crate) const FLAGS: Kind =
    Kind::new("flags", Field::Seen, "flag bits", "category", |_| each(|rows, i| i64::from(rows.flags[i])));

/// 0 for a request that succeeded, else the negative errno; none where the trace does not tell. Most failures in
/// traces of system calls are of names that are looked for and are not there. Source: the result column of strace(1),
/// the status of RFC 1813.
pub(crate) const RESULT: Kind = Kind::new("result", Field::Result, "errno", "category", |_| {
    each(|rows, i| match rows.result.get(i) {
        None | Some(&NONE) => NONE,
        Some(&result) => result.min(0),
    })
})
.signed();
