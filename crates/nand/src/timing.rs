//! Times at which flash operations start and end.
//!
//! A die does one operation at a time and is busy until a known time; a program or erase reserves
//! the time after it. A read goes before what is only reserved: it waits for the operation that is
//! under way and for earlier reads, and moves the end of the reservations by its own time (times
//! that were already given out for them stay as they were told; of several erases that wait, reads
//! see the last). So a read behind a long queue of programs waits for one of them, as it does in
//! controllers that put reads first, and moving pages does not chain the dies to each other.
//!
//! Planes of one die work together when commands of the same kind for the same page index meet
//! before the first of them has started (a multi-plane command).
//!
//! A channel moves page data between the controller and its dies. It is kept as a backlog of work:
//! a transfer starts when its data is ready and the transfers issued before it are through. A
//! read's transfer takes its place in the backlog as if its die were idle; behind a busy die its
//! data comes later, and the channel is not blocked until then. So reads that had to wait for their
//! dies can meet on a channel for which the model has already gone on: the channel carries its rate
//! over time, and in such moments briefly more.

use dovetail_time::{SimSpan, SimTime};

use crate::geometry::Geometry;

/// The speed of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Cell array to page register.
    pub read: SimSpan,
    /// Page register to cell array.
    pub program: SimSpan,
    /// Erasing a block.
    pub erase: SimSpan,
    /// Moving 4 KiB over a channel.
    pub transfer_4k: SimSpan,
}

/// The work of a die so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DieUse {
    /// Time in which the die worked.
    pub busy: SimSpan,
    /// Time from issue to end, summed over all its operations: divided by elapsed time, its mean
    /// queue depth.
    pub residence: SimSpan,
    /// Operations.
    pub operations: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Operation {
    #[default]
    Program,
    Erase,
}

/// The program or erase that was reserved last.
#[derive(Clone, Copy, Debug, Default)]
struct Reservation {
    start: SimTime,
    end: SimTime,
    operation: Operation,
    page: u32,
    planes: u32,
}

/// A die needs no list of its reservations: from the end of the last one backwards they are
/// programs, one after the other, but for an erase, of which the last is kept.
#[derive(Clone, Copy, Debug, Default)]
struct Die {
    busy_until: SimTime,
    /// Time when the reservations that follow each other without a gap begin.
    busy_from: SimTime,
    last: Reservation,
    last_erase: (SimTime, SimTime),
    /// The end of the last read.
    reads_until: SimTime,
    used: DieUse,
}

impl Die {
    /// Returns when a read that is ready now can start: after what is under way, and after earlier
    /// reads.
    fn read_start(&self, ready: SimTime, program: SimSpan) -> SimTime {
        let under_way_until = if ready < self.busy_from || ready >= self.busy_until {
            ready
        } else {
            let (erase_start, erase_end) = self.last_erase;
            match (ready < erase_start, ready < erase_end) {
                (false, true) => erase_end,
                (true, _) => last_boundary(erase_start, ready, program),
                (false, false) => last_boundary(self.busy_until, ready, program),
            }
        };
        under_way_until.max(self.reads_until)
    }

    /// Takes the time from `start` on, at the end of what is reserved.
    fn reserve(&mut self, start: SimTime, span: SimSpan) {
        if start > self.busy_until {
            self.busy_from = start;
        }
        self.busy_until = start + span;
    }
}

/// The end of the program that is under way at `ready`, when programs follow each other up to
/// `end`.
fn last_boundary(end: SimTime, ready: SimTime, program: SimSpan) -> SimTime {
    let whole = end.since(ready).as_ns() / program.as_ns().max(1) * program.as_ns();
    SimTime::from_ns(end.as_ns() - whole)
}

#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    timing: Timing,
    /// The die, plane bit and channel of each unit.
    units: Vec<Unit>,
    dies: Vec<Die>,
    channel_backlog_until: Vec<SimTime>,
}

/// The page of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramTarget {
    pub(crate) unit: u32,
    /// Its index in its block.
    pub(crate) page: u32,
}

