//! A device that outlives the file system on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, MemoryDevice, performs_at_once,
};
use dovetail_time::SimTime;

/// A handle on a device in memory.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Mutex<MemoryDevice>>);

impl Shared {
    pub(crate) fn new(device: MemoryDevice) -> Self {
        Self(Arc::new(Mutex::new(device)))
    }

    fn device(&self) -> MutexGuard<'_, MemoryDevice> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the device.
    pub(crate) fn into_inner(self) -> MemoryDevice {
        self.device().clone()
    }
}

impl BlockDevice for Shared {
    fn info(&self) -> DeviceInfo {
        self.device().info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        self.device().submit(at, command)
    }
}

performs_at_once!(Shared);
