//! A block device over an image file, or over a real block device: real bytes, no virtual time.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, IoSlice, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dovetail_time::SimTime;
use rustix::fs::{FallocateFlags, OFlags, SeekFrom as RawSeek, fallocate};

use crate::addr::{BLOCK_SIZE, BlockRange, SectorRange};
use crate::command::{Command, Data};
use crate::content::{BlockBytes, Content};
use crate::device::{BlockDevice, Capabilities, Completion, DeviceError, DeviceInfo};

/// A file of blocks. Each command is performed before it returns and completes at the time of its
/// issue.
///
/// Sparse files of any size work: nothing but what is asked for is read. Bytes after the last whole
/// block are not part of the device. A discard punches holes into a file, where the file system
/// below can; a real block device gets none. It takes real bytes only, no patterns.
#[derive(Debug)]
pub struct ImageDevice {
    file: File,
    /// Byte of the file at which the first block begins.
    offset: u64,
    blocks: u64,
    writable: bool,
    discard: bool,
    /// Something was written since the last flush.
    dirty: AtomicBool,
    /// Buffer of reads.
    buffer: Vec<u8>,
}

/// Bytes of the buffer that stay between reads: the largest request of the file systems here.
const KEPT_BUFFER: usize = 1 << 20;
/// Slices in one write at most (Linux: `IOV_MAX`).
const MAX_SLICES: usize = 1024;

/// The loop device over a file that somebody, such as a mount, has for itself.
fn busy_loop(file: &Metadata) -> Option<PathBuf> {
    let devices = std::fs::read_dir("/sys/block").ok().filter(|_| file.is_file())?;
    devices.flatten().find_map(|device| {
        let behind = std::fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        let behind = std::fs::metadata(behind.trim_end_matches('\n')).ok()?;
        if (behind.dev(), behind.ino()) != (file.dev(), file.ino()) {
            return None;
        }
        let device = Path::new("/dev").join(device.file_name());
        let mut options = OpenOptions::new();
        let opened = options.read(true).custom_flags(OFlags::EXCL.bits() as i32).open(&device);
        let is_busy = opened.is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy);
        is_busy.then_some(device)
    })
}

impl ImageDevice {
    /// Opens the image at `path` for reading.
    ///
    /// # Errors
    /// An I/O error, for instance that there is no such file, or that it is a directory.
    pub fn open_read_only(path: &Path) -> io::Result<Self> {
        Self::from_file(File::open(path)?, false)
    }

