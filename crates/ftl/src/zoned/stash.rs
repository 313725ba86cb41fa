//! The place of an active zone among the drive's own blocks: what a flush finds that its flash
//! cannot take yet.
//!
//! A die programs several pages in one go, and a random write area may change: both must survive a
//! power cut after a flush. Each active zone has a ring of blocks for them, and one in front that
//! says what the ring holds. That one is written last: until it is durable, what it said before
//! counts.

use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, BlockBytes, Content, DeviceError};
use dovetail_time::SimTime;

use super::{Active, ZonedDrive};

/// Bytes before the bits of the blocks in the ring.
pub(super) const HEADER_BYTES: usize = 40;

const MAGIC: u32 = 0x5a53_5448;

/// The first block of a zone's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) zone: u32,
    pub(super) generation: u32,
    /// Blocks that were on the zone's own flash.
    pub(super) programmed: u64,
    /// The write pointer.
    pub(super) written: u64,
    /// By block from `programmed` on: whether the ring holds it.
    pub(super) present: Vec<bool>,
}

impl Header {
    pub(super) fn encode(&self) -> Content {
        let mut bytes: BlockBytes = [0; BLOCK_SIZE as usize];
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.zone.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.generation.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.present.len() as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.programmed.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.written.to_le_bytes());
        for (index, _) in self.present.iter().enumerate().filter(|(_, present)| **present) {
            bytes[HEADER_BYTES + index / 8] |= 1 << (index % 8);
        }
        Content::Bytes(Arc::new(bytes))
    }

    /// The header in a block; `None` in any other.
    pub(super) fn decode(content: &Content) -> Option<Self> {
        let Content::Bytes(bytes) = content else { return None };
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let (first, second) = (word(0), word(8));
        if first as u32 != MAGIC {
            return None;
        }
        let count = ((second >> 32) as usize).min((BLOCK_SIZE as usize - HEADER_BYTES) * 8);
        let is_present = |index: usize| bytes[HEADER_BYTES + index / 8] >> (index % 8) & 1 == 1;
        Some(Self {
            zone: (first >> 32) as u32,
            generation: second as u32,
            programmed: word(16),
            written: word(24),
            present: (0..count).map(is_present).collect(),
        })
    }
}

impl ZonedDrive {
    /// Puts what a zone holds into its place; returns when it is durable.
    pub(super) fn stash(&mut self, at: SimTime, zone: u32) -> Result<SimTime, DeviceError> {
        let written = self.table.written(zone);
        let Some(active) = self.active.get(&zone).filter(|active| active.needs_stash(written))
        else {
            return Ok(at);
        };
        let base = self.slot_start(active.slot);
        // what these blocks held before must be on flash
        let begin = at.max(active.programs_end).max(active.not_before);
        let ring = self.layout.held_blocks();
        let (programmed, held) = (active.programmed, active.held.len() as u64);
        let mut done = begin;
        let mut index = 0;
        while index < held {
            let run = self.unstashed_run(zone, index, ring);
            if !run.is_empty() {
                let start = base + 1 + (programmed + index) % ring;
                done = done.max(self.write_own(begin, start, &run)?);
            }
            index += run.len().max(1) as u64;
        }
        let Some(active) = self.active.get_mut(&zone) else { return Ok(done) };
        active.held.iter_mut().flatten().for_each(|held| held.stashed = true);
        active.stashed_pointer = written;
        let header = Header {
            zone,
            generation: self.records[zone as usize].generation,
            programmed,
            written,
            present: active.held.iter().map(Option::is_some).collect(),
        };
        self.write_own(done, base, &[header.encode()])
    }

    /// The contents of the blocks from `index` on that are not in the place yet, as far as they lie
    /// in a row there.
    fn unstashed_run(&self, zone: u32, index: u64, ring: u64) -> Vec<Content> {
        let Some(active) = self.active.get(&zone) else { return Vec::new() };
        let to_end = ring - (active.programmed + index) % ring;
        let run = active.held.iter().skip(index as usize).take(to_end as usize);
        run.map_while(|held| held.filter(|held| !held.stashed))
            .map(|held| self.nand.content(held.token).unwrap_or_default())
            .collect()
    }

    /// The first block of a place among the drive's own.
    pub(super) fn slot_start(&self, slot: u32) -> u64 {
        self.record_blocks() + u64::from(slot) * self.layout.slot_blocks()
    }
}

impl Active {
    /// Tells whether a power cut would lose something of a zone whose write pointer this is.
    pub(super) fn needs_stash(&self, written: u64) -> bool {
        let is_new = self.held.iter().flatten().any(|held| !held.stashed);
        is_new || written > self.programmed.max(self.stashed_pointer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back() {
        let present = vec![true, false, true, true, true, true, true, true, false, true];
        let header = Header { zone: 7, generation: 9, programmed: 1 << 33, written: 5, present };
        assert_eq!(Header::decode(&header.encode()), Some(header));
        assert_eq!(Header::decode(&Content::Empty), None);
    }
}
