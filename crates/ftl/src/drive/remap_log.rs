//! Writing the log of remaps and its tables (`metadata/remap_log.rs`).

use dovetail_block::DeviceError;
use dovetail_nand::{Lpn, Ppn, Seq};
use dovetail_time::SimTime;

use super::Drive;
use crate::metadata::remap_log::RemapLog;
use crate::ownership::Move;
use crate::stats::{Cause, ReadCause};

impl Drive {
    fn log(&self) -> Option<&RemapLog> {
        self.ownership.log()
    }

    fn log_mut(&mut self) -> Option<&mut RemapLog> {
        self.ownership.log_mut()
    }

    /// Sees to it that a remap can be logged: slots, and lines to write to.
    pub(super) fn make_room_in_log(
        &mut self,
        at: SimTime,
        pairs: usize,
    ) -> Result<(), DeviceError> {
        let Some(log) = self.log().filter(|_| self.nvm().is_none()) else { return Ok(()) };
        let pages = log.pages_for(pairs);
        if !log.has_slots(pages) {
            for _ in 0..log.touched() {
                self.make_room(at)?;
            }
            self.without_erasing(|drive| drive.write_tables(at))?;
        }
        for _ in 0..pages {
            self.make_room(at)?;
        }
        Ok(())
    }

    /// Writes the log pages of a remap, no earlier than `at`; returns when the last of them is
    /// durable. There are slots.
    pub(super) fn write_log(
        &mut self,
        at: SimTime,
        seq: Seq,
        moves: &[Move],
    ) -> Result<SimTime, DeviceError> {
        let Some(log) = self.log() else { return Ok(at) };
        let (at, mut end) = (at.max(log.free_from()), at);
        for chunk in moves.chunks(log.pairs_per_page()) {
            let Some(log) = self.log_mut() else { break };
            let (lpn, page) = log.take_slot(seq, moves.len(), chunk);
            end = end.max(self.program_system(at, lpn, &page, Cause::Remap)?);
        }
        if let Some(log) = self.log_mut() {
            log.touch(moves.iter().filter_map(|entry| entry.ppn));
        }
        Ok(end)
    }

    /// Writes elsewhere what the slots say, and drops them. Like bitmap pages, table pages come
    /// after all programs so far: an entry must not be there before the remap that it rests on.
    fn write_tables(&mut self, at: SimTime) -> Result<(), DeviceError> {
        self.write_bitmaps(at)?;
        self.write_touched_tables(at)?;
        self.drop_slots();
        Ok(())
    }

    /// Writes the tables that lag behind, after all programs and remaps so far; returns when they
    /// are durable.
    pub(super) fn write_touched_tables(&mut self, at: SimTime) -> Result<SimTime, DeviceError> {
        let at = at.max(self.all_durable_at());
        let mut end = at;
        while let Some((index, lpn)) = self.log().and_then(RemapLog::next_touched) {
            let at = self.read_table(at, lpn)?;
            let page = self.encode_table(index);
            end = end.max(self.program_system(at, lpn, &page, Cause::Remap)?);
            let Some(log) = self.log_mut() else { break };
            log.table_written(index);
        }
        Ok(end)
    }

    /// The tables of these pages lag behind; returns how many do.
    pub(super) fn touch_tables(&mut self, pages: &[Ppn]) -> usize {
        let Some(log) = self.log_mut() else { return 0 };
        log.touch(pages.iter().copied());
        log.touched()
    }

    /// A drive that devirtualises keeps no entries in memory: it reads what a table page said
    /// before it writes it anew.
    fn read_table(&mut self, at: SimTime, lpn: Lpn) -> Result<SimTime, DeviceError> {
        match self.translation.lookup_any(lpn).filter(|_| self.config.devirtualize.is_some()) {
            Some(ppn) => Ok(self.read_for(at, ppn, ReadCause::Merge)?.0),
            None => Ok(at),
        }
    }

    fn drop_slots(&mut self) {
        let free_from = self.journal.programs_end();
        let Some(log) = self.log_mut() else { return };
        log.drop_slots(free_from).for_each(|lpn| self.drop_system_page(Lpn(lpn)));
    }

    /// Writes the tables if a page of the log was lost.
    pub(super) fn mend_log(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if self.log().is_some_and(RemapLog::must_rewrite) {
            self.without_erasing(|drive| drive.write_tables(at))?;
        }
        Ok(())
    }

    fn encode_table(&self, index: u32) -> Vec<u8> {
        let encode = |log: &RemapLog| {
            let entry = |ppn| self.ownership.remapped(ppn);
            log.encode_table(index, self.medium.next_seq(), self.geometry().pages(), entry)
        };
        self.log().map(encode).unwrap_or_default()
    }
}
