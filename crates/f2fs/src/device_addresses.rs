//! Block addresses that are the device's own: those with the highest of their 32 bits set.
//!
//! The marks of F2FS (holes, reserved blocks, compressed clusters) stay what they are.

use dovetail_block::{DeviceInfo, DeviceSpace, Lba};

use crate::error::Incompatible;
use crate::format::BlockAddr;

/// The bit of an address that says "address of the device".
pub(crate) const DEVICE_ADDRESS_BIT: u64 = 1 << 31;
/// Addresses that there are numbers for: the two highest addresses are marks.
const MAX_DEVICE_ADDRESSES: u64 = DEVICE_ADDRESS_BIT - 2;

/// The device's own addresses, if pointers may lead there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceAddresses {
    space: Option<DeviceSpace>,
}

impl DeviceAddresses {
    /// Those of a device that has as many as there are numbers for at most, and that takes them
    /// back.
    pub(crate) fn of(info: &DeviceInfo) -> Self {
        let usable =
            |space: &DeviceSpace| space.blocks <= MAX_DEVICE_ADDRESSES && info.capabilities.discard;
        Self { space: info.capabilities.devirtualize.filter(usable) }
    }

    pub(crate) const fn space(self) -> Option<DeviceSpace> {
        self.space
    }

    pub(crate) const fn is_some(self) -> bool {
        self.space.is_some()
    }

    /// The address is one that the device has.
    pub(crate) fn has(self, address: BlockAddr) -> bool {
        let number = address.0 & !DEVICE_ADDRESS_BIT;
        address.0 & DEVICE_ADDRESS_BIT != 0 && self.space.is_some_and(|space| number < space.blocks)
    }

    /// The address at which the device has a block.
    pub(crate) fn lba(self, address: BlockAddr) -> Lba {
        match self.space.filter(|_| self.has(address)) {
            Some(space) => Lba(space.first.0 + (address.0 & !DEVICE_ADDRESS_BIT)),
            None => Lba(address.0),
        }
    }

    /// The block address that leads to an address of the device.
    pub(crate) fn address(self, lba: Lba) -> BlockAddr {
        let first = self.space.map_or(0, |space| space.first.0);
        BlockAddr(lba.0.saturating_sub(first) | DEVICE_ADDRESS_BIT)
    }
}

/// Every address of the volume must leave the bit alone, and the last block must not seem to go on
/// at the first address of the device.
pub(crate) const fn check_spare_bit(blocks: u64) -> Result<(), Incompatible> {
    if blocks < DEVICE_ADDRESS_BIT {
        Ok(())
    } else {
        Err(Incompatible::NoSpareBit { blocks, limit: DEVICE_ADDRESS_BIT })
    }
}

#[cfg(test)]
mod tests {
    use dovetail_block::{Capabilities, DriveSerial};

    use super::*;

    fn addresses(blocks: u64) -> DeviceAddresses {
        let space = DeviceSpace { first: Lba(1000), blocks, most: 16, drive: DriveSerial(1) };
        let capabilities =
            Capabilities { devirtualize: Some(space), discard: true, ..Capabilities::default() };
        DeviceAddresses::of(&DeviceInfo { blocks: 1000, capabilities })
    }

    #[test]
    fn device_addresses_and_blocks_and_marks_are_told_apart() {
        let all = addresses(MAX_DEVICE_ADDRESSES);
        for number in [0, 1, MAX_DEVICE_ADDRESSES - 1] {
            let address = all.address(Lba(1000 + number));
            assert!(all.has(address) && !address.is_hole() && address != BlockAddr::COMPRESSED);
            assert_eq!(BlockAddr::narrow(address.low()), address);
            assert_eq!(all.lba(address), Lba(1000 + number));
        }
        for other in [
            BlockAddr::NULL,
            BlockAddr::NEW,
            BlockAddr::COMPRESSED,
            BlockAddr(DEVICE_ADDRESS_BIT - 1),
        ] {
            assert!(!all.has(other), "{other}");
        }
        assert!(!addresses(10).has(BlockAddr(DEVICE_ADDRESS_BIT + 10)));
        assert!(!addresses(MAX_DEVICE_ADDRESSES + 1).is_some());
    }

    #[test]
    fn the_last_block_number_leaves_the_bit_alone() {
        assert_eq!(check_spare_bit(DEVICE_ADDRESS_BIT - 1), Ok(()));
        let blocks = DEVICE_ADDRESS_BIT;
        assert_eq!(
            check_spare_bit(blocks),
            Err(Incompatible::NoSpareBit { blocks, limit: DEVICE_ADDRESS_BIT })
        );
    }
}
