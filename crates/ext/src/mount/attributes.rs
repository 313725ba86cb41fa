//! Attributes and content of inodes: what stat shows, setattr changes, read and write carry.

use dovetail_block::{BLOCK_SIZE, BlockBytes, Content, Scheduler};
use dovetail_vfs::kit::{Names, PageContent, PageWrite, WriteData};
use dovetail_vfs::mode::{S_IALLUGO, kind};
use dovetail_vfs::{Attr, Caller, Error, Fallocate, Ino as Number, SetAttr, Timestamp};

use super::Ext;
use super::map::{Run, State};
use crate::error::{Damage, Error as Failure};
use crate::format::{Compat, FileType, Ino, Inode, InodeFlags, RoCompat};

/// Bytes of the largest file of a volume without the feature large_file.
const MOST_WITHOUT_FEATURE: u64 = i32::MAX as u64;

impl<D: Scheduler> Ext<D> {
    pub(super) fn attr(&mut self, ino: Ino) -> Result<Attr, Failure> {
        self.inode(ino)?;
        let inode = self.inodes.peek(ino).ok_or(Damage::FreeInode(ino))?;
        Ok(self.attr_of(inode))
    }

    pub(super) fn attr_of(&self, inode: &Inode) -> Attr {
        let delayed = self.delayed.count(inode.ino) * (self.block_size() as u64 / 512);
        let is_device = matches!(inode.file_type(), FileType::CHAR_DEVICE | FileType::BLOCK_DEVICE);
        Attr {
            ino: Number(inode.ino.0.into()),
            mode: inode.mode,
            links: inode.links.into(),
            uid: inode.uid,
            gid: inode.gid,
            rdev: if is_device { inode.device() } else { (0, 0) },
            size: inode.size,
            blocks: inode.sectors.saturating_add(delayed),
            atime: inode.storable(inode.atime),
            mtime: inode.storable(inode.mtime),
            ctime: inode.storable(inode.ctime),
            generation: inode.generation,
        }
    }

    pub(super) fn change_attributes(
        &mut self,
        caller: &Caller,
        ino: Ino,
        changes: &SetAttr,
    ) -> Result<(), Error> {
        self.marks(ino)?.check_none()?;
        if let Some(size) = changes.size {
            self.prepare_size(ino, size)?;
        }
        let inode = self.edit_inode(ino)?;
        if let Some(mode) = changes.mode {
            inode.mode = kind(inode.mode) | (mode & S_IALLUGO);
        }
        inode.uid = changes.uid.unwrap_or(inode.uid);
        inode.gid = changes.gid.unwrap_or(inode.gid);
        inode.atime = changes.atime.unwrap_or(inode.atime);
        inode.mtime = changes.mtime.or(changes.size.map(|_| caller.now)).unwrap_or(inode.mtime);
        inode.ctime = changes.ctime.unwrap_or(caller.now);
        match changes.size {
            Some(size) => Ok(self.set_size(ino, size)?),
            None => Ok(()),
        }
    }

    /// The file or directory changed now, beyond the bytes of its content. It is in the running
    /// transaction afterwards even if its times say so already: many changes fall into one tick of
    /// the clock, with commits between them.
    pub(super) fn stamp(&mut self, ino: Ino, now: Timestamp) -> Result<(), Failure> {
        let inode = self.edit_inode(ino)?;
        (inode.mtime, inode.ctime) = (now, now);
        Ok(())
    }

    /// Bytes of a file's content were written now. That alone is nothing to commit while the clock
    /// stands still: blocks and a size that the write changes are noted where they change (Linux:
    /// `file_update_time`).
    pub(super) fn stamp_overwrite(&mut self, ino: Ino, now: Timestamp) -> Result<(), Failure> {
        let inode = self.inode(ino)?;
        if (inode.mtime, inode.ctime) != (now, now) {
            let inode = self.edit_times(ino)?;
            (inode.mtime, inode.ctime) = (now, now);
        }
        Ok(())
    }

    /// Refuses to change what must not change, or is not kept right.
    fn check_changeable(&mut self, ino: Ino) -> Result<(), Error> {
        self.marks(ino)?.check_none()?;
        let flags = self.inode(ino)?.flags;
        for (flag, what) in [
            (InodeFlags::ENCRYPT, "writing to encrypted files"),
            (InodeFlags::VERITY, "writing to verity files"),
            (InodeFlags::INLINE_DATA, "writing to files that lie in their inode"),
        ] {
            if flags.has(flag) {
                return Err(Error::Unsupported(what.into()));
            }
        }
        Ok(())
    }

    pub(super) fn check_regular(&mut self, ino: Ino) -> Result<(), Error> {
        match self.inode(ino)?.file_type() {
            FileType::REGULAR => Ok(()),
            FileType::DIRECTORY => Err(Error::IsADirectory),
            _ => Err(Error::Invalid("only regular files have content")),
        }
    }

