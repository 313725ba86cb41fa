//! Commands, called with the words of the command line.

use std::ffi::OsString;

use dovetail_cli::call;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::of;
use crate::results::{Reproduction, Results};
use crate::watch::watched;

/// The version of the package, and the commit that it is built from.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    call::VERSION
}

/// Runs `dovetail bench`; the words begin with it.
#[pyfunction]
#[pyo3(signature = (words, progress=None))]
pub(crate) fn bench(
    py: Python<'_>,
    words: Vec<OsString>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let done = watched(py, progress.as_ref(), |watch| call::bench(&words, watch))?;
    done.map(Results::from).map_err(of)
}

/// Runs `dovetail replay`; the words begin with it.
#[pyfunction]
#[pyo3(signature = (words, progress=None))]
pub(crate) fn replay(
    py: Python<'_>,
    words: Vec<OsString>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let done = watched(py, progress.as_ref(), |watch| call::replay(&words, watch))?;
    done.map(Results::from).map_err(of)
}

/// Runs `dovetail reproduce`; the words begin with it.
#[pyfunction]
#[pyo3(signature = (words, progress=None))]
pub(crate) fn reproduce(
    py: Python<'_>,
    words: Vec<OsString>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Reproduction>> {
    let done = watched(py, progress.as_ref(), |watch| call::reproduce(&words, watch))?;
    let done = done.map_err(of)?.into_iter();
    done.map(|(name, reproduction)| Reproduction::new(py, name, reproduction)).collect()
}

/// Runs a command that ends by itself; returns exit code, standard output and complaints.
#[pyfunction]
pub(crate) fn short<'py>(
    py: Python<'py>,
    words: Vec<OsString>,
) -> PyResult<(u8, Bound<'py, PyBytes>, Vec<String>)> {
    let done = py.detach(|| call::short(&words)).map_err(of)?;
    Ok((done.code, PyBytes::new(py, &done.output), done.errors))
}

/// A file of an image: path, mode, links, owner, group, bytes, modification in seconds and
/// nanoseconds, target of a symbolic link.
type Entry<'py> =
    (Bound<'py, PyBytes>, u16, u32, u32, u32, u64, (i64, u32), Option<Bound<'py, PyBytes>>);

/// Files of an image as `dovetail ls` lists them, and sentences about damage; the words begin with
/// `ls`.
#[pyfunction]
pub(crate) fn list_files<'py>(
    py: Python<'py>,
    words: Vec<OsString>,
) -> PyResult<(Vec<Entry<'py>>, Vec<String>)> {
    let (entries, damage) = py.detach(|| call::list(&words)).map_err(of)?;
    let entry = |entry: call::Entry| {
        let (attr, bytes) = (entry.attr, |bytes: Vec<u8>| PyBytes::new(py, &bytes));
        let mtime = (attr.mtime.seconds, attr.mtime.nanoseconds);
        let target = entry.target.map(bytes);
        (bytes(entry.path), attr.mode, attr.links, attr.uid, attr.gid, attr.size, mtime, target)
    };
    Ok((entries.into_iter().map(entry).collect(), damage))
}

/// The options of a command: name, has a value, may be given several times, is needed, help.
#[pyfunction]
pub(crate) fn options(command: &str) -> Vec<(String, bool, bool, bool, String)> {
    let all = call::options(command).into_iter();
    all.map(|o| (o.name, o.has_value, o.is_list, o.is_required, o.help)).collect()
}

/// Runs the command line of this process; returns its exit code.
#[pyfunction]
pub(crate) fn program(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| call::program(&words))
}
