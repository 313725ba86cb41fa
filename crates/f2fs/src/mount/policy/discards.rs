//! The pace at which the background tells the device of blocks that no checkpoint refers to.
//!
//! F2FS goes by Linux 6.1: a thread of its own sends a few long extents at a time, and only while
//! the volume is idle.
//!
//! Left out: Linux also waits, 500 ms at a time, while commands are under way
//! (`mid_discard_issue_time`); a mount here does not see commands, so a phase of reads alone counts
//! as idle. From 5.13 on it sends idle or not where extents that wait take more than a percent of
//! the host's memory (`ram_thresh`), of which a stack here says only what the page cache has.

use std::num::NonZeroU32;

/// Between rounds of discards while there are some, in ms (`min_discard_issue_time` of Linux 6.1,
/// and section 4.3 of the IPLFS paper).
pub(crate) const DISCARD_BUSY_MS: u64 = 50;
/// Between looks of F2FS's thread while there are none, in ms (`max_discard_issue_time`).
pub(crate) const DISCARD_IDLE_MS: u64 = 60_000;
/// Commands of F2FS in a round (`max_discard_request`).
const REQUESTS: usize = 8;
/// Commands of IPLFS in a round (the published code). Section 4.3 of its paper has 16: with so few
/// most of what random writes give up waits, and the drive keeps moving it.
const IPLFS_REQUESTS: usize = 80_000;
/// Blocks that a command of F2FS has at least (`discard_granularity`).
const GRANULARITY: u32 = 16;
/// Blocks in use, in whole percent, above which extents of any length are sent
/// (`discard_urgent_util`).
const NEARLY_FULL_PERCENT: u64 = 80;

/// The state that decides the pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiscardFacts {
    /// Blocks in use.
    pub(crate) valid_blocks: u64,
    /// Blocks that can be in use.
    pub(crate) user_blocks: u64,
    /// The volume is small, or treated so.
    pub(crate) is_small: bool,
    /// sysfs `gc_urgent`.
    pub(crate) is_urgent: bool,
    /// Something waits to be discarded.
    pub(crate) waiting: bool,
    /// sysfs `max_discard_request`, if it is set.
    pub(crate) commands: Option<NonZeroU32>,
}

/// The pace of discards in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Commands in one round at most.
    pub(crate) commands: usize,
    /// Blocks that a command has at least.
    pub(crate) granularity: u32,
    /// Nothing is sent while requests come.
    pub(crate) waits_for_idle: bool,
    /// Between rounds that found some, in ms.
    pub(crate) busy_ms: u64,
    /// Between rounds that found none.
    pub(crate) idle_ms: u64,
}

/// A step of the background that is awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiscardStep {
    /// A round is sent.
    Send,
    /// Nothing is sent, and it looks again after so long, in ms.
    Sleep(u64),
}

/// F2FS in Linux 6.1. It is forced, idle or not, when cleaning is urgent.
pub(crate) const fn segmented_pace(facts: &DiscardFacts) -> Pace {
    let users = if facts.user_blocks == 0 { 1 } else { facts.user_blocks };
    let is_nearly_full = facts.valid_blocks.saturating_mul(100) / users > NEARLY_FULL_PERCENT;
    let any_length = facts.is_small || is_nearly_full || facts.is_urgent;
    let hurries = is_nearly_full && !facts.is_urgent && facts.waiting;
    Pace {
        commands: commands_of(facts, REQUESTS),
        granularity: if any_length { 1 } else { GRANULARITY },
        waits_for_idle: !facts.is_urgent,
        busy_ms: DISCARD_BUSY_MS,
        idle_ms: if hurries { DISCARD_BUSY_MS } else { DISCARD_IDLE_MS },
    }
}

/// IPLFS: whatever else is going on.
pub(crate) const fn iplfs_pace(facts: &DiscardFacts) -> Pace {
    Pace {
        commands: commands_of(facts, IPLFS_REQUESTS),
        granularity: 1,
        waits_for_idle: false,
        busy_ms: DISCARD_BUSY_MS,
        idle_ms: DISCARD_BUSY_MS,
    }
}

