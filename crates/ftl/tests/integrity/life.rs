//! A drive, the content that it may hold, and random commands to both until a power cut.

use dovetail_block::{
    BatchId, BlockBytes, BlockDevice, BlockRange, Command, Content, Data, DeviceError, HeldRemaps,
    Hints, Inode, Lba, Pattern, RemapLimits, RemapPair, RemapWhen, SectorRange, StreamId,
    free_blocks,
};
use dovetail_ftl::Drive;
use dovetail_nand::FaultPlan;
use dovetail_testkit::ReferenceDevice;
use dovetail_time::{Rng, SimSpan, SimTime};
use std::sync::Arc;

use super::drives::faults;
use super::seen::Seen;
use super::space::Space;

/// Content that the drive may hold: with all commands so far, and without the last remaps, as far
/// as these may not be durable yet.
pub(super) struct Expected {
    /// Since when each is durable, in order; the last one is what reads return.
    pub(super) states: Vec<(SimTime, ReferenceDevice)>,
}

impl Expected {
    pub(super) fn new(model: ReferenceDevice) -> Self {
        Self { states: vec![(SimTime::ZERO, model)] }
    }

    fn apply(&mut self, change: impl Fn(&mut ReferenceDevice)) {
        self.states.iter_mut().for_each(|(_, model)| change(model));
    }

    fn newest(&self) -> &ReferenceDevice {
        &self.states[self.states.len() - 1].1
    }

    /// A remap that is not durable yet.
    pub(super) fn remap(&mut self, pairs: &[RemapPair]) {
        let mut after = self.newest().clone();
        after.remap(pairs);
        self.states.push((SimTime::from_ns(u64::MAX), after));
    }

    /// The last remap is durable at `done`.
    pub(super) fn remapped(&mut self, done: SimTime) {
        self.states.last_mut().unwrap().0 = done;
    }

    /// At `now`, the states before a durable one are gone.
    fn pass(&mut self, now: SimTime) {
        let first = self.states.iter().rposition(|(durable, _)| *durable <= now).unwrap_or(0);
        self.states.drain(..first);
    }

    /// The newest state that allows all that was found.
    fn explain(&self, found: &[(Lba, Content)]) -> Result<&ReferenceDevice, String> {
        let mut reasons = Vec::new();
        for (_, model) in self.states.iter().rev() {
            let mut mismatches =
                found.iter().filter_map(|(lba, content)| model.check_allowed(*lba, content).err());
            match mismatches.next() {
                None => return Ok(model),
                Some(mismatch) => reasons.push(mismatch.to_string()),
            }
        }
        Err(reasons.join("; or "))
    }

    /// Takes what was found after a power cut as durable. Returns how many states there could have
    /// been.
    fn settle(&mut self, found: &[(Lba, Content)]) -> usize {
        let states = self.states.len();
        let mut model = self
            .explain(found)
            .unwrap_or_else(|reasons| panic!("after the cut: {reasons}"))
            .clone();
        for (lba, content) in found {
            model.settle(*lba, content).unwrap();
        }
        *self = Self::new(model);
        states
    }
}

pub(super) struct Life {
    pub(super) drive: Drive,
    pub(super) space: Space,
    pub(super) expected: Expected,
    pub(super) held: HeldRemaps,
    pub(super) seen: Seen,
    pub(super) now: SimTime,
    pub(super) version: u64,
    /// Is true if the medium may fail.
    pub(super) failing: bool,
    /// Time between the reads of `read_all`.
    pub(super) pause: SimSpan,
    /// Is true if the power is cut at a time instead of at an operation.
    pub(super) in_time: bool,
    /// Time at which the last remap is acknowledged.
    pub(super) last_remap: SimTime,
}

impl Life {
    fn content(&mut self, rng: &mut Rng) -> Content {
        self.version += 1;
        if rng.chance(0.1) {
            let mut bytes: BlockBytes = [0; 4096];
            bytes[..8].copy_from_slice(&self.version.to_le_bytes());
            return Content::Bytes(Arc::new(bytes));
        }
        Content::Pattern(Pattern::new(self.version))
    }

