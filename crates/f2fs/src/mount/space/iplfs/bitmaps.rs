//! Discard bitmaps: which blocks of a section hold nothing that is needed, in a hash table by
//! section (IPLFS paper, section 4.3). Sections without one take no memory.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::format::{
    BLOCKS_IN_SEGMENT, BlockAddr, DISCARD_ENTRY, Extent, IPLFS_SECTION, bitmap_len, extents_of,
    log_bitmap, log_extent,
};

/// Blocks in a section: 1 GiB.
pub(super) const SECTION: u64 = IPLFS_SECTION as u64 * BLOCKS_IN_SEGMENT as u64;
const WORDS: usize = (SECTION / 64) as usize;
/// Words that take memory together.
const CHUNK: usize = 64;
/// Extents that are looked for at a time at least: rounds of sixteen take them for three seconds.
const RANKED: usize = 1024;

/// One section's bitmap, least significant bit first.
#[derive(Debug)]
struct Bitmap {
    /// [`WORDS`], those that were ever touched: a single block takes a kibibyte, where all would
    /// take 32.
    chunks: Box<[Option<Box<[u64; CHUNK]>>]>,
    set: u32,
    /// No bit is set in the words before this one.
    first: usize,
}

impl Bitmap {
    fn new() -> Self {
        Self { chunks: vec![None; WORDS / CHUNK].into_boxed_slice(), set: 0, first: WORDS }
    }

    fn word(&self, at: usize) -> u64 {
        self.chunks[at / CHUNK].as_ref().map_or(0, |chunk| chunk[at % CHUNK])
    }

    fn word_mut(&mut self, at: usize) -> &mut u64 {
        &mut self.chunks[at / CHUNK].get_or_insert_with(|| Box::new([0; CHUNK]))[at % CHUNK]
    }

    /// From word `from` on.
    fn words(&self, from: usize) -> impl DoubleEndedIterator<Item = (usize, u64)> + '_ {
        (from..WORDS).map(|at| (at, self.word(at)))
    }

    /// `false` if the bit was set before.
    fn set(&mut self, bit: usize) -> bool {
        let word = self.word_mut(bit / 64);
        let mask = 1 << (bit % 64);
        let is_new = *word & mask == 0;
        *word |= mask;
        self.set += u32::from(is_new);
        self.first = self.first.min(bit / 64);
        is_new
    }

    /// Takes in another one; how many bits are new.
    fn merge(&mut self, other: &Self) -> u32 {
        let before = self.set;
        let others = other.words(other.first).filter(|&(_, word)| word != 0);
        others.for_each(|(at, word)| *self.word_mut(at) |= word);
        self.set = self.words(0).map(|(_, word)| word.count_ones()).sum();
        self.first = self.first.min(other.first);
        self.set - before
    }

    fn has(&self, bit: usize) -> bool {
        self.word(bit / 64) >> (bit % 64) & 1 != 0
    }

    /// From the first word that is not 0 to the last, and where they begin.
    fn used_words(&self) -> Range<usize> {
        let used = || self.words(self.first).filter(|&(_, word)| word != 0).map(|(at, _)| at);
        used().next().map_or(0..0, |first| first..used().next_back().unwrap_or(first) + 1)
    }

    /// Runs of set bits.
    fn runs(&self) -> usize {
        let mut before = 0;
        let starts = self.words(self.first).map(|(_, word)| {
            let starts = word & !(word << 1 | before);
            before = word >> 63;
            starts.count_ones() as usize
        });
        starts.sum()
    }

    /// Bytes in a log at most.
    fn most_bytes(&self) -> u64 {
        (DISCARD_ENTRY * self.set as usize).min(bitmap_len(WORDS)) as u64
    }

    /// Bytes in a log, in the shorter of the two forms.
    fn log_len(&self) -> usize {
        (DISCARD_ENTRY * self.runs()).min(bitmap_len(self.used_words().len()))
    }

    fn write(&self, start: BlockAddr, log: &mut Vec<u8>) {
        let used = self.used_words();
        if DISCARD_ENTRY * self.runs() <= bitmap_len(used.len()) {
            self.extents(start).into_iter().for_each(|extent| log_extent(log, extent));
        } else {
            let words: Vec<u64> = used.clone().map(|at| self.word(at)).collect();
            log_bitmap(log, start.plus(64 * used.start as u64), &words);
        }
    }

    /// The runs of set bits, of a section that begins at `start`.
    fn extents(&self, start: BlockAddr) -> Vec<Extent> {
        let used = self.used_words();
        let words: Vec<u64> = used.clone().map(|at| self.word(at)).collect();
        extents_of(start.plus(64 * used.start as u64), &words)
    }

    /// Clears a run of set bits.
    fn clear(&mut self, bit: usize, blocks: u64) {
        let (mut at, end) = (bit, bit + blocks as usize);
        while at < end {
            let (within, left) = (at % 64, end - at);
            let run = left.min(64 - within);
            *self.word_mut(at / 64) &= !(u64::MAX >> (64 - run) << within);
            at += run;
        }
        self.set -= blocks as u32;
        if self.first == bit / 64 && self.word(self.first) == 0 {
            self.first = (self.first..WORDS).find(|&at| self.word(at) != 0).unwrap_or(WORDS);
        }
    }
}

