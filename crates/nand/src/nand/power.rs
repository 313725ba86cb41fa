//! Power cuts, and the way back.

use dovetail_time::SimTime;

use super::Nand;
use crate::recent::RecentOperations;

impl Nand {
    /// Cuts the power between two operations, in the order of issue: all that was issued has ended.
    /// Everything but the flash itself is gone.
    pub fn cut_power(&mut self) {
        self.powered = false;
    }

    /// Remembers from now on what [`Nand::cut_power_at`] needs. Memory grows with every program and
    /// erase until the power is switched on again: for tests.
    pub fn remember_operations(&mut self) {
        self.recent = Some(RecentOperations::default());
        self.plain = false;
    }

    /// Cuts the power at time `at`: programs and erases under way then are torn, those that had not
    /// begun never happen, on whatever dies. Without [`Nand::remember_operations`] as
    /// [`Nand::cut_power`].
    pub fn cut_power_at(&mut self, at: SimTime) {
        if let Some(recent) = &mut self.recent {
            recent.cut(at, &mut self.store);
        }
        self.powered = false;
    }

    /// A copy as a power cut at time `at` leaves it, as [`Nand::cut_power_at`]; this one goes on.
    /// The copy is kept by nobody.
    #[must_use]
    pub fn after_power_cut(&self, at: SimTime) -> Self {
        let mut copy = self.clone();
        copy.cut_power_at(at);
        copy
    }

    /// Start and end of each program and erase that is remembered, in the order of issue.
    pub fn remembered_operations(&self) -> impl Iterator<Item = (SimTime, SimTime)> {
        self.recent.iter().flat_map(RecentOperations::spans)
    }

    /// Forgets operations that had ended by `at`: [`Nand::cut_power_at`] is not to be asked for an
    /// earlier time any more.
    pub fn forget_operations_before(&mut self, at: SimTime) {
        if let Some(recent) = &mut self.recent {
            recent.forget_before(at, &mut self.store);
        }
    }

    /// Tells whether the power is on.
    pub fn is_powered(&self) -> bool {
        self.powered
    }

    /// Switches the power on again: time starts at 0, a power cut that was planned is spent, and
    /// bytes that lay only in the drive's memory are forgotten.
    pub fn power_on(&mut self) {
        self.powered = true;
        self.timeline.reset(&self.config.geometry);
        self.exposures.iter_mut().for_each(|exposure| exposure.programmed = None);
        if let Some(recent) = &mut self.recent {
            recent.clear();
        }
        self.store.forget_unreferenced();
        if let Some(faults) = &mut self.faults {
            faults.power_cut = faults.power_cut.filter(|cut| cut.at_operation >= self.operations);
        }
    }
}
