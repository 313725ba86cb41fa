//! Files of ext4: a tree of extents, its root in the inode.
//!
//! A change goes down to the leaf that holds the block, edits the leaf's list, and comes back up
//! with what stands in the place of each node: nothing if it became empty, the same node, or
//! several if it had to be split. Each index says the first block of the node that it leads to.

use dovetail_block::Scheduler;

use super::Ext;
use super::map::{Run, State};
use super::meta::Kind;
use super::policy::Neighbour;
use super::waiting::TreeSize;
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BLOCK_AREA, BlockAddr, Extent, ExtentEntries, ExtentEntry, ExtentIndex, ExtentNode, Ino, Inode,
    MAX_EXTENT_DEPTH, check_extent, extents_in, mark_written_in, search_extents,
};

/// Freed blocks for which one block may be logged: revokes, if their content went through the
/// journal.
const BLOCKS_FOR_ONE: u64 = 32;

/// Files whose decoded roots are kept.
const ROOTS: usize = 8;

/// Roots without a level below, decoded, of files that were asked for lately. One counts as long as
/// its bytes are those of the inode.
#[derive(Debug, Default)]
pub(super) struct Roots([Option<Root>; ROOTS]);

#[derive(Debug)]
struct Root {
    ino: Ino,
    bytes: [u8; BLOCK_AREA],
    list: Vec<Extent>,
}

impl Roots {
    /// The extents in a root of these bytes, if they are known.
    fn leaf(&self, ino: Ino, bytes: &[u8; BLOCK_AREA]) -> Option<&[Extent]> {
        let root = self.0[ino.0 as usize % ROOTS].as_ref()?;
        (root.ino == ino && root.bytes == *bytes).then_some(&root.list)
    }

    fn keep(&mut self, ino: Ino, bytes: [u8; BLOCK_AREA], list: Vec<Extent>) {
        self.0[ino.0 as usize % ROOTS] = Some(Root { ino, bytes, list });
    }
}

/// Levels below a root.
const fn depth_of(root: &[u8; BLOCK_AREA]) -> u16 {
    u16::from_le_bytes([root[6], root[7]])
}

/// The extent of a leaf that a block lies in, or the first block after it that lies in one; `end`
/// is the first block after the leaf.
fn find_in(list: &[Extent], block: u32, end: u64) -> (Option<Extent>, u64) {
    let after = list.partition_point(|extent| extent.block <= block);
    let before = after.checked_sub(1).map(|at| list[at]);
    let end = list.get(after).map_or(end, |next| next.block.into());
    (before.filter(|extent| extent.end() > block.into()), end)
}

/// Gives a new inode an empty tree.
pub(super) fn init_root(inode: &mut Inode) {
    ExtentNode::new_leaf(BLOCK_AREA).encode(&mut inode.block);
}

impl<D: Scheduler> Ext<D> {
    pub(super) fn root(&mut self, ino: Ino) -> Result<ExtentNode, Error> {
        Ok(ExtentNode::parse(&self.inode(ino)?.block, ino, BlockAddr::NONE)?)
    }

    pub(super) fn node(
        &mut self,
        ino: Ino,
        at: BlockAddr,
        depth: u16,
    ) -> Result<ExtentNode, Error> {
        self.refuse_physical(ino, at)?;
        let seed = self.seed_of(ino)?;
        let place = Place::Extents(ino, at);
        let node = ExtentNode::parse(self.meta(at, Kind::Extents(seed), place)?, ino, at)?;
        Corrupt::check_equal(place, "eh_depth", node.depth, depth)?;
        Ok(node)
    }

    /// Bounds of the file's tree.
    pub(super) fn tree_size(&mut self, ino: Ino) -> Result<TreeSize, Error> {
        if !self.is_extent_mapped(ino)? {
            return Ok(TreeSize { depth: 0, leaves: 1 });
        }
        let room = u64::from(extents_in(self.block_size()));
        let root = &self.inode(ino)?.block;
        let (depth, entries) = (depth_of(root), u64::from(u16::from_le_bytes([root[2], root[3]])));
        let leaves = match depth {
            0 => 1,
            _ => entries.saturating_mul(room.saturating_pow(u32::from(depth) - 1)),
        };
        Ok(TreeSize { depth, leaves })
    }

