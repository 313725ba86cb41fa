//! The medium that an image argument names: an image file or block device, or a drive in a file; or
//! several of them, and zones that a report tells.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use dovetail_block::{
    BLOCK_SIZE, BlockDevice, BlockRange, Command, Completion, Content, DeviceError, DeviceInfo,
    ImageDevice, JoinError, JoinedDevice, Lba, Scheduler, ZoneReport, ZoneState, Zones,
    performs_at_once,
};
use dovetail_f2fs::format::{Member, Superblock};
use dovetail_ftl::{EmulatedDrive, EmulatedError};
use dovetail_time::SimTime;

use crate::sparse::{SparseError, is_sparse};
use crate::{Source, SparseImage, ZonedImage};

/// Any device, as the check and the mounts of all formats take it.
pub(crate) type Device = Box<dyn Scheduler + Send + Sync>;

/// Medium of a file system.
#[derive(Debug)]
pub enum Medium {
    /// An image file or a block device.
    Image(ImageDevice),
    /// A drive in a file, in a lock: its parts are not made for several who look at the same time.
    Drive(Box<Mutex<EmulatedDrive>>),
    /// An Android sparse image, which is only read.
    Sparse(Box<SparseImage>),
    /// An image of a zoned device.
    Zoned(Box<ZonedImage>),
    /// Several of them, end to end.
    Joined(Box<JoinedDevice<Medium>>),
}

/// The zones that a new volume's image gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewZones {
    /// Bytes of a zone.
    pub size: u64,
    /// Bytes of a sequential zone that can be written.
    pub capacity: u64,
    /// Conventional zones, which come first.
    pub conventional: u64,
}

/// The medium at a path cannot be opened; the path is not named.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The drive in it.
    #[error(transparent)]
    Drive(#[from] EmulatedError),
    /// The sparse image in it.
    #[error(transparent)]
    Sparse(#[from] SparseError),
    /// Another device of the volume.
    #[error("{file}: {error}")]
    Other {
        /// The device.
        file: String,
        /// The reason.
        error: Box<OpenError>,
    },
    /// Its zones.
    #[error("the zone report {file} cannot be used: {why}")]
    Zones {
        /// The file of the report.
        file: String,
        /// The reason.
        why: String,
    },
    /// More devices than the volume has, or fewer.
    #[error(
        "the volume lies on {expected} devices, and {found} are given; --device names each but the first"
    )]
    Devices {
        /// Devices that are given.
        found: usize,
        /// Devices of the volume.
        expected: usize,
    },
    /// One device twice.
    #[error("{file} is given twice, and is one device of the volume")]
    Twice {
        /// The device.
        file: String,
    },
    /// A device in the place of another one.
    #[error(
        "{file} is given in the place of {expected}: give the devices in the order in which the volume was made"
    )]
    Order {
        /// The device that is given.
        file: String,
        /// Name of the one of that place when the volume was made.
        expected: String,
    },
    /// A drive in a file is not a disk with partitions.
    #[error("an offset is for images: a volume begins where its drive does")]
    NoOffset,
    /// Devices that cannot be put together.
    #[error(transparent)]
    Join(#[from] JoinError),
}

