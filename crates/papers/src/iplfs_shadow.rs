//! Interval maps of several policies beside one drive: they are told what the drive is told, and
//! compared.

use std::collections::BTreeMap;
use std::ops::Range;

use dovetail_block::{AREA_BLOCKS, AREAS, Lba};
use dovetail_ftl::mapping::interval::{CompactionPolicy, IntervalMap, Layout};
use dovetail_host::{Request, RequestKind};
use dovetail_nand::Ppn;
use dovetail_time::SimTime;

/// Blocks of a page of 16 KiB (IPLFS paper §5.1).
pub(crate) const BLOCKS_PER_PAGE: u64 = 4;
/// Blocks of a mapping segment.
const SEGMENT_BLOCKS: u64 = 4096;
const BLOCK_KIB: u64 = 4;
/// The smallest hole that counts for the size of regions.
const LEAST_HOLE_KIB: u64 = 256;
/// Bytes of the table entry of a page.
pub(crate) const ENTRY: u64 = 4;
/// Sizes that are noted over time.
const NOTE_EVERY: u64 = 256;

/// One of the maps.
pub(crate) struct Tracked {
    pub(crate) map: IntervalMap,
    pub(crate) compacts: bool,
}

/// Blocks of a log that were written, and that were discarded.
#[derive(Clone, Copy, Default)]
pub(crate) struct Volume {
    pub(crate) written: u64,
    pub(crate) discarded: u64,
}

/// Maps, and which blocks are live.
pub(crate) struct Shadow {
    layout: Layout,
    /// The live blocks of each page, a bit each.
    live: BTreeMap<u64, u8>,
    pub(crate) maps: Vec<Tracked>,
    pub(crate) volumes: [Volume; AREAS as usize],
    /// Factor by which time goes faster than on the drive: a run on a smaller one is as much
    /// shorter, and compacts as many times.
    stretch: f64,
    requests: u64,
    /// For each map what its map nodes took by the table of the live pages, over time.
    pub(crate) ratios: Vec<Vec<f64>>,
}

impl Shadow {
    pub(crate) fn new(layout: Layout, policies: &[(CompactionPolicy, bool)], stretch: f64) -> Self {
        let track = |&(policy, compacts): &(CompactionPolicy, bool)| Tracked {
            map: IntervalMap::new(layout, 0).with_policy(policy),
            compacts,
        };
        Self {
            layout,
            live: BTreeMap::new(),
            maps: policies.iter().map(track).collect(),
            volumes: [Volume::default(); AREAS as usize],
            stretch,
            requests: 0,
            ratios: vec![Vec::new(); policies.len()],
        }
    }

    /// A command reached the drive.
    pub(crate) fn see(&mut self, request: &Request) {
        let blocks =
            request.range.start.0..request.range.start.0.saturating_add(request.range.blocks);
        let area = (blocks.start / AREA_BLOCKS).min(AREAS - 1) as usize;
        match request.kind {
            RequestKind::Write => {
                self.volumes[area].written += request.range.blocks;
                self.write(blocks);
            }
            RequestKind::Discard => {
                self.volumes[area].discarded += self.discard(blocks);
            }
            RequestKind::Read | RequestKind::Flush | RequestKind::Remap | RequestKind::Zone => {
                return;
            }
        }
        self.tick(request.at);
    }

    fn tick(&mut self, at: SimTime) {
        let now = SimTime::from_ns((at.as_ns() as f64 * self.stretch) as u64);
        for tracked in self.maps.iter_mut().filter(|tracked| tracked.compacts) {
            tracked.map.tick(now);
        }
        self.requests += 1;
        if self.requests.is_multiple_of(NOTE_EVERY) {
            let live = self.live_bytes();
            for (tracked, ratios) in self.maps.iter().zip(&mut self.ratios) {
                ratios.push(map_nodes(&tracked.map) / live);
            }
        }
    }

    /// Bytes of a table of the live pages alone.
    pub(crate) fn live_bytes(&self) -> f64 {
        (self.live.len() as u64 * ENTRY) as f64
    }

    fn write(&mut self, blocks: Range<u64>) {
        for block in blocks {
            let parts = self.live.entry(block / BLOCKS_PER_PAGE).or_default();
            let is_new = *parts == 0;
            *parts |= 1 << (block % BLOCKS_PER_PAGE);
            if is_new {
                self.update(block, Some(Ppn(1)));
            }
        }
    }

    /// Goes over what is live in the range, which may be far more than was ever written; returns
    /// how much that was.
    fn discard(&mut self, blocks: Range<u64>) -> u64 {
        let pages = blocks.start / BLOCKS_PER_PAGE..blocks.end.div_ceil(BLOCKS_PER_PAGE);
        let (mut dead, mut discarded) = (Vec::new(), 0);
        for (&page, parts) in self.live.range_mut(pages) {
            let first = page * BLOCKS_PER_PAGE;
            let hit = (0..BLOCKS_PER_PAGE).filter(|part| blocks.contains(&(first + part)));
            let hit = hit.fold(0, |mask, part| mask | 1 << part);
            discarded += u64::from((*parts & hit).count_ones());
            *parts &= !hit;
            if *parts == 0 {
                dead.push(page);
            }
        }
        for page in dead {
            self.live.remove(&page);
            self.update(page * BLOCKS_PER_PAGE, None);
        }
        discarded
    }

