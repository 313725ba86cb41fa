//! A drive's blocks as bytes.
//!
//! A request may begin and end anywhere. Of a block that it touches in part the rest is read,
//! changed and written again, as the controller of a drive of 4 KiB blocks does that offers
//! sectors of 512 bytes.

mod error;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use dovetail_block::{
    BLOCK_SIZE, BlockBytes, BlockDevice, BlockRange, ByteRange, Command, Content, Data,
    DeviceError, Hints, Lba, SectorRange, held_blocks,
};
use dovetail_time::SimTime;

pub use error::ExportError;

/// Blocks of zeros that are written with one command: 32 MiB.
const ZEROS_AT_ONCE: u64 = 8192;
/// Held blocks that one question about the allocation finds at most.
const HELD_AT_ONCE: usize = if cfg!(test) { 4 } else { 1 << 16 };
/// The largest size in bytes: the largest offset of a file in whole GiB, since qemu takes no more
/// (`BDRV_MAX_LENGTH`).
const MAX_BYTES: u64 = (1 << 63) - (1 << 30);
const BLOCK: usize = BLOCK_SIZE as usize;

/// A drive's blocks as bytes, in virtual time: requests of any range, of which parts of blocks are
/// read, changed and written again.
///
/// A request is issued at virtual time `at` and tells when it is done. Its content is there for the
/// requests after it at once. Requests come in the order of `at`.
#[derive(Debug)]
pub struct Export<D> {
    device: D,
    bytes: u64,
    discards: bool,
    /// Content on its way, empty between requests.
    contents: Vec<Content>,
}

/// Bytes in a row that all hold something, or all do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of bytes.
    pub len: u64,
    /// They were written and not discarded since; else they read as zeros.
    pub allocated: bool,
}

impl<D: BlockDevice> Export<D> {
    /// The bytes of `device`. Of one with more addresses than a file has offsets, its first 2^63
    /// bytes less 1 GiB.
    pub fn new(device: D) -> Self {
        let info = device.info();
        let bytes = info.blocks.saturating_mul(BLOCK_SIZE).min(MAX_BYTES);
        Self { device, bytes, discards: info.capabilities.discard, contents: Vec::new() }
    }

    /// Size in bytes, a multiple of 4096.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Tells whether the drive takes discards.
    pub const fn discards(&self) -> bool {
        self.discards
    }

    /// The drive.
    pub const fn device(&self) -> &D {
        &self.device
    }

    /// The drive, for its other commands.
    pub const fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Gives the drive back.
    pub fn into_device(self) -> D {
        self.device
    }

    /// Reads the bytes from `offset` on. A block that a simulation wrote by name only
    /// ([`Content::Pattern`]) reads as the pattern's number, 8 bytes little-endian, again and
    /// again.
    ///
    /// # Errors
    /// A range beyond the end, or the drive's error.
    pub fn read(
        &mut self,
        at: SimTime,
        offset: u64,
        into: &mut [u8],
    ) -> Result<SimTime, ExportError> {
        let range = self.check(offset, into.len() as u64)?;
        if into.is_empty() {
            return Ok(at);
        }
        let touched = range.blocks_touched();
        let mut contents = std::mem::take(&mut self.contents);
        contents.resize(touched.blocks as usize, Content::Empty);
        let command = Command::Read { range: touched, into: Some(&mut contents) };
        let result = self.submit(at, command);
        if result.is_ok() {
            let mut rest = into;
            for (index, content) in contents.iter().enumerate() {
                let within = part(range, touched.start.0 + index as u64);
                let (now, later) = rest.split_at_mut(within.len());
                copy_out(content, within, now);
                rest = later;
            }
        }
        contents.clear();
        self.contents = contents;
        result
    }

