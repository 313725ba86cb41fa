//! Blocks of the main area that were reached, and their kinds.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::format::{BLOCKS_IN_SEGMENT, SegNo};

const SEGMENT: u64 = BLOCKS_IN_SEGMENT as u64;

/// Blocks of one segment that were reached.
#[derive(Clone, Debug)]
pub(super) struct Claimed {
    /// A bit for each block, most significant bit first, as in the SIT.
    pub(super) map: [u8; 64],
    /// Blocks that are nodes.
    pub(super) nodes: u32,
    /// Blocks that are data.
    pub(super) data: u32,
}

impl Claimed {
    fn has(&self, offset: u64) -> bool {
        self.map[offset as usize / 8] & bit(offset) != 0
    }
}

const fn bit(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

/// The blocks that were reached, by segment of the main area (of IPLFS by what would be one):
/// segments without one take no memory.
#[derive(Debug, Default)]
pub(super) struct Claims {
    segments: BTreeMap<u64, Box<Claimed>>,
}

impl Claims {
    /// Marks block `index` of the main area; false if it was marked before.
    pub(super) fn claim(&mut self, index: u64, node: bool) -> bool {
        let empty = || Box::new(Claimed { map: [0; 64], nodes: 0, data: 0 });
        let segment = self.segments.entry(index / SEGMENT).or_insert_with(empty);
        let offset = index % SEGMENT;
        if segment.has(offset) {
            return false;
        }
        segment.map[offset as usize / 8] |= bit(offset);
        *(if node { &mut segment.nodes } else { &mut segment.data }) += 1;
        true
    }

    /// Takes back the mark of a block.
    pub(super) fn release(&mut self, index: u64, node: bool) {
        let Some(segment) = self.segments.get_mut(&(index / SEGMENT)) else { return };
        let offset = index % SEGMENT;
        segment.map[offset as usize / 8] &= !bit(offset);
        *(if node { &mut segment.nodes } else { &mut segment.data }) -= 1;
        if segment.nodes + segment.data == 0 {
            self.segments.remove(&(index / SEGMENT));
        }
    }

    pub(super) fn segment(&self, segno: SegNo) -> Option<&Claimed> {
        self.segments.get(&segno.0.into()).map(|segment| &**segment)
    }

    /// The marked blocks of a range of the main area, in order.
    pub(super) fn within(&self, blocks: Range<u64>) -> impl Iterator<Item = u64> {
        let segments = self.segments.range(blocks.start / SEGMENT..blocks.end.div_ceil(SEGMENT));
        let marked = segments.flat_map(|(segment, claimed)| {
            (0..SEGMENT)
                .filter(|&offset| claimed.has(offset))
                .map(move |offset| segment * SEGMENT + offset)
        });
        marked.filter(move |index| blocks.contains(index))
    }
}
