//! The record of discards that survives a power cut.
//!
//! Recovery finds pages by their out-of-band areas; a page that was discarded would come back unless something
//! says that it is dead. Two kinds of pages of the drive's own say so, each with a logical page number above
//! the host's, so that cleaning, wear levelling and recovery treat them like any other page:
//! - *journal pages*: ranges of blocks with the sequence number of their discard. A version of a block with a
//!   lower sequence number is dead.
//! - *bitmap pages*: one bit a part of every *flash* page, set where nothing counted when the page was written, with the
//!   sequence number of that moment. What such a part holds with a lower sequence number is dead.
//!
//! Both stay true for good. A journal page does because sequence numbers only rise. A bitmap page does because a part that
//! is dead stays so until its block is erased, and what is programmed then has a higher number: a page comes to count by
//! being programmed, and a remap moves only what counts. A power cut alone takes deaths back, of versions whose successor,
//! or whose remap, was still under way; hence bitmap pages are programmed after all that was issued before them. So an old
//! copy of either that comes back does no harm.
//!
//! Discards gather in memory; a flush writes them as journal pages into the next of a fixed number of journal
//! slots, and so does a discard that fills a page. When the slots are used up, every bitmap page that has become less than the truth is written first, and
//! the slots are used again from the start.
//!
//! **Why nothing comes back when slots are used again.** A record in a slot keeps every version of its blocks dead, also
//! those that were overwritten long before and lie anywhere: while the discarded version is on flash they do not matter,
//! because it is newer, but it is erased one day. Each of them stopped counting at some moment, by an overwrite, a
//! move, a remap or the discard. That *touched* its bitmap page (`Drive::invalidate`), and if the bitmap page was not written
//! since, it is written now: its bit is set. What was erased in between has its bit set as well,
//! because that erase may not have begun when the power goes.
//!
//! **Ghosts.** The power may go between two bitmap pages. One of them can then tell of a discard whose own record never got
//! to flash: the version discarded is dead, and older ones in the range of the other page are not. They do not count as
//! long as the dead one, which is newer, is there. Recovery looks for such versions; if it finds one, the bitmap pages are
//! written before anything is erased. A version that dies later is no danger: its record comes first, and before the first
//! record after a recovery the bitmap pages are written.
//!
//! Recovery finds out which bitmap pages lack something that is dead now; only these count as touched. So a drive whose power is
//! cut again and again does not begin anew with all of them each time, for which it might run out of free lines.

use dovetail_block::{BlockRange, DeviceError, Inode, Lba, StreamId};
use dovetail_nand::{Divisor, Lpn, Ppn, Seq, Token};
use dovetail_time::{SimSpan, SimTime};

use super::devirtualize::{self, BatchPage};
use super::nvm::Nvm;
use super::remap_log::{self, LogPage, TablePage};
use super::{Drive, unless_worn_out};
use crate::bits::Bits;
use crate::buffer::MAX_PARTS;
use crate::config::DriveConfig;
use crate::medium::Page;
use crate::stats::Cause;

const BITMAP_MAGIC: u32 = 0x4456_4232; // "DVB2"
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
        Self { range: BlockRange::new(Lba(lpn.0), 1), seq }
    }
}

/// What a page of the drive's own says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SystemPage {
    Journal(Vec<Record>),
    Bitmap(Bitmap),
    /// A part of a remap.
    Log(LogPage),
    /// A part of the reverse map.
    Table(TablePage),
    /// A part of a batch of renames.
    Batch(BatchPage),
}

/// What a bitmap page says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bitmap {
    /// The flash page of the first bits.
    pub(super) first: u64,
    /// When it was written.
    pub(super) seq: Seq,
    /// One bit a part, set where it was dead.
    pub(super) bits: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Journal {
    pending: Vec<Record>,
    /// Bitmap pages in whose range something has died since they were last written.
    touched: Bits,
    next_slot: u32,
    slots: u32,
    /// When the bitmaps that replace what the slots said before are on flash.
    slots_free_from: SimTime,
    by_bitmap: Divisor,
    pages_per_bitmap: u32,
    bitmaps: u32,
    first_lpn: u64,
    programs_end: SimTime,
    is_writing: bool,
    /// All bitmap pages must be written before anything is erased: recovery has found versions that only a newer, dead one
    /// keeps from counting, or a page of the journal was lost on the medium.
    must_rewrite: bool,
}

