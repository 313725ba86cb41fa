//! Sources of operations: a list, a generator, or the threads of a job one after another.

use std::collections::BTreeSet;

use dovetail_testkit::exercise::{Generator, Op, Path, Profile, Target};
use dovetail_time::{SimSpan, SimTime};
use dovetail_vfs::{Caller, Fallocate, SetAttr};
use dovetail_workload::{Call, FileId, Outcome, Step, ThreadId, Workload};

use crate::language::Action;

/// An operation by a caller; the clock of its caller is the player's.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) caller: Caller,
    pub(crate) action: Action,
}

impl From<Action> for Line {
    fn from(action: Action) -> Self {
        Self { caller: Caller::default(), action }
    }
}

/// Gives operations, one after another.
pub(crate) trait Script {
    /// The next one at time `now`; `ended` tells when the one before began and ended.
    fn next(&mut self, now: SimTime, ended: Option<(SimTime, SimTime)>) -> Option<Line>;

    /// The reason, if it came to an end before its time.
    fn problem(&self) -> Option<String> {
        None
    }

    /// It takes each operation for done: one without room makes the rest another workload.
    fn needs_room(&self) -> bool {
        false
    }
}

/// A list.
pub(crate) struct List<'a>(pub(crate) std::slice::Iter<'a, Action>);

impl Script for List<'_> {
    fn next(&mut self, _: SimTime, _: Option<(SimTime, SimTime)>) -> Option<Line> {
        self.0.next().cloned().map(Line::from)
    }
}

/// A list with callers.
pub(crate) struct Lines<'a>(pub(crate) std::slice::Iter<'a, Line>);

impl Script for Lines<'_> {
    fn next(&mut self, _: SimTime, _: Option<(SimTime, SimTime)>) -> Option<Line> {
        self.0.next().cloned()
    }
}

/// Files of a random workload end before this byte: several hundred kilobytes cross all borders
/// within an inode's pointers that a small volume has room for.
const FILE_END: u64 = 300_000;
/// Of so many random operations one is a pause in which the background works.
const PAUSES: u64 = 25;
/// Of so many pauses one is up to 40 s long, so that content and metadata may become old (half a
/// minute); the others are about as long as the background waits between two looks.
const LONG_PAUSES: u64 = 6;

/// Random operations.
pub(crate) struct Random {
    generator: Generator,
    rng: dovetail_time::Rng,
    left: u64,
    last: Option<Line>,
    devirtualizes: bool,
}

impl Random {
    pub(crate) fn new(seed: u64, steps: u64, devirtualizes: bool) -> Self {
        let profile = Profile { file_end: FILE_END, many: 0, ..Profile::default() };
        let rng = dovetail_time::Rng::new(seed).fork(1);
        Self {
            generator: Generator::new(seed, profile),
            rng,
            left: steps,
            last: None,
            devirtualizes,
        }
    }

    fn pause(&mut self) -> SimSpan {
        let most_ms = if self.rng.below(LONG_PAUSES) == 0 { 40_000 } else { 7_000 };
        SimSpan::from_ms(1 + self.rng.below(most_ms))
    }

    /// An fsync of what was just changed, or of the directory that names it.
    fn follow_up(&mut self) -> Option<Line> {
        let last = self.last.take()?;
        let data_only = self.rng.chance(0.3);
        let path = match &last.action {
            Action::Op(
                Op::Create { path, .. } | Op::Link { path, .. } | Op::Rename { to: path, .. },
            ) => path,
            Action::Op(
                Op::Write { target: Target::Path(path), .. }
                | Op::Fallocate { target: Target::Path(path), .. }
                | Op::SetAttr { target: Target::Path(path), .. }
                | Op::SetXattr { target: Target::Path(path), .. },
            ) => path,
            _ => return None,
        };
        // the file, or the directory that names it
        let path = if self.rng.chance(0.7) {
            path.clone()
        } else {
            path[..path.len().max(1) - 1].to_vec()
        };
        let op = Op::Fsync { target: Target::Path(path), data_only };
        Some(Line { caller: last.caller, action: Action::Op(op) })
    }
}

impl Script for Random {
    fn next(&mut self, _: SimTime, _: Option<(SimTime, SimTime)>) -> Option<Line> {
        self.left = self.left.checked_sub(1)?;
        if self.rng.chance(0.3)
            && let Some(line) = self.follow_up()
        {
            return Some(line);
        }
        if self.rng.below(PAUSES) == 0 {
            return Some(Action::Sleep(self.pause()).into());
        }
        if self.devirtualizes && self.rng.below(PAUSES) == 0 {
            return Some(Action::Devirtualize.into());
        }
        let step = self.generator.next_step();
        let line = Line { caller: step.caller, action: Action::Op(step.op) };
        self.last = Some(line.clone());
        Some(line)
    }
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Sleeping(SimTime),
    Done,
}

