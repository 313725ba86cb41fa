//! From a block of a file to the block of the volume: pointers in the inode, then direct, indirect and double
//! indirect nodes.

use dovetail_block::BlockDevice;

use super::Volume;
use crate::error::{Error, Place};
use crate::format::{BlockAddr, Inode, Nid, POINTERS_IN_NODE, node_pointer};

const N: u64 = POINTERS_IN_NODE as u64;

/// The way to a block of a file, from the inode down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Which of the inode's five nids leads there; `None` for a pointer in the inode itself.
    root: Option<usize>,
    /// The node offset (its place among the inode's nodes) and the index to follow in each node.
    steps: [(u32, usize); 3],
    /// How many steps there are, 0 to 3.
    depth: usize,
    /// The pointer in the inode, when that holds it.
    index: usize,
}

impl Way {
    /// The way to block `block`; `None` beyond what a file can hold. `pointers` are the inode's own, `direct` those
    /// used in a direct node.
    pub(crate) fn to(block: u64, pointers: u64, direct: u64) -> Option<Self> {
        let mut way = Self { root: None, steps: [(0, 0); 3], depth: 0, index: 0 };
        if block < pointers {
            way.index = block as usize;
            return Some(way);
        }
        let mut rest = block - pointers;
        let sizes = [direct, direct, direct * N, direct * N, direct * N * N];
        let root = sizes.iter().position(|&size| {
            let inside = rest < size;
            rest -= if inside { 0 } else { size };
            inside
        })?;
        way.root = Some(root);
        way.fill(root, rest, direct);
        Some(way)
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

/// A pointer, or how far the hole reaches that was found in its place.
enum Found {
    Pointer(BlockAddr),
    /// A node is missing, and with it the file's blocks up to this one (not included).
    MissingUntil(u64),
}

fn direct_of(inode: &Inode) -> u64 {
    N - N % u64::from(inode.cluster_blocks)
}

impl<D: BlockDevice> Volume<D> {
    /// Where block `block` of the file lies; a hole for what is beyond the largest file, too.
    ///
    /// # Errors
    /// A node on the way that is damaged, an address outside the main area; [`Error::Io`].
    pub fn block_of(&mut self, inode: &Inode, block: u64) -> Result<BlockAddr, Error> {
        Ok(match self.find(inode, block)? {
            Found::Pointer(address) => address,
            Found::MissingUntil(_) => BlockAddr::NULL,
        })
    }

    /// The first block of the file at or after `from` and before `end` that is no hole, and where it lies. Missing
    /// nodes are skipped as a whole, so that the cost follows what is stored and not the size of the file.
    ///
    /// # Errors
    /// As [`Self::block_of`].
    pub fn next_mapped(
        &mut self,
        inode: &Inode,
        from: u64,
        end: u64,
    ) -> Result<Option<(u64, BlockAddr)>, Error> {
        let mut block = from;
        while block < end {
            match self.find(inode, block)? {
                Found::Pointer(address) if address.is_hole() => block += 1,
                Found::Pointer(address) => return Ok(Some((block, address))),
                Found::MissingUntil(next) => block = next,
            }
        }
        Ok(None)
    }

    /// The node that holds the pointer to block `block` of the file, and the pointer's place in it; `None` when that
    /// node does not exist.
    ///
    /// # Errors
    /// As [`Self::block_of`].
    pub(crate) fn pointer_place(&mut self, inode: &Inode, block: u64) -> Result<Option<(Nid, usize)>, Error> {
        let Some(way) = Way::to(block, inode.pointer_count() as u64, direct_of(inode)) else {
            return Ok(None);
        };
        let Some(root) = way.root else { return Ok(Some((inode.ino, way.index))) };
        let mut nid = inode.nids[root];
        for &(offset, index) in &way.steps[..way.depth - 1] {
            if nid == Nid::NONE {
                return Ok(None);
            }
            nid = Nid(node_pointer(&*self.node(nid, inode.ino, offset)?, index));
        }
        Ok(nid.is_some().then_some((nid, way.steps[way.depth - 1].1)))
    }

    fn find(&mut self, inode: &Inode, block: u64) -> Result<Found, Error> {
        let (pointers, direct) = (inode.pointer_count() as u64, direct_of(inode));
        let Some(way) = Way::to(block, pointers, direct) else { return Ok(Found::MissingUntil(u64::MAX)) };
        let Some(root) = way.root else { return self.checked(inode, inode.pointer(way.index)) };
        let mut pointer = inode.nids[root].0;
        for (level, &(offset, index)) in way.steps[..way.depth].iter().enumerate() {
            if pointer == 0 {
                let below = direct * N.pow((way.depth - 1 - level) as u32);
                let inside = steps_inside(block, pointers, direct, below);
                return Ok(Found::MissingUntil(block - inside + below));
            }
            let node = self.node(Nid(pointer), inode.ino, offset)?;
            pointer = node_pointer(&node, index);
        }
        self.checked(inode, BlockAddr(pointer))
    }

    fn checked(&self, inode: &Inode, address: BlockAddr) -> Result<Found, Error> {
        if !address.is_hole() && address != BlockAddr::COMPRESSED {
            self.check_address(Place::Inode(inode.ino), "a data pointer", address)?;
        }
        Ok(Found::Pointer(address))
    }
}

/// How far into its subtree of `below` blocks the block is. The subtrees of one size begin at multiples of that size
/// after the smaller ones before them.
fn steps_inside(block: u64, pointers: u64, direct: u64, below: u64) -> u64 {
    let mut rest = block - pointers;
    for size in [direct, direct, direct * N, direct * N] {
        if rest < size {
            break;
        }
        rest -= size;
    }
    rest % below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_step(block: u64) -> (usize, (u32, usize)) {
        let way = Way::to(block, 873, N).unwrap();
        (way.depth, way.steps[way.depth.saturating_sub(1)])
    }

    #[test]
    fn node_offsets_are_those_of_the_format() {
        assert_eq!(Way::to(872, 873, N).unwrap().index, 872);
        assert_eq!(last_step(873), (1, (1, 0)));
        assert_eq!(last_step(873 + N), (1, (2, 0)));
        assert_eq!(last_step(873 + 2 * N), (2, (4, 0)));
        assert_eq!(last_step(873 + 2 * N + N * N), (2, (5 + N as u32, 0)));
        assert_eq!(last_step(873 + 2 * N + 2 * N * N), (3, (5 + 2 * N as u32 + 2, 0)));
        assert_eq!(last_step(873 + 2 * N + 2 * N * N + N * N), (3, (6 + 2 * N as u32 + N as u32 + 1 + 1, 0)));
        assert_eq!(Way::to(873 + 2 * N + 2 * N * N + N * N * N, 873, N), None);
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
