//! Content of a device's blocks as of the last command issued, played or not.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use dovetail_block::{BlockRange, Content, Data, Lba, RemapPair, Rename, SectorRange, Thin};

use crate::renames::OpenBatch;
use crate::sparse::Sparse;

/// The content of every block.
#[derive(Debug)]
pub(crate) struct Mirror {
    blocks: Sparse<Content>,
    /// Blocks that take room on a thin device. It still holds those that are forgotten here.
    used: Option<Used>,
    batch: OpenBatch,
    /// Blocks that are forgotten with the next commit, where content stays until then.
    dying: Option<BTreeSet<Lba>>,
}

impl Mirror {
    /// Nothing anywhere.
    pub(crate) fn new(thin: Option<Thin>) -> Self {
        Self {
            blocks: Sparse::new(),
            used: thin.map(Used::new),
            batch: OpenBatch::default(),
            dying: None,
        }
    }

    /// Content that is needed no more from now on stays until a commit: recovery may read it before.
    /// A power cut has brought back whatever was to be forgotten until now.
    pub(crate) fn keep_until_committed(&mut self) {
        self.dying = Some(BTreeSet::new());
    }

    /// As [`dovetail_block::Query::FreeBlocks`].
    pub(crate) fn free_blocks(&self) -> Option<u64> {
        self.used.as_ref().map(Used::free_blocks)
    }

    pub(crate) fn read(&self, range: BlockRange, into: &mut [Content]) {
        for (lba, content) in range.iter().zip(into) {
            *content = self.blocks.get(lba).clone();
        }
    }

    pub(crate) fn write(&mut self, range: BlockRange, data: Data<'_>) {
        for (i, lba) in range.iter().enumerate() {
            self.set(lba, data.block(i as u64));
        }
    }

    fn set(&mut self, lba: Lba, content: Content) {
        if let Some(used) = &mut self.used {
            used.set(lba, true);
        }
        self.revive(lba);
        self.blocks.set(lba, content);
    }

    /// The content of a block is not forgotten with the next commit.
    fn revive(&mut self, lba: Lba) {
        if let Some(dying) = &mut self.dying {
            dying.remove(&lba);
        }
    }

    /// Executes one pair of a remap.
    pub(crate) fn move_block(&mut self, pair: RemapPair) {
        self.revive(pair.to);
        let content = self.blocks.take(pair.from);
        self.blocks.set(pair.to, content);
        if let Some(used) = &mut self.used {
            used.set(pair.to, used.get(pair.from));
            used.set(pair.from, false);
        }
    }

    /// A batch of renames has begun on the device.
    pub(crate) fn begin_renames(&mut self, renames: &[Rename]) {
        for rename in renames {
            self.revive(rename.from);
            rename.to.into_iter().for_each(|to| self.revive(to));
        }
        self.batch.begin(&mut self.blocks, renames);
    }

    /// It ends; returns the names that lead nowhere from then on.
    pub(crate) fn end_renames(&mut self, keep: bool) -> Vec<Lba> {
        let dropped = self.batch.dropped(keep);
        self.batch.end(&mut self.blocks, keep);
        dropped
    }

    /// The content of a block is needed no more, but for recovery until the next commit.
    pub(crate) fn forget(&mut self, lba: Lba) {
        match &mut self.dying {
            Some(dying) => drop(dying.insert(lba)),
            None => drop(self.blocks.take(lba)),
        }
    }

    /// Recovery begins at what is there now: it reads nothing that was forgotten before.
    pub(crate) fn commit(&mut self) {
        for lba in self.dying.as_mut().map(std::mem::take).unwrap_or_default() {
            self.blocks.take(lba);
        }
    }

    pub(crate) fn discard(&mut self, range: SectorRange) {
        self.blocks.clear(range.blocks_inside());
        if let Some(used) = &mut self.used {
            used.clear(range.blocks_inside());
        }
    }
}

/// Blocks whose bits lie together.
const BITS: u64 = 4096;
const WORDS: usize = BITS as usize / 64;

