//! From the tables of a chain back to joint cells.
//!
//! Every request is a card. The links are taken in order. Cards with the same given codes are shuffled, and then get the
//! codes of their slice, each as often as the slice counts it. So every table keeps its counts, and a link is independent
//! of all dimensions that it is not given. A slice may have more or fewer requests than there are cards, as its given
//! codes come from several links; then codes are handed out in proportion. A tie decides how many cards with its code get
//! small codes. Codes that continue the request before go to cards that can continue it. The seed of the shuffling is
//! fixed: a file is always the same model.

use super::follow::Follows;
use super::runs::Runs;
use super::tie::both;
use crate::error::{Error, ErrorKind, Result};
use crate::model::Model;
use crate::random::{Random, below, shuffle};
use crate::schema::cells::{Cells, Layout};
use crate::schema::chain::Tie;
use crate::schema::chain::{Link, LinkCells};
use crate::schema::header::Header;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::ops::Range;

/// Cards at most; in a model of more requests each stands for several.
const CARDS: u128 = 1 << 20;

/// What the shuffling begins with.
const SEED: u64 = 0x6c6f_6164;

/// Cards of one matrix and op, and the requests they stand for.
struct Class {
    cards: Range<usize>,
    requests: u64,
}

/// Layout and cells, by matrix, of the joint table.
///
/// # Errors
/// When the cells are not those of the windows, or a link has none where it needs some.
pub(super) fn expand(header: &Header, links: &[LinkCells]) -> Result<(Layout, Vec<Cells>)> {
    let chain = header.chain.as_ref().expect("asked for only where there is one");
    let dimensions = &header.tables[header.drawn_table()].dimensions;
    let layout = layout(header, &chain.links, links)?;
    let place = |d: usize| dimensions.iter().position(|x| *x == d).expect("checked");

    let op = layout.place(place(chain.links[0].dimension));
    let (mut keys, mut matrices) = (Vec::new(), Vec::new());
    let all = links[0].cells.iter().flat_map(|cells| &cells.counts).map(|&n| u128::from(n)).sum::<u128>();
    for cells in &links[0].cells {
        let mut classes = Vec::new();
        for (&code, &requests) in cells.keys.iter().zip(&cells.counts) {
            let few = (u128::from(requests) * CARDS / all.max(1)).max(1) as usize;
            let n = if all <= CARDS { requests as usize } else { few };
            classes.push(Class { cards: keys.len()..keys.len() + n, requests });
            keys.resize(keys.len() + n, op.key(code as u32));
        }
        matrices.push(classes);
    }

    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut dealer = Dealer::default();
    for (at, (link, own)) in chain.links.iter().zip(links).enumerate().skip(1) {
        let given: Vec<usize> = link.given.iter().map(|&d| place(d)).collect();
        let tie = link.tie.as_ref().map(|tie| (tie, place(tie.dimension)));
        let follows = Follows::of(header, &chain.links[..at], link);
        let target = place(link.dimension);
        let slices = Slices { joint: &layout, given: &given, target, layout: &own.layout, tie, follows };
        match (&own.cells[..], link.by_matrix) {
            (each, true) => {
                for (cells, classes) in each.iter().zip(&matrices) {
                    dealer.deal(&slices, cells, &mut keys[span(classes)], &mut rng)?;
                }
            }
            (shared, false) => dealer.deal(&slices, &shared[0], &mut keys, &mut rng)?,
        }
        if let Some(follows) = &slices.follows {
            let spans = || matrices.iter().map(|classes| span(classes));
            let shares = &link.continues;
            if !shares.is_empty() && shares.len() != matrices.len() {
                let (n, of) = (shares.len(), matrices.len());
                return Err(Error::new(
                    ErrorKind::Damaged,
                    format!("the model's chain is damaged: {n} shares of {of} matrices"),
                ));
            }
            let by = (target, slices.mask());
            follows.spread(&layout, by, spans(), shares, &mut keys, |cards| shuffle(cards, &mut rng));
            let spans = spans();
            follows.lend(&layout, target, spans, &mut keys, |others| shuffle(others, &mut rng));
        }
        if let Some(runs) = Runs::of(header, &chain.links[..at], link) {
            runs.join(&layout, matrices.iter().map(|classes| span(classes)), &mut keys, &mut rng);
        }
    }

    let cells = |classes: &Vec<Class>| {
        let share = |class: &Class| {
            let (n, requests) = (class.cards.len() as u128, u128::from(class.requests));
            let upto = move |card: u128| (requests * card / n.max(1)) as u64;
            (0..n).map(move |card| upto(card + 1) - upto(card)).collect::<Vec<u64>>()
        };
        let weights = classes.iter().flat_map(share);
        Cells::from_pairs(keys[span(classes)].iter().copied().zip(weights).collect())
    };
    Ok((layout, matrices.iter().map(cells).collect()))
}

