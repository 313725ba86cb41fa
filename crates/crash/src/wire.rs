//! The way from a file system to its drive, on which power cuts are chosen and taken.
//!
//! A cut is taken between two moments of the drive: within each program and erase (it is torn), at
//! its end, at the end of each write to non-volatile memory, and when an operation that promised
//! something has returned. Between two of these a cut leaves the same.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dovetail_block::BlockRange;
use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, Lba, held_blocks, performs_at_once,
};
use dovetail_ftl::{Drive, UnrecoveredDrive};
use dovetail_time::SimTime;

use crate::rig::filling;

/// The moments that are cut.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// None: they are counted.
    None,
    /// Every one.
    All,
    /// Those with these numbers.
    These(BTreeSet<u64>),
}

impl Choice {
    fn takes(&self, number: u64) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::These(numbers) => numbers.contains(&number),
        }
    }
}

/// A drive after a power cut.
#[derive(Debug)]
pub(crate) struct Cut {
    /// The moment's number in its run, from 0 on.
    pub(crate) number: u64,
    pub(crate) at: SimTime,
    pub(crate) drive: UnrecoveredDrive,
}

/// Moments are counted, and some are cut.
#[derive(Debug)]
struct Harvest {
    choice: Choice,
    /// Moments up to here are dealt with.
    done_to: SimTime,
    seen: u64,
    persistence: BTreeSet<u64>,
    taken: Vec<Cut>,
}

#[derive(Debug)]
struct State {
    drive: Drive,
    harvest: Option<Harvest>,
    /// End of the last command so far.
    end: SimTime,
    blocks_read: u64,
    /// Blocks that were written, discarded or moved.
    touched: HashSet<Lba>,
}

/// A handle on the drive; the file system has one, whoever explores it another.
#[derive(Clone, Debug)]
pub(crate) struct Wire(Arc<Mutex<State>>);

