//! Room in a segmented log of remaps (`ownership/segmented_log.rs`): when its memory is full, the
//! entries of the line with the most go to flash, to the table pages that a log on flash has, too
//! (`metadata/remap_log.rs`), and its segments are free.

use dovetail_block::{DeviceError, RemapPair};
use dovetail_nand::Ppn;
use dovetail_time::SimTime;

use super::Drive;
use super::remap::page_of;
use crate::ownership::{LogLine, Nvm};

impl Drive {
    /// Sees to it that the entries of a remap find segments.
    pub(super) fn make_room_in_segments(
        &mut self,
        at: SimTime,
        pairs: &[RemapPair],
    ) -> Result<(), DeviceError> {
        while let Some(line) = self.line_to_destage(pairs) {
            self.destage(at, line)?;
        }
        Ok(())
    }

    /// The line whose entries go to flash, unless there is room for those of `pairs`.
    fn line_to_destage(&self, pairs: &[RemapPair]) -> Option<LogLine> {
        let log = self.nvm().and_then(Nvm::log)?;
        let page = |pair: &RemapPair| self.translation.lookup(page_of(pair.from)).0;
        if log.has_room_for(pairs.iter().filter_map(page)) { None } else { log.fullest() }
    }

    /// Writes the entries of a line to table pages, and frees its segments when those are durable.
    fn destage(&mut self, at: SimTime, line: LogLine) -> Result<(), DeviceError> {
        let pages: Vec<Ppn> =
            self.nvm().and_then(Nvm::log).into_iter().flat_map(|log| log.pages_of(line)).collect();
        for _ in 0..self.touch_tables(&pages) {
            self.make_room(at)?;
        }
        let end = self.without_erasing(|drive| drive.write_touched_tables(at))?;
        if let Some(nvm) = self.nvm_mut() {
            nvm.note_destage(end, line);
        }
        self.counters.destaged_lines += 1;
        Ok(())
    }
}
