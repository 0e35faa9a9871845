//! Extent types: the XML that describes them, and where their fields lie in a row.

use crate::{Error, Result};
use rustc_hash::FxHashMap;

/// Kinds of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Byte,
    Int32,
    Int64,
    Double,
    Variable,
    /// So many bytes.
    Fixed(usize),
}

impl Kind {
    /// Bytes in a row; a bool takes a bit.
    pub fn bytes(self) -> usize {
        match self {
            Kind::Bool => 0,
            Kind::Byte => 1,
            Kind::Int32 | Kind::Variable => 4,
            Kind::Int64 | Kind::Double => 8,
            Kind::Fixed(bytes) => bytes,
        }
    }
}

/// A field of a type.
#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    /// Byte in the row; of a bool the byte that holds its bit.
    pub at: usize,
    /// Bit of a bool.
    pub bit: u8,
    /// Field that says this one is null.
    pub null: Option<usize>,
    /// Field that it is packed relative to, itself perhaps.
    relative: Option<usize>,
    scale: Option<f64>,
    /// What is added to it when it is printed: the epoch of times.
    pub base: f64,
    /// All attributes, for what they say of units.
    pub says: String,
}

/// A type of extents.
#[derive(Debug, Clone)]
pub struct ExtentType {
    pub name: String,
    pub fields: Vec<Field>,
    names: FxHashMap<String, usize>,
    /// Bytes of a row.
    pub row: usize,
    /// Its fields in the order in which they lie in a row.
    order: Vec<usize>,
    /// Bytes of bools at its start.
    bools: usize,
    /// Whether nulls are left out of packed rows.
    compact: bool,
}

fn wrong(what: impl Into<String>) -> Error {
    Error::malformed(what.into())
        .help("the extent type's XML is damaged or of a kind this reader does not know")
}

/// The next multiple.
fn aligned(at: usize, to: usize) -> usize {
    at.next_multiple_of(to)
}

impl Field {
    /// Position of the field that it is packed relative to.
    #[cfg(test)]
    pub fn relative(&self) -> Option<usize> {
        self.relative
    }
}

