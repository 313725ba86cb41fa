//! Attributes and content of inodes: what stat shows, setattr changes, read and write carry.

use std::ops::Range;

use dovetail_block::{BlockBytes, Content, Scheduler};
use dovetail_vfs::kit::{Names, PageContent, PageWrite, WriteData};
use dovetail_vfs::mode::{S_IALLUGO, S_IFDIR, S_IFREG, is_device, kind};
use dovetail_vfs::{Attr, Caller, Error, Fallocate, Ino, SetAttr, Timestamp};

use super::F2fs;
use super::data::{ADVISE_ENCRYPTED, ADVISE_KEEP_SIZE, ADVISE_VERITY};
use super::names::marks_of;
use super::pointers::Found;
use crate::error::{Damage, Error as Failure};
use crate::format::{BLOCK, BlockAddr, Features, InodeFlags, Nid, RawInode, u32_at};

const BLOCK_BYTES: u64 = BLOCK as u64;

fn check_regular(raw: &RawInode) -> Result<(), Error> {
    match kind(raw.i_mode.get()) {
        S_IFREG => Ok(()),
        S_IFDIR => Err(Error::IsADirectory),
        _ => Err(Error::Invalid("only regular files have content")),
    }
}

/// Refuses to change what is not kept right, or must not change.
fn check_changeable(raw: &RawInode) -> Result<(), Error> {
    marks_of(raw).check_none()?;
    let (flags, advise) = (raw.i_flags.get(), raw.i_advise);
    for (found, what) in [
        (flags & InodeFlags::COMPRESSED.0 != 0, "writing to compressed files"),
        (advise & ADVISE_ENCRYPTED != 0, "writing to encrypted files"),
        (advise & ADVISE_VERITY != 0, "writing to verity files"),
    ] {
        if found {
            return Err(Error::Unsupported(what.into()));
        }
    }
    Ok(())
}

impl<D: Scheduler> F2fs<D> {
    pub(super) fn attr(&mut self, ino: Nid) -> Result<Attr, Failure> {
        self.load_node(ino, ino, 0)?;
        let node = self.nodes.peek(ino).ok_or(Damage::NoNode(ino))?;
        Ok(self.attr_of(ino, &node.block))
    }

    pub(super) fn attr_of(&self, ino: Nid, block: &BlockBytes) -> Attr {
        let orphan_device = self.orphans.device(ino);
        let raw = RawInode::of(block);
        let at = raw.geometry(self.superblock.layout()).pointer_at(0);
        let time =
            |seconds: u64, nanoseconds: u32| Timestamp { seconds: seconds as i64, nanoseconds };
        let mode = raw.i_mode.get();
        let inline = if raw.i_inline & 0x02 != 0 { raw.i_size.get().div_ceil(512) } else { 0 };
        Attr {
            ino: Ino(ino.0.into()),
            mode,
            links: raw.i_links.get(),
            uid: raw.i_uid.get(),
            gid: raw.i_gid.get(),
            rdev: orphan_device.unwrap_or_else(|| device_number(block, at, raw.i_mode.get())),
            size: raw.i_size.get(),
            blocks: raw
                .i_blocks
                .get()
                .saturating_sub(1)
                .saturating_mul(BLOCK_BYTES / 512)
                .saturating_add(inline),
            atime: time(raw.i_atime.get(), raw.i_atime_nsec.get()),
            mtime: time(raw.i_mtime.get(), raw.i_mtime_nsec.get()),
            ctime: time(raw.i_ctime.get(), raw.i_ctime_nsec.get()),
            generation: raw.i_generation.get(),
        }
    }

