//! Directories: entries found, added, removed and listed, in the inode or in a hash table of
//! blocks.

use std::sync::Arc;

use dovetail_block::{BlockBytes, Content, Scheduler};
use dovetail_vfs::LeftOut;

use super::F2fs;
use super::data::ADVISE_ENCRYPTED;
use super::io;
use super::pointers::Found;
use crate::error::{Corrupt, Error, Incompatible, Place};
use crate::format::{
    BLOCK, BlockAddr, DENTRIES_IN_BLOCK, DentryBlock, DentryBlockMut, DirEntry, FileType,
    InlineFlags, Nid, dentry_bucket, inline_to_block, name_hash,
};

/// Levels of a directory's hash table at most.
const MAX_DEPTH: u32 = 63;

/// An entry, and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub(super) ino: Nid,
    /// The block of the directory; `None` if the entries lie in the inode.
    block: Option<u64>,
    slot: usize,
}

impl<D: Scheduler> F2fs<D> {
    /// The entries lie in the inode.
    pub(super) fn has_inline_entries(&mut self, dir: Nid) -> Result<bool, Error> {
        Ok(InlineFlags(self.inode(dir)?.i_inline).has(InlineFlags::DENTRY))
    }

    /// Refuses an encrypted directory: its names cannot be read.
    fn check_readable(&mut self, dir: Nid) -> Result<(), Error> {
        let encrypted = self.inode(dir)?.i_advise & ADVISE_ENCRYPTED != 0;
        if encrypted { Err(Incompatible::Encrypted(dir).into()) } else { Ok(()) }
    }

    /// The entry called `name`; "." and ".." are entries as well.
    pub(super) fn find_entry(&mut self, dir: Nid, name: &[u8]) -> Result<Option<Entry>, Error> {
        self.check_readable(dir)?;
        let hash = name_hash(name);
        if self.has_inline_entries(dir)? {
            let entries = DentryBlock::inline(self.inline_area(dir)?, dir);
            let Some(slot) = entries.find(name, hash) else { return Ok(None) };
            let found = entries.entry(slot)?;
            return self.checked_entry(dir, found.ino, None, slot).map(Some);
        }
        let raw = self.inode(dir)?;
        let (depth, level_base) =
            (raw.i_current_depth.get().min(MAX_DEPTH), u32::from(raw.i_dir_level));
        for level in 0..depth {
            for block in dentry_bucket(level, level_base, hash) {
                if let Some(entry) = self.find_in_block(dir, block, name, hash)? {
                    return Ok(Some(entry));
                }
            }
        }
        Ok(None)
    }

    fn find_in_block(
        &mut self,
        dir: Nid,
        block: u64,
        name: &[u8],
        hash: u32,
    ) -> Result<Option<Entry>, Error> {
        let Some(bytes) = self.directory_block(dir, block)? else { return Ok(None) };
        let entries = DentryBlock::block(&bytes, dir);
        let Some(slot) = entries.find(name, hash) else { return Ok(None) };
        let found = entries.entry(slot)?;
        self.checked_entry(dir, found.ino, Some(block), slot).map(Some)
    }

    fn checked_entry(
        &self,
        dir: Nid,
        ino: Nid,
        block: Option<u64>,
        slot: usize,
    ) -> Result<Entry, Error> {
        let last = u64::from(self.nat.max_nid()) - 1;
        Corrupt::check_range(Place::Directory(dir), "an entry's ino", ino.0, (3, last))?;
        Ok(Entry { ino, block, slot })
    }

    /// A block of the directory; `None` for a hole.
    fn directory_block(&mut self, dir: Nid, block: u64) -> Result<Option<Arc<BlockBytes>>, Error> {
        if let Some(Content::Bytes(bytes)) = self.pages.get(dir.0.into(), block) {
            return Ok(Some(Arc::clone(bytes)));
        }
        let Found::Pointer(pointer) = self.find_pointer(dir, block)? else { return Ok(None) };
        if pointer.address == BlockAddr::NULL {
            return Ok(None);
        }
        let content = self.read_page(dir, block)?;
        Ok(Some(io::bytes(content)))
    }

