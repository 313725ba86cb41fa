//! The valid blocks of the main area, now and as of the last checkpoint, and the free segments.
//!
//! A block that the last checkpoint refers to must not be overwritten before the next one is
//! complete. So each segment keeps two maps: what is valid, and what must not be written yet. A
//! segment that became empty is *prefree*: still in use until [`Segments::commit`].

use std::collections::BTreeSet;

use super::super::super::policy::Age;
use crate::error::Corrupt;
use crate::format::{BLOCKS_IN_SEGMENT, BlockAddr, SegNo, SitEntry, Superblock};

/// A bit for each block of a segment, most significant bit of a byte first, as in the SIT.
type Map = [u8; 64];

/// The state of one segment.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Valid blocks now.
    pub(crate) valid: u16,
    /// Blocks that were valid at the last checkpoint or have been since.
    pub(crate) checkpointed: u16,
    /// The log that it was opened for.
    pub(crate) log: u8,
    /// Not free: it holds valid blocks, did at the last checkpoint, or a log writes there.
    pub(crate) in_use: bool,
    dirty: bool,
    map: Map,
    checkpointed_map: Map,
    /// Mean time of its writes and invalidations, in seconds mounted.
    pub(crate) mtime_s: u64,
}

impl Segment {
    fn new(entry: &SitEntry) -> Self {
        let valid = entry.valid_blocks as u16;
        Self {
            valid,
            checkpointed: valid,
            log: entry.log,
            in_use: valid > 0,
            dirty: false,
            map: entry.valid_map,
            checkpointed_map: entry.valid_map,
            mtime_s: entry.mtime_s,
        }
    }

    pub(crate) fn is_valid(&self, offset: u32) -> bool {
        self.map[offset as usize / 8] & bit(offset) != 0
    }

    /// The first block at or after `from` that was not valid at the last checkpoint nor since; 512
    /// for none.
    pub(crate) fn next_hole(&self, from: u32) -> u32 {
        let used = |byte: usize| self.map[byte] | self.checkpointed_map[byte];
        let mut byte = from as usize / 8;
        if byte >= 64 {
            return BLOCKS_IN_SEGMENT;
        }
        let before = !(0xFF_u8.checked_shr(from % 8).unwrap_or(0));
        let mut taken = used(byte) | before;
        while taken == 0xFF {
            byte += 1;
            if byte == 64 {
                return BLOCKS_IN_SEGMENT;
            }
            taken = used(byte);
        }
        byte as u32 * 8 + taken.leading_ones()
    }

    /// It holds something, and could hold more.
    fn has_hole(&self) -> bool {
        self.valid > 0 && self.next_hole(0) < BLOCKS_IN_SEGMENT
    }

    /// The valid blocks, in order.
    pub(crate) fn valid_offsets(&self) -> Vec<u32> {
        offsets(|at| word(&self.map, at)).collect()
    }

    /// As the SIT stores it.
    pub(crate) fn entry(&self) -> SitEntry {
        SitEntry {
            valid_blocks: self.valid.into(),
            log: self.log,
            valid_map: self.map,
            mtime_s: self.mtime_s,
        }
    }

    fn touch(&mut self, now_s: u64) {
        let count = u64::from(self.valid);
        self.mtime_s = if self.mtime_s == 0 {
            now_s
        } else {
            (self.mtime_s.saturating_mul(count).saturating_add(now_s)) / (count + 1)
        };
    }
}

/// Keys of segments that a search compares with one look.
const KEYS_AT_A_TIME: usize = 64;

/// Of a segment in use its log and, below that, its `checkpointed`; of any other the highest value.
fn hole_key(segment: &Segment) -> u16 {
    if segment.in_use { first_key(segment.log) + segment.checkpointed } else { u16::MAX }
}

/// The lowest key of a segment of this log.
fn first_key(log: u8) -> u16 {
    u16::from(log) << 10
}

const fn bit(offset: u32) -> u8 {
    0x80 >> (offset % 8)
}

/// The blocks of a segment whose bits are set, in order; `word` makes a word of each eight bytes.
fn offsets(word: impl Fn(usize) -> u64) -> impl Iterator<Item = u32> {
    let set = (0..size_of::<Map>() / 8)
        .map(move |at| (at as u32 * 64, word(at)))
        .filter(|(_, bits)| *bits != 0);
    set.flat_map(|(start, mut bits)| {
        std::iter::from_fn(move || {
            let first = bits.leading_zeros();
            bits &= !(1_u64 << 63).checked_shr(first)?;
            Some(start + first)
        })
    })
}

