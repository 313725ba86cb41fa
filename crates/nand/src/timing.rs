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
//! before the first of them has started (a multi-plane command). So do the pages of a word line
//! that is programmed in one go.
//!
//! A die keeps its operations one by one (`agenda.rs`) where they take different times, are suspended
//! for reads, or planes read apart; otherwise what is under way is worked out from the end of the
//! reservations.
//!
//! A channel moves page data between the controller and its dies. It is kept as a backlog of work:
//! a transfer starts when its data is ready and the transfers issued before it are through. A
//! read's transfer takes its place in the backlog as if its die were idle; behind a busy die its
//! data comes later, and the channel is not blocked until then. So reads that had to wait for their
//! dies can meet on a channel for which the model has already gone on: the channel carries its rate
//! over time, and in such moments briefly more. With phases (`bus.rs`) each transfer has its own
//! time on the channel.

use dovetail_time::{SimSpan, SimTime};

use crate::agenda::{Agenda, Operation};
use crate::bus::{Bus, BusPhases};
use crate::cells::{CellMode, Cells, SingleTiming};
use crate::geometry::Geometry;
use crate::suspend::Suspend;

/// The speed of the flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Cell array to page register; the mean of a page where their types differ.
    pub read: SimSpan,
    /// Page register to cell array; of a word line where its pages are programmed in one go, and
    /// otherwise the mean of a page where their types differ.
    pub program: SimSpan,
    /// Erasing a block.
    pub erase: SimSpan,
    /// Moving 4 KiB over a channel.
    pub transfer_4k: SimSpan,
    /// Cells of several bits whose pages are told apart. `None`: all pages are alike.
    pub cells: Option<Cells>,
    /// Blocks that are filled at one bit a cell, if the drive does that.
    pub single: Option<SingleTiming>,
    /// Suspension for reads. `None`: reads wait for what is under way.
    pub suspend: Option<Suspend>,
    /// Set if each plane of a die reads by itself.
    pub planes_read_apart: bool,
    /// Commands on the channels, and transfers in the order in which they are ready. `None`: a
    /// channel is a backlog of data.
    pub bus: Option<BusPhases>,
}

impl Timing {
    /// Bits of a cell as far as the pages of a block are told apart.
    pub fn bits(&self) -> u32 {
        self.cells.as_ref().map_or(1, |cells| cells.bits)
    }

    /// Pages of a block that are programmed in one go.
    #[inline]
    pub fn pages_at_once(&self, mode: CellMode) -> u32 {
        self.cells.as_ref().map_or(1, |cells| cells.pages_at_once(mode))
    }

    /// Moving data over a channel.
    #[inline]
    fn transfer(&self, bytes: u32) -> SimSpan {
        SimSpan::from_ns(self.transfer_4k.as_ns() * u64::from(bytes) / 4096)
    }

    fn read_of(&self, page: u32, mode: CellMode) -> SimSpan {
        match (mode, self.single, self.cells) {
            (CellMode::Single, Some(single), _) => single.read,
            (_, _, Some(cells)) => cells.read[cells.type_of(page)],
            _ => self.read,
        }
    }

    fn program_of(&self, page: u32, mode: CellMode) -> SimSpan {
        match (mode, self.single, self.cells) {
            (CellMode::Single, Some(single), _) => single.program,
            (_, _, Some(cells)) => cells.program[cells.type_of(page)],
            _ => self.program,
        }
    }

    fn erase_of(&self, mode: CellMode) -> SimSpan {
        match (mode, self.single) {
            (CellMode::Single, Some(single)) => single.erase,
            _ => self.erase,
        }
    }

    /// Tells whether all programs take the same time and reads wait for them.
    fn is_plain(&self) -> bool {
        self.cells.is_none()
            && self.single.is_none()
            && self.suspend.is_none()
            && !self.planes_read_apart
            && self.bus.is_none()
    }
}

/// The work of a die: until a point in time, and issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DieUse {
    /// Time in which the die worked, up to that point; waiting of planes for each other, and of what
    /// was sensed for its channel, counts.
    pub busy: SimSpan,
    /// Time from issue to end, summed over all its operations: divided by elapsed time, its mean
    /// queue depth. It has all operations that were issued.
    pub residence: SimSpan,
    /// Operations that were issued.
    pub operations: u64,
}

