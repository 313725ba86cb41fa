//! Placement of the groups' bitmaps and inode tables.
//!
//! With the feature flex_bg those of 16 groups lie together in the first of them: block bitmaps,
//! inode bitmaps, inode tables, as far as copies of the superblock leave room. Otherwise each group
//! has its own.

use std::ops::Range;

use super::MkfsError;
use crate::format::{BlockAddr, Group, GroupNo, Superblock};
use crate::space::Space;

/// The groups, and which blocks are taken.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) groups: Vec<Group>,
    pub(super) space: Space,
}

/// Blocks to find room for in a flex group: `rest` more of the same size follow.
#[derive(Clone, Copy)]
struct Wanted {
    /// End of the one before.
    goal: Option<u64>,
    blocks: u64,
    rest: u64,
}

impl Places {
    /// Places everything that a volume has before it has files.
    pub(super) fn new(superblock: &Superblock) -> Result<Self, MkfsError> {
        let count = superblock.group_count();
        let mut places =
            Self { groups: vec![Group::default(); count as usize], space: Space::default() };
        if superblock.first_data_block > 0 {
            places.space.take(0..u64::from(superblock.first_data_block));
        }
        for group in (0..count).map(GroupNo) {
            let start = superblock.group_start(group).0;
            places.space.take(start..start + u64::from(superblock.base_blocks(group)));
        }
        let step = superblock.groups_per_flex();
        for first in (0..count).step_by(step as usize) {
            places.place_flex(superblock, first..(first + step).min(count))?;
        }
        Ok(places)
    }

    fn place_flex(&mut self, superblock: &Superblock, groups: Range<u32>) -> Result<(), MkfsError> {
        let step = superblock.groups_per_flex();
        let count = groups.len() as u64;
        // a group that is alone has the distances of a full set
        let stride = if count == 1 { u64::from(step) } else { count };
        let within = superblock.group_start(GroupNo(groups.start)).0
            ..superblock.group_start(GroupNo(groups.end)).0.min(superblock.blocks_count);
        let bytes = superblock.blocks_count * u64::from(superblock.block_size());
        let too_small =
            MkfsError::TooSmall { bytes, short: "there is no room for bitmaps and inode tables" };
        let place = |places: &mut Self, goal, blocks| -> Result<Vec<u64>, MkfsError> {
            places.place_row(&within, count, (goal, blocks)).ok_or(too_small.clone())
        };
        let block_bitmaps = place(self, None, 1)?;
        let goal = block_bitmaps.first().map(|at| at + stride);
        let inode_bitmaps = place(self, goal, 1)?;
        let goal = inode_bitmaps.first().map(|at| at + stride);
        let tables = place(self, goal, superblock.inode_table_blocks().into())?;
        for (index, group) in groups.enumerate() {
            let group = &mut self.groups[group as usize];
            group.block_bitmap = BlockAddr(block_bitmaps[index]);
            group.inode_bitmap = BlockAddr(inode_bitmaps[index]);
            group.inode_table = BlockAddr(tables[index]);
        }
        Ok(())
    }

    /// Takes `count` areas of `blocks` blocks, one behind the other if possible.
    fn place_row(
        &mut self,
        within: &Range<u64>,
        count: u64,
        (goal, blocks): (Option<u64>, u64),
    ) -> Option<Vec<u64>> {
        let mut found = Vec::new();
        let mut goal = goal;
        for rest in (1..=count).rev() {
            let at = self.place(within, Wanted { goal, blocks, rest })?;
            self.space.take(at..at + blocks);
            found.push(at);
            goal = Some(at + blocks);
        }
        Some(found)
    }

    /// At the goal if there is room; otherwise where all that follow have room too; otherwise where
    /// there is room.
    fn place(&self, within: &Range<u64>, wanted: Wanted) -> Option<u64> {
        let Wanted { goal, blocks, rest } = wanted;
        let at_goal =
            goal.filter(|&at| at + blocks <= within.end && self.space.is_free(at..at + blocks));
        at_goal
            .or_else(|| self.space.find(within.clone(), blocks * rest))
            .or_else(|| self.space.find(within.clone(), blocks))
    }
}
