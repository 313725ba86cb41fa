//! Batches of renames, as pages of the drive's own and in memory. The order in which they are
//! written is in `drive/devirtualize.rs`.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_block::{
    BlockRange, DeviceSpace, Inode, Lba, OpenRenames, RemapPair, Rename, RenameId,
};
use dovetail_nand::{Lpn, Seq};
use dovetail_time::SimTime;

use super::{HEADER_BYTES, PageHeader, SystemPage, system_pages, u64_at};
use crate::config::DriveConfig;

const BATCH_MAGIC: u32 = 0x4456_4E31; // "DVN1"
const ID_BYTES: usize = 8;
const RENAME_BYTES: usize = 16;

/// A part of a batch, as a page of the drive's own says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchPage {
    /// Of the whole batch.
    pub(crate) seq: Seq,
    /// Renames of the whole batch; 0 when none is open.
    total: usize,
    id: RenameId,
    renames: Vec<Rename>,
}

impl BatchPage {
    /// The old and new names in it; pages of such drives are one block.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Lba> {
        self.renames.iter().flat_map(|rename| rename.to.into_iter().chain([rename.from]))
    }
}

/// The state of a drive that devirtualises.
#[derive(Clone, Debug)]
pub(crate) struct Renames {
    space: DeviceSpace,
    first_lpn: u64,
    open: Option<OpenRenames>,
    /// From old names to new ones, while a batch is open.
    names: BTreeMap<Lba, Lba>,
    /// The number that the newest batch pages have.
    seq: Seq,
    /// Time when the last batch page is durable.
    end: SimTime,
    /// Inodes of moved pages that are reached by device address.
    moved: BTreeSet<Inode>,
    /// A batch page was lost on the medium.
    must_rewrite: bool,
}

fn renames_per_page(config: &DriveConfig) -> usize {
    (config.nand.geometry.page_bytes as usize - HEADER_BYTES - ID_BYTES) / RENAME_BYTES
}

/// Logical pages that a batch takes, above those of the log of remaps.
pub(crate) fn batch_pages(config: &DriveConfig) -> u32 {
    config.devirtualize.map_or(0, |most| most.div_ceil(renames_per_page(config) as u32))
}

impl Renames {
    /// Returns what the configuration asks for.
    pub(crate) fn new(config: &DriveConfig) -> Option<Box<Self>> {
        let space = config.device_space()?;
        let below = system_pages(config) - batch_pages(config);
        Some(Box::new(Self {
            space,
            first_lpn: config.host_pages() + u64::from(below),
            open: None,
            names: BTreeMap::new(),
            seq: Seq::default(),
            end: SimTime::ZERO,
            moved: BTreeSet::new(),
            must_rewrite: false,
        }))
    }