    /// The leaf that block `block` belongs to, and the first block that belongs to another one
    /// after it.
    fn leaf(&mut self, ino: Ino, block: u32) -> Result<(Vec<Extent>, u64), Error> {
        let mut node = self.root(ino)?;
        let mut end = 1 << 32;
        loop {
            match node.entries {
                ExtentEntries::Leaf(list) => return Ok((list, end)),
                ExtentEntries::Index(list) => {
                    let next = position(&list, block);
                    end = list.get(next + 1).map_or(end, |index| index.block.into());
                    node = self.node(ino, list[next].node, node.depth - 1)?;
                }
            }
        }
    }

    pub(super) fn map_extent(&mut self, ino: Ino, block: u32) -> Result<Run, Error> {
        let place = self.load_inode(ino)?;
        let inode = self.inodes.at(place);
        let root = &inode.block;
        if depth_of(root) > 0
            && let Some(run) = self.run_in_memory(inode, block)
        {
            return Ok(run);
        }
        let (extent, end) = match self.roots.leaf(ino, root) {
            Some(list) => find_in(list, block, 1 << 32),
            None => {
                let (list, end) = self.leaf(ino, block)?;
                let found = find_in(&list, block, end);
                self.keep_root(ino, list)?;
                found
            }
        };
        if let Some(extent) = extent {
            self.refuse_physical(ino, extent.start)?;
            if !self.is_place(extent.start) {
                check_extent(&extent, Place::Extents(ino, BlockAddr::NONE), &self.superblock)?;
            }
            return Ok(Run::of(&extent).from(block));
        }
        let blocks = (end - u64::from(block)).min(u32::MAX.into()) as u32;
        Ok(Run { block, blocks, state: State::Hole })
    }

    /// Keeps the leaf that was just decoded, if it is the root.
    fn keep_root(&mut self, ino: Ino, list: Vec<Extent>) -> Result<(), Error> {
        let root = self.inode(ino)?.block;
        if depth_of(&root) == 0 {
            self.roots.keep(ino, root, list);
        }
        Ok(())
    }

    /// The last mapped block before `block`, or else the first one after it.
    pub(super) fn extent_before(
        &mut self,
        ino: Ino,
        block: u32,
    ) -> Result<Option<Neighbour>, Error> {
        let (list, _) = self.leaf(ino, block)?;
        let after = list.partition_point(|extent| extent.block <= block);
        let near = after.checked_sub(1).or(Some(0)).and_then(|i| list.get(i));
        let near = near.filter(|extent| self.superblock.contains(extent.start));
        Ok(near.map(|extent| Neighbour { block: extent.block, at: extent.start.0 }))
    }

    pub(super) fn insert_extent(&mut self, ino: Ino, run: Run) -> Result<(), Error> {
        let (start, written) = match run.state {
            State::Written(at) => (at, true),
            State::Unwritten(at) => (at, false),
            State::Hole => return Ok(()),
        };
        let extent = Extent { block: run.block, len: run.blocks as u16, start, written };
        self.change_leaf(ino, run.block, &mut |list| {
            let at = list.partition_point(|other| other.block < extent.block);
            list.insert(at, extent);
            merge(list);
        })
    }

    /// Blocks with content, all of one extent, lie elsewhere from now on.
    pub(super) fn move_extent(&mut self, ino: Ino, run: Run) -> Result<(), Error> {
        let State::Written(start) = run.state else { return Ok(()) };
        let moved = Extent { block: run.block, len: run.blocks as u16, start, written: true };
        self.change_leaf(ino, run.block, &mut |list| {
            let old = std::mem::take(list);
            for extent in old {
                let (before, inside, after) = split(&extent, run.block.into(), run.end());
                list.extend(before);
                list.extend(inside.map(|_| moved));
                list.extend(after);
            }
            merge(list);
        })
    }

