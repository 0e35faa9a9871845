//! How many requests ago the one was that this one goes on from, at its end or in its last block.

use crate::feature::offsets::op_jump::class;
use crate::feature::recent::Recent;
use crate::feature::{Context, Feature, Field, Kind, PAGE, Rows};
use loadstone_trace::NONE;

/// As `resume`, but where nothing ended at the request's offset, requests since the last one of the same op on the
/// object in whose last 4 KiB block it begins, below zero; only of those that touched more than one block.
///
/// A journal whose records end within a block, or that writes its last block again, is one stream by this and
/// none by `resume`. Source: as of `resume`.
struct ResumeBlock {
    ends: Recent,
    blocks: Recent,
}

pub(crate) const KIND: Kind = Kind {
    name: "resume_block",
    field: Field::Resume,
    unit: "request",
    signed: true,
    rule: "log2:1",
    make: |_: &Context| Box::new(ResumeBlock { ends: Recent::default(), blocks: Recent::default() }),
};

impl Feature for ResumeBlock {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        let who = batch.object.iter().zip(batch.op).map(|(&object, &op)| class(object, op));
        let places = batch.offset.iter().zip(batch.size);
        out.extend(who.zip(places).map(|(who, (&offset, &size))| {
            if offset == NONE {
                return NONE;
            }
            let end = offset.saturating_add(if size == NONE { 0 } else { size });
            let at_end = self.ends.step(who, offset, end);
            // Whoever goes on at an end is in nobody's last block.
            let from = if at_end == NONE { offset } else { offset - 1 };
            let last = (end - 1).div_euclid(PAGE);
            let left = if last == offset.div_euclid(PAGE) { NONE } else { last };
            let within = self.blocks.step(who, from.div_euclid(PAGE), left);
            if at_end != NONE || within == NONE { at_end } else { -within }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_trace::Batch;

    #[test]
    fn requests_that_begin_in_the_last_block_go_on_from_it() {
        let mut batch = Batch::default();
        for (offset, size) in [
            (0, 10_000),     // ends in its third block, ...
            (100_000, 4096), // somewhere else
            (8192, 8192),    // ... which is written again,
            (16_384, 4096),  // goes on at the end,
            (12_288, 4096),  // and not from the block before it, that is used up.
            (12_288, 4096),  // A block that is used again is no stream.
            (104_096, 1),    // At the end, though not of a block.
        ] {
            batch.time.push(0);
            batch.op.push(1);
            batch.object.push(0);
            batch.offset.push(offset);
            batch.size.push(size);
            batch.latency.push(NONE);
            batch.flags.push(0);
            batch.actor.push(0);
        }
        let mut feature = (KIND.make)(&Context::default());
        let mut out = Vec::new();
        feature.values(&Rows::of(&batch, 0..batch.len()), &mut out);
        assert_eq!(out, [NONE, NONE, -2, 1, NONE, NONE, 5]);
    }
}
