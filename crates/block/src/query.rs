//! Queries: questions about a device that change nothing on it and take no time.

use dovetail_time::SimTime;

use crate::addr::{BlockRange, Lba};
use crate::command::Command;
use crate::device::{Answer, BlockDevice, DeviceError};
use crate::placement::PlacementReport;
use crate::zone::Zone;

/// A question that a device may be able to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// Blocks that can surely still be written at addresses that hold nothing, however scattered.
    /// Only a device with more addresses than space answers; on others each address has its space.
    FreeBlocks,
    /// The first `most` blocks of `range` that hold something, in order.
    Held {
        /// The addresses in question.
        range: BlockRange,
        /// Blocks in the answer at most.
        most: usize,
    },
    /// Bytes of the device's own memory that its map takes.
    MapBytes,
    /// Its zones in order, conventional ones too.
    Zones {
        /// A block of the first zone in question.
        from: Lba,
        /// Zones in the answer at most.
        most: usize,
    },
    /// Statistics of its reclaim units.
    Placement,
    /// The zones that it changed by itself since: closed in favour of others, or failed. NVMe's
    /// list of changed zones is cleared by reading; here who asks keeps the place
    /// ([`changed_zones`]).
    ChangedZones {
        /// The place up to which they are known; 0 for all.
        since: u64,
    },
}

impl Query {
    /// The refusal of a device that cannot answer.
    pub const fn unsupported(self) -> DeviceError {
        DeviceError::Unsupported(match self {
            Self::FreeBlocks => "free-blocks",
            Self::Held { .. } => "held-blocks",
            Self::MapBytes => "map-bytes",
            Self::Zones { .. } => "report-zones",
            Self::Placement => "placement-statistics",
            Self::ChangedZones { .. } => "changed-zones",
        })
    }
}

/// [`Query::FreeBlocks`] of a device; `None` if it does not answer.
///
/// # Errors
/// The device's, other than [`DeviceError::Unsupported`].
pub fn free_blocks(device: &mut (impl BlockDevice + ?Sized)) -> Result<Option<u64>, DeviceError> {
    Ok(match ask(device, Query::FreeBlocks)? {
        Some(Answer::Blocks(blocks)) => Some(blocks),
        _ => None,
    })
}

/// [`Query::Held`] of a device; `None` if it does not answer.
///
/// # Errors
/// The device's, other than [`DeviceError::Unsupported`].
pub fn held_blocks(
    device: &mut (impl BlockDevice + ?Sized),
    range: BlockRange,
    most: usize,
) -> Result<Option<Vec<Lba>>, DeviceError> {
    Ok(match ask(device, Query::Held { range, most })? {
        Some(Answer::Addresses(held)) => Some(held),
        _ => None,
    })
}

/// [`Query::MapBytes`] of a device; `None` if it does not answer.
///
/// # Errors
/// The device's, other than [`DeviceError::Unsupported`].
pub fn map_bytes(device: &mut (impl BlockDevice + ?Sized)) -> Result<Option<u64>, DeviceError> {
    Ok(match ask(device, Query::MapBytes)? {
        Some(Answer::Bytes(bytes)) => Some(bytes),
        _ => None,
    })
}

/// [`Query::Zones`] of a device: all of them; empty if it has none.
///
/// # Errors
/// The device's, other than [`DeviceError::Unsupported`].
pub fn zones(device: &mut (impl BlockDevice + ?Sized)) -> Result<Vec<Zone>, DeviceError> {
    Ok(match ask(device, Query::Zones { from: Lba(0), most: usize::MAX })? {
        Some(Answer::Zones(zones)) => zones,
        _ => Vec::new(),
    })
}

/// [`Query::Placement`] of a device; `None` if it has no reclaim units.
///
/// # Errors
/// The device's, other than [`DeviceError::Unsupported`].
pub fn placement(
    device: &mut (impl BlockDevice + ?Sized),
) -> Result<Option<PlacementReport>, DeviceError> {
    Ok(match ask(device, Query::Placement)? {
        Some(Answer::Placement(report)) => Some(*report),
        _ => None,
    })
}

/// [`Query::ChangedZones`] of a device: the zones that it changed by itself since `seen`, each
/// once, as they are now; `seen` moves on. Empty if it has none.
///
/// # Errors
/// The device's, other than [`DeviceError::Unsupported`].
pub fn changed_zones(
    device: &mut (impl BlockDevice + ?Sized),
    seen: &mut u64,
) -> Result<Vec<Zone>, DeviceError> {
    Ok(match ask(device, Query::ChangedZones { since: *seen })? {
        Some(Answer::ChangedZones { zones, until }) => {
            *seen = until;
            zones
        }
        _ => Vec::new(),
    })
}

fn ask(
    device: &mut (impl BlockDevice + ?Sized),
    query: Query,
) -> Result<Option<Answer>, DeviceError> {
    match device.submit(SimTime::ZERO, Command::Query(query)) {
        Ok(completion) => Ok(Some(completion.answer)),
        Err(DeviceError::Unsupported(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
