//! The journal of a mounted volume: transactions go to the log, and later from memory to where they
//! belong.
//!
//! A commit writes revokes and logged blocks, waits, flushes, and writes the commit block with FUA;
//! or its owner flushes the device before and after the commit block, and does other things
//! meanwhile.
//! Committed content stays in memory until it is written home; a transaction leaves the log when
//! the newest content of all its blocks is home, durable, and the superblock says where the log
//! begins now.
//!
//! Hazard: a revoked block may hold a file's content as soon as the revoke is committed: its
//! committed content must not be written home after that. Content that is newer than the committed
//! one must not be written home at all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, Content, Scheduler};
use dovetail_time::SimTime;
use dovetail_vfs::Timestamp;

use super::block::{CommitBlock, RevokeBlock, seal_tail};
use super::header::{BlockType, Header, MAGIC};
use super::replay::{UseOfLog, apply, write_superblock};
use super::tag::{Tag, TagFlags};
use super::{
    JournalError, JournalExtent, JournalFeatures, JournalMap, JournalSuperblock, Replayed, Tid,
    Transaction, be32,
};
use crate::io::{Channel, Io, bytes};

/// A transaction in the log.
#[derive(Clone, Copy, Debug)]
struct Logged {
    tid: Tid,
    start: u32,
    blocks: u32,
    at: SimTime,
}

/// A commit under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    tid: Tid,
    start: u32,
    blocks: u32,
    logged: usize,
    mode: CommitMode,
    /// Its commit block is written, and has to be flushed; else the blocks before it have.
    has_commit_block: bool,
}

/// Content that is committed, or about to be, and not yet home.
#[derive(Clone, Debug)]
struct Committed {
    tid: Tid,
    content: Content,
}

/// Barriers and time of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitMode {
    /// The device's cache is flushed, and the commit block forced through.
    pub(crate) barrier: bool,
    /// The time in the commit block.
    pub(crate) at: Timestamp,
}

/// Events since the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalEvents {
    /// Transactions committed.
    pub commits: u64,
    /// Blocks that they logged, without descriptors, revokes and commits.
    pub logged: u64,
    /// Checkpoints, by which the log got room.
    pub checkpoints: u64,
}

/// The journal of a mounted volume.
#[derive(Debug)]
pub(crate) struct Journal {
    map: JournalMap,
    superblock: JournalSuperblock,
    /// The block of the log that is written next.
    head: u32,
    /// The number of the next transaction.
    next: Tid,
    log: VecDeque<Logged>,
    home: BTreeMap<u64, Committed>,
    /// Nothing goes home before it has ended. `home` has its blocks already, in place of older
    /// content that is in the log alone.
    under_way: Option<UnderWay>,
    events: JournalEvents,
}

impl Journal {
    /// Reads the journal's superblock and replays the log, if there is one, or empties it.
    ///
    /// # Errors
    /// A journal that cannot be used; errors of the device.
    pub(crate) fn open<D: Scheduler>(
        io: &mut Io<D>,
        map: JournalMap,
        volume_blocks: u64,
        use_of_log: UseOfLog,
    ) -> Result<(Self, Replayed), JournalError> {
        let mut superblock = Self::read_superblock(io, &map)?;
        let replayed = apply(io, &map, &mut superblock, volume_blocks, use_of_log)?;
        let (head, next) = (superblock.first, superblock.sequence);
        let (log, home, under_way, events) = Default::default();
        Ok((Self { map, superblock, head, next, log, home, under_way, events }, replayed))
    }

    /// The journal's superblock.
    pub(crate) fn read_superblock<D: Scheduler>(
        io: &mut Io<D>,
        map: &JournalMap,
    ) -> Result<JournalSuperblock, JournalError> {
        let place = map.physical(0).ok_or(JournalError::NoSuperblock)?;
        let block = bytes(&io.read(place)?);
        let size = io.block_size();
        JournalSuperblock::parse(&block[..size], size as u32, map.blocks())
    }

