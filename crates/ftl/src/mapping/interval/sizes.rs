//! Sizes of map nodes: as they stand in this drive's memory, and as the IPLFS paper counts them.

use super::address::{AREA_ZONES, Layout, SEGMENTS_PER_ZONE};
use super::coverage::{Coverage, CoveredRun};
use super::map::IntervalMap;
use super::node::words_of;
use super::zone::ZoneNode;

/// Bytes of a node's header: the code published with the IPLFS paper.
const HEADER: u64 = 10;
/// Bytes of a region in the directory, the same.
const REGION: u64 = 2;
/// Bytes in front of each run of entries, the same.
const RUN: u64 = 4;
/// Bytes of an entry.
const ENTRY: u64 = 4;

/// The way in which a node's size is counted when it is judged whether compaction is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSize {
    /// As it stands in memory: a directory has four bytes a region, and the drive keeps elsewhere
    /// which blocks of a page are valid.
    Own,
    /// As the code published with the IPLFS paper counts it: two bytes a region, four for each run
    /// of entries, and a bit for each block between the first and the last entry (IPLFS paper §5.3:
    /// a node of 4,624 bytes).
    Published,
}

impl NodeSize {
    pub(super) fn of(self, coverage: &Coverage, layout: Layout) -> u64 {
        match self {
            Self::Own => u64::from(words_of(coverage)) * 4,
            Self::Published => published(coverage, layout),
        }
    }
}

impl Layout {
    /// Bytes of a page table of that many pages, with a bit for each of their blocks: what the IPLFS
    /// paper compares its tree with (§5.3).
    pub const fn page_table_bytes(self, pages: u64) -> u64 {
        pages * ENTRY + self.bitmap_bytes(pages)
    }

    const fn bitmap_bytes(self, pages: u64) -> u64 {
        (pages * self.page_blocks()).div_ceil(8)
    }
}

fn published(coverage: &Coverage, layout: Layout) -> u64 {
    let runs: Vec<CoveredRun> =
        coverage.runs().iter().filter(|run| run.pages > 0).copied().collect();
    let (first, last) =
        runs.first().zip(runs.last()).map_or_else(Default::default, |(a, b)| (*a, *b));
    let spanned = u64::from(last.end() - first.first);
    let regions = spanned.div_ceil(u64::from(coverage.region_pages()));
    HEADER
        + layout.bitmap_bytes(spanned)
        + regions * REGION
        + apart(&runs) * RUN
        + u64::from(coverage.pages()) * ENTRY
}

/// Groups of runs that adjoin: each group has one start (§5.3).
fn apart(runs: &[CoveredRun]) -> u64 {
    runs.chunk_by(|run, next| run.end() == next.first).count() as u64
}

impl IntervalMap {
    /// Bytes of all map nodes, counted in that way. It looks at each of them.
    pub fn nodes_bytes(&self, size: NodeSize) -> u64 {
        let words = self.slabs.nodes.words();
        let mut bytes = 0;
        for area in &self.areas {
            let mut from = 0;
            while from < AREA_ZONES
                && let (Some((zone, node)), _) = area.next(from)
            {
                let nodes = (0..SEGMENTS_PER_ZONE).map(|segment| ZoneNode(node).node(segment));
                let nodes = nodes.filter(|node| node.exists(words));
                bytes += nodes.map(|node| size.of(&node.coverage(words), self.layout)).sum::<u64>();
                from = zone + 1;
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::coverage::RegionSize;
    use super::*;
    use dovetail_block::{AREA_BLOCKS, Lba};
    use dovetail_nand::Ppn;

    /// IPLFS paper §5.3: 4,624 bytes for a segment of pages of 16 KiB, 144 MiB for 512 GiB of them in
    /// a page table.
    #[test]
    fn a_whole_node_and_a_page_table_are_as_large_as_in_the_paper() {
        let whole = Coverage::single(CoveredRun { first: 0, pages: 1024 });
        let layout = Layout::new(4).unwrap();
        assert_eq!(NodeSize::Published.of(&whole, layout), 4624);
        assert_eq!(NodeSize::Own.of(&whole, layout), 4096 + 16);
        assert_eq!(layout.page_table_bytes(1 << 25), 144 << 20);
    }

    #[test]
    fn a_cut_node_counts_its_regions_its_runs_and_the_span_of_its_bitmap() {
        let mut entries = vec![0; 1024];
        entries[100..300].fill(1);
        entries[400..500].fill(1);
        let cut = Coverage::of(&entries, RegionSize::Fixed(256), 16);
        // 64 pages a region: 100 to 500 are seven regions; the runs 100..300 and 400..500.
        let layout = Layout::new(4).unwrap();
        assert_eq!(NodeSize::Published.of(&cut, layout), 10 + 200 + 7 * 2 + 2 * 4 + 300 * 4);
    }

    #[test]
    fn the_nodes_of_a_map_are_counted_one_by_one() {
        let mut map = IntervalMap::new(Layout::new(4).unwrap(), 0);
        for block in [0, 3 * 4096, 2 * AREA_BLOCKS + 100, 5 * AREA_BLOCKS] {
            map.update(map.layout().page_of(Lba(block)).unwrap(), Some(Ppn(1)));
        }
        let segment = 5 * AREA_BLOCKS + 4 * 4096;
        for block in (segment..segment + 4096).step_by(4) {
            map.update(map.layout().page_of(Lba(block)).unwrap(), Some(Ppn(1)));
        }
        for block in (segment + 512..segment + 2048).step_by(4) {
            map.update(map.layout().page_of(Lba(block)).unwrap(), None);
        }
        map.compact_all();
        assert!(map.memory().directories > 0, "a compacted node is among them");
        let memory = map.memory();
        let own = memory.map_nodes + memory.directories + memory.tables;
        assert_eq!(map.nodes_bytes(NodeSize::Own), own);
        assert!(map.nodes_bytes(NodeSize::Published) > own, "a bit a block is more than a word");
    }
}
