//! The next mapped page, in time that goes with the nodes on the way, not with the distance: a discard of a huge range
//! visits what is mapped in it and nothing else.

use super::super::MapCost;
use super::address::{AREAS, LogicalPage, SEGMENTS_PER_ZONE, Segment};
use super::map::{IntervalMap, LINE_ENTRIES};
use super::node::NODE_WORDS;
use super::zone::ZoneNode;

impl IntervalMap {
    /// The first mapped page of `from..until`, and what it took to find it or to know that there is none: cache lines of
    /// the metadata's table, of roots, of zone nodes and of mapping tables.
    pub fn next_mapped(&self, from: LogicalPage, until: LogicalPage) -> (Option<LogicalPage>, MapCost) {
        let mut lines = 0;
        let found = self.next_of_metadata(from, until, &mut lines);
        let found = found.or_else(|| self.next_of_trees(from, until, &mut lines));
        (found.filter(|&page| page < until), MapCost { accesses: lines.max(1) })
    }

    fn next_of_metadata(
        &self,
        from: LogicalPage,
        until: LogicalPage,
        lines: &mut u32,
    ) -> Option<LogicalPage> {
        let end = until.0.min(self.metadata.len() as u64);
        let entries = self.metadata.get(usize::try_from(from.0).ok()?..end as usize)?;
        let index = entries.iter().position(|&entry| entry != 0);
        *lines += (index.unwrap_or(entries.len()) as u32).div_ceil(LINE_ENTRIES);
        Some(LogicalPage(from.0 + index? as u64))
    }

    fn next_of_trees(&self, from: LogicalPage, until: LogicalPage, lines: &mut u32) -> Option<LogicalPage> {
        let mut at = from;
        while at < until {
            let segment =
                self.next_segment(self.layout.segment_of(at), self.layout.segment_after(until), lines)?;
            let start = self.layout.first_page(segment).max(at);
            let (node, above) = self.node(start);
            let (found, looked) = node?.next_valid(&self.slabs, self.layout.offset(start));
            *lines += above + 1 + looked.div_ceil(LINE_ENTRIES);
            if let Some(offset) = found {
                return Some(LogicalPage(self.layout.first_page(segment).0 + u64::from(offset)));
            }
            at = self.layout.first_page(Segment(segment.0 + 1));
        }
        None
    }

    /// The first segment of `from..until` with a node.
    fn next_segment(&self, from: Segment, until: Segment, lines: &mut u32) -> Option<Segment> {
        let last_area = AREAS.min(until.area() + 1);
        (from.area()..last_area).find_map(|area| {
            let start = from.max(Segment::first_of(area));
            let (mut zone, mut in_zone) = (start.zone(), start.in_zone());
            loop {
                let (next, node) = self.areas[area].next(zone, lines)?;
                in_zone = if next == zone { in_zone } else { 0 };
                let segment = ZoneNode(node).next_node(self.slabs.nodes.words(), in_zone);
                let passed = segment.unwrap_or(SEGMENTS_PER_ZONE) - in_zone;
                *lines += ((passed * NODE_WORDS) as u32).div_ceil(LINE_ENTRIES);
                if let Some(in_zone) = segment {
                    return Some(Segment::of(area, next, in_zone)).filter(|&segment| segment < until);
                }
                (zone, in_zone) = (next + 1, 0);
            }
        })
    }
}