    /// Checks that it is a regular file that may change.
    pub(super) fn check_file(&mut self, ino: Ino) -> Result<(), Error> {
        self.check_regular(ino)?;
        self.check_changeable(ino)
    }

    pub(super) fn check_end(&mut self, ino: Ino, end: Option<u64>) -> Result<u64, Error> {
        let most = self.max_blocks(ino)?.saturating_mul(self.block_size() as u64);
        end.filter(|&end| end <= most).ok_or(Error::FileTooBig)
    }

    /// Makes sure that the size can become `size`; what its last page holds behind it becomes
    /// zeros.
    fn prepare_size(&mut self, ino: Ino, size: u64) -> Result<(), Error> {
        self.check_file(ino)?;
        self.check_end(ino, Some(size))?;
        let old = self.inode(ino)?.size;
        if size > old {
            self.check_room_for_few(2)?;
        } else {
            self.check_removable(ino)?; // a truncation takes no block
        }
        let end = size.min(old);
        Ok(self.zero_in_page(ino, end, end.next_multiple_of(BLOCK_SIZE))?)
    }

    /// Cuts the content off, or continues it with a hole.
    fn set_size(&mut self, ino: Ino, size: u64) -> Result<(), Failure> {
        self.note_change(ino);
        self.note_size(size);
        let inode = self.edit_inode(ino)?;
        let old = std::mem::replace(&mut inode.size, size);
        if size == 0 && old > 0 && self.options.auto_da_alloc {
            self.emptied.insert(ino);
        }
        if size <= old {
            self.cut_off(ino, size.div_ceil(self.block_size() as u64))?;
            self.drop_window(ino)?;
        }
        Ok(())
    }

    pub(super) fn read_content(
        &mut self,
        ino: Ino,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, Error> {
        let inode = self.inode(ino)?;
        if inode.flags.has(InodeFlags::ENCRYPT) {
            return Err(Error::Unsupported("reading encrypted files".into()));
        }
        let len = inode.size.saturating_sub(offset).min(into.len() as u64) as usize;
        let end = offset.saturating_add(len as u64);
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            // what is read ahead must still be there when it is copied
            let ahead = end.min(at.next_multiple_of(BLOCK_SIZE) + (1 << 20)).div_ceil(BLOCK_SIZE);
            self.read_ahead(ino, at / BLOCK_SIZE..ahead)?;
            while done < len && (offset + done as u64) / BLOCK_SIZE < ahead {
                done += self.copy_page(ino, offset + done as u64, &mut into[done..len])?;
            }
        }
        Ok(len)
    }

    /// Copies from byte `offset` to the end of its page, or of `into`.
    fn copy_page(&mut self, ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let start = (offset % BLOCK_SIZE) as usize;
        let len = into.len().min(BLOCK_SIZE as usize - start);
        match self.read_page(ino, offset / BLOCK_SIZE)? {
            Content::Bytes(bytes) => into[..len].copy_from_slice(&bytes[start..start + len]),
            _ => into[..len].fill(0),
        }
        Ok(len)
    }

    /// Writes content in pieces that a transaction has room for, and submits what that gathered.
    pub(super) fn write_pieces(
        &mut self,
        caller: &Caller,
        ino: Ino,
        offset: u64,
        data: WriteData<'_>,
    ) -> Result<(), Error> {
        let most = self.most_in_a_call(ino)?;
        for (at, piece) in data.pieces(offset, most as u64) {
            self.change_again(|fs| fs.write_content(caller, ino, at, piece))?;
        }
        Ok(self.io.kick().map_err(Failure::from)?)
    }

    /// Writes content, of a mount or of a simulation, into pages.
    fn write_content(
        &mut self,
        caller: &Caller,
        ino: Ino,
        offset: u64,
        data: WriteData<'_>,
    ) -> Result<(), Error> {
        if data.is_empty() {
            return self.check_file(ino);
        }
        self.begin_write(caller, ino, offset, data.len())?;
        let size = self.inode(ino)?.size;
        if offset > size {
            self.zero_in_page(ino, size, size.next_multiple_of(BLOCK_SIZE))?;
        }
        if let Some(past) = self.past_cache(ino, offset, data)? {
            let [before, pages, after] = past.parts;
            self.write_in_pages(ino, before.0, WriteData::Bytes(before.1), size)?;
            self.write_past_cache(ino, pages.0 / BLOCK_SIZE, pages.1, &past.runs)?;
            return self.write_in_pages(ino, after.0, WriteData::Bytes(after.1), size);
        }
        self.write_in_pages(ino, offset, data, size)
    }

