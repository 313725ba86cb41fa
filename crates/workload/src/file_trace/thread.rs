//! A thread of a replay.

use std::collections::BTreeSet;

use dovetail_time::SimTime;

use super::recorded::RecordedCall;
use crate::call::{Call, FileId, Step};

#[derive(Debug)]
pub(super) struct Thread {
    calls: Vec<RecordedCall>,
    /// Its next call.
    at: usize,
    /// The pass over the trace that it is in.
    pub(super) pass: u64,
    /// A call of its own is under way.
    pub(super) is_busy: bool,
    /// Time at which its last call of this pass ended, or the pass began for it.
    since: Option<SimTime>,
    opened: BTreeSet<FileId>,
}

impl Thread {
    pub(super) fn new(calls: Vec<RecordedCall>) -> Self {
        Self { calls, at: 0, pass: 0, is_busy: false, since: None, opened: BTreeSet::new() }
    }

    /// Its next step in this pass; `None` when it has made its calls before `limit`.
    pub(super) fn next(&mut self, now: SimTime, limit: u64) -> Option<Step> {
        let next = *self.calls.get(self.at).filter(|call| call.number < limit)?;
        let due = *self.since.get_or_insert(now) + next.gap;
        if due > now {
            return Some(Step::Sleep(due));
        }
        self.is_busy = true;
        if let Some(file) = next.call.file().filter(|file| self.opened.insert(*file)) {
            return Some(Step::Call(Call::Open { file }));
        }
        self.at += 1;
        Some(Step::Call(next.call))
    }

    pub(super) fn ended(&mut self, call: &Call, at: SimTime) {
        self.is_busy = false;
        if !matches!(call, Call::Open { .. }) {
            self.since = Some(at);
        }
    }

    pub(super) fn begin_pass(&mut self) {
        self.pass += 1;
        self.at = 0;
        self.since = None;
    }
}
