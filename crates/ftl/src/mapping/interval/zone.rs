//! A zone node: the map nodes of a zone of 16 GiB, and how many of its segments have one.

use super::address::SEGMENTS_PER_ZONE;
use super::arena::{Arena, Block};
use super::node::Node;

/// A slot for each segment, then the count.
const WORDS: usize = SEGMENTS_PER_ZONE + 1;

/// Bytes of a zone node.
pub(super) const ZONE_BYTES: u64 = WORDS as u64 * 4;

/// A zone node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneNode(pub(super) Block);

impl ZoneNode {
    pub(super) fn build(arena: &mut Arena) -> Self {
        Self(arena.alloc(WORDS))
    }

    pub(super) fn free(self, arena: &mut Arena) {
        arena.free(self.0, WORDS);
    }

    #[inline]
    pub(super) fn get(self, words: &[u32], segment: usize) -> Option<Node> {
        Block::from_word(words[self.0.at() + segment]).map(Node)
    }

    /// Enters, replaces or removes the node of a segment; returns how many segments have one.
    pub(super) fn set(self, words: &mut [u32], segment: usize, node: Option<Node>) -> u32 {
        let zone = &mut words[self.0.at()..][..WORDS];
        let before = std::mem::replace(&mut zone[segment], node.map_or(0, |node| node.0.word()));
        zone[SEGMENTS_PER_ZONE] += u32::from(node.is_some());
        zone[SEGMENTS_PER_ZONE] -= u32::from(before != 0);
        zone[SEGMENTS_PER_ZONE]
    }
}
