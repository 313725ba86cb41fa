//! Calls that a file system answers without changing itself.

use crate::{Attr, Caller, Ino};

/// A file system as those see it who share it, and ask at the same time.
///
/// A call is answered from what is in memory and what the device gives without a change of either,
/// or of bytes of blocks alone. `None` leaves it to [`FileSystem`](crate::FileSystem), for a caller
/// who has the file system alone: a cache must be filled first, or there is an error to tell. An
/// answer is the one that the call of the same name would have given.
pub trait SharedCalls {
    /// As [`FileSystem::read`](crate::FileSystem::read). Without an answer `into` holds anything.
    fn read(&self, ino: Ino, offset: u64, into: &mut [u8]) -> Option<usize>;

    /// As [`FileSystem::write`](crate::FileSystem::write), if nothing changes but bytes of blocks
    /// that the file has: neither times nor size, nor where blocks lie. `None` if nothing or a part
    /// was written: the caller then writes all of it, alone.
    fn write(&self, _caller: &Caller, _ino: Ino, _offset: u64, _bytes: &[u8]) -> Option<()> {
        None
    }

    /// As [`FileSystem::getattr`](crate::FileSystem::getattr).
    fn getattr(&self, ino: Ino) -> Option<Attr>;
}
