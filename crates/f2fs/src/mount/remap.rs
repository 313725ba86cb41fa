//! RM-IPU: updates are written to borrowed sections, and the device moves them to where they belong.
//!
//! No pointer changes, so no node is written and nothing needs cleaning. With [`RemapOrder::Eager`] updates move as soon as they
//! are written; with [`RemapOrder::WithFsync`] they wait for the fsync of their file, and its nodes, or the last block of the
//! checkpoint that it comes to, move with them: one atomic remap completes the fsync. `docs/rm-ipu.md` has the argument.

use dovetail_block::{BlockDevice, Content, RemapLimits, RemapPair};

use super::io::{Cause, Channel};
use super::options::RemapOrder;
use super::policy::{Log, RunFacts, Updates, Way, chosen, need_ssr};
use super::slots::{RESERVE, Slot};
use super::waiting::{Update, pair};
use super::{F2fs, Mode};
use crate::error::{Error, Incompatible};
use crate::format::{BLOCKS_IN_SEGMENT, BlockAddr, Nid};

impl<D: BlockDevice> F2fs<D> {
    /// Refuses a mode that the device cannot carry out.
    pub(super) fn check_remap(device: &D, options: &super::Options) -> Result<(), Error> {
        let mode = match options.mode {
            Mode::RmIpu => "rm-ipu",
            Mode::RmIpuAdaptive => "rm-ipu-adaptive",
            Mode::Adaptive | Mode::Lfs => return Ok(()),
        };
        match device.info().capabilities.remap {
            Some(limits) if limits.pairs_per_command > 0 => Ok(()),
            _ => Err(Incompatible::NoRemap { mode }.into()),
        }
    }

    /// Updates of files are remapped, all or some.
    pub(super) fn remaps(&self) -> bool {
        self.options.updates() != Updates::Plain
    }

    /// An update must not show before its fsync.
    pub(super) fn defers_updates(&self) -> bool {
        self.remaps() && (self.committing || self.options.remap == RemapOrder::WithFsync)
    }

    fn remap_limits(&self) -> Option<RemapLimits> {
        self.io.device().info().capabilities.remap
    }

    /// Pairs that the device executes as one.
    fn atomic_pairs(&self) -> usize {
        self.remap_limits()
            .map_or(0, |limits| limits.pairs_per_command.saturating_add(limits.held_pairs) as usize)
    }

    /// The way of one update: see [`super::policy::way`].
    pub(super) fn update_way(&self, place: super::policy::PlaceFacts) -> Way {
        super::policy::way(self.options.updates(), self.ipu_policy, place)
    }

    /// Writes an update of the block at `to` where it waits for its remap. `false` if there is no room for it, or if so much
    /// of its file waits that an fsync could not complete it at once.
    pub(super) fn put_update(
        &mut self,
        owner: Nid,
        to: BlockAddr,
        content: Content,
        cause: Cause,
    ) -> Result<bool, Error> {
        let most = if self.defers_updates() { self.atomic_pairs() / 2 } else { usize::MAX };
        if self.io.waiting.count_of(owner) >= most {
            return Ok(false);
        }
        let Some(from) = self.take_slot(RESERVE) else { return Ok(false) };
        self.io.write(Channel::UPDATES, cause, from, content)?;
        self.await_remap(owner, to, from);
        self.events.remapped_blocks += 1;
        let limit = self.remap_limits().map_or(1, |limits| limits.pairs_per_command as usize);
        if !self.defers_updates() && self.io.waiting.len() >= limit.min(BLOCKS_IN_SEGMENT as usize) {
            self.remap_waiting()?;
        }
        Ok(true)
    }

    /// What was written at `from` is to get to `to`.
    pub(super) fn await_remap(&mut self, owner: Nid, to: BlockAddr, from: BlockAddr) {
        if let Some(before) = self.io.waiting.add(to, Update { from, owner }) {
            self.give_slot_back(before.from);
        }
    }

