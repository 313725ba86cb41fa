//! The part of the Python package that is Rust: `dovetail._dovetail`.
//!
//! It is thin: a call is the words of the command line ([`dovetail_cli::call`]), a result is held
//! here and read by Python as JSON text or, where it is a table, through Arrow's C interface. What
//! users see is Python, in `python/dovetail`.

mod call;
mod catalog;
mod drive;
mod errors;
mod frame;
mod results;
mod sweep;
mod watch;

use pyo3::prelude::*;

#[pymodule]
mod _dovetail {
    #[pymodule_export]
    use super::call::{bench, list_files, options, program, replay, reproduce, short, version};
    #[pymodule_export]
    use super::catalog::{drive_figures, drives, stacks, toml};
    #[pymodule_export]
    use super::drive::Drive;
    #[pymodule_export]
    use super::errors::{DovetailError, UsageError};
    #[pymodule_export]
    use super::frame::Frame;
    #[pymodule_export]
    use super::results::{Reproduction, Results};
    #[pymodule_export]
    use super::sweep::{Sweep, perform_task};
}