impl Wire {
    pub(crate) fn new(drive: Drive) -> Self {
        Self(Arc::new(Mutex::new(State {
            drive,
            harvest: None,
            end: SimTime::ZERO,
            blocks_read: 0,
            touched: HashSet::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses among the moments from `from` on.
    pub(crate) fn begin(&self, from: SimTime, choice: Choice) {
        let mut state = self.state();
        state.drive.remember_operations();
        state.harvest = Some(Harvest {
            choice,
            done_to: from,
            seen: 0,
            persistence: BTreeSet::new(),
            taken: Vec::new(),
        });
    }

    /// An operation that promised something has returned at `at`.
    pub(crate) fn persisted(&self, at: SimTime) {
        let mut state = self.state();
        state.harvest_until(at);
        if let Some(harvest) = &mut state.harvest {
            harvest.persistence.insert(harvest.seen);
        }
        state.moment(at);
    }

    /// Nothing comes any more: the moments of what is still under way.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        let end = SimTime::from_ns(state.drive.idle_from().max(state.end).as_ns() + 1);
        state.harvest_until(end);
    }

    /// The cuts since the last time.
    pub(crate) fn take(&self) -> Vec<Cut> {
        self.state()
            .harvest
            .as_mut()
            .map(|harvest| std::mem::take(&mut harvest.taken))
            .unwrap_or_default()
    }

    /// The number of moments, and those at which an operation that promised something returned.
    pub(crate) fn moments(&self) -> (u64, BTreeSet<u64>) {
        let state = self.state();
        state.harvest.as_ref().map_or((0, BTreeSet::new()), |h| (h.seen, h.persistence.clone()))
    }

    /// End of the last command so far, and the number of blocks read.
    pub(crate) fn work(&self) -> (SimTime, u64) {
        let state = self.state();
        (state.end, state.blocks_read)
    }

    /// Remembers what [`Self::cut_at`] needs.
    pub(crate) fn remember(&self) {
        self.state().drive.remember_operations();
    }

    /// The drive as a power cut at a time leaves it.
    pub(crate) fn cut_at(&self, at: SimTime) -> UnrecoveredDrive {
        self.state().drive.after_power_cut(at)
    }

    /// Gives back a range.
    pub(crate) fn discard(&self, range: BlockRange) -> Result<(), DeviceError> {
        let mut state = self.state();
        let at = state.end;
        state.drive.submit(at, Command::Discard { ranges: &[range.into()] }).map(drop)
    }

    /// The first of these blocks that is not as it was filled ([`crate::rig::filling`]), of those
    /// that `since` has not touched.
    pub(crate) fn first_lost(
        &self,
        filled: &[Lba],
        blocks: u64,
        since: &Self,
    ) -> Result<Option<Lba>, DeviceError> {
        let since = since.state();
        let mut state = self.state();
        let at = state.end;
        // neither by the workload nor by the recovery of this cut
        let untouched: Vec<Lba> = filled
            .iter()
            .filter(|lba| !since.touched.contains(lba) && !state.touched.contains(lba))
            .copied()
            .collect();
        for lba in untouched {
            let mut into = [dovetail_block::Content::Empty];
            let read = Command::Read { range: BlockRange::new(lba, 1), into: Some(&mut into) };
            state.drive.submit(at, read)?;
            if into[0] != dovetail_block::Content::Pattern(filling(lba, blocks)) {
                return Ok(Some(lba));
            }
        }
        Ok(None)
    }

    /// Compares the drive's maps with its flash.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.state().drive.check()
    }

    /// The moments of the remembered changes of the flash.
    pub(crate) fn changes(&self) -> Vec<SimTime> {
        let state = self.state();
        let mut all: Vec<SimTime> =
            state.drive.remembered_operations().flat_map(|(a, b)| [middle(a, b), b]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The drive's content, for other programs: every block that holds bytes.
    pub(crate) fn bytes(&self) -> Vec<(Lba, dovetail_block::Content)> {
        let mut state = self.state();
        let (blocks, at) = (state.drive.info().blocks, state.end);
        let range = BlockRange::new(Lba(0), blocks);
        let held =
            held_blocks(&mut state.drive, range, usize::MAX).ok().flatten().unwrap_or_default();
        let mut all = Vec::new();
        for lba in held {
            let mut into = [dovetail_block::Content::Empty];
            let range = BlockRange::new(lba, 1);
            if state.drive.submit(at, Command::Read { range, into: Some(&mut into) }).is_ok() {
                let [content] = into;
                all.push((lba, content));
            }
        }
        all
    }
}

fn middle(start: SimTime, end: SimTime) -> SimTime {
    SimTime::from_ns(start.as_ns() + (end.as_ns() - start.as_ns()) / 2)
}

impl State {
    fn note(&mut self, command: &Command<'_>) {
        match command {
            Command::Read { range, .. } => self.blocks_read += range.blocks,
            Command::Write { range, .. } => self.touched.extend(range.iter()),
            Command::Discard { ranges } if self.drive.info().capabilities.thin.is_none() => {
                let ranges = ranges.iter().map(|range| range.blocks_inside());
                self.touched.extend(ranges.flat_map(|range| range.iter().collect::<Vec<_>>()));
            }
            Command::Remap { pairs, .. } => {
                self.touched.extend(pairs.iter().flat_map(|pair| [pair.from, pair.to]));
            }
            _ => {}
        }
    }

    /// Deals with the moments before `end`. All commands so far were submitted before it, so
    /// operations that begin later are undone by a cut.
    fn harvest_until(&mut self, end: SimTime) {
        let Some(harvest) = &self.harvest else { return };
        let from = harvest.done_to;
        let moments: BTreeSet<SimTime> = self
            .drive
            .remembered_operations()
            .flat_map(|(start, through)| [middle(start, through), through])
            .filter(|at| *at > from && *at < end)
            .collect();
        moments.into_iter().for_each(|at| self.moment(at));
        if let Some(harvest) = &mut self.harvest {
            let before = SimTime::from_ns(end.as_ns().saturating_sub(1));
            harvest.done_to = harvest.done_to.max(before);
            self.drive.forget_operations_before(harvest.done_to);
        }
    }

    fn moment(&mut self, at: SimTime) {
        let Some(harvest) = &mut self.harvest else { return };
        let number = harvest.seen;
        harvest.seen += 1;
        if harvest.choice.takes(number) {
            harvest.taken.push(Cut { number, at, drive: self.drive.after_power_cut(at) });
        }
    }
}

impl BlockDevice for Wire {
    fn info(&self) -> DeviceInfo {
        self.state().drive.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        let state = &mut *self.state();
        if let Command::Query(_) = command {
            return state.drive.submit(at, command);
        }
        state.note(&command);
        let completion = state.drive.submit(at, command)?;
        state.end = state.end.max(completion.done);
        state.harvest_until(at);
        Ok(completion)
    }
}

performs_at_once!(Wire);
