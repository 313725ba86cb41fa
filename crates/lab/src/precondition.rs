//! Preconditioning: a drive that was written full in order and then at random until its write
//! amplification is steady, as the SNIA's Solid State Storage Performance Test Specification asks
//! for before measuring.

use dovetail_block::{BLOCK_SIZE, BlockDevice, BlockRange, Hints, Lba};
use dovetail_host::{CheckedDevice, HostError};
use dovetail_time::{Rng, SimTime};
use tracing::info;

use crate::below::Below;
use crate::progress::{Progress, Stage};
use crate::results::PreconditionResult;

/// Requests in flight (assumed; only the drive's state counts, not the time).
const QUEUE_DEPTH: usize = 32;
/// Blocks of a sequential write.
const SEQUENTIAL_BLOCKS: u64 = 64;
/// Before windows count, as much as the drive has spare flash is written at random: until then
/// cleaning has hardly begun. A window is this share of the drive; the write amplification of three
/// windows within 1 % of each other counts as steady.
const WINDOWS_PER_DRIVE: u64 = 4;
const STEADY_WINDOWS: usize = 3;
const STEADY_WITHIN: f64 = 0.01;
/// Ends unsteady after so many windows (six drive writes); no more than that is written before
/// them, either.
const MAX_WINDOWS: u64 = 24;

/// Reason why a drive was not prepared.
#[derive(Debug)]
pub(crate) enum NotPrepared {
    /// It was ended from outside.
    Stopped,
    /// The drive failed.
    Host(HostError),
}

impl From<HostError> for NotPrepared {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

/// A closed loop of writes whose completions are taken in the order of issue.
struct Loop<'a> {
    drive: &'a mut CheckedDevice<Below>,
    completions: [SimTime; QUEUE_DEPTH],
    next: usize,
    now: SimTime,
    requests: u64,
}

impl Loop<'_> {
    fn write(&mut self, lba: u64, blocks: u64) -> Result<(), NotPrepared> {
        let range = BlockRange::new(Lba(lba), blocks);
        self.now = self.now.max(self.completions[self.next]);
        self.completions[self.next] = self.drive.write(self.now, range, Hints::default(), false)?;
        self.next = (self.next + 1) % QUEUE_DEPTH;
        self.requests += 1;
        Ok(())
    }
}

/// Fills and ages the drive, and says so in the log.
pub(crate) fn precondition(
    drive: &mut CheckedDevice<Below>,
    seed: u64,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<PreconditionResult, NotPrepared> {
    info!("preconditioning the drive");
    let done = fill_and_age(drive, seed, stop, progress)?;
    info!(waf = done.waf, steady = done.steady, "preconditioned");
    Ok(done)
}

fn fill_and_age(
    drive: &mut CheckedDevice<Below>,
    seed: u64,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<PreconditionResult, NotPrepared> {
    // of a thin drive as much as it holds, not its addresses
    let blocks = drive.device().info().capacity();
    let parts = drive.device().geometry().subpages_per_page();
    let mut writer = Loop {
        drive,
        completions: [SimTime::ZERO; QUEUE_DEPTH],
        next: 0,
        now: SimTime::ZERO,
        requests: 0,
    };
    // Most drives are steady within three drive writes.
    let expected = blocks * 4;
    let mut tell = |requests, done: u64| {
        let total = expected.max(done) * BLOCK_SIZE;
        progress(Progress { stage: Stage::Precondition, done: done * BLOCK_SIZE, total, requests });
    };
    for start in (0..blocks).step_by(SEQUENTIAL_BLOCKS as usize) {
        if stop() {
            return Err(NotPrepared::Stopped);
        }
        writer.write(start, SEQUENTIAL_BLOCKS.min(blocks - start))?;
        if start % (1 << 16) == 0 {
            tell(writer.requests, start);
        }
    }
    let mut rng = Rng::new(seed).fork(1);
    let window = (blocks / WINDOWS_PER_DRIVE).max(1);
    let spare = (writer.drive.device().geometry().raw_bytes() / BLOCK_SIZE).saturating_sub(blocks);
    let mut random: u64 = 0;
    let mut write_at_random = |writer: &mut Loop<'_>, count: u64| -> Result<(), NotPrepared> {
        for _ in 0..count {
            if stop() {
                return Err(NotPrepared::Stopped);
            }
            writer.write(rng.below(blocks), 1)?;
            random += 1;
            if random.is_multiple_of(1 << 16) {
                tell(writer.requests, blocks + random);
            }
        }
        Ok(())
    };
    let unmeasured = spare.min(MAX_WINDOWS * window);
    write_at_random(&mut writer, unmeasured)?;
    let mut wafs = Vec::new();
    while !is_steady(&wafs) && (wafs.len() as u64) < MAX_WINDOWS {
        let device = writer.drive.device();
        let (before, log) = (device.counters(), device.log_counts());
        write_at_random(&mut writer, window)?;
        let device = writer.drive.device();
        let counted = device.counters() - before;
        let by_log = device.log_result(log).and_then(|result| result.waf).unwrap_or(1.0);
        wafs.push(counted.waf(parts).unwrap_or(1.0) * by_log);
    }
    // What the write buffer still holds belongs to the preparation.
    let now = writer.now;
    writer.drive.flush(now)?;
    writer.drive.device_mut().write_out(now)?;
    Ok(PreconditionResult {
        sequential_bytes: blocks * BLOCK_SIZE,
        random_bytes: (unmeasured + wafs.len() as u64 * window) * BLOCK_SIZE,
        waf: wafs.last().copied().unwrap_or(1.0),
        steady: is_steady(&wafs),
        kept: true,
    })
}

fn is_steady(wafs: &[f64]) -> bool {
    let Some(last) = wafs.len().checked_sub(STEADY_WINDOWS).map(|from| &wafs[from..]) else {
        return false;
    };
    let least = last.iter().copied().fold(f64::INFINITY, f64::min);
    let most = last.iter().copied().fold(0.0, f64::max);
    most - least <= STEADY_WITHIN * least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_means_three_windows_alike() {
        assert!(!is_steady(&[4.0, 4.0]));
        assert!(!is_steady(&[1.0, 3.0, 3.5, 3.52]));
        assert!(is_steady(&[1.0, 3.5, 3.52, 3.53]));
    }
}
