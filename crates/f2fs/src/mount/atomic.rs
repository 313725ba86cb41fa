//! Writes to several blocks of a file that show all or not at all, after a power cut too.
//!
//! Linux has this as an ioctl of F2FS (`F2FS_IOC_START_ATOMIC_WRITE` and
//! `F2FS_IOC_COMMIT_ATOMIC_WRITE`). Here the blocks are written once, out of place, and one remap
//! moves them and the file's nodes to where they belong: there is no journal and no second write
//! (the RM-IPU paper names it as future work, section 5).

use std::collections::BTreeSet;

use dovetail_block::Scheduler;
use dovetail_vfs::kit::WriteData;
use dovetail_vfs::{Caller, Error, Ino};

use super::F2fs;
use super::data::WritebackReason;
use super::pointers::Found;
use crate::format::{BLOCK, BlockAddr, Nid};

/// Writes that were gathered and not yet committed. Nobody sees them; dropped, they never happened.
#[derive(Clone, Debug)]
pub struct AtomicWrite {
    ino: Nid,
    writes: Vec<(u64, Vec<u8>)>,
}

impl AtomicWrite {
    /// Adds a write of `bytes` at byte `offset`. Of two that overlap the later one counts.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.writes.push((offset, bytes.to_vec()));
    }

    /// The blocks that it touches.
    fn blocks(&self) -> impl Iterator<Item = u64> + '_ {
        let touched = |&(offset, ref bytes): &(u64, Vec<u8>)| {
            let end = offset.saturating_add(bytes.len() as u64);
            offset / BLOCK as u64..end.div_ceil(BLOCK as u64)
        };
        self.writes.iter().flat_map(touched)
    }
}

impl<D: Scheduler> F2fs<D> {
    /// Begins to gather writes to a file.
    ///
    /// # Errors
    /// [`Error::Unsupported`] unless the volume is mounted with `mode=rm-ipu` or
    /// `mode=rm-ipu-adaptive`; [`Error::ReadOnly`]; [`Error::IsADirectory`] or [`Error::Invalid`]
    /// for anything but a regular file.
    pub fn begin_atomic_write(&mut self, ino: Ino) -> Result<AtomicWrite, Error> {
        if !self.remaps() {
            return Err(Error::Unsupported("atomic writes without mode=rm-ipu".into()));
        }
        self.check_writable()?;
        let ino = Nid(u32::try_from(ino.0).map_err(|_| Error::NotFound)?);
        self.check_regular(ino)?;
        Ok(AtomicWrite { ino, writes: Vec::new() })
    }

    /// Carries out what was gathered. When this returns it survives a power cut, with all else that
    /// was written to the file; a power cut before leaves all of it or nothing.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::FileTooBig`] and others before anything has changed;
    /// [`Error::Io`], after which the volume is read-only.
    pub fn commit_atomic_write(
        &mut self,
        caller: &Caller,
        write: &AtomicWrite,
    ) -> Result<(), Error> {
        self.check_writable()?;
        self.check_atomic_space(write)?;
        self.keep_space()?;
        self.updates.begin_atomic_write();
        let done = self.carry_out(caller, write);
        self.updates.end_atomic_write();
        // what is half done must not become durable
        self.state.stop_if(done.is_err());
        done?;
        Ok(self.after_change()?)
    }

    fn carry_out(&mut self, caller: &Caller, write: &AtomicWrite) -> Result<(), Error> {
        for (offset, bytes) in &write.writes {
            self.write_content(caller, write.ino, *offset, WriteData::Bytes(bytes))?;
        }
        Ok(self.make_durable(write.ino, WritebackReason::Fsync)?)
    }

    /// Checks that every write can be carried out: its end, and space for blocks and nodes that are
    /// not there yet.
    fn check_atomic_space(&mut self, write: &AtomicWrite) -> Result<(), Error> {
        let ends =
            write.writes.iter().map(|(offset, bytes)| offset.checked_add(bytes.len() as u64));
        ends.into_iter().try_for_each(|end| self.check_write(write.ino, end))?;
        let blocks: BTreeSet<u64> = write.blocks().collect();
        let mut missing = 0;
        if self.has_inline_data(write.ino)? {
            missing = blocks.len() as u64 + 1;
        } else {
            for block in blocks {
                let found = self.find_pointer(write.ino, block)?;
                let is_there =
                    matches!(found, Found::Pointer(pointer) if pointer.address != BlockAddr::NULL);
                missing += u64::from(!is_there);
            }
        }
        // with each block at most three nodes on the way to it
        Ok(self.check_free_blocks(4 * missing)?)
    }
}