    /// Opens the image at `path` for reading and writing.
    ///
    /// # Errors
    /// An I/O error, for instance that a block device is busy because it is mounted, or that the
    /// image is behind a loop device that is.
    pub fn open_read_write(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        if let Some(device) = busy_loop(&metadata) {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                format!("it is in use by way of {}: unmount that first", device.display()),
            ));
        }
        let exclusive = metadata.file_type().is_block_device();
        let flags = if exclusive { OFlags::EXCL } else { OFlags::empty() };
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(flags.bits() as i32);
        Self::from_file(options.open(path)?, true)
    }

    fn from_file(mut file: File, writable: bool) -> io::Result<Self> {
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        let len = file.seek(SeekFrom::End(0))?;
        // behind the end there is nothing to lose
        let discard =
            writable && file.metadata()?.is_file() && punch(&file, len, BLOCK_SIZE).is_ok();
        // what others wrote before may not be durable yet
        Ok(Self {
            file,
            offset: 0,
            blocks: len / BLOCK_SIZE,
            writable,
            discard,
            dirty: AtomicBool::new(true),
            buffer: Vec::new(),
        })
    }

    /// The device that begins at byte `offset` of this one, as a partition does.
    #[must_use]
    pub fn from_offset(self, offset: u64) -> Self {
        let bytes = (self.blocks * BLOCK_SIZE).saturating_sub(offset);
        Self { offset: self.offset + offset, blocks: bytes / BLOCK_SIZE, ..self }
    }

    /// The byte of the file at which a block begins.
    const fn byte_of(&self, block: u64) -> u64 {
        self.offset + block * BLOCK_SIZE
    }

    fn read(&mut self, range: BlockRange, into: Option<&mut [Content]>) -> Result<(), DeviceError> {
        let Some(into) = into else { return self.info().check(range, range.blocks) };
        self.info().check(range, into.len() as u64)?;
        self.buffer.resize(into.len() * BLOCK_SIZE as usize, 0);
        let at = self.byte_of(range.start.0);
        let read = self.file.read_exact_at(&mut self.buffer, at);
        read.map_err(|error| host("read", &error))?;
        for (content, bytes) in into.iter_mut().zip(self.buffer.as_chunks().0) {
            *content = Content::Bytes(Arc::new(*bytes));
        }
        self.buffer.truncate(KEPT_BUFFER);
        self.buffer.shrink_to(KEPT_BUFFER);
        Ok(())
    }

    fn write(&mut self, range: BlockRange, data: &Data<'_>, fua: bool) -> Result<(), DeviceError> {
        self.info().check(range, data.blocks().unwrap_or(range.blocks))?;
        self.check_writable()?;
        *self.dirty.get_mut() = true;
        match data {
            Data::Blocks(blocks) => self.write_blocks(range, blocks)?,
            Data::Bytes(bytes) => {
                let written = self.file.write_all_at(bytes, self.byte_of(range.start.0));
                written.map_err(|error| host("written", &error))?;
            }
            Data::Patterns(_) => return Err(DeviceError::Unsupported("pattern write")),
        }
        if fua { self.flush() } else { Ok(()) }
    }

    fn write_blocks(&self, range: BlockRange, blocks: &[Content]) -> Result<(), DeviceError> {
        if blocks.iter().any(|block| matches!(block, Content::Pattern(_))) {
            return Err(DeviceError::Unsupported("pattern write"));
        }
        let mut slices: Vec<IoSlice<'_>> =
            blocks.iter().map(|block| IoSlice::new(bytes_of(block))).collect();
        for (group, slices) in slices.chunks_mut(MAX_SLICES).enumerate() {
            let at = self.byte_of(range.start.0 + (group * MAX_SLICES) as u64);
            write_all(&self.file, slices, at).map_err(|error| host("written", &error.into()))?;
        }
        Ok(())
    }

    fn discard(&mut self, ranges: &[SectorRange]) -> Result<(), DeviceError> {
        if !self.discard {
            return Err(DeviceError::Unsupported("discard"));
        }
        let inside =
            || ranges.iter().map(|range| range.blocks_inside()).filter(|range| range.blocks > 0);
        inside().try_for_each(|range| self.info().check(range, range.blocks))?;
        *self.dirty.get_mut() = true;
        inside().try_for_each(|range| {
            let (start, len) = (self.byte_of(range.start.0), range.blocks * BLOCK_SIZE);
            punch(&self.file, start, len).map_err(|error| host("discarded", &error.into()))
        })
    }

    fn check_writable(&self) -> Result<(), DeviceError> {
        if self.writable { Ok(()) } else { Err(DeviceError::NotWritable) }
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        if !self.writable || !*self.dirty.get_mut() {
            return Ok(());
        }
        self.file.sync_data().map_err(|error| host("flushed", &error))?;
        *self.dirty.get_mut() = false;
        Ok(())
    }

    /// Gives those blocks of a range that are holes of the image file a place, as the zeros that
    /// they are: the first write to a hole, and the flush after it, take the system below far
    /// longer than later ones. A real device has none.
    ///
    /// # Errors
    /// [`DeviceError::Host`].
    pub fn fill_holes(&mut self, range: BlockRange) -> Result<(), DeviceError> {
        self.info().check(range, range.blocks)?;
        self.check_writable()?;
        let end = self.byte_of(range.end().0);
        let mut at = self.byte_of(range.start.0);
        while let Some(hole) = seek(&self.file, RawSeek::Hole(at))?.filter(|&hole| hole < end) {
            at = seek(&self.file, RawSeek::Data(hole))?.unwrap_or(end).min(end);
            self.write_zeros(hole, at)?;
        }
        Ok(())
    }

    fn write_zeros(&mut self, from: u64, to: u64) -> Result<(), DeviceError> {
        let zeros = vec![0; KEPT_BUFFER];
        *self.dirty.get_mut() = true;
        for at in (from..to).step_by(KEPT_BUFFER) {
            let len = (to - at).min(KEPT_BUFFER as u64) as usize;
            self.file.write_all_at(&zeros[..len], at).map_err(|error| host("written", &error))?;
        }
        Ok(())
    }
}

