//! Where a generated request goes: inside its object, and where what was drawn leads to.

use crate::error::Result;
use crate::feature::offsets::{CLASSES, class};
use crate::feature::recent::REACH;
use crate::feature::{Field, Kept, PAGE};
use crate::random::{Random, below};
use crate::sample::block::ledger::Ledger;
use crate::sample::block::memory::Open;
use crate::sample::block::recall::Recall;
use crate::sample::block::recency::{Blocks, LOOKS};
use crate::sample::column::{Column, Columns};
use crate::schema::dimension::OffsetRule;
use loadstone_trace::{NONE, Op};

/// Ages looked through one by one; of wider ranges so many are tried here and there.
const PROBES: u64 = 16;
const SAMPLES: u64 = 6;

/// Places tried for one whose blocks were used when they should have been.
const SUITS: usize = 8;

/// Places from the stack that are tried for a draw that may still be exchanged for another.
const LOOKS_STRICT: usize = 3;

/// In a range of less than this part of the object hardly a place from the stack lies.
const NARROW: i64 = 256;

/// Ends of streams tried for one that leads to blocks that were used when they should have been.
const ASKS: usize = 8;

/// Requests looked back at for a stream that is not of the right age.
const AGED: i64 = 256;

/// An object while requests are being generated.
#[derive(Clone, Copy)]
struct State {
    extent: i64,
    shift: u8,
}

/// How well a request must fit what was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// In all.
    Exact,
    /// It may go on from an earlier or later request than drawn.
    Aged,
    /// And at another remainder of a page.
    Unaligned,
    /// The same, but with another size, so that it ends at the remainder where it should.
    Resized,
    /// It goes as near as can be.
    Forced,
}

/// The codes that lead to an offset; 0 where the dimension does not decide.
#[derive(Clone, Copy)]
pub(crate) struct Leads {
    pub resume: u32,
    pub jump: u32,
    pub region: u32,
    pub align: u32,
    /// Of the stack distance.
    pub distance: u32,
}

/// A request's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placement {
    /// First byte, or [`NONE`].
    pub offset: i64,
    /// Bytes that fit, or [`NONE`].
    pub size: i64,
    /// From the end of the request before on the object, [`NONE`] if there was none.
    pub jump: i64,
    /// The same, of the request before of the same op.
    pub op_jump: i64,
    /// It is not where its jump leads, but at a place that was used about then.
    pub astray: bool,
}

/// A request has no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The remainder in a page at which it could go on.
    pub rest: Option<i64>,
}

/// Where an earlier request ended.
#[derive(Clone, Copy)]
struct Left {
    end: i64,
    /// Requests since.
    ago: i64,
    /// Whether blocks from there on were used when they should have been.
    suits: bool,
}

/// What an offset is looked for.
#[derive(Clone, Copy)]
struct Wanted {
    object: u32,
    class: u32,
    state: State,
    /// Bytes.
    length: i64,
    /// The last offset at which the request still ends inside the object.
    most: i64,
    /// The end that jumps are taken from.
    end: i64,
    leads: Leads,
    /// Remainder in a page that is asked for, [`NONE`] if any will do.
    rest: i64,
    /// When its last block is to have been used, and whether anything else would do.
    recall: Recall,
    strict: bool,
}

/// Objects and the rule that sets offsets.
pub(crate) struct Places {
    objects: Vec<State>,
    /// Ends of the last requests, by object and by object and op.
    ends: Vec<i64>,
    op_ends: Vec<i64>,
    /// Whether jumps are drawn from the last request of the same op.
    by_op: bool,
    /// Ends of requests, where the model knows how they go on.
    open: Option<Open>,
    /// Blocks used, where the model knows their stack distances.
    blocks: Option<Blocks>,
    resume: Column,
    jump: Column,
    region: Column,
    align: Column,
    distance: Column,
    rule: OffsetRule,
    far: Option<i64>,
    grain: i64,
    jump_grain: i64,
}

impl Places {
    /// Bytes of memory that the blocks take that are remembered.
    pub fn bytes(&self) -> u64 {
        self.blocks.as_ref().map_or(0, Blocks::bytes)
    }