/// The threads of a job, a call each in turn: calls do not overlap.
pub(crate) struct Threads {
    workload: Box<dyn Workload>,
    /// Calls that may still be made.
    left: u64,
    states: Vec<State>,
    turn: usize,
    prepared: bool,
    /// The call under way, and the bytes that it moves.
    call: Option<(ThreadId, Call, u64)>,
    /// Of that call, what is still to be done.
    todo: Vec<Action>,
    directories: BTreeSet<Path>,
    files: Vec<Option<u64>>,
    writes: u8,
}

impl Threads {
    /// The threads of `workload`, which make `calls` together at most.
    pub(crate) fn new(workload: Box<dyn Workload>, calls: u64) -> Self {
        let states = vec![State::Ready; workload.threads() as usize];
        Self {
            workload,
            left: calls,
            states,
            turn: 0,
            prepared: false,
            call: None,
            todo: Vec::new(),
            directories: BTreeSet::new(),
            files: Vec::new(),
            writes: 0,
        }
    }

    /// The operations that make the workload's files.
    pub(crate) fn prepare(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(call) = self.workload.prepare() {
            lines.extend(self.actions(&call).into_iter().map(Line::from));
        }
        lines.push(Action::Op(Op::Sync).into());
        self.prepared = true;
        lines
    }

    fn path(&self, file: FileId) -> Path {
        let names = self.workload.path(file).split('/').filter(|name| !name.is_empty());
        names.map(|name| name.as_bytes().to_vec()).collect()
    }

    fn size(&mut self, file: FileId) -> &mut Option<u64> {
        let index = file.0 as usize;
        if self.files.len() <= index {
            self.files.resize(index + 1, None);
        }
        &mut self.files[index]
    }

    /// Makes the file and the directories on its way, if they are not there.
    fn open(&mut self, file: FileId, into: &mut Vec<Action>) -> Path {
        let path = self.path(file);
        if self.size(file).is_some() {
            return path;
        }
        self.make_directories(&path, into);
        into.push(Action::Op(Op::Create { path: path.clone(), mode: 0o100_644, rdev: (0, 0) }));
        *self.size(file) = Some(0);
        path
    }

    /// Makes the directories of the path that are not there.
    fn make_directories(&mut self, path: &Path, into: &mut Vec<Action>) {
        for end in 1..path.len() {
            if self.directories.insert(path[..end].to_vec()) {
                let op = Op::Create { path: path[..end].to_vec(), mode: 0o040_755, rdev: (0, 0) };
                into.push(Action::Op(op));
            }
        }
    }

    /// A call as operations.
    fn actions(&mut self, call: &Call) -> Vec<Action> {
        let mut all = Vec::new();
        match *call {
            Call::Close { .. } | Call::DropCache { .. } => {}
            Call::MakeDirectories { file } => self.make_directories(&self.path(file), &mut all),
            Call::SyncAll => all.push(Action::Op(Op::Sync)),
            Call::Unlink { file } => {
                if self.size(file).take().is_some() {
                    all.push(Action::Op(Op::Unlink { path: self.path(file) }));
                }
            }
            Call::Append { file, len } => {
                self.open(file, &mut all);
                let offset = self.size(file).unwrap_or(0);
                self.write(file, (offset, len), false, &mut all);
            }
            Call::Write { file, offset, len, direct } => {
                self.open(file, &mut all);
                self.write(file, (offset, len), direct, &mut all);
            }
            call => {
                let Some(file) = call.file() else { return all };
                let path = self.open(file, &mut all);
                all.extend(self.on_file(&call, file, path).map(Action::Op));
            }
        }
        all
    }

    fn write(
        &mut self,
        file: FileId,
        (offset, len): (u64, u64),
        direct: bool,
        into: &mut Vec<Action>,
    ) {
        if len == 0 {
            return;
        }
        self.writes = self.writes.wrapping_add(1);
        let (path, fill) = (self.path(file), self.writes);
        let size = self.size(file);
        *size = Some(size.unwrap_or(0).max(offset + len));
        into.push(match direct && offset % 4096 == 0 && len % 4096 == 0 {
            true => Action::DirectWrite { path, offset, len, fill },
            false => Action::Op(Op::Write {
                target: Target::Path(path),
                offset,
                len: len as usize,
                fill,
            }),
        });
    }