/// Writes all of the slices, one after the other, from byte `at` on.
fn write_all(
    file: &File,
    mut slices: &mut [IoSlice<'_>],
    mut at: u64,
) -> Result<(), rustix::io::Errno> {
    while !slices.is_empty() {
        let written = match rustix::io::pwritev(file, slices, at) {
            Ok(0) => return Err(rustix::io::Errno::IO),
            Err(rustix::io::Errno::INTR) => continue,
            written => written?,
        };
        IoSlice::advance_slices(&mut slices, written);
        at += written as u64;
    }
    Ok(())
}

/// The first byte of the kind; none behind the last data, and on files that do not tell.
fn seek(file: &File, from: RawSeek) -> Result<Option<u64>, DeviceError> {
    match rustix::fs::seek(file, from) {
        Ok(found) => Ok(Some(found)),
        Err(rustix::io::Errno::NXIO | rustix::io::Errno::INVAL) => Ok(None),
        Err(error) => Err(host("read", &error.into())),
    }
}

/// Punches a hole: the range reads as zeros from now on, and takes no room.
fn punch(file: &File, start: u64, len: u64) -> Result<(), rustix::io::Errno> {
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, len)
}

fn bytes_of(content: &Content) -> &BlockBytes {
    match content {
        Content::Bytes(bytes) => bytes,
        _ => &[0; BLOCK_SIZE as usize],
    }
}

fn host(done: &str, error: &io::Error) -> DeviceError {
    DeviceError::Host(format!("the image cannot be {done}: {error}"))
}

impl BlockDevice for ImageDevice {
    fn info(&self) -> DeviceInfo {
        let capabilities =
            Capabilities { discard: self.discard, streams: 1, ..Capabilities::default() };
        DeviceInfo { blocks: self.blocks, capabilities }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Read { range, into } => self.read(range, into)?,
            Command::Write { range, data, fua, hints: _ } => self.write(range, &data, fua)?,
            Command::Flush => self.flush()?,
            Command::Discard { ranges } => self.discard(ranges)?,
            refused => return Err(refused.unsupported()),
        }
        Ok(Completion::at(at))
    }

    fn read_shared(&self, at: u64, into: &mut [u8]) -> bool {
        let end = at.checked_add(into.len() as u64);
        let inside = end.is_some_and(|end| end <= self.blocks * BLOCK_SIZE);
        inside && self.file.read_exact_at(into, self.offset + at).is_ok()
    }

    fn write_shared(&self, at: u64, bytes: &[u8]) -> bool {
        let end = at.checked_add(bytes.len() as u64);
        let inside = end.is_some_and(|end| end <= self.blocks * BLOCK_SIZE);
        if !inside || !self.writable {
            return false;
        }
        self.dirty.store(true, Ordering::Release);
        self.file.write_all_at(bytes, self.offset + at).is_ok()
    }
}

