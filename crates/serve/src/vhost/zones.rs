//! Requests of a zoned virtio block device.

use std::io::{Read, Write};

use dovetail_block::{
    Answer, BLOCK_SIZE, BlockDevice, Command, Completion, Content, Data, DeviceInfo, Hints, Lba,
    Query, SECTORS_IN_BLOCK, Zone, ZoneAction, ZoneState,
};
use dovetail_time::SimTime;

use virtio_bindings::bindings::virtio_blk;
use zerocopy::little_endian::U64;
use zerocopy::{Immutable, IntoBytes};

use super::request::{Failure, Request, buffer};
use crate::export::{Export, ExportError, whole};

/// Zones that one report names at most: a reply of 1 MiB.
const MAX_ZONES: usize = 16_384;

/// Reports begin with the number of their zones, in as many bytes as a zone takes.
const REPORT_HEAD: usize = 64;

/// A zone in a report.
#[derive(Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
struct ZoneDescriptor {
    capacity: U64,
    start: U64,
    pointer: U64,
    kind: u8,
    state: u8,
    reserved: [u8; 38],
}

impl ZoneDescriptor {
    fn of(zone: &Zone) -> Self {
        let sectors = |lba: Lba| U64::new(lba.0 * SECTORS_IN_BLOCK);
        let kind = match zone.state {
            None => virtio_blk::VIRTIO_BLK_ZT_CONV,
            Some(_) => virtio_blk::VIRTIO_BLK_ZT_SWR,
        };
        let state = match zone.state {
            None => virtio_blk::VIRTIO_BLK_ZS_NOT_WP,
            Some(ZoneState::Empty) => virtio_blk::VIRTIO_BLK_ZS_EMPTY,
            Some(ZoneState::ImplicitlyOpen) => virtio_blk::VIRTIO_BLK_ZS_IOPEN,
            Some(ZoneState::ExplicitlyOpen) => virtio_blk::VIRTIO_BLK_ZS_EOPEN,
            Some(ZoneState::Closed) => virtio_blk::VIRTIO_BLK_ZS_CLOSED,
            Some(ZoneState::Full) => virtio_blk::VIRTIO_BLK_ZS_FULL,
            Some(ZoneState::ReadOnly) => virtio_blk::VIRTIO_BLK_ZS_RDONLY,
            Some(ZoneState::Offline) => virtio_blk::VIRTIO_BLK_ZS_OFFLINE,
        };
        Self {
            capacity: U64::new(zone.capacity * SECTORS_IN_BLOCK),
            start: sectors(zone.start),
            pointer: sectors(zone.write_pointer),
            kind: kind as u8,
            state: state as u8,
            reserved: [0; 38],
        }
    }
}

impl Request<'_> {
    /// The block that the request names; `wrong` if it names a part of one.
    fn block(&self, wrong: u32) -> Result<Lba, Failure> {
        let sector = self.head.sector.get();
        if !sector.is_multiple_of(SECTORS_IN_BLOCK) {
            return Err(Failure::Zone(wrong));
        }
        Ok(Lba(sector / SECTORS_IN_BLOCK))
    }

    pub(super) fn act_on_zone<D: BlockDevice>(
        &self,
        export: &mut Export<D>,
        action: ZoneAction,
    ) -> Result<SimTime, Failure> {
        let start = self.block(virtio_blk::VIRTIO_BLK_S_ZONE_INVALID_CMD)?;
        let command = Command::Zone { start: Some(start), action };
        Ok(submit(export, self.at, command)?.done)
    }

    pub(super) fn reset_all<D: BlockDevice>(
        &self,
        export: &mut Export<D>,
    ) -> Result<SimTime, Failure> {
        let command = Command::Zone { start: None, action: ZoneAction::Reset };
        Ok(submit(export, self.at, command)?.done)
    }

    pub(super) fn report_zones<D: BlockDevice>(
        &mut self,
        export: &mut Export<D>,
    ) -> Result<SimTime, Failure> {
        let room = self.to_guest.available_bytes().checked_sub(REPORT_HEAD).ok_or(Failure::Io)?;
        let most = (room / size_of::<ZoneDescriptor>()).min(MAX_ZONES);
        let from = Lba(self.head.sector.get() / SECTORS_IN_BLOCK);
        let query = Query::Zones { from, most };
        let answer = submit(export, self.at, Command::Query(query))?.answer;
        let Answer::Zones(zones) = answer else { return Err(Failure::Unsupported) };
        let mut report = vec![0; REPORT_HEAD];
        report[..8].copy_from_slice(&(zones.len() as u64).to_le_bytes());
        zones.iter().for_each(|zone| report.extend(ZoneDescriptor::of(zone).as_bytes()));
        self.to_guest.write_all(&report)?;
        Ok(self.at)
    }

    /// Writes at a zone's write pointer; the guest is told where that was.
    pub(super) fn append<D: BlockDevice>(
        &mut self,
        export: &mut Export<D>,
    ) -> Result<SimTime, Failure> {
        let mut data = buffer(self.from_guest.available_bytes())?;
        self.from_guest.read_exact(&mut data)?;
        let (blocks, rest) = data.as_chunks::<{ BLOCK_SIZE as usize }>();
        if blocks.is_empty() || !rest.is_empty() {
            return Err(Failure::Io);
        }
        let contents: Vec<_> =
            blocks.iter().filter_map(|bytes| whole(bytes).map(Content::Bytes)).collect();
        let zone = self.block(virtio_blk::VIRTIO_BLK_S_ZONE_UNALIGNED_WP)?;
        let hints = Hints::default();
        let command = Command::Append {
            zone,
            blocks: contents.len() as u64,
            data: Data::Blocks(&contents),
            hints,
            fua: false,
        };
        let Completion { done, answer } = submit(export, self.at, command)?;
        let first = answer.into_addresses().first().copied().ok_or(Failure::Io)?;
        self.to_guest.write_all(&(first.0 * SECTORS_IN_BLOCK).to_le_bytes())?;
        Ok(done)
    }
}

/// In zones only whole blocks are written: the write pointer moves by them.
pub(super) fn check_zone_write(info: &DeviceInfo, offset: u64, len: u64) -> Result<(), Failure> {
    let first = info.capabilities.zones.map(|zones| zones.first.0.saturating_mul(BLOCK_SIZE));
    let is_whole = (offset | len).is_multiple_of(BLOCK_SIZE);
    if is_whole || first.is_none_or(|first| offset.saturating_add(len) <= first) {
        return Ok(());
    }
    Err(Failure::Zone(virtio_blk::VIRTIO_BLK_S_ZONE_UNALIGNED_WP))
}

fn submit<D: BlockDevice>(
    export: &mut Export<D>,
    at: SimTime,
    command: Command<'_>,
) -> Result<Completion, Failure> {
    Ok(export.device_mut().submit(at, command).map_err(ExportError::Device)?)
}