    fn on_file(&mut self, call: &Call, file: FileId, path: Path) -> Option<Op> {
        let target = Target::Path(path);
        let size = self.size(file);
        Some(match *call {
            Call::Read { offset, len, .. } => {
                Op::Read { target, offset, len: self.until_end(file, offset, len) as usize }
            }
            Call::PunchHole { offset, len, .. } if len > 0 => {
                Op::Fallocate { target, how: Fallocate::PunchHole, offset, len }
            }
            Call::Allocate { len, keep_size, .. } if len > 0 => {
                if !keep_size {
                    *size = Some(size.unwrap_or(0).max(len));
                }
                Op::Fallocate { target, how: Fallocate::Reserve { keep_size }, offset: 0, len }
            }
            Call::Truncate { size: to, .. } => {
                *size = Some(to);
                Op::SetAttr { target, changes: SetAttr { size: Some(to), ..SetAttr::default() } }
            }
            Call::Sync { data_only, .. } => Op::Fsync { target, data_only },
            Call::Stat { .. } => Op::Stat { target },
            _ => return None,
        })
    }

    /// The bytes that a call moves: a read ends with the file.
    fn bytes(&mut self, call: &Call) -> u64 {
        match *call {
            Call::Read { file, offset, len, .. } => self.until_end(file, offset, len),
            Call::Write { len, .. } | Call::Append { len, .. } => len,
            _ => 0,
        }
    }

    /// Of `len` bytes from `offset` on, those before the end of the file.
    fn until_end(&mut self, file: FileId, offset: u64, len: u64) -> u64 {
        len.min(self.size(file).unwrap_or(0).saturating_sub(offset))
    }

    /// The next call of a thread that is ready, or how long all sleep; `None` when all are done.
    fn choose(&mut self, now: SimTime) -> Option<Line> {
        let count = self.states.len();
        let mut idle = 0;
        while idle < count && self.left > 0 {
            let thread = self.turn % count;
            self.turn = (thread + 1) % count;
            let ready = match self.states[thread] {
                State::Ready => true,
                State::Sleeping(until) => until <= now,
                State::Done => false,
            };
            if !ready {
                idle += 1;
                continue;
            }
            let id = ThreadId(thread as u32);
            match self.workload.next(id, now) {
                Step::Call(call) => {
                    self.left -= 1;
                    self.states[thread] = State::Ready;
                    self.todo = self.actions(&call);
                    self.todo.reverse();
                    self.call = Some((id, call, self.bytes(&call)));
                    if let Some(action) = self.todo.pop() {
                        return Some(action.into());
                    }
                    self.ended(now, now);
                    idle = 0;
                }
                Step::Sleep(until) => {
                    self.states[thread] = State::Sleeping(until);
                    idle = if until <= now { 0 } else { idle + 1 };
                }
                // nothing is under way that a thread could wait for but others' sleep
                Step::Wait | Step::WaitForOthers => idle += 1,
                Step::Done => {
                    self.states[thread] = State::Done;
                    idle += 1;
                }
            }
        }
        if self.left == 0 {
            return None;
        }
        let wakes = self.states.iter().filter_map(|state| match state {
            State::Sleeping(until) => Some(*until),
            _ => None,
        });
        wakes.min().map(|until| Action::Sleep(until.since(now)).into())
    }

    fn ended(&mut self, begin: SimTime, end: SimTime) {
        if let Some((thread, call, bytes)) = self.call.take() {
            self.workload.ended(thread, &call, &Outcome { begin, end, bytes });
        }
    }
}

impl Script for Threads {
    fn next(&mut self, now: SimTime, ended: Option<(SimTime, SimTime)>) -> Option<Line> {
        if let Some(action) = self.todo.pop() {
            return Some(action.into());
        }
        let (begin, end) = ended.unwrap_or((now, now));
        self.ended(begin, end);
        self.choose(now)
    }

    fn needs_room(&self) -> bool {
        true
    }

    fn problem(&self) -> Option<String> {
        if self.left == 0 {
            return None;
        }
        let waiting = self.states.iter().filter(|state| **state != State::Done).count();
        let asleep = (waiting > 0).then(|| {
            format!(
                "{waiting} threads wait for each other: at this size of the drive the job has too few files"
            )
        });
        asleep.or_else(|| self.workload.problem())
    }
}