    /// Of the objects of a model; `ledger` is that of its stack distances, where it has any.
    ///
    /// # Errors
    /// Where a dimension is in no table.
    pub fn new(columns: &Columns<'_>, ledger: Option<Ledger>) -> Result<Places> {
        let header = columns.header();
        let most = header.objects.iter().map(|o| o.id as usize + 1).max().unwrap_or(0);
        let mut objects = vec![State { extent: 0, shift: 12 }; most];
        for o in &header.objects {
            objects[o.id as usize] = State { extent: o.extent, shift: o.region_shift };
        }
        let (jump, resume) = (columns.dimension(Field::Jump), columns.dimension(Field::Resume));
        Ok(Places {
            objects,
            ends: vec![NONE; most],
            op_ends: vec![NONE; most * CLASSES as usize],
            by_op: jump.is_some_and(|jump| jump.feature.kept() == Some(Kept::OpJump)),
            open: resume.map(|_| Open::new()),
            blocks: ledger.map(Blocks::new),
            resume: columns.column(Field::Resume)?,
            jump: columns.column(Field::Jump)?,
            region: columns.column(Field::Region)?,
            align: columns.column(Field::Align)?,
            distance: columns.column(Field::Distance)?,
            rule: header.offset_rule,
            far: header.far,
            grain: header.offset_grain,
            jump_grain: jump.map_or(1, |jump| jump.grain),
        })
    }

    /// The codes of a key.
    #[inline]
    pub fn leads(&self, key: u64) -> Leads {
        Leads {
            resume: self.resume.code(key),
            jump: self.jump.code(key),
            region: self.region.code(key),
            align: self.align.code(key),
            distance: self.distance.code(key),
        }
    }

    /// The code of the remainder in a page at which a draw of this key goes on, if it goes on from an earlier request.
    pub fn goes_on_at(&self, key: u64) -> Option<u32> {
        (self.resume.code(key) != 0).then(|| self.align.code(key))
    }

    /// Goes on with requests of another matrix.
    pub fn turn_to(&mut self, matrix: usize) {
        if let Some(blocks) = &mut self.blocks {
            blocks.turn_to(matrix);
        }
    }

    /// log2 of the region width of an object.
    pub fn shift(&self, object: u32) -> u8 {
        self.objects.get(object as usize).map_or(12, |o| o.shift)
    }

    /// Places a request, if what was drawn fits what the requests before it left.
    ///
    /// # Errors
    /// [`Misfit`] where what was drawn leads nowhere.
    #[inline]
    pub fn place(
        &mut self,
        (object, op): (u32, u8),
        size: i64,
        leads: Leads,
        fit: Fit,
        rng: &mut Random,
    ) -> std::result::Result<Placement, Misfit> {
        let nowhere = Placement { offset: NONE, size, jump: NONE, op_jump: NONE, astray: false };
        let Some(&state) = self.objects.get(object as usize) else { return Ok(nowhere) };
        let mut length = if size == NONE { 0 } else { size.min(state.extent) };
        let class = class(object, op);
        let (last, op_last) = (self.ends[object as usize], self.op_ends[class as usize]);
        let wanted = Wanted {
            object,
            class,
            state,
            length,
            most: state.extent - length,
            end: if self.by_op { op_last } else { last },
            leads,
            rest: self.align.numbers.draw(leads.align, rng),
            recall: self.recall(leads, op, size),
            strict: fit == Fit::Exact || fit == Fit::Aged,
        };
        let forced = fit == Fit::Forced;
        let mut astray = false;
        // How many requests ago the one was that it goes on from.
        let mut ended = 0;
        let found = if leads.resume != 0 {
            let last = if forced && op_last != NONE { Some(op_last) } else { None };
            let range = self.resume.numbers.range(leads.resume);
            let mut from = self.going_on(&wanted, ages(range, rng));
            // One that goes on from the request before cannot go on from another.
            let will_do = |from: &Left| self.is_aligned(&wanted, from.end) && from.suits;
            if fit != Fit::Exact && range.0 > 1 && !from.as_ref().is_some_and(will_do) {
                from = self.going_on(&wanted, 2..AGED).or(from);
            }
            if let Some(from) = from.filter(|from| wanted.strict && !from.suits) {
                return Err(Misfit { rest: Some(from.end % PAGE) });
            }
            ended = from.map_or(0, |from| from.ago);
            let end = from.map(|from| from.end).or(last).filter(|offset| *offset <= wanted.most);
            if let Some(offset) = end.filter(|offset| !self.is_aligned(&wanted, *offset) && size != NONE) {
                if fit == Fit::Exact || fit == Fit::Aged {
                    return Err(Misfit { rest: Some(offset % PAGE) });
                }
                if fit == Fit::Resized {
                    length = wanted.resized(offset, self.grain);
                }
            }
            end.or_else(|| forced.then(|| pick(0, wanted.most, self.grain, 0, rng).unwrap_or(0)))
        } else if leads.jump != 0 {
            self.near(&wanted, rng).or_else(|| forced.then(|| self.about(&wanted, rng)))
        } else if leads.region != 0 {
            self.far(&wanted, rng).or_else(|| forced.then(|| self.anywhere_in(&wanted, rng)))
        } else if length > 0 {
            // The first request of an object has no jump; and a chain of tables may give what only flushes have.
            astray = self.rule != OffsetRule::Jump;
            let offset = pick(0, wanted.most, self.grain, 0, rng).unwrap_or(0);
            Some(if astray { self.hop(&wanted, rng).unwrap_or(offset) } else { offset })
        } else {
            return Ok(Placement { size: if size == NONE { NONE } else { length }, ..nowhere });
        };
        let mut offset = found.ok_or(Misfit { rest: None })?;
        // Where nothing that was drawn leads to blocks that were used when they should have been, it breaks off.
        // What continues the request before stays, as far as others can pay for it.
        if !wanted.strict {
            let stays = ended == 1 && self.keeps(&wanted, offset);
            if !stays
                && !self.suits(&wanted, offset)
                && let Some(hop) = self.hop(&wanted, rng)
            {
                (offset, ended, astray) = (hop, 0, true);
            }
        }
        let end = offset + length;
        (self.ends[object as usize], self.op_ends[class as usize]) = (end, end);
        let jump = |end: i64| if end == NONE { NONE } else { offset - end };
        if let Some(blocks) = &mut self.blocks {
            blocks.note(op, object, (offset, length), leads.distance);
        }
        if let Some(open) = &mut self.open {
            open.go_on(ended);
            open.note(class, end);
        }
        let size = if size == NONE { NONE } else { length };
        Ok(Placement { offset, size, jump: jump(last), op_jump: jump(op_last), astray })
    }

