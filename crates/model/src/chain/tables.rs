//! From joint cells to the tables of a chain.

use crate::model::Model;
use crate::schema::cells::{Cells, Layout};
use crate::schema::chain::{Chain, Link, LinkCells};

/// The tables of a chain's links, summed from the joint cells.
pub(super) fn project(model: &Model, chain: &Chain) -> Vec<LinkCells> {
    let table = model.header.drawn_table();
    let (joint, dimensions) = (&model.layouts[table], &model.header.tables[table].dimensions);
    let link = |link: &Link| {
        let place = |d: &usize| dimensions.iter().position(|x| x == d).expect("links set what is drawn");
        let places: Vec<usize> = link.dimensions().iter().map(place).collect();
        let bits: Vec<u8> = places.iter().map(|&at| joint.bits(at)).collect();
        let layout = Layout::new(&bits).expect("a part of keys that fit");
        let sum = |cells: &Cells| {
            let key = |key: u64| layout.pack(places.iter().map(|&at| joint.code(key, at)));
            Cells::from_pairs(cells.keys.iter().zip(&cells.counts).map(|(&k, &n)| (key(k), n)).collect())
        };
        let mut cells: Vec<Cells> = model.matrices.iter().map(|matrix| sum(&matrix.tables[table])).collect();
        if !link.by_matrix {
            let pairs = cells.iter().flat_map(|c| c.keys.iter().copied().zip(c.counts.iter().copied()));
            cells = vec![Cells::from_pairs(pairs.collect())];
        }
        LinkCells { layout, cells }
    };
    chain.links.iter().map(link).collect()
}
