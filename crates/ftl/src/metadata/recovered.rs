//! Parses the drive's persistent metadata after power loss: its own pages, and its non-volatile
//! memory.

use std::collections::BTreeMap;

use dovetail_block::DeviceError;
use dovetail_nand::{Lpn, Oob, Ppn, Seq};

use super::invalidations::Invalidations;
use super::journal::{Bitmap, Record};
use super::remap_log::LogPage;
use super::renames::BatchPage;
use super::{SystemPage, decode};
use crate::config::DriveConfig;
use crate::medium::UnrecoveredMedium;
use crate::ownership::{Move, Remapped, ReverseMap, Survivor, deaths};

/// Sequence numbers stay below this, so that there is always a next one. No drive comes near it.
const SEQ_LIMIT: Seq = Seq(1 << 63);

/// Bounds of the numbers in a page of the drive's own. One that tells of anything else was not
/// written by this drive.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    flash_pages: u32,
    host_pages: u64,
}

impl Bounds {
    fn allows(self, page: &SystemPage) -> bool {
        match page {
            SystemPage::Journal(records) => records.iter().all(|record| record.seq < SEQ_LIMIT),
            SystemPage::Bitmap(bitmap) => bitmap.seq < SEQ_LIMIT,
            SystemPage::Batch(batch) => {
                batch.seq < SEQ_LIMIT
                    && batch.addresses().all(|lba| self.allows_host_page(Lpn(lba.0)))
            }
            SystemPage::Log(log) => {
                log.seq < SEQ_LIMIT && log.moves.iter().all(|entry| self.allows_move(entry))
            }
            SystemPage::Table(entries) => entries.iter().all(|&(ppn, entry)| {
                self.allows_place(ppn) && self.allows_host_page(entry.lpn) && entry.seq < SEQ_LIMIT
            }),
        }
    }

    fn allows_move(self, entry: &Move) -> bool {
        entry.ppn.is_none_or(|ppn| self.allows_place(ppn))
            && self.allows_host_page(entry.to)
            && self.allows_host_page(entry.from)
    }

    fn allows_place(self, ppn: Ppn) -> bool {
        ppn.0 < self.flash_pages
    }

    fn allows_host_page(self, lpn: Lpn) -> bool {
        lpn.0 < self.host_pages
    }
}

/// A remap found in the log, in parts.
#[derive(Debug, Default)]
struct Logged {
    total: usize,
    moves: Vec<Move>,
}

/// All that was found.
#[derive(Debug)]
pub(crate) struct RecoveredMetadata {
    bounds: Bounds,
    records: Vec<Record>,
    bitmaps: Vec<Bitmap>,
    reverse: ReverseMap,
    logged: BTreeMap<Seq, Logged>,
    /// Of batches of renames, old ones and the newest.
    batch: Vec<BatchPage>,
    /// Pages that could not be read, or tell of what is not there.
    lost: u64,
    /// The greatest sequence number in any of it.
    last_seq: Seq,
}

impl RecoveredMetadata {
    /// Before any page is read; with what non-volatile memory says, and the records of discards
    /// that capacitors have kept.
    pub(crate) fn new(config: &DriveConfig, survivor: Option<&Survivor>, kept: &[Record]) -> Self {
        let geometry = config.nand.geometry;
        let mut recovered = Self {
            bounds: Bounds { flash_pages: geometry.pages(), host_pages: config.host_pages() },
            records: Vec::new(),
            bitmaps: Vec::new(),
            reverse: ReverseMap::new(geometry),
            logged: BTreeMap::new(),
            batch: Vec::new(),
            lost: 0,
            last_seq: Seq(0),
        };
        for (ppn, entry) in survivor.iter().flat_map(|survivor| survivor.entries()) {
            recovered.enter(ppn, entry);
        }
        for record in survivor.iter().flat_map(|survivor| survivor.records()).chain(kept) {
            recovered.record(*record);
        }
        recovered
    }

    /// Reads a page of the drive's own.
    pub(crate) fn read(
        &mut self,
        flash: &mut UnrecoveredMedium,
        ppn: Ppn,
    ) -> Result<(), DeviceError> {
        let page = flash.read_bytes(ppn)?.and_then(|bytes| decode(&bytes));
        match page.filter(|page| self.bounds.allows(page)) {
            Some(SystemPage::Journal(records)) => {
                records.into_iter().for_each(|record| self.record(record));
            }
            Some(SystemPage::Bitmap(bitmap)) => {
                self.raise_seq(bitmap.seq);
                self.bitmaps.push(bitmap);
            }
            Some(SystemPage::Log(page)) => self.log(page),
            Some(SystemPage::Batch(page)) => {
                self.raise_seq(page.seq);
                self.batch.push(page);
            }
            Some(SystemPage::Table(entries)) => {
                entries.into_iter().for_each(|(ppn, entry)| self.enter(ppn, entry));
            }
            None => self.lost += 1,
        }
        Ok(())
    }

