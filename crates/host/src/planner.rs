//! The device that a file system sees in virtual time: it answers at once and remembers what was
//! issued.

use std::cell::RefCell;
use std::rc::Rc;

use dovetail_block::{
    Answer, BlockDevice, BlockRange, Command, Completion, DeviceError, DeviceInfo, Devirtualize,
    EventId, HeldRemaps, Hints, Lba, Query, RemapPair, RemapWhen, Rename, RenameId, Scheduler,
    SchedulingHint, SectorRange, ZoneAction, ZoneTable,
};
use dovetail_time::SimTime;

use crate::device_queue::Direct;
use crate::events::Events;
use crate::hazards::Hazards;
use crate::machine::Machine;
use crate::mirror::Mirror;
use crate::placement::Placement;
use crate::plan::{EndRenames, Plan, PlanStep, Remap};
use crate::zone_turns::ZoneTurns;

/// A handle on the device; the file system has one, whoever plays its plans another.
#[derive(Clone, Debug)]
pub struct Planner(Rc<RefCell<PlannedDevice>>);

struct PlannedDevice {
    info: DeviceInfo,
    max_request_blocks: u64,
    mirror: Mirror,
    held: HeldRemaps,
    /// The zones as they will be when all that is planned was issued.
    zones: Option<ZoneTable>,
    steps: Vec<PlanStep>,
    /// Remaps and lists of discarded ranges that were played, for their memory.
    #[allow(clippy::vec_box, reason = "a step holds its remap in a box, which is used again")]
    spare_remaps: Vec<Box<Remap>>,
    spare_ranges: Vec<Vec<SectorRange>>,
    events: Events,
    placement: Placement,
    /// The drive takes writes that are durable when they complete.
    fua: bool,
    /// The drive, of which a batch of renames needs an answer.
    drive: Option<Rc<RefCell<dyn Direct>>>,
    /// Commands of plans under way.
    hazards: Rc<RefCell<Hazards>>,
}

impl std::fmt::Debug for PlannedDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlannedDevice")
            .field("info", &self.info)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl Planner {
    /// A device like the drive behind it, whose requests are split at `max_request_blocks` (at
    /// least 1). Until it is [connected](Self::connect) it cannot devirtualise: a plan is made
    /// before the drive's places are known.
    pub fn new(mut info: DeviceInfo, max_request_blocks: u64) -> Self {
        info.capabilities.devirtualize = None;
        // no file system asks for them: the host places its writes
        info.capabilities.reclaim_units = None;
        let mirror = Mirror::new(info.capabilities.thin);
        let state = PlannedDevice {
            info,
            max_request_blocks: max_request_blocks.max(1),
            mirror,
            held: HeldRemaps::default(),
            zones: info.capabilities.zones.map(ZoneTable::new),
            steps: Vec::new(),
            spare_remaps: Vec::new(),
            spare_ranges: Vec::new(),
            events: Events::default(),
            placement: Placement::default(),
            fua: true,
            drive: None,
            hazards: Rc::default(),
        };
        Self(Rc::new(RefCell::new(state)))
    }

    /// Places what is written from now on by a rule.
    pub fn set_placement(&self, placement: Placement) {
        self.0.borrow_mut().placement = placement;
    }

    /// Sends a flush after each write that must be durable, as Linux does where the drive has no
    /// such writes (force unit access).
    pub fn flush_for_fua(&self) {
        self.0.borrow_mut().fua = false;
    }

    /// Lets batches of renames reach the machine's drive, and offers what it can only then: to
    /// devirtualise.
    pub fn connect<D, L>(&self, machine: &Machine<D, L>)
    where
        D: BlockDevice + 'static,
        L: Copy + PartialEq + std::fmt::Debug,
    {
        let mut state = self.0.borrow_mut();
        state.info.capabilities.devirtualize = machine.device().info().capabilities.devirtualize;
        state.drive = Some(machine.queue());
        state.hazards = machine.hazards();
    }

    /// From now on keeps the content of blocks that the file system will not read again until its next
    /// commit: after a power cut it reads them. After one, call it again.
    pub fn keep_dead(&self) {
        self.0.borrow_mut().mirror.keep_until_committed();
    }

    /// Takes over the zones of the drive, which a power cut may have closed.
    pub fn set_zones(&self, zones: ZoneTable) {
        self.0.borrow_mut().zones = Some(zones);
    }

    /// Lets go of the machine's drive.
    pub fn disconnect(&self) {
        let mut state = self.0.borrow_mut();
        state.info.capabilities.devirtualize = None;
        state.drive = None;
    }

    /// The events that have come, for the machine that plays the plans.
    pub fn events(&self) -> Events {
        self.0.borrow().events.clone()
    }

    /// Takes what was issued since the last time; `spare` is a plan whose memory is used again.
    pub fn take(&self, mut spare: Plan) -> Plan {
        let mut state = self.0.borrow_mut();
        for step in spare.steps.drain(..) {
            state.keep_memory(step);
        }
        std::mem::swap(&mut state.steps, &mut spare.steps);
        spare
    }
}

