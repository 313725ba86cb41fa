//! The block device: what it is, what it can, what it answers.

use dovetail_time::SimTime;

use crate::addr::{BlockRange, Lba};
use crate::command::{Command, Inode};
use crate::devirtualize::{DeviceSpace, OpenRenames, Rename};
use crate::placement::{PlacementReport, ReclaimUnits};
use crate::remap::RemapLimits;
use crate::zone::{Zone, ZoneError, Zones};

/// Capabilities of a device beyond reading, writing and flushing.
///
/// A file system that needs a capability which its device lacks refuses to mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// [`Command::Discard`] unmaps blocks.
    pub discard: bool,
    /// Number of write streams that are kept apart; 1 when stream hints change nothing.
    pub streams: u8,
    /// The inode of a write is kept beside its data.
    pub inode_hints: bool,
    /// [`Command::Remap`] moves blocks, within these limits.
    pub remap: Option<RemapLimits>,
    /// It has more addresses than room.
    pub thin: Option<Thin>,
    /// [`Command::Devirtualize`] gives blocks their device addresses, which are these.
    pub devirtualize: Option<DeviceSpace>,
    /// A part of it is written in zones, by [`Command::Write`] at the write pointer,
    /// [`Command::Append`] and [`Command::Zone`].
    pub zones: Option<Zones>,
    /// Its streams are handles of reclaim units, of which it keeps statistics.
    pub reclaim_units: Option<ReclaimUnits>,
}

/// The areas of the largest address space, chosen by the top three bits of an address of 61 bits
/// (IPLFS paper, section 4.1): one for metadata, six for logs.
pub const AREAS: u64 = 7;

/// Blocks in each of the [`AREAS`]: 2^58.
pub const AREA_BLOCKS: u64 = 1 << 58;

/// Capacity of a device that has more addresses than room (thin provisioning).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thin {
    /// Blocks that it can hold at once.
    pub capacity: u64,
    /// Blocks that take room together, a power of two up to 64: a run of so many, at a multiple of
    /// that, takes the room of all of them as soon as one holds something.
    pub blocks_per_page: u32,
    /// Of these there is room for so many: what `capacity` fills, or more, where pages of which a
    /// part is empty may take spare room. A part of a device ([`DeviceInfo::part`]) may hold fewer
    /// blocks and shares this room.
    pub pages: u64,
}

impl Thin {
    /// Room for `capacity` blocks, so many to a page.
    pub const fn new(capacity: u64, blocks_per_page: u32) -> Self {
        Self { capacity, blocks_per_page, pages: capacity.div_ceil(blocks_per_page as u64) }
    }
}

/// Size and capabilities of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its addresses, in blocks of 4 KiB: its size, unless it is [`Thin`].
    pub blocks: u64,
    /// Capabilities beyond reading, writing and flushing.
    pub capabilities: Capabilities,
}

impl DeviceInfo {
    /// Blocks that it can hold at once.
    pub fn capacity(&self) -> u64 {
        self.capabilities.thin.map_or(self.blocks, |thin| thin.capacity)
    }

    /// The same device, of which only so many blocks are given: its first ones, or on a thin one as
    /// many at a time.
    #[must_use]
    pub fn part(mut self, blocks: u64) -> Self {
        match &mut self.capabilities.thin {
            Some(thin) => thin.capacity = blocks,
            None => self.blocks = blocks,
        }
        self
    }

    /// Checks that `range` lies on the device, and that the data that comes with it is as long:
    /// `data` blocks.
    ///
    /// # Errors
    /// Beyond the end, or of another length.
    pub const fn check(&self, range: BlockRange, data: u64) -> Result<(), DeviceError> {
        if range.end().0 > self.blocks {
            return Err(DeviceError::OutOfRange { range, blocks: self.blocks });
        }
        if range.blocks != data {
            return Err(DeviceError::LengthMismatch { range: range.blocks, data });
        }
        Ok(())
    }
}

/// The completion of a command that was performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The time at which the device reports the command as done.
    pub done: SimTime,
    /// Answer to the command.
    pub answer: Answer,
}

impl Completion {
    /// A completion without an answer.
    pub const fn at(done: SimTime) -> Self {
        Self { done, answer: Answer::None }
    }

