//! Power cuts under a file system: random operations on a recorded device, cut everywhere, and what
//! is left compared with what was promised.
//!
//! [`Workload::run`] performs operations on a file system over a [`RecordingDevice`] and on the
//! reference model. [`Workload::check_cuts`] then takes one state of the device for each cut,
//! mounts it, has it checked, and asks whether what is there is explained by the promises
//! (`explain.rs` has them, `docs/fault-model.md` tells them). The writes of recovery itself are cut
//! as well: recovery that is begun again must come to the same.
//!
//! By the seed the clock of the callers moves on with each operation, stands still for many, or
//! goes back (`clock.rs`). Virtual time, by which background work comes due, always moves on.
//!
//! The order of access times, link counts (the checker's business), and inodes without a name are
//! left out.

mod clock;
mod explain;
mod fragmented;
mod history;
mod snapshot;
mod survey;
mod tick;

use std::collections::BTreeSet;

use dovetail_block::MemoryDevice;
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::mode::S_IALLUGO;
use dovetail_vfs::{Caller, Fallocate, FileSystem, Guarantees, Limits, Moment};

use crate::exercise::{Generator, Op, Path, Profile, Step, Subject, Target};
use crate::{Crash, Model, Recording, RecordingDevice};
pub use clock::Clock;
pub use explain::{Explained, explain};
pub use fragmented::Fragmented;
pub use history::{History, Promise};
pub use snapshot::Snapshot;
pub use survey::{Survey, survey};
pub use tick::check_changes_in_one_tick;

/// A file system that can be made, mounted and checked.
pub trait Mountable {
    /// It, mounted.
    type Mounted: FileSystem;

    /// A fresh volume, cleanly unmounted.
    fn format(&self) -> MemoryDevice;

    /// Mounts a volume, and recovers it if a power cut left it.
    ///
    /// # Errors
    /// The problem, as a sentence.
    fn mount(&self, device: RecordingDevice<MemoryDevice>) -> Result<Self::Mounted, String>;

    /// Guarantees of the file system beyond POSIX.
    fn guarantees(&self) -> Guarantees {
        Guarantees::default()
    }

    /// Limits of the file system, so that operations fail on the model as they do on it.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Does what another user of the mounted volume does before a step of the workload, from step 1
    /// on: nothing that the model would have to know.
    ///
    /// # Errors
    /// The problem, as a sentence.
    fn beside(&self, _mounted: &mut Self::Mounted, _seed: u64, _step: usize) -> Result<(), String> {
        Ok(())
    }

    /// Checks a volume, mounted or not, and returns its errors: none if it is sound.
    fn check(&self, device: &MemoryDevice) -> Vec<String>;
}

/// Number of cuts that are tried.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    /// Every how many cuts of the workload one is taken; 1 for all.
    pub every: usize,
    /// Of every how many recoveries the writes are cut as well.
    pub recoveries: usize,
    /// Number of cuts in such a recovery.
    pub in_recovery: usize,
}

impl Default for Cuts {
    /// Every cut, three cuts of every fourth recovery.
    fn default() -> Self {
        Self { every: 1, recoveries: 4, in_recovery: 3 }
    }
}

/// Counts of what was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// States after a cut that were mounted.
    pub cuts: usize,
    /// Of them, those that recovery wrote to.
    pub recovered: usize,
    /// Cuts during recovery.
    pub in_recovery: usize,
    /// fsyncs and syncs that promised something.
    pub promises: usize,
}

impl std::ops::AddAssign for Tried {
    fn add_assign(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.recovered += other.recovered;
        self.in_recovery += other.in_recovery;
        self.promises += other.promises;
    }
}

/// Operations that were performed, with what they left at each moment.
#[derive(Debug)]
pub struct Workload<'a, M> {
    subject: &'a M,
    seed: u64,
    recording: Recording,
    history: History,
}

impl<'a, M: Mountable> Workload<'a, M> {
    /// Performs `steps` random operations on a fresh volume, and on the model.
    ///
    /// # Errors
    /// The volume cannot be mounted; an operation succeeds on one and fails on the other.
    pub fn run(subject: &'a M, seed: u64, profile: Profile, steps: usize) -> Result<Self, String> {
        let device = RecordingDevice::new(subject.format());
        let recording = device.recording();
        let mut mounted = Subject::new(subject.mount(device)?);
        let mut model = Subject::new(Model::new(subject.limits(), &Caller::default()));
        adopt_root(&mut mounted.fs, &mut model.fs).map_err(|error| format!("the root: {error}"))?;
        let unread = |error: dovetail_vfs::Error| format!("the model cannot be read: {error}");
        let mut history = History::new(&mut model.fs).map_err(unread)?;
        let mut operations = Operations::new(seed, profile);
        for n in 1..=steps {
            let step = operations.next_step();
            if punches_beyond_end(&step.op, &mut model) {
                continue; // changes nothing; what it does to times is another test's business
            }
            subject.beside(&mut mounted.fs, seed, n).map_err(|what| format!("step {n}: {what}"))?;
            let promise = Promise::of(&step.op, &mut model);
            let (expected, found) = (model.apply(&step), mounted.apply(&step));
            // that answers and errors agree in every detail is another test's business
            if changes(&step.op) && expected.is_ok() != found.is_ok() {
                return Err(format!(
                    "step {n}, {:?}: expected {expected:?}, found {found:?}",
                    step.op
                ));
            }
            let position = recording.position() as u64;
            history
                .push(promise.filter(|_| found.is_ok()), &mut model.fs, position)
                .map_err(unread)?;
            if found.is_ok() && changes(&step.op) {
                history.show(show(&step.op));
            }
            let now = SimTime::from_ns(n as u64 * 1_000_000_000);
            mounted.fs.set_now(Moment::at(now));
            mounted.fs.wake().map_err(|error| format!("step {n}: in the background: {error}"))?;
        }
        Ok(Self { subject, seed, recording, history })
    }

