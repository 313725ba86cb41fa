//! The content of files and the targets of links.

use dovetail_block::BlockDevice;
use dovetail_vfs::kit::PathError;

use super::{Mapped, Volume};
use crate::error::{Corrupt, Error, Place};
use crate::format::{FileType, Inode};

/// Bytes read in one command.
const MAX_READ: usize = 1 << 20;
/// The longest target of a link, in bytes: a block of 4 KiB without the closing NUL of the kernel.
const MAX_TARGET: u64 = 4095;

impl<D: BlockDevice> Volume<D> {
    /// Reads the bytes of a regular file (or of any inode that has content) from byte `offset` on
    /// into `into`, and returns how many there were: less than asked for at the end of the file.
    /// Holes read as zeros.
    ///
    /// # Errors
    /// Damaged trees; [`Error::Io`].
    pub fn read(&mut self, inode: &Inode, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let left = inode.size.saturating_sub(offset);
        let len = left.min(into.len() as u64) as usize;
        let into = &mut into[..len];
        let mut done = 0;
        while done < len {
            done += self.read_run(inode, offset + done as u64, &mut into[done..])?;
        }
        Ok(len)
    }

    /// Reads from `offset` to at most the end of `into`, as far as the blocks are alike.
    fn read_run(&mut self, inode: &Inode, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let size = u64::from(self.superblock.block_size());
        let (block, within) = (offset / size, offset % size);
        let run = self.run(inode, block)?;
        let room = run.len.saturating_mul(size) - within;
        let len = into.len().min(MAX_READ).min(usize::try_from(room).unwrap_or(usize::MAX));
        match run.mapped {
            Mapped::Data(start) => self.blocks.data(start, within, &mut into[..len])?,
            Mapped::Hole | Mapped::Unwritten(_) => into[..len].fill(0),
        }
        Ok(len)
    }

    /// The first byte at or after `offset` that may be other than zero, or the file's size if there
    /// is none: what lies between is a hole. Costs follow what is stored, not the size of the hole.
    ///
    /// # Errors
    /// Damaged trees; [`Error::Io`].
    pub fn next_data(&mut self, inode: &Inode, offset: u64) -> Result<u64, Error> {
        let size = u64::from(self.superblock.block_size());
        let mut at = offset;
        while at < inode.size {
            let run = self.run(inode, at / size)?;
            if run.mapped.data().is_some() {
                return Ok(at);
            }
            at = (at / size).saturating_add(run.len).saturating_mul(size);
        }
        Ok(inode.size)
    }

    /// The first byte at or after `offset` that is in a hole or was never written, or the file's
    /// size if there is none.
    ///
    /// # Errors
    /// Damaged trees; [`Error::Io`].
    pub fn next_hole(&mut self, inode: &Inode, offset: u64) -> Result<u64, Error> {
        let size = u64::from(self.superblock.block_size());
        let mut at = offset;
        while at < inode.size {
            let run = self.run(inode, at / size)?;
            if run.mapped.data().is_none() {
                return Ok(at);
            }
            at = (at / size).saturating_add(run.len).saturating_mul(size);
        }
        Ok(inode.size)
    }

    /// The target of a symbolic link; bytes, not necessarily UTF-8.
    ///
    /// # Errors
    /// [`PathError::NotASymlink`]; a size beyond 4095; what [`Self::read`] may say.
    pub fn read_link(&mut self, inode: &Inode) -> Result<Vec<u8>, Error> {
        if inode.file_type() != FileType::SYMLINK {
            return Err(PathError::NotASymlink(inode.ino.0.into()).into());
        }
        Corrupt::check_range(Place::Inode(inode.ino), "i_size", inode.size, (1, MAX_TARGET))?;
        let len = inode.size as usize;
        if inode.is_fast_symlink(&self.superblock) {
            return Ok(inode.block[..len].to_vec());
        }
        let mut target = vec![0; len];
        self.read(inode, 0, &mut target)?;
        Ok(target)
    }
}