    /// Blocks that were reserved hold content from now on.
    pub(super) fn mark_written(&mut self, ino: Ino, block: u32, blocks: u32) -> Result<(), Error> {
        self.check_nodes()?;
        self.edit_inode(ino)?;
        let (from, end) = (u64::from(block), u64::from(block) + u64::from(blocks));
        if !self.mark_written_in_place(ino, block, end)? {
            self.split_written(ino, block, end)?;
        }
        self.unwritten.remove(ino, from..end);
        Ok(())
    }

    /// The same by a new list of the leaf's extents.
    fn split_written(&mut self, ino: Ino, block: u32, end: u64) -> Result<(), Error> {
        let from = u64::from(block);
        self.change_leaf(ino, block, &mut |list| {
            let first = list.partition_point(|extent| extent.end() <= from);
            let inside = list[first..].partition_point(|extent| u64::from(extent.block) < end);
            let parts: Vec<Extent> = list[first..first + inside]
                .iter()
                .flat_map(|extent| {
                    let (before, inside, after) = split(extent, from, end);
                    let inside = inside.map(|inside| Extent { written: true, ..inside });
                    [before, inside, after].into_iter().flatten()
                })
                .collect();
            list.splice(first..first + inside, parts);
            merge(list);
        })
    }

    /// The same in the bytes of a leaf below the root, if all blocks are of one extent and the leaf
    /// has room; false if nothing was done.
    fn mark_written_in_place(&mut self, ino: Ino, block: u32, end: u64) -> Result<bool, Error> {
        let root = self.inode(ino)?.block;
        let mut next = search_extents(&root, None, block);
        let mut leaf = None;
        while let Some((depth, ExtentEntry::Index(index), _)) = next {
            let Some(node) = self.meta.peek(index.node) else { return Ok(false) };
            let node = &node[..self.superblock.block_size() as usize];
            next = search_extents(node, Some(depth - 1), block);
            leaf = Some(index.node);
        }
        let (Some(at), Some((_, ExtentEntry::Extent(extent), _))) = (leaf, next) else {
            return Ok(false);
        };
        if extent.written || extent.end() < end {
            return Ok(false);
        }
        let kind = Kind::Extents(self.seed_of(ino)?);
        Ok(mark_written_in(self.edit_meta(at, kind, Place::Extents(ino, at))?, block, end))
    }

    /// Removes extents until all are gone or the budget, blocks that may be logged for it, is used
    /// up.
    pub(super) fn remove_extents(
        &mut self,
        ino: Ino,
        from: u32,
        to: u64,
        budget: &mut usize,
    ) -> Result<(), Error> {
        let reach = (self.max_transaction() as u64).saturating_mul(BLOCKS_FOR_ONE);
        let mut at = u64::from(from);
        while at < to && at < 1 << 32 && *budget > 0 {
            let run = self.map_extent(ino, at as u32)?;
            if run.state == State::Hole {
                at = run.end();
                continue;
            }
            let to = to.min(at.saturating_add(reach));
            let mut freed = Vec::new();
            self.change_leaf(ino, at as u32, &mut |list| {
                let old = std::mem::take(list);
                for extent in old {
                    let (before, inside, after) = split(&extent, from.into(), to);
                    list.extend(before);
                    freed.extend(inside);
                    list.extend(after);
                }
            })?;
            for extent in freed {
                if !self.is_place(extent.start) {
                    check_extent(&extent, Place::Extents(ino, BlockAddr::NONE), &self.superblock)?;
                }
                self.free_content(ino, extent.start, extent.len.into())?;
                *budget =
                    budget.saturating_sub(1 + usize::from(extent.len) / BLOCKS_FOR_ONE as usize);
            }
            at = run.end().min(to);
        }
        Ok(())
    }

