//! The record of discards that survives a power cut.
//!
//! Recovery finds pages by their out-of-band areas; a page that was discarded would come back unless something
//! says that it is dead. Two kinds of pages of the drive's own say so, each with a logical page number above
//! the host's, so that cleaning, wear levelling and recovery treat them like any other page:
//! - *journal pages*: ranges of blocks with the sequence number of their discard. A version of a block with a
//!   lower sequence number is dead.
//! - *bitmap pages*: one bit a block, set where it was unmapped when the page was written, with the sequence
//!   number of that moment.
//!
//! Discards gather in memory; a flush writes them as journal pages into the next of a fixed number of journal
//! slots. When the slots are used up, every bitmap page that discards have touched since is written first, and
//! the slots are used again from the start.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, BlockBytes, BlockRange, Content, DeviceError, Inode, Lba, StreamId};
use dovetail_nand::{Lpn, Seq, Token};
use dovetail_time::{SimSpan, SimTime};

use super::Drive;
use super::nvm::Nvm;
use super::place::Page;
use super::remap_log::{LOG_MAGIC, LogPage, TABLE_MAGIC, TablePage, decode_log, decode_table};
use crate::buffer::MAX_PARTS;
use crate::config::DriveConfig;
use crate::stats::Cause;

const BITMAP_MAGIC: u32 = 0x4456_4231; // "DVB1"
const JOURNAL_MAGIC: u32 = 0x4456_4A31; // "DVJ1"
pub(super) const HEADER_BYTES: usize = 32;
const RECORD_BYTES: usize = 24;
/// Journal slots, at least (assumed). With fewer than bitmap pages, writing bitmaps would cost more pages than
/// the journal itself.
const MIN_SLOTS: u32 = 16;

/// One discard: versions of these blocks below `seq` are dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) range: BlockRange,
    pub(super) seq: Seq,
}

impl Record {
    /// The death of a page that is one block.
    pub(super) fn of_page(lpn: Lpn, seq: Seq) -> Self {
        Self { range: BlockRange::new(Lba(lpn.0.into()), 1), seq }
    }
}

/// What a page of the drive's own says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SystemPage {
    Journal(Vec<Record>),
    /// Block number of the first bit, when it was written, and the bits.
    Bitmap {
        first: Lba,
        seq: Seq,
        bits: Vec<u8>,
    },
    /// A part of a remap.
    Log(LogPage),
    /// A part of the reverse map.
    Table(TablePage),
}

#[derive(Debug)]
pub(super) struct Journal {
    pending: Vec<Record>,
    /// Bitmap pages that discards have touched since they were last written.
    touched: BTreeSet<u32>,
    next_slot: u32,
    slots: u32,
    /// When the bitmaps that replace what the slots said before are on flash.
    slots_free_from: SimTime,
    blocks_per_bitmap: u64,
    first_lpn: u32,
    programs_end: SimTime,
    is_writing: bool,
    /// A page of the journal was lost on the medium: all bitmap pages must be written before anything is erased.
    must_rewrite: bool,
}

fn blocks_per_bitmap(page_bytes: u32) -> u64 {
    (page_bytes as usize - HEADER_BYTES) as u64 * 8
}

fn bitmap_pages(config: &DriveConfig) -> u32 {
    config.user_blocks.div_ceil(blocks_per_bitmap(config.nand.geometry.page_bytes)) as u32
}

fn slots(config: &DriveConfig) -> u32 {
    bitmap_pages(config).max(MIN_SLOTS)
}

/// Logical pages that the journal takes, above the host's.
pub(super) fn journal_pages(config: &DriveConfig) -> u32 {
    bitmap_pages(config) + slots(config)
}

impl Journal {
    pub(super) fn new(config: &DriveConfig) -> Self {
        Self {
            pending: Vec::new(),
            touched: BTreeSet::new(),
            next_slot: 0,
            slots: slots(config),
            slots_free_from: SimTime::ZERO,
            blocks_per_bitmap: blocks_per_bitmap(config.nand.geometry.page_bytes),
            first_lpn: config.user_pages(),
            programs_end: SimTime::ZERO,
            is_writing: false,
            must_rewrite: false,
        }
    }

    /// Nothing is known of which bitmap pages lag behind the slots, so all do: after recovery, and after a loss.
    pub(super) fn distrust(&mut self, bitmaps: u32) {
        self.touched = (0..bitmaps).collect();
        self.next_slot = self.slots;
    }

    /// Bitmap pages of these blocks lag behind.
    pub(super) fn touch(&mut self, range: BlockRange) {
        let (first, last) = (range.start.0, range.end().0 - 1);
        self.touched.extend((first / self.blocks_per_bitmap) as u32..=(last / self.blocks_per_bitmap) as u32);
    }

    /// Adds a record; if it was merged into the last one, returns that as it was.
    pub(super) fn note(&mut self, record: Record) -> Option<Record> {
        self.touch(record.range);
        match self.pending.last_mut() {
            // Nothing was programmed between the two, so that the later number kills no newer version.
            Some(before) if before.range.end() == record.range.start && before.seq.0 + 1 >= record.seq.0 => {
                let merged = *before;
                before.range.blocks += record.range.blocks;
                before.seq = record.seq;
                Some(merged)
            }
            _ => {
                self.pending.push(record);
                None
            }
        }
    }

