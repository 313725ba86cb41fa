//! Interface between a file system and a drive.
//!
//! Everything that crosses between the layers stands here: addresses, the content of a block, the
//! commands and the device that performs them. Neither side sees more of the other than this crate.
//!
//! A block is 4 KiB ([`BLOCK_SIZE`]). What a device can beyond reading and writing is a capability
//! ([`Capabilities`]): a new command comes as a variant of [`Command`] and a capability that
//! announces it, so that the other devices need no change.
//!
//! ```
//! use dovetail_block::{
//!     BlockDevice, BlockRange, Command, Content, Data, DeviceError, Lba, MemoryDevice, Pattern,
//!     SectorRange,
//! };
//! use dovetail_time::SimTime;
//!
//! # fn main() -> Result<(), DeviceError> {
//! let mut device = MemoryDevice::new(1024); // blocks: 4 MiB
//! let range = BlockRange::new(Lba(8), 2);
//! // Two blocks whose content is named, not carried: patterns 70 and 71.
//! let write = Command::write(range, Data::Patterns(Pattern::new(70)));
//! let done = device.submit(SimTime::ZERO, write)?.done;
//!
//! let mut found = [Content::Empty, Content::Empty];
//! device.submit(done, Command::Read { range, into: Some(&mut found) })?;
//! assert_eq!(found, [70, 71].map(|number| Content::Pattern(Pattern::new(number))));
//!
//! // A discarded block reads as empty.
//! let first = SectorRange::from(BlockRange::new(Lba(8), 1));
//! device.submit(done, Command::Discard { ranges: &[first] })?;
//! assert_eq!(*device.get(Lba(8)), Content::Empty);
//! # Ok(())
//! # }
//! ```

mod addr;
mod command;
mod content;
mod device;
mod devirtualize;
mod gather;
#[cfg(unix)]
mod image;
mod joined;
mod memory;
mod overlay;
mod placement;
mod prefetch;
mod query;
mod remap;
mod scheduler;
mod zone;

pub use addr::{
    BLOCK_SIZE, BlockRange, ByteRange, Lba, SECTOR_SIZE, SECTORS_IN_BLOCK, SectorRange,
};
pub use command::{Command, Data, Hints, Inode, StreamId};
pub use content::{BlockBytes, Content, Pattern};
pub use device::{
    AREA_BLOCKS, AREAS, Answer, BlockDevice, Capabilities, Completion, DeviceError, DeviceInfo,
    Thin,
};
pub use devirtualize::{
    DeviceSpace, Devirtualize, DriveSerial, OpenRenames, Rename, RenameId, WrongDrive,
    clear_device_space,
};
pub use gather::{Gatherer, REQUEST_BLOCKS};
#[cfg(unix)]
pub use image::ImageDevice;
pub use joined::{JoinError, JoinedDevice};
pub use memory::MemoryDevice;
pub use overlay::OverlayDevice;
pub use placement::{
    HandleStatus, Isolation, Lifetime, PlacementEvent, PlacementReport, ReclaimUnits,
};
pub use prefetch::prefetch;
pub use query::{Query, changed_zones, free_blocks, held_blocks, map_bytes, placement, zones};
pub use remap::{BatchId, HeldRemaps, RemapLimits, RemapPair, RemapWhen};
pub use scheduler::{EventId, LockId, Scheduler, SchedulingHint};
pub use zone::{
    ReportError, Transition, Zone, ZoneAction, ZoneError, ZoneEvent, ZoneReport, ZoneState,
    ZoneTable, ZoneWindow, ZonedDevice, Zones, transition,
};