impl Medium {
    /// Opens what `source` names for reading.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_read_only(source: impl Into<Source>) -> Result<Self, OpenError> {
        Self::open(&source.into(), false)
    }

    /// Opens what `source` names for reading and writing.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_read_write(source: impl Into<Source>) -> Result<Self, OpenError> {
        Self::open(&source.into(), true)
    }

    pub(crate) fn open(source: &Source, writable: bool) -> Result<Self, OpenError> {
        let mut members = Self::members(source, writable)?;
        if let Some(file) = source.zones()
            && let Some(last) = members.pop()
        {
            members.push(Self::Zoned(Box::new(ZonedImage::open(last, file, writable)?)));
        }
        match <[Self; 1]>::try_from(members) {
            Ok([single]) => Ok(single),
            Err(members) => {
                let mut members = members;
                let superblock = superblock(&mut members[0]);
                let blocks = superblock.as_ref().map_or(Vec::new(), Superblock::device_blocks);
                let (found, expected) = (members.len(), blocks.len());
                if found != expected {
                    return Err(OpenError::Devices { found, expected });
                }
                check_order(source, superblock.as_ref().map_or(&[], |it| &it.devices))?;
                Self::join(members, blocks)
            }
        }
    }

    /// The media on which a new volume is to be made, with their sizes in blocks; the last with new
    /// zones if it is to have some, or with those of the source's report.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_for_mkfs(
        source: &Source,
        zones: Option<NewZones>,
    ) -> Result<(Self, Vec<u64>), OpenError> {
        let mut members = Self::members(source, true)?;
        let sizes: Vec<u64> = members.iter().map(|member| member.info().blocks).collect();
        let Some(last) = members.pop() else { return Err(JoinError::Nothing.into()) };
        let last = match (zones, source.zones()) {
            (Some(zones), Some(file)) => {
                let report = new_report(last.info().blocks, zones, file)?;
                Self::Zoned(Box::new(ZonedImage::new(last, report, file, true)))
            }
            (None, Some(file)) => Self::Zoned(Box::new(ZonedImage::open(last, file, true)?)),
            _ => last,
        };
        let is_zoned = last.info().capabilities.zones.is_some();
        if members.is_empty() {
            return Ok((last, sizes));
        }
        members.push(last);
        let taken = dovetail_f2fs::mkfs::device_blocks(&sizes, is_zoned);
        Ok((Self::join(members, taken)?, sizes))
    }

    /// The devices of a source, without zones.
    fn members(source: &Source, writable: bool) -> Result<Vec<Self>, OpenError> {
        let mut members = vec![Self::part(source, writable)?];
        for other in source.others() {
            let failed = |error| OpenError::Other {
                file: other.display().to_string(),
                error: Box::new(error),
            };
            members.push(Self::single(other, writable).map_err(failed)?);
        }
        Ok(members)
    }

    /// The first device of a source, from its offset on.
    fn part(source: &Source, writable: bool) -> Result<Self, OpenError> {
        match (Self::single(source.path(), writable)?, source.offset()) {
            (whole, 0) => Ok(whole),
            (Self::Image(image), offset) => Ok(Self::Image(image.from_offset(offset))),
            (Self::Sparse(image), offset) => Ok(Self::Sparse(Box::new(image.with_offset(offset)))),
            _ => Err(OpenError::NoOffset),
        }
    }

    fn single(path: &Path, writable: bool) -> Result<Self, OpenError> {
        if is_drive(path) {
            return Ok(Self::Drive(Box::new(Mutex::new(EmulatedDrive::open(path, writable)?.0))));
        }
        match (begins_sparse(path), writable) {
            (true, false) => return Ok(Self::Sparse(Box::new(SparseImage::open(path)?))),
            (true, true) => return Err(SparseError::ReadOnly.into()),
            (false, _) => {}
        }
        let open =
            if writable { ImageDevice::open_read_write } else { ImageDevice::open_read_only };
        Ok(Self::Image(open(path)?))
    }

    fn join(members: Vec<Self>, blocks: Vec<u64>) -> Result<Self, OpenError> {
        Ok(Self::Joined(Box::new(JoinedDevice::new(members.into_iter().zip(blocks))?)))
    }

    /// Gives blocks of the range their place, see [`ImageDevice::fill_holes`]; a drive has no
    /// holes.
    ///
    /// # Errors
    /// The device.
    pub fn fill_holes(&mut self, range: BlockRange) -> Result<(), DeviceError> {
        match self {
            Self::Image(image) => image.fill_holes(range),
            Self::Drive(_) | Self::Sparse(_) | Self::Zoned(_) | Self::Joined(_) => Ok(()),
        }
    }
}

