//! A device whose content mkfs is to leave as it is: it cannot discard.

use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, EventId, Scheduler, SchedulingHint,
};
use dovetail_time::SimTime;

/// A device that says that it cannot discard.
#[derive(Debug)]
pub(crate) struct Kept<D>(pub(crate) D);

impl<D: BlockDevice> BlockDevice for Kept<D> {
    fn info(&self) -> DeviceInfo {
        let mut info = self.0.info();
        info.capabilities.discard = false;
        info
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        self.0.submit(at, command)
    }
}

impl<D: Scheduler> Scheduler for Kept<D> {
    fn hint(&mut self, hint: SchedulingHint) {
        self.0.hint(hint);
    }

    fn is_signalled(&self, event: EventId) -> bool {
        self.0.is_signalled(event)
    }

    fn pages_on_their_way(&self) -> usize {
        self.0.pages_on_their_way()
    }
}
