//! A dimension of the table that is drawn from.

use crate::error::{Error, ErrorKind, Result};
use crate::feature::Field;
use crate::model::Model;
use crate::random::Random;
use crate::sample::decode::Decoder;
use crate::schema::cells::KeyField;
use crate::schema::dimension::{Dimension, Role};
use crate::schema::header::Header;

/// Where the codes of a dimension lie in a key, and the numbers of each code.
#[derive(Default)]
pub(crate) struct Column {
    pub place: KeyField,
    pub numbers: Decoder,
}

impl Column {
    /// The code in a key; 0 where the model does not have the dimension.
    #[inline]
    pub fn code(&self, key: u64) -> u32 {
        self.place.code(key)
    }

    /// A number of the code in a key.
    #[inline]
    pub fn draw(&self, key: u64, rng: &mut Random) -> i64 {
        self.numbers.draw(self.code(key), rng)
    }

    /// Smallest and largest number of the code in a key; `None` where there is no number.
    pub fn range(&self, key: u64) -> Option<(i64, i64)> {
        let code = self.code(key);
        (code != 0).then(|| self.numbers.range(code))
    }

    /// The number in the middle of the code in a key.
    #[inline]
    pub fn middle(&self, key: u64) -> i64 {
        self.numbers.middle(self.code(key))
    }
}

/// The dimensions of a model's drawn table.
pub(crate) struct Columns<'a> {
    model: &'a Model,
    table: usize,
}

impl<'a> Columns<'a> {
    pub fn of(model: &'a Model) -> Columns<'a> {
        Columns { model, table: model.header.drawn_table() }
    }

    /// Everything but the cells.
    pub fn header(&self) -> &'a Header {
        &self.model.header
    }

    /// Position of the table.
    pub fn table(&self) -> usize {
        self.table
    }

    /// The dimensions in the order of the key, and where each lies in it.
    pub fn all(&self) -> impl Iterator<Item = (&'a Dimension, KeyField)> + 'a {
        let (header, layout) = (&self.model.header, &self.model.layouts[self.table]);
        let drawn = header.tables[self.table].dimensions.iter().enumerate();
        drawn.map(move |(at, &d)| (&header.dimensions[d], layout.place(at)))
    }

    /// The dimension that sets a field.
    pub fn dimension(&self, field: Field) -> Option<&'a Dimension> {
        let sets = |d: &&Dimension| d.role == Role::Sets && d.feature.kind().field == field;
        self.all().map(|(dimension, _)| dimension).find(sets)
    }

    /// The column that sets a field, if the model has one.
    ///
    /// # Errors
    /// When the dimension is in no table.
    pub fn find(&self, field: Field) -> Result<Option<Column>> {
        let header = &self.model.header;
        let sets = |d: &Dimension| d.role == Role::Sets && d.feature.kind().field == field;
        let Some((dimension, place)) = self.all().find(|(d, _)| sets(d)) else { return Ok(None) };
        let at = header.dimensions.iter().position(|d| std::ptr::eq(d, dimension)).expect("one of them");
        let codes = self.model.marginal(at, None)?.keys.into_iter().map(|code| code as u32);
        // A region's number says nothing of the offset's grain.
        let grain = if field == Field::Region { 1 } else { dimension.grain };
        let numbers = Decoder::new(&dimension.rule, grain, dimension.largest, codes);
        Ok(Some(Column { place, numbers }))
    }

    /// The same; one without numbers where the model has none.
    ///
    /// # Errors
    /// When the dimension is in no table.
    pub fn column(&self, field: Field) -> Result<Column> {
        Ok(self.find(field)?.unwrap_or_default())
    }

    /// The same of what every model sets.
    ///
    /// # Errors
    /// When the model does not.
    pub fn need(&self, field: Field, name: &str) -> Result<Column> {
        self.find(field)?.ok_or_else(|| Error::new(ErrorKind::Asked, format!("the model sets no {name}")))
    }
}
