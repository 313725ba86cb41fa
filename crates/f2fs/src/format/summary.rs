//! Summary blocks (who owns each block of a segment) and the journals that ride in them.
//!
//! A journal holds NAT or SIT entries that are newer than the tables. The NAT journal stands in the summary of
//! the hot data log, the SIT journal in that of the cold data log; when the checkpoint's data summaries are
//! compacted, both stand at the start of the first compact block. Journals anywhere else mean nothing.

use dovetail_block::BlockBytes;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_ref};

use super::layout::prove_layout;
use super::nat::RawNatEntry;
use super::sit::RawSitEntry;
use super::{NatEntry, Nid, SegNo, SitEntry};

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSummary {
    nid: U32,
    version: u8,
    ofs_in_node: U16,
}

prove_layout!(RawSummary, 7, { 0 => nid, 4 => version, 5 => ofs_in_node });

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
    entries: [RawNatJournalEntry; 38],
    reserved: [u8; 11],
}

prove_layout!(RawNatJournal, 507, { 2 => entries, 496 => reserved });

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
    entries: [RawSitJournalEntry; 6],
    reserved: [u8; 37],
}

prove_layout!(RawSitJournal, 507, { 2 => entries, 470 => reserved });

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSummaryBlock {
    entries: [RawSummary; 512],
    journal: [u8; 507],
    entry_type: u8,
    check_sum: U32,
}

prove_layout!(RawSummaryBlock, 4096, { 3584 => journal, 4091 => entry_type, 4092 => check_sum });

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawCompactBlock {
    nat: [u8; 507],
    sit: [u8; 507],
    rest: [u8; 3082],
}

prove_layout!(RawCompactBlock, 4096, { 507 => sit, 1014 => rest });

/// NAT entries that are newer than the table's; a later one wins.
pub type NatJournal = Vec<(Nid, NatEntry)>;

/// SIT entries that are newer than the table's; a later one wins.
pub type SitJournal = Vec<(SegNo, SitEntry)>;

impl RawNatJournal {
    /// A count above the capacity is cut, as the Linux tools do.
    fn decode(&self) -> NatJournal {
        let entries = self.entries.iter().take(self.n_nats.get().into());
        entries.map(|entry| (Nid(entry.nid.get()), entry.ne.decode())).collect()
    }
}

impl RawSitJournal {
    fn decode(&self) -> SitJournal {
        let entries = self.entries.iter().take(self.n_sits.get().into());
        entries.map(|entry| (SegNo(entry.segno.get()), entry.se.decode())).collect()
    }
}

/// The NAT journal in the summary block of the hot data log.
pub fn nat_journal(block: &BlockBytes) -> NatJournal {
    let block: &RawSummaryBlock = transmute_ref!(block);
    let journal: &RawNatJournal = transmute_ref!(&block.journal);
    journal.decode()
}

/// The SIT journal in the summary block of the cold data log.
pub fn sit_journal(block: &BlockBytes) -> SitJournal {
    let block: &RawSummaryBlock = transmute_ref!(block);
    let journal: &RawSitJournal = transmute_ref!(&block.journal);
    journal.decode()
}

/// Both journals in the first block of compacted data summaries.
pub fn compact_journals(block: &BlockBytes) -> (NatJournal, SitJournal) {
    let block: &RawCompactBlock = transmute_ref!(block);
    let nat: &RawNatJournal = transmute_ref!(&block.nat);
    let sit: &RawSitJournal = transmute_ref!(&block.sit);
    (nat.decode(), sit.decode())
}
