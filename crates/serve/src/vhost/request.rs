//! One request of a virtio block device, from its descriptors to what the drive is told.

use std::io::{self, Read, Write};

use dovetail_block::{BlockDevice, DeviceError, SECTOR_SIZE, ZoneAction, ZoneError};
use dovetail_time::SimTime;
use virtio_bindings::bindings::virtio_blk;
use virtio_queue::{DescriptorChain, Reader, Writer};
use vm_memory::GuestMemoryMmap;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::config::{MAX_DISCARDS, MAX_ZEROES};
use super::zones::check_zone_write;
use crate::export::{Export, ExportError};

/// The longest request. Assumed; Linux sends 1.25 MiB by default.
const MAX_BYTES: usize = 64 << 20;
/// Bytes of a disk's name.
const ID_BYTES: usize = 20;

/// Kinds of requests, for statistics and traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Reads sectors.
    Read,
    /// Writes sectors.
    Write,
    /// Makes what was written durable.
    Flush,
    /// Gives sectors up.
    Discard,
    /// Writes zeros.
    WriteZeroes,
    /// Appends to a zone.
    Append,
    /// A command on zones.
    Zone,
    /// Asks for a report of zones.
    ZoneReport,
    /// Asks for the disk's name.
    Identify,
    /// Something that the device does not know.
    Unknown,
}

/// The stages of a request that whoever watches a drive is shown.
#[derive(Clone, Copy, Debug)]
pub enum Stage<'a> {
    /// It was taken, and the drive is as it was before.
    Arrives,
    /// The drive has carried it out.
    Done(&'a Done),
}

/// A request that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its kind.
    pub kind: Kind,
    /// First sector.
    pub sector: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// Virtual time of its completion.
    pub at: SimTime,
    /// Bytes that it wrote into the guest's memory.
    pub(super) written: u32,
}

/// The head of a request.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Head {
    kind: U32,
    reserved: U32,
    pub(super) sector: U64,
}

/// A range of a discard, or of zeros.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Range {
    sector: U64,
    sectors: U32,
    flags: U32,
}

/// Reason why the request failed, as the guest is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Io,
    Unsupported,
    Zone(u32),
}

impl Failure {
    const fn status(self) -> u8 {
        match self {
            Self::Io => virtio_blk::VIRTIO_BLK_S_IOERR as u8,
            Self::Unsupported => virtio_blk::VIRTIO_BLK_S_UNSUPP as u8,
            Self::Zone(status) => status as u8,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Self {
        Self::Io
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Device(DeviceError::Unsupported(_)) => Self::Unsupported,
            ExportError::Device(DeviceError::Zone(error)) => Self::Zone(match error {
                ZoneError::InvalidWrite { .. } => virtio_blk::VIRTIO_BLK_S_ZONE_UNALIGNED_WP,
                ZoneError::TooManyOpen { .. } => virtio_blk::VIRTIO_BLK_S_ZONE_OPEN_RESOURCE,
                ZoneError::TooManyActive { .. } => virtio_blk::VIRTIO_BLK_S_ZONE_ACTIVE_RESOURCE,
                _ => virtio_blk::VIRTIO_BLK_S_ZONE_INVALID_CMD,
            }),
            _ => Self::Io,
        }
    }
}

/// A request with both ends of its buffers.
pub(super) struct Request<'a> {
    pub(super) head: Head,
    pub(super) from_guest: Reader<'a>,
    pub(super) to_guest: Writer<'a>,
    pub(super) at: SimTime,
}

/// A request that was found in a queue.
pub(super) struct Found<'a> {
    pub(super) kind: Kind,
    request: Request<'a>,
    bytes: u64,
    status: Writer<'a>,
}

