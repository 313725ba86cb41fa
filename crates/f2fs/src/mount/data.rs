//! Blocks of content: read through the page cache, reserved when they are written to it, and given
//! an address when they go to the device.

use std::ops::Range;
use std::sync::Arc;

use dovetail_block::{Content, Scheduler};
use dovetail_time::SimTime;

use super::F2fs;
use super::io::{Channel, WriteClass};
use super::options::Mode;
use super::pointers::{Found, Pointer};
use super::policy::{DataFacts, Log, SpaceFacts, UpdateFacts, WriteMode, data_log};
use crate::error::{ClusterFault, Damage, Error};
use crate::format::{BLOCK, BlockAddr, Inode, InodeFlags, Nid, Summary};
use crate::volume::cluster::inflate;
use dovetail_vfs::mode::is_dir;

/// Blocks read in one command: 1 MiB.
const MAX_RUN: u64 = 256;
/// Files with at most this many dirty pages are hot (Linux 6.1, sysfs `min_hot_blocks`).
const MIN_HOT_BLOCKS: usize = 16;

/// The reason for which dirty pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WritebackReason {
    /// Memory, or time.
    Background,
    /// A call that must not leave the page to a later one.
    InCall,
    /// An fsync of the file.
    Fsync,
    /// An fdatasync of the file.
    DataSync,
    /// A sync of everything.
    Sync,
    /// A checkpoint, of directories.
    Checkpoint,
    /// A write past the cache.
    Direct,
}

/// The first error among those of several files, which are dealt with one after another.
#[derive(Debug, Default)]
pub(super) struct FirstError(Option<Error>);

impl FirstError {
    pub(super) fn note(&mut self, error: Option<Error>) {
        self.0 = self.0.take().or(error);
    }

    /// Returns it, when all files were dealt with.
    pub(super) fn end(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), Err)
    }
}

/// `i_advise` bits.
pub(super) const ADVISE_COLD: u8 = 0x01;
pub(super) const ADVISE_LOST_PARENT: u8 = 0x02;
pub(super) const ADVISE_ENCRYPTED: u8 = 0x04;
pub(super) const ADVISE_KEEP_SIZE: u8 = 0x10;
pub(super) const ADVISE_HOT: u8 = 0x20;
pub(super) const ADVISE_VERITY: u8 = 0x40;
/// `i_inline` bit of a pinned file.
pub(super) const INLINE_PINNED: u8 = 0x40;

impl<D: Scheduler> F2fs<D> {
    /// Page `index` of the file; a hole is empty.
    pub(super) fn read_page(&mut self, ino: Nid, index: u64) -> Result<Content, Error> {
        if let Some(content) = self.pages.get(ino.0.into(), index) {
            return Ok(content.clone());
        }
        if let Some(content) = self.read_cluster(ino, index)? {
            return Ok(content);
        }
        let address = match self.find_pointer(ino, index)? {
            Found::Pointer(pointer) => pointer.address,
            Found::MissingUntil(_) => BlockAddr::NULL,
        };
        if address.is_hole() {
            return Ok(Content::Empty);
        }
        if address == BlockAddr::COMPRESSED {
            return Err(
                Damage::Cluster { ino, block: index, fault: ClusterFault::Misplaced }.into()
            );
        }
        let mut content = [Content::Empty];
        self.io.read_into(address, &mut content)?;
        let [content] = content;
        self.pages.insert_clean(ino.0.into(), index, content.clone());
        Ok(content)
    }

    /// Page `index`, if it lies in a compressed cluster. The whole cluster comes into memory.
    fn read_cluster(&mut self, ino: Nid, index: u64) -> Result<Option<Content>, Error> {
        if self.inode(ino)?.i_flags.get() & InodeFlags::COMPRESSED.0 == 0 || self.is_dir(ino)? {
            return Ok(None);
        }
        self.load_node(ino, ino, 0)?;
        let block =
            self.nodes.get(ino).map(|node| Arc::clone(&node.block)).ok_or(Damage::NoNode(ino))?;
        let inode = Inode::parse_unsealed(&block, ino, &self.superblock)?;
        let blocks = u64::from(inode.cluster_blocks);
        let start = index - index % blocks;
        let head = matches!(self.find_pointer(ino, start)?, Found::Pointer(p) if p.address == BlockAddr::COMPRESSED);
        if !head {
            return Ok(None);
        }
        let stored = self.stored_blocks(ino, start + 1..start + blocks)?;
        let bytes = inflate(&inode, start, &stored)?;
        let mut found = None;
        for (page, chunk) in (start..).zip(bytes.as_chunks::<BLOCK>().0) {
            let content = Content::Bytes(Arc::new(*chunk));
            found = if page == index { Some(content.clone()) } else { found };
            self.pages.insert_clean(ino.0.into(), page, content);
        }
        Ok(found)
    }

