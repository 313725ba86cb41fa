//! Plans of many threads on a zoned device: writes to a zone keep their order.

use dovetail_block::{
    BlockDevice, BlockRange, Command, Completion, Data, DeviceError, DeviceInfo, Hints, Lba,
    MemoryDevice, Pattern, ZoneAction, ZoneError, ZoneState, ZonedDevice, Zones,
};
use dovetail_host::{Event, HostCosts, Machine, Plan, Planner};
use dovetail_time::{SimSpan, SimTime};

/// Reads take 100 us, other commands 10.
struct Slow(ZonedDevice<MemoryDevice>);

impl BlockDevice for Slow {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        let us = if matches!(command, Command::Read { .. }) { 100 } else { 10 };
        self.0.submit(at, command)?;
        Ok(Completion::at(at + SimSpan::from_us(us)))
    }
}

fn device() -> Slow {
    let zones = Zones::covering(Lba(16), 48, 16, 16);
    Slow(ZonedDevice::new(MemoryDevice::new(64), zones))
}

fn write(planner: &mut Planner, start: u64) -> Result<(), DeviceError> {
    let range = BlockRange::new(Lba(start), 4);
    let data = Data::Patterns(Pattern::new(start));
    let command = Command::Write { range, data, hints: Hints::default(), fua: false };
    planner.submit(SimTime::ZERO, command).map(drop)
}

/// The first plan writes only when its read is done; the second, which writes behind it, waits.
#[test]
fn a_plan_that_writes_further_in_a_zone_waits_for_the_one_before() {
    let device = device();
    let mut planner = Planner::new(device.info(), 128);
    let mut machine = Machine::new(device, HostCosts::NONE, SimTime::ZERO, planner.events());
    let read = Command::Read { range: BlockRange::new(Lba(0), 1), into: None };
    planner.submit(SimTime::ZERO, read).unwrap();
    dovetail_block::Scheduler::hint(&mut planner, dovetail_block::SchedulingHint::WaitReads);
    write(&mut planner, 16).unwrap();
    let first = planner.take(Plan::default());
    write(&mut planner, 20).unwrap();
    let second = planner.take(Plan::default());
    machine.start(SimTime::ZERO, 1, first);
    machine.start(SimTime::ZERO, 2, second);
    let mut ended = Vec::new();
    while let Some(Event::Ended { lane, at }) = machine.advance().unwrap() {
        ended.push((lane, at));
    }
    ended.sort();
    let late = SimTime::from_ns(100_000);
    assert!(ended.iter().all(|&(_, at)| at >= late), "{ended:?}");
    assert_eq!(machine.device().0.table().written(0), 8);
}

#[test]
fn a_broken_rule_is_told_at_once_and_a_reset_empties_a_zone() {
    let mut planner = Planner::new(device().info(), 128);
    write(&mut planner, 16).unwrap();
    let refused = write(&mut planner, 16).unwrap_err();
    assert!(matches!(refused, DeviceError::Zone(ZoneError::InvalidWrite { zone: 0, .. })));
    let reset = Command::Zone { start: Some(Lba(16)), action: ZoneAction::Reset };
    planner.submit(SimTime::ZERO, reset).unwrap();
    let zones = dovetail_block::zones(&mut planner).unwrap();
    assert_eq!(zones[1].state, Some(ZoneState::Empty));
    write(&mut planner, 16).unwrap();
    assert_eq!(planner.take(Plan::default()).steps.len(), 3);
}

/// A device with so few zones that may be active or open.
fn limited(max_open: u32, max_active: u32) -> Slow {
    let zones = Zones { max_open, max_active, ..Zones::covering(Lba(16), 48, 16, 16) };
    Slow(ZonedDevice::new(MemoryDevice::new(64), zones))
}

fn act(planner: &mut Planner, start: u64, action: ZoneAction) {
    let command = Command::Zone { start: Some(Lba(start)), action };
    planner.submit(SimTime::ZERO, command).unwrap();
}

