//! Reasons for the end of a run.

use std::fmt;

/// Reason for the end of a run. All but the first three are ends before their time, as Filebench
/// has them too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The run time is over.
    Runtime,
    /// As many operations as asked for.
    Operations,
    /// A `finishoncount` or `finishonbytes`, by its name.
    Finished(String),
    /// There is no file for a flowop.
    NoFile {
        /// The flowop.
        flowop: String,
        /// The file set.
        fileset: String,
    },
    /// A flowop works on a descriptor that is not open, and has no file set to open one from.
    NotOpen {
        /// The flowop.
        flowop: String,
        /// The descriptor.
        fd: u32,
    },
    /// A flowop opens on a descriptor that is open.
    StillOpen {
        /// The flowop.
        flowop: String,
        /// The descriptor.
        fd: u32,
    },
    /// A random read or write is larger than the file.
    TooSmall {
        /// The flowop.
        flowop: String,
        /// Bytes in the file or working set.
        size: u64,
    },
    /// Each thread waits for another.
    Deadlock,
}

impl Ending {
    /// The run did not do all that it was to do.
    pub fn is_early(&self) -> bool {
        !matches!(self, Self::Runtime | Self::Operations | Self::Finished(_))
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime => write!(f, "the run time is over"),
            Self::Operations => write!(f, "the operations asked for are done"),
            Self::Finished(flowop) => write!(f, "{flowop} has what it waited for"),
            Self::NoFile { flowop, fileset } => write!(
                f,
                "{flowop} finds no file in {fileset}: shorten the run, or give more files (nfiles) or threads less to do"
            ),
            Self::NotOpen { flowop, fd } => write!(f, "{flowop} uses fd {fd}, which is not open"),
            Self::StillOpen { flowop, fd } => {
                write!(f, "{flowop} opens fd {fd}, which is open: close it first")
            }
            Self::TooSmall { flowop, size } => {
                write!(f, "{flowop} moves more than the {size} bytes of the file: lower its iosize")
            }
            Self::Deadlock => write!(f, "every thread waits for another one"),
        }
    }
}
