//! Cutting a trace: a time range, some objects, its busy or quiet windows, or windows at random.
//!
//! A *window* is a slice of `window_ns` counted from the start of the time range; its rate is its
//! number of requests after the object filter. A *plateau* is a maximal run of adjacent windows whose
//! rate is at or above a quantile of the rates of all windows (empty ones included), a *valley* one at
//! or below it (MDH thesis, section 2.4). The last window is cut where the trace ends.

use crate::depend::Renumber;
use crate::reader::Reader;
use crate::scan::quoting;
use crate::{Batch, Error, ErrorKind, Info, NONE, Requests, Result, without_quotes};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

/// Most windows of a trace; shorter windows of a longer trace are refused.
const MOST_WINDOWS: i64 = 1 << 24;

/// What to keep of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// Keep requests from this time on, nanoseconds.
    pub from_ns: Option<i64>,
    /// Keep requests before this time, nanoseconds.
    pub to_ns: Option<i64>,
    /// Keep these objects, by name, or by id where that is no number; empty: all.
    pub objects: Vec<String>,
    /// Which windows to keep.
    pub pick: Pick,
    /// Length of a window, nanoseconds.
    pub window_ns: i64,
    /// Close the gaps: time 0 is the start of the first kept span and each span follows the one before.
    pub rebase: bool,
}

/// Words of a selection as JSON that are no names of objects.
const KEYS: [&str; 12] = [
    "from_ns",
    "to_ns",
    "objects",
    "pick",
    "window_ns",
    "rebase",
    "all",
    "plateaus",
    "valleys",
    "sample",
    "windows",
    "seed",
];

/// Which windows to keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pick {
    /// All.
    All,
    /// Those at or above this quantile of the rates, 0 to 1.
    Plateaus(f64),
    /// Those at or below this quantile of the rates, 0 to 1.
    Valleys(f64),
    /// So many at random, without replacement.
    Sample {
        /// Number of windows.
        windows: u64,
        /// The same seed gives the same windows.
        seed: u64,
    },
}

impl Default for Selection {
    fn default() -> Self {
        Selection {
            from_ns: None,
            to_ns: None,
            objects: Vec::new(),
            pick: Pick::All,
            window_ns: 1_000_000_000,
            rebase: false,
        }
    }
}

/// A kept span of time: from, and up to but without, nanoseconds.
pub type Span = (i64, i64);

impl Selection {
    /// Whether the trace must be read once before, to know its rates.
    pub fn needs_rates(&self) -> bool {
        self.pick != Pick::All
    }

    /// Starts the first pass.
    ///
    /// # Errors
    /// When the selection makes no sense.
    pub fn rates(&self) -> Result<Rates> {
        let wrong =
            |what: String| Err(Error::new(ErrorKind::Option, what).help("see loadstone trace select --help"));
        if self.window_ns <= 0 {
            return wrong("the window must be longer than nothing".into());
        }
        if let (Some(from), Some(to)) = (self.from_ns, self.to_ns)
            && from >= to
        {
            return wrong(format!("the range from {from} ns to {to} ns is empty"));
        }
        match self.pick {
            Pick::Plateaus(q) | Pick::Valleys(q) if !(0.0..=1.0).contains(&q) => {
                wrong(format!("the quantile {q} is not between 0 and 1"))
            }
            Pick::Sample { windows: 0, .. } => wrong("a sample of no windows is empty".into()),
            _ => Ok(Rates { selection: self.clone(), filter: None, windows: Vec::new() }),
        }
    }

    fn keeps(&self, time: i64) -> bool {
        self.from_ns.is_none_or(|from| time >= from) && self.to_ns.is_none_or(|to| time < to)
    }

    /// Bits of the kept objects by id, as far as the reader has seen objects.
    fn filter(&self, reader: &Reader) -> Vec<bool> {
        let info = reader.info();
        info.objects.iter().map(|object| self.objects.iter().any(|asked| is_meant(object, asked))).collect()
    }
}

