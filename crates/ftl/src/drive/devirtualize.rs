//! Blocks reached by their device addresses: batches of renames.
//!
//! A rename is a remap whose destination is the page of the place where the source is: the map then needs no entry for it
//! (`direct_map.rs`), and the log of remaps makes it atomic and durable. What comes beside is that both names are
//! one block until the batch is ended. The order is the argument:
//! 1. *Batch pages* say which old name is to lead to which new one. They are waited for.
//! 2. The remap is logged and executed. The old names lead nowhere by themselves; commands on them are led to the new ones.
//! 3. Ending the batch makes the batch pages void, after a remap back if the old names stay.
//!
//! After a power cut the newest batch pages count if they are complete and their remap happened: it did not if an old name
//! is mapped, for in an open batch nothing is mapped by it. An ended batch that comes back open is ended again by the issuer,
//! and cannot if an old name was taken anew meanwhile: then it is mapped.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_block::{
    BlockRange, Command, Data, DeviceError, DeviceSpace, Devirtualize, Hints, Inode, Lba, OpenRenames,
    RemapPair, Rename, RenameId, SectorRange,
};
use dovetail_nand::{Lpn, Seq};
use dovetail_time::SimTime;

use super::Drive;
use super::journal::{HEADER_BYTES, PageHeader, SystemPage, u64_at};
use super::remap::page_of;
use crate::config::DriveConfig;
use crate::stats::Cause;

const BATCH_MAGIC: u32 = 0x4456_4E31; // "DVN1"
const ID_BYTES: usize = 8;
const RENAME_BYTES: usize = 16;

/// A part of a batch, as a page of the drive's own says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BatchPage {
    /// Of the whole batch.
    pub(super) seq: Seq,
    /// Renames of the whole batch; 0 when none is open.
    total: usize,
    id: RenameId,
    renames: Vec<Rename>,
}

impl BatchPage {
    /// The old and new names in it; pages of such drives are one block.
    pub(super) fn addresses(&self) -> impl Iterator<Item = Lba> {
        self.renames.iter().flat_map(|rename| rename.to.into_iter().chain([rename.from]))
    }
}

/// What a drive that devirtualises keeps for it.
#[derive(Debug)]
pub(super) struct Renames {
    space: DeviceSpace,
    first_lpn: u64,
    open: Option<OpenRenames>,
    /// From old names to new ones, while a batch is open.
    names: BTreeMap<Lba, Lba>,
    /// The number that the newest batch pages have.
    seq: Seq,
    /// When the last batch page is durable.
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
pub(super) fn batch_pages(config: &DriveConfig) -> u32 {
    config.devirtualize.map_or(0, |most| most.div_ceil(renames_per_page(config) as u32))
}

impl Renames {
    /// What the configuration asks for.
    pub(super) fn new(config: &DriveConfig) -> Option<Box<Self>> {
        let space = config.device_space()?;
        let below = super::system_pages(config) - batch_pages(config);
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
    pub(super) fn memory_bytes(&self) -> u64 {
        self.names.len() as u64 * RENAME_BYTES as u64 + self.moved.len() as u64 * 4
    }

    fn set_open(&mut self, open: Option<OpenRenames>) {
        let renames = open.iter().flat_map(|open| &open.renames);
        self.names = renames.filter_map(|rename| Some((rename.from, rename.to?))).collect();
        self.open = open;
    }

    fn has_name_in(&self, range: BlockRange) -> bool {
        self.names.range(range.start..range.end()).next().is_some()
    }

    /// What is moved back when the old names stay.
    fn moves_back(&self) -> Vec<RemapPair> {
        self.names.iter().map(|(&old, &new)| RemapPair { to: old, from: new }).collect()
    }
}

impl Drive {
    /// Carries out what is asked; returns when it is done.
    pub(super) fn devirtualize(
        &mut self,
        at: SimTime,
        asked: Devirtualize<'_>,
    ) -> Result<SimTime, DeviceError> {
        let Some(state) = &mut self.renames else { return Err(DeviceError::Unsupported("devirtualize")) };
        let done = match asked {
            Devirtualize::Begin { id, renames } => self.begin_renames(at, id, renames)?,
            Devirtualize::End { id, keep } => self.end_renames(at, id, keep)?,
            Devirtualize::Open { into } => {
                into.clone_from(&state.open);
                at
            }
            Devirtualize::Moved { into } => {
                into.extend(std::mem::take(&mut state.moved));
                at
            }
            Devirtualize::Held { range, into } => self.held(at, range, into)?,
        };
        self.empty_condemned(at)?;
        Ok(done)
    }

