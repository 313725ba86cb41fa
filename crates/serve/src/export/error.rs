//! Errors of requests, and what a kernel calls them.

use dovetail_block::DeviceError;
use rustix::io::Errno;

/// Reason why a request was not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// A range that does not lie on the drive.
    #[error("{len} bytes from byte {offset} on reach beyond the end of the drive at byte {bytes}")]
    Beyond {
        /// The first byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// The size of the drive.
        bytes: u64,
    },
    /// The drive did not perform it.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl ExportError {
    /// The error number that Linux gives for it.
    pub const fn errno(&self) -> Errno {
        let Self::Device(error) = self else { return Errno::INVAL };
        match error {
            DeviceError::OutOfRange { .. } | DeviceError::LengthMismatch { .. } => Errno::INVAL,
            DeviceError::NoRoom => Errno::NOSPC,
            DeviceError::Unsupported(_) => Errno::OPNOTSUPP,
            DeviceError::ReadOnly(_) | DeviceError::NotWritable => Errno::ROFS,
            _ => Errno::IO,
        }
    }
}
