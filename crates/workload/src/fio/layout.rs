//! The calls that make a job's files before it starts, as fio makes them.

use dovetail_block::BLOCK_SIZE;

use super::plan::{Files, Region};
use super::settings::{Fallocate, Settings};
use crate::call::{Call, FileId};

/// Bytes of a write. fio takes the job's block size; the page cache makes the same of both.
pub(super) const WRITE_BYTES: u64 = 1 << 20;

/// A call, or writes from the start of a file to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Call(Call),
    Fill { file: FileId, offset: u64, end: u64 },
}

impl Task {
    /// Blocks of 4 KiB that it writes.
    pub(super) fn written_blocks(&self) -> u64 {
        match self {
            Self::Fill { offset, end, .. } => (end - offset).div_ceil(BLOCK_SIZE),
            Self::Call(_) => 0,
        }
    }

    /// The next call, and what is left of the task.
    pub(super) fn step(self) -> (Call, Option<Self>) {
        match self {
            Self::Call(call) => (call, None),
            Self::Fill { file, offset, end } => {
                let len = WRITE_BYTES.min(end - offset);
                let rest =
                    (offset + len < end).then_some(Self::Fill { file, offset: offset + len, end });
                (Call::Write { file, offset, len, direct: false }, rest)
            }
        }
    }
}

/// One file of one thread.
pub(super) struct Layout<'a> {
    pub settings: &'a Settings,
    pub region: &'a Region,
}

impl Layout<'_> {
    /// Nothing if the file is large enough already.
    pub(super) fn plan(&self, files: &mut Files) -> Vec<Task> {
        let file = self.region.file;
        let end = self.region.start + self.region.len;
        let known = files.sizes[file.0 as usize];
        if self.settings.create_on_open || known.is_some_and(|size| size >= end) {
            return Vec::new();
        }
        let fill = self.fills();
        let mut tasks = Vec::new();
        if fill && known.is_some() {
            tasks.push(Task::Call(Call::Unlink { file }));
        }
        tasks.push(Task::Call(Call::Open { file }));
        tasks.extend(self.reserve(end).map(Task::Call));
        if fill {
            tasks.extend(self.fill(end));
        }
        tasks.extend([Task::Call(Call::DropCache { file }), Task::Call(Call::Close { file })]);
        files.sizes[file.0 as usize] = Some(self.size_after(end, fill).max(known.unwrap_or(0)));
        tasks
    }

    /// Returns whether the file has to have content: jobs that read, and writers that are to
    /// overwrite.
    fn fills(&self) -> bool {
        self.settings.pattern.reads || (self.settings.pattern.writes && self.settings.overwrite)
    }

    fn reserve(&self, end: u64) -> Option<Call> {
        let file = self.region.file;
        match self.settings.fallocate {
            Fallocate::None => None,
            Fallocate::Reserve => Some(Call::Allocate { file, len: end, keep_size: false }),
            Fallocate::KeepSize => Some(Call::Allocate { file, len: end, keep_size: true }),
            Fallocate::Truncate => Some(Call::Truncate { file, size: end }),
        }
    }

    fn fill(&self, end: u64) -> impl Iterator<Item = Task> {
        let file = self.region.file;
        let sync =
            self.settings.create_fsync.then_some(Task::Call(Call::Sync { file, data_only: false }));
        let content =
            [Task::Call(Call::Truncate { file, size: end }), Task::Fill { file, offset: 0, end }];
        content.into_iter().chain(sync)
    }

    fn size_after(&self, end: u64, fill: bool) -> u64 {
        let grows = matches!(self.settings.fallocate, Fallocate::Reserve | Fallocate::Truncate);
        if fill || grows { end } else { 0 }
    }
}
