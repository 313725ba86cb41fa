//! Byte-addressable non-volatile memory in the drive: the reverse map and the newest records of
//! discards survive a power cut there.
//!
//! One entry is written at once or not at all. A remap writes its entries one by one beside the
//! table; the last one completes it, and only then do they go into the table (a redo log). What a
//! power cut leaves incomplete is dropped. Entries of a block are dropped when it is erased;
//! recovery does not rest on that: an entry that is older than the page at its place says nothing.
//!
//! Writes come in order, so that what is there at any time is what the drive knew at some time. A
//! drive that remembers its operations (for tests) keeps what undoes them, to cut the power at a
//! time.

use dovetail_nand::{BlockId, Ppn, Seq};
use dovetail_time::{SimSpan, SimTime};

use super::reverse::{BlockEntries, Remapped, ReverseMap};
use super::segmented_log::{Entry, LogLine, SegmentedLog};
use super::{Move, deaths};
use crate::metadata::journal::Record;

/// A change that one write made, to undo it.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Entry {
        ppn: Ppn,
        before: Option<Remapped>,
    },
    /// A record was added, or grew from this.
    Record(Option<Record>),
    /// Records went to flash.
    Drained(Vec<Record>),
    Erased(BlockId, BlockEntries),
    /// An entry of this page was added to the log.
    Logged(Ppn),
    /// Entries of the log were dropped.
    Freed(Vec<Entry>),
}

/// The entries of a remap that is being written.
#[derive(Clone, Debug)]
struct Intent {
    seq: Seq,
    total: usize,
    moves: Vec<Move>,
}

/// A planned power cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Entries that are still written before.
    after: u64,
    /// Set if the entry being written is there afterwards.
    written: bool,
}

/// The memory, but for the reverse map and the records themselves: those stand where drives without
/// it have them, too.
#[derive(Clone, Debug)]
pub(crate) struct Nvm {
    access: SimSpan,
    room: usize,
    /// In place of the table: the entries in the order of their remaps.
    log: Option<SegmentedLog>,
    intent: Option<Intent>,
    /// Time when all that was written so far is there.
    end: SimTime,
    cut: Option<Cut>,
    undo: Option<Vec<(SimTime, Change)>>,
}

/// The memory after a power cut.
#[derive(Clone, Debug)]
pub(crate) struct Survivor {
    reverse: ReverseMap,
    log: Option<SegmentedLog>,
    records: Vec<Record>,
    /// Set if changes are kept to be undone.
    remembers: bool,
    intent: Option<Intent>,
}

impl Nvm {
    /// Empty memory with room for so many records of discards.
    pub(crate) fn new(access: SimSpan, room: u32) -> Self {
        Self {
            access,
            room: room as usize,
            log: None,
            intent: None,
            end: SimTime::ZERO,
            cut: None,
            undo: None,
        }
    }

    /// The same with a log in place of the table.
    pub(crate) fn with_log(self, log: SegmentedLog) -> Self {
        Self { log: Some(log), ..self }
    }

    /// The log, if there is one in place of the table.
    pub(crate) fn log(&self) -> Option<&SegmentedLog> {
        self.log.as_ref()
    }

    /// Goes on with the log that a power cut has left.
    pub(crate) fn adopt_log(&mut self, log: Option<SegmentedLog>) {
        self.log = log;
    }

    /// Returns when all that was written so far is there.
    pub(crate) fn end(&self) -> SimTime {
        self.end
    }

    /// Tells whether so many records leave no room for another.
    pub(crate) fn is_full_with(&self, records: usize) -> bool {
        records >= self.room
    }

    /// Keeps from now on what undoes each change.
    pub(crate) fn remember(&mut self) {
        self.undo = Some(Vec::new());
    }

    /// Returns when each change that is remembered was there.
    pub(crate) fn remembered(&self) -> impl Iterator<Item = SimTime> {
        self.undo.iter().flatten().map(|(at, _)| *at)
    }

    /// Forgets changes that were there at `at`: no cut will come earlier.
    pub(crate) fn forget_before(&mut self, at: SimTime) {
        if let Some(undo) = &mut self.undo {
            undo.retain(|(there, _)| *there > at);
        }
    }

    /// Plans a power cut after so many entries more.
    pub(crate) fn plan_cut(&mut self, after: u64, written: bool) {
        self.cut = Some(Cut { after, written });
    }

    /// Counts a write towards a planned power cut: whether it is still done, and whether the power
    /// stays on.
    pub(crate) fn strike(&mut self) -> (bool, bool) {
        match &mut self.cut {
            Some(Cut { after: 0, written }) => (*written, false),
            Some(cut) => {
                cut.after -= 1;
                (true, true)
            }
            None => (true, true),
        }
    }

