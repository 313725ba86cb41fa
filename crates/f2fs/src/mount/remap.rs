//! RM-IPU: updates are written to borrowed sections, and the device moves them to where they
//! belong.
//!
//! No pointer changes, so no node is written and nothing needs cleaning. With [`RemapOrder::Eager`]
//! updates move as soon as they are written; with [`RemapOrder::WithFsync`] they wait for the fsync
//! of their file, and its nodes, or the last block of the checkpoint that it comes to, move with
//! them: one atomic remap completes the fsync. `docs/rm-ipu.md` has the argument.

use dovetail_block::{Content, RemapLimits, RemapPair, Scheduler};

use super::data::WritebackReason;
use super::io::{Channel, WriteClass};
use super::options::RemapOrder;
use super::pending_remaps::Update;
use super::pointers::Found;
use super::policy::{RunFacts, UpdateFacts, Updates, WriteMode, adaptive_mode, is_large, need_ssr};
use super::{F2fs, Mode};
use crate::error::{Error, Incompatible};
use crate::format::{BLOCKS_IN_SEGMENT, BlockAddr, Nid};

/// Staged blocks that updates of content leave to nodes and checkpoints when no more can be
/// borrowed.
const RESERVE: u32 = 64;

impl<D: Scheduler> F2fs<D> {
    /// Refuses a mode that the device cannot carry out.
    pub(super) fn check_remap(device: &D, options: &super::Options) -> Result<(), Error> {
        let option = match options.mode {
            Mode::RmIpu => "mode=rm-ipu",
            Mode::RmIpuAdaptive => "mode=rm-ipu-adaptive",
            Mode::Adaptive | Mode::Lfs => return Ok(()),
        };
        match device.info().capabilities.remap {
            Some(limits) if limits.pairs_per_command > 0 => Ok(()),
            _ => Err(Incompatible::NoRemap { option }.into()),
        }
    }

    /// Updates of files are remapped, all or some.
    pub(super) fn remaps(&self) -> bool {
        self.options.updates() != Updates::Plain
    }

    /// An update must not show before its fsync.
    pub(super) fn defers_updates(&self) -> bool {
        self.remaps() && (self.updates.is_atomic() || self.options.remap == RemapOrder::WithFsync)
    }

    fn remap_limits(&self) -> Option<RemapLimits> {
        self.io.device().info().capabilities.remap
    }

    /// Pairs that the device executes as one: what it holds, in whole commands, and the last
    /// command.
    pub(super) fn atomic_pairs(&self) -> usize {
        let whole = |limits: RemapLimits| {
            let held = limits.held_pairs - limits.held_pairs % limits.pairs_per_command.max(1);
            limits.pairs_per_command.saturating_add(held) as usize
        };
        self.remap_limits().map_or(0, whole)
    }

    /// Writes an update of the block at `to` where it waits for its remap. `false` if no staged
    /// block is free, or if so much of its file waits that an fsync could not complete it at once.
    pub(super) fn put_update(
        &mut self,
        owner: Nid,
        to: BlockAddr,
        content: Content,
        cause: WriteClass,
    ) -> Result<bool, Error> {
        let most = if self.defers_updates() { self.atomic_pairs() / 2 } else { usize::MAX };
        if self.io.pending_remaps.count_of(owner) >= most {
            return Ok(false);
        }
        let Some(from) = self.take_staged(RESERVE) else { return Ok(false) };
        self.io.write(Channel::UPDATES, cause, from, content)?;
        self.await_remap(owner, to, from);
        self.events.remapped_blocks += 1;
        let limit = self.remap_limits().map_or(1, |limits| limits.pairs_per_command as usize);
        if !self.defers_updates()
            && self.io.pending_remaps.len() >= limit.min(BLOCKS_IN_SEGMENT as usize)
        {
            self.remap_waiting()?;
        }
        Ok(true)
    }

    /// The block written at `from` is to get to `to`.
    pub(super) fn await_remap(&mut self, owner: Nid, to: BlockAddr, from: BlockAddr) {
        if let Some(before) = self.io.pending_remaps.add(to, Update { from, owner }) {
            self.space.release_staged(before.from);
        }
    }

