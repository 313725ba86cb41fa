//! Compacted data summaries: the journals and the entries of the three data logs in one or two
//! blocks.
//!
//! The first block begins with the NAT and the SIT journal. The entries of the hot, warm and cold
//! data log follow without a gap: of each as many as the log has blocks written, or all 512 if it
//! fills holes. Where fewer bytes than an entry remain before byte 4091, the second block begins.

use std::borrow::Borrow;

use dovetail_block::BlockBytes;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_ref};

use super::journal::{
    JOURNAL, NatJournal, SitJournal, decode_nat, decode_sit, encode_nat, encode_sit, stored_count,
};
use super::layout::prove_layout;
use super::summary::RawSummary;
use super::{BLOCK, NatEntry, Nid, SegNo, SitEntry, Summary};

/// Entries in the first block, after the journals.
const FIRST: usize = 439;
/// Entries in the second block.
const SECOND: usize = 584;
const ENTRY: usize = size_of::<RawSummary>();

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawFirst {
    nat: [u8; JOURNAL],
    sit: [u8; JOURNAL],
    entries: [RawSummary; FIRST],
    rest: [u8; 9],
}

prove_layout!(RawFirst, 4096, { 507 => sit, 1014 => entries, 4087 => rest });

/// Both journals in the first block.
pub fn compact_journals(block: &BlockBytes) -> (NatJournal, SitJournal) {
    let block: &RawFirst = transmute_ref!(block);
    (decode_nat(&block.nat), decode_sit(&block.sit))
}

/// Stored counts of entries in the NAT and the SIT journal of the first block.
pub fn compact_journal_counts(block: &BlockBytes) -> (u16, u16) {
    let block: &RawFirst = transmute_ref!(block);
    (stored_count(&block.nat), stored_count(&block.sit))
}

/// Number of blocks for the summaries of logs with so many entries: 1 or 2; `None` if they do not
/// fit, and each log needs a summary block of its own.
pub fn compact_block_count(counts: [usize; 3]) -> Option<usize> {
    match counts.iter().sum() {
        0..=FIRST => Some(1),
        total if total <= FIRST + SECOND => Some(2),
        _ => None,
    }
}

/// The blocks for the first so many entries of each log, which must fit (see
/// [`compact_block_count`]), and for journals within their capacities.
pub fn compact_summaries(
    logs: [(&[Summary; 512], usize); 3],
    nat: &[(Nid, NatEntry)],
    sit: &[(SegNo, SitEntry)],
) -> Vec<BlockBytes> {
    let mut blocks = vec![[0; BLOCK]];
    blocks[0][..JOURNAL].copy_from_slice(&encode_nat(nat));
    blocks[0][JOURNAL..2 * JOURNAL].copy_from_slice(&encode_sit(sit));
    let entries = logs.iter().flat_map(|(entries, count)| entries.iter().take(*count));
    for (n, entry) in entries.enumerate() {
        let (block, at) = place(n);
        if block == blocks.len() {
            blocks.push([0; BLOCK]);
        }
        blocks[block][at..at + ENTRY].copy_from_slice(RawSummary::encode(*entry).as_bytes());
    }
    blocks
}

/// The first so many entries of each log (512 at most); the others, and what lies beyond the last
/// of `blocks`, have no owner.
pub fn parse_compact(
    blocks: &[impl Borrow<BlockBytes>],
    counts: [usize; 3],
) -> [Box<[Summary; 512]>; 3] {
    let mut next = 0;
    counts.map(|count| {
        let mut entries = Box::new([Summary::default(); 512]);
        for entry in entries.iter_mut().take(count) {
            *entry = nth(blocks, next);
            next += 1;
        }
        entries
    })
}

fn nth(blocks: &[impl Borrow<BlockBytes>], n: usize) -> Summary {
    let (block, at) = place(n);
    let block: Option<&BlockBytes> = blocks.get(block).map(Borrow::borrow);
    let raw = block.and_then(|block| RawSummary::ref_from_prefix(&block[at..]).ok());
    raw.map(|(raw, _)| raw.decode()).unwrap_or_default()
}

/// The block and the byte of entry `n`.
fn place(n: usize) -> (usize, usize) {
    match n.checked_sub(FIRST) {
        None => (0, 2 * JOURNAL + n * ENTRY),
        Some(n) => (1 + n / SECOND, n % SECOND * ENTRY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::BlockAddr;

    fn entries(seed: u32) -> Box<[Summary; 512]> {
        Box::new(std::array::from_fn(|n| Summary {
            nid: Nid(seed + n as u32),
            version: seed as u8,
            offset: n as u16,
        }))
    }

    fn round_trip(counts: [usize; 3]) -> usize {
        let logs = [entries(1000), entries(2000), entries(3000)];
        let given = [(&*logs[0], counts[0]), (&*logs[1], counts[1]), (&*logs[2], counts[2])];
        let nat = [(Nid(9), NatEntry { version: 1, ino: Nid(9), address: BlockAddr(77) })];
        let sit =
            [(SegNo(4), SitEntry { valid_blocks: 0, log: 5, valid_map: [0; 64], mtime_s: 3 })];
        let blocks = compact_summaries(given, &nat, &sit);
        assert_eq!(compact_journals(&blocks[0]), (nat.to_vec(), sit.to_vec()));
        assert_eq!(compact_journal_counts(&blocks[0]), (1, 1));
        let found = parse_compact(&blocks, counts);
        for ((found, expected), count) in found.iter().zip(&logs).zip(counts) {
            assert_eq!(found[..count], expected[..count]);
            assert!(found[count..].iter().all(|entry| *entry == Summary::default()));
        }
        blocks.len()
    }

    #[test]
    fn entries_of_three_logs_are_read_back_from_one_or_two_blocks() {
        for counts in [[0, 0, 0], [1, 2, 3], [439, 0, 0], [0, 440, 0], [0, 512, 511], [512, 1, 510]]
        {
            assert_eq!(compact_block_count(counts), Some(round_trip(counts)), "{counts:?}");
        }
        assert_eq!(compact_block_count([512, 511, 1]), None);
    }

    #[test]
    fn counts_beyond_the_blocks_give_no_owners() {
        let found = parse_compact(&[[0xFF_u8; 4096]], [600, 600, 600]);
        assert_eq!(found[0][438].nid, Nid(u32::MAX));
        assert_eq!(found[0][439], Summary::default());
    }

    #[test]
    fn the_second_block_begins_with_an_entry() {
        let log = entries(7);
        let blocks = compact_summaries([(&log, 440), (&log, 0), (&log, 0)], &[], &[]);
        assert_eq!(blocks[0][1014], 7);
        assert_eq!(blocks[0][4087..], [0; 9]);
        assert_eq!(blocks[1][..4], (7_u32 + 439).to_le_bytes());
    }
}
