//! What the issuer of commands does between them.

use crate::addr::Lba;

/// A lock that several calls of a file system share, by a number that the file system chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(pub u8);

/// Something that one call brings about and another waits for, by a number that the file system chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u64);

/// What a file system does between two commands, beyond the time that passes. A device that performs commands at once need not
/// know; one that records a call as a plan, to be played in virtual time, makes it part of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// It goes on when all reads of this call so far are done.
    WaitReads,
    /// It goes on when all commands of this call are done.
    WaitAll,
    /// It takes a lock, alone or with others who share it.
    Lock {
        /// Which.
        lock: LockId,
        /// Others may share it.
        shared: bool,
    },
    /// It gives a lock back.
    Unlock {
        /// Which.
        lock: LockId,
    },
    /// It brings about an event.
    Signal(EventId),
    /// It goes on when the event has been brought about.
    Await(EventId),
    /// It will not read this block before it has written it again. Nothing changes for a drive, which is told by a discard; a
    /// simulation need not keep the content.
    Dead(Lba),
}
