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
use super::journal::{HEADER_BYTES, PageHeader, SystemPage, u32_at, u64_at};
use super::remap::Move;
use super::reverse::Remapped;
use crate::config::DriveConfig;
use crate::remap::RemapStore;
use crate::stats::{Cause, ReadCause};

const LOG_MAGIC: [u32; 2] = [0x4456_4D31, 0x4456_4D32]; // "DVM1", and "DVM2" with wide addresses
const TABLE_MAGIC: [u32; 2] = [0x4456_5231, 0x4456_5232]; // "DVR1", "DVR2"
/// Log slots, at least (assumed), as for discards; otherwise as many as table pages, so that writing tables costs at most
/// one page a log page.
const MIN_SLOTS: u32 = 16;
const NO_PAGE: u32 = u32::MAX;

/// The form of logical pages in what the drive keeps of remaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressWidth {
    /// Four bytes: the address space has fewer than 2^32 pages.
    Narrow,
    /// Eight bytes.
    Wide,
}

impl AddressWidth {
    pub(super) fn of(config: &DriveConfig) -> Self {
        if config.host_pages() < u64::from(u32::MAX) { Self::Narrow } else { Self::Wide }
    }

    const fn bytes(self) -> usize {
        match self {
            Self::Narrow => 4,
            Self::Wide => 8,
        }
    }

    /// Flash page, destination, source.
    pub(super) const fn pair_bytes(self) -> usize {
        4 + 2 * self.bytes()
    }

    /// Logical page, sequence number.
    pub(super) const fn entry_bytes(self) -> usize {
        self.bytes() + 8
    }

    fn put(self, slot: &mut [u8], at: usize, number: u64) {
        slot[at..at + self.bytes()].copy_from_slice(&number.to_le_bytes()[..self.bytes()]);
    }

    fn get(self, slot: &[u8], at: usize) -> u64 {
        match self {
            Self::Narrow => u32_at(slot, at).into(),
            Self::Wide => u64_at(slot, at),
        }
    }

    const fn pairs_per_page(self, page_bytes: u32) -> usize {
        (page_bytes as usize - HEADER_BYTES) / self.pair_bytes()
    }

    const fn entries_per_table(self, page_bytes: u32) -> u32 {
        ((page_bytes as usize - HEADER_BYTES) / self.entry_bytes()) as u32
    }

    /// The width that belongs to a page with that number, one of `magics`.
    fn of_magic(magics: [u32; 2], magic: u32) -> Option<Self> {
        let widths = magics.into_iter().zip([Self::Narrow, Self::Wide]);
        widths.into_iter().find(|(known, _)| *known == magic).map(|(_, width)| width)
    }

    const fn magic(self, magics: [u32; 2]) -> u32 {
        magics[self as usize]
    }
}

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
    width: AddressWidth,
    /// Of a flash page.
    page_bytes: u32,
    first_lpn: u64,
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

fn is_log(config: &DriveConfig) -> bool {
    config.remap.is_some_and(|remap| remap.store == RemapStore::Log)
}

/// Table pages of the reverse map on flash.
pub(crate) fn table_pages(config: &DriveConfig) -> u32 {
    let geometry = config.nand.geometry;
    let per_table = AddressWidth::of(config).entries_per_table(geometry.page_bytes);
    if is_log(config) { geometry.pages().div_ceil(per_table) } else { 0 }
}

/// Slots: also for the longest remap at once.
fn slots(config: &DriveConfig) -> u32 {
    let Some(remap) = config.remap.filter(|_| is_log(config)) else { return 0 };
    let per_page = AddressWidth::of(config).pairs_per_page(config.nand.geometry.page_bytes);
    let longest = remap.most_pairs().div_ceil(per_page as u64);
    table_pages(config).max(MIN_SLOTS).max(longest as u32)
}

/// Logical pages that the log and its tables take, above those of the journal.
pub(super) fn log_pages(config: &DriveConfig) -> u32 {
    table_pages(config) + slots(config)
}

