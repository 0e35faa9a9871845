//! How far from the position in its file a request starts.

use crate::feature::node::is_failure;
use crate::feature::{Context, Ends, Feature, Field, Kind, Rows};
use loadstone_trace::{NONE, Op};

/// Offset minus the end of the request before on the same object, or minus 0 where that was opened or made since, or
/// is new. As `jump`, but a file that is read again from its start does not jump back, and its first request has a
/// number. Source: lseek(2); "seek distance", MDH thesis section 3.1.
struct Seek {
    ends: Ends,
}

pub(crate) const KIND: Kind = Kind {
    name: "seek",
    field: Field::Jump,
    unit: "byte",
    signed: true,
    rule: "exact+log2:1",
    make: |_: &Context| Box::new(Seek { ends: Ends::default() }),
};

impl Feature for Seek {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        for i in 0..batch.len() {
            let (object, offset, size) = (batch.object[i], batch.offset[i], batch.size[i]);
            let failed = is_failure(batch.result.get(i).copied().unwrap_or(NONE));
            let opens = matches!(Op::from_code(batch.op[i]), Some(Op::Open | Op::Create));
            let end = self.ends.slot(object);
            if *end == NONE || (opens && !failed) {
                *end = 0;
            }
            out.push(self.ends.jump(object, offset, size));
        }
    }
}