#[derive(Clone, Copy, Debug)]
struct Unit {
    die: u32,
    plane: u32,
    channel: u32,
}

impl Unit {
    fn new(geometry: &Geometry, unit: u32) -> Self {
        let (die, plane) = geometry.die_of(unit);
        Self { die, plane: 1 << plane, channel: die % geometry.channels }
    }
}

impl Timeline {
    pub(crate) fn new(timing: Timing, geometry: &Geometry) -> Self {
        Self {
            timing,
            units: (0..geometry.units()).map(|unit| Unit::new(geometry, unit)).collect(),
            dies: vec![Die::default(); geometry.dies() as usize],
            channel_backlog_until: vec![SimTime::ZERO; geometry.channels as usize],
        }
    }

    /// Cell array, then channel. Ends when the data is in the controller.
    pub(crate) fn read(&mut self, at: SimTime, unit: u32, bytes: u32) -> SimTime {
        let span = self.timing.read;
        let unit = self.units[unit as usize];
        let die = &mut self.dies[unit.die as usize];
        let start = die.read_start(at, self.timing.program);
        let sensed = start + span;
        die.reads_until = sensed;
        die.reserve(die.busy_until.max(start), span);
        die.used.note(at, sensed, span);
        self.transfer(at, sensed, unit.channel, bytes)
    }

    /// Channel, then cell array.
    pub(crate) fn program(&mut self, at: SimTime, place: ProgramTarget, bytes: u32) -> SimTime {
        let unit = self.units[place.unit as usize];
        let arrived = self.transfer(at, at, unit.channel, bytes);
        self.work(at, arrived, unit, place.page, Operation::Program)
    }

    pub(crate) fn erase(&mut self, at: SimTime, unit: u32) -> SimTime {
        self.work(at, at, self.units[unit as usize], 0, Operation::Erase)
    }

    pub(crate) fn die_use(&self) -> impl Iterator<Item = DieUse> {
        self.dies.iter().map(|die| die.used)
    }

    /// Returns when the last of the dies falls idle.
    pub(crate) fn idle_from(&self) -> SimTime {
        self.dies.iter().map(|die| die.busy_until).max().unwrap_or_default()
    }

    /// Forgets all reservations and counts: time starts again at 0.
    pub(crate) fn reset(&mut self, geometry: &Geometry) {
        *self = Self::new(self.timing, geometry);
    }

    fn transfer(&mut self, at: SimTime, ready: SimTime, channel: u32, bytes: u32) -> SimTime {
        let backlog = &mut self.channel_backlog_until[channel as usize];
        let span = SimSpan::from_ns(self.timing.transfer_4k.as_ns() * u64::from(bytes) / 4096);
        let start = ready.max(*backlog);
        *backlog = ready.min(at + self.timing.read).max(*backlog) + span;
        start + span
    }

    /// Reserves the die for an operation issued at `at` that can start at `ready`; returns its end.
    fn work(
        &mut self,
        at: SimTime,
        ready: SimTime,
        unit: Unit,
        page: u32,
        operation: Operation,
    ) -> SimTime {
        let span = match operation {
            Operation::Program => self.timing.program,
            Operation::Erase => self.timing.erase,
        };
        let die = &mut self.dies[unit.die as usize];
        if die.last.joins(at, operation, page, unit.plane) {
            let late = ready.since(die.last.start);
            die.last.planes |= unit.plane;
            (die.last.start, die.last.end) = (die.last.start + late, die.last.end + late);
            die.busy_until += late;
            die.used.note(at, die.last.end, late);
            return die.last.end;
        }
        let start = ready.max(die.busy_until);
        let end = start + span;
        die.reserve(start, span);
        die.used.note(at, end, span);
        die.last = Reservation { start, end, operation, page, planes: unit.plane };
        if operation == Operation::Erase {
            die.last_erase = (start, end);
        }
        end
    }
}

impl Reservation {
    fn joins(&self, at: SimTime, operation: Operation, page: u32, plane: u32) -> bool {
        at <= self.start
            && self.operation == operation
            && self.page == page
            && self.planes & plane == 0
            && self.planes != 0
    }
}

