//! The device that a file system sees in virtual time: it answers at once and remembers what was issued.

use std::cell::RefCell;
use std::rc::Rc;

use dovetail_block::{
    BlockDevice, BlockRange, Command, Completion, DeviceError, DeviceInfo, EventId, HeldRemaps, Hints, Lba,
    Note, RemapPair, RemapWhen,
};
use dovetail_time::SimTime;

use crate::events::Events;
use crate::mirror::Mirror;
use crate::plan::{Plan, Remap, Step};

/// A handle on the device; the file system has one, whoever plays its plans another.
#[derive(Clone, Debug)]
pub struct Planner(Rc<RefCell<State>>);

#[derive(Debug)]
struct State {
    info: DeviceInfo,
    max_request_blocks: u64,
    mirror: Mirror,
    held: HeldRemaps,
    steps: Vec<Step>,
    events: Events,
}

impl Planner {
    /// A device like the drive behind it, whose requests are split at `max_request_blocks` (at least 1).
    pub fn new(mut info: DeviceInfo, max_request_blocks: u64) -> Self {
        // a plan is made before the device's places are known
        info.capabilities.devirtualize = None;
        let mirror = Mirror::new(info.capabilities.thin);
        let state = State {
            info,
            max_request_blocks: max_request_blocks.max(1),
            mirror,
            held: HeldRemaps::default(),
            steps: Vec::new(),
            events: Events::default(),
        };
        Self(Rc::new(RefCell::new(state)))
    }

    /// The events that have come, for the machine that plays the plans.
    pub fn events(&self) -> Events {
        self.0.borrow().events.clone()
    }

    /// What was issued since the last time; `spare` is a plan whose memory is used again.
    pub fn take(&self, mut spare: Plan) -> Plan {
        spare.steps.clear();
        std::mem::swap(&mut self.0.borrow_mut().steps, &mut spare.steps);
        spare
    }
}

impl State {
    fn check(&self, range: BlockRange, data: u64) -> Result<(), DeviceError> {
        if range.end().0 > self.info.blocks {
            return Err(DeviceError::OutOfRange { range, blocks: self.info.blocks });
        }
        if range.blocks != data {
            return Err(DeviceError::LengthMismatch { range: range.blocks, data });
        }
        Ok(())
    }

    fn plan_write(&mut self, range: BlockRange, hints: Hints, fua: bool) {
        for range in pieces(range, self.max_request_blocks) {
            self.steps.push(Step::Write { range, hints, fua });
        }
    }

    fn perform(&mut self, command: Command<'_>) -> Result<(), DeviceError> {
        match command {
            Command::Read { range, into } => {
                let blocks = into.as_ref().map_or(range.blocks, |into| into.len() as u64);
                self.check(range, blocks)?;
                if let Some(into) = into {
                    self.mirror.read(range, into);
                }
                self.steps.extend(pieces(range, self.max_request_blocks).map(Step::Read));
            }
            Command::Write { range, data, hints, fua } => {
                self.check(range, data.blocks().unwrap_or(range.blocks))?;
                self.mirror.write(range, data);
                self.plan_write(range, hints, fua);
            }
            Command::Flush => self.steps.push(Step::Flush),
            Command::Discard { ranges } => {
                if !self.info.capabilities.discard {
                    return Err(DeviceError::Unsupported("discard"));
                }
                for range in ranges {
                    self.check(range.blocks_inside(), range.blocks_inside().blocks)?;
                    self.mirror.discard(*range);
                }
                self.steps.push(Step::Discard(ranges.to_vec()));
            }
            Command::Remap { pairs, when } => self.remap(pairs, when)?,
            Command::Devirtualize(_) => return Err(DeviceError::Unsupported("devirtualize")),
        }
        Ok(())
    }

    fn remap(&mut self, pairs: &[RemapPair], when: RemapWhen) -> Result<(), DeviceError> {
        self.held.admit(&self.info, pairs, when)?;
        let executed = self.held.take(pairs, when);
        let held = executed[..executed.len().saturating_sub(pairs.len())].to_vec();
        executed.into_iter().for_each(|pair| self.mirror.move_block(pair));
        self.steps.push(Step::Remap(Box::new(Remap { pairs: pairs.to_vec(), when, held })));
        Ok(())
    }

    fn note(&mut self, note: Note) {
        self.steps.push(match note {
            Note::WaitReads => Step::WaitReads,
            Note::WaitAll => Step::WaitAll,
            Note::Lock { lock, shared } => Step::Lock { lock, shared },
            Note::Unlock { lock } => Step::Unlock(lock),
            Note::Signal(event) => Step::Signal(event),
            Note::Await(event) => Step::Await(event),
            Note::Dead(lba) => return self.mirror.forget(lba),
        });
    }
}

/// A range in pieces of at most `max` blocks.
fn pieces(range: BlockRange, max: u64) -> impl Iterator<Item = BlockRange> {
    let starts = (range.start.0..range.end().0).step_by(max as usize);
    starts.map(move |start| BlockRange::new(Lba(start), max.min(range.end().0 - start)))
}

impl BlockDevice for Planner {
    fn info(&self) -> DeviceInfo {
        self.0.borrow().info
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        self.0.borrow_mut().perform(command)?;
        Ok(Completion { done: at })
    }

    fn note(&mut self, note: Note) {
        self.0.borrow_mut().note(note);
    }

    fn room(&self) -> Option<u64> {
        self.0.borrow().mirror.room()
    }

    fn has_come(&self, event: EventId) -> bool {
        self.0.borrow().events.has_come(event)
    }
}
