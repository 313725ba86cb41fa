//! What the host's own work costs.

use dovetail_time::SimSpan;
use serde::{Deserialize, Serialize};

/// Costs and limits of the host. None of them comes from a source: all are assumed, and `bench --sensitivity` halves and doubles each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostCosts {
    /// Nanoseconds of CPU for a system call, whatever it does. Assumed.
    pub syscall_ns: u64,
    /// Nanoseconds of CPU for each block of 4 KiB that a call reads or writes: copying, page cache, pointers. Assumed.
    pub block_ns: u64,
    /// Nanoseconds of CPU to build and submit a request. Assumed.
    pub request_ns: u64,
    /// Nanoseconds from the end of a request to the thread that waits for it. Assumed.
    pub wake_ns: u64,
    /// Requests that the drive takes at a time; more wait. Assumed.
    pub queue_depth: u32,
    /// The largest request in KiB (Linux: `max_sectors_kb`, 1280 by default).
    pub max_request_kib: u32,
}

impl Default for HostCosts {
    fn default() -> Self {
        Self {
            syscall_ns: 1_000,
            block_ns: 500,
            request_ns: 2_000,
            wake_ns: 3_000,
            queue_depth: 256,
            max_request_kib: 1280,
        }
    }
}

/// The largest cost: a second.
const MAX_NS: u64 = 1_000_000_000;

impl HostCosts {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Which figure is out of its range, and the range.
    pub fn check(&self) -> Result<(), String> {
        let costs = [
            ("syscall_ns", self.syscall_ns),
            ("block_ns", self.block_ns),
            ("request_ns", self.request_ns),
            ("wake_ns", self.wake_ns),
        ];
        if let Some((name, value)) = costs.into_iter().find(|(_, value)| *value > MAX_NS) {
            return Err(format!("{name} is {value}: give 0 to {MAX_NS}"));
        }
        if self.queue_depth == 0 {
            return Err("queue_depth is 0: give at least 1".into());
        }
        if self.max_request_kib < 4 {
            return Err(format!("max_request_kib is {}: give at least 4", self.max_request_kib));
        }
        Ok(())
    }

    /// CPU time of a call that moves so many blocks.
    pub const fn call(&self, blocks: u64) -> SimSpan {
        SimSpan::from_ns(self.syscall_ns + self.block_ns * blocks)
    }

    /// The largest request in blocks.
    pub const fn max_request_blocks(&self) -> u64 {
        self.max_request_kib as u64 / 4
    }
}
