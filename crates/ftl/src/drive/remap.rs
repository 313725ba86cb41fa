//! The remap command: content moves to other addresses without being programmed again.
//!
//! The order of what happens is the argument for its atomicity:
//! 1. Sources that are in the write buffer only are sent to flash; their programs are waited for.
//! 2. What says where each page belongs now is made durable, as one: in non-volatile memory (`nvm.rs`), or in log
//!    pages on flash (`remap_log.rs`). The command is acknowledged when that is done.
//! 3. The map points the destinations at the pages, the sources nowhere.
//!
//! State changes at issue, time follows: between issue and acknowledgement a power cut at a time takes the remap back. So
//! nothing that rests on it may be durable earlier: remaps complete in order, a page that is moved on behalf of its
//! new owner waits for the remap, and so do erases, bitmap pages and flushes.

use std::collections::VecDeque;

use dovetail_block::{DeviceError, HeldRemaps, Lba, RemapPair, RemapWhen};
use dovetail_nand::{BlockId, Lpn, Ppn, Seq};
use dovetail_time::{SimSpan, SimTime};

use super::journal::Record;
use super::nvm::{Nvm, Survivor};
use super::remap_log::RemapLog;
use super::reverse::{Remapped, ReverseMap};
use super::said::Said;
use super::{Drive, Piece, unless_worn_out};
use crate::cache::Access;
use crate::config::DriveConfig;
use crate::remap::RemapStore;

/// One pair, with the page that moves; `None` where the source holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) ppn: Option<Ppn>,
    pub(super) to: Lpn,
    pub(super) from: Lpn,
}

/// The pages of which every version before a remap is dead: its sources, and destinations of nothing.
pub(super) fn deaths(moves: &[Move]) -> impl Iterator<Item = Lpn> {
    moves.iter().flat_map(|&Move { ppn, to, from }| [Some(from), ppn.is_none().then_some(to)]).flatten()
}

/// What a drive that remaps keeps for it.
#[derive(Debug)]
pub(super) struct Remaps {
    held: HeldRemaps,
    pub(super) reverse: ReverseMap,
    pub(super) nvm: Option<Nvm>,
    pub(super) log: Option<RemapLog>,
    /// Remaps that may not be durable yet, and when they are.
    under_way: VecDeque<(Seq, SimTime)>,
    /// When the last one is durable.
    end: SimTime,
    /// When the last program of each block ends.
    block_ends: Vec<SimTime>,
}

