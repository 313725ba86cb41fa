//! Node blocks in memory, with a bound on the clean ones: CLOCK evicts those not used lately.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_block::BlockBytes;

use crate::format::{Footer, Nid};

/// A node in memory.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) nid: Nid,
    /// The inode that it belongs to.
    pub(crate) ino: Nid,
    /// Its offset among the nodes of the inode, as its footer says: kept here, where it is at hand.
    pub(crate) offset: u32,
    /// It belongs to something that is not a directory, as its footer says.
    cold: bool,
    /// The block; its footer is made final when it is written.
    pub(crate) block: Arc<BlockBytes>,
    pub(crate) dirty: bool,
    used: bool,
}

impl Node {
    /// It belongs to `ino`, and stands at `offset` among its nodes.
    pub(crate) fn is_of(&self, ino: Nid, offset: u32) -> bool {
        self.ino == ino && self.offset == offset
    }

    /// The footer, as far as it is known before the node is written.
    pub(crate) fn footer(&self) -> Footer {
        Footer {
            nid: self.nid,
            ino: self.ino,
            cold: self.cold,
            fsync_mark: false,
            dentry_mark: false,
            node_offset: self.offset,
            checkpoint: 0,
            next: 0,
        }
    }
}

const ABSENT: u32 = u32::MAX;

/// The frame of the cache that a node is in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame(u32);

/// The nodes that are in memory. Dirty ones stay until they are written; of the others, those not
/// used lately go when there are more than the bound.
#[derive(Debug)]
pub(crate) struct NodeCache {
    frames: Vec<Node>,
    /// The frame of each nid, up to the highest that was ever in memory; [`ABSENT`] for those that
    /// are not.
    index: Vec<u32>,
    /// (inode, node), so that the dirty nodes of one file stand together.
    dirty: BTreeSet<(Nid, Nid)>,
    /// Dirty inodes of which only times changed, by writing content.
    times_only: BTreeSet<Nid>,
    hand: usize,
    bound: usize,
    edits: u64,
    loads: u64,
}

