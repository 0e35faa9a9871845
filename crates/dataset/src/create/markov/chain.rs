//! Changes by a Markov chain and change patterns alone, as published tables have them (Tarasov, tables 4.2 and 4.3).

use crate::create::Generation;
use crate::create::change::{Change, GONE, KEPT, Newcomers};
use crate::create::content::law::{Laws, Shares};
use crate::create::content::populate::Cut;
use crate::create::draw::Draw;
use crate::create::maker::Maker;
use crate::create::place::users::Lineage;
use crate::profile::{Changed, File, Pattern, Sizes, Step, occurrences, regular, sizes_of};
use crate::tree::{State, Tree};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Chunks whose sizes stand for all.
const SAMPLE: usize = 8192;
/// Files' numbers of chunks are told apart up to this.
const CLASSES: usize = 5;

/// How files come, go and change: percent, named as in table 4.2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// What new files, and chunks of changed ones, are like.
    pub laws: Laws,
    /// New files, of all before.
    pub n: f64,
    /// New files that are modified next.
    pub nm: f64,
    /// That are deleted next.
    pub nd: f64,
    /// Modified files that are modified again.
    pub mm: f64,
    /// That are deleted next.
    pub md: f64,
    /// Unmodified files that are modified next.
    pub um: f64,
    /// That are deleted next.
    pub ud: f64,
    /// Deleted files that are there again one snapshot later.
    pub dn: f64,
    /// Modified and deleted files of a tree in which all are new, as the first one is.
    pub first: (f64, f64),
    /// How often files change in each [`Pattern`].
    pub patterns: [f64; 7],
}

impl Chain {
    pub(crate) fn check(&self) -> Result<()> {
        self.laws.check()?;
        let Chain { n, nm, nd, mm, md, um, ud, dn, first, .. } = *self;
        let pairs = [(nm, nd), (mm, md), (um, ud), first];
        let percent = |one: f64| (0.0..=100.0).contains(&one);
        let fits = |pair: &(f64, f64)| percent(pair.0) && percent(pair.1) && pair.0 + pair.1 <= 100.0 + 1e-9;
        if !(percent(n) && percent(dn) && pairs.iter().all(fits)) {
            return Err(Error::Option(
                "transitions: use 0 to 100 percent, and together no more from any state".into(),
            ));
        }
        let patterns = self.patterns.iter().all(|one| *one >= 0.0 && *one <= 1e9);
        if !patterns || self.patterns.iter().sum::<f64>() <= 0.0 {
            return Err(Error::Option("change patterns: use shares from 0 on, not all of them 0".into()));
        }
        Ok(())
    }

    /// Parts of all files that come or are modified, at most.
    pub(crate) fn most_changed(&self) -> f64 {
        (self.n + self.nm.max(self.mm).max(self.um).max(self.first.0)) / 100.0
    }

    /// Of files in a state, how many are modified and deleted: parts of 1.
    fn moves(&self, state: State, all_new: bool) -> (f64, f64) {
        let (modified, deleted) = match state {
            State::New if all_new => self.first,
            State::New => (self.nm, self.nd),
            State::Modified => (self.mm, self.md),
            State::Unmodified => (self.um, self.ud),
        };
        (modified / 100.0, deleted / 100.0)
    }
}

impl Maker<'_> {
    /// The next tree by a chain.
    pub fn by_chain(
        &mut self,
        chain: &Chain,
        before: &Tree,
        lineage: &mut Lineage,
        draw: &mut Draw,
    ) -> Result<(Tree, Generation)> {
        let counts = occurrences(before, self.series.chunks.len());
        let files: Vec<u32> = regular(before).collect();
        let chosen = choose(chain, before, &files, draw);
        let changes: Vec<&Changed> = chosen.rows.iter().collect();
        let step = self.sizes_by(chain, draw);
        let layouts = self.layouts(before, (&files, &chosen.fates), &changes, None, draw);
        let kept = crate::create::markov::select::kept(before, &files, &chosen.fates, &layouts, &counts);
        let pools =
            crate::create::markov::select::pools(before, (&files, &chosen.fates), kept, &counts, &|chunk| {
                self.series.chunks.size(chunk) < self.sizes.0
            });
        let count = draw.rounded(files.len() as f64 * chain.n / 100.0);
        let again = draw.rounded(lineage.left.len() as f64 * chain.dn / 100.0).min(count) as u32;
        let mut populate = self.populate(&chain.laws, count, draw);
        let change = Change {
            fates: chosen.fates,
            changes,
            layouts,
            step: &step,
            factor: 1.0,
            newcomers: Newcomers::Laws(&mut populate, count),
            whole: false,
            again,
        };
        let (tree, told) = self.apply(change, before, (&counts, pools), &mut lineage.left, draw)?;
        Ok((tree, Generation { wanted: chosen.wanted, best_match: chosen.smaller, ..told }))
    }

    /// Sizes of chunks that files get when they change, as a step has them.
    fn sizes_by(&self, chain: &Chain, draw: &mut Draw) -> Step {
        let cut = Cut::new(self.series.meta.chunking, self.sizes);
        let files = crate::create::content::law::FileSizes::new(&chain.laws.sizes);
        let ratio = chain.laws.ratio();
        let (mut only, mut inner, mut last) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..SAMPLE {
            let size = files.draw(draw).max(1);
            let next = cut.next(size, draw);
            if u64::from(next) == size {
                only.push((next, ratio));
            } else {
                inner.push((next, ratio));
                // Wherever a large file ends, its last chunk is what is left of one.
                let left = (size - u64::from(next)).min(1 + draw.below(1 << 20) as u64);
                let mut rest = left;
                let end = loop {
                    let next = cut.next(rest, draw);
                    if u64::from(next) == rest {
                        break next;
                    }
                    rest -= u64::from(next);
                };
                last.push((end, ratio));
            }
        }
        let of = |all: Vec<(u32, crate::Ratio)>| -> Sizes { sizes_of(all.into_iter()) };
        Step { only: of(only), inner: of(inner), last: of(last), ..Step::default() }
    }
}

