//! Reads that need several tries: thresholds shift with wear, reads and time.

use dovetail_time::SimSpan;

/// The tries that a read needs beyond the first. Each cause adds its share of a step, and whole
/// steps count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// Time of a step: cell array, transfer and decoding.
    pub step: SimSpan,
    /// Steps for each erase of the block.
    pub steps_per_erase: f64,
    /// Steps for each read of the block since it was erased.
    pub steps_per_read: f64,
    /// Steps for each day since the block was first programmed.
    pub steps_per_day: f64,
    /// Days that what is on flash has lain there when the power is switched on.
    pub days_at_start: f64,
    /// Steps of a read at most.
    pub most: u32,
}

/// The condition of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Condition {
    pub(crate) erases: u32,
    pub(crate) reads: u32,
    pub(crate) days: f64,
}

impl Retry {
    /// Steps of a read beyond the first.
    pub(crate) fn steps(&self, condition: Condition) -> u32 {
        let steps = f64::from(condition.erases) * self.steps_per_erase
            + f64::from(condition.reads) * self.steps_per_read
            + condition.days * self.steps_per_day;
        (steps as u32).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_reads_and_days_add_up_and_whole_steps_count() {
        let retry = Retry {
            step: SimSpan::from_us(60),
            steps_per_erase: 1.0 / 750.0,
            steps_per_read: 1e-5,
            steps_per_day: 0.01,
            days_at_start: 0.0,
            most: 4,
        };
        let steps = |erases, reads, days| retry.steps(Condition { erases, reads, days });
        assert_eq!([steps(0, 0, 0.0), steps(749, 0, 0.0), steps(750, 0, 0.0)], [0, 0, 1]);
        assert_eq!(steps(375, 25_000, 25.0), 1, "half a step and two quarters");
        assert_eq!(steps(100_000, 0, 0.0), 4, "at most");
    }
}
