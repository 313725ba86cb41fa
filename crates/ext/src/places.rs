//! Block numbers that are places of the device: those with the highest of their 32 bits set.

use dovetail_block::{DeviceInfo, DeviceSpace};

use crate::format::PHYSICAL_BIT;

/// The device's own addresses, if pointers may lead there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    space: Option<DeviceSpace>,
}

impl Places {
    /// Those of a device that has as many as there are numbers for at most, and that takes them
    /// back. Blocks of the volume must be blocks of the device.
    pub(crate) fn of(info: &DeviceInfo, block_size: u64) -> Self {
        let usable =
            |space: &DeviceSpace| space.blocks <= PHYSICAL_BIT && info.capabilities.discard;
        let space = info.capabilities.devirtualize.filter(usable);
        Self { space: space.filter(|_| block_size == dovetail_block::BLOCK_SIZE) }
    }

    pub(crate) const fn space(self) -> Option<DeviceSpace> {
        self.space
    }

    /// Is true if `block` is the number of a place that the device has.
    pub(crate) fn has(self, block: u64) -> bool {
        block & PHYSICAL_BIT != 0
            && block >> 32 == 0
            && self.space.is_some_and(|space| block & !PHYSICAL_BIT < space.blocks)
    }

    /// The address at which the device has a block, if that is a place.
    pub(crate) fn lba(self, block: u64) -> Option<u64> {
        let space = self.space.filter(|_| self.has(block))?;
        Some(space.first.0 + (block & !PHYSICAL_BIT))
    }
}