/// Flash pages that a bitmap page tells of.
fn pages_per_bitmap(config: &DriveConfig) -> u32 {
    let geometry = &config.nand.geometry;
    let fit = (geometry.page_bytes - HEADER_BYTES as u32) * 8 / geometry.parts_per_page();
    config.pages_per_bitmap.map_or(fit, |pages| pages.clamp(1, fit))
}

/// Bitmap pages of a drive.
pub(crate) fn bitmap_pages(config: &DriveConfig) -> u32 {
    config.nand.geometry.pages().div_ceil(pages_per_bitmap(config))
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
        let pages_per_bitmap = pages_per_bitmap(config);
        let bitmaps = bitmap_pages(config);
        Self {
            pending: Vec::new(),
            touched: Bits::new(bitmaps.into()),
            next_slot: 0,
            slots: slots(config),
            slots_free_from: SimTime::ZERO,
            by_bitmap: Divisor::new(pages_per_bitmap),
            pages_per_bitmap,
            bitmaps,
            first_lpn: config.host_pages(),
            programs_end: SimTime::ZERO,
            is_writing: false,
            must_rewrite: false,
        }
    }

    /// A page of the journal is lost: what it said is in bitmap pages before anything is erased.
    fn distrust(&mut self) {
        self.touched.fill(self.bitmaps.into());
        self.next_slot = self.slots;
        self.must_rewrite = true;
    }

    /// After recovery: the slots hold what bitmap pages may lack.
    pub(super) fn resume(&mut self) {
        self.next_slot = self.slots;
    }

    /// Recovery has found a version that only a newer, dead one keeps from counting.
    pub(super) fn found_ghost(&mut self) {
        self.must_rewrite = true;
    }

    /// Something at `ppn` has died, and the bitmap page there does not say so.
    pub(super) fn touch(&mut self, ppn: Ppn) {
        self.touched.set(self.by_bitmap.quotient(ppn.0).into());
    }

    /// Adds a record; if it was merged into the last one, returns that as it was.
    pub(super) fn note(&mut self, record: Record) -> Option<Record> {
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

    /// The same, of a drive that goes on.
    pub(super) fn pending(&self) -> &[Record] {
        &self.pending
    }

    /// Takes over the records that survived a power cut elsewhere.
    pub(super) fn adopt(&mut self, records: Vec<Record>) {
        self.pending = records;
    }
}

impl Drive {
    /// Notes that the blocks of `range` are dead as of now; returns how long that takes.
    pub(super) fn note_discard(&mut self, at: SimTime, range: BlockRange) -> Result<SimSpan, DeviceError> {
        let record = Record { range, seq: self.medium.take_seq() };
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
        self.mend_batch(at)?;
        if !self.has_records_for_flash() {
            return Ok(());
        }
        self.without_erasing(|drive| drive.write_pending(at))
    }

