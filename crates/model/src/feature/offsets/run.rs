//! How long the run is that a request continues.

use crate::feature::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::NONE;

/// Requests directly before this one in the stream that are of its op and object and each end where the
/// next one starts: 0 for one that continues nothing, none for one without an offset. These are what the
/// block layer makes one request of, if they come together; runs of 5, as copies make them, and of 300
/// merge quite differently from runs of random length with the same mean. Source: sequential runs, Ousterhout et al., SOSP
/// 1985, of a stream in place of a file.
struct Run {
    state: State,
}

/// The run at the end of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    op: u8,
    object: u32,
    end: i64,
    run: i64,
}

impl Default for State {
    fn default() -> State {
        State { op: 0, object: 0, end: NONE, run: NONE }
    }
}

impl State {
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

pub(crate) const KIND: Kind = Kind {
    name: "run",
    field: Field::Run,
    unit: "request",
    signed: false,
    rule: "log2:2",
    make: |_: &Context| Box::new(Run { state: State::default() }),
};

impl Feature for Run {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        let who = batch.op.iter().zip(batch.object);
        let places = batch.offset.iter().zip(batch.size);
        let note = |((&op, &object), (&offset, &size))| self.state.note(op, object, offset, size);
        out.extend(who.zip(places).map(note));
    }
}
