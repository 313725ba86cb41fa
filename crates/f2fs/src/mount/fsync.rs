//! fsync: a roll-forward record in the warm node log, or a whole checkpoint.

use dovetail_block::Scheduler;

use super::F2fs;
use super::background::unless_full;
use super::checkpoint::CheckpointReason;
use super::data::{ADVISE_LOST_PARENT, FirstError, WritebackReason};
use super::io::WriteClass;
use super::node::Marks;
use super::options::FsyncMode;
use super::policy::{FsyncFacts, Logs, must_checkpoint};
use crate::error::{Damage, Error};
use crate::format::{InodeFlags, Nid};
use dovetail_vfs::FsyncRest;
use dovetail_vfs::mode::is_regular;

/// Work that is left when an fsync has written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    Wait,
    Flush,
}

const fn reason_of(data_only: bool) -> WritebackReason {
    if data_only { WritebackReason::DataSync } else { WritebackReason::Fsync }
}

impl<D: Scheduler> F2fs<D> {
    /// Makes what was written to the file survive a power cut: its content, size and attributes,
    /// and for a new file its name. With `data_only`, attributes that the content does not need may
    /// be left out.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NoSpace`]; damaged nodes.
    pub fn sync_file(&mut self, ino: u32, data_only: bool) -> Result<(), Error> {
        if self.state.is_mounted_read_only() {
            return Ok(());
        }
        self.check_writable()?;
        self.before_write_back()?;
        self.make_durable(Nid(ino), reason_of(data_only))?;
        self.after_fsync()
    }

    /// The same but for the flush at its end, which is left to the caller where
    /// [`FsyncRest::Flush`] says so. Records are then in the device's cache: a checkpoint, or
    /// another file's flush, may make them durable before.
    pub(super) fn begin_sync_file(
        &mut self,
        ino: Nid,
        data_only: bool,
    ) -> Result<FsyncRest, Error> {
        // a remap's own order decides what it needs, and without a barrier nothing is flushed
        let in_one = self.remaps()
            || self.defers_updates()
            || self.options.fsync_mode == FsyncMode::NoBarrier;
        if in_one || self.state.is_mounted_read_only() {
            return Ok(FsyncRest::Fsync);
        }
        self.check_writable()?;
        self.before_write_back()?;
        let left = self.write_for_fsync(ino, reason_of(data_only))?;
        self.io.wait()?;
        self.after_fsync()?;
        Ok(if left == Left::Flush { FsyncRest::Flush } else { FsyncRest::Nothing })
    }

    /// Looks for space where none may be freed between the pages, since a remap makes all of them
    /// durable at once.
    pub(super) fn before_write_back(&mut self) -> Result<(), Error> {
        self.look_for_headroom(0)?;
        if self.defers_updates() { self.keep_space() } else { Ok(()) }
    }

    fn after_fsync(&mut self) -> Result<(), Error> {
        self.after_buffered_write()?;
        if self.defers_updates() {
            self.keep_space()
        } else {
            unless_full(self.balance_after_pages())
        }
    }

    /// Carries out an fsync but for the housekeeping after it.
    pub(super) fn make_durable(&mut self, ino: Nid, reason: WritebackReason) -> Result<(), Error> {
        match self.write_for_fsync(ino, reason)? {
            Left::Flush => self.flush_for_fsync(),
            Left::Wait => Ok(self.io.wait()?),
            Left::Nothing => Ok(()),
        }
    }

    /// Writes what an fsync makes durable, or a checkpoint with it.
    fn write_for_fsync(&mut self, ino: Nid, reason: WritebackReason) -> Result<Left, Error> {
        if reason == WritebackReason::Fsync {
            // lazy times are no longer lazy (vfs_fsync_range)
            self.nodes.let_times_count(ino);
        }
        self.write_back(ino, reason)?;
        // Linux writes no node of the file before its data has been written
        self.io.wait()?;
        if must_checkpoint(&self.fsync_facts(ino)?) {
            self.find_parent_again(ino)?;
            let written = self.write_checkpoint_with(CheckpointReason::Sync, Some(ino));
            return written.map(|()| Left::Nothing);
        }
        if self.defers_updates() {
            if self.commit_updates(ino)? {
                return Ok(Left::Nothing);
            }
            let written = self.write_checkpoint_with(CheckpointReason::Sync, Some(ino));
            // nodes that wait for their remap must not get into another checkpoint
            self.state.stop_if(written.is_err());
            return written.map(|()| Left::Nothing);
        }
        if self.log_nodes(ino, false)? {
            let link = self.io.await_link()?;
            self.io.end_link(link);
        }
        // what was remapped is durable
        let flushes = !self.remaps() || self.updates.is_file_unflushed(ino);
        Ok(if flushes { Left::Flush } else { Left::Wait })
    }

    /// Makes durable what an fsync wrote, if it is to.
    pub(super) fn flush_for_fsync(&mut self) -> Result<(), Error> {
        self.updates.note_flush();
        if self.options.fsync_mode == FsyncMode::NoBarrier {
            return Ok(self.io.wait()?);
        }
        Ok(self.io.flush()?)
    }

