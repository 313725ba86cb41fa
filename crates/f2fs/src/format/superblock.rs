//! The superblock: what the volume is, and where its areas lie. Two copies, in blocks 0 and 1 at
//! byte 1024.
//!
//! That of IPLFS has a magic number of its own and, where F2FS has reserved bytes, what needs 64
//! bits.

use dovetail_block::{AREA_BLOCKS, AREAS, BlockBytes, DriveSerial};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_mut, transmute_ref,
};

use super::layout::prove_layout;
use super::{
    AddressWidth, BLOCKS_IN_SEGMENT, BlockAddr, Features, Nid, Variant, area_start, crc32,
};
use crate::error::{Corrupt, Error, Incompatible, Place};

/// The magic number at the superblock's start.
pub const MAGIC: u32 = 0xF2F5_2010;
/// The same of IPLFS, so that no tool of F2FS takes the volume for its own: "IPLF".
pub const IPLFS_MAGIC: u32 = u32::from_le_bytes(*b"IPLF");

/// The same of F2FS with pointers that lead to the drive's own addresses: "F2DV". Kernels take a
/// volume whatever its feature bits are; another number is what they and fsck.f2fs refuse.
pub const DEVIRTUALIZED_MAGIC: u32 = u32::from_le_bytes(*b"F2DV");

/// Segments in a section of IPLFS, for which discards are gathered: 1 GiB (IPLFS paper, section
/// 4.3).
pub(crate) const IPLFS_SECTION: u32 = 512;

/// Offset of a superblock's checksum, which covers the bytes before it.
const CHECKSUM_OFFSET: usize = 3068;
/// 16 TiB, the largest volume.
pub(crate) const MAX_SEGMENTS: u64 = 8_388_608;
/// Two for checkpoints, SIT and NAT each, one for the SSA, two for the main area.
const MIN_SEGMENTS: u64 = 9;
/// The largest discard log: 1 TiB of entries, for a device of 256 PiB.
const MAX_LOG_BLOCKS: u64 = 1 << 28;
/// Blocks that a device for IPLFS must have room for at least: 4 MiB.
pub(crate) const MIN_CAPACITY: u64 = 1024;
/// Largest payload of a checkpoint pack; its other blocks, orphans aside, need the rest.
const MAX_CP_PAYLOAD: u64 = 512 - 2 - 6 - 1;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawDevice {
    path: [u8; 64],
    total_segments: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSuperblock {
    magic: U32,
    major_ver: U16,
    minor_ver: U16,
    log_sectorsize: U32,
    log_sectors_per_block: U32,
    log_blocksize: U32,
    log_blocks_per_seg: U32,
    segs_per_sec: U32,
    secs_per_zone: U32,
    checksum_offset: U32,
    block_count: U64,
    section_count: U32,
    segment_count: U32,
    segment_count_ckpt: U32,
    segment_count_sit: U32,
    segment_count_nat: U32,
    segment_count_ssa: U32,
    segment_count_main: U32,
    segment0_blkaddr: U32,
    cp_blkaddr: U32,
    sit_blkaddr: U32,
    nat_blkaddr: U32,
    ssa_blkaddr: U32,
    main_blkaddr: U32,
    root_ino: U32,
    node_ino: U32,
    meta_ino: U32,
    uuid: [u8; 16],
    volume_name: [U16; 512],
    extension_count: U32,
    extension_list: [[u8; 8]; 64],
    cp_payload: U32,
    version: [u8; 256],
    init_version: [u8; 256],
    feature: U32,
    encryption_level: u8,
    encrypt_pw_salt: [u8; 16],
    devs: [RawDevice; 8],
    qf_ino: [U32; 3],
    hot_ext_count: u8,
    s_encoding: U16,
    s_encoding_flags: U16,
    s_stop_reason: [u8; 32],
    s_errors: [u8; 16],
    iplfs: RawIplfs,
    /// Of devirtualised volumes: the drive that they lie on.
    d_drive: U64,
    reserved: [u8; 210],
    crc: U32,
}

prove_layout!(RawSuperblock, 3072, {
    36 => block_count, 72 => segment0_blkaddr, 96 => root_ino, 108 => uuid, 124 => volume_name,
    1148 => extension_count, 1152 => extension_list, 1664 => cp_payload, 1668 => version, 1924 => init_version,
    2180 => feature, 2184 => encryption_level, 2185 => encrypt_pw_salt, 2201 => devs, 2745 => qf_ino,
    2757 => hot_ext_count, 2758 => s_encoding, 2760 => s_encoding_flags, 2762 => s_stop_reason,
    2794 => s_errors, 2810 => iplfs, 2850 => d_drive, 2858 => reserved, 3068 => crc,
});

/// Fields of IPLFS, in bytes that F2FS reserves; F2FS's own places and counts are 0 there.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawIplfs {
    capacity: U64,
    cp_blkaddr: U64,
    nat_blkaddr: U64,
    nat_blocks: U32,
    pack_blocks: U32,
    log_area: U32,
    areas: U32,
}

