//! Changes of the shape of a tree: pages that no node covers yet, nodes and zones that became
//! empty, compaction.

use dovetail_time::{SimSpan, SimTime};

use super::super::MapCost;
use super::address::LogicalPage;
use super::coverage::{Coverage, CoveredRun, RegionSize};
use super::map::{IntervalMap, LINE_ENTRIES};
use super::node::{Entries, Node, words_of};
use super::sizes::NodeSize;
use super::zone::ZoneNode;

/// Candidates that one call of [`IntervalMap::tick`] looks at. Assumed: about 0.1 ms of a
/// controller's time.
const CANDIDATES_PER_TICK: usize = 16;

/// The choice of what is compacted, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionPolicy {
    /// A node is a candidate once less than this share of its covered pages is valid.
    pub candidate_percent: u32,
    /// It is built anew if that leaves at most this share of its memory.
    pub kept_percent: u32,
    /// Period of the scans for candidates.
    pub period: SimSpan,
    /// The choice of regions for a node that is built anew.
    pub regions: RegionSize,
    /// The way in which the node's size before and after is counted for `kept_percent`. What
    /// compaction frees is counted as it stands in memory.
    pub size: NodeSize,
}

impl CompactionPolicy {
    /// The paper's (IPLFS paper §5.3 and §6.4): an efficiency below 50 %, smaller by 30 %, every 30
    /// s, regions of the smallest hole's size. Sizes are those of this drive's memory, which the
    /// policy is to save.
    pub const PAPER: Self = Self {
        candidate_percent: 50,
        kept_percent: 70,
        period: SimSpan::from_ms(30_000),
        regions: RegionSize::SmallestHole,
        size: NodeSize::Own,
    };

    /// The same, but a node is a candidate as soon as it can get smaller by 30 %, and its regions
    /// are what needs the least memory. With the paper's, a map of which half is dead may keep all
    /// of it: a node that is exactly half valid is no candidate.
    pub const EAGER: Self =
        Self { candidate_percent: 70, regions: RegionSize::LeastMemory, ..Self::PAPER };

    /// As the code published with the paper: every node that has changed is a candidate, every 10
    /// s, and holes that are small or at an edge do not count.
    pub const PUBLISHED: Self = Self {
        candidate_percent: 100,
        period: SimSpan::from_ms(10_000),
        regions: RegionSize::SmallestInnerHole,
        size: NodeSize::Published,
        ..Self::PAPER
    };

    /// Half the rest that is left: a node is built anew if it gets smaller by 15 %.
    pub const TIGHT: Self = Self { candidate_percent: 85, kept_percent: 85, ..Self::EAGER };
}

/// The outcome of a round of compaction.
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
    /// Accesses to the drive's memory: a walk for each candidate, and each cache line that was read
    /// or written.
    pub cost: MapCost,
}

/// Time of the next scan for candidates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    last: SimTime,
    /// Candidates of this scan that are still to be looked at.
    left: usize,
    /// Set if slabs may still be worth emptying after it.
    sparse: bool,
}

impl IntervalMap {
    /// Tells the map what time it is, so that it does what is due: once in the policy's period it
    /// compacts the candidates there are, a bounded number of them in each call.
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

