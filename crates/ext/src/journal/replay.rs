//! Committed content of a log: for each block of the volume the block of the journal that it is to
//! be copied from.
//!
//! The log goes from its start to the first block that does not go on where the one before ended:
//! another number, no magic. A transaction counts when its commit block is there. A block that a
//! transaction revokes is not copied from it nor from those before. As in the kernel, the first pass
//! skips the logged blocks; a second one reads those of complete transactions.
//!
//! A committed transaction in which a checksum is wrong is damaged, and ends the log: nothing may be
//! written to the volume then, as with the kernel, whose mount fails. One that is older than those
//! before it is of an earlier journal, which lay here: it ends the log as any other block does. What
//! was being written when the power went is not committed.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_block::{Content, Scheduler};
use dovetail_time::SimTime;
use rustc_hash::FxHashMap;

use super::block::{CommitBlock, RevokeBlock, tail_is_right};
use super::header::{BlockType, Header, MAGIC};
use super::read::LogReader;
use super::tag::TagFlags;
use super::{JournalError, JournalMap, JournalSuperblock, Tid};
use crate::io::{Channel, Io, bytes};

/// Location of the newest committed content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The block of the journal.
    pub at: u32,
    /// Its first four bytes were taken out.
    pub escaped: bool,
}

/// Reason why the log ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The superblock says that it is empty.
    Empty,
    /// A block of no transaction, or of an old one.
    End,
    /// A block of a type that is not known.
    UnknownType(BlockType),
    /// A committed transaction is damaged: this block of the journal has a wrong checksum.
    Damaged(u32),
    /// A transaction of a journal that lay here before, by its time.
    Stale,
    /// Every block of the log was read.
    Full,
}

/// Treatment of the log that a mount finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UseOfLog {
    /// Copies its content home.
    Replay,
    /// Empties it: the volume does not ask for recovery.
    Wipe,
}

/// Committed content of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Blocks of the volume and where their content is.
    pub copies: BTreeMap<u64, Source>,
    /// Number of complete transactions.
    pub transactions: u32,
    /// The transaction that would come next.
    pub next: Tid,
    /// A number that no transaction has, neither of those that count nor of what is behind them.
    pub unused: Tid,
    /// The block of the journal where it would begin.
    pub head: u32,
    /// Reason why the log ends there.
    pub stop: Stop,
}

/// Result of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Transactions that were complete.
    pub transactions: u32,
    /// Blocks that were written.
    pub blocks: u64,
    /// Reason why the log ended.
    pub stop: Stop,
}

/// Finds what the log holds; `read` gives blocks of the journal.
///
/// # Errors
/// The errors that `read` returns.
pub fn replay<E>(
    superblock: &JournalSuperblock,
    read: impl FnMut(u32) -> Result<Content, E>,
) -> Result<Replay, E> {
    let mut scan = Scan::new(superblock, read);
    let stop = scan.all()?;
    let wrong = scan.cut_at_wrong_block()?;
    Ok(scan.end(wrong.unwrap_or(stop)))
}

/// Finds where the log ends, for one of which nothing is to be copied.
fn end_of_log<E>(
    superblock: &JournalSuperblock,
    read: impl FnMut(u32) -> Result<Content, E>,
) -> Result<Replay, E> {
    let mut scan = Scan::new(superblock, read);
    let stop = scan.all()?;
    Ok(Replay { copies: BTreeMap::new(), ..scan.end(stop) })
}

/// A logged block.
struct Logged {
    /// The block of the volume whose content it is.
    block: u64,
    source: Source,
    checksum: u32,
}

/// A transaction as the log has it.
struct LoggedTransaction {
    tid: Tid,
    blocks: Vec<Logged>,
    revokes: Vec<u64>,
    /// A block of the journal, of those that tell of it, whose checksum is wrong.
    wrong: Option<u32>,
    /// The block of the journal behind its commit block; 0 before that is read.
    end: u32,
}

impl LoggedTransaction {
    fn new(tid: Tid) -> Self {
        Self { tid, blocks: Vec::new(), revokes: Vec::new(), wrong: None, end: 0 }
    }
}

struct Scan<'a, R> {
    superblock: &'a JournalSuperblock,
    read: R,
    seed: u32,
    at: u32,
    left: u32,
    /// The transaction that is being read.
    open: LoggedTransaction,
    /// Those that are complete.
    committed: Vec<LoggedTransaction>,
    /// Seconds of the last commit.
    committed_at: u64,
}

