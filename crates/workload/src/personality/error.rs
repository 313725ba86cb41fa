//! Errors of a personality: sentences that name the file and the key.

use dovetail_time::did_you_mean;

use super::builtin_personalities;

/// A personality that cannot be used; the message names the file, the key and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum PersonalityError {
    /// Neither a personality of the project nor a file.
    #[error(
        "there is no file {name}, and no personality of that name{hint} (there are {known})",
        hint = did_you_mean(name, builtin_personalities()),
        known = known()
    )]
    Unknown {
        /// Name that was asked for.
        name: String,
    },
    /// The file could not be read.
    #[error("{file} cannot be read: {source}")]
    Read {
        /// The file.
        file: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Not TOML, or an unknown or missing key.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Line in the file, from 1.
        line: usize,
        /// Description of the error, with the keys that are allowed.
        message: String,
    },
    /// A value out of its range, or of the wrong kind.
    #[error("{file}: {key} is {value}, allowed is {allowed}")]
    Value {
        /// The file.
        file: String,
        /// Tables and key.
        key: String,
        /// Value that was given.
        value: String,
        /// Values that are allowed.
        allowed: String,
    },
    /// A key that the flowop needs is not there.
    #[error("{file}: {key} is missing")]
    Missing {
        /// The file.
        file: String,
        /// Tables and key.
        key: String,
    },
    /// A parameter that the file does not have.
    #[error("{file} has no parameter '{name}': it has {known}")]
    Parameter {
        /// The file.
        file: String,
        /// Name that was asked for.
        name: String,
        /// The parameters there are.
        known: String,
    },
}

fn known() -> String {
    builtin_personalities().collect::<Vec<_>>().join(", ")
}