/// Which files go and change, and how.
struct Chosen {
    fates: Vec<u32>,
    rows: Vec<Changed>,
    wanted: u64,
    /// Files that were too small for the pattern that they were to change in.
    smaller: u64,
}

fn choose(chain: &Chain, before: &Tree, files: &[u32], draw: &mut Draw) -> Chosen {
    let state = |file: u32| before.file(file).mark.state();
    let all_new = files.iter().all(|file| state(*file) == State::New);
    let patterns = Shares::new(chain.patterns.iter().copied());
    let mut chosen = Chosen { fates: vec![KEPT; files.len()], rows: Vec::new(), wanted: 0, smaller: 0 };
    let mut rows: Vec<(u32, Changed)> = Vec::new();
    for of in [State::New, State::Modified, State::Unmodified] {
        let mut there: Vec<u32> =
            (0..files.len() as u32).filter(|i| state(files[*i as usize]) == of).collect();
        draw.shuffle(&mut there);
        let (modified, deleted) = chain.moves(of, all_new);
        let deleted = (draw.rounded(there.len() as f64 * deleted) as usize).min(there.len());
        let modified = (draw.rounded(there.len() as f64 * modified) as usize).min(there.len() - deleted);
        chosen.wanted += (deleted + modified) as u64;
        for i in there.drain(..deleted) {
            chosen.fates[i as usize] = GONE;
        }
        // Files by how many chunks they have; patterns that need many choose first.
        let mut classes: [Vec<u32>; CLASSES] = Default::default();
        for i in there {
            classes[before.chunks_of(files[i as usize]).len().min(CLASSES - 1)].push(i);
        }
        let mut drawn: Vec<Pattern> = (0..modified).map(|_| Pattern::ALL[patterns.draw(draw)]).collect();
        drawn.sort_by_key(|pattern| std::cmp::Reverse(needs(*pattern)));
        for pattern in drawn {
            let (i, fits) = take(&mut classes, needs(pattern), draw);
            chosen.smaller += u64::from(!fits);
            let size = before.chunks_of(files[i as usize]).len() as u32;
            rows.push((i, row(size, if fits { pattern } else { Pattern::B }, of)));
        }
    }
    rows.sort_by_key(|(i, _)| *i);
    for (number, (i, row)) in (0..).zip(rows) {
        chosen.fates[i as usize] = number;
        chosen.rows.push(row);
    }
    chosen
}

/// Chunks that a file must have to change so.
fn needs(pattern: Pattern) -> usize {
    match pattern {
        Pattern::B => 0,
        Pattern::E | Pattern::BE => 2,
        Pattern::M | Pattern::BEM => 3,
        Pattern::BM | Pattern::ME => 4,
    }
}

/// Any file of so many chunks and more, or else of as many as there are; tells which it is.
fn take(classes: &mut [Vec<u32>; CLASSES], least: usize, draw: &mut Draw) -> (u32, bool) {
    let there: usize = classes[least..].iter().map(Vec::len).sum();
    let mut at = draw.below(there);
    for class in &mut classes[least..] {
        if at < class.len() {
            // They are shuffled: the last one is any.
            return (class.pop().unwrap_or(0), true);
        }
        at -= class.len();
    }
    (classes[..least].iter_mut().rev().find_map(Vec::pop).unwrap_or(0), false)
}

/// The change of a file of `size` chunks: one chunk is new wherever the pattern says, all are where that is everywhere.
fn row(size: u32, pattern: Pattern, state: State) -> Changed {
    let (begin, middle, end) = pattern.parts();
    let places = [begin, middle, end].into_iter().filter(|there| *there).count() as u32;
    // A file without content gets a chunk.
    let after = size.max(1);
    let kept = if pattern == Pattern::BEM { 0 } else { after.saturating_sub(places).min(size) };
    Changed {
        file: File { depth: 0, extension: 0, size, unique: size, dup1: 0, dup2: 0 },
        state: state as u32,
        size: after,
        unique: after - kept,
        dup1: kept,
        kept,
        pattern,
        count: 1,
        ..Changed::default()
    }
}
