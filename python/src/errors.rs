//! Exceptions with the sentences of the command line.

use std::fmt::Display;

use dovetail_cli::call::Failure;
use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError};

create_exception!(
    dovetail,
    DovetailError,
    PyException,
    "A run, a file or an image that failed; its text says what to do."
);
create_exception!(dovetail, UsageError, DovetailError, "Arguments that make no sense.");

/// The exception of a failed command.
pub(crate) fn of(failure: Failure) -> PyErr {
    match failure {
        Failure::Usage(text) => UsageError::new_err(text),
        Failure::Failed(text) => DovetailError::new_err(text),
    }
}

/// The exception of anything else that failed.
pub(crate) fn failed(error: impl Display) -> PyErr {
    DovetailError::new_err(error.to_string())
}

/// The exception of a fault of the program itself.
pub(crate) fn internal(text: &str) -> PyErr {
    PyRuntimeError::new_err(format!("internal fault: {text}"))
}
