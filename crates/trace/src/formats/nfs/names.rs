//! What file handles stand for: names learned from replies, and followed through renames, links and removals.

use super::places::{Places, TOP, is_entry};
use crate::chunk::MOST_IDS;
use crate::{NO_OBJECT, Object, Op, Result};
use rustc_hash::FxHashMap;

/// Most handles and names that are learned from replies.
const MOST: usize = 2 * MOST_IDS;

/// Most names of one handle, and most directories above one.
const NAMES: usize = 32;
const DEEPEST: usize = 256;

/// A name in a directory, given by the number of its handle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry {
    directory: u32,
    name: Box<[u8]>,
}

/// What a call changes if it is granted, or what its reply tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    #[default]
    Nothing,
    /// The handle of a name.
    Found(Entry),
    /// A name is made.
    Made(Entry),
    /// A name goes.
    Gone(Entry),
    /// What has a name gets another.
    Moved(Entry, Entry),
    /// A handle gets one more name.
    Linked(u32, Entry),
    /// Names in a directory.
    Listed(u32),
}

/// What a call asks for, as its arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked<'a> {
    /// What for.
    pub op: Op,
    /// File, or directory of the name.
    pub handle: &'a [u8],
    /// The name, where the procedure is on one.
    pub name: Option<&'a [u8]>,
    /// Directory and name that a rename or link makes.
    pub second: Option<(&'a [u8], &'a [u8])>,
    /// Where a symbolic link leads.
    pub leads: Option<&'a [u8]>,
    /// First byte, or [`crate::NONE`].
    pub offset: i64,
    /// Bytes, or [`crate::NONE`]; of a truncation the new length.
    pub size: i64,
    /// Bits of [`crate::flag`].
    pub flags: u32,
}

/// What a reply says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told<'a> {
    /// 0 or a negative errno.
    pub result: i64,
    /// Bytes read or written.
    pub count: Option<u32>,
    /// The handle of what was named.
    pub handle: Option<&'a [u8]>,
    /// Names of a directory, with their handles.
    pub entries: Vec<(&'a [u8], &'a [u8])>,
}

#[derive(Default)]
struct Node {
    handle: Box<[u8]>,
    /// Its names, the current one last.
    names: Vec<Entry>,
    /// Its place without a name, once it was used so.
    own: Option<u32>,
    /// Its place by its name, as of a state of the directories.
    place: Option<(u64, u32)>,
    directory: bool,
    /// Its own place is where it was mounted.
    mounted: bool,
}

/// Handles and their names, now.
#[derive(Default)]
pub struct Names {
    places: Places,
    nodes: Vec<Node>,
    handles: FxHashMap<Box<[u8]>, u32>,
    entries: FxHashMap<Entry, u32>,
    /// Counts the times that directories moved.
    state: u64,
    /// Names that there was no room for.
    forgotten: u64,
}

impl Names {
    /// Number of a handle.
    pub fn node(&mut self, handle: &[u8]) -> u32 {
        if let Some(node) = self.handles.get(handle) {
            return *node;
        }
        self.nodes.push(Node { handle: handle.into(), ..Node::default() });
        let node = self.nodes.len() as u32 - 1;
        self.handles.insert(handle.into(), node);
        node
    }

    /// A name in a directory; `None` if it is none of its entries.
    pub fn entry(&mut self, directory: u32, name: &[u8]) -> Option<Entry> {
        self.nodes[directory as usize].directory = true;
        is_entry(name).then(|| Entry { directory, name: name.into() })
    }

    fn place(&mut self, node: u32) -> u32 {
        let (mut chain, mut at) = (Vec::new(), node);
        let mut place = loop {
            let Node { names, place, .. } = &self.nodes[at as usize];
            match (place, names.last()) {
                (Some((state, place)), _) if *state == self.state => break *place,
                (_, Some(name)) if chain.len() < DEEPEST => {
                    chain.push(at);
                    at = name.directory;
                }
                _ => break self.own(at),
            }
        };
        for node in chain.into_iter().rev() {
            let Node { names, place: cached, .. } = &mut self.nodes[node as usize];
            if let Some(entry) = names.last() {
                place = self.places.at(place, &entry.name);
                *cached = Some((self.state, place));
            }
        }
        place
    }

    /// The place of a handle without its names.
    fn own(&mut self, node: u32) -> u32 {
        let Node { own, handle, .. } = &mut self.nodes[node as usize];
        *own.get_or_insert_with(|| self.places.handle(handle))
    }

    fn place_of(&mut self, entry: &Entry) -> u32 {
        let directory = self.place(entry.directory);
        self.places.at(directory, &entry.name)
    }

