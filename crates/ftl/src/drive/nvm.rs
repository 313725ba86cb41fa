//! Writing to non-volatile memory (`ownership/nvm.rs`), and its planned power cuts.

use dovetail_block::{DeviceError, Lba};
use dovetail_nand::Seq;
use dovetail_time::{SimSpan, SimTime};

use super::Drive;
use crate::metadata::journal::Record;
use crate::ownership::{Move, Nvm, Survivor, deaths};

impl Drive {
    /// Plans a power cut for the non-volatile memory: `after` entries are still written; the next
    /// one is there afterwards or is not. A drive without such memory is not cut.
    pub fn cut_power_at_entry(&mut self, after: u64, written: bool) {
        if let Some(nvm) = self.nvm_mut() {
            nvm.plan_cut(after, written);
        }
    }

    /// Goes on with what a power cut has left. The reverse map was taken over with what flash says.
    pub(super) fn adopt_survivor(&mut self, survivor: Survivor) {
        let (records, log, remembers) = survivor.into_parts();
        self.journal.adopt(records);
        let Some(nvm) = self.nvm_mut() else { return };
        nvm.adopt_log(log);
        if remembers {
            nvm.remember();
        }
    }

    pub(super) fn nvm(&self) -> Option<&Nvm> {
        self.ownership.nvm()
    }

    pub(super) fn nvm_mut(&mut self) -> Option<&mut Nvm> {
        self.ownership.nvm_mut()
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

    /// Takes the time of so many entries; returns when they are there.
    fn take_nvm(&mut self, at: SimTime, entries: u64) -> SimTime {
        self.nvm_mut().map_or(at, |nvm| nvm.take(at, entries))
    }

    /// Adds a record of a discard; returns how long that takes by itself.
    pub(super) fn note_in_nvm(
        &mut self,
        at: SimTime,
        record: Record,
    ) -> Result<SimSpan, DeviceError> {
        let (written, powered) = self.write_entry();
        if written {
            let end = self.take_nvm(at, 1);
            self.put_record(end, record);
        }
        powered.map(|()| self.nvm().map_or(SimSpan::ZERO, Nvm::access))
    }

    fn put_record(&mut self, end: SimTime, record: Record) {
        let before = self.journal.note(record);
        if let Some(nvm) = self.nvm_mut() {
            nvm.note_record(end, before);
        }
    }

    /// Writes the entries of a remap, no earlier than `at`; returns when the last one completes it.
    /// Their content must be durable by `at`.
    pub(super) fn write_intent(
        &mut self,
        at: SimTime,
        seq: Seq,
        moves: &[Move],
    ) -> Result<SimTime, DeviceError> {
        for entry in 0..moves.len() {
            let (written, powered) = self.write_entry();
            if let Err(lost) = powered {
                let there = moves[..entry + usize::from(written)].to_vec();
                if let Some(nvm) = self.nvm_mut() {
                    nvm.leave_intent(seq, moves.len(), there);
                }
                return Err(lost);
            }
        }
        Ok(self.take_nvm(at, moves.len() as u64))
    }

    /// Puts a complete remap into the table and the records.
    pub(super) fn apply_intent(&mut self, end: SimTime, seq: Seq, moves: &[Move]) {
        self.ownership.apply(end, seq, moves);
        if self.nvm().is_some() {
            deaths(moves).for_each(|lpn| self.put_record(end, Record::of_page(lpn, seq)));
            self.journal.note_versions(moves.iter().map(|it| Lba(it.to.0)));
        }
    }
}
