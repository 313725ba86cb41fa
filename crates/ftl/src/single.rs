//! The SLC cache: lines that are filled at one bit a cell, fast and with a part of their pages, and
//! are folded into ordinary ones later.
//!
//! A static part is always there; a dynamic one takes free lines as long as the drive is not too
//! full. How many lines that makes is one pure function, [`SingleCache::lines`].

use dovetail_time::SimSpan;

/// The behaviour of a drive whose SLC cache is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The host's writes go to ordinary lines.
    Direct,
    /// The host's writes wait until lines of the cache are folded.
    Fold,
}

/// A drive's SLC cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SingleCache {
    /// Lines that it always has.
    pub static_lines: u32,
    /// Lines that it has beside them on an empty drive.
    pub dynamic_lines: u32,
    /// The part of the capacity that is mapped, 0 to 1, from which on the dynamic part shrinks.
    pub shrink_from: f64,
    /// The part of the capacity at which nothing is left of the dynamic part.
    pub shrink_to: f64,
    /// The way of writes when it is full.
    pub when_full: WhenFull,
    /// Time without work after which it is folded; `None`: it is folded for room alone.
    pub fold_after: Option<SimSpan>,
}

impl SingleCache {
    /// Lines that it may have when the part `used` of the capacity is mapped.
    pub(crate) fn lines(&self, used: f64) -> u32 {
        let left = if used <= self.shrink_from {
            1.0
        } else if used >= self.shrink_to {
            0.0
        } else {
            (self.shrink_to - used) / (self.shrink_to - self.shrink_from)
        };
        self.static_lines.saturating_add((f64::from(self.dynamic_lines) * left) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dynamic_part_shrinks_as_the_drive_fills() {
        let cache = SingleCache {
            static_lines: 4,
            dynamic_lines: 100,
            shrink_from: 0.5,
            shrink_to: 0.75,
            when_full: WhenFull::Direct,
            fold_after: None,
        };
        let lines = [0.0, 0.5, 0.625, 0.75, 1.0].map(|used| cache.lines(used));
        assert_eq!(lines, [104, 104, 54, 4, 4]);
    }
}
