//! Remaps on flash, for drives without non-volatile memory, in the manner of the journal of
//! discards. A drive with a segmented log in such memory has the table pages alone.
//!
//! A remap is written as *log pages* into the next of a fixed number of slots, before it is
//! acknowledged. It counts only when all its log pages are there: each says how many pairs the
//! whole has. When the slots are used up, what they say is written elsewhere first: *table pages*,
//! each with the entries of the reverse map for a range of physical pages, and bitmap pages for the
//! sources that died.
//!
//! The entries of a log or table page were true when it was written and never become false: an
//! entry holds until the page at its place is programmed anew, and recovery sees that by the
//! sequence numbers. So old copies that come back after a power cut do no harm, and slots are
//! dropped at once when the tables are on flash.

use std::collections::BTreeSet;
use std::ops::Range;

use dovetail_nand::{Lpn, Ppn, Seq};
use dovetail_time::SimTime;

use super::journal::journal_pages;
use super::{HEADER_BYTES, PageHeader, SystemPage, u32_at, u64_at};
use crate::config::DriveConfig;
use crate::ownership::{Move, Remapped};
use crate::remap::RemapStore;

const LOG_MAGIC: [u32; 2] = [0x4456_4D31, 0x4456_4D32]; // "DVM1", and "DVM2" with wide addresses
const TABLE_MAGIC: [u32; 2] = [0x4456_5231, 0x4456_5232]; // "DVR1", "DVR2"
/// Log slots, at least (assumed), as for discards; otherwise as many as table pages, so that
/// writing tables costs at most one page a log page.
const MIN_SLOTS: u32 = 16;
const NO_PAGE: u32 = u32::MAX;

/// The form of logical pages in what the drive keeps of remaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressWidth {
    /// Four bytes: the address space has fewer than 2^32 pages.
    Narrow,
    /// Eight bytes.
    Wide,
}

impl AddressWidth {
    pub(crate) fn of(config: &DriveConfig) -> Self {
        if config.host_pages() < u64::from(u32::MAX) { Self::Narrow } else { Self::Wide }
    }

    const fn bytes(self) -> usize {
        match self {
            Self::Narrow => 4,
            Self::Wide => 8,
        }
    }

    /// Flash page, destination, source.
    pub(crate) const fn pair_bytes(self) -> usize {
        4 + 2 * self.bytes()
    }

    /// Logical page, sequence number.
    pub(crate) const fn entry_bytes(self) -> usize {
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

/// The content of a log page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LogPage {
    /// Of the whole remap.
    pub(crate) seq: Seq,
    /// Pairs of the whole remap.
    pub(crate) total: usize,
    pub(crate) moves: Vec<Move>,
}

/// The content of a table page.
pub(crate) type TablePage = Vec<(Ppn, Remapped)>;

/// The slots of the log, and which tables lag behind.
#[derive(Clone, Debug)]
pub(crate) struct RemapLog {
    width: AddressWidth,
    /// Of a flash page.
    page_bytes: u32,
    first_lpn: u64,
    tables: u32,
    slots: u32,
    next_slot: u32,
    /// Time when what the slots said before is on flash elsewhere.
    free_from: SimTime,
    /// Table pages whose entries have changed since they were last written.
    touched: BTreeSet<u32>,
    /// A page of the log was lost on the medium: the tables must be written before anything is
    /// erased.
    must_rewrite: bool,
}

fn is_log(config: &DriveConfig) -> bool {
    config.remap.is_some_and(|remap| remap.store == RemapStore::Log)
}

/// A log in non-volatile memory has no slots on flash, but tables for what it has no room for.
fn has_tables(config: &DriveConfig) -> bool {
    is_log(config)
        || config.remap.is_some_and(|remap| matches!(remap.store, RemapStore::SegmentedLog { .. }))
}

/// Table pages of the reverse map on flash.
pub(crate) fn table_pages(config: &DriveConfig) -> u32 {
    let geometry = config.nand.geometry;
    let per_table = AddressWidth::of(config).entries_per_table(geometry.page_bytes);
    if has_tables(config) { geometry.pages().div_ceil(per_table) } else { 0 }
}

/// Slots: also for the longest remap at once.
fn slots(config: &DriveConfig) -> u32 {
    let Some(remap) = config.remap.filter(|_| is_log(config)) else { return 0 };
    let per_page = AddressWidth::of(config).pairs_per_page(config.nand.geometry.page_bytes);
    let longest = remap.most_pairs().div_ceil(per_page as u64);
    table_pages(config).max(MIN_SLOTS).max(longest as u32)
}

/// Logical pages that the log and its tables take, above those of the journal.
pub(crate) fn log_pages(config: &DriveConfig) -> u32 {
    table_pages(config) + slots(config)
}

impl RemapLog {
    pub(crate) fn new(config: &DriveConfig) -> Self {
        Self {
            width: AddressWidth::of(config),
            page_bytes: config.nand.geometry.page_bytes,
            first_lpn: config.host_pages() + u64::from(journal_pages(config)),
            tables: table_pages(config),
            slots: slots(config),
            next_slot: 0,
            free_from: SimTime::ZERO,
            touched: BTreeSet::new(),
            must_rewrite: false,
        }
    }

