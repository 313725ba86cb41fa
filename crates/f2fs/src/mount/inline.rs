//! Content that lies in the inode itself.

use std::sync::Arc;

use dovetail_block::{Content, Scheduler};

use super::F2fs;
use super::data::WritebackReason;
use crate::error::Error;
use crate::format::{BLOCK, InlineFlags, Nid};

/// `i_inline` bit: content was stored in the inode.
pub(super) const DATA_EXISTS: u8 = 0x08;

impl<D: Scheduler> F2fs<D> {
    /// The content lies in the inode.
    pub(super) fn has_inline_data(&mut self, ino: Nid) -> Result<bool, Error> {
        Ok(InlineFlags(self.inode(ino)?.i_inline).has(InlineFlags::DATA))
    }

    /// How many bytes fit in the inode.
    pub(super) fn inline_capacity(&mut self, ino: Nid) -> Result<u64, Error> {
        Ok(self.geometry(ino)?.inline_area().len() as u64)
    }

    /// The bytes in the inode, all of the area.
    pub(super) fn inline_area(&mut self, ino: Nid) -> Result<&[u8], Error> {
        let area = self.geometry(ino)?.inline_area();
        Ok(&self.cached(ino)?[area])
    }

    /// The bytes in the inode, to be changed.
    pub(super) fn edit_inline_area(&mut self, ino: Nid) -> Result<&mut [u8], Error> {
        let area = self.geometry(ino)?.inline_area();
        Ok(&mut self.edit_node(ino)?[area])
    }

    /// Writes bytes into the inode; they must fit.
    pub(super) fn write_inline(&mut self, ino: Nid, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let area = self.edit_inline_area(ino)?;
        area[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        self.edit_inode(ino)?.i_inline |= DATA_EXISTS;
        Ok(())
    }

    /// Moves content out of the inode into block 0, since it no longer fits there.
    pub(super) fn convert_inline(&mut self, ino: Nid) -> Result<(), Error> {
        if !self.has_inline_data(ino)? {
            return Ok(());
        }
        let size = self.inode(ino)?.i_size.get() as usize;
        let mut block = [0; BLOCK];
        let area = self.inline_area(ino)?;
        let len = size.min(area.len());
        block[..len].copy_from_slice(&area[..len]);
        self.check_free_blocks(1)?;
        self.clear_inline(ino)?;
        if len == 0 {
            return Ok(());
        }
        self.write_page(ino, 0, Content::Bytes(Arc::new(block)))?;
        // the bytes may have been fsynced: the next checkpoint must not find them gone from the inode and nowhere else
        self.write_back(ino, WritebackReason::Background)
    }

    /// The area becomes pointers, all of them holes.
    pub(super) fn clear_inline(&mut self, ino: Nid) -> Result<(), Error> {
        self.edit_inline_area(ino)?.fill(0);
        self.edit_inode(ino)?.i_inline &= !(InlineFlags::DATA.0 | DATA_EXISTS);
        Ok(())
    }
}