impl RemapLog {
    pub(super) fn new(config: &DriveConfig) -> Self {
        Self {
            width: AddressWidth::of(config),
            page_bytes: config.nand.geometry.page_bytes,
            first_lpn: config.host_pages() + u64::from(super::journal::journal_pages(config)),
            tables: table_pages(config),
            slots: slots(config),
            next_slot: 0,
            free_from: SimTime::ZERO,
            touched: BTreeSet::new(),
            must_rewrite: false,
        }
    }

    fn touch(&mut self, moves: &[Move]) {
        let per_table = self.entries_per_table();
        self.touched.extend(moves.iter().filter_map(|entry| entry.ppn).map(|ppn| ppn.0 / per_table));
    }

    /// After recovery: the slots hold these remaps, which the tables may lack.
    pub(super) fn found<'a>(&mut self, moves: impl Iterator<Item = &'a [Move]>) {
        moves.for_each(|moves| self.touch(moves));
        self.next_slot = self.slots;
    }

    /// Bytes of an entry of the reverse map.
    pub(super) fn entry_bytes(&self) -> u64 {
        self.width.entry_bytes() as u64
    }

    fn entries_per_table(&self) -> u32 {
        self.width.entries_per_table(self.page_bytes)
    }

    fn pairs_per_page(&self) -> usize {
        self.width.pairs_per_page(self.page_bytes)
    }
}

impl Drive {
    fn log(&self) -> Option<&RemapLog> {
        self.remaps.as_ref().and_then(|remaps| remaps.log.as_ref())
    }

    fn log_mut(&mut self) -> Option<&mut RemapLog> {
        self.remaps.as_mut().and_then(|remaps| remaps.log.as_mut())
    }

    /// Sees to it that a remap can be logged: slots, and lines to write to.
    pub(super) fn make_room_in_log(&mut self, at: SimTime, pairs: usize) -> Result<(), DeviceError> {
        let Some(log) = self.log() else { return Ok(()) };
        let pages = pairs.div_ceil(log.pairs_per_page()) as u32;
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
        for chunk in moves.chunks(log.pairs_per_page()) {
            let Some(log) = self.log_mut() else { break };
            let lpn = Lpn(log.first_lpn + u64::from(log.tables + log.next_slot));
            log.next_slot += 1;
            let page = encode_log(log.width, seq, moves.len(), chunk, log.page_bytes as usize);
            end = end.max(self.program_system(at, lpn, &page, Cause::Remap)?);
        }
        if let Some(log) = self.log_mut() {
            log.touch(moves);
        }
        Ok(end)
    }

    /// Writes elsewhere what the slots say, and drops them. Like bitmap pages, table pages come after all programs
    /// so far: an entry must not be there before the remap that it rests on.
    fn write_tables(&mut self, at: SimTime) -> Result<(), DeviceError> {
        self.write_bitmaps(at)?;
        let at = at.max(self.all_durable_at());
        while let Some((index, lpn)) = self.log().and_then(RemapLog::next_touched) {
            let at = self.read_table(at, lpn)?;
            let page = self.encode_table(index);
            self.program_system(at, lpn, &page, Cause::Remap)?;
            let Some(log) = self.log_mut() else { break };
            log.touched.remove(&index);
        }
        self.drop_slots();
        Ok(())
    }

    /// A drive that devirtualises keeps no entries in memory: it reads what a table page said before it writes it anew.
    fn read_table(&mut self, at: SimTime, lpn: Lpn) -> Result<SimTime, DeviceError> {
        match self.translation.lookup_any(lpn).filter(|_| self.config.devirtualize.is_some()) {
            Some(ppn) => Ok(self.read_for(at, ppn, ReadCause::Merge)?.0),
            None => Ok(at),
        }
    }

    fn drop_slots(&mut self) {
        let free_from = self.programs_end_of_journal();
        let Some(log) = self.log_mut() else { return };
        log.free_from = free_from;
        log.next_slot = 0;
        log.must_rewrite = false;
        let first = log.first_lpn + u64::from(log.tables);
        (first..first + u64::from(log.slots)).for_each(|lpn| self.drop_system_page(Lpn(lpn)));
    }

