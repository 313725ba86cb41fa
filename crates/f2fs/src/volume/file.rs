//! The content of files and the targets of links.

use dovetail_block::BlockDevice;
use dovetail_vfs::kit::PathError;

use super::Volume;
use super::cluster::{cluster_start, misplaced};
use crate::error::{Error, Incompatible};
use crate::format::{BLOCK, BlockAddr, FileType, InlineFlags, Inode};

/// Blocks read in one command: 1 MiB.
const MAX_RUN: usize = 256;
/// The longest target of a link, in bytes: a block without the closing NUL of the kernel.
const MAX_TARGET: u64 = 4095;

impl<D: BlockDevice> Volume<D> {
    /// Reads the bytes of a regular file (or of any inode that has content) from byte `offset` on
    /// into `into`, and returns how many there were: less than asked for at the end of the file.
    /// Holes read as zeros.
    ///
    /// # Errors
    /// [`Incompatible::Encrypted`], [`Incompatible::Compressed`]; damaged nodes and clusters;
    /// [`Error::Io`].
    pub fn read(&mut self, inode: &Inode, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        if inode.is_encrypted() {
            return Err(Incompatible::Encrypted(inode.ino).into());
        }
        let left = inode.size.saturating_sub(offset);
        let len = left.min(into.len() as u64) as usize;
        let into = &mut into[..len];
        if inode.inline.has(InlineFlags::DATA) {
            let start = offset as usize; // the size was checked: below the block's
            into.copy_from_slice(if len == 0 {
                &[]
            } else {
                &inode.inline_area()[start..start + len]
            });
            return Ok(len);
        }
        let mut done = 0;
        while done < len {
            done += self.read_run(inode, offset + done as u64, &mut into[done..])?;
        }
        Ok(len)
    }

    /// The first byte at or after `offset` that may be other than zero, or the file's size if there
    /// is none: what lies between is a hole. Costs follow what is stored, not the size of the hole.
    ///
    /// # Errors
    /// Damaged nodes; [`Error::Io`].
    pub fn next_data(&mut self, inode: &Inode, offset: u64) -> Result<u64, Error> {
        if inode.inline.has(InlineFlags::DATA) || offset >= inode.size {
            return Ok(offset.min(inode.size));
        }
        let block = BLOCK as u64;
        if self.is_compressed(inode, offset / block)? {
            return Ok(offset);
        }
        let next = self.next_mapped(inode, offset / block, inode.size.div_ceil(block))?;
        Ok(next.map_or(inode.size, |(found, _)| (found * block).max(offset)))
    }

    /// The first byte after `offset` that is in a hole, or the file's size if there is none;
    /// `offset` lies in data. The content of inodes and of compressed clusters has no holes.
    ///
    /// # Errors
    /// Damaged nodes; [`Error::Io`].
    pub fn next_hole(&mut self, inode: &Inode, offset: u64) -> Result<u64, Error> {
        if inode.inline.has(InlineFlags::DATA) || offset >= inode.size {
            return Ok(inode.size);
        }
        let size = BLOCK as u64;
        let (mut block, end) = (offset / size, inode.size.div_ceil(size));
        while block < end {
            // up to the end of its cluster: the next one may be compressed
            let cluster_end =
                cluster_start(inode, block).saturating_add(inode.cluster_blocks.into()).min(end);
            if self.is_compressed(inode, block)? {
                block = cluster_end;
                continue;
            }
            let until = if inode.cluster_blocks == 1 { end } else { cluster_end };
            let hole = self.next_unmapped(inode, block, until)?;
            if hole < until {
                return Ok((hole * size).max(offset));
            }
            block = until;
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
        let place = crate::Place::Inode(inode.ino);
        crate::Corrupt::check_range(place, "i_size", inode.size, (1, MAX_TARGET))?;
        let mut target = vec![0; inode.size as usize];
        self.read(inode, 0, &mut target)?;
        Ok(target)
    }

    /// Reads from `offset` to at most the end of `into`, as far as the blocks lie side by side.
    fn read_run(&mut self, inode: &Inode, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let (block, within) = (offset / BLOCK as u64, (offset % BLOCK as u64) as usize);
        if self.is_compressed(inode, block)? {
            return self.read_compressed(inode, offset, into);
        }
        let wanted = (within + into.len()).div_ceil(BLOCK).min(MAX_RUN);
        let (first, run) = self.run(inode, block, wanted)?;
        let len = into.len().min(run * BLOCK - within);
        let into = &mut into[..len];
        if first.is_hole() {
            into.fill(0);
        } else if within == 0 && len == run * BLOCK {
            self.blocks.data(first, into)?;
        } else {
            let mut whole = vec![0; run * BLOCK];
            self.blocks.data(first, &mut whole)?;
            into.copy_from_slice(&whole[within..within + len]);
        }
        Ok(len)
    }

    /// Address of the file's block, and the length of the run that begins there (at least 1, at
    /// most `wanted`). The block is in no compressed cluster; the run ends where one may begin.
    fn run(
        &mut self,
        inode: &Inode,
        block: u64,
        wanted: usize,
    ) -> Result<(BlockAddr, usize), Error> {
        let cluster_end = cluster_start(inode, block) + u64::from(inode.cluster_blocks);
        let wanted = if inode.cluster_blocks == 1 {
            wanted
        } else {
            wanted.min((cluster_end - block) as usize)
        };
        let first = self.plain_block(inode, block)?;
        let mut run = 1;
        while run < wanted {
            let next = self.plain_block(inode, block + run as u64)?;
            let follows =
                if first.is_hole() { next.is_hole() } else { next.0 == first.0 + run as u64 };
            if !follows {
                break;
            }
            run += 1;
        }
        Ok((first, run))
    }

    fn plain_block(&mut self, inode: &Inode, block: u64) -> Result<BlockAddr, Error> {
        match self.block_of(inode, block)? {
            BlockAddr::COMPRESSED => Err(misplaced(inode, block).into()),
            address => Ok(address),
        }
    }
}