impl ExtentType {
    /// The type that a text of XML describes.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(xml: &str) -> Result<ExtentType> {
        let document = roxmltree::Document::parse(xml.trim_end_matches(['\0', ' ', '\n']))
            .map_err(|e| wrong(format!("damaged XML of an extent type: {e}")))?;
        let root = document.root_element();
        let name = root.attribute("name").ok_or_else(|| wrong("an extent type has no name"))?;
        let compact = match root.attribute("pack_null_compact") {
            None | Some("no") => false,
            Some("non_bool") => true,
            Some(other) => return Err(wrong(format!("unknown pack_null_compact {other:?}"))),
        };
        let mut fields = Vec::new();
        for node in root.children().filter(|n| n.has_tag_name("field")) {
            let name = node.attribute("name").ok_or_else(|| wrong("a field has no name"))?;
            let kind = match node.attribute("type") {
                Some("bool") => Kind::Bool,
                Some("byte") => Kind::Byte,
                Some("int32") => Kind::Int32,
                Some("int64") => Kind::Int64,
                Some("double") => Kind::Double,
                Some("variable32") => Kind::Variable,
                Some("fixedwidth") => {
                    let size = node
                        .attribute("size")
                        .and_then(|s| s.parse().ok())
                        .filter(|s| (1..1 << 20).contains(s));
                    Kind::Fixed(size.ok_or_else(|| wrong(format!("field {name:?} has no size")))?)
                }
                other => return Err(wrong(format!("field {name:?} is of unknown type {other:?}"))),
            };
            let number = |key: &str| -> Result<Option<f64>> {
                let parse =
                    |text: &str| text.parse().map_err(|_| wrong(format!("{key} {text:?} of field {name:?}")));
                node.attribute(key).map(parse).transpose()
            };
            let nullable = node.attribute("opt_nullable") == Some("yes");
            let says = node.attributes().map(|a| format!("{} ", a.value())).collect();
            fields.push(Field {
                name: name.into(),
                kind,
                at: 0,
                bit: 0,
                null: nullable.then_some(fields.len() + 1),
                relative: None,
                scale: number("pack_scale")?.filter(|_| node.attribute("type") == Some("double")),
                base: number("opt_doublebase")?.unwrap_or(0.0),
                says,
            });
            if nullable {
                let hidden = format!(" null {name}");
                let blank = Field {
                    name: hidden,
                    kind: Kind::Bool,
                    null: None,
                    scale: None,
                    says: String::new(),
                    ..fields[fields.len() - 1].clone()
                };
                fields.push(blank);
            }
            if fields.len() > 1 << 12 {
                return Err(wrong("an extent type has more than 4,096 fields"));
            }
        }
        let names: FxHashMap<String, usize> =
            fields.iter().enumerate().map(|(at, field)| (field.name.clone(), at)).collect();
        for node in root.children().filter(|n| n.has_tag_name("field")) {
            let (Some(name), Some(to)) = (node.attribute("name"), node.attribute("pack_relative")) else {
                continue;
            };
            let other = *names
                .get(to)
                .ok_or_else(|| wrong(format!("field {name:?} is relative to {to:?}, which is none")))?;
            let this = names[name];
            if fields[this].kind != fields[other].kind {
                return Err(wrong(format!("field {name:?} is relative to {to:?} of another type")));
            }
            if !matches!(fields[this].kind, Kind::Int32 | Kind::Int64 | Kind::Double) {
                let kind = fields[this].kind;
                return Err(wrong(format!(
                    "field {name:?} of kind {kind:?} is relative: only numbers can be"
                )));
            }
            fields[this].relative = Some(other);
        }
        let widest = root.attribute("pack_pad_record") == Some("max_column_size");
        let large_first = root.attribute("pack_field_ordering") == Some("big_to_small_sep_var32");
        let (row, bools) = lay_out(&mut fields, widest, large_first);
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_by_key(|&field| fields[field].at);
        Ok(ExtentType { name: name.into(), fields, names, row, order, bools, compact })
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.names.get(name).map(|&at| &self.fields[at])
    }

    /// The field of this name, which must be of this kind.
    ///
    /// # Errors
    /// When there is none.
    pub fn need(&self, name: &str, kind: Kind) -> Result<Field> {
        let found = self.field(name).filter(|field| field.kind == kind);
        found
            .cloned()
            .ok_or_else(|| wrong(format!("type {:?} has no field {name:?} of kind {kind:?}", self.name)))
    }

    /// Whether packed rows leave out nulls.
    pub fn compact(&self) -> bool {
        self.compact
    }

    /// Spreads rows whose nulls were left out.
    ///
    /// # Errors
    /// When they end too early.
    pub fn spread(&self, packed: &[u8], rows: usize) -> Result<Vec<u8>> {
        let short = || Error::malformed("its compacted rows end too early");
        let mut out =
            vec![0; rows.checked_mul(self.row).filter(|n| *n <= super::codec::MOST).ok_or_else(short)?];
        let mut at = 0;
        for row in out.chunks_exact_mut(self.row.max(1)) {
            let (start, bools) = (at, packed.get(at..at + self.bools).ok_or_else(short)?);
            row[..self.bools].copy_from_slice(bools);
            at += self.bools;
            for width in [1, 4, 8] {
                let mut first = true;
                for field in self.order.iter().map(|&field| &self.fields[field]) {
                    let same = match field.kind {
                        Kind::Bool => false,
                        Kind::Byte | Kind::Fixed(_) => width == 1,
                        kind => kind.bytes() == width,
                    };
                    if !same || field.null.is_some_and(|null| bit(row, &self.fields[null])) {
                        continue;
                    }
                    if std::mem::take(&mut first) {
                        at = start + aligned(at - start, width);
                    }
                    let bytes = field.kind.bytes();
                    row[field.at..field.at + bytes]
                        .copy_from_slice(packed.get(at..at + bytes).ok_or_else(short)?);
                    at += bytes;
                }
            }
            at = start + aligned(at - start, 4);
        }
        Ok(out)
    }

    /// Undoes the packing of values in place: scales, then differences from the row before, then from
    /// other fields.
    pub fn unpack_values(&self, rows: &mut [u8], big: bool) {
        let is_packed = |&f: &usize| self.fields[f].scale.is_some() || self.fields[f].relative.is_some();
        let mut packed: Vec<usize> = (0..self.fields.len()).filter(is_packed).collect();
        // What others are relative to comes first.
        packed.sort_by_key(|&f| self.fields[f].relative.is_some_and(|other| other != f));
        if packed.is_empty() || self.row == 0 {
            return;
        }
        let mut before = vec![0i64; self.fields.len()];
        let mut doubles = vec![0f64; self.fields.len()];
        for row in rows.chunks_exact_mut(self.row) {
            for &f in &packed {
                let field = &self.fields[f];
                if self.compact && field.null.is_some_and(|null| bit(row, &self.fields[null])) {
                    continue;
                }
                match field.kind {
                    Kind::Double => {
                        let mut value = f64::from_bits(long(row, field.at, big) as u64);
                        if let Some(scale) = field.scale {
                            value *= scale;
                        }
                        match field.relative {
                            Some(other) if other == f => {
                                value += doubles[f];
                                if let Some(scale) = field.scale {
                                    value = (value / scale).round() * scale;
                                }
                                doubles[f] = value;
                            }
                            Some(other) => {
                                value += f64::from_bits(long(row, self.fields[other].at, big) as u64)
                            }
                            None => {}
                        }
                        put(row, field.at, 8, value.to_bits() as i64, big);
                    }
                    kind => {
                        let mut value = if kind == Kind::Int32 {
                            i64::from(word(row, field.at, big))
                        } else {
                            long(row, field.at, big)
                        };
                        let Some(other) = field.relative else { continue };
                        let base = match () {
                            () if other == f => before[f],
                            () if kind == Kind::Int32 => i64::from(word(row, self.fields[other].at, big)),
                            () => long(row, self.fields[other].at, big),
                        };
                        value = value.wrapping_add(base);
                        before[f] = value;
                        put(row, field.at, kind.bytes(), value, big);
                    }
                }
            }
        }
    }
}