/// Whether an object is asked for by its name, or by its id; where names are numbers, an id would be another one's name.
fn is_meant(object: &crate::Object, asked: &str) -> bool {
    let name = &object.name;
    let has_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    name == asked || !has_number && asked == object.id.to_string()
}

/// The object filter, renewed when objects appear that it does not know.
fn kept(filter: &mut Option<Vec<bool>>, selection: &Selection, reader: &Reader, object: u32) -> bool {
    if selection.objects.is_empty() {
        return true;
    }
    let index = object as usize;
    if filter.as_ref().is_none_or(|f| index >= f.len()) {
        *filter = Some(selection.filter(reader));
    }
    filter.as_ref().and_then(|f| f.get(index)).copied().unwrap_or(false)
}

/// The first pass: requests by window.
#[derive(Debug)]
pub struct Rates {
    selection: Selection,
    filter: Option<Vec<bool>>,
    windows: Vec<u32>,
}

impl Rates {
    /// Takes requests of the reader.
    ///
    /// # Errors
    /// When there are too many windows.
    pub fn add(&mut self, batch: &Batch, reader: &Reader) -> Result<()> {
        let start = self.selection.from_ns.unwrap_or(0);
        for (&time, &object) in batch.time.iter().zip(&batch.object) {
            if !self.selection.keeps(time) {
                continue;
            }
            let window = time.saturating_sub(start) / self.selection.window_ns;
            if window >= MOST_WINDOWS {
                return Err(Error::new(
                    ErrorKind::TooLarge,
                    format!("the trace has more than {MOST_WINDOWS} windows"),
                )
                .path(reader.path())
                .help("choose longer windows with `window`"));
            }
            let window = window.max(0) as usize;
            if window >= self.windows.len() {
                self.windows.resize(window + 1, 0);
            }
            if kept(&mut self.filter, &self.selection, reader, object) {
                self.windows[window] = self.windows[window].saturating_add(1);
            }
        }
        Ok(())
    }

    /// The spans to keep, in order, adjacent windows joined.
    pub fn spans(&self) -> Vec<Span> {
        let chosen: Vec<bool> = match self.selection.pick {
            Pick::All => return vec![(i64::MIN, i64::MAX)],
            Pick::Plateaus(quantile) => {
                let limit = self.quantile(quantile);
                self.windows.iter().map(|&n| n >= limit && n > 0).collect()
            }
            Pick::Valleys(quantile) => {
                let limit = self.quantile(quantile);
                self.windows.iter().map(|&n| n <= limit).collect()
            }
            Pick::Sample { windows, seed } => sample(self.windows.len(), windows, seed),
        };
        let (start, length) = (self.selection.from_ns.unwrap_or(0), self.selection.window_ns);
        let mut spans: Vec<Span> = Vec::new();
        for (window, _) in chosen.iter().enumerate().filter(|(_, chosen)| **chosen) {
            let from = start.saturating_add((window as i64).saturating_mul(length));
            let to = from.saturating_add(length).min(self.selection.to_ns.unwrap_or(i64::MAX));
            match spans.last_mut() {
                Some(last) if last.1 == from => last.1 = to,
                _ => spans.push((from, to)),
            }
        }
        spans
    }

    fn quantile(&self, share: f64) -> u32 {
        let mut sorted = self.windows.clone();
        sorted.sort_unstable();
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(0)
    }
}

/// Chooses `k` of `n` without replacement (R. Floyd, CACM 30(9), 1987).
fn sample(n: usize, k: u64, seed: u64) -> Vec<bool> {
    let mut chosen = vec![false; n];
    let mut random = SplitMix64::seed_from_u64(seed);
    let k = usize::try_from(k).unwrap_or(n).min(n);
    for j in n - k..n {
        // The bias of the multiplication is below 2^-40 for so few windows.
        let t = ((u128::from(random.next_u64()) * (j as u128 + 1)) >> 64) as usize;
        let new = if chosen[t] { j } else { t };
        chosen[new] = true;
    }
    chosen
}

