//! Random plans of many threads: the drive sees commands in the order of time and of what depends
//! on what, and all end.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::cell::RefCell;
use std::rc::Rc;

use dovetail_block::{
    BlockDevice, BlockRange, Capabilities, Command, Completion, Data, DeviceError, DeviceInfo,
    EventId, Hints, Lba, LockId, MemoryDevice, Pattern, Scheduler, SchedulingHint, SectorRange,
};
use dovetail_host::{Event, Events, HostCosts, HostError, Machine, Plan, PlanStep, Planner};
use dovetail_time::{Rng, SimSpan, SimTime};
use proptest::prelude::*;

/// A device that takes a random time for each command and complains when time goes back.
struct Device {
    memory: MemoryDevice,
    last: SimTime,
    rng: Rng,
    /// The longest time that a command takes, less a microsecond.
    longest_us: u64,
}

impl Device {
    fn new(seed: u64) -> Self {
        let (memory, last, rng) = (MemoryDevice::new(64), SimTime::ZERO, Rng::new(seed));
        Self { memory, last, rng, longest_us: 100 }
    }
}

impl BlockDevice for Device {
    fn info(&self) -> DeviceInfo {
        let capabilities = Capabilities { discard: true, streams: 1, ..Capabilities::default() };
        DeviceInfo { blocks: 64, capabilities }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        assert!(at >= self.last, "a command at {at} after one at {}", self.last);
        self.last = at;
        self.memory.submit(at, command)?;
        Ok(Completion::at(at + SimSpan::from_us(self.rng.below(self.longest_us))))
    }
}

/// One step of a random plan; `lock` is the lock that is held, if one is.
fn step(rng: &mut Rng, lock: &mut Option<LockId>) -> PlanStep {
    let start = rng.below(60);
    let range = BlockRange::new(Lba(start), 1 + rng.below(4));
    match rng.below(9) {
        0 | 1 => PlanStep::Read(range),
        2 | 3 => PlanStep::Write { range, hints: Hints::default(), fua: rng.chance(0.1) },
        4 => PlanStep::Flush,
        5 => PlanStep::Discard(vec![SectorRange::from(range)]),
        6 => PlanStep::WaitReads,
        7 => PlanStep::WaitAll,
        _ => match lock.take() {
            Some(held) => PlanStep::Unlock(held),
            None => {
                let id = LockId(rng.below(2) as u8);
                *lock = Some(id);
                PlanStep::Lock { lock: id, shared: rng.chance(0.6) }
            }
        },
    }
}

fn plan(rng: &mut Rng) -> Plan {
    let mut lock = None;
    let mut steps: Vec<PlanStep> = (0..1 + rng.below(12)).map(|_| step(rng, &mut lock)).collect();
    steps.extend(lock.map(PlanStep::Unlock));
    Plan { steps }
}

fn costs() -> HostCosts {
    HostCosts { queue_depth: 3, ..HostCosts::default() }
}

/// Threads that start a random plan when their last one has ended; what was issued, in its order.
fn play(seed: u64, threads: u64, plans: u64) -> (Vec<(SimTime, BlockRange)>, Vec<Event<u64>>) {
    let mut rng = Rng::new(seed);
    let mut machine = Machine::new(Device::new(seed), costs(), SimTime::ZERO, Events::default());
    let seen = Rc::new(RefCell::new(Vec::new()));
    let observer = Rc::clone(&seen);
    machine
        .observe(Box::new(move |request| observer.borrow_mut().push((request.at, request.range))));
    let mut left = plans;
    let mut happened = Vec::new();
    (0..threads).for_each(|thread| machine.start(SimTime::ZERO, thread, plan(&mut rng)));
    while let Some(event) = machine.advance().unwrap() {
        happened.push(event);
        let Event::Ended { lane, at } = event else { continue };
        if left > 0 {
            left -= 1;
            machine.start(at, lane, plan(&mut rng));
        }
    }
    let ended = happened.len() as u64;
    assert_eq!(ended, plans + threads, "every plan ends");
    drop(machine);
    (Rc::try_unwrap(seen).unwrap().into_inner(), happened)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The device asserts the order of times, and that each read gives what the plans' order of
    /// writes says.
    #[test]
    fn commands_come_in_the_order_of_time_and_all_plans_end(seed: u64, threads in 1_u64..9) {
        let (seen, happened) = play(seed, threads, 60);
        prop_assert!(seen.is_sorted_by_key(|(at, _)| *at));
        prop_assert_eq!((seen, happened), play(seed, threads, 60));
    }
}

