//! Errors of a sweep.

use std::path::PathBuf;

/// Reason why a sweep cannot begin, or not go on. What is finished stays.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The text is no TOML, or has a table that a sweep does not have.
    #[error("{file}: {problem}")]
    Text {
        /// The sweep's file.
        file: String,
        /// Fault, with its line.
        problem: String,
    },
    /// A setting that makes no sense.
    #[error("{file}: {name}: {problem}")]
    Setting {
        /// The sweep's file.
        file: String,
        /// The setting, as it stands there.
        name: String,
        /// Fault and what to write.
        problem: String,
    },
    /// A file of the results cannot be read or written.
    #[error("{}: {source}; what is finished stays, and the same command goes on with it", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The folder holds results of another sweep.
    #[error(
        "{} has the results of another sweep ({difference}); give another folder, or the file and the version that made them",
        folder.display()
    )]
    OtherSweep {
        /// The folder.
        folder: PathBuf,
        /// The first thing that is not the same.
        difference: String,
    },
    /// A file of this machine is not that of the machine on which the sweep was begun.
    #[error(
        "{name} is another file here ({found}) than where the sweep was begun ({expected}): workers need the files that \
         it names at the same paths"
    )]
    OtherFile {
        /// The file.
        name: String,
        /// Its content here.
        found: String,
        /// Its content there.
        expected: String,
    },
    /// A folder without a sweep.
    #[error("{} holds no results of a sweep: {file} is missing", folder.display())]
    NoSweep {
        /// The folder.
        folder: PathBuf,
        /// The file that names the sweep.
        file: &'static str,
    },
    /// Written by a later version.
    #[error(
        "{} was written by a later version of dovetail (its version is {found}, this one reads up to {known}): use that \
         one",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version in it.
        found: u64,
        /// The latest version that is known.
        known: u64,
    },
    /// A line of results that cannot be read, and is not the last one.
    #[error("{}:{line}: this is no result of a sweep: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// Fault.
        problem: String,
    },
    /// Another process works on the same part.
    #[error("{} is in use: another process runs this part of the sweep", path.display())]
    InUse {
        /// The file that is locked.
        path: PathBuf,
    },
    /// Two folders have different results for a point.
    #[error("point {number} has different results in {} and in {}: they are not of one version", one.display(), other.display())]
    Conflict {
        /// The point's number.
        number: u32,
        /// One folder.
        one: PathBuf,
        /// The other.
        other: PathBuf,
    },
}