/// The second pass: a reader without what is not kept.
pub struct Selected {
    reader: Reader,
    selection: Selection,
    spans: Vec<Span>,
    /// Nanoseconds of kept spans before each span, for closing gaps.
    before: Vec<i64>,
    at: usize,
    filter: Option<Vec<bool>>,
    renumber: Renumber,
    input: Batch,
    kept: u64,
    dropped: u64,
    /// Objects and actors of what is kept.
    objects: FxHashSet<u32>,
    actors: FxHashSet<u32>,
}

impl Selected {
    /// Keeps the spans found by the first pass, or `[(i64::MIN, i64::MAX)]`.
    pub fn new(reader: Reader, selection: Selection, spans: Vec<Span>) -> Selected {
        let from = |span: &Span| span.0.max(selection.from_ns.unwrap_or(i64::MIN));
        let mut before = Vec::with_capacity(spans.len());
        let mut sum = 0i64;
        for span in &spans {
            before.push(sum);
            sum = sum.saturating_add(span.1.saturating_sub(from(span)));
        }
        Selected {
            reader,
            selection,
            spans,
            before,
            at: 0,
            filter: None,
            renumber: Renumber::default(),
            input: Batch::default(),
            kept: 0,
            dropped: 0,
            objects: FxHashSet::default(),
            actors: FxHashSet::default(),
        }
    }

    /// The reader below.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The spans that are kept.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// What the selection found, checked after the end.
    ///
    /// # Errors
    /// When an object was named that the trace does not have, or nothing was kept.
    pub fn check(&self) -> Result<()> {
        let objects = self.reader.info().objects;
        let known = |name: &String| objects.iter().any(|object| is_meant(object, name));
        if let Some(name) = self.selection.objects.iter().find(|name| !known(name)) {
            // A name may hold anything, also ends of lines.
            let some: Vec<String> =
                objects.iter().take(10).map(|o| o.name.escape_debug().to_string()).collect();
            return Err(Error::new(ErrorKind::Option, format!("has no object {name}"))
                .path(self.reader.path())
                .help(format!("it has {} objects, such as {}", objects.len(), some.join(" "))));
        }
        if self.kept == 0 {
            return Err(Error::new(ErrorKind::Empty, "has no requests in the selection")
                .path(self.reader.path())
                .help("trace describe shows its span and objects"));
        }
        Ok(())
    }

    /// What is known of what was kept: nothing of objects and actors that are left out but their ids.
    pub fn info(&self) -> Info {
        let mut info = self.reader.info();
        for (names, kept) in [(&mut info.objects, &self.objects), (&mut info.actors, &self.actors)] {
            names.iter_mut().filter(|one| !kept.contains(&one.id)).for_each(|one| one.name.clear());
        }
        let made = serde_json::to_string(&self.selection).unwrap_or_default();
        let (kept, all) = (self.kept, self.kept + self.dropped);
        info.history.push(format!("selected {kept} of {all} requests by {made}"));
        // Selections name their objects, as JSON. Of these only what is left is told.
        let unescaped = |quote: &str| serde_json::from_str::<String>(&format!("\"{quote}\""));
        let left = |name: &String| {
            let mut known = info.objects.iter().filter(|one| self.objects.contains(&one.id));
            known.any(|object| is_meant(object, name))
        };
        let keeps = |quote: &str| KEYS.contains(&quote) || unescaped(quote).is_ok_and(|name| left(&name));
        info.history = info.history.iter().map(|text| quoting(text, keeps)).collect();
        info.warnings = info.warnings.iter().map(|warning| without_quotes(warning)).collect();
        info.counts.requests = self.kept;
        if self.selection.rebase {
            // Where gaps are closed, no one clock is right.
            info.start_unix_ns = match &self.spans[..] {
                [first] => info.start_unix_ns.and_then(|start| start.checked_add(self.from(first))),
                _ => None,
            };
        }
        info
    }

