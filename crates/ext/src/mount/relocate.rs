//! Moving what a pointer leads to: content is copied, the pointer rewritten, and the old blocks
//! freed, in one transaction.

use dovetail_block::Scheduler;
use dovetail_vfs::{Address, Error as CallError, Ino as Number, Pointer, PointerPlace};

use super::Ext;
use super::allocate::Request;
use super::meta::Kind;
use super::vfs::ino_of;
use crate::error::{Error, Incompatible, Place};
use crate::format::{BlockAddr, FileType, Ino};
use crate::io::Channel;

impl<D: Scheduler> Ext<D> {
    /// Moves the blocks that a pointer leads to elsewhere on the volume, as near to block `goal` as
    /// there is room, and tells where they are then. After a power cut the pointer is the old or
    /// the new one, and what it leads to is the same.
    ///
    /// # Errors
    /// [`CallError::Invalid`] if there is no such pointer; [`CallError::NoSpace`] if no run is long
    /// enough; [`CallError::Unsupported`] for content of directories and links, with
    /// `data=journal`, and at physical addresses.
    pub fn relocate(
        &mut self,
        ino: Number,
        at: PointerPlace,
        goal: u64,
    ) -> Result<Address, CallError> {
        self.change(|fs| Ok(fs.relocate_at(ino_of(ino), at, goal)?))
    }

    fn relocate_at(&mut self, ino: Ino, at: PointerPlace, goal: u64) -> Result<Address, Error> {
        self.check_movable(ino)?;
        self.write_back_at_once(ino)?;
        let old = self.pointer_at(ino, at)?;
        let from = match old.target {
            Address::Logical(from) => BlockAddr(from),
            Address::Physical(at) => return Err(Error::PhysicalBlock { ino, at }),
        };
        let reach = self.reach_of(ino)?;
        let to = self.take_whole(goal, old.blocks, reach)?;
        if old.is_metadata {
            self.copy_metadata(ino, from, to)?;
        } else if old.written {
            self.copy_content(from, to, old.blocks)?;
        }
        self.set_pointer_at(ino, at, Address::Logical(to.0))?;
        self.free_old(&old, from)?;
        Ok(Address::Logical(to.0))
    }

    fn check_movable(&mut self, ino: Ino) -> Result<(), Error> {
        let regular = self.inode(ino)?.file_type() == FileType::REGULAR;
        if regular && !self.journals_content(ino)? {
            Ok(())
        } else {
            Err(Incompatible::Unmovable.into())
        }
    }

    /// A run of just so many blocks, below `reach`.
    fn take_whole(&mut self, goal: u64, blocks: u32, reach: u64) -> Result<BlockAddr, Error> {
        let request = Request { ino: None, goal, blocks, size_blocks: 0, reach };
        let (start, found) = self.allocate(request)?;
        if found == blocks {
            return Ok(start);
        }
        self.free_blocks(start, found)?;
        Err(Error::NoSpace)
    }

    fn copy_metadata(&mut self, ino: Ino, from: BlockAddr, to: BlockAddr) -> Result<(), Error> {
        let (kind, place) = if self.is_extent_mapped(ino)? {
            (Kind::Extents(self.seed_of(ino)?), Place::Extents(ino, from))
        } else {
            (Kind::Plain, Place::Pointers(ino))
        };
        let copy = self.meta(from, kind, place)?.to_vec();
        self.new_meta(to, kind).copy_from_slice(&copy);
        Ok(())
    }

    /// The copy is on its way before the commit, which waits for it, as for all content.
    fn copy_content(&mut self, from: BlockAddr, to: BlockAddr, blocks: u32) -> Result<(), Error> {
        for offset in (0..blocks).map(u64::from) {
            let content = self.io.read(from.0 + offset)?;
            let content = self.part_of(&content, 0);
            self.io.write(Channel::Data, to.0 + offset, content)?;
        }
        Ok(())
    }

    fn free_old(&mut self, old: &Pointer, from: BlockAddr) -> Result<(), Error> {
        if old.is_metadata {
            self.forget_meta(from);
        }
        self.free_blocks(from, old.blocks)
    }
}
