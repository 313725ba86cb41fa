//! Power cuts of whole stacks, file system over drive, explored and explained.
//!
//! A workload is played on a stack in virtual time, and on the reference model. At chosen moments
//! the power is cut: the drive's volatile memory is gone, programs and erases under way are torn.
//! The state left is recovered, mounted, checked, and held against what POSIX, the mount options
//! and the design promise. What no promise explains is a violation, with the shortest sequence that
//! shows it.
//!
//! Beside that, an exploration tells what no promise covers: what an application finds of work that
//! it had not made durable, how much of it is lost, and how long a stack takes until it is ready
//! again.
//!
//! Calls do not overlap: the threads of a job make theirs in turn. The drive is small and full, so
//! that it cleans all the time.
//!
//! ```
//! use dovetail_crash::{Exploration, Progress, Source, language};
//! use dovetail_lab::bench::Stack;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let operations = "create /a\nwrite /a 0 10000\nfsync /a\nwrite /a 0 4096\nfdatasync /a\n";
//! let lists = vec![language::parse(operations)?];
//! let source = Source::Lists { name: "one".into(), lists, every_clock: false };
//! // ext4 as it is, and without the flush at the end of an fsync.
//! let stacks = [Stack::load("ext4")?, Stack::load("ext4")?.with_mount("nobarrier")?];
//!
//! // Each moment at which the power can go, on a drive of 52 MiB.
//! let results = Exploration::new(&source, &stacks, 52 << 20).run(1, &Progress::default())?;
//! let [sound, careless] = results.stacks.as_slice() else { unreachable!() };
//! assert!(sound.cuts > 10 && sound.violations.is_empty());
//! // The file is gone, which fsync had promised to keep; the shortest way to see that is told.
//! assert_eq!(careless.violations[0].sequence, "create a\nfsync a\n");
//! # Ok(())
//! # }
//! ```

pub mod ace;
mod explore;
mod judge;
pub mod language;
mod player;
mod report;
mod results;
mod rig;
mod script;
mod shared;
mod shrink;
#[cfg(test)]
mod tests;
mod wire;

pub use explore::{Cuts, Exploration, Progress, Replayed, Source};
pub use report::html;
pub use results::{CrashResults, Distribution, SCHEMA, SCHEMA_VERSION, StackResult};

use dovetail_lab::bench::BenchError;
use dovetail_time::format_bytes;
use serde::{Deserialize, Serialize};

/// An exploration that cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum CrashError {
    /// The stack or the workload.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// The drive cannot be built, or is too small.
    #[error("stack {stack}: {reason}")]
    Drive {
        /// The stack.
        stack: String,
        /// The reason.
        reason: String,
    },
    /// A drive with zones.
    #[error(
        "stack {0} has a drive with zones, whose power is not cut here: F2FS on one needs more room than these small \
         drives have. `cargo test -p dovetail-lab --test all zoned_crash::` cuts the power under it"
    )]
    Zones(String),
    /// A drive of that size is no smaller than the stack's own.
    #[error("a drive of {} is larger than the stack's own ({}); give less", format_bytes(*wanted), format_bytes(*most))]
    DriveSize {
        /// Bytes that were asked for.
        wanted: u64,
        /// Bytes of the stack's own drive.
        most: u64,
    },
    /// The volume or the workload.
    #[error("the workload cannot be played: {0}")]
    Setup(String),
    /// A job that needs more room than there is.
    #[error(
        "stack {stack}: \"{operation}\" of the job finds no room on a drive of {}: give a larger drive, or the job fewer or smaller files",
        format_bytes(*drive_bytes)
    )]
    NoRoom {
        /// The stack.
        stack: String,
        /// The operation, as the language of operations has it.
        operation: String,
        /// Bytes of the drive.
        drive_bytes: u64,
    },
    /// There is no such cut.
    #[error(
        "there is no cut \"{0}\": give one as a violation names it, as in ext4/ace-1-17-still/5"
    )]
    NoCut(String),
}

/// A state that no promise allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Names it for `--replay`: stack, run, and cut.
    pub id: String,
    /// The fault, as a sentence.
    pub what: String,
    /// The shortest sequence found that shows it, one operation a line.
    pub sequence: String,
}

impl Violation {
    /// One that shows without a power cut.
    pub(crate) fn without_cut(what: String) -> Self {
        Self { id: String::new(), what, sequence: String::new() }
    }
}