    pub(super) fn remaps(&self) -> bool {
        self.drive.info().capabilities.remap.is_some()
    }

    /// One random command, on the drive and on the model.
    pub(super) fn step(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        let longest_us = if rng.chance(0.02) { 100_000 } else { 300 };
        self.now += SimSpan::from_us(rng.below(longest_us));
        self.expected.pass(self.now);
        if self.remaps() && rng.chance(0.15) {
            if rng.chance(0.2) {
                self.in_a_row(rng)?;
            } else {
                self.remap(rng)?;
            }
            if rng.chance(0.6) {
                self.now = self.now.max(self.last_remap);
                self.expected.pass(self.now);
            }
            return Ok(());
        }
        match rng.below(100) {
            0..55 => self.write(rng),
            55..80 => self.read(rng),
            80..92 => self.discard(rng),
            _ => self.flush(rng),
        }
    }

    fn write(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        let range = self.space.range(rng);
        let contents: Vec<_> = range.iter().map(|_| self.content(rng)).collect();
        let fua = rng.chance(0.1);
        let room = free_blocks(&mut self.drive).unwrap();
        let hints = Hints {
            stream: StreamId(rng.below(3) as u8),
            inode: Inode(rng.below(5) as u32),
            ..Hints::default()
        };
        let command = Command::Write { range, data: Data::Blocks(&contents), hints, fua };
        let done = self.drive.submit(self.now, command);
        if done == Err(DeviceError::NoRoom) {
            let free = room.unwrap_or(u64::MAX);
            assert!(free < range.blocks, "{free} blocks free, but none for {} more", range.blocks);
            self.seen.refused += 1;
            return Ok(());
        }
        for (lba, content) in range.iter().zip(&contents) {
            self.expected.apply(|model| model.write(lba, content.clone(), false));
        }
        let done = done?.done;
        let config = self.drive.config();
        if fua || config.buffer_pages == 0 || config.power_loss_protection {
            self.now = self.now.max(done);
            for (lba, content) in range.iter().zip(contents) {
                self.expected.apply(|model| model.write(lba, content.clone(), true));
            }
        }
        Ok(())
    }

    /// A random remap: of a run of sources as a log-structured file system has them, or of any.
    pub(super) fn pairs(&self, rng: &mut Rng, limits: RemapLimits) -> Vec<RemapPair> {
        let blocks = self.space.blocks();
        let most = u64::from(limits.pairs_per_command).min(blocks / 2);
        let count = if rng.chance(0.1) { most } else { 1 + rng.below(most.min(10)) };
        let (first, in_a_row, onto_a_row) = (rng.below(blocks), rng.chance(0.5), rng.chance(0.2));
        let mut seen = std::collections::BTreeSet::new();
        let mut fresh = |index: u64| Some(self.space.lba(index)).filter(|lba| seen.insert(*lba));
        let pair = |i: u64| {
            let from = if in_a_row { (first + i) % blocks } else { rng.below(blocks) };
            let to = if onto_a_row { (first + blocks / 2 + i) % blocks } else { rng.below(blocks) };
            Some(RemapPair { from: fresh(from)?, to: fresh(to)? })
        };
        (0..count).filter_map(pair).collect()
    }

    pub(super) fn remap(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        let Some(limits) = self.drive.info().capabilities.remap else { return Ok(()) };
        let pairs = self.pairs(rng, limits);
        let batch = BatchId(rng.below(2) as u32);
        let when = match rng.below(4) {
            0 => RemapWhen::Held(batch),
            1 => RemapWhen::WithHeld(batch),
            _ => RemapWhen::Now,
        };
        self.remap_pairs(&pairs, when, batch)
    }

