//! Blocks reached by their device addresses: batches of renames.
//!
//! A rename is a remap whose destination is the page of the place where the source is: the map then
//! needs no entry for it (`translation/direct_map.rs`), and the log of remaps makes it atomic and
//! durable. What comes beside is that both names are one block until the batch is ended. The order
//! is the argument:
//! 1. *Batch pages* say which old name is to lead to which new one. They are waited for.
//! 2. The remap is logged and executed. The old names lead nowhere by themselves; commands on them
//!    are led to the new ones.
//! 3. Ending the batch makes the batch pages void, after a remap back if the old names stay.
//!
//! After a power cut the newest batch pages count if they are complete and their remap happened: it
//! did not if an old name is mapped, for in an open batch nothing is mapped by it. An ended batch
//! that comes back open is ended again by the issuer, and cannot if an old name was taken anew
//! meanwhile: then it is mapped.

use std::collections::BTreeSet;

use dovetail_block::{
    Answer, BlockRange, Command, Completion, Content, Data, DeviceError, Devirtualize, Hints,
    Inode, Lba, OpenRenames, RemapPair, Rename, RenameId, SectorRange,
};
use dovetail_nand::Lpn;
use dovetail_time::SimTime;

use super::Drive;
use super::remap::page_of;
use crate::metadata::renames::{BatchPage, batch_pages, newest_batch};
use crate::stats::Cause;

impl Drive {
    /// Carries out a command of the capability.
    pub(super) fn devirtualize(
        &mut self,
        at: SimTime,
        asked: Devirtualize<'_>,
    ) -> Result<Completion, DeviceError> {
        let Some(state) = &mut self.renames else {
            return Err(DeviceError::Unsupported("devirtualize"));
        };
        let completion = match asked {
            Devirtualize::Begin { id, renames } => self.begin_renames(at, id, renames)?,
            Devirtualize::End { id, keep } => Completion::at(self.end_renames(at, id, keep)?),
            Devirtualize::Open => Completion::with(at, Answer::OpenBatch(state.open().cloned())),
            Devirtualize::Moved => {
                Completion::with(at, Answer::Inodes(state.take_moved().into_iter().collect()))
            }
            Devirtualize::Held { range } => self.held(at, range)?,
        };
        self.empty_condemned(at)?;
        Ok(completion)
    }

    fn begin_renames(
        &mut self,
        at: SimTime,
        id: RenameId,
        renames: &[Rename],
    ) -> Result<Completion, DeviceError> {
        self.check_renames(renames)?;
        for rename in renames.iter() {
            self.send_dirty(at, rename.from)?;
        }
        for _ in 0..batch_pages(&self.config) {
            self.make_room(at)?;
        }
        self.make_room_in_log(at, renames.len())?;
        // From here on no page moves until the map has changed.
        let mut renames = renames.to_vec();
        let looked_up = self.find_places(at, &mut renames);
        let executed: Vec<Rename> =
            renames.iter().filter(|rename| rename.to.is_some()).copied().collect();
        if executed.is_empty() {
            return Ok(Completion::with(looked_up, Answer::Renames(renames)));
        }
        let pair = |rename: &Rename| Some(RemapPair { to: rename.to?, from: rename.from });
        let pairs: Vec<RemapPair> = executed.iter().filter_map(pair).collect();
        let open = OpenRenames { id, renames: executed };
        let written = self.write_batch(looked_up, Some(&open))?;
        // open from here on: a batch page that is lost while the log is written is to be written
        // again
        self.set_open_renames(Some(open));
        let done = self.carry_out(written, &pairs);
        if done.is_err() {
            self.set_open_renames(None);
        }
        Ok(Completion::with(done?, Answer::Renames(renames)))
    }

