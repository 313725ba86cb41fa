//! The end of a transaction: its content is written, checksums are put on its blocks, and the
//! journal commits them.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_block::{Content, DeviceError, EventId, Scheduler};
use dovetail_vfs::FsyncRest;

use super::Ext;
use super::meta::{Kind, Running};
use super::options::DataMode;
use crate::error::{Error, Place};
use crate::format::{BlockAddr, Compat, GroupNo, Ino, RoCompat, SUPERBLOCK_SIZE};
use crate::io::Channel;
use crate::journal::{CommitMode, Transaction};

/// The commit that began last.
#[derive(Debug)]
pub(super) struct LastCommit {
    /// It comes when the commit is over.
    event: EventId,
    /// Inodes that it makes durable.
    inodes: BTreeSet<Ino>,
    /// While it is under way, the blocks that are free when it is over. The journal may have ended
    /// its part before, for a checkpoint.
    freed: Option<Vec<(BlockAddr, u32)>>,
}

impl<D: Scheduler> Ext<D> {
    /// Commits the running transaction, if there is something in it.
    pub(super) fn commit(&mut self) -> Result<(), Error> {
        self.begin_commit()?;
        self.end_commit()
    }

    /// The first part of a commit: all but the flushes and the commit block.
    fn begin_commit(&mut self) -> Result<(), Error> {
        self.end_commit()?;
        self.send_content_of_emptied()?;
        if self.running.is_empty() && self.running.ordered.is_empty() {
            return Ok(());
        }
        let event = EventId(self.last_commit.as_ref().map_or(0, |last| last.event.0 + 1));
        let inodes = self.running.inodes.union(&self.running.ordered).copied().collect();
        self.last_commit = Some(LastCommit { event, inodes, freed: None });
        self.io.begin_commit();
        match self.log_running() {
            Ok(freed) => {
                if let Some(last) = &mut self.last_commit {
                    last.freed = Some(freed);
                }
                Ok(())
            }
            failed => self.commit_is_over(failed.map(drop)),
        }
    }

    /// After a power cut a file that was emptied has its old content, or what was written by the
    /// last commit. Content that finds no place waits for the next one: what is committed does not
    /// lead to it.
    fn send_content_of_emptied(&mut self) -> Result<(), Error> {
        let has_content = |ino: &Ino| self.delayed.count(*ino) > 0;
        for ino in self.emptied.iter().copied().filter(has_content).collect::<Vec<_>>() {
            match self.send_before_commit(ino) {
                Err(Error::NoSpace) => {}
                sent => sent?,
            }
        }
        Ok(())
    }

    /// The rest of a commit, if one is under way.
    fn end_commit(&mut self) -> Result<(), Error> {
        let Some(freed) = self.last_commit.as_mut().and_then(|last| last.freed.take()) else {
            return Ok(());
        };
        let ended = self.end_commit_that_frees(&freed);
        self.commit_is_over(ended)
    }

    fn end_commit_that_frees(&mut self, freed: &[(BlockAddr, u32)]) -> Result<(), Error> {
        if let Some(journal) = &mut self.journal {
            journal.end_commit(&mut self.io)?;
        }
        self.end_batch()?;
        self.release_freed(freed)?;
        self.discard_freed(freed)
    }

    fn commit_is_over(&mut self, committed: Result<(), Error>) -> Result<(), Error> {
        let event = self.last_commit.as_ref().map_or(EventId(0), |last| last.event);
        self.io.end_commit(event);
        // what was half committed must not be built upon; without space nothing was begun
        self.stopped |= committed.as_ref().is_err_and(|error| *error != Error::NoSpace);
        committed
    }

    /// Writes the running transaction to the log; returns what it frees.
    fn log_running(&mut self) -> Result<Vec<(BlockAddr, u32)>, Error> {
        let (journaled, waiting) = self.write_ordered()?;
        let ordered = std::mem::take(&mut self.running.ordered);
        self.encode_inodes()?;
        self.encode_groups()?;
        if self.running.superblock {
            self.encode_superblock()?;
        }
        let running = std::mem::take(&mut self.running);
        let mut transaction = self.logged(&running);
        journaled.into_iter().for_each(|(at, content)| transaction.write(at.0, content));
        let mode = CommitMode { barrier: self.options.barrier, at: self.date };
        if let Some(journal) = &mut self.journal {
            journal.begin_commit(&mut self.io, transaction, mode)?;
        }
        if self.options.data == DataMode::Writeback {
            let is_dirty = |ino: &Ino| self.pages.dirty_count(ino.0.into()) > 0;
            self.running.ordered.extend(ordered.into_iter().filter(is_dirty));
        }
        self.running.ordered.extend(&waiting);
        self.running.journaled.extend(waiting.intersection(&running.journaled));
        Ok(running.freed)
    }

    fn logged(&mut self, running: &Running) -> Transaction {
        let mut transaction = Transaction::default();
        for at in &running.revokes {
            transaction.revoke(at.0);
        }
        for (&at, &kind) in &running.blocks {
            if let Some(block) = self.sealed(at, kind) {
                transaction.write(at.0, Content::Bytes(block));
            }
        }
        transaction
    }

