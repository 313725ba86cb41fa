//! A drive whose every read is checked against what was last written.

use dovetail_block::{
    BlockDevice, BlockRange, ByteRange, Command, Content, Data, DeviceError, Hints, Lba, Pattern,
};
use dovetail_ftl::Drive;
use dovetail_time::SimTime;

use super::ReplayError;

/// A drive and the pattern that each of its blocks must hold. A pattern is the number of the write, of which the
/// lower 32 bits are kept, 0 for an empty block: four bytes a block, which the host only needs once written.
#[derive(Debug)]
pub(super) struct CheckedDrive {
    drive: Drive,
    expected: Vec<u32>,
    next_pattern: u64,
    into: Vec<Content>,
}

impl CheckedDrive {
    pub(super) fn new(drive: Drive) -> Self {
        let blocks = drive.info().blocks;
        Self { drive, expected: vec![0; blocks as usize], next_pattern: 1, into: Vec::new() }
    }

    pub(super) fn drive(&self) -> &Drive {
        &self.drive
    }

    pub(super) fn blocks(&self) -> u64 {
        self.expected.len() as u64
    }

    pub(super) fn write(
        &mut self,
        at: SimTime,
        range: BlockRange,
        fua: bool,
    ) -> Result<SimTime, ReplayError> {
        self.skip_zero_patterns(range.blocks);
        let first = Pattern::new(self.next_pattern);
        let command = Command::Write { range, data: Data::Patterns(first), hints: Hints::default(), fua };
        let done = self.submit(at, command)?;
        for (i, lba) in range.iter().enumerate() {
            self.expected[lba.0 as usize] = first.nth(i as u64).number() as u32;
        }
        self.next_pattern += range.blocks;
        Ok(done)
    }

    /// No pattern of the next write may look like an empty block.
    fn skip_zero_patterns(&mut self, blocks: u64) {
        let low = self.next_pattern & u64::from(u32::MAX);
        if low + blocks > u64::from(u32::MAX) {
            self.next_pattern += (1 << 32) - low + 1;
        }
    }

    pub(super) fn read(&mut self, at: SimTime, range: BlockRange) -> Result<SimTime, ReplayError> {
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

    fn check(&self, at: SimTime, lba: Lba, found: &Content) -> Result<(), ReplayError> {
        let expected = self.expected[lba.0 as usize];
        let right = match found {
            Content::Empty => expected == 0,
            Content::Pattern(pattern) => pattern.number() as u32 == expected,
            Content::Bytes(_) => false,
        };
        if right { Ok(()) } else { Err(ReplayError::WrongData { at, lba }) }
    }

    pub(super) fn flush(&mut self, at: SimTime) -> Result<SimTime, ReplayError> {
        self.submit(at, Command::Flush)
    }

    pub(super) fn discard(&mut self, at: SimTime, range: ByteRange) -> Result<SimTime, ReplayError> {
        let done = self.submit(at, Command::Discard { ranges: &[range] })?;
        for lba in range.blocks_inside().iter() {
            self.expected[lba.0 as usize] = 0;
        }
        Ok(done)
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<SimTime, ReplayError> {
        let completion: Result<_, DeviceError> = self.drive.submit(at, command);
        completion.map(|c| c.done).map_err(|source| ReplayError::Device { at, source })
    }
}