    /// Edits the leaf that block `block` belongs to.
    fn change_leaf(
        &mut self,
        ino: Ino,
        block: u32,
        change: &mut dyn FnMut(&mut Vec<Extent>),
    ) -> Result<(), Error> {
        let changed = self.change_tree(ino, block, change);
        self.must_have_room(changed)
    }

    fn change_tree(
        &mut self,
        ino: Ino,
        block: u32,
        change: &mut dyn FnMut(&mut Vec<Extent>),
    ) -> Result<(), Error> {
        let mut root = self.root(ino)?;
        let depth = root.depth;
        self.change_node(ino, &mut root, block, change)?;
        let room = usize::from(extents_in(BLOCK_AREA));
        root.max = room as u16;
        if root.len() > room {
            root = self.push_down(ino, root, block)?;
        } else if root.is_empty() {
            root = ExtentNode::new_leaf(BLOCK_AREA);
        } else if depth > 0 {
            self.pull_up(ino, &mut root)?;
        }
        root.encode(&mut self.edit_inode(ino)?.block);
        Ok(())
    }

    /// Edits the node's entries, which may then be more than it has room for.
    fn change_node(
        &mut self,
        ino: Ino,
        node: &mut ExtentNode,
        block: u32,
        change: &mut dyn FnMut(&mut Vec<Extent>),
    ) -> Result<(), Error> {
        let depth = node.depth;
        match &mut node.entries {
            ExtentEntries::Leaf(list) => change(list),
            ExtentEntries::Index(list) => {
                let at = position(list, block);
                let below = list[at].node;
                let mut child = self.node(ino, below, depth - 1)?;
                self.change_node(ino, &mut child, block, change)?;
                let replacement = self.store(ino, below, child, block)?;
                list.splice(at..=at, replacement);
            }
        }
        Ok(())
    }

    /// Puts a changed node back into its block, or several if it has become too large; an empty one
    /// is freed.
    fn store(
        &mut self,
        ino: Ino,
        at: BlockAddr,
        node: ExtentNode,
        block: u32,
    ) -> Result<Vec<ExtentIndex>, Error> {
        if node.is_empty() {
            self.free_meta(ino, at)?;
            return Ok(Vec::new());
        }
        let room = usize::from(extents_in(self.block_size()));
        let mut indices = Vec::new();
        let parts = parts(node, room, block);
        let mut places = vec![at];
        places.extend(self.take_nodes(ino, parts.len() - 1, at.0)?);
        for (part, place) in parts.into_iter().zip(places) {
            indices.push(ExtentIndex { block: first_block(&part), node: place });
            self.write_node(ino, place, part, place != at)?;
        }
        Ok(indices)
    }

    /// Takes blocks for nodes, all before any of them is written.
    fn take_nodes(&mut self, ino: Ino, count: usize, goal: u64) -> Result<Vec<BlockAddr>, Error> {
        (0..count).map(|_| self.take_meta(ino, goal)).collect()
    }

    pub(super) fn write_node(
        &mut self,
        ino: Ino,
        at: BlockAddr,
        node: ExtentNode,
        new: bool,
    ) -> Result<(), Error> {
        let seed = self.seed_of(ino)?;
        let kind = Kind::Extents(seed);
        let bytes = if new {
            self.new_meta(at, kind)
        } else {
            self.edit_meta(at, kind, Place::Extents(ino, at))?
        };
        ExtentNode { max: extents_in(bytes.len()), ..node }.encode(bytes);
        Ok(())
    }

