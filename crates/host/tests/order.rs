//! Random calls of many threads through a planner, remaps among them: each block sees the commands
//! in the order of the calls.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use dovetail_block::{
    BatchId, BlockDevice, BlockRange, Capabilities, Command, Completion, Content, Data,
    DeviceError, DeviceInfo, Hints, Inode, Lba, MemoryDevice, Pattern, RemapLimits, RemapPair,
    RemapWhen, Scheduler, SchedulingHint, SectorRange,
};
use dovetail_host::{Event, Events, HostCosts, HostError, Machine, Plan, PlanStep, Planner};
use dovetail_time::{Rng, SimSpan, SimTime};
use proptest::prelude::*;

const BLOCKS: u64 = 32;
const LIMITS: RemapLimits = RemapLimits::of(4, 8);

/// Command that a block saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Read,
    /// By the number in its hints.
    Write(u32),
    Discard,
    /// By its number.
    Remap(BatchId),
}

type Log = BTreeMap<Lba, Vec<Seen>>;

/// A device that takes a random time for each command, and notes what each block sees.
struct Device {
    memory: MemoryDevice,
    rng: Rng,
    log: Rc<RefCell<Log>>,
    held: BTreeMap<BatchId, Vec<RemapPair>>,
}

fn info() -> DeviceInfo {
    let capabilities =
        Capabilities { discard: true, streams: 1, remap: Some(LIMITS), ..Capabilities::default() };
    DeviceInfo { blocks: BLOCKS, capabilities }
}

fn note(log: &mut Log, range: BlockRange, seen: Seen) {
    range.iter().for_each(|lba| log.entry(lba).or_default().push(seen));
}

/// Notes what blocks see of a command. All remaps here belong to a batch of one or two commands.
fn note_command(
    log: &mut Log,
    held: &mut BTreeMap<BatchId, Vec<RemapPair>>,
    command: &Command<'_>,
) {
    match command {
        Command::Read { range, .. } => note(log, *range, Seen::Read),
        Command::Write { range, hints, .. } => note(log, *range, Seen::Write(hints.inode.0)),
        Command::Flush => {}
        Command::Discard { ranges } => {
            ranges.iter().for_each(|range| note(log, range.blocks_inside(), Seen::Discard));
        }
        Command::Remap { pairs, when: RemapWhen::Held(batch) } => {
            held.entry(*batch).or_default().extend_from_slice(pairs);
        }
        Command::Remap { pairs, when: RemapWhen::WithHeld(batch) } => {
            let mut all = held.remove(batch).unwrap_or_default();
            all.extend_from_slice(pairs);
            let addresses = all.iter().flat_map(|pair| [pair.to, pair.from]);
            addresses.for_each(|lba| note(log, BlockRange::new(lba, 1), Seen::Remap(*batch)));
        }
        Command::Remap { .. }
        | Command::Devirtualize(_)
        | Command::Append { .. }
        | Command::Zone { .. }
        | Command::UpdateHandles(_)
        | Command::Query(_) => {
            panic!("not made here")
        }
    }
}

impl BlockDevice for Device {
    fn info(&self) -> DeviceInfo {
        info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        note_command(&mut self.log.borrow_mut(), &mut self.held, &command);
        self.memory.submit(at, command)?;
        Ok(Completion::at(at + SimSpan::from_us(self.rng.below(100))))
    }
}

/// Issuer of calls, with what each block should see of them.
struct Caller {
    rng: Rng,
    planner: Planner,
    log: Log,
    held: BTreeMap<BatchId, Vec<RemapPair>>,
    /// Content of each block, by the calls.
    model: Vec<Content>,
    number: u32,
}

