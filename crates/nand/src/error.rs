//! Errors of flash: rules broken by the caller, and failures of the medium.

use crate::geometry::{BlockId, Ppn};

/// The reason why a flash operation did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NandError {
    /// The caller skipped or repeated a page of the block.
    #[error("page {page} of block {block} was programmed out of order: page {expected} is next")]
    OutOfOrder {
        /// The block.
        block: BlockId,
        /// The page that was asked for.
        page: u32,
        /// The only page that may be programmed now.
        expected: u32,
    },
    /// The caller read a page that has not been programmed since the last erase.
    #[error("page {0} is erased and cannot be read")]
    Erased(Ppn),
    /// The caller used a block that is marked bad.
    #[error("block {0} is marked bad")]
    BadBlock(BlockId),
    /// The caller gave an address, a stream or a number of subpages that the flash has not, or a
    /// sequence number below the one before it.
    #[error("a program or erase with an impossible argument: {0}")]
    Argument(&'static str),
    /// The block was being erased when the power was cut; it must be erased again.
    #[error("block {0} is half erased")]
    HalfErased(BlockId),
    /// The medium did not take the page; the block should be retired.
    #[error("programming page {0} failed")]
    ProgramFailed(Ppn),
    /// The medium did not erase, or the block's endurance is used up; the block should be retired.
    #[error("erasing block {0} failed")]
    EraseFailed(BlockId),
    /// The data of the page is beyond error correction, or was torn by a power cut.
    #[error("page {0} cannot be read")]
    Unreadable(Ppn),
    /// The power is off.
    #[error("the power is off")]
    PowerLost,
}
