//! A zone node: the map nodes of a zone of 16 GiB, one after the other, a segment without a node
//! left zero.

use super::address::SEGMENTS_PER_ZONE;
use super::arena::{Arena, Block};
use super::map::LINE_ENTRIES;
use super::node::{NODE_WORDS, Node};

/// Words of a zone node.
pub(super) const ZONE_WORDS: usize = SEGMENTS_PER_ZONE * NODE_WORDS;

/// Bytes of a zone node, the map nodes in it included.
pub(super) const ZONE_BYTES: u64 = ZONE_WORDS as u64 * 4;

/// A zone node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneNode(pub(super) Block);

impl ZoneNode {
    pub(super) fn build(arena: &mut Arena) -> Self {
        Self(arena.alloc(ZONE_WORDS, 0))
    }

    pub(super) fn free(self, arena: &mut Arena) {
        arena.free(self.0, ZONE_WORDS);
    }

    /// The place of a segment's node.
    #[inline]
    pub(super) fn node(self, segment: usize) -> Node {
        Node((self.0.at() + segment * NODE_WORDS) as u32)
    }

    /// Tells whether no segment has a node, and how many cache lines it took to know. At most once
    /// for each node that is freed: a count would cost every zone node a unit of its slab.
    pub(super) fn is_empty(self, words: &[u32]) -> (bool, u32) {
        let first = (0..SEGMENTS_PER_ZONE).find(|&segment| self.node(segment).exists(words));
        let looked = first.unwrap_or(SEGMENTS_PER_ZONE - 1) * NODE_WORDS;
        (first.is_none(), looked as u32 / LINE_ENTRIES + 1)
    }
}