/// Places the fields; bytes of a row, and of the bools at its start.
fn lay_out(fields: &mut [Field], widest: bool, large_first: bool) -> (usize, usize) {
    let mut at = 0;
    let order: &[usize] = if large_first { &[8, 4, 5, 1, 0] } else { &[0, 1, 4, 5, 8] };
    let most = fields
        .iter()
        .map(|f| if let Kind::Fixed(_) = f.kind { 1 } else { f.kind.bytes() })
        .max()
        .unwrap_or(1)
        .max(1);
    let mut bools = 0;
    for &group in order {
        // Variable fields follow the integers of their width.
        let mine = |kind: Kind| match kind {
            Kind::Bool => group == 0,
            Kind::Byte | Kind::Fixed(_) => group == 1,
            Kind::Int32 => group == 4,
            Kind::Variable => group == 5,
            Kind::Int64 | Kind::Double => group == 8,
        };
        let width = match group {
            0 | 1 => 1,
            8 => 8,
            _ => 4,
        };
        let any = fields.iter().any(|f| mine(f.kind));
        if any || !widest && !large_first {
            at = aligned(at, width);
        }
        let mut bit = 0;
        for field in fields.iter_mut().filter(|f| mine(f.kind)) {
            field.at = at;
            if group == 0 {
                (field.at, field.bit) = (at + bit / 8, (bit % 8) as u8);
                bit += 1;
            } else {
                at += field.kind.bytes();
            }
        }
        at += bit.div_ceil(8);
        if group == 0 {
            bools = bit.div_ceil(8);
        }
    }
    let to = if widest || large_first { most } else { 8 };
    (aligned(at, to), bools)
}

/// A bool of a row.
pub fn bit(row: &[u8], field: &Field) -> bool {
    row[field.at] >> field.bit & 1 == 1
}

/// Four bytes of a row.
pub fn word(row: &[u8], at: usize, big: bool) -> i32 {
    let bytes = [row[at], row[at + 1], row[at + 2], row[at + 3]];
    if big { i32::from_be_bytes(bytes) } else { i32::from_le_bytes(bytes) }
}

/// Eight bytes of a row.
pub fn long(row: &[u8], at: usize, big: bool) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&row[at..at + 8]);
    if big { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) }
}

fn put(row: &mut [u8], at: usize, bytes: usize, value: i64, big: bool) {
    if big {
        row[at..at + bytes].copy_from_slice(&value.to_be_bytes()[8 - bytes..]);
    } else {
        row[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
}