    pub(super) fn change_attributes(
        &mut self,
        caller: &Caller,
        ino: Nid,
        changes: &SetAttr,
    ) -> Result<(), Error> {
        self.marks(ino)?.check_none()?;
        if let Some(size) = changes.size {
            self.set_size(ino, size)?;
        }
        let raw = self.edit_inode(ino)?;
        if let Some(mode) = changes.mode {
            raw.i_mode.set(kind(raw.i_mode.get()) | (mode & S_IALLUGO));
        }
        if let Some(uid) = changes.uid {
            raw.i_uid.set(uid);
        }
        if let Some(gid) = changes.gid {
            raw.i_gid.set(gid);
        }
        if let Some(time) = changes.atime {
            set_atime(raw, time);
        }
        if let Some(time) = changes.mtime.or(changes.size.map(|_| caller.now)) {
            set_mtime(raw, time);
        }
        set_ctime(raw, changes.ctime.unwrap_or(caller.now));
        Ok(())
    }

    /// Content changed now.
    pub(super) fn touch(&mut self, ino: Nid, now: Timestamp) -> Result<(), Failure> {
        let raw = self.edit_inode(ino)?;
        set_mtime(raw, now);
        set_ctime(raw, now);
        Ok(())
    }

    /// Content of a file was written now. With `lazytime` that alone is no reason for an fdatasync
    /// to write the inode; within one tick of the clock it is no change.
    fn touch_lazily(&mut self, ino: Nid, now: Timestamp) -> Result<(), Failure> {
        self.note_change(ino);
        if has_times(self.inode(ino)?, now) {
            self.nodes.count_edit();
            return Ok(());
        }
        let slot = self.load_node(ino, ino, 0)?;
        let others = self.nodes.is_dirty_beyond_times(ino);
        let raw = RawInode::of_mut(self.edit_at(slot));
        set_mtime(raw, now);
        set_ctime(raw, now);
        if self.options.lazytime && !others {
            self.nodes.note_times_only(ino);
        }
        Ok(())
    }

    pub(super) fn check_regular(&mut self, ino: Nid) -> Result<(), Error> {
        check_regular(self.inode(ino)?)
    }

    /// Checks that it is a regular file that may change.
    fn check_file(&mut self, ino: Nid) -> Result<(), Error> {
        let raw = self.inode(ino)?;
        check_regular(raw)?;
        check_changeable(raw)
    }

    /// Checks that the file may be written up to byte `end`.
    pub(super) fn check_write(&mut self, ino: Nid, end: Option<u64>) -> Result<(), Error> {
        self.check_file(ino)?;
        self.check_end(end).map(drop)
    }

    /// The largest file that the kernel allows leaves the inode's own pointers out (Linux 6.1).
    fn check_end(&self, end: Option<u64>) -> Result<u64, Error> {
        let most = self.superblock.variant.write_limit();
        end.filter(|&end| end <= most).ok_or(Error::FileTooBig)
    }

    /// Cuts the content off, or continues it with a hole.
    fn set_size(&mut self, ino: Nid, size: u64) -> Result<(), Error> {
        self.check_file(ino)?;
        self.check_end(Some(size))?;
        let old = self.inode(ino)?.i_size.get();
        if self.has_inline_data(ino)? {
            if size <= self.inline_capacity(ino)? {
                self.cut_inline(ino, size)?;
                self.edit_inode(ino)?.i_size.set(size);
                return Ok(());
            }
            self.convert_inline(ino)?;
        }
        if size <= old {
            self.truncate_blocks(ino, size.div_ceil(BLOCK_BYTES))?;
        }
        self.zero_behind(ino, size.min(old))?;
        let raw = self.edit_inode(ino)?;
        raw.i_size.set(size);
        raw.i_advise &= !ADVISE_KEEP_SIZE;
        Ok(())
    }

    pub(super) fn read_content(
        &mut self,
        ino: Nid,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, Error> {
        let raw = self.inode(ino)?;
        if raw.i_advise & ADVISE_ENCRYPTED != 0 {
            return Err(Error::Unsupported("reading encrypted files".into()));
        }
        let len = raw.i_size.get().saturating_sub(offset).min(into.len() as u64) as usize;
        if len == 0 {
            return Ok(0);
        }
        let into = &mut into[..len];
        if self.has_inline_data(ino)? {
            let start = offset as usize;
            into.copy_from_slice(&self.inline_area(ino)?[start..start + len]);
            return Ok(len);
        }
        let end = offset + len as u64;
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            // what is read ahead must still be there when it is copied
            let ahead = end.min(at.next_multiple_of(BLOCK_BYTES) + (1 << 20)).div_ceil(BLOCK_BYTES);
            self.read_ahead(ino, at / BLOCK_BYTES..ahead)?;
            while done < len && (offset + done as u64) / BLOCK_BYTES < ahead {
                done += self.copy_page(ino, offset + done as u64, &mut into[done..])?;
            }
        }
        Ok(len)
    }