fn run(plans: Vec<Vec<PlanStep>>) -> Result<Vec<(u64, u64)>, HostError> {
    let mut machine = Machine::new(Device::new(1), costs(), SimTime::ZERO, Events::default());
    for (lane, steps) in plans.into_iter().enumerate() {
        machine.start(SimTime::ZERO, lane as u64, Plan { steps });
    }
    let mut ends = Vec::new();
    while let Some(event) = machine.advance()? {
        if let Event::Ended { lane, at } = event {
            ends.push((lane, at.as_ns()));
        }
    }
    Ok(ends)
}

#[test]
fn who_waits_for_what_nobody_does_is_named() {
    let error =
        run(vec![vec![PlanStep::Await(EventId(7))], vec![PlanStep::Flush, PlanStep::WaitAll]])
            .unwrap_err();
    let HostError::Deadlock { waiting, .. } = &error else { panic!("{error}") };
    assert!(waiting.contains("0 waits") && waiting.contains("EventId(7)"), "{error}");
}

#[test]
fn plans_that_wait_for_each_other_are_named() {
    let one = |mine, other| vec![PlanStep::Await(EventId(other)), PlanStep::Signal(EventId(mine))];
    let error = run(vec![one(1, 2), one(2, 1)]).unwrap_err().to_string();
    assert!(error.contains("0 waits") && error.contains("1 waits"), "{error}");
}

/// Plays plans beside a timer.
fn run_beside_a_timer(plans: Vec<Vec<PlanStep>>) -> Result<usize, HostError> {
    let mut machine = Machine::new(Device::new(1), costs(), SimTime::ZERO, Events::default());
    let wanted = plans.len();
    for (lane, steps) in plans.into_iter().enumerate() {
        machine.start(SimTime::ZERO, lane as u64, Plan { steps });
    }
    beside_a_timer(machine, wanted)
}

/// Plays a machine while a timer fires every ten seconds, for an hour at most or until so many plans
/// have ended; returns how many have.
fn beside_a_timer(mut machine: Machine<Device, u64>, wanted: usize) -> Result<usize, HostError> {
    const TIMER: u64 = 99;
    let mut ended = 0;
    machine.wake_at(SimTime::ZERO, TIMER);
    while let Some(event) = machine.advance()? {
        match event {
            Event::Timer { at, .. }
                if ended < wanted && at < SimTime::from_ns(3_600_000_000_000) =>
            {
                machine.wake_at(at + SimSpan::from_ms(10_000), TIMER);
            }
            Event::Ended { .. } => ended += 1,
            _ => {}
        }
    }
    Ok(ended)
}

#[test]
fn timers_do_not_hide_plans_that_wait_for_each_other() {
    let one = |mine, other| vec![PlanStep::Await(EventId(other)), PlanStep::Signal(EventId(mine))];
    let error = run_beside_a_timer(vec![one(1, 2), one(2, 1)]).unwrap_err();
    let HostError::Deadlock { at, .. } = error else { panic!("{error}") };
    assert_eq!(at.as_ns() / 1_000_000_000, 610);
}

#[test]
fn who_waits_for_a_plan_that_takes_fifty_minutes_waits() {
    let lock = LockId(0);
    let until = |seconds: u64| PlanStep::Until(SimTime::from_ns(seconds * 1_000_000_000));
    let holds = vec![PlanStep::Lock { lock, shared: false }, until(3_000), PlanStep::Unlock(lock)];
    let waits = vec![PlanStep::Lock { lock, shared: true }, PlanStep::Unlock(lock)];
    assert_eq!(run_beside_a_timer(vec![holds, waits]).unwrap(), 2);
}

/// A call that writes ten pages back, of which six are dirty again, and one that waits until no
/// more than `most` are dirty or on their way. The first one waits for nothing.
fn write_back(device: Device, most: usize) -> Machine<Device, u64> {
    let planner = Planner::new(device.info(), u64::MAX);
    let mut machine = Machine::new(device, costs(), SimTime::ZERO, planner.events());
    let mut begin = |lane, hints: &[SchedulingHint]| {
        let mut planner = planner.clone();
        if lane == 0 {
            let data = Data::Patterns(Pattern::new(1));
            let (range, hints) = (BlockRange::new(Lba(5), 1), Hints::default());
            let write = Command::Write { range, data, hints, fua: false };
            planner.submit(SimTime::ZERO, write).unwrap();
        }
        hints.iter().for_each(|hint| planner.hint(*hint));
        machine.start(SimTime::ZERO, lane, planner.take(Plan::default()));
    };
    begin(0, &[SchedulingHint::OnTheirWay(10), SchedulingHint::Dirty(6)]);
    assert_eq!(planner.pages_on_their_way(), 10);
    begin(1, &[SchedulingHint::AwaitRoom(most)]);
    machine
}

/// The time at which each lane's plan has ended.
fn ends(mut machine: Machine<Device, u64>) -> Vec<u64> {
    let mut ends = vec![0; 2];
    while let Some(event) = machine.advance().unwrap() {
        if let Event::Ended { lane, at } = event {
            ends[lane as usize] = at.as_ns();
        }
    }
    ends
}

