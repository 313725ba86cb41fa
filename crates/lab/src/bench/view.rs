//! A run as it stands, for those who watch it go on.

use std::cell::Ref;
use std::ops::Deref;

use dovetail_ftl::Storage;

use super::system::System;
use crate::lane::seen;
use crate::progress::Progress;
use crate::record::{Recorder, Watcher, summarize};
use crate::results::RunResult;

/// Those who watch a run. Nobody changes anything in it by watching.
#[derive(Clone, Default)]
pub struct Watchers<'a> {
    /// Is shown every command that reaches the drive, from the making of the volume on.
    pub commands: Option<Watcher>,
    /// Is shown the run whenever [`super::Job::progress`] hears of it, once the volume is made, and
    /// when the measurement has ended.
    pub view: Option<&'a dyn Fn(&View<'_>)>,
}

/// A run as it stands. What is costly is worked out when it is asked for.
pub struct View<'a> {
    pub(super) progress: Progress,
    pub(super) is_last: bool,
    pub(super) system: &'a System,
    pub(super) recorder: &'a Recorder,
    pub(super) jobs: &'a [String],
}

impl View<'_> {
    /// The stage, and the part of it that is done.
    pub const fn progress(&self) -> Progress {
        self.progress
    }

    /// The measurement has ended: nothing is shown after this.
    pub const fn is_last(&self) -> bool {
        self.is_last
    }

    /// The figures that the run would have if its measurement ended now: totals, latencies, causes
    /// and series. Label, stack, layout of files and notes are those of an empty result. Copies all
    /// that was recorded: some milliseconds.
    pub fn figures(&self) -> RunResult {
        let machine = &self.system.machine;
        let device = machine.device();
        let mut recorder = self.recorder.clone();
        recorder.end(Some(self.system.fs.as_ref()), &seen(machine, &device));
        let elapsed = recorder.last().at.since(recorder.first.at);
        summarize(&recorder, &device, (elapsed, self.system.cpu), self.jobs)
    }

    /// The volume in at most `cells` equal parts, in the order of addresses: the share of blocks in
    /// use in each, 0 to 1. Nothing for a file system that does not keep count by address.
    pub fn occupancy(&self, cells: usize) -> Vec<f64> {
        self.system.fs.occupancy(cells)
    }

    /// The drive.
    pub fn drive(&self) -> impl Deref<Target = Storage> + '_ {
        Ref::map(self.system.machine.device(), |below| &**below)
    }
}