    fn begin_renames(
        &mut self,
        at: SimTime,
        id: RenameId,
        renames: &mut [Rename],
    ) -> Result<SimTime, DeviceError> {
        self.check_renames(renames)?;
        for rename in renames.iter() {
            self.send_source(at, rename.from)?;
        }
        for _ in 0..batch_pages(&self.config) {
            self.make_room(at)?;
        }
        self.make_room_in_log(at, renames.len())?;
        // From here on no page moves until the map has changed.
        let looked_up = self.find_places(at, renames);
        let executed: Vec<Rename> = renames.iter().filter(|rename| rename.to.is_some()).copied().collect();
        if executed.is_empty() {
            return Ok(looked_up);
        }
        let pair = |rename: &Rename| Some(RemapPair { to: rename.to?, from: rename.from });
        let pairs: Vec<RemapPair> = executed.iter().filter_map(pair).collect();
        let open = OpenRenames { id, renames: executed };
        let written = self.write_batch(looked_up, Some(&open))?;
        // open from here on: a batch page that is lost while the log is written is to be written again
        self.set_open_renames(Some(open));
        let done = self.carry_out(written, &pairs);
        if done.is_err() {
            self.set_open_renames(None);
        }
        done
    }

    fn check_renames(&mut self, renames: &[Rename]) -> Result<(), DeviceError> {
        let Some(Renames { space, open, .. }) = self.renames.as_deref() else { return Ok(()) };
        let (space, limit) = (*space, u64::from(space.most));
        if open.is_some() {
            return Err(DeviceError::RenamesOpen);
        }
        if renames.len() as u64 > limit {
            return Err(DeviceError::RenamesTooMany { renames: renames.len() as u64, limit });
        }
        let mut seen = BTreeSet::new();
        for &Rename { from, to } in renames {
            let logical = |lba: Lba| lba < space.first;
            if !seen.insert(from) || !(logical(from) || space.contains(BlockRange::new(from, 1))) {
                return Err(DeviceError::CannotRename(from));
            }
            let Some(to) = to else { continue };
            if !seen.insert(to) || !logical(to) || self.holds(to) || !self.holds(from) {
                return Err(DeviceError::CannotRename(to));
            }
        }
        Ok(())
    }

    fn holds(&mut self, lba: Lba) -> bool {
        let lpn = page_of(lba);
        self.translation.lookup(lpn).0.is_some() || self.buffer.dirty_mut(lpn).is_some()
    }

    /// Puts in the device addresses of the places; returns when all are looked up.
    fn find_places(&mut self, mut at: SimTime, renames: &mut [Rename]) -> SimTime {
        let Some(space) = self.config.device_space() else { return at };
        for rename in renames.iter_mut().filter(|rename| rename.to.is_none()) {
            let (place, cost) = self.translation.lookup(page_of(rename.from));
            at += self.charge(cost);
            let Some(place) = place else { continue };
            let name = Lba(space.first.0 + u64::from(place.0));
            if self.translation.lookup(page_of(name)).0.is_none() {
                rename.to = Some(name);
            } else if name != rename.from {
                // the name is another block's for now: to be tried again
                let inode = self.medium.nand().inode(place);
                if let Some(state) = &mut self.renames {
                    state.moved.insert(inode);
                }
            }
        }
        at
    }

    fn set_open_renames(&mut self, open: Option<OpenRenames>) {
        if let Some(state) = &mut self.renames {
            state.set_open(open);
        }
    }