    /// Copies from byte `offset` to the end of its page, or of `into`.
    fn copy_page(&mut self, ino: Nid, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let start = (offset % BLOCK_BYTES) as usize;
        let len = into.len().min(BLOCK - start);
        match self.read_page(ino, offset / BLOCK_BYTES)? {
            Content::Bytes(bytes) => into[..len].copy_from_slice(&bytes[start..start + len]),
            _ => into[..len].fill(0),
        }
        Ok(len)
    }

    /// Writes content, of a mount or of a simulation: into the inode as long as it fits there, else
    /// into pages.
    pub(super) fn write_content(
        &mut self,
        caller: &Caller,
        ino: Nid,
        offset: u64,
        data: WriteData<'_>,
    ) -> Result<(), Error> {
        if data.is_empty() {
            return self.check_file(ino);
        }
        let end = self.begin_write(caller, ino, offset, data.len())?;
        if self.has_inline_data(ino)? {
            if end <= self.inline_capacity(ino)? {
                self.write_inline(ino, offset, data)?;
                return Ok(self.grow_to(ino, end)?);
            }
            self.convert_inline(ino)?;
        }
        let size = self.inode(ino)?.i_size.get();
        if offset > size {
            self.zero_behind(ino, size)?;
        }
        if let Some([before, pages, after]) = self.past_cache(ino, offset, data)? {
            self.write_in_pages(ino, before.0, WriteData::Bytes(before.1), size)?;
            self.write_past_cache(ino, pages.0 / BLOCK_BYTES, pages.1)?;
            return self.write_in_pages(ino, after.0, WriteData::Bytes(after.1), size);
        }
        self.write_in_pages(ino, offset, data, size)
    }

    /// Writes content into pages of a file that had `size` bytes before the call.
    fn write_in_pages(
        &mut self,
        ino: Nid,
        offset: u64,
        data: WriteData<'_>,
        size: u64,
    ) -> Result<(), Error> {
        let mut dirty = self.nodes.dirty_count();
        for page in data.pages(offset) {
            let end = page.end();
            self.write_in_page(ino, page, size)?;
            self.grow_to(ino, end)?;
            self.look_for_node_headroom(&mut dirty)?;
        }
        Ok(())
    }

    /// Checks that the file may be written, and changes its times; returns the byte behind the last
    /// one.
    pub(super) fn begin_write(
        &mut self,
        caller: &Caller,
        ino: Nid,
        offset: u64,
        len: u64,
    ) -> Result<u64, Error> {
        self.check_file(ino)?;
        let end = self.check_end(offset.checked_add(len))?;
        self.touch_lazily(ino, caller.now)?;
        Ok(end)
    }

    /// Writes a page or a part of one in a file that had `size` bytes before the call.
    fn write_in_page(&mut self, ino: Nid, page: PageWrite<'_>, size: u64) -> Result<(), Failure> {
        let (keeps, index, start) = (page.keeps_bytes(size), page.index, page.start);
        match page.content {
            PageContent::Whole(content) => self.write_page(ino, index, content),
            PageContent::NamedPart(content) => {
                if keeps {
                    self.read_page(ino, index)?;
                }
                self.write_page(ino, index, content.clone())
            }
            PageContent::Part(bytes) => {
                self.reserve(ino, index)?;
                self.read_page_to_edit(ino, index)?[start..start + bytes.len()]
                    .copy_from_slice(bytes);
                self.pages.mark_dirty(ino.0.into(), index);
                Ok(())
            }
        }
    }