    /// The records that are not on flash.
    pub(super) fn into_pending(self) -> Vec<Record> {
        self.pending
    }

    /// Takes over the records that survived a power cut elsewhere.
    pub(super) fn adopt(&mut self, records: Vec<Record>) {
        self.pending = records;
    }
}

impl Drive {
    /// The next sequence number.
    pub(super) fn take_seq(&mut self) -> Seq {
        let seq = self.seq;
        self.seq = Seq(seq.0 + 1);
        seq
    }

    /// Notes that the blocks of `range` are dead as of now; returns how long that takes.
    pub(super) fn note_discard(&mut self, at: SimTime, range: BlockRange) -> Result<SimSpan, DeviceError> {
        let record = Record { range, seq: self.take_seq() };
        if self.nvm().is_some() {
            return self.note_in_nvm(at, record);
        }
        self.journal.note(record);
        Ok(SimSpan::ZERO)
    }

    /// When the journal's last page is durable.
    pub(super) fn programs_end_of_journal(&self) -> SimTime {
        self.journal.programs_end
    }

    /// Makes all discards so far survive a power cut, and what the log of remaps says.
    pub(super) fn write_journal(&mut self, at: SimTime) -> Result<(), DeviceError> {
        self.mend_log(at)?;
        if !self.has_records_for_flash() && !self.journal.must_rewrite {
            return Ok(());
        }
        self.without_erasing(|drive| drive.write_pending(at))
    }

    /// Writes pages of the drive's own; no line is erased meanwhile.
    pub(super) fn without_erasing<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let was_writing = std::mem::replace(&mut self.journal.is_writing, true);
        let written = write(self);
        self.journal.is_writing = was_writing;
        written
    }

    /// Whether records must go to flash: all that there are, unless they are in non-volatile memory with room for more.
    fn has_records_for_flash(&self) -> bool {
        let pending = self.journal.pending.len();
        self.nvm().map_or(pending > 0, |nvm| nvm.is_full_with(pending))
    }

    /// Writes records that non-volatile memory has no more room for.
    pub(super) fn write_full_records(&mut self, at: SimTime) -> Result<(), DeviceError> {
        match self.nvm() {
            Some(_) => self.write_journal(at),
            None => Ok(()),
        }
    }

    /// A page of the drive's own can no longer be read. What it said is in memory, too: all bitmap pages are written
    /// anew with the next journal write, before the line of the lost page is erased.
    pub(super) fn replace_system_page(&mut self, lpn: Lpn) {
        if let (Some(before), _) = self.map.update(lpn, None) {
            self.lines.invalidate(before);
        }
        if lpn.0 >= self.config.user_pages() + journal_pages(&self.config) {
            return self.distrust_log();
        }
        self.journal.distrust(self.bitmap_pages());
        self.journal.must_rewrite = true;
    }

    /// Whether the journal is being written: no line may be erased until it is.
    pub(super) fn is_writing_journal(&self) -> bool {
        self.journal.is_writing
    }

    fn write_pending(&mut self, mut at: SimTime) -> Result<(), DeviceError> {
        let page_bytes = self.nand.geometry().page_bytes as usize;
        let records_per_page = (page_bytes - HEADER_BYTES) / RECORD_BYTES;
        if self.journal.must_rewrite {
            self.write_bitmaps(at)?;
            self.journal.must_rewrite = false;
        }
        // A record must not be on flash before it is in memory: with it, a remap would be there in part.
        at = at.max(self.nvm().map_or(at, Nvm::end));
        while self.has_records_for_flash() {
            if self.journal.next_slot == self.journal.slots {
                self.write_bitmaps(at)?;
                self.journal.next_slot = 0;
                self.journal.slots_free_from = self.journal.programs_end;
            }
            at = at.max(self.journal.slots_free_from);
            let count = self.journal.pending.len().min(records_per_page);
            let page = encode_journal(&self.journal.pending[..count], page_bytes);
            let lpn = self.journal.first_lpn + bitmap_pages(&self.config) + self.journal.next_slot;
            let done = self.program_system(at, Lpn(lpn), &page, Cause::Journal)?;
            let written = self.journal.pending.drain(..count).collect();
            if let Some(nvm) = self.nvm_mut() {
                nvm.note_drain(done, written);
            }
            self.journal.next_slot += 1;
        }
        Ok(())
    }

    /// A bit that is clear stands for a page that may still be under way: until that is on flash, only the bitmap page
    /// before and the records in the slots keep what it replaced dead. So bitmap pages come after all programs so far.
    pub(super) fn write_bitmaps(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let at = at.max(self.programs_end);
        while let Some(&index) = self.journal.touched.first() {
            let page = self.encode_bitmap(index);
            self.program_system(at, Lpn(self.journal.first_lpn + index), &page, Cause::Journal)?;
            self.journal.touched.remove(&index);
        }
        Ok(())
    }

    fn encode_bitmap(&self, index: u32) -> Vec<u8> {
        let mut page = vec![0; self.nand.geometry().page_bytes as usize];
        let first = u64::from(index) * self.journal.blocks_per_bitmap;
        PageHeader { magic: BITMAP_MAGIC, count: 0, first, seq: self.seq }.put(&mut page);
        let end = (first + self.journal.blocks_per_bitmap).min(self.config.user_blocks);
        for (bit, block) in (first..end).enumerate() {
            if !self.is_mapped(Lba(block)) {
                page[HEADER_BYTES + bit / 8] |= 1 << (bit % 8);
            }
        }
        page
    }

    /// Whether flash holds a version of `block` that counts.
    fn is_mapped(&self, block: Lba) -> bool {
        let parts = u64::from(self.config.parts());
        let lpn = Lpn((block.0 / parts) as u32);
        self.live.as_ref().is_none_or(|live| live.get(block.0)) && self.map.lookup(lpn).0.is_some()
    }

    /// Programs a page of the drive's own; returns when it is durable.
    pub(super) fn program_system(
        &mut self,
        at: SimTime,
        lpn: Lpn,
        bytes: &[u8],
        cause: Cause,
    ) -> Result<SimTime, DeviceError> {
        let parts = self.config.parts() as usize;
        let mut tokens = [Token::EMPTY; MAX_PARTS];
        for (token, chunk) in tokens.iter_mut().zip(bytes.chunks_exact(BLOCK_SIZE as usize)) {
            let mut block: BlockBytes = [0; BLOCK_SIZE as usize];
            block.copy_from_slice(chunk);
            *token = self.nand.intern(&Content::Bytes(Arc::new(block)));
        }
        let stream = StreamId(0);
        let page = Page { lpn, tokens: &tokens[..parts], stream, inode: Inode(0) };
        let done = self.program(at, self.move_frontier(stream), page, cause)?;
        self.host_programs_end = self.host_programs_end.max(done);
        self.journal.programs_end = self.journal.programs_end.max(done);
        Ok(done)
    }

    /// How many bitmap pages the drive has.
    pub(super) fn bitmap_pages(&self) -> u32 {
        bitmap_pages(&self.config)
    }
}