    fn end_renames(&mut self, at: SimTime, id: RenameId, keep: bool) -> Result<SimTime, DeviceError> {
        let Some(state) = &self.renames else { return Ok(at) };
        if state.open.as_ref().is_none_or(|open| open.id != id) {
            return Ok(at);
        }
        let back = if keep { Vec::new() } else { state.moves_back() };
        let moved = self.execute(at, &back)?;
        self.make_room(at)?;
        let done = self.write_batch(moved, None)?;
        self.set_open_renames(None);
        Ok(done)
    }

    /// Writes which batch is open, no earlier than `at` and after what was said before; returns when that is durable.
    fn write_batch(&mut self, at: SimTime, open: Option<&OpenRenames>) -> Result<SimTime, DeviceError> {
        let seq = self.medium.take_seq();
        if let Some(state) = &mut self.renames {
            state.seq = seq;
        }
        self.write_batch_pages(at, open)
    }

    fn write_batch_pages(&mut self, at: SimTime, open: Option<&OpenRenames>) -> Result<SimTime, DeviceError> {
        let Some(state) = &self.renames else { return Ok(at) };
        let (at, first, seq) = (at.max(state.end), state.first_lpn, state.seq);
        let pages = encode_batch(&self.config, seq, open);
        let mut end = at;
        for (lpn, page) in (first..).map(Lpn).zip(&pages) {
            let program = |drive: &mut Self| drive.program_system(at, lpn, page, Cause::Remap);
            end = end.max(self.without_erasing(program)?);
        }
        if let Some(state) = &mut self.renames {
            state.end = end;
        }
        Ok(end)
    }

    fn held(&self, at: SimTime, range: BlockRange, into: &mut Vec<Lba>) -> Result<SimTime, DeviceError> {
        let blocks = self.config.host_pages();
        if range.end().0 > blocks {
            return Err(DeviceError::OutOfRange { range, blocks });
        }
        let mut found = Vec::new();
        self.translation.find_mapped(self.pages_of(range), usize::MAX, &mut found);
        into.extend(found.into_iter().map(|(lpn, _)| Lba(lpn.0)));
        Ok(at)
    }

    /// Every device address in a range must lead to a block: only a rename gives one.
    pub(super) fn check_names(&self, range: BlockRange) -> Result<(), DeviceError> {
        if self.config.device_space().is_none_or(|space| range.start < space.first) {
            return Ok(());
        }
        let nothing = |lba: &Lba| self.translation.lookup(page_of(*lba)).0.is_none();
        range.iter().find(nothing).map_or(Ok(()), |lba| Err(DeviceError::NoBlock(lba)))
    }

    /// Whether a command is about old names of an open batch.
    pub(super) fn touches_open_names(&self, command: &Command<'_>) -> bool {
        let Some(state) = self.renames.as_ref().filter(|state| !state.names.is_empty()) else { return false };
        match command {
            Command::Read { range, .. } | Command::Write { range, .. } => state.has_name_in(*range),
            Command::Discard { ranges } => {
                ranges.iter().any(|range| state.has_name_in(range.blocks_inside()))
            }
            Command::Remap { .. } => true,
            Command::Flush | Command::Devirtualize(_) => false,
        }
    }

    /// Performs a command on old names, block by block.
    pub(super) fn submit_renamed(
        &mut self,
        at: SimTime,
        command: Command<'_>,
    ) -> Result<SimTime, DeviceError> {
        match command {
            Command::Read { range, mut into } => range.iter().enumerate().try_fold(at, |done, (i, lba)| {
                let into = into.as_deref_mut().and_then(|into| into.get_mut(i..=i));
                Ok(done.max(self.read(at, self.by_new_name(lba), into)?))
            }),
            Command::Write { range, data, hints, fua } => self.write_renamed(at, range, data, hints, fua),
            Command::Discard { ranges } => {
                let mut all = ranges.to_vec();
                let old = ranges.iter().flat_map(|range| self.new_names_in(range.blocks_inside()));
                all.extend(old.map(|lba| SectorRange::from(BlockRange::new(lba, 1))));
                self.discard(at, &all)
            }
            _ => Err(DeviceError::RenamesOpen),
        }
    }

