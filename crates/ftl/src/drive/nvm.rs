//! Byte-addressable non-volatile memory in the drive: the reverse map and the newest records of discards survive a
//! power cut there.
//!
//! One entry is written at once or not at all. A remap writes its entries one by one beside the table; the last one
//! completes it, and only then do they go into the table (a redo log). What a power cut leaves incomplete is dropped.
//! Entries of a block are dropped when it is erased; recovery does not rest on that: an entry that is older than the page
//! at its place says nothing.
//!
//! Writes come in order, so that what is there at any time is what the drive knew at some time. A drive that remembers
//! its operations (for tests) keeps what undoes them, to cut the power at a time.

use dovetail_block::DeviceError;
use dovetail_nand::{BlockId, Ppn, Seq};
use dovetail_time::{SimSpan, SimTime};

use super::Drive;
use super::journal::Record;
use super::remap::{Move, deaths};
use super::reverse::{BlockEntries, Remapped, ReverseMap};

/// What one write did, to undo it.
#[derive(Clone, Debug)]
enum Change {
    Entry {
        ppn: Ppn,
        before: Option<Remapped>,
    },
    /// A record was added, or grew from this.
    Record(Option<Record>),
    /// Records went to flash.
    Drained(Vec<Record>),
    Erased(BlockId, BlockEntries),
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
    /// Whether the entry being written is there afterwards.
    written: bool,
}

/// The memory, but for the reverse map and the records themselves: those stand where drives without it have them, too.
#[derive(Clone, Debug)]
pub(super) struct Nvm {
    access: SimSpan,
    room: usize,
    intent: Option<Intent>,
    /// When all that was written so far is there.
    end: SimTime,
    cut: Option<Cut>,
    undo: Option<Vec<(SimTime, Change)>>,
}

/// What is left of it after a power cut.
#[derive(Clone, Debug)]
pub(super) struct Survivor {
    pub(super) reverse: ReverseMap,
    pub(super) records: Vec<Record>,
    /// Whether changes are kept to be undone.
    pub(super) remembers: bool,
    intent: Option<Intent>,
}

impl Nvm {
    pub(super) fn new(access: SimSpan, room: u32) -> Self {
        Self { access, room: room as usize, intent: None, end: SimTime::ZERO, cut: None, undo: None }
    }

    pub(super) fn end(&self) -> SimTime {
        self.end
    }

    /// Whether so many records leave no room for another.
    pub(super) fn is_full_with(&self, records: usize) -> bool {
        records >= self.room
    }

    pub(super) fn remember(&mut self) {
        self.undo = Some(Vec::new());
    }

    /// When each change that is remembered was there.
    pub(super) fn remembered(&self) -> impl Iterator<Item = SimTime> {
        self.undo.iter().flatten().map(|(at, _)| *at)
    }

    /// Forgets changes that were there at `at`: no cut will come earlier.
    pub(super) fn forget_before(&mut self, at: SimTime) {
        if let Some(undo) = &mut self.undo {
            undo.retain(|(there, _)| *there > at);
        }
    }

    pub(super) fn plan_cut(&mut self, after: u64, written: bool) {
        self.cut = Some(Cut { after, written });
    }

    /// Counts a write towards a planned power cut: whether it is still done, and whether the power stays on.
    fn strike(&mut self) -> (bool, bool) {
        match &mut self.cut {
            Some(Cut { after: 0, written }) => (*written, false),
            Some(cut) => {
                cut.after -= 1;
                (true, true)
            }
            None => (true, true),
        }
    }

    fn note(&mut self, at: SimTime, change: Change) {
        if let Some(undo) = &mut self.undo {
            undo.push((at, change));
        }
    }

    /// A block was erased at `at`, and its entries are dropped.
    pub(super) fn note_erase(&mut self, at: SimTime, block: BlockId, entries: BlockEntries) {
        self.note(at, Change::Erased(block, entries));
    }

    /// Records are on flash from `at` on, and no longer here.
    pub(super) fn note_drain(&mut self, at: SimTime, records: Vec<Record>) {
        self.note(at, Change::Drained(records));
    }

    /// What a power cut leaves; with a time, without what was written later.
    pub(super) fn survive(
        self,
        cut: Option<SimTime>,
        mut reverse: ReverseMap,
        mut records: Vec<Record>,
    ) -> Survivor {
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
            }
        }
        Survivor { reverse, records, remembers, intent: self.intent }
    }
}

