//! The parts that only a volume of IPLFS has: logs that have written all that lies below their
//! positions and nothing beyond, a discard log, and a device that should hold what is live, what
//! waits for its discard, and nothing else.
//!
//! Left out: which of several logs of data, or of nodes, a block should have gone to; blocks beyond
//! the logs' positions, which belong to the next mount: it recovers or discards them.

mod device;
mod discards;
mod logs;

use dovetail_block::BlockDevice;

use super::Checker;
use crate::error::Error;

impl<D: BlockDevice> Checker<'_, D> {
    /// The space of the six areas, after everything was reached.
    pub(super) fn check_areas(&mut self) -> Result<(), Error> {
        let discards = self.check_discards()?;
        self.measure_areas();
        self.check_device(discards.as_deref());
        Ok(())
    }
}