/// Bits 64 `at` to 64 `at` + 63 of a map, the first one highest.
fn word(map: &Map, at: usize) -> u64 {
    map.as_chunks::<8>().0.get(at).map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// All segments of the main area.
#[derive(Debug)]
pub(crate) struct Segments {
    all: Vec<Segment>,
    /// Keys that a search for holes compares first, side by side: see [`hole_key`].
    hole_keys: Vec<u16>,
    main_start: u32,
    per_section: u32,
    /// Segments of a section that can be written.
    usable_per_section: u32,
    section_valid: Vec<u32>,
    section_in_use: Vec<u32>,
    free_segments: u32,
    free_sections: u32,
    dirty: Vec<SegNo>,
    prefree: BTreeSet<SegNo>,
    valid_blocks: u64,
    age: Age,
}

impl Segments {
    /// Builds the table from the SIT's entries, in order, one for each segment of the main area, of which so
    /// many of each section can be written.
    ///
    /// # Errors
    /// An entry that contradicts itself.
    pub(crate) fn load(
        superblock: &Superblock,
        entries: &[SitEntry],
        usable_per_section: u32,
    ) -> Result<Self, Corrupt> {
        let sections = entries.len() / superblock.segments_per_section as usize;
        let mut table = Self {
            all: Vec::with_capacity(entries.len()),
            hole_keys: vec![u16::MAX; entries.len()],
            main_start: superblock.main_start.low(),
            per_section: superblock.segments_per_section,
            usable_per_section,
            section_valid: vec![0; sections],
            section_in_use: vec![0; sections],
            free_segments: sections as u32 * usable_per_section,
            free_sections: sections as u32,
            dirty: Vec::new(),
            prefree: BTreeSet::new(),
            valid_blocks: 0,
            age: Age { oldest_s: u64::MAX, newest_s: 0 },
        };
        for (number, entry) in entries.iter().enumerate() {
            let segno = SegNo(number as u32);
            entry.check(segno)?;
            let mut segment = Segment::new(entry);
            segment.in_use = false;
            table.valid_blocks += u64::from(segment.valid);
            table.section_valid[number / table.per_section as usize] += u32::from(segment.valid);
            table.note_age(segment.mtime_s, segment.valid > 0);
            let used = segment.valid > 0;
            table.all.push(segment);
            if used {
                table.take(segno);
            }
        }
        Ok(table)
    }

    fn note_age(&mut self, mtime_s: u64, used: bool) {
        if used {
            self.age.oldest_s = self.age.oldest_s.min(mtime_s);
            self.age.newest_s = self.age.newest_s.max(mtime_s);
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.all.len() as u32
    }

    pub(crate) fn get(&self, segno: SegNo) -> &Segment {
        &self.all[segno.0 as usize]
    }

    pub(crate) fn age(&self) -> Age {
        self.age
    }

    pub(crate) fn per_section(&self) -> u32 {
        self.per_section
    }

    pub(crate) fn sections(&self) -> u32 {
        self.section_valid.len() as u32
    }

    pub(crate) fn section_of(&self, segno: SegNo) -> u32 {
        segno.0 / self.per_section
    }

    pub(crate) fn segments_of(&self, section: u32) -> impl Iterator<Item = SegNo> + use<> {
        (section * self.per_section..(section + 1) * self.per_section).map(SegNo)
    }

    /// Valid blocks of a section.
    pub(crate) fn section_valid(&self, section: u32) -> u32 {
        self.section_valid[section as usize]
    }

    /// No segment of the section is in use.
    pub(crate) fn is_section_free(&self, section: u32) -> bool {
        self.section_in_use[section as usize] == 0
    }

    /// Neither the volume nor its last checkpoint has a block in the section.
    pub(crate) fn is_section_empty(&self, section: u32) -> bool {
        self.segments_of(section).all(|segno| self.get(segno).checkpointed == 0)
    }

    /// Sections that may be written now.
    pub(crate) fn free_sections(&self) -> u32 {
        self.free_sections
    }

    /// Segments that will be free once a checkpoint is complete: the free ones and the prefree
    /// ones.
    pub(crate) fn free_after_checkpoint(&self) -> u32 {
        self.free_segments + self.prefree.len() as u32
    }

    pub(crate) fn prefree_count(&self) -> u32 {
        self.prefree.len() as u32
    }

    pub(crate) fn prefree(&self) -> impl Iterator<Item = SegNo> + '_ {
        self.prefree.iter().copied()
    }

    /// Valid blocks of the main area.
    pub(crate) fn valid_blocks(&self) -> u64 {
        self.valid_blocks
    }

    /// The segment of a block of the main area, and its offset there.
    pub(crate) fn position(&self, address: BlockAddr) -> (SegNo, u32) {
        let block = address.low() - self.main_start;
        (SegNo(block / BLOCKS_IN_SEGMENT), block % BLOCKS_IN_SEGMENT)
    }

    pub(crate) fn address(&self, segno: SegNo, offset: u32) -> BlockAddr {
        BlockAddr((self.main_start + segno.0 * BLOCKS_IN_SEGMENT + offset).into())
    }

    /// The section of a block of the main area, and its offset there.
    pub(crate) fn position_in_section(&self, address: BlockAddr) -> (u32, u32) {
        let (block, size) = (address.low() - self.main_start, self.per_section * BLOCKS_IN_SEGMENT);
        (block / size, block % size)
    }

    pub(crate) fn address_in_section(&self, section: u32, block: u32) -> BlockAddr {
        BlockAddr((self.main_start + section * self.per_section * BLOCKS_IN_SEGMENT + block).into())
    }

    pub(crate) fn is_valid(&self, address: BlockAddr) -> bool {
        let (segno, offset) = self.position(address);
        self.get(segno).is_valid(offset)
    }

    /// Puts a free segment in use.
    pub(crate) fn take(&mut self, segno: SegNo) {
        let segment = &mut self.all[segno.0 as usize];
        if segment.in_use {
            return;
        }
        segment.in_use = true;
        self.hole_keys[segno.0 as usize] = hole_key(segment);
        self.free_segments -= u32::from(segno.0 % self.per_section < self.usable_per_section);
        let section = &mut self.section_in_use[(segno.0 / self.per_section) as usize];
        self.free_sections -= u32::from(*section == 0);
        *section += 1;
    }

    /// A segment that holds nothing is free again.
    pub(crate) fn release(&mut self, segno: SegNo) {
        let segment = &mut self.all[segno.0 as usize];
        if !segment.in_use {
            return;
        }
        segment.in_use = false;
        self.hole_keys[segno.0 as usize] = hole_key(segment);
        self.free_segments += u32::from(segno.0 % self.per_section < self.usable_per_section);
        let section = &mut self.section_in_use[(segno.0 / self.per_section) as usize];
        *section -= 1;
        self.free_sections += u32::from(*section == 0);
    }

    /// A log begins to write in the segment.
    pub(crate) fn open(&mut self, segno: SegNo, log: u8) {
        self.take(segno);
        self.prefree.remove(&segno);
        let segment = &mut self.all[segno.0 as usize];
        if segment.log != log {
            segment.log = log;
            self.hole_keys[segno.0 as usize] = hole_key(segment);
            self.mark_dirty(segno);
        }
    }

    /// A log no longer writes in the segment.
    pub(crate) fn close(&mut self, segno: SegNo) {
        debug_assert!(self.get(segno).in_use, "a log wrote there");
        if self.get(segno).valid == 0 {
            self.prefree.insert(segno);
        }
    }

    fn mark_dirty(&mut self, segno: SegNo) {
        let segment = &mut self.all[segno.0 as usize];
        if !segment.dirty {
            segment.dirty = true;
            self.dirty.push(segno);
        }
    }

    /// The block holds something from now on. `false` if it did already.
    pub(crate) fn set_valid(&mut self, address: BlockAddr, now_s: u64) -> bool {
        let (segno, offset) = self.position(address);
        let segment = &mut self.all[segno.0 as usize];
        let byte = &mut segment.map[offset as usize / 8];
        if *byte & bit(offset) != 0 {
            return false;
        }
        *byte |= bit(offset);
        // given up before the next checkpoint, it must still not be written again: the record of an
        // fsync may lead there
        let guard = &mut segment.checkpointed_map[offset as usize / 8];
        segment.checkpointed += u16::from(*guard & bit(offset) == 0);
        *guard |= bit(offset);
        self.hole_keys[segno.0 as usize] = hole_key(segment);
        segment.touch(now_s);
        segment.valid += 1;
        let (first, mtime) = (segment.valid == 1, segment.mtime_s);
        self.valid_blocks += 1;
        self.section_valid[(segno.0 / self.per_section) as usize] += 1;
        self.note_age(mtime, true);
        if first {
            self.prefree.remove(&segno);
        }
        self.mark_dirty(segno);
        true
    }

    /// The block holds nothing any more; `current` if a log writes in its segment. `false` if it
    /// held nothing.
    pub(crate) fn set_invalid(&mut self, address: BlockAddr, now_s: u64, current: bool) -> bool {
        let (segno, offset) = self.position(address);
        let segment = &mut self.all[segno.0 as usize];
        let byte = &mut segment.map[offset as usize / 8];
        if *byte & bit(offset) == 0 {
            return false;
        }
        *byte &= !bit(offset);
        segment.valid -= 1;
        segment.touch(now_s);
        let (empty, mtime) = (segment.valid == 0, segment.mtime_s);
        self.valid_blocks -= 1;
        self.section_valid[(segno.0 / self.per_section) as usize] -= 1;
        self.note_age(mtime, true);
        if empty && !current {
            self.prefree.insert(segno);
        }
        self.mark_dirty(segno);
        true
    }

    /// The first segment of log `log` with the fewest blocks that were valid at the last checkpoint
    /// or since, among those that have a hole and that `may_fill` takes.
    pub(crate) fn emptiest_with_holes(
        &self,
        log: u8,
        may_fill: impl Fn(SegNo) -> bool,
    ) -> Option<SegNo> {
        let (first, mut fewest, mut best) = (first_key(log), BLOCKS_IN_SEGMENT as u16, None);
        let count_of = |key: &u16| key.wrapping_sub(first);
        for (number, keys) in self.hole_keys.chunks(KEYS_AT_A_TIME).enumerate() {
            if keys.iter().map(count_of).min().is_none_or(|least| least >= fewest) {
                continue;
            }
            for (at, count) in keys.iter().map(count_of).enumerate() {
                let segno = SegNo((number * KEYS_AT_A_TIME + at) as u32);
                if count < fewest && may_fill(segno) && self.get(segno).has_hole() {
                    (fewest, best) = (count, Some(segno));
                }
            }
        }
        best
    }

    /// Entries changed since the last checkpoint.
    pub(crate) fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The segments whose entries changed since the last checkpoint, in order.
    pub(crate) fn dirty(&mut self) -> Vec<SegNo> {
        self.dirty.sort_unstable();
        self.dirty.clone()
    }

    /// Blocks that the last checkpoint refers to and the next one does not, as runs.
    pub(crate) fn freed_since_checkpoint(&mut self) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for segno in self.dirty() {
            let segment = self.get(segno);
            for offset in
                offsets(|at| word(&segment.checkpointed_map, at) & !word(&segment.map, at))
            {
                let address = self.address(segno, offset).low();
                match runs.last_mut() {
                    Some((start, len)) if *start + *len == address => *len += 1,
                    _ => runs.push((address, 1)),
                }
            }
        }
        runs
    }

    /// A checkpoint with the present state is complete: prefree segments are free, and what was
    /// freed may be overwritten.
    pub(crate) fn commit(&mut self) {
        for segno in std::mem::take(&mut self.dirty) {
            let segment = &mut self.all[segno.0 as usize];
            segment.dirty = false;
            segment.checkpointed = segment.valid;
            segment.checkpointed_map = segment.map;
            self.hole_keys[segno.0 as usize] = hole_key(segment);
        }
        for segno in std::mem::take(&mut self.prefree) {
            self.release(segno);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(valid: &[u32], checkpointed: &[u32]) -> Segment {
        let entry = SitEntry { valid_blocks: 0, log: 0, valid_map: [0; 64], mtime_s: 0 };
        let mut segment = Segment::new(&entry);
        valid.iter().for_each(|&at| segment.map[at as usize / 8] |= bit(at));
        checkpointed.iter().for_each(|&at| segment.checkpointed_map[at as usize / 8] |= bit(at));
        segment
    }

    #[test]
    fn holes_avoid_what_is_valid_and_what_the_checkpoint_refers_to() {
        let used = segment(&[0, 1, 9], &[2, 8, 511]);
        assert_eq!(used.next_hole(0), 3);
        assert_eq!(used.next_hole(8), 10);
        assert_eq!(used.next_hole(511), 512);
        assert_eq!(used.next_hole(512), 512);
        let full = segment(&(0..512).collect::<Vec<_>>(), &[]);
        assert_eq!(full.next_hole(0), 512);
        assert_eq!(full.valid_offsets().len(), 512);
    }

    #[test]
    fn what_was_given_up_since_the_checkpoint_is_no_hole() {
        let mut table = Segments {
            all: vec![segment(&[], &[])],
            hole_keys: vec![u16::MAX],
            main_start: 0,
            per_section: 1,
            usable_per_section: 1,
            section_valid: vec![0],
            section_in_use: vec![0],
            free_segments: 1,
            free_sections: 1,
            dirty: Vec::new(),
            prefree: BTreeSet::new(),
            valid_blocks: 0,
            age: Age::default(),
        };
        table.open(SegNo(0), 0);
        assert!(table.set_valid(BlockAddr(0), 0) && table.set_valid(BlockAddr(1), 0));
        assert!(table.set_invalid(BlockAddr(0), 0, true));
        assert_eq!(table.get(SegNo(0)).next_hole(0), 2, "an fsync may have written it");
        table.commit();
        assert_eq!(table.get(SegNo(0)).next_hole(0), 0);
    }
}
