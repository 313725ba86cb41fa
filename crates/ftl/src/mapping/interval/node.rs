//! A map node: where the pages of one mapping segment of 16 MiB are (IPLFS paper §5.3, fixed-region
//! mapping).
//!
//! The segment is cut into regions of one size. Each region has a run of covered pages, from its
//! first valid page on; the entries of all runs stand one after the other in the node's table. The
//! node is four words that stand in the zone node itself, so that no pointer leads to them. More
//! than one region needs a region directory: a word that says how the segment is cut, one for each
//! region, and one for the end.
//!
//! | word | of the node |
//! |---|---|
//! | 0 | the table; 0 is a segment without a node |
//! | 1 | low half: valid pages; high half: covered pages |
//! | 2 | one region: its first covered page; more: the directory, and the top bit |
//! | 3 | 1 + index among the candidates for compaction, or 0 |
//!
//! | word | of the directory: low half | high half |
//! |---|---|---|
//! | 0 | pages of a region | regions |
//! | 1.. | first covered page of the region | its entry in the table |
//!
//! An entry is the physical page plus one, 0 for a page that is covered and not valid.

use super::arena::{Arena, Block};
use super::coverage::{Coverage, CoveredRun};

/// Words of a map node.
pub(super) const NODE_WORDS: usize = 4;

/// Bytes of a map node.
pub(super) const NODE_BYTES: u64 = NODE_WORDS as u64 * 4;

/// Tells a directory from the first covered page of an only region.
const DIRECTORY: u32 = 1 << 31;

/// The memory of all nodes and of all tables.
#[derive(Clone, Debug)]
pub(super) struct Slabs {
    /// Zone nodes, with the map nodes in them, and directories.
    pub(super) nodes: Arena,
    pub(super) tables: Arena,
}

impl Slabs {
    /// For tables of up to `segment_pages` entries.
    pub(super) fn new(segment_pages: usize) -> Self {
        Self { nodes: Arena::of_nodes(), tables: Arena::of_tables(segment_pages) }
    }
}

/// The place of a map node, taken or not: the index of its first word among the words of nodes,
/// never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Node(pub(super) u32);

/// The entries of a covered run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    /// The run, in pages of the segment.
    pub(super) run: CoveredRun,
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
    /// Makes the node of a segment that has none, with that coverage; `entries` holds an entry for
    /// each page of the segment.
    pub(super) fn build(
        self,
        memory: &mut Slabs,
        coverage: &Coverage,
        entries: &[u32],
        valid: u32,
    ) {
        let table = memory.tables.alloc(coverage.pages() as usize, self.0);
        let mut to = table.at();
        for run in coverage.runs() {
            let source = &entries[run.first as usize..run.end() as usize];
            memory.tables.words_mut()[to..][..source.len()].copy_from_slice(source);
            to += source.len();
        }
        let shape = match coverage.runs() {
            [only] => only.first,
            _ => build_directory(&mut memory.nodes, coverage).word() | DIRECTORY,
        };
        let header = [table.word(), word(valid, coverage.pages()), shape, 0];
        memory.nodes.words_mut()[self.0 as usize..][..NODE_WORDS].copy_from_slice(&header);
    }

    /// Frees what belongs to the node; returns the words of its directory and of its table.
    pub(super) fn free(self, memory: &mut Slabs) -> (usize, usize) {
        let words = memory.nodes.words();
        let (covered, directory) = (self.covered(words) as usize, self.directory_words(words));
        if let Some(table) = self.table(words) {
            memory.tables.free(table, covered);
        }
        if let Some(block) = self.directory(words) {
            memory.nodes.free(block, directory);
        }
        memory.nodes.words_mut()[self.0 as usize..][..NODE_WORDS].fill(0);
        (directory, covered)
    }

    /// Tells whether the segment has a node.
    #[inline]
    pub(super) fn exists(self, words: &[u32]) -> bool {
        words[self.0 as usize] != 0
    }

    /// Tells the node where its table has moved.
    pub(super) fn set_table(self, words: &mut [u32], table: Block) {
        words[self.0 as usize] = table.word();
    }

    /// The covered run around a page of the segment, and the accesses it took: the node, and the
    /// directory if there is one.
    #[inline]
    pub(super) fn find(self, words: &[u32], page: u32) -> (Option<Entries>, u32) {
        let [table, counts, shape] = [0, 1, 2].map(|i| words[self.0 as usize + i]);
        let at = Block::index(table);
        if shape & DIRECTORY == 0 {
            let run = CoveredRun { first: shape, pages: counts >> 16 };
            return (run.contains(page).then_some(Entries { run, at }), 1);
        }
        let directory = &words[Block::index(shape & !DIRECTORY)..];
        let region = (page / halves(directory[0]).0) as usize;
        let ((first, entry), (_, end)) =
            (halves(directory[region + 1]), halves(directory[region + 2]));
        let run = CoveredRun { first, pages: end - entry };
        (run.contains(page).then_some(Entries { run, at: at + entry as usize }), 2)
    }

    /// Returns what the node covers.
    pub(super) fn coverage(self, words: &[u32]) -> Coverage {
        let Some(directory) = self.directory(words) else {
            return Coverage::single(CoveredRun {
                first: words[self.0 as usize + 2],
                pages: self.covered(words),
            });
        };
        let (region_pages, regions) = halves(words[directory.at()]);
        let runs = words[directory.at() + 1..][..=regions as usize].windows(2).map(|pair| {
            let ((first, entry), (_, end)) = (halves(pair[0]), halves(pair[1]));
            CoveredRun { first, pages: end - entry }
        });
        Coverage::of_regions(region_pages, runs)
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
        halves(words[self.0 as usize + 1]).0
    }

    fn covered(self, words: &[u32]) -> u32 {
        halves(words[self.0 as usize + 1]).1
    }

    /// Counts a page more or less as valid; returns the valid and the covered pages.
    #[inline]
    pub(super) fn count(self, words: &mut [u32], more: bool) -> (u32, u32) {
        let counts = &mut words[self.0 as usize + 1];
        *counts = if more { *counts + 1 } else { *counts - 1 };
        halves(*counts)
    }

    /// The node's place among the candidates for compaction.
    pub(super) fn candidate(self, words: &[u32]) -> Option<usize> {
        (words[self.0 as usize + 3] as usize).checked_sub(1)
    }

    pub(super) fn set_candidate(self, words: &mut [u32], index: Option<usize>) {
        words[self.0 as usize + 3] = index.map_or(0, |index| index as u32 + 1);
    }

    fn table(self, words: &[u32]) -> Option<Block> {
        Block::from_word(words[self.0 as usize])
    }

    fn directory(self, words: &[u32]) -> Option<Block> {
        let shape = words[self.0 as usize + 2];
        Block::from_word(shape & !DIRECTORY).filter(|_| shape & DIRECTORY != 0)
    }

    fn directory_words(self, words: &[u32]) -> usize {
        let regions = |block: Block| halves(words[block.at()]).1 as usize;
        self.directory(words).map_or(0, |block| regions(block) + 2)
    }
}