    /// The block is given up: what waits to get there is not needed any more.
    pub(super) fn forget_update(&mut self, to: BlockAddr) {
        if let Some(update) = self.io.waiting.remove(to) {
            self.give_slot_back(update.from);
        }
    }

    /// The block moves from one place to another, and what waits to get there with it.
    pub(super) fn redirect_update(&mut self, update: Option<Update>, to: BlockAddr) {
        if let Some(Update { from, owner }) = update {
            self.await_remap(owner, to, from);
        }
    }

    /// A slot for one more update, if more than `reserve` are left or more can be borrowed.
    pub(super) fn take_slot(&mut self, reserve: u32) -> Option<BlockAddr> {
        if self.slots.wants_section() {
            self.borrow_section();
        }
        if self.slots.free() <= reserve {
            return None;
        }
        let slot = self.slots.take()?;
        let per_section = self.segments.per_section() * BLOCKS_IN_SEGMENT;
        let first = self.segments.address(crate::format::SegNo(0), 0).0;
        Some(BlockAddr(first + slot.section * per_section + slot.block))
    }

    /// Borrows a free section, if cleaning can spare one.
    fn borrow_section(&mut self) {
        let facts = self.space_facts();
        if facts.free_sections <= facts.reserved_sections / 2 {
            return;
        }
        let Some(segno) = self.free_segment(Log::HotData) else { return };
        let section = self.segments.section_of(segno);
        for segno in self.segments.segments_of(section) {
            self.segments.take(segno);
            self.discards.keep(self.segments.address(segno, 0).0, BLOCKS_IN_SEGMENT);
        }
        self.slots.borrow_section(section);
    }

    fn give_slot_back(&mut self, address: BlockAddr) {
        let per_section = self.segments.per_section() * BLOCKS_IN_SEGMENT;
        let block = address.0 - self.segments.address(crate::format::SegNo(0), 0).0;
        self.slots.give_back(Slot { section: block / per_section, block: block % per_section });
    }

    /// Gives borrowed sections back that are not needed; all in which nothing waits with `last`.
    pub(super) fn return_slots(&mut self, last: bool) {
        for section in self.slots.return_sections(last) {
            for segno in self.segments.segments_of(section) {
                self.segments.give_back(segno);
                if self.options.discard && self.io.device().info().capabilities.discard {
                    self.discards.add(self.segments.address(segno, 0).0, BLOCKS_IN_SEGMENT);
                }
            }
        }
    }

    /// Has all updates that wait moved.
    pub(super) fn remap_waiting(&mut self) -> Result<(), Error> {
        if self.io.waiting.is_empty() {
            return Ok(());
        }
        let pairs = self.io.waiting.take_all();
        self.io.remap(&pairs)?;
        self.release_sources(&pairs);
        Ok(())
    }

    /// Has updates moved that are due at the end of a call that wrote some: all, unless they wait for an fsync.
    pub(super) fn remap_due(&mut self) -> Result<(), Error> {
        if self.defers_updates() { Ok(()) } else { self.remap_waiting() }
    }

    /// Has pairs moved as one.
    pub(super) fn remap_as_one(&mut self, pairs: &[RemapPair]) -> Result<(), Error> {
        self.io.remap_as_one(pairs)?;
        self.release_sources(pairs);
        Ok(())
    }

    fn release_sources(&mut self, pairs: &[RemapPair]) {
        for pair in pairs {
            self.give_slot_back(BlockAddr(pair.from.0 as u32));
        }
        self.return_slots(false);
    }

