//! Remap staging: updates lie in sections that no log writes to, borrowed from the free ones, until
//! the device has moved them.
//!
//! No checkpoint and no table knows of them: for the format they are free, before and after a power
//! cut. A staged block can be written again as soon as its update has moved, so one section lasts
//! as long as updates do not wait.

use crate::format::BLOCKS_IN_SEGMENT;

/// A borrowed section.
#[derive(Debug)]
struct BorrowedSection {
    section: u32,
    /// One bit a block: an update lies there and waits.
    taken: Vec<u64>,
    count: u32,
}

/// The borrowed sections.
#[derive(Debug, Default)]
pub(super) struct RemapStaging {
    sections: Vec<BorrowedSection>,
    /// The one that is being filled, and the block from which the search for a free one goes on.
    open: usize,
    next: u32,
    blocks: u32,
}

/// A block for an update: a section of the main area, and the offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StagedBlock {
    pub(super) section: u32,
    pub(super) block: u32,
}

impl RemapStaging {
    pub(super) fn new(segments_per_section: u32) -> Self {
        Self { blocks: segments_per_section * BLOCKS_IN_SEGMENT, ..Self::default() }
    }

    /// Segments in borrowed sections.
    pub(super) fn segments(&self) -> u32 {
        self.sections.len() as u32 * (self.blocks / BLOCKS_IN_SEGMENT)
    }

    /// Blocks that are not taken.
    pub(super) fn free(&self) -> u32 {
        self.sections.iter().map(|section| self.blocks - section.count).sum()
    }

    /// A section is to be borrowed before the next block is taken: no more than `reserve` are left,
    /// or the present section is used up and none is at least half free.
    pub(super) fn wants_section(&self, reserve: u32) -> bool {
        let used_up = self
            .sections
            .get(self.open)
            .is_none_or(|open| open.next_free(self.next, self.blocks).is_none());
        let half_free = self.sections.iter().any(|section| section.count <= self.blocks / 2);
        self.free() <= reserve || (used_up && !half_free)
    }

    pub(super) fn borrow_section(&mut self, section: u32) {
        let taken = vec![0; (self.blocks / 64) as usize];
        self.sections.push(BorrowedSection { section, taken, count: 0 });
    }

    /// Takes the next block, `None` when all are taken.
    pub(super) fn take(&mut self) -> Option<StagedBlock> {
        let next_in_open = |staging: &Self| {
            let open = staging.sections.get(staging.open);
            open.and_then(|open| open.next_free(staging.next, staging.blocks))
        };
        let block = match next_in_open(self) {
            Some(block) => block,
            None => {
                let emptiest =
                    (0..self.sections.len()).min_by_key(|&at| self.sections[at].count)?;
                (self.open, self.next) = (emptiest, 0);
                next_in_open(self)?
            }
        };
        let open = &mut self.sections[self.open];
        open.taken[block as usize / 64] |= 1 << (block % 64);
        open.count += 1;
        self.next = block + 1;
        Some(StagedBlock { section: open.section, block })
    }

    /// The update has moved, or is not needed any more.
    pub(super) fn release(&mut self, staged: StagedBlock) {
        let mut sections = self.sections.iter_mut();
        let Some(section) = sections.find(|section| section.section == staged.section) else {
            return;
        };
        let bit = 1 << (staged.block % 64);
        let word = &mut section.taken[staged.block as usize / 64];
        section.count -= u32::from(*word & bit != 0);
        *word &= !bit;
    }

    /// Sections in which nothing waits, all but one of them (all with `last`). They are no longer
    /// borrowed.
    pub(super) fn return_sections(&mut self, last: bool) -> Vec<u32> {
        let open = self.sections.get(self.open).map(|open| open.section);
        let mut returned = Vec::new();
        self.sections.retain(|section| {
            let keep = section.count > 0 || (!last && Some(section.section) == open);
            if !keep {
                returned.push(section.section);
            }
            keep
        });
        self.open =
            self.sections.iter().position(|section| Some(section.section) == open).unwrap_or(0);
        returned
    }
}

impl BorrowedSection {
    /// The first block at or after `from` that is not taken.
    fn next_free(&self, from: u32, blocks: u32) -> Option<u32> {
        let mut at = from;
        while at < blocks {
            let free = !self.taken[at as usize / 64] >> (at % 64);
            if free != 0 {
                return Some(at + free.trailing_zeros());
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_section_lasts_while_nothing_waits() {
        let mut staging = RemapStaging::new(1);
        assert!(staging.wants_section(0));
        staging.borrow_section(7);
        for number in 0..2000 {
            assert!(!staging.wants_section(0));
            let staged = staging.take().unwrap();
            assert_eq!(staged, StagedBlock { section: 7, block: number % 512 });
            staging.release(staged);
        }
        assert!(staging.wants_section(512), "more are asked for than one has");
        assert!(staging.return_sections(false).is_empty());
        assert_eq!(staging.return_sections(true), [7]);
    }

    #[test]
    fn what_waits_is_left_alone() {
        let mut staging = RemapStaging::new(1);
        staging.borrow_section(7);
        let all: Vec<StagedBlock> = (0..512).map(|_| staging.take().unwrap()).collect();
        assert!(staging.wants_section(0) && staging.take().is_none() && staging.free() == 0);
        staging.borrow_section(9);
        assert_eq!(staging.take(), Some(StagedBlock { section: 9, block: 0 }));
        all.iter()
            .filter(|staged| staged.block % 2 == 1)
            .for_each(|&staged| staging.release(staged));
        let more: Vec<StagedBlock> = (0..511).map(|_| staging.take().unwrap()).collect();
        assert!(more.iter().all(|staged| staged.section == 9));
        assert!(!staging.wants_section(0), "half of the first is free");
        let in_holes: Vec<u32> = (0..256).map(|_| staging.take().unwrap().block).collect();
        assert_eq!(in_holes, (0..256).map(|at| 2 * at + 1).collect::<Vec<_>>());
    }
}
