//! Errors of playing plans.

use dovetail_block::{DeviceError, Lba};
use dovetail_time::SimTime;

/// Failure that stopped the machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The drive failed.
    #[error("at {at} of virtual time the drive failed: {source}")]
    Device {
        /// Virtual time of the failure.
        at: SimTime,
        /// Error of the drive.
        source: DeviceError,
    },
    /// A read did not return what was last written.
    #[error(
        "at {at} of virtual time block {lba} read back wrong: this is a fault in the drive model, please report it"
    )]
    WrongData {
        /// Virtual time of the read.
        at: SimTime,
        /// Block that read back wrong.
        lba: Lba,
    },
    /// Plans wait for each other, or for what nobody brings about.
    #[error(
        "at {at} of virtual time nothing can go on: {waiting} (this is a fault of the file system's model, please report it)"
    )]
    Deadlock {
        /// Virtual time of the deadlock.
        at: SimTime,
        /// Plans that wait, and what each waits for.
        waiting: String,
    },
}
