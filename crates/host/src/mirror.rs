//! Content of a device's blocks as of the last command issued, played or not.

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
}

impl Mirror {
    /// Nothing anywhere.
    pub(crate) fn new(thin: Option<Thin>) -> Self {
        Self { blocks: Sparse::new(), used: thin.map(Used::new), batch: OpenBatch::default() }
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
        self.blocks.set(lba, content);
    }

    /// Executes one pair of a remap.
    pub(crate) fn move_block(&mut self, pair: RemapPair) {
        let content = self.blocks.take(pair.from);
        self.blocks.set(pair.to, content);
        if let Some(used) = &mut self.used {
            used.set(pair.to, used.get(pair.from));
            used.set(pair.from, false);
        }
    }

    /// A batch of renames has begun on the device.
    pub(crate) fn begin_renames(&mut self, renames: &[Rename]) {
        self.batch.begin(&mut self.blocks, renames);
    }

    /// It ends; returns the names that lead nowhere from then on.
    pub(crate) fn end_renames(&mut self, keep: bool) -> Vec<Lba> {
        let dropped = self.batch.dropped(keep);
        self.batch.end(&mut self.blocks, keep);
        dropped
    }

    /// The content of a block is needed no more.
    pub(crate) fn forget(&mut self, lba: Lba) {
        self.blocks.take(lba);
    }

    pub(crate) fn discard(&mut self, range: SectorRange) {
        self.blocks.clear(range.blocks_inside());
        if let Some(used) = &mut self.used {
            used.clear(range.blocks_inside());
        }
    }
}

/// Blocks that a thin device holds.
#[derive(Debug)]
struct Used {
    words: std::collections::BTreeMap<u64, u64>,
    /// Pages of which a block is used.
    pages: u64,
    capacity_pages: u64,
    blocks_per_page: u32,
}

impl Used {
    fn new(thin: Thin) -> Self {
        let blocks_per_page = thin.blocks_per_page.clamp(1, 64);
        Self {
            words: std::collections::BTreeMap::new(),
            pages: 0,
            capacity_pages: thin.pages,
            blocks_per_page,
        }
    }

    fn free_blocks(&self) -> u64 {
        self.capacity_pages.saturating_sub(self.pages)
    }

    fn get(&self, lba: Lba) -> bool {
        self.words.get(&(lba.0 / 64)).is_some_and(|bits| bits >> (lba.0 % 64) & 1 == 1)
    }

    fn set(&mut self, lba: Lba, used: bool) {
        let (word, bit) = (lba.0 / 64, lba.0 % 64);
        let page = self.page_mask(bit);
        let bits = self.words.entry(word).or_default();
        let was_used = *bits & page != 0;
        *bits = if used { *bits | 1 << bit } else { *bits & !(1 << bit) };
        self.pages = self.pages + u64::from(*bits & page != 0) - u64::from(was_used);
        if *bits == 0 {
            self.words.remove(&word);
        }
    }

    /// The blocks of the page that a block lies in, among those of its word.
    fn page_mask(&self, bit: u64) -> u64 {
        let first = bit / u64::from(self.blocks_per_page) * u64::from(self.blocks_per_page);
        (u64::MAX >> (64 - self.blocks_per_page)) << first
    }

    fn clear(&mut self, range: BlockRange) {
        let (start, end) = (range.start.0, range.end().0);
        if start >= end {
            return;
        }
        let words: Vec<u64> =
            self.words.range(start / 64..=(end - 1) / 64).map(|(&word, _)| word).collect();
        for word in words {
            let inside = (start.max(word * 64)..end.min(word * 64 + 64)).map(Lba);
            inside.for_each(|lba| self.set(lba, false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::Pattern;

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