/// Blocks that are not needed: bitmaps, and extents that are too long for them.
#[derive(Debug, Default)]
pub(super) struct DiscardBitmaps {
    sections: FxHashMap<u64, Bitmap>,
    /// Those of `sections`, in the order in which they came.
    order: VecDeque<u64>,
    extents: VecDeque<Extent>,
    blocks: u64,
    /// The size of a log of it at most, in bytes, but for the extents.
    most_bytes: u64,
    /// Some of the longest extents, the longest last; empty when blocks have come since.
    longest: Vec<Extent>,
}

impl DiscardBitmaps {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// The number of blocks.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The size of a log of it at most, in bytes.
    pub(super) fn most_bytes(&self) -> u64 {
        self.most_bytes + (DISCARD_ENTRY * self.extents.len()) as u64
    }

    /// Adds a block; `false` if it is there already.
    pub(super) fn insert(&mut self, address: BlockAddr) -> bool {
        let section = address.0 / SECTION;
        let bitmap = self.sections.entry(section).or_insert_with(|| {
            self.order.push_back(section);
            Bitmap::new()
        });
        self.longest.clear();
        let is_new = bitmap.set((address.0 % SECTION) as usize);
        if is_new {
            self.blocks = self.blocks.saturating_add(1);
            let shorter = DISCARD_ENTRY * bitmap.set as usize <= bitmap_len(WORDS);
            self.most_bytes += if shorter { DISCARD_ENTRY as u64 } else { 0 };
        }
        is_new
    }

    /// The block is in a bitmap; extents are not looked at.
    pub(super) fn has(&self, address: BlockAddr) -> bool {
        let bitmap = self.sections.get(&(address.0 / SECTION));
        bitmap.is_some_and(|bitmap| bitmap.has((address.0 % SECTION) as usize))
    }

    /// Adds an extent of any length, none of which is there.
    pub(super) fn push(&mut self, extent: Extent) {
        if extent.blocks > 0 {
            self.blocks = self.blocks.saturating_add(extent.blocks);
            self.extents.push_back(extent);
            self.longest.clear();
        }
    }

    /// Takes in all of another one.
    pub(super) fn absorb(&mut self, mut other: Self) {
        for section in other.order {
            let Some(from) = other.sections.remove(&section) else { continue };
            self.absorb_section(section, from);
        }
        std::mem::take(&mut other.extents).into_iter().for_each(|extent| self.push(extent));
    }

    fn absorb_section(&mut self, section: u64, from: Bitmap) {
        self.longest.clear();
        match self.sections.get_mut(&section) {
            None => {
                self.order.push_back(section);
                self.most_bytes += from.most_bytes();
                self.blocks = self.blocks.saturating_add(from.set.into());
                self.sections.insert(section, from);
            }
            Some(to) => {
                self.most_bytes -= to.most_bytes();
                let added = to.merge(&from);
                self.blocks = self.blocks.saturating_add(added.into());
                self.most_bytes += to.most_bytes();
            }
        }
    }