impl PlannedDevice {
    /// Keeps the memory of a step that was played.
    fn keep_memory(&mut self, step: PlanStep) {
        match step {
            PlanStep::Remap(remap) => self.spare_remaps.push(remap),
            PlanStep::Discard(mut ranges) => {
                ranges.clear();
                self.spare_ranges.push(ranges);
            }
            _ => {}
        }
    }

    fn check(&self, range: BlockRange, data: u64) -> Result<(), DeviceError> {
        let is_place =
            self.info.capabilities.devirtualize.is_some_and(|space| space.contains(range));
        if range.end().0 > self.info.blocks && !is_place {
            return Err(DeviceError::OutOfRange { range, blocks: self.info.blocks });
        }
        if range.blocks != data {
            return Err(DeviceError::LengthMismatch { range: range.blocks, data });
        }
        Ok(())
    }

    /// Moves the write pointer that a write of this range moves; returns the part of the write in
    /// the limits on zones.
    fn write_to_zone(&mut self, range: BlockRange) -> Result<ZoneTurns, DeviceError> {
        let Some(table) = &mut self.zones else { return Ok(ZoneTurns::default()) };
        match table.zones().written_by(range)? {
            Some(zone) => Ok(ZoneTurns::of(table, zone, |table| table.write(zone, range))?),
            None => Ok(ZoneTurns::default()),
        }
    }

    fn act_on_zones(&mut self, start: Option<Lba>, action: ZoneAction) -> Result<(), DeviceError> {
        let Some(table) = &mut self.zones else { return Err(DeviceError::Unsupported("zone")) };
        for zone in table.concerned(start, action)? {
            let turns = ZoneTurns::of(table, zone, |table| table.act(zone, action))?;
            let range = BlockRange::new(table.zones().start(zone), table.zones().blocks);
            if action == ZoneAction::Reset {
                self.mirror.discard(range.into());
            }
            self.steps.extend(turns.before().chain(turns.after()));
            self.steps.push(PlanStep::Zone(range, action));
        }
        Ok(())
    }