    /// What a request's stack distance says.
    #[inline]
    fn recall(&self, leads: Leads, op: u8, size: i64) -> Recall {
        let moves = (op == Op::Read as u8 || op == Op::Write as u8) && size > 0;
        match &self.blocks {
            Some(blocks) if moves => blocks.recall(Recall::of(&self.distance.numbers, leads.distance)),
            _ => Recall::Any,
        }
    }

    /// Whether an offset has the remainder that was drawn.
    #[inline]
    fn is_aligned(&self, wanted: &Wanted, offset: i64) -> bool {
        wanted.rest == NONE || offset % PAGE == wanted.rest
    }

    /// Whether a request's blocks were used when they should have been.
    #[inline]
    fn suits(&self, wanted: &Wanted, offset: i64) -> bool {
        let suits = |blocks: &Blocks| blocks.suit(wanted.object, offset, wanted.length);
        wanted.recall == Recall::Any || self.blocks.as_ref().is_none_or(suits)
    }

    /// A place whose blocks were used when they should have been, anywhere.
    fn hop(&self, wanted: &Wanted, rng: &mut Random) -> Option<i64> {
        let blocks = self.blocks.as_ref()?;
        let fits = |offset: &i64| (0..=wanted.most).contains(offset) && self.suits(wanted, *offset);
        let aligned = |offset: i64| wanted.aligned(offset, self.grain);
        if wanted.recall == Recall::New {
            return (0..SUITS)
                .filter_map(|_| pick(0, wanted.most, self.grain, 0, rng))
                .map(aligned)
                .find(fits);
        }
        let found = blocks.places(wanted.object, wanted.length, wanted.recall, rng).map(aligned).find(fits);
        // What is owed most may be of other objects.
        found.or_else(|| blocks.lately(wanted.object, wanted.length, rng).map(aligned).find(fits))
    }

    /// Whether a request that continues the one before may do so.
    fn keeps(&self, wanted: &Wanted, offset: i64) -> bool {
        let keeps = |blocks: &Blocks| blocks.keeps(wanted.object, offset, wanted.length);
        self.blocks.as_ref().is_none_or(keeps)
    }

    /// Of the offsets that `pick` finds in a range of so many bytes, and those whose last block was used when it should
    /// have been, one that suits; where that fails, any of `pick` unless another draw may be tried.
    fn suited(
        &self,
        wanted: &Wanted,
        width: i64,
        rng: &mut Random,
        fits: impl Fn(i64) -> bool,
        mut pick: impl FnMut(&mut Random) -> Option<i64>,
    ) -> Option<i64> {
        let Some(blocks) = self.blocks.as_ref().filter(|_| wanted.recall != Recall::Any) else {
            return pick(rng);
        };
        if width.saturating_mul(NARROW) >= wanted.state.extent {
            let looks = if wanted.strict { LOOKS_STRICT } else { LOOKS };
            let used = blocks.places(wanted.object, wanted.length, wanted.recall, rng).take(looks);
            let will_do = |offset: &i64| {
                (0..=wanted.most).contains(offset) && fits(*offset) && self.suits(wanted, *offset)
            };
            let found = used.map(|offset| wanted.aligned(offset, self.grain)).find(will_do);
            if found.is_some() {
                return found;
            }
        }
        let mut other = None;
        for _ in 0..SUITS {
            let Some(offset) = pick(rng) else { break };
            if self.suits(wanted, offset) {
                return Some(offset);
            }
            other = Some(offset);
        }
        other.filter(|_| !wanted.strict)
    }