    /// A page of the file in memory, to be changed; marking it dirty is the caller's.
    pub(super) fn read_page_to_edit(
        &mut self,
        ino: Nid,
        index: u64,
    ) -> Result<&mut BlockBytes, Failure> {
        let content = self.read_page(ino, index)?;
        self.pages.insert_clean(ino.0.into(), index, content);
        self.pages.bytes_mut(ino.0.into(), index).ok_or(Failure::NoSpace)
    }

    /// Zeros the rest of the last block behind the file's end, before the file grows. Bytes are
    /// left there if they were written in place and a power cut then took the size back.
    fn zero_behind(&mut self, ino: Nid, size: u64) -> Result<(), Failure> {
        self.zero_in_page(ino, size, size.next_multiple_of(BLOCK_BYTES))
    }

    pub(super) fn grow_to(&mut self, ino: Nid, end: u64) -> Result<(), Failure> {
        if self.inode(ino)?.i_size.get() < end {
            self.edit_inode(ino)?.i_size.set(end);
        }
        Ok(())
    }

    pub(super) fn allocate_range(
        &mut self,
        caller: &Caller,
        ino: Nid,
        how: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<(), Error> {
        self.check_file(ino)?;
        if len == 0 {
            return Err(Error::Invalid("the range is empty"));
        }
        let end = self.check_end(offset.checked_add(len))?;
        if how == Fallocate::PunchHole && offset >= self.inode(ino)?.i_size.get() {
            return Ok(());
        }
        self.convert_inline(ino)?;
        let (zeroes, reserves, keep_size) = match how {
            Fallocate::Reserve { keep_size } => (false, true, keep_size),
            Fallocate::PunchHole => (true, false, true),
            Fallocate::ZeroRange { keep_size } => (true, true, keep_size),
        };
        if zeroes {
            self.zero_range(ino, offset, end)?;
        }
        let (mut end, mut outcome) = (end, Ok(()));
        if reserves {
            let blocks = offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES);
            if let Err((reached, error)) = self.reserve_range(ino, blocks) {
                // as Linux: what was reserved until then belongs to the file
                (end, outcome) = (end.min(reached * BLOCK_BYTES), Err(error));
            }
        }
        if end <= offset {
            return outcome;
        }
        let size = self.inode(ino)?.i_size.get();
        if !keep_size && size < end {
            self.zero_behind(ino, size)?;
            self.grow_to(ino, end)?;
        } else if how != Fallocate::PunchHole && self.inode(ino)?.i_size.get() < end {
            self.edit_inode(ino)?.i_advise |= ADVISE_KEEP_SIZE;
        }
        self.touch(ino, caller.now)?;
        outcome
    }

    /// Reserves blocks in order; an error comes with the first block that has no room.
    fn reserve_range(&mut self, ino: Nid, blocks: Range<u64>) -> Result<(), (u64, Error)> {
        let mut dirty = self.nodes.dirty_count();
        for block in blocks {
            self.reserve(ino, block).map_err(|error| (block, error.into()))?;
            self.look_for_node_headroom(&mut dirty).map_err(|error| (block + 1, error.into()))?;
        }
        Ok(())
    }

    /// The bytes of a range become zeros: whole blocks as holes.
    fn zero_range(&mut self, ino: Nid, offset: u64, end: u64) -> Result<(), Error> {
        let (first, last) = (offset.div_ceil(BLOCK_BYTES), end / BLOCK_BYTES);
        if first > last {
            self.zero_in_page(ino, offset, end)?;
        } else {
            self.zero_in_page(ino, offset, first * BLOCK_BYTES)?;
            self.zero_in_page(ino, last * BLOCK_BYTES, end)?;
            self.punch_blocks(ino, first, last)?;
        }
        Ok(())
    }

