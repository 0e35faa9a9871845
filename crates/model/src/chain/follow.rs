//! Which requests continue the one before them, where the tables of a chain do not say all of it.
//!
//! A request continues only one of its own op. A link of `resume` that does not depend on both ops loses this, and then
//! requests cannot continue where they should. A link that does not depend on the matrix loses how often each matrix
//! continues: quiet phases would then run on as often as copies do. One number for each matrix keeps that share, as
//! cells for it cost more than they saved on cloudPhysicsIO. Both are restored by exchanging codes between cards that
//! agree in all else, so every table keeps its counts.

use crate::feature::Field;
use crate::model::Model;
use crate::schema::cells::Layout;
use crate::schema::chain::Link;
use crate::schema::dimension::{Dimension, Role};
use crate::schema::header::Header;
use crate::schema::rule::Rule;
use loadstone_trace::Op;
use std::collections::BTreeMap;
use std::ops::Range;

/// What a share of a matrix takes of a cell's room.
const CELLS: f64 = 1.0 / 8.0;

/// Where shares are 1.
const WHOLE: f64 = 256.0;

/// How many of 256 requests of each matrix continue the one before by a link; nothing where that is not worth its room,
/// or known.
pub(super) fn shares(model: &Model, link: &Link, cell_bits: f64) -> Vec<u8> {
    let dimension = &model.header.dimensions[link.dimension];
    let (table, drawn) = (model.header.drawn_table(), model.header.drawn_table());
    let place = model.header.tables[drawn].dimensions.iter().position(|d| *d == link.dimension);
    let (Some(place), false) = (place.filter(|_| is_resume(dimension)), link.by_matrix) else {
        return Vec::new();
    };
    let layout = &model.layouts[table];
    let of = |matrix: &crate::model::Matrix| {
        let cells = &matrix.tables[table];
        let pairs = cells.keys.iter().zip(&cells.counts);
        let next = pairs.filter(|(key, _)| is_next(&dimension.rule, layout.code(**key, place)));
        (next.map(|(_, n)| *n).sum::<u64>() as f64, cells.counts.iter().sum::<u64>() as f64)
    };
    let told: Vec<(f64, f64)> = model.matrices.iter().map(of).collect();
    let all = told.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    // Bits that tell which of so many requests continue the one before.
    let bits = |(next, of): (f64, f64)| {
        let part = |n: f64| if n > 0.0 { n * (of / n).log2() } else { 0.0 };
        part(next) + part(of - next)
    };
    let saved = bits(all) - told.iter().map(|one| bits(*one)).sum::<f64>();
    if saved <= told.len() as f64 * CELLS * cell_bits {
        return Vec::new();
    }
    told.iter().map(|(next, of)| (next / of.max(1.0) * WHOLE).round().min(WHOLE - 1.0) as u8).collect()
}

pub(super) fn is_resume(dimension: &Dimension) -> bool {
    dimension.role == Role::Sets && dimension.feature.kind().field == Field::Resume
}

/// Whether a code of such a dimension says that the request continues the one before.
pub(super) fn is_next(rule: &Rule, code: u32) -> bool {
    rule.range(code).is_some_and(|range| range.first >= -1 && range.last <= 1)
}

