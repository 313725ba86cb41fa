//! One read, write or trim: direction, file, offset and length.

use super::{Last, Stage, Thread};
use crate::call::{Call, FileId};
use crate::fio::cursor::{Context, Target};
use crate::fio::pattern::Direction;
use crate::fio::settings::SyncWrites;

impl Thread {
    pub(super) fn draw_direction(&mut self) -> Direction {
        let pattern = self.settings.pattern;
        if pattern.is_mixed() {
            let read = self.streams.mix.below(100) < u64::from(self.settings.read_percent);
            return if read { Direction::Read } else { Direction::Write };
        }
        Direction::ALL
            .into_iter()
            .find(|direction| pattern.does(*direction))
            .unwrap_or(Direction::Read)
    }

    pub(super) fn file(&self, at: usize) -> FileId {
        self.plan.files[at].file
    }

    /// The next file; it is opened if need be.
    pub(super) fn pick(&mut self) -> Option<usize> {
        let at = self.service.pick(&mut self.streams.file)?;
        self.open(at);
        Some(at)
    }

    /// Reads, writes or trims in the next file that has a place for it.
    pub(super) fn call_on_a_file(&mut self) {
        self.calls_to_offset -= 1;
        let new_offset = self.calls_to_offset == 0;
        if new_offset {
            self.calls_to_offset = self.settings.calls_an_offset();
        }
        while let Some(at) = self.pick() {
            let direction = self.direction_in(at);
            if let Some(target) = self.target(at, direction, new_offset) {
                return self.call(at, direction, target);
            }
            self.service.finish(at);
            if self.service.all_done() {
                break; // it is closed with the pass
            }
            self.close_midway(at);
        }
        self.stage = Stage::Closing;
    }

    fn direction_in(&self, at: usize) -> Direction {
        let drawn = self.direction.unwrap_or(Direction::Read);
        match (self.settings.pattern.is_trim_write(), self.cursors[at].owes_write()) {
            (false, _) => drawn,
            (true, true) => Direction::Write,
            (true, false) => Direction::Trim,
        }
    }

    fn target(&mut self, at: usize, direction: Direction, new_offset: bool) -> Option<Target> {
        let settings = &self.settings;
        let wraps = settings.time_based && self.plan.files.len() == 1;
        let mut context = Context { settings, streams: &mut self.streams, new_offset, wraps };
        self.cursors[at].next(direction, &mut context)
    }

    fn call(&mut self, at: usize, direction: Direction, target: Target) {
        let file = self.file(at);
        let Target { offset, len, wrapped } = target;
        let direct = self.settings.direct;
        if wrapped && self.settings.invalidates() && !direct {
            self.pending.push_back(Call::DropCache { file });
        }
        self.pending.push_back(match direction {
            Direction::Read => Call::Read { file, offset, len, direct },
            Direction::Write => Call::Write { file, offset, len, direct },
            Direction::Trim => Call::PunchHole { file, offset, len },
        });
        self.last = Last::Other;
        if direction == Direction::Write {
            self.last = Last::Write;
            self.wrote(at, target);
        }
        self.count(direction, len);
    }

    fn wrote(&mut self, at: usize, target: Target) {
        self.writes += 1;
        if self.reads_back() {
            self.written.push((at, target));
        }
        let file = self.file(at);
        match self.settings.sync {
            _ if self.settings.syncs_beside() => {}
            SyncWrites::No => {}
            SyncWrites::All => self.pending.push_back(Call::Sync { file, data_only: false }),
            SyncWrites::Data => self.pending.push_back(Call::Sync { file, data_only: true }),
        }
    }

    fn count(&mut self, direction: Direction, bytes: u64) {
        self.direction = None;
        self.calls += 1;
        self.calls_to_think = self.calls_to_think.saturating_sub(1);
        self.pass_bytes = self.pass_bytes.saturating_add(bytes);
        self.total_bytes = self.total_bytes.saturating_add(bytes);
        if let Some(rate) = &mut self.rate {
            rate.issue(direction, bytes);
        }
    }
}
