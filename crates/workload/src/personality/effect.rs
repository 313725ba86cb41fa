//! Effects of a call's end on the thread and its file set.

use super::model::Action;
use super::namespace::FileRef;
use super::run::PersonalityWorkload;
use super::thread::{Descriptor, Effect, Stage};
use crate::call::Outcome;

/// Direct I/O is in whole blocks.
const BLOCK: u64 = 4096;

impl PersonalityWorkload {
    pub(super) fn apply(&mut self, t: usize, effect: Effect, outcome: &Outcome) {
        self.changes += 1;
        match effect {
            Effect::Opened { fd, file } => self.opened(t, fd, file),
            Effect::Closed { fd, file } => self.closed(t, fd, file),
            Effect::Deleted { file } => {
                self.namespace.set(file.set).delete_ended(file.index);
                self.threads[t].stage = Stage::Over;
            }
            Effect::Looked { picked } => {
                if let Some(file) = picked {
                    self.namespace.set(file.set).set_busy(file.index, false);
                }
                self.threads[t].stage = Stage::Over;
            }
            Effect::Moved { sequential, then } => self.moved(t, sequential, then, outcome.bytes),
            Effect::ReadPart { asked } => self.read_part(t, asked, outcome.bytes),
            Effect::WrotePart { len } => {
                let thread = &mut self.threads[t];
                thread.progress += len;
                thread.moved += len;
                thread.seek(|position| position + len);
            }
            Effect::Synced { more } => {
                if !more {
                    self.threads[t].stage = Stage::Over;
                }
            }
        }
    }

    fn opened(&mut self, t: usize, fd: u32, file: FileRef) {
        self.namespace.set(file.set).open_ended(file.index);
        let thread = &mut self.threads[t];
        thread.descriptors.insert(fd, Descriptor { file, open: true, position: 0 });
        let action = &self.plan.threads[thread.spec].flowops[thread.at].action;
        if matches!(action, Action::Open { .. } | Action::Create { .. }) {
            thread.stage = Stage::Over;
        }
    }

    fn closed(&mut self, t: usize, fd: u32, file: FileRef) {
        self.namespace.set(file.set).close_ended(file.index);
        if let Some(descriptor) = self.threads[t].descriptors.get_mut(&fd) {
            descriptor.open = false;
        }
        self.threads[t].stage = Stage::Over;
    }

    /// A read or write has ended; a read of nothing was at the end of the file and goes back to its
    /// start.
    fn moved(&mut self, t: usize, sequential: bool, then: Stage, bytes: u64) {
        let thread = &mut self.threads[t];
        thread.moved += bytes;
        thread.stage = then;
        if bytes == 0 {
            thread.seek(|_| 0);
        } else if sequential {
            thread.seek(|position| position + bytes);
        }
    }

    fn read_part(&mut self, t: usize, asked: u64, bytes: u64) {
        let thread = &mut self.threads[t];
        thread.moved += bytes;
        thread.progress += bytes;
        let end = thread.progress;
        thread.seek(|_| end);
        // Direct reads go on from whole blocks only, so a short one was the last.
        if bytes == 0 || (bytes < asked && !bytes.is_multiple_of(BLOCK)) && self.reads_direct(t) {
            self.threads[t].stage = Stage::Over;
        }
    }

    fn reads_direct(&self, t: usize) -> bool {
        let thread = &self.threads[t];
        let action = &self.plan.threads[thread.spec].flowops[thread.at].action;
        matches!(action, Action::ReadWhole(io) if io.direct)
    }
}
