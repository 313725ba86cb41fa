//! A trace's files and calls at a scale.

use super::recorded::{FileTrace, RecordedCall};
use crate::call::{Call, FileId};

const BLOCK: u64 = 4096;

/// The sizes of a trace's files at a scale. A smaller file folds the calls into it: an address goes
/// into the file modulo its size, so that what was sequential stays so.
#[derive(Debug)]
pub(super) struct Sizes {
    recorded: Vec<u64>,
    reached: Vec<u64>,
    begin: Vec<u64>,
}

impl Sizes {
    /// `scale` is at most 1. A file is not made smaller than the largest call on it.
    pub(super) fn new(trace: &FileTrace, scale: f64) -> Self {
        let mut largest = vec![0; trace.files.len()];
        for RecordedCall { call, .. } in trace.threads.iter().flatten() {
            if let Call::Read { file, len, .. } | Call::Write { file, len, .. } = call {
                let largest: &mut u64 = &mut largest[file.0 as usize];
                *largest = len.next_multiple_of(BLOCK).max(*largest);
            }
        }
        let scaled = trace.files.iter().zip(largest).map(|(file, largest)| {
            let smaller = ((file.bytes as f64 * scale) as u64).next_multiple_of(BLOCK);
            smaller.max(largest).min(file.bytes)
        });
        let reached: Vec<u64> = scaled.collect();
        let begin = trace.files.iter().zip(&reached).map(|(file, reached)| {
            let smaller = (file.begin as f64 * scale) as u64;
            if scale < 1.0 { smaller.next_multiple_of(BLOCK).min(*reached) } else { file.begin }
        });
        let recorded = trace.files.iter().map(|file| file.bytes).collect();
        Self { begin: begin.collect(), recorded, reached }
    }

    /// The size that a file reaches.
    pub(super) fn of(&self, file: usize) -> u64 {
        self.reached[file]
    }

    /// The size with which a file begins.
    pub(super) fn begin(&self, file: usize) -> u64 {
        self.begin[file]
    }

    /// The call in files of these sizes. What a read asks for beyond the end of the recorded file
    /// is beyond the end of the smaller one, too.
    pub(super) fn fold(&self, call: Call) -> Call {
        let fold = |offset: u64, len: u64, file: FileId| {
            let (recorded, size) = (self.recorded[file.0 as usize], self.of(file.0 as usize));
            if size == recorded || size == 0 || offset.saturating_add(len) <= size {
                return (offset, len);
            }
            if offset >= recorded {
                return (size, len);
            }
            let len = len.min(recorded - offset);
            ((offset % size).min(size.saturating_sub(len)), len)
        };
        match call {
            Call::Read { file, offset, len, direct } => {
                let (offset, len) = fold(offset, len, file);
                Call::Read { file, offset, len, direct }
            }
            Call::Write { file, offset, len, direct } => {
                let (offset, len) = fold(offset, len, file);
                Call::Write { file, offset, len, direct }
            }
            Call::Allocate { file, len, keep_size } => {
                Call::Allocate { file, len: len.min(self.of(file.0 as usize)), keep_size }
            }
            other => other,
        }
    }
}
