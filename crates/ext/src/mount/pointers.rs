//! Files of ext3: pointers in the inode, and trees of blocks of pointers below it.

use dovetail_block::Scheduler;

use super::Ext;
use super::map::{Run, State};
use super::meta::Kind;
use super::physical::mapped;
use super::policy::Neighbour;
use crate::error::{Damage, Error, Place};
use crate::format::{BlockAddr, Ino, PointerWay, blocks_below, pointer, set_pointer};

/// A pointer block on the way down, or the inode itself.
#[derive(Clone, Copy, Debug)]
struct Subtree {
    at: BlockAddr,
    /// Blocks of pointers from here on down: 1 for one that points to content.
    depth: u32,
    /// The first block of the file that it leads to.
    first: u64,
}

impl<D: Scheduler> Ext<D> {
    pub(super) fn per_pointer_block(&self) -> u32 {
        (self.block_size() / 4) as u32
    }

    fn way(&self, block: u32) -> Result<PointerWay, Error> {
        PointerWay::to(block, self.per_pointer_block()).ok_or(Error::FileTooBig)
    }

    pub(super) fn checked(&self, ino: Ino, found: u32) -> Result<BlockAddr, Error> {
        let at = BlockAddr(found.into());
        self.refuse_physical(ino, at)?;
        if !at.is_some() || self.superblock.contains(at) || self.is_place(at) {
            return Ok(at);
        }
        let (first, last) =
            (u64::from(self.superblock.first_data_block) + 1, self.superblock.blocks_count - 1);
        Err(Damage::Address {
            place: Place::Pointers(ino),
            field: "a pointer",
            found: at,
            first,
            last,
        }
        .into())
    }

    /// Pointers of one block from `slot` on, as long as they continue each other (or are holes).
    fn alike(&self, slots: &[u8], slot: u32) -> u32 {
        let first = pointer(slots, slot);
        let count = (slots.len() / 4) as u32;
        let expected = |i: u32| if first == 0 { 0 } else { first.wrapping_add(i) };
        (1..count - slot).find(|&i| pointer(slots, slot + i) != expected(i)).unwrap_or(count - slot)
    }

    pub(super) fn map_pointer(&mut self, ino: Ino, block: u32) -> Result<Run, Error> {
        let Ok(way) = self.way(block) else {
            return Ok(Run { block, blocks: u32::MAX - block, state: State::Hole });
        };
        let area = self.inode(ino)?.block;
        let slots = way.slots();
        let mut found = pointer(&area, slots[0]);
        let per_block = self.per_pointer_block();
        if way.depth() == 0 {
            let blocks = self.alike(&area[..48], slots[0]);
            return self.pointed(ino, block, blocks, found);
        }
        for (level, &slot) in (1..=way.depth()).zip(&slots[1..]) {
            let below = way.depth() - level;
            if found == 0 {
                // nothing below: a hole up to the end of what the slot above leads to
                let span = blocks_below(below + 1, per_block);
                let offset = slots[level as usize..]
                    .iter()
                    .fold(0, |sum, &slot| sum * u64::from(per_block) + u64::from(slot));
                let blocks = (span - offset).min(u64::from(u32::MAX - block)).max(1) as u32;
                return Ok(Run { block, blocks, state: State::Hole });
            }
            let at = self.checked(ino, found)?;
            let bytes = self.meta(at, Kind::Plain, Place::Pointers(ino))?;
            found = pointer(bytes, slot);
            if below == 0 {
                let bytes = bytes.to_vec();
                let blocks = self.alike(&bytes, slot);
                return self.pointed(ino, block, blocks, found);
            }
        }
        Ok(Run { block, blocks: 1, state: State::Hole })
    }

    fn pointed(&self, ino: Ino, block: u32, blocks: u32, found: u32) -> Result<Run, Error> {
        let at = self.checked(ino, found)?;
        if !at.is_some() {
            return Ok(Run { block, blocks, state: State::Hole });
        }
        self.checked(ino, found.saturating_add(blocks - 1))?;
        Ok(Run { block, blocks, state: State::Written(at) })
    }

    /// Lets pointers lead to neighbouring blocks from `at` on.
    pub(super) fn insert_pointers(
        &mut self,
        ino: Ino,
        block: u32,
        blocks: u32,
        at: BlockAddr,
    ) -> Result<(), Error> {
        for offset in 0..blocks {
            // it was taken within the reach of pointers
            let to = u32::try_from(at.0 + u64::from(offset)).map_err(|_| Error::NoSpace)?;
            self.insert_pointer(ino, block + offset, to)?;
        }
        Ok(())
    }

    fn insert_pointer(&mut self, ino: Ino, block: u32, to: u32) -> Result<(), Error> {
        let way = self.way(block)?;
        let slots = way.slots();
        if way.depth() == 0 {
            self.edit_inode(ino)?.set_pointer(slots[0] as usize, to);
            return Ok(());
        }
        let top = self.inode(ino)?.pointers()[slots[0] as usize];
        let mut node = self.checked(ino, top)?;
        if !node.is_some() {
            node = self.new_pointer_block(ino, to)?;
            self.edit_inode(ino)?.set_pointer(slots[0] as usize, node.0 as u32);
        }
        for (level, &slot) in (1..=way.depth()).zip(&slots[1..]) {
            if level == way.depth() {
                set_pointer(self.edit_meta(node, Kind::Plain, Place::Pointers(ino))?, slot, to);
                break;
            }
            let found = pointer(self.meta(node, Kind::Plain, Place::Pointers(ino))?, slot);
            let mut below = self.checked(ino, found)?;
            if !below.is_some() {
                below = self.new_pointer_block(ino, to)?;
                let bytes = self.edit_meta(node, Kind::Plain, Place::Pointers(ino))?;
                set_pointer(bytes, slot, below.0 as u32);
            }
            node = below;
        }
        Ok(())
    }

