//! A device whose every read is checked against what was last written.

use dovetail_block::{
    Answer, BlockDevice, BlockRange, Command, Completion, Content, Data, DeviceError, Devirtualize,
    HeldRemaps, Hints, Lba, Pattern, RemapPair, RemapWhen, SectorRange, ZoneAction,
};
use dovetail_time::SimTime;

use crate::error::HostError;
use crate::renames::OpenBatch;
use crate::sparse::Sparse;

/// Patterns are below it (assumed): a drive keeps those with small numbers in the least memory.
const PATTERNS: u64 = 65_000;

/// A device and the pattern that each of its blocks must hold. A pattern is the number of the
/// write, which begins again after some 65,000: two bytes for each block that was written, 0 for an
/// empty one. A wrong block has the right number once in 65,000 times.
#[derive(Clone, Debug)]
pub struct CheckedDevice<D> {
    device: D,
    blocks: u64,
    expected: Sparse<u16>,
    held: HeldRemaps,
    batch: OpenBatch,
    next_pattern: u64,
    into: Vec<Content>,
}

impl<D: BlockDevice> CheckedDevice<D> {
    /// `device` must be empty.
    pub fn new(device: D) -> Self {
        let blocks = device.info().blocks;
        let (expected, held) = (Sparse::new(), HeldRemaps::default());
        let batch = OpenBatch::default();
        Self { device, blocks, expected, held, batch, next_pattern: 1, into: Vec::new() }
    }

