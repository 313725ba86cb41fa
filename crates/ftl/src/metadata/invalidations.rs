//! Invalidations: the dead versions that the journal tells of, as recovery asks for them, page by
//! page.

use std::collections::BTreeMap;
use std::ops::Range;

use dovetail_nand::{Ppn, Seq};

use super::journal::{Bitmap, Record};

/// The dead versions of all blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Invalidations {
    /// Runs of blocks by their first one: where they end, and when they were last discarded.
    discarded: BTreeMap<u64, (u64, Seq)>,
    /// By the first flash page.
    bitmaps: BTreeMap<u64, Bitmap>,
}

impl Invalidations {
    /// Of the records and bitmap pages that were found.
    pub(crate) fn new(mut records: Vec<Record>, bitmaps: Vec<Bitmap>) -> Self {
        let bitmaps = bitmaps.into_iter().map(|bitmap| (bitmap.first, bitmap)).collect();
        let mut invalidations = Self { discarded: BTreeMap::new(), bitmaps };
        records.sort_by_key(|record| record.seq);
        for Record { range, seq } in records {
            let start = range.start.0;
            invalidations.discard(start..start.saturating_add(range.blocks), seq);
        }
        invalidations
    }

    /// A discard later than all before.
    fn discard(&mut self, blocks: Range<u64>, seq: Seq) {
        if blocks.is_empty() {
            return;
        }
        self.cut(blocks.start);
        self.cut(blocks.end);
        let covered: Vec<u64> =
            self.discarded.range(blocks.clone()).map(|(&start, _)| start).collect();
        for start in covered {
            self.discarded.remove(&start);
        }
        self.discarded.insert(blocks.start, (blocks.end, seq));
    }

    /// Makes a run begin at `block` if one goes across it.
    fn cut(&mut self, block: u64) {
        let Some((_, run)) = self.discarded.range_mut(..block).next_back() else { return };
        let (end, seq) = *run;
        if end > block {
            run.0 = block;
            self.discarded.insert(block, (end, seq));
        }
    }

    /// Returns when a block was last discarded.
    fn discarded(&self, block: u64) -> Option<Seq> {
        let (_, &(end, seq)) = self.discarded.range(..=block).next_back()?;
        (block < end).then_some(seq)
    }

    /// Returns which of the `subpages` subpages of a page are dead: as a version from `seq` of the
    /// blocks from `first` on.
    pub(crate) fn of_page(&self, ppn: Ppn, first: u64, seq: Seq, subpages: u32) -> u8 {
        let dead = |subpage: &u32| {
            self.discarded(first + u64::from(*subpage)).is_some_and(|discard| seq < discard)
        };
        let discarded: u8 = (0..subpages).filter(dead).map(|subpage| 1 << subpage).sum();
        discarded | self.in_bitmap(ppn, seq, subpages)
    }

    /// Returns which of them a bitmap page says to be dead.
    pub(crate) fn in_bitmap(&self, ppn: Ppn, seq: Seq, subpages: u32) -> u8 {
        let page = u64::from(ppn.0);
        let Some((&first, bitmap)) = self.bitmaps.range(..=page).next_back() else { return 0 };
        let bit = (page - first) * u64::from(subpages);
        match bitmap.bits.get((bit / 8) as usize) {
            Some(byte) if seq < bitmap.seq => byte >> (bit % 8) & ((1u16 << subpages) - 1) as u8,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::{BlockRange, Lba};
    use dovetail_time::Rng;

    #[test]
    fn the_last_discard_of_each_block_counts() {
        let mut rng = Rng::new(3);
        for _ in 0..200 {
            let mut last = [None; 64];
            let records = (1..=12).map(|seq| {
                let start = rng.below(64);
                let range = BlockRange::new(Lba(start), 1 + rng.below(64 - start));
                range.iter().for_each(|lba| last[lba.0 as usize] = Some(Seq(seq)));
                Record { range, seq: Seq(seq) }
            });
            let mut records: Vec<_> = records.collect();
            records.rotate_left(rng.below(12) as usize);
            let invalidations = Invalidations::new(records, Vec::new());
            (0..64)
                .for_each(|block| assert_eq!(invalidations.discarded(block), last[block as usize]));
        }
    }

    #[test]
    fn parts_die_by_bitmaps_if_they_are_older() {
        let bitmap = Bitmap { first: 8, seq: Seq(100), bits: vec![0b0110_1000, 1] };
        let invalidations = Invalidations::new(Vec::new(), vec![bitmap]);
        let dead = |page, seq| invalidations.of_page(Ppn(page), 0, Seq(seq), 4);
        assert_eq!((dead(8, 99), dead(9, 99), dead(10, 99)), (0b1000, 0b0110, 1));
        assert_eq!((dead(9, 100), dead(12, 99), dead(7, 99)), (0, 0, 0));
    }
}
