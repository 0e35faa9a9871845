//! Counting: keys become windows, windows become matrices.

use crate::error::{Error, ErrorKind, Result};
use crate::feature::Field;
use crate::fit::encode::{Encoded, Encoder};
use crate::fit::merge::{Counted, Merger, Table};
use crate::fit::options::FitOptions;
use crate::fit::windows::{MAX_WINDOWS, Timeline};
use crate::model::{Matrix, Model};
use crate::schema::cells::{Cells, Layout};
use crate::schema::dimension::{Dimension, Role, Spec};
use crate::schema::header::Header;
use crate::schema::merging::Distance;
use crate::schema::merging::Merge;

/// Requests of a window that wait to be counted at most; far more than make a group.
const PENDING: usize = 1 << 16;

/// Groups after which they become twice as large, so that long streams are compared in time.
const LARGER_AFTER: u64 = 1024;

/// Part of a full group that the calm before a burst must hold to be a group of its own.
const CALM: u64 = 8;

/// Factor between the mean sizes of a group and of a window that keeps them apart ...
const LARGER_SIZE: u64 = 16;

/// ... where one of them holds this many requests: few huge requests are much of a trace's bytes.
const SIZED: u64 = 8;

/// What waits to be settled of a window.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    index: i64,
    requests: u64,
    bytes: u64,
}

/// Windows, groups and matrices of the requests so far.
pub(crate) struct Counting {
    /// Dimensions of each table, and of all.
    members: Vec<Vec<usize>>,
    dimensions: usize,
    /// The dimension that sets the op.
    op: usize,
    layouts: Vec<Layout>,
    /// The open group of windows, by table: what was counted of it, ...
    open: Vec<Cells>,
    /// ... and the keys that were not, those of the group first, then those of the window.
    keys: Vec<Vec<u64>>,
    settled: usize,
    /// The open window.
    window: Option<Waiting>,
    in_group: u64,
    groups: u64,
    /// Bytes of the open group.
    group_bytes: u64,
    /// Requests that make a group; 0: every window is one.
    enough: u64,
    timeline: Timeline,
    merger: Merger,
    /// Windows at which a phase begins that were not reached yet, the next one last.
    boundaries: Vec<i64>,
}

impl Counting {
    /// Counts what the encoder makes of requests; `group` requests make a group.
    pub fn new(
        specs: &[Spec],
        options: &FitOptions,
        encoder: &Encoder,
        group: u64,
        timeline: Timeline,
    ) -> Counting {
        let (members, layouts) = encoder.layout();
        let sets_op = |s: &Spec| s.role == Role::Sets && s.feature.kind().field == Field::Op;
        // What is given follows from the others; runs keep the alignment for long, which makes it vary far more than
        // chance. Stack distances grow with the footprint, whatever the load does.
        let kept = [Field::Align, Field::Distance];
        let compared = (0..specs.len())
            .filter(|&d| specs[d].role != Role::Given && !kept.contains(&specs[d].feature.kind().field))
            .collect();
        Counting {
            members: members.to_vec(),
            dimensions: specs.len(),
            op: specs.iter().position(sets_op).expect("checked"),
            layouts: layouts.to_vec(),
            open: vec![Cells::default(); members.len()],
            keys: vec![Vec::new(); members.len()],
            settled: 0,
            window: None,
            in_group: 0,
            groups: 0,
            group_bytes: 0,
            enough: group,
            boundaries: (options.boundaries_ns.iter().rev())
                .map(|at| at / timeline.length_ns)
                .filter(|window| *window > 0)
                .collect(),
            timeline,
            merger: Merger::new(
                merging(options),
                options.max_matrices.max(options.boundaries_ns.len() + 1),
                encoder.size(),
                compared,
            ),
        }
    }

    /// Gives all keys so far a new layout.
    fn widen(&mut self, wider: &[Layout]) {
        for (t, new) in wider.iter().enumerate() {
            let old = &self.layouts[t];
            for key in &mut self.keys[t] {
                *key = old.rekey(new, *key);
            }
            self.open[t].rekey(old, new);
            for matrix in &mut self.merger.matrices {
                matrix.tables[t].rekey(old, new);
            }
        }
        self.layouts = wider.to_vec();
    }

    /// Takes the next batch.
    ///
    /// # Errors
    /// [`ErrorKind::Requests`] where a request lies beyond the last window that a model may have.
    pub fn count(&mut self, batch: &Encoded) -> Result<()> {
        if let Some(wider) = &batch.layouts {
            self.widen(wider);
        }
        let mut from = 0;
        while from < batch.time.len() {
            let index = batch.time[from] / self.timeline.length_ns;
            if self.window.is_none_or(|open| open.index != index) {
                self.next_window(index)?;
            }
            let end = (index + 1).saturating_mul(self.timeline.length_ns);
            let more = batch.time[from..].iter().take_while(|&&t| t < end).count();
            for (waiting, keys) in self.keys.iter_mut().zip(&batch.keys) {
                waiting.extend_from_slice(&keys[from..from + more]);
            }
            let bytes = batch.size[from..from + more].iter().map(|&size| size.max(0) as u64);
            let open = self.window.as_mut().expect("a window is open");
            open.bytes = bytes.fold(open.bytes, u64::saturating_add);
            open.requests += more as u64;
            if self.keys[0].len() - self.settled >= PENDING {
                self.settle_open();
            }
            from += more;
        }
        Ok(())
    }