    /// A log or table page can no longer be read: all tables are written anew, from memory.
    pub(super) fn distrust_log(&mut self) {
        let Some(remaps) = &mut self.remaps else { return };
        let Some(log) = &mut remaps.log else { return };
        let per_table = log.entries_per_table();
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
        let (width, page_bytes) = (AddressWidth::of(&self.config), self.medium.nand().geometry().page_bytes);
        let per_table = width.entries_per_table(page_bytes);
        let first = index * per_table;
        let mut page = vec![0; page_bytes as usize];
        let magic = width.magic(TABLE_MAGIC);
        PageHeader { magic, count: 0, first: first.into(), seq: self.medium.next_seq() }.put(&mut page);
        let ppns = (first..first.saturating_add(per_table).min(self.geometry().pages())).map(Ppn);
        for (slot, ppn) in page[HEADER_BYTES..].chunks_exact_mut(width.entry_bytes()).zip(ppns) {
            if let Some(Remapped { lpn, seq }) = self.remapped(ppn) {
                width.put(slot, 0, lpn.0 + 1);
                slot[width.bytes()..].copy_from_slice(&seq.0.to_le_bytes());
            }
        }
        page
    }
}

impl RemapLog {
    fn next_touched(&self) -> Option<(u32, Lpn)> {
        self.touched.first().map(|&index| (index, Lpn(self.first_lpn + u64::from(index))))
    }
}

fn encode_log(width: AddressWidth, seq: Seq, total: usize, moves: &[Move], page_bytes: usize) -> Vec<u8> {
    let mut page = vec![0; page_bytes];
    let (magic, count) = (width.magic(LOG_MAGIC), moves.len() as u32);
    PageHeader { magic, count, first: total as u64, seq }.put(&mut page);
    for (slot, entry) in page[HEADER_BYTES..].chunks_exact_mut(width.pair_bytes()).zip(moves) {
        let ppn = entry.ppn.map_or(NO_PAGE, |ppn| ppn.0);
        slot[0..4].copy_from_slice(&ppn.to_le_bytes());
        width.put(slot, 4, entry.to.0);
        width.put(slot, 4 + width.bytes(), entry.from.0);
    }
    page
}

/// Reads a log or table page; `None` when it is neither.
pub(super) fn decode(header: PageHeader, body: &[u8]) -> Option<SystemPage> {
    if let Some(width) = AddressWidth::of_magic(LOG_MAGIC, header.magic) {
        return Some(SystemPage::Log(decode_log(width, header, body)));
    }
    let width = AddressWidth::of_magic(TABLE_MAGIC, header.magic)?;
    Some(SystemPage::Table(decode_table(width, u32::try_from(header.first).ok()?, body)))
}

fn decode_log(width: AddressWidth, header: PageHeader, body: &[u8]) -> LogPage {
    let entry = |slot: &[u8]| {
        let ppn = u32_at(slot, 0);
        let ppn = (ppn != NO_PAGE).then_some(Ppn(ppn));
        Move { ppn, to: Lpn(width.get(slot, 4)), from: Lpn(width.get(slot, 4 + width.bytes())) }
    };
    let moves = body.chunks_exact(width.pair_bytes()).take(header.count as usize).map(entry).collect();
    LogPage { seq: header.seq, total: header.first as usize, moves }
}

fn decode_table(width: AddressWidth, first: u32, body: &[u8]) -> TablePage {
    let entry = |(index, slot): (u32, &[u8])| {
        let lpn = Lpn(width.get(slot, 0).checked_sub(1)?);
        let ppn = Ppn(first.saturating_add(index));
        Some((ppn, Remapped { lpn, seq: Seq(u64_at(slot, width.bytes())) }))
    };
    (0..).zip(body.chunks_exact(width.entry_bytes())).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_pages_come_back() {
        for (width, far) in [(AddressWidth::Narrow, 1 << 30), (AddressWidth::Wide, 1 << 60)] {
            let moves = [
                Move { ppn: Some(Ppn(7)), to: Lpn(1), from: Lpn(far) },
                Move { ppn: None, to: Lpn(far + 2), from: Lpn(3) },
            ];
            let page = encode_log(width, Seq(1 << 40), 9, &moves, 4096);
            let expected = LogPage { seq: Seq(1 << 40), total: 9, moves: moves.to_vec() };
            assert_eq!(super::super::journal::decode(&page), Some(SystemPage::Log(expected)));
        }
    }
}
