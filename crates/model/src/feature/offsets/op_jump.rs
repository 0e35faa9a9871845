//! How far from the end of the previous request of its own op on its object this one starts.

use crate::feature::{Context, Ends, Feature, Field, Kind, Rows};

/// Ops told apart: read, write, flush, discard; whatever else counts as the last of them.
pub(crate) const CLASSES: u32 = 4;

/// Where an object's requests of this op leave their position, among all objects' and ops'.
#[inline]
pub(crate) fn class(object: u32, op: u8) -> u32 {
    object.saturating_mul(CLASSES).saturating_add(u32::from(op).min(CLASSES - 1))
}

/// Like `jump`, from the end of the previous request *of the same op* on the object. A copy reads in
/// one place and writes in another in turns: every jump is far, yet both streams are sequential, and
/// the block layer merges them. On cloudPhysicsIO 26 % of the requests continue the one before them
/// and 50 % the one before of their op. Source: "jump distance", MDH thesis section 5.4.3, by
/// the op that it leaves out.
struct OpJump {
    ends: Ends,
}

pub(crate) const KIND: Kind = Kind {
    name: "op_jump",
    field: Field::Jump,
    unit: "byte",
    signed: true,
    rule: "exact+log2:1",
    make: |_: &Context| Box::new(OpJump { ends: Ends::default() }),
};

impl Feature for OpJump {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        let who = batch.object.iter().zip(batch.op).map(|(&object, &op)| class(object, op));
        let places = batch.offset.iter().zip(batch.size);
        out.extend(who.zip(places).map(|(who, (&offset, &size))| self.ends.jump(who, offset, size)));
    }
}