    /// Names inode `ino` in the directory. That the name is not taken is the caller's to know.
    ///
    /// # Errors
    /// [`Error::NoSpace`]; then nothing has changed.
    pub(super) fn add_entry(
        &mut self,
        dir: Nid,
        name: &[u8],
        ino: Nid,
        kind: FileType,
    ) -> Result<(), Error> {
        let hash = name_hash(name);
        if self.has_inline_entries(dir)? {
            let area = self.edit_inline_area(dir)?;
            if DentryBlockMut::inline(area).insert(name, hash, ino, kind).is_some() {
                return Ok(());
            }
            self.entries_to_block(dir)?;
        }
        for level in 0..MAX_DEPTH {
            let base = u32::from(self.inode(dir)?.i_dir_level);
            for block in dentry_bucket(level, base, hash) {
                if self.add_in_block(dir, block, (name, hash, ino, kind))? {
                    let raw = self.edit_inode(dir)?;
                    raw.i_current_depth.set(raw.i_current_depth.get().max(level + 1));
                    return Ok(());
                }
            }
        }
        Err(Error::NoSpace)
    }

    fn add_in_block(
        &mut self,
        dir: Nid,
        block: u64,
        entry: (&[u8], u32, Nid, FileType),
    ) -> Result<bool, Error> {
        let (name, hash, ino, kind) = entry;
        match self.directory_block(dir, block)? {
            Some(mut bytes) => {
                // looked at before it is copied: most blocks on the way are full
                if !DentryBlock::block(&bytes, dir).has_room(name.len()) {
                    return Ok(false);
                }
                DentryBlockMut::block(Arc::make_mut(&mut bytes)).insert(name, hash, ino, kind);
                self.write_directory_block(dir, block, bytes)?;
            }
            None => {
                let mut bytes = [0; BLOCK];
                DentryBlockMut::block(&mut bytes).insert(name, hash, ino, kind);
                self.write_directory_block(dir, block, Arc::new(bytes))?;
            }
        }
        let end = (block + 1) * BLOCK as u64;
        if self.inode(dir)?.i_size.get() < end {
            self.edit_inode(dir)?.i_size.set(end);
        }
        Ok(true)
    }

    fn write_directory_block(
        &mut self,
        dir: Nid,
        block: u64,
        bytes: Arc<BlockBytes>,
    ) -> Result<(), Error> {
        self.write_page(dir, block, Content::Bytes(bytes))?;
        self.dirty_dents.insert(dir);
        Ok(())
    }

    /// Moves the entries out of the inode into block 0, where slots keep their numbers. With hash
    /// levels left out (`i_dir_level`) each entry finds its own place.
    fn entries_to_block(&mut self, dir: Nid) -> Result<(), Error> {
        let area = self.inline_area(dir)?.to_vec();
        let level_base = self.inode(dir)?.i_dir_level;
        // spread over levels, each entry may need a block, and that a node; a half of them must not
        // be lost
        let most =
            if level_base > 0 { 2 * DentryBlock::inline(&area, dir).entries().count() } else { 1 };
        self.check_free_blocks(most as u64)?;
        self.edit_inline_area(dir)?.fill(0);
        let raw = self.edit_inode(dir)?;
        raw.i_inline &= !InlineFlags::DENTRY.0;
        raw.i_size.set(0);
        raw.i_current_depth.set(0);
        if level_base > 0 {
            for entry in DentryBlock::inline(&area, dir).entries() {
                let entry = entry?;
                self.add_entry(dir, &entry.name, entry.ino, entry.file_type)?;
            }
            return Ok(());
        }
        raw.i_current_depth.set(1);
        raw.i_size.set(BLOCK as u64);
        self.write_directory_block(dir, 0, Arc::new(inline_to_block(&area)))
    }

