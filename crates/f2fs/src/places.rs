//! Block addresses that are places of the device: those with the highest of their 32 bits set.
//!
//! What F2FS has as marks (holes, reserved blocks, compressed clusters) stays what it is.

use dovetail_block::{DeviceInfo, DeviceSpace, Lba};

use crate::error::Incompatible;
use crate::format::BlockAddr;

/// The bit of an address that says "place of the device".
pub(crate) const PLACE_BIT: u64 = 1 << 31;
/// Places that there are numbers for: the two highest addresses are marks.
const MAX_PLACES: u64 = PLACE_BIT - 2;

/// The device's own addresses, if pointers may lead there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    space: Option<DeviceSpace>,
}

impl Places {
    /// Those of a device that has as many as there are numbers for at most, and that takes them back.
    pub(crate) fn of(info: &DeviceInfo) -> Self {
        let usable = |space: &DeviceSpace| space.blocks <= MAX_PLACES && info.capabilities.discard;
        Self { space: info.capabilities.devirtualize.filter(usable) }
    }

    pub(crate) const fn space(self) -> Option<DeviceSpace> {
        self.space
    }

    pub(crate) const fn is_some(self) -> bool {
        self.space.is_some()
    }

    /// Whether an address is that of a place which the device has.
    pub(crate) fn has(self, address: BlockAddr) -> bool {
        let number = address.0 & !PLACE_BIT;
        address.0 & PLACE_BIT != 0 && self.space.is_some_and(|space| number < space.blocks)
    }

    /// The address at which the device has a block.
    pub(crate) fn lba(self, address: BlockAddr) -> Lba {
        match self.space.filter(|_| self.has(address)) {
            Some(space) => Lba(space.first.0 + (address.0 & !PLACE_BIT)),
            None => Lba(address.0),
        }
    }

    /// The address of a place.
    pub(crate) fn address(self, lba: Lba) -> BlockAddr {
        let first = self.space.map_or(0, |space| space.first.0);
        BlockAddr(lba.0.saturating_sub(first) | PLACE_BIT)
    }
}

/// Every address of the volume must leave the bit alone, and the last block must not seem to go on at the first place.
pub(crate) const fn check_spare_bit(blocks: u64) -> Result<(), Incompatible> {
    if blocks < PLACE_BIT { Ok(()) } else { Err(Incompatible::NoSpareBit { blocks, limit: PLACE_BIT }) }
}

#[cfg(test)]
mod tests {
    use dovetail_block::Capabilities;

    use super::*;

    fn places(blocks: u64) -> Places {
        let space = DeviceSpace { first: Lba(1000), blocks, most: 16 };
        let capabilities =
            Capabilities { devirtualize: Some(space), discard: true, ..Capabilities::default() };
        Places::of(&DeviceInfo { blocks: 1000, capabilities })
    }

    #[test]
    fn places_and_blocks_and_marks_are_told_apart() {
        let all = places(MAX_PLACES);
        for number in [0, 1, MAX_PLACES - 1] {
            let address = all.address(Lba(1000 + number));
            assert!(all.has(address) && !address.is_hole() && address != BlockAddr::COMPRESSED);
            assert_eq!(BlockAddr::narrow(address.low()), address);
            assert_eq!(all.lba(address), Lba(1000 + number));
        }
        for other in [BlockAddr::NULL, BlockAddr::NEW, BlockAddr::COMPRESSED, BlockAddr(PLACE_BIT - 1)] {
            assert!(!all.has(other), "{other}");
        }
        assert!(!places(10).has(BlockAddr(PLACE_BIT + 10)));
        assert!(!places(MAX_PLACES + 1).is_some());
    }

    #[test]
    fn the_last_block_number_leaves_the_bit_alone() {
        assert_eq!(check_spare_bit(PLACE_BIT - 1), Ok(()));
        let blocks = PLACE_BIT;
        assert_eq!(check_spare_bit(blocks), Err(Incompatible::NoSpareBit { blocks, limit: PLACE_BIT }));
    }
}