    fn check_renames(&mut self, renames: &[Rename]) -> Result<(), DeviceError> {
        let Some(state) = self.renames.as_deref() else { return Ok(()) };
        let (space, limit) = (state.space(), u64::from(state.space().most));
        if state.open().is_some() {
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
                    state.note_moved([inode]);
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

    fn end_renames(
        &mut self,
        at: SimTime,
        id: RenameId,
        keep: bool,
    ) -> Result<SimTime, DeviceError> {
        let Some(state) = &self.renames else { return Ok(at) };
        if state.open().is_none_or(|open| open.id != id) {
            return Ok(at);
        }
        let back = if keep { Vec::new() } else { state.moves_back() };
        let moved = self.execute(at, &back)?;
        self.make_room(at)?;
        let done = self.write_batch(moved, None)?;
        self.set_open_renames(None);
        Ok(done)
    }

    /// Writes which batch is open, no earlier than `at` and after what was said before; returns
    /// when that is durable.
    fn write_batch(
        &mut self,
        at: SimTime,
        open: Option<&OpenRenames>,
    ) -> Result<SimTime, DeviceError> {
        let seq = self.medium.take_seq();
        if let Some(state) = &mut self.renames {
            state.begin_batch(seq);
        }
        self.write_batch_pages(at, open)
    }

    fn write_batch_pages(
        &mut self,
        at: SimTime,
        open: Option<&OpenRenames>,
    ) -> Result<SimTime, DeviceError> {
        let Some(state) = &self.renames else { return Ok(at) };
        let (before, pages) = state.batch(&self.config, open);
        let at = at.max(before);
        let mut end = at;
        for (lpn, page) in &pages {
            let program = |drive: &mut Self| drive.program_system(at, *lpn, page, Cause::Remap);
            end = end.max(self.without_erasing(program)?);
        }
        if let Some(state) = &mut self.renames {
            state.batch_written(end);
        }
        Ok(end)
    }

    fn held(&self, at: SimTime, range: BlockRange) -> Result<Completion, DeviceError> {
        let blocks = self.config.host_pages();
        if range.end().0 > blocks {
            return Err(DeviceError::OutOfRange { range, blocks });
        }
        let mut found = Vec::new();
        self.translation.find_mapped(self.pages_of(range), usize::MAX, &mut found);
        let held = found.into_iter().map(|(lpn, _)| Lba(lpn.0)).collect();
        Ok(Completion::with(at, Answer::Addresses(held)))
    }

    /// Every device address in a range must lead to a block: only a rename gives one.
    pub(super) fn check_names(&self, range: BlockRange) -> Result<(), DeviceError> {
        if self.config.device_space().is_none_or(|space| range.start < space.first) {
            return Ok(());
        }
        let nothing = |lba: &Lba| self.translation.lookup(page_of(*lba)).0.is_none();
        range.iter().find(nothing).map_or(Ok(()), |lba| Err(DeviceError::NoBlock(lba)))
    }

    /// Tells whether a command is about old names of an open batch.
    pub(super) fn touches_open_names(&self, command: &Command<'_>) -> bool {
        let Some(state) = self.renames.as_ref().filter(|state| state.has_names()) else {
            return false;
        };
        match command {
            Command::Read { range, .. } | Command::Write { range, .. } => state.has_name_in(*range),
            Command::Discard { ranges } => {
                ranges.iter().any(|range| state.has_name_in(range.blocks_inside()))
            }
            Command::Remap { .. } => true,
            Command::Flush
            | Command::Devirtualize(_)
            | Command::Append { .. }
            | Command::Zone { .. }
            | Command::UpdateHandles(_)
            | Command::Query(_) => false,
        }
    }

    /// Performs a command on old names, block by block.
    pub(super) fn submit_renamed(
        &mut self,
        at: SimTime,
        command: Command<'_>,
    ) -> Result<SimTime, DeviceError> {
        match command {
            Command::Read { range, into } => self.read_renamed(at, range, into),
            Command::Write { range, data, hints, fua } => {
                self.write_renamed(at, range, data, hints, fua)
            }
            Command::Discard { ranges } => {
                let mut all = ranges.to_vec();
                let old = ranges.iter().flat_map(|range| self.new_names_in(range.blocks_inside()));
                all.extend(old.map(|lba| SectorRange::from(BlockRange::new(lba, 1))));
                self.discard(at, &all)
            }
            _ => Err(DeviceError::RenamesOpen),
        }
    }

    fn read_renamed(
        &mut self,
        at: SimTime,
        range: BlockRange,
        mut into: Option<&mut [Content]>,
    ) -> Result<SimTime, DeviceError> {
        self.check_range(range)?;
        let commands = self.counters.reads;
        let done = range.iter().enumerate().try_fold(at, |done, (i, lba)| {
            let into = into.as_deref_mut().and_then(|into| into.get_mut(i..=i));
            Ok(done.max(self.read(at, self.by_new_name(lba), into)?))
        });
        self.counters.reads = commands + 1;
        done
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
        self.check_range(range)?;
        let commands = self.counters.writes;
        let done = range.iter().enumerate().try_fold(at, |done, (i, lba)| {
            let block = [data.block(i as u64)];
            Ok(done.max(self.write(at, self.by_new_name(lba), Data::Blocks(&block), hints, fua)?))
        });
        self.counters.writes = commands + 1;
        done
    }

    fn by_new_name(&self, lba: Lba) -> BlockRange {
        BlockRange::new(self.renames.as_ref().map_or(lba, |state| state.new_name(lba)), 1)
    }

    fn new_names_in(&self, range: BlockRange) -> Vec<Lba> {
        self.renames.as_ref().map_or_else(Vec::new, |state| state.new_names_in(range))
    }

    /// A page of the host's has moved.
    pub(super) fn note_moved(&mut self, lpn: Lpn, inode: Inode) {
        let system = self.translation.is_own(lpn);
        let Some(state) = self.renames.as_mut().filter(|_| !system) else { return };
        if lpn.0 >= state.space().first.0 {
            state.note_moved([inode]);
        }
    }

    pub(super) fn is_batch_page(&self, lpn: Lpn) -> bool {
        self.renames.as_ref().is_some_and(|state| state.is_batch_page(lpn))
    }

    /// A batch page can no longer be read: it is written anew from memory before anything is
    /// erased.
    pub(super) fn distrust_batch(&mut self) {
        if let Some(state) = &mut self.renames {
            state.distrust();
        }
    }

    /// Writes the batch pages if one was lost.
    pub(super) fn mend_batch(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let Some(state) = &mut self.renames else { return Ok(()) };
        if !state.take_rewrite() {
            return Ok(());
        }
        let open = state.open().cloned();
        // with the number that they have: those that are left and those that are new are one batch,
        // wherever the power goes
        self.write_batch_pages(at, open.as_ref())?;
        Ok(())
    }

    /// Takes over what batch pages say after a power cut, and lists what lies elsewhere than its
    /// address says.
    pub(super) fn adopt_renames(&mut self, pages: Vec<BatchPage>) {
        let Some(space) = self.config.device_space() else { return };
        let newest = pages.iter().map(|page| page.seq).max();
        let open = newest_batch(pages).filter(|open| {
            let is_mapped =
                |rename: &Rename| self.translation.lookup(page_of(rename.from)).0.is_some();
            !open.renames.iter().any(is_mapped)
        });
        let mut named = Vec::new();
        self.translation.find_mapped(
            space.first.0..space.first.0 + space.blocks,
            usize::MAX,
            &mut named,
        );
        let elsewhere =
            named.into_iter().filter(|(lpn, ppn)| lpn.0 != space.first.0 + u64::from(ppn.0));
        let moved: Vec<Inode> = elsewhere.map(|(_, ppn)| self.medium.nand().inode(ppn)).collect();
        if let Some(state) = &mut self.renames {
            newest.into_iter().for_each(|seq| state.begin_batch(seq));
            state.note_moved(moved);
            state.set_open(open);
        }
    }
}

#[cfg(test)]
mod tests {
    use dovetail_block::{BlockDevice, Pattern, RemapLimits, Rename, RenameId};
    use dovetail_nand::{Geometry, Seq};
    use dovetail_time::SimSpan;

    use super::*;
    use crate::remap::{RemapConfig, RemapStore};
    use crate::{DriveConfig, mapping};

    /// Pages that are written anew after that are of the batch that recovery found.
    #[test]
    fn a_batch_keeps_its_number_over_a_power_cut() {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 30,
            pages_per_block: 16,
            page_bytes: 4096,
        };
        let mut drive = Drive::new(DriveConfig {
            scheme: mapping::scheme("hash").unwrap(),
            remap: Some(RemapConfig { limits: RemapLimits::of(64, 0), store: RemapStore::Log }),
            devirtualize: Some(64),
            idle_after: SimSpan::from_ms(1000),
            ..DriveConfig::plain(geometry, 300)
        })
        .unwrap();
        let range = BlockRange::new(Lba(0), 1);
        let data = Data::Patterns(Pattern::new(1));
        let write = Command::Write { range, data, hints: Hints::default(), fua: true };
        let at = drive.submit(SimTime::ZERO, write).unwrap().done;
        let renames = &[Rename { from: Lba(0), to: None }];
        let begin = Devirtualize::Begin { id: RenameId(3), renames };
        drive.submit(at, Command::Devirtualize(begin)).unwrap();
        let before = drive.renames.as_ref().unwrap().seq();
        assert!(before > Seq::default());
        let (drive, _) = drive.into_unrecovered().recover().unwrap();
        let state = drive.renames.as_ref().unwrap();
        assert_eq!(state.seq(), before);
        assert!(state.open().is_some());
    }
}