    /// Bytes of a log of it.
    pub(super) fn log_len(&self) -> u64 {
        let sections: usize = self.sections.values().map(Bitmap::log_len).sum();
        (sections + DISCARD_ENTRY * self.extents.len()) as u64
    }

    /// Adds all of it to a log, each section as extents or as a bitmap, whichever is shorter.
    pub(super) fn write(&self, log: &mut Vec<u8>) {
        for section in &self.order {
            if let Some(bitmap) = self.sections.get(section) {
                bitmap.write(BlockAddr(section * SECTION), log);
            }
        }
        self.extents.iter().for_each(|extent| log_extent(log, *extent));
    }

    /// Takes out up to `count` extents, the longest first (as Linux issues discards): short ones
    /// would hold up those that give the drive most.
    pub(super) fn take(&mut self, count: usize) -> Vec<Extent> {
        if count as u64 >= self.blocks {
            return self.take_all();
        }
        if self.longest.len() < count {
            self.rank(count);
        }
        let left = self.longest.len().saturating_sub(count);
        let taken: Vec<Extent> = self.longest.drain(left..).rev().collect();
        self.remove(&taken);
        taken
    }

    fn take_all(&mut self) -> Vec<Extent> {
        let mut all = self.extents();
        all.sort_unstable_by_key(|extent| (Reverse(extent.blocks), extent.start));
        *self = Self::default();
        all
    }

    /// Finds the longest extents, at least `count` of them where there are as many.
    fn rank(&mut self, count: usize) {
        let mut all = self.extents();
        let key = |extent: &Extent| (extent.blocks, Reverse(extent.start));
        let shorter = all.len().saturating_sub(count.max(RANKED));
        if shorter > 0 {
            all.select_nth_unstable_by_key(shorter, key);
        }
        let mut longest = all.split_off(shorter);
        longest.sort_unstable_by_key(key);
        self.longest = longest;
    }

    /// Takes out extents, each of which is there as a whole.
    fn remove(&mut self, taken: &[Extent]) {
        let mut in_bitmaps: FxHashSet<Extent> = taken.iter().copied().collect();
        self.extents.retain(|extent| !in_bitmaps.remove(extent));
        for extent in taken {
            self.blocks = self.blocks.saturating_sub(extent.blocks);
            if in_bitmaps.contains(extent) {
                self.clear(*extent);
            }
        }
    }

    fn clear(&mut self, extent: Extent) {
        let section = extent.start.0 / SECTION;
        let Some(bitmap) = self.sections.get_mut(&section) else { return };
        self.most_bytes -= bitmap.most_bytes();
        bitmap.clear((extent.start.0 % SECTION) as usize, extent.blocks);
        self.most_bytes += bitmap.most_bytes();
        if bitmap.set == 0 {
            self.sections.remove(&section);
            self.order.retain(|other| *other != section);
        }
    }