fn build_directory(nodes: &mut Arena, coverage: &Coverage) -> Block {
    let runs = coverage.runs();
    let block = nodes.alloc(coverage.directory_words(), 0);
    let directory = &mut nodes.words_mut()[block.at()..][..coverage.directory_words()];
    directory[0] = word(coverage.region_pages(), runs.len() as u32);
    let mut next = 0;
    for (slot, run) in directory[1..].iter_mut().zip(runs) {
        *slot = word(run.first, next);
        next += run.pages;
    }
    directory[runs.len() + 1] = word(0, next);
    block
}

/// Words of a node with that coverage, its table included.
pub(super) fn words_of(coverage: &Coverage) -> u32 {
    (NODE_WORDS + coverage.directory_words()) as u32 + coverage.pages()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::interval::RegionSize;

    #[test]
    fn a_node_finds_what_it_was_built_from_and_gives_it_back() {
        let mut memory = Slabs::new(4096);
        let node = Node(memory.nodes.alloc(NODE_WORDS, 0).at() as u32);
        let entries: Vec<u32> =
            (0..4096).map(|page| if page / 200 % 3 == 1 { page + 1 } else { 0 }).collect();
        let tight = Coverage::of(&entries, RegionSize::LeastMemory, 64);
        let whole = Coverage::single(CoveredRun { first: 0, pages: 4096 });
        for coverage in [tight, whole] {
            node.build(&mut memory, &coverage, &entries, 1);
            for page in 0..4096 {
                let (found, _) = node.find(memory.nodes.words(), page);
                let entry = found.map_or(0, |found| {
                    memory.tables.words()[found.at + (page - found.run.first) as usize]
                });
                assert_eq!(entry, entries[page as usize], "page {page}");
            }
            let mut unpacked = vec![7; 4096];
            node.unpack(&memory, &mut unpacked);
            assert_eq!(unpacked, entries);
            assert_eq!(node.coverage(memory.nodes.words()), coverage);
            let (directory, table) = node.free(&mut memory);
            assert_eq!((directory + table + NODE_WORDS) as u32, words_of(&coverage));
            assert!(!node.exists(memory.nodes.words()));
        }
        assert_eq!(
            (memory.nodes.allocated_bytes(), memory.tables.allocated_bytes()),
            (NODE_BYTES, 0)
        );
    }
}