    /// Writes content into pages of a file that had `size` bytes before the call.
    fn write_in_pages(
        &mut self,
        ino: Ino,
        offset: u64,
        data: WriteData<'_>,
        size: u64,
    ) -> Result<(), Error> {
        for page in data.pages(offset) {
            let end = page.end();
            self.write_in_page(ino, page, size)?;
            self.grow_to(ino, end)?;
        }
        Ok(())
    }

    /// Checks that the file may be written, and changes its times.
    pub(super) fn begin_write(
        &mut self,
        caller: &Caller,
        ino: Ino,
        offset: u64,
        len: u64,
    ) -> Result<(), Error> {
        self.keep_reserve_from(caller);
        self.check_file(ino)?;
        self.check_end(ino, offset.checked_add(len))?;
        Ok(self.stamp_overwrite(ino, caller.now)?)
    }

    /// Writes a page or a part of one in a file that had `size` bytes before the call.
    fn write_in_page(&mut self, ino: Ino, page: PageWrite<'_>, size: u64) -> Result<(), Failure> {
        let (keeps, index, start) = (page.keeps_bytes(size), page.index, page.start);
        match page.content {
            PageContent::Whole(content) => self.write_page(ino, index, content),
            PageContent::NamedPart(content) => {
                if keeps {
                    self.read_page(ino, index)?;
                }
                self.write_page(ino, index, content.clone())
            }
            PageContent::Part(bytes) => self.write_part(ino, index, start, bytes),
        }
    }

    fn write_part(
        &mut self,
        ino: Ino,
        index: u64,
        start: usize,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let (size, offset) = (self.block_size() as u64, index * BLOCK_SIZE + start as u64);
        let end = offset + bytes.len() as u64;
        // what is there is read before blocks are given a place that holds something else
        self.page_to_edit(ino, index)?;
        self.reserve(ino, offset / size..end.div_ceil(size))?;
        self.page_to_edit(ino, index)?[start..start + bytes.len()].copy_from_slice(bytes);
        self.pages.mark_dirty(ino.0.into(), index);
        self.note_dirty_page(ino)
    }

    /// A page of the file in memory, to be changed; marking it dirty is the caller's.
    fn page_to_edit(&mut self, ino: Ino, index: u64) -> Result<&mut BlockBytes, Failure> {
        let content = self.read_page(ino, index)?;
        self.pages.insert_clean(ino.0.into(), index, content);
        self.pages.bytes_mut(ino.0.into(), index).ok_or(Failure::NoSpace)
    }

    /// Bytes of one page become zeros, if they are not.
    fn zero_in_page(&mut self, ino: Ino, from: u64, to: u64) -> Result<(), Failure> {
        let (index, start) = (from / BLOCK_SIZE, (from % BLOCK_SIZE) as usize);
        let end = start + to.saturating_sub(from) as usize;
        if start == end {
            return Ok(());
        }
        let content = self.read_page(ino, index)?;
        let zeros = match &content {
            Content::Bytes(bytes) => bytes[start..end].iter().all(|&byte| byte == 0),
            // a name stands for zeros behind the end of the file
            Content::Empty | Content::Pattern(_) => true,
        };
        if zeros {
            return Ok(());
        }
        self.page_to_edit(ino, index)?[start..end].fill(0);
        self.pages.mark_dirty(ino.0.into(), index);
        // an older content must not come back behind a smaller size
        self.running.ordered.insert(ino);
        self.note_edit();
        self.note_dirty_page(ino)
    }

    pub(super) fn grow_to(&mut self, ino: Ino, end: u64) -> Result<(), Failure> {
        if self.inode(ino)?.size < end {
            self.note_size(end);
            self.edit_inode(ino)?.size = end;
        }
        Ok(())
    }

    /// A file gets a size.
    fn note_size(&mut self, size: u64) {
        if size > MOST_WITHOUT_FEATURE {
            self.note_features(Compat(0), RoCompat::LARGE_FILE);
        }
    }