impl<'a> Found<'a> {
    /// The request of a chain of descriptors.
    ///
    /// # Errors
    /// The chain is no request: without an end, too short, or outside of the memory.
    pub(super) fn in_chain(
        memory: &'a GuestMemoryMmap,
        chain: DescriptorChain<&'a GuestMemoryMmap>,
    ) -> io::Result<Self> {
        let broken = |error: virtio_queue::Error| io::Error::other(error.to_string());
        if chain.clone().last().is_none_or(|last| last.has_next()) {
            return Err(io::Error::other("a chain of descriptors has no end"));
        }
        let mut from_guest = chain.clone().reader(memory).map_err(broken)?;
        let mut to_guest: Writer<'_> = chain.writer(memory).map_err(broken)?;
        let mut head = [0; size_of::<Head>()];
        from_guest.read_exact(&mut head)?;
        let head: Head = zerocopy::transmute!(head);
        let room = to_guest.available_bytes();
        let data = room.checked_sub(1).ok_or(io::ErrorKind::UnexpectedEof)?;
        let status = to_guest.split_at(data).map_err(broken)?;
        let bytes = from_guest.available_bytes().max(data) as u64;
        let request = Request { head, from_guest, to_guest, at: SimTime::ZERO };
        Ok(Self { kind: kind_of(head.kind.get()), request, bytes, status })
    }

    /// Performs it at `at`; returns when it is done.
    pub(super) fn perform<D: BlockDevice>(
        &mut self,
        export: &mut Export<D>,
        name: &str,
        at: SimTime,
    ) -> Result<SimTime, Failure> {
        self.request.at = at;
        self.request.perform(export, name)
    }

    /// Writes the status; returns the bytes that were written into the guest's memory.
    pub(super) fn end<T>(mut self, outcome: &Result<T, Failure>) -> io::Result<u32> {
        let done = virtio_blk::VIRTIO_BLK_S_OK as u8;
        let code = outcome.as_ref().map_or_else(|failure| failure.status(), |_| done);
        self.status.write_all(&[code])?;
        Ok(self.request.to_guest.bytes_written() as u32 + 1)
    }
}

/// Carries out the request of a chain of descriptors, issued at `at`, and writes its status.
///
/// # Errors
/// Those of [`Found::in_chain`].
pub(super) fn carry_out<D: BlockDevice>(
    export: &mut Export<D>,
    name: &str,
    memory: &GuestMemoryMmap,
    chain: DescriptorChain<&GuestMemoryMmap>,
    at: SimTime,
) -> io::Result<Done> {
    let mut found = Found::in_chain(memory, chain)?;
    let (kind, sector, bytes) = (found.kind, found.request.head.sector.get(), found.bytes);
    let outcome = found.perform(export, name, at);
    let written = found.end(&outcome)?;
    Ok(Done { kind, sector, bytes, at: outcome.unwrap_or(at), written })
}

fn kind_of(number: u32) -> Kind {
    match number {
        virtio_blk::VIRTIO_BLK_T_IN => Kind::Read,
        virtio_blk::VIRTIO_BLK_T_OUT => Kind::Write,
        virtio_blk::VIRTIO_BLK_T_FLUSH => Kind::Flush,
        virtio_blk::VIRTIO_BLK_T_DISCARD => Kind::Discard,
        virtio_blk::VIRTIO_BLK_T_WRITE_ZEROES => Kind::WriteZeroes,
        virtio_blk::VIRTIO_BLK_T_ZONE_APPEND => Kind::Append,
        virtio_blk::VIRTIO_BLK_T_ZONE_REPORT => Kind::ZoneReport,
        virtio_blk::VIRTIO_BLK_T_ZONE_OPEN
        | virtio_blk::VIRTIO_BLK_T_ZONE_CLOSE
        | virtio_blk::VIRTIO_BLK_T_ZONE_FINISH
        | virtio_blk::VIRTIO_BLK_T_ZONE_RESET
        | virtio_blk::VIRTIO_BLK_T_ZONE_RESET_ALL => Kind::Zone,
        virtio_blk::VIRTIO_BLK_T_GET_ID => Kind::Identify,
        _ => Kind::Unknown,
    }
}

