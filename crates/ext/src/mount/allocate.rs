//! Taking blocks: near where the file is, in one run if there is one, with a window kept behind it.
//!
//! A window is a run of free blocks kept in memory for one file (ext4's preallocation, ext3's
//! reservation windows), so that files that grow side by side do not take turns. Small files share
//! one window, so that they lie side by side. Windows are given up when space runs short, when
//! their file is let go, and at the end of the mount.

use dovetail_block::Scheduler;
use rustc_hash::FxHashMap;

use super::Ext;
use super::policy::{WindowFacts, window_size};
use crate::error::Error;
use crate::format::{BlockAddr, GroupNo, Ino};

/// Files up to this size share a window (Linux 6.1: `mb_stream_req`, in KiB).
const SMALL_KIB: u64 = 64;
/// Blocks of the window that small files share (Linux 6.1: `mb_group_prealloc`).
const SHARED_BLOCKS: u32 = 512;

/// Free blocks that are kept for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    start: BlockAddr,
    blocks: u32,
    /// Blocks that it had at first.
    size: u32,
}

/// All windows: of files by their inode, the shared one by none.
#[derive(Debug, Default)]
pub(super) struct Windows {
    map: FxHashMap<Ino, Window>,
}

/// Request for a run of blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// The file; none for metadata, which have no window.
    pub(super) ino: Option<Ino>,
    /// Preferred start of the run.
    pub(super) goal: u64,
    /// Blocks, at most; a run may have fewer.
    pub(super) blocks: u32,
    /// Blocks that the file will have then.
    pub(super) size_blocks: u64,
    /// The first address that is beyond the reach of what is to lead to the run.
    pub(super) reach: u64,
}

impl<D: Scheduler> Ext<D> {
    /// Takes a run of at least one block; it lies in one group, and is used from now on.
    ///
    /// # Errors
    /// [`Error::NoSpace`]: then nothing is free but what the next commit releases.
    pub(super) fn allocate(&mut self, request: Request) -> Result<(BlockAddr, u32), Error> {
        // bitmaps do not show what lies at places of the device
        if self.groups.physical() > 0 && self.groups.takeable() == 0 {
            return Err(Error::NoSpace);
        }
        if let Some(run) = self.take_from_window(&request)? {
            return Ok(run);
        }
        let request = Request {
            goal: if self.is_place(BlockAddr(request.goal)) { 0 } else { request.goal },
            ..request
        };
        let most = self.superblock.blocks_per_group;
        let blocks = request.blocks.min(most);
        let window =
            self.window_wanted(&request).map_or(blocks, |window| window.max(blocks).min(most));
        let groups = self.groups_below(request.reach);
        let found = match self.search(groups, request.goal, window, blocks)? {
            Some(found) => Some(found),
            None => {
                self.drop_windows()?;
                self.search(groups, request.goal, blocks, blocks)?
            }
        };
        let (start, len) = found.ok_or(Error::NoSpace)?;
        let used = len.min(blocks);
        self.use_blocks(start, used)?;
        if len > used && window > blocks {
            self.keep_window(&request, BlockAddr(start.0 + u64::from(used)), len - used, len)?;
        }
        Ok((start, used))
    }

    /// One block for metadata, near `goal` and below `reach`.
    pub(super) fn allocate_meta(&mut self, goal: u64, reach: u64) -> Result<BlockAddr, Error> {
        Ok(self.allocate(Request { ino: None, goal, blocks: 1, size_blocks: 0, reach })?.0)
    }

    /// The first address that the file's map cannot hold: pointers have 32 bits.
    pub(super) fn reach_of(&mut self, ino: Ino) -> Result<u64, Error> {
        Ok(if self.is_extent_mapped(ino)? { u64::MAX } else { 1 << 32 })
    }

    /// Number of groups of which all blocks lie below an address.
    fn groups_below(&self, reach: u64) -> u32 {
        let count = self.superblock.group_count();
        if reach >= self.superblock.blocks_count {
            return count;
        }
        let below = reach.saturating_sub(self.superblock.first_data_block.into());
        count.min((below / u64::from(self.superblock.blocks_per_group)) as u32)
    }

    fn is_small(&self, request: &Request) -> bool {
        self.has_extents() && request.size_blocks * self.block_size() as u64 <= SMALL_KIB << 10
    }

    fn window_key(&self, request: &Request) -> Option<Ino> {
        request.ino.map(|ino| if self.is_small(request) { Ino::NONE } else { ino })
    }