    pub(super) fn allocate_range(
        &mut self,
        caller: &Caller,
        ino: Ino,
        how: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<(), Error> {
        self.keep_reserve_from(caller);
        self.check_file(ino)?;
        if len == 0 {
            return Err(Error::Invalid("the range is empty"));
        }
        let end = self.check_end(ino, offset.checked_add(len))?;
        if how != Fallocate::PunchHole && !self.is_extent_mapped(ino)? {
            return Err(Error::Unsupported("reserving blocks in a file without extents".into()));
        }
        let size = self.inode(ino)?.size;
        if how == Fallocate::PunchHole && offset >= size {
            return Ok(());
        }
        self.check_room_for_few(8)?;
        if end > size {
            self.zero_in_page(ino, size, size.next_multiple_of(BLOCK_SIZE))?;
        }
        let keep_size = match how {
            Fallocate::Reserve { keep_size } => {
                self.reserve_range(ino, offset, end)?;
                keep_size
            }
            Fallocate::PunchHole => {
                self.zero_range(ino, offset, end)?;
                true
            }
            Fallocate::ZeroRange { keep_size } => {
                self.zero_range(ino, offset, end)?;
                self.reserve_range(ino, offset, end)?;
                keep_size
            }
        };
        if !keep_size {
            self.grow_to(ino, end)?;
        }
        Ok(self.stamp(ino, caller.now)?)
    }

    /// Reserves the blocks of a range that have no place.
    fn reserve_range(&mut self, ino: Ino, offset: u64, end: u64) -> Result<(), Failure> {
        self.note_change(ino);
        let size = self.block_size() as u64;
        let (first, last) = (offset / size, end.div_ceil(size));
        let holes = self.holes(ino, first, last)?;
        let blocks: u64 = holes.iter().map(|(from, to)| to - from).sum();
        self.check_room(blocks + self.nodes_for(blocks) + 4 * holes.len() as u64)?;
        for (from, to) in holes {
            let mut at = from;
            while at < to {
                let run = self.allocate_run(ino, at as u32, (to - at) as u32, false)?;
                self.reserved_delayed(ino, &run)?;
                at = run.end();
                self.commit_if_large()?;
            }
        }
        Ok(())
    }

    /// Blocks were reserved in a file: those with content in memory wait for another reason now.
    fn reserved_delayed(&mut self, ino: Ino, run: &Run) -> Result<(), Failure> {
        let blocks = run.block..run.end() as u32;
        let with_content: Vec<u32> =
            blocks.filter(|&block| self.delayed.contains(ino, block)).collect();
        self.delayed.remove(ino, run.block.into()..run.end());
        let tree = self.tree_size(ino)?;
        self.unwritten.insert(ino, tree, with_content);
        Ok(())
    }

    /// The holes in a range of blocks.
    fn holes(&mut self, ino: Ino, first: u64, last: u64) -> Result<Vec<(u64, u64)>, Failure> {
        let (mut at, mut holes) = (first, Vec::new());
        while at < last {
            let run = self.map(ino, at as u32)?;
            let end = run.end().min(last);
            if run.state == State::Hole {
                holes.push((at, end));
            }
            at = end;
        }
        Ok(holes)
    }

    /// The bytes of a range become zeros: whole blocks as holes.
    fn zero_range(&mut self, ino: Ino, offset: u64, end: u64) -> Result<(), Failure> {
        self.note_change(ino);
        self.check_removable(ino)?;
        let (first, last) = (offset.div_ceil(BLOCK_SIZE), end / BLOCK_SIZE);
        if first > last {
            self.zero_in_page(ino, offset, end)?;
        } else {
            self.zero_in_page(ino, offset, first * BLOCK_SIZE)?;
            self.zero_in_page(ino, last * BLOCK_SIZE, end)?;
            self.pages.remove_range(ino.0.into(), first..last);
        }
        let size = self.block_size() as u64;
        let (first, last) = (offset.div_ceil(size), end / size);
        if first < last {
            self.forget_waiting(ino, first..last);
            self.remove_in_parts(ino, first, last)?;
        }
        Ok(())
    }

    /// The first byte at or after `offset` that is data.
    pub(super) fn next_data(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        self.next_of(ino, offset, true)?.ok_or(Error::BeyondEnd)
    }

    /// The first byte at or after `offset` that is in a hole; the end of the file is one.
    pub(super) fn next_hole(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        let size = self.inode(ino)?.size;
        Ok(self.next_of(ino, offset, false)?.unwrap_or(size))
    }

    /// The first byte from `offset` on whose block holds data, or does not. A block without content
    /// on the device holds data once its page was written to.
    fn next_of(&mut self, ino: Ino, offset: u64, data: bool) -> Result<Option<u64>, Error> {
        let inode_size = self.inode(ino)?.size;
        if offset >= inode_size {
            return Err(Error::BeyondEnd);
        }
        let size = self.block_size() as u64;
        let dirty = self.pages.dirty_pages(ino.0.into());
        let (mut block, end) = (offset / size, inode_size.div_ceil(size));
        while block < end {
            let run = self.map(ino, block as u32)?;
            let stop = run.end().min(end);
            let written = matches!(run.state, State::Written(_));
            let found = match (written, data) {
                (true, true) => Some(block),
                (true, false) => None,
                (false, true) => {
                    let first =
                        dirty.partition_point(|&page| (page + 1) * self.per_page() <= block);
                    let page = dirty.get(first).map(|page| (page * self.per_page()).max(block));
                    page.filter(|&found| found < stop)
                }
                (false, false) => {
                    (block..stop).find(|at| dirty.binary_search(&(at / self.per_page())).is_err())
                }
            };
            if let Some(found) = found {
                return Ok(Some((found * size).max(offset)));
            }
            block = stop;
        }
        Ok(None)
    }
}
