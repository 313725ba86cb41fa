//! Commands on a drive itself: closed loops that keep so many in flight, and open ones that come at
//! a rate whatever the drive does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dovetail_block::{BlockDevice, BlockRange, Command, Data, DeviceError, Hints, Lba, Pattern};
use dovetail_ftl::Drive;
use dovetail_time::{Rng, SimSpan, SimTime};

/// The order of the blocks of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    InARow,
    AtRandom,
}

/// The cause that makes the next command come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// Another one has ended: so many are in flight.
    Depth(u32),
    /// Time: so many come a second, with random gaps (exponential) or even ones.
    Rate { per_second: f64, even: bool },
}

/// The kind of a stream's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    /// A write with FUA and then a flush: what Linux makes of a write to a block device that is
    /// open with `O_DIRECT` and `O_SYNC`.
    Synced,
}

/// Commands of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) kind: Kind,
    pub(super) blocks: u64,
    pub(super) order: Order,
    pub(super) pace: Pace,
    /// The blocks of the drive that they go to, from 0.
    pub(super) span: u64,
}

/// The times of a stream's commands.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Time of each command, in nanoseconds.
    pub(super) latencies: Vec<u64>,
    /// From the first command to the end of the last.
    pub(super) elapsed: SimSpan,
}

impl Seen {
    pub(super) fn mean_us(&self) -> f64 {
        let sum: u64 = self.latencies.iter().sum();
        sum as f64 / self.latencies.len().max(1) as f64 / 1000.0
    }

    /// The time that the share `part` of all commands does not exceed.
    pub(super) fn quantile_us(&self, part: f64) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        sorted.get((last as f64 * part) as usize).map_or(0.0, |ns| *ns as f64 / 1000.0)
    }

    pub(super) fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64().max(1e-12)
    }
}

/// A drive and the time on it.
pub(super) struct Bench {
    pub(super) drive: Drive,
    pub(super) now: SimTime,
    version: u64,
    rng: Rng,
}

impl Bench {
    pub(super) fn new(drive: Drive, seed: u64) -> Self {
        Self { drive, now: SimTime::ZERO, version: 1, rng: Rng::new(seed) }
    }

    fn submit(&mut self, at: SimTime, stream: &Stream, lba: u64) -> Result<SimTime, DeviceError> {
        let range = BlockRange::new(Lba(lba), stream.blocks);
        let command = if stream.kind == Kind::Read {
            Command::Read { range, into: None }
        } else {
            let data = Data::Patterns(Pattern::new(self.version));
            self.version += stream.blocks;
            let fua = stream.kind == Kind::Synced;
            Command::Write { range, data, hints: Hints::default(), fua }
        };
        Ok(self.drive.submit(at, command)?.done)
    }

    /// Plays the streams side by side until the first one has issued `commands`; `each` hears of the
    /// end of every command of that one.
    pub(super) fn play(
        &mut self,
        streams: &[Stream],
        commands: u64,
        mut each: impl FnMut(SimTime),
    ) -> Result<Vec<Seen>, DeviceError> {
        let begin = self.now;
        let mut seen = vec![Seen::default(); streams.len()];
        let mut next_block = vec![0; streams.len()];
        let mut due = BinaryHeap::new();
        for (number, stream) in streams.iter().enumerate() {
            let starts = if let Pace::Depth(depth) = stream.pace { depth } else { 1 };
            (0..starts).for_each(|_| due.push(Reverse((begin, number, None))));
        }
        let mut end = begin;
        while (seen[0].latencies.len() as u64) < commands {
            // the third is the begin of a write whose flush is due
            let Some(Reverse((at, number, written))) = due.pop() else { break };
            let stream = streams[number];
            let done = if written.is_some() {
                self.drive.submit(at, Command::Flush)?.done
            } else {
                let lba = self.place(&stream, &mut next_block[number]);
                self.submit(at, &stream, lba)?
            };
            if stream.kind == Kind::Synced && written.is_none() {
                due.push(Reverse((done, number, Some(at))));
                continue;
            }
            let at = written.unwrap_or(at);
            seen[number].latencies.push(done.since(at).as_ns());
            due.push(Reverse((self.next_time(stream.pace, at, done), number, None)));
            end = end.max(done);
            if number == 0 {
                each(done);
            }
        }
        self.now = end;
        seen.iter_mut().for_each(|seen| seen.elapsed = end.since(begin));
        Ok(seen)
    }

    fn place(&mut self, stream: &Stream, next: &mut u64) -> u64 {
        let places = stream.span / stream.blocks;
        match stream.order {
            Order::AtRandom => self.rng.below(places) * stream.blocks,
            Order::InARow => {
                let place = *next;
                *next = (*next + 1) % places;
                place * stream.blocks
            }
        }
    }

    fn next_time(&mut self, pace: Pace, at: SimTime, done: SimTime) -> SimTime {
        let Pace::Rate { per_second, even } = pace else { return done };
        let mean = 1e9 / per_second;
        let unit = (self.rng.below(1 << 53) as f64 + 1.0) / (1u64 << 53) as f64;
        let gap = if even { mean } else { -mean * unit.ln() };
        at + SimSpan::from_ns(gap as u64)
    }

    /// The drive is left alone until all that it was told is through, and for two seconds more.
    pub(super) fn settle(&mut self) {
        self.now = self.now.max(self.drive.idle_from()) + SimSpan::from_ms(2000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_ftl::{Overrides, Profile};

    #[test]
    fn reads_of_one_in_flight_take_what_the_profile_says() {
        let overrides = Overrides { scale: "1/256".parse().ok(), ..Overrides::default() };
        let config = Profile::load("zet983-480g").unwrap().resolve(&overrides).unwrap();
        let blocks = config.user_blocks;
        let mut bench = Bench::new(Drive::new(config).unwrap(), 1);
        let span = blocks / 64 * 64;
        let (order, pace) = (Order::InARow, Pace::Depth(4));
        let fill = Stream { kind: Kind::Write, blocks: 64, order, pace, span };
        bench.play(&[fill], span / 64, |_| {}).unwrap();
        bench.settle();
        let (order, pace) = (Order::AtRandom, Pace::Depth(1));
        let read = Stream { kind: Kind::Read, blocks: 1, order, pace, span };
        let seen = bench.play(&[read], 1000, |_| {}).unwrap();
        // controller, cell array, 4 KiB over a channel of 800 MB/s and a link of 3,400 MB/s, map
        let us = 6.7 + 3.0 + 5.12 + 1.205 + 0.05;
        // a few are answered by the write buffer
        let median = seen[0].quantile_us(0.5);
        assert!((median - us).abs() < 0.01, "{median} and not {us}");
    }
}