prove_layout!(RawIplfs, 40, {
    8 => cp_blkaddr, 16 => nat_blkaddr, 24 => nat_blocks, 28 => pack_blocks, 32 => log_area, 36 => areas,
});

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSuperblockBlock {
    boot: [u8; 1024],
    superblock: RawSuperblock,
}

prove_layout!(RawSuperblockBlock, 4096, { 1024 => superblock });

/// A device of a volume that lies on several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its path when the volume was made, at most 63 bytes.
    pub path: String,
    /// Segments of 2 MiB on it; of the first device those from the first area on.
    pub segments: u32,
}

/// Devices that a volume can lie on.
pub const MAX_DEVICES: usize = 8;
/// Bytes of a device's path.
pub(crate) const MAX_DEVICE_PATH: usize = 63;

/// Superblock of a volume: its identity, and the layout of its areas. Addresses are in blocks of 4
/// KiB from the start of the device, areas in segments of 2 MiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// F2FS, or IPLFS. On a volume of the latter there are no segments: their counts are 0, and so
    /// are the places of SIT and SSA.
    pub variant: Variant,
    /// Pointers may lead to the drive's own addresses.
    pub devirtualized: bool,
    /// The drive whose addresses those are.
    pub drive: DriveSerial,
    /// Blocks that the volume can hold: of F2FS its size, of IPLFS what its device has room for.
    pub capacity: u64,
    /// Blocks of one copy of the NAT.
    pub nat_blocks: u32,
    /// Blocks from the start of a checkpoint pack to that of the next.
    pub pack_blocks: u32,
    /// Version of the tool that made the volume, major and minor.
    pub version: (u16, u16),
    /// Logarithm of the device's sector size in bytes, 9 to 12.
    pub log_sector_size: u32,
    /// Segments in a section, the unit of cleaning.
    pub segments_per_section: u32,
    /// Sections in a zone.
    pub sections_per_zone: u32,
    /// Size of the whole volume in blocks.
    pub block_count: u64,
    /// Sections of the main area.
    pub section_count: u32,
    /// Segments from the checkpoint area to the end of the main area.
    pub segment_count: u32,
    /// Segments of the SIT, both copies.
    pub segment_count_sit: u32,
    /// Segments of the NAT, both copies.
    pub segment_count_nat: u32,
    /// Segments of the summary area.
    pub segment_count_ssa: u32,
    /// Segments of the main area.
    pub segment_count_main: u32,
    /// Start of the checkpoint packs.
    pub cp_start: BlockAddr,
    /// Start of the SIT.
    pub sit_start: BlockAddr,
    /// Start of the NAT.
    pub nat_start: BlockAddr,
    /// Start of the summaries.
    pub ssa_start: BlockAddr,
    /// Start of the main area.
    pub main_start: BlockAddr,
    /// The root directory.
    pub root: Nid,
    /// The volume's UUID.
    pub uuid: [u8; 16],
    /// The volume's label; what is not UTF-16 is replaced.
    pub label: String,
    /// Beginnings of the name extensions whose files are cold, up to 8 bytes each; with the hot
    /// ones at most 64.
    pub cold_extensions: Vec<Vec<u8>>,
    /// The same of files that are hot.
    pub hot_extensions: Vec<Vec<u8>>,
    /// Encoding of names whose case does not count (1 is UTF-8, Unicode 12.1; 0 none), and its
    /// flags.
    pub encoding: (u16, u16),
    /// Blocks of a checkpoint pack that continue the version bitmaps.
    pub cp_payload: u32,
    /// Features beyond the basic format.
    pub features: Features,
    /// The devices that it lies on, end to end, the one with the superblock first; none if it is
    /// the only one.
    pub devices: Vec<Member>,
    /// The user, group and project quota files; 0 where there is none.
    pub quota_files: [Nid; 3],
    /// The kernel that last mounted the volume (or the system that made it), as it calls itself.
    pub last_kernel: String,
    /// The system that made the volume, as it calls itself.
    pub made_by: String,
}

