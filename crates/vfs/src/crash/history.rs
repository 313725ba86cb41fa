//! What each operation left and promised, and when it was through.

use dovetail_block::Recording;

use super::snapshot::Snapshot;
use crate::exercise::{Op, Path, Subject};
use crate::{FileSystem, Ino};

/// What an operation promises once it has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// Everything survives.
    All,
    /// The file survives; with `data_only` its content and size.
    File { ino: Ino, data_only: bool },
}

impl Promise {
    /// What `op` will promise, by the numbers of the model.
    pub(super) fn of<F: FileSystem>(op: &Op, model: &mut Subject<F>) -> Option<Self> {
        match op {
            Op::Sync => Some(Self::All),
            Op::Fsync { target, data_only } => {
                model.find(target).ok().map(|ino| Self::File { ino, data_only: *data_only })
            }
            _ => None,
        }
    }
}

/// The inode that a path leads to.
pub(super) fn find<F: FileSystem>(path: &Path, fs: &mut F) -> Option<Ino> {
    let root = fs.root();
    path.iter().try_fold(root, |dir, name| fs.lookup(dir, name).ok().map(|attr| attr.ino))
}

/// States and promises by number: state 0 is before the first operation, state `n` after operation `n`.
#[derive(Debug)]
pub(super) struct History {
    recording: Recording,
    states: Vec<Snapshot>,
    promises: Vec<Option<Promise>>,
    /// For each operation the state before which no base can be any more, once it is through.
    floors: Vec<usize>,
    positions: Vec<usize>,
    /// The operations that succeeded, as text.
    shown: Vec<(usize, String)>,
}

impl History {
    pub(super) fn new<F: FileSystem>(recording: Recording, model: &mut F) -> Self {
        let (states, promises, floors, positions, shown) = Default::default();
        let mut history = Self { recording, states, promises, floors, positions, shown };
        history.push(None, model);
        history.positions = vec![0]; // what mounting writes can be cut as well
        history
    }

    /// Notes that an operation is through.
    pub(super) fn push<F: FileSystem>(&mut self, promise: Option<Promise>, model: &mut F) {
        if let Ok(state) = Snapshot::read(model, self.states.last()) {
            self.states.push(state);
            self.promises.push(promise);
            self.floors.push(self.floor_after(promise));
            self.positions.push(self.recording.position());
        }
    }

    /// The state that the last operation makes everything at least as new as: its own after a sync, and after an fsync
    /// of a directory the one in which the directory's names last changed.
    fn floor_after(&self, promise: Option<Promise>) -> usize {
        let names = match promise {
            Some(Promise::All) => self.last(),
            Some(Promise::File { ino, .. }) => self.names_changed(ino),
            None => 0,
        };
        self.floors.last().map_or(names, |floor| names.max(*floor))
    }

    /// The last operation that changed the names in a directory; 0 for what is none.
    fn names_changed(&self, dir: Ino) -> usize {
        let names = |state: usize| self.states[state].entries(dir);
        let changed = |number: &usize| names(*number) != names(*number - 1);
        if names(self.last()).is_none() { 0 } else { (1..=self.last()).rev().find(changed).unwrap_or(0) }
    }

    /// The oldest state that can be the base of what is left when operation `complete` was through.
    pub(super) fn floor(&self, complete: usize) -> usize {
        self.floors[complete]
    }

    /// Notes what the last operation was.
    pub(super) fn show(&mut self, operation: String) {
        self.shown.push((self.last(), operation));
    }

    /// The operations that succeeded after state `from`, up to number `to`, a line each with the cut after it.
    pub(super) fn between(&self, from: usize, to: usize) -> String {
        let shown = self.shown.iter().filter(|(number, _)| (from + 1..=to).contains(number));
        shown.map(|(number, op)| format!("\n  {number} (cut {}): {op}", self.positions[*number])).collect()
    }

    pub(super) fn recording(&self) -> &Recording {
        &self.recording
    }

    pub(super) fn promises(&self) -> usize {
        self.promises.iter().flatten().count()
    }

    /// The last operation that was through at a cut.
    pub(super) fn complete_at(&self, cut: usize) -> usize {
        self.positions.partition_point(|&position| position <= cut).saturating_sub(1)
    }

    /// The number of the last operation.
    pub(super) fn last(&self) -> usize {
        self.states.len() - 1
    }

    pub(super) fn state(&self, number: usize) -> &Snapshot {
        &self.states[number]
    }

    pub(super) fn promise(&self, number: usize) -> Option<Promise> {
        self.promises[number]
    }
}
