//! Places in the tree of files that a capture shows: paths, each interned once, and the ids of objects at them.

use crate::chunk::MOST_IDS;
use crate::{Error, ErrorKind, Object, Result};
use rustc_hash::FxHashMap;

/// The root of everything.
pub const TOP: u32 = 0;

/// The directory of handles whose names are not known.
const HANDLES: u32 = 1;

/// Most places that are kept: objects and the directories that lead to them.
const MOST: usize = 4 * MOST_IDS;

/// Longest path, bytes (PATH_MAX of Linux), and most steps from a place to the root.
const LONGEST: usize = 4096;
const STEPS: usize = 4096;

/// Bytes of all paths together; what goes beyond gets short ones.
const ALL: usize = 1 << 30;

struct Place {
    parent: u32,
    name: Box<[u8]>,
    /// Where it turned out to be, of a handle whose name was learned later.
    found: Option<u32>,
    /// Something was made, renamed or removed here.
    changed: bool,
    /// Its object, once a request went to it.
    object: Option<u32>,
}

/// All places, by number.
pub struct Places {
    places: Vec<Place>,
    known: FxHashMap<(u32, Box<[u8]>), u32>,
    /// Place of each object.
    objects: Vec<u32>,
}

impl Default for Places {
    fn default() -> Places {
        let mut places = Places { places: Vec::new(), known: FxHashMap::default(), objects: Vec::new() };
        places.insert(TOP, b"");
        places.at(TOP, b".handles");
        places
    }
}

/// Whether a name stands for an entry of a directory: not for itself, its parent or nothing.
pub fn is_entry(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
}

impl Places {
    fn insert(&mut self, parent: u32, name: &[u8]) -> u32 {
        self.places.push(Place { parent, name: name.into(), found: None, changed: false, object: None });
        self.places.len() as u32 - 1
    }

    /// The place of a name in another.
    pub fn at(&mut self, parent: u32, name: &[u8]) -> u32 {
        if let Some(place) = self.known.get(&(parent, name.into())) {
            return *place;
        }
        let place = self.insert(parent, name);
        self.known.insert((parent, name.into()), place);
        place
    }

    /// The place of a handle without a name.
    pub fn handle(&mut self, handle: &[u8]) -> u32 {
        let digits: String = handle.iter().map(|byte| format!("{byte:02x}")).collect();
        self.at(HANDLES, if digits.is_empty() { b"none" } else { digits.as_bytes() })
    }

    /// Where a path leads that is read in a place: `..` at the root stays there.
    pub fn follow(&mut self, from: u32, path: &[u8]) -> u32 {
        let mut at = if path.starts_with(b"/") { TOP } else { from };
        for part in path.split(|byte| *byte == b'/') {
            at = match part {
                b"" | b"." => at,
                b".." => self.places[at as usize].parent,
                part => self.at(at, part),
            };
        }
        at
    }

    /// Id of the object at a place.
    pub fn object(&mut self, place: u32) -> u32 {
        let next = self.objects.len() as u32;
        let object = *self.places[place as usize].object.get_or_insert(next);
        if object == next {
            self.objects.push(place);
        }
        object
    }

    /// Something is made, renamed or removed at a place.
    pub fn change(&mut self, place: u32) {
        self.places[place as usize].changed = true;
    }

    /// Says that a handle had its place where its name was learned, unless what was there has changed since.
    pub fn bind(&mut self, handle: u32, place: u32) {
        if self.places[handle as usize].parent != HANDLES {
            return;
        }
        let mut at = place;
        while at != TOP {
            if at == handle || self.places[at as usize].changed {
                return;
            }
            at = self.places[at as usize].parent;
        }
        let own = &mut self.places[handle as usize];
        own.found = Some(place);
        // Should the handle lose its name, it gets another place of its own.
        self.known.remove(&(own.parent, own.name.clone()));
    }

