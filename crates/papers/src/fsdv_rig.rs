//! The rig of the FSDV paper: a file system on its drive, one thread of a workload, and the tool
//! beside it.
//!
//! File system and drive meet without a host between them: which place a block has is known to the
//! drive alone, when the call is made, so calls come one after another and cost the host nothing.
//! Virtual time is that of the drive.

use dovetail_devirt::{Hot, Report, Run, Selection, Unit, Way};
use dovetail_ext::Ext;
use dovetail_f2fs::F2fs;
use dovetail_ftl::{Drive, DriveConfig, Overrides};
use dovetail_lab::bench::BenchError;
use dovetail_lab::bench::{CallError, Files};
use dovetail_lab::results::Results;
use dovetail_time::{Ratio, SimSpan, SimTime};
use dovetail_vfs::{Devirtualize, FileSystem, Moment, Simulated};
use dovetail_workload::fileset::{Amount, FileSet, FileSetConfig};
use dovetail_workload::personality::{Personality, PersonalityWorkload};
use dovetail_workload::{Call, Outcome, Step, ThreadId, Workload};

use super::Setting;

/// The journal of mke2fs on the full drive.
const JOURNAL_BLOCKS: f64 = 32_768.0;

/// A line of table I.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    /// Number of files.
    files: u32,
    size: Size,
}

/// Sizes of a load's files.
#[derive(Clone, Copy, Debug)]
enum Size {
    /// Of Filebench's fileserver, with this mean in KiB.
    Fileserver(u32),
    /// Of Impressions' models, with this sum in bytes.
    Impressions(f64),
}

const fn fileserver(name: &'static str, files: u32, kib: u32) -> Load {
    Load { name, files, size: Size::Fileserver(kib) }
}

/// The table has 3.6 GB and 1.2 MB a file: units of 10^9 bytes, or the mean is not met.
const I1: Load = Load { name: "I1", files: 3000, size: Size::Impressions(3.6e9) };

pub(crate) const LOADS: [Load; 6] = [
    fileserver("F1", 1000, 512),
    fileserver("F2", 2000, 512),
    fileserver("F3", 2000, 1024),
    fileserver("F4", 2000, 2048),
    fileserver("F5", 4000, 1024),
    I1,
];

impl Load {
    /// Its files, and what is done with them.
    pub(crate) fn workload(
        &self,
        scale: Ratio,
        seed: u64,
    ) -> Result<Box<dyn Workload>, BenchError> {
        let files = ((f64::from(self.files) * scale.value()).round() as u32).max(10);
        if let Size::Impressions(bytes) = self.size {
            let amount =
                Amount::FilesOfBytes { files: files.into(), bytes: (bytes * scale.value()) as u64 };
            let set = FileSet::generate("i1", &FileSetConfig::new(amount), seed);
            return Ok(Box::new(set.map_err(|error| wrong(&error))?));
        }
        let files = files.to_string();
        let fileserver = self.fileserver(&[("nfiles", &files), ("runtime", "100000")])?;
        let workload = PersonalityWorkload::new(&fileserver, seed);
        Ok(Box::new(workload.map_err(|error| wrong(&error))?))
    }

    /// Filebench's fileserver with this load's files and one thread.
    fn fileserver(&self, more: &[(&str, &str)]) -> Result<Personality, BenchError> {
        let mut fileserver = Personality::load("fileserver").map_err(|error| wrong(&error))?;
        let kib = match self.size {
            Size::Fileserver(kib) => kib,
            Size::Impressions(_) => 0,
        };
        let (files, mean) = (self.files.to_string(), format!("{kib}k"));
        let changes = [("nfiles", files.as_str()), ("meanfilesize", &mean), ("nthreads", "1")];
        fileserver.set(changes).map_err(|error| wrong(&error))?;
        fileserver.set(more.iter().copied()).map_err(|error| wrong(&error))?;
        Ok(fileserver)
    }
}

fn wrong(error: &dyn std::fmt::Display) -> BenchError {
    BenchError::Workload(error.to_string())
}

/// A file system right on a drive.
pub(crate) trait OnDrive: Simulated + Devirtualize + Sized {
    /// With its drive, for messages.
    const NAME: &'static str;
    /// Time that passes after each call (assumed): time stands still where calls wait for nothing.
    const PAUSE: SimSpan;

    /// Makes a volume and mounts it so that the tool can run.
    fn made(drive: Drive, scale: Ratio) -> Result<Self, BenchError>;

    fn drive(&self) -> &Drive;
}

impl OnDrive for Ext<Drive> {
    const NAME: &'static str = "ext3 on fsdv-5g";
    const PAUSE: SimSpan = SimSpan::ZERO;

