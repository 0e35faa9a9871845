//! Factored models: the joint table stored as a chain of small conditional ones.
//!
//! Each *link* is a table of one dimension given a few others that links before it set, and perhaps the matrix; one
//! without the matrix is shared by all. That is a Bayesian network over the dimensions. It is only how a model is
//! stored: loading deals the joint cells out again ([`deal`]), so whatever uses a model need not know. Which dimension
//! needs which is learned from the joint cells ([`learn`]).

mod expand;
mod follow;
mod formula;
mod learn;
mod runs;
mod tables;
mod tie;

use crate::error::{Error, ErrorKind, Result};
use crate::model::Model;
use crate::schema::cells::{Cells, Layout};
pub use crate::schema::chain::{Chain, Formula, Link, LinkCells, Tie};
use crate::schema::header::Header;
pub use formula::{Bucket, Evaluate, buckets, register};

/// As many cells' bits a tie has to save.
const TIE_CELLS: f64 = 4.0;

impl Model {
    /// The same model stored as a chain, in which every cell saves at least so many bits.
    ///
    /// The joint cells become those that the chain tells: what is drawn is what anyone draws who loads the file. Where
    /// no chain has fewer cells than the joint tables, these stay.
    ///
    /// # Errors
    /// When the bits are not a number above 0.
    pub fn factored(&self, cell_bits: f64) -> Result<Model> {
        if !(cell_bits > 0.0 && cell_bits.is_finite()) {
            return Err(Error::new(
                ErrorKind::Asked,
                format!("{cell_bits} bits are nothing that a cell can save"),
            ));
        }
        let chained = self.chained(learn::learn(self, cell_bits))?;
        Ok(if chained.stored_cells() < self.joint().stored_cells() { chained } else { self.joint() })
    }

    /// The model with formulas in place of some cells of its chain, by number of the link; how many requests they
    /// have is found here.
    ///
    /// # Errors
    /// When the model is no chain, when a formula is of no slice, or when it cannot be evaluated.
    pub fn approximated(&self, formulas: Vec<(usize, Formula)>) -> Result<Model> {
        let mut header = self.header.clone();
        let mut links = self.links.clone();
        let Some(chain) = &mut header.chain else {
            return Err(Error::new(
                ErrorKind::Asked,
                "the model is not factored, so its slices are too short for formulas",
            )
            .help("loadstone model factor makes it so"));
        };
        if chain.links.iter().any(|link| !link.formulas.is_empty()) {
            return Err(Error::new(ErrorKind::Asked, "the model has formulas already")
                .help("factor it again: that makes cells of them"));
        }
        for (at, formula) in formulas {
            let link = chain
                .links
                .get_mut(at)
                .ok_or_else(|| Error::new(ErrorKind::Asked, format!("there is no link {at}")))?;
            link.formulas.push(formula);
        }
        for (link, own) in chain.links.iter_mut().zip(&mut links) {
            formula::replace(&self.header, link, own)?;
        }
        Model::of_chain(header, links, self.observed())
    }

    /// The model stored cell by cell, as changing it needs.
    pub(crate) fn joint(&self) -> Model {
        let header = Header { chain: None, ..self.header.clone() };
        Model { header, links: Vec::new(), ..self.clone() }
    }

    /// The model stored as `like` is, after a change.
    pub(crate) fn stored_as(self, like: &Model) -> Result<Model> {
        match &like.header.chain {
            Some(chain) => {
                // Formulas were fitted to what was there before.
                let mut chain = chain.clone();
                chain.links.iter_mut().for_each(|link| link.formulas.clear());
                self.chained(chain)
            }
            None => Ok(self),
        }
    }

    fn chained(&self, mut chain: Chain) -> Result<Model> {
        let links = tables::project(self, &chain);
        // The op is exact for every group of windows, and has nothing before it.
        for at in 1..chain.links.len() {
            chain.links[at].tie = tie::find(self, &chain.links, at, TIE_CELLS * chain.cell_bits);
            chain.links[at].continues = follow::shares(self, &chain.links[at], chain.cell_bits);
        }
        let header = Header { chain: Some(chain), ..self.header.clone() };
        Model::of_chain(header, links, self.observed())
    }

    /// A model of its links and the cells of its observed tables, by matrix; the links have been checked, their cells
    /// have not.
    pub(crate) fn of_chain(
        header: Header,
        links: Vec<LinkCells>,
        observed: Vec<(Layout, Vec<Cells>)>,
    ) -> Result<Model> {
        let chain = header.chain.iter().flat_map(|chain| &chain.links);
        let whole = chain.zip(&links).map(|(link, told)| {
            let cells = formula::expand(&header, link, told)?;
            Ok(LinkCells { layout: told.layout.clone(), cells })
        });
        let (layout, drawn) = expand::expand(&header, &whole.collect::<Result<Vec<LinkCells>>>()?)?;
        let at = header.drawn_table();
        let mut tables = observed;
        tables.insert(at, (layout, drawn));
        let mut model = Model { header, layouts: Vec::new(), matrices: Vec::new(), links };
        for (layout, cells) in tables {
            model.layouts.push(layout);
            model.matrices.resize_with(cells.len(), Default::default);
            for (matrix, cells) in model.matrices.iter_mut().zip(cells) {
                matrix.tables.push(cells);
            }
        }
        model.check()?;
        Ok(model)
    }

    /// Layout and cells, by matrix, of each table of an observed dimension.
    fn observed(&self) -> Vec<(Layout, Vec<Cells>)> {
        let tables = (0..self.header.tables.len()).filter(|t| *t != self.header.drawn_table());
        let cells = |t: usize| self.matrices.iter().map(|matrix| matrix.tables[t].clone()).collect();
        tables.map(|t| (self.layouts[t].clone(), cells(t))).collect()
    }
}
