//! Features and configuration space of a virtio block device.
//!
//! Source: "Virtual I/O Device (VIRTIO) Version 1.3", section 5.2.

use dovetail_block::{BLOCK_SIZE, BlockDevice, DeviceInfo, SECTORS_IN_BLOCK};
use virtio_bindings::bindings::virtio_blk;
use virtio_bindings::bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::bindings::virtio_ring::VIRTIO_RING_F_INDIRECT_DESC;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{Immutable, IntoBytes};

use super::device::MAX_QUEUES;
use crate::export::Export;

/// Ranges that one discard brings at most.
pub(super) const MAX_DISCARDS: u32 = 64;
/// Segments of a request: as many as Linux's largest has pages (`BIO_MAX_VECS`), which seldom lie
/// side by side in memory; with fewer each such request of a guest is two. Linux puts them into an
/// indirect table, also where they are more than the queue's size, to which VIRTIO limits a chain.
const MAX_SEGMENTS: u32 = 256;
/// Sectors that one request to write zeroes covers: 32 MiB.
pub(super) const MAX_ZEROES: u32 = 1 << 16;
/// The size of an append where the drive has no limit of its own, in blocks: 512 KiB.
const APPEND_BLOCKS: u64 = 128;
/// `model` of a zoned device that only takes writes at the write pointers.
const HOST_MANAGED: u8 = 1;

/// A drive, as far as a front end is told of it.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    info: DeviceInfo,
    read_only: bool,
    /// Number of its queues.
    pub(super) queues: u16,
}

impl Disk {
    /// The bytes of `export` with so many queues (1 to 16).
    pub(super) fn of<D: BlockDevice>(export: &Export<D>, queues: u16, read_only: bool) -> Self {
        let info = DeviceInfo { blocks: export.bytes() / BLOCK_SIZE, ..export.device().info() };
        Self { info, read_only, queues: queues.clamp(1, MAX_QUEUES) }
    }

    pub(super) fn config(&self) -> DiskConfig {
        DiskConfig::of(&self.info, self.queues)
    }

    pub(super) fn features(&self) -> u64 {
        let read_only = u64::from(self.read_only) << virtio_blk::VIRTIO_BLK_F_RO;
        features(&self.info, self.queues) | read_only
    }
}

/// `struct virtio_blk_config`, with zones.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct DiskConfig {
    capacity: U64,
    size_max: U32,
    seg_max: U32,
    cylinders: U16,
    heads: u8,
    sectors: u8,
    blk_size: U32,
    physical_block_exp: u8,
    alignment_offset: u8,
    min_io_size: U16,
    opt_io_size: U32,
    wce: u8,
    unused: u8,
    num_queues: U16,
    max_discard_sectors: U32,
    max_discard_seg: U32,
    discard_sector_alignment: U32,
    max_write_zeroes_sectors: U32,
    max_write_zeroes_seg: U32,
    write_zeroes_may_unmap: u8,
    unused1: [u8; 3],
    max_secure_erase_sectors: U32,
    max_secure_erase_seg: U32,
    secure_erase_sector_alignment: U32,
    zone_sectors: U32,
    max_open_zones: U32,
    max_active_zones: U32,
    max_append_sectors: U32,
    write_granularity: U32,
    model: u8,
    unused2: [u8; 3],
}

impl DiskConfig {
    fn of(info: &DeviceInfo, queues: u16) -> Self {
        let sectors = info.blocks * SECTORS_IN_BLOCK;
        let mut config = Self {
            capacity: U64::new(sectors),
            seg_max: U32::new(MAX_SEGMENTS),
            blk_size: U32::new(BLOCK_SIZE as u32),
            min_io_size: U16::new(1),
            num_queues: U16::new(queues),
            max_discard_sectors: U32::new(in_blocks(sectors)),
            max_discard_seg: U32::new(MAX_DISCARDS),
            discard_sector_alignment: U32::new(SECTORS_IN_BLOCK as u32),
            max_write_zeroes_sectors: U32::new(MAX_ZEROES),
            max_write_zeroes_seg: U32::new(1),
            write_zeroes_may_unmap: 1,
            ..Self::default()
        };
        if let Some(zones) = info.capabilities.zones {
            let append = if zones.max_append == 0 { APPEND_BLOCKS } else { zones.max_append };
            config.zone_sectors = U32::new(in_blocks(zones.blocks * SECTORS_IN_BLOCK));
            config.max_open_zones = U32::new(zones.max_open);
            config.max_active_zones = U32::new(zones.max_active);
            config.max_append_sectors = U32::new(in_blocks(append * SECTORS_IN_BLOCK));
            config.write_granularity = U32::new(BLOCK_SIZE as u32);
            config.model = HOST_MANAGED;
        }
        config
    }

    /// The bytes from `offset` on; beyond the end are zeros.
    pub(super) fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        let bytes = self.as_bytes().iter().copied().chain(std::iter::repeat(0));
        bytes.skip(offset).take(len).collect()
    }
}

/// Sectors as whole blocks that a field of 32 bits holds.
fn in_blocks(sectors: u64) -> u32 {
    let most = u64::from(u32::MAX) / SECTORS_IN_BLOCK * SECTORS_IN_BLOCK;
    sectors.min(most) as u32
}

/// Feature bits of a device.
fn features(info: &DeviceInfo, queues: u16) -> u64 {
    let mut bits = vec![
        VIRTIO_F_VERSION_1,
        VIRTIO_RING_F_INDIRECT_DESC,
        virtio_blk::VIRTIO_BLK_F_SEG_MAX,
        virtio_blk::VIRTIO_BLK_F_BLK_SIZE,
        virtio_blk::VIRTIO_BLK_F_FLUSH,
        virtio_blk::VIRTIO_BLK_F_TOPOLOGY,
    ];
    if queues > 1 {
        bits.push(virtio_blk::VIRTIO_BLK_F_MQ);
    }
    if info.capabilities.zones.is_some() {
        bits.push(virtio_blk::VIRTIO_BLK_F_ZONED);
    } else {
        bits.push(virtio_blk::VIRTIO_BLK_F_WRITE_ZEROES);
        if info.capabilities.discard {
            bits.push(virtio_blk::VIRTIO_BLK_F_DISCARD);
        }
    }
    bits.into_iter().fold(0, |features, bit| features | 1 << bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_space_has_the_offsets_of_the_standard() {
        let info = DeviceInfo { blocks: 1 << 18, capabilities: Default::default() };
        let config = DiskConfig::of(&info, 3);
        assert_eq!(config.as_bytes().len(), 96);
        assert_eq!(config.bytes(0, 8), (1_u64 << 21).to_le_bytes());
        assert_eq!(config.bytes(34, 2), 3_u16.to_le_bytes());
        assert_eq!(config.bytes(94, 4), [0; 4]);
    }
}
