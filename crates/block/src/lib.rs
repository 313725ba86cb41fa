//! Interface between a file system and a drive.
//!
//! Everything that crosses between the layers stands here: addresses, the content of a block, the
//! commands and the device that performs them. Neither side sees more of the other than this crate.
//!
//! A block is 4 KiB ([`BLOCK_SIZE`]). What a device can beyond reading and writing is a capability
//! ([`Capabilities`]): a new command comes as a variant of [`Command`] and a capability that
//! announces it, so that the other devices need no change.

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
pub use gather::Gatherer;
#[cfg(unix)]
pub use image::ImageDevice;
pub use joined::{JoinError, JoinedDevice};
pub use memory::MemoryDevice;
pub use overlay::OverlayDevice;
pub use placement::{
    HandleStatus, Isolation, Lifetime, PlacementEvent, PlacementReport, ReclaimUnits,
};
pub use query::{Query, changed_zones, free_blocks, held_blocks, map_bytes, placement, zones};
pub use remap::{BatchId, HeldRemaps, RemapLimits, RemapPair, RemapWhen};
pub use scheduler::{EventId, LockId, Scheduler, SchedulingHint};
pub use zone::{
    ReportError, Transition, Zone, ZoneAction, ZoneError, ZoneEvent, ZoneReport, ZoneState,
    ZoneTable, ZoneWindow, ZonedDevice, Zones, transition,
};