impl<'a, R, E> Scan<'a, R>
where
    R: FnMut(u32) -> Result<Content, E>,
{
    fn new(superblock: &'a JournalSuperblock, read: R) -> Self {
        Self {
            superblock,
            read,
            seed: superblock.seed(),
            at: superblock.start.max(superblock.first),
            left: superblock.capacity(),
            open: LoggedTransaction::new(superblock.sequence),
            committed: Vec::new(),
            committed_at: 0,
        }
    }

    /// Reads the log to its end.
    fn all(&mut self) -> Result<Stop, E> {
        if self.superblock.start == 0 {
            return Ok(Stop::Empty);
        }
        loop {
            if let Some(stop) = self.step()? {
                return Ok(stop);
            }
        }
    }

    fn advance(&mut self, blocks: u32) {
        self.at = self.superblock.after(self.at, blocks);
        self.left -= blocks;
    }

    /// Reads one block, and skips the logged blocks that it names.
    fn step(&mut self) -> Result<Option<Stop>, E> {
        if self.left == 0 {
            return Ok(Some(Stop::Full));
        }
        let block = bytes(&(self.read)(self.at)?);
        let block = &block[..self.superblock.block_size as usize];
        match Header::parse(block) {
            Some(header) if header.sequence == self.open.tid => match header.kind {
                BlockType::DESCRIPTOR => Ok(self.descriptor(block)),
                BlockType::REVOKE => Ok(self.revoke(block)),
                BlockType::COMMIT => Ok(self.commit(block)),
                other => Ok(Some(Stop::UnknownType(other))),
            },
            _ => Ok(Some(Stop::End)),
        }
    }

    /// Notes a wrong checksum of a block that tells of the transaction.
    fn check_tail(&mut self, block: &[u8]) {
        if self.superblock.features.has_checksums() && !tail_is_right(block, self.seed) {
            self.open.wrong.get_or_insert(self.at);
        }
    }

    fn descriptor(&mut self, block: &[u8]) -> Option<Stop> {
        self.check_tail(block);
        let tags = self.superblock.tag_format().parse(block);
        self.advance(1);
        for tag in tags {
            if self.left == 0 {
                return Some(Stop::Full);
            }
            let source = Source { at: self.at, escaped: tag.flags.has(TagFlags::ESCAPE) };
            let logged = Logged { block: tag.block, source, checksum: tag.checksum };
            self.open.blocks.push(logged);
            self.advance(1);
        }
        None
    }

    /// Drops the transactions from the first one on with a logged block whose checksum is wrong.
    fn cut_at_wrong_block(&mut self) -> Result<Option<Stop>, E> {
        if !self.superblock.features.has_checksums() {
            return Ok(None);
        }
        let format = self.superblock.tag_format();
        for (number, transaction) in self.committed.iter().enumerate() {
            for Logged { source, checksum, .. } in &transaction.blocks {
                let logged = bytes(&(self.read)(source.at)?);
                let logged = &logged[..self.superblock.block_size as usize];
                if format.checksum(self.seed, transaction.tid, logged) != *checksum {
                    let at = source.at;
                    self.committed.truncate(number);
                    return Ok(Some(Stop::Damaged(at)));
                }
            }
        }
        Ok(None)
    }

    fn revoke(&mut self, block: &[u8]) -> Option<Stop> {
        self.check_tail(block);
        self.open.revokes.extend(RevokeBlock::parse(block, self.superblock.features).blocks);
        self.advance(1);
        None
    }

    fn commit(&mut self, block: &[u8]) -> Option<Stop> {
        let is_right = CommitBlock::is_right(block, self.superblock.features, self.seed);
        let wrong = self.open.wrong.or((!is_right).then_some(self.at));
        let at = CommitBlock::seconds(block);
        if let Some(wrong) = wrong {
            let is_stale = at < self.committed_at;
            return Some(if is_stale { Stop::Stale } else { Stop::Damaged(wrong) });
        }
        self.committed_at = at;
        self.advance(1);
        let next = LoggedTransaction::new(self.open.tid.next());
        let ended = std::mem::replace(&mut self.open, next);
        self.committed.push(LoggedTransaction { end: self.at, ..ended });
        None
    }

    fn end(self, stop: Stop) -> Replay {
        let superblock = self.superblock;
        let is_whole = !matches!(stop, Stop::Damaged(_) | Stop::Stale);
        let start = (superblock.sequence, superblock.start.max(superblock.first));
        let last = self.committed.last().map(|last| (last.tid.next(), last.end));
        let (next, head) = last.unwrap_or(start);
        let transactions = self.committed.len() as u32;
        let (mut newest, mut revoked) = (FxHashMap::default(), FxHashMap::default());
        for LoggedTransaction { tid, blocks, revokes, .. } in self.committed {
            newest.extend(blocks.into_iter().map(|logged| (logged.block, (tid, logged.source))));
            revoked.extend(revokes.into_iter().map(|block| (block, tid)));
        }
        let counts = |&(block, (tid, _)): &(u64, (Tid, Source))| {
            revoked.get(&block).is_none_or(|revoked: &Tid| revoked.is_before(tid))
        };
        let copies = newest.into_iter().filter(counts);
        Replay {
            copies: copies.map(|(block, (_, source))| (block, source)).collect(),
            transactions,
            next,
            // behind a wrong block there may be as many transactions as there are blocks
            unused: self.open.tid.plus(if is_whole { 1 } else { self.left + 1 }),
            head,
            stop,
        }
    }
}

