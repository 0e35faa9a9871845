//! Models that may be published: no name, host, date or rare value survives.

use crate::cells::Cells;
use crate::header::Source;
use crate::model::{Matrix, Model};
use crate::rule::Rule;
use loadstone_trace::{Counts, Result};

impl Model {
    /// The model without what could tell where it comes from.
    ///
    /// Names of objects, the time of the trace and of the fitting, the reader's warnings (they may hold names) and its
    /// counts are left out. Every exact value seen fewer than `least` times joins the bucket it would have been in;
    /// largest numbers, extents and the length are rounded up to the end of their bucket, region and window. What is
    /// left is counts of buckets and of windows.
    ///
    /// # Errors
    /// When the keys of a table no longer fit 64 bits, which joining buckets does not bring about.
    pub fn published(&self, least: u64) -> Result<Model> {
        let mut header = self.header.clone();
        header.chain = None;
        let mut maps = Vec::new();
        let mut largest = vec![0u32; header.dimensions.len()];
        for (d, dimension) in header.dimensions.iter_mut().enumerate() {
            let marginal = self.marginal(d, None)?;
            let map = rarer(&dimension.rule, &marginal, least);
            if let Some((rule, _)) = &map {
                dimension.rule = rule.clone();
            }
            let code = |code: u32| map.as_ref().map_or(code, |(_, map)| map(code));
            largest[d] = marginal.keys.iter().map(|&key| code(key as u32)).max().unwrap_or(0);
            let ends = |most: i64| dimension.rule.range(dimension.rule.code(most)).map(|range| range.last);
            dimension.largest = match dimension.rule {
                Rule::Category { .. } => dimension.largest,
                _ => dimension.largest.and_then(ends),
            };
            maps.push(map.map(|(_, map)| map));
        }
        for object in &mut header.objects {
            object.name = String::new();
            let region = 1i64 << object.region_shift;
            object.extent = object.extent.saturating_add(region - 1) / region * region;
        }
        header.distances = header.distances.map(|distances| distances.coarser(least));
        let line = &header.windows;
        let windows = line.counts.len() as i64;
        header.source = Source {
            tool: header.source.tool,
            requests: header.source.requests,
            span_ns: windows.saturating_mul(line.length_ns),
            counts: Counts { requests: header.source.requests, ..Counts::default() },
            ..Source::default()
        };
        let layouts = Model::tight_layouts(&header, &largest)?;
        let matrices = (self.matrices.iter())
            .map(|matrix| {
                let tables = (0..header.tables.len()).map(|t| {
                    let (old, new, table) = (&self.layouts[t], &layouts[t], &header.tables[t]);
                    let pack = |key: u64| {
                        new.pack(table.dimensions.iter().enumerate().map(|(at, &d)| {
                            let code = old.code(key, at);
                            maps[d].as_ref().map_or(code, |map| map(code))
                        }))
                    };
                    let cells = &matrix.tables[t];
                    Cells::from_pairs(
                        cells.keys.iter().zip(&cells.counts).map(|(&key, &n)| (pack(key), n)).collect(),
                    )
                });
                Matrix { tables: tables.collect() }
            })
            .collect();
        let model = Model { header, layouts, matrices, links: Vec::new() };
        model.header.check()?;
        model.check()?;
        model.stored_as(self)
    }
}

/// From a code of the old rule to one of the new.
type CodeMap = Box<dyn Fn(u32) -> u32>;

/// The rule without its rare exact values, and the codes of the old one in it; nothing where none is rare.
fn rarer(rule: &Rule, marginal: &Cells, least: u64) -> Option<(Rule, CodeMap)> {
    let Rule::Exact { values, rest } = rule else { return None };
    let seen = |i: usize| marginal.keys.binary_search(&(i as u64 + 1)).map_or(0, |at| marginal.counts[at]);
    let kept: Vec<i64> = (0..values.len()).filter(|&i| seen(i) >= least).map(|i| values[i]).collect();
    if kept.len() == values.len() {
        return None;
    }
    let new = Rule::Exact { values: kept.clone(), rest: rest.clone() };
    let exact: Vec<u32> = values.iter().map(|&value| new.code(value)).collect();
    let fewer = (values.len() - kept.len()) as u32;
    let map = move |code: u32| match code {
        0 => 0,
        _ => exact.get(code as usize - 1).copied().unwrap_or(code.wrapping_sub(fewer)),
    };
    Some((new, Box::new(map)))
}