/// Blocks that a thin device holds.
#[derive(Debug)]
struct Used {
    /// A bit for each block, by the number of their [`BITS`].
    bits: BTreeMap<u64, Box<[u64; WORDS]>>,
    /// Pages of which a block is used.
    pages: u64,
    capacity_pages: u64,
    blocks_per_page: u32,
}

/// The place of a block's bit: the number of its [`BITS`], the word there and the bit in it.
const fn place_of(lba: Lba) -> (u64, usize, u64) {
    (lba.0 / BITS, (lba.0 % BITS / 64) as usize, lba.0 % 64)
}

impl Used {
    fn new(thin: Thin) -> Self {
        let blocks_per_page = thin.blocks_per_page.clamp(1, 64);
        Self { bits: BTreeMap::new(), pages: 0, capacity_pages: thin.pages, blocks_per_page }
    }

    fn free_blocks(&self) -> u64 {
        self.capacity_pages.saturating_sub(self.pages)
    }

    fn get(&self, lba: Lba) -> bool {
        let (number, word, bit) = place_of(lba);
        self.bits.get(&number).is_some_and(|words| words[word] >> bit & 1 == 1)
    }

    fn set(&mut self, lba: Lba, used: bool) {
        let (number, word, bit) = place_of(lba);
        let words = match self.bits.get_mut(&number) {
            Some(words) => words,
            None if used => self.bits.entry(number).or_insert_with(|| Box::new([0; WORDS])),
            None => return,
        };
        let page = page_mask(self.blocks_per_page, bit);
        let bits = &mut words[word];
        let was_used = *bits & page != 0;
        *bits = if used { *bits | 1 << bit } else { *bits & !(1 << bit) };
        self.pages = self.pages + u64::from(*bits & page != 0) - u64::from(was_used);
    }

    fn clear(&mut self, range: BlockRange) {
        let (start, end) = (range.start.0, range.end().0);
        if start >= end {
            return;
        }
        let (mut from, last) = (start / BITS, (end - 1) / BITS);
        while from <= last
            && let Some((&number, words)) = self.bits.range_mut(from..=last).next()
        {
            let first = number * BITS;
            let inside = start.max(first) - first..end.min(first + BITS) - first;
            let emptied = clear_in(words, inside, self.blocks_per_page);
            self.pages -= emptied;
            if emptied > 0 && words.iter().all(|bits| *bits == 0) {
                self.bits.remove(&number);
            }
            from = number + 1;
        }
    }
}

/// Clears the bits of a range; returns the number of pages of which no block is used any more.
fn clear_in(words: &mut [u64; WORDS], range: Range<u64>, blocks_per_page: u32) -> u64 {
    let mut emptied = 0;
    let (first_word, end_word) = (range.start / 64, range.end.div_ceil(64));
    let inside = &mut words[first_word as usize..end_word as usize];
    for (bits, first) in inside.iter_mut().zip((first_word * 64..).step_by(64)) {
        let before = *bits;
        if before == 0 {
            continue;
        }
        let (from, to) = (range.start.max(first), range.end.min(first + 64));
        *bits &= !(u64::MAX >> (64 - (to - from)) << (from - first));
        emptied += pages_in(before, blocks_per_page) - pages_in(*bits, blocks_per_page);
    }
    emptied
}

/// The blocks of the page that a block lies in, among those of its word.
const fn page_mask(blocks_per_page: u32, bit: u64) -> u64 {
    let first = bit / blocks_per_page as u64 * blocks_per_page as u64;
    (u64::MAX >> (64 - blocks_per_page)) << first
}