impl Remaps {
    /// What the configuration asks for; `None` for a drive that does not remap.
    pub(super) fn new(config: &DriveConfig) -> Option<Box<Self>> {
        let remap = config.remap?;
        let (nvm, log) = match remap.store {
            RemapStore::NonVolatile { access, discard_records } => {
                (Some(Nvm::new(access, discard_records)), None)
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

    /// Bytes of the drive's own volatile memory: a reverse map whose durable form is on flash.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| self.reverse.pages() * log.entry_bytes())
    }

    /// What a power cut leaves of it, as of a time if it is given.
    pub(super) fn into_survivor(self, cut: Option<SimTime>, records: Vec<Record>) -> Option<Survivor> {
        self.nvm.map(|nvm| nvm.survive(cut, self.reverse, records))
    }

    /// As [`Remaps::into_survivor`], of a drive that goes on.
    pub(super) fn survivor(&self, cut: SimTime, records: &[Record]) -> Option<Survivor> {
        let nvm = self.nvm.clone()?;
        Some(nvm.survive(Some(cut), self.reverse.clone(), records.to_vec()))
    }

    /// When the remap with that sequence number is durable, as far as that is still to come.
    fn durable_at(&self, seq: Seq) -> SimTime {
        let found = self.under_way.iter().find(|(under_way, _)| *under_way == seq);
        found.map_or(SimTime::ZERO, |(_, end)| *end)
    }

    /// A block is erased at `end`: what its pages held is of no more interest.
    pub(super) fn note_erase(&mut self, block: BlockId, end: SimTime) {
        let Some(entries) = self.reverse.forget(block) else { return };
        if let Some(nvm) = &mut self.nvm {
            nvm.note_erase(end, block, entries);
        }
    }

    fn note(&mut self, at: SimTime, seq: Seq, end: SimTime) {
        while self.under_way.front().is_some_and(|(_, end)| *end <= at) {
            self.under_way.pop_front();
        }
        self.under_way.push_back((seq, end));
        self.end = end;
    }
}

impl Drive {
    /// Moves pairs of blocks, now or later; returns when that is durable.
    pub(super) fn remap(
        &mut self,
        at: SimTime,
        pairs: &[RemapPair],
        when: RemapWhen,
    ) -> Result<SimTime, DeviceError> {
        let info = self.device_info();
        let Some(remaps) = &mut self.remaps else { return Err(DeviceError::Unsupported("remap")) };
        remaps.held.admit(&info, pairs, when)?;
        let mut done = at;
        if !matches!(when, RemapWhen::Held(_)) {
            let all = [remaps.held.of(when), pairs].concat();
            done = self.execute(at, &all)?;
        }
        if let Some(remaps) = &mut self.remaps {
            remaps.held.take(pairs, when);
        }
        self.counters.remaps += 1;
        // It is carried out: a host that was told of an error would repeat it and find nothing at its sources.
        unless_worn_out(self.empty_condemned(at))?;
        Ok(done)
    }

    /// Executes pairs as one; returns when that is durable.
    pub(super) fn execute(&mut self, at: SimTime, pairs: &[RemapPair]) -> Result<SimTime, DeviceError> {
        if pairs.is_empty() {
            return Ok(at);
        }
        for pair in pairs {
            self.send_source(at, pair.from)?;
        }
        let at = self.want_pairs(at, pairs)?;
        self.make_room_in_log(at, pairs.len())?;
        self.carry_out(at, pairs)
    }

    /// What is in the write buffer only goes to flash.
    pub(super) fn send_source(&mut self, at: SimTime, from: Lba) -> Result<(), DeviceError> {
        if self.buffer.dirty_mut(page_of(from)).is_some() {
            self.send(at, page_of(from))?;
        }
        Ok(())
    }

    /// Executes pairs whose sources are on flash, and for which there is room in the log: from here on no page moves until the
    /// map has changed.
    pub(super) fn carry_out(&mut self, at: SimTime, pairs: &[RemapPair]) -> Result<SimTime, DeviceError> {
        let (moves, looked_up) = self.resolve(at, pairs);
        let ready = self.content_is_durable(looked_up, &moves);
        let seq = self.medium.take_seq();
        let end = match self.nvm() {
            Some(_) => self.write_intent(ready, seq, &moves)?,
            None => self.without_erasing(|drive| drive.write_log(ready, seq, &moves))?,
        };
        let updated = self.move_map(&moves);
        self.apply_intent(end, seq, &moves);
        self.note_remap(at, seq, end, pairs.len());
        self.write_full_records(at)?;
        Ok(end + updated)
    }

    fn want_pairs(&mut self, mut at: SimTime, pairs: &[RemapPair]) -> Result<SimTime, DeviceError> {
        for pair in pairs {
            at = self.want(at, page_of(pair.from), Access::Trim)?;
            at = self.want(at, page_of(pair.to), Access::Trim)?;
        }
        Ok(at)
    }

    /// Looks the sources up; returns also when that is done.
    fn resolve(&mut self, at: SimTime, pairs: &[RemapPair]) -> (Vec<Move>, SimTime) {
        let mut spent = SimSpan::ZERO;
        let mut resolve = |pair: &RemapPair| {
            let (to, from) = (page_of(pair.to), page_of(pair.from));
            let (ppn, cost) = self.translation.lookup(from);
            spent += self.charge(cost);
            Move { ppn, to, from }
        };
        let moves = pairs.iter().map(&mut resolve).collect();
        (moves, at + spent)
    }

    /// When the content of all sources is on flash, and every remap before this one durable.
    fn content_is_durable(&self, at: SimTime, moves: &[Move]) -> SimTime {
        let Some(remaps) = &self.remaps else { return at };
        let end = |ppn| remaps.block_ends[remaps.reverse.locate(ppn).0.0 as usize];
        moves.iter().filter_map(|entry| entry.ppn).map(end).fold(at.max(remaps.end), SimTime::max)
    }

    /// Points the destinations at the pages and the sources nowhere; returns what the map takes for it.
    fn move_map(&mut self, moves: &[Move]) -> SimSpan {
        let mut spent = SimSpan::ZERO;
        for &Move { ppn, to, from } in moves {
            self.drop_from_buffer(to);
            self.drop_from_buffer(from);
            let (_, unmapped) = self.point_at(from, None);
            let (before, mapped) = self.point_at(to, ppn);
            spent += self.charge(unmapped);
            spent += self.charge(mapped);
            if let Some(before) = before {
                self.invalidate(before);
            }
        }
        spent
    }

    fn drop_from_buffer(&mut self, lpn: Lpn) {
        self.discard_in_buffer(Piece { lpn, first_part: 0, parts: 1, offset: 0 });
    }

    fn note_remap(&mut self, at: SimTime, seq: Seq, end: SimTime, pairs: usize) {
        self.counters.remapped_pairs += pairs as u64;
        if let Some(remaps) = &mut self.remaps {
            remaps.note(at, seq, end);
        }
    }

    /// Which logical page a programmed page belongs to, and as of which remap if one made it so.
    pub(super) fn owner(&self, ppn: Ppn) -> (Lpn, Option<Seq>) {
        match self.remapped(ppn) {
            Some(entry) => (entry.lpn, Some(entry.seq)),
            None => (self.medium.nand().owner(ppn).0, None),
        }
    }

    pub(super) fn remapped(&self, ppn: Ppn) -> Option<Remapped> {
        self.remaps.as_ref().and_then(|remaps| remaps.reverse.get(ppn))
    }

    /// When the remap that gave a page its owner is durable. A copy must not be there before: the owner would have
    /// moved alone.
    pub(super) fn durable_at(&self, remap: Option<Seq>) -> SimTime {
        match (&self.remaps, remap) {
            (Some(remaps), Some(seq)) => remaps.durable_at(seq),
            _ => SimTime::ZERO,
        }
    }

    /// A page is programmed at `end`.
    pub(super) fn note_program_end(&mut self, ppn: Ppn, end: SimTime) {
        if let Some(remaps) = &mut self.remaps {
            let block = remaps.reverse.locate(ppn).0;
            let last = &mut remaps.block_ends[block.0 as usize];
            *last = end.max(*last);
        }
    }

    /// Takes over the reverse map and the log as they were found after a power cut.
    pub(super) fn adopt_remaps(&mut self, said: Said) {
        let Some(remaps) = &mut self.remaps else { return };
        if let Some(log) = &mut remaps.log {
            log.found(said.logged());
        }
        remaps.reverse = said.reverse;
        if said.lost > 0 {
            self.distrust_log();
        }
    }

    /// Checks that reverse and forward map agree.
    pub(super) fn check_reverse(&self) -> Result<(), String> {
        let Some(remaps) = &self.remaps else { return Ok(()) };
        for (ppn, Remapped { lpn, seq }) in remaps.reverse.iter() {
            let programmed = self.medium.nand().oob(ppn).map(|oob| oob.seq);
            if programmed.is_none_or(|programmed| programmed >= seq) {
                return Err(format!("{ppn:?} was remapped at {seq:?}, but programmed at {programmed:?}"));
            }
            if self.medium.lines().is_valid(ppn) && self.translation.lookup(lpn).0 != Some(ppn) {
                let mapped = self.translation.lookup(lpn).0;
                return Err(format!("{ppn:?} belongs to {lpn:?}, which is mapped to {mapped:?}"));
            }
        }
        Ok(())
    }
}

/// The page of a block, on a drive whose pages are blocks.
pub(super) fn page_of(lba: Lba) -> Lpn {
    Lpn(lba.0)
}
