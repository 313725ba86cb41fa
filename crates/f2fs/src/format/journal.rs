//! The journals: NAT or SIT entries that are newer than the tables, in 507 bytes of a summary
//! block.
//!
//! The NAT journal stands in the summary of the hot data log, the SIT journal in that of the cold
//! data log; when the checkpoint's data summaries are compacted, both stand at the start of the
//! first compact block. Journals anywhere else mean nothing, but for the hot node log: its summary
//! carries how much was ever written to the volume.

use dovetail_block::BlockBytes;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{
    FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned, transmute, transmute_mut,
    transmute_ref,
};

use super::layout::prove_layout;
use super::nat::RawNatEntry;
use super::sit::RawSitEntry;
use super::summary::RawSummaryBlock;
use super::{NatEntry, Nid, SegNo, SitEntry, Variant};

/// Bytes of a journal.
pub(super) const JOURNAL: usize = 507;

/// Entries that a NAT journal has room for.
pub const NAT_JOURNAL_ENTRIES: usize = 38;

/// Entries that a SIT journal has room for.
pub const SIT_JOURNAL_ENTRIES: usize = 6;

/// Bytes of the hot node log's summary that hold the KiB written, in place of a journal.
const WRITTEN_KIB: std::ops::Range<usize> = 2..10;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawNatJournalEntry {
    nid: U32,
    ne: RawNatEntry,
}

prove_layout!(RawNatJournalEntry, 13, { 4 => ne });

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawNatJournal {
    n_nats: U16,
    entries: [RawNatJournalEntry; NAT_JOURNAL_ENTRIES],
    reserved: [u8; 11],
}

prove_layout!(RawNatJournal, JOURNAL, { 2 => entries, 496 => reserved });

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSitJournalEntry {
    segno: U32,
    se: RawSitEntry,
}

prove_layout!(RawSitJournalEntry, 78, { 4 => se });

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSitJournal {
    n_sits: U16,
    entries: [RawSitJournalEntry; SIT_JOURNAL_ENTRIES],
    reserved: [u8; 37],
}

prove_layout!(RawSitJournal, JOURNAL, { 2 => entries, 470 => reserved });

/// NAT entries that are newer than the table's; a later one wins.
pub type NatJournal = Vec<(Nid, NatEntry)>;

/// SIT entries that are newer than the table's; a later one wins.
pub type SitJournal = Vec<(SegNo, SitEntry)>;

/// The entries of a NAT journal. A count above the capacity is cut, as the Linux tools do.
pub(super) fn decode_nat(journal: &[u8; JOURNAL]) -> NatJournal {
    let journal: &RawNatJournal = transmute_ref!(journal);
    let entries = journal.entries.iter().take(journal.n_nats.get().into());
    entries.map(|entry| (Nid(entry.nid.get()), entry.ne.decode(Variant::F2fs))).collect()
}

/// The entries of a SIT journal. A count above the capacity is cut, as the Linux tools do.
pub(super) fn decode_sit(journal: &[u8; JOURNAL]) -> SitJournal {
    let journal: &RawSitJournal = transmute_ref!(journal);
    let entries = journal.entries.iter().take(journal.n_sits.get().into());
    entries.map(|entry| (SegNo(entry.segno.get()), entry.se.decode())).collect()
}

/// A NAT journal of `entries`, at most [`NAT_JOURNAL_ENTRIES`].
pub(super) fn encode_nat(entries: &[(Nid, NatEntry)]) -> [u8; JOURNAL] {
    debug_assert!(
        entries.len() <= NAT_JOURNAL_ENTRIES,
        "{} NAT entries in a journal",
        entries.len()
    );
    let mut journal = RawNatJournal::new_zeroed();
    journal.n_nats.set(entries.len().min(NAT_JOURNAL_ENTRIES) as u16);
    for (raw, (nid, entry)) in journal.entries.iter_mut().zip(entries) {
        *raw = RawNatJournalEntry {
            nid: U32::new(nid.0),
            ne: RawNatEntry::encode(*entry, Variant::F2fs),
        };
    }
    transmute!(journal)
}

