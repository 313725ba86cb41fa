//! A device that remembers what is read, and that can have lost a block.

use dovetail_block::{
    BlockDevice, BlockRange, Command, Completion, DeviceError, DeviceInfo, Lba, MemoryDevice,
    performs_at_once,
};
use dovetail_time::SimTime;

/// Remembers reads; those of a block that it has lost fail.
#[derive(Debug)]
pub struct ReadLog {
    lower: MemoryDevice,
    /// The reads so far.
    pub reads: Vec<BlockRange>,
    lost: Option<Lba>,
}

impl ReadLog {
    /// Over a device.
    pub fn new(lower: MemoryDevice) -> Self {
        Self { lower, reads: Vec::new(), lost: None }
    }

    /// The device below.
    pub fn into_device(self) -> MemoryDevice {
        self.lower
    }

    /// The same with a block that cannot be read.
    #[must_use]
    pub fn without(self, lost: Lba) -> Self {
        Self { lost: Some(lost), ..self }
    }
}

impl BlockDevice for ReadLog {
    fn info(&self) -> DeviceInfo {
        self.lower.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        if let Command::Read { range, .. } = &command {
            self.reads.push(*range);
            if self.lost.is_some_and(|lost| (range.start..range.end()).contains(&lost)) {
                return Err(DeviceError::Internal("the test has lost this block".into()));
            }
        }
        self.lower.submit(at, command)
    }
}

performs_at_once!(ReadLog);
