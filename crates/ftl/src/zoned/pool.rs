//! Erase blocks that no zone has: the least worn of a plane goes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dovetail_nand::{BlockId, Nand};

/// Free erase blocks by unit of the flash.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    free: Vec<BinaryHeap<Reverse<(u32, BlockId)>>>,
}

impl Pool {
    /// The good blocks of a flash of which `is_used` does not hold.
    pub(super) fn of(nand: &Nand, is_used: impl Fn(BlockId) -> bool) -> Self {
        let geometry = nand.geometry();
        let mut pool = Self { free: vec![BinaryHeap::new(); geometry.units() as usize] };
        let blocks = (0..geometry.blocks()).map(BlockId);
        blocks.filter(|&block| !is_used(block)).for_each(|block| pool.give(nand, block));
        pool
    }

    /// Takes a block that no zone needs any more; a bad one is dropped.
    pub(super) fn give(&mut self, nand: &Nand, block: BlockId) {
        if !nand.is_bad(block) {
            let unit = block.0 % nand.geometry().units();
            self.free[unit as usize].push(Reverse((nand.erases(block), block)));
        }
    }

    /// The least worn free block of a unit, which may have to be erased.
    pub(super) fn take(&mut self, unit: u32) -> Option<BlockId> {
        self.free[unit as usize].pop().map(|Reverse((_, block))| block)
    }
}
