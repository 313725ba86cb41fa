//! What can go wrong while plans are played.

use dovetail_block::{DeviceError, Lba};
use dovetail_time::SimTime;

/// Why the machine stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The drive failed.
    #[error("at {at} of virtual time the drive failed: {source}")]
    Device {
        /// When.
        at: SimTime,
        /// Why.
        source: DeviceError,
    },
    /// A read did not return what was last written.
    #[error(
        "at {at} of virtual time block {lba} read back wrong: this is a fault in the drive model, please report it"
    )]
    WrongData {
        /// When.
        at: SimTime,
        /// Which block.
        lba: Lba,
    },
    /// Plans wait for each other, or for what nobody brings about.
    #[error(
        "at {at} of virtual time nothing can go on: {waiting} (this is a fault of the file system's model, please report it)"
    )]
    Deadlock {
        /// When.
        at: SimTime,
        /// Which plans wait for what.
        waiting: String,
    },
}
