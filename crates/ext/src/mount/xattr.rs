//! Extended attributes: behind the inode's fields if all of them fit there, otherwise in a block.
//!
//! A block that other inodes share (kernels do that) is never changed: the inode gets one of its
//! own.

use dovetail_block::Scheduler;
use dovetail_vfs::kit::{Names, XattrNameSpace, XattrRefused};
use dovetail_vfs::{Caller, Error, XattrFlags};

use super::Ext;
use super::meta::Kind;
use crate::error::{Corrupt, Error as Failure, Place};
use crate::format::{
    BlockAddr, Compat, Ino, RoCompat, Xattr, encode_inline_xattrs, encode_xattr_block,
    parse_inline_xattrs, parse_xattr_block, set_xattr_refcount, xattr_block_header,
};

/// Attributes, by where they are.
#[derive(Clone, Debug, Default)]
struct Stored {
    inside: Vec<Xattr>,
    block: Vec<Xattr>,
}

impl<D: Scheduler> Ext<D> {
    fn xattr_kind(&self) -> Kind {
        Kind::Xattrs(self.superblock.checksum_seed())
    }

    fn stored_xattrs(&mut self, ino: Ino) -> Result<Stored, Failure> {
        let inode = self.inode(ino)?;
        let at = inode.xattr_block;
        let inside = parse_inline_xattrs(&inode.xattr_area, ino)?;
        let block = if at.is_some() {
            let kind = self.xattr_kind();
            parse_xattr_block(self.meta(at, kind, Place::XattrBlock(at))?, at)?
        } else {
            Vec::new()
        };
        Ok(Stored { inside, block })
    }

    pub(super) fn xattr_list(&mut self, ino: Ino) -> Result<Vec<Xattr>, Failure> {
        let Stored { mut inside, block } = self.stored_xattrs(ino)?;
        inside.extend(block);
        Ok(inside)
    }

    pub(super) fn xattr(&mut self, ino: Ino, name: &[u8]) -> Result<Vec<u8>, Error> {
        // what the name stands for; an empty list of no entries asks for nothing else
        let wanted = named(name)?;
        let list = self.xattr_list(ino)?;
        let found = list.iter().find(|xattr| same_name(xattr, &wanted));
        found.map(Xattr::system_value).ok_or(Error::NoAttribute)
    }

    pub(super) fn set_xattr(
        &mut self,
        caller: &Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        flags: XattrFlags,
    ) -> Result<(), Error> {
        self.marks(ino)?.check_none()?;
        let Stored { inside, block } = self.stored_xattrs(ino)?;
        let new = Xattr::from_system(name, value)?;
        if new.name.len() > 255 {
            return Err(Error::TooBig);
        }
        let is_there = inside.iter().chain(&block).any(|xattr| same_name(xattr, &new));
        match is_there {
            true if flags.create => return Err(Error::Exists),
            false if flags.replace => return Err(Error::NoAttribute),
            _ => {}
        }
        let in_both = !inside.is_empty() && !block.is_empty();
        let mut list: Vec<Xattr> =
            inside.into_iter().chain(block).filter(|xattr| !same_name(xattr, &new)).collect();
        list.push(new);
        self.check_room_for_few(2)?;
        self.store_xattrs(ino, list, in_both)?;
        self.edit_inode(ino)?.ctime = caller.now;
        Ok(())
    }

    pub(super) fn remove_xattr(
        &mut self,
        caller: &Caller,
        ino: Ino,
        name: &[u8],
    ) -> Result<(), Error> {
        self.marks(ino)?.check_none()?;
        let wanted = named(name)?;
        let Stored { inside, block } = self.stored_xattrs(ino)?;
        let in_both = !inside.is_empty() && !block.is_empty();
        let mut list: Vec<Xattr> = inside.into_iter().chain(block).collect();
        let before = list.len();
        list.retain(|xattr| !same_name(xattr, &wanted));
        if list.len() == before {
            return Err(Error::NoAttribute);
        }
        // a block that other inodes share is not changed
        let at = self.inode(ino)?.xattr_block;
        if at.is_some() && self.refcount(at)? > 1 {
            self.check_room_for_few(2)?;
        }
        self.store_xattrs(ino, list, in_both)?;
        self.edit_inode(ino)?.ctime = caller.now;
        Ok(())
    }