    /// A completion with an answer.
    pub const fn with(done: SimTime, answer: Answer) -> Self {
        Self { done, answer }
    }
}

/// The answer of a device to a command, beside its time and what a read returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// Nothing to tell.
    #[default]
    None,
    /// A count of blocks: of [`Query::FreeBlocks`](crate::Query::FreeBlocks).
    Blocks(u64),
    /// A count of bytes: of [`Query::MapBytes`](crate::Query::MapBytes).
    Bytes(u64),
    /// Addresses in order: of [`Query::Held`](crate::Query::Held) and
    /// [`Devirtualize::Held`](crate::Devirtualize::Held); of [`Command::Append`] its first block.
    Addresses(Vec<Lba>),
    /// The renames of a batch with their new addresses: of
    /// [`Devirtualize::Begin`](crate::Devirtualize::Begin).
    Renames(Vec<Rename>),
    /// The open batch, if any: of [`Devirtualize::Open`](crate::Devirtualize::Open).
    OpenBatch(Option<OpenRenames>),
    /// Inode numbers: of [`Devirtualize::Moved`](crate::Devirtualize::Moved).
    Inodes(Vec<Inode>),
    /// Zones in order: of [`Query::Zones`](crate::Query::Zones).
    Zones(Vec<Zone>),
    /// Statistics of reclaim units: of [`Query::Placement`](crate::Query::Placement).
    Placement(Box<PlacementReport>),
    /// Zones in order, and the place to ask from next time: of
    /// [`Query::ChangedZones`](crate::Query::ChangedZones).
    ChangedZones {
        /// As they are now.
        zones: Vec<Zone>,
        /// All changes so far lie before it.
        until: u64,
    },
}

impl Answer {
    /// The addresses, empty for another answer.
    pub fn into_addresses(self) -> Vec<Lba> {
        if let Self::Addresses(addresses) = self { addresses } else { Vec::new() }
    }

    /// The renames, empty for another answer.
    pub fn into_renames(self) -> Vec<Rename> {
        if let Self::Renames(renames) = self { renames } else { Vec::new() }
    }

    /// The open batch, if there is one.
    pub fn into_open_batch(self) -> Option<OpenRenames> {
        if let Self::OpenBatch(open) = self { open } else { None }
    }

    /// The inode numbers, empty for another answer.
    pub fn into_inodes(self) -> Vec<Inode> {
        if let Self::Inodes(inodes) = self { inodes } else { Vec::new() }
    }
}

/// Reason why a device did not perform a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// An address beyond the end of the device.
    #[error("{range} is beyond the device's end at block {blocks}")]
    OutOfRange {
        /// Blocks of the command.
        range: BlockRange,
        /// The size of the device.
        blocks: u64,
    },
    /// A write or read whose data has another number of blocks than its range.
    #[error("the command's range has {range} blocks, its data {data}")]
    LengthMismatch {
        /// Blocks in the range.
        range: u64,
        /// Blocks in the data.
        data: u64,
    },
    /// A remap of more pairs than the device takes.
    #[error("a remap of {pairs} pairs; this device takes {limit} at most")]
    RemapTooLong {
        /// Pairs given, with those held before.
        pairs: u64,
        /// Pairs that would do.
        limit: u64,
    },
    /// A remap in which an address occurs more than once.
    #[error("block {0} occurs twice in one remap")]
    RemapTwice(Lba),
    /// A reclaim unit handle that is not there.
    #[error("there is no handle {handle}; this device has {handles}, numbered from 0")]
    NoHandle {
        /// Its number.
        handle: u8,
        /// Handles of the device.
        handles: u8,
    },
    /// A batch of renames while another is open.
    #[error("a batch of renames is open; end it first")]
    RenamesOpen,
    /// A batch of more renames than the device takes.
    #[error("a batch of {renames} renames; this device takes {limit} at most")]
    RenamesTooMany {
        /// Renames given.
        renames: u64,
        /// Renames that would do.
        limit: u64,
    },
    /// A rename to an address that is none of the device's, or is in use.
    #[error(
        "block {0} cannot be renamed so: the addresses must be distinct, and the new one must hold nothing"
    )]
    CannotRename(Lba),
    /// A device address that leads to no block.
    #[error("device address {0} leads to no block: it was given up, or is of another device")]
    NoBlock(Lba),
    /// A thin device holds as much as it can.
    #[error(
        "the device holds as many blocks as it has room for; discard what is no longer needed first"
    )]
    NoRoom,
    /// A command of a capability that the device has not.
    #[error("this device has no {0} command")]
    Unsupported(&'static str),
    /// The medium no longer gives this block back.
    #[error("block {0} cannot be read: the medium has lost it")]
    Unreadable(Lba),
    /// The device has run out of good flash and takes no more writes; reads still work.
    #[error("the drive is worn out: {0}; it can still be read")]
    ReadOnly(String),
    /// A rule of zones was broken.
    #[error("{0}")]
    Zone(ZoneError),
    /// The device was opened for reading only.
    #[error("the device is open for reading only")]
    NotWritable,
    /// The system below an image file or a real device failed.
    #[error("{0}")]
    Host(String),
    /// The power is gone; the device must be recovered before it is used again.
    #[error("the power was cut")]
    PowerLost,
    /// The device broke a rule of its own: a bug in the model, never a consequence of input.
    #[error("internal fault of the device model: {0}")]
    Internal(String),
}