    /// The first request of a write makes its zone active, the last one fills it.
    fn plan_write(&mut self, whole: BlockRange, hints: Hints, fua: bool, turns: ZoneTurns) {
        self.steps.extend(turns.before());
        for range in pieces(whole, self.max_request_blocks) {
            if range.end() == whole.end() {
                self.steps.extend(turns.after());
            }
            self.steps.push(PlanStep::Write { range, hints, fua: fua && self.fua });
        }
        if fua && !self.fua {
            self.steps.extend([PlanStep::WaitAll, PlanStep::Flush]);
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
                self.steps.extend(pieces(range, self.max_request_blocks).map(PlanStep::Read));
            }
            Command::Write { range, data, hints, fua } => {
                self.check(range, data.blocks().unwrap_or(range.blocks))?;
                let turns = self.write_to_zone(range)?;
                self.mirror.write(range, data);
                let stream = self.placement.stream(hints, self.info.capabilities.streams);
                self.plan_write(range, Hints { stream, ..hints }, fua, turns);
            }
            Command::Flush => self.steps.push(PlanStep::Flush),
            Command::Discard { ranges } => {
                if !self.info.capabilities.discard {
                    return Err(DeviceError::Unsupported("discard"));
                }
                let zones = self.info.capabilities.zones;
                let conventional = zones.map(|zones| zones.conventional_part(ranges));
                let ranges = conventional.as_deref().unwrap_or(ranges);
                for range in ranges {
                    self.check(range.blocks_inside(), range.blocks_inside().blocks)?;
                    self.mirror.discard(*range);
                }
                let mut kept = self.spare_ranges.pop().unwrap_or_default();
                kept.extend_from_slice(ranges);
                self.steps.push(PlanStep::Discard(kept));
            }
            Command::Remap { pairs, when } => self.remap(pairs, when)?,
            Command::Zone { start, action } => self.act_on_zones(start, action)?,
            // nothing that is planned knows where an append will go
            refused => return Err(refused.unsupported()),
        }
        Ok(())
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Devirtualize(asked) => self.devirtualize(at, asked),
            Command::Query(query) => Ok(Completion::with(at, self.answer(query)?)),
            command => {
                self.perform(command)?;
                Ok(Completion::at(at))
            }
        }
    }

    fn devirtualize(
        &mut self,
        at: SimTime,
        asked: Devirtualize<'_>,
    ) -> Result<Completion, DeviceError> {
        let Some(drive) = self.drive.clone() else {
            return Err(DeviceError::Unsupported("devirtualize"));
        };
        match asked {
            Devirtualize::Begin { id, renames } => {
                self.begin_renames(&mut *drive.borrow_mut(), at, id, renames)
            }
            Devirtualize::End { id, keep } => {
                let dropped = self.mirror.end_renames(keep);
                let end = EndRenames { id, keep, dropped };
                self.steps.push(PlanStep::EndRenames(Box::new(end)));
                Ok(Completion::at(at))
            }
            // asked for when a volume that was just made is mounted
            Devirtualize::Open => Ok(Completion::with(at, Answer::OpenBatch(None))),
            Devirtualize::Moved | Devirtualize::Held { .. } => {
                drive.borrow_mut().devirtualize(at, asked)
            }
        }
    }

    /// Begins a batch on the drive with the blocks that no command is on its way to. What is issued
    /// after it waits for it.
    fn begin_renames(
        &mut self,
        drive: &mut dyn Direct,
        at: SimTime,
        id: RenameId,
        renames: &[Rename],
    ) -> Result<Completion, DeviceError> {
        let is_free = self.free_of_commands(renames);
        let free = renames.iter().zip(&is_free).filter(|(_, is_free)| **is_free);
        let free: Vec<Rename> = free.map(|(rename, _)| *rename).collect();
        let begun = drive.devirtualize(at, Devirtualize::Begin { id, renames: &free })?;
        let mut renamed = begun.answer.into_renames().into_iter();
        let answers: Vec<Rename> = renames
            .iter()
            .zip(is_free)
            .map(|(rename, is_free)| {
                let answer = if is_free { renamed.next() } else { None };
                Rename { from: rename.from, to: answer.and_then(|answer| answer.to) }
            })
            .collect();
        self.mirror.begin_renames(&answers);
        self.steps.push(PlanStep::Until(begun.done));
        Ok(Completion::with(at, Answer::Renames(answers)))
    }

    /// Tells of each rename whether no command about its blocks is planned and not issued, by plans
    /// under way or by this one.
    fn free_of_commands(&self, renames: &[Rename]) -> Vec<bool> {
        let mut own = Hazards::default();
        for step in self.steps.iter().filter(|step| step.is_command()) {
            own.plan(step);
        }
        let others = self.hazards.borrow();
        let is_free = |lba: Lba| !own.is_busy(lba) && !others.is_busy(lba);
        renames.iter().map(|rename| is_free(rename.from) && rename.to.is_none_or(is_free)).collect()
    }

    /// Answers a query as far as that is possible before the plan is played. The memory that the
    /// drive's map takes is known only then.
    fn answer(&self, query: Query) -> Result<Answer, DeviceError> {
        match query {
            Query::FreeBlocks => self.mirror.free_blocks().map(Answer::Blocks),
            Query::Zones { from, most } => {
                self.zones.as_ref().map(|table| Answer::Zones(table.report(from, most)))
            }
            Query::Held { .. }
            | Query::MapBytes
            | Query::ChangedZones { .. }
            | Query::Placement => None,
        }
        .ok_or_else(|| query.unsupported())
    }

    fn remap(&mut self, pairs: &[RemapPair], when: RemapWhen) -> Result<(), DeviceError> {
        self.held.admit(&self.info, pairs, when)?;
        let executed = self.held.executed_with(pairs, when);
        let mut remap = self.spare_remaps.pop().unwrap_or_default();
        remap.when = when;
        remap.pairs.clear();
        remap.pairs.extend_from_slice(pairs);
        remap.held.clear();
        remap.held.extend_from_slice(&executed[..executed.len().saturating_sub(pairs.len())]);
        executed.iter().for_each(|pair| self.mirror.move_block(*pair));
        self.steps.push(PlanStep::Remap(remap));
        Ok(())
    }

    fn hint(&mut self, hint: SchedulingHint) {
        match hint {
            SchedulingHint::Dead(lba) => self.mirror.forget(lba),
            SchedulingHint::Committed => self.mirror.commit(),
            SchedulingHint::Dirty(pages) => self.events.set_dirty(pages),
            SchedulingHint::OnTheirWay(pages) => {
                self.events.send(pages);
                self.steps.push(PlanStep::Written(pages));
            }
            hint => self.steps.extend(planned(hint)),
        }
    }
}

fn planned(hint: SchedulingHint) -> Option<PlanStep> {
    Some(match hint {
        SchedulingHint::WaitReads => PlanStep::WaitReads,
        SchedulingHint::WaitAll => PlanStep::WaitAll,
        SchedulingHint::Lock { lock, shared } => PlanStep::Lock { lock, shared },
        SchedulingHint::Unlock { lock } => PlanStep::Unlock(lock),
        SchedulingHint::Signal(event) => PlanStep::Signal(event),
        SchedulingHint::Await(event) => PlanStep::Await(event),
        SchedulingHint::AwaitRoom(pages) => PlanStep::AwaitRoom(pages),
        SchedulingHint::OnTheirWay(_)
        | SchedulingHint::Dirty(_)
        | SchedulingHint::Dead(_)
        | SchedulingHint::Committed => return None,
    })
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
        self.0.borrow_mut().submit(at, command)
    }
}

impl Scheduler for Planner {
    fn hint(&mut self, hint: SchedulingHint) {
        self.0.borrow_mut().hint(hint);
    }

    fn is_signalled(&self, event: EventId) -> bool {
        self.0.borrow().events.is_signalled(event)
    }

    fn pages_on_their_way(&self) -> usize {
        self.0.borrow().events.pages_on_their_way()
    }
}