    /// Record of what was done to the device: for whoever makes states of a cut in another way than
    /// [`Self::check_cuts`], on a model of a real drive.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Cuts the power everywhere, and compares.
    ///
    /// # Errors
    /// The first state after a cut that cannot be mounted, that the checker finds fault with, or
    /// that no promise explains; the number of the cut tells where, and the clock of the workload
    /// is named.
    pub fn check_cuts(&self, cuts: Cuts) -> Result<Tried, String> {
        let mut tried = Tried { promises: self.history.promises(), ..Tried::default() };
        for crash in self.recording.crashes(self.seed).step_by(cuts.every.max(1)) {
            let (cut, survivors, unflushed) = (crash.cut, crash.survivors, crash.unflushed);
            let clock = Clock::of(self.seed);
            let place = format!(
                "cut {cut}, {survivors:?} of {unflushed} unflushed blocks, clock {clock:?}"
            );
            self.check_crash(&crash, cuts, &mut tried)
                .map_err(|what| format!("{place}: {what}"))?;
        }
        Ok(tried)
    }

    /// Mounts one state after a cut, and compares; also after cuts of some of the recoveries.
    ///
    /// # Errors
    /// As [`Self::check_cuts`].
    pub fn check_crash(&self, crash: &Crash, cuts: Cuts, tried: &mut Tried) -> Result<(), String> {
        sound(self.subject.check(&crash.device))
            .map_err(|what| format!("before recovery: {what}"))?;
        let (recovered, found) = self.recover(&crash.device)?;
        let complete = self.history.complete_at(crash.cut as u64);
        explain(&self.history, complete, self.subject.guarantees(), &found)?;
        tried.cuts += 1;
        let wrote = recovered.recording().position() > 0;
        tried.recovered += usize::from(wrote);
        if wrote && tried.recovered.is_multiple_of(cuts.recoveries.max(1)) {
            self.cut_recovery(crash, &recovered, &found, cuts.in_recovery, tried)?;
        }
        Ok(())
    }

    /// Mounts, checks and reads.
    fn recover(&self, device: &MemoryDevice) -> Result<(Recovered, Snapshot), String> {
        let device = RecordingDevice::new(device.clone());
        let recovered = Recovered(device.recording());
        let mut mounted =
            self.subject.mount(device).map_err(|error| format!("it cannot be mounted: {error}"))?;
        sound(self.subject.check(&recovered.recording().newest()))
            .map_err(|what| format!("after recovery: {what}"))?;
        let found = Snapshot::read(&mut mounted);
        Ok((recovered, found.map_err(|error| format!("it cannot be read: {error}"))?))
    }

    /// Recovery that is cut and begun again comes to the same.
    fn cut_recovery(
        &self,
        crash: &Crash,
        recovered: &Recovered,
        expected: &Snapshot,
        count: usize,
        tried: &mut Tried,
    ) -> Result<(), String> {
        let mut rng = Rng::new(self.seed).fork(crash.cut as u64);
        let cuts = recovered.recording().cuts() as u64;
        let chosen: BTreeSet<u64> = (0..count).map(|_| rng.below(cuts)).collect();
        for cut in chosen {
            let again = recovered.recording().crashes(rng.next_u64()).nth(cut as usize);
            let Some(again) = again else { continue };
            let place = format!("recovery cut at {cut} of {cuts}, {:?}", again.survivors);
            let (_, found) =
                self.recover(&again.device).map_err(|what| format!("{place}: {what}"))?;
            expected.same_tree(&found).map_err(|what| format!("{place}: begun again, {what}"))?;
            tried.in_recovery += 1;
        }
        Ok(())
    }
}

/// The record of a recovery's writes.
struct Recovered(Recording);

impl Recovered {
    fn recording(&self) -> &Recording {
        &self.0
    }
}

/// Gives the root of `to` the attributes of the root of `from`.
///
/// # Errors
/// The file systems'.
pub fn adopt_root(
    from: &mut impl FileSystem,
    to: &mut impl FileSystem,
) -> Result<(), dovetail_vfs::Error> {
    let attr = from.getattr(from.root())?;
    let changes = dovetail_vfs::SetAttr {
        mode: Some(attr.mode & S_IALLUGO),
        uid: Some(attr.uid),
        gid: Some(attr.gid),
        atime: Some(attr.atime),
        mtime: Some(attr.mtime),
        ctime: Some(attr.ctime),
        size: None,
    };
    to.setattr(&Caller::default(), to.root(), &changes).map(drop)
}