    /// The blocks to look for, window included.
    fn window_wanted(&self, request: &Request) -> Option<u32> {
        let key = self.window_key(request)?;
        if key == Ino::NONE {
            return Some(SHARED_BLOCKS);
        }
        let last = self.windows.map.get(&key).map(|window| window.size);
        let facts = WindowFacts {
            extents: self.has_extents(),
            size_blocks: request.size_blocks,
            block_size: self.block_size() as u64,
            last,
        };
        // a window beyond what the file is likely to need
        let behind = window_size(facts);
        Some(if facts.extents {
            behind.max(request.blocks)
        } else {
            request.blocks.saturating_add(behind)
        })
    }

    fn take_from_window(&mut self, request: &Request) -> Result<Option<(BlockAddr, u32)>, Error> {
        let Some(key) = self.window_key(request) else { return Ok(None) };
        let Some(window) = self.windows.map.get(&key).copied().filter(|window| window.blocks > 0)
        else {
            return Ok(None);
        };
        let shared = key == Ino::NONE;
        let continues =
            if shared { window.blocks >= request.blocks } else { window.start.0 == request.goal };
        let fits = continues && window.start.0 + u64::from(window.blocks) <= request.reach;
        if !fits {
            if !shared {
                self.drop_window(key)?;
            }
            return Ok(None);
        }
        let blocks = request.blocks.min(window.blocks);
        let rest = Window {
            start: BlockAddr(window.start.0 + u64::from(blocks)),
            blocks: window.blocks - blocks,
            size: window.size,
        };
        self.windows.map.insert(key, rest);
        self.use_blocks(window.start, blocks)?;
        Ok(Some((window.start, blocks)))
    }

    fn keep_window(
        &mut self,
        request: &Request,
        start: BlockAddr,
        blocks: u32,
        size: u32,
    ) -> Result<(), Error> {
        let Some(key) = self.window_key(request) else { return Ok(()) };
        self.drop_window(key)?;
        self.keep(start, blocks, true)?;
        self.windows.map.insert(key, Window { start, blocks, size });
        Ok(())
    }

    /// The window of a file is given up.
    pub(super) fn drop_window(&mut self, key: Ino) -> Result<(), Error> {
        match self.windows.map.remove(&key) {
            Some(window) if window.blocks > 0 => self.keep(window.start, window.blocks, false),
            _ => Ok(()),
        }
    }

    /// All windows are given up.
    pub(super) fn drop_windows(&mut self) -> Result<(), Error> {
        let mut keys: Vec<Ino> = self.windows.map.keys().copied().collect();
        keys.sort_unstable();
        keys.into_iter().try_for_each(|key| self.drop_window(key))
    }

    /// A run of free blocks in the first `groups` groups: at the goal, or the first from there on
    /// that has `ideal` blocks, or `least`, or else the longest there is.
    fn search(
        &mut self,
        groups: u32,
        goal: u64,
        ideal: u32,
        least: u32,
    ) -> Result<Option<(BlockAddr, u32)>, Error> {
        let Some(last_group) = groups.checked_sub(1).map(GroupNo) else { return Ok(None) };
        let last = self.superblock.group_start(last_group).0
            + u64::from(self.superblock.group_blocks(last_group))
            - 1;
        let goal = BlockAddr(goal.clamp(self.superblock.first_data_block.into(), last));
        let (first, offset) = self.superblock.group_of(goal);
        // what begins right at the goal continues the file
        let begins = least.min(16);
        let is_hopeless =
            self.groups.cannot_hold(first, ideal) && !self.are_free(first, offset, begins)?;
        if !is_hopeless
            && let Some((start, len)) = self.find_run(first, offset, ideal)?
            && ((start == offset && len >= begins) || len >= ideal)
        {
            return Ok(Some((self.in_group(first, start), len)));
        }
        let mut best = None;
        for wanted in [ideal, least] {
            for step in 0..groups {
                let group = GroupNo((first.0 + step) % groups);
                if self.groups.cannot_hold(group, if best.is_some() { wanted } else { 1 }) {
                    continue;
                }
                let Some((start, len)) = self.find_run(group, 0, wanted)? else { continue };
                if len >= wanted {
                    return Ok(Some((self.in_group(group, start), len)));
                }
                if best.is_none_or(|(_, longest)| longest < len) {
                    best = Some((self.in_group(group, start), len));
                }
            }
            if least == ideal {
                break;
            }
        }
        Ok(best)
    }

    fn in_group(&self, group: GroupNo, block: u32) -> BlockAddr {
        BlockAddr(self.superblock.group_start(group).0 + u64::from(block))
    }
}
