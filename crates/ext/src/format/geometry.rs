//! Location of groups, descriptors, copies of the superblock, and inodes.

use super::{BlockAddr, Compat, GroupNo, Incompat, Ino, RoCompat, SUPERBLOCK_OFFSET, Superblock};

/// Location of an inode or a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The block; of an inode counted from the start of its group's inode table.
    pub block: u64,
    /// The byte in it.
    pub offset: usize,
}

impl Superblock {
    /// Bytes in a block: 1024, 2048 or 4096.
    pub const fn block_size(&self) -> u32 {
        1 << self.log_block_size
    }

    /// Block groups.
    pub fn group_count(&self) -> u32 {
        let blocks = self.blocks_count.saturating_sub(self.first_data_block.into());
        blocks.div_ceil(u64::from(self.blocks_per_group).max(1)) as u32
    }

    /// The first block of a group.
    pub fn group_start(&self, group: GroupNo) -> BlockAddr {
        BlockAddr(
            u64::from(self.first_data_block)
                + u64::from(group.0) * u64::from(self.blocks_per_group),
        )
    }

    /// Blocks of a group: [`Self::blocks_per_group`], but for the last one.
    pub fn group_blocks(&self, group: GroupNo) -> u32 {
        let left = self.blocks_count.saturating_sub(self.group_start(group).0);
        left.min(self.blocks_per_group.into()) as u32
    }

    /// The group of a block and its place in it.
    pub fn group_of(&self, block: BlockAddr) -> (GroupNo, u32) {
        let block = block.0.saturating_sub(self.first_data_block.into());
        let per_group = u64::from(self.blocks_per_group);
        (GroupNo((block / per_group) as u32), (block % per_group) as u32)
    }

    /// `block` is one that files and metadata may point to: on the volume, and not before its first
    /// block.
    pub fn contains(&self, block: BlockAddr) -> bool {
        block.0 > u64::from(self.first_data_block) && block.0 < self.blocks_count
    }

    /// Group descriptors have checksums: only then do they say what was never written.
    pub fn has_group_checksums(&self) -> bool {
        self.ro_compat.has(RoCompat::METADATA_CSUM) || self.ro_compat.has(RoCompat::GDT_CSUM)
    }

    /// Bytes of a group descriptor.
    pub const fn descriptor_size(&self) -> usize {
        if self.incompat.has(Incompat::BITS_64) { self.desc_size as usize } else { 32 }
    }

    /// Descriptors in a block.
    pub const fn descriptors_per_block(&self) -> u32 {
        self.block_size() / self.descriptor_size() as u32
    }

    /// Blocks that all descriptors take.
    pub fn descriptor_blocks(&self) -> u32 {
        self.group_count().div_ceil(self.descriptors_per_block())
    }

    /// The group has a copy of the superblock.
    pub fn has_superblock(&self, group: GroupNo) -> bool {
        if group.0 == 0 {
            return true;
        }
        if self.compat.has(Compat::SPARSE_SUPER2) {
            return self.backup_groups.contains(&group.0);
        }
        let sparse = self.ro_compat.has(RoCompat::SPARSE_SUPER);
        !sparse || group.0 == 1 || [3, 5, 7].into_iter().any(|base| is_power_of(base, group.0))
    }

    /// Location of the primary copy of a group's descriptor.
    pub fn descriptor_slot(&self, group: GroupNo) -> Slot {
        let per_block = self.descriptors_per_block();
        let (index, offset) =
            (group.0 / per_block, (group.0 % per_block) as usize * self.descriptor_size());
        let block = if self.in_own_groups(index) {
            let first = GroupNo(index * per_block);
            self.group_start(first).0 + u64::from(self.has_superblock(first))
        } else {
            // with clusters group 0 begins at block 0, and the superblock is still at byte 1024
            SUPERBLOCK_OFFSET / u64::from(self.block_size()) + 1 + u64::from(index)
        };
        Slot { block, offset }
    }

    /// Descriptor block `index` lies in the groups that it describes.
    fn in_own_groups(&self, index: u32) -> bool {
        self.incompat.has(Incompat::META_BG) && index >= self.first_meta_bg
    }

    /// Blocks at the start of a group that copies of superblock and descriptors, and what is kept
    /// for more of them, take.
    pub fn base_blocks(&self, group: GroupNo) -> u32 {
        let per_block = self.descriptors_per_block();
        let (index, within) = (group.0 / per_block, group.0 % per_block);
        let superblock = u32::from(self.has_superblock(group));
        if self.in_own_groups(index) {
            return superblock + u32::from([0, 1, per_block - 1].contains(&within));
        }
        let table = match self.incompat.has(Incompat::META_BG) {
            true => self.descriptor_blocks().min(self.first_meta_bg),
            false => self.descriptor_blocks(),
        };
        superblock * (1 + table + u32::from(self.reserved_gdt_blocks))
    }

    /// Inodes in a block of an inode table.
    pub const fn inodes_per_block(&self) -> u32 {
        self.block_size() / self.inode_size as u32
    }

    /// Blocks of a group's inode table.
    pub const fn inode_table_blocks(&self) -> u32 {
        self.inodes_per_group.div_ceil(self.inodes_per_block())
    }

    /// The group of an inode, which is not 0, and its place among the inodes of the group.
    pub const fn inode_group(&self, ino: Ino) -> (GroupNo, u32) {
        let index = ino.0.saturating_sub(1);
        (GroupNo(index / self.inodes_per_group), index % self.inodes_per_group)
    }

    /// Location of the `index`-th inode of a group in the group's table.
    pub const fn inode_slot(&self, index: u32) -> Slot {
        let per_block = self.inodes_per_block();
        let offset = (index % per_block) as usize * self.inode_size as usize;
        Slot { block: (index / per_block) as u64, offset }
    }

    /// Groups whose bitmaps and inode tables lie together.
    pub const fn groups_per_flex(&self) -> u32 {
        if self.incompat.has(Incompat::FLEX_BG) { 1 << (self.log_groups_per_flex & 31) } else { 1 }
    }
}

fn is_power_of(base: u32, n: u32) -> bool {
    let mut power = u64::from(base);
    while power < u64::from(n) {
        power *= u64::from(base);
    }
    power == u64::from(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers() {
        let groups: Vec<u32> =
            (2..130).filter(|&n| [3, 5, 7].iter().any(|&base| is_power_of(base, n))).collect();
        assert_eq!(groups, [3, 5, 7, 9, 25, 27, 49, 81, 125]);
        assert!(!is_power_of(3, u32::MAX));
    }
}
