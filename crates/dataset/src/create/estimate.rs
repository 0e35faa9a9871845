//! What making a series takes of memory, told before any of it is taken.

use super::{By, Initial, Options, Start};
use crate::profile::{Profile, Step};
use crate::tree::Series;
use crate::{Error, Result};

/// Bytes of a file, a directory and a chunk of a file in a tree (docs/reference/formats/fstree.md), and of a distinct chunk.
const FILE: f64 = 27.0;
const DIR: f64 = 12.0;
const REF: f64 = 4.0;
const CHUNK: f64 = 4.0;
/// Of a tree that is empty.
const TREE: f64 = 512.0;
/// Of a file's size, before the file is there, and of a directory, for its chance to get another.
const SIZE: f64 = 8.0;
const CHANCES: f64 = 24.0;
/// Bytes beside those while a tree is changed: of a file, for characteristics, order and fate; of a distinct chunk, for
/// counts and pools, and for each user how often it was there.
const FILE_WORK: f64 = 60.0;
const CHUNK_WORK: f64 = 12.0;
const CHUNK_SEEN: f64 = 1.0;
/// Columns grow by doubling.
const GROWTH: f64 = 1.5;

/// What there is after a generation, in numbers; floating, as nothing is refused for what it counts.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    files: f64,
    dirs: f64,
    refs: f64,
}

impl Size {
    fn grown(self, times: f64) -> Size {
        Size { files: self.files * times, refs: self.refs * times, ..self }
    }

    fn bytes(&self) -> f64 {
        FILE * self.files + DIR * self.dirs + REF * self.refs
    }
}

/// Refuses what would take more memory than may be taken.
pub(super) fn check(start: &Start<'_>, by: &By<'_>, options: &Options) -> Result<()> {
    let (mut at, mut fresh, there, mut bytes) = match start {
        Start::Nothing => (Size::default(), 0.0, false, 0.0),
        // Sizes are drawn first, and then the rest is known.
        Start::Laws(Initial { files, directories, .. }) => {
            let (files, dirs) = (f64::from(*files), f64::from(*directories));
            let bytes = (GROWTH * FILE + SIZE) * files + (GROWTH * DIR + CHANCES) * dirs;
            return refuse(bytes, options, &format!("{files} files in {dirs} directories"));
        }
        Start::Series(series) => {
            let (size, bytes) = of_series(series);
            (size, series.chunks.len() as f64, true, bytes)
        }
    };
    let users = f64::from(options.users);
    let (mut largest, later) =
        (at.bytes(), if let By::Profile(profile) = by { of_later(profile) } else { (1.0, 0.0) });
    for generation in 0..options.generations as usize {
        let (after, new) = match by {
            By::Profile(profile) => match profile.steps.get(generation + usize::from(there)) {
                Some(step) if generation == 0 && !there => of_step(step, options.scale, at),
                Some(step) => of_step(step, at.files / f64::from(step.before.max(1)), at),
                None => (at.grown(later.0), later.1 * at.refs),
            },
            By::Chain(chain) => (at.grown(1.0 + chain.n / 100.0), at.refs * chain.most_changed()),
            // What somebody else will do is not known.
            By::Mutator(_) | By::Nothing => (at, 0.0),
        };
        at = after;
        fresh += new * if generation == 0 && !there { 1.0 } else { users };
        bytes += TREE + at.bytes() * users;
        largest = largest.max(at.bytes() + FILE_WORK * at.files);
        if bytes > options.memory as f64 {
            break;
        }
    }
    let own = if options.users > 1 { at.bytes() * users } else { 0.0 };
    let work = CHUNK_WORK + CHUNK_SEEN * users;
    let all = GROWTH * (bytes + own + CHUNK * fresh) + largest + work * fresh;
    refuse(
        all,
        options,
        &format!("{} generations of up to {:.0} files", options.generations, at.files * users),
    )
}

