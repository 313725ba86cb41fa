//! Pages of a segment that have an entry in its map node's table.

use super::address::MIN_REGION_BLOCKS;

/// Regions of a segment of 16 MiB are 64 KiB or larger, the smallest that the paper tries (figure
/// 18).
const MAX_REGIONS: usize = 256;

/// The choice of a segment's regions in a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionSize {
    /// As large as the smallest hole, 256 KiB at least (IPLFS paper §5.3).
    SmallestHole,
    /// The same, but holes below 256 KiB and those at the segment's edges do not count (the code
    /// published with the paper).
    SmallestInnerHole,
    /// Whatever needs the least memory of: no regions, the smallest hole, the smallest that is not
    /// below 256 KiB, and powers of two from 256 KiB on. One small hole makes the paper's rule cut
    /// a segment into the smallest regions; the directory of larger ones is shorter, and they leave
    /// out almost the same.
    LeastMemory,
    /// Of that many blocks, 16 at least: what the paper compares with (figure 18).
    Fixed(u32),
}

/// A run of pages of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CoveredRun {
    pub(super) first: u32,
    pub(super) pages: u32,
}

impl CoveredRun {
    pub(super) fn end(self) -> u32 {
        self.first + self.pages
    }

    #[inline]
    pub(super) fn contains(self, page: u32) -> bool {
        page.wrapping_sub(self.first) < self.pages
    }
}

/// One run for each region.
#[derive(Clone, Debug)]
pub(super) struct Coverage {
    region_pages: u32,
    regions: usize,
    runs: [CoveredRun; MAX_REGIONS],
}

impl PartialEq for Coverage {
    fn eq(&self, other: &Self) -> bool {
        let sizes = self.regions == 1 || self.region_pages == other.region_pages;
        sizes && self.runs() == other.runs()
    }
}

impl Coverage {
    /// One run of a segment that is one region.
    pub(super) fn single(run: CoveredRun) -> Self {
        Self::of_regions(u32::MAX, [run].into_iter())
    }

    /// The runs of regions of that many pages.
    pub(super) fn of_regions(region_pages: u32, of_each: impl Iterator<Item = CoveredRun>) -> Self {
        let (mut runs, mut regions) = ([CoveredRun::default(); MAX_REGIONS], 0);
        for (slot, run) in runs.iter_mut().zip(of_each) {
            *slot = run;
            regions += 1;
        }
        Self { region_pages, regions, runs }
    }

    /// The coverage of a segment's entries with the regions that `choice` gives; no region is
    /// smaller than `min_region`, if not fixed.
    pub(super) fn of(entries: &[u32], choice: RegionSize, min_region: u32) -> Self {
        match choice {
            RegionSize::SmallestHole => {
                Self::cut(entries, smallest_hole(entries, 0).max(min_region))
            }
            RegionSize::SmallestInnerHole => {
                let run = trimmed(entries, 0, entries.len());
                let inner = &entries[run.first as usize..run.end() as usize];
                Self::cut(entries, smallest_hole(inner, min_region))
            }
            RegionSize::LeastMemory => Self::tightest(entries, min_region),
            RegionSize::Fixed(blocks) => {
                let size = blocks * min_region / MIN_REGION_BLOCKS;
                Self::cut(entries, size.max(entries.len().div_ceil(MAX_REGIONS) as u32))
            }
        }
    }

    /// With regions of that size, or a single one if they are no smaller than the segment.
    fn cut(entries: &[u32], size: u32) -> Self {
        if size as usize >= entries.len() {
            return Self::single(trimmed(entries, 0, entries.len()));
        }
        Self::of_regions(size, trimmed_regions(entries, size))
    }

    /// The coverage that takes the least memory of those that [`RegionSize::LeastMemory`] names.
    fn tightest(entries: &[u32], min_region: u32) -> Self {
        let doubled = std::iter::successors(Some(min_region), |size| Some(size * 2));
        let doubled = doubled.take_while(|&size| (size as usize) < entries.len());
        let holes = [smallest_hole(entries, 0).max(min_region), smallest_hole(entries, min_region)];
        let cut = holes.into_iter().chain(doubled).map(|size| Self::cut(entries, size));
        let whole = Self::cut(entries, u32::MAX);
        cut.fold(whole, |best, other| if other.words() < best.words() { other } else { best })
    }

    /// Covers `page` too, of a segment of `segment_pages`. What follows the run is covered to the
    /// end of the region, because logs append; what precedes it at least as far again as the run is
    /// long, so that descending writes do not copy the table each time.
    pub(super) fn extend(&mut self, page: u32, segment_pages: u32) {
        let region = if self.regions == 1 { 0 } else { (page / self.region_pages) as usize };
        let (region_first, region_end) = match self.regions {
            1 => (0, segment_pages),
            _ => (
                region as u32 * self.region_pages,
                segment_pages.min((region as u32 + 1) * self.region_pages),
            ),
        };
        let run = &mut self.runs[region];
        let first = match run.pages {
            0 => page,
            pages if page < run.first => {
                page.min(run.first.saturating_sub(pages)).max(region_first)
            }
            _ => run.first,
        };
        let end = if run.pages > 0 && page < run.first { run.end() } else { region_end };
        *run = CoveredRun { first, pages: end - first };
        if self.regions > 1 && self.pages() * 4 >= segment_pages * 3 {
            *self = Self::single(CoveredRun { first: 0, pages: segment_pages });
        }
    }