/// The program or erase that was reserved last.
#[derive(Clone, Copy, Debug, Default)]
struct Reservation {
    start: SimTime,
    end: SimTime,
    operation: Operation,
    /// The page or word line that the parts of the operation have in common.
    row: u32,
    /// One bit for each page of the row on each plane.
    parts: u64,
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
    #[inline]
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

    /// The part of its work that is reserved for the time after `at`, of those reservations that
    /// follow each other without a gap.
    fn ahead(&self, at: SimTime) -> SimSpan {
        let from = self.busy_from.max(at).min(self.busy_until);
        self.busy_until.since(from)
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
    /// By die, unless the timing is plain.
    agendas: Vec<Agenda>,
    /// End of the last read, by unit, where planes read apart.
    plane_reads_until: Vec<SimTime>,
    /// The page that each unit has sensed last, unless the timing is plain.
    sensed: Vec<Sensed>,
    /// By channel, where it has phases.
    buses: Vec<Bus>,
}

/// The page of a chip that was sensed last.
#[derive(Clone, Copy, Debug, Default)]
struct Sensed {
    block: u32,
    /// Its number in the block; of no page at first.
    page: Option<u32>,
    until: SimTime,
}

/// The page of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) unit: u32,
    /// The number of its block.
    pub(crate) block: u32,
    /// Its index in its block.
    pub(crate) page: u32,
    /// The mode of its block.
    pub(crate) mode: CellMode,
}

/// Rows of blocks that are filled at one bit a cell, apart from those of others.
const SINGLE_ROW: u32 = 1 << 31;

#[derive(Clone, Copy, Debug)]
struct Unit {
    die: u32,
    plane: u32,
    channel: u32,
}

impl Unit {
    fn new(geometry: &Geometry, unit: u32) -> Self {
        let (die, plane) = geometry.die_of(unit);
        Self { die, plane, channel: die % geometry.channels }
    }
}

impl Timeline {
    pub(crate) fn new(timing: Timing, geometry: &Geometry) -> Self {
        let dies = geometry.dies() as usize;
        let units = if timing.planes_read_apart { geometry.units() as usize } else { 0 };
        Self {
            timing,
            units: (0..geometry.units()).map(|unit| Unit::new(geometry, unit)).collect(),
            dies: vec![Die::default(); dies],
            channel_backlog_until: vec![SimTime::ZERO; geometry.channels as usize],
            agendas: vec![Agenda::default(); if timing.is_plain() { 0 } else { dies }],
            plane_reads_until: vec![SimTime::ZERO; units],
            sensed: vec![
                Sensed::default();
                if timing.is_plain() { 0 } else { geometry.units() as usize }
            ],
            buses: vec![Bus::default(); timing.bus.map_or(0, |_| geometry.channels as usize)],
        }
    }

    /// Cell array, then channel. Ends when the data is in the controller. `more` is what the cell
    /// array takes beyond its time.
    #[inline]
    pub(crate) fn read(&mut self, at: SimTime, from: Target, bytes: u32, more: SimSpan) -> SimTime {
        if !self.agendas.is_empty() {
            return self.read_among_others(at, from, bytes, more);
        }
        self.read_alone(at, from.unit, bytes, self.timing.read + more)
    }

    /// Tells whether no die keeps its operations one by one.
    pub(crate) fn is_plain(&self) -> bool {
        self.agendas.is_empty()
    }

    /// As [`Timeline::read`], of a timeline that is plain.
    #[inline]
    pub(crate) fn read_plainly(&mut self, at: SimTime, unit: u32, bytes: u32) -> SimTime {
        self.read_alone(at, unit, bytes, self.timing.read)
    }

    #[inline]
    fn read_alone(&mut self, at: SimTime, unit: u32, bytes: u32, span: SimSpan) -> SimTime {
        let unit = self.units[unit as usize];
        let die = &mut self.dies[unit.die as usize];
        let start = die.read_start(at, self.timing.program);
        let sensed = start + span;
        die.reads_until = sensed;
        die.reserve(die.busy_until.max(start), span);
        die.used.note(at, sensed, span);
        self.transfer(at, sensed, unit.channel, bytes)
    }