    /// Id of the object that a handle stands for.
    pub fn object(&mut self, node: u32) -> u32 {
        let place = self.place(node);
        self.places.object(place)
    }

    /// Id of what a call touched that does not say it.
    pub fn unknown(&mut self) -> u32 {
        let node = self.node(b"");
        self.object(node)
    }

    /// Id of the object at a name.
    pub fn object_at(&mut self, entry: &Entry) -> u32 {
        let place = self.place_of(entry);
        self.places.object(place)
    }

    /// Id of what a name in a directory stands for that may be `.` or `..`, and the entry if it is one.
    fn named(&mut self, directory: u32, name: &[u8]) -> (u32, Option<Entry>) {
        match self.entry(directory, name) {
            Some(entry) => (self.object_at(&entry), Some(entry)),
            None => {
                let above = self.nodes[directory as usize].names.last().filter(|_| name == b"..");
                let node = above.map_or(directory, |entry| entry.directory);
                (self.object(node), None)
            }
        }
    }

    /// The objects of a call, and what it changes if it is granted.
    pub fn ask(&mut self, asked: &Asked) -> (u32, u32, Change) {
        let node = self.node(asked.handle);
        let Some(name) = asked.name else {
            if let (Op::Link, Some((directory, name))) = (asked.op, asked.second) {
                let object = self.object(node);
                let directory = self.node(directory);
                let (other, entry) = self.named(directory, name);
                return (object, other, entry.map_or(Change::Nothing, |entry| Change::Linked(node, entry)));
            }
            let listed = matches!(asked.op, Op::Readdir | Op::Readdirplus);
            self.nodes[node as usize].directory |= listed;
            let change = if listed { Change::Listed(node) } else { Change::Nothing };
            return (self.object(node), NO_OBJECT, change);
        };
        let (object, entry) = self.named(node, name);
        let mut other = NO_OBJECT;
        let change = match (asked.op, entry) {
            (Op::Lookup, Some(entry)) => Change::Found(entry),
            (Op::Remove | Op::Rmdir, Some(entry)) => Change::Gone(entry),
            (Op::Rename, entry) => {
                let (directory, name) = asked.second.unwrap_or((asked.handle, name));
                let directory = self.node(directory);
                let (to, second) = self.named(directory, name);
                other = to;
                entry.zip(second).map_or(Change::Nothing, |(from, to)| Change::Moved(from, to))
            }
            (Op::Create | Op::Mkdir | Op::Mknod | Op::Symlink, Some(entry)) => Change::Made(entry),
            _ => Change::Nothing,
        };
        if let (Op::Symlink, Some(leads)) = (asked.op, asked.leads) {
            let from = self.place(node);
            let place = self.places.follow(from, leads);
            other = self.places.object(place);
        }
        (object, other, change)
    }

    /// Takes what a reply says to a call.
    pub fn answer(&mut self, change: Change, told: &Told) {
        if told.result < 0 {
            return;
        }
        match change {
            Change::Nothing => {}
            Change::Found(entry) => {
                if let Some(handle) = told.handle {
                    self.learn(entry, handle);
                }
            }
            Change::Made(entry) => {
                match told.handle {
                    Some(handle) => self.learn(entry.clone(), handle),
                    None => self.forget(&entry),
                }
                self.changed(&entry);
            }
            Change::Gone(entry) => {
                self.changed(&entry);
                self.forget(&entry);
            }
            Change::Moved(from, to) => self.moved(from, to),
            Change::Linked(node, entry) => {
                self.changed(&entry);
                self.forget(&entry);
                if self.room() {
                    self.entries.insert(entry.clone(), node);
                    // It goes on under the name that it had.
                    self.nodes[node as usize].names.insert(0, entry);
                    self.named_anew(node);
                }
            }
            Change::Listed(directory) => {
                for (name, handle) in &told.entries {
                    if let Some(entry) = self.entry(directory, name) {
                        self.learn(entry, handle);
                    }
                }
            }
        }
    }

    fn changed(&mut self, entry: &Entry) {
        let place = self.place_of(entry);
        self.places.change(place);
    }

    fn moved(&mut self, from: Entry, to: Entry) {
        let node = self.entries.get(&from).copied();
        // A rename from one link of a file to another does nothing (rename(2)).
        if node.is_some() && self.entries.get(&to) == node.as_ref() {
            return;
        }
        self.changed(&from);
        self.changed(&to);
        self.forget(&to);
        self.forget(&from);
        if let Some(node) = node
            && !self.above(node, to.directory)
        {
            self.entries.insert(to.clone(), node);
            self.nodes[node as usize].names.push(to);
            self.named_anew(node);
        }
    }