/// Pages of a word of which a block is used.
fn pages_in(mut bits: u64, blocks_per_page: u32) -> u64 {
    if blocks_per_page == 1 {
        return bits.count_ones().into();
    }
    let mut pages = 0;
    while bits != 0 {
        bits &= !page_mask(blocks_per_page, bits.trailing_zeros().into());
        pages += 1;
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::Pattern;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn mirror(capacity: u64, blocks_per_page: u32) -> Mirror {
        Mirror::new(Some(Thin::new(capacity, blocks_per_page)))
    }

    #[test]
    fn what_is_forgotten_still_takes_room_until_it_is_discarded() {
        let mut mirror = mirror(1000, 1);
        let range = BlockRange::new(Lba((1 << 58) - 3), 100);
        mirror.write(range, Data::Patterns(Pattern::new(1)));
        mirror.write(range, Data::Patterns(Pattern::new(2)));
        mirror.forget(range.start);
        assert_eq!(mirror.free_blocks(), Some(900));
        mirror.move_block(RemapPair { to: Lba(7), from: Lba(range.end().0 - 1) });
        assert_eq!(mirror.free_blocks(), Some(900));
        mirror.discard(BlockRange::new(Lba(1 << 58), 1 << 58).into());
        assert_eq!(mirror.free_blocks(), Some(996));
        // Nothing has moved to block 7, which is empty for it.
        mirror.move_block(RemapPair { to: Lba(7), from: Lba(8) });
        assert_eq!(mirror.free_blocks(), Some(997));
        assert_eq!(Mirror::new(None).free_blocks(), None);
    }

    #[test]
    fn what_recovery_may_read_stays_until_a_commit() {
        let mut mirror = Mirror::new(None);
        mirror.keep_until_committed();
        let write = |mirror: &mut Mirror, lba, tag| {
            mirror.write(BlockRange::new(Lba(lba), 1), Data::Patterns(Pattern::new(tag)));
        };
        let there = |mirror: &Mirror| {
            [1, 2, 3, 4].map(|lba| *mirror.blocks.get(Lba(lba)) != Content::Empty)
        };
        for lba in 1..=4 {
            write(&mut mirror, lba, lba);
            mirror.forget(Lba(lba));
        }
        write(&mut mirror, 2, 5);
        mirror.move_block(RemapPair { to: Lba(3), from: Lba(4) });
        assert_eq!(there(&mirror), [true, true, true, false]);
        mirror.commit();
        assert_eq!(there(&mirror), [false, true, true, false], "written or moved there since");
        mirror.forget(Lba(2));
        assert_eq!(there(&mirror), [false, true, true, false]);
        mirror.keep_until_committed();
        mirror.commit();
        assert_eq!(there(&mirror), [false, true, true, false], "the cut has brought it back");
    }

    proptest! {
        #[test]
        fn used_pages_are_those_of_a_plain_set(
            blocks_per_page in prop::sample::select(vec![1_u32, 2, 4, 16, 64]),
            ops in prop::collection::vec((0..3_u8, 0..9000_u64, 0..9000_u64), 1..60),
        ) {
            let (mut mirror, mut model) = (mirror(1 << 20, blocks_per_page), BTreeSet::new());
            for (op, start, blocks) in ops {
                let blocks = if op == 2 { blocks } else { blocks % 200 };
                let range = BlockRange::new(Lba(start), blocks);
                if op == 0 {
                    mirror.write(range, Data::Patterns(Pattern::new(start)));
                    model.extend(range.iter().map(|lba| lba.0));
                } else {
                    mirror.discard(range.into());
                    model.retain(|block| !(start..start + blocks).contains(block));
                }
                let pages: BTreeSet<u64> =
                    model.iter().map(|block| block / u64::from(blocks_per_page)).collect();
                let free = (1 << 20) / u64::from(blocks_per_page) - pages.len() as u64;
                prop_assert_eq!(mirror.free_blocks(), Some(free));
            }
        }
    }

    #[test]
    fn a_block_takes_the_room_of_its_page() {
        let mut mirror = mirror(40, 4);
        for lba in [0, 3, 4, 63, 64, (1 << 58) + 1] {
            mirror.write(BlockRange::new(Lba(lba), 1), Data::Patterns(Pattern::new(lba)));
        }
        assert_eq!(mirror.free_blocks(), Some(5));
        mirror.discard(BlockRange::new(Lba(1), 4).into());
        assert_eq!(mirror.free_blocks(), Some(6), "block 0 is left of its page, block 4 was alone");
    }
}
