//! One property of a load changed, the others left as they were.

use super::reweight::{Group, Told};
use super::stretch::Stretch;
use crate::error::{Error, ErrorKind, Result};
use crate::feature::Field;
use crate::model::Model;
use crate::schema::dimension::Role;
use loadstone_trace::Op;
use serde::{Deserialize, Serialize};

/// Largest factor, and the reciprocal of the smallest.
const MOST: f64 = 1e6;

/// What block devices address, bytes.
const SECTOR: i64 = 512;

/// Narrowest and widest region, log2 of bytes.
const SHIFTS: (i32, i32) = (12, 62);

/// What is changed of a model; what is not given stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scale {
    /// Requests per second, times this, in every window: gaps shrink as numbers grow.
    pub rate: Option<f64>,
    /// Bytes of every object, times this: what does not go on from other requests or come back to places lies that
    /// much farther apart.
    pub footprint: Option<f64>,
    /// Share of reads in all reads and writes. The odds change by the same factor at all times; a time of writes alone
    /// gets reads only where the share cannot be reached otherwise, such as they are at other times.
    pub read_share: Option<f64>,
    /// Bytes of every request, times this, rounded to the grain of sizes.
    pub size: Option<f64>,
}

impl Model {
    /// The model with some properties changed.
    ///
    /// # Errors
    /// When a factor is out of bounds, when there is nothing to change, or when what comes out is no model.
    pub fn scaled(&self, scale: &Scale) -> Result<Model> {
        if *scale == Scale::default() {
            return Err(Error::new(ErrorKind::Asked, "there is nothing to change")
                .help("give a rate, footprint, read share or size"));
        }
        let mut model = self.joint();
        if let Some(share) = scale.read_share {
            model = model.with_reads(share)?;
        }
        if let Some(factor) = scale.size {
            let factor = checked("size", factor)?;
            model = model.stretched_all(Field::Size, |grain| {
                let grain = finer(grain, factor);
                Stretch { factor, grain, covers: false }
            })?;
            // Buckets fall into several others, and nothing tells which sizes into which.
            model.header.mean_sizes.clear();
        }
        if let Some(factor) = scale.footprint {
            model = model.spread(checked("footprint", factor)?)?;
        }
        if let Some(factor) = scale.rate {
            model = model.faster(checked("rate", factor)?)?;
        }
        model.header.source.changes.extend(scale.told());
        let model = model.tight()?;
        model.header.check()?;
        model.check()?;
        model.stored_as(self)
    }

    /// The dimension that sets a field, if one does.
    fn sets(&self, field: Field) -> Option<usize> {
        let dimensions = &self.header.dimensions;
        dimensions.iter().position(|d| d.role == Role::Sets && d.feature.kind().field == field)
    }

    fn op(&self) -> Result<usize> {
        self.sets(Field::Op)
            .ok_or_else(|| Error::new(ErrorKind::Asked, "no dimension of the model sets the op"))
    }

    /// Multiplies a field's numbers in all dimensions that are about it; `how` gets the grain of each.
    fn stretched_all(self, field: Field, how: impl Fn(i64) -> Stretch) -> Result<Model> {
        let mut model = self;
        for d in 0..model.header.dimensions.len() {
            let dimension = &model.header.dimensions[d];
            if dimension.feature.kind().field == field {
                model = model.stretched(d, &how(dimension.grain))?;
            }
        }
        Ok(model)
    }

    /// Makes all objects larger, and regions with them.
    fn spread(&self, factor: f64) -> Result<Model> {
        if self.sets(Field::Region).is_none() {
            let what = "places of this model are only jumps from each other, which have no extent";
            return Err(Error::new(ErrorKind::Asked, what).help("fit it with the offset rule near or region"));
        }
        // Regions grow by powers of two, what is left of the factor moves requests from one to others.
        let shifts = self.header.objects.iter().map(|o| i32::from(o.region_shift));
        let (least, most) = (shifts.clone().min().unwrap_or(SHIFTS.0), shifts.max().unwrap_or(SHIFTS.1));
        let doublings = (factor.log2().floor() as i32).clamp(SHIFTS.0.min(least) - least, SHIFTS.1 - most);
        let rest = factor / f64::from(doublings).exp2();
        let stretch = |_| Stretch { factor: rest, grain: 1, covers: true };
        let mut model = self.clone().stretched_all(Field::Region, stretch)?;
        let header = &mut model.header;
        // What was near stays near: one width, where no other distance was asked for.
        if header.far.is_none() && least == most {
            header.far = Some(1 << least);
        }
        let grain = header.offset_grain as f64;
        for object in &mut header.objects {
            let extent = (object.extent as f64 * factor / grain).ceil() * grain;
            if extent >= i64::MAX as f64 / 2.0 {
                return Err(Error::new(
                    ErrorKind::Asked,
                    format!("object {} would be larger than anything can be", object.id),
                )
                .help("ask for less of a change"));
            }
            object.extent = extent as i64;
            object.region_shift = (i32::from(object.region_shift) + doublings) as u8;
        }
        Ok(model)
    }

