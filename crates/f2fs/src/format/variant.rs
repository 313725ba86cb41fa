//! F2FS, or its variant IPLFS: what of the format hangs on the width of a block address.
//!
//! Addresses of F2FS have 4 bytes, those of IPLFS 4 or 8. Everything else about nodes is the same:
//! footers, inodes, names, extended attributes, and indirect nodes, which hold nids.

use dovetail_block::AREA_BLOCKS;

use super::{BlockAddr, Nid};

/// Bits of a narrow address for the block in its area; the three above them are the area.
const NARROW_BITS: u32 = 29;
const NARROW_BLOCKS: u32 = 1 << NARROW_BITS;
/// Three bits can say eight areas; there are seven.
const NO_AREA: u32 = 7;
/// The lowest narrow value that is no address.
const FIRST_MARK: u32 = BlockAddr::COMPRESSED.low();

/// The format of a volume, one of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// F2FS as Linux has it: segments that are cleaned.
    #[default]
    F2fs,
    /// IPLFS (Kim and others, ATC'22): six logs that are only appended to.
    Iplfs(AddressWidth),
}

/// Bytes that IPLFS stores of a block address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressWidth {
    /// 8 bytes: logs of 2^58 blocks.
    #[default]
    Wide,
    /// 4 bytes, as in the published code: twice the pointers in a node, and logs of 2^29 blocks
    /// (2 TiB).
    Narrow,
}

impl AddressWidth {
    /// The width of so many bytes, 4 or 8.
    pub const fn of_bytes(bytes: u32) -> Option<Self> {
        match bytes {
            4 => Some(Self::Narrow),
            8 => Some(Self::Wide),
            _ => None,
        }
    }
}

impl Variant {
    /// IPLFS whose logs never end.
    pub const IPLFS: Self = Self::Iplfs(AddressWidth::Wide);

    /// It is IPLFS, of either width.
    pub const fn is_iplfs(self) -> bool {
        matches!(self, Self::Iplfs(_))
    }

    /// Blocks that a log of IPLFS can have: what the width of an address reaches.
    pub const fn area_blocks(self) -> u64 {
        match self {
            Self::Iplfs(AddressWidth::Narrow) => NARROW_BLOCKS as u64,
            Self::F2fs | Self::Iplfs(AddressWidth::Wide) => AREA_BLOCKS,
        }
    }

    /// Bytes of a block address.
    pub const fn address_bytes(self) -> usize {
        match self {
            Self::F2fs | Self::Iplfs(AddressWidth::Narrow) => 4,
            Self::Iplfs(AddressWidth::Wide) => 8,
        }
    }

    /// Pointers in a direct node.
    pub const fn direct_pointers(self) -> usize {
        match self {
            Self::F2fs | Self::Iplfs(AddressWidth::Narrow) => 1018,
            Self::Iplfs(AddressWidth::Wide) => 509,
        }
    }

    /// Entries in a block of the NAT.
    pub const fn nat_entries_in_block(self) -> u32 {
        match self {
            Self::F2fs | Self::Iplfs(AddressWidth::Narrow) => 455,
            Self::Iplfs(AddressWidth::Wide) => 315,
        }
    }

    /// The block of the NAT that covers `nid`, and its entry there.
    pub const fn nat_position(self, nid: Nid) -> (u32, usize) {
        // divisors that are constants make this cheap
        match self {
            Self::F2fs | Self::Iplfs(AddressWidth::Narrow) => (nid.0 / 455, (nid.0 % 455) as usize),
            Self::Iplfs(AddressWidth::Wide) => (nid.0 / 315, (nid.0 % 315) as usize),
        }
    }

    /// The first nid of a block of the NAT.
    pub const fn first_nid(self, block: u32) -> Nid {
        Nid(block.saturating_mul(self.nat_entries_in_block()))
    }

    /// The largest file that the format can address: every pointer used, in bytes.
    pub const fn max_file_size(self) -> u64 {
        let own = (super::inode::POINTER_BYTES / self.address_bytes()) as u64;
        (own + self.blocks_below_nids()) * 4096
    }

    /// The largest size to which the kernel, and a mount here, lets a file grow, in bytes.
    pub const fn write_limit(self) -> u64 {
        self.blocks_below_nids() * 4096
    }

    /// Blocks of a file below the inode's five nids.
    const fn blocks_below_nids(self) -> u64 {
        let (direct, nids) = (self.direct_pointers() as u64, super::NIDS_IN_NODE as u64);
        2 * direct + 2 * direct * nids + direct * nids * nids
    }

