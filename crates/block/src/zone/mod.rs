//! Zones: ranges of a device that are written from their start on and emptied as a whole.
//!
//! States, limits and errors are those of the NVMe Zoned Namespace command set; conventional zones,
//! which NVMe has not, are those of SMR disks and zoned UFS: written anywhere. They come first.

mod device;
mod report;
mod state;
mod table;

use crate::addr::{BlockRange, Lba, SectorRange};

pub use device::ZonedDevice;
pub use report::{ReportError, ZoneReport};
pub use state::{Transition, ZoneEvent, ZoneState, transition};
pub use table::ZoneTable;

/// The zones of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zones {
    /// The first sequential zone begins here; all blocks before are conventional.
    pub first: Lba,
    /// Sequential zones.
    pub count: u32,
    /// Blocks from the start of one zone to that of the next.
    pub blocks: u64,
    /// Blocks of a sequential zone that can be written: all of them, or fewer.
    pub capacity: u64,
    /// Zones that may be open at once; 0 for any number.
    pub max_open: u32,
    /// Zones that may be open or closed, neither empty nor full, at once; 0 for any number.
    pub max_active: u32,
    /// Blocks that one append takes; 0 for a device without append.
    pub max_append: u64,
    /// The random write area of a zone, if it can have one.
    pub window: Option<ZoneWindow>,
}

/// A window after a zone's write pointer that may be written in any order, and again (ZRWA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneWindow {
    /// Blocks of the window.
    pub blocks: u64,
    /// Blocks by which the write pointer moves on at least: a divisor of `blocks`.
    pub granularity: u64,
    /// Zones that may have a window at once.
    pub most: u32,
}

impl Zones {
    /// Zones without limits, of one size and capacity, that cover `blocks` blocks from `first` on.
    /// The rest at the end is no zone.
    pub const fn covering(first: Lba, blocks: u64, size: u64, capacity: u64) -> Self {
        Self {
            first,
            count: (blocks / size) as u32,
            blocks: size,
            capacity,
            max_open: 0,
            max_active: 0,
            max_append: 0,
            window: None,
        }
    }

    /// The index of the sequential zone that `lba` lies in; `None` for conventional blocks and
    /// those beyond the last zone.
    #[inline]
    pub const fn index(&self, lba: Lba) -> Option<u32> {
        if lba.0 < self.first.0 {
            return None;
        }
        let zone = (lba.0 - self.first.0) / self.blocks;
        if zone < self.count as u64 { Some(zone as u32) } else { None }
    }

    /// The sequential zone that a write of this range goes to; `None` for conventional blocks.
    ///
    /// # Errors
    /// [`ZoneError::InvalidWrite`] for one that begins in conventional blocks and ends in a zone, or
    /// begins behind the last zone.
    #[inline]
    pub const fn written_by(&self, range: BlockRange) -> Result<Option<u32>, ZoneError> {
        let zone = self.index(range.start);
        if zone.is_none() && range.end().0 > self.first.0 {
            let (at, pointer) = (range.start, self.first);
            return Err(ZoneError::InvalidWrite { zone: 0, at, pointer });
        }
        Ok(zone)
    }

    /// The first block of a sequential zone.
    #[inline]
    pub const fn start(&self, zone: u32) -> Lba {
        Lba(self.first.0 + zone as u64 * self.blocks)
    }

    /// The first block after the last zone.
    pub const fn end(&self) -> Lba {
        self.start(self.count)
    }

    /// The blocks of a sequential zone that can be written.
    pub const fn writable(&self, zone: u32) -> BlockRange {
        BlockRange::new(self.start(zone), self.capacity)
    }

    /// The parts of ranges that lie in conventional zones: what a discard of them changes. In other
    /// zones it changes nothing, a reset does.
    pub fn conventional_part(&self, ranges: &[SectorRange]) -> Vec<SectorRange> {
        let end = SectorRange::from(BlockRange::new(Lba(0), self.first.0)).end();
        let inside = ranges.iter().filter(|range| range.start < end);
        inside
            .map(|range| SectorRange::new(range.start, range.end().min(end) - range.start))
            .collect()
    }

    /// Conventional zones before the first sequential one; a part of one counts.
    pub const fn conventional(&self) -> u64 {
        self.first.0.div_ceil(self.blocks)
    }
}