    /// Writes `data` from `offset` on; with `fua` it is done when the bytes survive a power cut.
    ///
    /// The time of reading the rest of a block that is written in part is added to that of the
    /// write; both are issued at `at`, so that requests after it need not wait.
    ///
    /// # Errors
    /// A range beyond the end, or the drive's error.
    pub fn write(
        &mut self,
        at: SimTime,
        offset: u64,
        data: &[u8],
        fua: bool,
    ) -> Result<SimTime, ExportError> {
        let range = self.check(offset, data.len() as u64)?;
        if data.is_empty() {
            return Ok(at);
        }
        let touched = range.blocks_touched();
        let (mut ready, mut rest) = (at, data);
        let mut contents = std::mem::take(&mut self.contents);
        contents.clear();
        for lba in touched.iter() {
            let within = part(range, lba.0);
            let (now, later) = rest.split_at(within.len());
            rest = later;
            contents.push(match whole(now) {
                Some(bytes) => Content::Bytes(bytes),
                None => {
                    let (read, mut bytes) = self.read_block(at, lba)?;
                    ready = ready.max(read);
                    bytes[within].copy_from_slice(now);
                    Content::Bytes(Arc::new(bytes))
                }
            });
        }
        let result = self.write_contents(at, touched, &contents, fua);
        contents.clear();
        self.contents = contents;
        Ok(result? + ready.since(at))
    }

    /// Makes all that was done before survive a power cut.
    ///
    /// # Errors
    /// The drive's error.
    pub fn flush(&mut self, at: SimTime) -> Result<SimTime, ExportError> {
        self.submit(at, Command::Flush)
    }

    /// Tells the drive that these bytes are no longer needed. Whole blocks among them read as zeros
    /// from now on; parts of blocks keep what they hold. With `fua` it is done when that survives a
    /// power cut.
    ///
    /// # Errors
    /// A range beyond the end, a drive without discards, or its error.
    pub fn discard(
        &mut self,
        at: SimTime,
        ranges: &[Range<u64>],
        fua: bool,
    ) -> Result<SimTime, ExportError> {
        let mut sectors = Vec::with_capacity(ranges.len());
        for range in ranges {
            let range = self.check_range(range)?;
            let inside = SectorRange::inside(range);
            if inside.blocks_inside().blocks > 0 {
                sectors.push(inside);
            }
        }
        if !self.discards {
            return Err(DeviceError::Unsupported("discard").into());
        }
        self.discard_sectors(at, &sectors, fua)
    }

    /// Drives have no durable discard: a flush is issued with it, so that requests after it need not
    /// wait.
    fn discard_sectors(
        &mut self,
        at: SimTime,
        ranges: &[SectorRange],
        fua: bool,
    ) -> Result<SimTime, ExportError> {
        let discarded = match ranges {
            [] => at,
            ranges => self.submit(at, Command::Discard { ranges })?,
        };
        if fua { Ok(discarded.max(self.flush(at)?)) } else { Ok(discarded) }
    }

    /// Makes a range read as zeros. With `may_discard` whole blocks are discarded where the drive
    /// takes discards, else they are written. With `fua` it is done when that survives a power cut.
    ///
    /// # Errors
    /// A range beyond the end, or the drive's error. A part of the range may be zeros by then.
    pub fn write_zeroes(
        &mut self,
        at: SimTime,
        range: Range<u64>,
        may_discard: bool,
        fua: bool,
    ) -> Result<SimTime, ExportError> {
        let bytes = self.check_range(&range)?;
        let inside = SectorRange::inside(bytes).blocks_inside();
        if inside.blocks == 0 {
            // no block as a whole: a part of one, or parts of two
            let zeros = [0; 2 * BLOCK];
            return self.write(at, range.start, &zeros[..bytes.len as usize], fua);
        }
        let (start, end) = (inside.start.0 * BLOCK_SIZE, inside.end().0 * BLOCK_SIZE);
        let mut done = at;
        for edge in [range.start..start, end..range.end] {
            let zeros = [0; BLOCK];
            let len = (edge.end - edge.start) as usize;
            done = done.max(self.write(at, edge.start, &zeros[..len], fua)?);
        }
        let zeroed = if may_discard && self.discards {
            self.discard_sectors(at, &[SectorRange::from(inside)], fua)?
        } else {
            self.write_zero_blocks(at, inside, fua)?
        };
        Ok(done.max(zeroed))
    }