    fn raise_seq(&mut self, seq: Seq) {
        self.last_seq = self.last_seq.max(seq);
    }

    fn record(&mut self, record: Record) {
        self.raise_seq(record.seq);
        self.records.push(record);
    }

    fn enter(&mut self, ppn: Ppn, entry: Remapped) {
        self.raise_seq(entry.seq);
        self.reverse.raise(ppn, entry);
    }

    fn log(&mut self, page: LogPage) {
        self.raise_seq(page.seq);
        let logged = self.logged.entry(page.seq).or_default();
        logged.total = page.total;
        logged.moves.extend(page.moves);
    }

    /// Carries out the remaps of which all log pages are there, then drops entries older than the
    /// page at their place: its block was erased since. So do those of the drive's own pages, which
    /// are never remapped. `oob` gives the out-of-band area of a programmed, readable page.
    pub(crate) fn complete(&mut self, oob: impl Fn(Ppn) -> Option<Oob>) {
        self.logged.retain(|_, logged| logged.moves.len() == logged.total);
        for (&seq, logged) in &self.logged {
            for &Move { ppn, to, .. } in &logged.moves {
                if let Some(ppn) = ppn {
                    self.reverse.raise(ppn, Remapped { lpn: to, seq });
                }
            }
            self.records.extend(deaths(&logged.moves).map(|lpn| Record::of_page(lpn, seq)));
        }
        let bounds = self.bounds;
        self.reverse.retain(|ppn, entry| {
            oob(ppn).is_some_and(|oob| oob.seq < entry.seq && bounds.allows_host_page(oob.lpn))
        });
    }

    /// Takes the dead versions out of it.
    pub(crate) fn take_invalidations(&mut self) -> Invalidations {
        Invalidations::new(std::mem::take(&mut self.records), std::mem::take(&mut self.bitmaps))
    }

    /// Takes the pages of batches of renames out of it.
    pub(crate) fn take_batches(&mut self) -> Vec<BatchPage> {
        std::mem::take(&mut self.batch)
    }

    /// Takes the reverse map out of it.
    pub(crate) fn take_reverse(&mut self) -> ReverseMap {
        self.reverse.take()
    }

    /// Pages that do not belong to whom their out-of-band areas name.
    pub(crate) fn remapped(&self) -> u64 {
        self.reverse.iter().count() as u64
    }

    /// Counts a page of the drive's own that is numbered above all there are.
    pub(crate) fn count_lost(&mut self) {
        self.lost += 1;
    }

    /// Pages that could not be read, or tell of what is not there.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// The greatest sequence number in any of it.
    pub(crate) fn last_seq(&self) -> Seq {
        self.last_seq
    }

