//! What changes the shape of a tree: pages that no node covers yet, nodes and zones that became empty, compaction.

use dovetail_time::{SimSpan, SimTime};

use super::super::MapCost;
use super::address::LogicalPage;
use super::coverage::{Coverage, Run};
use super::map::{IntervalMap, LINE_ENTRIES};
use super::node::{Entries, Node, words_of};
use super::zone::{Slot, ZoneNode};

/// Candidates that one call of [`IntervalMap::tick`] looks at. Assumed: about 0.1 ms of a controller's time.
const CANDIDATES_PER_TICK: usize = 16;

/// What is compacted, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionPolicy {
    /// A node is a candidate once less than this share of its covered pages is valid.
    pub candidate_percent: u32,
    /// It is built anew if that leaves at most this share of its memory.
    pub kept_percent: u32,
    /// How often the candidates are scanned.
    pub period: SimSpan,
}

impl CompactionPolicy {
    /// The paper's (IPLFS paper §5.3 and §6.4): an efficiency below 50 %, smaller by 30 %, every 30 s.
    pub const PAPER: Self =
        Self { candidate_percent: 50, kept_percent: 70, period: SimSpan::from_ms(30_000) };

    /// The same, but a node is a candidate as soon as it can get smaller by 30 %. With the paper's, a map of which half
    /// is dead may keep all of it: a node that is exactly half valid is no candidate.
    pub const EAGER: Self = Self { candidate_percent: 70, ..Self::PAPER };

    /// Half the rest that is left: a node is built anew if it gets smaller by 15 %.
    pub const TIGHT: Self = Self { candidate_percent: 85, kept_percent: 85, ..Self::PAPER };
}

/// What a round of compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Candidates that were looked at.
    pub examined: u32,
    /// Nodes that were built anew.
    pub compacted: u32,
    /// Bytes of tables that were moved to free the slabs they were in.
    pub moved_bytes: u64,
    /// Bytes of nodes, directories and tables that became free.
    pub freed_bytes: u64,
    /// Accesses to the drive's memory: a walk for each candidate, and each cache line that was read or written.
    pub cost: MapCost,
}

/// When the candidates are scanned.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    last: SimTime,
    /// Candidates of this scan that are still to be looked at.
    left: usize,
    /// Whether slabs may still be worth emptying after it.
    sparse: bool,
}

impl IntervalMap {
    /// Tells the map what time it is, so that it does what is due: every 30 s it compacts the candidates there are, a
    /// bounded number of them in each call.
    pub fn tick(&mut self, now: SimTime) -> Compaction {
        if now >= self.scan.last + self.policy.period {
            self.scan = Scan { last: now, left: self.candidates.len(), sparse: true };
        }
        let due = self.scan.left.min(CANDIDATES_PER_TICK);
        self.scan.left -= due;
        let mut done = Compaction::default();
        if due > 0 {
            self.compact_candidates(due, &mut done);
        } else if self.scan.sparse {
            self.scan.sparse = self.evacuate(&mut done);
        }
        done
    }

    /// Compacts all candidates that get small enough by it, and moves tables out of slabs that are all but empty, until
    /// nothing is left to do.
    pub fn compact_all(&mut self) -> Compaction {
        let mut done = Compaction::default();
        self.compact_candidates(self.candidates.len(), &mut done);
        while self.evacuate(&mut done) {}
        done
    }

    /// Looks at up to `limit` candidates.
    pub fn compact(&mut self, limit: usize) -> Compaction {
        let mut done = Compaction::default();
        self.compact_candidates(limit, &mut done);
        done
    }

    fn compact_candidates(&mut self, limit: usize, done: &mut Compaction) {
        for _ in 0..limit {
            let Some(&segment) = self.candidates.last() else {
                break;
            };
            self.compact_segment(segment, done);
        }
    }

    /// Empties one chunk of tables, if that is worth it.
    fn evacuate(&mut self, done: &mut Compaction) -> bool {
        let nodes = self.slabs.nodes.words_mut();
        let words = self.slabs.tables.evacuate(|slot, table| Slot(slot).table_moved(nodes, table)) as u32;
        if words > 0 {
            self.forget_recent();
        }
        done.moved_bytes += u64::from(words) * 4;
        done.cost.accesses += 2 * words.div_ceil(LINE_ENTRIES);
        words > 0
    }

    fn compact_segment(&mut self, segment: LogicalPage, done: &mut Compaction) {
        let (Some(slot), accesses) = self.slot(segment) else {
            self.candidates.pop();
            return;
        };
        let Some(node) = slot.node(self.slabs.nodes.words()) else {
            self.candidates.pop();
            return;
        };
        self.remove_candidate(node);
        node.unpack(&self.slabs, &mut self.scratch);
        let tight = Coverage::tightest(&self.scratch, self.layout.min_region_pages());
        let (before, after) = (words_of(&node.coverage(self.slabs.nodes.words())), words_of(&tight));
        done.examined += 1;
        done.cost.accesses += accesses + 1 + before.div_ceil(LINE_ENTRIES);
        if after * 100 <= before * self.policy.kept_percent {
            done.compacted += 1;
            done.freed_bytes += u64::from(before - after) * 4;
            done.cost.accesses += after.div_ceil(LINE_ENTRIES);
            self.exchange(slot, &tight);
        }
    }