/// Ops of the request and the one before it, where a link says whether it continues that one.
pub(super) struct Follows<'a> {
    own: &'a Rule,
    /// Rule of each op, and its position in joint keys.
    op: (&'a Rule, usize),
    before: (&'a Rule, usize),
    /// What the op before is given, by position in joint keys, and whether the matrix; nothing where it must stay, as
    /// others are given it.
    lends: Option<(Vec<usize>, bool)>,
    /// The run that the request may continue, where nothing else depends on it: then both change their card together.
    run: Option<(&'a Rule, usize)>,
}

impl<'a> Follows<'a> {
    /// Of a link, where others before it set both ops.
    pub fn of(header: &'a Header, earlier: &[Link], link: &Link) -> Option<Follows<'a>> {
        let drawn = &header.tables[header.drawn_table()].dimensions;
        let place = |d: usize| drawn.iter().position(|x| *x == d);
        let find = |role: Role, previous: bool| {
            let fits = |d: &usize| {
                let dimension = &header.dimensions[*d];
                let feature = dimension.feature;
                dimension.role == role && feature.previous == previous && feature.kind().field == Field::Op
            };
            let d = earlier.iter().map(|link| link.dimension).find(fits)?;
            Some((d, &header.dimensions[d].rule, place(d)?))
        };
        let own = &header.dimensions[link.dimension];
        let (op, before) = (find(Role::Sets, false)?, find(Role::Given, true)?);
        let is_given = earlier.iter().chain([link]).any(|link| link.given.contains(&before.0));
        let told = earlier.iter().find(|link| link.dimension == before.0)?;
        let lends =
            (!is_given).then(|| (told.given.iter().filter_map(|d| place(*d)).collect(), told.by_matrix));
        let (op, before) = ((op.1, op.2), (before.1, before.2));
        let is_run = |d: &usize| header.dimensions[*d].feature.kind().field == Field::Run;
        let run = link.given.iter().copied().find(is_run).filter(|d| {
            let alone = |other: &Link| {
                let own = other.dimension == *d;
                !other.given.contains(d) && !(own && (other.by_matrix || !other.given.is_empty()))
            };
            earlier.iter().all(alone)
        });
        let run = run.and_then(|d| Some((&header.dimensions[d].rule, place(d)?)));
        is_resume(own).then_some(Follows { own: &own.rule, op, before, lends, run })
    }

    /// Whether a code of the link says that the request continues the one before.
    pub fn is_next(&self, code: u32) -> bool {
        is_next(self.own, code)
    }

    /// Whether a request with this joint key can: requests without a place, which may stand between, do not count.
    pub fn can(&self, joint: &Layout, key: u64) -> bool {
        let op = |(rule, at): (&Rule, usize)| rule.range(joint.code(key, at)).map(|range| range.first);
        let (op, before) = (op(self.op), op(self.before));
        let has_place = [Op::Read, Op::Write, Op::Discard].iter().any(|op| before == Some(*op as i64));
        op == before || !has_place
    }
    /// Where cards that cannot are left, exchanges their op before with that of cards which are given the same and do
    /// not continue the request before: all tables stay. `target` is where the link's own codes lie.
    pub fn lend(
        &self,
        joint: &Layout,
        target: usize,
        matrices: impl Iterator<Item = Range<usize>>,
        keys: &mut [u64],
        mut shuffled: impl FnMut(&mut [usize]),
    ) {
        let Some((given, by_matrix)) = &self.lends else { return };
        let mask = given.iter().fold(0, |mask, &at| mask | joint.place(at).bits());
        let bits = joint.place(self.before.1).bits();
        // Cards that continue and cannot, and those that can and do not, by what their op before is given.
        let mut alike: BTreeMap<(usize, u64), [Vec<usize>; 2]> = BTreeMap::new();
        for (matrix, cards) in matrices.enumerate() {
            for card in cards {
                let (key, by) = (keys[card], if *by_matrix { matrix } else { 0 });
                let kind = match (self.is_next(joint.code(key, target)), self.can(joint, key)) {
                    (true, false) => 0,
                    (false, true) => 1,
                    _ => continue,
                };
                alike.entry((by, key & mask)).or_default()[kind].push(card);
            }
        }
        for [wrong, mut others] in alike.into_values() {
            shuffled(&mut others);
            for (a, b) in wrong.into_iter().zip(others) {
                let (of_a, of_b) = (keys[a] & bits, keys[b] & bits);
                keys[a] = keys[a] & !bits | of_b;
                keys[b] = keys[b] & !bits | of_a;
            }
        }
    }
    /// Whether a card continues a run, where that can change.
    fn runs(&self, joint: &Layout, key: u64) -> Option<bool> {
        let (rule, at) = self.run?;
        Some(rule.range(joint.code(key, at)).is_some_and(|range| range.first > 0))
    }

    /// Exchanges what the link says between cards of matrices that are given the same and of one op, until as many of
    /// each matrix continue the request before as its share says.
    ///
    /// Where the run before can go with it, requests within runs change places with such between them, those of the
    /// longest runs first: runs begin and end as often everywhere, and where more requests continue they are longer.
    pub fn spread(
        &self,
        joint: &Layout,
        (target, given): (usize, u64),
        matrices: impl Iterator<Item = Range<usize>>,
        shares: &[u8],
        keys: &mut [u64],
        mut shuffled: impl FnMut(&mut [(usize, usize)]),
    ) {
        let run = self.run.map_or(0, |(_, at)| joint.place(at).bits());
        let (mask, bits) = (given & !run | joint.place(self.op.1).bits(), joint.place(target).bits() | run);
        // How many more each matrix should have, and cards that continue and that do not, by what they are given.
        let mut lacks: Vec<i64> = Vec::new();
        let mut alike: BTreeMap<u64, [Vec<(usize, usize)>; 2]> = BTreeMap::new();
        for ((matrix, cards), share) in matrices.enumerate().zip(shares) {
            lacks.push((cards.len() as f64 * f64::from(*share) / WHOLE).round() as i64);
            for card in cards {
                let next = self.is_next(joint.code(keys[card], target));
                lacks[matrix] -= i64::from(next);
                if self.runs(joint, keys[card]).is_none_or(|runs| runs == next) {
                    alike.entry(keys[card] & mask).or_default()[usize::from(!next)].push((matrix, card));
                }
            }
        }
        let next: usize = alike.values().map(|[next, _]| next.len()).sum();
        let moves: i64 = lacks.iter().filter(|lack| **lack < 0).map(|lack| -lack).sum();
        // What is given takes part as often as it has such requests; what is left then, whoever can.
        for all in [false, true] {
            for [from, to] in alike.values_mut() {
                let part = (moves as f64 * from.len() as f64 / next.max(1) as f64).ceil() as usize;
                shuffled(from);
                shuffled(to);
                from.sort_by_key(|(_, card)| std::cmp::Reverse(keys[*card] & run));
                let (mut at, mut done) = (0, 0);
                for (giver, a) in from.iter_mut() {
                    if done >= part && !all {
                        break;
                    }
                    if lacks[*giver] >= 0 {
                        continue;
                    }
                    let Some(more) = to[at..].iter().position(|(taker, _)| lacks[*taker] > 0) else { break };
                    at += more;
                    let (taker, b) = &mut to[at];
                    let (of_a, of_b) = (keys[*a] & bits, keys[*b] & bits);
                    keys[*a] = keys[*a] & !bits | of_b;
                    keys[*b] = keys[*b] & !bits | of_a;
                    (lacks[*giver], lacks[*taker]) = (lacks[*giver] + 1, lacks[*taker] - 1);
                    std::mem::swap(giver, taker);
                    std::mem::swap(a, b);
                    (at, done) = (at + 1, done + 1);
                }
            }
        }
    }
}
