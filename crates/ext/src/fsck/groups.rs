//! Group descriptors, and the blocks that the format itself takes.

use dovetail_block::BlockDevice;

use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{BlockAddr, GroupNo, Incompat, Inode, RoCompat};

impl<D: BlockDevice> Checker<D> {
    /// Every descriptor is decoded, and what it names is claimed.
    pub(super) fn check_descriptors(&mut self) -> Result<(), Error> {
        let superblock = self.volume.superblock.clone();
        if superblock.first_data_block > 0 {
            self.space.take(0..u64::from(superblock.first_data_block));
        }
        for group in (0..superblock.group_count()).map(GroupNo) {
            let start = superblock.group_start(group).0;
            self.claim(start, superblock.base_blocks(group).into(), || {
                format!("the head of group {group}")
            });
        }
        if superblock.incompat.has(Incompat::MMP) && superblock.mmp_block.0 > 0 {
            self.claim(superblock.mmp_block.0, 1, || "the MMP block".into());
        }
        for group in (0..superblock.group_count()).map(GroupNo) {
            let descriptor = self.volume.group(group);
            let Some(descriptor) = self.sound(descriptor)? else { continue };
            let table_blocks = superblock.inode_table_blocks().into();
            self.claim(descriptor.block_bitmap.0, 1, || {
                format!("the block bitmap of group {group}")
            });
            self.claim(descriptor.inode_bitmap.0, 1, || {
                format!("the inode bitmap of group {group}")
            });
            self.claim(descriptor.inode_table.0, table_blocks, || {
                format!("the inode table of group {group}")
            });
            self.groups.insert(group, descriptor);
        }
        Ok(())
    }

    /// Takes blocks for an owner; those that have one already are a finding.
    pub(super) fn claim(&mut self, start: u64, count: u64, owner: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        self.check_places_held(start, count);
        let shared = self.space.taken(start..start + count).next();
        if let Some(shared) = shared {
            let address = BlockAddr(shared.start);
            self.found(Finding::BlockShared { address, what: owner() });
        }
        self.space.take(start..start + count);
    }

    /// Takes blocks for what a file holds. With the feature shared_blocks other files may hold the
    /// same, but not directories or inodes of the file system's own.
    pub(super) fn claim_content(&mut self, inode: &Inode, start: u64, count: u64) {
        let owner = || format!("inode {}", inode.ino);
        let superblock = &self.volume.superblock;
        let is_own = inode.ino < superblock.first_ino || inode.ino == superblock.orphan_file_ino;
        let may_share = superblock.ro_compat.has(RoCompat::SHARED_BLOCKS);
        if inode.is_dir() || is_own || !may_share {
            return self.claim(start, count, owner);
        }
        self.check_places_held(start, count);
        let blocks = start..start + count;
        let other = self.space.taken(blocks.clone()).find_map(|taken| self.content.find(taken, 1));
        if let Some(address) = other.map(BlockAddr) {
            self.found(Finding::BlockShared { address, what: owner() });
        }
        self.space.take(blocks.clone());
        self.content.take(blocks);
    }
}