/// Plays the plans that `plan` makes, the first of which begins with a slow read; returns the
/// drive's states of zones.
fn played(device: Slow, plans: &[&dyn Fn(&mut Planner)]) -> Vec<ZoneState> {
    let mut planner = Planner::new(device.info(), 4);
    let mut machine = Machine::new(device, HostCosts::NONE, SimTime::ZERO, planner.events());
    let read = Command::Read { range: BlockRange::new(Lba(0), 1), into: None };
    planner.submit(SimTime::ZERO, read).unwrap();
    dovetail_block::Scheduler::hint(&mut planner, dovetail_block::SchedulingHint::WaitReads);
    for (lane, plan) in plans.iter().enumerate() {
        plan(&mut planner);
        machine.start(SimTime::ZERO, lane, planner.take(Plan::default()));
    }
    while machine.advance().unwrap().is_some() {}
    let device = machine.device();
    (0..3).map(|zone| device.0.table().state(zone)).collect()
}

fn fill(planner: &mut Planner, start: u64) {
    let range = BlockRange::new(Lba(start), 16);
    let data = Data::Patterns(Pattern::new(start));
    let command = Command::Write { range, data, hints: Hints::default(), fua: false };
    planner.submit(SimTime::ZERO, command).unwrap();
}

/// The first plan fills a zone (or finishes, or resets it) behind a slow read; the second one needs
/// its place.
#[test]
fn a_plan_that_makes_a_zone_active_waits_for_the_one_that_frees_a_place() {
    use ZoneState::{Empty, Full, ImplicitlyOpen};
    type Step = fn(&mut Planner);
    let open: Step = |planner| write(planner, 32).unwrap();
    let frees: [(Step, ZoneState); 3] = [
        (|planner| fill(planner, 16), Full),
        (
            |planner| {
                write(planner, 16).unwrap();
                act(planner, 16, ZoneAction::Finish);
            },
            Full,
        ),
        (
            |planner| {
                write(planner, 16).unwrap();
                act(planner, 16, ZoneAction::Reset);
            },
            Empty,
        ),
    ];
    for (free, state) in frees {
        assert_eq!(played(limited(0, 1), &[&free, &open]), [state, ImplicitlyOpen, Empty]);
    }
    let finish_empty: Step = |planner| act(planner, 48, ZoneAction::Finish);
    let fill: Step = |planner| fill(planner, 16);
    assert_eq!(played(limited(0, 1), &[&fill, &finish_empty]), [Full, Empty, Full]);
}

/// There is room for one more: nothing waits that need not.
#[test]
fn a_plan_does_not_wait_for_a_place_while_there_is_one() {
    let device = limited(0, 2);
    let mut planner = Planner::new(device.info(), 128);
    let mut machine = Machine::new(device, HostCosts::NONE, SimTime::ZERO, planner.events());
    let read = Command::Read { range: BlockRange::new(Lba(0), 1), into: None };
    planner.submit(SimTime::ZERO, read).unwrap();
    dovetail_block::Scheduler::hint(&mut planner, dovetail_block::SchedulingHint::WaitReads);
    fill(&mut planner, 16);
    machine.start(SimTime::ZERO, 1, planner.take(Plan::default()));
    write(&mut planner, 32).unwrap();
    machine.start(SimTime::ZERO, 2, planner.take(Plan::default()));
    let first = machine.advance().unwrap();
    assert!(matches!(first, Some(Event::Ended { lane: 2, at }) if at < SimTime::from_ns(100_000)));
}

/// The host holds the only open zone until it closes it, after a slow read.
#[test]
fn a_write_waits_for_the_zone_that_the_host_closes_before_it() {
    use ZoneState::{Closed, Empty, ImplicitlyOpen};
    let hold = |planner: &mut Planner| {
        act(planner, 16, ZoneAction::Open { window: false });
        write(planner, 16).unwrap();
        act(planner, 16, ZoneAction::Close);
    };
    let other = |planner: &mut Planner| write(planner, 32).unwrap();
    assert_eq!(played(limited(1, 3), &[&hold, &other]), [Closed, ImplicitlyOpen, Empty]);
}
