//! From a block of a file to the block of the volume: an extent tree, or pointers of up to three
//! levels.

use dovetail_block::BlockDevice;

use super::Volume;
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BlockAddr, Extent, ExtentEntries, ExtentIndex, ExtentNode, Inode, InodeFlags, PointerWay,
    blocks_below, extent_block_checksums, pointer,
};

/// State of blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapped {
    /// Nothing: they read as zeros.
    Hole,
    /// Reserved from this block on and never written: they read as zeros.
    Unwritten(BlockAddr),
    /// They lie side by side from this block on.
    Data(BlockAddr),
}

impl Mapped {
    /// Address of the content, if there is any.
    pub const fn data(self) -> Option<BlockAddr> {
        match self {
            Self::Data(start) => Some(start),
            _ => None,
        }
    }
}

/// Blocks of a file that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// State of the blocks.
    pub mapped: Mapped,
    /// Number of blocks, at least 1.
    pub len: u64,
}

impl<D: BlockDevice> Volume<D> {
    /// Run of the file's blocks from `block` on that are alike, as far as one step tells: their
    /// neighbours may be alike, too. Blocks beyond the largest file are a hole.
    ///
    /// # Errors
    /// A damaged tree, a block outside the volume; [`Error::Io`].
    pub fn run(&mut self, inode: &Inode, block: u64) -> Result<Run, Error> {
        let Ok(block) = u32::try_from(block) else {
            return Ok(Run { mapped: Mapped::Hole, len: u64::MAX - block });
        };
        if inode.flags.has(InodeFlags::EXTENTS) {
            self.run_of_extents(inode, block)
        } else {
            self.run_of_pointers(inode, block)
        }
    }

    fn run_of_extents(&mut self, inode: &Inode, block: u32) -> Result<Run, Error> {
        let mut node = ExtentNode::parse(&inode.block, inode.ino, BlockAddr::NONE)?;
        let (mut at, mut limit) = (BlockAddr::NONE, 1 << 32);
        loop {
            let place = Place::Extents(inode.ino, at);
            match node.entries {
                ExtentEntries::Leaf(list) => return self.run_in_leaf(&list, block, limit, place),
                ExtentEntries::Index(list) => {
                    let after = list.partition_point(|index| index.block <= block);
                    limit = list.get(after).map_or(limit, |next| next.block.into());
                    let Some(index) = after.checked_sub(1).map(|i| list[i]) else {
                        return Ok(Run { mapped: Mapped::Hole, len: limit - u64::from(block) });
                    };
                    node = self.extent_node(inode, index, node.depth - 1, place)?;
                    at = index.node;
                }
            }
        }
    }

    /// `block` belongs to a leaf whose blocks end before `limit`.
    fn run_in_leaf(
        &self,
        list: &[Extent],
        block: u32,
        limit: u64,
        place: Place,
    ) -> Result<Run, Error> {
        let after = list.partition_point(|extent| extent.block <= block);
        let limit = list.get(after).map_or(limit, |next| u64::from(next.block).min(limit));
        let hole = Run { mapped: Mapped::Hole, len: limit.saturating_sub(block.into()).max(1) };
        let Some(extent) = after.checked_sub(1).map(|i| list[i]).filter(|e| e.end() > block.into())
        else {
            return Ok(hole);
        };
        self.check_extent(&extent, place)?;
        let start = BlockAddr(extent.start.0 + u64::from(block - extent.block));
        let mapped = if extent.written { Mapped::Data(start) } else { Mapped::Unwritten(start) };
        Ok(Run { mapped, len: extent.end() - u64::from(block) })
    }

    /// The node that an index entry at `place` leads to, of depth `depth`.
    pub(crate) fn extent_node(
        &mut self,
        inode: &Inode,
        index: ExtentIndex,
        depth: u16,
        place: Place,
    ) -> Result<ExtentNode, Error> {
        self.check_address(place, "ei_leaf", index.node)?;
        let block = self.blocks.metadata(index.node)?;
        let node = ExtentNode::parse(&block, inode.ino, index.node)?;
        let place = Place::Extents(inode.ino, index.node);
        if let Some(seed) = inode.checksum_seed(&self.superblock) {
            let (found, computed) = extent_block_checksums(&block, seed).unwrap_or_default();
            Corrupt::check_checksum(place, found, computed)?;
        }
        Corrupt::check_equal(place, "eh_depth", node.depth, depth)?;
        Ok(node)
    }

    fn run_of_pointers(&mut self, inode: &Inode, block: u32) -> Result<Run, Error> {
        let per_block = self.superblock.block_size() / 4;
        let Some(way) = PointerWay::to(block, per_block) else {
            return Ok(Run { mapped: Mapped::Hole, len: u64::MAX - u64::from(block) });
        };
        if way.depth() == 0 {
            let after = &inode.pointers()[block as usize..12];
            return self.run_of_list(inode, after);
        }
        let slots = way.slots();
        let mut at = BlockAddr(inode.pointers()[slots[0] as usize].into());
        for (level, &slot) in slots.iter().enumerate().skip(1) {
            let below = way.depth() - level as u32;
            if !at.is_some() {
                let within: u64 = slots[level..]
                    .iter()
                    .fold(0, |sum, &slot| sum * u64::from(per_block) + u64::from(slot));
                let len = blocks_below(below + 1, per_block) - within;
                return Ok(Run { mapped: Mapped::Hole, len });
            }
            self.check_address(Place::Pointers(inode.ino), "a pointer", at)?;
            let block = self.blocks.metadata(at)?;
            if below == 0 {
                let list: Vec<u32> = (slot..per_block).map(|slot| pointer(&block, slot)).collect();
                return self.run_of_list(inode, &list);
            }
            at = BlockAddr(pointer(&block, slot).into());
        }
        Ok(Run { mapped: Mapped::Hole, len: 1 })
    }

    /// The run at the start of a list of pointers, which has at least one.
    fn run_of_list(&self, inode: &Inode, list: &[u32]) -> Result<Run, Error> {
        let first = list.first().copied().unwrap_or(0);
        let step = u32::from(first != 0);
        let alike = list
            .iter()
            .zip(0_u32..)
            .take_while(|(at, n)| first.checked_add(n * step) == Some(**at));
        let len = (alike.count() as u64).max(1);
        if first == 0 {
            return Ok(Run { mapped: Mapped::Hole, len });
        }
        let (place, start) = (Place::Pointers(inode.ino), BlockAddr(first.into()));
        self.check_address(place, "a pointer", start)?;
        self.check_address(place, "a pointer", BlockAddr(start.0 + len - 1))?;
        Ok(Run { mapped: Mapped::Data(start), len })
    }
}
