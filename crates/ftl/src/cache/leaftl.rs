//! `leaftl`: whole translation pages as learned segments (Sun, Li, Sun, Sun, Vucinic and Huang,
//! "LeaFTL: a learning-based flash translation layer for solid-state drives", ASPLOS 2023).
//!
//! Within groups of 256 entries, a segment of 8 bytes stands for entries whose places lie on a
//! line. With an error bound of 0 its entries have equal distances and places that follow each
//! other. With a larger bound the line passes each place by so much at most; what is not as regular
//! then takes a byte for each entry beside it (the conflict resolution buffer), and an entry whose
//! place is not the one on the line costs another read of flash.
//!
//! In favour of the published one: segments are learned of the map as it is, as after a compaction
//! of all levels at once, with slopes of full precision. The second read is counted as a read of
//! the translation page.

use super::condensed::{CondensedPages, Measured};
use super::{CacheConfig, Entry, Policy, Shape, TranslationPage};

pub(super) const POLICY: Policy = Policy {
    name: "leaftl",
    about: "whole translation pages as learned segments, exact (ASPLOS 2023)",
    build: |config| Box::new(CondensedPages::new(config, exact)),
};

pub(super) const BOUNDED: Policy = Policy {
    name: "leaftl-4",
    about: "the same, with an error of up to 4 pages",
    build: |config| Box::new(CondensedPages::new(config, bounded)),
};

/// Entries of a group (the paper, section 3.2).
const GROUP_ENTRIES: u64 = 256;
/// Bytes of a segment: its first entry 1, its length 1, its slope 2, its first place 4 (the paper,
/// figure 4).
const SEGMENT_BYTES: u64 = 8;
/// Bytes of a page's number.
const NUMBER_BYTES: u64 = 4;

/// An entry, by its place in its group, and its flash page.
type Point = (u64, u64);

pub(super) fn exact(config: &CacheConfig, shape: &dyn Shape, page: TranslationPage) -> Measured {
    learned(config, shape, page, 0)
}

pub(super) fn bounded(config: &CacheConfig, shape: &dyn Shape, page: TranslationPage) -> Measured {
    learned(config, shape, page, 4)
}

fn learned(config: &CacheConfig, shape: &dyn Shape, page: TranslationPage, bound: u64) -> Measured {
    let first = page.0 << config.shift;
    let mut form = Measured { bytes: NUMBER_BYTES, ..Measured::default() };
    for group in (0..config.page_entries()).step_by(GROUP_ENTRIES as usize) {
        let end = (group + GROUP_ENTRIES).min(config.page_entries());
        let place = |offset: Entry| shape.place(first + offset).map(|place| (offset, place));
        let points: Vec<Point> = (group..end).filter_map(place).collect();
        for segment in segments(&points, bound) {
            form.bytes += segment.bytes();
            segment.misled().for_each(|offset| form.misled.add(offset));
        }
    }
    form
}

/// Points on a line, as far as the bound allows.
struct Segment<'a> {
    points: &'a [Point],
    slope: f64,
}

impl Segment<'_> {
    fn predicted(&self, offset: u64) -> u64 {
        let (first, place) = self.points[0];
        place + ((offset - first) as f64 * self.slope).ceil() as u64
    }

    /// Tells whether the entries have equal distances and places that follow each other.
    fn is_regular(&self) -> bool {
        let mut steps = self.points.windows(2).map(|pair| pair[1].0 - pair[0].0);
        let first = steps.next();
        steps.all(|step| Some(step) == first) && self.follow()
    }

    fn follow(&self) -> bool {
        self.points.windows(2).all(|pair| pair[0].1 + 1 == pair[1].1)
    }

    fn bytes(&self) -> u64 {
        // the entries, and one that ends the list
        let listed = if self.is_regular() { 0 } else { self.points.len() as u64 + 1 };
        SEGMENT_BYTES + listed
    }

    /// The entries that are not where the line says.
    fn misled(&self) -> impl Iterator<Item = u64> {
        let is_regular = self.is_regular();
        let wrong =
            move |&&(offset, place): &&Point| !is_regular && self.predicted(offset) != place;
        self.points.iter().filter(wrong).map(|point| point.0)
    }
}

/// Segments by greedy regression: each goes on as long as one line passes all its points within the
/// bound.
fn segments(points: &[Point], bound: u64) -> Vec<Segment<'_>> {
    let (mut found, mut rest) = (Vec::new(), points);
    while !rest.is_empty() {
        let (taken, slope) = if bound == 0 { regular(rest) } else { within(rest, bound) };
        found.push(Segment { points: &rest[..taken], slope });
        rest = &rest[taken..];
    }
    found
}

/// The first points with equal distances whose places follow each other.
fn regular(points: &[Point]) -> (usize, f64) {
    let mut taken = 1;
    while taken < points.len() {
        let step = points[1].0 - points[0].0;
        let ((before, place), (next, its)) = (points[taken - 1], points[taken]);
        if next - before != step || its != place + 1 {
            break;
        }
        taken += 1;
    }
    (taken, 1.0)
}

/// The first points that a line through the first of them passes within the bound, and its slope.
fn within(points: &[Point], bound: u64) -> (usize, f64) {
    let (first, place) = points[0];
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    let mut taken = 1;
    for &(offset, its) in &points[1..] {
        let (run, rise) = ((offset - first) as f64, its as f64 - place as f64);
        let above = low.max((rise - 1.0 - bound as f64) / run);
        let below = high.min((rise + bound as f64) / run);
        if above >= below {
            break;
        }
        (low, high) = (above, below);
        taken += 1;
    }
    (taken, (low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(points: &[Point], bound: u64) -> Vec<usize> {
        segments(points, bound).iter().map(|segment| segment.points.len()).collect()
    }

    #[test]
    fn an_exact_segment_has_equal_distances() {
        let points = [(0, 50), (2, 51), (4, 52), (5, 53), (6, 54), (9, 90), (10, 91)];
        assert_eq!(lengths(&points, 0), [3, 2, 2]);
        assert!(segments(&points, 0).iter().all(|it| it.bytes() == SEGMENT_BYTES));
    }

    #[test]
    fn a_bound_joins_what_is_nearly_on_a_line() {
        let points = [(0, 50), (2, 51), (3, 52), (7, 53), (8, 54), (9, 55), (200, 4000)];
        assert_eq!(lengths(&points, 0), [2, 2, 2, 1]);
        assert_eq!(lengths(&points, 4), [6, 1]);
        let found = segments(&points, 4);
        assert_eq!(found[0].bytes(), SEGMENT_BYTES + 7);
        for &(offset, place) in found[0].points {
            assert!(found[0].predicted(offset).abs_diff(place) <= 4);
        }
    }

    #[test]
    fn a_regular_segment_misleads_nobody() {
        let points: Vec<Point> = (0..256).map(|i| (i, 1000 + i)).collect();
        for bound in [0, 4] {
            let found = segments(&points, bound);
            assert_eq!((found.len(), found[0].bytes()), (1, SEGMENT_BYTES));
            assert_eq!(found[0].misled().count(), 0);
        }
    }
}
