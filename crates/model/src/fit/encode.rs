//! Encoding: batches become keys.

use crate::error::{Error, ErrorKind, Result};
use crate::feature::files::catalog::Catalog;
use crate::feature::recency::ReuseDistance;
use crate::feature::recency::distances::Distances;
use crate::feature::{Context, Feature, FeatureId, Field, Rows};
use crate::fit::calibrate::Common;
use crate::fit::coder::Coder;
use crate::fit::early::{Ahead, Known};
use crate::fit::options::FitOptions;
use crate::schema::cells::{KeyField, Layout, TOO_WIDE, bits_for};
use crate::schema::dimension::{Dimension, Role, Spec};
use crate::schema::header::{Header, Table};
use crate::schema::mask::{self, By, Masks, Numbers};
use crate::schema::mean_sizes::{MeanSize, SizeSums};
use crate::schema::rule::{OVER, Rule};
use loadstone_trace::{NONE, wide};
use std::sync::Arc;

/// Requests encoded together: every column of them fits the second-level cache.
pub(crate) const ROWS: usize = 1 << 12;

/// A dimension while it is being counted.
struct Column {
    id: FeatureId,
    role: Role,
    feature: Box<dyn Feature>,
    rule: Rule,
    coder: Coder,
    values: Vec<i64>,
    codes: Vec<u32>,
    /// Bits of all magnitudes seen, for the grain.
    or: u64,
    /// Largest number seen.
    largest: i64,
    bits: u8,
}

/// A batch as keys.
#[derive(Default)]
pub(crate) struct Encoded {
    /// Keys, by table.
    pub keys: Vec<Vec<u64>>,
    /// Nanoseconds.
    pub time: Vec<i64>,
    /// Bytes.
    pub size: Vec<i64>,
    /// How keys are laid out from this batch on, where that is new.
    pub layouts: Option<Vec<Layout>>,
}

/// Turns requests into keys, once calibration is over.
pub(crate) struct Encoder {
    codes: Codes,
    /// Stack distances of requests of files, and memory for their numbers.
    distances: Option<(ReuseDistance, Vec<i64>)>,
    /// Dimensions of each table.
    members: Vec<Vec<usize>>,
    layouts: Vec<Layout>,
    /// The dimensions that set op and size, and what requests of these have together.
    sized: Option<(usize, usize)>,
    sums: SizeSums,
}

impl Column {
    fn new(id: FeatureId, role: Role, rule: Rule, context: &Context) -> Column {
        Column {
            id,
            role,
            feature: id.start(context),
            coder: Coder::new(&rule),
            rule,
            values: Vec::new(),
            codes: Vec::new(),
            or: 0,
            largest: NONE,
            bits: 1,
        }
    }
}

/// The columns that lead to an offset.
struct Deciders {
    jump: Option<usize>,
    resume: Option<usize>,
    reuse: Option<usize>,
    region: Option<usize>,
}

impl Deciders {
    fn new(dimensions: impl Iterator<Item = (FeatureId, Role)> + Clone) -> Deciders {
        let at = |field| dimensions.clone().position(|d| d.1 == Role::Sets && d.0.kind().field == field);
        Deciders {
            jump: at(Field::Jump),
            resume: at(Field::Resume),
            reuse: at(Field::Reuse),
            region: at(Field::Region),
        }
    }
}

/// Codes of all dimensions, a few rows at a time.
pub(crate) struct Codes {
    columns: Vec<Column>,
    context: Context,
    masks: Masks,
    places: Deciders,
    by: Vec<By>,
}

impl Codes {
    /// By the dimensions of a model, to measure other requests with; `catalog` is of their files.
    pub fn of(header: &Header, catalog: Arc<Catalog>) -> Codes {
        let most = header.objects.iter().map(|o| o.id as usize + 1).max().unwrap_or(0);
        let mut shifts = vec![0; most];
        header.objects.iter().for_each(|o| shifts[o.id as usize] = o.region_shift);
        let other_shift = shifts.iter().copied().max().unwrap_or(0);
        let context = Context { region_shift: Arc::new(shifts), other_shift, catalog };
        let dimensions = header.dimensions.iter();
        let columns =
            dimensions.clone().map(|d| Column::new(d.feature, d.role, d.rule.clone(), &context)).collect();
        let places = Deciders::new(dimensions.map(|d| (d.feature, d.role)));
        let masks = Masks::new(header.offset_rule, header.far);
        Codes { columns, context, masks, places, by: Vec::new() }
    }