    fn made(mut drive: Drive, scale: Ratio) -> Result<Self, BenchError> {
        use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
        let blocks = (JOURNAL_BLOCKS * scale.value()).max(1024.0) as u32;
        let made = MkfsOptions {
            block_size: Some(4096),
            inode_ratio: Some(16_384),
            journal_blocks: Some(blocks),
            ..MkfsOptions::new(Kind::Ext3)
        };
        mkfs(&mut drive, &made).map_err(setup::<Self>)?;
        let options = dovetail_ext::Options { physical_pointers: true, ..Default::default() };
        Self::mount(drive, options, SimTime::ZERO).map_err(setup::<Self>)
    }

    fn drive(&self) -> &Drive {
        self.device()
    }
}

impl OnDrive for F2fs<Drive> {
    const NAME: &'static str = "F2FS on fsdv-5g";
    const PAUSE: SimSpan = SimSpan::from_us(100);

    fn made(mut drive: Drive, _: Ratio) -> Result<Self, BenchError> {
        use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
        mkfs(&mut drive, &MkfsOptions::default()).map_err(setup::<Self>)?;
        let options = dovetail_f2fs::Options { physical_pointers: true, ..Default::default() };
        Self::mount(drive, options, SimTime::ZERO).map_err(setup::<Self>)
    }

    fn drive(&self) -> &Drive {
        self.device()
    }
}

/// The drive of the paper, with what is to be different.
pub(crate) fn drive_config(
    setting: &Setting<'_>,
    overrides: Overrides,
) -> Result<DriveConfig, BenchError> {
    let profile = setting.changes.profile("fsdv-5g")?;
    let overrides = Overrides { scale: Some(setting.scale), seed: setting.seed, ..overrides };
    profile.resolve(&overrides).map_err(|error| BenchError::Drive(error.to_string()))
}

/// Calls of one kind, and how long they took together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    calls: u64,
    time: SimSpan,
    /// Beside it, before they could begin.
    waited: SimSpan,
}

impl Spent {
    fn add(&mut self, time: SimSpan, waited: SimSpan) {
        *self =
            Self { calls: self.calls + 1, time: self.time + time, waited: self.waited + waited };
    }

    /// Microseconds a call, but for waiting.
    pub(crate) fn mean_us(self) -> f64 {
        self.mean_of(self.time)
    }

    /// Microseconds a call, waiting included.
    pub(crate) fn latency_us(self) -> f64 {
        self.mean_of(self.time + self.waited)
    }

    fn mean_of(self, time: SimSpan) -> f64 {
        time.as_ns() as f64 / 1000.0 / self.calls.max(1) as f64
    }
}

/// A run of the tool, and its batches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pass {
    pub(crate) report: Report,
    /// Seconds of all batches, and the sum of their squares.
    batches_s: f64,
    squares: f64,
}

impl Pass {
    fn add(&mut self, after: Report) {
        let batches = |report: &Report| report.content_time + report.metadata_time;
        let last = (batches(&after) - batches(&self.report)).as_secs_f64();
        (self.batches_s, self.squares) = (self.batches_s + last, self.squares + last * last);
        self.report = after;
    }

    /// Mean time in milliseconds for which a call waits that comes during a batch, all moments
    /// being alike: the rest of that batch.
    pub(crate) fn blocking_ms(&self) -> f64 {
        self.squares / self.batches_s.max(1e-12) / 2.0 * 1000.0
    }
}

/// A volume with a workload's files, and what the workload does.
pub(crate) struct Rig<F> {
    fs: F,
    files: Files,
    workload: Box<dyn Workload>,
    /// Calls that the workload has made.
    pub(crate) calls: u64,
    /// Time that passes between a call and the next one.
    pub(crate) pause: SimSpan,
    /// Reads and writes of the workload.
    pub(crate) reads: Spent,
    pub(crate) writes: Spent,
    /// The next call waits so long: a batch of the tool was under way.
    wait: SimSpan,
}

impl<F: OnDrive> Rig<F> {
    /// The files are there, and all is on the drive.
    pub(crate) fn new(load: &Load, setting: &Setting<'_>) -> Result<Self, BenchError> {
        let config = drive_config(setting, Overrides::default())?;
        let drive = Drive::new(config).map_err(|error| BenchError::Drive(error.to_string()))?;
        Self::prepared(F::made(drive, setting.scale)?, load.workload(setting.scale, setting.seed)?)
    }

    /// The same of a file system that is mounted.
    pub(crate) fn prepared(fs: F, workload: Box<dyn Workload>) -> Result<Self, BenchError> {
        let (files, pause, wait) = (Files::default(), F::PAUSE, SimSpan::ZERO);
        let (reads, writes) = (Spent::default(), Spent::default());
        let mut rig = Self { fs, files, workload, calls: 0, pause, reads, writes, wait };
        while let Some(call) = rig.workload.prepare() {
            rig.perform(&call)?;
        }
        rig.sync()?;
        Ok(rig)
    }

    pub(crate) fn now(&self) -> SimTime {
        self.fs.now()
    }

    /// Bytes of the drive's memory that its map takes.
    pub(crate) fn map_bytes(&self) -> u64 {
        self.fs.drive().mapping_memory_bytes()
    }