    /// The same with the device that `change` makes of the one below, which holds the same.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn with_device<E>(self, change: impl FnOnce(D) -> Result<D, E>) -> Result<Self, E> {
        Ok(Self { device: change(self.device)?, ..self })
    }

    /// The device below.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The same, to be changed but for what its blocks hold.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// The device below, unchecked from now on.
    pub fn into_device(self) -> D {
        self.device
    }

    /// Its size in blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Tells that a range will be read or written soon; see [`BlockDevice::expect`].
    pub fn expect(&self, range: BlockRange) {
        self.device.expect(range);
        self.expected.expect(range.start);
    }

    /// Writes a range, each block with a pattern of its own; returns when it is done.
    ///
    /// # Errors
    /// [`HostError::Device`]; the same for all commands.
    pub fn write(
        &mut self,
        at: SimTime,
        range: BlockRange,
        hints: Hints,
        fua: bool,
    ) -> Result<SimTime, HostError> {
        let first = self.next_patterns(range.blocks);
        let command = Command::Write { range, data: Data::Patterns(first), hints, fua };
        let done = self.submit(at, command)?;
        self.expected.set_each(range, |index| first.nth(index).number() as u16);
        Ok(done)
    }

    /// The first pattern of the next write. None of it looks like an empty block, unless the write
    /// is longer than there are patterns.
    fn next_patterns(&mut self, blocks: u64) -> Pattern {
        if self.next_pattern + blocks > PATTERNS {
            self.next_pattern = 1;
        }
        let first = Pattern::new(self.next_pattern);
        self.next_pattern += blocks;
        first
    }

    /// Reads a range and checks it.
    ///
    /// # Errors
    /// [`HostError::WrongData`].
    pub fn read(&mut self, at: SimTime, range: BlockRange) -> Result<SimTime, HostError> {
        let mut into = std::mem::take(&mut self.into);
        into.clear();
        into.resize(range.blocks as usize, Content::Empty);
        let done = self.submit(at, Command::Read { range, into: Some(&mut into) })?;
        for (lba, found) in range.iter().zip(&into) {
            self.check(at, lba, found)?;
        }
        self.into = into;
        Ok(done)
    }

    fn check(&self, at: SimTime, lba: Lba, found: &Content) -> Result<(), HostError> {
        let expected = *self.expected.get(lba);
        let right = match found {
            Content::Empty => expected == 0,
            Content::Pattern(pattern) => pattern.number() as u16 == expected,
            Content::Bytes(_) => false,
        };
        if right { Ok(()) } else { Err(HostError::WrongData { at, lba }) }
    }

    /// Makes what completed before durable.
    ///
    /// # Errors
    /// [`HostError::Device`].
    pub fn flush(&mut self, at: SimTime) -> Result<SimTime, HostError> {
        self.submit(at, Command::Flush)
    }

    /// Gives ranges back; the blocks in them are empty then.
    ///
    /// # Errors
    /// [`HostError::Device`].
    pub fn discard(&mut self, at: SimTime, ranges: &[SectorRange]) -> Result<SimTime, HostError> {
        let done = self.submit(at, Command::Discard { ranges })?;
        let zones = self.device.info().capabilities.zones;
        let conventional = zones.map(|zones| zones.conventional_part(ranges));
        let ranges = conventional.as_deref().unwrap_or(ranges);
        for blocks in ranges.iter().map(|range| range.blocks_inside()) {
            self.expected.clear(blocks);
        }
        Ok(done)
    }

    /// Changes the state of a zone; after a reset its blocks are empty.
    ///
    /// # Errors
    /// [`HostError::Device`].
    pub fn act_on_zone(
        &mut self,
        at: SimTime,
        zone: BlockRange,
        action: ZoneAction,
    ) -> Result<SimTime, HostError> {
        let done = self.submit(at, Command::Zone { start: Some(zone.start), action })?;
        if action == ZoneAction::Reset {
            self.expected.clear(zone);
        }
        Ok(done)
    }

    /// Moves blocks to other addresses, now or with a batch.
    ///
    /// # Errors
    /// [`HostError::Device`].
    pub fn remap(
        &mut self,
        at: SimTime,
        pairs: &[RemapPair],
        when: RemapWhen,
    ) -> Result<SimTime, HostError> {
        let done = self.submit(at, Command::Remap { pairs, when })?;
        for &RemapPair { to, from } in self.held.executed_with(pairs, when).iter() {
            let moved = self.expected.take(from);
            self.expected.set(to, moved);
        }
        Ok(done)
    }

    /// Performs a command of a device that devirtualises.
    ///
    /// # Errors
    /// An error of the device.
    pub fn devirtualize(
        &mut self,
        at: SimTime,
        asked: Devirtualize<'_>,
    ) -> Result<Completion, DeviceError> {
        let completion = self.device.submit(at, Command::Devirtualize(asked))?;
        match (asked, &completion.answer) {
            (Devirtualize::Begin { .. }, Answer::Renames(renames)) => {
                self.batch.begin(&mut self.expected, renames);
            }
            (Devirtualize::End { keep, .. }, _) => self.batch.end(&mut self.expected, keep),
            _ => {}
        }
        Ok(completion)
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<SimTime, HostError> {
        let answer = self.device.submit(at, command);
        answer.map(|completion| completion.done).map_err(|source| HostError::Device { at, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::{DeviceInfo, MemoryDevice};

    /// A device that forgets what is written to it.
    struct Forgetful(MemoryDevice);

    impl BlockDevice for Forgetful {
        fn info(&self) -> DeviceInfo {
            self.0.info()
        }

        fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
            match command {
                Command::Write { .. } => Ok(Completion::at(at)),
                command => self.0.submit(at, command),
            }
        }
    }

    #[test]
    fn a_write_that_was_forgotten_is_found_whatever_was_written_before() {
        let at = SimTime::ZERO;
        let mut checked = CheckedDevice::new(Forgetful(MemoryDevice::new(64)));
        for write in 0..PATTERNS {
            let range = BlockRange::new(Lba(write % 3), 1 + write % 5);
            checked.write(at, range, Hints::default(), false).unwrap();
            for lba in range.iter() {
                assert!(checked.read(at, BlockRange::new(lba, 1)).is_err(), "write {write}");
            }
        }
    }

    #[test]
    fn a_write_of_more_blocks_than_there_are_patterns_is_read_back() {
        let blocks = 2 * PATTERNS + 7;
        let mut checked = CheckedDevice::new(MemoryDevice::new(blocks));
        let all = BlockRange::new(Lba(0), blocks);
        for _ in 0..2 {
            checked.write(SimTime::ZERO, all, Hints::default(), false).unwrap();
            checked.read(SimTime::ZERO, all).unwrap();
        }
    }
}
