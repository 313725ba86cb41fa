//! A command of a user's in a guest, and a power cut in the middle of it.

use dovetail_block::BlockDevice;
use dovetail_ftl::Storage;
use dovetail_linux::Cut;
use dovetail_time::{Ratio, SimSpan, SimTime};

use super::fio_results::Records;
use super::script::Work;
use super::watched::Watched;
use super::{Prepared, Watch, file_system, setup};
use crate::below::Below;
use crate::bench::{BenchError, Stack};
use crate::results::{RunResult, notes};

/// A shell command in a guest, on a volume or on a raw drive (`filesystem = "linux:none"`).
pub struct LinuxCommand<'a> {
    /// The stack; its file system begins with `linux:`.
    pub stack: &'a Stack,
    /// By how much drive and memory are shrunk.
    pub scale: Ratio,
    /// Seeds the drive's policies.
    pub seed: u64,
    /// The command, as a shell reads it.
    pub command: &'a str,
    /// The time at which the power goes; the volume is mounted and checked after it.
    pub cut: Option<Cut>,
    /// Tells that the run is to be ended.
    pub stop: &'a dyn Fn() -> bool,
}

/// A guest after a power cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    /// Virtual time of the cut, since the command began.
    pub cut_after: SimSpan,
    /// Time until the drive takes commands again.
    pub drive: SimSpan,
    /// Virtual time that mounting takes; `None` for a raw drive.
    pub mount: Option<SimSpan>,
    /// Words of the file system's checker, which found no fault; nothing for a raw drive.
    pub check: String,
}

/// A command that has ended.
#[derive(Clone, Debug)]
pub struct LinuxOutcome {
    /// Words of the command on its standard output and standard error.
    pub output: String,
    /// Its exit status; `None` after a power cut.
    pub status: Option<i32>,
    /// Results of the drive while it ran.
    pub run: RunResult,
    /// The way back from the power cut.
    pub recovery: Option<Recovery>,
}

impl LinuxCommand<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// A stack that is no guest's, failures of the guest, and a volume that its checker finds fault
    /// with.
    pub fn run(&self) -> Result<LinuxOutcome, BenchError> {
        let failed = setup(self.stack);
        let run = format!(
            "(\n{}\n) > $OUT/output 2>&1 && status=0 || status=$?\necho $status > $OUT/status\n",
            self.command
        );
        let work = Work {
            stack: self.stack,
            system: file_system(self.stack).map_err(&failed)?,
            scale: self.scale,
            prepare: "",
            run: &run,
        };
        let guest = Prepared::new(self.stack, (self.scale, self.seed), work.script())?;
        let mut watch = Watch::new(self.seed);
        let ended = guest.play(self.drive()?, self.cut, self.stop, &mut watch)?;
        if ended.was_cut {
            watch.end(ended.at, &ended.drive);
        }
        let elapsed = watch.recorder.last().at.since(watch.begin);
        let records = Records { threads: Vec::new(), jobs: Vec::new(), elapsed, error: None };
        let (name, scale) = (&self.stack.name, self.scale);
        let run = watch.results(name, self.stack, scale, &ended.drive, records);
        let run = RunResult { notes: notes(&run, false), seed: self.seed, ..run };
        let recovery = match ended.was_cut {
            true => {
                let cut_after = ended.at.since(watch.begin);
                Some(self.recover(&work, ended.drive, ended.at, cut_after)?)
            }
            false => None,
        };
        let status = guest.text("status").trim().parse().ok().filter(|_| recovery.is_none());
        Ok(LinuxOutcome { output: guest.text("output"), status, run, recovery })
    }

    fn drive(&self) -> Result<Watched, BenchError> {
        let failed = |error: &dyn std::fmt::Display| BenchError::Drive(error.to_string());
        let config = self.stack.drive_config(self.scale, self.seed)?;
        let drive = Storage::new(config).map_err(|error| failed(&error))?;
        let mut drive = Below::Drive(Box::new(drive));
        let blocks = self.stack.partition_blocks(drive.info().capacity(), self.scale)?;
        if self.cut.is_some() {
            drive.remember_operations();
        }
        Ok(Watched::new(drive, blocks))
    }

    /// Switches the drive on again and boots another guest on it.
    fn recover(
        &self,
        work: &Work<'_>,
        drive: Watched,
        at: SimTime,
        cut_after: SimSpan,
    ) -> Result<Recovery, BenchError> {
        let blocks = drive.info().capacity();
        let cycled = drive.drive.power_cycle_at(at);
        let lost = || BenchError::Drive("a log of the host's loses its map with the power".into());
        let (drive, cycle) =
            cycled.ok_or_else(lost)?.map_err(|error| BenchError::Drive(error.to_string()))?;
        let again = work.mount_again(Watched::new(drive, blocks), self.seed, self.stop)?;
        let mount = work.system.map(|_| again.took);
        Ok(Recovery { cut_after, drive: cycle.duration, mount, check: again.check })
    }
}