    /// The block is given up: what waits to get there is not needed any more.
    pub(super) fn forget_update(&mut self, to: BlockAddr) {
        if let Some(update) = self.io.pending_remaps.remove(to) {
            self.space.release_staged(update.from);
        }
    }

    /// The block gets another address, and what waits to get there with it.
    pub(super) fn redirect_update(&mut self, update: Option<Update>, to: BlockAddr) {
        if let Some(Update { from, owner }) = update {
            self.await_remap(owner, to, from);
        }
    }

    /// A block to write one more update to, if more than `reserve` are left or more can be
    /// borrowed.
    pub(super) fn take_staged(&mut self, reserve: u32) -> Option<BlockAddr> {
        if self.space.staging_wants_section(reserve) {
            self.borrow_section();
        }
        self.space.take_staged(reserve)
    }

    /// Borrows a free section; `false` if cleaning can spare none.
    fn borrow_section(&mut self) -> bool {
        let facts = self.space_facts();
        facts.free_sections > facts.reserved_sections / 2 && self.space.borrow_section()
    }

    /// Has all updates that wait moved.
    pub(super) fn remap_waiting(&mut self) -> Result<(), Error> {
        if self.io.pending_remaps.is_empty() {
            return Ok(());
        }
        let mut pairs = std::mem::take(&mut self.scratch.pairs);
        self.io.pending_remaps.all_into(&mut pairs);
        let moved = self.io.remap(&pairs);
        if moved.is_ok() {
            self.settle(&pairs);
        }
        self.scratch.pairs = pairs;
        Ok(moved?)
    }

    /// Has updates moved that are due at the end of a call that wrote some: all, unless they wait
    /// for an fsync.
    pub(super) fn remap_due(&mut self) -> Result<(), Error> {
        if self.defers_updates() { Ok(()) } else { self.remap_waiting() }
    }

    /// Has pairs moved as one.
    fn remap_as_one(&mut self, pairs: &[RemapPair]) -> Result<(), Error> {
        self.io.remap_as_one(pairs)?;
        self.settle(pairs);
        Ok(())
    }

    /// These have moved and wait no longer. What cleaning would have moved there is older.
    pub(super) fn settle(&mut self, pairs: &[RemapPair]) {
        for pair in pairs {
            self.forget_update(BlockAddr(pair.to.0));
            self.io.held_moves.remove(BlockAddr(pair.to.0));
        }
        self.space.return_sections(false, self.discards());
    }

    /// Completes the fsync of a file of which updates wait: its nodes go out of place, too, and all
    /// of it moves as one. `false` if that cannot be done in one piece.
    pub(super) fn commit_updates(&mut self, ino: Nid) -> Result<bool, Error> {
        let nodes = self.nodes.dirty_of(ino).count() + 1;
        while self.space.staging_wants_section(nodes as u32) && self.borrow_section() {}
        if self.io.pending_remaps.count_of(ino) + nodes > self.atomic_pairs()
            || self.space.staging_free() <= nodes as u32
        {
            return Ok(false);
        }
        let logged = match self.log_nodes(ino, true) {
            // what was logged waits, and goes with the checkpoint
            Err(Error::NoSpace) => return Ok(false),
            logged => logged?,
        };
        // the content that the nodes lead to comes first, and the nodes before them in their log
        if (logged && self.updates.is_chain_unflushed()) || self.updates.is_file_unflushed(ino) {
            self.flush_for_fsync()?;
        }
        let pairs = self.io.pending_remaps.of(ino);
        let link = if logged { Some(self.io.await_link()?) } else { None };
        self.remap_as_one(&pairs)?;
        link.into_iter().for_each(|link| self.io.end_link(link));
        Ok(true)
    }

    /// Has the updates of all files moved, each file's as one.
    pub(super) fn commit_all_updates(&mut self) -> Result<(), Error> {
        for owner in self.io.pending_remaps.owners() {
            let pairs = self.io.pending_remaps.of(owner);
            self.remap_as_one(&pairs)?;
        }
        Ok(())
    }

