//! Drawing from a chain of tables: one request after the other, from the slices that are given.

use super::deal::Part;
use super::decode::below;
use super::place::Fit;
use super::{At, Drawer, GAP, GivenSource, Sampler};
use std::sync::Arc;

impl Sampler {
    /// Draws one request after the other, each from the slices the ones before it select.
    pub(super) fn draw_chain(&mut self, matrix: usize, drawers: &mut [Drawer], parts: &[Part]) {
        for part in parts.iter().filter(|part| part.requests > 0) {
            self.draw_part(matrix, drawers, part.requests);
            self.settle(part);
        }
    }

    fn draw_part(&mut self, matrix: usize, drawers: &mut [Drawer], n: usize) {
        let model = Arc::clone(&self.model);
        let mut tables = std::mem::take(&mut self.tables);
        let mut keys = vec![0u64; model.header.tables.len()];
        for _ in 0..n {
            let mut backed_off = false;
            for ((t, given), drawer) in tables.iter_mut().zip(drawers.iter_mut()) {
                let cells = &model.matrices[matrix].tables[*t];
                let rng = &mut self.rng;
                keys[*t] = match drawer {
                    Drawer::Deck(deck) => cells.keys[deck.draw(|n| below(rng, n)) as usize],
                    Drawer::Joint(_) => unreachable!("one table is walked"),
                    Drawer::Slices(slices) => {
                        let (mut key, mut unknown) = (0, 0);
                        for g in given {
                            let code = match &mut g.source {
                                GivenSource::Previous { feature, codes } => codes.code(self.last[*feature]),
                                GivenSource::Drawn(from) => from.place.code(keys[from.table]),
                            };
                            match g.place.part(code) {
                                Some(part) => key |= part,
                                None => unknown |= g.place.bits(),
                            }
                        }
                        let (cell, dropped) = slices.draw(key, unknown, |n| below(rng, n));
                        backed_off |= dropped > 0;
                        cells.keys[cell]
                    }
                };
            }
            self.tally.backed_off += u64::from(backed_off);
            let code = |at: At| at.place.code(keys[at.table]);
            let gap = self.decode_gap.draw(code(self.gap), &mut self.rng).max(0);
            self.last[GAP] = gap;
            // There is no other draw to exchange it for: the remainder in a page gives way, then the place.
            let align = self.align;
            let anywhere = |at: At| if at == align { 0 } else { code(at) };
            if self.emit(code, Fit::Aged).is_err() && self.emit(anywhere, Fit::Aged).is_err() {
                let _forced = self.emit(anywhere, Fit::Forced);
            }
            self.gaps.push(gap);
        }
        self.tables = tables;
    }
}