/// A SIT journal of `entries`, at most [`SIT_JOURNAL_ENTRIES`].
pub(super) fn encode_sit(entries: &[(SegNo, SitEntry)]) -> [u8; JOURNAL] {
    debug_assert!(
        entries.len() <= SIT_JOURNAL_ENTRIES,
        "{} SIT entries in a journal",
        entries.len()
    );
    let mut journal = RawSitJournal::new_zeroed();
    journal.n_sits.set(entries.len().min(SIT_JOURNAL_ENTRIES) as u16);
    for (raw, (segno, entry)) in journal.entries.iter_mut().zip(entries) {
        *raw = RawSitJournalEntry { segno: U32::new(segno.0), se: RawSitEntry::encode(entry) };
    }
    transmute!(journal)
}

fn journal(block: &BlockBytes) -> &[u8; JOURNAL] {
    let block: &RawSummaryBlock = transmute_ref!(block);
    &block.journal
}

fn journal_mut(block: &mut BlockBytes) -> &mut [u8; JOURNAL] {
    let block: &mut RawSummaryBlock = transmute_mut!(block);
    &mut block.journal
}

/// The NAT journal in the summary block of the hot data log.
pub fn nat_journal(block: &BlockBytes) -> NatJournal {
    decode_nat(journal(block))
}

/// The SIT journal in the summary block of the cold data log.
pub fn sit_journal(block: &BlockBytes) -> SitJournal {
    decode_sit(journal(block))
}

/// Stored count of entries in the journal of a summary block, be they NAT's or SIT's.
pub fn journal_count(block: &BlockBytes) -> u16 {
    stored_count(journal(block))
}

/// The count, which may be above the capacity, that a journal of either kind begins with.
pub(super) const fn stored_count(journal: &[u8; JOURNAL]) -> u16 {
    u16::from_le_bytes([journal[0], journal[1]])
}

/// Puts a NAT journal of at most [`NAT_JOURNAL_ENTRIES`] into the summary block of the hot data
/// log.
pub fn put_nat_journal(block: &mut BlockBytes, entries: &[(Nid, NatEntry)]) {
    *journal_mut(block) = encode_nat(entries);
}

/// Puts a SIT journal of at most [`SIT_JOURNAL_ENTRIES`] into the summary block of the cold data
/// log.
pub fn put_sit_journal(block: &mut BlockBytes, entries: &[(SegNo, SitEntry)]) {
    *journal_mut(block) = encode_sit(entries);
}

/// KiB ever written to the volume, from the summary block of the hot node log.
pub fn written_kib(block: &BlockBytes) -> u64 {
    journal(block)[WRITTEN_KIB].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

/// Puts the KiB ever written to the volume into the summary block of the hot node log.
pub fn put_written_kib(block: &mut BlockBytes, kib: u64) {
    journal_mut(block)[WRITTEN_KIB].copy_from_slice(&kib.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::BlockAddr;

    #[test]
    fn full_journals_are_read_back() {
        let nat: NatJournal = (0..38)
            .map(|n| {
                (
                    Nid(n * 3),
                    NatEntry {
                        version: n as u8,
                        ino: Nid(n),
                        address: BlockAddr((n << 20).into()),
                    },
                )
            })
            .collect();
        let sit: SitJournal = (0..6)
            .map(|n| {
                let valid_map = [n as u8; 64];
                (
                    SegNo(n),
                    SitEntry { valid_blocks: 500 + n, log: n as u8, valid_map, mtime_s: 1 << n },
                )
            })
            .collect();
        let mut block = [0xEE; 4096];
        put_nat_journal(&mut block, &nat);
        assert_eq!(nat_journal(&block), nat);
        put_sit_journal(&mut block, &sit);
        assert_eq!(sit_journal(&block), sit);
        assert_eq!(journal_count(&block), 6);
        put_sit_journal(&mut block, &sit[..1]);
        assert_eq!(sit_journal(&block), sit[..1]);
        let journal = 3584..3584 + 507;
        assert!(
            block[..journal.start].iter().chain(&block[journal.end..]).all(|&byte| byte == 0xEE)
        );
    }

    #[test]
    fn the_kib_written_stand_after_the_count() {
        let mut block = [0; 4096];
        put_written_kib(&mut block, 0x0102_0304);
        assert_eq!(written_kib(&block), 0x0102_0304);
        assert_eq!(block[3584..3592], [0, 0, 4, 3, 2, 1, 0, 0]);
    }
}
