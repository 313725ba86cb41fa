//! Pointers to the device's own addresses, told by a spare bit: a capability of a mount, off by
//! default.

use dovetail_block::Scheduler;
use dovetail_vfs::Address;

use super::Ext;
use super::map::Run;
use crate::error::{Error, Incompatible};
use crate::format::{BlockAddr, Ino, PHYSICAL_BIT};

/// Every block number must leave the bit alone. A volume with extents may have files with pointers
/// as well.
pub(super) fn check_spare_bit(blocks: u64) -> Result<(), Incompatible> {
    let limit = PHYSICAL_BIT;
    if blocks < limit { Ok(()) } else { Err(Incompatible::NoSpareBit { blocks, limit }) }
}

/// A run that was looked up, if it lies on the volume.
pub(super) fn mapped(found: Result<Run, Error>) -> Result<Option<Run>, Error> {
    match found {
        Err(Error::PhysicalBlock { .. }) => Ok(None),
        other => other.map(Some),
    }
}

impl<D: Scheduler> Ext<D> {
    /// Address that a pointer means.
    pub(super) fn address(&self, stored: BlockAddr) -> Address {
        if self.options.physical_pointers && stored.0 & PHYSICAL_BIT != 0 {
            Address::Physical(stored.0 & !PHYSICAL_BIT)
        } else {
            Address::Logical(stored.0)
        }
    }

    /// Is true if a pointer leads to a place that the device has.
    pub(super) fn is_place(&self, stored: BlockAddr) -> bool {
        self.options.physical_pointers && self.io.has_place(stored.0)
    }

    /// A physical address of no place of the device is of no use.
    pub(super) fn refuse_physical(&self, ino: Ino, stored: BlockAddr) -> Result<(), Error> {
        match self.address(stored) {
            Address::Logical(_) => Ok(()),
            Address::Physical(_) if self.is_place(stored) => Ok(()),
            Address::Physical(at) => Err(Error::PhysicalBlock { ino, at }),
        }
    }

    /// An address as it is stored, for a run of `blocks` blocks.
    pub(super) fn stored(&self, new: Address, blocks: u32) -> Result<BlockAddr, Error> {
        let (first, behind) = match new {
            Address::Logical(at) | Address::Physical(at) => (at, at.saturating_add(blocks.into())),
        };
        match new {
            Address::Physical(_) if !self.options.physical_pointers => {
                Err(Incompatible::NoPhysicalPointers.into())
            }
            Address::Physical(_) if behind <= PHYSICAL_BIT => Ok(BlockAddr(first | PHYSICAL_BIT)),
            Address::Logical(_)
                if self.superblock.contains(BlockAddr(first))
                    && behind <= self.superblock.blocks_count =>
            {
                Ok(BlockAddr(first))
            }
            _ => Err(Error::Rewrite("the address is not one that a pointer may lead to")),
        }
    }

    /// The block that holds pointers.
    pub(super) fn holder_block(&self, ino: Ino, holder: Address) -> Result<BlockAddr, Error> {
        let at = match holder {
            Address::Logical(at) => BlockAddr(at),
            Address::Physical(at) => BlockAddr(at | PHYSICAL_BIT),
        };
        self.refuse_physical(ino, at)?;
        Ok(at)
    }

    /// Nothing of the file lies where it cannot be given back: asked before anything is changed.
    pub(super) fn check_removable(&mut self, ino: Ino) -> Result<(), Error> {
        if !self.options.physical_pointers || self.io.space().is_some() {
            return Ok(());
        }
        let pointers = self.walk(ino)?.into_iter().flat_map(|block| block.pointers);
        let physical = pointers.filter_map(|pointer| match pointer.target {
            Address::Physical(at) => (!self.io.has_place(at | PHYSICAL_BIT)).then_some(at),
            Address::Logical(_) => None,
        });
        match physical.min() {
            Some(at) => Err(Error::PhysicalBlock { ino, at }),
            None => Ok(()),
        }
    }

    pub(super) fn is_removable(&mut self, ino: Ino) -> Result<bool, Error> {
        match self.check_removable(ino) {
            Err(Error::PhysicalBlock { .. }) => Ok(false),
            other => other.map(|()| true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_number_leaves_the_bit_alone() {
        assert_eq!(check_spare_bit(PHYSICAL_BIT - 1), Ok(()));
        let blocks = PHYSICAL_BIT;
        assert_eq!(
            check_spare_bit(blocks),
            Err(Incompatible::NoSpareBit { blocks, limit: PHYSICAL_BIT })
        );
    }
}
