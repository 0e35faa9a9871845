//! Drawing requests of blocks: which cell comes next, and what becomes of it.

use crate::error::Result;
use crate::feature::offsets::Run;
use crate::feature::{Field, Kept, PAGE};
use crate::model::Model;
use crate::random::below;
use crate::sample::block::ledger::{Ledger, Tells};
use crate::sample::block::order::{BlockOrder, Joint};
use crate::sample::block::placement::{Fit, Misfit, Placement, Places};
use crate::sample::block::pools::{Pools, Shape};
use crate::sample::block::schedule::Draw;
use crate::sample::block::waits::Waits;
use crate::sample::codes::Codes;
use crate::sample::column::{Column, Columns};
use crate::sample::gaps::Aim;
use crate::sample::stream::{BATCH, Stream};
use loadstone_trace::{Batch, NONE, Object};
use std::sync::Arc;

/// Tries until a stream of another age will do.
const EXACT: usize = 8;
/// Tries until an end at another remainder of a page will do.
const AGED: usize = 10;
/// Tries until a draw goes where it can.
const NEAR: usize = 12;

/// Where draws for the next request are looked for.
#[derive(Clone, Copy)]
enum Choice {
    /// This one of the hand.
    Best(usize),
    /// Any of the hand.
    Hand,
    /// Any of a pool.
    Pool(u32),
}

/// What the next request finds.
struct Now {
    /// The group of draws that follow; `None` if the model never saw what came before.
    group: Option<u32>,
    /// And its key.
    given: Option<u64>,
    /// Time until the part begins, nanoseconds; nothing once it has.
    wait: i64,
    /// Requests left in the part.
    left: usize,
    /// What those of pools should have, so that the part takes its time.
    aim: Option<Aim>,
}

impl Now {
    #[inline]
    fn is_before(&self, draw: &Draw, shape: &Shape) -> bool {
        self.group == Some(shape.group(draw.pool))
    }
}

/// Requests of blocks.
pub struct BlockSampler {
    pub(in crate::sample) stream: Stream,
    object: Column,
    places: Places,
    /// Of a model that draws think times.
    waits: Option<Waits>,
    run: Run,
    /// Codes of remainders in a page, where the model tells them.
    code_align: Option<Codes>,
    /// What each matrix is drawn from, once it is.
    joints: Vec<Option<Joint>>,
    /// What is being drawn from one of them.
    order: Option<Box<BlockOrder>>,
    /// Memory of the last one.
    spare: Option<Pools>,
}

impl BlockSampler {
    pub(in crate::sample) fn new(model: &Arc<Model>, seed: u64) -> Result<BlockSampler> {
        let (stream, columns) = (Stream::new(model, seed)?, Columns::of(model));
        let (align, distance) = (columns.find(Field::Align)?, columns.find(Field::Distance)?);
        let ledger = distance.as_ref().zip(model.header.distances.as_ref()).map(|(distance, all)| {
            let tells = Tells { distance, op: &stream.op, size: &stream.size, align: align.as_ref() };
            Ledger::of(all, model.matrices.iter().map(|m| &m.tables[columns.table()]), &tells)
        });
        let waits = match Field::WAITS.map(|field| columns.find(field)) {
            [Ok(Some(actor)), Ok(Some(after)), Ok(Some(think))] => Some(Waits::new(actor, after, think)),
            _ => None,
        };
        Ok(BlockSampler {
            object: columns.column(Field::Object)?,
            places: Places::new(&columns, ledger)?,
            waits,
            run: Run::default(),
            code_align: columns.dimension(Field::Align).map(|align| Codes::new(&align.rule)),
            joints: (0..model.matrices.len()).map(|_| None).collect(),
            order: None,
            spare: None,
            stream,
        })
    }

    /// Generates what comes next, a batch or a little more; `false` at the end of the model.
    pub(in crate::sample) fn refill(&mut self, batch: &mut Batch) -> bool {
        self.stream.slice.clear();
        while self.stream.slice.len() < BATCH && (self.walk_on() || self.begin()) {}
        if let Some(waits) = &mut self.waits {
            waits.settle(&mut self.stream.slice);
        }
        self.stream.hand_out(batch)
    }

    /// Goes to the next parts of the time line; `false` at its end.
    fn begin(&mut self) -> bool {
        let Some(plan) = self.stream.plan() else { return false };
        let matrix = plan.matrix;
        self.places.turn_to(matrix);
        let (stream, places) = (&mut self.stream, &self.places);
        let joint = self.joints[matrix]
            .get_or_insert_with(|| Joint::of(stream, matrix, |key| places.goes_on_at(key)));
        self.order = Some(Box::new(joint.deal(plan, stream, self.spare.take())));
        true
    }

    /// Appends the request of this key to the slice, if it fits as it should.
    #[inline]
    fn emit(&mut self, key: u64, fit: Fit) -> std::result::Result<(), Misfit> {
        let stream = &mut self.stream;
        let object = self.object.draw(key, &mut stream.rng).max(0) as u32;
        let op = stream.op.draw(key, &mut stream.rng);
        let drawn = stream.draw_size(op, key);
        let leads = self.places.leads(key);
        let code = op.clamp(0, 255) as u8;
        let first = if fit == Fit::Forced { Fit::Unaligned } else { fit };
        let mut place = self.places.place((object, code), drawn, leads, first, &mut stream.rng);
        let displaced = place.is_err() && fit == Fit::Forced;
        if displaced {
            place = self.places.place((object, code), drawn, leads, fit, &mut stream.rng);
        }
        let Placement { offset, size, jump, op_jump, astray } = place?;
        stream.tally.displaced += u64::from(displaced || astray || size != drawn);
        stream.note_size(op, key, size);
        // The gap was noted when it was drawn.
        let last = &mut stream.last;
        (last[Kept::Op], last[Kept::Object], last[Kept::Size]) = (op, i64::from(object), size);
        (last[Kept::Jump], last[Kept::OpJump]) = (jump, op_jump);
        (last[Kept::Region], last[Kept::Align]) = match offset {
            NONE => (NONE, NONE),
            _ => (offset >> self.places.shift(object), offset % PAGE),
        };
        last[Kept::Run] = self.run.note(code, object, offset, size);
        stream.slice.op.push(code);
        stream.slice.object.push(object);
        stream.slice.offset.push(offset);
        stream.slice.size.push(size);
        if let Some(waits) = &mut self.waits {
            waits.note(key, &mut stream.rng, &mut stream.slice);
        }
        Ok(())
    }

