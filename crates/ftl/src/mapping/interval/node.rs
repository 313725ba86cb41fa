//! A map node: where the pages of one mapping segment of 16 MiB are (IPLFS paper §5.3, fixed-region mapping).
//!
//! The segment is cut into regions of one size. Each region has a run of covered pages, from its first valid page on;
//! the entries of all runs stand one after the other in the node's table. The node itself is a header of four words and,
//! if there is more than one region, the region directory: a word for each region and one for the end.
//!
//! | word | low half | high half |
//! |---|---|---|
//! | 0 | the table | |
//! | 1 | valid pages | covered pages |
//! | 2 | one region: its first covered page; more: pages of a region | regions |
//! | 3 | 1 + index among the candidates for compaction, or 0 | |
//! | 4.. | first covered page of the region | its entry in the table |
//!
//! An entry is the physical page plus one, 0 for a page that is covered and not valid.

use super::arena::{Arena, Block};
use super::coverage::{Coverage, Run};
use super::zone::Slot;

const HEADER_WORDS: usize = 4;

/// Bytes of a map node's header.
pub(super) const NODE_BYTES: u64 = HEADER_WORDS as u64 * 4;

/// The memory of all nodes and of all tables.
#[derive(Debug)]
pub(super) struct Slabs {
    pub(super) nodes: Arena,
    pub(super) tables: Arena,
}

impl Slabs {
    /// For tables of up to `segment_pages` entries.
    pub(super) fn new(segment_pages: usize) -> Self {
        Self { nodes: Arena::of_nodes(), tables: Arena::of_tables(segment_pages) }
    }
}

/// A map node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node(pub(super) Block);

/// Where the entries of a covered run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entries {
    /// The run, in pages of the segment.
    pub(super) run: Run,
    /// Index of the first page's entry among the words of tables.
    pub(super) at: usize,
}

fn halves(word: u32) -> (u32, u32) {
    (word & 0xFFFF, word >> 16)
}

fn word(low: u32, high: u32) -> u32 {
    low | high << 16
}

impl Node {
    /// A node with that coverage, for a slot of a zone node; `entries` holds an entry for each page of the segment.
    pub(super) fn build(
        memory: &mut Slabs,
        slot: Slot,
        coverage: &Coverage,
        entries: &[u32],
        valid: u32,
    ) -> Self {
        let node = Self(memory.nodes.alloc(HEADER_WORDS + coverage.directory_words(), 0));
        let table = memory.tables.alloc(coverage.pages() as usize, slot.0);
        let (words, tables) = (memory.nodes.words_mut(), memory.tables.words_mut());
        words[node.0.at()] = table.word();
        words[node.0.at() + 1] = word(valid, coverage.pages());
        let mut next = 0;
        for (region, run) in coverage.runs().iter().enumerate() {
            if coverage.directory_words() > 0 {
                words[node.0.at() + HEADER_WORDS + region] = word(run.first, next as u32);
            }
            let source = &entries[run.first as usize..run.end() as usize];
            tables[table.at() + next..][..source.len()].copy_from_slice(source);
            next += source.len();
        }
        match coverage.runs() {
            [only] => words[node.0.at() + 2] = word(only.first, 1),
            runs => {
                words[node.0.at() + 2] = word(coverage.region_pages(), runs.len() as u32);
                words[node.0.at() + HEADER_WORDS + runs.len()] = word(0, next as u32);
            }
        }
        node
    }

    /// Frees the node and its table; returns the words of its directory and of its table.
    pub(super) fn free(self, memory: &mut Slabs) -> (usize, usize) {
        let words = memory.nodes.words();
        let (covered, directory) = (self.covered(words) as usize, self.directory_words(words));
        if let Some(table) = self.table(words) {
            memory.tables.free(table, covered);
        }
        memory.nodes.free(self.0, HEADER_WORDS + directory);
        (directory, covered)
    }

    /// The table, if it has an entry for each page of a segment of so many pages.
    pub(super) fn whole_table(self, words: &[u32], segment_pages: u32) -> Option<Block> {
        let whole = self.covered(words) == segment_pages && self.directory_words(words) == 0;
        self.table(words).filter(|_| whole)
    }

    /// Tells the node where its table has moved.
    pub(super) fn set_table(self, words: &mut [u32], table: Block) {
        words[self.0.at()] = table.word();
    }