    /// The remaps in the log.
    pub(crate) fn logged(&self) -> impl Iterator<Item = &[Move]> {
        self.logged.values().map(|logged| logged.moves.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use dovetail_block::{Content, Inode, Pattern, RemapLimits, StreamId};
    use dovetail_nand::{Geometry, Nand, StoredBlock};
    use dovetail_time::{Rng, SimSpan};
    use std::sync::Arc;

    use super::super::{PageHeader, system_pages};
    use super::*;
    use crate::{Drive, RecoveryReport, UnrecoveredDrive};
    use crate::{RemapConfig, RemapStore, mapping};

    const JOURNAL: u32 = 0x4456_4A31;
    const BITMAP: u32 = 0x4456_4232;
    const LOG: u32 = 0x4456_4D31;
    const TABLE: u32 = 0x4456_5231;
    const FLASH_PAGES: u32 = 2048;

    fn config(scheme: &str, addresses: Option<u64>) -> DriveConfig {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 32,
            pages_per_block: 16,
            page_bytes: 4096,
        };
        let config = DriveConfig {
            addresses,
            scheme: mapping::scheme(scheme).unwrap(),
            link_4k: SimSpan::ZERO,
            remap: Some(RemapConfig { limits: RemapLimits::of(400, 100), store: RemapStore::Log }),
            ..DriveConfig::plain(geometry, 1200)
        };
        config.checked().unwrap()
    }

    fn page(header: PageHeader, words: &[u32]) -> Vec<u8> {
        let mut page = vec![0; 4096];
        header.put(&mut page);
        for (slot, word) in page[32..].chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        page
    }

    fn header(magic: u32, count: u32, first: u64, seq: u64) -> PageHeader {
        PageHeader { magic, count, first, seq: Seq(seq) }
    }

    /// Recovers a drive of which the first block holds host page 5, and then these pages of the
    /// drive's own.
    fn recovered(config: &DriveConfig, pages: &[Vec<u8>]) -> (Drive, RecoveryReport) {
        let oob =
            |lpn, seq| Oob { lpn: Lpn(lpn), seq: Seq(seq), inode: Inode(0), stream: StreamId(0) };
        let mut kept = vec![Some((oob(5, 1), vec![Some(Content::Pattern(Pattern::new(1)))]))];
        for (i, page) in (0..).zip(pages) {
            let bytes = Arc::new(page.as_slice().try_into().unwrap());
            kept.push(Some((
                oob(config.host_pages() + i, 2 + i),
                vec![Some(Content::Bytes(bytes))],
            )));
        }
        let block = StoredBlock { pages: kept, ..StoredBlock::default() };
        let nand = Nand::restored(config.nand.clone(), vec![block]).unwrap();
        UnrecoveredDrive::from_flash(config.clone(), nand).recover().unwrap()
    }

    #[test]
    fn pages_that_tell_of_what_is_not_there_are_lost_and_the_rest_is_not() {
        let remap = |ppn: u32, to: u32, from: u32| page(header(LOG, 1, 1, 9), &[ppn, to, from]);
        let table = |first: u64, lpn: u32| page(header(TABLE, 0, first, 9), &[lpn + 1, 9, 0]);
        let damaged = [
            remap(FLASH_PAGES, 3, 4),
            remap(0, 1200, 5),
            remap(0, u32::MAX, 5),
            remap(0, 3, 1200),
            table(FLASH_PAGES.into(), 3),
            table(u32::MAX.into(), 3),
            table(u64::MAX, 3),
            table(0, 1200),
            page(header(LOG, 1, 1, u64::MAX), &[0, 3, 5]),
            page(header(BITMAP, 0, 0, u64::MAX), &[1]),
            page(header(JOURNAL, 1, 0, 0), &[5, 0, 1, 0, u32::MAX, u32::MAX]),
        ];
        for damaged in damaged {
            let (drive, report) = recovered(&config("page", None), std::slice::from_ref(&damaged));
            assert_eq!(
                (report.lost_journal_pages, report.remapped_pages),
                (1, 0),
                "{:?}",
                &damaged[..48]
            );
            assert_eq!(drive.page_at(Lpn(5)), Some(Ppn(0)), "{:?}", &damaged[..48]);
            drive.check().unwrap();
        }
        let (drive, report) = recovered(&config("page", None), &[remap(0, 3, 5)]);
        assert_eq!((report.lost_journal_pages, report.remapped_pages), (0, 1));
        assert_eq!((drive.page_at(Lpn(3)), drive.page_at(Lpn(5))), (Some(Ppn(0)), None));
    }

    #[test]
    fn a_page_of_the_drive_s_own_is_not_remapped() {
        // The second page of the first block: the log page itself.
        let (drive, report) =
            recovered(&config("page", None), &[page(header(LOG, 1, 1, 9), &[4, 3, 5])]);
        assert_eq!(report.remapped_pages, 0);
        drive.check().unwrap();
    }

    #[test]
    fn pages_of_any_numbers_are_read_or_lost() {
        let edges = [0, 1, 2, 5, 1199, 1200, 1201, 2047, 2048, 1 << 31, u32::MAX - 1, u32::MAX];
        for (scheme, addresses) in
            [("page", None), ("hash", Some(1 << 31)), ("interval", Some(1 << 40))]
        {
            let config = config(scheme, addresses);
            for seed in 0..300 {
                let mut rng = Rng::new(seed);
                let mut edge = || edges[rng.below(edges.len() as u64) as usize];
                let pages: Vec<_> = (0..4)
                    .map(|_| {
                        let magic =
                            [JOURNAL, BITMAP, LOG, TABLE, LOG + 1, TABLE + 1][edge() as usize % 6];
                        let wide = u64::from(edge()) << 32 | u64::from(edge());
                        let words: Vec<u32> = (0..24).map(|_| edge()).collect();
                        page(header(magic, edge(), u64::from(edge()), wide), &words)
                    })
                    .collect();
                assert!(system_pages(&config) >= 4);
                recovered(&config, &pages).0.check().unwrap();
            }
        }
    }
}
