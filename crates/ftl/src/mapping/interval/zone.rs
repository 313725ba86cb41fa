//! A zone node: the map nodes of a zone of 16 GiB.
//!
//! A slot has two words: the segment's map node, and the node's table if that has an entry for each page of the segment.
//! Where nothing was left out yet the way to an entry is then root, zone node, table.

use super::address::SEGMENTS_PER_ZONE;
use super::arena::{Arena, Block};
use super::node::Node;

const SLOT_WORDS: usize = 2;
const WORDS: usize = SEGMENTS_PER_ZONE * SLOT_WORDS;

/// Bytes of a zone node.
pub(super) const ZONE_BYTES: u64 = WORDS as u64 * 4;

/// A zone node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneNode(pub(super) Block);

/// The place of a segment in its zone node: an index among the words of nodes, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(pub(super) u32);

impl ZoneNode {
    pub(super) fn build(arena: &mut Arena) -> Self {
        Self(arena.alloc(WORDS, 0))
    }

    pub(super) fn free(self, arena: &mut Arena) {
        arena.free(self.0, WORDS);
    }

    #[inline]
    pub(super) fn slot(self, segment: usize) -> Slot {
        Slot((self.0.at() + segment * SLOT_WORDS) as u32)
    }

    /// Whether no segment has a node. Looks at all of them, at most once for each node that is freed: a count would
    /// cost every zone node a unit of its slab.
    pub(super) fn is_empty(self, words: &[u32]) -> bool {
        words[self.0.at()..][..WORDS].iter().all(|&node| node == 0)
    }
}

impl Slot {
    #[inline]
    pub(super) fn node(self, words: &[u32]) -> Option<Node> {
        Block::from_word(words[self.0 as usize]).map(Node)
    }

    /// The table that has an entry for each page of the segment, if there is one.
    #[inline]
    pub(super) fn whole_table(self, words: &[u32]) -> Option<Block> {
        Block::from_word(words[self.0 as usize + 1])
    }

    /// Enters, replaces or removes the node of a segment of that many pages.
    pub(super) fn set(self, words: &mut [u32], node: Option<Node>, segment_pages: u32) {
        let table = node.and_then(|node| node.whole_table(words, segment_pages));
        words[self.0 as usize] = node.map_or(0, |node| node.0.word());
        words[self.0 as usize + 1] = table.map_or(0, Block::word);
    }

    /// Tells the node, and the slot if it knows the table too, where the table has moved.
    pub(super) fn table_moved(self, words: &mut [u32], table: Block) {
        if let Some(node) = self.node(words) {
            node.set_table(words, table);
        }
        if self.whole_table(words).is_some() {
            words[self.0 as usize + 1] = table.word();
        }
    }
}
