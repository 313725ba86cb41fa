//! Errors in the request for a file set.

/// A file set that cannot be made; the message says what is allowed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FileSetError {
    /// A figure of a model out of its range.
    #[error("file set: {key} is {value}, allowed is {allowed}")]
    Value {
        /// The figure.
        key: &'static str,
        /// Value that was given.
        value: f64,
        /// Values that are allowed.
        allowed: &'static str,
    },
    /// The directory is not one legal name.
    #[error("file set: the directory '{root}' has to be one name without a slash")]
    Root {
        /// The name.
        root: String,
    },
    /// The files do not fit into memory.
    #[error("file set: there would be more than {most} files; ask for less, or for larger files")]
    TooMany {
        /// Largest number of files.
        most: u64,
    },
    /// Files of the model's sizes do not come to the bytes.
    #[error("file set: {files} files of these sizes do not come to {bytes} bytes, to 5 %")]
    Sum {
        /// Number of files.
        files: u64,
        /// Bytes that they are to hold.
        bytes: u64,
    },
}