    /// As [`Timeline::read`], among operations that are kept one by one.
    #[inline(never)] // it would weigh on plain reads
    fn read_among_others(
        &mut self,
        at: SimTime,
        from: Target,
        bytes: u32,
        more: SimSpan,
    ) -> SimTime {
        let span = self.timing.read_of(from.page, from.mode) + more;
        let unit = self.units[from.unit as usize];
        let parts = self.timing.cells.map_or(1, |cells| cells.parts);
        let page = Some(from.page / parts);
        let last = self.sensed[from.unit as usize];
        if parts > 1 && last.block == from.block && last.page == page && at <= last.until {
            // another part of what the page register will hold
            let moved = self.move_data(at, last.until, unit.channel, bytes);
            self.hold(from.unit, moved);
            return moved;
        }
        let die = &mut self.dies[unit.die as usize];
        let agenda = &mut self.agendas[unit.die as usize];
        let slot = agenda.read_slot(at, self.timing.suspend);
        let own_reads = self.plane_reads_until.get_mut(from.unit as usize);
        let free = slot.start.max(own_reads.as_ref().map_or(die.reads_until, |until| **until));
        let start = match (self.timing.bus, self.buses.get_mut(unit.channel as usize)) {
            (Some(phases), Some(bus)) => bus.take(free, phases.read_command),
            _ => free,
        };
        let sensed = start + span;
        // a read beside one on another plane moves only by what it takes longer
        let alone = sensed.since(free.max(die.reads_until));
        let moved = slot.overhead + alone;
        agenda.note_read(sensed, moved);
        if let Some(until) = own_reads {
            *until = sensed;
        }
        die.reads_until = die.reads_until.max(sensed);
        die.reserve(die.busy_until.max(free), moved);
        die.used.note(at, sensed, moved);
        self.sensed[from.unit as usize] = Sensed { block: from.block, page, until: sensed };
        let moved = self.move_data(at, sensed, unit.channel, bytes);
        self.hold(from.unit, moved);
        moved
    }

    /// Moves data over a channel, in the way that channels have here; returns the end.
    fn move_data(&mut self, at: SimTime, ready: SimTime, channel: u32, bytes: u32) -> SimTime {
        match (self.timing.bus, self.buses.get_mut(channel as usize)) {
            (Some(phases), Some(bus)) => {
                bus.take(ready, phases.with_parity(self.timing.transfer(bytes)))
            }
            _ => self.transfer(at, ready, channel, bytes),
        }
    }

    /// With phases, the die of a unit senses nothing else until `until`, when what it has sensed is
    /// moved.
    fn hold(&mut self, number: u32, until: SimTime) {
        if self.timing.bus.is_none() {
            return;
        }
        let unit = self.units[number as usize];
        let die = &mut self.dies[unit.die as usize];
        let late = until.since(die.reads_until);
        die.reads_until = die.reads_until.max(until);
        die.busy_until += late;
        die.used.busy += late;
        if let Some(own) = self.plane_reads_until.get_mut(number as usize) {
            *own = (*own).max(until);
        }
        self.agendas[unit.die as usize].note_read(until, late);
    }

    /// Channel, then cell array.
    #[inline]
    pub(crate) fn program(&mut self, at: SimTime, to: Target, bytes: u32) -> SimTime {
        if !self.agendas.is_empty() {
            return self.program_among_others(at, to, bytes);
        }
        self.program_plainly(at, to.unit, to.page, bytes)
    }

    /// As [`Timeline::program`], of a timeline that is plain.
    #[inline]
    pub(crate) fn program_plainly(
        &mut self,
        at: SimTime,
        unit: u32,
        page: u32,
        bytes: u32,
    ) -> SimTime {
        let unit = self.units[unit as usize];
        let arrived = self.transfer(at, at, unit.channel, bytes);
        let part = Part { operation: Operation::Program, row: page, bit: unit.plane };
        self.work::<false>(at, arrived, unit.die, part, self.timing.program)
    }