/// Refuses files of these sizes, if they are too many or too large.
pub(super) fn of_files(sizes: &[u64], chunk: f64, options: &Options) -> Result<()> {
    let bytes: f64 = sizes.iter().map(|size| *size as f64).sum();
    let refs = bytes / chunk + sizes.len() as f64;
    let size = Size { files: sizes.len() as f64, dirs: sizes.len() as f64 / 4.0, refs };
    let trees = f64::from(options.generations) * f64::from(options.users);
    let all = GROWTH * (size.bytes() * trees + CHUNK * refs) + SIZE * size.files + CHUNK_WORK * refs;
    let what =
        format!("{} generations of {} files of {:.1} GiB", options.generations, sizes.len(), gib(bytes));
    refuse(all, options, &what)?;
    if refs >= f64::from(u32::MAX) {
        return Err(Error::Option(format!("{what}: 2^32 chunks and more; use fewer files or larger chunks")));
    }
    Ok(())
}

fn of_series(series: &Series) -> (Size, f64) {
    let size = |tree: &crate::Tree| Size {
        files: tree.len() as f64,
        dirs: tree.dirs() as f64,
        refs: tree.refs.len() as f64,
    };
    let bytes = series.trees.iter().map(|tree| size(tree).bytes()).sum();
    (series.trees.last().map(size).unwrap_or_default(), bytes)
}

/// What a step makes of a tree, and new chunks.
fn of_step(step: &Step, factor: f64, before: Size) -> (Size, f64) {
    let of = |sum: &mut dyn Iterator<Item = (u32, u32)>| {
        sum.fold((0.0, 0.0), |(files, chunks), (count, size)| {
            (files + f64::from(count), chunks + f64::from(count) * f64::from(size))
        })
    };
    let (new, new_chunks) = of(&mut step.new.iter().map(|row| (row.count, row.file.size)));
    let (gone, gone_chunks) = of(&mut step.gone.iter().map(|row| (row.count, row.file.size)));
    let (_, were) = of(&mut step.changed.iter().map(|row| (row.count, row.file.size)));
    let (_, are) = of(&mut step.changed.iter().map(|row| (row.count, row.size)));
    let (_, unique) = of(&mut step.changed.iter().map(|row| (row.count, row.unique)));
    let (_, fresh) = of(&mut step.new.iter().map(|row| (row.count, row.file.unique)));
    let links = [&step.symlinks, &step.hard_links].map(|all| all.iter().map(|n| f64::from(*n)).sum::<f64>());
    let dirs: f64 = step.directories.iter().map(|count| f64::from(*count)).sum();
    let after = Size {
        files: (before.files + factor * (new - gone)).max(0.0) + factor * (links[0] + links[1]),
        dirs: before.dirs.max(factor * dirs),
        refs: (before.refs + factor * (new_chunks - gone_chunks + are - were)).max(0.0),
    };
    (after, factor * (fresh + unique))
}

/// How much trees grow in steps beyond those of a profile, and new chunks for each one there is.
fn of_later(profile: &Profile) -> (f64, f64) {
    let steps: Vec<_> = profile.steps.iter().skip(1).collect();
    let each = |step: &&Step| {
        let before =
            Size { files: f64::from(step.before.max(1)), dirs: 0.0, refs: f64::from(step.before.max(1)) };
        let (after, fresh) = of_step(step, 1.0, before);
        (after.files / before.files, fresh / before.refs)
    };
    let sum = steps.iter().map(each).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    let count = (steps.len() as f64).max(1.0);
    (sum.0 / count, sum.1 / count)
}

fn refuse(bytes: f64, options: &Options, what: &str) -> Result<()> {
    if bytes <= options.memory as f64 {
        return Ok(());
    }
    Err(Error::Option(format!(
        "{what} would take about {:.1} GiB of memory, and {:.1} GiB may be taken: make fewer generations, users or files \
         (a smaller scale), or allow more memory",
        gib(bytes),
        gib(options.memory as f64)
    )))
}

fn gib(bytes: f64) -> f64 {
    bytes / (1u64 << 30) as f64
}