/// The first bytes of a page of the drive's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageHeader {
    pub(super) magic: u32,
    /// Records in the page.
    pub(super) count: u32,
    /// Where what the page tells of begins; in a log page, how long it is in all.
    pub(super) first: u64,
    pub(super) seq: Seq,
}

impl PageHeader {
    pub(super) fn put(self, page: &mut [u8]) {
        page[0..4].copy_from_slice(&self.magic.to_le_bytes());
        page[4..8].copy_from_slice(&self.count.to_le_bytes());
        page[8..16].copy_from_slice(&self.first.to_le_bytes());
        page[16..24].copy_from_slice(&self.seq.0.to_le_bytes());
    }

    fn of(page: &[u8]) -> Self {
        Self {
            magic: u32_at(page, 0),
            count: u32_at(page, 4),
            first: u64_at(page, 8),
            seq: Seq(u64_at(page, 16)),
        }
    }
}

fn encode_journal(records: &[Record], page_bytes: usize) -> Vec<u8> {
    let mut page = vec![0; page_bytes];
    let count = records.len() as u32;
    PageHeader { magic: JOURNAL_MAGIC, count, first: 0, seq: Seq(0) }.put(&mut page);
    for (slot, record) in page[HEADER_BYTES..].chunks_exact_mut(RECORD_BYTES).zip(records) {
        slot[0..8].copy_from_slice(&record.range.start.0.to_le_bytes());
        slot[8..16].copy_from_slice(&record.range.blocks.to_le_bytes());
        slot[16..24].copy_from_slice(&record.seq.0.to_le_bytes());
    }
    page
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// Reads a page of the drive's own; `None` when it is of no kind.
pub(super) fn decode(page: &[u8]) -> Option<SystemPage> {
    let header = PageHeader::of(page);
    let body = &page[HEADER_BYTES..];
    match header.magic {
        BITMAP_MAGIC => {
            Some(SystemPage::Bitmap { first: Lba(header.first), seq: header.seq, bits: body.to_vec() })
        }
        JOURNAL_MAGIC => {
            let record = |slot: &[u8]| Record {
                range: BlockRange::new(Lba(u64_at(slot, 0)), u64_at(slot, 8)),
                seq: Seq(u64_at(slot, 16)),
            };
            let records = body.chunks_exact(RECORD_BYTES).take(header.count as usize).map(record);
            Some(SystemPage::Journal(records.collect()))
        }
        LOG_MAGIC => Some(SystemPage::Log(decode_log(header, body))),
        TABLE_MAGIC => Some(SystemPage::Table(decode_table(header, body))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_pages_come_back() {
        let records = [
            Record { range: BlockRange::new(Lba(5), 70_000), seq: Seq(9) },
            Record { range: BlockRange::new(Lba(1 << 40), 1), seq: Seq(1 << 50) },
        ];
        assert_eq!(decode(&encode_journal(&records, 4096)), Some(SystemPage::Journal(records.to_vec())));
        assert_eq!(decode(&[0; 4096]), None);
    }
}
