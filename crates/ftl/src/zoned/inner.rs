//! The page-mapped part: it shares the dies, and holds what is the drive's own.

use dovetail_block::{BlockRange, Command, Completion, Content, Data, DeviceError, Hints, Lba};
use dovetail_time::SimTime;

use super::ZonedDrive;
use super::records::{encode, records_per_block};
use crate::stats::{Cause, Counters};

impl ZonedDrive {
    /// Performs a command on the page-mapped part, on the dies that it shares with the zones.
    pub(super) fn page_mapped_submit(
        &mut self,
        at: SimTime,
        command: Command<'_>,
    ) -> Result<Completion, DeviceError> {
        self.inner.swap_timeline(&mut self.nand);
        let done = self.inner.submit_at(at, command);
        self.inner.swap_timeline(&mut self.nand);
        done
    }

    /// Programs what a flush leaves in the write buffer of the page-mapped part because of
    /// capacitors: see [`crate::Drive::write_out`]. The zones keep what is part of a row.
    ///
    /// # Errors
    /// Errors of its flash.
    pub fn write_out(&mut self, at: SimTime) -> Result<SimTime, DeviceError> {
        self.inner.swap_timeline(&mut self.nand);
        let done = self.inner.write_out(at);
        self.inner.swap_timeline(&mut self.nand);
        done
    }

    /// Writes blocks of the drive's own; returns when they are durable.
    pub(super) fn write_own(
        &mut self,
        at: SimTime,
        start: u64,
        contents: &[Content],
    ) -> Result<SimTime, DeviceError> {
        // it may tell of pages of the zones
        self.nand.barrier();
        let before = self.inner.counters();
        let range = BlockRange::new(Lba(self.layout.zones.first.0 + start), contents.len() as u64);
        let data = Data::Blocks(contents);
        let command = Command::Write { range, data, hints: Hints::default(), fua: true };
        let done = self.page_mapped_submit(at, command)?.done;
        let made = self.inner.counters() - before;
        self.own.writes += made.writes;
        self.own.blocks += made.written_blocks;
        self.own.overwrites += made.buffer_overwrites;
        self.own.programs += made.programs[Cause::Host as usize];
        Ok(done)
    }

    /// Writes the record of a zone; returns when it is durable.
    pub(super) fn write_record(&mut self, at: SimTime, zone: u32) -> Result<SimTime, DeviceError> {
        // what it says of other zones holds only from their own records on
        let at = at.max(self.last_record);
        self.last_record = at;
        let blocks = self.layout.blocks_per_zone();
        let each = records_per_block(blocks) as usize;
        let block = zone as usize / each;
        let end = self.records.len().min((block + 1) * each);
        let content = encode(&self.records[block * each..end], blocks);
        self.write_own(at, block as u64, &[content])
    }

    /// Blocks of the drive's own before the places of active zones: the records.
    pub(super) fn record_blocks(&self) -> u64 {
        (self.records.len() as u64).div_ceil(records_per_block(self.layout.blocks_per_zone()))
    }

    /// The counts of the zones and of the page-mapped part. Writes of the drive's own are its
    /// journal.
    pub(super) fn with_page_mapped(&self) -> Counters {
        let (mut all, inner, own) =
            (self.counters, self.inner.counters() - self.recovered, self.own);
        all.reads += inner.reads;
        all.read_blocks += inner.read_blocks;
        all.empty_read_blocks += inner.empty_read_blocks;
        all.buffer_read_hits += inner.buffer_read_hits;
        all.buffer_overwrites += inner.buffer_overwrites - own.overwrites;
        all.writes += inner.writes - own.writes;
        all.written_blocks += inner.written_blocks - own.blocks;
        all.discards += inner.discards;
        all.discarded_blocks += inner.discarded_blocks;
        add_each(&mut all.programs, inner.programs);
        all.programs[Cause::Host as usize] -= own.programs;
        all.programs[Cause::Journal as usize] += own.programs;
        add_each(&mut all.flash_reads, inner.flash_reads);
        all.erases += inner.erases;
        all.gc_runs += inner.gc_runs;
        all.gc_stalls += inner.gc_stalls;
        all.wear_runs += inner.wear_runs;
        all.fold_runs += inner.fold_runs;
        all.fold_stalls += inner.fold_stalls;
        all.refresh_runs += inner.refresh_runs;
        all.single_programs += inner.single_programs;
        all.skipped_pages += inner.skipped_pages;
        all.program_failures += inner.program_failures;
        all.erase_failures += inner.erase_failures;
        all.lost_blocks += inner.lost_blocks;
        all.map_accesses += inner.map_accesses;
        add_each(&mut all.map_hits, inner.map_hits);
        add_each(&mut all.map_misses, inner.map_misses);
        add_each(&mut all.translation_reads, inner.translation_reads);
        add_each(&mut all.translation_absent, inner.translation_absent);
        add_each(&mut all.translation_writes, inner.translation_writes);
        all.switch_merges += inner.switch_merges;
        all.partial_merges += inner.partial_merges;
        all.full_merges += inner.full_merges;
        all
    }
}

fn add_each<const N: usize>(all: &mut [u64; N], more: [u64; N]) {
    all.iter_mut().zip(more).for_each(|(all, more)| *all += more);
}