#[test]
fn who_waits_for_room_waits_until_the_pages_are_written() {
    let takes = SimSpan::from_us(Rng::new(1).below(100)).as_ns();
    assert!(takes > costs().request_ns);
    for (most, end) in [(15, takes), (16, 0), (5, takes)] {
        let submitted = costs().request_ns;
        assert_eq!(ends(write_back(Device::new(1), most)), [submitted, end], "{most}");
    }
}

#[test]
fn who_waits_for_a_write_of_many_minutes_waits() {
    let mut slow = Device::new(1);
    slow.longest_us = 3_000_000_000;
    assert!(Rng::new(1).below(slow.longest_us) > 700_000_000, "longer than what is stuck waits");
    assert_eq!(beside_a_timer(write_back(slow, 9), 2).unwrap(), 2);
}

#[test]
fn an_event_that_has_come_holds_nobody() {
    let ends =
        run(vec![vec![PlanStep::Signal(EventId(3))], vec![PlanStep::Await(EventId(3))]]).unwrap();
    assert_eq!(ends, [(0, 0), (1, 0)]);
}

#[test]
fn a_lock_held_alone_stops_the_others_until_it_is_given_back() {
    let write = |start| PlanStep::Write {
        range: BlockRange::new(Lba(start), 1),
        hints: Hints::default(),
        fua: false,
    };
    let lock = LockId(0);
    let alone = vec![
        PlanStep::Lock { lock, shared: false },
        write(0),
        PlanStep::WaitAll,
        PlanStep::Unlock(lock),
    ];
    let shares = vec![
        PlanStep::Lock { lock, shared: true },
        write(9),
        PlanStep::Unlock(lock),
        PlanStep::WaitAll,
    ];
    let ends = run(vec![alone, shares]).unwrap();
    assert!(ends[0].0 == 0 && ends[1].1 > ends[0].1, "{ends:?}");
}

#[test]
fn a_command_does_not_overtake_one_that_was_planned_before_it() {
    let range = BlockRange::new(Lba(5), 1);
    let write = || PlanStep::Write { range, hints: Hints::default(), fua: false };
    let mut machine = Machine::new(Device::new(3), costs(), SimTime::ZERO, Events::default());
    let seen = Rc::new(RefCell::new(Vec::new()));
    let observer = Rc::clone(&seen);
    machine.observe(Box::new(move |request| observer.borrow_mut().push(request.kind as u8)));
    let slow =
        vec![PlanStep::Read(BlockRange::new(Lba(40), 1)), PlanStep::WaitAll, PlanStep::Read(range)];
    machine.start(SimTime::ZERO, 0, Plan { steps: slow });
    machine.start(SimTime::ZERO, 1, Plan { steps: vec![write()] });
    while machine.advance().unwrap().is_some() {}
    let kinds = seen.borrow().clone();
    let (read, write) = (dovetail_host::RequestKind::Read, dovetail_host::RequestKind::Write);
    assert_eq!(kinds, [read as u8, read as u8, write as u8]);
}

#[test]
fn a_flush_begins_at_once_and_those_that_come_meanwhile_are_one() {
    let mut machine = Machine::new(Device::new(5), costs(), SimTime::ZERO, Events::default());
    (0..5).for_each(|lane| {
        machine.start(
            SimTime::ZERO,
            lane,
            Plan { steps: vec![PlanStep::Flush, PlanStep::WaitAll] },
        );
    });
    while machine.advance().unwrap().is_some() {}
    let traffic = machine.traffic();
    assert_eq!((traffic.flush.requests, traffic.merged_flushes), (2, 3));
}

/// Requests that arrive at once at a machine with these costs, and when each of them was over:
/// known at once, or told by an event.
fn requests(
    costs: HostCosts,
    commands: Vec<PlanStep>,
) -> (Machine<Device, usize>, Vec<Option<SimTime>>, usize) {
    let mut machine = Machine::new(Device::new(7), costs, SimTime::ZERO, Events::default());
    let mut ends: Vec<_> = (0..)
        .zip(commands)
        .map(|(lane, command)| machine.request(SimTime::ZERO, lane, command).unwrap())
        .collect();
    let at_once = ends.iter().flatten().count();
    while let Some(event) = machine.advance().unwrap() {
        let Event::Ended { lane, at } = event else { panic!("{event:?}") };
        assert_eq!(ends[lane].replace(at), None, "it ends once");
    }
    (machine, ends, at_once)
}