    /// Bytes of it that say which flash pages are reached by their own addresses, a bit for each.
    pub(crate) fn bit_bytes(&self) -> u64 {
        use dovetail_block::BlockDevice;
        let space = self.fs.drive().info().capabilities.devirtualize;
        space.map_or(0, |space| space.blocks / 8)
    }

    fn perform(&mut self, call: &Call) -> Result<u64, BenchError> {
        let now = self.fs.now();
        if self.fs.next_wake().is_some_and(|due| due <= now) {
            self.fs.wake().map_err(failed::<F>)?;
        }
        let path = call.file().map(|file| self.workload.path(file).to_string()).unwrap_or_default();
        let done = self.files.perform(&mut self.fs, now, call, &path);
        done.map(|effect| effect.bytes).map_err(|error| match error {
            CallError::Refused(error) => failed::<F>(error),
            CallError::WrongData { block } => {
                BenchError::Workload(format!("{path}: block {block} holds something else"))
            }
        })
    }

    /// Makes the next call; `false` if there is none any more.
    pub(crate) fn step(&mut self) -> Result<bool, BenchError> {
        let (thread, begin) = (ThreadId(0), self.fs.now());
        match self.workload.next(thread, begin) {
            Step::Call(call) => {
                let bytes = self.perform(&call)?;
                self.calls += 1;
                let end = self.fs.now();
                self.count(&call, end.since(begin));
                self.workload.ended(thread, &call, &Outcome { begin, end, bytes });
                FileSystem::set_now(&mut self.fs, Moment::at(end + self.pause));
                Ok(true)
            }
            Step::Sleep(until) => {
                FileSystem::set_now(&mut self.fs, Moment::at(until));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn count(&mut self, call: &Call, time: SimSpan) {
        let waited = std::mem::take(&mut self.wait);
        match call {
            Call::Read { .. } => self.reads.add(time, waited),
            Call::Write { .. } | Call::Append { .. } => self.writes.add(time, waited),
            _ => {}
        }
    }

    /// Begins a run of the tool, whose batches come between calls.
    pub(crate) fn begin_run(&mut self) -> Result<Run, BenchError> {
        let begin = self.fs.now();
        let selection = Selection::due(&mut self.fs, Hot::default()).map_err(failed::<F>)?;
        let run = Run::new(&self.fs, Way::ToDevice, selection).map_err(failed::<F>)?;
        self.wait += self.fs.now().since(begin);
        Ok(run)
    }

    /// Carries out a batch of it; `false` if there was none. A call that comes meanwhile waits: the
    /// next one is counted so.
    pub(crate) fn step_run(&mut self, run: &mut Run) -> Result<bool, BenchError> {
        let begin = self.fs.now();
        let more = run.step(&mut self.fs).map_err(failed::<F>)?;
        self.wait += self.fs.now().since(begin);
        Ok(more)
    }

    /// Lets the workload run until a time.
    pub(crate) fn run_until(&mut self, until: SimTime) -> Result<(), BenchError> {
        while self.fs.now() < until && self.step()? {}
        Ok(())
    }

    /// Lets the tool run, its batches one after another.
    pub(crate) fn devirtualize(&mut self, hot: SimSpan, unit: Unit) -> Result<Pass, BenchError> {
        let selection = Selection::due(&mut self.fs, Hot { within: hot }).map_err(failed::<F>)?;
        let run = Run::new(&self.fs, Way::ToDevice, selection).map_err(failed::<F>)?;
        let (mut run, mut pass) = (run.with_unit(unit), Pass::default());
        while run.step(&mut self.fs).map_err(failed::<F>)? {
            pass.add(run.report());
        }
        pass.report = run.report();
        Ok(pass)
    }

    /// Everything that was written is on the drive.
    pub(crate) fn sync(&mut self) -> Result<(), BenchError> {
        self.fs.sync().map_err(failed::<F>)
    }

    /// The drive's maps agree.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert_eq!(self.fs.drive().check(), Ok(()));
    }
}

fn setup<F: OnDrive>(error: impl std::fmt::Display) -> BenchError {
    BenchError::Setup { stack: F::NAME.into(), reason: error.to_string() }
}

fn failed<F: OnDrive>(error: dovetail_vfs::Error) -> BenchError {
    BenchError::Workload(format!("{}: {error}", F::NAME))
}

/// These figures have no runs on stacks.
pub(crate) fn no_runs(setting: &Setting<'_>) -> Results {
    Results::of("table I of the FSDV paper".into(), setting.scale.value(), setting.seed, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::with_setting;

    #[test]
    fn a_run_over_all_files_halves_the_map_and_leaves_maps_that_agree() {
        with_setting("1/64", |setting| {
            let mut rig = Rig::<Ext<Drive>>::new(&LOADS[5], setting).unwrap();
            let before = rig.map_bytes();
            rig.devirtualize(SimSpan::ZERO, Unit::MetadataBlock).unwrap();
            rig.check();
            assert!(rig.map_bytes() * 2 < before);
        });
    }
}