    /// Computes the codes of some rows, of which some numbers are known.
    pub fn fill(&mut self, rows: &Rows<'_>, known: &Known) {
        for (d, column) in self.columns.iter_mut().enumerate() {
            if !known.iter().any(|(dimension, _)| *dimension == d) {
                column.feature.values(rows, &mut column.values);
            }
        }
        code(self, rows);
    }

    /// The numbers of the rows, by dimension.
    pub fn numbers(&self) -> impl Iterator<Item = &[i64]> {
        self.columns.iter().map(|column| &*column.values)
    }

    /// The codes of the rows, by dimension.
    pub fn columns(&self) -> impl Iterator<Item = &[u32]> {
        self.columns.iter().map(|column| &*column.codes)
    }

    /// Blanks codes that do not decide where a request goes.
    #[inline(always)]
    fn mask(&mut self, rows: &Rows<'_>) {
        let values = |d: usize| &*self.columns[d].values;
        let numbers = Numbers {
            jump: self.places.jump.map(values),
            resume: self.places.resume.map(values),
            reuse: self.places.reuse.map(values),
        };
        self.masks.decide(&numbers, rows.object, &self.context, &mut self.by);
        for (mine, d) in
            [(By::Resume, self.places.resume), (By::Jump, self.places.jump), (By::Region, self.places.region)]
        {
            if let Some(d) = d {
                mask::blank(&self.by, mine, &mut self.columns[d].codes, 0);
            }
        }
        if let Some(d) = self.places.reuse {
            let column = &mut self.columns[d];
            let again = column.coder.code(0);
            mask::blank_ages(&self.by, &mut column.codes, again);
        }
    }
}

wide! {
    /// The codes of the numbers.
    fn code(codes: &mut Codes, rows: &Rows<'_>) {
        for column in &mut codes.columns {
            let (mut or, mut largest) = (column.or, column.largest);
            for &value in &column.values {
                or |= if value == NONE { 0 } else { value.unsigned_abs() };
                largest = largest.max(value);
            }
            (column.or, column.largest) = (or, largest);
            column.coder.column(&column.values, &mut column.codes);
        }
        codes.mask(rows);
    }
}

wide! {
    fn largest(codes: &[u32]) -> u32 {
        codes.iter().fold(0, |most, &code| most.max(code))
    }
}

wide! {
    /// Adds a dimension's codes to keys.
    fn add_codes(keys: &mut [u64], codes: &[u32], place: KeyField) {
        for (key, &code) in keys.iter_mut().zip(codes) {
            *key |= place.key(code);
        }
    }
}

