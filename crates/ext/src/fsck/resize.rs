//! The inode that keeps blocks for more descriptors.

use dovetail_block::BlockDevice;

use super::{Checker, Finding};
use crate::error::{Error, Place};
use crate::format::{BlockAddr, GroupNo, Inode, pointer};

impl<D: BlockDevice> Checker<D> {
    /// A double indirect block leads to what is kept in group 0, each of these to what is kept in
    /// its place elsewhere. All but the first belong to the heads of the groups. Says how many
    /// there are.
    pub(super) fn check_resize_inode(&mut self, inode: &Inode) -> Result<Option<u64>, Error> {
        let superblock = self.volume.superblock.clone();
        let top = BlockAddr(inode.pointers()[13].into());
        if self
            .decoded(self.volume.check_address(Place::Pointers(inode.ino), "a pointer", top))
            .is_none()
        {
            return Ok(None);
        }
        self.claim(top.0, 1, || "the inode for resizing".into());
        let backups: Vec<u64> = (1..superblock.group_count())
            .map(GroupNo)
            .filter(|&group| superblock.has_superblock(group))
            .map(|group| superblock.group_start(group).0)
            .collect();
        for (slot, pointer) in
            inode.pointers().into_iter().enumerate().filter(|(slot, _)| *slot != 13)
        {
            self.compare_pointer(BlockAddr(slot as u64), pointer, 0);
        }
        let per_block = superblock.block_size() / 4;
        let first = superblock.group_start(GroupNo(0)).0 + 1;
        let kept = u64::from(superblock.reserved_gdt_blocks);
        let in_use = u64::from(superblock.descriptor_blocks());
        let mut expected = vec![0; per_block as usize];
        for index in in_use..in_use + kept {
            expected[(index % u64::from(per_block)) as usize] = first + index;
            let mut below: Vec<_> = backups.iter().map(|start| start + 1 + index).collect();
            below.resize(per_block as usize, 0);
            self.compare_block(BlockAddr(first + index), &below)?;
        }
        self.compare_block(top, &expected)?;
        Ok(Some(1 + kept * (1 + backups.len() as u64)))
    }

    fn compare_block(&mut self, address: BlockAddr, expected: &[u64]) -> Result<(), Error> {
        let block = self.volume.blocks.metadata(address)?;
        for (slot, expected) in (0..).zip(expected) {
            self.compare_pointer(address, pointer(&block, slot), *expected);
        }
        Ok(())
    }

    /// `address` is the block that the pointer stands in, or its place in the inode.
    fn compare_pointer(&mut self, address: BlockAddr, found: u32, expected: u64) {
        if u64::from(found) != expected {
            self.found(Finding::ResizeInode { address, found, expected: expected as u32 });
        }
    }
}
