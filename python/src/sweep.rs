//! Sweeps: their points performed here, or handed to others.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{PoisonError, RwLock};

use dovetail_cli::call::{self, OpenSweep};
use pyo3::prelude::*;

use crate::errors::{failed, internal, of};
use crate::watch::watched;

/// A sweep with its folder of results.
#[pyclass(frozen, module = "dovetail._dovetail")]
pub(crate) struct Sweep {
    /// None once it is closed: its folder may be opened again.
    sweep: RwLock<Option<OpenSweep>>,
}

impl Sweep {
    fn with<T>(&self, work: impl FnOnce(&OpenSweep) -> T) -> PyResult<T> {
        let sweep = self.sweep.read().unwrap_or_else(PoisonError::into_inner);
        sweep.as_ref().map(work).ok_or_else(|| failed("the sweep is closed"))
    }
}

#[pymethods]
impl Sweep {
    /// Opens the folder of the sweep that `text` describes, or makes it.
    #[new]
    fn new(
        py: Python<'_>,
        text: &str,
        name: &str,
        results: PathBuf,
        shard: Option<&str>,
    ) -> PyResult<Self> {
        let opened = py.detach(|| OpenSweep::open(text, name, &results, shard));
        Ok(Self { sweep: RwLock::new(Some(opened.map_err(of)?)) })
    }

    /// Number of all points.
    fn __len__(&self) -> PyResult<usize> {
        self.with(OpenSweep::len)
    }

    /// Number of the points of the shard.
    fn of_shard(&self) -> PyResult<usize> {
        self.with(OpenSweep::of_shard)
    }

    /// Lets go of the folder, so that others may open it.
    fn close(&self) {
        *self.sweep.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Numbers and names of the points that are to be performed.
    fn waiting(&self, retry_failed: bool) -> PyResult<Vec<(u32, String)>> {
        self.with(|sweep| sweep.waiting(retry_failed))?.map_err(of)
    }

    /// The task of a point, for [`perform_task`] in any process.
    fn task(&self, point: u32) -> PyResult<String> {
        self.with(|sweep| sweep.task(point))?.map_err(of)
    }

    /// Keeps the result of a point: durable when this returns.
    fn keep(&self, py: Python<'_>, record: String, whole: Option<String>) -> PyResult<()> {
        py.detach(|| self.with(|sweep| sweep.keep(&(record, whole))))?.map_err(of)
    }

    /// Performs the points that are missing in this process.
    fn perform(
        &self,
        py: Python<'_>,
        jobs: Option<usize>,
        retry_failed: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        watched(py, progress.as_ref(), |watch| {
            self.with(|sweep| sweep.perform(jobs, retry_failed, watch))
        })??
        .map_err(of)
    }

    /// Writes the table; returns its path, the finished points, and those of them that failed.
    fn finish(&self, py: Python<'_>) -> PyResult<(PathBuf, usize, usize)> {
        py.detach(|| self.with(OpenSweep::finish))?.map_err(of)
    }
}

/// Performs a point; returns its line, and its whole result if the sweep keeps that.
#[pyfunction]
pub(crate) fn perform_task(py: Python<'_>, task: &str) -> PyResult<(String, Option<String>)> {
    let stop = AtomicBool::new(false);
    let done = py.detach(|| call::perform_task(task, &stop)).map_err(of)?;
    // nobody sets the flag: a worker that is ended ends as a process
    done.ok_or_else(|| internal("a point stopped by itself"))
}