    fn update(&mut self, block: u64, to: Option<Ppn>) {
        if let Ok(page) = self.layout.page_of(Lba(block)) {
            for tracked in &mut self.maps {
                tracked.map.update(page, to);
            }
        }
    }

    /// The live blocks of an area, in runs.
    fn runs(&self, area: u64) -> Vec<Range<u64>> {
        let pages =
            area * AREA_BLOCKS / BLOCKS_PER_PAGE..(area + 1) * AREA_BLOCKS / BLOCKS_PER_PAGE;
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (&page, parts) in self.live.range(pages) {
            for part in (0..BLOCKS_PER_PAGE).filter(|part| parts >> part & 1 == 1) {
                let block = page * BLOCKS_PER_PAGE + part;
                match runs.last_mut().filter(|run| run.end == block) {
                    Some(run) => run.end += 1,
                    None => runs.push(block..block + 1),
                }
            }
        }
        runs
    }

    /// The holes between an area's live blocks in KiB, sorted.
    pub(crate) fn holes_kib(&self, area: u64) -> Vec<u64> {
        let runs = self.runs(area);
        let mut holes: Vec<u64> =
            runs.windows(2).map(|pair| (pair[1].start - pair[0].end) * BLOCK_KIB).collect();
        holes.sort_unstable();
        holes
    }

    /// The size of the regions of each of an area's segments that is neither dead nor without holes,
    /// in KiB, as the code published with the paper counts it: the smallest hole of at least 256
    /// KiB within the segment, and all of the segment where there is none. Sorted.
    pub(crate) fn region_sizes_kib(&self, area: u64) -> Vec<u64> {
        let mut smallest: BTreeMap<u64, u64> = BTreeMap::new();
        let runs = self.runs(area);
        let segment_of = |block: u64| block / SEGMENT_BLOCKS;
        let live: std::collections::BTreeSet<u64> =
            runs.iter().flat_map(|run| segment_of(run.start)..=segment_of(run.end - 1)).collect();
        for pair in runs.windows(2) {
            let hole = pair[0].end..pair[1].start;
            for segment in [segment_of(hole.start), segment_of(hole.end - 1)] {
                let within = segment * SEGMENT_BLOCKS..(segment + 1) * SEGMENT_BLOCKS;
                let is_inside = within.start < hole.start && hole.end < within.end;
                let is_large = (hole.end - hole.start) * BLOCK_KIB >= LEAST_HOLE_KIB;
                let counted = is_inside && is_large;
                let blocks = if counted { hole.end - hole.start } else { SEGMENT_BLOCKS };
                let least = smallest.entry(segment).or_insert(blocks);
                *least = blocks.min(*least);
            }
        }
        let known = smallest.into_iter().filter(|(segment, _)| live.contains(segment));
        let mut sizes: Vec<u64> = known.map(|(_, blocks)| blocks * BLOCK_KIB).collect();
        sizes.sort_unstable();
        sizes
    }
}

/// Bytes of map nodes, directories and tables: 99.9 % of a large tree (IPLFS paper §5.3), and all
/// that shrinks with the drive. Entries of directories count 2 bytes, as in the published code
/// (the paper: directories of regions of 64 KiB are 13 % of a tree); ours have 4.
pub(crate) fn map_nodes(map: &IntervalMap) -> f64 {
    let memory = map.memory();
    own_map_nodes(map) - memory.directories as f64 / 2.0
}

/// The same as our map has them.
pub(crate) fn own_map_nodes(map: &IntervalMap) -> f64 {
    let memory = map.memory();
    (memory.map_nodes + memory.directories + memory.tables) as f64
}

/// The value below which a share of the sorted values lies.
pub(crate) fn quantile(sorted: &[u64], share: f64) -> u64 {
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::BlockRange;

    fn request(kind: RequestKind, start: u64, blocks: u64) -> Request {
        let range = BlockRange::new(Lba(start), blocks);
        Request { at: SimTime::ZERO, done: SimTime::ZERO, kind, range }
    }

    #[test]
    fn holes_and_regions_are_those_of_what_was_written_and_discarded() {
        let layout = Layout::new(BLOCKS_PER_PAGE as u32).unwrap();
        let mut shadow = Shadow::new(layout, &[(CompactionPolicy::PAPER, true)], 1.0);
        let log = 2 * AREA_BLOCKS;
        shadow.see(&request(RequestKind::Write, log, 3 * SEGMENT_BLOCKS));
        shadow.see(&request(RequestKind::Discard, log + 101, 2));
        assert_eq!((shadow.live_bytes(), shadow.holes_kib(2)), (3.0 * 1024.0 * 4.0, vec![8]));
        shadow.see(&request(RequestKind::Discard, log + 5000, 600));
        assert_eq!(shadow.holes_kib(2), [8, 2400]);
        assert_eq!(shadow.region_sizes_kib(2), [2400, 16_384], "a small hole does not count");
        assert_eq!(shadow.maps[0].map.valid_pages(), 3 * 1024 - 150);
        shadow.see(&request(RequestKind::Discard, log, AREA_BLOCKS));
        assert_eq!((shadow.live_bytes(), shadow.maps[0].map.valid_pages()), (0.0, 0));
    }
}
