//! What the blocks of a device hold as of the last command issued, played or not.

use dovetail_block::{BlockRange, Content, Data, Lba, RemapPair, SectorRange};

use crate::sparse::Sparse;

/// The content of every block.
#[derive(Debug)]
pub(crate) struct Mirror {
    blocks: Sparse<Content>,
    /// Blocks that hold something, as the device counts them: what is forgotten here it still holds.
    used: Option<Used>,
}

impl Mirror {
    /// Nothing anywhere; `counts` says whether the device's room must be known.
    pub(crate) fn new(counts: bool) -> Self {
        Self { blocks: Sparse::new(), used: counts.then(Used::default) }
    }

    /// Blocks that the device holds; 0 if that is not counted.
    pub(crate) fn used(&self) -> u64 {
        self.used.as_ref().map_or(0, |used| used.count)
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
        self.set(pair.to, content);
        if let Some(used) = &mut self.used {
            used.set(pair.from, false);
        }
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

/// Which blocks a thin device holds.
#[derive(Debug, Default)]
struct Used {
    words: std::collections::BTreeMap<u64, u64>,
    count: u64,
}

impl Used {
    fn set(&mut self, lba: Lba, used: bool) {
        let (word, bit) = (lba.0 / 64, 1 << (lba.0 % 64));
        let bits = self.words.entry(word).or_default();
        self.count = self.count + u64::from(used) - u64::from(*bits & bit != 0);
        *bits = if used { *bits | bit } else { *bits & !bit };
        if *bits == 0 {
            self.words.remove(&word);
        }
    }

    fn clear(&mut self, range: BlockRange) {
        let (start, end) = (range.start.0, range.end().0);
        if start >= end {
            return;
        }
        let words: Vec<u64> = self.words.range(start / 64..=(end - 1) / 64).map(|(&word, _)| word).collect();
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

    #[test]
    fn what_is_forgotten_still_takes_room_until_it_is_discarded() {
        let mut mirror = Mirror::new(true);
        let range = BlockRange::new(Lba((1 << 58) - 3), 100);
        mirror.write(range, Data::Patterns(Pattern::new(1)));
        mirror.write(range, Data::Patterns(Pattern::new(2)));
        mirror.forget(range.start);
        assert_eq!(mirror.used(), 100);
        mirror.move_block(RemapPair { to: Lba(7), from: Lba(range.end().0 - 1) });
        assert_eq!(mirror.used(), 100);
        mirror.discard(BlockRange::new(Lba(1 << 58), 1 << 58).into());
        assert_eq!(mirror.used(), 4);
    }
}