impl Encoder {
    /// Learns the common values from a buffer of requests; `specs` are the dimensions.
    ///
    /// # Errors
    /// [`ErrorKind::TooWide`] where keys need more than 64 bits.
    pub fn new(specs: &[Spec], options: &FitOptions, context: Context, buffer: &[Ahead]) -> Result<Encoder> {
        let places = Deciders::new(specs.iter().map(|s| (s.feature, s.role)));
        let mut masks = Masks::new(options.offset_rule, options.far);
        let mut columns = Vec::new();
        for (d, spec) in specs.iter().enumerate() {
            let mut common = Common::default();
            if spec.rule.exact {
                let run = |d: usize| (d, specs[d].feature.start(&context), Vec::new());
                let mut own = run(d);
                // Jumps that do not decide are not told apart, so they need no values of their own.
                let others = places.jump.filter(|jump| *jump == d).map(|_| [places.resume, places.reuse]);
                let mut others = others.unwrap_or_default().map(|d| d.map(run));
                let mut by = Vec::new();
                for (batch, known) in buffer {
                    let rows = Rows::of(batch, 0..batch.len());
                    let numbers = |(d, feature, values): &mut (usize, Box<dyn Feature>, Vec<i64>)| match known
                        .iter()
                        .find(|(dimension, _)| dimension == d)
                    {
                        Some((_, known)) => values.clone_from(known),
                        None => feature.values(&rows, values),
                    };
                    numbers(&mut own);
                    let [resume, reuse] = others.each_mut().map(|other| {
                        let other = other.as_mut()?;
                        numbers(other);
                        Some(&*other.2)
                    });
                    let values = &mut own.2;
                    if places.jump == Some(d) {
                        let numbers = Numbers { jump: Some(values), resume, reuse };
                        masks.decide(&numbers, &batch.object, &context, &mut by);
                        mask::blank(&by, By::Jump, values, NONE);
                    }
                    common.add(values);
                }
            }
            let rule = spec.rule.learned(spec.feature.kind().signed, common.values());
            columns.push(Column::new(spec.feature, spec.role, rule, &context));
        }
        // Requests of files are not drawn by it, and their offsets are chosen so that it comes out right.
        let distances = options.files.then(Default::default);
        // One joint table of all that is generated, and one for each observed dimension.
        let mut members: Vec<Vec<usize>> = vec![Vec::new()];
        for (d, spec) in specs.iter().enumerate() {
            match spec.role {
                Role::Observed => members.push(vec![d]),
                _ => members[0].push(d),
            }
        }
        let codes = Codes { columns, context, masks, places, by: Vec::new() };
        let sets = |field| specs.iter().position(|s| s.role == Role::Sets && s.feature.kind().field == field);
        let sized = sets(Field::Op).zip(sets(Field::Size));
        let mut encoder =
            Encoder { codes, distances, members, layouts: Vec::new(), sized, sums: SizeSums::default() };
        encoder.layouts = encoder.layouts_now()?;
        Ok(encoder)
    }

    /// Dimensions of each table, and how its keys are laid out so far.
    pub fn layout(&self) -> (&[Vec<usize>], &[Layout]) {
        (&self.members, &self.layouts)
    }

    /// log2 of the region width of an object.
    pub fn shift(&self, object: u32) -> u8 {
        self.codes.context.shift(object)
    }

    /// Position and rule of the dimension that sets the size.
    pub fn size(&self) -> (usize, Rule) {
        let is_size = |c: &Column| c.role == Role::Sets && c.id.kind().field == Field::Size;
        let found = self.codes.columns.iter().position(is_size);
        found.map_or((0, Rule::Linear { width: 1, signed: false }), |d| {
            (d, self.codes.columns[d].rule.clone())
        })
    }

    /// Stack distances of all blocks: of requests of files, and where requests are drawn by that of their last block.
    pub fn distances(&self) -> Option<Distances> {
        let sets = |c: &&Column| c.role == Role::Sets && c.id.kind().field == Field::Distance;
        match &self.distances {
            Some((counts, _)) => counts.distances(),
            None => self.codes.columns.iter().find(sets)?.feature.distances(),
        }
    }

    /// Mean sizes of buckets, by op.
    pub fn mean_sizes(&self) -> Vec<MeanSize> {
        let Some((op, size)) = self.sized else { return Vec::new() };
        let ops = self.codes.columns[op].coder.categories().unwrap_or_default();
        self.sums.means(ops, &self.codes.columns[size].rule)
    }

    pub fn tables(&self) -> Vec<Table> {
        let given = |d: &usize| self.codes.columns[*d].role == Role::Given;
        (self.members.iter())
            .map(|m| Table { dimensions: m.clone(), given: m.iter().copied().filter(given).collect() })
            .collect()
    }

    fn layouts_now(&self) -> Result<Vec<Layout>> {
        (self.members.iter())
            .map(|m| {
                let bits: Vec<u8> = m.iter().map(|&d| self.codes.columns[d].bits).collect();
                Layout::new(&bits).ok_or_else(|| {
                    let each: Vec<String> = m
                        .iter()
                        .map(|&d| format!("{} {}", self.codes.columns[d].id, self.codes.columns[d].bits))
                        .collect();
                    Error::new(ErrorKind::TooWide, format!("{TOO_WIDE} ({})", each.join(", ")))
                        .help("use coarser buckets or fewer dimensions")
                })
            })
            .collect()
    }

