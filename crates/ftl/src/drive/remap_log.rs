//! Remaps on flash, for drives without non-volatile memory, in the manner of the journal of discards.
//!
//! A remap is written as *log pages* into the next of a fixed number of slots, before it is acknowledged. It counts only
//! when all its log pages are there: each says how many pairs the whole has. When the slots are used up, what they
//! say is written elsewhere first: *table pages*, each with the entries of the reverse map for a range of physical
//! pages, and bitmap pages for the sources that died.
//!
//! What a log or table page says was true when it was written and never becomes false: an entry holds until the page at
//! its place is programmed anew, and recovery sees that by the sequence numbers. So old copies that come back after a
//! power cut do no harm, and slots are dropped at once when the tables are on flash.

use std::collections::BTreeSet;

use dovetail_block::DeviceError;
use dovetail_nand::{Lpn, Ppn, Seq};
use dovetail_time::SimTime;

use super::Drive;
use super::journal::{HEADER_BYTES, PageHeader, u32_at, u64_at};
use super::remap::{Move, deaths};
use super::reverse::Remapped;
use crate::config::DriveConfig;
use crate::remap::RemapStore;
use crate::stats::Cause;

pub(super) const LOG_MAGIC: u32 = 0x4456_4D31; // "DVM1"
pub(super) const TABLE_MAGIC: u32 = 0x4456_5231; // "DVR1"
const PAIR_BYTES: usize = 12;
const ENTRY_BYTES: usize = 12;
/// Log slots, at least (assumed), as for discards; otherwise as many as table pages, so that writing tables costs at most
/// one page a log page.
const MIN_SLOTS: u32 = 16;
const NO_PAGE: u32 = u32::MAX;

/// What a log page says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogPage {
    /// Of the whole remap.
    pub(super) seq: Seq,
    /// Pairs of the whole remap.
    pub(super) total: usize,
    pub(super) moves: Vec<Move>,
}

/// What a table page says.
pub(super) type TablePage = Vec<(Ppn, Remapped)>;

#[derive(Debug)]
pub(super) struct RemapLog {
    first_lpn: u32,
    tables: u32,
    slots: u32,
    next_slot: u32,
    /// When what the slots said before is on flash elsewhere.
    free_from: SimTime,
    /// Table pages whose entries have changed since they were last written.
    touched: BTreeSet<u32>,
    /// A page of the log was lost on the medium: the tables must be written before anything is erased.
    must_rewrite: bool,
}

const fn pairs_per_page(page_bytes: u32) -> usize {
    (page_bytes as usize - HEADER_BYTES) / PAIR_BYTES
}

const fn entries_per_table(page_bytes: u32) -> u32 {
    (page_bytes - HEADER_BYTES as u32) / ENTRY_BYTES as u32
}

fn is_log(config: &DriveConfig) -> bool {
    config.remap.is_some_and(|remap| remap.store == RemapStore::Log)
}

/// Table pages of the reverse map on flash.
pub(crate) fn table_pages(config: &DriveConfig) -> u32 {
    let geometry = config.nand.geometry;
    if is_log(config) { geometry.pages().div_ceil(entries_per_table(geometry.page_bytes)) } else { 0 }
}

/// Slots: also for the longest remap at once.
fn slots(config: &DriveConfig) -> u32 {
    let Some(remap) = config.remap.filter(|_| is_log(config)) else { return 0 };
    let longest = remap.most_pairs().div_ceil(pairs_per_page(config.nand.geometry.page_bytes) as u64);
    table_pages(config).max(MIN_SLOTS).max(longest as u32)
}

/// Logical pages that the log and its tables take, above those of the journal.
pub(super) fn log_pages(config: &DriveConfig) -> u32 {
    table_pages(config) + slots(config)
}

impl RemapLog {
    pub(super) fn new(config: &DriveConfig) -> Self {
        Self {
            first_lpn: config.user_pages() + super::journal::journal_pages(config),
            tables: table_pages(config),
            slots: slots(config),
            next_slot: 0,
            free_from: SimTime::ZERO,
            touched: BTreeSet::new(),
            must_rewrite: false,
        }
    }