impl Survivor {
    /// Carries out a remap of which all entries are there, and drops one of which some are missing.
    pub(super) fn redo(&mut self) {
        let Some(intent) = self.intent.take() else { return };
        if intent.moves.len() < intent.total {
            return;
        }
        for &Move { ppn, to, .. } in &intent.moves {
            if let Some(ppn) = ppn {
                self.reverse.set(ppn, Some(Remapped { lpn: to, seq: intent.seq }));
            }
        }
        self.records.extend(deaths(&intent.moves).map(|lpn| Record::of_page(lpn, intent.seq)));
    }
}

impl Drive {
    /// Plans a power cut for the non-volatile memory: `after` entries are still written; the next one is there
    /// afterwards or is not. A drive without such memory is not cut.
    pub fn cut_power_at_entry(&mut self, after: u64, written: bool) {
        if let Some(nvm) = self.nvm_mut() {
            nvm.plan_cut(after, written);
        }
    }

    /// Goes on with what a power cut has left. The reverse map was taken over with what flash says.
    pub(super) fn adopt_survivor(&mut self, survivor: Survivor) {
        self.journal.adopt(survivor.records);
        if let Some(nvm) = self.nvm_mut().filter(|_| survivor.remembers) {
            nvm.remember();
        }
    }

    pub(super) fn nvm(&self) -> Option<&Nvm> {
        self.remaps.as_ref().and_then(|remaps| remaps.nvm.as_ref())
    }

    pub(super) fn nvm_mut(&mut self) -> Option<&mut Nvm> {
        self.remaps.as_mut().and_then(|remaps| remaps.nvm.as_mut())
    }

    /// Writes one entry, and reports whether it is there; the error is that of a planned power cut.
    fn write_entry(&mut self) -> (bool, Result<(), DeviceError>) {
        let (written, powered) = self.nvm_mut().map_or((true, true), Nvm::strike);
        self.counters.nvm_accesses += u64::from(written);
        if powered {
            return (written, Ok(()));
        }
        self.medium.cut_power();
        (written, Err(DeviceError::PowerLost))
    }

    /// Takes the time of so many entries, after what was written before; returns when they are there.
    fn take_nvm(&mut self, at: SimTime, entries: u64) -> SimTime {
        let Some(nvm) = self.nvm_mut() else { return at };
        nvm.end = nvm.end.max(at) + nvm.access * entries;
        nvm.end
    }

    /// Adds a record of a discard; returns how long that takes by itself.
    pub(super) fn note_in_nvm(&mut self, at: SimTime, record: Record) -> Result<SimSpan, DeviceError> {
        let (written, powered) = self.write_entry();
        if written {
            let end = self.take_nvm(at, 1);
            self.put_record(end, record);
        }
        powered.map(|()| self.nvm().map_or(SimSpan::ZERO, |nvm| nvm.access))
    }

    fn put_record(&mut self, end: SimTime, record: Record) {
        let before = self.journal.note(record);
        if let Some(nvm) = self.nvm_mut() {
            nvm.note(end, Change::Record(before));
        }
    }

    /// Writes the entries of a remap, no earlier than `at`; returns when the last one completes it. Their content must be
    /// durable by `at`.
    pub(super) fn write_intent(
        &mut self,
        at: SimTime,
        seq: Seq,
        moves: &[Move],
    ) -> Result<SimTime, DeviceError> {
        let mut intent = Intent { seq, total: moves.len(), moves: Vec::with_capacity(moves.len()) };
        let mut lost = Ok(());
        for &entry in moves {
            let (written, powered) = self.write_entry();
            intent.moves.extend(written.then_some(entry));
            lost = powered;
            if lost.is_err() {
                break;
            }
        }
        if let (Some(nvm), true) = (self.nvm_mut(), lost.is_err()) {
            nvm.intent = Some(intent);
        }
        lost?;
        Ok(self.take_nvm(at, moves.len() as u64))
    }

    /// Puts a complete remap into the table and the records.
    pub(super) fn apply_intent(&mut self, end: SimTime, seq: Seq, moves: &[Move]) {
        let Some(remaps) = &mut self.remaps else { return };
        for &Move { ppn, to, .. } in moves {
            let Some(ppn) = ppn else { continue };
            let before = remaps.reverse.set(ppn, Some(Remapped { lpn: to, seq }));
            if let Some(nvm) = &mut remaps.nvm {
                nvm.note(end, Change::Entry { ppn, before });
            }
        }
        if remaps.nvm.is_some() {
            deaths(moves).for_each(|lpn| self.put_record(end, Record::of_page(lpn, seq)));
        }
    }
}