/// The cards of a matrix.
fn span(classes: &[Class]) -> Range<usize> {
    classes.first().map_or(0, |class| class.cards.start)..classes.last().map_or(0, |class| class.cards.end)
}

/// The smallest layout of all that the links can set.
fn layout(header: &Header, chain: &[Link], links: &[LinkCells]) -> Result<Layout> {
    let mut largest = vec![0u32; header.dimensions.len()];
    for (link, own) in chain.iter().zip(links) {
        let at = link.given.len();
        let codes = own.cells.iter().flat_map(|cells| &cells.keys).map(|&key| own.layout.code(key, at));
        largest[link.dimension] = codes.max().unwrap_or(0);
    }
    let mut layouts = Model::tight_layouts(header, &largest)?;
    Ok(layouts.swap_remove(header.drawn_table()))
}

/// Where the codes of a link lie in its own keys and in the joint ones.
struct Slices<'a> {
    joint: &'a Layout,
    given: &'a [usize],
    target: usize,
    layout: &'a Layout,
    /// And where that of its dimension lies in joint keys.
    tie: Option<(&'a Tie, usize)>,
    follows: Option<Follows<'a>>,
}

impl Slices<'_> {
    /// Bits of the given codes in a joint key.
    fn mask(&self) -> u64 {
        self.given.iter().fold(0, |mask, &at| mask | self.joint.place(at).bits())
    }

    /// Where the codes below a tie's bound end among the cells of a slice, if these are in the order of codes.
    fn small(&self, cells: &Cells, slice: &Range<usize>, below: u32) -> Option<usize> {
        let code = |key: u64| self.layout.code(key, self.given.len());
        let keys = &cells.keys[slice.clone()];
        let in_order = keys.is_sorted_by_key(|key| code(*key));
        in_order.then(|| slice.start + keys.partition_point(|key| code(*key) < below))
    }

    /// The cells for a card: those of its given codes, without the last of them as long as there are none.
    fn find(&self, cells: &Cells, card: u64) -> Range<usize> {
        for known in (1..=self.given.len()).rev() {
            let code =
                |(at, &place): (usize, &usize)| self.layout.place(at).part(self.joint.code(card, place));
            let parts = self.given[..known].iter().enumerate().map(code);
            let Some(first) = parts.into_iter().try_fold(0, |key, part| Some(key | part?)) else { continue };
            let rest = (known..=self.given.len()).fold(0, |rest, at| rest | self.layout.place(at).bits());
            let from = cells.keys.partition_point(|&key| key < first);
            let to = cells.keys.partition_point(|&key| key <= first | rest);
            if from < to {
                return from..to;
            }
        }
        0..cells.len()
    }
}

/// Memory for dealing.
#[derive(Default)]
struct Dealer {
    /// Given codes and number of each card, in the order of the codes.
    order: Vec<(u64, u32)>,
    /// Requests of each cell and those before it.
    ends: Vec<u128>,
}