    /// Compacts all candidates that get small enough by it, and moves tables out of slabs that are
    /// all but empty, until nothing is left to do.
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
        let words =
            self.slabs.tables.evacuate(|node, table| Node(node).set_table(nodes, table)) as u32;
        if words > 0 {
            self.lookaside.clear();
        }
        done.moved_bytes += u64::from(words) * 4;
        done.cost.accesses += 2 * words.div_ceil(LINE_ENTRIES);
        words > 0
    }

    fn compact_segment(&mut self, segment: LogicalPage, done: &mut Compaction) {
        let (node, accesses) = self.node(segment);
        let Some(node) = node.filter(|node| node.exists(self.slabs.nodes.words())) else {
            self.candidates.pop();
            return;
        };
        self.remove_candidate(node);
        node.unpack(&self.slabs, &mut self.scratch);
        let tight =
            Coverage::of(&self.scratch, self.policy.regions, self.layout.min_region_pages());
        let old = node.coverage(self.slabs.nodes.words());
        let (before, after) = (words_of(&old), words_of(&tight));
        let size = |coverage| self.policy.size.of(coverage, self.layout);
        done.examined += 1;
        done.cost.accesses += accesses + before.div_ceil(LINE_ENTRIES);
        if size(&tight) * 100 <= size(&old) * u64::from(self.policy.kept_percent) {
            done.compacted += 1;
            done.freed_bytes += u64::from(before.saturating_sub(after)) * 4;
            done.cost.accesses += after.div_ceil(LINE_ENTRIES);
            self.exchange(segment, node, &tight);
        }
    }

    /// Makes a node cover `page`; returns the node and the run around the page, and adds what it
    /// cost.
    pub(super) fn cover(&mut self, page: LogicalPage, accesses: &mut u32) -> (Node, Entries) {
        let (offset, pages) = (self.layout.offset(page), self.layout.segment_pages());
        let node = self.make_zone(page).node(self.layout.segment_of(page).in_zone());
        let coverage = if node.exists(self.slabs.nodes.words()) {
            node.unpack(&self.slabs, &mut self.scratch);
            let mut coverage = node.coverage(self.slabs.nodes.words());
            *accesses += words_of(&coverage).div_ceil(LINE_ENTRIES);
            coverage.extend(offset, pages);
            coverage
        } else {
            self.scratch.fill(0);
            Coverage::single(CoveredRun { first: offset, pages: pages - offset })
        };
        *accesses += words_of(&coverage).div_ceil(LINE_ENTRIES);
        self.exchange(page, node, &coverage);
        let (entries, within) = node.find(self.slabs.nodes.words(), offset);
        *accesses += within;
        debug_assert!(entries.is_some(), "the coverage was made for this page");
        (node, entries.unwrap_or_default())
    }

    /// Makes the node of the segment of `page` anew with that coverage, filled from the scratch
    /// entries.
    fn exchange(&mut self, page: LogicalPage, node: Node, coverage: &Coverage) {
        let words = self.slabs.nodes.words();
        let (valid, candidate) = (node.valid(words), node.candidate(words));
        if node.exists(words) {
            self.free_node(page, node);
        }
        node.build(&mut self.slabs, coverage, &self.scratch, valid);
        node.set_candidate(self.slabs.nodes.words_mut(), candidate);
        self.counts.map_nodes += 1;
        self.counts.directory_words += coverage.directory_words() as u64;
        self.counts.covered_pages += u64::from(coverage.pages());
        self.lookaside.fit(self.counts.covered_pages);
    }

    fn free_node(&mut self, page: LogicalPage, node: Node) {
        let (directory, covered) = node.free(&mut self.slabs);
        self.counts.map_nodes -= 1;
        self.counts.directory_words -= directory as u64;
        self.counts.covered_pages -= covered as u64;
        self.lookaside.forget(page);
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

    /// A page of the segment became valid, or invalid; returns the accesses: the node, and what is
    /// freed.
    pub(super) fn recount(&mut self, page: LogicalPage, node: Node, valid: bool) -> u32 {
        const COUNT: u32 = 1;
        let words = self.slabs.nodes.words_mut();
        let (count, covered) = node.count(words, valid);
        if valid {
            self.counts.valid_pages += 1;
            return COUNT;
        }
        self.counts.valid_pages -= 1;
        if count == 0 {
            return COUNT + self.drop_node(page, node);
        }
        if count * 100 < covered * self.policy.candidate_percent && node.candidate(words).is_none()
        {
            self.add_candidate(page, node);
        }
        COUNT
    }

    /// Frees a node without valid pages, and its zone if it was the last one there; returns the
    /// accesses.
    fn drop_node(&mut self, page: LogicalPage, node: Node) -> u32 {
        self.remove_candidate(node);
        self.free_node(page, node);
        self.lookaside.fit(self.counts.covered_pages);
        let segment = self.layout.segment_of(page);
        let (area, zone) = (segment.area(), segment.zone());
        let (Some(zone_node), accesses) = self.areas[area].get(zone) else {
            return 0;
        };
        let (empty, lines) = ZoneNode(zone_node).is_empty(self.slabs.nodes.words());
        if empty {
            ZoneNode(zone_node).free(&mut self.slabs.nodes);
            self.counts.zone_nodes -= 1;
            self.areas[area].remove(zone);
            self.moving |= self.areas[area].is_moving();
        }
        accesses + lines
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
        let moved = self.candidates.get(index).and_then(|&moved| self.node(moved).0);
        if let Some(moved) = moved.filter(|moved| moved.exists(words)) {
            moved.set_candidate(self.slabs.nodes.words_mut(), Some(index));
        }
        if self.candidates.capacity() > 4 * self.candidates.len() {
            self.candidates.shrink_to(2 * self.candidates.len());
        }
    }
}