    /// Writes the last block of a checkpoint so that the updates of `file` show with it: all of it
    /// moves as one.
    pub(super) fn commit_tail_with(
        &mut self,
        file: Nid,
        tail: BlockAddr,
        block: std::sync::Arc<dovetail_block::BlockBytes>,
    ) -> Result<(), Error> {
        let from = self.take_staged(0).ok_or(Error::NoSpace)?;
        self.io.write_bytes(Channel::UPDATES, WriteClass::Checkpoint, from, block)?;
        self.await_remap(file, tail, from);
        let pairs = self.io.pending_remaps.of(file);
        self.remap_as_one(&pairs)
    }

    /// The write modes of blocks of a file that are written together, in order, if they are left to
    /// [`adaptive_mode`].
    pub(super) fn write_modes(
        &mut self,
        ino: Nid,
        blocks: &[u64],
        facts: UpdateFacts,
        reason: WritebackReason,
    ) -> Result<WriteModes, Error> {
        let mode = self.updates.mode(self.options.updates(), facts);
        if self.options.updates() != Updates::Adaptive || mode != WriteMode::Remap {
            return Ok(WriteModes { all: mode, each: Vec::new() });
        }
        let runs = self.dirty_runs(ino, blocks)?;
        let small = runs.iter().filter(|run| !is_large(run.blocks));
        let batch = small.fold((0, 0), |sum, run| (sum.0 + run.pieces, sum.1 + run.placed));
        let times = |limits: RemapLimits| (limits.command_time.as_ns(), limits.pair_time.as_ns());
        let deferred = self.defers_updates();
        let facts = |run: &DirtyRun| RunFacts {
            blocks: run.blocks,
            pieces: run.pieces,
            batch: if is_large(run.blocks) { (run.pieces, run.placed) } else { batch },
            remap_ns: self.remap_limits().map_or((0, 0), times),
            deferred,
            // what is appended shows with the next checkpoint
            may_append: !need_ssr(&self.space_facts())
                && (!deferred
                    || matches!(
                        reason,
                        WritebackReason::Fsync | WritebackReason::DataSync | WritebackReason::Sync
                    )),
        };
        let modes =
            |run: &DirtyRun| std::iter::repeat_n(adaptive_mode(facts(run)), run.blocks as usize);
        Ok(WriteModes { all: WriteMode::Remap, each: runs.iter().flat_map(modes).collect() })
    }

    /// Runs of neighbouring blocks of the file among `blocks`.
    fn dirty_runs(&mut self, ino: Nid, blocks: &[u64]) -> Result<Vec<DirtyRun>, Error> {
        let mut runs: Vec<DirtyRun> = Vec::new();
        for &index in blocks {
            let address = match self.find_pointer(ino, index)? {
                Found::Pointer(pointer) if !pointer.address.is_hole() => Some(pointer.address),
                _ => None,
            };
            match runs.last_mut() {
                Some(run) if run.next == index => run.add(address),
                _ => {
                    let mut run =
                        DirtyRun { next: index, blocks: 0, pieces: 0, placed: 0, last: None };
                    run.add(address);
                    runs.push(run);
                }
            }
        }
        Ok(runs)
    }
}

/// The write modes of blocks that are written together: one for all, unless each has its own.
pub(super) struct WriteModes {
    all: WriteMode,
    each: Vec<WriteMode>,
}

impl WriteModes {
    /// The write mode of number `number`.
    pub(super) fn of(&self, number: usize) -> WriteMode {
        self.each.get(number).copied().unwrap_or(self.all)
    }
}

/// A run of neighbouring blocks of a file.
struct DirtyRun {
    /// The block after it.
    next: u64,
    blocks: u32,
    /// Runs on the device that hold it.
    pieces: u32,
    /// Blocks that have an address.
    placed: u32,
    last: Option<BlockAddr>,
}

impl DirtyRun {
    fn add(&mut self, address: Option<BlockAddr>) {
        (self.next, self.blocks) = (self.next + 1, self.blocks + 1);
        let Some(address) = address else { return };
        self.placed += 1;
        self.pieces += u32::from(self.last.is_none_or(|last| last.0 + 1 != address.0));
        self.last = Some(address);
    }
}