    /// The blocks of a compressed cluster, up to the first one that holds nothing.
    fn stored_blocks(&mut self, ino: Nid, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut stored = Vec::new();
        for block in range {
            let Found::Pointer(pointer) = self.find_pointer(ino, block)? else { break };
            if pointer.address.is_hole() || pointer.address == BlockAddr::COMPRESSED {
                break;
            }
            stored.extend_from_slice(&*self.io.read(pointer.address)?);
        }
        Ok(stored)
    }

    /// Brings the pages of `range` that are not in memory there, neighbouring blocks in one
    /// command.
    pub(super) fn read_ahead(&mut self, ino: Nid, range: Range<u64>) -> Result<(), Error> {
        if self.inode(ino)?.i_flags.get() & InodeFlags::COMPRESSED.0 != 0 {
            return Ok(()); // clusters come as a whole
        }
        let (mut index, mut done) = (range.start, self.io.now());
        while index < range.end {
            if self.pages.get(ino.0.into(), index).is_some() {
                index += 1;
                continue;
            }
            let Some((first, address)) = self.next_mapped(ino, index, range.end)? else { break };
            if first > index || address.is_hole() || address == BlockAddr::COMPRESSED {
                index = first.max(index + 1);
                continue;
            }
            let run = self.run_of(ino, index, address, range.end)?;
            done = done.max(self.start_run(ino, index, address, run)?);
            index += run;
        }
        self.io.wait_read(done);
        Ok(())
    }

    /// Number of blocks from `index` on that lie side by side from `address` on and are not in
    /// memory.
    fn run_of(&mut self, ino: Nid, index: u64, address: BlockAddr, end: u64) -> Result<u64, Error> {
        let mut run = 1;
        while run < MAX_RUN && index + run < end {
            let Found::Pointer(next) = self.find_pointer(ino, index + run)? else { break };
            let follows = next.address == address.plus(run);
            if !follows || self.pages.get(ino.0.into(), index + run).is_some() {
                break;
            }
            run += 1;
        }
        Ok(run)
    }

    fn start_run(
        &mut self,
        ino: Nid,
        index: u64,
        address: BlockAddr,
        run: u64,
    ) -> Result<SimTime, Error> {
        let mut contents = vec![Content::Empty; run as usize];
        let done = self.io.start_read(address, &mut contents)?;
        for (offset, content) in contents.into_iter().enumerate() {
            self.pages.insert_clean(ino.0.into(), index + offset as u64, content);
        }
        Ok(done)
    }

    /// Makes sure that block `index` of the file counts as used, so that writing it later cannot
    /// fail for space.
    pub(super) fn reserve(&mut self, ino: Nid, index: u64) -> Result<(), Error> {
        if let Found::Pointer(pointer) = self.find_pointer(ino, index)?
            && pointer.address != BlockAddr::NULL
        {
            return Ok(());
        }
        self.check_free_blocks(1)?;
        let pointer = self.make_pointer(ino, index)?;
        self.check_free_blocks(1)?;
        self.set_pointer(ino, &pointer, BlockAddr::NEW)?;
        self.count_blocks(ino, 1)
    }

    /// `more` blocks of content, more or (negative) fewer.
    pub(super) fn count_blocks(&mut self, ino: Nid, more: i64) -> Result<(), Error> {
        self.counts.valid_blocks = self.counts.valid_blocks.saturating_add_signed(more);
        self.since.note_allocated(more.max(0) as u64);
        let inode = self.edit_inode(ino)?;
        inode.i_blocks.set(inode.i_blocks.get().saturating_add_signed(more));
        Ok(())
    }

    /// Puts new content into the cache as page `index`, to be written later.
    pub(super) fn write_page(
        &mut self,
        ino: Nid,
        index: u64,
        content: Content,
    ) -> Result<(), Error> {
        self.reserve(ino, index)?;
        self.pages.write(ino.0.into(), index, content);
        Ok(())
    }

    /// Writes the dirty pages of one file.
    pub(super) fn write_back(&mut self, ino: Nid, reason: WritebackReason) -> Result<(), Error> {
        let mut dirty = std::mem::take(&mut self.scratch.pages);
        self.pages.dirty_pages_into(ino.0.into(), &mut dirty);
        let written = self.write_dirty(ino, &dirty, reason);
        self.scratch.pages = dirty;
        written
    }