    /// Adds features; the log must be empty, as it is after [`Self::open`].
    pub(crate) fn set_features(&mut self, features: JournalFeatures) {
        let mut all = self.superblock.features.0 | features.0;
        if features.has_checksums() {
            let sums = JournalFeatures::CSUM_V2.0 | JournalFeatures::CSUM_V3.0;
            all = (all & !sums) | (features.0 & sums);
        }
        self.superblock.features = JournalFeatures(all);
    }

    #[cfg(test)]
    pub(crate) fn superblock(&self) -> &JournalSuperblock {
        &self.superblock
    }

    /// The runs that it lies in.
    pub(crate) fn extents(&self) -> impl Iterator<Item = JournalExtent> {
        self.map.extents()
    }

    pub(crate) fn events(&self) -> JournalEvents {
        self.events
    }

    /// The number that the running transaction will have.
    #[cfg(test)]
    pub(crate) fn next_tid(&self) -> Tid {
        self.next
    }

    /// Blocks that a transaction should log at most: a quarter of the log.
    pub(crate) fn max_transaction(&self) -> usize {
        (self.superblock.capacity() / 4) as usize
    }

    /// The committed content of a block that is not home yet.
    pub(crate) fn committed(&self, block: u64) -> Option<&Content> {
        self.home.get(&block).map(|committed| &committed.content)
    }

    /// Number of blocks that are committed and not home yet.
    pub(crate) fn waiting(&self) -> usize {
        self.home.len()
    }

    /// Time at which the oldest transaction of the log was committed.
    pub(crate) fn oldest(&self) -> Option<SimTime> {
        self.log.front().map(|logged| logged.at)
    }

    fn free(&self) -> u32 {
        self.superblock.capacity() - self.log.iter().map(|logged| logged.blocks).sum::<u32>()
    }

    /// Blocks of the log that a transaction takes.
    fn needed(&self, transaction: &Transaction) -> u64 {
        let size = self.superblock.block_size as usize;
        let logged = transaction.blocks.len();
        let descriptors = logged.div_ceil(self.superblock.tag_format().per_block(size));
        let per_revoke = RevokeBlock::per_block(self.superblock.features, size);
        (logged + descriptors + transaction.revokes.len().div_ceil(per_revoke) + 1) as u64
    }

