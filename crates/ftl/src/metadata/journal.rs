//! The record of discards that survives a power cut.
//!
//! Recovery finds pages by their out-of-band areas; a page that was discarded would come back
//! unless something says that it is dead. Two kinds of pages of the drive's own say so, each with a
//! logical page number above the host's, so that cleaning, wear levelling and recovery treat them
//! like any other page:
//! - *journal pages*: ranges of blocks with the sequence number of their discard. A version of a
//!   block with a lower sequence number is dead.
//! - *bitmap pages*: one bit a subpage of every *flash* page, set where nothing counted when the
//!   page was written, with the sequence number of that moment. What such a subpage holds with a
//!   lower sequence number is dead.
//!
//! Both stay true for good. A journal page does because sequence numbers only rise. A bitmap page
//! does because a subpage that is dead stays so until its block is erased, and what is programmed
//! then has a higher number: a page comes to count by being programmed, and a remap moves only what
//! counts. A power cut alone takes deaths back, of versions whose successor, or whose remap, was
//! still under way; hence bitmap pages are programmed after all that was issued before them. So an
//! old copy of either that comes back does no harm.
//!
//! Discards gather in memory; a flush writes them as journal pages into the next of a fixed number
//! of journal slots, and so does a discard that fills a page. When the slots are used up, every
//! bitmap page that has become less than the truth is written first, and the slots are used again
//! from the start.
//!
//! **Why nothing comes back when slots are used again.** A record in a slot keeps every version of
//! its blocks dead, also those that were overwritten long before and lie anywhere: while the
//! discarded version is on flash they do not matter, because it is newer, but it is erased one day.
//! Each of them stopped counting at some moment, by an overwrite, a move, a remap or the discard.
//! That *touched* its bitmap page (`drive/invalidate.rs`), and if the bitmap page was not written
//! since, it is written now: its bit is set. What was erased in between has its bit set as well,
//! because that erase may not have begun when the power goes.
//!
//! **Ghosts.** The power may go between two bitmap pages. One of them can then tell of a discard
//! whose own record never got to flash: the version discarded is dead, and older ones in the range
//! of the other page are not. They do not count as long as the dead one, which is newer, is there.
//! Recovery looks for such versions; if it finds one, the bitmap pages are written before anything
//! is erased. A version that dies later is no danger: its record comes first, and before the first
//! record after a recovery the bitmap pages are written.
//!
//! Recovery finds out which bitmap pages lack something that is dead now; only these count as
//! touched. So a drive whose power is cut again and again does not begin anew with all of them each
//! time, for which it might run out of free lines.

use dovetail_block::{BlockRange, Lba};
use dovetail_nand::{Divisor, Geometry, Lpn, Ppn, Seq};
use dovetail_time::SimTime;

use super::{HEADER_BYTES, PageHeader, SystemPage, u64_at};
use crate::bits::Bits;
use crate::config::DriveConfig;

const BITMAP_MAGIC: u32 = 0x4456_4232; // "DVB2"
const JOURNAL_MAGIC: u32 = 0x4456_4A31; // "DVJ1"
const RECORD_BYTES: usize = 24;
/// Journal slots, at least (assumed). With fewer than bitmap pages, writing bitmaps would cost more
/// pages than the journal itself.
const MIN_SLOTS: u32 = 16;

/// One discard: versions of these blocks below `seq` are dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) range: BlockRange,
    pub(crate) seq: Seq,
}

impl Record {
    /// The death of a page that is one block.
    pub(crate) fn of_page(lpn: Lpn, seq: Seq) -> Self {
        Self { range: BlockRange::new(Lba(lpn.0), 1), seq }
    }
}

/// The content of a bitmap page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bitmap {
    /// The flash page of the first bits.
    pub(crate) first: u64,
    /// Time when it was written.
    pub(crate) seq: Seq,
    /// One bit a subpage, set where it was dead.
    pub(crate) bits: Vec<u8>,
}

/// Records of discards, and which bitmap pages lag behind what is dead.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    pending: Vec<Record>,
    /// A remap may have made a version of a block of the last record, without programming one and
    /// with no smaller number: that record keeps its number.
    is_sealed: bool,
    /// Bitmap pages in whose range something has died since they were last written.
    touched: Bits,
    next_slot: u32,
    slots: u32,
    /// Time when the bitmaps that replace what the slots said before are on flash.
    slots_free_from: SimTime,
    by_bitmap: Divisor,
    pages_per_bitmap: u32,
    bitmaps: u32,
    first_lpn: u64,
    programs_end: SimTime,
    is_writing: bool,
    /// All bitmap pages must be written before anything is erased: recovery has found versions that
    /// only a newer, dead one keeps from counting, or a page of the journal was lost on the medium.
    must_rewrite: bool,
}