    fn touch(&mut self, moves: &[Move], page_bytes: u32) {
        let per_table = entries_per_table(page_bytes);
        self.touched.extend(moves.iter().filter_map(|entry| entry.ppn).map(|ppn| ppn.0 / per_table));
    }

    /// After recovery: the slots hold these remaps, which the tables may lack.
    pub(super) fn found<'a>(&mut self, moves: impl Iterator<Item = &'a [Move]>, page_bytes: u32) {
        moves.for_each(|moves| self.touch(moves, page_bytes));
        self.next_slot = self.slots;
    }
}

impl Drive {
    fn log(&self) -> Option<&RemapLog> {
        self.remaps.as_ref().and_then(|remaps| remaps.log.as_ref())
    }

    fn log_mut(&mut self) -> Option<&mut RemapLog> {
        self.remaps.as_mut().and_then(|remaps| remaps.log.as_mut())
    }

    fn log_pages_for(&self, pairs: usize) -> u32 {
        pairs.div_ceil(pairs_per_page(self.nand.geometry().page_bytes)) as u32
    }

    /// Sees to it that a remap can be logged: slots, and lines to write to.
    pub(super) fn make_room_in_log(&mut self, at: SimTime, pairs: usize) -> Result<(), DeviceError> {
        let Some(log) = self.log() else { return Ok(()) };
        let pages = self.log_pages_for(pairs);
        if log.next_slot + pages > log.slots {
            for _ in 0..log.touched.len() {
                self.make_room(at)?;
            }
            self.without_erasing(|drive| drive.write_tables(at))?;
        }
        for _ in 0..pages {
            self.make_room(at)?;
        }
        Ok(())
    }

    /// Writes the log pages of a remap, no earlier than `at`; returns when the last of them is durable. There are slots.
    pub(super) fn write_log(
        &mut self,
        at: SimTime,
        seq: Seq,
        moves: &[Move],
    ) -> Result<SimTime, DeviceError> {
        let Some(log) = self.log() else { return Ok(at) };
        let (at, mut end) = (at.max(log.free_from), at);
        let page_bytes = self.nand.geometry().page_bytes;
        for chunk in moves.chunks(pairs_per_page(page_bytes)) {
            let Some(log) = self.log_mut() else { break };
            let lpn = Lpn(log.first_lpn + log.tables + log.next_slot);
            log.next_slot += 1;
            let page = encode_log(seq, moves.len(), chunk, page_bytes as usize);
            end = end.max(self.program_system(at, lpn, &page, Cause::Remap)?);
        }
        if let Some(log) = self.log_mut() {
            log.touch(moves, page_bytes);
        }
        deaths(moves).for_each(|lpn| self.journal.touch(super::remap::block_of(lpn)));
        Ok(end)
    }

    /// Writes elsewhere what the slots say, and drops them. Like bitmap pages, table pages come after all programs
    /// so far: an entry must not be there before the remap that it rests on.
    fn write_tables(&mut self, at: SimTime) -> Result<(), DeviceError> {
        self.write_bitmaps(at)?;
        let at = at.max(self.programs_end);
        while let Some((index, lpn)) = self.log().and_then(RemapLog::next_touched) {
            let page = self.encode_table(index);
            self.program_system(at, lpn, &page, Cause::Remap)?;
            let Some(log) = self.log_mut() else { break };
            log.touched.remove(&index);
        }
        self.drop_slots();
        Ok(())
    }

    fn drop_slots(&mut self) {
        let free_from = self.programs_end_of_journal();
        let Some(log) = self.log_mut() else { return };
        log.free_from = free_from;
        log.next_slot = 0;
        log.must_rewrite = false;
        let first = log.first_lpn + log.tables;
        for lpn in (first..first + log.slots).map(Lpn) {
            if let (Some(before), _) = self.map.update(lpn, None) {
                self.lines.invalidate(before);
            }
        }
    }