    /// As [`Timeline::program`], among operations that are kept one by one.
    #[inline(never)] // it would weigh on plain programs
    fn program_among_others(&mut self, at: SimTime, to: Target, bytes: u32) -> SimTime {
        let unit = self.units[to.unit as usize];
        let sent = match (self.timing.bus, self.buses.get_mut(unit.channel as usize)) {
            (Some(phases), Some(bus)) => bus.take(at, phases.program_command),
            _ => at,
        };
        let arrived = self.move_data(at, sent, unit.channel, bytes);
        let at_once = self.timing.pages_at_once(to.mode);
        let (row, in_row) = (to.page / at_once, to.page % at_once);
        let row = if to.mode == CellMode::Single { row | SINGLE_ROW } else { row };
        let bit = unit.plane * at_once + in_row;
        let part = Part { operation: Operation::Program, row, bit };
        self.work::<true>(at, arrived, unit.die, part, self.timing.program_of(to.page, to.mode))
    }

    /// Erases the block that `to` lies in.
    pub(crate) fn erase(&mut self, at: SimTime, to: Target) -> SimTime {
        let unit = self.units[to.unit as usize];
        let part = Part { operation: Operation::Erase, row: 0, bit: unit.plane };
        if self.agendas.is_empty() {
            return self.work::<false>(at, at, unit.die, part, self.timing.erase);
        }
        self.work::<true>(at, at, unit.die, part, self.timing.erase_of(to.mode))
    }

    /// The end of what was reserved last on the die of a unit.
    pub(crate) fn last_end(&self, unit: u32) -> SimTime {
        self.dies[self.units[unit as usize].die as usize].last.end
    }

    /// The time that programming a page takes.
    pub(crate) fn program_span(&self, to: Target) -> SimSpan {
        self.timing.program_of(to.page, to.mode)
    }

    /// The time that erasing a block of this mode takes.
    pub(crate) fn erase_span(&self, mode: CellMode) -> SimSpan {
        self.timing.erase_of(mode)
    }

    /// The work of each die until `at`.
    pub(crate) fn die_use(&self, at: SimTime) -> impl Iterator<Item = DieUse> {
        let until = move |die: &Die| DieUse { busy: die.used.busy - die.ahead(at), ..die.used };
        self.dies.iter().map(until)
    }

    /// Returns when the last of the dies falls idle.
    pub(crate) fn idle_from(&self) -> SimTime {
        self.dies.iter().map(|die| die.busy_until).max().unwrap_or_default()
    }

    /// Forgets all reservations and counts: time starts again at 0.
    pub(crate) fn reset(&mut self, geometry: &Geometry) {
        *self = Self::new(self.timing, geometry);
    }

    #[inline]
    fn transfer(&mut self, at: SimTime, ready: SimTime, channel: u32, bytes: u32) -> SimTime {
        let backlog = &mut self.channel_backlog_until[channel as usize];
        let span = self.timing.transfer(bytes);
        let start = ready.max(*backlog);
        *backlog = ready.min(at + self.timing.read).max(*backlog) + span;
        start + span
    }

    /// Reserves the die for an operation issued at `at` that can start at `ready`; returns its end.
    /// `KEPT`: operations are kept one by one.
    #[inline]
    fn work<const KEPT: bool>(
        &mut self,
        at: SimTime,
        ready: SimTime,
        number: u32,
        part: Part,
        span: SimSpan,
    ) -> SimTime {
        let die = &mut self.dies[number as usize];
        if die.last.joins(at, part) {
            let late = ready.since(die.last.start);
            die.last.parts |= part.mask();
            (die.last.start, die.last.end) = (die.last.start + late, die.last.end + late);
            die.busy_until += late;
            die.used.note(at, die.last.end, late);
            if KEPT {
                self.agendas[number as usize].delay_last(late);
            }
            return die.last.end;
        }
        let start = ready.max(die.busy_until);
        let end = start + span;
        die.reserve(start, span);
        die.used.note(at, end, span);
        let Part { operation, row, .. } = part;
        die.last = Reservation { start, end, operation, row, parts: part.mask() };
        if operation == Operation::Erase {
            die.last_erase = (start, end);
        }
        if KEPT {
            self.agendas[number as usize].push(at, (start, end), operation);
        }
        end
    }
}

/// A page, or a block to erase, that may join the operation of others.
#[derive(Clone, Copy, Debug)]
struct Part {
    operation: Operation,
    row: u32,
    /// Its number among the parts of the row.
    bit: u32,
}

impl Part {
    fn mask(self) -> u64 {
        1 << self.bit
    }
}

