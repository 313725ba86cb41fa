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

const HEADER_WORDS: usize = 4;

/// Bytes of a map node's header.
pub(super) const NODE_BYTES: u64 = HEADER_WORDS as u64 * 4;

/// A map node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node(pub(super) Block);

/// Where the entries of a covered run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entries {
    /// The run, in pages of the segment.
    pub(super) run: Run,
    /// Index of the first page's entry among all words.
    pub(super) at: usize,
}

fn halves(word: u32) -> (u32, u32) {
    (word & 0xFFFF, word >> 16)
}

fn word(low: u32, high: u32) -> u32 {
    low | high << 16
}

impl Node {
    /// A node with that coverage; `entries` holds an entry for each page of the segment.
    pub(super) fn build(arena: &mut Arena, coverage: &Coverage, entries: &[u32], valid: u32) -> Self {
        let node = Self(arena.alloc(HEADER_WORDS + coverage.directory_words()));
        let table = arena.alloc(coverage.pages() as usize);
        let words = arena.words_mut();
        words[node.0.at()] = table.word();
        words[node.0.at() + 1] = word(valid, coverage.pages());
        let mut next = 0;
        for (region, run) in coverage.runs().iter().enumerate() {
            if coverage.directory_words() > 0 {
                words[node.0.at() + HEADER_WORDS + region] = word(run.first, next as u32);
            }
            let source = &entries[run.first as usize..run.end() as usize];
            words[table.at() + next..][..source.len()].copy_from_slice(source);
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
    pub(super) fn free(self, arena: &mut Arena) -> (usize, usize) {
        let (table, covered) = (self.table(arena.words()), self.covered(arena.words()) as usize);
        let directory = self.directory_words(arena.words());
        if let Some(table) = table {
            arena.free(table, covered);
        }
        arena.free(self.0, HEADER_WORDS + directory);
        (directory, covered)
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
    pub(super) fn unpack(self, words: &[u32], entries: &mut [u32]) {
        entries.fill(0);
        let Some(table) = self.table(words) else {
            return;
        };
        let mut next = table.at();
        for run in self.coverage(words).runs() {
            let run_entries = &words[next..][..run.pages as usize];
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
        let mut arena = Arena::new();
        let entries: Vec<u32> =
            (0..4096).map(|page| if page / 200 % 3 == 1 { page + 1 } else { 0 }).collect();
        let tight = Coverage::tightest(&entries, 64);
        let whole = Coverage::single(Run { first: 0, pages: 4096 });
        for coverage in [tight, whole] {
            let node = Node::build(&mut arena, &coverage, &entries, 1);
            for page in 0..4096 {
                let (found, _) = node.find(arena.words(), page);
                let entry =
                    found.map_or(0, |found| arena.words()[found.at + (page - found.run.first) as usize]);
                assert_eq!(entry, entries[page as usize], "page {page}");
            }
            let mut unpacked = vec![7; 4096];
            node.unpack(arena.words(), &mut unpacked);
            assert_eq!(unpacked, entries);
            assert_eq!(node.coverage(arena.words()), coverage);
            let (directory, table) = node.free(&mut arena);
            assert_eq!((directory + table + HEADER_WORDS) as u32, words_of(&coverage));
        }
        assert_eq!(arena.allocated_bytes(), 0);
    }
}