    pub(super) fn region_pages(&self) -> u32 {
        self.region_pages
    }

    pub(super) fn runs(&self) -> &[CoveredRun] {
        &self.runs[..self.regions]
    }

    /// Pages that are covered.
    pub(super) fn pages(&self) -> u32 {
        self.runs().iter().map(|run| run.pages).sum()
    }

    /// Words of the region directory: a single region needs none.
    pub(super) fn directory_words(&self) -> usize {
        if self.regions == 1 { 0 } else { self.regions + 2 }
    }

    fn words(&self) -> u32 {
        self.pages() + self.directory_words() as u32
    }
}

/// The shortest of the longest runs without an entry that are at least that long; `u32::MAX`
/// without any.
fn smallest_hole(entries: &[u32], at_least: u32) -> u32 {
    let (mut smallest, mut hole) = (u32::MAX, 0);
    for &entry in entries.iter().chain(&[1]) {
        if entry == 0 {
            hole += 1;
            continue;
        }
        if hole > 0 && hole >= at_least {
            smallest = smallest.min(hole);
        }
        hole = 0;
    }
    smallest
}

/// From the first to the last valid page of `first..end`; no page if none is valid.
fn trimmed(entries: &[u32], first: usize, end: usize) -> CoveredRun {
    let valid = |&entry: &u32| entry != 0;
    let region = &entries[first..end.min(entries.len())];
    match (region.iter().position(valid), region.iter().rposition(valid)) {
        (Some(from), Some(to)) => {
            CoveredRun { first: (first + from) as u32, pages: (to - from) as u32 + 1 }
        }
        _ => CoveredRun { first: first as u32, pages: 0 },
    }
}

fn trimmed_regions(entries: &[u32], size: u32) -> impl Iterator<Item = CoveredRun> {
    let size = size as usize;
    (0..entries.len().div_ceil(size))
        .map(move |region| trimmed(entries, region * size, (region + 1) * size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(valid: &[std::ops::Range<u32>]) -> Vec<u32> {
        (0..4096).map(|page| u32::from(valid.iter().any(|run| run.contains(&page)))).collect()
    }

    #[test]
    fn regions_are_as_large_as_the_smallest_hole() {
        let entries = entries(&[0..1000, 1300..2000, 3000..4096]);
        let coverage = Coverage::of(&entries, RegionSize::SmallestHole, 64);
        assert_eq!(coverage.region_pages(), 300);
        assert_eq!(coverage.pages(), 1000 + 700 + 1096);
        assert_eq!(coverage.runs().len(), 14);
    }

    #[test]
    fn regions_never_get_smaller_than_allowed_and_small_holes_do_not_make_them_so() {
        let mut segment = entries(&[0..1000, 2000..3000]);
        segment[500] = 0;
        let coverage = Coverage::of(&segment, RegionSize::LeastMemory, 64);
        assert_eq!((coverage.runs().len(), coverage.pages()), (4, 2000));
        assert_eq!(Coverage::of(&segment, RegionSize::SmallestHole, 64).region_pages(), 64);
        let fixed = Coverage::of(&segment, RegionSize::Fixed(16), 64);
        assert_eq!((fixed.region_pages(), fixed.runs().len()), (16, 256));
        let speckled: Vec<u32> = (0..4096).map(|page| page % 2).collect();
        assert_eq!(
            Coverage::of(&speckled, RegionSize::LeastMemory, 64).runs(),
            [CoveredRun { first: 1, pages: 4095 }]
        );
    }

    #[test]
    fn holes_at_the_edges_and_small_ones_can_be_left_out() {
        let mut segment = entries(&[100..1000, 1300..2000, 3000..4000]);
        segment[500] = 0;
        let coverage = Coverage::of(&segment, RegionSize::SmallestInnerHole, 64);
        assert_eq!(coverage.region_pages(), 300);
        let coverage =
            Coverage::of(&entries(&[70..80, 80..4000]), RegionSize::SmallestInnerHole, 64);
        assert_eq!(coverage.runs(), [CoveredRun { first: 70, pages: 3930 }]);
        let empty = vec![0; 4096];
        assert_eq!(Coverage::of(&empty, RegionSize::SmallestInnerHole, 64).pages(), 0);
    }

    #[test]
    fn one_run_needs_no_directory() {
        let coverage = Coverage::of(&entries(&[700..800, 800..900]), RegionSize::LeastMemory, 64);
        assert_eq!(coverage.runs(), [CoveredRun { first: 700, pages: 200 }]);
        assert_eq!(coverage.directory_words(), 0);
    }

    #[test]
    fn a_page_outside_is_covered_with_room_for_its_neighbours() {
        let mut single = Coverage::single(CoveredRun { first: 3000, pages: 100 });
        single.extend(2999, 4096);
        assert_eq!(single.runs(), [CoveredRun { first: 2900, pages: 200 }]);
        single.extend(3500, 4096);
        assert_eq!(single.runs(), [CoveredRun { first: 2900, pages: 1196 }]);
        let mut many =
            Coverage::of(&entries(&[0..100, 400..500, 1000..1100]), RegionSize::LeastMemory, 64);
        let (size, before) = (many.region_pages(), many.pages());
        many.extend(700, 4096);
        assert_eq!((size, many.pages()), (300, before + 900 - 700));
        assert!(many.runs()[2].contains(700));
    }
}