impl Reservation {
    fn joins(&self, at: SimTime, part: Part) -> bool {
        at <= self.start
            && self.operation == part.operation
            && self.row == part.row
            && self.parts & part.mask() == 0
            && self.parts != 0
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
    use crate::cells::MOST_BITS;

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
            ..Timing::default()
        };
        Timeline::new(timing, &GEOMETRY)
    }

    fn us(n: u64) -> SimTime {
        SimTime::from_ns(n * 1000)
    }

    /// Units are numbered die first: two dies, then their second planes.
    fn place(die: u32, plane: u32, page: u32) -> Target {
        Target { unit: plane * 2 + die, block: 0, page, mode: CellMode::Native }
    }

    #[test]
    fn dies_work_side_by_side_and_share_the_channel() {
        let mut t = timeline();
        assert_eq!(t.program(us(100), place(0, 0, 0), 4096), us(610));
        assert_eq!(t.program(us(100), place(1, 0, 0), 4096), us(620), "waits for the channel");
        assert_eq!(t.program(us(100), place(0, 0, 1), 4096), us(1110), "waits for the die");
        assert_eq!(
            t.read(us(100), place(1, 0, 0), 4096, SimSpan::ZERO),
            us(160),
            "before the die's program has started"
        );
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
        assert_eq!(
            t.read(us(600), place(0, 0, 0), 4096, SimSpan::ZERO),
            us(1010 + 60),
            "the second program is under way"
        );
        assert_eq!(
            t.read(us(600), place(0, 0, 0), 4096, SimSpan::ZERO),
            us(1010 + 110),
            "one read after the other"
        );
        assert_eq!(t.program(us(600), place(0, 0, 4), 4096), us(2010 + 100 + 500));
    }

    #[test]
    fn a_read_behind_a_busy_die_does_not_block_its_channel() {
        let mut t = timeline();
        t.erase(us(0), place(0, 0, 0));
        assert_eq!(t.read(us(0), place(0, 0, 0), 4096, SimSpan::ZERO), us(5060));
        assert_eq!(
            t.read(us(0), place(1, 0, 0), 4096, SimSpan::ZERO),
            us(70),
            "behind the place that the first one has in the backlog"
        );
    }

    #[test]
    fn reads_of_idle_dies_share_their_channel() {
        let mut t = timeline();
        let done = [
            t.read(us(0), place(0, 0, 0), 4096, SimSpan::ZERO),
            t.read(us(0), place(1, 0, 0), 4096, SimSpan::ZERO),
        ];
        assert_eq!(done, [us(60), us(70)]);
    }

    #[test]
    fn a_read_waits_for_an_erase_under_way() {
        let mut t = timeline();
        t.program(us(0), place(0, 0, 0), 4096);
        t.erase(us(0), place(0, 0, 0));
        t.program(us(0), place(0, 0, 1), 4096);
        assert_eq!(
            t.read(us(100), place(0, 0, 0), 4096, SimSpan::ZERO),
            us(510 + 60),
            "the program"
        );
        assert_eq!(
            t.read(us(2000), place(0, 0, 0), 4096, SimSpan::ZERO),
            us(5510 + 60),
            "the erase"
        );
        assert_eq!(t.read(us(9000), place(0, 0, 0), 4096, SimSpan::ZERO), us(9060), "idle");
    }

    #[test]
    fn planes_join_one_program_before_it_starts() {
        let mut t = timeline();
        t.erase(us(0), place(0, 0, 0));
        assert_eq!(t.program(us(0), place(0, 0, 3), 4096), us(5500));
        assert_eq!(t.program(us(0), place(0, 1, 3), 4096), us(5500), "the other plane, same page");
        assert_eq!(t.program(us(0), place(0, 1, 4), 4096), us(6000), "another page");
        let busy = |at| t.die_use(us(at)).map(|die| die.busy).next().unwrap();
        assert_eq!([0, 5000, 6000, 9000].map(busy), [0, 5000, 6000, 6000].map(SimSpan::from_us));
        let used: Vec<_> = t.die_use(us(9000)).collect();
        assert_eq!(used[0].operations, 4);
    }

    const NO_CELLS: [SimSpan; MOST_BITS] = [SimSpan::ZERO; MOST_BITS];

    fn with(change: impl FnOnce(&mut Timing)) -> Timeline {
        let mut timing = timeline().timing;
        change(&mut timing);
        Timeline::new(timing, &GEOMETRY)
    }

    fn tlc(one_shot: bool, program: [u64; 3]) -> Timeline {
        let types = |us: [u64; 3]| {
            let mut spans = NO_CELLS;
            spans.iter_mut().zip(us).for_each(|(span, us)| *span = SimSpan::from_us(us));
            spans
        };
        let (read, program) = (types([40, 60, 80]), types(program));
        with(|timing| timing.cells = Some(Cells { bits: 3, one_shot, parts: 1, read, program }))
    }

    #[test]
    fn a_word_line_is_programmed_in_one_go_and_read_by_type() {
        let mut t = tlc(true, [2000; 3]);
        let word_line: Vec<_> = (0..6).map(|i| place(0, i % 2, i / 2)).collect();
        let ends: Vec<_> = word_line.iter().map(|page| t.program(us(0), *page, 4096)).collect();
        assert_eq!(ends.last(), Some(&us(6 * 10 + 2000)), "six transfers, one program");
        assert_eq!(t.program(us(0), place(0, 0, 3), 4096), us(2060 + 2000), "the next word line");
        for (page, sensed) in [(0, 40), (1, 60), (2, 80), (3, 40)] {
            let done =
                t.read(us(9000 + u64::from(page) * 100), place(0, 0, page), 4096, SimSpan::ZERO);
            assert_eq!(done, us(9000 + u64::from(page) * 100 + sensed + 10));
        }
    }

    #[test]
    fn parts_of_a_page_are_sensed_and_programmed_as_one() {
        let times = [SimSpan::from_us(60); MOST_BITS];
        let program = [SimSpan::from_us(2000); MOST_BITS];
        let cells = Cells { bits: 3, one_shot: true, parts: 2, read: times, program };
        let mut t = with(|timing| (timing.cells, timing.read) = (Some(cells), times[0]));
        let ends: Vec<_> = (0..6).map(|page| t.program(us(0), place(0, 0, page), 4096)).collect();
        assert_eq!(ends.last(), Some(&us(60 + 2000)));
        let read =
            |t: &mut Timeline, at, page| t.read(us(at), place(0, 0, page), 4096, SimSpan::ZERO);
        assert_eq!(read(&mut t, 9000, 2), us(9000 + 60 + 10));
        assert_eq!(read(&mut t, 9000, 3), us(9000 + 60 + 20), "no more than its transfer");
        assert_eq!(read(&mut t, 9000, 4), us(9000 + 120 + 10), "the next page");
    }

    #[test]
    fn pages_programmed_apart_take_the_time_of_their_type() {
        let mut t = tlc(false, [500, 2000, 5500]);
        let ends = [0, 1, 2].map(|page| t.program(us(0), place(0, 0, page), 4096));
        assert_eq!(ends, [us(510), us(2510), us(8010)]);
        assert_eq!(t.read(us(600), place(0, 0, 0), 4096, SimSpan::ZERO), us(2510 + 50));
    }

    #[test]
    fn blocks_at_one_bit_a_cell_have_times_of_their_own() {
        let single = SingleTiming {
            read: SimSpan::from_us(30),
            program: SimSpan::from_us(200),
            erase: SimSpan::from_ms(2),
        };
        let mut t = with(|timing| timing.single = Some(single));
        let at = |mode| Target { unit: 0, block: 0, page: 0, mode };
        assert_eq!(t.program(us(0), at(CellMode::Single), 4096), us(210));
        assert_eq!(t.program(us(0), at(CellMode::Native), 4096), us(710));
        assert_eq!(t.read(us(1000), at(CellMode::Single), 4096, SimSpan::ZERO), us(1040));
        assert_eq!(t.erase(us(2000), at(CellMode::Single)), us(4000));
        assert_eq!(t.erase(us(5000), at(CellMode::Native)), us(10_000));
    }

    #[test]
    fn a_read_suspends_a_program_that_ends_that_much_later() {
        let (program, erase) = (SimSpan::from_us(20), SimSpan::from_us(100));
        let suspend = Some(Suspend { program, erase, most_times: 2 });
        let mut t = with(|timing| timing.suspend = suspend);
        t.program(us(0), place(0, 0, 0), 4096); // from 10 to 510
        let read = |t: &mut Timeline, at| t.read(us(at), place(0, 0, 0), 4096, SimSpan::ZERO);
        assert_eq!(read(&mut t, 100), us(100 + 20 + 50 + 10));
        assert_eq!(read(&mut t, 110), us(170 + 50 + 10), "while it stands still");
        assert_eq!(t.program(us(150), place(0, 0, 1), 4096), us(510 + 120 + 500));
        assert_eq!(read(&mut t, 300), us(300 + 20 + 50 + 10), "the second time");
        assert_eq!(read(&mut t, 500), us(510 + 120 + 70 + 50 + 10), "a third time it is not");
        assert_eq!(t.erase(us(9000), place(0, 0, 0)), us(14_000));
        assert_eq!(read(&mut t, 10_000), us(10_100 + 60));
        assert_eq!(read(&mut t, 14_100), us(14_150 + 60), "it ends in 50 us: no gain");
    }

    #[test]
    fn planes_that_read_apart_do_so_side_by_side() {
        let mut t = with(|timing| timing.planes_read_apart = true);
        let done = [(0, 0), (1, 0), (0, 0)]
            .map(|(plane, page)| t.read(us(0), place(0, plane, page), 4096, SimSpan::ZERO));
        assert_eq!(done, [us(60), us(70), us(110)]);
        assert_eq!(t.program(us(0), place(0, 0, 0), 4096), us(100 + 500), "behind both");
    }

    /// Commands of 1 us before reads, 2 before programs, and an eighth of parity: 4 KiB take 11.25 us.
    fn phased() -> Timeline {
        let us = SimSpan::from_us;
        let bus = BusPhases { read_command: us(1), program_command: us(2), parity_per_mille: 125 };
        with(|timing| timing.bus = Some(bus))
    }

    fn ns(n: u64) -> SimTime {
        SimTime::from_ns(n)
    }

    #[test]
    fn a_die_holds_what_it_has_sensed_until_it_is_moved() {
        let mut t = phased();
        let read = |t: &mut Timeline, die| t.read(us(0), place(die, 0, 0), 4096, SimSpan::ZERO);
        // Commands at 0 and 1. Both sense at once; the second waits for the channel at 51.
        assert_eq!(read(&mut t, 0), ns(1000 + 50_000 + 11_250));
        assert_eq!(read(&mut t, 1), ns(62_250 + 11_250));
        // The die is free at 62.25, when the second transfer has the channel until 73.5.
        assert_eq!(read(&mut t, 0), ns(73_500 + 1000 + 50_000 + 11_250));
        // A program goes behind the read that holds its die; its data came before, at 2 to 15.25.
        assert_eq!(t.program(us(0), place(1, 0, 0), 4096), ns(73_500 + 500_000));
    }

    #[test]
    fn a_transfer_that_is_ready_first_goes_first_whatever_was_issued_first() {
        let mut t = phased();
        t.erase(us(0), place(0, 0, 0));
        let behind = t.read(us(100), place(0, 0, 0), 4096, SimSpan::ZERO);
        assert_eq!(behind, ns(5_000_000 + 1000 + 50_000 + 11_250));
        let other = t.read(us(100), place(1, 0, 0), 4096, SimSpan::ZERO);
        assert_eq!(other, ns(101_000 + 50_000 + 11_250), "the channel is free until then");
        assert_eq!(t.program(us(100), place(1, 0, 0), 4096), ns(162_250 + 500_000));
    }

    #[test]
    fn operations_kept_one_by_one_give_the_times_that_are_worked_out() {
        let mut rng = dovetail_time::Rng::new(7);
        let single =
            SingleTiming { read: SimSpan::ZERO, program: SimSpan::ZERO, erase: SimSpan::ZERO };
        let (mut plain, mut kept) = (timeline(), with(|timing| timing.single = Some(single)));
        let (mut now, mut pages) = (0, [0; 4]);
        for step in 0..20_000 {
            now += rng.below(400);
            let unit = rng.below(4) as u32;
            let target = |page| Target { unit, block: 0, page, mode: CellMode::Native };
            let ends = if rng.chance(0.4) {
                let page = pages[unit as usize];
                pages[unit as usize] += 1;
                [&mut plain, &mut kept].map(|t| t.program(us(now), target(page), 4096))
            } else {
                [&mut plain, &mut kept].map(|t| t.read(us(now), target(0), 4096, SimSpan::ZERO))
            };
            assert_eq!(ends[0], ends[1], "step {step}");
        }
    }
}