    /// The tables lag behind entries of these pages.
    pub(crate) fn touch(&mut self, pages: impl Iterator<Item = Ppn>) {
        let per_table = self.entries_per_table();
        self.touched.extend(pages.map(|ppn| ppn.0 / per_table));
    }

    /// After recovery: the slots hold these remaps, which the tables may lack.
    pub(crate) fn found<'a>(&mut self, moves: impl Iterator<Item = &'a [Move]>) {
        moves.for_each(|moves| self.touch(moves.iter().filter_map(|entry| entry.ppn)));
        self.next_slot = self.slots;
    }

    /// Bytes of an entry of the reverse map.
    pub(crate) fn entry_bytes(&self) -> u64 {
        self.width.entry_bytes() as u64
    }

    fn entries_per_table(&self) -> u32 {
        self.width.entries_per_table(self.page_bytes)
    }

    /// Pairs that a log page has room for.
    pub(crate) fn pairs_per_page(&self) -> usize {
        self.width.pairs_per_page(self.page_bytes)
    }

    /// Log pages that a remap of so many pairs takes.
    pub(crate) fn pages_for(&self, pairs: usize) -> u32 {
        pairs.div_ceil(self.pairs_per_page()) as u32
    }

    /// Tells whether so many slots are left.
    pub(crate) fn has_slots(&self, pages: u32) -> bool {
        self.next_slot + pages <= self.slots
    }

    /// Returns when the next slot may be written.
    pub(crate) fn free_from(&self) -> SimTime {
        self.free_from
    }

    /// Takes the next slot, for some of the `total` moves of a remap; returns it and its page.
    pub(crate) fn take_slot(&mut self, seq: Seq, total: usize, moves: &[Move]) -> (Lpn, Vec<u8>) {
        debug_assert!(self.has_slots(1), "room in the log must be made first");
        let lpn = Lpn(self.first_slot() + u64::from(self.next_slot));
        self.next_slot += 1;
        (lpn, encode_log(self.width, seq, total, moves, self.page_bytes as usize))
    }

    fn first_slot(&self) -> u64 {
        self.first_lpn + u64::from(self.tables)
    }

    /// Table pages that lag behind.
    pub(crate) fn touched(&self) -> usize {
        self.touched.len()
    }

    /// The first table page that lags behind, and its logical page.
    pub(crate) fn next_touched(&self) -> Option<(u32, Lpn)> {
        self.touched.first().map(|&index| (index, Lpn(self.first_lpn + u64::from(index))))
    }

    /// A table page was written.
    pub(crate) fn table_written(&mut self, index: u32) {
        self.touched.remove(&index);
    }

    /// Drops the slots: the tables say what they said, and are durable at `free_from`. Returns the
    /// logical pages of the slots.
    pub(crate) fn drop_slots(&mut self, free_from: SimTime) -> Range<u64> {
        debug_assert!(self.touched.is_empty(), "tables must be written before slots are dropped");
        self.free_from = free_from;
        self.next_slot = 0;
        self.must_rewrite = false;
        self.first_slot()..self.first_slot() + u64::from(self.slots)
    }

    /// A log or table page can no longer be read: all tables with entries are to be written anew.
    pub(crate) fn distrust(&mut self, entries: impl Iterator<Item = Ppn>) {
        self.touch(entries);
        self.must_rewrite = true;
    }

    /// Tells whether the tables must be written before anything is erased.
    pub(crate) fn must_rewrite(&self) -> bool {
        self.must_rewrite
    }

    /// A table page as of `seq`, on a flash of `flash_pages`.
    pub(crate) fn encode_table(
        &self,
        index: u32,
        seq: Seq,
        flash_pages: u32,
        entry: impl Fn(Ppn) -> Option<Remapped>,
    ) -> Vec<u8> {
        let (width, per_table) = (self.width, self.entries_per_table());
        let first = index * per_table;
        let mut page = vec![0; self.page_bytes as usize];
        let magic = width.magic(TABLE_MAGIC);
        PageHeader { magic, count: 0, first: first.into(), seq }.put(&mut page);
        let ppns = (first..first.saturating_add(per_table).min(flash_pages)).map(Ppn);
        for (slot, ppn) in page[HEADER_BYTES..].chunks_exact_mut(width.entry_bytes()).zip(ppns) {
            if let Some(Remapped { lpn, seq }) = entry(ppn) {
                width.put(slot, 0, lpn.0 + 1);
                slot[width.bytes()..].copy_from_slice(&seq.0.to_le_bytes());
            }
        }
        page
    }
}

fn encode_log(
    width: AddressWidth,
    seq: Seq,
    total: usize,
    moves: &[Move],
    page_bytes: usize,
) -> Vec<u8> {
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
    let moves =
        body.chunks_exact(width.pair_bytes()).take(header.count as usize).map(entry).collect();
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
            assert_eq!(super::super::decode(&page), Some(SystemPage::Log(expected)));
        }
    }
}