    /// A name stands for nothing that is known.
    fn forget(&mut self, entry: &Entry) {
        if let Some(node) = self.entries.remove(entry) {
            self.nodes[node as usize].names.retain(|name| name != entry);
            self.named_anew(node);
        }
    }

    /// The name of a handle has changed.
    fn named_anew(&mut self, node: u32) {
        let Node { names, place, directory, .. } = &mut self.nodes[node as usize];
        if names.len() > NAMES {
            names.remove(0);
        }
        *place = None;
        // So have those of all that is in it.
        self.state += u64::from(*directory);
    }

    fn room(&mut self) -> bool {
        let room = self.nodes.len() < MOST && self.entries.len() < MOST;
        self.forgotten += u64::from(!room);
        room
    }

    /// Whether a directory is a handle's own or lies in it.
    fn above(&self, node: u32, directory: u32) -> bool {
        let mut at = directory;
        for _ in 0..DEEPEST {
            if at == node {
                return true;
            }
            match self.nodes[at as usize].names.last() {
                Some(entry) => at = entry.directory,
                None => return false,
            }
        }
        true
    }

    /// Learns the handle of a name.
    fn learn(&mut self, entry: Entry, handle: &[u8]) {
        if self.entries.get(&entry).is_some_and(|node| *self.nodes[*node as usize].handle == *handle) {
            return;
        }
        if !self.room() {
            return;
        }
        let node = self.node(handle);
        if self.nodes[node as usize].mounted || self.above(node, entry.directory) {
            return;
        }
        self.forget(&entry);
        // A directory has one name: it was moved by somebody who is not in the capture.
        if let Node { directory: true, names, .. } = &mut self.nodes[node as usize] {
            for name in std::mem::take(names) {
                self.entries.remove(&name);
            }
        }
        let nameless = self.nodes[node as usize].names.is_empty();
        if nameless && let Some(own) = self.nodes[node as usize].own.take() {
            let place = self.place_of(&entry);
            self.places.bind(own, place);
        }
        self.entries.insert(entry.clone(), node);
        self.nodes[node as usize].names.push(entry);
        self.named_anew(node);
    }

    /// A directory is mounted: its path is known.
    pub fn mounted(&mut self, path: &[u8], handle: &[u8]) {
        let node = self.node(handle);
        let place = self.places.follow(TOP, path);
        let Node { names, own, directory, mounted, .. } = &mut self.nodes[node as usize];
        if !names.is_empty() {
            return;
        }
        (*directory, *mounted) = (true, true);
        if let Some(own) = own.replace(place) {
            self.places.bind(own, place);
        }
        self.named_anew(node);
    }

    /// The objects by id, called by their paths.
    pub fn objects(&self) -> Vec<Object> {
        self.places.objects()
    }

