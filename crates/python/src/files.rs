//! Paths used safely: files and folders written aside, marks, and removal, of the crate `files`.

use crate::error::to_py;
use loadstone_files::{self as files, Dir, Lock, Mark};
use pyo3::prelude::*;
use std::fs::File;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
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

/// A folder that gets its name when it is whole.
#[pyclass(name = "AsideFolder", module = "loadstone._core")]
struct AsideFolder(Option<files::Folder>);

#[pymethods]
impl AsideFolder {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<AsideFolder> {
        py.detach(|| files::Folder::create(&path)).map(|made| AsideFolder(Some(made))).map_err(to_py)
    }

    #[getter]
    fn path(&self) -> PyResult<PathBuf> {
        self.0.as_ref().map(files::Folder::hidden).ok_or_else(done)
    }

    #[pyo3(signature = (replace=false))]
    fn keep(&mut self, py: Python<'_>, replace: bool) -> PyResult<()> {
        let folder = self.0.take().ok_or_else(done)?;
        py.detach(|| folder.keep(replace)).map_err(to_py)
    }

    fn keep_as(&mut self, py: Python<'_>, name: &str) -> PyResult<()> {
        let folder = self.0.take().ok_or_else(done)?;
        py.detach(|| folder.keep_as(name.as_bytes())).map_err(to_py)
    }

    fn drop(&mut self, py: Python<'_>) {
        let folder = self.0.take();
        py.detach(|| drop(folder));
    }
}

/// What the system said, with its number, from which Python chooses the class.
fn os_error(error: std::io::Error) -> PyErr {
    let Some(code) = error.raw_os_error() else { return crate::error::Error::new_err(error.to_string()) };
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_string();
    pyo3::exceptions::PyOSError::new_err((code, text))
}

fn done() -> PyErr {
    crate::error::Error::new_err("was kept or dropped before")
}

/// Removes all that is in a directory.
#[pyfunction]
fn clear_directory(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| files::clear(&Dir::open(&path)?, &mut || true)).map(|_| ()).map_err(to_py)
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
    removed.map(|_| ()).map_err(to_py)
}

/// Marks a directory; returns the random id of the mark.
#[pyfunction]
fn put_mark(py: Python<'_>, path: PathBuf, kind: &str) -> PyResult<String> {
    let mark = py.detach(|| Mark::put(&Dir::open(&path)?, kind, serde_json::Value::Null));
    mark.map(|mark| mark.id).map_err(to_py)
}

/// Kind and id of the mark of a directory.
#[pyfunction]
fn read_mark(py: Python<'_>, path: PathBuf) -> PyResult<Option<(String, String)>> {
    let mark = py.detach(|| Mark::read(&Dir::open(&path)?)).map_err(to_py)?;
    Ok(mark.map(|mark| (mark.kind, mark.id)))
}

/// Removes the mark of this id from a directory.
#[pyfunction]
fn remove_mark(py: Python<'_>, path: PathBuf, id: &str) -> PyResult<()> {
    let removed = py.detach(|| {
        let dir = Dir::open(&path)?;
        match Mark::read(&dir)? {
            Some(mark) if mark.id == id => mark.remove(&dir),
            _ => Err(files::Error::new(&path, "has not the mark that was put there")),
        }
    });
    removed.map_err(to_py)
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

/// Locks an open file until it is closed; false when others hold it.
#[pyfunction]
fn lock_file(fd: RawFd, exclusive: bool) -> PyResult<bool> {
    let how = if exclusive { Lock::Exclusive } else { Lock::Shared };
    files::lock(&fd, how).map_err(os_error)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<AsideFile>()?;
    m.add_class::<AsideFolder>()?;
    m.add_function(wrap_pyfunction!(clear_directory, m)?)?;
    m.add_function(wrap_pyfunction!(remove_tree, m)?)?;
    m.add_function(wrap_pyfunction!(put_mark, m)?)?;
    m.add_function(wrap_pyfunction!(read_mark, m)?)?;
    m.add_function(wrap_pyfunction!(remove_mark, m)?)?;
    m.add_function(wrap_pyfunction!(open_regular, m)?)?;
    m.add_function(wrap_pyfunction!(open_below, m)?)?;
    m.add_function(wrap_pyfunction!(make_below, m)?)?;
    m.add_function(wrap_pyfunction!(lock_file, m)?)
}
