//! Path through a file's tree of nodes to the pointer of a block.

use super::{NIDS_IN_NODE, XATTR_NODE_OFFSET};

const N: u64 = NIDS_IN_NODE as u64;

/// The path to a block of a file, from the inode down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodePath {
    /// Index of the inode's nid, of five, that leads there; `None` for a pointer in the inode
    /// itself.
    pub(crate) root: Option<usize>,
    /// The node offset (its place among the inode's nodes) and the index to follow in each node.
    pub(crate) steps: [(u32, usize); 3],
    /// Number of steps, 0 to 3.
    pub(crate) depth: usize,
    /// The pointer in the inode, when that holds it.
    pub(crate) index: usize,
}

impl NodePath {
    /// The path to block `block`; `None` beyond what a file can hold. `pointers` are the inode's
    /// own, `direct` those used in a direct node.
    pub(crate) fn to(block: u64, pointers: u64, direct: u64) -> Option<Self> {
        let mut path = Self { root: None, steps: [(0, 0); 3], depth: 0, index: 0 };
        if block < pointers {
            path.index = block as usize;
            return Some(path);
        }
        let mut rest = block - pointers;
        let sizes = [direct, direct, direct * N, direct * N, direct * N * N];
        let root = sizes.iter().position(|&size| {
            let inside = rest < size;
            rest -= if inside { 0 } else { size };
            inside
        })?;
        path.root = Some(root);
        path.fill(root, rest, direct);
        Some(path)
    }

    fn fill(&mut self, root: usize, rest: u64, direct: u64) {
        let (node, index) = (rest / direct, (rest % direct) as usize);
        let base = [1, 2, 3, 4 + N, 5 + 2 * N][root];
        let step = |offset: u64, index: u64| (offset as u32, index as usize);
        let last = |offset: u64| (offset as u32, index);
        self.depth = [1, 1, 2, 2, 3][root];
        self.steps = match self.depth {
            1 => [last(base), (0, 0), (0, 0)],
            2 => [step(base, node), last(base + 1 + node), (0, 0)],
            _ => {
                let (outer, inner) = (node / N, node % N);
                let indirect = base + 1 + outer * (N + 1);
                [step(base, outer), step(indirect, inner), last(indirect + 1 + inner)]
            }
        };
    }
}

/// Index of the block in its subtree of `below` blocks. The subtrees of one size begin at multiples
/// of that size after the smaller ones before them.
pub(crate) fn steps_inside(block: u64, pointers: u64, direct: u64, below: u64) -> u64 {
    let mut rest = block - pointers;
    for size in [direct, direct, direct * N, direct * N] {
        if rest < size {
            break;
        }
        rest -= size;
    }
    rest % below
}

/// The node at this offset points to nodes, not to data.
pub const fn is_indirect(offset: u32) -> bool {
    let n = N as u32;
    if offset == XATTR_NODE_OFFSET || offset < 3 {
        return false;
    }
    let double = 5 + 2 * n;
    offset == 3
        || offset == 4 + n
        || offset == double
        || (offset > double && (offset - double - 1).is_multiple_of(n + 1))
}

/// The first block of the file that a direct node at this offset points to. `pointers` are the
/// inode's own, `direct` those used in a direct node.
pub(crate) fn first_block(offset: u32, pointers: u64, direct: u64) -> u64 {
    let offset = u64::from(offset);
    match offset {
        0 => 0,
        1 | 2 => pointers + (offset - 1) * direct,
        _ if offset <= 2 * N + 4 => pointers + (offset - 2 - (offset - 4) / (N + 1)) * direct,
        _ => pointers + (offset - 5 - (offset - 2 * N - 7) / (N + 1)) * direct,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_step(block: u64) -> (usize, (u32, usize)) {
        let path = NodePath::to(block, 873, N).unwrap();
        (path.depth, path.steps[path.depth.saturating_sub(1)])
    }

    #[test]
    fn node_offsets_are_those_of_the_format() {
        assert_eq!(NodePath::to(872, 873, N).unwrap().index, 872);
        assert_eq!(last_step(873), (1, (1, 0)));
        assert_eq!(last_step(873 + N), (1, (2, 0)));
        assert_eq!(last_step(873 + 2 * N), (2, (4, 0)));
        assert_eq!(last_step(873 + 2 * N + N * N), (2, (5 + N as u32, 0)));
        assert_eq!(last_step(873 + 2 * N + 2 * N * N), (3, (5 + 2 * N as u32 + 2, 0)));
        assert_eq!(
            last_step(873 + 2 * N + 2 * N * N + N * N),
            (3, (6 + 2 * N as u32 + N as u32 + 1 + 1, 0))
        );
        assert_eq!(NodePath::to(873 + 2 * N + 2 * N * N + N * N * N, 873, N), None);
    }

    #[test]
    fn the_first_block_of_a_node_is_where_its_way_begins() {
        for node in
            [0, 1, 2, 3, N, N + 1, N + 2, 2 * N + 1, 2 * N + 2, 2 * N + 3, 3 * N + 2, 3 * N + 3]
        {
            let block = if node == 0 { 0 } else { 873 + (node - 1) * N };
            let path = NodePath::to(block, 873, N).unwrap();
            let offset = if path.depth == 0 { 0 } else { path.steps[path.depth - 1].0 };
            assert_eq!(first_block(offset, 873, N), block, "node {node} at offset {offset}");
            assert!(!is_indirect(offset), "{offset}");
            for step in path.steps[..path.depth.saturating_sub(1)].iter() {
                assert!(is_indirect(step.0), "{step:?}");
            }
        }
    }

    #[test]
    fn a_missing_subtree_ends_where_the_next_begins() {
        let double = 873 + 2 * N + 2 * N * N;
        assert_eq!(steps_inside(873 + N + 5, 873, N, N), 5);
        assert_eq!(steps_inside(873 + 2 * N + 7, 873, N, N * N), 7);
        assert_eq!(steps_inside(double + N * N + 9, 873, N, N * N), 9);
        assert_eq!(steps_inside(double + N * N + 9, 873, N, N * N * N), N * N + 9);
    }
}
