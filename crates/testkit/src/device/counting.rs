//! A device that counts the requests to it.

use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, MemoryDevice, ZoneAction,
    performs_at_once,
};
use dovetail_time::SimTime;

/// Counts of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Write requests.
    pub writes: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Read requests.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Zones that were reset.
    pub resets: u64,
}

/// A device with counts of what came.
#[derive(Debug)]
pub struct CountingDevice<D = MemoryDevice> {
    device: D,
    /// The counts since they were last set to zero.
    pub counts: Requests,
}

impl<D> CountingDevice<D> {
    /// Nothing has come yet.
    pub fn new(device: D) -> Self {
        Self { device, counts: Requests::default() }
    }
}

impl<D: BlockDevice> BlockDevice for CountingDevice<D> {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match &command {
            Command::Write { range, .. } => {
                self.counts.writes += 1;
                self.counts.bytes += range.blocks * 4096;
            }
            Command::Read { range, .. } => {
                self.counts.reads += 1;
                self.counts.read_bytes += range.blocks * 4096;
            }
            Command::Zone { action: ZoneAction::Reset, .. } => self.counts.resets += 1,
            Command::Flush => self.counts.flushes += 1,
            _ => {}
        }
        self.device.submit(at, command)
    }
}

performs_at_once!(impl[D: BlockDevice] CountingDevice<D>);