/// Flash pages that a bitmap page tells of.
fn pages_per_bitmap(config: &DriveConfig) -> u32 {
    let geometry = &config.nand.geometry;
    let fit = (geometry.page_bytes - HEADER_BYTES as u32) * 8 / geometry.subpages_per_page();
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
pub(crate) fn journal_pages(config: &DriveConfig) -> u32 {
    bitmap_pages(config) + slots(config)
}

impl Journal {
    /// An empty journal, whose pages come right behind the host's.
    pub(crate) fn new(config: &DriveConfig) -> Self {
        let pages_per_bitmap = pages_per_bitmap(config);
        let bitmaps = bitmap_pages(config);
        Self {
            pending: Vec::new(),
            is_sealed: false,
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

    /// Notes that a page of the journal is lost: what it said is in bitmap pages before anything is
    /// erased.
    pub(crate) fn distrust(&mut self) {
        self.touched.fill(self.bitmaps.into());
        self.next_slot = self.slots;
        self.must_rewrite = true;
    }

    /// After recovery: the slots hold what bitmap pages may lack.
    pub(crate) fn resume(&mut self) {
        self.next_slot = self.slots;
    }

    /// Recovery has found a version that only a newer, dead one keeps from counting.
    pub(crate) fn found_ghost(&mut self) {
        self.must_rewrite = true;
    }

    /// Something at `ppn` has died, and the bitmap page there does not say so.
    pub(crate) fn touch(&mut self, ppn: Ppn) {
        self.touched.set(self.by_bitmap.quotient(ppn.0).into());
    }

    /// Adds a record; if it was merged into the last one, returns that as it was.
    pub(crate) fn note(&mut self, record: Record) -> Option<Record> {
        let is_sealed = self.is_sealed;
        // the later number kills no newer version where no version was made between the two
        let has_none_between = |before: &Record| {
            before.seq == record.seq || (!is_sealed && before.seq.0 + 1 == record.seq.0)
        };
        let last = self
            .pending
            .last_mut()
            .filter(|before| before.range.end() == record.range.start && has_none_between(before));
        if let Some(before) = last {
            let merged = *before;
            before.range.blocks += record.range.blocks;
            before.seq = record.seq;
            return Some(merged);
        }
        self.pending.push(record);
        self.is_sealed = false;
        None
    }

    /// A remap has made versions of these blocks, and its deaths are noted: the last record keeps
    /// its number if it tells of one of them.
    pub(crate) fn note_versions(&mut self, mut made: impl Iterator<Item = Lba>) {
        let Some(last) = self.pending.last() else { return };
        self.is_sealed |= made.any(|lba| (last.range.start..last.range.end()).contains(&lba));
    }

    /// The records that are not on flash.
    pub(crate) fn into_pending(self) -> Vec<Record> {
        self.pending
    }

    /// The same, of a drive that goes on.
    pub(crate) fn pending(&self) -> &[Record] {
        &self.pending
    }

    /// Takes over the records that survived a power cut elsewhere.
    pub(crate) fn adopt(&mut self, records: Vec<Record>) {
        self.pending = records;
        self.is_sealed = true;
    }

    /// Records that are not on flash.
    pub(crate) fn pending_records(&self) -> usize {
        self.pending.len()
    }

    /// Tells whether every slot is used.
    pub(crate) fn is_full(&self) -> bool {
        self.next_slot == self.slots
    }

    /// Uses the slots again from the start: the bitmap pages say what they said, and are durable
    /// with the last page.
    pub(crate) fn reuse_slots(&mut self) {
        debug_assert!(
            self.touched.first().is_none(),
            "bitmap pages must be written before slots are used again"
        );
        self.next_slot = 0;
        self.slots_free_from = self.programs_end;
    }

    /// Returns when the next slot may be written.
    pub(crate) fn slots_free_from(&self) -> SimTime {
        self.slots_free_from
    }

    /// Records that fit a page.
    pub(crate) fn records_per_page(page_bytes: usize) -> usize {
        (page_bytes - HEADER_BYTES) / RECORD_BYTES
    }

    /// The next slot, and a page for it of the oldest records, of which there are so many.
    pub(crate) fn next_page(&self, page_bytes: usize) -> (Lpn, Vec<u8>, usize) {
        debug_assert!(!self.is_full(), "slots must be free");
        let count = self.pending.len().min(Self::records_per_page(page_bytes));
        let lpn = Lpn(self.first_lpn + u64::from(self.bitmaps + self.next_slot));
        (lpn, encode_journal(&self.pending[..count], page_bytes), count)
    }

    /// The next slot was written with the `count` oldest records; returns them.
    pub(crate) fn slot_written(&mut self, count: usize) -> Vec<Record> {
        self.next_slot += 1;
        self.pending.drain(..count).collect()
    }

    /// The first bitmap page that lags behind, by its index.
    pub(crate) fn first_touched(&self) -> Option<u32> {
        self.touched.first().map(|index| index as u32)
    }

    /// The logical page of a bitmap page.
    pub(crate) fn bitmap_lpn(&self, index: u32) -> Lpn {
        Lpn(self.first_lpn + u64::from(index))
    }

    /// A bitmap page was written.
    pub(crate) fn bitmap_written(&mut self, index: u32) {
        self.touched.clear(index.into());
    }

    /// A bitmap page as of `seq`; `dead` gives the dead subpages of a flash page, one bit each.
    pub(crate) fn encode_bitmap(
        &self,
        index: u32,
        seq: Seq,
        geometry: &Geometry,
        dead: impl Fn(Ppn) -> u8,
    ) -> Vec<u8> {
        let mut page = vec![0; geometry.page_bytes as usize];
        let first = index * self.pages_per_bitmap;
        PageHeader { magic: BITMAP_MAGIC, count: 0, first: first.into(), seq }.put(&mut page);
        let end = first.saturating_add(self.pages_per_bitmap).min(geometry.pages());
        let subpages = geometry.subpages_per_page() as usize;
        for (i, ppn) in (first..end).map(Ppn).enumerate() {
            page[HEADER_BYTES + i * subpages / 8] |= dead(ppn) << (i * subpages % 8);
        }
        page
    }

    /// Returns when the last of the drive's own pages is durable.
    pub(crate) fn programs_end(&self) -> SimTime {
        self.programs_end
    }

    /// A page of the drive's own is durable at `done`.
    pub(crate) fn programmed(&mut self, done: SimTime) {
        self.programs_end = self.programs_end.max(done);
    }

    /// Tells whether the drive's own pages are being written: no line may be erased until they are.
    pub(crate) fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// Sets whether they are being written; returns what was set before.
    pub(crate) fn set_writing(&mut self, is_writing: bool) -> bool {
        std::mem::replace(&mut self.is_writing, is_writing)
    }

    /// Tells whether all bitmap pages must be written before anything is erased.
    pub(crate) fn must_rewrite(&self) -> bool {
        self.must_rewrite
    }

    /// They were written.
    pub(crate) fn rewritten(&mut self) {
        self.must_rewrite = false;
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

/// Reads a page of the journal's; `None` when it is none.
pub(super) fn decode(header: PageHeader, body: &[u8]) -> Option<SystemPage> {
    match header.magic {
        BITMAP_MAGIC => Some(SystemPage::Bitmap(Bitmap {
            first: header.first,
            seq: header.seq,
            bits: body.to_vec(),
        })),
        JOURNAL_MAGIC => {
            let record = |slot: &[u8]| Record {
                range: BlockRange::new(Lba(u64_at(slot, 0)), u64_at(slot, 8)),
                seq: Seq(u64_at(slot, 16)),
            };
            let records = body.chunks_exact(RECORD_BYTES).take(header.count as usize).map(record);
            Some(SystemPage::Journal(records.collect()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::*;

    #[test]
    fn journal_pages_come_back() {
        let records = [
            Record { range: BlockRange::new(Lba(5), 70_000), seq: Seq(9) },
            Record { range: BlockRange::new(Lba(1 << 40), 1), seq: Seq(1 << 50) },
        ];
        assert_eq!(
            decode(&encode_journal(&records, 4096)),
            Some(SystemPage::Journal(records.to_vec()))
        );
        assert_eq!(decode(&[0; 4096]), None);
    }
}
