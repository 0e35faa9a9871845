//! Paths used safely: files written aside, folders held, and removal, of the crate `files`.

use crate::error::to_py;
use loadstone_files::{self as files, Dir};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// A file that gets its name when it is whole.
#[pyclass(name = "AsideFile", module = "loadstone._core")]
struct AsideFile(Option<(files::Aside, File)>);

#[pymethods]
impl AsideFile {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, force: bool) -> PyResult<AsideFile> {
        py.detach(|| files::Aside::create(&path, force)).map(|made| AsideFile(Some(made))).map_err(to_py)
    }

    fn fileno(&self) -> PyResult<RawFd> {
        self.0.as_ref().map(|(_, file)| file.as_raw_fd()).ok_or_else(done)
    }

    fn keep(&mut self, py: Python<'_>) -> PyResult<()> {
        let (aside, file) = self.0.take().ok_or_else(done)?;
        py.detach(|| aside.keep(&file)).map_err(to_py)
    }

    fn drop(&mut self) {
        self.0 = None;
    }
}

/// A folder of ours that is locked and marked.
#[pyclass(name = "HeldFolder", module = "loadstone._core")]
struct HeldFolder(Option<files::Folder>);

impl HeldFolder {
    fn held(&self) -> PyResult<&files::Folder> {
        self.0.as_ref().ok_or_else(done)
    }

    fn held_mut(&mut self) -> PyResult<&mut files::Folder> {
        self.0.as_mut().ok_or_else(done)
    }
}

#[pymethods]
impl HeldFolder {
    #[new]
    #[pyo3(signature = (parent, before, digits=None))]
    fn new(py: Python<'_>, parent: PathBuf, before: OsString, digits: Option<&str>) -> PyResult<HeldFolder> {
        let made = py.detach(|| files::Folder::create(&parent, before.as_bytes(), digits));
        made.map(|made| HeldFolder(Some(made))).map_err(refused)
    }

    #[getter]
    fn path(&self) -> PyResult<PathBuf> {
        self.held().map(files::Folder::path)
    }

    fn fileno(&self) -> PyResult<RawFd> {
        self.held().map(|held| held.dir().as_raw_fd())
    }

    fn parent_fileno(&self) -> PyResult<RawFd> {
        self.held().map(|held| held.parent().as_raw_fd())
    }

    fn there(&self) -> PyResult<bool> {
        self.held().map(files::Folder::there)
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.held()?;
        py.detach(|| held.clear()).map_err(refused)
    }

    fn remove(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.held()?;
        py.detach(|| held.remove()).map_err(refused)
    }

    fn rename(&mut self, py: Python<'_>, name: OsString) -> PyResult<()> {
        let held = self.held_mut()?;
        py.detach(|| held.rename(name.as_bytes())).map_err(refused)
    }

    fn replace(&mut self, py: Python<'_>, name: OsString, fd: RawFd) -> PyResult<bool> {
        let held = self.held_mut()?;
        // SAFETY: the caller has it open until this returns.
        let old = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned().map_err(os_error)?;
        py.detach(|| held.replace(name.as_bytes(), old)).map_err(refused)
    }

    fn unmark(&self) -> PyResult<()> {
        self.held()?.unmark().map_err(refused)
    }

    fn release(&mut self) {
        self.0 = None;
    }
}

/// Removes folders whose makers are dead.
#[pyfunction]
#[pyo3(signature = (parent, before, back=None))]
fn sweep_folders(
    py: Python<'_>,
    parent: PathBuf,
    before: OsString,
    back: Option<OsString>,
) -> PyResult<Vec<OsString>> {
    let swept = py.detach(|| {
        let back = back.as_ref().map(|name| name.as_bytes());
        Dir::open(&parent).map(|parent| files::sweep_folders(&parent, before.as_bytes(), back))
    });
    swept.map(|names| names.into_iter().map(OsString::from_vec).collect()).map_err(refused)
}

/// Keeps a folder whose maker is dead under another name; false where it is none.
#[pyfunction]
fn keep_folder(
    py: Python<'_>,
    parent: PathBuf,
    name: OsString,
    before: OsString,
    to: OsString,
) -> PyResult<bool> {
    let kept = py.detach(|| {
        let (name, before, to) = (name.as_bytes(), before.as_bytes(), to.as_bytes());
        Dir::open(&parent).and_then(|parent| files::keep_folder(&parent, name, before, to))
    });
    kept.map_err(refused)
}

/// What the system refused is an OSError.
fn refused(error: files::Error) -> PyErr {
    match error.cause {
        Some(cause) if cause.raw_os_error().is_some() => os_error(cause),
        _ => to_py(error),
    }
}

/// What the system said, with its number, from which Python chooses the class.
fn os_error(error: std::io::Error) -> PyErr {
    let Some(code) = error.raw_os_error() else { return crate::error::error(error.to_string()) };
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_string();
    pyo3::exceptions::PyOSError::new_err((code, text))
}

fn done() -> PyErr {
    crate::error::error("was kept or dropped before")
}

/// Removes a directory and all that is in it.
#[pyfunction]
fn remove_tree(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    let removed = py.detach(|| {
        let Some(name) = path.file_name() else {
            return Err(files::Error::new(&path, "is no name of a directory"));
        };
        let parent = Dir::open(path.parent().unwrap_or(std::path::Path::new("")))?;
        files::remove_tree(&parent, name.as_encoded_bytes(), &mut || true)
    });
    removed.map(|_| ()).map_err(refused)
}

/// Opens a regular file for reading.
#[pyfunction]
#[pyo3(signature = (path, follow=true))]
fn open_regular(py: Python<'_>, path: PathBuf, follow: bool) -> PyResult<RawFd> {
    py.detach(|| files::open_regular(&path, follow)).map(IntoRawFd::into_raw_fd).map_err(to_py)
}

/// Opens a name below a directory; what the system says is an OSError.
#[pyfunction]
#[pyo3(signature = (path, name, flags, mode=0o644))]
fn open_below(py: Python<'_>, path: PathBuf, name: Vec<u8>, flags: i32, mode: u32) -> PyResult<RawFd> {
    let dir = py.detach(|| Dir::open(&path)).map_err(to_py)?;
    py.detach(|| dir.open_below(&name, flags, mode)).map(IntoRawFd::into_raw_fd).map_err(os_error)
}

/// Makes a directory below another with all that lead to it; what the system says is an OSError.
#[pyfunction]
#[pyo3(signature = (path, name, mode=0o755))]
fn make_below(py: Python<'_>, path: PathBuf, name: Vec<u8>, mode: u32) -> PyResult<()> {
    let dir = py.detach(|| Dir::open(&path)).map_err(to_py)?;
    py.detach(|| dir.make_below(&name, mode)).map(|_| ()).map_err(os_error)
}

/// Denies outputs that this thread makes from now on these permissions.
#[pyfunction]
fn deny(mode: u32) {
    files::deny(mode);
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("MARK", files::MARK)?;
    m.add_class::<AsideFile>()?;
    m.add_function(wrap_pyfunction!(deny, m)?)?;
    m.add_class::<HeldFolder>()?;
    m.add_function(wrap_pyfunction!(sweep_folders, m)?)?;
    m.add_function(wrap_pyfunction!(keep_folder, m)?)?;
    m.add_function(wrap_pyfunction!(remove_tree, m)?)?;
    m.add_function(wrap_pyfunction!(open_regular, m)?)?;
    m.add_function(wrap_pyfunction!(open_below, m)?)?;
    m.add_function(wrap_pyfunction!(make_below, m)?)
}
