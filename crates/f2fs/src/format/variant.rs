//! F2FS, or its variant IPLFS: what of the format hangs on the width of a block address.
//!
//! Addresses of F2FS have 4 bytes, those of IPLFS 8. Everything else about nodes is the same:
//! footers, inodes, names, extended attributes, and indirect nodes, which hold nids.

use super::{BlockAddr, Nid};

/// The format of a volume, one of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// F2FS as Linux has it: segments that are cleaned.
    #[default]
    F2fs,
    /// IPLFS (Kim and others, ATC'22): six logs of 2^58 blocks that are only appended to.
    Iplfs,
}

impl Variant {
    /// Bytes of a block address.
    pub const fn address_bytes(self) -> usize {
        match self {
            Self::F2fs => 4,
            Self::Iplfs => 8,
        }
    }

    /// Pointers in a direct node.
    pub const fn direct_pointers(self) -> usize {
        match self {
            Self::F2fs => 1018,
            Self::Iplfs => 509,
        }
    }

    /// Entries in a block of the NAT.
    pub const fn nat_entries_in_block(self) -> u32 {
        match self {
            Self::F2fs => 455,
            Self::Iplfs => 315,
        }
    }

    /// The block of the NAT that covers `nid`, and its entry there.
    pub const fn nat_position(self, nid: Nid) -> (u32, usize) {
        // divisors that are constants make this cheap
        match self {
            Self::F2fs => (nid.0 / 455, (nid.0 % 455) as usize),
            Self::Iplfs => (nid.0 / 315, (nid.0 % 315) as usize),
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

    /// Blocks of a file below the inode's five nids.
    pub(crate) const fn blocks_below_nids(self) -> u64 {
        let (direct, nids) = (self.direct_pointers() as u64, super::NIDS_IN_NODE as u64);
        2 * direct + 2 * direct * nids + direct * nids * nids
    }

    /// The block address at byte `at`; a hole beyond the end.
    pub fn address_at(self, bytes: &[u8], at: usize) -> BlockAddr {
        match self {
            Self::F2fs => BlockAddr::narrow(super::u32_at(bytes, at)),
            Self::Iplfs => BlockAddr(super::u64_at(bytes, at)),
        }
    }

    /// Puts a block address at byte `at`; nothing beyond the end.
    pub fn put_address(self, bytes: &mut [u8], at: usize, address: BlockAddr) {
        let wide = address.0.to_le_bytes();
        let len = self.address_bytes();
        if let Some(to) = bytes.get_mut(at..at + len) {
            to.copy_from_slice(&wide[..len]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_have_the_width_of_the_variant() {
        for (variant, len) in [(Variant::F2fs, 4), (Variant::Iplfs, 8)] {
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
    fn the_largest_file_of_f2fs_is_what_the_kernel_says() {
        assert_eq!(
            Variant::F2fs.max_file_size(),
            (923 + 2 * 1018 + 2 * 1018 * 1018 + 1018 * 1018 * 1018) * 4096
        );
        assert_eq!(Variant::Iplfs.max_file_size() / 4096, 461 + 509 * (2 + 2 * 1018 + 1018 * 1018));
    }
}