const fn commands_of(facts: &DiscardFacts, default: usize) -> usize {
    match facts.commands {
        Some(commands) => commands.get() as usize,
        None => default,
    }
}

/// The step at a pace: `found` if an extent waits that is long enough, `until_idle_ms` before the
/// volume counts as idle.
pub(crate) const fn discard_step(pace: &Pace, found: bool, until_idle_ms: u64) -> DiscardStep {
    if !found {
        DiscardStep::Sleep(pace.idle_ms)
    } else if pace.waits_for_idle && until_idle_ms > 0 {
        DiscardStep::Sleep(until_idle_ms)
    } else {
        DiscardStep::Send
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: DiscardFacts = DiscardFacts {
        valid_blocks: 500,
        user_blocks: 1000,
        is_small: false,
        is_urgent: false,
        waiting: true,
        commands: None,
    };

    #[test]
    fn long_extents_are_sent_while_the_volume_is_idle() {
        let pace = segmented_pace(&LARGE);
        assert_eq!(
            pace,
            Pace {
                commands: 8,
                granularity: 16,
                waits_for_idle: true,
                busy_ms: 50,
                idle_ms: 60_000
            }
        );
        assert_eq!(discard_step(&pace, true, 0), DiscardStep::Send);
        assert_eq!(discard_step(&pace, true, 4_200), DiscardStep::Sleep(4_200));
        assert_eq!(discard_step(&pace, false, 4_200), DiscardStep::Sleep(60_000));
    }

    #[test]
    fn a_small_volume_sends_extents_of_any_length() {
        let small = segmented_pace(&DiscardFacts { is_small: true, ..LARGE });
        assert_eq!(small, Pace { granularity: 1, ..segmented_pace(&LARGE) });
    }

    #[test]
    fn above_80_percent_it_looks_more_often_and_still_waits_for_idle() {
        let at = |valid_blocks| segmented_pace(&DiscardFacts { valid_blocks, ..LARGE });
        assert_eq!(at(809), segmented_pace(&LARGE));
        assert_eq!(at(810), Pace { granularity: 1, idle_ms: 50, ..segmented_pace(&LARGE) });
        assert_eq!(discard_step(&at(810), true, 1), DiscardStep::Sleep(1));
        let nothing = DiscardFacts { valid_blocks: 810, waiting: false, ..LARGE };
        assert_eq!(segmented_pace(&nothing).idle_ms, 60_000);
    }

    #[test]
    fn urgent_cleaning_does_not_wait_for_idle() {
        let forced = Pace { granularity: 1, waits_for_idle: false, ..segmented_pace(&LARGE) };
        assert_eq!(segmented_pace(&DiscardFacts { is_urgent: true, ..LARGE }), forced);
        assert_eq!(discard_step(&forced, true, 5_000), DiscardStep::Send);
    }

    #[test]
    fn iplfs_sends_whatever_goes_on() {
        assert_eq!(discard_step(&iplfs_pace(&LARGE), true, 5_000), DiscardStep::Send);
        assert_eq!(discard_step(&iplfs_pace(&LARGE), false, 0), DiscardStep::Sleep(50));
        assert_eq!((iplfs_pace(&LARGE).commands, segmented_pace(&LARGE).commands), (80_000, 8));
        let told = DiscardFacts { commands: NonZeroU32::new(16), ..LARGE };
        let commands = [iplfs_pace(&told), segmented_pace(&told)].map(|pace| pace.commands);
        assert_eq!(commands, [16; 2]);
    }

    #[test]
    fn figures_of_a_damaged_volume_do_not_overflow() {
        let most = DiscardFacts { valid_blocks: u64::MAX, user_blocks: 0, ..LARGE };
        assert_eq!(segmented_pace(&most).granularity, 1);
    }
}