    /// Emits the requests of the next part; `false` if there is none.
    fn walk_on(&mut self) -> bool {
        let Some(mut walk) = self.order.take() else { return false };
        let Some((part, mut hand)) = walk.parts.next().zip(walk.hands.next()) else {
            self.spare = Some(walk.pools);
            return false;
        };
        if part.requests > 0 {
            // What one group has too much of, the next has less.
            for budget in &walk.budgets[walk.granted..=part.budget] {
                walk.pools.grant(budget);
            }
            walk.granted = part.budget + 1;
            let mut wait = part.start - self.stream.time;
            // What the hand leaves for gaps from pools.
            let mut time =
                hand.iter().fold(part.end - 1 - self.stream.time, |left, draw| left.saturating_sub(draw.gap));
            for left in (1..=part.requests).rev() {
                let given = self.stream.given();
                let group = given.and_then(|given| walk.pools.shape().given(given));
                let aim = Aim::of(time, left - hand.len(), walk.pools.mean_gap());
                let now = Now { group, given, wait, left, aim };
                time = time.saturating_sub(self.emit_next(&mut hand, &mut walk.pools, &now));
                wait = 0;
            }
            self.stream.settle(&part);
        }
        self.order = Some(walk);
        true
    }

    /// Emits one of the draws and takes it away; another is tried where one does not fit what the
    /// requests before it left. Answers its gap if it came from a pool, else 0.
    #[inline]
    fn emit_next(&mut self, hand: &mut Vec<Draw>, pools: &mut Pools, now: &Now) -> i64 {
        let choice = self.choose(hand, pools, now);
        let mut near = Fit::Unaligned;
        for tries in 0.. {
            let (at, draw) = match choice {
                Choice::Best(at) => (at, hand[at]),
                Choice::Hand => {
                    let first = below(&mut self.stream.rng, hand.len() as u64) as usize;
                    let mut order = (first..hand.len()).chain(0..first);
                    let at = order.find(|&i| now.is_before(&hand[i], pools.shape())).unwrap_or(first);
                    (at, hand[at])
                }
                Choice::Pool(pool) => {
                    if let Some(aim) = now.aim {
                        pools.prefer(pool, aim, &mut self.stream.rng);
                    }
                    (0, pools.look(pool))
                }
            };
            self.stream.last[Kept::Gap] = draw.gap;
            let key = pools.shape().key(draw.cell);
            let fit = match tries {
                _ if tries < EXACT => Fit::Exact,
                _ if tries < AGED => Fit::Aged,
                _ if tries < NEAR => near,
                _ => Fit::Forced,
            };
            if let Err(Misfit { rest }) = self.emit(key, fit) {
                if let Choice::Pool(pool) = choice {
                    pools.exchange(pool, &mut self.stream.rng);
                }
                if let (Some(rest), Some(codes)) = (rest, &mut self.code_align) {
                    let is_rare = pools.is_rare(codes.code(rest));
                    near = if is_rare { Fit::Resized } else { Fit::Unaligned };
                }
                continue;
            }
            self.stream.tally.backed_off += u64::from(!now.is_before(&draw, pools.shape()));
            self.stream.gaps.push(draw.gap);
            let Choice::Pool(pool) = choice else {
                hand.swap_remove(at);
                break;
            };
            pools.take(pool);
            return draw.gap;
        }
        0
    }

    /// Where to look for the next request.
    #[inline]
    fn choose(&mut self, hand: &[Draw], pools: &Pools, now: &Now) -> Choice {
        let rng = &mut self.stream.rng;
        if now.wait > 0 && !hand.is_empty() {
            // The gap that leads into the part: the shortest that is long enough, else the longest. A
            // shorter one would be made longer, and there would be more long ones than were drawn.
            let fits = |gap: i64| if gap >= now.wait { (0, gap) } else { (1, -gap) };
            let best =
                (0..hand.len()).min_by_key(|&i| (!now.is_before(&hand[i], pools.shape()), fits(hand[i].gap)));
            return Choice::Best(best.expect("not empty"));
        }
        // Only the hand is left for the rest of this part.
        let only = hand.len() == now.left;
        let early = !hand.is_empty() && below(rng, now.left as u64) < hand.len() as u64;
        if only || (early && hand.iter().any(|draw| now.is_before(draw, pools.shape()))) {
            return Choice::Hand;
        }
        let found = now.group.and_then(|group| pools.matching(group, rng));
        Choice::Pool(found.unwrap_or_else(|| pools.fullest(now.given)))
    }

    /// Bytes of memory that the blocks take that are remembered.
    pub fn bytes(&self) -> u64 {
        self.places.bytes()
    }

    /// Names of the objects.
    pub(in crate::sample) fn names(&self) -> Vec<Object> {
        let objects = self.stream.model.header.objects.iter();
        objects.map(|o| Object { id: o.id, name: o.name.clone() }).collect()
    }
}
