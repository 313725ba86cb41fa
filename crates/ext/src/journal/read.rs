//! Reads of the log for a replay, with read-ahead as Linux has it.
//!
//! A block that is not there yet is read with those behind it, up to 128 KiB. They are kept, since the
//! replay comes back to them.

use dovetail_block::{Content, DeviceError, Scheduler};
use rustc_hash::FxHashMap;

use super::JournalMap;
use crate::io::Io;

const WINDOW_BYTES: usize = 128 << 10;
/// Blocks that are kept. Assumed: as many as the kernel has in a journal of 256 MiB.
const MOST_KEPT: usize = 65_536;

/// The log of a journal, with the blocks that were read so far.
pub(super) struct LogReader<'a, D: Scheduler> {
    io: &'a mut Io<D>,
    map: &'a JournalMap,
    kept: FxHashMap<u32, Content>,
    /// Blocks below are read alone: one of them could not be read.
    alone_below: u32,
}

impl<'a, D: Scheduler> LogReader<'a, D> {
    pub(super) fn new(io: &'a mut Io<D>, map: &'a JournalMap) -> Self {
        Self { io, map, kept: FxHashMap::default(), alone_below: 0 }
    }

    /// The device, between reads of the log.
    pub(super) fn io(&mut self) -> &mut Io<D> {
        self.io
    }

    /// The content of a block of the journal.
    pub(super) fn read(&mut self, at: u32) -> Result<Content, DeviceError> {
        if let Some(content) = self.kept.get(&at) {
            return Ok(content.clone());
        }
        let end = at.saturating_add((WINDOW_BYTES / self.io.block_size()) as u32);
        if at >= self.alone_below {
            match self.read_window(at, end) {
                Ok(()) => {}
                // perhaps of a block that is not wanted
                Err(_) => self.alone_below = end,
            }
        }
        match self.kept.get(&at) {
            Some(content) => Ok(content.clone()),
            None => {
                let content = self.io.read(self.map.physical(at).unwrap_or(0))?;
                self.kept.insert(at, content.clone());
                Ok(content)
            }
        }
    }

    fn read_window(&mut self, start: u32, end: u32) -> Result<(), DeviceError> {
        if self.kept.len() >= MOST_KEPT {
            self.kept.clear();
        }
        let wanted: Vec<(u32, u64)> = (start..end)
            .map_while(|at| Some((at, self.map.physical(at)?)))
            .filter(|(at, _)| !self.kept.contains_key(at))
            .collect();
        let places: Vec<u64> = wanted.iter().map(|&(_, place)| place).collect();
        let contents = self.io.read_each(&places)?;
        self.kept.extend(wanted.into_iter().map(|(at, _)| at).zip(contents));
        Ok(())
    }
}