    /// Makes a node cover `page`; returns its slot and the run around the page, and adds what it cost.
    pub(super) fn cover(&mut self, page: LogicalPage, accesses: &mut u32) -> (Slot, Entries) {
        let (offset, pages) = (self.layout.offset(page), self.layout.segment_pages());
        let slot = self.make_zone(page).slot(self.layout.segment_of(page).in_zone());
        let coverage = match slot.node(self.slabs.nodes.words()) {
            None => {
                self.scratch.fill(0);
                Coverage::single(Run { first: offset, pages: pages - offset })
            }
            Some(node) => {
                node.unpack(&self.slabs, &mut self.scratch);
                let mut coverage = node.coverage(self.slabs.nodes.words());
                *accesses += words_of(&coverage).div_ceil(LINE_ENTRIES);
                coverage.extend(offset, pages);
                coverage
            }
        };
        *accesses += words_of(&coverage).div_ceil(LINE_ENTRIES);
        let node = self.exchange(slot, &coverage);
        let (entries, within) = node.find(self.slabs.nodes.words(), offset);
        *accesses += within;
        debug_assert!(entries.is_some(), "the coverage was made for this page");
        (slot, entries.unwrap_or(Entries { run: Run::default(), at: 0 }))
    }

    /// Puts a node with that coverage, filled from the scratch entries, in the place of the slot's present one.
    fn exchange(&mut self, slot: Slot, coverage: &Coverage) -> Node {
        let words = self.slabs.nodes.words();
        let old = slot.node(words);
        let valid = old.map_or(0, |old| old.valid(words));
        let candidate = old.and_then(|old| old.candidate(words));
        if let Some(old) = old {
            self.free_node(old);
        }
        let node = Node::build(&mut self.slabs, slot, coverage, &self.scratch, valid);
        let words = self.slabs.nodes.words_mut();
        node.set_candidate(words, candidate);
        slot.set(words, Some(node), self.layout.segment_pages());
        self.counts.map_nodes += 1;
        self.counts.directory_words += coverage.directory_words() as u64;
        self.counts.covered_pages += u64::from(coverage.pages());
        node
    }

    fn free_node(&mut self, node: Node) {
        let (directory, covered) = node.free(&mut self.slabs);
        self.counts.map_nodes -= 1;
        self.counts.directory_words -= directory as u64;
        self.counts.covered_pages -= covered as u64;
        self.forget_recent();
    }

    /// The zone node of `page`, a new one if it has none.
    fn make_zone(&mut self, page: LogicalPage) -> ZoneNode {
        let segment = self.layout.segment_of(page);
        let (area, zone) = (segment.area(), segment.zone());
        if let (Some(node), _) = self.areas[area].get(zone) {
            return ZoneNode(node);
        }
        let node = ZoneNode::build(&mut self.slabs.nodes);
        self.counts.zone_nodes += 1;
        self.areas[area].insert(zone, node.0);
        self.moving |= self.areas[area].is_moving();
        node
    }

    /// A page of the segment became valid, or invalid.
    pub(super) fn recount(&mut self, page: LogicalPage, slot: Slot, valid: bool) {
        let words = self.slabs.nodes.words_mut();
        let Some(node) = slot.node(words) else {
            return;
        };
        let (count, covered) = node.count(words, valid);
        if valid {
            self.counts.valid_pages += 1;
            return;
        }
        self.counts.valid_pages -= 1;
        if count == 0 {
            self.drop_node(page, slot, node);
        } else if count * 100 < covered * self.policy.candidate_percent && node.candidate(words).is_none() {
            self.add_candidate(page, node);
        }
    }

    /// Frees a node without valid pages, and its zone if it was the last one there.
    fn drop_node(&mut self, page: LogicalPage, slot: Slot, node: Node) {
        self.remove_candidate(node);
        self.free_node(node);
        slot.set(self.slabs.nodes.words_mut(), None, 0);
        let segment = self.layout.segment_of(page);
        let (area, zone) = (segment.area(), segment.zone());
        let (zone_node, _) = self.areas[area].get(zone);
        if let Some(zone_node) =
            zone_node.map(ZoneNode).filter(|node| node.is_empty(self.slabs.nodes.words()))
        {
            zone_node.free(&mut self.slabs.nodes);
            self.counts.zone_nodes -= 1;
            self.areas[area].remove(zone);
            self.moving |= self.areas[area].is_moving();
        }
    }

    fn add_candidate(&mut self, page: LogicalPage, node: Node) {
        node.set_candidate(self.slabs.nodes.words_mut(), Some(self.candidates.len()));
        self.candidates.push(LogicalPage(page.0 - u64::from(self.layout.offset(page))));
    }

    /// Takes a node off the list; the last candidate takes its place there.
    fn remove_candidate(&mut self, node: Node) {
        let Some(index) = node.candidate(self.slabs.nodes.words()) else {
            return;
        };
        node.set_candidate(self.slabs.nodes.words_mut(), None);
        self.candidates.swap_remove(index);
        let words = self.slabs.nodes.words();
        let moved = self.candidates.get(index).and_then(|&moved| self.slot(moved).0?.node(words));
        if let Some(moved) = moved {
            moved.set_candidate(self.slabs.nodes.words_mut(), Some(index));
        }
        if self.candidates.capacity() > 4 * self.candidates.len() {
            self.candidates.shrink_to(2 * self.candidates.len());
        }
    }
}