    fn write_renamed(
        &mut self,
        at: SimTime,
        range: BlockRange,
        data: Data<'_>,
        hints: Hints,
        fua: bool,
    ) -> Result<SimTime, DeviceError> {
        if data.blocks().is_some_and(|blocks| blocks != range.blocks) {
            let data = data.blocks().unwrap_or(0);
            return Err(DeviceError::LengthMismatch { range: range.blocks, data });
        }
        range.iter().enumerate().try_fold(at, |done, (i, lba)| {
            let block = [data.block(i as u64)];
            Ok(done.max(self.write(at, self.by_new_name(lba), Data::Blocks(&block), hints, fua)?))
        })
    }

    fn by_new_name(&self, lba: Lba) -> BlockRange {
        let new = self.renames.as_ref().and_then(|state| state.names.get(&lba));
        BlockRange::new(*new.unwrap_or(&lba), 1)
    }

    fn new_names_in(&self, range: BlockRange) -> Vec<Lba> {
        let Some(state) = &self.renames else { return Vec::new() };
        state.names.range(range.start..range.end()).map(|(_, &new)| new).collect()
    }

    /// A page of the host's has moved.
    pub(super) fn note_moved(&mut self, lpn: Lpn, inode: Inode) {
        let system = self.translation.is_own(lpn);
        let Some(state) = self.renames.as_mut().filter(|_| !system) else { return };
        if lpn.0 >= state.space.first.0 {
            state.moved.insert(inode);
        }
    }

    pub(super) fn is_batch_page(&self, lpn: Lpn) -> bool {
        self.renames.as_ref().is_some_and(|state| lpn.0 >= state.first_lpn)
    }

    /// A batch page can no longer be read: it is written anew from memory before anything is erased.
    pub(super) fn distrust_batch(&mut self) {
        if let Some(state) = &mut self.renames {
            state.must_rewrite = true;
        }
    }

    /// Writes the batch pages if one was lost.
    pub(super) fn mend_batch(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let Some(state) = self.renames.as_mut().filter(|state| state.must_rewrite) else { return Ok(()) };
        state.must_rewrite = false;
        let open = state.open.clone();
        // with the number that they have: those that are left and those that are new are one batch, wherever the power goes
        self.write_batch_pages(at, open.as_ref())?;
        Ok(())
    }

    /// Takes over what batch pages say after a power cut, and lists what lies elsewhere than its address says.
    pub(super) fn adopt_renames(&mut self, pages: Vec<BatchPage>) {
        let Some(space) = self.config.device_space() else { return };
        let open = newest_batch(pages).filter(|open| {
            let is_mapped = |rename: &Rename| self.translation.lookup(page_of(rename.from)).0.is_some();
            !open.renames.iter().any(is_mapped)
        });
        let mut named = Vec::new();
        self.translation.find_mapped(space.first.0..space.first.0 + space.blocks, usize::MAX, &mut named);
        let elsewhere = named.into_iter().filter(|(lpn, ppn)| lpn.0 != space.first.0 + u64::from(ppn.0));
        let moved = elsewhere.map(|(_, ppn)| self.medium.nand().inode(ppn)).collect();
        if let Some(state) = &mut self.renames {
            state.moved = moved;
            state.set_open(open);
        }
    }
}

/// The batch that was open when the power went, if its pages are all there.
fn newest_batch(pages: Vec<BatchPage>) -> Option<OpenRenames> {
    let newest = pages.iter().map(|page| page.seq).max()?;
    let of_newest: Vec<&BatchPage> = pages.iter().filter(|page| page.seq == newest).collect();
    let (id, total) = of_newest.first().map(|page| (page.id, page.total))?;
    let renames: Vec<Rename> = of_newest.iter().flat_map(|page| page.renames.iter().copied()).collect();
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
    let rename = |slot: &[u8]| Rename { from: Lba(u64_at(slot, 0)), to: Some(Lba(u64_at(slot, 8))) };
    let slots = body[ID_BYTES..].chunks_exact(RENAME_BYTES).take(header.count as usize);
    Some(SystemPage::Batch(BatchPage {
        seq: header.seq,
        total: header.first as usize,
        id: RenameId(u64_at(body, 0)),
        renames: slots.map(rename).collect(),
    }))
}
