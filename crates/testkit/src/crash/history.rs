//! State, promise and end of each operation.

use dovetail_vfs::{Error, FileSystem, Ino};

use super::snapshot::Snapshot;
use crate::Model;
use crate::exercise::{Op, Subject};

/// Promise of an operation once it has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Everything survives.
    All,
    /// A file survives.
    File {
        /// Its number in the model.
        ino: Ino,
        /// Only its content and size do.
        data_only: bool,
    },
}

impl Promise {
    /// Promise that `op` will make, by the numbers of the model.
    pub fn of<F: FileSystem>(op: &Op, model: &mut Subject<F>) -> Option<Self> {
        match op {
            Op::Sync => Some(Self::All),
            Op::Fsync { target, data_only } => {
                model.find(target).ok().map(|ino| Self::File { ino, data_only: *data_only })
            }
            _ => None,
        }
    }
}

/// States and promises by number: state 0 is before the first operation, state `n` after operation
/// `n`.
#[derive(Debug)]
pub struct History {
    states: Vec<Snapshot>,
    promises: Vec<Option<Promise>>,
    /// For each operation the state before which no base can be any more, once it is through.
    floors: Vec<usize>,
    /// Position at which each operation was through, in whatever measures the way of a run:
    /// commands, or nanoseconds.
    positions: Vec<u64>,
    /// The operations that succeeded, as text.
    shown: Vec<(usize, String)>,
}

impl History {
    /// A history that begins with what is in the model. What happens before the first operation can
    /// be cut as well.
    ///
    /// # Errors
    /// The model cannot be read.
    pub fn new(model: &mut Model) -> Result<Self, Error> {
        let first = Snapshot::of_model(model, None)?;
        Ok(Self {
            states: vec![first],
            promises: vec![None],
            floors: vec![0],
            positions: vec![0],
            shown: Vec::new(),
        })
    }

    /// Notes that an operation was through at `position`, which left what is in the model.
    ///
    /// # Errors
    /// The model cannot be read.
    pub fn push(
        &mut self,
        promise: Option<Promise>,
        model: &mut Model,
        position: u64,
    ) -> Result<(), Error> {
        self.states.push(Snapshot::of_model(model, self.states.last())?);
        self.promises.push(promise);
        self.floors.push(self.floor_after(promise));
        self.positions.push(position);
        Ok(())
    }

    /// The state that the last operation makes everything at least as new as: its own after a sync,
    /// and after an fsync of a directory the one in which the directory's names last changed.
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
        if names(self.last()).is_none() {
            0
        } else {
            (1..=self.last()).rev().find(changed).unwrap_or(0)
        }
    }

    /// The oldest state that can be the base of what is left when operation `complete` was through.
    pub(super) fn floor(&self, complete: usize) -> usize {
        self.floors[complete]
    }

    /// Notes what the last operation was.
    pub fn show(&mut self, operation: String) {
        self.shown.push((self.last(), operation));
    }

    /// The operations that succeeded, as text.
    pub fn operations(&self) -> impl Iterator<Item = (usize, &str)> {
        self.shown.iter().map(|(number, operation)| (*number, operation.as_str()))
    }

    /// The operations that succeeded after state `from`, up to number `to`, a line each with the
    /// cut after it.
    pub fn between(&self, from: usize, to: usize) -> String {
        let shown = self.shown.iter().filter(|(number, _)| (from + 1..=to).contains(number));
        shown
            .map(|(number, op)| format!("\n  {number} (cut {}): {op}", self.positions[*number]))
            .collect()
    }

    /// Operations that promised something.
    pub fn promises(&self) -> usize {
        self.promises.iter().flatten().count()
    }

    /// The last operation that was through at a cut.
    pub fn complete_at(&self, cut: u64) -> usize {
        self.positions.partition_point(|&position| position <= cut).saturating_sub(1)
    }

    /// Position at which an operation was through.
    pub fn position(&self, number: usize) -> u64 {
        self.positions[number]
    }

    /// The number of the last operation.
    pub fn last(&self) -> usize {
        self.states.len() - 1
    }

    /// State that an operation left.
    pub fn state(&self, number: usize) -> &Snapshot {
        &self.states[number]
    }

    /// Promise of an operation.
    pub fn promise(&self, number: usize) -> Option<Promise> {
        self.promises[number]
    }
}
