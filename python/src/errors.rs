//! Exceptions with the sentences of the command line.

use std::fmt::Display;

use dovetail_cli::call::Failure;
use dovetail_ftl::ProfileError;
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

/// The exception of arguments that make no sense.
pub(crate) fn refused(error: impl Display) -> PyErr {
    UsageError::new_err(error.to_string())
}

/// The exception of a profile that is asked for by name: only an unknown name is a wrong argument.
pub(crate) fn of_profile(error: ProfileError) -> PyErr {
    match error {
        ProfileError::Unknown { .. } => refused(error),
        _ => failed(error),
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