    /// The block address at byte `at`; a hole beyond the end.
    pub fn address_at(self, bytes: &[u8], at: usize) -> BlockAddr {
        match self {
            Self::Iplfs(AddressWidth::Wide) => BlockAddr(super::u64_at(bytes, at)),
            Self::F2fs | Self::Iplfs(AddressWidth::Narrow) => self.unpack(super::u32_at(bytes, at)),
        }
    }

    /// Puts a block address at byte `at`; nothing beyond the end.
    pub fn put_address(self, bytes: &mut [u8], at: usize, address: BlockAddr) {
        match self {
            Self::Iplfs(AddressWidth::Wide) => put(bytes, at, &address.0.to_le_bytes()),
            Self::F2fs | Self::Iplfs(AddressWidth::Narrow) => {
                put(bytes, at, &self.pack(address).to_le_bytes());
            }
        }
    }

    /// The address that 4 bytes hold, of a format with such. Those of IPLFS have the area on top.
    /// The marks are the two highest values; no area reaches them.
    pub(crate) const fn unpack(self, stored: u32) -> BlockAddr {
        match self {
            Self::Iplfs(_) if stored < FIRST_MARK => {
                let (area, block) = (stored >> NARROW_BITS, stored & (NARROW_BLOCKS - 1));
                BlockAddr(area as u64 * AREA_BLOCKS + block as u64)
            }
            Self::F2fs | Self::Iplfs(_) => BlockAddr::narrow(stored),
        }
    }

    /// The 4 bytes that stand for an address, of a format with such. What they cannot reach becomes
    /// an address that no log has.
    pub(crate) const fn pack(self, address: BlockAddr) -> u32 {
        match self {
            Self::Iplfs(_) if address.0 < BlockAddr::COMPRESSED.0 => {
                let (area, block) = (address.0 / AREA_BLOCKS, address.0 % AREA_BLOCKS);
                if block >= NARROW_BLOCKS as u64 {
                    return NO_AREA << NARROW_BITS;
                }
                (area as u32) << NARROW_BITS | block as u32
            }
            Self::F2fs | Self::Iplfs(_) => address.low(),
        }
    }
}

fn put(bytes: &mut [u8], at: usize, stored: &[u8]) {
    if let Some(to) = bytes.get_mut(at..at + stored.len()) {
        to.copy_from_slice(stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Variant = Variant::IPLFS;
    const NARROW: Variant = Variant::Iplfs(AddressWidth::Narrow);

    #[test]
    fn marks_have_the_width_of_the_variant() {
        for (variant, len) in [(Variant::F2fs, 4), (WIDE, 8), (NARROW, 4)] {
            for address in
                [BlockAddr::NULL, BlockAddr::NEW, BlockAddr::COMPRESSED, BlockAddr(0x0123_4567)]
            {
                let mut bytes = [0xEE; 12];
                variant.put_address(&mut bytes, 2, address);
                assert_eq!(variant.address_at(&bytes, 2), address, "{variant:?}");
                assert_eq!((bytes[1], bytes[2 + len]), (0xEE, 0xEE));
            }
        }
        let mut bytes = [0; 4];
        Variant::F2fs.put_address(&mut bytes, 0, BlockAddr::COMPRESSED);
        assert_eq!(bytes, [0xFE, 0xFF, 0xFF, 0xFF]);
    }

    #[test]
    fn a_narrow_address_reaches_the_last_block_of_each_area() {
        let last = NARROW.area_blocks() - 1;
        for area in 0..7 {
            let first = BlockAddr(area * AREA_BLOCKS);
            for address in [first, first.plus(1), first.plus(last)] {
                assert_eq!(NARROW.unpack(NARROW.pack(address)), address);
            }
            assert_eq!(NARROW.pack(first.plus(last)) >> 29, area as u32);
            let beyond = NARROW.unpack(NARROW.pack(first.plus(last + 1)));
            assert_eq!(beyond, BlockAddr(7 * AREA_BLOCKS), "no log has it");
        }
    }

    #[test]
    fn the_largest_file_of_f2fs_is_what_the_kernel_says() {
        assert_eq!(
            Variant::F2fs.max_file_size(),
            (923 + 2 * 1018 + 2 * 1018 * 1018 + 1018 * 1018 * 1018) * 4096
        );
        assert_eq!(WIDE.max_file_size() / 4096, 461 + 509 * (2 + 2 * 1018 + 1018 * 1018));
    }
}