    /// Where a span begins; without a start of its own, the range starts where the trace does.
    fn from(&self, span: &Span) -> i64 {
        match span.0.max(self.selection.from_ns.unwrap_or(i64::MIN)) {
            i64::MIN => 0,
            from => from,
        }
    }

    /// Requests kept and dropped so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.kept, self.dropped)
    }

    /// Time of a request after closing gaps; `None` when it is not kept.
    fn place(&mut self, time: i64) -> Option<i64> {
        if !self.selection.keeps(time) {
            return None;
        }
        while self.spans.get(self.at).is_some_and(|span| time >= span.1) {
            self.at += 1;
        }
        let span = self.spans.get(self.at).filter(|span| time >= span.0)?;
        if !self.selection.rebase {
            return Some(time);
        }
        Some(time - self.from(span) + self.before[self.at])
    }
}

impl Requests for Selected {
    fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        let mut rows = Vec::new();
        let mut times = Vec::new();
        while batch.is_empty() {
            let mut input = std::mem::take(&mut self.input);
            let more = self.reader.next(&mut input)?;
            if !more {
                return Ok(false);
            }
            rows.clear();
            times.clear();
            for row in 0..input.len() {
                let time = self
                    .place(input.time[row])
                    .filter(|_| kept(&mut self.filter, &self.selection, &self.reader, input.object[row]));
                if let Some(time) = time {
                    rows.push(row as u32);
                    times.push(time);
                }
                if let Some(after) = input.after.get_mut(row) {
                    *after = self.renumber.next(time.is_some(), *after);
                    if *after == 0 {
                        input.think[row] = NONE;
                    }
                }
            }
            self.kept += rows.len() as u64;
            self.dropped += (input.len() - rows.len()) as u64;
            crate::order::gather(batch, &input, &rows);
            self.objects.extend(&batch.object);
            self.objects.extend(&batch.other);
            self.actors.extend(&batch.actor);
            batch.time.clone_from(&times);
            self.input = input;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rates(pick: Pick, windows: Vec<u32>) -> Vec<Span> {
        let selection = Selection { pick, window_ns: 10, ..Selection::default() };
        Rates { selection, filter: None, windows }.spans()
    }

    #[test]
    fn plateaus_and_valleys_join_adjacent_windows() {
        let windows = vec![1, 9, 8, 0, 7, 1, 0, 0, 9, 1];
        assert_eq!(rates(Pick::Plateaus(0.7), windows.clone()), [(10, 30), (40, 50), (80, 90)]);
        assert_eq!(rates(Pick::Valleys(0.3), windows), [(30, 40), (60, 80)]);
    }

    #[test]
    fn a_plateau_is_never_empty() {
        assert_eq!(rates(Pick::Plateaus(0.5), vec![0, 0, 0, 5]), [(30, 40)]);
    }

    #[test]
    fn a_sample_stays_what_it_is() {
        let chosen = |seed| -> Vec<usize> {
            sample(100, 6, seed).iter().enumerate().filter_map(|(i, chosen)| chosen.then_some(i)).collect()
        };
        assert_eq!(chosen(7), [1, 24, 37, 44, 57, 87]);
        assert_eq!(chosen((1 << 63) + 1), [5, 36, 45, 51, 61, 81]);
    }

    proptest! {
        #[test]
        fn a_sample_has_its_size_and_follows_its_seed(n in 0usize..300, k in 0u64..300, seed: u64) {
            let chosen = sample(n, k, seed);
            prop_assert_eq!(chosen.iter().filter(|c| **c).count() as u64, k.min(n as u64));
            prop_assert_eq!(&chosen, &sample(n, k, seed));
        }
    }
}
