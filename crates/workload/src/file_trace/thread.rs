//! A thread of a replay.

use std::collections::BTreeSet;

use dovetail_time::{SimSpan, SimTime};

use super::pace::Pacer;
use crate::call::{Call, FileId, Step};

/// A call that a thread is to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    /// Its place in the trace, from 0.
    pub(super) number: u64,
    /// Time after the thread's call before.
    pub(super) pause: SimSpan,
    pub(super) call: Call,
}

#[derive(Debug)]
pub(super) struct Thread {
    calls: Vec<Planned>,
    /// Its next call.
    at: usize,
    /// The pass over the trace that it is in.
    pub(super) pass: u64,
    /// A call of its own is under way.
    pub(super) is_busy: bool,
    /// Time at which its last call of this pass ended, or the pass began for it.
    since: Option<SimTime>,
    /// End of the pause before its next call, when that has been asked for.
    due: Option<SimTime>,
    opened: BTreeSet<FileId>,
}

impl Thread {
    pub(super) fn new(calls: Vec<Planned>) -> Self {
        let opened = BTreeSet::new();
        Self { calls, at: 0, pass: 0, is_busy: false, since: None, due: None, opened }
    }

    /// Its next step in this pass; `None` when it has made its calls before `limit`.
    pub(super) fn next(&mut self, now: SimTime, limit: u64, pacer: &mut Pacer) -> Option<Step> {
        let next = *self.calls.get(self.at).filter(|call| call.number < limit)?;
        let since = *self.since.get_or_insert(now);
        let due = *self.due.get_or_insert_with(|| pacer.due(since, next.pause));
        if due > now {
            return Some(Step::Sleep(due));
        }
        if !pacer.allows(next.number) {
            return Some(Step::WaitForOthers);
        }
        self.is_busy = true;
        if let Some(file) = next.call.file().filter(|file| self.opened.insert(*file)) {
            return Some(Step::Call(Call::Open { file }));
        }
        self.at += 1;
        Some(Step::Call(next.call))
    }

    pub(super) fn ended(&mut self, call: &Call, at: SimTime, pacer: &mut Pacer) {
        self.is_busy = false;
        if matches!(call, Call::Open { .. }) {
            return;
        }
        (self.since, self.due) = (Some(at), None);
        pacer.call_ended(self.calls[self.at - 1].number);
    }

    pub(super) fn begin_pass(&mut self) {
        self.pass += 1;
        self.at = 0;
        (self.since, self.due) = (None, None);
    }
}
