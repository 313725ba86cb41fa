//! Named faults over pristine data: they can be switched off and the data below is whole.
//!
//! A failure is a pure function of the seed, the place and the number of times its block was
//! erased, so that the same page fails again until its block is erased, and a run repeats exactly.

use std::collections::HashSet;

use crate::geometry::{BlockId, Ppn};

/// The state in which a power cut leaves the page or block in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Torn {
    /// The operation had not touched the cells yet.
    Untouched,
    /// The page can no longer be read, nor its out-of-band area; the block is half erased.
    Garbage,
    /// The operation had just finished.
    Finished,
}

/// A power cut in the middle of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    /// Number of the read, program or erase, counted from 0 over the life of the flash (see
    /// `Nand::operations`).
    pub at_operation: u64,
    /// The state in which it is left.
    pub torn: Torn,
}

/// The faults of a flash. The default has none.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    /// Chooses which places fail at the rates below.
    pub seed: u64,
    /// The share of page programs that fail, 0 to 1.
    pub program_rate: f64,
    /// The share of block erases that fail, 0 to 1.
    pub erase_rate: f64,
    /// The share of programmed pages whose data cannot be read, 0 to 1.
    pub read_rate: f64,
    /// Pages that fail to program.
    pub failing_programs: HashSet<Ppn>,
    /// Blocks that fail to erase.
    pub failing_erases: HashSet<BlockId>,
    /// Pages that cannot be read.
    pub unreadable: HashSet<Ppn>,
    /// Time when the power is cut.
    pub power_cut: Option<PowerCut>,
}

impl FaultPlan {
    /// Tells whether programming `ppn` fails in erase cycle `cycle`.
    pub(crate) fn fails_program(&self, ppn: Ppn, cycle: u32) -> bool {
        self.failing_programs.contains(&ppn) || self.struck(1, ppn.0, cycle, self.program_rate)
    }

    /// Tells whether erase number `cycle` of `block` fails.
    pub(crate) fn fails_erase(&self, block: BlockId, cycle: u32) -> bool {
        self.failing_erases.contains(&block) || self.struck(2, block.0, cycle, self.erase_rate)
    }

    /// Tells whether what `ppn` holds in erase cycle `cycle` cannot be read.
    pub(crate) fn fails_read(&self, ppn: Ppn, cycle: u32) -> bool {
        self.unreadable.contains(&ppn) || self.struck(3, ppn.0, cycle, self.read_rate)
    }

    fn struck(&self, kind: u64, place: u32, cycle: u32, rate: f64) -> bool {
        if rate <= 0.0 {
            return false;
        }
        let name = self.seed ^ (kind << 61) ^ (u64::from(place) << 24) ^ u64::from(cycle);
        dovetail_time::Rng::new(name).chance(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_strike_the_share_that_they_say_and_repeat() {
        let plan = FaultPlan { seed: 5, program_rate: 0.1, ..FaultPlan::default() };
        let struck = |plan: &FaultPlan| {
            (0..10_000).filter(|&p| plan.fails_program(Ppn(p), 3)).collect::<Vec<_>>()
        };
        let first = struck(&plan);
        assert!((900..1100).contains(&first.len()), "{}", first.len());
        assert_eq!(first, struck(&plan), "a run repeats");
        assert!(!plan.fails_erase(BlockId(1), 0));
    }
}