    /// What must be durable before a line is erased: the discards so far, and the bitmap pages if they are owed.
    pub(super) fn write_before_erase(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if self.journal.must_rewrite {
            self.without_erasing(|drive| drive.write_bitmaps(at))?;
            self.journal.must_rewrite = false;
        }
        self.write_journal(at)
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

    /// Sees to it that records can be written: free lines, as far as the drive has any left to clean.
    pub(super) fn make_room_for_records(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if !self.has_records_for_flash() {
            return Ok(());
        }
        unless_worn_out(self.make_room(at))
    }

    /// Writes records that non-volatile memory has no more room for, or that fill a page: so no more gather than the lines in
    /// reserve can take, however long nobody flushes. If there is no room for them, they wait for a flush, which says so.
    pub(super) fn write_full_records(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let pending = self.journal.pending.len();
        if !self.nvm().map_or(pending >= self.records_per_page(), |nvm| nvm.is_full_with(pending)) {
            return Ok(());
        }
        self.make_room_for_records(at)?;
        unless_worn_out(self.write_journal(at))
    }

    fn records_per_page(&self) -> usize {
        (self.medium.nand().geometry().page_bytes as usize - HEADER_BYTES) / RECORD_BYTES
    }

    /// A page of the drive's own can no longer be read. What it said is in memory, too: all bitmap pages are written
    /// anew before the line of the lost page is erased.
    pub(super) fn replace_system_page(&mut self, lpn: Lpn) {
        if self.translation.is_translation_page(lpn) {
            self.translation.owe_at(lpn);
            return self.drop_system_page(lpn);
        }
        self.drop_system_page(lpn);
        if self.is_batch_page(lpn) {
            return self.distrust_batch();
        }
        if lpn.0 >= self.config.host_pages() + u64::from(journal_pages(&self.config)) {
            return self.distrust_log();
        }
        self.journal.distrust();
    }

    /// A page of the drive's own says nothing any more.
    pub(super) fn drop_system_page(&mut self, lpn: Lpn) {
        if let (Some(before), _) = self.point_at(lpn, None) {
            self.medium.invalidate(before);
        }
    }

    /// Whether the journal is being written: no line may be erased until it is.
    pub(super) fn is_writing_journal(&self) -> bool {
        self.journal.is_writing
    }

    fn write_pending(&mut self, mut at: SimTime) -> Result<(), DeviceError> {
        let page_bytes = self.medium.nand().geometry().page_bytes as usize;
        // A record must not be on flash before it is in memory: with it, a remap would be there in part.
        at = at.max(self.nvm().map_or(at, Nvm::end));
        while self.has_records_for_flash() {
            if self.journal.next_slot == self.journal.slots {
                self.write_bitmaps(at)?;
                self.journal.next_slot = 0;
                self.journal.slots_free_from = self.journal.programs_end;
            }
            at = at.max(self.journal.slots_free_from);
            let count = self.journal.pending.len().min(self.records_per_page());
            let page = encode_journal(&self.journal.pending[..count], page_bytes);
            let lpn = self.journal.first_lpn + u64::from(self.journal.bitmaps + self.journal.next_slot);
            let done = self.program_system(at, Lpn(lpn), &page, Cause::Journal)?;
            let written = self.journal.pending.drain(..count).collect();
            if let Some(nvm) = self.nvm_mut() {
                nvm.note_drain(done, written);
            }
            self.journal.next_slot += 1;
        }
        self.freed.written(self.journal.programs_end);
        Ok(())
    }

    /// A bit that is set kills a version whose successor may still be under way: until that is on flash, the old one is all
    /// there is. So bitmap pages come after all programs so far.
    pub(super) fn write_bitmaps(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let at = at.max(self.all_durable_at());
        while let Some(index) = self.journal.touched.first() {
            let page = self.encode_bitmap(index as u32);
            self.program_system(at, Lpn(self.journal.first_lpn + index), &page, Cause::Journal)?;
            self.journal.touched.clear(index);
        }
        Ok(())
    }

    fn encode_bitmap(&self, index: u32) -> Vec<u8> {
        let mut page = vec![0; self.medium.nand().geometry().page_bytes as usize];
        let (first, pages) = (index * self.journal.pages_per_bitmap, self.journal.pages_per_bitmap);
        PageHeader { magic: BITMAP_MAGIC, count: 0, first: first.into(), seq: self.medium.next_seq() }
            .put(&mut page);
        let end = first.saturating_add(pages).min(self.geometry().pages());
        let parts = self.config.parts() as usize;
        for (i, ppn) in (first..end).map(Ppn).enumerate() {
            let dead = !self.medium.counting_mask(ppn) & self.medium.full_mask();
            page[HEADER_BYTES + i * parts / 8] |= dead << (i * parts % 8);
        }
        page
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
        let before = self.translation.lookup_any(lpn);
        let mut tokens = [Token::EMPTY; MAX_PARTS];
        for (part, (token, block)) in tokens.iter_mut().zip(bytes.as_chunks().0).enumerate() {
            let before = before.map_or(Token::EMPTY, |ppn| self.medium.nand().token(ppn, part));
            *token = self.medium.intern_version(block, before);
        }
        // it tells of what was programmed and written before
        self.medium.barrier();
        let stream = StreamId(0);
        let live = self.medium.full_mask();
        let page = Page { lpn, live, tokens: &tokens[..parts], stream, inode: Inode(0) };
        let done = self.program(at, self.move_frontier(stream), page, cause)?;
        self.host_programs_end = self.host_programs_end.max(done);
        self.journal.programs_end = self.journal.programs_end.max(done);
        Ok(done)
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
            Some(SystemPage::Bitmap(Bitmap { first: header.first, seq: header.seq, bits: body.to_vec() }))
        }
        JOURNAL_MAGIC => {
            let record = |slot: &[u8]| Record {
                range: BlockRange::new(Lba(u64_at(slot, 0)), u64_at(slot, 8)),
                seq: Seq(u64_at(slot, 16)),
            };
            let records = body.chunks_exact(RECORD_BYTES).take(header.count as usize).map(record);
            Some(SystemPage::Journal(records.collect()))
        }
        _ => remap_log::decode(header, body).or_else(|| devirtualize::decode(header, body)),
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