impl Superblock {
    /// Decodes and checks the superblock in `block`, the `copy`-th block of the volume.
    ///
    /// # Errors
    /// [`Error::NotF2fs`], [`Error::Corrupt`] with the field that is wrong, [`Error::Incompatible`]
    /// for other block sizes.
    pub fn parse(block: &BlockBytes, copy: u32) -> Result<Self, Error> {
        let block: &RawSuperblockBlock = transmute_ref!(block);
        let raw = &block.superblock;
        let place = Place::Superblock(copy);
        let variant = match raw.magic.get() {
            MAGIC | DEVIRTUALIZED_MAGIC => Variant::F2fs,
            IPLFS_MAGIC => raw.iplfs.variant(),
            found => return Err(Error::NotF2fs { found }),
        };
        check_checksum(raw, place, variant)?;
        check_sizes(raw, place)?;
        if variant.is_iplfs() {
            check_iplfs(raw, place, variant)?;
            return Ok(raw.decode_iplfs(variant));
        }
        check_counts(raw, place)?;
        check_areas(raw, place)?;
        check_devices(raw, place)?;
        Ok(raw.decode())
    }

    /// The nids that the NAT has room for: valid ones are smaller.
    pub fn max_nid(&self) -> u32 {
        self.nat_blocks.saturating_mul(self.variant.nat_entries_in_block())
    }

    /// The first block after the main area.
    pub fn main_end(&self) -> BlockAddr {
        match self.variant {
            Variant::F2fs => self
                .main_start
                .plus(u64::from(self.segment_count_main) * u64::from(BLOCKS_IN_SEGMENT)),
            Variant::Iplfs(_) => BlockAddr(AREAS * AREA_BLOCKS),
        }
    }

    /// The first address beyond what log `log` of IPLFS, 0 to 5, can reach.
    pub const fn area_end(&self, log: usize) -> BlockAddr {
        area_start(log).plus(self.variant.area_blocks())
    }

    /// Blocks of the volume without its superblocks; of IPLFS those that its device has space for.
    pub const fn space_blocks(&self) -> u64 {
        match self.variant {
            Variant::F2fs => self.block_count - self.cp_start.0,
            Variant::Iplfs(_) => self.capacity,
        }
    }

    /// Variant and features, on which the layout of an inode depends.
    pub(crate) const fn layout(&self) -> (Variant, Features) {
        (self.variant, self.features)
    }

    /// Blocks of a pack that a discard log of IPLFS may take: by default as many as if all that the
    /// device holds were given up between two checkpoints, each block alone.
    pub const fn discard_log_blocks(&self) -> u32 {
        match self.variant {
            Variant::F2fs => 0,
            Variant::Iplfs(_) => {
                self.pack_blocks.saturating_sub(2 + self.cp_payload + self.orphan_blocks())
            }
        }
    }

    /// Blocks of a device of IPLFS that content and nodes may take: what the metadata leave at
    /// their largest.
    pub const fn room_for_files(&self) -> u64 {
        self.capacity.saturating_sub(2 + 2 * self.pack_blocks as u64 + 2 * self.nat_blocks as u64)
    }

    /// Blocks of a checkpoint pack that can list orphans.
    pub const fn orphan_blocks(&self) -> u32 {
        match self.variant {
            Variant::F2fs => BLOCKS_IN_SEGMENT - 2 - 6 - self.cp_payload,
            Variant::Iplfs(_) => iplfs_orphan_blocks(self.capacity),
        }
    }

    /// `address` lies in the main area, where nodes and data are; of IPLFS within what its log
    /// reaches.
    pub fn in_main(&self, address: BlockAddr) -> bool {
        (self.main_start.0..self.main_end().0).contains(&address.0)
            && address.0 % AREA_BLOCKS < self.variant.area_blocks()
    }
}

impl Superblock {
    /// It lies on a device with zones.
    pub fn is_zoned(&self) -> bool {
        self.features.has(Features::BLKZONED)
    }

    /// Blocks that it has on each of its devices; one entry for a volume on one device.
    pub fn device_blocks(&self) -> Vec<u64> {
        if self.devices.is_empty() {
            return vec![self.block_count];
        }
        let segment = u64::from(BLOCKS_IN_SEGMENT);
        let mut blocks: Vec<u64> =
            self.devices.iter().map(|device| u64::from(device.segments) * segment).collect();
        blocks[0] += self.cp_start.0;
        blocks
    }

