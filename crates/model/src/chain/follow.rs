//! What a link need not be told: a request that continues the one before it is of the same op.
//!
//! A link of `resume` that is not given both ops holds them apart, and a drawn request whose op is another cannot go on
//! from where it should. Which of a slice's requests continue the one before follows from what the feature means, and
//! costs no cell. In cloudPhysicsIO's small model that was so in three of eight.

use super::Link;
use crate::cells::Layout;
use crate::dimension::Role;
use crate::feature::Field;
use crate::header::Header;
use crate::rule::Rule;
use loadstone_trace::Op;
use std::collections::BTreeMap;
use std::ops::Range;

/// Ops of the request and the one before it, where a link says whether it continues that one.
pub(super) struct Follows<'a> {
    own: &'a Rule,
    /// Rule of each op, and its position in joint keys.
    op: (&'a Rule, usize),
    before: (&'a Rule, usize),
    /// What the op before is given, by position in joint keys, and whether the matrix; nothing where it must stay, as
    /// others are given it.
    lends: Option<(Vec<usize>, bool)>,
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
        let is_resume = own.role == Role::Sets && own.feature.kind().field == Field::Resume;
        let (op, before) = (find(Role::Sets, false)?, find(Role::Given, true)?);
        let is_given = earlier.iter().chain([link]).any(|link| link.given.contains(&before.0));
        let told = earlier.iter().find(|link| link.dimension == before.0)?;
        let lends =
            (!is_given).then(|| (told.given.iter().filter_map(|d| place(*d)).collect(), told.by_matrix));
        let (op, before) = ((op.1, op.2), (before.1, before.2));
        is_resume.then_some(Follows { own: &own.rule, op, before, lends })
    }

    /// Whether a code of the link says that the request continues the one before.
    pub fn is_next(&self, code: u32) -> bool {
        self.own.range(code).is_some_and(|range| range.first >= -1 && range.last <= 1)
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
}
