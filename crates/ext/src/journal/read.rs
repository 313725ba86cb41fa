//! Reads of the log for a replay, with read-ahead as Linux has it.
//!
//! A block that is not there yet is read with those behind it, up to 128 KiB, each by a request of
//! its own; all are kept until the replay ends, since it comes back to them.

use dovetail_block::{Content, DeviceError, Scheduler};
use rustc_hash::FxHashMap;

use super::JournalMap;
use crate::io::Io;

const WINDOW_BYTES: usize = 128 << 10;

/// The log of a journal, with the blocks that were read so far.
pub(super) struct LogReader<'a, D: Scheduler> {
    io: &'a mut Io<D>,
    map: &'a JournalMap,
    kept: FxHashMap<u32, Content>,
}

impl<'a, D: Scheduler> LogReader<'a, D> {
    pub(super) fn new(io: &'a mut Io<D>, map: &'a JournalMap) -> Self {
        Self { io, map, kept: FxHashMap::default() }
    }

    /// The content of a block of the journal.
    pub(super) fn read(&mut self, at: u32) -> Result<Content, DeviceError> {
        // a block of the window that is not wanted may be unreadable
        if !self.kept.contains_key(&at) {
            drop(self.read_window(at));
        }
        match self.kept.get(&at) {
            Some(content) => Ok(content.clone()),
            None => self.io.read(self.map.physical(at).unwrap_or(0)),
        }
    }

    fn read_window(&mut self, start: u32) -> Result<(), DeviceError> {
        let blocks = (WINDOW_BYTES / self.io.block_size()) as u32;
        let wanted: Vec<(u32, u64)> = (start..start.saturating_add(blocks))
            .map_while(|at| Some((at, self.map.physical(at)?)))
            .filter(|(at, _)| !self.kept.contains_key(at))
            .collect();
        let places: Vec<u64> = wanted.iter().map(|&(_, place)| place).collect();
        let contents = self.io.read_each(&places)?;
        self.kept.extend(wanted.into_iter().map(|(at, _)| at).zip(contents));
        Ok(())
    }
}