    /// The block of a copy. What this type does not know of, the boot sector among it, is kept from
    /// `base`, the block that was read; zeros for a new volume.
    pub fn encode(&self, base: &BlockBytes) -> BlockBytes {
        let mut block = *base;
        let raw: &mut RawSuperblockBlock = transmute_mut!(&mut block);
        raw.superblock.encode(self);
        block
    }
}

impl RawIplfs {
    /// The variant whose areas have this size; wide IPLFS if none has, which the checks refuse.
    fn variant(&self) -> Variant {
        let narrow = Variant::Iplfs(AddressWidth::Narrow);
        let is_narrow = self.log_area.get() == narrow.area_blocks().trailing_zeros();
        if is_narrow { narrow } else { Variant::IPLFS }
    }
}

impl RawSuperblock {
    fn encode(&mut self, from: &Superblock) {
        self.encode_constants(from);
        match from.variant {
            Variant::F2fs => self.encode_areas(from),
            Variant::Iplfs(_) => self.encode_iplfs(from),
        }
        (self.major_ver, self.minor_ver) = (U16::new(from.version.0), U16::new(from.version.1));
        self.uuid = from.uuid;
        let units = from.label.encode_utf16().chain(std::iter::repeat(0));
        self.volume_name.iter_mut().zip(units).for_each(|(to, unit)| to.set(unit));
        self.encode_extensions(from);
        self.cp_payload.set(from.cp_payload);
        put_text(&mut self.version, &from.last_kernel);
        put_text(&mut self.init_version, &from.made_by);
        self.feature.set(from.features.0);
        self.encode_devices(&from.devices);
        self.qf_ino = from.quota_files.map(|ino| U32::new(ino.0));
        (self.s_encoding, self.s_encoding_flags) =
            (U16::new(from.encoding.0), U16::new(from.encoding.1));
        if has_checksum(from.variant, from.features) {
            self.checksum_offset.set(CHECKSUM_OFFSET as u32);
            self.crc.set(crc32(MAGIC, &self.as_bytes()[..CHECKSUM_OFFSET]));
        }
    }

    fn encode_devices(&mut self, devices: &[Member]) {
        for (to, from) in self.devs.iter_mut().zip(devices) {
            to.path = [0; 64];
            to.path.iter_mut().take(MAX_DEVICE_PATH).zip(from.path.bytes()).for_each(
                |(to, byte)| {
                    *to = byte;
                },
            );
            to.total_segments.set(from.segments);
        }
    }

    /// The devices up to the first without a path.
    fn devices(&self) -> Vec<Member> {
        let named = self.devs.iter().take_while(|device| device.path[0] != 0);
        named
            .map(|device| Member {
                path: text(&device.path),
                segments: device.total_segments.get(),
            })
            .collect()
    }

    fn encode_constants(&mut self, from: &Superblock) {
        let log_sector_size = from.log_sector_size;
        self.magic.set(match from.variant {
            Variant::F2fs if from.devirtualized => DEVIRTUALIZED_MAGIC,
            Variant::F2fs => MAGIC,
            Variant::Iplfs(_) => IPLFS_MAGIC,
        });
        self.d_drive.set(from.drive.0);
        self.log_sectorsize.set(log_sector_size);
        self.log_sectors_per_block.set(12 - log_sector_size.min(12));
        self.log_blocksize.set(12);
        self.log_blocks_per_seg.set(9);
        (self.root_ino, self.node_ino, self.meta_ino) = (U32::new(3), U32::new(1), U32::new(2));
    }

    fn encode_areas(&mut self, from: &Superblock) {
        self.segs_per_sec.set(from.segments_per_section);
        self.secs_per_zone.set(from.sections_per_zone);
        self.block_count.set(from.block_count);
        self.section_count.set(from.section_count);
        self.segment_count.set(from.segment_count);
        self.segment_count_ckpt.set(2);
        self.segment_count_sit.set(from.segment_count_sit);
        self.segment_count_nat.set(from.segment_count_nat);
        self.segment_count_ssa.set(from.segment_count_ssa);
        self.segment_count_main.set(from.segment_count_main);
        self.segment0_blkaddr.set(from.cp_start.low());
        self.cp_blkaddr.set(from.cp_start.low());
        self.sit_blkaddr.set(from.sit_start.low());
        self.nat_blkaddr.set(from.nat_start.low());
        self.ssa_blkaddr.set(from.ssa_start.low());
        self.main_blkaddr.set(from.main_start.low());
    }