    fn new_pointer_block(&mut self, ino: Ino, near: u32) -> Result<BlockAddr, Error> {
        let at = self.take_meta(ino, near.into())?;
        self.new_meta(at, Kind::Plain);
        Ok(at)
    }

    /// The mapped block before `block`, if it is near: where the file would go on.
    pub(super) fn pointer_before(
        &mut self,
        ino: Ino,
        block: u32,
    ) -> Result<Option<Neighbour>, Error> {
        let Some(before) = block.checked_sub(1) else { return Ok(None) };
        match mapped(self.map_pointer(ino, before))?.map(|run| run.state) {
            Some(State::Written(at)) if !self.is_place(at) => {
                Ok(Some(Neighbour { block: before, at: at.0 }))
            }
            _ => Ok(None),
        }
    }

    /// Removes pointers until all are gone or the budget, blocks that may be logged for it, is used
    /// up.
    pub(super) fn remove_pointers(
        &mut self,
        ino: Ino,
        from: u32,
        to: u64,
        budget: &mut usize,
    ) -> Result<(), Error> {
        let direct = u64::from(crate::format::DIRECT_POINTERS);
        for slot in u64::from(from)..to.min(direct) {
            self.remove_top(ino, slot as usize, None, (from.into(), to), budget)?;
        }
        let mut first = direct;
        for depth in 1..=3 {
            let span = blocks_below(depth, self.per_pointer_block());
            if u64::from(from) < first + span && to > first {
                let subtree = Subtree { at: BlockAddr::NONE, depth, first };
                let slot = direct as usize + depth as usize - 1;
                self.remove_top(ino, slot, Some(subtree), (from.into(), to), budget)?;
            }
            first += span;
        }
        Ok(())
    }

    /// Removes what one of the inode's pointers leads to, as far as it lies in the range.
    fn remove_top(
        &mut self,
        ino: Ino,
        slot: usize,
        subtree: Option<Subtree>,
        range: (u64, u64),
        budget: &mut usize,
    ) -> Result<(), Error> {
        if *budget == 0 {
            return Ok(());
        }
        let found = self.inode(ino)?.pointers()[slot];
        let at = self.checked(ino, found)?;
        if !at.is_some() {
            return Ok(());
        }
        let emptied = match subtree {
            None => {
                self.free_content(ino, at, 1)?;
                *budget = budget.saturating_sub(1);
                true
            }
            Some(subtree) => self.remove_below(ino, Subtree { at, ..subtree }, range, budget)?,
        };
        if emptied {
            self.edit_inode(ino)?.set_pointer(slot, 0);
        }
        Ok(())
    }

    /// Removes what lies in the range, as far as the budget goes; a block without pointers is
    /// freed, which the answer says.
    fn remove_below(
        &mut self,
        ino: Ino,
        tree: Subtree,
        (from, to): (u64, u64),
        budget: &mut usize,
    ) -> Result<bool, Error> {
        let per_block = self.per_pointer_block();
        let span = blocks_below(tree.depth - 1, per_block);
        let mut slots = self.meta(tree.at, Kind::Plain, Place::Pointers(ino))?.to_vec();
        let mut changed = false;
        let mut run: Option<(u64, u32)> = None;
        for slot in 0..per_block {
            let found = pointer(&slots, slot);
            let first = tree.first + u64::from(slot) * span;
            if *budget == 0 {
                break;
            }
            if found == 0 || first >= to || first + span <= from {
                continue;
            }
            let at = self.checked(ino, found)?;
            let gone = if tree.depth == 1 {
                *budget -= 1;
                // neighbours are freed together
                run = match run {
                    Some((start, len)) if start + u64::from(len) == at.0 => Some((start, len + 1)),
                    Some((start, len)) => {
                        self.free_content(ino, BlockAddr(start), len)?;
                        Some((at.0, 1))
                    }
                    None => Some((at.0, 1)),
                };
                true
            } else {
                self.remove_below(
                    ino,
                    Subtree { at, depth: tree.depth - 1, first },
                    (from, to),
                    budget,
                )?
            };
            if gone {
                set_pointer(&mut slots, slot, 0);
                changed = true;
            }
        }
        if let Some((start, len)) = run {
            self.free_content(ino, BlockAddr(start), len)?;
        }
        *budget = budget.saturating_sub(1);
        if slots.iter().all(|&byte| byte == 0) {
            self.free_meta(ino, tree.at)?;
            return Ok(true);
        }
        if changed {
            self.edit_meta(tree.at, Kind::Plain, Place::Pointers(ino))?.copy_from_slice(&slots);
        }
        Ok(false)
    }
}
