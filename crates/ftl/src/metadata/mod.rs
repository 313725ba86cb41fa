//! Persistent metadata: the drive's own pages, what they say, and what recovery makes of them.
//!
//! Each of them has a logical page number above the host's, so that cleaning, wear levelling and
//! recovery treat it like any other page: those of the discard journal come first, then the log of
//! remaps with its tables, then the batch of renames. Translation pages (`translation/`) follow
//! behind.

mod invalidations;
pub(crate) mod journal;
mod recovered;
pub(crate) mod remap_log;
pub(crate) mod renames;

use dovetail_nand::Seq;

use crate::config::DriveConfig;
pub(crate) use invalidations::Invalidations;
use journal::{Bitmap, Record};
pub(crate) use recovered::RecoveredMetadata;
use remap_log::{LogPage, TablePage};
use renames::BatchPage;

/// Bytes of a page's header.
const HEADER_BYTES: usize = 32;

/// Logical pages that the drive keeps for itself, above the host's.
pub(crate) fn system_pages(config: &DriveConfig) -> u32 {
    journal::journal_pages(config) + remap_log::log_pages(config) + renames::batch_pages(config)
}

/// The content of a page of the drive's own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SystemPage {
    Journal(Vec<Record>),
    Bitmap(Bitmap),
    /// A part of a remap.
    Log(LogPage),
    /// A part of the reverse map.
    Table(TablePage),
    /// A part of a batch of renames.
    Batch(BatchPage),
}

/// The first bytes of a page of the drive's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageHeader {
    pub(super) magic: u32,
    /// Records in the page.
    pub(super) count: u32,
    /// Place where what the page tells of begins; in a log page, how long it is in all.
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

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// Reads a page of the drive's own; `None` when it is of no kind.
pub(crate) fn decode(page: &[u8]) -> Option<SystemPage> {
    let header = PageHeader::of(page);
    let body = &page[HEADER_BYTES..];
    journal::decode(header, body)
        .or_else(|| remap_log::decode(header, body))
        .or_else(|| renames::decode(header, body))
}