    /// Completes the fsync of a file of which updates wait: its nodes go out of place, too, and all of it moves as one.
    /// `false` if that cannot be done in one piece.
    pub(super) fn commit_updates(&mut self, ino: Nid) -> Result<bool, Error> {
        let nodes = self.nodes.dirty_of(ino).len() + 1;
        if self.slots.free() <= RESERVE && self.slots.wants_section() {
            self.borrow_section();
        }
        if self.io.waiting.count_of(ino) + nodes > self.atomic_pairs() || self.slots.free() < nodes as u32 {
            return Ok(false);
        }
        self.nodes_by_remap = true;
        let logged = self.log_nodes(ino);
        self.nodes_by_remap = false;
        logged?;
        // the content that the nodes lead to comes first
        if self.unflushed.remove(&ino) {
            self.flush_for_fsync()?;
        }
        let pairs = self.io.waiting.take_of(ino);
        if pairs.is_empty() {
            self.io.wait()?;
        }
        self.remap_as_one(&pairs)?;
        Ok(true)
    }

    /// Has the updates of all files moved, each file's as one.
    pub(super) fn commit_all_updates(&mut self) -> Result<(), Error> {
        for owner in self.io.waiting.owners() {
            let pairs = self.io.waiting.take_of(owner);
            self.remap_as_one(&pairs)?;
        }
        Ok(())
    }

    /// Writes the last block of a checkpoint so that the updates of `file` show with it: all of it moves as one.
    pub(super) fn commit_tail_with(
        &mut self,
        file: Nid,
        tail: BlockAddr,
        block: std::sync::Arc<dovetail_block::BlockBytes>,
    ) -> Result<(), Error> {
        let mut pairs = self.io.waiting.take_of(file);
        match self.take_slot(0) {
            Some(from) if !pairs.is_empty() && pairs.len() < self.atomic_pairs() => {
                self.io.write_bytes(Channel::UPDATES, Cause::Checkpoint, from, block)?;
                pairs.push(pair(tail, from));
                self.remap_as_one(&pairs)
            }
            slot => {
                if let Some(unused) = slot {
                    self.give_slot_back(unused);
                }
                self.remap_as_one(&pairs)?;
                Ok(self.io.write_durable(tail, block)?)
            }
        }
    }

    /// The ways of the dirty blocks of a file, as [`chosen`] has them; `dirty` is in order.
    pub(super) fn adaptive_ways(&mut self, ino: Nid, dirty: &[u64]) -> Result<Vec<Way>, Error> {
        let runs = self.dirty_runs(ino, dirty)?;
        let (pieces, blocks) = runs.iter().fold((0, 0), |sum, run| (sum.0 + run.1, sum.1 + run.0));
        let pair_ns = self.remap_limits().map_or(0, |limits| limits.pair_time.as_ns());
        let (need_ssr, deferred) = (need_ssr(&self.space_facts()), self.defers_updates());
        let way = |&(run_blocks, run_pieces): &(u32, u32)| {
            let facts = RunFacts {
                blocks: run_blocks,
                pieces: run_pieces,
                batch: (pieces, blocks),
                need_ssr,
                pair_ns,
                deferred,
            };
            std::iter::repeat_n(chosen(facts), run_blocks as usize)
        };
        Ok(runs.iter().flat_map(way).collect())
    }

    /// Runs of neighbouring dirty blocks: how many blocks, and in how many pieces they lie on the device. A block without
    /// a place goes on the piece before it.
    fn dirty_runs(&mut self, ino: Nid, dirty: &[u64]) -> Result<Vec<(u32, u32)>, Error> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        let mut before: Option<(u64, BlockAddr)> = None;
        for &index in dirty {
            let address = match self.find_pointer(ino, index)? {
                super::pointers::Found::Pointer(pointer) => pointer.address,
                super::pointers::Found::MissingUntil(_) => BlockAddr::NULL,
            };
            let side_by_side = before.is_some_and(|(at, place)| {
                address.is_hole() || (at + 1 == index && !place.is_hole() && place.0 + 1 == address.0)
            });
            match runs.last_mut() {
                Some(run) if before.is_some_and(|(at, _)| at + 1 == index) => {
                    run.0 += 1;
                    run.1 += u32::from(!side_by_side);
                }
                _ => runs.push((1, 1)),
            }
            before = Some((index, address));
        }
        Ok(runs)
    }
}