impl Caller {
    fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            planner: Planner::new(info(), 3),
            log: Log::new(),
            held: BTreeMap::new(),
            model: vec![Content::Empty; BLOCKS as usize],
            number: 0,
        }
    }

    fn submit(&mut self, command: Command<'_>) {
        note_command(&mut self.log, &mut self.held, &command);
        self.planner.submit(SimTime::ZERO, command).unwrap();
    }

    fn call(&mut self) -> Plan {
        for _ in 0..1 + self.rng.below(6) {
            self.step();
        }
        self.planner.take(Plan::default())
    }

    fn step(&mut self) {
        let start = self.rng.below(BLOCKS - 4);
        let range = BlockRange::new(Lba(start), 1 + self.rng.below(4));
        self.number += 1;
        match self.rng.below(9) {
            0 | 1 => self.read(range),
            2..5 => self.write(range),
            5 => self.submit(Command::Flush),
            6 => {
                range.iter().for_each(|lba| self.model[lba.0 as usize] = Content::Empty);
                self.submit(Command::Discard { ranges: &[SectorRange::from(range)] });
            }
            7 => self.remap(),
            _ => self.planner.hint(if self.rng.chance(0.5) {
                SchedulingHint::WaitAll
            } else {
                SchedulingHint::WaitReads
            }),
        }
    }

    fn read(&mut self, range: BlockRange) {
        let mut into = vec![Content::Empty; range.blocks as usize];
        self.submit(Command::Read { range, into: Some(&mut into) });
        assert_eq!(into, self.model[range.start.0 as usize..range.end().0 as usize]);
    }

    fn write(&mut self, range: BlockRange) {
        let first = Pattern::new(u64::from(self.number) * 100);
        for (i, lba) in range.iter().enumerate() {
            self.model[lba.0 as usize] = Content::Pattern(first.nth(i as u64));
        }
        let hints = Hints { inode: Inode(self.number), ..Hints::default() };
        self.submit(Command::Write { range, data: Data::Patterns(first), hints, fua: false });
    }

    /// A batch of two commands, or of one; reads of one of its blocks between the two.
    fn remap(&mut self) {
        let mut lbas: Vec<u64> = (0..BLOCKS).collect();
        for i in 0..12 {
            let with = i + self.rng.below(BLOCKS - i);
            lbas.swap(i as usize, with as usize);
        }
        let pair = |of: &[u64]| RemapPair { to: Lba(of[0]), from: Lba(of[1]) };
        let pairs: Vec<RemapPair> =
            lbas[..2 * (1 + self.rng.below(6) as usize)].chunks(2).map(pair).collect();
        let first = self.rng.below(1 + pairs.len().min(4) as u64) as usize;
        let first = first.max(pairs.len().saturating_sub(4));
        let batch = BatchId(self.number);
        if first > 0 {
            self.submit(Command::Remap { pairs: &pairs[..first], when: RemapWhen::Held(batch) });
            self.read(BlockRange::new(pairs[0].to, 1));
        }
        self.submit(Command::Remap { pairs: &pairs[first..], when: RemapWhen::WithHeld(batch) });
        for RemapPair { to, from } in pairs {
            self.model[to.0 as usize] =
                std::mem::replace(&mut self.model[from.0 as usize], Content::Empty);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn each_block_sees_commands_in_the_order_of_the_calls(seed: u64, threads in 1_u64..9) {
        let mut caller = Caller::new(seed);
        let log = Rc::new(RefCell::new(Log::new()));
        let device = Device {
            memory: MemoryDevice::new(BLOCKS),
            rng: Rng::new(seed),
            log: Rc::clone(&log),
            held: BTreeMap::new(),
        };
        let costs = HostCosts { queue_depth: 3, ..HostCosts::default() };
        let mut machine = Machine::new(device, costs, SimTime::ZERO, caller.planner.events());
        (0..threads).for_each(|thread| machine.start(SimTime::ZERO, thread, caller.call()));
        let mut left = 60;
        while let Some(event) = machine.advance().unwrap() {
            let Event::Ended { lane, at } = event else { continue };
            if left > 0 {
                left -= 1;
                machine.start(at, lane, caller.call());
            }
        }
        prop_assert_eq!(&*log.borrow(), &caller.log);
        let steps = vec![PlanStep::Read(BlockRange::new(Lba(0), BLOCKS))];
        machine.start(machine.now(), 0, Plan { steps });
        machine.advance().unwrap();
    }
}

fn pair(to: u64, from: u64) -> RemapPair {
    RemapPair { to: Lba(to), from: Lba(from) }
}

#[test]
fn remaps_and_their_pairs_are_counted() {
    let mut planner = Planner::new(info(), 8);
    let remap = |planner: &mut Planner, pairs: &[RemapPair], when| {
        planner.submit(SimTime::ZERO, Command::Remap { pairs, when }).map(|_| ())
    };
    remap(&mut planner, &[pair(0, 1), pair(2, 3)], RemapWhen::Held(BatchId(1))).unwrap();
    remap(&mut planner, &[pair(4, 5)], RemapWhen::WithHeld(BatchId(1))).unwrap();
    let five = [1, 3, 5, 7, 9].map(|to| pair(to, to + 1));
    let error = remap(&mut planner, &five, RemapWhen::Now).unwrap_err();
    assert_eq!(error, DeviceError::RemapTooLong { pairs: 5, limit: 4 });
    let device = MemoryDevice::new(BLOCKS);
    let mut machine = Machine::new(device, HostCosts::default(), SimTime::ZERO, planner.events());
    machine.start(SimTime::ZERO, 0, planner.take(Plan::default()));
    while machine.advance().unwrap().is_some() {}
    let remap = machine.traffic().remap;
    assert_eq!((remap.requests, remap.blocks), (2, 3));
}

/// A drive that loses the content that it should have moved.
struct Forgetful(MemoryDevice);

impl BlockDevice for Forgetful {
    fn info(&self) -> DeviceInfo {
        info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Remap { .. } => Ok(Completion::at(at)),
            command => self.0.submit(at, command),
        }
    }
}

#[test]
fn a_drive_that_does_not_move_blocks_is_found() {
    let range = BlockRange::new(Lba(1), 1);
    let write = PlanStep::Write { range, hints: Hints::default(), fua: false };
    let remap =
        dovetail_host::Remap { pairs: vec![pair(0, 1)], when: RemapWhen::Now, held: Vec::new() };
    let steps = vec![
        write,
        PlanStep::WaitAll,
        PlanStep::Remap(Box::new(remap)),
        PlanStep::Read(BlockRange::new(Lba(0), 1)),
    ];
    let device = Forgetful(MemoryDevice::new(BLOCKS));
    let mut machine = Machine::new(device, HostCosts::default(), SimTime::ZERO, Events::default());
    machine.start(SimTime::ZERO, 0, Plan { steps });
    let error = machine.advance().unwrap_err();
    assert!(matches!(error, HostError::WrongData { lba: Lba(0), .. }), "{error}");
}
