//! What the drive's own pages, and its non-volatile memory, say after a power cut.

use std::collections::BTreeMap;

use dovetail_block::{BLOCK_SIZE, Content, DeviceError};
use dovetail_nand::{Nand, NandError, Oob, Ppn, Seq};
use dovetail_time::SimTime;

use super::deaths::Deaths;
use super::device_error;
use super::devirtualize::BatchPage;
use super::journal::{Bitmap, Record, SystemPage, decode};
use super::nvm::Survivor;
use super::remap::{Move, deaths};
use super::remap_log::LogPage;
use super::reverse::{Remapped, ReverseMap};

/// A remap found in the log, in parts.
#[derive(Debug, Default)]
struct Logged {
    total: usize,
    moves: Vec<Move>,
}

/// All that is said.
#[derive(Debug)]
pub(super) struct Said {
    records: Vec<Record>,
    bitmaps: Vec<Bitmap>,
    pub(super) reverse: ReverseMap,
    logged: BTreeMap<Seq, Logged>,
    /// Of batches of renames, old ones and the newest.
    pub(super) batch: Vec<BatchPage>,
    /// Pages that could not be read.
    pub(super) lost: u64,
    /// The greatest sequence number in any of it.
    pub(super) last_seq: Seq,
}

impl Said {
    /// Before any page is read; with what non-volatile memory says.
    pub(super) fn new(nand: &Nand, survivor: Option<&Survivor>) -> Self {
        let mut said = Self {
            records: Vec::new(),
            bitmaps: Vec::new(),
            reverse: ReverseMap::new(*nand.geometry()),
            logged: BTreeMap::new(),
            batch: Vec::new(),
            lost: 0,
            last_seq: Seq(0),
        };
        for (ppn, entry) in survivor.iter().flat_map(|survivor| survivor.reverse.iter()) {
            said.enter(ppn, entry);
        }
        for record in survivor.iter().flat_map(|survivor| &survivor.records) {
            said.record(*record);
        }
        said
    }

    /// Reads a page of the drive's own.
    pub(super) fn read(&mut self, nand: &mut Nand, ppn: Ppn) -> Result<(), DeviceError> {
        match read_system(nand, ppn)? {
            Some(SystemPage::Journal(records)) => {
                records.into_iter().for_each(|record| self.record(record));
            }
            Some(SystemPage::Bitmap(bitmap)) => {
                self.see(bitmap.seq);
                self.bitmaps.push(bitmap);
            }
            Some(SystemPage::Log(page)) => self.log(page),
            Some(SystemPage::Batch(page)) => {
                self.see(page.seq);
                self.batch.push(page);
            }
            Some(SystemPage::Table(entries)) => {
                entries.into_iter().for_each(|(ppn, entry)| self.enter(ppn, entry));
            }
            None => self.lost += 1,
        }
        Ok(())
    }

    fn see(&mut self, seq: Seq) {
        self.last_seq = self.last_seq.max(seq);
    }

    fn record(&mut self, record: Record) {
        self.see(record.seq);
        self.records.push(record);
    }

    fn enter(&mut self, ppn: Ppn, entry: Remapped) {
        self.see(entry.seq);
        self.reverse.raise(ppn, entry);
    }

    fn log(&mut self, page: LogPage) {
        self.see(page.seq);
        let logged = self.logged.entry(page.seq).or_default();
        logged.total = page.total;
        logged.moves.extend(page.moves);
    }

    /// Carries out the remaps of which all log pages are there, then drops entries older than the page at their place:
    /// its block was erased since. `oob` gives the out-of-band area of a programmed, readable page.
    pub(super) fn complete(&mut self, oob: impl Fn(Ppn) -> Option<Oob>) {
        self.logged.retain(|_, logged| logged.moves.len() == logged.total);
        for (&seq, logged) in &self.logged {
            for &Move { ppn, to, .. } in &logged.moves {
                if let Some(ppn) = ppn {
                    self.reverse.raise(ppn, Remapped { lpn: to, seq });
                }
            }
            self.records.extend(deaths(&logged.moves).map(|lpn| Record::of_page(lpn, seq)));
        }
        self.reverse.retain(|ppn, entry| oob(ppn).is_some_and(|oob| oob.seq < entry.seq));
    }

    /// Takes what is dead out of it.
    pub(super) fn deaths(&mut self) -> Deaths {
        Deaths::new(std::mem::take(&mut self.records), std::mem::take(&mut self.bitmaps))
    }

    /// The remaps in the log.
    pub(super) fn logged(&self) -> impl Iterator<Item = &[Move]> {
        self.logged.values().map(|logged| logged.moves.as_slice())
    }
}

fn read_system(nand: &mut Nand, ppn: Ppn) -> Result<Option<SystemPage>, DeviceError> {
    let page_bytes = nand.geometry().page_bytes;
    match nand.read(SimTime::ZERO, ppn, page_bytes) {
        Ok(_) => {}
        Err(NandError::Unreadable(_)) => return Ok(None),
        Err(error) => return Err(device_error(&error)),
    }
    let mut bytes = Vec::with_capacity(page_bytes as usize);
    for part in 0..nand.geometry().parts_per_page() as usize {
        match nand.content(nand.token(ppn, part)) {
            Some(Content::Bytes(block)) => bytes.extend_from_slice(&block[..]),
            Some(_) => bytes.resize(bytes.len() + BLOCK_SIZE as usize, 0),
            None => return Ok(None),
        }
    }
    Ok(decode(&bytes))
}