    /// Tells which parts of a range hold something: extents from its start on, of which two
    /// neighbours differ. They may end before the range does, if many blocks hold something. A
    /// drive that cannot tell calls all of it allocated.
    ///
    /// # Errors
    /// A range beyond the end, or the drive's error.
    pub fn allocation(&mut self, range: Range<u64>) -> Result<Vec<Extent>, ExportError> {
        let bytes = self.check_range(&range)?;
        let touched = bytes.blocks_touched();
        let Some(held) = held_blocks(&mut self.device, touched, HELD_AT_ONCE)? else {
            return Ok(extents(&range, [(touched.start.0, touched.end().0)].into_iter()));
        };
        let known_until = match held.last() {
            Some(last) if held.len() >= HELD_AT_ONCE => last.0 + 1,
            _ => touched.end().0,
        };
        let known = range.start..range.end.min(known_until.saturating_mul(BLOCK_SIZE));
        Ok(extents(&known, held.into_iter().map(|lba| (lba.0, lba.0 + 1))))
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<SimTime, ExportError> {
        Ok(self.device.submit(at, command)?.done)
    }

    fn check(&self, offset: u64, len: u64) -> Result<ByteRange, ExportError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.bytes => Ok(ByteRange::new(offset, len)),
            _ => Err(ExportError::Beyond { offset, len, bytes: self.bytes }),
        }
    }

    fn check_range(&self, range: &Range<u64>) -> Result<ByteRange, ExportError> {
        self.check(range.start, range.end.saturating_sub(range.start))
    }

    fn read_block(&mut self, at: SimTime, lba: Lba) -> Result<(SimTime, BlockBytes), ExportError> {
        let mut content = [Content::Empty];
        let range = BlockRange::new(lba, 1);
        let done = self.submit(at, Command::Read { range, into: Some(&mut content) })?;
        let mut bytes = [0; BLOCK];
        copy_out(&content[0], 0..BLOCK, &mut bytes);
        Ok((done, bytes))
    }

    fn write_contents(
        &mut self,
        at: SimTime,
        range: BlockRange,
        contents: &[Content],
        fua: bool,
    ) -> Result<SimTime, ExportError> {
        let (data, hints) = (Data::Blocks(contents), Hints::default());
        self.submit(at, Command::Write { range, data, hints, fua })
    }

    fn write_zero_blocks(
        &mut self,
        at: SimTime,
        range: BlockRange,
        fua: bool,
    ) -> Result<SimTime, ExportError> {
        let zeros = Content::Bytes(Arc::new([0; BLOCK]));
        let contents = vec![zeros; range.blocks.min(ZEROS_AT_ONCE) as usize];
        let (mut done, mut start) = (at, range.start.0);
        while start < range.end().0 {
            let blocks = ZEROS_AT_ONCE.min(range.end().0 - start);
            let now = BlockRange::new(Lba(start), blocks);
            let written = self.write_contents(at, now, &contents[..blocks as usize], fua)?;
            (done, start) = (done.max(written), start + blocks);
        }
        Ok(done)
    }
}

/// The part of block `lba` that a range covers.
fn part(range: ByteRange, lba: u64) -> Range<usize> {
    let first = lba * BLOCK_SIZE;
    let (start, end) = (range.start.max(first), range.end().min(first + BLOCK_SIZE));
    (start - first) as usize..(end - first) as usize
}

/// The bytes as those of one block, copied once; `None` if they are fewer.
pub(crate) fn whole(bytes: &[u8]) -> Option<Arc<BlockBytes>> {
    if bytes.len() != BLOCK {
        return None;
    }
    Arc::<[u8]>::from(bytes).try_into().ok()
}

/// Copies a part of a block.
fn copy_out(content: &Content, within: Range<usize>, into: &mut [u8]) {
    match content {
        Content::Empty => into.fill(0),
        Content::Bytes(bytes) => into.copy_from_slice(&bytes[within]),
        Content::Pattern(pattern) => {
            let number = pattern.number().to_le_bytes();
            let bytes = within.zip(into);
            bytes.for_each(|(index, byte)| *byte = number[index % number.len()]);
        }
    }
}

/// The extents of `range` if exactly these blocks hold something: from, until, in order.
fn extents(range: &Range<u64>, held: impl Iterator<Item = (u64, u64)>) -> Vec<Extent> {
    let mut found: Vec<Extent> = Vec::new();
    let mut add = |len: u64, allocated: bool| match found.last_mut() {
        _ if len == 0 => {}
        Some(last) if last.allocated == allocated => last.len += len,
        _ => found.push(Extent { len, allocated }),
    };
    let mut at = range.start;
    for (from, until) in held {
        let from = (from * BLOCK_SIZE).clamp(at, range.end);
        let until = (until * BLOCK_SIZE).clamp(from, range.end);
        add(from - at, false);
        add(until - from, true);
        at = until;
    }
    add(range.end - at, false);
    found
}