/// A zone as a report tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The first block.
    pub start: Lba,
    /// Blocks that can be written.
    pub capacity: u64,
    /// The state; `None` for a conventional zone.
    pub state: Option<ZoneState>,
    /// The block that the next write must begin with; of a full zone the end of its capacity, of a
    /// conventional one its start.
    pub write_pointer: Lba,
}

impl Zone {
    /// Blocks that were written, of a sequential zone.
    pub const fn written(&self) -> u64 {
        self.write_pointer.0 - self.start.0
    }
}

/// A command on a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneAction {
    /// Opens it explicitly; only the host closes it.
    Open {
        /// With a random write area.
        window: bool,
    },
    /// Closes an open zone; it stays active.
    Close,
    /// Makes it full; blocks that were not written cannot be any more.
    Finish,
    /// Empties it.
    Reset,
    /// Moves the write pointer of a zone with a random write area up to this block.
    FlushWindow {
        /// The new write pointer, at a multiple of the window's granularity, or the zone's end.
        up_to: Lba,
    },
}

impl ZoneAction {
    /// The name, as in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open { .. } => "opened",
            Self::Close => "closed",
            Self::Finish => "finished",
            Self::Reset => "reset",
            Self::FlushWindow { .. } => "moved on",
        }
    }
}

/// Reason why a device with zones did not perform a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// A write that does not begin at the write pointer.
    #[error(
        "block {at} cannot be written now: zone {zone} is written from its start on, and its next block is {pointer}: \
         write there, or reset the zone first"
    )]
    InvalidWrite {
        /// Index of the sequential zone.
        zone: u32,
        /// The first block of the write.
        at: Lba,
        /// The write pointer.
        pointer: Lba,
    },
    /// A command that goes beyond the capacity of its zone.
    #[error("{range} is not within zone {zone}, whose blocks end at {end}")]
    Boundary {
        /// Index of the sequential zone.
        zone: u32,
        /// Blocks of the command.
        range: BlockRange,
        /// The end of the zone's capacity.
        end: Lba,
    },
    /// A write to a full zone.
    #[error("zone {0} is full: reset it first")]
    Full(u32),
    /// A write to a zone whose flash has failed.
    #[error("zone {0} can only be read: its flash is worn out")]
    ReadOnly(u32),
    /// A read of or write to a zone that is lost.
    #[error("zone {0} is offline: its flash has failed")]
    Offline(u32),
    /// One zone more than may be open.
    #[error("{0} zones are open, and no more can be: close, finish or reset one first")]
    TooManyOpen(u32),
    /// One zone more than may be active.
    #[error("{0} zones are neither empty nor full, and no more can be: finish or reset one first")]
    TooManyActive(u32),
    /// One random write area more than there are.
    #[error("{0} zones have a random write area, and no more can have one")]
    TooManyWindows(u32),
    /// An action that the zone's state does not allow.
    #[error("zone {zone} is {}: it cannot be {}", state.name(), action.name())]
    InvalidTransition {
        /// Index of the sequential zone.
        zone: u32,
        /// Its state.
        state: ZoneState,
        /// The action asked for.
        action: ZoneAction,
    },
    /// A zone command on an address that is not the start of a sequential zone.
    #[error("block {0} is not the start of a zone that is written in order")]
    NotAZone(Lba),
    /// An append to a zone whose write pointer does not move with each write.
    #[error("zone {0} has a random write area: it takes writes, and no append")]
    AppendToWindow(u32),
    /// An append of more blocks than the device takes.
    #[error("an append of {blocks} blocks; this device takes {limit} at most")]
    AppendTooLong {
        /// Blocks given.
        blocks: u64,
        /// Blocks that would do.
        limit: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_goes_to_a_zone_or_to_conventional_blocks_and_never_across_or_behind() {
        let zones = Zones::covering(Lba(16), 40, 16, 12);
        let of = |start, blocks| zones.written_by(BlockRange::new(Lba(start), blocks)).ok();
        assert_eq!([of(0, 16), of(16, 1), of(40, 4)], [Some(None), Some(Some(0)), Some(Some(1))]);
        // two zones of 16 blocks; the last eight blocks are in none
        assert_eq!([of(15, 2), of(48, 1)], [None, None]);
    }
}
