//! Content that lies in the inode itself.

use std::sync::Arc;

use dovetail_block::{Content, Scheduler};
use dovetail_vfs::kit::{PageContent, WriteData};
use rustc_hash::FxHashMap;

use super::F2fs;
use super::data::WritebackReason;
use crate::error::Error;
use crate::format::{BLOCK, InlineFlags, Nid};

/// `i_inline` bit: content was stored in the inode.
pub(super) const DATA_EXISTS: u8 = 0x08;

/// The names of contents that a simulation wrote into inodes, where there is room for bytes only.
/// They last as long as the mount.
#[derive(Debug, Default)]
pub(super) struct InlineNames(FxHashMap<Nid, Content>);

impl InlineNames {
    /// Forgets the content of an inode that is given up.
    pub(super) fn forget(&mut self, ino: Nid) {
        self.0.remove(&ino);
    }
}

impl<D: Scheduler> F2fs<D> {
    /// The content lies in the inode.
    pub(super) fn has_inline_data(&mut self, ino: Nid) -> Result<bool, Error> {
        Ok(InlineFlags(self.inode(ino)?.i_inline).has(InlineFlags::DATA))
    }

    /// Number of bytes that fit in the inode.
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

    /// Writes content into the inode, where it fits: bytes as they are, named content by its name.
    pub(super) fn write_inline(
        &mut self,
        ino: Nid,
        offset: u64,
        data: WriteData<'_>,
    ) -> Result<(), Error> {
        let start = offset as usize;
        for page in data.pages(offset) {
            match page.content {
                PageContent::Part(bytes) => {
                    self.edit_inline_area(ino)?[start..start + bytes.len()].copy_from_slice(bytes);
                    self.inline_names.0.remove(&ino);
                }
                PageContent::NamedPart(content) => {
                    self.inline_names.0.insert(ino, content.clone());
                }
                PageContent::Whole(content) => {
                    self.inline_names.0.insert(ino, content);
                }
            }
        }
        self.edit_inode(ino)?.i_inline |= DATA_EXISTS;
        Ok(())
    }

    /// Makes the bytes from `size` on zeros.
    pub(super) fn cut_inline(&mut self, ino: Nid, size: u64) -> Result<(), Error> {
        self.edit_inline_area(ino)?[size as usize..].fill(0);
        if size == 0 {
            self.inline_names.0.remove(&ino);
        }
        Ok(())
    }

    /// The content as a block of its own.
    pub(super) fn inline_content(&mut self, ino: Nid) -> Result<Content, Error> {
        if let Some(named) = self.inline_names.0.get(&ino) {
            return Ok(named.clone());
        }
        let size = self.inode(ino)?.i_size.get() as usize;
        let area = self.inline_area(ino)?;
        let len = size.min(area.len());
        let mut block = [0; BLOCK];
        block[..len].copy_from_slice(&area[..len]);
        Ok(if len == 0 { Content::Empty } else { Content::Bytes(Arc::new(block)) })
    }

    /// Moves content out of the inode into block 0, since it no longer fits there.
    pub(super) fn convert_inline(&mut self, ino: Nid) -> Result<(), Error> {
        if !self.has_inline_data(ino)? {
            return Ok(());
        }
        let content = self.inline_content(ino)?;
        self.check_free_blocks(1)?;
        self.clear_inline(ino)?;
        self.inline_names.0.remove(&ino);
        if content == Content::Empty {
            return Ok(());
        }
        self.write_page(ino, 0, content)?;
        // the bytes may have been fsynced: the next checkpoint must not find them gone from the
        // inode and nowhere else
        self.write_back(ino, WritebackReason::InCall)
    }

    /// The area becomes pointers, all of them holes.
    pub(super) fn clear_inline(&mut self, ino: Nid) -> Result<(), Error> {
        self.edit_inline_area(ino)?.fill(0);
        self.edit_inode(ino)?.i_inline &= !(InlineFlags::DATA.0 | DATA_EXISTS);
        Ok(())
    }
}
