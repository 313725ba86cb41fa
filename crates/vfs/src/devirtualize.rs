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

/// Addresses to which pointers are to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the device's own addresses.
    ToDevice,
    /// Back to addresses of the volume.
    ToVolume,
}

/// File systems whose pointers can lead to the device's own addresses.
///
/// A batch has three steps: [`Self::prepare_renames`], [`Self::begin_renames`] and
/// [`Self::end_renames`]. Any other call may come between two of them. The next commit or
/// checkpoint ends a batch as well, whoever asks for it, so a tool that stops in the midst of its
/// work leaves nothing begun. A power cut leaves all pointers of a batch old, or all new.
pub trait Devirtualize: PointerWalk {
    /// Blocks that [`Self::begin_renames`] takes at once, at most.
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

    /// Prepares a batch: writes what is dirty of the files, and commits. The device must have
    /// carried that out before the batch begins; what it has not by then is left.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more blocks than [`Self::renames_at_once`]; [`Error::NoSpace`]; what
    /// the device says.
    fn prepare_renames(&mut self, targets: &[Target]) -> Result<(), Error>;

    /// Begins a batch: the device gives the blocks their new addresses, and the pointers to them
    /// are rewritten in memory. Blocks that do not allow it now are left: not written yet, changed
    /// since [`Self::settle_metadata`] (metadata), in use by commands under way, or at a place
    /// whose address is taken. Returns how many were not.
    ///
    /// # Errors
    /// As [`Self::prepare_renames`]; then nothing has changed.
    fn begin_renames(&mut self, targets: &[Target], way: Way) -> Result<u32, Error>;

    /// Makes the pointers of the batch durable and lets the device drop the old addresses. Nothing
    /// happens without a batch.
    ///
    /// # Errors
    /// An error of the device; [`Error::NoSpace`], and then the batch is still under way.
    fn end_renames(&mut self) -> Result<(), Error>;

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