    /// Remaps of one pair, and discards of one block, of blocks one behind the other: what dies
    /// lies together, and some of it gets the content of its neighbour in between.
    fn in_a_row(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        let first = rng.below(self.space.blocks());
        let lba = |life: &Self, i: u64| life.space.lba((first + i) % life.space.blocks());
        for i in 1..3 + rng.below(6) {
            let (before, at) = (lba(self, i - 1), lba(self, i));
            if rng.chance(0.5) {
                let range = SectorRange::from(BlockRange::new(at, 1));
                self.discard_ranges(&[range])?;
            } else {
                let pair = RemapPair { from: at, to: before };
                self.remap_pairs(&[pair], RemapWhen::Now, BatchId(rng.below(2) as u32))?;
            }
        }
        Ok(())
    }

    /// Remaps, or executes the batch if it takes no further pairs.
    fn remap_pairs(
        &mut self,
        pairs: &[RemapPair],
        when: RemapWhen,
        batch: BatchId,
    ) -> Result<(), DeviceError> {
        let command = Command::Remap { pairs, when };
        if let Err(expected) = self.held.admit(&self.drive.info(), pairs, when) {
            let refused = self.drive.submit(self.now, command).map(|_| ());
            // A batch into which no further pair fits is executed as it is.
            let all = RemapWhen::WithHeld(batch);
            return match refused {
                Err(error) if error == expected => self.execute(&[], all),
                other => other,
            };
        }
        self.execute(pairs, when)
    }

    fn execute(&mut self, pairs: &[RemapPair], when: RemapWhen) -> Result<(), DeviceError> {
        let all = self.held.take(pairs, when);
        self.seen.longest_remap = self.seen.longest_remap.max(all.len());
        if !all.is_empty() {
            self.expected.remap(&all);
        }
        let done = self.drive.submit(self.now, Command::Remap { pairs, when })?.done;
        if !all.is_empty() {
            // In the order of issue what has returned has ended.
            self.expected.remapped(if self.in_time { done } else { SimTime::ZERO });
        }
        self.last_remap = done;
        Ok(())
    }

    /// Remaps, and commands right behind them that do not wait: the power is cut before all is
    /// acknowledged.
    pub(super) fn last_moments(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        for _ in 0..1 + rng.below(3) {
            self.remap(rng)?;
        }
        for _ in 0..rng.below(24) {
            match rng.below(20) {
                0..16 => self.write(rng)?,
                16..18 => self.discard(rng)?,
                18 => self.remap(rng)?,
                _ => self.flush(rng)?,
            }
        }
        Ok(())
    }

    pub(super) fn read(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        let range = self.space.range(rng);
        let mut into = vec![Content::Empty; range.blocks as usize];
        match self.drive.submit(self.now, Command::Read { range, into: Some(&mut into) }) {
            // The medium lost it: told, not hidden.
            Err(DeviceError::Unreadable(_)) if self.failing => return Ok(()),
            other => other?,
        };
        self.expected
            .newest()
            .check_read(range, &into)
            .unwrap_or_else(|mismatch| panic!("{mismatch}"));
        Ok(())
    }

    pub(super) fn discard(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        let mut ranges: Vec<_> = (0..1 + rng.below(3)).map(|_| self.ragged(rng)).collect();
        if self.drive.config().addresses.is_some() && rng.chance(0.1) {
            ranges.push(self.space.huge(rng));
        }
        self.discard_ranges(&ranges)
    }

    fn discard_ranges(&mut self, ranges: &[SectorRange]) -> Result<(), DeviceError> {
        ranges.iter().for_each(|range| self.expected.apply(|model| model.discard(*range)));
        self.drive.submit(self.now, Command::Discard { ranges }).map(|_| ())
    }

    /// A range that need not begin or end at a block.
    fn ragged(&self, rng: &mut Rng) -> SectorRange {
        let range = SectorRange::from(self.space.range(rng));
        let cut = if rng.chance(0.5) { rng.below(8) } else { 0 };
        SectorRange::new(range.start + cut, range.sectors - cut)
    }

