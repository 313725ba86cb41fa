//! Guarantees of a file system over a power cut.

use dovetail_block::BLOCK_SIZE;

/// Promises of a file system beyond POSIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// An fsync that a power cut interrupts leaves its file as it was or as it was to become,
    /// nothing else.
    pub atomic_fsync: bool,
    /// A block that a file had when its content was last made durable does not change before the
    /// next fsync of the file or sync, whatever was written since and whatever became durable for
    /// other reasons.
    pub updates_wait: bool,
    /// Times of a file become durable together with its other attributes.
    pub times: bool,
    /// Bytes of a file's content that a power cut leaves as a whole, old or new: the size of a
    /// block. It divides 4096.
    pub content_unit: usize,
}

impl Default for Guarantees {
    /// None but that blocks of 4096 bytes change as a whole.
    fn default() -> Self {
        Self {
            atomic_fsync: false,
            updates_wait: false,
            times: true,
            content_unit: BLOCK_SIZE as usize,
        }
    }
}
