//! Devirtualising: blocks are reached by the address at which the device keeps them, and it forgets
//! the map's entry.
//!
//! A device with this capability has a second range of addresses ([`DeviceSpace`]), one for each of
//! its places. They begin at or above its size, so no logical address can be mistaken for one. Such
//! an address means nothing until a block is renamed to it. From then on it is the block's address,
//! whatever the device does: when the block is moved, or written anew elsewhere, the device maps
//! the old place to the new one until it is told otherwise, and lists the inode of what it moved. A
//! discard gives the address up.
//!
//! A file system cannot rewrite its pointers and have the map forget an entry at the same moment.
//! So renaming is a batch with two names for each block: from [`Devirtualize::Begin`] to
//! [`Devirtualize::End`] the old and the new address are one block. One that is discarded in
//! between, by either, can be written by neither until the batch has ended. The batch survives
//! power cuts, and the issuer, who knows whether the metadata with the new pointers is durable,
//! ends it either way.

use std::fmt;

use dovetail_time::SimTime;

use crate::addr::{BlockRange, Lba, SectorRange};
use crate::command::Command;
use crate::device::{BlockDevice, DeviceError};

/// The identity of a drive, as the serial number that a drive tells its host. 0 names none: no drive
/// has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DriveSerial(pub u64);

impl DriveSerial {
    /// The serial number of the drive that these parts describe. It has 63 bits.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Self {
        // FNV-1a, with the length of each part
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
        let hash = parts.iter().fold(0xCBF2_9CE4_8422_2325, |hash, part| {
            part.iter().chain(&(part.len() as u64).to_le_bytes()).fold(hash, step)
        });
        Self((hash >> 1).max(1))
    }
}

impl fmt::Display for DriveSerial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016X}", self.0)
    }
}

/// The addresses of a device's own places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSpace {
    /// The address of place 0; at or above the device's size.
    pub first: Lba,
    /// Number of places.
    pub blocks: u64,
    /// Renames in one batch at most.
    pub most: u32,
    /// The drive whose addresses they are: on another one they mean nothing.
    pub drive: DriveSerial,
}

/// A volume with pointers to the addresses of a drive, and not on that drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongDrive {
    /// The device below has no addresses of its own.
    #[error(
        "the volume has pointers to addresses of drive {0}, and an image or another kind of drive has none: mount it on that drive, \
         or make it an ordinary volume there with `dovetail devirtualize --undo`"
    )]
    NoAddresses(DriveSerial),
    /// The device below is another drive.
    #[error(
        "the volume has pointers to addresses of drive {volume}, and this is drive {found}: mount it on that drive, or make it an \
         ordinary volume there with `dovetail devirtualize --undo` before it is copied"
    )]
    Other {
        /// The drive that the volume names.
        volume: DriveSerial,
        /// The drive below.
        found: DriveSerial,
    },
}

impl DriveSerial {
    /// Checks that a volume with pointers to addresses of this drive lies on it; `space` are those of
    /// the device below. A volume of earlier versions names no drive, and lies on any.
    ///
    /// # Errors
    /// The device below has no such addresses, or is another drive.
    pub fn check_below(self, space: Option<DeviceSpace>) -> Result<(), WrongDrive> {
        let found = space.ok_or(WrongDrive::NoAddresses(self))?.drive;
        let is_it = self == found || self == Self::default();
        if is_it { Ok(()) } else { Err(WrongDrive::Other { volume: self, found }) }
    }
}

impl DeviceSpace {
    /// Is true if all of `range` are device addresses.
    pub const fn contains(&self, range: BlockRange) -> bool {
        range.start.0 >= self.first.0 && range.end().0 <= self.first.0 + self.blocks
    }
}

/// The number of a batch, chosen by the issuer: greater than those before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RenameId(pub u64);

/// A block and the address that it is reached by from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rename {
    /// Its address so far, logical or a device address.
    pub from: Lba,
    /// The new one: a logical address that holds nothing, or `None` for the address of the place
    /// where the block is.
    pub to: Option<Lba>,
}

/// A batch that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRenames {
    /// Its number.
    pub id: RenameId,
    /// Old and new addresses.
    pub renames: Vec<Rename>,
}

/// A command to a device that devirtualises.
#[derive(Clone, Copy, Debug)]
pub enum Devirtualize<'a> {
    /// Looks up where blocks are and renames them: all or none, durable when it completes. It
    /// answers the renames ([`Answer::Renames`](crate::Answer::Renames)), where the device has put
    /// in the block's device address for a `to` of `None`. The `to` stays `None`, and nothing
    /// happens to that block, where the block is there by that name already, holds nothing, or lies
    /// in a place whose address is another block's for now.
    Begin {
        /// The number of the batch; no other may be open.
        id: RenameId,
        /// Blocks to rename. Addresses are distinct.
        renames: &'a [Rename],
    },
    /// Ends the open batch; durable when it completes. Nothing happens if it is not open.
    End {
        /// The number of the batch.
        id: RenameId,
        /// Keeps the new names, and drops the old mappings; otherwise the old ones stay.
        keep: bool,
    },
    /// Asks for the batch that is open ([`Answer::OpenBatch`](crate::Answer::OpenBatch)).
    Open,
    /// Asks for the inodes of blocks that the device has moved from their device address
    /// ([`Answer::Inodes`](crate::Answer::Inodes)), in order, each once; they count as reported. 0
    /// stands for blocks of which the device knows no inode.
    Moved,
    /// Asks for the device addresses in a range that lead to a block
    /// ([`Answer::Addresses`](crate::Answer::Addresses)), in order.
    Held {
        /// Device addresses.
        range: BlockRange,
    },
}

impl Devirtualize<'_> {
    /// Is true if it changes what survives a power cut.
    pub const fn is_durable_change(&self) -> bool {
        matches!(self, Self::Begin { .. } | Self::End { .. })
    }
}

/// Gives back all that is reached by the device's own addresses, and ends an open batch: nothing of
/// what was on the device is wanted any more. Returns when that is done; at once on a device
/// without such addresses.
///
/// # Errors
/// An error of the device.
pub fn clear_device_space<D: BlockDevice>(
    device: &mut D,
    now: SimTime,
) -> Result<SimTime, DeviceError> {
    let Some(space) = device.info().capabilities.devirtualize else { return Ok(now) };
    let asked = device.submit(now, Command::Devirtualize(Devirtualize::Open))?;
    let mut now = asked.done;
    if let Some(OpenRenames { id, .. }) = asked.answer.into_open_batch() {
        let end = Devirtualize::End { id, keep: false };
        now = device.submit(now, Command::Devirtualize(end))?.done;
    }
    let all = [SectorRange::from(BlockRange::new(space.first, space.blocks))];
    Ok(device.submit(now, Command::Discard { ranges: &all })?.done)
}