    fn discard_freed(&mut self, freed: &[(BlockAddr, u32)]) -> Result<(), Error> {
        if self.options.discard {
            let extents: Vec<_> =
                freed.iter().map(|(start, blocks)| (start.0, u64::from(*blocks))).collect();
            self.io.discard(&extents)?;
        }
        Ok(())
    }

    /// Today's date in seconds since 1970, as the superblock and deleted inodes have it.
    pub(super) fn date_s(&self) -> u64 {
        self.date.seconds.try_into().unwrap_or(0)
    }

    /// Commits if the transaction has grown to what one should have at most.
    pub(super) fn commit_if_large(&mut self) -> Result<(), Error> {
        let logged = self.running.size(&self.superblock);
        let size = logged + self.running.ordered.len() + self.journaled_blocks();
        if size > self.max_transaction() / 2 { self.commit() } else { Ok(()) }
    }

    /// Blocks that a transaction should have at most.
    pub(super) fn max_transaction(&self) -> usize {
        self.journal.as_ref().map_or(usize::MAX, |journal| journal.max_transaction())
    }

    /// The block that holds the superblock, and the byte where it begins.
    fn superblock_place(&self) -> (BlockAddr, usize) {
        match self.block_size() {
            1024 => (BlockAddr(1), 0),
            _ => (BlockAddr(0), 1024),
        }
    }

    /// The volume uses these features from now on. As in Linux, its superblock says so with the
    /// first use: mke2fs can leave them out.
    pub(super) fn note_features(&mut self, compat: Compat, ro_compat: RoCompat) {
        let superblock = &mut self.superblock;
        if superblock.compat.has(compat) && superblock.ro_compat.has(ro_compat) {
            return;
        }
        superblock.compat = superblock.compat.with(compat);
        superblock.ro_compat = superblock.ro_compat.with(ro_compat);
        self.note_edit();
        self.running.superblock = true;
    }

    fn encode_superblock(&mut self) -> Result<(), Error> {
        let (at, offset) = self.superblock_place();
        let superblock = self.superblock();
        let block = self.edit_meta(at, Kind::Plain, Place::Superblock(GroupNo(0)))?;
        if let Some(bytes) =
            block.get_mut(offset..).and_then(|rest| rest.first_chunk_mut::<SUPERBLOCK_SIZE>())
        {
            *bytes = superblock.encode(bytes);
        }
        Ok(())
    }

    /// Writes the superblock in its place at once; nothing of it is in the log then, or it is the
    /// same but for what is written here.
    pub(super) fn write_superblock(&mut self) -> Result<(), Error> {
        self.encode_superblock()?;
        let (at, _) = self.superblock_place();
        if let Some(block) = self.sealed(at, Kind::Plain) {
            self.io.write_now(
                Channel::Home,
                at.0,
                Content::Bytes(Arc::clone(&block)),
                self.options.barrier,
            )?;
        }
        self.running.blocks.remove(&at);
        if self.running.is_empty() {
            self.running.began = None;
        }
        Ok(())
    }

    /// Makes a file survive a power cut; with `data_only` its content and what is needed to find
    /// it.
    pub(super) fn sync_file(&mut self, ino: Ino, data_only: bool) -> Result<(), Error> {
        self.check_writable()?;
        self.inode(ino)?;
        self.end_commit()?;
        let writes = self.pages.dirty_count(ino.0.into()) > 0;
        self.write_back(ino)?;
        // Linux looks at the journal when the content has been written (file_write_and_wait_range)
        self.io.wait()?;
        let commits = self.must_commit(ino, data_only);
        let under_way = self.last_commit.as_ref().filter(|last| !self.io.is_over(last.event));
        // one that has nothing of the file does not concern it (Linux: jbd2_complete_transaction)
        let under_way = under_way.filter(|last| commits || last.inodes.contains(&ino));
        if let Some(last) = under_way {
            let (event, has_all) = (last.event, !commits && last.inodes.contains(&ino));
            self.io.await_commit(event)?;
            // what it has not can go with the next one, together with what others bring until then
            if has_all {
                // its flush may have come before what was just written
                return if writes { self.flush_content() } else { Ok(()) };
            }
            if commits {
                return Err(Error::Again);
            }
        }
        if commits {
            self.commit()?;
            return if self.waits_for_room(ino) { Err(Error::NoSpace) } else { Ok(()) };
        }
        self.flush_content()
    }

    /// The running transaction has something that an fsync, or fdatasync, of the file makes durable.
    fn must_commit(&self, ino: Ino, data_only: bool) -> bool {
        let changed = if data_only { &self.running.content } else { &self.running.inodes };
        changed.contains(&ino) || self.running.ordered.contains(&ino)
    }