/// A device of 4 KiB blocks in virtual time.
pub trait BlockDevice {
    /// Size and capabilities of the device.
    fn info(&self) -> DeviceInfo;

    /// Performs `command`, issued at virtual time `at`, and says when it completes. State changes
    /// at once; commands come in the order of `at`, and a device with a clock takes one of an
    /// earlier time at the time of the last.
    ///
    /// # Errors
    /// See [`DeviceError`]; after an error other than [`DeviceError::PowerLost`] the device goes on
    /// working.
    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError>;

    /// Tells that blocks will be read or written soon: their entries in tables can be fetched from
    /// memory. Changes nothing but that time.
    fn expect(&self, range: BlockRange) {
        let _ = range;
    }

    /// Reads bytes from byte `at` on without changing the device, so that several may read at the
    /// same time. False if it cannot be done so, or fails: then `into` holds anything, and a
    /// [`Command::Read`] does it, or says why not. Time, faults and counts of reads are a change,
    /// so a device that has them says false, and so does a wrapper that does not know better.
    fn read_shared(&self, _at: u64, _into: &mut [u8]) -> bool {
        false
    }

    /// Writes bytes from byte `at` on, for one of several who read and write at the same time. As
    /// an ordinary write it is volatile until a flush. False if it cannot be done so, or fails:
    /// then the range holds anything, and a [`Command::Write`] does it, or says why not. See
    /// [`Self::read_shared`].
    fn write_shared(&self, _at: u64, _bytes: &[u8]) -> bool {
        false
    }
}

impl<D: BlockDevice + ?Sized> BlockDevice for &mut D {
    fn info(&self) -> DeviceInfo {
        (**self).info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        (**self).submit(at, command)
    }

    fn expect(&self, range: BlockRange) {
        (**self).expect(range);
    }

    fn read_shared(&self, at: u64, into: &mut [u8]) -> bool {
        (**self).read_shared(at, into)
    }

    fn write_shared(&self, at: u64, bytes: &[u8]) -> bool {
        (**self).write_shared(at, bytes)
    }
}

impl<D: BlockDevice + ?Sized> BlockDevice for Box<D> {
    fn info(&self) -> DeviceInfo {
        (**self).info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        (**self).submit(at, command)
    }

    fn expect(&self, range: BlockRange) {
        (**self).expect(range);
    }

    fn read_shared(&self, at: u64, into: &mut [u8]) -> bool {
        (**self).read_shared(at, into)
    }

    fn write_shared(&self, at: u64, bytes: &[u8]) -> bool {
        (**self).write_shared(at, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_thin_device_holds_less_and_shares_its_room() {
        let thin = Capabilities { thin: Some(Thin::new(1000, 4)), ..Capabilities::default() };
        let part = DeviceInfo { blocks: 1 << 60, capabilities: thin }.part(100);
        assert_eq!((part.blocks, part.capacity()), (1 << 60, 100));
        assert_eq!(
            part.capabilities.thin,
            Some(Thin { capacity: 100, blocks_per_page: 4, pages: 250 })
        );
        let part = DeviceInfo { blocks: 1000, capabilities: Capabilities::default() }.part(100);
        assert_eq!((part.blocks, part.capacity()), (100, 100));
    }
}
