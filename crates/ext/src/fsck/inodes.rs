//! Inodes: all of them, group by group.

use dovetail_block::BlockDevice;

use super::{Checker, Finding, Used};
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BlockAddr, Compat, FileType, Group, GroupFlags, GroupNo, Incompat, Ino, Inode, InodeFlags,
    check_block_hashes, check_inline_hashes, parse_inline_xattrs, parse_xattr_block, vacant_fields,
    xattr_block_checksums, xattr_block_header,
};

impl<D: BlockDevice> Checker<D> {
    pub(super) fn check_inodes(&mut self) -> Result<(), Error> {
        let groups: Vec<_> = self.groups.iter().map(|(number, group)| (*number, *group)).collect();
        for (number, group) in groups {
            self.check_table(number, &group)?;
        }
        Ok(())
    }

    /// Checks the inodes of a group. Those at the end of its table that were never used are not
    /// read if groups have checksums.
    fn check_table(&mut self, number: GroupNo, group: &Group) -> Result<(), Error> {
        let per_group = self.volume.superblock.inodes_per_group;
        let mut count = per_group;
        if self.volume.superblock.has_group_checksums() {
            if group.itable_unused > per_group {
                let (field, found) = ("bg_itable_unused", group.itable_unused);
                self.found(Finding::GroupCount {
                    group: number,
                    field,
                    found,
                    expected: per_group,
                });
            }
            let skip = group.flags.has(GroupFlags::INODE_UNINIT) || group.itable_unused > per_group;
            count = if skip { 0 } else { per_group - group.itable_unused };
        }
        for index in 0..count {
            let slot = self.volume.superblock.inode_slot(index);
            let block = self.volume.blocks.metadata(BlockAddr(group.inode_table.0 + slot.block))?;
            let bytes =
                &block[slot.offset..slot.offset + usize::from(self.volume.superblock.inode_size)];
            let ino = Ino(number.0 * per_group + index + 1);
            if bytes[..28].iter().any(|&byte| byte != 0) {
                self.check_inode(bytes, ino)?;
            }
        }
        Ok(())
    }

    fn check_inode(&mut self, bytes: &[u8], ino: Ino) -> Result<(), Error> {
        let superblock = self.volume.superblock.clone();
        let reserved = ino < superblock.first_ino && ino != Ino::ROOT;
        let Ok(inode) = Inode::parse_unchecked(bytes, ino, &superblock) else {
            self.decoded(Inode::parse_unchecked(bytes, ino, &superblock));
            return Ok(());
        };
        let orphan = self.orphans.contains(&ino);
        if inode.links == 0 && !orphan {
            if inode.mode != 0 && inode.dtime == 0 && !reserved {
                self.found(Finding::NoDeletionTime { ino });
            }
            if reserved {
                // it is in use all the same
                self.decoded(Inode::parse(bytes, ino, &superblock));
            }
            return Ok(());
        }
        self.decoded(Inode::parse(bytes, ino, &superblock));
        self.report.counts.inodes += 1;
        let (mode, links) = (inode.mode, inode.links);
        self.inodes.insert(
            ino,
            Used {
                mode,
                links,
                is_indexed: inode.flags.has(InodeFlags::INDEX),
                found: 0,
                parent: Ino::NONE,
                dot_dot: Ino::NONE,
            },
        );
        if inode.dtime != 0 && !orphan {
            self.found(Finding::DeletionTime { ino, found: inode.dtime });
        }
        if inode.file_type() == FileType::UNKNOWN {
            self.found(Finding::Mode { ino, found: inode.mode });
            return Ok(());
        }
        if !reserved {
            for (field, found) in vacant_fields(bytes, &superblock) {
                if found != 0 {
                    self.found(Finding::Vacant { ino, field, found });
                }
            }
        }
        self.check_flags(&inode);
        self.check_content(&inode)
    }

    fn check_flags(&mut self, inode: &Inode) {
        let superblock = &self.volume.superblock;
        let index = inode.flags.has(InodeFlags::INDEX);
        let extents = inode.flags.has(InodeFlags::EXTENTS);
        let wrong = [
            (extents && !superblock.incompat.has(Incompat::EXTENTS), "extents"),
            (
                index && !(inode.is_dir() && superblock.compat.has(Compat::DIR_INDEX)),
                "indexed directory",
            ),
            (inode.flags.has(InodeFlags::INLINE_DATA), "inline data"),
        ];
        for what in wrong.into_iter().filter_map(|(wrong, what)| wrong.then_some(what)) {
            self.found(Finding::Flags { ino: inode.ino, what });
        }
    }

    fn check_content(&mut self, inode: &Inode) -> Result<(), Error> {
        let xattr_blocks = self.check_xattrs(inode)?;
        let blocks = match inode.file_type() {
            _ if inode.ino == Ino::RESIZE => self.check_resize_inode(inode)?,
            FileType::SYMLINK if inode.is_fast_symlink(&self.volume.superblock) => Some(0),
            FileType::REGULAR | FileType::DIRECTORY | FileType::SYMLINK => {
                self.check_blocks(inode)?
            }
            _ => Some(0),
        };
        if inode.file_type() == FileType::SYMLINK {
            self.check_target(inode)?;
        }
        let per_block = u64::from(self.volume.superblock.block_size()) / 512;
        let expected = blocks.map(|blocks| (blocks + xattr_blocks) * per_block);
        if let Some(expected) = expected.filter(|&expected| expected != inode.sectors) {
            self.found(Finding::Sectors { ino: inode.ino, found: inode.sectors, expected });
        }
        Ok(())
    }

    /// The target has no NUL, and there is one at its end.
    fn check_target(&mut self, inode: &Inode) -> Result<(), Error> {
        let target = self.volume.read_link(inode);
        let Some(target) = self.sound(target)? else { return Ok(()) };
        if target.contains(&0) {
            self.found(Finding::LinkTarget { ino: inode.ino });
        }
        Ok(())
    }

    /// Attributes in the inode and in a block; says how many blocks there are.
    fn check_xattrs(&mut self, inode: &Inode) -> Result<u64, Error> {
        self.decoded(parse_inline_xattrs(&inode.xattr_area, inode.ino));
        self.decoded(check_inline_hashes(&inode.xattr_area, inode.ino));
        let at = inode.xattr_block;
        if !at.is_some() {
            return Ok(0);
        }
        let place = Place::Inode(inode.ino);
        if self.decoded(self.volume.check_address(place, "i_file_acl", at)).is_none() {
            return Ok(0);
        }
        if let Some((_, used)) = self.xattr_blocks.get_mut(&at) {
            *used += 1;
            return Ok(1);
        }
        self.claim(at.0, 1, || format!("the attributes of inode {}", inode.ino));
        let block = self.volume.blocks.metadata(at)?;
        self.xattr_blocks.insert(at, (xattr_block_header(&block).refcount, 1));
        if let Some(seed) = self.volume.superblock.checksum_seed() {
            let (found, computed) = xattr_block_checksums(&block, at, seed);
            self.decoded(Corrupt::check_checksum(Place::XattrBlock(at), found, computed));
        }
        self.decoded(parse_xattr_block(&block, at));
        self.decoded(check_block_hashes(&block, at));
        Ok(1)
    }
}