    /// Where a request of the same op of one of these ages ended: best one where the remainder is right,
    /// and that leads to blocks that were used when they should have been.
    #[inline]
    fn going_on(&self, wanted: &Wanted, ages: impl Iterator<Item = i64>) -> Option<Left> {
        let open = self.open.as_ref()?;
        let (mut best, mut asks) = (None, 0);
        for ago in ages {
            if asks == ASKS {
                break;
            }
            let Some(end) = open.ago(wanted.class, ago) else { continue };
            let aligned = self.is_aligned(wanted, end);
            // Whether it suits is the dear question: not asked where no answer would make it the best.
            if best.is_some_and(|(least, _)| least >= (aligned, true)) {
                continue;
            }
            asks += 1;
            let suits = self.suits(wanted, end);
            let (likeness, from) = ((aligned, suits), Left { end, ago, suits });
            if likeness == (true, true) {
                return Some(from);
            }
            if best.is_none_or(|(least, _)| likeness > least) {
                best = Some((likeness, from));
            }
        }
        best.map(|(_, from)| from)
    }

    /// An offset whose jump from the last end lies in the bucket.
    #[inline]
    fn near(&self, wanted: &Wanted, rng: &mut Random) -> Option<i64> {
        let (first, last) = self.jump.numbers.range(wanted.leads.jump);
        let end = self.end(wanted, rng);
        let (low, high) = (end.saturating_add(first).max(0), end.saturating_add(last).min(wanted.most));
        if first == last {
            let fits =
                low <= high && self.is_aligned(wanted, low) && (!wanted.strict || self.suits(wanted, low));
            return fits.then_some(low);
        }
        let (modulus, rest) = wanted.rest(self.jump_grain, end);
        // Jumps with buckets of their own do not belong to this one.
        let excepts = |offset: i64| self.jump.numbers.excepts(wanted.leads.jump, offset - end);
        let fits = |offset: i64| (low..=high).contains(&offset) && !excepts(offset);
        self.suited(wanted, high - low, rng, fits, |rng| {
            for _ in 0..4 {
                let offset = pick(low, high, modulus, rest, rng)?;
                if !excepts(offset) {
                    return Some(offset);
                }
            }
            None
        })
    }

    fn end(&self, wanted: &Wanted, rng: &mut Random) -> i64 {
        match wanted.end {
            NONE => pick(0, wanted.most, self.grain, 0, rng).unwrap_or(0),
            end => end,
        }
    }

    /// An offset about where the jump leads: alignment counts more than an exact distance, for what
    /// follows goes on from there.
    fn about(&self, wanted: &Wanted, rng: &mut Random) -> i64 {
        let jump = self.jump.numbers.draw(wanted.leads.jump, rng);
        let offset = self.end(wanted, rng).saturating_add(jump);
        let (modulus, rest) = wanted.rest(self.grain, 0);
        let page = (offset.max(0), offset.saturating_add(PAGE - 1).min(wanted.most));
        pick(page.0, page.1, modulus, rest, rng).unwrap_or_else(|| wrap(offset, wanted.most, self.grain))
    }

    /// An offset in the region; not near the last request where the jump sets near offsets.
    #[inline]
    fn far(&self, wanted: &Wanted, rng: &mut Random) -> Option<i64> {
        let (low, high) = self.interval(wanted);
        let (modulus, rest) = wanted.rest(self.grain, 0);
        if self.rule != OffsetRule::Near || wanted.end == NONE {
            let fits = |offset: i64| (low..=high).contains(&offset);
            return self.suited(wanted, high - low, rng, fits, |rng| pick(low, high, modulus, rest, rng));
        }
        let near = self.far.unwrap_or(1 << wanted.state.shift);
        let below_near = (low, high.min(wanted.end.saturating_sub(near) - 1));
        let above_near = (low.max(wanted.end.saturating_add(near).saturating_add(1)), high);
        let length = |(low, high): (i64, i64)| (high.saturating_sub(low).saturating_add(1)).max(0) as u64;
        let (before, after) = (length(below_near), length(above_near));
        if before + after == 0 {
            return None;
        }
        let fits = |offset: i64| {
            (below_near.0..=below_near.1).contains(&offset) || (above_near.0..=above_near.1).contains(&offset)
        };
        self.suited(wanted, high - low, rng, fits, |rng| {
            let (low, high) = if below(rng, before + after) < before { below_near } else { above_near };
            pick(low, high, modulus, rest, rng)
        })
    }