    fn encode_iplfs(&mut self, from: &Superblock) {
        self.segs_per_sec.set(from.segments_per_section);
        self.secs_per_zone.set(from.sections_per_zone);
        self.block_count.set(from.block_count);
        self.iplfs = RawIplfs {
            capacity: U64::new(from.capacity),
            cp_blkaddr: U64::new(from.cp_start.0),
            nat_blkaddr: U64::new(from.nat_start.0),
            nat_blocks: U32::new(from.nat_blocks),
            pack_blocks: U32::new(from.pack_blocks),
            log_area: U32::new(from.variant.area_blocks().trailing_zeros()),
            areas: U32::new(AREAS as u32),
        };
    }

    /// Of a superblock of IPLFS; what F2FS's own fields say means nothing.
    fn decode_iplfs(&self, variant: Variant) -> Superblock {
        let raw = &self.iplfs;
        Superblock {
            variant,
            capacity: raw.capacity.get(),
            nat_blocks: raw.nat_blocks.get(),
            pack_blocks: raw.pack_blocks.get(),
            section_count: 0,
            segment_count: 0,
            segment_count_sit: 0,
            segment_count_nat: 0,
            segment_count_ssa: 0,
            segment_count_main: 0,
            cp_start: BlockAddr(raw.cp_blkaddr.get()),
            sit_start: BlockAddr::NULL,
            nat_start: BlockAddr(raw.nat_blkaddr.get()),
            ssa_start: BlockAddr::NULL,
            main_start: BlockAddr(AREA_BLOCKS),
            ..self.decode()
        }
    }

    fn encode_extensions(&mut self, from: &Superblock) {
        self.extension_count.set(from.cold_extensions.len() as u32);
        self.hot_ext_count = from.hot_extensions.len() as u8;
        self.extension_list = [[0; 8]; 64];
        let extensions = from.cold_extensions.iter().chain(&from.hot_extensions);
        for (to, extension) in self.extension_list.iter_mut().zip(extensions) {
            to.iter_mut().zip(extension).for_each(|(to, byte)| *to = *byte);
        }
    }

    /// The cold and the hot extensions; a count beyond the list is cut.
    fn extensions(&self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let cold = self.extension_list.iter().take(self.extension_count.get() as usize);
        let hot = self.extension_list.iter().skip(self.extension_count.get() as usize);
        let text =
            |extension: &[u8; 8]| extension.split(|&byte| byte == 0).next().unwrap_or(&[]).to_vec();
        (cold.map(text).collect(), hot.take(self.hot_ext_count.into()).map(text).collect())
    }

    fn decode(&self) -> Superblock {
        let (cold_extensions, hot_extensions) = self.extensions();
        Superblock {
            variant: Variant::F2fs,
            devirtualized: self.magic.get() == DEVIRTUALIZED_MAGIC,
            drive: DriveSerial(self.d_drive.get()),
            capacity: self.block_count.get(),
            nat_blocks: (self.segment_count_nat.get() / 2).saturating_mul(BLOCKS_IN_SEGMENT),
            pack_blocks: BLOCKS_IN_SEGMENT,
            version: (self.major_ver.get(), self.minor_ver.get()),
            log_sector_size: self.log_sectorsize.get(),
            cold_extensions,
            hot_extensions,
            encoding: (self.s_encoding.get(), self.s_encoding_flags.get()),
            segments_per_section: self.segs_per_sec.get(),
            sections_per_zone: self.secs_per_zone.get(),
            block_count: self.block_count.get(),
            section_count: self.section_count.get(),
            segment_count: self.segment_count.get(),
            segment_count_sit: self.segment_count_sit.get(),
            segment_count_nat: self.segment_count_nat.get(),
            segment_count_ssa: self.segment_count_ssa.get(),
            segment_count_main: self.segment_count_main.get(),
            cp_start: BlockAddr::narrow(self.cp_blkaddr.get()),
            sit_start: BlockAddr::narrow(self.sit_blkaddr.get()),
            nat_start: BlockAddr::narrow(self.nat_blkaddr.get()),
            ssa_start: BlockAddr::narrow(self.ssa_blkaddr.get()),
            main_start: BlockAddr::narrow(self.main_blkaddr.get()),
            root: Nid(self.root_ino.get()),
            uuid: self.uuid,
            label: utf16(&self.volume_name),
            cp_payload: self.cp_payload.get(),
            features: Features(self.feature.get()),
            devices: self.devices(),
            quota_files: self.qf_ino.map(|ino| Nid(ino.get())),
            last_kernel: text(&self.version),
            made_by: text(&self.init_version),
        }
    }
}

