//! A block device in memory: sparse, and cheap to clone.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use dovetail_time::SimTime;

use crate::addr::{BLOCK_SIZE, BlockRange, Lba, SectorRange};
use crate::command::{Command, Data};
use crate::content::{BlockBytes, Content};
use crate::device::{Answer, BlockDevice, Capabilities, Completion, DeviceError, DeviceInfo, Thin};
use crate::query::Query;
use crate::remap::{HeldRemaps, RemapLimits, RemapPair, RemapWhen};

/// Blocks that clones share or copy together. Assumed; small enough to copy on a write, large
/// enough to keep the map of chunks short.
const CHUNK: usize = 64;

type Chunk = [Content; CHUNK];

/// Limits of a remap in memory, unless others are given (assumed).
const REMAP: RemapLimits = RemapLimits::of(64, 1 << 20);

/// A device whose blocks lie in memory, those that were never written in none of it.
///
/// A clone shares its blocks with the original until one of them writes. Commands complete at the
/// time of their issue; nothing is volatile, so a flush does nothing.
#[derive(Clone, Debug)]
pub struct MemoryDevice {
    blocks: u64,
    thin: Option<Thin>,
    chunks: BTreeMap<u64, Arc<Chunk>>,
    /// Blocks that hold something.
    used: u64,
    limits: RemapLimits,
    held: HeldRemaps,
}

impl Default for MemoryDevice {
    /// A device of no blocks.
    fn default() -> Self {
        Self::new(0)
    }
}

impl MemoryDevice {
    /// An empty device of `blocks` blocks.
    pub fn new(blocks: u64) -> Self {
        let (chunks, held) = (BTreeMap::new(), HeldRemaps::default());
        Self { blocks, thin: None, chunks, used: 0, limits: REMAP, held }
    }

    /// An empty device with `blocks` addresses that holds at most `capacity` blocks at once.
    pub fn thin(blocks: u64, capacity: u64) -> Self {
        Self { thin: Some(Thin::new(capacity, 1)), ..Self::new(blocks) }
    }

    /// The same with other limits of a remap.
    pub fn with_limits(self, limits: RemapLimits) -> Self {
        Self { limits, ..self }
    }

    /// A device with the content of `reader` up to its end, in whole blocks; bytes after the last
    /// whole block are dropped. Blocks of zeros become empty.
    ///
    /// # Errors
    /// An error of the reader.
    pub fn from_reader(reader: impl Read) -> io::Result<Self> {
        let mut device = Self::default();
        device.blocks = device.fill(0, reader)?;
        Ok(device)
    }

    /// The image file at `path`. Its holes are not read, where the system tells them.
    ///
    /// # Errors
    /// An I/O error.
    pub fn from_image(path: &Path) -> io::Result<Self> {
        const BUFFER: usize = 64 << 10;
        let mut file = File::open(path)?;
        let end = file.seek(SeekFrom::End(0))?;
        let mut device = Self::new(end / BLOCK_SIZE);
        let mut at = 0;
        while let Some(data) = next_data(&file, at..end)? {
            let first = data.start / BLOCK_SIZE;
            file.seek(SeekFrom::Start(first * BLOCK_SIZE))?;
            at = data.end.next_multiple_of(BLOCK_SIZE);
            let reader = (&file).take(at - first * BLOCK_SIZE);
            device.fill(first, io::BufReader::with_capacity(BUFFER, reader))?;
        }
        Ok(device)
    }

    /// Puts the content of `reader`, up to its last whole block, from block `first` on. The block
    /// after it.
    fn fill(&mut self, first: u64, mut reader: impl Read) -> io::Result<u64> {
        let mut bytes = [0; BLOCK_SIZE as usize];
        let mut block = first;
        while read_block(&mut reader, &mut bytes)? {
            if bytes != [0; BLOCK_SIZE as usize] {
                self.set(Lba(block), Content::Bytes(Arc::new(bytes)));
            }
            block += 1;
        }
        Ok(block)
    }

