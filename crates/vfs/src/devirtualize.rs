//! Blocks that a file system lets be reached by the addresses of the device below, and back.

use dovetail_time::SimTime;

use crate::walk::{PointerPlace, PointerWalk};
use crate::{Error, Ino};

/// Blocks of a file that a pointer leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The file.
    pub ino: Ino,
    /// The pointer; of content only the block of the file counts, from which on `blocks` are meant.
    pub place: PointerPlace,
    /// Number of blocks; 1 for metadata.
    pub blocks: u32,
    /// It leads to a block of pointers.
    pub is_metadata: bool,
}

/// File systems whose pointers can lead to the device's own addresses.
///
/// Each call is a whole: it leaves nothing begun, so that a tool that stops in the midst of its
/// work leaves a volume as any other. A power cut within a call leaves all its pointers old, or all
/// new.
pub trait Devirtualize: PointerWalk {
    /// Blocks that [`Self::devirtualize`] takes at once, at most.
    ///
    /// # Errors
    /// [`Error::Unsupported`], in a sentence, where file system or device cannot.
    fn renames_at_once(&self) -> Result<u32, Error>;

    /// The virtual time at which the last call was through.
    fn now(&self) -> SimTime;

    /// Bytes of the device's memory that its map takes; `None` if it does not tell.
    fn device_map_bytes(&mut self) -> Option<u64> {
        None
    }

    /// All files with content of their own.
    ///
    /// # Errors
    /// Damage; what the device says.
    fn files(&mut self) -> Result<Vec<Ino>, Error>;

    /// Those of them that changed and when each did last, since they were [`Self::forget_change`]d.
    /// All files, as of time 0, where nothing is known: after a mount.
    ///
    /// # Errors
    /// Damage; what the device says.
    fn changed_files(&mut self) -> Result<Vec<(Ino, SimTime)>, Error>;

    /// A file's changes so far are dealt with.
    fn forget_change(&mut self, ino: Ino);

    /// Files of which the device has moved blocks since it was last asked; `None` if it does not
    /// know of all.
    ///
    /// # Errors
    /// An error of the device.
    fn moved_files(&mut self) -> Result<Option<Vec<Ino>>, Error>;

    /// Writes all metadata to its place. Only from there it can be reached by another address.
    ///
    /// # Errors
    /// An error of the device.
    fn settle_metadata(&mut self) -> Result<(), Error>;

    /// Lets the blocks be reached by the addresses of the places where they are, and the device
    /// forget where the old addresses led to. Blocks that do not allow it now are left: not written
    /// yet, changed since [`Self::settle_metadata`] (metadata), or at a place whose address is
    /// taken. Returns how many were not.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more blocks than [`Self::renames_at_once`]; [`Error::NoSpace`], and
    /// then nothing has changed; what the device says.
    fn devirtualize(&mut self, targets: &[Target]) -> Result<u32, Error>;

    /// Lets the blocks be reached by addresses of the volume again.
    ///
    /// # Errors
    /// As [`Self::devirtualize`].
    fn virtualize(&mut self, targets: &[Target]) -> Result<u32, Error>;

    /// Gives back to the device what it keeps by its own addresses and no pointer leads to: what a
    /// power cut left between a commit and the discard after it. Returns how many blocks.
    ///
    /// # Errors
    /// Damage; what the device says.
    fn give_back_unreached(&mut self) -> Result<u64, Error>;

    /// The volume no longer needs its device, if no pointer leads to its addresses. Returns
    /// whether.
    ///
    /// # Errors
    /// An error of the device.
    fn leave_device(&mut self) -> Result<bool, Error>;
}
