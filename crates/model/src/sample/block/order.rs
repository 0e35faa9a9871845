//! What parts of the time line are drawn from one joint table: all cells first, without an order.

use crate::feature::Kept;
use crate::random::below;
use crate::sample::block::pools::{Decides, Pools, Shape};
use crate::sample::block::schedule::{Draw, Schedule};
use crate::sample::block::urn::Urn;
use crate::sample::gaps::Aim;
use crate::sample::mix::Budget;
use crate::sample::stream::{Part, Plan, Stream};
use std::sync::Arc;

/// Cards drawn at once.
const HAND: usize = 64;

/// What a matrix is drawn from.
pub(crate) struct Joint {
    shape: Arc<Shape>,
    /// One for each class of op.
    urns: Vec<Urn>,
    /// Time since the request before, nanoseconds on average.
    mean_gap: f64,
}

/// Parts of one matrix whose cells are drawn, and what is left of them.
pub(crate) struct BlockOrder {
    pub parts: std::vec::IntoIter<Part>,
    /// Draws with long gaps, by part.
    pub hands: std::vec::IntoIter<Vec<Draw>>,
    pub pools: Pools,
    /// What parts take of each class of op, and how many of these budgets were granted.
    pub budgets: Vec<Budget>,
    pub granted: usize,
}

impl Joint {
    /// Of which nothing is drawn yet; `goes_on_at` tells the code of the remainder in a page at which draws of a key go
    /// on, if they do.
    pub fn of(stream: &Stream, matrix: usize, goes_on_at: impl Fn(u64) -> Option<u32>) -> Joint {
        let cells = stream.cells(matrix);
        let by = Decides {
            given: stream.given_bits(None),
            after: stream.given_bits(Some(Kept::Op)),
            class: |key: u64| stream.mix.class(stream.op.code(key)),
            classes: stream.mix.classes(),
            goes_on_at,
        };
        let all = (0..).zip(cells.counts.iter().copied());
        let of = |class: usize| {
            all.clone().filter(move |(cell, _)| (by.class)(cells.keys[*cell as usize]) == class)
        };
        let urns = (0..by.classes).map(|class| Urn::new(of(class))).collect();
        let gap = |(cell, n): (u32, u64)| stream.gap.middle(cells.keys[cell as usize]) as f64 * n as f64;
        let requests = cells.counts.iter().sum::<u64>().max(1);
        let mean_gap = all.clone().map(gap).sum::<f64>() / requests as f64;
        Joint { shape: Arc::new(Shape::new(cells, &by)), urns, mean_gap }
    }

    /// Draws the cells of parts without replacement.
    ///
    /// Each part takes the ops of its budget.
    pub fn deal(&mut self, plan: Plan, stream: &mut Stream, spare: Option<Pools>) -> BlockOrder {
        let Plan { parts, mut budgets, .. } = plan;
        let shape = Arc::clone(&self.shape);
        let mut pools = match spare {
            Some(pools) => pools.again(Arc::clone(&shape)),
            None => Pools::new(Arc::clone(&shape)),
        };
        let (gaps, rng) = (&stream.gap, &mut stream.rng);
        let mut deal = Schedule::new(&parts, stream.time);
        let mut time = parts.last().map_or(0, |part| part.end - 1 - stream.time);
        let mut requests = parts.iter().map(|part| part.requests).sum::<usize>();
        for (class, urn) in self.urns.iter_mut().enumerate() {
            let mut left = budgets.iter().map(|budget| budget[class]).sum::<i64>().max(0) as usize;
            while left > 0 {
                let mut cells = [0; HAND];
                let cells = if let Some(aim) = Aim::of(time, requests, self.mean_gap) {
                    cells[0] = urn.draw_for(aim, |cell| gaps.middle(shape.key(cell)), |n| below(rng, n));
                    &mut cells[..1]
                } else {
                    // Cards lie far apart in memory; nothing may wait for one before the next is asked for.
                    let cells = &mut cells[..left.min(HAND)];
                    cells.fill_with(|| urn.draw(|n| below(rng, n)));
                    cells
                };
                left -= cells.len();
                requests = requests.saturating_sub(cells.len());
                for &mut cell in cells {
                    let gap = gaps.draw(shape.key(cell), rng).max(0);
                    time = time.saturating_sub(gap);
                    let draw = Draw { cell, pool: shape.pool(cell), gap };
                    if !deal.takes(draw) {
                        pools.add(draw);
                    }
                }
            }
        }
        pools.ready();
        let hands = deal.hands(&parts, rng);
        // What was dealt is out of the budget.
        for (part, hand) in parts.iter().zip(&hands) {
            for draw in hand {
                budgets[part.budget][shape.class(draw.pool)] -= 1;
            }
        }
        let (parts, hands) = (parts.into_iter(), hands.into_iter());
        BlockOrder { parts, hands, pools, budgets, granted: 0 }
    }
}
