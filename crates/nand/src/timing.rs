//! When flash operations start and end.
//!
//! A die does one operation at a time and is busy until a known time; a command reserves the time after it.
//! Planes of one die work together when commands of the same kind for the same page index meet before the
//! first of them has started (a multi-plane command).
//!
//! A channel moves page data between the controller and its dies. It is kept as a backlog of work: a transfer
//! starts when its data is ready and the transfers issued before it would be through. A transfer whose data is
//! ready only later (a read behind a busy die) so does not block the channel until then; the channel never
//! carries more than its rate over any busy period.

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

/// What a die has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DieUse {
    /// Time in which the die worked.
    pub busy: SimSpan,
    /// Time from issue to end, summed over all its operations: divided by elapsed time, its mean queue depth.
    pub residence: SimSpan,
    /// Operations.
    pub operations: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Read,
    Program,
    Erase,
}

#[derive(Clone, Copy, Debug)]
struct Die {
    busy_until: SimTime,
    /// The operation that ends at `busy_until`: when it starts, what it is, on which page index and planes.
    start: SimTime,
    operation: Operation,
    page: u32,
    planes: u32,
    used: DieUse,
}

#[derive(Debug)]
pub(crate) struct Timeline {
    timing: Timing,
    channels: u32,
    dies: Vec<Die>,
    channel_backlog_until: Vec<SimTime>,
}

/// Where an operation takes place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) die: u32,
    pub(crate) plane: u32,
    pub(crate) page: u32,
}

impl Timeline {
    pub(crate) fn new(timing: Timing, geometry: &Geometry) -> Self {
        let idle = Die {
            busy_until: SimTime::ZERO,
            start: SimTime::ZERO,
            operation: Operation::Read,
            page: 0,
            planes: u32::MAX,
            used: DieUse::default(),
        };
        Self {
            timing,
            channels: geometry.channels,
            dies: vec![idle; geometry.dies() as usize],
            channel_backlog_until: vec![SimTime::ZERO; geometry.channels as usize],
        }
    }

    /// Cell array, then channel. Ends when the data is in the controller.
    pub(crate) fn read(&mut self, at: SimTime, place: Place, bytes: u32) -> SimTime {
        let sensed = self.work(at, at, place, Operation::Read);
        self.transfer(at, sensed, place.die, bytes)
    }

    /// Channel, then cell array.
    pub(crate) fn program(&mut self, at: SimTime, place: Place, bytes: u32) -> SimTime {
        let arrived = self.transfer(at, at, place.die, bytes);
        self.work(at, arrived, place, Operation::Program)
    }

    pub(crate) fn erase(&mut self, at: SimTime, place: Place) -> SimTime {
        self.work(at, at, place, Operation::Erase)
    }

    pub(crate) fn die_use(&self) -> impl Iterator<Item = DieUse> {
        self.dies.iter().map(|die| die.used)
    }

    /// When the last of the dies falls idle.
    pub(crate) fn idle_from(&self) -> SimTime {
        self.dies.iter().map(|die| die.busy_until).max().unwrap_or_default()
    }

    /// Forgets all reservations and counts: time starts again at 0.
    pub(crate) fn reset(&mut self, geometry: &Geometry) {
        *self = Self::new(self.timing, geometry);
    }

    fn transfer(&mut self, at: SimTime, ready: SimTime, die: u32, bytes: u32) -> SimTime {
        let backlog = &mut self.channel_backlog_until[(die % self.channels) as usize];
        let span = SimSpan::from_ns(self.timing.transfer_4k.as_ns() * u64::from(bytes) / 4096);
        let start = ready.max(*backlog);
        *backlog = at.max(*backlog) + span;
        start + span
    }

    /// Reserves the die for an operation issued at `at` that can start at `ready`; returns its end.
    fn work(&mut self, at: SimTime, ready: SimTime, place: Place, operation: Operation) -> SimTime {
        let span = match operation {
            Operation::Read => self.timing.read,
            Operation::Program => self.timing.program,
            Operation::Erase => self.timing.erase,
        };
        let die = &mut self.dies[place.die as usize];
        let plane = 1 << place.plane;
        let joins = at <= die.start
            && die.operation == operation
            && die.page == place.page
            && die.planes & plane == 0;
        let start = if joins { ready.max(die.start) } else { ready.max(die.busy_until) };
        let end = start + span;
        die.used.busy += if joins { end.since(die.busy_until) } else { span };
        die.used.residence += end.since(at);
        die.used.operations += 1;
        die.planes = if joins { die.planes | plane } else { plane };
        (die.busy_until, die.start, die.operation, die.page) = (end, start, operation, place.page);
        end
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

    fn place(die: u32, plane: u32, page: u32) -> Place {
        Place { die, plane, page }
    }

    #[test]
    fn dies_work_side_by_side_and_share_the_channel() {
        let mut t = timeline();
        assert_eq!(t.program(us(100), place(0, 0, 0), 4096), us(610));
        assert_eq!(t.program(us(100), place(1, 0, 0), 4096), us(620), "waits for the channel");
        assert_eq!(t.program(us(100), place(0, 0, 1), 4096), us(1110), "waits for the die");
        assert_eq!(t.read(us(100), place(1, 0, 7), 4096), us(680), "behind the die's program");
    }

    #[test]
    fn a_read_behind_a_busy_die_does_not_block_its_channel() {
        let mut t = timeline();
        t.erase(us(0), place(0, 0, 0));
        assert_eq!(t.read(us(0), place(0, 0, 1), 4096), us(5060));
        assert_eq!(t.read(us(0), place(1, 0, 1), 4096), us(60));
    }

    #[test]
    fn planes_join_one_program_before_it_starts() {
        let mut t = timeline();
        t.erase(us(0), place(0, 0, 0));
        assert_eq!(t.program(us(0), place(0, 0, 3), 4096), us(5500));
        assert_eq!(t.program(us(0), place(0, 1, 3), 4096), us(5500), "the other plane, same page");
        assert_eq!(t.program(us(0), place(0, 1, 4), 4096), us(6000), "another page");
        let used: Vec<_> = t.die_use().collect();
        assert_eq!(used[0].busy, SimSpan::from_us(6000));
        assert_eq!(used[0].operations, 4);
    }
}
