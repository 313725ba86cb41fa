//! A workload played on a stack and on the reference model at once, with power cuts on the way.

use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, BlockBytes, Content};
use dovetail_devirt::{Hot, Run, Selection, Way};
use dovetail_testkit::Model;
use dovetail_testkit::crash::{Clock, History, Promise, adopt_root, changes, punches_beyond_end};
use dovetail_testkit::exercise::{Op, Path, Step, Subject, Target};
use dovetail_time::SimTime;
use dovetail_vfs::mode::S_IALLUGO;
use dovetail_vfs::{Caller, Error, FileSystem, Moment, SetAttr, Simulated};

use crate::language::{Action, show};
use crate::rig::Rig;
use crate::script::{Line, Script};
use crate::wire::{Choice, Cut, Wire};
use crate::{CrashError, Violation};

/// Most wake-ups of the background at one time; more would be a file system that never rests.
const MOST_WAKES: u32 = 1000;

/// A stack on which a workload is being played.
pub(crate) struct Player {
    stack: String,
    drive_bytes: u64,
    wire: Wire,
    mounted: Subject<Box<dyn Simulated>>,
    model: Subject<Model>,
    pub(crate) history: History,
    /// The operations so far, to be played again.
    pub(crate) done: Vec<Line>,
    clock: Clock,
    number: u32,
    now: SimTime,
    /// The last operation found no room.
    is_full: bool,
}

/// The reason why a run ended early.
pub(crate) enum Stop {
    /// The stack answered what the model does not.
    Violation(Violation),
    /// The run cannot be played.
    Error(CrashError),
    /// Somebody has seen enough.
    Early,
}

impl From<CrashError> for Stop {
    fn from(error: CrashError) -> Self {
        Self::Error(error)
    }
}

impl Player {
    /// Mounts a copy of the rig's volume.
    pub(crate) fn new(rig: &Rig, clock: Clock) -> Result<Self, CrashError> {
        let wire = rig.start()?;
        let volume = rig.volume()?;
        let mut mounted = volume.mount(Box::new(wire.clone()))?;
        // F2FS writes a checkpoint for the first fsync after a mount, whatever it is; only later
        // ones leave something to be rolled forward. One clock is left for the first
        if clock != Clock::Moves {
            settle(&mut mounted)?;
        }
        let now = mounted.returned_at();
        let unread = |error: Error| CrashError::Setup(format!("the root directory: {error}"));
        let mut model = Model::new(volume.limits(), &Caller::default());
        adopt_root(&mut mounted, &mut model).map_err(unread)?;
        let history = History::new(&mut model).map_err(unread)?;
        let (mounted, model) = (Subject::new(mounted), Subject::new(model));
        Ok(Self {
            stack: rig.stack.name.clone(),
            drive_bytes: rig.blocks * BLOCK_SIZE,
            wire,
            mounted,
            model,
            history,
            done: Vec::new(),
            clock,
            number: 0,
            now,
            is_full: false,
        })
    }

    /// Plays what comes before the workload: it is durable when that begins, and not cut.
    pub(crate) fn prepare(&mut self, lines: Vec<Line>) -> Result<(), Stop> {
        for line in lines {
            self.play(&line)?;
            self.check_room(&line)?;
        }
        let unread = |error: Error| CrashError::Setup(error.to_string());
        self.history = History::new(&mut self.model.fs).map_err(unread)?;
        Ok(())
    }

    /// Plays a workload to its end; `judge` is shown each cut with what was done so far, and may
    /// end the run. Returns how many moments there were.
    pub(crate) fn run(
        &mut self,
        script: &mut dyn Script,
        choice: Choice,
        judge: &mut dyn FnMut(&Self, Cut) -> Result<(), Stop>,
    ) -> Result<u64, Stop> {
        self.wire.begin(self.now, choice);
        let mut ended = None;
        while let Some(line) = script.next(self.now, ended) {
            let begin = self.now;
            self.play(&line)?;
            if script.needs_room() {
                self.check_room(&line)?;
            }
            ended = Some((begin, self.now));
            for cut in self.wire.take() {
                judge(self, cut)?;
            }
        }
        if let Some(problem) = script.problem() {
            return Err(Stop::Error(CrashError::Setup(problem)));
        }
        self.wire.finish();
        for cut in self.wire.take() {
            judge(self, cut)?;
        }
        Ok(self.wire.moments().0)
    }

