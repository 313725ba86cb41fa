//! Background cleaning of a zoned volume: in windows of a few segments, while sections are few.

/// Free sections, in percent of all, above which nothing is cleaned (Linux 6.12, sysfs
/// `gc_no_zoned_gc_percent`).
const ENOUGH_PERCENT: u32 = 60;
/// Free sections, in percent, below which cleaning hurries (`gc_boost_zoned_gc_percent`).
const FEW_PERCENT: u32 = 25;
/// Segments that are cleaned at a time (`migration_window_granularity`), and how many times as many
/// in a hurry (`gc_boost_gc_multiple`).
const WINDOW: u32 = 3;
const BOOST: u32 = 5;
/// Valid blocks, in percent of a section, above which the background leaves it alone
/// (`gc_valid_thresh_ratio`).
const MAX_VALID_PERCENT: u64 = 95;

/// Sleep between two windows, and while there is nothing to do, in ms (`gc_max_sleep_time`,
/// `gc_no_gc_sleep_time`).
pub(crate) const ZONED_SLEEP_MS: u64 = 20;
pub(crate) const ZONED_NOTHING_MS: u64 = 60_000;

/// A step of cleaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CleaningWindow {
    /// Segments of the victim.
    pub(crate) segments: u32,
    /// The victim is the section with the fewest valid blocks, as opposed to the best one by age.
    pub(crate) greedy: bool,
}

/// The next step with so many of all sections free; `None` if enough are.
pub(crate) const fn cleaning_window(free: u32, sections: u32) -> Option<CleaningWindow> {
    let percent = free as u64 * 100 / if sections == 0 { 1 } else { sections as u64 };
    if percent > ENOUGH_PERCENT as u64 {
        None
    } else if percent < FEW_PERCENT as u64 {
        Some(CleaningWindow { segments: WINDOW * BOOST, greedy: true })
    } else {
        Some(CleaningWindow { segments: WINDOW, greedy: false })
    }
}

/// A section of so many blocks is not worth cleaning in the background.
pub(crate) const fn is_nearly_full(valid: u32, blocks: u32) -> bool {
    valid as u64 * 100 > blocks as u64 * MAX_VALID_PERCENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewer_sections_are_free_the_larger_the_window() {
        assert_eq!(cleaning_window(61, 100), None);
        let slow = Some(CleaningWindow { segments: 3, greedy: false });
        assert_eq!((cleaning_window(60, 100), cleaning_window(25, 100)), (slow, slow));
        let fast = Some(CleaningWindow { segments: 15, greedy: true });
        assert_eq!((cleaning_window(24, 100), cleaning_window(0, 0)), (fast, fast));
    }

    #[test]
    fn a_section_with_more_than_95_percent_is_left_alone() {
        assert!(is_nearly_full(9729, 10_240));
        assert!(!is_nearly_full(9728, 10_240));
    }
}