    /// A drive with reclaim units now and then gets new ones instead.
    fn flush(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        if self.drive.config().fdp.is_some() && rng.chance(0.3) {
            let handle = StreamId(rng.below(self.drive.config().streams.into()) as u8);
            self.drive.submit(self.now, Command::UpdateHandles(&[handle]))?;
            self.seen.updated += 1;
            return Ok(());
        }
        // The host waits for what it must rely on.
        self.now = self.now.max(self.drive.submit(self.now, Command::Flush)?.done);
        self.expected.pass(self.now);
        self.expected.apply(ReferenceDevice::flush);
        Ok(())
    }

    /// Recovers, with further power cuts on the way, and checks every block.
    pub(super) fn recover(mut self, rng: &mut Rng) -> Self {
        // A cut in the order of issue, or one in the order of time: while the drive is still at
        // work.
        let mut cut = if self.in_time {
            let until_remapped = self.last_remap.since(self.now).as_ns();
            self.now += match until_remapped {
                0 => SimSpan::from_us(rng.below(30_000)),
                span => SimSpan::from_ns(rng.below(span)),
            };
            self.expected.pass(self.now);
            self.drive.into_unrecovered_at(self.now)
        } else {
            self.drive.into_unrecovered()
        };
        let again = rng.below(3);
        for _ in 0..again {
            let plan = faults(rng, cut.flash_operations(), 600, None);
            cut.set_faults(plan);
            cut = match cut.recover() {
                Ok((drive, _)) => drive.into_unrecovered(),
                Err(cut_again) => cut_again.0,
            };
        }
        cut.set_faults(FaultPlan::default());
        let (drive, report) =
            cut.recover().unwrap_or_else(|e| panic!("recovery failed without a fault: {}", e.1));
        let mut life = Self {
            drive,
            space: self.space,
            expected: self.expected,
            held: HeldRemaps::default(),
            seen: self.seen,
            now: SimTime::ZERO,
            version: self.version,
            failing: self.failing,
            pause: SimSpan::ZERO,
            in_time: self.in_time,
            last_remap: SimTime::ZERO,
        };
        life.seen.remapped_pages += report.remapped_pages;
        life.settle();
        life
    }

    /// Reads every block after a power cut: what is found is durable from now on.
    fn settle(&mut self) {
        let found = self.read_all();
        let states = self.expected.settle(&found);
        self.seen.in_remaps += u64::from(states > 1);
    }

    fn read_all(&mut self) -> Vec<(Lba, Content)> {
        self.drive.check().unwrap();
        let space = self.space.clone();
        let mut lost = 0;
        let read = |lba| {
            let mut found = [Content::Empty];
            let range = BlockRange::new(lba, 1);
            self.now += self.pause;
            match self.drive.submit(self.now, Command::Read { range, into: Some(&mut found) }) {
                Err(DeviceError::Unreadable(_)) if self.failing => {
                    lost += 1;
                    None
                }
                other => {
                    other.map(|_| (lba, found[0].clone())).map_or_else(|e| panic!("{e}"), Some)
                }
            }
        };
        let all: Vec<_> =
            (0..space.blocks()).map(|index| space.lba(index)).filter_map(read).collect();
        let found = all.iter().filter(|(_, content)| *content != Content::Empty).count() as u64;
        assert_eq!(
            self.drive.live_blocks(),
            found + lost,
            "a page leaks, or what it holds cannot be read"
        );
        all
    }

    /// A drive that takes no more writes still gives back what it has.
    pub(super) fn check_read_only(&mut self) {
        self.drive.set_faults(FaultPlan::default());
        // Pauses between the reads, in which the drive tries to clean.
        self.pause = SimSpan::from_ms(20);
        let found = self.read_all();
        self.expected.explain(&found).unwrap_or_else(|reasons| panic!("worn out: {reasons}"));
    }
}
/// Each line as state, kept pages and erases, for the message of a failure.
pub(super) fn states(drive: &Drive) -> String {
    let lines = drive.lines();
    lines
        .ids()
        .map(|l| format!("{:?}:{}/{} ", lines.state(l), lines.kept(l), lines.erases(l)))
        .collect()
}
