//! Ownership: which logical page a flash page belongs to, and since when.
//!
//! A page belongs to the logical page that its out-of-band area names, unless a remap gave it to
//! another one. Then the *reverse map* says so. Here is also when that is durable: remaps complete
//! in order, and nothing that rests on one may be durable before it.

mod nvm;
mod reverse;
mod segmented_log;

use std::borrow::Cow;
use std::collections::VecDeque;

use dovetail_block::{DeviceError, DeviceInfo, HeldRemaps, RemapPair, RemapWhen};
use dovetail_nand::{BlockId, Lpn, Nand, Ppn, Seq};
use dovetail_time::SimTime;

use crate::config::DriveConfig;
use crate::metadata::journal::Record;
use crate::metadata::remap_log::RemapLog;
use crate::remap::RemapStore;
pub(crate) use nvm::{Nvm, Survivor};
pub(crate) use reverse::{Remapped, ReverseMap};
pub(crate) use segmented_log::{LogLine, SegmentedLog, entries_per_segment, least_segments};

/// One pair, with the page that moves; `None` where the source holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// The flash page.
    pub(crate) ppn: Option<Ppn>,
    /// Its new owner.
    pub(crate) to: Lpn,
    /// Its owner before.
    pub(crate) from: Lpn,
}

/// The pages of which every version before a remap is dead: its sources, and destinations of
/// nothing.
pub(crate) fn deaths(moves: &[Move]) -> impl Iterator<Item = Lpn> {
    moves
        .iter()
        .flat_map(|&Move { ppn, to, from }| [Some(from), ppn.is_none().then_some(to)])
        .flatten()
}

/// The owners of flash pages.
#[derive(Clone, Debug)]
pub(crate) struct Ownership {
    /// Of a drive that remaps.
    remaps: Option<Box<Remaps>>,
}

/// Remaps, held, under way and done.
#[derive(Clone, Debug)]
struct Remaps {
    held: HeldRemaps,
    reverse: ReverseMap,
    nvm: Option<Nvm>,
    log: Option<RemapLog>,
    /// Remaps that may not be durable yet, and when they are.
    under_way: VecDeque<(Seq, SimTime)>,
    /// Time when the last one is durable.
    end: SimTime,
    /// Time when the last program of each block ends.
    block_ends: Vec<SimTime>,
}

impl Remaps {
    /// As the configuration says; `None` for a drive that does not remap.
    fn new(config: &DriveConfig) -> Option<Box<Self>> {
        let remap = config.remap?;
        let (nvm, log) = match remap.store {
            RemapStore::NonVolatile { access, discard_records } => {
                (Some(Nvm::new(access, discard_records)), None)
            }
            RemapStore::SegmentedLog { access, discard_records, segments, .. } => {
                let log = SegmentedLog::new(config, segments);
                let nvm = Nvm::new(access, discard_records).with_log(log);
                (Some(nvm), Some(RemapLog::new(config)))
            }
            RemapStore::Log => (None, Some(RemapLog::new(config))),
        };
        Some(Box::new(Self {
            held: HeldRemaps::default(),
            reverse: ReverseMap::new(config.nand.geometry),
            nvm,
            log,
            under_way: VecDeque::new(),
            end: SimTime::ZERO,
            block_ends: vec![SimTime::ZERO; config.nand.geometry.blocks() as usize],
        }))
    }

    /// Returns when the remap with that sequence number is durable, as far as that is still to
    /// come.
    #[inline]
    fn durable_at(&self, seq: Seq) -> SimTime {
        let found = self.under_way.iter().find(|(under_way, _)| *under_way == seq);
        found.map_or(SimTime::ZERO, |(_, end)| *end)
    }
}

impl Ownership {
    /// Every page belongs to whom its out-of-band area names.
    pub(crate) fn new(config: &DriveConfig) -> Self {
        Self { remaps: Remaps::new(config) }
    }

    /// The logical page to which a programmed page belongs, and the remap that made it so, if one
    /// did.
    #[inline]
    pub(crate) fn owner(&self, nand: &Nand, ppn: Ppn) -> (Lpn, Option<Seq>) {
        match self.remapped(ppn) {
            Some(entry) => (entry.lpn, Some(entry.seq)),
            None => (nand.owner(ppn).0, None),
        }
    }

    /// The entry of a page in the reverse map.
    #[inline]
    pub(crate) fn remapped(&self, ppn: Ppn) -> Option<Remapped> {
        self.remaps.as_ref().and_then(|remaps| remaps.reverse.get(ppn))
    }

