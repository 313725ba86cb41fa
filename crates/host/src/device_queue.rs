//! The drive with the queue before it: commands as they reach it, counted and shown.

use dovetail_block::{BlockDevice, Completion, DeviceError, Devirtualize};
use dovetail_time::{SimSpan, SimTime};

use crate::checked::CheckedDevice;
use crate::costs::HostCosts;
use crate::error::HostError;
use crate::machine::Observer;
use crate::plan::PlanStep;
use crate::queue::{Depth, FlushMerge, FlushTurn, Request, RequestKind, Traffic};

pub(crate) struct DeviceQueue<D> {
    pub(crate) device: CheckedDevice<D>,
    pub(crate) costs: HostCosts,
    pub(crate) depth: Depth,
    pub(crate) flushes: FlushMerge,
    pub(crate) traffic: Traffic,
    pub(crate) observer: Option<Observer>,
}

impl<D: BlockDevice> DeviceQueue<D> {
    pub(crate) fn new(device: CheckedDevice<D>, costs: HostCosts) -> Self {
        Self {
            device,
            costs,
            depth: Depth::new(costs.queue_depth),
            flushes: FlushMerge::new(costs.merge_flushes),
            traffic: Traffic::default(),
            observer: None,
        }
    }

    /// Nothing at the drive keeps a command from being sent now.
    pub(crate) fn is_free(&mut self, now: SimTime, command: &PlanStep) -> bool {
        let is_turn = *command != PlanStep::Flush || self.flushes.turn(now, now) == FlushTurn::Now;
        is_turn && self.depth.room_from(now).is_none()
    }

    /// Sends a command to the drive; returns when it is done.
    pub(crate) fn issue(&mut self, now: SimTime, step: &PlanStep) -> Result<SimTime, HostError> {
        if let PlanStep::EndRenames(end) = step {
            let ended = Devirtualize::End { id: end.id, keep: end.keep };
            let ended = self.device.devirtualize(now, ended);
            let done = ended.map_err(|source| HostError::Device { at: now, source })?.done;
            self.depth.enter(done);
            return Ok(done);
        }
        let (kind, done) = match step {
            PlanStep::Read(range) => (RequestKind::Read, self.device.read(now, *range)?),
            PlanStep::Write { range, hints, fua } => {
                (RequestKind::Write, self.device.write(now, *range, *hints, *fua)?)
            }
            PlanStep::Discard(ranges) => (RequestKind::Discard, self.device.discard(now, ranges)?),
            PlanStep::Zone(zone, action) => {
                (RequestKind::Zone, self.device.act_on_zone(now, *zone, *action)?)
            }
            PlanStep::Remap(remap) => {
                (RequestKind::Remap, self.device.remap(now, &remap.pairs, remap.when)?)
            }
            _ => (RequestKind::Flush, self.device.flush(now)?),
        };
        if kind == RequestKind::Flush {
            self.flushes.issued(now, done);
        }
        self.depth.enter(done);
        self.traffic.count(kind, step.blocks(), done.since(now));
        if let Some(observer) = &mut self.observer {
            let at = now;
            step.for_each_range(|range, _| observer(&Request { at, done, kind, range }));
        }
        Ok(done)
    }

    /// Counts the CPU time of a request; returns it.
    pub(crate) fn charge(&mut self) -> SimSpan {
        let cost = SimSpan::from_ns(self.costs.request_ns);
        self.traffic.cpu = SimSpan::from_ns(self.traffic.cpu.as_ns() + cost.as_ns());
        cost
    }
}

/// The drive as it is reached past the plans, by commands that it must answer when they are issued.
pub(crate) trait Direct {
    /// Performs a command of a drive that devirtualises. No earlier time may be played after it.
    fn devirtualize(
        &mut self,
        at: SimTime,
        asked: Devirtualize<'_>,
    ) -> Result<Completion, DeviceError>;
}

impl<D: BlockDevice> Direct for DeviceQueue<D> {
    fn devirtualize(
        &mut self,
        at: SimTime,
        asked: Devirtualize<'_>,
    ) -> Result<Completion, DeviceError> {
        self.charge();
        let completion = self.device.devirtualize(at, asked)?;
        self.depth.enter(completion.done);
        Ok(completion)
    }
}
