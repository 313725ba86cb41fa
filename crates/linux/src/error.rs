//! Errors of a guest.

use std::io;
use std::time::Duration;

use dovetail_kernel::NoKernel;
use dovetail_serve::vhost::VhostError;

/// Reason why a guest could not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum LinuxError {
    /// The system below.
    #[error("{what}: {source}")]
    Io {
        /// Description of what was tried.
        what: String,
        /// The error.
        source: io::Error,
    },
    /// The kernel's program.
    #[error(transparent)]
    NoKernel(#[from] NoKernel),
    /// The connection of the drive.
    #[error(transparent)]
    Drive(#[from] VhostError),
    /// The guest's side of the clock said something that makes no sense.
    #[error(
        "the guest's kernel speaks another protocol of virtual time ({0}): it needs Linux 6.12 or later with \
         CONFIG_UML_TIME_TRAVEL_SUPPORT"
    )]
    Protocol(String),
    /// The guest did nothing for too long.
    #[error(
        "the guest did nothing for {} s of real time at {at} of virtual time and was ended; its console ends with:\n{console}",
        limit.as_secs()
    )]
    Hangs {
        /// The limit.
        limit: Duration,
        /// Virtual time.
        at: dovetail_time::SimTime,
        /// Last lines of its console.
        console: String,
    },
    /// The guest ended before its script did.
    #[error("the guest ended before its work was done; its console ends with:\n{console}")]
    Died {
        /// Last lines of its console.
        console: String,
    },
    /// The script of the guest failed.
    #[error("in the guest: {0}")]
    Script(String),
    /// It was ended from outside.
    #[error("stopped")]
    Stopped,
}

impl LinuxError {
    /// An error of the system, with what was tried.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