    fn next_window(&mut self, index: i64) -> Result<()> {
        if index >= MAX_WINDOWS {
            let time = index.saturating_mul(self.timeline.length_ns) as f64 / 1e9;
            return Err(Error::new(ErrorKind::Requests, format!(
                "a request comes {time:.0} s after the start, and a model has at most {MAX_WINDOWS} windows"
            ))
            .help("if that is right, make windows longer (`window`); if not, leave out what is damaged (loadstone trace select --to)"));
        }
        self.end_window();
        self.window = Some(Waiting { index, requests: 0, bytes: 0 });
        Ok(())
    }

    /// Settles the open window.
    fn end_window(&mut self) {
        if let Some(window) = self.window.take() {
            self.settle(window);
            self.timeline.end_window();
        }
    }

    /// Settles what there is of the open window, so that no more waits than can be held.
    fn settle_open(&mut self) {
        if let Some(open) = self.window.take() {
            self.settle(open);
            self.window = Some(Waiting { requests: 0, bytes: 0, ..open });
        }
    }

    /// Opens a window, unless it is: ends the group where that is full, or a phase is to begin.
    fn enter(&mut self, index: i64) {
        if self.timeline.index == index && self.timeline.in_window > 0 {
            return;
        }
        let mut begins = false;
        while self.boundaries.pop_if(|at| *at <= index).is_some() {
            begins = true;
        }
        if begins || self.in_group >= self.enough.max(1) {
            self.close_group();
        }
        if begins {
            self.merger.part();
        }
        self.timeline.skip_to(index);
    }

    /// Counts the requests of a window in the group; a window that is a group by itself starts
    /// one, lest a burst and the calm before it be taken together.
    fn settle(&mut self, window: Waiting) {
        self.enter(window.index);
        // Only whole windows can be kept apart.
        let first = self.timeline.in_window == 0;
        let burst = window.requests >= self.enough && self.in_group > self.enough / CALM;
        if first && (burst || self.sizes_differ(window)) {
            self.close_group();
        }
        self.timeline.in_window += window.requests;
        self.in_group += window.requests;
        self.group_bytes = self.group_bytes.saturating_add(window.bytes);
        self.settled += window.requests as usize;
        if self.settled >= PENDING {
            self.count_keys();
        }
    }

    /// Counts the keys of the group.
    fn count_keys(&mut self) {
        for (open, keys) in self.open.iter_mut().zip(&mut self.keys) {
            let cells = Cells::count(&mut keys[..self.settled]);
            if open.is_empty() {
                *open = cells;
            } else {
                open.add(&cells);
            }
            keys.drain(..self.settled);
        }
        self.settled = 0;
    }

    /// Whether the open group and a window are of quite different sizes.
    fn sizes_differ(&self, window: Waiting) -> bool {
        let waiting = window.requests;
        if waiting.max(self.in_group) < SIZED || waiting == 0 || self.in_group == 0 || self.enough == 0 {
            return false;
        }
        let (group, window) = (self.group_bytes / self.in_group, window.bytes / waiting);
        group.min(window).saturating_mul(LARGER_SIZE) < group.max(window) && group.min(window) > 0
    }

    /// Ends the stream.
    pub fn close(&mut self) {
        self.end_window();
        self.close_group();
    }

    fn close_group(&mut self) {
        if self.in_group == 0 {
            return;
        }
        self.in_group = 0;
        self.group_bytes = 0;
        self.groups += 1;
        if self.groups.is_multiple_of(LARGER_AFTER) {
            self.enough *= 2;
        }
        self.count_keys();
        let tables: Vec<Cells> = self.open.iter_mut().map(std::mem::take).collect();
        let group = Counted::new(tables, &self.layouts, &self.members, self.dimensions);
        let ops = group.marginals[self.op].clone();
        let matrix = self.merger.add(group) as u32;
        self.timeline.cover(matrix, ops);
    }

    /// The model; `dimensions` are those of the encoder.
    ///
    /// # Errors
    /// Where keys need more than 64 bits, or what was counted breaks a law of the format.
    pub fn into_model(self, dimensions: Vec<Dimension>, mut header: Header) -> Result<Model> {
        let mut largest = vec![0u32; self.dimensions];
        for matrix in &self.merger.matrices {
            for (most, marginal) in largest.iter_mut().zip(&matrix.marginals) {
                *most = (*most).max(marginal.keys.last().copied().unwrap_or(0) as u32);
            }
        }
        header.dimensions = dimensions;
        header.windows = self.timeline.into_windows();
        let layouts = Model::tight_layouts(&header, &largest)?;
        let matrices = (self.merger.matrices.into_iter())
            .map(|mut matrix| {
                let tables = (0..).zip(matrix.tables.drain(..)).map(|(t, table): (usize, Table)| {
                    let mut cells = table.into_cells();
                    cells.rekey(&self.layouts[t], &layouts[t]);
                    cells
                });
                Matrix { tables: tables.collect() }
            })
            .collect();
        let model = Model { header, layouts, matrices, links: Vec::new() };
        model.header.check()?;
        model.check()?;
        Ok(model)
    }
}

/// How windows are merged: those between two boundaries always, where there are any.
fn merging(options: &FitOptions) -> (Merge, Distance, f64) {
    if options.boundaries_ns.is_empty() {
        (options.merge, options.distance, options.threshold)
    } else {
        (Merge::Adjacent, options.distance, 1.0)
    }
}
