//! A device that outlives the file system on it.

use std::cell::RefCell;
use std::rc::Rc;

use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, MemoryDevice, performs_at_once,
};
use dovetail_time::SimTime;

/// A handle on a device in memory.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Rc<RefCell<MemoryDevice>>);

impl Shared {
    pub(crate) fn new(device: MemoryDevice) -> Self {
        Self(Rc::new(RefCell::new(device)))
    }

    /// A copy of the device.
    pub(crate) fn into_inner(self) -> MemoryDevice {
        self.0.borrow().clone()
    }
}

impl BlockDevice for Shared {
    fn info(&self) -> DeviceInfo {
        self.0.borrow().info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        self.0.borrow_mut().submit(at, command)
    }
}

performs_at_once!(Shared);
