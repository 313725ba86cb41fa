//! From a number to a group's descriptor or an inode, and the inode's attributes.

use dovetail_block::BlockDevice;

use super::{Block, Volume};
use crate::error::{Corrupt, Damage, Error, Place};
use crate::format::{
    BlockAddr, Extent, Group, GroupFlags, GroupNo, Ino, Inode, Xattr, check_extent,
    parse_inline_xattrs, parse_xattr_block, xattr_block_checksums,
};

impl<D: BlockDevice> Volume<D> {
    /// The descriptor of a group.
    ///
    /// # Errors
    /// A group beyond the last one; a wrong checksum; bitmaps or tables outside the volume;
    /// [`Error::Io`].
    pub fn group(&mut self, group: GroupNo) -> Result<Group, Error> {
        let last = u64::from(self.superblock.group_count()) - 1;
        Corrupt::check_range(Place::Group(group), "the group", group.0, (0, last))?;
        let slot = self.superblock.descriptor_slot(group);
        let table = self.blocks.metadata(BlockAddr(slot.block))?;
        Ok(Group::parse_checked(&table[slot.offset..], group, &self.superblock)?)
    }

    /// The inode of number `ino`.
    ///
    /// # Errors
    /// [`Damage::FreeInode`] for one that is not used; what is wrong with the group's descriptor or
    /// the inode.
    pub fn inode(&mut self, ino: Ino) -> Result<Inode, Error> {
        let (block, offset) = self.inode_place(ino)?;
        let size = usize::from(self.superblock.inode_size);
        let bytes = &block[offset..offset + size];
        if bytes[..2] == [0; 2] {
            return Err(Damage::FreeInode(ino).into());
        }
        Ok(Inode::parse(bytes, ino, &self.superblock)?)
    }

    /// The block of the inode table that holds `ino`, and where.
    fn inode_place(&mut self, ino: Ino) -> Result<(Block, usize), Error> {
        let place = Place::Inode(ino);
        Corrupt::check_range(place, "the number", ino.0, (1, self.superblock.inodes_count.into()))?;
        let (number, index) = self.superblock.inode_group(ino);
        let group = self.group(number)?;
        if group.flags.has(GroupFlags::INODE_UNINIT) && self.superblock.has_group_checksums() {
            return Err(Damage::FreeInode(ino).into());
        }
        let slot = self.superblock.inode_slot(index);
        Ok((self.blocks.metadata(BlockAddr(group.inode_table.0 + slot.block))?, slot.offset))
    }

    /// The extended attributes of `inode`, those in the inode first.
    ///
    /// # Errors
    /// A damaged area or block; [`Error::Io`].
    pub fn xattrs(&mut self, inode: &Inode) -> Result<Vec<Xattr>, Error> {
        let mut list = parse_inline_xattrs(&inode.xattr_area, inode.ino)?;
        if inode.xattr_block.is_some() {
            list.extend(self.xattr_block(inode)?);
        }
        Ok(list)
    }

    fn xattr_block(&mut self, inode: &Inode) -> Result<Vec<Xattr>, Error> {
        let at = inode.xattr_block;
        self.check_address(Place::Inode(inode.ino), "i_file_acl", at)?;
        let block = self.blocks.metadata(at)?;
        if let Some(seed) = self.superblock.checksum_seed() {
            let (found, computed) = xattr_block_checksums(&block, at, seed);
            Corrupt::check_checksum(Place::XattrBlock(at), found, computed)?;
        }
        Ok(parse_xattr_block(&block, at)?)
    }

    /// Checks that `found` lies on the volume, or is a place of its device.
    pub(crate) fn check_address(
        &self,
        place: Place,
        field: &'static str,
        found: BlockAddr,
    ) -> Result<(), Corrupt> {
        if self.superblock.contains(found) || self.blocks.has_place(found.0) {
            return Ok(());
        }
        let (first, last) =
            (u64::from(self.superblock.first_data_block) + 1, self.superblock.blocks_count - 1);
        Err(Damage::Address { place, field, found, first, last }.into())
    }

    /// The same for the blocks of an extent.
    pub(crate) fn check_extent(&self, extent: &Extent, place: Place) -> Result<(), Corrupt> {
        let last = (extent.start.0 + u64::from(extent.len)).saturating_sub(1);
        if self.blocks.has_place(extent.start.0) && self.blocks.has_place(last) {
            return Ok(());
        }
        check_extent(extent, place, &self.superblock)
    }
}