    /// So many times as many requests in every window.
    fn faster(&self, factor: f64) -> Result<Model> {
        let more =
            self.retold(self.op()?, |group| group.requests.iter().map(|&n| n as f64 * factor).collect());
        let shorter = |_: i64| Stretch { factor: 1.0 / factor, grain: 1, covers: false };
        let model = more?.stretched_all(Field::Gap, shorter)?;
        if model.draws_think() { model.stretched_all(Field::Think, shorter) } else { Ok(model) }
    }

    /// Another share of reads.
    fn with_reads(&self, share: f64) -> Result<Model> {
        if !(share > 0.0 && share < 1.0) {
            return Err(Error::new(ErrorKind::Asked, format!("{share} is no share of reads to reach"))
                .help("it must be above 0 and below 1: what has only reads has nothing to make writes of"));
        }
        let op = self.op()?;
        let rule = &self.header.dimensions[op].rule;
        let (read, write) = (rule.code(Op::Read as i64), rule.code(Op::Write as i64));
        let told = Told::of(self, op)?;
        let at = |code: u32| told.ops.iter().position(|c| *c == code);
        let (Some(read), Some(write)) = (at(read), at(write)) else {
            return Err(Error::new(
                ErrorKind::Asked,
                "the model has no reads, or no writes, to make more of",
            ));
        };
        let sum = |at: usize| told.groups.iter().map(|group| group.requests[at] as f64).sum::<f64>();
        let (all_reads, all_writes) = (sum(read), sum(write));
        // Reads of a group at some odds. `guests` requests of the mix of the whole are counted beside its own, where
        // there would be nothing else to shift.
        let reads = |group: &Group, odds: f64, guests: f64| {
            let (r, w) = (group.requests[read] as f64, group.requests[write] as f64);
            let mixed = (r + guests * all_reads / (all_reads + all_writes)) / (r + w + guests).max(1.0);
            let high = odds * mixed;
            if high == 0.0 { 0.0 } else { (r + w) * high / (high + 1.0 - mixed) }
        };
        let found = |odds: f64, guests: f64| {
            let sum: f64 = told.groups.iter().map(|group| reads(group, odds, guests)).sum();
            sum / (all_reads + all_writes)
        };
        let (mut low, mut high) = (-60.0f64, 60.0f64);
        let own_reach = found(low.exp2(), 0.0)..=found(high.exp2(), 0.0);
        let guests = if own_reach.contains(&share) { 0.0 } else { 1.0 };
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if found(middle.exp2(), guests) < share { low = middle } else { high = middle }
        }
        let odds = high.exp2();
        self.retold(op, |group| {
            let mut due: Vec<f64> = group.requests.iter().map(|&n| n as f64).collect();
            let both = due[read] + due[write];
            due[read] = reads(group, odds, guests);
            due[write] = both - due[read];
            due
        })
    }
}

impl Scale {
    /// The changes as the model keeps them.
    fn told(&self) -> impl Iterator<Item = String> {
        let factors = [
            ("read share", self.read_share),
            ("size x", self.size),
            ("footprint x", self.footprint),
            ("rate x", self.rate),
        ];
        factors.into_iter().filter_map(|(name, factor)| {
            let factor = factor?;
            Some(if name.ends_with('x') { format!("{name}{factor}") } else { format!("{name} {factor}") })
        })
    }
}

/// The grain of numbers that become smaller: as much smaller, down to a sector.
fn finer(grain: i64, factor: f64) -> i64 {
    let least = grain.min(SECTOR);
    let scaled = (grain as f64 * factor.min(1.0)).max(1.0) as u64;
    (1i64 << scaled.ilog2()).max(least)
}

fn checked(name: &str, factor: f64) -> Result<f64> {
    if (1.0 / MOST..=MOST).contains(&factor) {
        Ok(factor)
    } else {
        Err(Error::new(ErrorKind::Asked, format!("{name} times {factor} is out of bounds"))
            .help(format!("a factor lies between {} and {MOST}", 1.0 / MOST)))
    }
}