/// Text that is already there stays as it is, with what may stand behind it.
fn put_text(to: &mut [u8; 256], from: &str) {
    if text(to) != from {
        to.fill(0);
        to.iter_mut().zip(from.as_bytes()).for_each(|(to, byte)| *to = *byte);
    }
}

fn utf16(units: &[U16]) -> String {
    let units: Vec<u16> =
        units.iter().map(|unit| unit.get()).take_while(|&unit| unit != 0).collect();
    String::from_utf16_lossy(&units)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim_end().to_string()
}

/// A superblock of IPLFS always has one.
const fn has_checksum(variant: Variant, features: Features) -> bool {
    variant.is_iplfs() || features.has(Features::SB_CHECKSUM)
}

/// Blocks of a pack of IPLFS that can list orphans: for a quarter of the blocks that there is room
/// for. Assumed; at most as many as F2FS has.
pub(crate) const fn iplfs_orphan_blocks(capacity: u64) -> u32 {
    match capacity / 4096 {
        0 => 1,
        blocks @ 1..504 => blocks as u32,
        _ => 504,
    }
}

/// An entry of 16 bytes for each block that there is room for.
pub(crate) const fn iplfs_log_blocks(capacity: u64) -> u32 {
    let blocks = capacity.div_ceil(256);
    if blocks > MAX_LOG_BLOCKS { MAX_LOG_BLOCKS as u32 } else { blocks as u32 }
}

fn check_checksum(raw: &RawSuperblock, place: Place, variant: Variant) -> Result<(), Corrupt> {
    if !has_checksum(variant, Features(raw.feature.get())) {
        return Ok(());
    }
    Corrupt::check_equal(place, "checksum_offset", raw.checksum_offset, CHECKSUM_OFFSET as u64)?;
    let computed = crc32(MAGIC, &raw.as_bytes()[..CHECKSUM_OFFSET]);
    Corrupt::check_checksum(place, raw.crc.get(), computed)
}

fn check_sizes(raw: &RawSuperblock, place: Place) -> Result<(), Error> {
    if raw.log_blocksize != 12 {
        let log = raw.log_blocksize.get();
        Corrupt::check_range(place, "log_blocksize", log, (9, 16))?;
        return Err(Incompatible::BlockSize { log }.into());
    }
    Corrupt::check_range(place, "log_sectorsize", raw.log_sectorsize, (9, 12))?;
    let sectors = 12 - raw.log_sectorsize.get();
    Corrupt::check_equal(place, "log_sectors_per_block", raw.log_sectors_per_block, sectors)?;
    Ok(Corrupt::check_equal(place, "log_blocks_per_seg", raw.log_blocks_per_seg, 9_u32)?)
}

fn check_counts(raw: &RawSuperblock, place: Place) -> Result<(), Corrupt> {
    let range = Corrupt::check_range::<U32>;
    range(place, "segment_count", raw.segment_count, (MIN_SEGMENTS, MAX_SEGMENTS))?;
    let segments = u64::from(raw.segment_count);
    range(place, "segment_count_main", raw.segment_count_main, (1, segments))?;
    range(place, "section_count", raw.section_count, (1, raw.segment_count_main.into()))?;
    range(place, "segs_per_sec", raw.segs_per_sec, (1, segments))?;
    range(place, "secs_per_zone", raw.secs_per_zone, (1, raw.section_count.into()))?;
    let main = u64::from(raw.section_count) * u64::from(raw.segs_per_sec);
    Corrupt::check_equal(place, "segment_count_main", raw.segment_count_main, main)?;
    Corrupt::check_equal(place, "segment_count_ckpt", raw.segment_count_ckpt, 2_u32)?;
    range(place, "segment_count_sit", raw.segment_count_sit, (2, segments))?;
    range(place, "segment_count_nat", raw.segment_count_nat, (2, segments))?;
    // a volume that nobody writes is made without
    let least = u64::from(!Features(raw.feature.get()).has(Features::READ_ONLY));
    range(place, "segment_count_ssa", raw.segment_count_ssa, (least, segments))?;
    let blocks = segments * u64::from(BLOCKS_IN_SEGMENT);
    Corrupt::check_range(
        place,
        "block_count",
        raw.block_count,
        (blocks, (MAX_SEGMENTS + 1) * 512),
    )?;
    range(place, "cp_payload", raw.cp_payload, (0, MAX_CP_PAYLOAD))?;
    Corrupt::check_equal(place, "root_ino", raw.root_ino, 3_u32)?;
    Corrupt::check_equal(place, "node_ino", raw.node_ino, 1_u32)?;
    Corrupt::check_equal(place, "meta_ino", raw.meta_ino, 2_u32)
}