impl DieUse {
    fn note(&mut self, issued: SimTime, end: SimTime, worked: SimSpan) {
        self.busy += worked;
        self.residence += end.since(issued);
        self.operations += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry {
        channels: 1,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks_per_plane: 4,
        pages_per_block: 4,
        page_bytes: 4096,
    };

    fn timeline() -> Timeline {
        let timing = Timing {
            read: SimSpan::from_us(50),
            program: SimSpan::from_us(500),
            erase: SimSpan::from_ms(5),
            transfer_4k: SimSpan::from_us(10),
        };
        Timeline::new(timing, &GEOMETRY)
    }

    fn us(n: u64) -> SimTime {
        SimTime::from_ns(n * 1000)
    }

    /// Units are numbered die first: two dies, then their second planes.
    fn place(die: u32, plane: u32, page: u32) -> ProgramTarget {
        ProgramTarget { unit: plane * 2 + die, page }
    }

    #[test]
    fn dies_work_side_by_side_and_share_the_channel() {
        let mut t = timeline();
        assert_eq!(t.program(us(100), place(0, 0, 0), 4096), us(610));
        assert_eq!(t.program(us(100), place(1, 0, 0), 4096), us(620), "waits for the channel");
        assert_eq!(t.program(us(100), place(0, 0, 1), 4096), us(1110), "waits for the die");
        assert_eq!(t.read(us(100), 1, 4096), us(160), "before the die's program has started");
        assert_eq!(
            t.program(us(100), place(1, 0, 1), 4096),
            us(1170),
            "the read has moved the die's end"
        );
    }

    #[test]
    fn a_read_waits_for_what_is_under_way_and_not_for_the_queue() {
        let mut t = timeline();
        for page in 0..4 {
            t.program(us(0), place(0, 0, page), 4096);
        }
        assert_eq!(t.read(us(600), 0, 4096), us(1010 + 60), "the second program is under way");
        assert_eq!(t.read(us(600), 0, 4096), us(1010 + 110), "one read after the other");
        assert_eq!(t.program(us(600), place(0, 0, 4), 4096), us(2010 + 100 + 500));
    }

    #[test]
    fn a_read_behind_a_busy_die_does_not_block_its_channel() {
        let mut t = timeline();
        t.erase(us(0), 0);
        assert_eq!(t.read(us(0), 0, 4096), us(5060));
        assert_eq!(
            t.read(us(0), 1, 4096),
            us(70),
            "behind the place that the first one has in the backlog"
        );
    }

    #[test]
    fn reads_of_idle_dies_share_their_channel() {
        let mut t = timeline();
        let done = [t.read(us(0), 0, 4096), t.read(us(0), 1, 4096)];
        assert_eq!(done, [us(60), us(70)]);
    }

    #[test]
    fn a_read_waits_for_an_erase_under_way() {
        let mut t = timeline();
        t.program(us(0), place(0, 0, 0), 4096);
        t.erase(us(0), 0);
        t.program(us(0), place(0, 0, 1), 4096);
        assert_eq!(t.read(us(100), 0, 4096), us(510 + 60), "the program");
        assert_eq!(t.read(us(2000), 0, 4096), us(5510 + 60), "the erase");
        assert_eq!(t.read(us(9000), 0, 4096), us(9060), "idle");
    }

    #[test]
    fn planes_join_one_program_before_it_starts() {
        let mut t = timeline();
        t.erase(us(0), 0);
        assert_eq!(t.program(us(0), place(0, 0, 3), 4096), us(5500));
        assert_eq!(t.program(us(0), place(0, 1, 3), 4096), us(5500), "the other plane, same page");
        assert_eq!(t.program(us(0), place(0, 1, 4), 4096), us(6000), "another page");
        let used: Vec<_> = t.die_use().collect();
        assert_eq!(used[0].busy, SimSpan::from_us(6000));
        assert_eq!(used[0].operations, 4);
    }
}