    /// Names that could not be kept.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// # Errors
    /// When there are more files than a trace may have.
    pub fn check(&self) -> Result<()> {
        self.places.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NONE;

    fn call<'a>(op: Op, handle: &'a [u8], name: &'a str) -> Asked<'a> {
        let name = (!name.is_empty()).then_some(name.as_bytes());
        Asked { op, handle, name, second: None, leads: None, offset: NONE, size: NONE, flags: 0 }
    }

    fn two<'a>(op: Op, handle: &'a [u8], name: &'a str, to: &'a [u8], new: &'a str) -> Asked<'a> {
        Asked { second: Some((to, new.as_bytes())), ..call(op, handle, name) }
    }

    /// Makes a call that is granted; ids of its object and its other.
    fn granted(names: &mut Names, asked: Asked, handle: Option<&[u8]>) -> (u32, u32) {
        let (object, other, change) = names.ask(&asked);
        names.answer(change, &Told { handle, ..Told::default() });
        (object, other)
    }

    fn paths(names: &Names) -> Vec<String> {
        names.objects().into_iter().map(|object| object.name).collect()
    }

    /// Path of a handle now.
    fn path(names: &mut Names, handle: &[u8]) -> String {
        let (object, ..) = names.ask(&call(Op::Stat, handle, ""));
        paths(names)[object as usize].clone()
    }

    #[test]
    fn names_are_learned_and_followed() {
        let mut names = Names::default();
        let n = &mut names;
        n.mounted(b"/export", b"root");
        granted(n, call(Op::Mkdir, b"root", "d"), Some(b"D"));
        let (made, _) = granted(n, call(Op::Create, b"D", "f"), Some(b"F"));
        assert_eq!(n.ask(&call(Op::Write, b"F", "")).0, made, "the name and the handle are one object");
        let (old, new) = granted(n, two(Op::Rename, b"root", "d", b"root", "e"), None);
        assert_eq!([old, new].map(|id| paths(n)[id as usize].clone()), ["/export/d", "/export/e"]);
        assert_eq!(path(n, b"F"), "/export/e/f", "what is in a directory goes with it");
        let (file, link) = granted(n, two(Op::Link, b"F", "", b"root", "l"), None);
        assert_eq!([file, link].map(|id| paths(n)[id as usize].clone()), ["/export/e/f", "/export/l"]);
        granted(n, call(Op::Remove, b"D", "f"), None);
        assert_eq!(path(n, b"F"), "/export/l");
        granted(n, call(Op::Remove, b"root", "l"), None);
        assert_eq!(path(n, b"F"), "/.handles/46");
        let link = Asked { leads: Some(b"../../x"), ..call(Op::Symlink, b"D", "s") };
        let (_, leads) = granted(n, link, Some(b"S"));
        assert_eq!((paths(n)[leads as usize].as_str(), path(n, b"S").as_str()), ("/x", "/export/e/s"));
    }

    #[test]
    fn a_name_may_be_learned_late() {
        let mut names = Names::default();
        let n = &mut names;
        let (early, ..) = n.ask(&call(Op::Read, b"F", ""));
        granted(n, call(Op::Lookup, b"D", "f"), Some(b"F"));
        assert_eq!(paths(n)[early as usize], "/.handles/44/f");
        let (.., change) = n.ask(&call(Op::Readdirplus, b"R", ""));
        n.answer(
            change,
            &Told { entries: vec![(b".", b"R"), (b"..", b"D"), (b"d", b"D")], ..Told::default() },
        );
        assert_eq!(paths(n)[early as usize], "/.handles/52/d/f");
        // What was renamed since was elsewhere before.
        let (before, ..) = n.ask(&call(Op::Read, b"G", ""));
        granted(n, two(Op::Rename, b"R", "x", b"R", "y"), None);
        granted(n, call(Op::Lookup, b"R", "y"), Some(b"G"));
        assert_eq!(
            (paths(n)[before as usize].as_str(), path(n, b"G").as_str()),
            ("/.handles/47", "/.handles/52/y")
        );
    }

    #[test]
    fn what_failed_or_leads_in_a_circle_changes_nothing() {
        let mut names = Names::default();
        let n = &mut names;
        granted(n, call(Op::Lookup, b"R", "a"), Some(b"A"));
        granted(n, call(Op::Lookup, b"A", "r"), Some(b"R"));
        granted(n, call(Op::Lookup, b"A", "a"), Some(b"A"));
        let (.., change) = n.ask(&call(Op::Remove, b"R", "a"));
        n.answer(change, &Told { result: -13, ..Told::default() });
        assert_eq!(path(n, b"A"), "/.handles/52/a");
        let (up, ..) = n.ask(&call(Op::Lookup, b"A", ".."));
        assert_eq!(paths(n)[up as usize], "/.handles/52");
        granted(n, two(Op::Rename, b"R", "a", b"A", "b"), None);
        assert_eq!(path(n, b"A"), "/.handles/41");
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_said_has_paths(
            calls in proptest::collection::vec((0usize..6, 0u8..5, 0usize..6, 0u8..5, 0u8..5), 0..60)
        ) {
            const WORDS: [&str; 6] = ["a", "b", "..", ".", "c/../d", ""];
            let mut names = Names::default();
            for (what, directory, word, other, handle) in calls {
                let (directory, other, handle) = ([directory], [other], [handle]);
                let asked = match what {
                    0 => call(Op::Lookup, &directory, WORDS[word]),
                    1 => call(Op::Create, &directory, WORDS[word]),
                    2 => call(Op::Remove, &directory, WORDS[word]),
                    3 => two(Op::Rename, &directory, WORDS[word], &other, WORDS[5 - word]),
                    4 => two(Op::Link, &directory, "", &other, WORDS[word]),
                    _ => call(Op::Readdirplus, &directory, ""),
                };
                let (.., change) = names.ask(&asked);
                let entries = vec![(WORDS[word].as_bytes(), &other[..])];
                names.answer(change, &Told { handle: Some(&handle), entries, ..Told::default() });
                if what == 5 {
                    names.mounted(WORDS[word].as_bytes(), &handle);
                }
            }
            for path in paths(&names) {
                proptest::prop_assert!(path.starts_with('/') && !path.contains("/../") && !path.contains("object-"), "{path}");
            }
        }
    }
}
