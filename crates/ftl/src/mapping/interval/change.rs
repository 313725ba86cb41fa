//! What changes the shape of a tree: pages that no node covers yet, nodes and zones that became empty, compaction.

use dovetail_time::{SimSpan, SimTime};

use super::super::MapCost;
use super::address::LogicalPage;
use super::coverage::{Coverage, Run};
use super::map::{IntervalMap, LINE_ENTRIES};
use super::node::{Entries, Node, words_of};
use super::zone::ZoneNode;

/// A node becomes a candidate for compaction when it has more than this many covered pages for each valid one (IPLFS
/// paper §5.3: an efficiency below 50 %).
const CANDIDATE_COVERED: u32 = 2;

/// Compaction is done when it leaves at most this many tenths (IPLFS paper §5.3: smaller by 30 %).
const KEPT_TENTHS: u32 = 7;

/// How often the candidates are scanned (IPLFS paper §5.3).
const SCAN_PERIOD: SimSpan = SimSpan::from_ms(30_000);

/// Candidates that one call of [`IntervalMap::tick`] looks at. Assumed: about 0.1 ms of a controller's time.
const CANDIDATES_PER_TICK: usize = 16;

/// What a round of compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Candidates that were looked at.
    pub examined: u32,
    /// Nodes that were built anew.
    pub compacted: u32,
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
}

impl IntervalMap {
    /// Tells the map what time it is, so that it does what is due: every 30 s it compacts the candidates there are, a
    /// bounded number of them in each call.
    pub fn tick(&mut self, now: SimTime) -> Compaction {
        if now >= self.scan.last + SCAN_PERIOD {
            self.scan = Scan { last: now, left: self.candidates.len() };
        }
        let due = self.scan.left.min(CANDIDATES_PER_TICK);
        self.scan.left -= due;
        if due == 0 { Compaction::default() } else { self.compact(due) }
    }

    /// Looks at up to `limit` candidates and builds those anew that get smaller by 30 % or more.
    pub fn compact(&mut self, limit: usize) -> Compaction {
        let mut done = Compaction::default();
        for _ in 0..limit {
            let Some(&segment) = self.candidates.last() else {
                break;
            };
            self.compact_segment(segment, &mut done);
        }
        done
    }

    fn compact_segment(&mut self, segment: LogicalPage, done: &mut Compaction) {
        let (node, accesses) = self.node(segment);
        let Some(node) = node else {
            self.candidates.pop();
            return;
        };
        self.remove_candidate(node);
        node.unpack(self.arena.words(), &mut self.scratch);
        let tight = Coverage::tightest(&self.scratch, self.layout.min_region_pages());
        let (before, after) = (words_of(&node.coverage(self.arena.words())), words_of(&tight));
        done.examined += 1;
        done.cost.accesses += accesses + before.div_ceil(LINE_ENTRIES);
        if after * 10 <= before * KEPT_TENTHS {
            done.compacted += 1;
            done.freed_bytes += u64::from(before - after) * 4;
            done.cost.accesses += after.div_ceil(LINE_ENTRIES);
            self.exchange(segment, Some(node), &tight);
        }
    }

    /// Makes a node cover `page`; returns it and the run around the page, and adds what it cost.
    pub(super) fn cover(&mut self, page: LogicalPage, accesses: &mut u32) -> (Node, Entries) {
        let (offset, pages) = (self.layout.offset(page), self.layout.segment_pages());
        let old = self.node(page).0;
        let coverage = match old {
            None => {
                self.scratch.fill(0);
                Coverage::single(Run { first: offset, pages: pages - offset })
            }
            Some(node) => {
                node.unpack(self.arena.words(), &mut self.scratch);
                let mut coverage = node.coverage(self.arena.words());
                *accesses += words_of(&coverage).div_ceil(LINE_ENTRIES);
                coverage.extend(offset, pages);
                coverage
            }
        };
        *accesses += words_of(&coverage).div_ceil(LINE_ENTRIES);
        self.make_zone(page);
        let node = self.exchange(page, old, &coverage);
        let (entries, within) = node.find(self.arena.words(), offset);
        *accesses += within;
        let nothing = Entries { run: Run::default(), at: 0 };
        debug_assert!(entries.is_some(), "the coverage was made for this page");
        (node, entries.unwrap_or(nothing))
    }

