//! From a nid to its node block.

use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice};

use super::Volume;
use crate::error::{Corrupt, Damage, Error, Place};
use crate::format::{BlockAddr, Footer, Inode, NatEntry, Nid, nat_block_address, nat_entry};

impl<D: BlockDevice> Volume<D> {
    /// NAT entry of `nid`, from the journal first.
    ///
    /// # Errors
    /// [`Corrupt::Range`] for a nid beyond the NAT; [`Error::Io`].
    pub fn nat(&mut self, nid: Nid) -> Result<NatEntry, Error> {
        let last = u64::from(self.superblock.max_nid()) - 1;
        Corrupt::check_range(Place::Nat(nid), "nid", nid.0, (1, last))?;
        if let Some(entry) = self.nat_journal.get(&nid) {
            return Ok(*entry);
        }
        let address = nat_block_address(&self.superblock, &self.bitmaps.nat, nid);
        Ok(nat_entry(&*self.blocks.metadata(address)?, nid, self.superblock.variant))
    }

    /// The inode of number `ino`.
    ///
    /// # Errors
    /// [`Damage::NoNode`] for a free number; what is wrong with the NAT's entry, the node's footer
    /// or the inode.
    pub fn inode(&mut self, ino: Nid) -> Result<Inode, Error> {
        let block = self.node(ino, ino, 0)?;
        Ok(Inode::parse(block, ino, &self.superblock)?)
    }

    /// The block of node `nid`, whosever it is.
    ///
    /// # Errors
    /// [`Damage::NoNode`] for a free number; a nid or an address outside their areas;
    /// [`Error::Io`].
    pub fn node_block(&mut self, nid: Nid) -> Result<Arc<BlockBytes>, Error> {
        let entry = self.nat(nid)?;
        if entry.address == BlockAddr::NULL {
            return Err(Damage::NoNode(nid).into());
        }
        self.check_address(Place::Nat(nid), "block_addr", entry.address)?;
        Ok(self.blocks.metadata(entry.address)?)
    }

    /// The node `nid`, which must belong to inode `ino` and stand at place `offset` among its
    /// nodes.
    pub(crate) fn node(
        &mut self,
        nid: Nid,
        ino: Nid,
        offset: u32,
    ) -> Result<Arc<BlockBytes>, Error> {
        let entry = self.nat(nid)?;
        let place = Place::Nat(nid);
        if entry.address == BlockAddr::NULL {
            return Err(Damage::NoNode(nid).into());
        }
        self.check_address(place, "block_addr", entry.address)?;
        Corrupt::check_equal(place, "ino", entry.ino.0, ino.0)?;
        let block = self.blocks.metadata(entry.address)?;
        let footer = Footer::parse(&block);
        let place = Place::Node(nid);
        Corrupt::check_equal(place, "the footer's nid", footer.nid.0, nid.0)?;
        Corrupt::check_equal(place, "the footer's ino", footer.ino.0, ino.0)?;
        Corrupt::check_equal(place, "the footer's node offset", footer.node_offset, offset)?;
        Ok(block)
    }

    /// Checks that `found` lies in the main area, or is a place of the device.
    pub(crate) fn check_address(
        &self,
        place: Place,
        field: &'static str,
        found: BlockAddr,
    ) -> Result<(), Corrupt> {
        if self.superblock.in_main(found) || self.blocks.device_addresses().has(found) {
            return Ok(());
        }
        let (first, last) = (self.superblock.main_start.0, self.superblock.main_end().0 - 1);
        Err(Damage::Address { place, field, found, first, last }.into())
    }
}