    /// A log or table page can no longer be read: all tables are written anew, from memory.
    pub(super) fn distrust_log(&mut self) {
        let page_bytes = self.nand.geometry().page_bytes;
        let Some(remaps) = &mut self.remaps else { return };
        let Some(log) = &mut remaps.log else { return };
        let per_table = entries_per_table(page_bytes);
        log.touched.extend(remaps.reverse.iter().map(|(ppn, _)| ppn.0 / per_table));
        log.must_rewrite = true;
    }

    /// Writes the tables if a page of the log was lost.
    pub(super) fn mend_log(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if self.log().is_some_and(|log| log.must_rewrite) {
            self.without_erasing(|drive| drive.write_tables(at))?;
        }
        Ok(())
    }

    fn encode_table(&self, index: u32) -> Vec<u8> {
        let page_bytes = self.nand.geometry().page_bytes;
        let first = index * entries_per_table(page_bytes);
        let mut page = vec![0; page_bytes as usize];
        PageHeader { magic: TABLE_MAGIC, count: 0, first: first.into(), seq: self.seq }.put(&mut page);
        let end = (first + entries_per_table(page_bytes)).min(self.nand.geometry().pages());
        for (slot, ppn) in page[HEADER_BYTES..].chunks_exact_mut(ENTRY_BYTES).zip((first..end).map(Ppn)) {
            if let Some(Remapped { lpn, seq }) = self.remapped(ppn) {
                slot[0..4].copy_from_slice(&(lpn.0 + 1).to_le_bytes());
                slot[4..12].copy_from_slice(&seq.0.to_le_bytes());
            }
        }
        page
    }
}

impl RemapLog {
    fn next_touched(&self) -> Option<(u32, Lpn)> {
        self.touched.first().map(|&index| (index, Lpn(self.first_lpn + index)))
    }
}

fn encode_log(seq: Seq, total: usize, moves: &[Move], page_bytes: usize) -> Vec<u8> {
    let mut page = vec![0; page_bytes];
    PageHeader { magic: LOG_MAGIC, count: moves.len() as u32, first: total as u64, seq }.put(&mut page);
    for (slot, entry) in page[HEADER_BYTES..].chunks_exact_mut(PAIR_BYTES).zip(moves) {
        let ppn = entry.ppn.map_or(NO_PAGE, |ppn| ppn.0);
        slot[0..4].copy_from_slice(&ppn.to_le_bytes());
        slot[4..8].copy_from_slice(&entry.to.0.to_le_bytes());
        slot[8..12].copy_from_slice(&entry.from.0.to_le_bytes());
    }
    page
}

pub(super) fn decode_log(header: PageHeader, body: &[u8]) -> LogPage {
    let entry = |slot: &[u8]| {
        let ppn = u32_at(slot, 0);
        let ppn = (ppn != NO_PAGE).then_some(Ppn(ppn));
        Move { ppn, to: Lpn(u32_at(slot, 4)), from: Lpn(u32_at(slot, 8)) }
    };
    let moves = body.chunks_exact(PAIR_BYTES).take(header.count as usize).map(entry).collect();
    LogPage { seq: header.seq, total: header.first as usize, moves }
}

pub(super) fn decode_table(header: PageHeader, body: &[u8]) -> TablePage {
    let entry = |(ppn, slot): (u32, &[u8])| {
        let lpn = Lpn(u32_at(slot, 0).checked_sub(1)?);
        Some((Ppn(ppn), Remapped { lpn, seq: Seq(u64_at(slot, 4)) }))
    };
    let ppns = header.first as u32..;
    ppns.zip(body.chunks_exact(ENTRY_BYTES)).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::super::journal::{SystemPage, decode};
    use super::*;

    #[test]
    fn log_pages_come_back() {
        let moves = [
            Move { ppn: Some(Ppn(7)), to: Lpn(1), from: Lpn(1 << 30) },
            Move { ppn: None, to: Lpn(2), from: Lpn(3) },
        ];
        let page = encode_log(Seq(1 << 40), 9, &moves, 4096);
        let expected = LogPage { seq: Seq(1 << 40), total: 9, moves: moves.to_vec() };
        assert_eq!(decode(&page), Some(SystemPage::Log(expected)));
    }
}