    /// Bytes of the drive's memory for open names and the list of inodes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.names.len() as u64 * RENAME_BYTES as u64 + self.moved.len() as u64 * 4
    }

    /// Sets the batch that is open.
    pub(crate) fn set_open(&mut self, open: Option<OpenRenames>) {
        let renames = open.iter().flat_map(|open| &open.renames);
        self.names = renames.filter_map(|rename| Some((rename.from, rename.to?))).collect();
        self.open = open;
    }

    /// Tells whether old names of the open batch are in a range.
    pub(crate) fn has_name_in(&self, range: BlockRange) -> bool {
        self.names.range(range.start..range.end()).next().is_some()
    }

    /// The moves back for old names that stay.
    pub(crate) fn moves_back(&self) -> Vec<RemapPair> {
        self.names.iter().map(|(&old, &new)| RemapPair { to: old, from: new }).collect()
    }

    /// The addresses of the drive's flash pages.
    pub(crate) fn space(&self) -> DeviceSpace {
        self.space
    }

    /// The batch that is open.
    pub(crate) fn open(&self) -> Option<&OpenRenames> {
        self.open.as_ref()
    }

    /// Tells whether old names lead to new ones.
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// The new name of a block, or its own.
    pub(crate) fn new_name(&self, lba: Lba) -> Lba {
        self.names.get(&lba).copied().unwrap_or(lba)
    }

    /// The new names of the old ones in a range.
    pub(crate) fn new_names_in(&self, range: BlockRange) -> Vec<Lba> {
        self.names.range(range.start..range.end()).map(|(_, &new)| new).collect()
    }

    /// Takes the list of inodes whose blocks have moved.
    pub(crate) fn take_moved(&mut self) -> BTreeSet<Inode> {
        std::mem::take(&mut self.moved)
    }

    /// Adds inodes whose blocks have moved, or whose device addresses were not free.
    pub(crate) fn note_moved(&mut self, inodes: impl IntoIterator<Item = Inode>) {
        self.moved.extend(inodes);
    }

    /// Number of the newest batch.
    #[cfg(test)]
    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }

    /// Numbers a new batch, or the one that a power cut left.
    pub(crate) fn begin_batch(&mut self, seq: Seq) {
        debug_assert!(self.seq < seq, "sequence numbers must rise");
        self.seq = seq;
    }

    /// The pages of the newest batch if `open` is the one that is open, and when the pages before
    /// are durable.
    pub(crate) fn batch(
        &self,
        config: &DriveConfig,
        open: Option<&OpenRenames>,
    ) -> (SimTime, Vec<(Lpn, Vec<u8>)>) {
        let pages = encode_batch(config, self.seq, open);
        (self.end, (self.first_lpn..).map(Lpn).zip(pages).collect())
    }

    /// The pages of the newest batch are durable at `end`.
    pub(crate) fn batch_written(&mut self, end: SimTime) {
        self.end = end;
    }

    /// Tells whether a page is one of a batch.
    pub(crate) fn is_batch_page(&self, lpn: Lpn) -> bool {
        lpn.0 >= self.first_lpn
    }

    /// A batch page can no longer be read: it is to be written anew from memory before anything is
    /// erased.
    pub(crate) fn distrust(&mut self) {
        self.must_rewrite = true;
    }

    /// Tells whether batch pages are to be written anew; they are not any more.
    pub(crate) fn take_rewrite(&mut self) -> bool {
        std::mem::take(&mut self.must_rewrite)
    }
}

/// The batch that was open when the power went, if its pages are all there.
pub(crate) fn newest_batch(pages: Vec<BatchPage>) -> Option<OpenRenames> {
    let newest = pages.iter().map(|page| page.seq).max()?;
    let of_newest: Vec<&BatchPage> = pages.iter().filter(|page| page.seq == newest).collect();
    let (id, total) = of_newest.first().map(|page| (page.id, page.total))?;
    let renames: Vec<Rename> =
        of_newest.iter().flat_map(|page| page.renames.iter().copied()).collect();
    (total > 0 && renames.len() == total).then_some(OpenRenames { id, renames })
}

fn encode_batch(config: &DriveConfig, seq: Seq, open: Option<&OpenRenames>) -> Vec<Vec<u8>> {
    let none = OpenRenames { id: RenameId(0), renames: Vec::new() };
    let OpenRenames { id, renames } = open.unwrap_or(&none);
    let encode = |chunk: &[Rename]| {
        let mut page = vec![0; config.nand.geometry.page_bytes as usize];
        let (count, first) = (chunk.len() as u32, renames.len() as u64);
        PageHeader { magic: BATCH_MAGIC, count, first, seq }.put(&mut page);
        let (id_bytes, slots) = page[HEADER_BYTES..].split_at_mut(ID_BYTES);
        id_bytes.copy_from_slice(&id.0.to_le_bytes());
        for (slot, rename) in slots.chunks_exact_mut(RENAME_BYTES).zip(chunk) {
            slot[..8].copy_from_slice(&rename.from.0.to_le_bytes());
            slot[8..].copy_from_slice(&rename.to.map_or(u64::MAX, |to| to.0).to_le_bytes());
        }
        page
    };
    if renames.is_empty() {
        return vec![encode(&[])];
    }
    renames.chunks(renames_per_page(config)).map(encode).collect()
}

/// Reads a batch page; `None` when it is none.
pub(super) fn decode(header: PageHeader, body: &[u8]) -> Option<SystemPage> {
    if header.magic != BATCH_MAGIC {
        return None;
    }
    let rename =
        |slot: &[u8]| Rename { from: Lba(u64_at(slot, 0)), to: Some(Lba(u64_at(slot, 8))) };
    let slots = body[ID_BYTES..].chunks_exact(RENAME_BYTES).take(header.count as usize);
    Some(SystemPage::Batch(BatchPage {
        seq: header.seq,
        total: header.first as usize,
        id: RenameId(u64_at(body, 0)),
        renames: slots.map(rename).collect(),
    }))
}