    /// All of it, in no order.
    pub(super) fn extents(&self) -> Vec<Extent> {
        let sections = self.sections.iter();
        let of_sections =
            sections.flat_map(|(section, bitmap)| bitmap.extents(BlockAddr(section * SECTION)));
        of_sections.chain(self.extents.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::format::parse_discard_log;

    fn blocks(extents: &[Extent]) -> BTreeSet<u64> {
        extents.iter().flat_map(|extent| extent.range()).collect()
    }

    #[test]
    fn a_section_is_logged_the_shorter_way() {
        let mut dense = DiscardBitmaps::default();
        (0..SECTION).step_by(2).for_each(|block| assert!(dense.insert(BlockAddr(SECTION + block))));
        assert!(!dense.insert(BlockAddr(SECTION)));
        assert_eq!(dense.log_len(), 16 + SECTION / 8);
        assert!(dense.log_len() <= dense.most_bytes());
        let mut whole = DiscardBitmaps::default();
        (0..SECTION).for_each(|block| assert!(whole.insert(BlockAddr(block))));
        assert_eq!((whole.log_len(), whole.take(5).len()), (16, 1));
        assert!(whole.is_empty() && whole.most_bytes() == 0);
    }

    /// Only a damaged volume gives up a block twice.
    #[test]
    fn a_block_that_is_added_twice_is_there_once() {
        let (mut queued, mut fresh) = (DiscardBitmaps::default(), DiscardBitmaps::default());
        (10..20).for_each(|block| assert!(queued.insert(BlockAddr(block))));
        (15..30).for_each(|block| assert!(fresh.insert(BlockAddr(block))));
        assert!(fresh.insert(BlockAddr(SECTION)));
        queued.absorb(fresh);
        assert!(queued.has(BlockAddr(29)) && !queued.has(BlockAddr(30)));
        assert_eq!(queued.blocks(), 21);
        let taken = queued.take(usize::MAX);
        assert_eq!(taken.iter().map(|extent| extent.blocks).collect::<Vec<_>>(), [20, 1]);
        assert!(queued.is_empty() && queued.most_bytes() == 0);
    }

    /// Short extents do not hold up long ones, whichever came first.
    #[test]
    fn the_longest_extents_are_taken_first() {
        let mut queued = DiscardBitmaps::default();
        let lens = [1_u64, 70, 3, 200, 8];
        for (n, len) in lens.into_iter().enumerate() {
            let start = n as u64 * SECTION / 2;
            (start..start + len).for_each(|block| assert!(queued.insert(BlockAddr(block))));
        }
        let lens = |taken: Vec<Extent>| taken.iter().map(|e| e.blocks).collect::<Vec<_>>();
        assert_eq!(lens(queued.take(2)), [200, 70]);
        queued.push(Extent { start: BlockAddr(7 * SECTION), blocks: 5 });
        assert_eq!(lens(queued.take(2)), [8, 5]);
        assert_eq!((lens(queued.take(9)), queued.is_empty()), (vec![3, 1], true));
    }

    #[test]
    fn the_blocks_of_long_extents_do_not_overflow() {
        let long = Extent { start: BlockAddr(0), blocks: u64::MAX / 2 };
        let (mut queued, mut other) = (DiscardBitmaps::default(), DiscardBitmaps::default());
        (0..3).for_each(|_| other.push(long));
        queued.absorb(other);
        assert_eq!((queued.blocks(), queued.take(9).len()), (u64::MAX, 3));
    }

    /// Blocks given up far apart take memory by their number.
    #[test]
    fn a_block_takes_little_memory() {
        let mut alone = DiscardBitmaps::default();
        assert!(alone.insert(BlockAddr(7 * SECTION + 12_345)));
        let taken =
            alone.sections.values().flat_map(|bitmap| bitmap.chunks.iter().flatten()).count();
        assert_eq!(taken, 1);
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_blocks(
            first in prop::collection::btree_set(0..300_u64, 0..200),
            second in prop::collection::btree_set(300..700_u64, 0..200),
            count in 0..50_usize,
        ) {
            // around the border of two sections, at an area's end
            let place = |block: &u64| BlockAddr((2 << 58) - 350 + block);
            let (mut one, mut other) = (DiscardBitmaps::default(), DiscardBitmaps::default());
            for block in &first { prop_assert!(one.insert(place(block))); }
            for block in &second { prop_assert!(other.insert(place(block))); }
            other.push(Extent { start: BlockAddr(5), blocks: 3 });
            one.absorb(other);
            let mut all: BTreeSet<u64> = first.union(&second).map(|block| place(block).0).collect();
            all.extend([5, 6, 7]);
            prop_assert_eq!(one.blocks(), all.len() as u64);
            prop_assert_eq!(&blocks(&one.extents()), &all);
            let mut log = Vec::new();
            one.write(&mut log);
            prop_assert_eq!(log.len() as u64, one.log_len());
            prop_assert!(one.log_len() <= one.most_bytes());
            prop_assert_eq!(&blocks(&parse_discard_log(&log)), &all);
            let taken = one.take(count);
            prop_assert!(taken.len() <= count);
            let (taken, left) = (blocks(&taken), blocks(&one.extents()));
            prop_assert!(taken.is_disjoint(&left));
            prop_assert_eq!(one.blocks(), left.len() as u64);
            prop_assert_eq!(&taken.union(&left).copied().collect::<BTreeSet<_>>(), &all);
            one.take(usize::MAX);
            prop_assert!(one.is_empty() && one.most_bytes() == 0 && one.order.is_empty());
        }
    }
}