    fn check_room(&self, line: &Line) -> Result<(), Stop> {
        if !self.is_full {
            return Ok(());
        }
        Err(Stop::Error(CrashError::NoRoom {
            stack: self.stack.clone(),
            operation: show(&line.action),
            drive_bytes: self.drive_bytes,
        }))
    }

    /// The way to the drive.
    pub(crate) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Moments so far.
    pub(crate) fn moments(&self) -> u64 {
        self.wire.moments().0
    }

    /// The moments at which something that promises durability returned.
    pub(crate) fn persistence_points(&self) -> std::collections::BTreeSet<u64> {
        self.wire.moments().1
    }

    fn play(&mut self, line: &Line) -> Result<(), Stop> {
        if let Action::Op(op) = &line.action
            && punches_beyond_end(op, &mut self.model)
        {
            return Ok(());
        }
        self.number += 1;
        self.is_full = false;
        self.done.push(line.clone());
        let caller = Caller { now: self.clock.at(Clock::moving(self.number)), ..line.caller };
        self.mounted.fs.set_now(Moment::at(self.now));
        match &line.action {
            Action::Sleep(span) => {
                let until = self.now + *span;
                self.wake_until(until)?;
                self.now = self.now.max(until);
            }
            Action::Devirtualize => self.devirtualize()?,
            Action::Op(op) => self.operation(&Step { caller, op: op.clone() }, line)?,
            Action::DirectWrite { path, offset, len, fill } => {
                let written = self.direct_write(&caller, path, (*offset, *len), *fill);
                let op = Op::Write {
                    target: Target::Path(path.clone()),
                    offset: *offset,
                    len: *len as usize,
                    fill: *fill,
                };
                self.compare(&Step { caller, op }, line, written.map_err(Some))?;
            }
        }
        let now = self.now;
        self.wake_until(now)
    }

    fn operation(&mut self, step: &Step, line: &Line) -> Result<(), Stop> {
        if let Op::Read { .. } = step.op {
            return self.read(step, line);
        }
        let outcome = self.mounted.apply(step);
        self.compare(step, line, outcome.map(drop).map_err(|failed| Some(failed.0)))
    }

    /// Compares a read with the model.
    fn read(&mut self, step: &Step, line: &Line) -> Result<(), Stop> {
        let (found, expected) = (self.mounted.apply(step), self.model.apply(step));
        self.now = self.now.max(self.mounted.fs.returned_at());
        if found == expected {
            Ok(())
        } else {
            Err(self.differs(line, "what it reads is not what was written"))
        }
    }

    /// Performs on the model what the stack has performed, and notes what both came to.
    fn compare(
        &mut self,
        step: &Step,
        line: &Line,
        found: Result<(), Option<Error>>,
    ) -> Result<(), Stop> {
        self.now = self.now.max(self.mounted.fs.returned_at());
        // without room nothing has changed, and the model has always room
        if let Err(Some(Error::NoSpace)) = found {
            self.is_full = true;
            return Ok(());
        }
        let promise = Promise::of(&step.op, &mut self.model);
        let expected = self.model.apply(step);
        if !changes(&step.op) {
            return Ok(());
        }
        if expected.is_ok() != found.is_ok() {
            let (found, expected) =
                (said(found.err().flatten()), said(expected.err().map(|failed| failed.0)));
            return Err(
                self.differs(line, &format!("it answered \"{found}\", the model \"{expected}\""))
            );
        }
        if found.is_err() {
            return Ok(());
        }
        let unread = |error: Error| CrashError::Setup(format!("the model: {error}"));
        let (promise, at) = (promise.filter(|_| found.is_ok()), self.now);
        self.history.push(promise, &mut self.model.fs, at.as_ns()).map_err(unread)?;
        self.history.show(show(&line.action));
        if promise.is_some() {
            self.wire.persisted(at);
        }
        Ok(())
    }