fn sound(complaints: Vec<String>) -> Result<(), String> {
    if complaints.is_empty() { Ok(()) } else { Err(format!("the checker says {complaints:#?}")) }
}

/// The operations of the generator, at the times of a clock, with fsyncs of what they touch among
/// them.
struct Operations {
    generator: Generator,
    clock: Clock,
    rng: Rng,
    last: Option<(Caller, Vec<Path>)>,
}

impl Operations {
    fn new(seed: u64, profile: Profile) -> Self {
        let (generator, rng) = (Generator::new(seed, profile), Rng::new(seed).fork(1));
        Self { generator, clock: Clock::of(seed), rng, last: None }
    }

    fn next_step(&mut self) -> Step {
        if let Some((caller, paths)) = self.last.take().filter(|_| self.rng.chance(0.3)) {
            let path = paths[self.rng.below(paths.len() as u64) as usize].clone();
            let data_only = self.rng.chance(0.3);
            return Step { caller, op: Op::Fsync { target: Target::Path(path), data_only } };
        }
        let mut step = self.generator.next_step();
        step.caller.now = self.clock.at(step.caller.now);
        self.last = Some((step.caller, touched(&step.op))).filter(|(_, paths)| !paths.is_empty());
        step
    }
}

/// Is true for a hole punched beyond a file's end: it changes nothing, and its effect on times
/// differs between file systems. A file that is not there counts too.
pub fn punches_beyond_end<F: FileSystem>(op: &Op, model: &mut Subject<F>) -> bool {
    let Op::Fallocate { target, how: Fallocate::PunchHole, offset, .. } = op else { return false };
    let size = model.find(target).and_then(|ino| model.fs.getattr(ino)).map(|attr| attr.size);
    size.map_or(true, |size| *offset >= size)
}

/// Is true for an operation that changes or promises something.
pub fn changes(op: &Op) -> bool {
    !matches!(
        op,
        Op::Read { .. }
            | Op::Seek { .. }
            | Op::GetXattr { .. }
            | Op::Stat { .. }
            | Op::Readlink { .. }
            | Op::List { .. }
    )
}

/// The operation, with its names readable.
fn show(op: &Op) -> String {
    let names = |path: &Path| {
        path.iter().map(|name| format!("/{}", name.escape_ascii())).collect::<String>()
    };
    let target = |target: &Target| match target {
        Target::Path(path) => names(path),
        Target::Held(slot) => format!("held {slot}"),
    };
    match op {
        Op::Create { path, mode, .. } => format!("create {} {mode:o}", names(path)),
        Op::Symlink { path, len } => format!("symlink {} of {len}", names(path)),
        Op::Link { target: from, path } => format!("link {} to {}", target(from), names(path)),
        Op::Unlink { path } => format!("unlink {}", names(path)),
        Op::Rmdir { path } => format!("rmdir {}", names(path)),
        Op::Rename { from, to, flags } => {
            format!("rename {} to {} {flags:?}", names(from), names(to))
        }
        Op::Hold { path, slot } => format!("hold {} as {slot}", names(path)),
        Op::Write { target: to, offset, len, .. } => format!("write {} {offset} {len}", target(to)),
        Op::Fallocate { target: to, how, offset, len } => {
            format!("{how:?} {} {offset} {len}", target(to))
        }
        Op::SetAttr { target: to, changes } => format!("setattr {} {changes:?}", target(to)),
        Op::SetXattr { target: to, name, len, .. } => {
            format!("setxattr {} {} {len}", target(to), name.escape_ascii())
        }
        Op::RemoveXattr { target: to, name } => {
            format!("removexattr {} {}", target(to), name.escape_ascii())
        }
        Op::Fsync { target: to, data_only } => {
            format!("fsync {} data_only {data_only}", target(to))
        }
        other => format!("{other:?}"),
    }
}

/// The paths that an operation changed: a file, and the directories of names.
fn touched(op: &Op) -> Vec<Path> {
    match op {
        Op::Create { path, .. } | Op::Link { path, .. } => vec![path.clone(), parent(path)],
        Op::Rename { from, to, .. } => vec![to.clone(), parent(from), parent(to)],
        Op::Symlink { path, .. } | Op::Unlink { path } | Op::Rmdir { path } => vec![parent(path)],
        Op::Write { target: Target::Path(path), .. }
        | Op::Fallocate { target: Target::Path(path), .. }
        | Op::SetAttr { target: Target::Path(path), .. }
        | Op::SetXattr { target: Target::Path(path), .. }
        | Op::RemoveXattr { target: Target::Path(path), .. } => vec![path.clone()],
        _ => Vec::new(),
    }
}

/// The directory of a name.
fn parent(path: &Path) -> Path {
    path[..path.len().saturating_sub(1)].to_vec()
}
