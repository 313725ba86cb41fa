//! The end of a pass: files are closed, what was written is read back, and another pass begins or none.

use super::{Last, Stage, Thread};
use crate::call::{Call, FileId, Step};
use crate::fio::cursor::{Cursor, Target};
use crate::fio::plan::ThreadPlan;
use crate::fio::streams::Streams;

impl Thread {
    /// A job whose writes take all of its time reads nothing back, as in fio.
    pub(super) const fn reads_back(&self) -> bool {
        self.settings.verify && self.settings.do_verify && !self.settings.time_based
    }

    pub(super) fn close_pass(&mut self, users: &mut Users) {
        if self.syncs_at_end() && self.calls > 0 && self.may_sync() {
            self.sync_all();
        }
        let mut written = std::mem::take(&mut self.written);
        if self.terminated {
            // its time is over, as in fio
            written.clear();
        }
        for at in 0..self.plan.files.len() {
            match written.is_empty() {
                true => self.close(at),
                false => self.close_midway(at),
            }
        }
        if !self.settings.pattern.random || self.settings.has_map() {
            written.sort_by_key(|(at, target)| (*at, target.offset));
            written.dedup_by_key(|(at, target)| (*at, target.offset));
        }
        self.reading_back = written.into_iter();
        self.stage = Stage::ReadingBack;
        if self.reading_back.as_slice().is_empty() {
            self.end_pass(users);
        }
    }

    /// Reads the next part that was written.
    pub(super) fn read_back(&mut self, users: &mut Users) -> Option<Step> {
        if let Some((at, Target { offset, len, .. })) = self.reading_back.next() {
            self.open(at);
            let (file, direct) = (self.file(at), self.settings.direct);
            self.pending.push_back(Call::Read { file, offset, len, direct });
            self.last = Last::Other;
            self.verifying_calls += 1;
            self.verified_bytes += len;
            return None;
        }
        if self.in_flight > 0 {
            return Some(Step::Wait);
        }
        for at in 0..self.plan.files.len() {
            self.close_midway(at);
        }
        self.end_pass(users);
        None
    }

    fn end_pass(&mut self, users: &mut Users) {
        if self.wants_another_pass() {
            self.pass += 1;
            self.pass_bytes = 0;
            // fio forgets that it synced: a pass may begin with a sync.
            self.last = if self.writes > 0 { Last::Write } else { Last::Other };
            self.service.reset();
            self.cursors.iter_mut().for_each(Cursor::reset);
            self.streams = Streams::new(&self.root, &self.settings, self.number, self.pass);
            self.stage = Stage::Running;
        } else {
            self.end(users);
        }
    }

    fn wants_another_pass(&mut self) -> bool {
        if self.terminated || self.pass_bytes == 0 {
            return false;
        }
        if self.settings.time_based {
            return true;
        }
        if self.loops_left > 0 {
            self.loops_left -= 1;
            return !self.is_work_done() || self.syncs_at_end();
        }
        let block = self
            .settings
            .directions()
            .map(|direction| self.settings.blocks[direction.index()].max)
            .max();
        let left = self.limit().saturating_sub(self.total_bytes + self.verified_bytes);
        let files_left =
            self.plan.io_size.is_some() || self.reads_back() || !self.service.all_done();
        !self.are_calls_used_up() && left > 0 && left >= block.unwrap_or(0) && files_left
    }

    fn end(&mut self, users: &mut Users) {
        let last_used = users.leave(&self.plan);
        if self.settings.unlink {
            self.pending.extend(last_used.into_iter().map(|file| Call::Unlink { file }));
        }
        if self.pending.is_empty() {
            // A thread that made no call: those that wait for it are asked when a call ends.
            self.open(0);
            self.close(0);
        }
        self.stage = Stage::Ending;
    }
}

/// Number of threads that are not done, for each file that they use.
#[derive(Debug)]
pub(in crate::fio) struct Users(Vec<u32>);

impl Users {
    pub(in crate::fio) fn new<'a>(
        files: usize,
        threads: impl Iterator<Item = &'a ThreadPlan>,
    ) -> Self {
        let mut users = vec![0; files];
        for region in threads.flat_map(|thread| &thread.files) {
            users[region.file.0 as usize] += 1;
        }
        Self(users)
    }

    /// The files that nobody uses any more when this thread is done.
    fn leave(&mut self, thread: &ThreadPlan) -> Vec<FileId> {
        let mut unused = Vec::new();
        for region in &thread.files {
            let users = &mut self.0[region.file.0 as usize];
            *users -= 1;
            if *users == 0 {
                unused.push(region.file);
            }
        }
        unused
    }
}
