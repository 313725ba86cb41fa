//! From a block of a file to the block of the volume: pointers in the inode, then direct, indirect
//! and double indirect nodes.

use dovetail_block::BlockDevice;

use super::Volume;
use crate::error::{Error, Place};
use crate::format::{
    BlockAddr, Inode, NIDS_IN_NODE, Nid, NodePath, Variant, node_address, node_nid, steps_inside,
};

const N: u64 = NIDS_IN_NODE as u64;

/// A pointer, or how far the hole reaches that was found in its place.
enum Found {
    Pointer(BlockAddr),
    /// A node is missing, and with it the file's blocks up to this one (not included).
    MissingUntil(u64),
    /// A node is damaged, or the pointer itself, and with it the file's blocks up to this one (not
    /// included).
    DamagedUntil(u64, Error),
}

/// The next block of a directory, or how far the damage reaches that was found in its place, and
/// why.
pub(super) type Next = Result<(u64, BlockAddr), (u64, Error)>;

/// Pointers used in a direct node of the file.
pub(super) fn direct_of(inode: &Inode, variant: Variant) -> u64 {
    let all = variant.direct_pointers() as u64;
    all - all % u64::from(inode.cluster_blocks)
}

impl<D: BlockDevice> Volume<D> {
    /// Address of block `block` of the file; a hole for one beyond the largest file, too.
    ///
    /// # Errors
    /// A node on the path that is damaged, an address outside the main area; [`Error::Io`].
    pub fn block_of(&mut self, inode: &Inode, block: u64) -> Result<BlockAddr, Error> {
        Ok(match self.find(inode, block)? {
            Found::Pointer(address) => address,
            Found::MissingUntil(_) => BlockAddr::NULL,
            Found::DamagedUntil(_, error) => return Err(error),
        })
    }

    /// The first block of the file at or after `from` and before `end` that is no hole, and where
    /// it lies. Missing nodes are skipped as a whole, so that the cost follows what is stored and
    /// not the size of the file.
    ///
    /// # Errors
    /// As [`Self::block_of`].
    pub fn next_mapped(
        &mut self,
        inode: &Inode,
        from: u64,
        end: u64,
    ) -> Result<Option<(u64, BlockAddr)>, Error> {
        match self.next_or_damage(inode, from, end)? {
            Some(Ok(found)) => Ok(Some(found)),
            Some(Err((_, error))) => Err(error),
            None => Ok(None),
        }
    }

    /// As [`Self::next_mapped`], for who goes on behind damage.
    pub(super) fn next_or_damage(
        &mut self,
        inode: &Inode,
        from: u64,
        end: u64,
    ) -> Result<Option<Next>, Error> {
        let mut block = from;
        while block < end {
            match self.find(inode, block)? {
                Found::Pointer(address) if address.is_hole() => block += 1,
                Found::Pointer(address) => return Ok(Some(Ok((block, address)))),
                Found::MissingUntil(next) => block = next,
                Found::DamagedUntil(next, error) => return Ok(Some(Err((next, error)))),
            }
        }
        Ok(None)
    }

    /// The first block of the file at or after `from` and before `end` that is a hole; `end` if
    /// there is none. The blocks are in no compressed cluster.
    pub(super) fn next_unmapped(
        &mut self,
        inode: &Inode,
        from: u64,
        end: u64,
    ) -> Result<u64, Error> {
        let mut block = from;
        while block < end && !self.block_of(inode, block)?.is_hole() {
            block += 1;
        }
        Ok(block)
    }

    /// The node that holds the pointer to block `block` of the file, and the pointer's place in it;
    /// `None` when that node does not exist.
    ///
    /// # Errors
    /// As [`Self::block_of`].
    pub(crate) fn pointer_place(
        &mut self,
        inode: &Inode,
        block: u64,
    ) -> Result<Option<(Nid, usize)>, Error> {
        let direct = direct_of(inode, self.superblock.variant);
        let Some(path) = NodePath::to(block, inode.pointer_count() as u64, direct) else {
            return Ok(None);
        };
        let Some(root) = path.root else { return Ok(Some((inode.ino, path.index))) };
        let mut nid = inode.nids[root];
        for &(offset, index) in &path.steps[..path.depth - 1] {
            if nid == Nid::NONE {
                return Ok(None);
            }
            nid = node_nid(&*self.node(nid, inode.ino, offset)?, index);
        }
        Ok(nid.is_some().then_some((nid, path.steps[path.depth - 1].1)))
    }

    fn find(&mut self, inode: &Inode, block: u64) -> Result<Found, Error> {
        let variant = self.superblock.variant;
        let (pointers, direct) = (inode.pointer_count() as u64, direct_of(inode, variant));
        let Some(path) = NodePath::to(block, pointers, direct) else {
            return Ok(Found::MissingUntil(u64::MAX));
        };
        let Some(root) = path.root else {
            return Ok(self.checked(inode, block, inode.pointer(path.index)));
        };
        let mut nid = inode.nids[root];
        for (level, &(offset, index)) in path.steps[..path.depth].iter().enumerate() {
            let below = direct * N.pow((path.depth - 1 - level) as u32);
            let until = |block| block - steps_inside(block, pointers, direct, below) + below;
            if nid == Nid::NONE {
                return Ok(Found::MissingUntil(until(block)));
            }
            let node = match self.node(nid, inode.ino, offset) {
                Err(error @ Error::Corrupt(_)) => {
                    return Ok(Found::DamagedUntil(until(block), error));
                }
                node => node?,
            };
            if level + 1 == path.depth {
                return Ok(self.checked(inode, block, node_address(&node, index, variant)));
            }
            nid = node_nid(&node, index);
        }
        Ok(Found::MissingUntil(block + 1))
    }

    fn checked(&self, inode: &Inode, block: u64, address: BlockAddr) -> Found {
        if address.is_hole() || address == BlockAddr::COMPRESSED {
            return Found::Pointer(address);
        }
        match self.check_address(Place::Inode(inode.ino), "a data pointer", address) {
            Ok(()) => Found::Pointer(address),
            Err(error) => Found::DamagedUntil(block + 1, error.into()),
        }
    }
}