    /// Puts a node with that coverage, filled from the scratch entries, in the place of `old`.
    fn exchange(&mut self, page: LogicalPage, old: Option<Node>, coverage: &Coverage) -> Node {
        let words = self.arena.words();
        let valid = old.map_or(0, |old| old.valid(words));
        let candidate = old.and_then(|old| old.candidate(words));
        if let Some(old) = old {
            self.free_node(old);
        }
        let node = Node::build(&mut self.arena, coverage, &self.scratch, valid);
        node.set_candidate(self.arena.words_mut(), candidate);
        self.counts.map_nodes += 1;
        self.counts.directory_words += coverage.directory_words() as u64;
        self.counts.covered_pages += u64::from(coverage.pages());
        self.set_node(page, Some(node));
        node
    }

    fn free_node(&mut self, node: Node) {
        let (directory, covered) = node.free(&mut self.arena);
        self.counts.map_nodes -= 1;
        self.counts.directory_words -= directory as u64;
        self.counts.covered_pages -= covered as u64;
        self.forget_recent();
    }

    fn make_zone(&mut self, page: LogicalPage) {
        let (area, zone) = (self.layout.area(page), self.layout.zone(page));
        if self.areas[area].get(zone).0.is_none() {
            let node = ZoneNode::build(&mut self.arena);
            self.counts.zone_nodes += 1;
            self.areas[area].insert(zone, node.0);
            self.moving |= self.areas[area].is_moving();
        }
    }

    /// Enters or removes the node of the segment of `page`; a zone without nodes is freed.
    fn set_node(&mut self, page: LogicalPage, node: Option<Node>) {
        let (area, zone) = (self.layout.area(page), self.layout.zone(page));
        let Some(zone_node) = self.areas[area].get(zone).0.map(ZoneNode) else {
            return;
        };
        if zone_node.set(self.arena.words_mut(), self.layout.segment(page), node) == 0 {
            zone_node.free(&mut self.arena);
            self.counts.zone_nodes -= 1;
            self.areas[area].remove(zone);
            self.moving |= self.areas[area].is_moving();
        }
    }

    /// A page of the node became invalid.
    #[inline]
    pub(super) fn invalidated(&mut self, page: LogicalPage, node: Node) {
        self.counts.valid_pages -= 1;
        let (valid, covered) = node.count(self.arena.words_mut(), false);
        if valid == 0 {
            self.drop_node(page, node);
        } else if valid * CANDIDATE_COVERED < covered && node.candidate(self.arena.words()).is_none() {
            self.add_candidate(page, node);
        }
    }

    fn drop_node(&mut self, page: LogicalPage, node: Node) {
        self.remove_candidate(node);
        self.free_node(node);
        self.set_node(page, None);
    }

    fn add_candidate(&mut self, page: LogicalPage, node: Node) {
        node.set_candidate(self.arena.words_mut(), Some(self.candidates.len()));
        self.candidates.push(LogicalPage(page.0 - u64::from(self.layout.offset(page))));
    }

    /// Takes a node off the list; the last candidate takes its place there.
    fn remove_candidate(&mut self, node: Node) {
        let Some(index) = node.candidate(self.arena.words()) else {
            return;
        };
        node.set_candidate(self.arena.words_mut(), None);
        self.candidates.swap_remove(index);
        if let Some(&moved) = self.candidates.get(index)
            && let (Some(moved), _) = self.node(moved)
        {
            moved.set_candidate(self.arena.words_mut(), Some(index));
        }
        if self.candidates.capacity() > 4 * self.candidates.len() {
            self.candidates.shrink_to(2 * self.candidates.len());
        }
    }
}
