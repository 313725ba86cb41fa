//! Files that a thread opens, syncs and closes.

use super::{Last, Stage, Thread};
use crate::call::Call;
use crate::fio::pattern::Direction;

impl Thread {
    pub(super) fn open(&mut self, at: usize) {
        if std::mem::replace(&mut self.is_open[at], true) {
            return;
        }
        let file = self.file(at);
        self.pending.push_back(Call::Open { file });
        if self.settings.invalidates() {
            self.pending.push_back(Call::DropCache { file });
        }
    }

    pub(super) fn close(&mut self, at: usize) {
        if !std::mem::take(&mut self.is_open[at]) {
            return;
        }
        let file = self.file(at);
        self.pending.push_back(Call::Close { file });
    }

    /// Closes a file before the job ends: `fsync_on_close`.
    pub(super) fn close_midway(&mut self, at: usize) {
        if self.is_open[at] && self.settings.fsync_on_close && self.may_sync() {
            self.sync_to_close(at);
        }
        self.close(at);
    }

    fn sync_to_close(&mut self, at: usize) {
        self.closing_syncs += 1;
        self.pending.push_back(Call::Sync { file: self.file(at), data_only: false });
    }

    /// Returns whether `fsync` or `fdatasync` comes next: after every so many writes.
    pub(super) fn owes_sync(&self) -> bool {
        let due = |every: u64| every > 0 && self.writes.is_multiple_of(every);
        self.last == Last::Write
            && self.writes > 0
            && (due(self.settings.fsync) || due(self.settings.fdatasync))
    }

    /// fio syncs the file whose turn it is, not the one that was written last.
    pub(super) fn sync(&mut self) {
        let due = self.settings.fsync > 0 && self.writes.is_multiple_of(self.settings.fsync);
        let Some(at) = self.pick() else {
            self.stage = Stage::Closing;
            return;
        };
        self.pending.push_back(Call::Sync { file: self.file(at), data_only: !due });
        self.last = Last::Sync;
    }

    /// As fio, it does not look whether there is something to sync.
    pub(super) fn may_sync(&self) -> bool {
        self.settings.pattern.does(Direction::Write) && self.last != Last::Sync
    }

    pub(super) const fn syncs_at_end(&self) -> bool {
        let is_asked = self.settings.end_fsync || self.settings.fsync_on_close;
        is_asked && self.settings.pattern.does(Direction::Write)
    }

    /// All files, those too that nothing was written to, as fio does; those that gave nothing more
    /// are closed before.
    pub(super) fn sync_all(&mut self) {
        let files = 0..self.plan.files.len();
        if self.service.all_done() {
            files.clone().for_each(|at| self.close_midway(at));
        }
        for at in files {
            let was_open = self.is_open[at];
            self.open(at);
            self.sync_to_close(at);
            if !was_open {
                self.close(at);
            }
        }
    }
}
