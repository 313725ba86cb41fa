//! Which blocks of the main area were reached, and as what.

use std::collections::HashMap;

use crate::format::{BLOCKS_IN_SEGMENT, SegNo};

/// What was reached of one segment.
#[derive(Clone, Debug)]
pub(super) struct Claimed {
    /// A bit for each block, most significant bit first, as in the SIT.
    pub(super) map: [u8; 64],
    /// Blocks that are nodes.
    pub(super) nodes: u32,
    /// Blocks that are data.
    pub(super) data: u32,
}

/// The blocks that were reached, by segment: segments without one take no memory.
#[derive(Debug, Default)]
pub(super) struct Claims {
    segments: HashMap<u32, Box<Claimed>>,
}

impl Claims {
    /// Marks block `index` of the main area; false if it was marked before.
    pub(super) fn claim(&mut self, index: u32, node: bool) -> bool {
        let empty = || Box::new(Claimed { map: [0; 64], nodes: 0, data: 0 });
        let segment = self.segments.entry(index / BLOCKS_IN_SEGMENT).or_insert_with(empty);
        let offset = (index % BLOCKS_IN_SEGMENT) as usize;
        let (byte, bit) = (&mut segment.map[offset / 8], 0x80 >> (offset % 8));
        if *byte & bit != 0 {
            return false;
        }
        *byte |= bit;
        *(if node { &mut segment.nodes } else { &mut segment.data }) += 1;
        true
    }

    /// Takes back the mark of a block.
    pub(super) fn release(&mut self, index: u32, node: bool) {
        let Some(segment) = self.segments.get_mut(&(index / BLOCKS_IN_SEGMENT)) else { return };
        let offset = (index % BLOCKS_IN_SEGMENT) as usize;
        segment.map[offset / 8] &= !(0x80 >> (offset % 8));
        *(if node { &mut segment.nodes } else { &mut segment.data }) -= 1;
        if segment.nodes + segment.data == 0 {
            self.segments.remove(&(index / BLOCKS_IN_SEGMENT));
        }
    }

    pub(super) fn segment(&self, segno: SegNo) -> Option<&Claimed> {
        self.segments.get(&segno.0).map(|segment| &**segment)
    }
}