    /// The same of those that a pass over it comes to next, at most `most`.
    pub(super) fn write_back_next(
        &mut self,
        ino: Nid,
        most: usize,
        reason: WritebackReason,
    ) -> Result<(), Error> {
        let mut dirty = std::mem::take(&mut self.scratch.pages);
        self.pages.next_dirty_pages_into(ino.0.into(), most, &mut dirty);
        let written = self.write_dirty(ino, &dirty, reason);
        self.scratch.pages = dirty;
        written
    }

    /// Writes these dirty pages of a file.
    fn write_dirty(
        &mut self,
        ino: Nid,
        dirty: &[u64],
        reason: WritebackReason,
    ) -> Result<(), Error> {
        if dirty.is_empty() {
            return self.remap_due();
        }
        let facts = self.data_facts(ino, self.pages.dirty_count(ino.0.into()))?;
        let update = self.update_facts(ino, reason, dirty.len())?;
        let modes = self.write_modes(ino, dirty, update, reason)?;
        let cleans = self.cleans_between_pages(ino, reason);
        for (number, &index) in dirty.iter().enumerate() {
            // cleaning, or its checkpoint, may have written the page
            let is_dirty = self.pages.is_dirty(ino.0.into(), index);
            let content = self.pages.get(ino.0.into(), index).filter(|_| is_dirty);
            let Some(content) = content.cloned() else { continue };
            self.place_page(ino, index, content, facts, modes.of(number))?;
            self.pages.mark_clean(ino.0.into(), index);
            // not before the first page, which may hold what has just left the inode and is nowhere
            // else
            if reason != WritebackReason::Checkpoint {
                self.look_for_headroom(number + 1)?;
            }
            self.throttle.add_page(self.io.gatherer_mut())?;
            if cleans {
                self.keep_space_after(number + 1)?;
            }
        }
        self.dirty_dents.remove(&ino);
        self.remap_due()
    }

    /// Space is looked for after each page of a file (Linux 6.12: `f2fs_write_single_data_page`):
    /// not while a call is half done, nor where a remap makes all pages durable at once.
    pub(super) fn cleans_between_pages(&self, ino: Nid, reason: WritebackReason) -> bool {
        match reason {
            _ if self.dirty_dents.contains(&ino) => false,
            WritebackReason::Background => true,
            WritebackReason::Fsync | WritebackReason::DataSync | WritebackReason::Sync => {
                !self.defers_updates()
            }
            WritebackReason::InCall | WritebackReason::Checkpoint | WritebackReason::Direct => {
                false
            }
        }
    }

    /// Writes the dirty pages of all files, but those of which something cannot be read: the
    /// caller returns the `first` such error when all else is done.
    pub(super) fn write_back_all(
        &mut self,
        reason: WritebackReason,
        first: &mut FirstError,
    ) -> Result<(), Error> {
        for ino in self.pages.dirty_inodes() {
            self.before_write_back()?;
            let written = self.write_back(Nid(ino as u32), reason);
            first.note(self.concerns_one_file(written)?);
        }
        Ok(())
    }

    /// An error that leaves other files as they are comes back as a value: a block could not be
    /// read, or contradicts another.
    ///
    /// # Errors
    /// All others: nothing more can be written, or updates wait that are durable as one.
    pub(super) fn concerns_one_file(
        &self,
        done: Result<(), Error>,
    ) -> Result<Option<Error>, Error> {
        match done {
            Err(error @ (Error::Io(_) | Error::Corrupt(_)))
                if !self.is_read_only() && !self.defers_updates() =>
            {
                Ok(Some(error))
            }
            done => done.map(|()| None),
        }
    }

    /// Writes the dirty blocks of all directories.
    pub(super) fn write_back_directories(&mut self) -> Result<(), Error> {
        while let Some(&ino) = self.dirty_dents.first() {
            self.write_back(ino, WritebackReason::Checkpoint)?;
            self.dirty_dents.remove(&ino);
        }
        Ok(())
    }

    /// Writes a page of the file by the mode that was chosen, to a log if it has no address.
    pub(super) fn place_page(
        &mut self,
        ino: Nid,
        index: u64,
        content: Content,
        facts: DataFacts,
        mode: WriteMode,
    ) -> Result<(), Error> {
        let pointer = self.make_pointer(ino, index)?;
        let old = pointer.address;
        if !old.is_hole()
            && mode != WriteMode::Append
            && self.update(ino, old, &content, mode, facts)?
        {
            return Ok(());
        }
        if old != BlockAddr::NULL {
            return self.move_block(ino, &pointer, content, facts, WriteClass::Data).map(drop);
        }
        self.check_free_blocks(1)?;
        self.move_block(ino, &pointer, content, facts, WriteClass::Data)?;
        self.count_blocks(ino, 1)
    }