    /// The path of a place; `None` if it is too long.
    fn path(&self, place: u32) -> Option<String> {
        let (mut parts, mut at, mut bytes): (Vec<&[u8]>, _, _) = (Vec::new(), place, 0);
        for _ in 0..STEPS {
            let Place { parent, name, found, .. } = &self.places[at as usize];
            if let Some(found) = found {
                at = *found;
                continue;
            }
            if at == TOP {
                let path: String = parts.iter().rev().flat_map(|name| ["/".into(), readable(name)]).collect();
                return Some(if path.is_empty() { "/".into() } else { path });
            }
            bytes += name.len() + 1;
            if bytes > LONGEST {
                return None;
            }
            parts.push(name);
            at = *parent;
        }
        None
    }

    /// The objects by id, called by their paths.
    pub fn objects(&self) -> Vec<Object> {
        let mut bytes = 0;
        let named = |(id, place): (u32, &u32)| {
            let path = if bytes < ALL { self.path(*place) } else { None };
            let name = path.unwrap_or_else(|| format!("/.handles/object-{id}"));
            bytes += name.len();
            Object { id, name }
        };
        (0..).zip(&self.objects).map(named).collect()
    }

    /// # Errors
    /// When there are more objects or places than a trace may have.
    pub fn check(&self) -> Result<()> {
        if self.objects.len() <= MOST_IDS && self.places.len() <= MOST {
            return Ok(());
        }
        let what = format!("more than {MOST_IDS} files, or {MOST} names that lead to them");
        Err(Error::new(ErrorKind::TooLarge, what).help("cut the capture into shorter ones"))
    }
}

/// A name as part of a path: a slash, a zero or what is no UTF-8 is written as `%` and two digits.
fn readable(name: &[u8]) -> String {
    let mut out = String::new();
    for part in name.utf8_chunks() {
        for c in part.valid().chars() {
            match c {
                '/' => out.push_str("%2F"),
                '\0' => out.push_str("%00"),
                c => out.push(c),
            }
        }
        out.extend(part.invalid().iter().map(|byte| format!("%{byte:02X}")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(places: &Places) -> Vec<String> {
        places.objects().into_iter().map(|object| object.name).collect()
    }

    #[test]
    fn paths_are_made_of_names() {
        let mut places = Places::default();
        let home = places.at(TOP, b"home");
        let odd = places.at(home, b"a/../b\0\xff");
        let (up, far) = (places.follow(home, b"../../x//./y"), places.follow(home, b"z"));
        let all = [TOP, odd, up, far, home, odd].map(|place| places.object(place));
        assert_eq!(all, [0, 1, 2, 3, 4, 1]);
        assert_eq!(names(&places), ["/", "/home/a%2F..%2Fb%00%FF", "/x/y", "/home/z", "/home"]);
    }

    #[test]
    fn handles_get_their_names_later() {
        let mut places = Places::default();
        let directory = places.handle(&[0xab, 1]);
        let file = places.at(directory, b"f");
        let home = places.at(TOP, b"home");
        let all = [directory, file, home].map(|place| places.object(place));
        assert_eq!(names(&places), ["/.handles/ab01", "/.handles/ab01/f", "/home"]);
        places.bind(directory, home);
        assert_eq!(names(&places), ["/home", "/home/f", "/home"]);
        assert_eq!(all, [0, 1, 2]);
        // What is there now was not there then.
        let (other, new) = (places.handle(&[]), places.at(home, b"new"));
        places.object(other);
        places.change(new);
        places.bind(other, new);
        assert_eq!(names(&places)[3], "/.handles/none");
        assert_ne!(places.handle(&[0xab, 1]), directory);
    }

    #[test]
    fn no_path_is_without_end() {
        let mut places = Places::default();
        let mut deep = TOP;
        for _ in 0..5000 {
            deep = places.at(deep, b"d");
        }
        places.object(deep);
        // Names in a capture may say that two handles lie in each other.
        let (a, b) = (places.handle(b"a"), places.handle(b"b"));
        let (in_a, in_b) = (places.at(a, b"x"), places.at(b, b"y"));
        places.bind(a, in_b);
        places.bind(b, in_a);
        places.object(in_a);
        assert_eq!(names(&places), ["/.handles/object-0", "/.handles/object-1"]);
    }
}
