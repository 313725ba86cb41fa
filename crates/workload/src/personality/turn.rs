//! Next turn of a thread's flowop: one decision at a time.

use std::sync::Arc;

use dovetail_time::SimTime;

use super::ending::Ending;
use super::files::Wanted;
use super::model::Action;
use super::run::PersonalityWorkload;
use super::thread::{Effect, Stage};
use crate::call::Call;

/// A decision of a flowop.
pub(super) enum Turn {
    /// A call that the thread waits for.
    Call(Call, Effect),
    /// A call that it does not wait for; `last` if the asynchronous write ends with it.
    Background { call: Call, last: bool },
    /// Nothing before this time.
    Sleep(SimTime),
    /// Nothing before one of its calls has ended.
    Own,
    /// Nothing before other threads have done something.
    Others,
    /// The flowop is over.
    Over,
    /// The run is over.
    End(Ending),
}

impl PersonalityWorkload {
    pub(super) fn turn(&mut self, t: usize, now: SimTime) -> Turn {
        let plan = Arc::clone(&self.plan);
        let thread = &self.threads[t];
        let action = &plan.threads[thread.spec].flowops[thread.at].action;
        if thread.stage == Stage::Over {
            return Turn::Over;
        }
        match action {
            Action::Open { set, fd, rotate } => self.open_file(t, *set, *fd, *rotate),
            Action::Create { set, fd } => self.open(t, Some(*set), *fd, false, Wanted::Missing),
            Action::Close { fd } => self.close(t, *fd),
            Action::Delete { set, fd } => self.delete(t, *set, *fd),
            Action::Stat { set, fd } => self.stat(t, *set, *fd),
            Action::Sync { fd } => self.sync(t, *fd),
            Action::SyncSet { set } => self.sync_set(t, *set),
            Action::Read(io) => self.read(t, io),
            Action::ReadWhole(io) => self.read_whole(t, io),
            Action::Write(io) => self.write(t, io),
            Action::WriteWhole { io, source } => self.write_whole(t, io, *source),
            Action::Append(io) => self.append(t, io),
            Action::AioWrite(io) => self.aio_write(t, io),
            Action::AioWait => self.aio_wait(t),
            Action::Pause(span) => self.pause(t, now + *span),
            Action::SemBlock { value, .. } => self.block(t, *value),
            Action::SemPost { value, target, blocking } => self.post(t, target, *value, *blocking),
            Action::EventLimit => self.event_limit(t, now),
            Action::Limit { what, target } => self.limit(t, *what, *target, now),
            Action::Finish { what, value, target } => self.finish(t, *what, *value, *target),
        }
    }

    /// The name of the flowop that the thread is at.
    pub(super) fn flowop_name(&self, t: usize) -> String {
        let thread = &self.threads[t];
        self.plan.threads[thread.spec].flowops[thread.at].name.clone()
    }

    pub(super) fn not_open(&self, t: usize, fd: u32) -> Turn {
        Turn::End(Ending::NotOpen { flowop: self.flowop_name(t), fd })
    }
}
