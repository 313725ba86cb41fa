//! The cost and the benefit of cleaning a section.

/// The oldest and newest mean times of the volume's sections, in seconds mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Age {
    pub(crate) oldest_s: u64,
    pub(crate) newest_s: u64,
}

/// The cost of cleaning a section in the background, the smaller the better: what is left to move
/// against what is gained, weighted by age (F2FS paper, section 2.4; integers as in Linux 6.1).
/// `valid` of `blocks` are in use.
pub(crate) fn cost_benefit(valid: u32, blocks: u32, mtime_s: u64, age: Age) -> u64 {
    let utilisation = u64::from(valid) * 100 / u64::from(blocks.max(1));
    let (oldest, newest) = (age.oldest_s.min(mtime_s), age.newest_s.max(mtime_s));
    let share = |part: u64, whole: u64| (u128::from(part) * 100 / u128::from(whole)) as u64;
    let old = if newest == oldest { 0 } else { 100 - share(mtime_s - oldest, newest - oldest) };
    u64::from(u32::MAX) - 100 * (100 - utilisation) * old / (100 + utilisation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_old_sections_cost_least() {
        let age = Age { oldest_s: 0, newest_s: 100 };
        let cost = |valid, mtime| cost_benefit(valid, 512, mtime, age);
        assert!(cost(100, 0) < cost(200, 0));
        assert!(cost(100, 0) < cost(100, 50));
        assert_eq!(cost(0, 100), u64::from(u32::MAX), "the youngest gains nothing");
        let ages = Age { oldest_s: 0, newest_s: u64::MAX };
        assert_eq!(cost_benefit(0, 512, u64::MAX / 2, ages), u64::from(u32::MAX) - 100 * 51);
        assert_eq!(cost_benefit(7, 512, 5, Age { oldest_s: 5, newest_s: 5 }), u64::from(u32::MAX));
    }
}