    /// The first byte at or after `offset` that is data.
    pub(super) fn next_data(&mut self, ino: Nid, offset: u64) -> Result<u64, Error> {
        let size = self.inode(ino)?.i_size.get();
        if offset >= size {
            return Err(Error::BeyondEnd);
        }
        if self.has_inline_data(ino)? {
            return Ok(offset);
        }
        let end = size.div_ceil(BLOCK_BYTES);
        let mut block = offset / BLOCK_BYTES;
        if self.is_compressed(ino, block)? {
            return Ok(offset);
        }
        while let Some((found, address)) = self.next_mapped(ino, block, end)? {
            if self.holds_data(ino, found, address)? {
                return Ok((found * BLOCK_BYTES).max(offset));
            }
            block = found + 1;
        }
        Err(Error::BeyondEnd)
    }

    /// The first byte at or after `offset` that is in a hole; the end of the file is one.
    pub(super) fn next_hole(&mut self, ino: Nid, offset: u64) -> Result<u64, Error> {
        let size = self.inode(ino)?.i_size.get();
        if offset >= size {
            return Err(Error::BeyondEnd);
        }
        if self.has_inline_data(ino)? {
            return Ok(size);
        }
        for block in offset / BLOCK_BYTES..size.div_ceil(BLOCK_BYTES) {
            let address = match self.find_pointer(ino, block)? {
                Found::Pointer(pointer) => pointer.address,
                Found::MissingUntil(_) => BlockAddr::NULL,
            };
            if !self.holds_data(ino, block, address)? {
                return Ok((block * BLOCK_BYTES).max(offset));
            }
        }
        Ok(size)
    }

    /// A reserved block holds data once its page was written to; a block of a compressed cluster
    /// does without a pointer.
    fn holds_data(&mut self, ino: Nid, block: u64, address: BlockAddr) -> Result<bool, Failure> {
        let is_own = !address.is_hole() || self.pages.is_dirty(ino.0.into(), block);
        Ok(is_own || self.is_compressed(ino, block)?)
    }
}

fn device_number(block: &BlockBytes, at: usize, mode: u16) -> (u32, u32) {
    if !is_device(mode) {
        return (0, 0);
    }
    match u32_at(block, at) {
        0 => {
            let wide = u32_at(block, at + 4);
            ((wide & 0xF_FF00) >> 8, (wide & 0xFF) | ((wide >> 12) & 0xF_FF00))
        }
        narrow => ((narrow >> 8) & 0xFF, narrow & 0xFF),
    }
}

/// The two words that hold a device's number.
pub(super) fn device_words((major, minor): (u32, u32)) -> [u32; 2] {
    if major < 256 && minor < 256 {
        return [(major << 8) | minor, 0];
    }
    [0, (minor & 0xFF) | (major << 8) | ((minor & !0xFF) << 12)]
}

pub(super) fn set_atime(raw: &mut RawInode, time: Timestamp) {
    raw.i_atime.set(time.seconds as u64);
    raw.i_atime_nsec.set(time.nanoseconds);
}

pub(super) fn set_mtime(raw: &mut RawInode, time: Timestamp) {
    raw.i_mtime.set(time.seconds as u64);
    raw.i_mtime_nsec.set(time.nanoseconds);
}

/// Content and inode changed at that time last.
fn has_times(raw: &RawInode, time: Timestamp) -> bool {
    let (seconds, nanoseconds) = (time.seconds as u64, time.nanoseconds);
    (raw.i_mtime.get(), raw.i_mtime_nsec.get()) == (seconds, nanoseconds)
        && (raw.i_ctime.get(), raw.i_ctime_nsec.get()) == (seconds, nanoseconds)
}

pub(super) fn set_ctime(raw: &mut RawInode, time: Timestamp) {
    raw.i_ctime.set(time.seconds as u64);
    raw.i_ctime_nsec.set(time.nanoseconds);
}

/// The creation time, on a volume that has it.
pub(super) fn set_crtime(raw: &mut RawInode, features: Features, time: Timestamp) {
    if features.has(Features::INODE_CRTIME) {
        raw.extra.i_crtime.set(time.seconds as u64);
        raw.extra.i_crtime_nsec.set(time.nanoseconds);
    }
}