    /// An offset in the region, or anywhere where the object has no such region.
    fn anywhere_in(&self, wanted: &Wanted, rng: &mut Random) -> i64 {
        let (low, high) = self.interval(wanted);
        let (modulus, rest) = wanted.rest(self.grain, 0);
        let most = wanted.most;
        let found = pick(low, high, modulus, rest, rng).or_else(|| pick(0, most.max(0), modulus, rest, rng));
        found.unwrap_or_else(|| wrap(low.min(most), most, self.grain))
    }

    fn interval(&self, wanted: &Wanted) -> (i64, i64) {
        let (first, last) = self.region.numbers.range(wanted.leads.region);
        let width = 1i64 << wanted.state.shift;
        let low = first.max(0).saturating_mul(width);
        (low, last.max(0).saturating_add(1).saturating_mul(width).saturating_sub(1).min(wanted.most))
    }
}

impl Wanted {
    /// What the offset is to be a multiple of, and leave over.
    #[inline]
    fn rest(&self, grain: i64, from: i64) -> (i64, i64) {
        if self.rest == NONE { (grain, from) } else { (PAGE, self.rest) }
    }

    /// The last offset up to here with the remainder that is asked for; the grain's, if any will do.
    fn aligned(&self, offset: i64, grain: i64) -> i64 {
        let (modulus, rest) = self.rest(grain, 0);
        offset - (offset.wrapping_sub(rest) & (modulus - 1))
    }

    /// The size that lets a request at this offset end as it would at its remainder: by less than a page
    /// larger or smaller than drawn.
    fn resized(&self, offset: i64, grain: i64) -> i64 {
        let less = (offset - self.rest).rem_euclid(PAGE);
        let sizes = [self.length - less, self.length - less + PAGE];
        let near = if less <= PAGE / 2 { sizes } else { [sizes[1], sizes[0]] };
        let fits = |size: &i64| *size >= grain && offset.saturating_add(*size) <= self.state.extent;
        near.into_iter().find(fits).unwrap_or(self.length)
    }
}

/// Ages in the range, in an order that looks through narrow ones and tries wide ones here and there.
fn ages((first, last): (i64, i64), rng: &mut Random) -> impl Iterator<Item = i64> {
    let (first, last) = (first.max(1), last.min(REACH as i64 - 1));
    let n = (last.saturating_sub(first).saturating_add(1)).max(0) as u64;
    let start = if n > 0 { below(rng, n) } else { 0 };
    (0..if n > PROBES { SAMPLES } else { n }).map(move |i| {
        let ago = match i {
            0 => start,
            _ if n > PROBES => below(rng, n),
            _ if start + i < n => start + i,
            _ => start + i - n,
        };
        first + ago as i64
    })
}

/// A number from `low` to `high` that leaves the same rest as `rest`, if there is one.
#[inline]
fn pick(low: i64, high: i64, modulus: i64, rest: i64, rng: &mut Random) -> Option<i64> {
    // Grains and pages are powers of two.
    let first = low.checked_add(rest.wrapping_sub(low) & (modulus - 1))?;
    if first > high {
        return None;
    }
    let n = ((high - first) / modulus) as u64 + 1;
    Some(first + below(rng, n) as i64 * modulus)
}

/// The offset brought back into 0..=most, on the grain.
fn wrap(offset: i64, most: i64, grain: i64) -> i64 {
    let wrapped = offset.rem_euclid(most.max(0).saturating_add(1));
    wrapped - wrapped % grain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    proptest! {
        #[test]
        fn what_is_picked_lies_between_and_leaves_the_rest(
            low in 0i64..100_000, more in 0i64..100_000, bits in 0u32..13, rest in -5000i64..5000, seed in any::<u64>(),
        ) {
            let modulus = 1i64 << bits;
            let picked = pick(low, low + more, modulus, rest, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
            match picked {
                Some(n) => prop_assert!(n >= low && n <= low + more && (n - rest) % modulus == 0),
                None => prop_assert!((low..=low + more).all(|n| (n - rest) % modulus != 0)),
            }
        }
    }
}
