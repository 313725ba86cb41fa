//! Another guest that mounts a volume after a power cut.

use dovetail_block::{BLOCK_SIZE, BlockDevice, Command};
use dovetail_linux::Ended;
use dovetail_time::SimSpan;

use super::script::Work;
use super::watched::Watched;
use super::{Prepared, Watch, setup};
use crate::bench::BenchError;
use crate::results::{RequestsResult, RestartResult};

/// A volume that is mounted again.
pub(super) struct Again {
    /// Virtual time of the mount.
    pub(super) took: SimSpan,
    /// Words of the file system's checker, which found no fault; nothing for a raw drive.
    pub(super) check: String,
    /// Requests of the mount.
    requests: RequestsResult,
}

impl Work<'_> {
    /// Boots a guest on a drive whose power was cut; it mounts the volume and has it checked. Its
    /// kernel looks for partitions first, so that the mount begins when the drive takes commands.
    pub(super) fn mount_again(
        &self,
        drive: Watched,
        seed: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<Again, BenchError> {
        let guest = Prepared::new(self.stack, (self.scale, seed), self.recovery())?;
        let mut watch = Watch::new(seed);
        guest.play(drive, None, stop, &mut watch)?;
        let took = watch.recorder.last().at.since(watch.begin);
        Ok(Again { took, check: guest.text("check"), requests: watch.of_drive.requests })
    }

    /// Switches the drive of a guest that has ended off and on, when it has carried out all that was
    /// issued, and mounts the volume on it.
    pub(super) fn restart(
        &self,
        ended: Ended<Watched>,
        seed: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<RestartResult, BenchError> {
        let failed = |error: &dyn std::fmt::Display| {
            setup(self.stack)(format!("after a power cut: {error}"))
        };
        let Ended { mut drive, at, .. } = ended;
        // the drive's write buffer is no subject here: the file system's state is
        drive.submit(at, Command::Flush).map_err(|error| failed(&error))?;
        let blocks = drive.info().capacity();
        let cycled =
            drive.drive.power_cycle().ok_or_else(|| failed(&"its log has lost its map"))?;
        let (drive, cycle) = cycled.map_err(|error| failed(&error))?;
        let again = self.mount_again(Watched::new(drive, blocks), seed, stop)?;
        Ok(RestartResult {
            drive_s: cycle.duration.as_secs_f64(),
            drive_pages_read: cycle.pages_read,
            mount_s: again.took.as_secs_f64(),
            mount_read_blocks: again.requests.by_kind.read.bytes.div_ceil(BLOCK_SIZE),
            mount_written_blocks: again.requests.by_kind.write.bytes.div_ceil(BLOCK_SIZE),
        })
    }
}
