//! The pointers of a file: to content in its inode and direct nodes, and to its nodes in the NAT.
//!
//! Nodes point to nodes by nid, so that none of them changes when another moves; indirect nodes
//! hold no addresses and are not listed as holders.

use dovetail_block::Scheduler;
use dovetail_vfs::{
    Address, Error as CallError, Holder, Ino as Number, MetadataBlock, Pointer as Listed,
};
use dovetail_vfs::{PointerPlace, PointerWalk};

use super::F2fs;
use super::pointers::{Found, Shape};
use super::truncate::Subtree;
use crate::device_addresses::DEVICE_ADDRESS_BIT;
use crate::error::{Damage, Error};
use crate::format::{BlockAddr, NIDS_IN_NODE, NatEntry, Nid, XATTR_NODE_OFFSET, node_nid};

/// Error for a place that holds no pointer.
const NO_POINTER: CallError = CallError::Invalid("there is no pointer at this place");

/// The number of an inode; 0, which none has, for one that cannot be.
pub(super) fn nid_of(ino: Number) -> Nid {
    Nid(u32::try_from(ino.0).unwrap_or(0))
}

/// A walk under way.
#[derive(Default)]
struct Walk {
    holders: Vec<MetadataBlock>,
    nodes: Vec<Nid>,
}

impl<D: Scheduler> F2fs<D> {
    /// All that leads to blocks of the file.
    pub(super) fn walk_file(&mut self, ino: Nid) -> Result<Vec<MetadataBlock>, Error> {
        if !self.is_there_as_inode(ino)? {
            return Err(Damage::NoNode(ino).into());
        }
        let mut walk = Walk { nodes: vec![ino], ..Walk::default() };
        let mut own = Vec::new();
        if self.has_block_pointers(ino)? {
            let shape = self.shape(ino)?;
            own = self.listed(ino, shape.first_at, (0, shape.pointers))?;
            for (_, tree) in self.subtrees(ino, &shape)? {
                self.walk_subtree(ino, tree, &shape, &mut walk)?;
            }
        }
        let xattr = Nid(self.inode(ino)?.i_xattr_nid.get());
        if xattr.is_some() {
            self.load_node(xattr, ino, XATTR_NODE_OFFSET)?;
            walk.nodes.push(xattr);
        }
        walk.holders.push(MetadataBlock { holder: Holder::Inode, level: 0, pointers: own });
        let pointers = self.listed_nodes(&walk.nodes)?;
        walk.holders.push(MetadataBlock { holder: Holder::Table, level: 1, pointers });
        Ok(walk.holders)
    }

    fn walk_subtree(
        &mut self,
        ino: Nid,
        tree: Subtree,
        shape: &Shape,
        walk: &mut Walk,
    ) -> Result<(), Error> {
        self.load_node(tree.nid, ino, tree.offset)?;
        walk.nodes.push(tree.nid);
        if tree.level == 0 {
            let at = self.nat_entry(tree.nid)?.address;
            if at != BlockAddr::NULL {
                let pointers = self.listed(tree.nid, 0, (tree.first, shape.direct))?;
                let holder = Holder::Block(self.address_of(at));
                walk.holders.push(MetadataBlock { holder, level: 0, pointers });
            }
            return Ok(());
        }
        for index in 0..NIDS_IN_NODE {
            let nid = node_nid(self.node(tree.nid, ino, tree.offset)?, index);
            if nid.is_some() {
                self.walk_subtree(ino, tree.child(index, nid, shape.direct), shape, walk)?;
            }
        }
        Ok(())
    }

    /// The `count` pointers of a node in memory from byte `start` on, but holes and marks; the
    /// first leads to block `first`.
    fn listed(
        &mut self,
        nid: Nid,
        start: usize,
        (first, count): (u64, u64),
    ) -> Result<Vec<Listed>, Error> {
        let (variant, addresses) = (self.superblock.variant, self.io.device_addresses());
        let node = self.cached(nid)?;
        let listed = (0..count as u32).filter_map(|slot| {
            let found = variant.address_at(node, start + variant.address_bytes() * slot as usize);
            let is_block = !found.is_hole() && found != BlockAddr::COMPRESSED;
            is_block.then(|| Listed {
                slot,
                file_block: first + u64::from(slot),
                blocks: 1,
                target: address_of(addresses.has(found), found),
                is_metadata: false,
                written: true,
            })
        });
        Ok(listed.collect())
    }

    fn listed_nodes(&mut self, nodes: &[Nid]) -> Result<Vec<Listed>, Error> {
        let mut pointers = Vec::new();
        for &nid in nodes {
            let at = self.nat_entry(nid)?.address;
            if at != BlockAddr::NULL {
                let (slot, target) = (nid.0, self.address_of(at));
                let pointer = Listed {
                    slot,
                    file_block: 0,
                    blocks: 1,
                    target,
                    is_metadata: true,
                    written: true,
                };
                pointers.push(pointer);
            }
        }
        Ok(pointers)
    }

    fn address_of(&self, found: BlockAddr) -> Address {
        address_of(self.is_device_address(found), found)
    }

    fn set_pointer_at(
        &mut self,
        ino: Nid,
        at: PointerPlace,
        new: Address,
    ) -> Result<(), CallError> {
        let to = self.stored(new)?;
        if at.holder == Holder::Table {
            let nid = Nid(at.slot);
            let entry = self.nat_entry(nid)?;
            if entry.ino != ino || entry.address == BlockAddr::NULL {
                return Err(NO_POINTER);
            }
            self.nat.set(nid, NatEntry { address: to, ..entry });
            return Ok(());
        }
        let Found::Pointer(pointer) = self.find_pointer(ino, at.file_block)? else {
            return Err(NO_POINTER);
        };
        if u32::from(pointer.index) != at.slot || pointer.address.is_hole() {
            return Err(NO_POINTER);
        }
        Ok(self.set_pointer(ino, &pointer, to)?)
    }

    fn stored(&self, new: Address) -> Result<BlockAddr, CallError> {
        let address = match new {
            Address::Logical(at) => BlockAddr(at),
            Address::Physical(at) => BlockAddr(at | DEVICE_ADDRESS_BIT),
        };
        let fits = match new {
            Address::Logical(_) => self.superblock.in_main(address),
            Address::Physical(_) => self.check_device_addresses()?.has(address),
        };
        fits.then_some(address)
            .ok_or(CallError::Invalid("the address is not one that a pointer may lead to"))
    }
}

fn address_of(is_device_address: bool, found: BlockAddr) -> Address {
    if is_device_address {
        Address::Physical(found.0 & !DEVICE_ADDRESS_BIT)
    } else {
        Address::Logical(found.0)
    }
}

impl<D: Scheduler> PointerWalk for F2fs<D> {
    fn metadata_of(&mut self, ino: Number) -> Result<Vec<MetadataBlock>, CallError> {
        Ok(self.walk_file(nid_of(ino))?)
    }

    fn rewrite_pointer(
        &mut self,
        ino: Number,
        at: PointerPlace,
        new: Address,
    ) -> Result<(), CallError> {
        self.change(|fs| fs.set_pointer_at(nid_of(ino), at, new))
    }
}
