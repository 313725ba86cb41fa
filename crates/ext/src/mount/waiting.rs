//! Blocks of pages in memory whose write-back changes the tree of their file: the room that this
//! may take is counted when the pages are taken in.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::format::Ino;

/// Bounds of a tree of extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeSize {
    /// Levels below the root.
    pub(super) depth: u16,
    /// Leaves, at most; the root is one if it has no level below.
    pub(super) leaves: u64,
}

/// Blocks of one file.
#[derive(Debug)]
struct Blocks {
    set: BTreeSet<u32>,
    /// Runs of neighbours among them.
    runs: u64,
    /// The file's tree when the last block came.
    tree: TreeSize,
}

impl Blocks {
    fn new(tree: TreeSize) -> Self {
        Self { set: BTreeSet::new(), runs: 0, tree }
    }

    /// Nodes that the file's tree may need when all of them are written.
    fn nodes(&self) -> u64 {
        3 + nodes_for(self.set.len() as u64, self.runs, self.tree)
    }

    fn has_neighbours(&self, block: u32) -> u64 {
        let has = |other: Option<u32>| other.is_some_and(|other| self.set.contains(&other));
        u64::from(has(block.checked_sub(1))) + u64::from(has(block.checked_add(1)))
    }

    fn insert(&mut self, block: u32) -> bool {
        let is_new = self.set.insert(block);
        if is_new {
            self.runs = self.runs + 1 - self.has_neighbours(block);
        }
        is_new
    }

    fn remove(&mut self, block: u32) {
        if self.set.remove(&block) {
            self.runs = self.runs + self.has_neighbours(block) - 1;
        }
    }
}

/// Nodes for `blocks` blocks in `runs` runs. A leaf that is full is split by the first run in it,
/// and once more if that was at its end, with the nodes above it. It has room for half of its
/// entries then, which are 84 in a block of 1 KiB.
fn nodes_for(blocks: u64, runs: u64, tree: TreeSize) -> u64 {
    let splits = runs.min(tree.leaves.saturating_mul(2));
    splits * u64::from(tree.depth.max(1)) + (blocks + runs) / 32
}

/// Blocks that wait to be written, by file, all for the same reason.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    map: BTreeMap<Ino, Blocks>,
    total: u64,
    nodes: u64,
}

fn clamp(range: Range<u64>) -> Range<u32> {
    let clamp = |block: u64| block.min(u32::MAX.into()) as u32;
    clamp(range.start)..clamp(range.end)
}

impl Waiting {
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Nodes that the trees of all files may need.
    pub(super) fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Nodes that may be needed for `blocks` more blocks of a file in `runs` runs.
    pub(super) fn more_nodes(&self, ino: Ino, (blocks, runs): (u64, u64), tree: TreeSize) -> u64 {
        let (had, has) = match self.map.get(&ino) {
            Some(all) => (all.nodes(), (all.set.len() as u64 + blocks, all.runs + runs)),
            None => (0, (blocks, runs)),
        };
        (3 + nodes_for(has.0, has.1, tree)).saturating_sub(had)
    }

    pub(super) fn contains(&self, ino: Ino, block: u32) -> bool {
        self.map.get(&ino).is_some_and(|blocks| blocks.set.contains(&block))
    }

    /// Takes in blocks of a file with this tree.
    pub(super) fn insert(
        &mut self,
        ino: Ino,
        tree: TreeSize,
        blocks: impl IntoIterator<Item = u32>,
    ) {
        let mut blocks = blocks.into_iter().peekable();
        if blocks.peek().is_none() {
            return;
        }
        let had = self.map.get(&ino).map_or(0, Blocks::nodes);
        let of_file = self.map.entry(ino).or_insert_with(|| Blocks::new(tree));
        of_file.tree = tree;
        for block in blocks {
            self.total += u64::from(of_file.insert(block));
        }
        self.nodes = self.nodes - had + of_file.nodes();
    }

    /// Number of them in a range of blocks.
    pub(super) fn count_in(&self, ino: Ino, range: Range<u64>) -> u64 {
        self.map.get(&ino).map_or(0, |all| all.set.range(clamp(range)).count() as u64)
    }

    pub(super) fn count(&self, ino: Ino) -> u64 {
        self.map.get(&ino).map_or(0, |blocks| blocks.set.len() as u64)
    }

    /// Runs of neighbours among the blocks of a file.
    pub(super) fn runs(&self, ino: Ino) -> u64 {
        self.map.get(&ino).map_or(0, |blocks| blocks.runs)
    }

    /// The first run of them from `from` on.
    pub(super) fn first_run(&self, ino: Ino, from: u32) -> Option<(u32, u32)> {
        let mut blocks = self.map.get(&ino)?.set.range(from..);
        let first = *blocks.next()?;
        let more =
            blocks.zip(first + 1..).take_while(|(block, expected)| *block == expected).count();
        Some((first, 1 + more as u32))
    }

    pub(super) fn remove(&mut self, ino: Ino, range: Range<u64>) {
        let Some(blocks) = self.map.get_mut(&ino) else { return };
        let gone: Vec<u32> = blocks.set.range(clamp(range)).copied().collect();
        if gone.is_empty() {
            return;
        }
        self.total -= gone.len() as u64;
        self.nodes -= blocks.nodes();
        gone.into_iter().for_each(|block| blocks.remove(block));
        if blocks.set.is_empty() {
            self.map.remove(&ino);
        } else {
            self.nodes += blocks.nodes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: TreeSize = TreeSize { depth: 2, leaves: 1000 };

    #[test]
    fn runs_are_counted_as_blocks_come_and_go() {
        let mut waiting = Waiting::default();
        let runs = |waiting: &Waiting| waiting.runs(Ino(5));
        waiting.insert(Ino(5), TREE, [0, 2, 4, 9]);
        assert_eq!((runs(&waiting), waiting.nodes()), (4, 3 + 8));
        waiting.insert(Ino(5), TREE, [1, 3, 2]);
        assert_eq!((runs(&waiting), waiting.total()), (2, 6));
        waiting.remove(Ino(5), 1..4);
        assert_eq!((runs(&waiting), waiting.total()), (3, 3));
        waiting.remove(Ino(5), 0..5);
        assert_eq!((runs(&waiting), waiting.total()), (1, 1));
        waiting.insert(Ino(6), TREE, [7]);
        assert_eq!(waiting.more_nodes(Ino(6), (1, 1), TREE), 2);
        assert_eq!(waiting.more_nodes(Ino(7), (1, 1), TREE), 5);
        waiting.remove(Ino(6), 0..9);
        assert_eq!((waiting.total(), waiting.nodes()), (1, 5));
    }
}