    /// The root has too many entries: they move to blocks below it.
    fn push_down(&mut self, ino: Ino, root: ExtentNode, block: u32) -> Result<ExtentNode, Error> {
        Corrupt::check_range(
            Place::Extents(ino, BlockAddr::NONE),
            "eh_depth",
            root.depth,
            (0, u64::from(MAX_EXTENT_DEPTH) - 1),
        )?;
        let depth = root.depth + 1;
        let (group, _) = self.superblock.inode_group(ino);
        let near = match &root.entries {
            ExtentEntries::Leaf(list) => list.first().map(|extent| extent.start.0),
            ExtentEntries::Index(list) => list.first().map(|index| index.node.0),
        };
        let goal = near.unwrap_or(self.superblock.group_start(group).0);
        let mut indices = Vec::new();
        let room = usize::from(extents_in(self.block_size()));
        let parts = parts(root, room, block);
        let places = self.take_nodes(ino, parts.len(), goal)?;
        for (part, at) in parts.into_iter().zip(places) {
            indices.push(ExtentIndex { block: first_block(&part), node: at });
            self.write_node(ino, at, part, true)?;
        }
        let entries = ExtentEntries::Index(indices);
        Ok(ExtentNode { depth, max: extents_in(BLOCK_AREA), generation: 0, entries })
    }

    /// A single node below the root whose entries fit into the root is not needed.
    fn pull_up(&mut self, ino: Ino, root: &mut ExtentNode) -> Result<(), Error> {
        while let ExtentEntries::Index(list) = &root.entries
            && let [only] = list[..]
        {
            let below = self.node(ino, only.node, root.depth - 1)?;
            if below.len() > usize::from(extents_in(BLOCK_AREA)) {
                break;
            }
            self.free_meta(ino, only.node)?;
            *root = ExtentNode { max: extents_in(BLOCK_AREA), ..below };
        }
        Ok(())
    }
}

/// The index that leads to a block: the last one that does not begin after it, or the first.
fn position(list: &[ExtentIndex], block: u32) -> usize {
    list.partition_point(|index| index.block <= block).saturating_sub(1)
}

/// The parts of an extent before, in and after a range.
fn split(extent: &Extent, from: u64, to: u64) -> (Option<Extent>, Option<Extent>, Option<Extent>) {
    let part = |start: u64, end: u64| {
        let (start, end) = (start.max(extent.block.into()), end.min(extent.end()));
        let offset = start.wrapping_sub(extent.block.into());
        (start < end).then(|| Extent {
            block: start as u32,
            len: (end - start) as u16,
            start: BlockAddr(extent.start.0 + offset),
            written: extent.written,
        })
    };
    (part(0, from), part(from, to), part(to.max(from), u64::MAX))
}

/// Extents that continue each other become one.
fn merge(list: &mut Vec<Extent>) {
    list.dedup_by(|next, before| {
        let joined = before.takes(next);
        if joined {
            before.len += next.len;
        }
        joined
    });
}

/// A node in parts that have room. One that grew at its end, where `block` is, keeps what fits;
/// others become halves.
fn parts(node: ExtentNode, room: usize, block: u32) -> Vec<ExtentNode> {
    if node.len() <= room {
        return vec![node];
    }
    let size = if last_block(&node) <= block { room } else { node.len().div_ceil(2) };
    let with = |entries| ExtentNode {
        depth: node.depth,
        max: node.max,
        generation: node.generation,
        entries,
    };
    match &node.entries {
        ExtentEntries::Leaf(list) => {
            list.chunks(size).map(|part| with(ExtentEntries::Leaf(part.to_vec()))).collect()
        }
        ExtentEntries::Index(list) => {
            list.chunks(size).map(|part| with(ExtentEntries::Index(part.to_vec()))).collect()
        }
    }
}

fn last_block(node: &ExtentNode) -> u32 {
    match &node.entries {
        ExtentEntries::Leaf(list) => list.last().map_or(0, |extent| extent.block),
        ExtentEntries::Index(list) => list.last().map_or(0, |index| index.block),
    }
}

fn first_block(node: &ExtentNode) -> u32 {
    match &node.entries {
        ExtentEntries::Leaf(list) => list.first().map_or(0, |extent| extent.block),
        ExtentEntries::Index(list) => list.first().map_or(0, |index| index.block),
    }
}