    /// Keys of a batch, whose times and sizes are handed on with them.
    ///
    /// # Errors
    /// [`ErrorKind::Requests`] where a number has no bucket, [`ErrorKind::TooWide`] where keys outgrow 64 bits.
    pub fn encode(&mut self, ahead: &mut Ahead, out: &mut Encoded) -> Result<()> {
        let (batch, known) = ahead;
        out.layouts = None;
        out.keys.resize(self.members.len(), Vec::new());
        out.keys.iter_mut().for_each(Vec::clear);
        for from in (0..batch.len()).step_by(ROWS) {
            let rows = from..(from + ROWS).min(batch.len());
            for (d, values) in known.iter() {
                self.codes.columns[*d].values.clear();
                self.codes.columns[*d].values.extend_from_slice(&values[rows.clone()]);
            }
            self.encode_rows(&Rows::of(batch, rows), known, out)?;
        }
        std::mem::swap(&mut out.time, &mut batch.time);
        std::mem::swap(&mut out.size, &mut batch.size);
        Ok(())
    }

    /// Adds the keys of some rows; all are wider once a code has outgrown its bits.
    fn encode_rows(&mut self, rows: &Rows<'_>, known: &Known, out: &mut Encoded) -> Result<()> {
        self.codes.fill(rows, known);
        if let Some((counts, values)) = &mut self.distances {
            counts.values(rows, values);
        }
        if let Some((op, size)) = self.sized {
            let (ops, sizes) = (&self.codes.columns[op], &self.codes.columns[size]);
            self.sums.add(&ops.codes, &sizes.codes, &sizes.values);
        }
        let mut grown = false;
        for column in &mut self.codes.columns {
            let largest = largest(&column.codes);
            if largest == OVER {
                let i = column.codes.iter().position(|&c| c == OVER).unwrap_or(0);
                return Err(Error::new(
                    ErrorKind::Requests,
                    format!("{} {} {} has no bucket", column.id, column.values[i], column.id.kind().unit),
                )
                .help("use wider buckets, or log2 instead of linear"));
            }
            if bits_for(largest) > column.bits {
                column.bits = bits_for(largest);
                grown = true;
            }
        }
        if grown {
            let wider = self.layouts_now()?;
            for ((old, new), keys) in self.layouts.iter().zip(&wider).zip(&mut out.keys) {
                keys.iter_mut().for_each(|key| *key = old.rekey(new, *key));
            }
            out.layouts = Some(wider.clone());
            self.layouts = wider;
        }
        for ((members, layout), keys) in self.members.iter().zip(&self.layouts).zip(&mut out.keys) {
            let before = keys.len();
            keys.resize(before + rows.len(), 0);
            for (at, &d) in members.iter().enumerate() {
                add_codes(&mut keys[before..], &self.codes.columns[d].codes, layout.place(at));
            }
        }
        Ok(())
    }

    /// The dimensions with what was learned of them.
    pub fn into_dimensions(self) -> Vec<Dimension> {
        let dimension = |column: Column| Dimension {
            feature: column.id,
            role: column.role,
            rule: match column.coder.categories() {
                Some(values) => Rule::Category { values: values.to_vec() },
                None => column.rule,
            },
            grain: grain(column.or),
            largest: (column.largest != NONE).then_some(column.largest),
            unit: Some(column.id.kind().unit)
                .filter(|unit| column.id.is_users() && !unit.is_empty())
                .map(str::to_owned),
        };
        self.codes.columns.into_iter().map(dimension).collect()
    }
}

/// Largest power of two that divides all the numbers whose bits were gathered.
pub(crate) fn grain(or: u64) -> i64 {
    if or == 0 { 1 } else { 1 << or.trailing_zeros().min(62) }
}