    /// All in the inode, or else all in a block, or else, where they already are in both, as many
    /// as fit in the inode.
    fn store_xattrs(&mut self, ino: Ino, list: Vec<Xattr>, in_both: bool) -> Result<(), Error> {
        if !list.is_empty() {
            self.note_features(Compat::EXT_ATTR, RoCompat(0));
        }
        let room = self.inode(ino)?.xattr_area.len();
        let size = self.block_size();
        if let Ok(area) = encode_inline_xattrs(&list, room) {
            self.edit_inode(ino)?.xattr_area = area;
            return Ok(self.drop_xattr_block(ino)?);
        }
        if let Ok(block) = encode_xattr_block(&list, size) {
            self.write_xattr_block(ino, &block)?;
            self.edit_inode(ino)?.xattr_area = vec![0; room];
            return Ok(());
        }
        if !in_both {
            return Err(Error::NoSpace);
        }
        let (mut inside, mut rest) = (Vec::new(), Vec::new());
        for xattr in list {
            inside.push(xattr);
            if encode_inline_xattrs(&inside, room).is_err() {
                rest.extend(inside.pop());
            }
        }
        let no_space = |_| Error::NoSpace;
        let area = encode_inline_xattrs(&inside, room).map_err(no_space)?;
        let block = encode_xattr_block(&rest, size).map_err(no_space)?;
        self.write_xattr_block(ino, &block)?;
        self.edit_inode(ino)?.xattr_area = area;
        Ok(())
    }

    fn refcount(&mut self, at: BlockAddr) -> Result<u32, Failure> {
        let kind = self.xattr_kind();
        let place = Place::XattrBlock(at);
        let count = xattr_block_header(self.meta(at, kind, place)?).refcount;
        Corrupt::check_range(place, "h_refcount", count, (1, u64::from(u32::MAX)))?;
        Ok(count)
    }

    fn write_xattr_block(&mut self, ino: Ino, bytes: &[u8]) -> Result<(), Failure> {
        let old = self.inode(ino)?.xattr_block;
        let kind = self.xattr_kind();
        if old.is_some() && self.refcount(old)? == 1 {
            self.edit_meta(old, kind, Place::XattrBlock(old))?.copy_from_slice(bytes);
            return Ok(());
        }
        let (group, _) = self.superblock.inode_group(ino);
        let at = self.take_meta(ino, self.superblock.group_start(group).0)?;
        self.drop_xattr_block(ino)?;
        self.new_meta(at, kind).copy_from_slice(bytes);
        self.edit_inode(ino)?.xattr_block = at;
        Ok(())
    }

    /// The inode has no block of attributes any more; the block goes with its last inode.
    pub(super) fn drop_xattr_block(&mut self, ino: Ino) -> Result<(), Failure> {
        let at = self.inode(ino)?.xattr_block;
        if !at.is_some() {
            return Ok(());
        }
        let count = self.refcount(at)?;
        if count > 1 {
            let kind = self.xattr_kind();
            set_xattr_refcount(self.edit_meta(at, kind, Place::XattrBlock(at))?, count - 1);
            let sectors = self.block_size() as u64 / 512;
            let inode = self.edit_inode(ino)?;
            inode.sectors = inode.sectors.saturating_sub(sectors);
        } else {
            self.free_meta(ino, at)?;
        }
        self.edit_inode(ino)?.xattr_block = BlockAddr::NONE;
        Ok(())
    }
}

/// An attribute of this name, without a value.
fn named(name: &[u8]) -> Result<Xattr, Error> {
    let (index, rest) = crate::format::XattrIndex::of_name(name).ok_or(XattrRefused::NameSpace)?;
    Ok(Xattr { index, name: rest, value: Vec::new() })
}

fn same_name(a: &Xattr, b: &Xattr) -> bool {
    a.index == b.index && a.name == b.name
}