    /// Writes a block that keeps its address. `false` if it has to move: an update that must wait
    /// for its fsync finds no staged block.
    fn update(
        &mut self,
        ino: Nid,
        old: BlockAddr,
        content: &Content,
        mode: WriteMode,
        facts: DataFacts,
    ) -> Result<bool, Error> {
        if mode == WriteMode::Remap {
            if self.put_update(ino, old, content.clone(), WriteClass::Data)? {
                return Ok(true);
            }
            if self.defers_updates() {
                return Ok(false);
            }
        }
        self.forget_update(old);
        self.io.held_moves.remove(old);
        self.events.in_place_blocks += 1;
        self.io.set_owner(ino);
        self.io.write_in_place(data_log(self.options.logs, facts), old, content.clone())?;
        self.note_unflushed(ino);
        Ok(true)
    }

    /// Something of the file was written that only a flush makes durable.
    pub(super) fn note_unflushed(&mut self, ino: Nid) {
        if self.remaps() {
            self.updates.note_unflushed_file(ino);
        }
    }

    /// Writes a block to the log that `facts` give, and makes `pointer` point there.
    pub(super) fn move_block(
        &mut self,
        ino: Nid,
        pointer: &Pointer,
        content: Content,
        facts: DataFacts,
        cause: WriteClass,
    ) -> Result<BlockAddr, Error> {
        let (address, log) = self.readdress(ino, pointer, facts)?;
        self.io.set_owner(ino);
        self.io.write(Channel(log as u8), cause, address, content)?;
        self.note_unflushed(ino);
        Ok(address)
    }

    /// Makes `pointer` point to the next block of the log that `facts` give, and gives up the one
    /// before. Returns the block and its log.
    pub(super) fn readdress(
        &mut self,
        ino: Nid,
        pointer: &Pointer,
        facts: DataFacts,
    ) -> Result<(BlockAddr, Log), Error> {
        let log = data_log(self.options.logs, facts);
        let version = self.node_version(pointer.nid);
        let owner = Summary { nid: pointer.nid, version, offset: pointer.index };
        let address = self.allocate(log, owner)?;
        if !pointer.address.is_hole() {
            self.free_block(pointer.address)?;
        }
        self.set_pointer(ino, pointer, address)?;
        self.note_rewritten(ino);
        Ok((address, log))
    }

    /// The facts of the file for the choice of a log.
    pub(super) fn data_facts(&mut self, ino: Nid, dirty: usize) -> Result<DataFacts, Error> {
        let raw = self.inode(ino)?;
        let flags = InodeFlags(raw.i_flags.get());
        Ok(DataFacts {
            dir: is_dir(raw.i_mode.get()),
            cleaning: false,
            cold: raw.i_advise & ADVISE_COLD != 0 || flags.has(InodeFlags::COMPRESSED),
            hot: raw.i_advise & ADVISE_HOT != 0,
            small: dirty <= MIN_HOT_BLOCKS,
            lifetime: self.lifetimes.get(&ino).copied().unwrap_or_default(),
            stays: self.remaps(),
        })
    }

    pub(super) fn update_facts(
        &mut self,
        ino: Nid,
        reason: WritebackReason,
        dirty: usize,
    ) -> Result<UpdateFacts, Error> {
        let space = self.space_facts();
        let raw = self.inode(ino)?;
        let (fixed, dir) = (
            raw.i_advise & ADVISE_COLD != 0 || raw.i_inline & INLINE_PINNED != 0,
            raw.i_mode.get(),
        );
        let small = reason == WritebackReason::DataSync
            || (reason == WritebackReason::Fsync && dirty <= self.options.min_fsync_blocks);
        Ok(UpdateFacts {
            lfs: self.options.mode == Mode::Lfs,
            dir: is_dir(dir),
            cleaning: false,
            fixed,
            need_ssr: super::policy::need_ssr(&space),
            small_fsync: small,
            asynchronous: matches!(reason, WritebackReason::Background | WritebackReason::InCall),
            direct: reason == WritebackReason::Direct,
            full: self.counts.valid_blocks * 100
                / self.committed.checkpoint().user_block_count.max(1)
                > self.options.min_ipu_util_percent,
        })
    }

    /// The state of the space that policies decide by.
    pub(super) fn space_facts(&self) -> SpaceFacts {
        self.space.facts(&self.demand())
    }

    pub(super) fn dirty_dent_pages(&self) -> u32 {
        self.dirty_dents.iter().map(|ino| self.pages.dirty_count(ino.0.into()) as u32).sum()
    }
}