    fn fsync_facts(&mut self, ino: Nid) -> Result<FsyncFacts, Error> {
        let raw = self.inode(ino)?;
        let (mode, links, advise) = (raw.i_mode.get(), raw.i_links.get(), raw.i_advise);
        let (flags, parent) = (InodeFlags(raw.i_flags.get()), Nid(raw.i_pino.get()));
        let user = self.committed.checkpoint().user_block_count;
        let no_headroom_to_log = self.has_no_headroom_to_log(ino)?;
        let since = self.since.fsync_facts(ino, parent);
        let strict = self.options.fsync_mode == FsyncMode::Strict;
        Ok(FsyncFacts {
            special: !is_regular(mode),
            compressed: flags.has(InodeFlags::COMPRESSED),
            links,
            lost_parent: advise & ADVISE_LOST_PARENT != 0,
            no_space_to_recover: self.counts.valid_blocks + self.since.allocated() > user
                || no_headroom_to_log,
            two_logs: self.options.logs == Logs::Two,
            strict_parent_changed: strict && since.strict_parent_changed,
            no_chain: self.events.checkpoints == 0 || since.no_chain,
            ..since
        })
    }

    /// Clears the mark of a lost parent if the noted name still leads to the inode: later fsyncs can
    /// then be records.
    fn find_parent_again(&mut self, ino: Nid) -> Result<(), Error> {
        let raw = self.inode(ino)?;
        let lost = raw.i_advise & ADVISE_LOST_PARENT != 0;
        if !lost || raw.i_links.get() != 1 || !is_regular(raw.i_mode.get()) {
            return Ok(());
        }
        let (parent, name) = (Nid(raw.i_pino.get()), raw.name().to_vec());
        // the directory of the note may be gone, and its number another file's: no error then, and
        // where the device fails the fsync is a checkpoint, which meets it
        let noted = self.find_entry(parent, &name).ok().flatten();
        if noted.is_some_and(|entry| entry.ino == ino) {
            self.edit_inode(ino)?.i_advise &= !ADVISE_LOST_PARENT;
        }
        Ok(())
    }

    /// Writes the dirty inode, direct nodes and xattr node of the file, marked so that recovery
    /// finds them. `true` if there were any.
    pub(super) fn log_nodes(&mut self, ino: Nid, by_remap: bool) -> Result<bool, Error> {
        let mut direct = std::mem::take(&mut self.scratch.nodes);
        let logged = self.log_direct_nodes(ino, by_remap, &mut direct);
        self.scratch.nodes = direct;
        logged
    }

    /// The same; `direct` becomes the direct nodes and the xattr node.
    fn log_direct_nodes(
        &mut self,
        ino: Nid,
        by_remap: bool,
        direct: &mut Vec<Nid>,
    ) -> Result<bool, Error> {
        direct.clear();
        direct.extend(self.nodes.dirty_of(ino));
        for &nid in &*direct {
            self.nodes.get(nid).ok_or(Damage::NoNode(nid))?;
        }
        let nodes = &mut self.nodes;
        direct.retain(|&nid| {
            let offset = nodes.get(nid).map_or(0, |node| node.offset);
            nid != ino && !crate::format::is_indirect(offset)
        });
        let inode_first = !self.since.is_logged(ino);
        let inode_dirty = self.nodes.is_dirty_beyond_times(ino);
        let unmarked = self.since.has_unmarked_nodes(ino);
        if direct.is_empty() && !inode_dirty && !unmarked {
            return Ok(false);
        }
        for &nid in &*direct {
            self.write_node(nid, Marks { fsync: true, dentry: false, by_remap }, WriteClass::Node)?;
        }
        if inode_dirty || inode_first || unmarked {
            let dentry = inode_first && self.since.is_new(ino);
            self.write_node(ino, Marks { fsync: true, dentry, by_remap }, WriteClass::Node)?;
            self.since.note_logged(ino);
        }
        Ok(true)
    }

    /// Makes everything survive a power cut.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NoSpace`]; damaged nodes. A block that cannot be read keeps its file
    /// from being written, and no other; one that a changed directory needs, all of them.
    pub fn sync_all(&mut self) -> Result<(), Error> {
        if self.state.is_mounted_read_only() {
            return Ok(());
        }
        self.check_writable()?;
        let mut first = FirstError::default();
        self.write_back_all(WritebackReason::Sync, &mut first)?;
        self.commit_all_updates()?;
        if self.is_dirty() {
            self.write_checkpoint(CheckpointReason::Sync)?;
        } else {
            self.io.flush()?;
        }
        first.end()
    }

    /// Ends the mount: everything is written, discarded blocks are told, and the next mount finds a
    /// clean volume.
    ///
    /// # Errors
    /// As [`Self::sync_all`]; the device then holds the last state that could be written.
    pub fn unmount(mut self) -> Result<D, Error> {
        if self.is_read_only() {
            return match self.check_writable() {
                Err(Error::ReadOnly) if !self.state.is_stopped() => Ok(self.io.into_device()),
                Err(error) => Err(error),
                Ok(()) => Ok(self.io.into_device()),
            };
        }
        let mut first = FirstError::default();
        for ino in self.orphans.list() {
            first.note(self.drop_if_readable(ino)?);
        }
        self.write_back_all(WritebackReason::Sync, &mut first)?;
        self.commit_all_updates()?;
        self.space.return_sections(true, self.discards());
        let clean = self.committed.checkpoint().flags.has(crate::format::CheckpointFlags::UMOUNT);
        if self.is_dirty() || !clean {
            self.write_checkpoint(CheckpointReason::Unmount)?;
        }
        let discarded = self.discard_some(usize::MAX, 1)?;
        if discarded && self.superblock.is_zoned() {
            self.write_checkpoint(CheckpointReason::Trimmed)?;
        }
        self.io.flush()?;
        first.end()?;
        Ok(self.io.into_device())
    }
}