crate::performs_at_once!(ImageDevice);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr::Lba;
    use crate::command::Hints;
    use crate::content::Pattern;

    /// An empty image of `bytes` bytes; the file goes away with the folder.
    fn image(bytes: u64) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        File::create(&path).unwrap().set_len(bytes).unwrap();
        (folder, path)
    }

    #[test]
    fn a_device_may_begin_within_its_file() {
        let (_folder, path) = image(8 * BLOCK_SIZE);
        let whole = || ImageDevice::open_read_write(&path).unwrap();
        let mut part = whole().from_offset(512);
        assert_eq!(part.info().blocks, 7);
        let filled = Content::Bytes(Arc::new([7; BLOCK_SIZE as usize]));
        write(&mut part, 6, std::slice::from_ref(&filled)).unwrap();
        assert!(write(&mut part, 7, std::slice::from_ref(&filled)).is_err());
        let bytes = std::fs::read(&path).unwrap();
        let at = 512 + 6 * BLOCK_SIZE as usize;
        assert!(bytes[at..at + 4096] == [7; 4096] && bytes[at - 1] == 0);
        assert_eq!(read(&mut part, BlockRange::new(Lba(6), 1)).unwrap(), [filled]);
        part.fill_holes(BlockRange::new(Lba(0), 7)).unwrap();
        let range = BlockRange::new(Lba(6), 1).into();
        part.submit(SimTime::ZERO, Command::Discard { ranges: &[range] }).unwrap();
        assert!(std::fs::read(&path).unwrap()[at - 1..].iter().all(|byte| *byte == 0));
        assert_eq!(whole().from_offset(1 << 40).info().blocks, 0);
    }

    fn read(device: &mut ImageDevice, range: BlockRange) -> Result<Vec<Content>, DeviceError> {
        let mut into = vec![Content::Empty; range.blocks as usize];
        device.submit(SimTime::ZERO, Command::Read { range, into: Some(&mut into) })?;
        Ok(into)
    }

    fn write(
        device: &mut ImageDevice,
        lba: u64,
        blocks: &[Content],
    ) -> Result<Completion, DeviceError> {
        let range = BlockRange::new(Lba(lba), blocks.len() as u64);
        let data = Data::Blocks(blocks);
        let at = SimTime::from_ns(7);
        device.submit(at, Command::Write { range, data, hints: Hints::default(), fua: true })
    }

    fn bytes(fill: u8) -> Content {
        Content::Bytes(Arc::new([fill; 4096]))
    }

    #[test]
    fn what_is_written_at_the_end_of_four_tebibytes_is_read_back() {
        let (_folder, path) = image(4 << 40);
        let mut device = ImageDevice::open_read_write(&path).unwrap();
        let last = device.info().blocks - 2;
        let done = write(&mut device, last, &[bytes(1), bytes(2)]).unwrap().done;
        assert_eq!(done, SimTime::from_ns(7), "a command completes when it is issued");
        device.submit(SimTime::ZERO, Command::Flush).unwrap();
        let mut again = ImageDevice::open_read_only(&path).unwrap();
        let found = read(&mut again, BlockRange::new(Lba(last - 1), 3)).unwrap();
        assert_eq!(found, [bytes(0), bytes(1), bytes(2)]);
    }

    #[test]
    fn a_discard_makes_holes_of_the_whole_blocks_inside() {
        let (_folder, path) = image(6 * 4096 + 100);
        let mut device = ImageDevice::open_read_write(&path).unwrap();
        assert!(device.info().capabilities.discard, "the file system of temporary files has holes");
        write(&mut device, 0, &[1, 2, 3, 4, 5, 6].map(bytes)).unwrap();
        let ranges =
            [SectorRange::new(1, 16), SectorRange::new(3 * 8, 2 * 8), SectorRange::new(7, 9)];
        device.submit(SimTime::ZERO, Command::Discard { ranges: &ranges }).unwrap();
        let found = read(&mut device, BlockRange::new(Lba(0), 6)).unwrap();
        assert_eq!(found, [1, 0, 3, 0, 0, 6].map(bytes));
        assert_eq!(
            std::fs::metadata(&path).unwrap().len(),
            6 * 4096 + 100,
            "no shorter, no longer"
        );
        let beyond = [SectorRange::new(8, 8), SectorRange::new(5 * 8, 2 * 8)];
        let refused = device.submit(SimTime::ZERO, Command::Discard { ranges: &beyond });
        assert!(matches!(refused, Err(DeviceError::OutOfRange { .. })));
        assert_eq!(
            read(&mut device, BlockRange::new(Lba(0), 1)).unwrap(),
            [bytes(1)],
            "nothing is done by half"
        );
    }

    #[test]
    fn holes_are_filled_and_data_stays() {
        use std::os::unix::fs::MetadataExt;
        let (_folder, path) = image(600 * 4096);
        let mut device = ImageDevice::open_read_write(&path).unwrap();
        write(&mut device, 300, &[bytes(7)]).unwrap();
        device.fill_holes(BlockRange::new(Lba(20), 500)).unwrap();
        let size = std::fs::metadata(&path).unwrap().blocks() * 512;
        assert!((500 * 4096..560 * 4096).contains(&size), "{size}");
        let found = read(&mut device, BlockRange::new(Lba(299), 3)).unwrap();
        assert_eq!(found, [0, 7, 0].map(bytes));
        assert!(device.fill_holes(BlockRange::new(Lba(20), 581)).is_err());
    }

    #[test]
    fn what_it_cannot_do_is_refused() {
        let (_folder, path) = image(3 * 4096 + 100);
        let mut device = ImageDevice::open_read_only(&path).unwrap();
        assert_eq!(device.info().blocks, 3);
        assert!(matches!(
            read(&mut device, BlockRange::new(Lba(2), 2)),
            Err(DeviceError::OutOfRange { blocks: 3, .. })
        ));
        assert_eq!(write(&mut device, 0, &[bytes(1)]), Err(DeviceError::NotWritable));
        let mut device = ImageDevice::open_read_write(&path).unwrap();
        let pattern = Content::Pattern(Pattern::new(1));
        assert_eq!(
            write(&mut device, 0, &[pattern]),
            Err(DeviceError::Unsupported("pattern write"))
        );
        let mut device = ImageDevice::open_read_only(&path).unwrap();
        assert!(!device.info().capabilities.discard);
        assert_eq!(
            device.submit(SimTime::ZERO, Command::Discard { ranges: &[] }),
            Err(DeviceError::Unsupported("discard"))
        );
        assert!(ImageDevice::open_read_only(path.parent().unwrap()).is_err(), "a directory");
    }
}