impl Dealer {
    /// Sets the codes of one link in cards.
    fn deal(
        &mut self,
        slices: &Slices<'_>,
        cells: &Cells,
        cards: &mut [u64],
        rng: &mut Random,
    ) -> Result<()> {
        if cards.is_empty() {
            return Ok(());
        }
        if cells.is_empty() {
            return Err(Error::new(
                ErrorKind::Damaged,
                "the model's cells are damaged: a table of its chain is empty",
            )
            .help("fit the model again, or fetch the file again"));
        }
        let mask = slices.mask();
        self.order.clear();
        self.order.extend(cards.iter().zip(0..).map(|(&card, number)| (card & mask, number)));
        if mask != 0 {
            self.order.sort_unstable();
        }
        self.ends.clear();
        let mut end = 0;
        self.ends.extend(cells.counts.iter().map(|&n| {
            end += u128::from(n);
            end
        }));
        let at = slices.given.len();
        let target = slices.joint.place(slices.target);
        for same in self.order.chunk_by_mut(|a, b| a.0 == b.0) {
            shuffle(same, rng);
            let slice = slices.find(cells, cards[same[0].1 as usize]);
            let before = slice.start.checked_sub(1).map_or(0, |last| self.ends[last]);
            let (n, requests) = (same.len() as u128, self.ends[slice.end - 1] - before);
            // Every `requests / n`-th request of the slice, from anywhere in the first part on.
            let shift = u128::from(below(rng, n as u64));
            let wanted = |i: usize| before + (i as u128 * requests + shift * requests / n) / n;
            let coded = |number: u32| {
                let code = |(tie, place): (&Tie, usize)| {
                    slices.joint.code(cards[number as usize], place) == tie.code
                };
                slices.tie.is_some_and(code)
            };
            if let Some((tie, _)) = slices.tie
                && let Some(end) = slices.small(cells, &slice, tie.below)
                && let Some(last) = end.checked_sub(1).filter(|last| *last >= slice.start)
            {
                let small = (0..same.len()).filter(|i| wanted(*i) < self.ends[last]).count();
                arrange(same, small, tie.odds, coded, rng);
            }
            let cell_of = |cell: usize, i: usize| {
                let wanted = wanted(i);
                if self.ends[cell] > wanted {
                    cell
                } else {
                    cell + self.ends[cell..slice.end].partition_point(|&end| end <= wanted)
                }
            };
            if let Some(follows) = &slices.follows {
                let mut cell = slice.start;
                let is_next = |i: usize| {
                    cell = cell_of(cell, i);
                    follows.is_next(slices.layout.code(cells.keys[cell], at))
                };
                let can = |number: u32| follows.can(slices.joint, cards[number as usize]);
                exchange(same, is_next, can, coded, rng);
            }
            let mut cell = slice.start;
            for (i, card) in same.iter().enumerate() {
                cell = cell_of(cell, i);
                cards[card.1 as usize] |= target.key(slices.layout.code(cells.keys[cell], at));
            }
        }
        Ok(())
    }
}

/// Puts cards that `can` where what is dealt continues the request before, in exchange for any others, of those that
/// are coded alike where there are such.
fn exchange(
    cards: &mut [(u64, u32)],
    mut is_next: impl FnMut(usize) -> bool,
    can: impl Fn(u32) -> bool,
    coded: impl Fn(u32) -> bool,
    rng: &mut Random,
) {
    let mut wrong = Vec::new();
    let mut others = [Vec::new(), Vec::new()];
    for (i, &(_, number)) in cards.iter().enumerate() {
        match (is_next(i), can(number)) {
            (true, false) => wrong.push(i),
            (false, true) => others[usize::from(coded(number))].push(i),
            _ => {}
        }
    }
    if wrong.is_empty() {
        return;
    }
    others.iter_mut().for_each(|others| shuffle(others, rng));
    for i in wrong {
        let like = usize::from(coded(cards[i].1));
        let Some(other) = others[like].pop().or_else(|| others[1 - like].pop()) else { return };
        cards.swap(i, other);
    }
}

/// Puts so many of the coded cards among the first `small` ones as the odds say, and shuffles both parts.
fn arrange(cards: &mut [(u64, u32)], small: usize, odds: f64, coded: impl Fn(u32) -> bool, rng: &mut Random) {
    // In any order already, so the first of each kind are as good as any.
    let (mut with, without): (Vec<_>, Vec<_>) = cards.iter().partition(|(_, number)| coded(*number));
    let both = both(cards.len() as f64, with.len() as f64, small as f64, odds);
    let part = (both.fract() * (1u64 << 32) as f64) as u64;
    let both = both as usize + usize::from(below(rng, 1 << 32) < part);
    let both = both.clamp(small.saturating_sub(without.len()), with.len().min(small));
    let later = with.split_off(both);
    let order = with.into_iter().chain(without).chain(later);
    cards.iter_mut().zip(order).for_each(|(card, other)| *card = other);
    let (first, last) = cards.split_at_mut(small);
    shuffle(first, rng);
    shuffle(last, rng);
}