    /// Takes an entry away; a block without entries becomes a hole.
    pub(super) fn remove_entry(&mut self, dir: Nid, entry: &Entry) -> Result<(), Error> {
        self.since.note_changed_dir(dir);
        let Some(block) = entry.block else {
            DentryBlockMut::inline(self.edit_inline_area(dir)?).remove(entry.slot);
            return Ok(());
        };
        let Some(mut bytes) = self.directory_block(dir, block)? else { return Ok(()) };
        let mut entries = DentryBlockMut::block(Arc::make_mut(&mut bytes));
        entries.remove(entry.slot);
        if entries.is_empty() {
            return self.punch_blocks(dir, block, block + 1);
        }
        self.write_directory_block(dir, block, bytes)
    }

    /// Makes an entry name another inode.
    pub(super) fn set_entry(
        &mut self,
        dir: Nid,
        entry: &Entry,
        ino: Nid,
        kind: FileType,
    ) -> Result<(), Error> {
        let Some(block) = entry.block else {
            DentryBlockMut::inline(self.edit_inline_area(dir)?).set_entry(entry.slot, ino, kind);
            return Ok(());
        };
        let Some(mut bytes) = self.directory_block(dir, block)? else { return Ok(()) };
        DentryBlockMut::block(Arc::make_mut(&mut bytes)).set_entry(entry.slot, ino, kind);
        self.write_directory_block(dir, block, bytes)
    }

    /// Only "." and ".." are left. What is no entry may have been one: a directory with damage is
    /// not taken away.
    pub(super) fn is_empty_dir(&mut self, dir: Nid) -> Result<bool, Error> {
        let (mut empty, mut damage) = (true, None);
        self.list(dir, 0, &mut |entry| {
            match entry {
                Ok((_, entry)) => empty = entry.is_dot(),
                Err(error) => damage = Some(error),
            }
            empty && damage.is_none()
        })?;
        damage.map_or(Ok(empty), |error| Err(error.into()))
    }

    /// Collects what a listing leaves out: the errors of [`Self::list`], and repeated "." and "..".
    pub(super) fn left_out_of(&mut self, dir: Nid) -> Result<LeftOut, Error> {
        let (mut left, mut dots) = (LeftOut::default(), Vec::new());
        self.list(dir, 0, &mut |entry| {
            match entry {
                Ok((_, entry)) if entry.is_dot() && dots.contains(&entry.name) => {
                    left.push(Corrupt::FurtherDot { dir, name: dovetail_vfs::shown(&entry.name) });
                }
                Ok((_, entry)) => dots.extend(entry.is_dot().then_some(entry.name)),
                Err(error) => left.push(error),
            }
            true
        })?;
        Ok(left)
    }

    /// Calls `found` for each entry from place `cookie` on, with the place after it, and with what
    /// cannot be an entry, until that returns `false`.
    pub(super) fn list(
        &mut self,
        dir: Nid,
        cookie: u64,
        found: &mut dyn FnMut(Result<(u64, DirEntry), Corrupt>) -> bool,
    ) -> Result<(), Error> {
        self.check_readable(dir)?;
        let slots = DENTRIES_IN_BLOCK as u64;
        if self.has_inline_entries(dir)? {
            let area = self.inline_area(dir)?;
            for entry in DentryBlock::inline(area, dir).entries_from(cookie.min(slots) as usize) {
                if !found(entry.map(|(slot, entry)| (slot as u64 + 1, entry))) {
                    break;
                }
            }
            return Ok(());
        }
        let end = self.inode(dir)?.i_size.get().div_ceil(BLOCK as u64);
        let mut from = cookie / slots;
        let mut slot = (cookie % slots) as usize;
        while let Some((block, _)) = self.next_mapped(dir, from, end)? {
            let first = if block == from { slot } else { 0 };
            let Some(bytes) = self.directory_block(dir, block)? else { break };
            for entry in DentryBlock::block(&bytes, dir).entries_from(first) {
                if !found(entry.map(|(slot, entry)| (block * slots + slot as u64 + 1, entry))) {
                    return Ok(());
                }
            }
            (from, slot) = (block + 1, 0);
        }
        Ok(())
    }
}