    fn differs(&self, line: &Line, what: &str) -> Stop {
        Stop::Violation(Violation::without_cut(format!("{}: {what}", show(&line.action))))
    }

    fn direct_write(
        &mut self,
        caller: &Caller,
        path: &Path,
        (offset, len): (u64, u64),
        fill: u8,
    ) -> Result<(), Error> {
        let fs = &mut self.mounted.fs;
        let ino = path
            .iter()
            .try_fold(fs.root(), |dir, name| Ok::<_, Error>(fs.lookup(dir, name)?.ino))?;
        let bytes = dovetail_testkit::exercise::content(fill, offset, len as usize);
        let blocks = bytes.chunks_exact(BLOCK_SIZE as usize).map(|block| {
            let mut copy: BlockBytes = [0; BLOCK_SIZE as usize];
            copy.copy_from_slice(block);
            Content::Bytes(Arc::new(copy))
        });
        let contents: Vec<Content> = blocks.collect();
        fs.write_pages(caller, ino, (offset, len), &contents, true)
    }

    /// All files that changed: content first, then pointers, batch by batch.
    fn devirtualize(&mut self) -> Result<(), Stop> {
        let Some(fs) = self.mounted.fs.devirtualizer() else { return Ok(()) };
        if fs.renames_at_once().is_err() {
            return Ok(()); // a stack that cannot
        }
        let rewritten = Selection::due(fs, Hot::default())
            .and_then(|due| Run::new(&*fs, Way::ToDevice, due))
            .and_then(|run| run.finish(fs));
        self.now = self.now.max(self.mounted.fs.returned_at());
        match rewritten {
            Ok(_) | Err(Error::NoSpace) => Ok(()),
            Err(error) => {
                Err(Stop::Violation(Violation::without_cut(format!("devirtualize: {error}"))))
            }
        }
    }

    /// The background does what is due by then.
    fn wake_until(&mut self, until: SimTime) -> Result<(), Stop> {
        let (mut wakes, mut last) = (0, SimTime::ZERO);
        while wakes < MOST_WAKES {
            let Some(due) = self.mounted.fs.next_wake().filter(|due| *due <= until) else {
                return Ok(());
            };
            wakes = if due > last { 0 } else { wakes + 1 };
            last = last.max(due);
            self.now = self.now.max(due);
            self.mounted.fs.set_now(Moment::at(self.now));
            let woken = self.mounted.fs.wake();
            self.now = self.now.max(self.mounted.fs.returned_at());
            match woken {
                Ok(()) | Err(Error::NoSpace) => {}
                Err(error) => {
                    let what = format!("the background failed: {error}");
                    return Err(Stop::Violation(Violation::without_cut(what)));
                }
            }
        }
        Err(Stop::Violation(Violation::without_cut("the background never rests".into())))
    }
}

/// Changes something and makes it durable, so that the volume has a checkpoint since its mount.
fn settle(fs: &mut Box<dyn Simulated>) -> Result<(), CrashError> {
    let failed = |error: Error| CrashError::Setup(format!("the volume: {error}"));
    let root = fs.root();
    let changes = SetAttr {
        mode: Some(fs.getattr(root).map_err(failed)?.mode & S_IALLUGO),
        ..SetAttr::default()
    };
    fs.setattr(&Caller::default(), root, &changes).map_err(failed)?;
    fs.sync().map_err(failed)
}

fn said(error: Option<Error>) -> String {
    error.map_or("done".into(), |error| error.to_string())
}