#[test]
fn requests_beyond_the_depth_of_the_queue_wait_for_room() {
    let read = |start| PlanStep::Read(BlockRange::new(Lba(start), 1));
    let (machine, ends, at_once) = requests(costs(), (0..9).map(read).collect());
    assert_eq!(at_once, 3);
    assert!(ends.iter().all(Option::is_some), "{ends:?}");
    assert_eq!(machine.traffic().read.requests, 9);
    let (_, _, at_once) = requests(HostCosts::NONE, (0..9).map(read).collect());
    assert_eq!(at_once, 9, "a raw drive has no limit");
}

#[test]
fn requests_for_flushes_share_one_if_the_host_merges_them() {
    let flushes = || vec![PlanStep::Flush; 5];
    let (machine, ends, _) = requests(HostCosts::default(), flushes());
    assert!(ends.iter().all(Option::is_some), "{ends:?}");
    assert_eq!((machine.traffic().flush.requests, machine.traffic().merged_flushes), (2, 3));
    let (machine, _, at_once) = requests(HostCosts::NONE, flushes());
    assert_eq!((at_once, machine.traffic().flush.requests), (5, 5));
}

#[test]
fn nothing_is_played_beyond_the_horizon() {
    let mut machine: Machine<_, u64> =
        Machine::new(Device::new(9), HostCosts::NONE, SimTime::ZERO, Events::default());
    let read = || [PlanStep::Read(BlockRange::new(Lba(3), 1)), PlanStep::WaitAll];
    machine.start(SimTime::ZERO, 0, Plan { steps: (0..8).flat_map(|_| read()).collect() });
    let horizon = SimTime::from_ns(1);
    assert_eq!(machine.advance_until(horizon), Ok(None));
    assert!(machine.now() <= horizon && machine.traffic().read.requests < 8);
    assert!(matches!(machine.advance(), Ok(Some(Event::Ended { lane: 0, .. }))));
}

/// Two threads at once on one CPU: the second one's call and request wait for the first one's.
#[test]
fn work_takes_turns_on_the_cpus_that_there_are() {
    let costs = HostCosts { cpus: 1, wake_ns: 0, ..costs() };
    let ends = |costs: HostCosts| {
        let steps = || vec![PlanStep::Read(BlockRange::new(Lba(0), 1)), PlanStep::WaitAll];
        let mut machine = Machine::new(Device::new(5), costs, SimTime::ZERO, Events::default());
        (0..2).for_each(|lane| machine.start(SimTime::ZERO, lane, Plan { steps: steps() }));
        let mut ends = Vec::new();
        while let Some(Event::Ended { at, .. }) = machine.advance().unwrap() {
            ends.push(at);
        }
        ends
    };
    let (one, many) = (ends(costs), ends(HostCosts { cpus: 0, ..costs }));
    let request = SimSpan::from_ns(costs.request_ns);
    assert_eq!(one, [many[0] + request, many[1] + request * 2], "{many:?}");
}

/// One thread works for three calls in a row, as long as another one wants to: the CPU is its own
/// until it asks for nothing more. With two CPUs the other one begins at once.
#[test]
fn a_thread_keeps_its_cpu_from_call_to_call() {
    let ends = |cpus| {
        let costs = HostCosts { cpus, ..costs() };
        let mut machine = Machine::new(Device::new(5), costs, SimTime::ZERO, Events::default());
        let work = SimSpan::from_us(10);
        let start = |machine: &mut Machine<_, _>, at, lane| {
            machine.start_after(at, work, (lane, lane), Plan::default())
        };
        (0..2).for_each(|lane| assert_eq!(start(&mut machine, SimTime::ZERO, lane), None));
        let (mut left, mut ends) = ([2, 0], Vec::new());
        while let Some(event) = machine.advance().unwrap() {
            let Event::Ended { lane, at } = event else { continue };
            ends.push((lane, at.as_ns() / 1000));
            if left[lane] > 0 {
                left[lane] -= 1;
                start(&mut machine, at, lane);
            }
        }
        ends
    };
    assert_eq!(ends(1), [(0, 10), (0, 20), (0, 30), (1, 40)]);
    assert_eq!(ends(2), [(0, 10), (1, 10), (0, 20), (0, 30)]);
}

/// Without durable writes a flush follows each, before the plan goes on.
#[test]
fn a_drive_without_fua_is_flushed_after_a_durable_write() {
    let planner = Planner::new(Device::new(5).info(), 256);
    planner.flush_for_fua();
    let mut device = planner.clone();
    let (range, hints) = (BlockRange::new(Lba(0), 1), Hints::default());
    let data = Data::Patterns(Pattern::new(1));
    device.submit(SimTime::ZERO, Command::Write { range, data, hints, fua: true }).unwrap();
    let plan = planner.take(Plan::default());
    let write = PlanStep::Write { range, hints, fua: false };
    assert_eq!(plan.steps, [write, PlanStep::WaitAll, PlanStep::Flush]);
}