/// The superblock of a volume on several devices.
fn superblock(first: &mut Medium) -> Option<Superblock> {
    let mut content = [Content::Empty];
    let range = BlockRange::new(Lba(0), 1);
    let read = first.submit(SimTime::ZERO, Command::Read { range, into: Some(&mut content) });
    match (read, &content[0]) {
        (Ok(_), Content::Bytes(bytes)) => Superblock::parse(bytes, 0).ok(),
        _ => None,
    }
}

/// Refuses a device that is given twice, and one in the place of another: a device has nothing but
/// the name that it had when the volume was made to tell which one it is.
fn check_order(source: &Source, devices: &[Member]) -> Result<(), OpenError> {
    let given: Vec<&Path> = std::iter::once(source.path())
        .chain(source.others().iter().map(PathBuf::as_path))
        .collect();
    let names: Vec<_> = devices.iter().map(|device| Path::new(&device.path).file_name()).collect();
    let mut seen = HashSet::new();
    for (place, path) in given.iter().enumerate() {
        if let Ok(meta) = path.metadata()
            && !seen.insert((meta.dev(), meta.ino()))
        {
            return Err(OpenError::Twice { file: path.display().to_string() });
        }
        let name = path.file_name();
        if names.get(place) != Some(&name) && names.contains(&name) {
            let expected = devices[place].path.clone();
            return Err(OpenError::Order { file: path.display().to_string(), expected });
        }
    }
    Ok(())
}

/// Zones that cover a device of so many blocks, as if they were full: a new volume resets them all.
fn new_report(blocks: u64, zones: NewZones, file: &Path) -> Result<ZoneReport, OpenError> {
    let failed = |why: &str| OpenError::Zones { file: file.display().to_string(), why: why.into() };
    let (size, capacity) = (zones.size / BLOCK_SIZE, zones.capacity / BLOCK_SIZE);
    if size == 0 || capacity == 0 || capacity > size {
        return Err(failed("a zone needs a size, and a capacity that is no larger"));
    }
    let first = zones.conventional.saturating_mul(size);
    let zones = Zones::covering(Lba(first), blocks.saturating_sub(first), size, capacity);
    if zones.count == 0 {
        return Err(failed("the image has no room for a zone that is written in order"));
    }
    let states = vec![(ZoneState::Full, capacity); zones.count as usize];
    Ok(ZoneReport { zones, states })
}

/// There is a drive file at `path`; what cannot be read is none.
pub fn is_drive(path: &Path) -> bool {
    EmulatedDrive::is_one(path).unwrap_or(false)
}

/// There is a sparse image at `path`; what cannot be read is none.
fn begins_sparse(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && is_sparse(&head)
}

impl BlockDevice for Medium {
    fn info(&self) -> DeviceInfo {
        match self {
            Self::Image(image) => image.info(),
            Self::Drive(drive) => drive.lock().unwrap_or_else(PoisonError::into_inner).info(),
            Self::Sparse(sparse) => sparse.info(),
            Self::Zoned(zoned) => zoned.info(),
            Self::Joined(joined) => joined.info(),
        }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match self {
            Self::Image(image) => image.submit(at, command),
            Self::Drive(drive) => {
                drive.get_mut().unwrap_or_else(PoisonError::into_inner).submit(at, command)
            }
            Self::Sparse(sparse) => sparse.submit(at, command),
            Self::Zoned(zoned) => zoned.submit(at, command),
            Self::Joined(joined) => joined.submit(at, command),
        }
    }

    fn read_shared(&self, at: u64, into: &mut [u8]) -> bool {
        match self {
            Self::Image(image) => image.read_shared(at, into),
            Self::Drive(_) | Self::Sparse(_) | Self::Zoned(_) | Self::Joined(_) => false,
        }
    }

    fn write_shared(&self, at: u64, bytes: &[u8]) -> bool {
        match self {
            Self::Image(image) => image.write_shared(at, bytes),
            Self::Drive(_) | Self::Sparse(_) | Self::Zoned(_) | Self::Joined(_) => false,
        }
    }
}

performs_at_once!(Medium);