/// Packs and NAT lie one after the other in area 0, and there is room for what must be there.
fn check_iplfs(raw: &RawSuperblock, place: Place, variant: Variant) -> Result<(), Corrupt> {
    let iplfs = &raw.iplfs;
    Corrupt::check_equal(place, "areas", iplfs.areas, AREAS)?;
    let log_area = variant.area_blocks().trailing_zeros();
    Corrupt::check_equal(place, "log_area", iplfs.log_area, log_area)?;
    Corrupt::check_equal(place, "block_count", raw.block_count, AREAS * AREA_BLOCKS)?;
    Corrupt::check_equal(place, "segs_per_sec", raw.segs_per_sec, IPLFS_SECTION)?;
    let capacity = iplfs.capacity.get();
    Corrupt::check_range(place, "capacity", capacity, (MIN_CAPACITY, variant.area_blocks()))?;
    let most = capacity.min(u32::MAX.into()) / u64::from(variant.nat_entries_in_block());
    Corrupt::check_range(place, "nat_blocks", iplfs.nat_blocks, (1, most + 1))?;
    Corrupt::check_range(place, "cp_payload", raw.cp_payload, (0, most / 32_768 + 1))?;
    let pack = u64::from(iplfs.pack_blocks.get());
    let fixed = 2 + raw.cp_payload.get() + iplfs_orphan_blocks(capacity);
    Corrupt::check_range(place, "pack_blocks", pack, (u64::from(fixed) + 1, capacity))?;
    let cp = iplfs.cp_blkaddr.get();
    Corrupt::check_range(place, "cp_blkaddr", cp, (2, variant.area_blocks() / 4))?;
    let nat = iplfs.nat_blkaddr.get();
    Corrupt::check_range(place, "nat_blkaddr", nat, (cp + 2 * pack, variant.area_blocks() / 2))?;
    Corrupt::check_equal(place, "root_ino", raw.root_ino, 3_u32)
}

/// The areas follow each other without a gap, and the main area ends where the segments end, or
/// before.
fn check_areas(raw: &RawSuperblock, place: Place) -> Result<(), Corrupt> {
    let after = |start: U32, segments: U32| u64::from(start) + u64::from(segments) * 512;
    let equal = Corrupt::check_equal::<U32, u64>;
    equal(place, "cp_blkaddr", raw.cp_blkaddr, raw.segment0_blkaddr.into())?;
    equal(place, "sit_blkaddr", raw.sit_blkaddr, after(raw.cp_blkaddr, raw.segment_count_ckpt))?;
    equal(place, "nat_blkaddr", raw.nat_blkaddr, after(raw.sit_blkaddr, raw.segment_count_sit))?;
    equal(place, "ssa_blkaddr", raw.ssa_blkaddr, after(raw.nat_blkaddr, raw.segment_count_nat))?;
    equal(place, "main_blkaddr", raw.main_blkaddr, after(raw.ssa_blkaddr, raw.segment_count_ssa))?;
    let end = after(raw.main_blkaddr, raw.segment_count_main);
    let limit = after(raw.segment0_blkaddr, raw.segment_count)
        .min(raw.block_count.get())
        .min(u32::MAX.into());
    Corrupt::check_range(place, "the main area's end", end, (0, limit))
}

/// The segments are those of all devices together.
fn check_devices(raw: &RawSuperblock, place: Place) -> Result<(), Corrupt> {
    let devices = raw.devices();
    if devices.is_empty() {
        return Ok(());
    }
    let all: u64 = devices.iter().map(|device| u64::from(device.segments)).sum();
    Corrupt::check_equal(place, "segments of all devices", all, u64::from(raw.segment_count.get()))
}