    /// A page got an entry, in place of the one before.
    pub(super) fn note_entry(&mut self, at: SimTime, entry: Entry, before: Option<Remapped>) {
        let ppn = entry.0;
        let change = match &mut self.log {
            Some(log) => {
                log.append(entry);
                Change::Logged(ppn)
            }
            None => Change::Entry { ppn, before },
        };
        self.note(at, change);
    }

    fn note(&mut self, at: SimTime, change: Change) {
        if let Some(undo) = &mut self.undo {
            undo.push((at, change));
        }
    }

    /// A record was added, or one grew from `before`.
    pub(crate) fn note_record(&mut self, at: SimTime, before: Option<Record>) {
        self.note(at, Change::Record(before));
    }

    /// Takes the time of so many entries, after what was written before; returns when they are
    /// there.
    pub(crate) fn take(&mut self, at: SimTime, entries: u64) -> SimTime {
        self.end = self.end.max(at) + self.access * entries;
        self.end
    }

    /// Writing one entry.
    pub(crate) fn access(&self) -> SimSpan {
        self.access
    }

    /// Leaves the entries of a remap of `total` moves that the power cut short.
    pub(crate) fn leave_intent(&mut self, seq: Seq, total: usize, moves: Vec<Move>) {
        self.intent = Some(Intent { seq, total, moves });
    }

    /// A block was erased at `at`, and its entries are dropped.
    pub(super) fn note_erase(
        &mut self,
        at: SimTime,
        block: BlockId,
        entries: Option<BlockEntries>,
    ) {
        match (&mut self.log, entries) {
            (Some(log), _) => {
                if let Some((entries, end)) = log.note_erase(block, at) {
                    self.note(end, Change::Freed(entries));
                }
            }
            (None, Some(entries)) => self.note(at, Change::Erased(block, entries)),
            (None, None) => {}
        }
    }

    /// The log's entries of a line are on flash at `end`. What is written next comes after that: it
    /// may take their place.
    pub(crate) fn note_destage(&mut self, end: SimTime, line: LogLine) {
        let Some(log) = &mut self.log else { return };
        let entries = log.free(line);
        self.end = self.end.max(end);
        self.note(end, Change::Freed(entries));
    }

    /// Records are on flash from `at` on, and no longer here.
    pub(crate) fn note_drain(&mut self, at: SimTime, records: Vec<Record>) {
        self.note(at, Change::Drained(records));
    }

    /// Returns what a power cut leaves; with a time, without what was written later.
    pub(crate) fn survive(
        self,
        cut: Option<SimTime>,
        mut reverse: ReverseMap,
        mut records: Vec<Record>,
    ) -> Survivor {
        let mut log = self.log;
        if log.is_some() {
            reverse.take();
        }
        let remembers = self.undo.is_some();
        let undo = self.undo.into_iter().flatten().rev();
        for (_, change) in undo.filter(|(at, _)| cut.is_some_and(|cut| *at > cut)) {
            match change {
                Change::Entry { ppn, before } => drop(reverse.set(ppn, before)),
                Change::Record(before) => {
                    records.pop();
                    records.extend(before);
                }
                Change::Drained(drained) => drop(records.splice(0..0, drained)),
                Change::Erased(block, entries) => reverse.restore(block, entries),
                Change::Logged(ppn) => log.iter_mut().for_each(|log| log.take_back(ppn)),
                Change::Freed(entries) => {
                    if let Some(log) = &mut log {
                        log.restore(entries);
                    }
                }
            }
        }
        Survivor { reverse, log, records, remembers, intent: self.intent }
    }
}

impl Survivor {
    /// Carries out a remap of which all entries are there, and drops one of which some are missing.
    pub(crate) fn redo(&mut self) {
        let Some(intent) = self.intent.take() else { return };
        if intent.moves.len() < intent.total {
            return;
        }
        for &Move { ppn, to, .. } in &intent.moves {
            let Some(ppn) = ppn else { continue };
            let entry = Remapped { lpn: to, seq: intent.seq };
            match &mut self.log {
                Some(log) => log.append((ppn, entry)),
                None => drop(self.reverse.set(ppn, Some(entry))),
            }
        }
        self.records.extend(deaths(&intent.moves).map(|lpn| Record::of_page(lpn, intent.seq)));
    }

    /// The entries of the reverse map.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Ppn, Remapped)> {
        self.reverse.iter().chain(self.log.iter().flat_map(SegmentedLog::entries))
    }

    /// The records of discards.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// Parts to go on with: the records, the log, and whether changes were kept to be undone.
    pub(crate) fn into_parts(self) -> (Vec<Record>, Option<SegmentedLog>, bool) {
        (self.records, self.log, self.remembers)
    }
}