impl Request<'_> {
    fn perform<D: BlockDevice>(
        &mut self,
        export: &mut Export<D>,
        name: &str,
    ) -> Result<SimTime, Failure> {
        match self.head.kind.get() {
            virtio_blk::VIRTIO_BLK_T_IN => self.read(export),
            virtio_blk::VIRTIO_BLK_T_OUT => self.write(export),
            virtio_blk::VIRTIO_BLK_T_FLUSH => Ok(export.flush(self.at)?),
            virtio_blk::VIRTIO_BLK_T_GET_ID => self.tell_name(name),
            virtio_blk::VIRTIO_BLK_T_DISCARD => self.discard(export),
            virtio_blk::VIRTIO_BLK_T_WRITE_ZEROES => self.write_zeroes(export),
            virtio_blk::VIRTIO_BLK_T_ZONE_APPEND => self.append(export),
            virtio_blk::VIRTIO_BLK_T_ZONE_REPORT => self.report_zones(export),
            virtio_blk::VIRTIO_BLK_T_ZONE_OPEN => {
                self.act_on_zone(export, ZoneAction::Open { window: false })
            }
            virtio_blk::VIRTIO_BLK_T_ZONE_CLOSE => self.act_on_zone(export, ZoneAction::Close),
            virtio_blk::VIRTIO_BLK_T_ZONE_FINISH => self.act_on_zone(export, ZoneAction::Finish),
            virtio_blk::VIRTIO_BLK_T_ZONE_RESET => self.act_on_zone(export, ZoneAction::Reset),
            virtio_blk::VIRTIO_BLK_T_ZONE_RESET_ALL => self.reset_all(export),
            _ => Err(Failure::Unsupported),
        }
    }

    fn offset(&self) -> Result<u64, Failure> {
        self.head.sector.get().checked_mul(SECTOR_SIZE).ok_or(Failure::Io)
    }

    fn read<D: BlockDevice>(&mut self, export: &mut Export<D>) -> Result<SimTime, Failure> {
        let mut data = buffer(self.to_guest.available_bytes())?;
        let done = export.read(self.at, self.offset()?, &mut data)?;
        self.to_guest.write_all(&data)?;
        Ok(done)
    }

    fn write<D: BlockDevice>(&mut self, export: &mut Export<D>) -> Result<SimTime, Failure> {
        let mut data = buffer(self.from_guest.available_bytes())?;
        self.from_guest.read_exact(&mut data)?;
        let offset = self.offset()?;
        check_zone_write(&export.device().info(), offset, data.len() as u64)?;
        Ok(export.write(self.at, offset, &data, false)?)
    }

    fn tell_name(&mut self, name: &str) -> Result<SimTime, Failure> {
        let mut id = [0; ID_BYTES];
        let len = name.len().min(ID_BYTES);
        id[..len].copy_from_slice(&name.as_bytes()[..len]);
        let room = self.to_guest.available_bytes().min(ID_BYTES);
        self.to_guest.write_all(&id[..room])?;
        Ok(self.at)
    }

    /// Its ranges, of which each has no other flags than `known`.
    fn ranges(&mut self, known: u32) -> Result<Vec<Range>, Failure> {
        let count = self.from_guest.available_bytes() / size_of::<Range>();
        if count > MAX_DISCARDS as usize {
            return Err(Failure::Io);
        }
        let mut bytes = vec![0; count * size_of::<Range>()];
        self.from_guest.read_exact(&mut bytes)?;
        let ranges = <[Range]>::ref_from_bytes(&bytes).map_err(|_| Failure::Io)?;
        if ranges.iter().any(|range| range.flags.get() & !known != 0) {
            return Err(Failure::Unsupported);
        }
        Ok(ranges.to_vec())
    }

    fn discard<D: BlockDevice>(&mut self, export: &mut Export<D>) -> Result<SimTime, Failure> {
        let ranges: Option<Vec<_>> = self.ranges(0)?.into_iter().map(bytes_of).collect();
        Ok(export.discard(self.at, &ranges.ok_or(Failure::Io)?, false)?)
    }

    fn write_zeroes<D: BlockDevice>(&mut self, export: &mut Export<D>) -> Result<SimTime, Failure> {
        let mut done = self.at;
        for range in self.ranges(virtio_blk::VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP)? {
            if range.sectors.get() > MAX_ZEROES {
                return Err(Failure::Io);
            }
            let may_discard = range.flags.get() != 0;
            let bytes = bytes_of(range).ok_or(Failure::Io)?;
            done = done.max(export.write_zeroes(self.at, bytes, may_discard, false)?);
        }
        Ok(done)
    }
}

/// Room for the data of a request.
pub(super) fn buffer(bytes: usize) -> Result<Vec<u8>, Failure> {
    if bytes > MAX_BYTES { Err(Failure::Io) } else { Ok(vec![0; bytes]) }
}

fn bytes_of(range: Range) -> Option<std::ops::Range<u64>> {
    let start = range.sector.get().checked_mul(SECTOR_SIZE)?;
    Some(start..start.checked_add(u64::from(range.sectors.get()) * SECTOR_SIZE)?)
}
