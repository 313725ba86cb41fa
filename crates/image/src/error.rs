//! Errors of operations on images.

use std::fmt::Display;

/// A sentence for the user, and whose fault it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request makes no sense for this image.
    #[error("{0}")]
    Usage(String),
    /// Everything else.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// The failure of `error`.
    pub fn failed(error: impl Display) -> Self {
        Self::Failed(error.to_string())
    }
}
