//! What a scan of one snapshot met.

use crate::tree::{Kind, Mark, Tree, tag};
use std::io;
use std::path::Path;

/// Files that could not be read and are told by name.
const NAMED: usize = 1000;

/// What a scan of one snapshot met.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Report {
    /// What was scanned.
    pub path: String,
    /// Directories, the root among them.
    pub directories: u64,
    /// Regular files, unreadable ones among them.
    pub files: u64,
    /// Regular files that may be executed.
    pub executables: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Further names of files.
    pub hard_links: u64,
    /// Devices, pipes and sockets.
    pub others: u64,
    /// Submodules of a repository, which are left out.
    pub submodules: u64,
    /// Files with holes.
    pub sparse: u64,
    /// Bytes of holes.
    pub hole_bytes: u64,
    /// Bytes of files that were read.
    pub bytes: u64,
    /// Chunks of all files.
    pub chunks: u64,
    /// Files that were not read as their content is that of a file that was.
    pub reused: u64,
    /// Files and directories that could not be read.
    pub unreadable: u64,
    /// Files and directories that vanished between listing and reading.
    pub vanished: u64,
    /// Files that changed while they were read.
    pub changed: u64,
    /// Path and reason of the first thousand of those three kinds.
    pub troubles: Vec<(String, String)>,
    /// What is to be known of the source, though nothing is wrong with it.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether everything was read as it stood.
    pub fn is_whole(&self) -> bool {
        self.unreadable + self.vanished + self.changed == 0
    }

    /// A directory in which a `dataset write` was ended.
    pub(super) fn unfinished(&mut self, dir: &Path) {
        self.notes.push(format!("{}: is unfinished: dataset write was ended in it", dir.display()));
    }

    pub(super) fn trouble(&mut self, path: &Path, reason: impl ToString) {
        if self.troubles.len() < NAMED {
            self.troubles.push((path.to_string_lossy().into_owned(), reason.to_string()));
        }
    }

    pub(super) fn unreadable(&mut self, path: &Path, reason: impl ToString) {
        self.unreadable += 1;
        self.trouble(path, reason);
    }

    /// What the system refused to tell of a file or directory that was listed.
    pub(super) fn lost(&mut self, path: &Path, cause: &io::Error) {
        if cause.kind() == io::ErrorKind::NotFound {
            self.vanished += 1;
            self.trouble(path, "vanished before it was read");
        } else {
            self.unreadable(path, cause);
        }
    }

    pub(super) fn count(&mut self, tree: &Tree) {
        self.directories = tree.dirs() as u64;
        for (file, mark) in (0..).zip(&tree.files.mark) {
            *match Mark(*mark).kind() {
                Kind::File | Kind::Unreadable => &mut self.files,
                Kind::Symlink => &mut self.symlinks,
                Kind::Hard => &mut self.hard_links,
                Kind::Other => &mut self.others,
            } += 1;
            self.executables += u64::from(tree.private_of(file).any(|(tag, _)| tag == tag::EXECUTABLE));
        }
        self.chunks = tree.refs.len() as u64;
    }
}