impl Source {
    /// The content of a block as it was before it was logged.
    pub fn restore(self, logged: Content) -> Content {
        match logged {
            Content::Bytes(mut bytes) if self.escaped => {
                Arc::make_mut(&mut bytes)[..4].copy_from_slice(&MAGIC.to_be_bytes());
                Content::Bytes(bytes)
            }
            other => other,
        }
    }
}

/// Replays the journal of a volume on `device`: copies what the log holds to where it belongs, and
/// empties the log. `block_size` and `blocks` are those of the volume, the size in bytes.
///
/// # Errors
/// A journal that cannot be used; a copy that would go beyond the end of the volume; errors of the
/// device.
pub fn recover<D: Scheduler>(
    device: D,
    block_size: u32,
    map: &JournalMap,
    blocks: u64,
) -> Result<(D, Replayed), JournalError> {
    let mut io = Io::new(device, block_size as usize, SimTime::ZERO);
    let mut superblock = super::Journal::read_superblock(&mut io, map)?;
    let replayed = apply(&mut io, map, &mut superblock, blocks, UseOfLog::Replay)?;
    Ok((io.into_device(), replayed))
}

/// Copies what the log holds to where it belongs, unless it is wiped, makes that durable, and then
/// empties the log.
///
/// # Errors
/// [`JournalError::Target`] and [`JournalError::Transaction`] before anything is written;
/// [`JournalError::Io`].
pub(crate) fn apply<D: Scheduler>(
    io: &mut Io<D>,
    map: &JournalMap,
    superblock: &mut JournalSuperblock,
    blocks: u64,
    use_of_log: UseOfLog,
) -> Result<Replayed, JournalError> {
    let mut log = LogReader::new(io, map);
    let found = match use_of_log {
        UseOfLog::Replay => replay(superblock, |at| log.read(at))?,
        UseOfLog::Wipe => end_of_log(superblock, |at| log.read(at))?,
    };
    if let (UseOfLog::Replay, Stop::Damaged(at)) = (use_of_log, found.stop) {
        return Err(JournalError::Transaction { tid: found.next, at });
    }
    if let Some((&block, _)) =
        found.copies.range(blocks..).find(|(block, _)| !log.io().has_place(**block))
    {
        return Err(JournalError::Target { block, blocks });
    }
    for (&block, source) in &found.copies {
        let content = source.restore(log.read(source.at)?);
        log.io().write(Channel::Home, block, content)?;
    }
    if superblock.start != 0 {
        io.flush()?;
        superblock.start = 0;
        superblock.sequence = found.unused;
        write_superblock(io, map, superblock)?;
    }
    let (transactions, blocks) = (found.transactions, found.copies.len() as u64);
    Ok(Replayed { transactions, blocks, stop: found.stop })
}

/// Writes the journal's superblock so that it survives a power cut.
pub(super) fn write_superblock<D: Scheduler>(
    io: &mut Io<D>,
    map: &JournalMap,
    superblock: &JournalSuperblock,
) -> Result<(), JournalError> {
    let place = map.physical(0).unwrap_or(0);
    let mut block = bytes(&io.read(place)?);
    Arc::make_mut(&mut block)[..1024].copy_from_slice(&superblock.encode());
    Ok(io.write_now(Channel::Journal, place, Content::Bytes(block), true)?)
}