    /// Takes over the reverse map and the remaps in the log as they were found after a power cut.
    /// Distrusts the log if pages of it were lost.
    pub(crate) fn adopt<'a>(
        &mut self,
        reverse: ReverseMap,
        logged: impl Iterator<Item = &'a [Move]>,
        are_lost: bool,
    ) {
        let Some(remaps) = &mut self.remaps else { return };
        if let Some(log) = &mut remaps.log {
            log.found(logged);
        }
        remaps.reverse = reverse;
        if are_lost {
            self.distrust_log();
        }
    }

    /// A log or table page can no longer be read: all tables are to be written anew, from memory.
    pub(crate) fn distrust_log(&mut self) {
        let Some(Remaps { log: Some(log), reverse, .. }) = self.remaps.as_deref_mut() else {
            return;
        };
        log.distrust(reverse.iter().map(|(ppn, _)| ppn));
    }

    /// Gives the pages of a remap that is durable at `end` to their new owners.
    pub(crate) fn apply(&mut self, end: SimTime, seq: Seq, moves: &[Move]) {
        let Some(remaps) = &mut self.remaps else { return };
        for &Move { ppn, to, .. } in moves {
            let Some(ppn) = ppn else { continue };
            let entry = Remapped { lpn: to, seq };
            let before = remaps.reverse.set(ppn, Some(entry));
            if let Some(nvm) = &mut remaps.nvm {
                nvm.note_entry(end, (ppn, entry), before);
            }
        }
    }

    /// A remap that was issued at `at` is durable at `end`.
    pub(crate) fn note_remap(&mut self, at: SimTime, seq: Seq, end: SimTime) {
        let Some(remaps) = &mut self.remaps else { return };
        debug_assert!(remaps.end <= end, "remaps must complete in order");
        while remaps.under_way.front().is_some_and(|(_, end)| *end <= at) {
            remaps.under_way.pop_front();
        }
        remaps.under_way.push_back((seq, end));
        remaps.end = end;
    }

    /// Returns when the remap that gave a page its owner is durable. A copy must not be there
    /// before: the owner would have moved alone.
    pub(crate) fn durable_at(&self, remap: Option<Seq>) -> SimTime {
        match (&self.remaps, remap) {
            (Some(remaps), Some(seq)) => remaps.durable_at(seq),
            _ => SimTime::ZERO,
        }
    }

    /// Returns when the content of all sources is on flash, and every remap before this one
    /// durable; not before `at`.
    pub(crate) fn content_is_durable(&self, at: SimTime, moves: &[Move]) -> SimTime {
        let Some(remaps) = &self.remaps else { return at };
        let end = |ppn| remaps.block_ends[remaps.reverse.locate(ppn).0.0 as usize];
        moves.iter().filter_map(|entry| entry.ppn).map(end).fold(at.max(remaps.end), SimTime::max)
    }

    /// A page is programmed at `end`.
    #[inline]
    pub(crate) fn note_program(&mut self, ppn: Ppn, end: SimTime) {
        if let Some(remaps) = &mut self.remaps {
            let block = remaps.reverse.locate(ppn).0;
            let last = &mut remaps.block_ends[block.0 as usize];
            *last = end.max(*last);
        }
    }

    /// A block is erased at `end`: what its pages held is of no more interest.
    pub(crate) fn note_erase(&mut self, block: BlockId, end: SimTime) {
        let Some(remaps) = &mut self.remaps else { return };
        let entries = remaps.reverse.forget(block);
        if let Some(nvm) = &mut remaps.nvm {
            nvm.note_erase(end, block, entries);
        }
    }

    /// Checks that pairs can be remapped; returns all that are to be remapped now: with those that
    /// were held before, which are held no more, or none if these are to be held.
    ///
    /// # Errors
    /// A drive that does not remap, pairs that it cannot take.
    pub(crate) fn admit<'a>(
        &mut self,
        info: &DeviceInfo,
        pairs: &'a [RemapPair],
        when: RemapWhen,
    ) -> Result<Cow<'a, [RemapPair]>, DeviceError> {
        let Some(remaps) = &mut self.remaps else { return Err(DeviceError::Unsupported("remap")) };
        remaps.held.admit(info, pairs, when)?;
        Ok(remaps.held.executed_with(pairs, when))
    }

    /// The non-volatile memory of the drive.
    pub(crate) fn nvm(&self) -> Option<&Nvm> {
        self.remaps.as_ref().and_then(|remaps| remaps.nvm.as_ref())
    }

    /// The same, to write to.
    pub(crate) fn nvm_mut(&mut self) -> Option<&mut Nvm> {
        self.remaps.as_mut().and_then(|remaps| remaps.nvm.as_mut())
    }

    /// The log of remaps on flash.
    pub(crate) fn log(&self) -> Option<&RemapLog> {
        self.remaps.as_ref().and_then(|remaps| remaps.log.as_ref())
    }

    /// The same, to write to.
    pub(crate) fn log_mut(&mut self) -> Option<&mut RemapLog> {
        self.remaps.as_mut().and_then(|remaps| remaps.log.as_mut())
    }

    /// Bytes of the drive's own volatile memory: a reverse map whose durable form is on flash.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let Some(Remaps { log: Some(log), reverse, .. }) = self.remaps.as_deref() else { return 0 };
        reverse.pages() * log.entry_bytes()
    }

    /// The non-volatile memory after a power cut, as of a time if it is given.
    pub(crate) fn into_survivor(
        self,
        cut: Option<SimTime>,
        records: Vec<Record>,
    ) -> Option<Survivor> {
        let remaps = self.remaps?;
        Some(remaps.nvm?.survive(cut, remaps.reverse, records))
    }

    /// As [`Ownership::into_survivor`], of a drive that goes on.
    pub(crate) fn survivor(&self, cut: SimTime, records: &[Record]) -> Option<Survivor> {
        let remaps = self.remaps.as_ref()?;
        Some(remaps.nvm.clone()?.survive(Some(cut), remaps.reverse.clone(), records.to_vec()))
    }

    /// Checks that the reverse map agrees with the flash, and that `is_at` finds each page at its
    /// owner.
    ///
    /// # Errors
    /// The first disagreement, in words.
    pub(crate) fn check(
        &self,
        nand: &Nand,
        is_at: impl Fn(Lpn, Ppn) -> bool,
    ) -> Result<(), String> {
        let Some(remaps) = &self.remaps else { return Ok(()) };
        for (ppn, Remapped { lpn, seq }) in remaps.reverse.iter() {
            let programmed = nand.oob(ppn).map(|oob| oob.seq);
            if programmed.is_none_or(|programmed| programmed >= seq) {
                return Err(format!(
                    "{ppn:?} was remapped at {seq:?}, but programmed at {programmed:?}"
                ));
            }
            if !is_at(lpn, ppn) {
                return Err(format!("{ppn:?} belongs to {lpn:?}, which is mapped elsewhere"));
            }
        }
        Ok(())
    }
}