    /// Writes the device to a sparse image file at `path`, in the place of what was there.
    ///
    /// # Errors
    /// An I/O error; [`io::ErrorKind::InvalidData`] when a block holds a pattern, which has no
    /// bytes.
    pub fn write_to(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.set_len(self.blocks.saturating_mul(BLOCK_SIZE))?;
        for (lba, content) in self.used() {
            let Content::Bytes(bytes) = content else {
                let message = format!("block {lba} holds a pattern, not bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            };
            file.seek(SeekFrom::Start(lba.0 * BLOCK_SIZE))?;
            file.write_all(&**bytes)?;
        }
        Ok(())
    }

    /// Content of block `lba`; [`Content::Empty`] beyond the end.
    pub fn get(&self, lba: Lba) -> &Content {
        let (chunk, index) = split(lba);
        self.chunks.get(&chunk).map_or(&Content::Empty, |chunk| &chunk[index])
    }

    /// The bytes of block `lba`; `None` unless it holds bytes.
    pub fn bytes(&self, lba: Lba) -> Option<&Arc<BlockBytes>> {
        match self.get(lba) {
            Content::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The bytes of block `lba`, to be changed in place; an empty block becomes zeros first. `None`
    /// for a pattern and beyond the end.
    pub fn bytes_mut(&mut self, lba: Lba) -> Option<&mut BlockBytes> {
        if lba.0 < self.blocks && *self.get(lba) == Content::Empty {
            self.set(lba, Content::Bytes(Arc::new([0; BLOCK_SIZE as usize])));
        }
        let (chunk, index) = split(lba);
        match &mut Arc::make_mut(self.chunks.get_mut(&chunk)?)[index] {
            Content::Bytes(bytes) => Some(Arc::make_mut(bytes)),
            _ => None,
        }
    }

    /// The blocks that hold something, in order.
    pub fn used(&self) -> impl Iterator<Item = (Lba, &Content)> {
        self.chunks.iter().flat_map(|(chunk, contents)| {
            let first = chunk * CHUNK as u64;
            let numbered = contents.iter().enumerate();
            let used = numbered.filter(|(_, content)| **content != Content::Empty);
            used.map(move |(i, content)| (Lba(first + i as u64), content))
        })
    }

    /// Makes the device `blocks` blocks long. What lies beyond a new end is gone.
    pub fn resize(&mut self, blocks: u64) {
        let beyond: Vec<Lba> =
            self.used().map(|(lba, _)| lba).filter(|lba| lba.0 >= blocks).collect();
        beyond.into_iter().for_each(|lba| self.set(lba, Content::Empty));
        self.blocks = blocks;
    }

    /// Puts `content` into block `lba`, which lies on the device.
    pub fn set(&mut self, lba: Lba, content: Content) {
        let (chunk, index) = split(lba);
        if content == Content::Empty && !self.chunks.contains_key(&chunk) {
            return;
        }
        let contents =
            self.chunks.entry(chunk).or_insert_with(|| Arc::new([const { Content::Empty }; CHUNK]));
        let holds = u64::from(content != Content::Empty);
        let before = std::mem::replace(&mut Arc::make_mut(contents)[index], content);
        self.used = self.used + holds - u64::from(before != Content::Empty);
        if holds == 0 && contents.iter().all(|content| *content == Content::Empty) {
            self.chunks.remove(&chunk);
        }
    }

    /// The blocks that a discard of `range` empties: whole ones, on the device, that hold
    /// something.
    pub fn discardable(&self, range: SectorRange) -> Vec<Lba> {
        self.used_within(range.blocks_inside()).collect()
    }

    /// The blocks of a range that hold something, in order.
    fn used_within(&self, range: BlockRange) -> impl Iterator<Item = Lba> {
        let (start, end) = (range.start.0, range.end().0.min(self.blocks).max(range.start.0));
        let chunks = self.chunks.range(start / CHUNK as u64..end.div_ceil(CHUNK as u64));
        let blocks = chunks.flat_map(|(chunk, _)| (chunk * CHUNK as u64..).take(CHUNK));
        let blocks = blocks.filter(move |block| (start..end).contains(block)).map(Lba);
        blocks.filter(|lba| *self.get(*lba) != Content::Empty)
    }

    fn read(&self, range: BlockRange, into: Option<&mut [Content]>) -> Result<(), DeviceError> {
        let len = into.as_ref().map_or(range.blocks, |into| into.len() as u64);
        self.info().check(range, len)?;
        for (lba, into) in range.iter().zip(into.into_iter().flatten()) {
            into.clone_from(self.get(lba));
        }
        Ok(())
    }

    fn write(&mut self, range: BlockRange, data: &Data<'_>) -> Result<(), DeviceError> {
        self.info().check(range, data.blocks().unwrap_or(range.blocks))?;
        let new = || range.iter().filter(|lba| *self.get(*lba) == Content::Empty).count() as u64;
        if self.free_blocks().is_some_and(|free| free < range.blocks && free < new()) {
            return Err(DeviceError::NoRoom);
        }
        for (i, lba) in range.iter().enumerate() {
            self.set(lba, data.block(i as u64));
        }
        Ok(())
    }

    fn discard(&mut self, ranges: &[SectorRange]) {
        for range in ranges {
            self.discardable(*range).into_iter().for_each(|lba| self.set(lba, Content::Empty));
        }
    }

    fn free_blocks(&self) -> Option<u64> {
        self.thin.map(|thin| thin.capacity.saturating_sub(self.used))
    }

    fn answer(&self, query: Query) -> Result<Answer, DeviceError> {
        match query {
            Query::FreeBlocks => self.free_blocks().map(Answer::Blocks),
            Query::Held { range, most } => {
                Some(Answer::Addresses(self.used_within(range).take(most).collect()))
            }
            Query::MapBytes
            | Query::Zones { .. }
            | Query::ChangedZones { .. }
            | Query::Placement => None,
        }
        .ok_or_else(|| query.unsupported())
    }

    /// Executes one pair.
    pub(crate) fn move_block(&mut self, pair: RemapPair) {
        let content = self.get(pair.from).clone();
        self.set(pair.to, content);
        self.set(pair.from, Content::Empty);
    }

    fn remap(&mut self, pairs: &[RemapPair], when: RemapWhen) -> Result<(), DeviceError> {
        let info = self.info();
        self.held.admit(&info, pairs, when)?;
        let moved = self.held.take(pairs, when);
        moved.into_iter().for_each(|pair| self.move_block(pair));
        Ok(())
    }
}

const fn split(lba: Lba) -> (u64, usize) {
    (lba.0 / CHUNK as u64, (lba.0 % CHUNK as u64) as usize)
}

/// Reads one more whole block; false if there is none.
fn read_block(reader: &mut impl Read, into: &mut BlockBytes) -> io::Result<bool> {
    match reader.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The first bytes of a part of a file that are no hole; all of it where the system tells no holes.
#[cfg(unix)]
fn next_data(file: &File, part: Range<u64>) -> io::Result<Option<Range<u64>>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    if part.start >= part.end {
        return Ok(None);
    }
    let start = match seek(file, SeekFrom::Data(part.start)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL) => return Ok(Some(part)),
        Err(error) => return Err(error.into()),
    };
    Ok(Some(start..seek(file, SeekFrom::Hole(start))?.min(part.end)))
}

#[cfg(not(unix))]
fn next_data(_: &File, part: Range<u64>) -> io::Result<Option<Range<u64>>> {
    Ok((part.start < part.end).then_some(part))
}

impl BlockDevice for MemoryDevice {
    fn info(&self) -> DeviceInfo {
        let capabilities = Capabilities {
            discard: true,
            streams: 1,
            inode_hints: false,
            remap: Some(self.limits),
            thin: self.thin,
            devirtualize: None,
            zones: None,
            reclaim_units: None,
        };
        DeviceInfo { blocks: self.blocks, capabilities }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Read { range, into } => self.read(range, into)?,
            Command::Write { range, data, hints: _, fua: _ } => self.write(range, &data)?,
            Command::Flush => {}
            Command::Discard { ranges } => self.discard(ranges),
            Command::Remap { pairs, when } => self.remap(pairs, when)?,
            Command::Query(query) => return Ok(Completion::with(at, self.answer(query)?)),
            refused => return Err(refused.unsupported()),
        }
        Ok(Completion::at(at))
    }

    fn read_shared(&self, at: u64, into: &mut [u8]) -> bool {
        let end = at.checked_add(into.len() as u64);
        if end.is_none_or(|end| end.div_ceil(BLOCK_SIZE) > self.blocks) {
            return false;
        }
        let (mut at, mut rest) = (at, into);
        while !rest.is_empty() {
            let start = (at % BLOCK_SIZE) as usize;
            let (part, after) = rest.split_at_mut(rest.len().min(BLOCK_SIZE as usize - start));
            match self.get(Lba(at / BLOCK_SIZE)) {
                Content::Bytes(bytes) => part.copy_from_slice(&bytes[start..start + part.len()]),
                Content::Empty => part.fill(0),
                Content::Pattern(_) => return false,
            }
            at += part.len() as u64;
            rest = after;
        }
        true
    }
}

crate::performs_at_once!(MemoryDevice);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Hints;
    use crate::content::Pattern;
    use crate::query::held_blocks;

    fn write(
        device: &mut MemoryDevice,
        lba: u64,
        blocks: &[Content],
    ) -> Result<Completion, DeviceError> {
        let range = BlockRange::new(Lba(lba), blocks.len() as u64);
        let (data, hints) = (Data::Blocks(blocks), Hints::default());
        device.submit(SimTime::ZERO, Command::Write { range, data, hints, fua: false })
    }

    fn read(device: &mut MemoryDevice, range: BlockRange) -> Vec<Content> {
        let mut into = vec![Content::Empty; range.blocks as usize];
        device.submit(SimTime::ZERO, Command::Read { range, into: Some(&mut into) }).unwrap();
        into
    }

    fn bytes(fill: u8) -> Content {
        Content::Bytes(Arc::new([fill; 4096]))
    }

    fn pattern(n: u64) -> Content {
        Content::Pattern(Pattern::new(n))
    }

    #[test]
    fn a_clone_does_not_see_later_writes() {
        let mut device = MemoryDevice::new(1 << 40);
        write(&mut device, 62, &[bytes(1), pattern(2), bytes(3)]).unwrap();
        let mut before = device.clone();
        write(&mut device, 63, &[bytes(4)]).unwrap();
        assert_eq!(
            read(&mut before, BlockRange::new(Lba(61), 4)),
            [Content::Empty, bytes(1), pattern(2), bytes(3)]
        );
        assert_eq!(read(&mut device, BlockRange::new(Lba(63), 1)), [bytes(4)]);
    }

    #[test]
    fn whole_blocks_of_a_discard_read_as_empty() {
        let mut device = MemoryDevice::new(200);
        let blocks: Vec<_> = (0..200).map(pattern).collect();
        write(&mut device, 0, &blocks).unwrap();
        let ranges = [SectorRange::new(1, 3 * 8), SectorRange::new(190 * 8, u64::MAX)];
        device.submit(SimTime::ZERO, Command::Discard { ranges: &ranges }).unwrap();
        let left: Vec<u64> = device.used().map(|(lba, _)| lba.0).collect();
        assert_eq!(left, [0].into_iter().chain(3..190).collect::<Vec<_>>());
    }

    #[test]
    fn what_it_cannot_do_is_refused() {
        let mut device = MemoryDevice::new(3);
        let beyond = write(&mut device, 2, &[bytes(1), bytes(1)]);
        assert!(matches!(beyond, Err(DeviceError::OutOfRange { blocks: 3, .. })));
        let range = BlockRange::new(Lba(0), 2);
        let into = &mut [Content::Empty];
        let short = device.submit(SimTime::ZERO, Command::Read { range, into: Some(into) });
        assert_eq!(short, Err(DeviceError::LengthMismatch { range: 2, data: 1 }));
    }

    #[test]
    fn a_thin_device_has_more_addresses_than_room() {
        let mut device = MemoryDevice::thin(crate::AREAS * crate::AREA_BLOCKS, 3);
        let last = crate::AREAS * crate::AREA_BLOCKS - 2;
        write(&mut device, last, &[pattern(1), pattern(2)]).unwrap();
        assert_eq!(device.free_blocks(), Some(1));
        let mut ask = |start, blocks, most| {
            held_blocks(&mut device, BlockRange::new(Lba(start), blocks), most).unwrap().unwrap()
        };
        assert_eq!(ask(0, u64::MAX, 9), [Lba(last), Lba(last + 1)]);
        assert_eq!(
            (ask(0, u64::MAX, 1), ask(last + 1, 1, 9)),
            (vec![Lba(last)], vec![Lba(last + 1)])
        );
        assert_eq!(
            (ask(0, last, 9), ask(last, 0, 9), ask(u64::MAX, 9, 9)),
            (vec![], vec![], vec![])
        );
        assert_eq!(write(&mut device, 0, &[pattern(3), pattern(4)]), Err(DeviceError::NoRoom));
        write(&mut device, last, &[pattern(5), pattern(6)]).unwrap();
        let half = [SectorRange::from(BlockRange::new(Lba(1 << 60), 1 << 60))];
        device.submit(SimTime::ZERO, Command::Discard { ranges: &half }).unwrap();
        assert_eq!((device.free_blocks(), device.used().count()), (Some(3), 0));
    }

    #[test]
    fn a_remap_moves_content() {
        let mut device = MemoryDevice::new(10);
        write(&mut device, 0, &[pattern(0), pattern(1), pattern(2)]).unwrap();
        let pair = |to, from| RemapPair { to: Lba(to), from: Lba(from) };
        let batch = crate::remap::BatchId(1);
        let mut remap = |pairs: &[RemapPair], when| {
            device.submit(SimTime::ZERO, Command::Remap { pairs, when }).unwrap();
            device.used().map(|(lba, content)| (lba.0, content.clone())).collect::<Vec<_>>()
        };
        let before = remap(&[pair(9, 1)], RemapWhen::Held(batch));
        assert_eq!(before, [(0, pattern(0)), (1, pattern(1)), (2, pattern(2))]);
        let after = remap(&[pair(0, 2)], RemapWhen::WithHeld(batch));
        assert_eq!(after, [(0, pattern(2)), (9, pattern(1))]);
        let empty = remap(&[pair(9, 5)], RemapWhen::Now);
        assert_eq!(empty, [(0, pattern(2))], "an unmapped source");
    }

    #[test]
    fn an_image_file_gives_the_same_device_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        let mut device = MemoryDevice::new(1000);
        write(&mut device, 999, &[bytes(9)]).unwrap();
        write(&mut device, 5, &[bytes(5), bytes(0)]).unwrap();
        device.write_to(&path).unwrap();
        let again = MemoryDevice::from_image(&path).unwrap();
        assert_eq!(again.info(), device.info());
        let used: Vec<_> = again.used().map(|(lba, content)| (lba.0, content.clone())).collect();
        assert_eq!(used, [(5, bytes(5)), (999, bytes(9))]);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(1000 * BLOCK_SIZE + 100).unwrap();
        let longer = MemoryDevice::from_image(&path).unwrap();
        assert_eq!(longer.info(), device.info(), "bytes after the last whole block");
        file.set_len(4_000_000 * BLOCK_SIZE).unwrap();
        let longer = MemoryDevice::from_image(&path).unwrap();
        assert_eq!((longer.info().blocks, longer.used().count()), (4_000_000, 2), "a hole behind");
        write(&mut device, 7, &[pattern(1)]).unwrap();
        assert_eq!(device.write_to(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_new_end_cuts_off_what_lies_beyond() {
        let mut device = MemoryDevice::new(100);
        write(&mut device, 49, &[bytes(1), bytes(2)]).unwrap();
        device.resize(50);
        device.resize(100);
        let used: Vec<_> = device.used().map(|(lba, _)| lba.0).collect();
        assert_eq!(used, [49]);
        device.bytes_mut(Lba(49)).unwrap()[7] = 7;
        assert_eq!(device.bytes(Lba(49)).unwrap()[7], 7);
        assert_eq!(device.bytes_mut(Lba(50)).unwrap(), &[0; 4096], "an empty block");
        assert_eq!(device.bytes_mut(Lba(100)), None, "beyond the end");
    }
}
