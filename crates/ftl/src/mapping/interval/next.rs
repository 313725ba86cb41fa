//! Finding what is mapped in a range of addresses: over zones, segments and runs, past all that is
//! not there.

use std::ops::Range;

use dovetail_nand::Ppn;

use super::super::MapCost;
use super::address::{AREA_ZONES, AREAS, LogicalPage, SEGMENTS_PER_ZONE, Segment};
use super::map::{IntervalMap, LINE_ENTRIES};
use super::node::{NODE_WORDS, Node};
use super::zone::ZoneNode;

/// A walk over the mapped pages of a range.
struct Search<'a> {
    map: &'a IntervalMap,
    pages: Range<u64>,
    /// Pages that are still to be told.
    left: usize,
    tell: &'a mut dyn FnMut(LogicalPage, Ppn),
    accesses: u32,
}

impl IntervalMap {
    /// Tells the first `most` mapped pages of `pages` (indices of logical pages), in their order;
    /// returns the accesses.
    pub fn find_mapped(
        &self,
        pages: Range<u64>,
        most: usize,
        tell: &mut dyn FnMut(LogicalPage, Ppn),
    ) -> MapCost {
        let mut search = Search { map: self, pages, left: most, tell, accesses: 0 };
        search.in_metadata();
        search.in_areas();
        MapCost { accesses: search.accesses }
    }

    /// The first mapped page of `pages`, and the accesses to know.
    pub fn next_mapped(&self, pages: Range<u64>) -> (Option<LogicalPage>, MapCost) {
        let mut next = None;
        let cost = self.find_mapped(pages, 1, &mut |page, _| next = Some(page));
        (next, cost)
    }

    fn first_page(&self, segment: Segment) -> u64 {
        segment.0 * u64::from(self.layout.segment_pages())
    }
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.left == 0 || self.pages.is_empty()
    }

    /// The entries of consecutive pages from `first` on.
    fn in_entries(&mut self, first: u64, entries: &[u32]) {
        let skipped = self.pages.start.saturating_sub(first).min(entries.len() as u64);
        let start = self.pages.start.max(first);
        for (page, &entry) in (first + skipped..).zip(&entries[skipped as usize..]) {
            if self.left == 0 || page >= self.pages.end {
                break;
            }
            if let Some(ppn) = entry.checked_sub(1) {
                (self.tell)(LogicalPage(page), Ppn(ppn));
                self.left -= 1;
            }
            self.pages.start = page + 1;
        }
        self.accesses += (self.pages.start.saturating_sub(start) as u32).div_ceil(LINE_ENTRIES);
    }

    fn in_metadata(&mut self) {
        let map = self.map;
        let until = self.pages.end.min(map.metadata.len() as u64);
        if self.pages.start < until {
            let start = self.pages.start;
            self.in_entries(start, &map.metadata[start as usize..until as usize]);
        }
    }

    fn in_areas(&mut self) {
        while !self.is_over() {
            let segment = self.map.layout.segment_of(LogicalPage(self.pages.start));
            if segment.area() >= AREAS {
                return;
            }
            let (next, accesses) = self.map.areas[segment.area()].next(segment.zone());
            self.accesses += accesses;
            let (zone, node) = next.map_or((AREA_ZONES, None), |(zone, node)| (zone, Some(node)));
            let zone =
                Segment(((segment.area() as u64 * AREA_ZONES) + zone) * SEGMENTS_PER_ZONE as u64);
            self.skip_to(zone);
            if let Some(node) = node {
                self.in_zone(zone, ZoneNode(node));
            }
        }
    }

    fn skip_to(&mut self, segment: Segment) {
        self.pages.start = self.pages.start.max(self.map.first_page(segment));
    }

    fn in_zone(&mut self, first: Segment, zone: ZoneNode) {
        let words = self.map.slabs.nodes.words();
        let start = self.map.layout.segment_of(LogicalPage(self.pages.start)).0 - first.0;
        for index in start..SEGMENTS_PER_ZONE as u64 {
            if self.is_over() {
                return;
            }
            self.accesses +=
                u32::from((index as u32 * NODE_WORDS as u32).is_multiple_of(LINE_ENTRIES));
            let segment = Segment(first.0 + index);
            let node = zone.node(index as usize);
            if node.exists(words) {
                self.in_node(segment, node);
            }
            if self.left > 0 {
                self.skip_to(Segment(segment.0 + 1));
            }
        }
    }

    fn in_node(&mut self, segment: Segment, node: Node) {
        let (words, tables) = (self.map.slabs.nodes.words(), self.map.slabs.tables.words());
        let first = self.map.first_page(segment);
        for run in node.coverage(words).runs().iter().filter(|run| run.pages > 0) {
            let (entries, accesses) = node.find(words, run.first);
            self.accesses += accesses;
            if let Some(entries) = entries
                && self.pages.start < first + u64::from(run.end())
                && !self.is_over()
            {
                let start = first + u64::from(run.first);
                self.in_entries(start, &tables[entries.at..][..run.pages as usize]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::Layout;
    use super::*;

    #[test]
    fn the_walk_goes_from_the_metadata_table_into_the_trees() {
        let mut map = IntervalMap::new(Layout::SINGLE_BLOCKS, 4096);
        let pages = [3, 4095, 4096, 9000, 1 << 58, (7 << 58) - 1];
        for (i, &page) in pages.iter().enumerate() {
            map.update(LogicalPage(page), Some(Ppn(i as u32)));
        }
        assert_eq!(map.mapped(), 6);
        for (from, until, most, expected) in [
            (0, 7 << 58, 9, &pages[..]),
            (0, 7 << 58, 3, &pages[..3]),
            (4, 4096, 9, &pages[1..2]),
            (4096, 1 << 58, 9, &pages[2..4]),
            (9001, (7 << 58) - 1, 9, &pages[4..5]),
            (5, 5, 9, &[]),
        ] {
            let mut found = Vec::new();
            let cost = map.find_mapped(from..until, most, &mut |page, _| found.push(page.index()));
            assert_eq!(found, expected, "{most} of {from}..{until}");
            assert!(cost.accesses < 3000, "{cost:?}");
        }
    }
}