    /// Both parts of a commit.
    ///
    /// # Errors
    /// Those of [`Self::begin_commit`].
    #[cfg(test)]
    pub(crate) fn commit<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        transaction: Transaction,
        mode: CommitMode,
    ) -> Result<(), JournalError> {
        self.begin_commit(io, transaction, mode)?;
        self.end_commit(io)
    }

    /// The first part of a commit: all blocks but the commit block. What it says about content that
    /// lies outside the journal (ordered mode) must have been written through the same `io` before.
    /// The owner ends it, with [`Self::end_commit`] or by [`Self::go_on_after_flush`].
    ///
    /// # Errors
    /// [`JournalError::TooLarge`]; [`JournalError::Io`], after which the log must not be written
    /// again.
    pub(crate) fn begin_commit<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        transaction: Transaction,
        mode: CommitMode,
    ) -> Result<(), JournalError> {
        self.end_commit(io)?;
        if transaction.is_empty() {
            return Ok(());
        }
        let (needed, capacity) = (self.needed(&transaction), self.superblock.capacity());
        let Some(needed) = u32::try_from(needed).ok().filter(|&needed| needed <= capacity) else {
            return Err(JournalError::TooLarge {
                needed: needed.min(u32::MAX.into()) as u32,
                capacity,
            });
        };
        if needed > self.free() {
            self.checkpoint(io, needed.max(capacity / 4))?;
        }
        if !transaction.revokes.is_empty() {
            self.superblock.features.0 |= JournalFeatures::REVOKE.0;
        }
        if self.log.is_empty() {
            self.begin(io)?;
        }
        let start = self.head;
        self.write_revokes(io, &transaction)?;
        self.write_blocks(io, &transaction)?;
        self.under_way = Some(UnderWay {
            tid: self.next,
            start,
            blocks: needed,
            logged: transaction.blocks.len(),
            mode,
            has_commit_block: false,
        });
        self.keep_until_home(transaction);
        Ok(())
    }

    /// The rest of a commit, if one is under way: its flushes, and the commit block.
    ///
    /// # Errors
    /// [`JournalError::Io`], as of [`Self::begin_commit`].
    pub(crate) fn end_commit<D: Scheduler>(&mut self, io: &mut Io<D>) -> Result<(), JournalError> {
        let Some(under_way) = self.under_way else { return Ok(()) };
        let barrier = under_way.mode.barrier;
        if !under_way.has_commit_block {
            if barrier {
                io.flush()?;
            } else {
                io.wait()?;
            }
            self.write_commit_block(io, under_way, barrier)?;
        } else if barrier {
            io.flush()?;
        }
        self.ended(under_way, io.now());
        Ok(())
    }

    /// Goes on with the commit under way, if there is one, after a flush of the device that began
    /// when its last part had been written. Tells whether it wants one more.
    ///
    /// # Errors
    /// [`JournalError::Io`], as of [`Self::begin_commit`].
    pub(crate) fn go_on_after_flush<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
    ) -> Result<bool, JournalError> {
        let Some(under_way) = self.under_way else { return Ok(false) };
        if under_way.has_commit_block {
            self.ended(under_way, io.now());
            return Ok(false);
        }
        self.write_commit_block(io, under_way, false)?;
        self.under_way = Some(UnderWay { has_commit_block: true, ..under_way });
        Ok(true)
    }

    fn ended(&mut self, under_way: UnderWay, at: SimTime) {
        let UnderWay { tid, start, blocks, logged, .. } = under_way;
        self.log.push_back(Logged { tid, start, blocks, at });
        self.events.commits += 1;
        self.events.logged += logged as u64;
        self.under_way = None;
    }

    /// The log was empty: from now on the superblock says where it begins.
    fn begin<D: Scheduler>(&mut self, io: &mut Io<D>) -> Result<(), JournalError> {
        (self.superblock.start, self.superblock.sequence) = (self.head, self.next);
        write_superblock(io, &self.map, &self.superblock)
    }

    fn write_revokes<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        transaction: &Transaction,
    ) -> Result<(), JournalError> {
        let size = self.superblock.block_size as usize;
        let features = self.superblock.features;
        let revokes: Vec<u64> = transaction.revokes.iter().copied().collect();
        if let Some(&wide) = revokes.last().filter(|&&block| block > u32::MAX.into())
            && !features.has(JournalFeatures::WIDE)
        {
            return Err(JournalError::Narrow(wide));
        }
        for blocks in revokes.chunks(RevokeBlock::per_block(features, size)) {
            let mut block = Box::new([0; BLOCK_SIZE as usize]);
            let revoke = RevokeBlock { blocks: blocks.to_vec() };
            revoke.write(&mut block[..size], self.next, features, self.superblock.seed());
            self.append(io, Content::Bytes(block.into()))?;
        }
        Ok(())
    }

    fn write_blocks<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        transaction: &Transaction,
    ) -> Result<(), JournalError> {
        let size = self.superblock.block_size as usize;
        let (format, seed) = (self.superblock.tag_format(), self.superblock.seed());
        let all: Vec<(&u64, &Content)> = transaction.blocks.iter().collect();
        for blocks in all.chunks(format.per_block(size)) {
            let (mut tags, mut logged) = (Vec::new(), Vec::new());
            for &(&block, content) in blocks {
                let (content, flags) = escape(content);
                let checksum = format.checksum(seed, self.next, &bytes(&content)[..size]);
                tags.push(Tag { block, flags, checksum });
                logged.push(content);
            }
            let mut descriptor = Box::new([0; BLOCK_SIZE as usize]);
            let header = Header { kind: BlockType::DESCRIPTOR, sequence: self.next };
            header.write(&mut descriptor[..]);
            format.write(&mut descriptor[..size], &tags, &self.superblock.uuid)?;
            if format.tail() > 0 {
                seal_tail(&mut descriptor[..size], seed);
            }
            self.append(io, Content::Bytes(descriptor.into()))?;
            logged.into_iter().try_for_each(|content| self.append(io, content))?;
        }
        Ok(())
    }

    /// Writes the commit block and waits for it; with `fua` it survives a power cut then.
    fn write_commit_block<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        under_way: UnderWay,
        fua: bool,
    ) -> Result<(), JournalError> {
        let size = self.superblock.block_size as usize;
        let mut block = Box::new([0; BLOCK_SIZE as usize]);
        let commit = CommitBlock { sequence: under_way.tid, at: under_way.mode.at };
        commit.write(&mut block[..size], self.superblock.features, self.superblock.seed());
        let place = self.map.physical(self.head).unwrap_or(0);
        self.head = self.superblock.after(self.head, 1);
        Ok(io.write_now(Channel::Journal, place, Content::Bytes(block.into()), fua)?)
    }

    fn append<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        content: Content,
    ) -> Result<(), JournalError> {
        let place = self.map.physical(self.head).unwrap_or(0);
        self.head = self.superblock.after(self.head, 1);
        Ok(io.write(Channel::Journal, place, content)?)
    }

    fn keep_until_home(&mut self, transaction: Transaction) {
        let tid = self.next;
        self.next = tid.next();
        for block in transaction.revokes {
            self.home.remove(&block);
        }
        let blocks = transaction.blocks.into_iter();
        self.home.extend(blocks.map(|(block, content)| (block, Committed { tid, content })));
    }

    /// Writes home what the oldest transactions hold until the log has `wanted` free blocks.
    pub(crate) fn checkpoint<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        wanted: u32,
    ) -> Result<(), JournalError> {
        self.end_commit(io)?;
        let (mut free, mut count) = (self.free(), 0);
        while free < wanted && count < self.log.len() {
            free += self.log[count].blocks;
            count += 1;
        }
        self.checkpoint_first(io, count)
    }

    /// Writes home what was committed up to `upto`.
    pub(crate) fn checkpoint_older<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        upto: SimTime,
    ) -> Result<(), JournalError> {
        let count = self.log.iter().take_while(|logged| logged.at <= upto).count();
        self.checkpoint_first(io, count)
    }

    /// Writes home all that was committed; the log is empty then.
    pub(crate) fn checkpoint_all<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
    ) -> Result<(), JournalError> {
        self.end_commit(io)?;
        self.checkpoint_first(io, self.log.len())
    }

    fn checkpoint_first<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        count: usize,
    ) -> Result<(), JournalError> {
        self.end_commit(io)?;
        let Some(last) =
            count.checked_sub(1).and_then(|last| self.log.get(last)).map(|logged| logged.tid)
        else {
            return Ok(());
        };
        let due = self.home.iter().filter(|(_, committed)| !last.is_before(committed.tid));
        let due: Vec<u64> = due.map(|(&block, _)| block).collect();
        for block in due {
            if let Some(committed) = self.home.remove(&block) {
                io.write(Channel::Home, block, committed.content)?;
            }
        }
        io.flush()?;
        self.log.drain(..count);
        self.events.checkpoints += 1;
        let (start, sequence) = match self.log.front() {
            Some(oldest) => (oldest.start, oldest.tid),
            None => (0, self.next),
        };
        (self.superblock.start, self.superblock.sequence) = (start, sequence);
        write_superblock(io, &self.map, &self.superblock)
    }
}

/// A block as it is logged: one that begins with the journal's magic number would look like a block
/// of the journal.
fn escape(content: &Content) -> (Content, TagFlags) {
    match content {
        Content::Bytes(bytes) if be32(&bytes[..], 0) == MAGIC => {
            let mut bytes = Arc::clone(bytes);
            Arc::make_mut(&mut bytes)[..4].fill(0);
            (Content::Bytes(bytes), TagFlags::ESCAPE)
        }
        other => (other.clone(), TagFlags::default()),
    }
}