impl NodeCache {
    /// A cache that keeps about `bound` nodes beside the dirty ones.
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            frames: Vec::new(),
            index: Vec::new(),
            dirty: BTreeSet::new(),
            times_only: BTreeSet::new(),
            hand: 0,
            edits: 0,
            loads: 0,
            bound: bound.max(16),
        }
    }

    /// Nodes that have come into the cache so far.
    pub(crate) const fn loads(&self) -> u64 {
        self.loads
    }

    pub(crate) fn contains(&self, nid: Nid) -> bool {
        self.frame_of(nid).is_some()
    }

    fn frame_of(&self, nid: Nid) -> Option<u32> {
        self.index.get(nid.0 as usize).copied().filter(|&frame| frame != ABSENT)
    }

    fn note_frame(&mut self, nid: Nid, frame: u32) {
        let end = nid.0 as usize + 1;
        if self.index.len() < end {
            self.index.resize(end, ABSENT);
        }
        self.index[nid.0 as usize] = frame;
    }

    /// The frame of a node until the next one comes or goes.
    #[inline]
    pub(crate) fn find(&mut self, nid: Nid) -> Option<Frame> {
        let frame = self.frame_of(nid)?;
        self.frames[frame as usize].used = true;
        Some(Frame(frame))
    }

    #[inline]
    pub(crate) fn at(&self, frame: Frame) -> &Node {
        &self.frames[frame.0 as usize]
    }

    /// A node as one of several sees it who look at the same time. It does not count as a use.
    pub(crate) fn peek(&self, nid: Nid) -> Option<&Node> {
        self.frame_of(nid).map(|frame| self.at(Frame(frame)))
    }

    pub(crate) fn get(&mut self, nid: Nid) -> Option<&Node> {
        let frame = self.find(nid)?;
        Some(self.at(frame))
    }

    /// The block, to be changed: the node is dirty from now on.
    pub(crate) fn edit_at(&mut self, frame: Frame) -> &mut BlockBytes {
        self.edits += 1;
        let node = &mut self.frames[frame.0 as usize];
        if !self.times_only.is_empty() {
            self.times_only.remove(&node.nid);
        }
        if !node.dirty {
            node.dirty = true;
            self.dirty.insert((node.ino, node.nid));
        }
        Arc::make_mut(&mut node.block)
    }

    /// The block, to have its footer made final before it is written. The node becomes clean.
    pub(crate) fn seal(&mut self, nid: Nid) -> Option<&mut Arc<BlockBytes>> {
        let frame = self.frame_of(nid)? as usize;
        let node = &mut self.frames[frame];
        node.dirty = false;
        self.dirty.remove(&(node.ino, nid));
        self.times_only.remove(&nid);
        Some(&mut node.block)
    }

    /// Takes in a node that was read or made; its nid is one of the NAT's.
    pub(crate) fn insert(
        &mut self,
        nid: Nid,
        ino: Nid,
        offset: u32,
        block: Arc<BlockBytes>,
    ) -> Frame {
        self.loads += 1;
        self.remove(nid);
        self.evict();
        let frame = self.frames.len() as u32;
        let cold = Footer::parse(&block).cold;
        self.note_frame(nid, frame);
        self.frames.push(Node { nid, ino, offset, cold, block, dirty: false, used: true });
        Frame(frame)
    }

    /// Forgets a node, dirty or not.
    pub(crate) fn remove(&mut self, nid: Nid) {
        let Some(frame) = self.frame_of(nid) else { return };
        self.index[nid.0 as usize] = ABSENT;
        let node = self.frames.swap_remove(frame as usize);
        if node.dirty {
            self.dirty.remove(&(node.ino, nid));
            self.times_only.remove(&nid);
        }
        if let Some(moved) = self.frames.get(frame as usize) {
            self.index[moved.nid.0 as usize] = frame;
        }
    }

    /// CLOCK: a clean node that was not used since the hand last passed is evicted.
    fn evict(&mut self) {
        let mut tries = 2 * self.frames.len();
        while self.frames.len() - self.dirty.len() >= self.bound && tries > 0 {
            tries -= 1;
            self.hand = if self.hand < self.frames.len() { self.hand } else { 0 };
            let node = &mut self.frames[self.hand];
            if node.dirty || node.used {
                node.used = false;
                self.hand += 1;
            } else {
                let nid = node.nid;
                self.remove(nid);
            }
        }
    }

    /// The number of edits: every call that changes the volume changes a node, or counts as if.
    pub(crate) fn edits(&self) -> u64 {
        self.edits
    }

    /// Content was written within the tick of the clock in which the inode was changed last.
    pub(crate) fn count_edit(&mut self) {
        self.edits += 1;
    }

    pub(crate) fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    pub(crate) fn is_dirty(&self, nid: Nid) -> bool {
        self.frame_of(nid).is_some_and(|frame| self.frames[frame as usize].dirty)
    }

    /// Of a dirty inode only times have changed, until its next edit.
    pub(crate) fn note_times_only(&mut self, ino: Nid) {
        debug_assert!(self.is_dirty(ino), "the times were edited");
        self.times_only.insert(ino);
    }

    /// Times of an inode count as any other change from now on: an fsync writes them.
    pub(crate) fn let_times_count(&mut self, ino: Nid) {
        self.times_only.remove(&ino);
    }

    /// The inode is dirty, and more than its times has changed.
    pub(crate) fn is_dirty_beyond_times(&self, ino: Nid) -> bool {
        self.is_dirty(ino) && !self.times_only.contains(&ino)
    }

    /// The dirty nodes of inode `ino`, in order.
    pub(crate) fn dirty_of(&self, ino: Nid) -> impl Iterator<Item = Nid> {
        self.dirty.range((ino, Nid(0))..=(ino, Nid(u32::MAX))).map(|&(_, nid)| nid)
    }

    /// All dirty nodes, file by file.
    pub(crate) fn all_dirty(&self) -> Vec<Nid> {
        self.dirty.iter().map(|&(_, nid)| nid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_nodes_go_and_dirty_ones_stay() {
        let mut cache = NodeCache::new(16);
        for nid in 0..100 {
            let frame = cache.insert(Nid(nid), Nid(nid / 10), 0, Arc::new([nid as u8; 4096]));
            if nid % 10 == 0 {
                cache.edit_at(frame)[0] = 1;
            }
        }
        assert!(cache.frames.len() <= 16 + 10 + 1);
        assert_eq!(cache.all_dirty(), (0..10).map(|n| Nid(10 * n)).collect::<Vec<_>>());
        assert!(cache.dirty_of(Nid(3)).eq([Nid(30)]));
        assert_eq!(cache.get(Nid(99)).unwrap().block[5], 99);
        cache.seal(Nid(30)).unwrap();
        assert!(!cache.is_dirty(Nid(30)));
        cache.remove(Nid(40));
        assert_eq!(cache.dirty_of(Nid(4)).count(), 0);
        assert_eq!(cache.get(Nid(30)).unwrap().nid, Nid(30));
    }
}