    /// Hands the file's content to the device, and says what is left of its fsync: nothing but a
    /// flush where [`Self::sync_file`] would neither commit nor wait for a commit.
    pub(super) fn begin_sync_file(
        &mut self,
        ino: Ino,
        data_only: bool,
    ) -> Result<FsyncRest, Error> {
        self.check_writable()?;
        self.inode(ino)?;
        self.write_back(ino)?;
        self.io.kick()?;
        let waits = self.must_commit(ino, data_only) || self.is_being_committed(ino);
        let is_flush = self.options.barrier && !waits;
        Ok(if is_flush { FsyncRest::Flush } else { FsyncRest::Fsync })
    }

    /// The commit under way has something of the file, or it is not known to have not.
    fn is_being_committed(&self, ino: Ino) -> bool {
        let Some(last) = &self.last_commit else { return false };
        !self.io.is_over(last.event) || (last.freed.is_some() && last.inodes.contains(&ino))
    }

    /// Begins what makes several files survive a power cut: one commit if they need any, and else a
    /// flush. For devices that carry a command out when it is submitted: a plan would keep its lock.
    pub(super) fn begin_sync_files(&mut self, files: &[(Ino, bool)]) -> Result<FsyncRest, Error> {
        self.check_writable()?;
        // without a barrier nothing is flushed, and a batch of new addresses ends with its commit
        if !self.options.barrier || self.journal.is_none() || self.batch.is_some() {
            return Ok(FsyncRest::Fsync);
        }
        for &(ino, _) in files {
            self.inode(ino)?;
            self.write_back(ino)?;
        }
        if files.iter().any(|&(ino, data_only)| self.must_commit(ino, data_only)) {
            self.begin_commit()?;
        }
        self.io.kick()?;
        Ok(FsyncRest::Flush)
    }

    /// Goes on with the commit under way, if there is one, when the device was flushed.
    pub(super) fn go_on_with_commit(
        &mut self,
        flushed: Result<(), String>,
    ) -> Result<FsyncRest, Error> {
        let is_under_way = self.last_commit.as_ref().is_some_and(|last| last.freed.is_some());
        let written = match (flushed, &mut self.journal) {
            (Err(failed), _) => Err(DeviceError::Host(failed).into()),
            (Ok(()), Some(journal)) if is_under_way => {
                journal.go_on_after_flush(&mut self.io).map_err(Error::from)
            }
            // it ended with another call
            _ => self.check_writable().map(|()| false),
        };
        match written {
            Ok(true) => Ok(FsyncRest::Flush),
            Ok(false) => self.end_commit().map(|()| FsyncRest::Nothing),
            Err(error) => {
                self.stopped = true;
                Err(error)
            }
        }
    }

    /// Makes written content durable for which no metadata has to be.
    fn flush_content(&mut self) -> Result<(), Error> {
        let flushed = if self.options.barrier { self.io.flush() } else { self.io.wait() };
        Ok(flushed?)
    }

    /// Makes everything survive a power cut. What keeps one file from it is told when the others
    /// are through.
    pub(super) fn sync_all(&mut self) -> Result<(), Error> {
        if self.read_only {
            return Ok(());
        }
        self.sync_others()?.map_or(Ok(()), Err)
    }

    /// As [`Self::sync_all`]; what kept a file from it comes back.
    fn sync_others(&mut self) -> Result<Option<Error>, Error> {
        self.check_writable()?;
        let left = self.write_back_all()?;
        let commits = !self.running.is_empty() || !self.running.ordered.is_empty();
        self.commit()?;
        if !commits && self.options.barrier {
            self.io.flush()?;
        }
        self.io.wait()?;
        let lacks_room = self.running.journaled.iter().any(|&ino| self.waits_for_room(ino));
        Ok(left.or(lacks_room.then_some(Error::NoSpace)))
    }

    /// Content that goes through the journal found no place at the last commit.
    fn waits_for_room(&self, ino: Ino) -> bool {
        self.running.journaled.contains(&ino) && self.pages.dirty_count(ino.0.into()) > 0
    }

    /// Ends the mount: everything is in its place, and the volume is marked as clean. The device
    /// comes back.
    ///
    /// # Errors
    /// [`Error::Io`]; damage that was met; [`Error::NoSpace`] if content found no place, when all
    /// else has been written.
    pub fn unmount(mut self) -> Result<D, Error> {
        if self.is_read_only() {
            return Ok(self.into_device());
        }
        self.holds.clear();
        self.edits_before_call = self.edits;
        for ino in self.orphans.clone() {
            self.clean_orphan(ino)?;
            self.commit_if_large()?;
        }
        self.drop_windows()?;
        let left = self.sync_others()?;
        if let Some(journal) = &mut self.journal {
            journal.checkpoint_all(&mut self.io)?;
        }
        self.superblock.incompat =
            self.superblock.incompat.without(crate::format::Incompat::RECOVER);
        self.superblock.write_time = self.date_s();
        self.write_superblock()?;
        if self.options.barrier {
            self.io.flush()?;
        }
        left.map_or_else(|| Ok(self.into_device()), Err)
    }
}
