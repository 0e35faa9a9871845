//! The directories of a generated stream.

use crate::feature::files::catalog::ROOT;
use crate::feature::node::Need;
use crate::random::{Random, below};
use loadstone_trace::Recency;

/// Directories looked at for one that will do.
const LOOKS: u64 = 64;

/// Most directories above each other, so that every path can be used.
const DEEPEST: u32 = 64;

struct Directory {
    path: String,
    depth: u32,
    /// Whether it was there at the start.
    initial: bool,
    /// Whether it is there now.
    there: bool,
    /// Whether a request tells that it is one: else nobody knows that what is there at the start is no file.
    sure: bool,
    /// Names in it that are there now.
    inside: u32,
    /// Directories that were ever in it.
    children: u32,
}

/// All of them, and which were used last.
pub(crate) struct Directories {
    all: Vec<Directory>,
    used: Recency,
}

impl Default for Directories {
    fn default() -> Directories {
        let path = String::new();
        let root =
            Directory { path, depth: 0, initial: true, there: true, sure: true, inside: 0, children: 0 };
        let mut used = Recency::default();
        used.touch(0, u64::from(ROOT));
        Directories { all: vec![root], used }
    }
}

impl Directories {
    /// A new one in another: there from the start on, or not at all.
    pub fn make(&mut self, above: u32, initial: bool) -> u32 {
        let parent = &mut self.all[above as usize];
        let path = joined(&parent.path, &format!("d{}", parent.children));
        let depth = parent.depth + 1;
        parent.children += 1;
        parent.inside += u32::from(initial);
        self.all.push(Directory {
            path,
            depth,
            initial,
            there: initial,
            sure: false,
            inside: 0,
            children: 0,
        });
        self.all.len() as u32 - 1
    }

    /// The path of a name in a directory.
    pub fn path(&self, directory: u32, name: &str) -> String {
        joined(&self.all[directory as usize].path, name)
    }

    /// The path of a directory.
    pub fn own_path(&self, directory: u32) -> String {
        self.all[directory as usize].path.clone()
    }

    pub fn is_there(&self, directory: u32) -> bool {
        self.all[directory as usize].there
    }

    pub fn is_sure(&self, directory: u32) -> bool {
        self.all[directory as usize].sure
    }

    /// A request tells that it is a directory, or what it was before it was moved.
    pub fn tell(&mut self, directory: u32, sure: bool) {
        self.all[directory as usize].sure |= sure;
    }

    pub fn is_empty(&self, directory: u32) -> bool {
        self.all[directory as usize].inside == 0
    }

    /// A name in a directory is there from now on, or is not any more.
    pub fn changed(&mut self, directory: u32, there: bool) {
        let inside = &mut self.all[directory as usize].inside;
        *inside = if there { *inside + 1 } else { inside.saturating_sub(1) };
    }

    /// A directory was made or taken away.
    pub fn set_there(&mut self, directory: u32, there: bool) {
        let own = &mut self.all[directory as usize];
        (own.there, own.initial) = (there, false);
    }

    pub fn touch(&mut self, directory: u32) {
        self.used.touch(0, u64::from(directory));
    }

    /// Where a new object goes of which this must hold: to a directory at a distance, or to a new one below one that is
    /// known, so many levels down.
    pub fn choose(&mut self, (low, high): (i64, i64), need: Need, rng: &mut Random) -> u32 {
        if need == Need::Orphan {
            let above = self.any(rng);
            return self.make(above, false);
        }
        if high < 0 {
            let levels = (low + below(rng, high.abs_diff(low).saturating_add(1)) as i64).unsigned_abs();
            let mut directory = self.any(rng);
            let room = DEEPEST.saturating_sub(self.all[directory as usize].depth);
            for _ in 0..levels.min(u64::from(room)) {
                directory = self.make(directory, true);
                self.touch(directory);
            }
            return directory;
        }
        let most = self.used.len() as u64 - 1;
        let (low, high) = ((low.max(0) as u64).min(most), (high as u64).min(most));
        let first = low + below(rng, high - low + 1);
        let distances = (first..=high).chain(low..first).take(LOOKS as usize).chain(0..LOOKS);
        let suits = |directory: &u32| {
            let own = &self.all[*directory as usize];
            let suits = if need.is_there() { own.initial } else { own.initial || own.sure };
            own.there && own.depth < DEEPEST && suits
        };
        let at = |distance| self.used.at(distance).map(|(_, directory)| directory as u32);
        distances.filter_map(at).find(suits).unwrap_or(ROOT)
    }

    /// Any directory that was there at the start and still is.
    fn any(&self, rng: &mut Random) -> u32 {
        let any = (0..LOOKS).map(|_| below(rng, self.all.len() as u64) as u32).find(|&directory| {
            let own = &self.all[directory as usize];
            own.there && own.initial && own.depth < DEEPEST
        });
        any.unwrap_or(ROOT)
    }
}

fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.into() } else { format!("{directory}/{name}") }
}
