//! Interface of a file system for a simulation, beyond a mount: content that is named instead of
//! carried, and figures.

use dovetail_block::{Content, Lifetime};
use dovetail_time::SimTime;

use crate::{Caller, Count, Error, FileSystem, Ino};

/// A thread of a kernel that works for a file system in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundThread {
    /// Writes dirty pages back, and checkpoints or commits.
    WriteBack,
    /// Cleans.
    Cleaner,
    /// Gives back blocks to the device.
    Discard,
}

impl BackgroundThread {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::WriteBack, Self::Cleaner, Self::Discard];
}

/// A file system under simulation.
pub trait Simulated: FileSystem {
    /// Time at which the last call returned, on a device that carries commands out when they are
    /// submitted: all that the call waited for was done.
    fn returned_at(&self) -> SimTime;

    /// Time at which a thread of the background has something to do; `None` for never.
    fn next_wake_of(&self, thread: BackgroundThread) -> Option<SimTime> {
        self.next_wake().filter(|_| thread == BackgroundThread::WriteBack)
    }

    /// Does what a thread of the background has to do by now.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn wake_thread(&mut self, thread: BackgroundThread) -> Result<(), Error> {
        if thread == BackgroundThread::WriteBack { self.wake() } else { Ok(()) }
    }

    /// Writes `len` bytes at `offset`. `contents` are the blocks of 4096 bytes that the range
    /// touches as they are after the write; a block of which only a part is written is read first
    /// if it has to be. A direct write waits for the device, and is of whole blocks.
    ///
    /// # Errors
    /// As [`FileSystem::write`].
    fn write_pages(
        &mut self,
        caller: &Caller,
        ino: Ino,
        range: (u64, u64),
        contents: &[Content],
        direct: bool,
    ) -> Result<(), Error>;

    /// Reads blocks of 4096 bytes from block `first` on; what lies behind the end, or in a hole, is
    /// empty. A direct read goes past the page cache.
    ///
    /// # Errors
    /// As [`FileSystem::read`].
    fn read_pages(
        &mut self,
        ino: Ino,
        first: u64,
        into: &mut [Content],
        direct: bool,
    ) -> Result<(), Error>;

    /// The page cache holds a block of 4096 bytes of the file.
    fn is_cached(&self, ino: Ino, block: u64) -> bool;

    /// Takes a hint about the lifetime of what is written to the file from now on, as
    /// `F_SET_RW_HINT` of fcntl(2); nothing happens in a file system that passes none on.
    fn set_lifetime(&mut self, _ino: Ino, _lifetime: Lifetime) {}

    /// Forgets what the page cache holds of the file and is not dirty.
    fn drop_cache(&mut self, ino: Ino);

    /// Blocks written to the device, by cause.
    fn written(&self) -> Vec<Count>;

    /// Events since the mount, by kind.
    fn events(&self) -> Vec<Count>;

    /// In how many pieces the file lies on the device, each of neighbouring blocks.
    ///
    /// # Errors
    /// A read error of the file system.
    fn pieces(&mut self, ino: Ino) -> Result<u64, Error>;

    /// The volume in at most `cells` equal parts, in the order of addresses: the share of blocks in
    /// use in each, 0 to 1.
    fn occupancy(&self, cells: usize) -> Vec<f64>;
}