    /// The covered run around a page of the segment, and the accesses it took: the header, and the directory if there
    /// is one.
    #[inline]
    pub(super) fn find(self, words: &[u32], page: u32) -> (Option<Entries>, u32) {
        let at = self.0.at();
        let header = &words[at..at + HEADER_WORDS];
        let table = Block::index(header[0]);
        let (low, regions) = halves(header[2]);
        if regions == 1 {
            let run = Run { first: low, pages: header[1] >> 16 };
            return (run.contains(page).then_some(Entries { run, at: table }), 1);
        }
        let directory = &words[at + HEADER_WORDS..];
        let region = (page / low) as usize;
        let ((first, entry), (_, end)) = (halves(directory[region]), halves(directory[region + 1]));
        let run = Run { first, pages: end - entry };
        (run.contains(page).then_some(Entries { run, at: table + entry as usize }), 2)
    }

    /// What the node covers.
    pub(super) fn coverage(self, words: &[u32]) -> Coverage {
        let (low, regions) = halves(words[self.0.at() + 2]);
        if regions == 1 {
            return Coverage::single(Run { first: low, pages: self.covered(words) });
        }
        let directory = &words[self.0.at() + HEADER_WORDS..][..=regions as usize];
        let runs = directory.windows(2).map(|pair| {
            let ((first, entry), (_, end)) = (halves(pair[0]), halves(pair[1]));
            Run { first, pages: end - entry }
        });
        Coverage::of_regions(low, runs)
    }

    /// Spreads the entries over a segment's worth of them; pages that are not covered get 0.
    pub(super) fn unpack(self, memory: &Slabs, entries: &mut [u32]) {
        entries.fill(0);
        let (words, tables) = (memory.nodes.words(), memory.tables.words());
        let Some(table) = self.table(words) else {
            return;
        };
        let mut next = table.at();
        for run in self.coverage(words).runs() {
            let run_entries = &tables[next..][..run.pages as usize];
            entries[run.first as usize..run.end() as usize].copy_from_slice(run_entries);
            next += run_entries.len();
        }
    }

    pub(super) fn valid(self, words: &[u32]) -> u32 {
        halves(words[self.0.at() + 1]).0
    }

    pub(super) fn covered(self, words: &[u32]) -> u32 {
        halves(words[self.0.at() + 1]).1
    }

    /// Counts a page more or less as valid; returns the valid and the covered pages.
    #[inline]
    pub(super) fn count(self, words: &mut [u32], more: bool) -> (u32, u32) {
        let counts = &mut words[self.0.at() + 1];
        *counts = if more { *counts + 1 } else { *counts - 1 };
        halves(*counts)
    }

    /// The node's place among the candidates for compaction.
    pub(super) fn candidate(self, words: &[u32]) -> Option<usize> {
        (words[self.0.at() + 3] as usize).checked_sub(1)
    }

    pub(super) fn set_candidate(self, words: &mut [u32], index: Option<usize>) {
        words[self.0.at() + 3] = index.map_or(0, |index| index as u32 + 1);
    }

    fn table(self, words: &[u32]) -> Option<Block> {
        Block::from_word(words[self.0.at()])
    }

    fn directory_words(self, words: &[u32]) -> usize {
        match words[self.0.at() + 2] >> 16 {
            1 => 0,
            regions => regions as usize + 1,
        }
    }
}

/// Words of a node with that coverage, its table included.
pub(super) fn words_of(coverage: &Coverage) -> u32 {
    (HEADER_WORDS + coverage.directory_words()) as u32 + coverage.pages()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_finds_what_it_was_built_from_and_gives_it_back() {
        let mut memory = Slabs::new(4096);
        let entries: Vec<u32> =
            (0..4096).map(|page| if page / 200 % 3 == 1 { page + 1 } else { 0 }).collect();
        let tight = Coverage::tightest(&entries, 64);
        let whole = Coverage::single(Run { first: 0, pages: 4096 });
        for coverage in [tight, whole] {
            let node = Node::build(&mut memory, Slot(4), &coverage, &entries, 1);
            for page in 0..4096 {
                let (found, _) = node.find(memory.nodes.words(), page);
                let entry = found
                    .map_or(0, |found| memory.tables.words()[found.at + (page - found.run.first) as usize]);
                assert_eq!(entry, entries[page as usize], "page {page}");
            }
            let mut unpacked = vec![7; 4096];
            node.unpack(&memory, &mut unpacked);
            assert_eq!(unpacked, entries);
            assert_eq!(node.coverage(memory.nodes.words()), coverage);
            let (directory, table) = node.free(&mut memory);
            assert_eq!((directory + table + HEADER_WORDS) as u32, words_of(&coverage));
        }
        assert_eq!((memory.nodes.allocated_bytes(), memory.tables.allocated_bytes()), (0, 0));
    }
}
