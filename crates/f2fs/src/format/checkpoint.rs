//! The checkpoint: the consistent state of the volume at one time. Two packs; the newer valid one
//! counts.

use std::fmt;

use dovetail_block::BlockBytes;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_mut, transmute_ref,
};

use super::layout::prove_layout;
use super::{
    BLOCK, BLOCKS_IN_SEGMENT, BlockAddr, CRC_SEED, SegNo, Superblock, crc32, iplfs_checkpoint,
    u32_at,
};
use crate::error::{Corrupt, Place};

/// Offset of the checksum on a volume with a large NAT bitmap; the bitmaps follow it.
const LARGE_NAT_CHECKSUM_OFFSET: u32 = 192;
/// Offset of the checksum otherwise: the last four bytes.
const CHECKSUM_OFFSET: u32 = 4092;
/// Offset of the bitmaps.
const BITMAPS: usize = 192;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawCheckpoint {
    checkpoint_ver: U64,
    user_block_count: U64,
    valid_block_count: U64,
    rsvd_segment_count: U32,
    overprov_segment_count: U32,
    free_segment_count: U32,
    cur_node_segno: [U32; 8],
    cur_node_blkoff: [U16; 8],
    cur_data_segno: [U32; 8],
    cur_data_blkoff: [U16; 8],
    ckpt_flags: U32,
    cp_pack_total_block_count: U32,
    cp_pack_start_sum: U32,
    valid_node_count: U32,
    valid_inode_count: U32,
    next_free_nid: U32,
    sit_ver_bitmap_bytesize: U32,
    nat_ver_bitmap_bytesize: U32,
    checksum_offset: U32,
    elapsed_time: U64,
    alloc_type: [u8; 16],
    bitmaps: [u8; 3904],
}

prove_layout!(RawCheckpoint, 4096, {
    24 => rsvd_segment_count, 36 => cur_node_segno, 68 => cur_node_blkoff, 84 => cur_data_segno,
    116 => cur_data_blkoff, 132 => ckpt_flags, 136 => cp_pack_total_block_count, 140 => cp_pack_start_sum,
    144 => valid_node_count, 156 => sit_ver_bitmap_bytesize, 160 => nat_ver_bitmap_bytesize,
    164 => checksum_offset, 168 => elapsed_time, 176 => alloc_type, 192 => bitmaps,
});

/// The checkpoint's flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointFlags(pub u32);

impl CheckpointFlags {
    /// Written by a clean unmount: nothing is to be recovered.
    pub const UMOUNT: Self = Self(0x1);
    /// Orphan blocks follow.
    pub const ORPHAN: Self = Self(0x2);
    /// The data summaries are compacted.
    pub const COMPACT: Self = Self(0x4);
    /// The volume is damaged.
    pub const ERROR: Self = Self(0x8);
    /// The kernel asks for a check.
    pub const FSCK: Self = Self(0x10);
    /// Node summaries are present, as after a clean unmount.
    pub const FASTBOOT: Self = Self(0x20);
    /// Node footers carry version and checksum of the checkpoint before.
    pub const CRC_RECOVERY: Self = Self(0x40);
    /// The blocks at the pack's end that say which NAT blocks are full or empty are up to date.
    pub const NAT_BITS: Self = Self(0x80);
    /// All free space has been discarded.
    pub const TRIMMED: Self = Self(0x100);
    /// Node footers are compared by the low half of the version only.
    pub const NOCRC_RECOVERY: Self = Self(0x200);
    /// The bitmaps begin after the checksum, to leave room for a larger NAT.
    pub const LARGE_NAT: Self = Self(0x400);
    /// Quota files may be out of date.
    pub const QUOTA_NEED_FSCK: Self = Self(0x800);
    /// Checkpoints were switched off.
    pub const DISABLED: Self = Self(0x1000);
    /// As before, without a check of the free space.
    pub const DISABLED_QUICK: Self = Self(0x2000);
    /// The volume is being resized.
    pub const RESIZEFS: Self = Self(0x4000);

    /// All bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags and those of `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The flags that are set here and not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// The kernel's names of the flags, from the lowest bit up.
const FLAG_NAMES: [&str; 15] = [
    "umount",
    "orphan",
    "compact",
    "error",
    "fsck",
    "fastboot",
    "crc",
    "nat_bits",
    "trimmed",
    "nocrc",
    "large_nat",
    "quota_need_fsck",
    "disabled",
    "disabled_quick",
    "resizefs",
];

impl fmt::Display for CheckpointFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names =
            (0..32).filter(|bit| self.0 >> bit & 1 == 1).map(|bit| match FLAG_NAMES.get(bit) {
                Some(name) => (*name).to_string(),
                None => format!("bit {bit}"),
            });
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

/// Next write position of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// The segment; outside the main area for a log that is not in use.
    pub segment: SegNo,
    /// The block in it, 0 to 511.
    pub offset: u16,
    /// It fills holes of a used segment (SSR) instead of appending to a free one.
    pub in_holes: bool,
}

/// The state of the volume at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Number of the pack that holds it: 1 or 2.
    pub pack: u32,
    /// Its number; the next checkpoint has the next one.
    pub version: u64,
    /// Blocks that users may fill.
    pub user_block_count: u64,
    /// Blocks in use or reserved.
    pub valid_block_count: u64,
    /// Segments kept free for cleaning.
    pub reserved_segments: u32,
    /// Segments beyond what users may fill.
    pub overprovision_segments: u32,
    /// Segments without a valid block that are no log.
    pub free_segments: u32,
    /// Hot, warm and cold data, then hot, warm and cold nodes.
    pub logs: [LogPosition; 6],
    /// The same on a volume of IPLFS, which has no segments: the address that each log writes next.
    pub positions: [BlockAddr; 6],
    /// Bytes of the discard log of IPLFS, from block `summary_start` of the pack on; none on F2FS.
    pub discard_log_bytes: u64,
    /// Its checksum.
    pub discard_log_checksum: u32,
    /// The flags.
    pub flags: CheckpointFlags,
    /// Blocks of the pack.
    pub total_blocks: u32,
    /// First block of the data summaries in the pack; on IPLFS, of the discard log.
    pub summary_start: u32,
    /// Node blocks.
    pub valid_nodes: u32,
    /// Inodes, with those that are unlinked and open.
    pub valid_inodes: u32,
    /// Nid at which the search for a free one begins.
    pub next_free_nid: u32,
    /// Seconds for which the volume has been mounted.
    pub elapsed_s: u64,
    /// Checksum of the head.
    pub checksum: u32,
}

impl Checkpoint {
    /// Decodes and checks the head (or the tail, which is the same) of pack number `pack`.
    ///
    /// # Errors
    /// The checksum or a field that is wrong.
    pub fn parse(block: &BlockBytes, pack: u32, superblock: &Superblock) -> Result<Self, Corrupt> {
        if superblock.variant.is_iplfs() {
            return iplfs_checkpoint::parse(block, pack, superblock);
        }
        let raw: &RawCheckpoint = transmute_ref!(block);
        let place = Place::Checkpoint(pack);
        let checksum = check_checksum(raw, block, place)?;
        check_layout(raw, place, superblock)?;
        let checkpoint = raw.decode(pack, checksum);
        check_logs(&checkpoint, place, superblock)?;
        Ok(checkpoint)
    }

    /// Node summaries stand at the pack's end.
    pub fn has_node_summaries(&self) -> bool {
        self.flags.has(CheckpointFlags::UMOUNT) || self.flags.has(CheckpointFlags::FASTBOOT)
    }

    /// Number of compacted summary entries of each data log in the pack. A log that fills holes has
    /// all 512.
    pub fn compact_entries(&self) -> [usize; 3] {
        [0, 1, 2].map(|log| {
            let log = self.logs[log];
            if log.in_holes { BLOCKS_IN_SEGMENT as usize } else { log.offset.into() }
        })
    }

    /// Version for the footer of a node written after this checkpoint, and a mask of the bits that
    /// count.
    pub fn footer_version(&self) -> (u64, u64) {
        if self.flags.has(CheckpointFlags::NOCRC_RECOVERY) {
            return (self.version & 0xFFFF_FFFF, 0xFFFF_FFFF);
        }
        if self.flags.has(CheckpointFlags::CRC_RECOVERY) {
            return (self.version | u64::from(self.checksum) << 32, u64::MAX);
        }
        (self.version, u64::MAX)
    }
}

impl Checkpoint {
    /// The head, followed by the payload blocks of a volume that has them, and the head's checksum;
    /// the tail is the same as the head. What this type does not know of is kept from `base`, the
    /// head that was read. The number of the pack and the checksum of `self` are not used.
    pub fn encode(
        &self,
        bitmaps: &Bitmaps,
        superblock: &Superblock,
        base: &BlockBytes,
    ) -> (Vec<BlockBytes>, u32) {
        let mut blocks = vec![[0; BLOCK]; 1 + superblock.cp_payload as usize];
        blocks[0] = *base;
        let raw: &mut RawCheckpoint = transmute_mut!(&mut blocks[0]);
        raw.encode(self, superblock);
        let (sit, nat) = bitmap_starts(self.flags, superblock);
        put_bytes(&mut blocks, sit, &bitmaps.sit);
        put_bytes(&mut blocks, nat, &bitmaps.nat);
        let offset = checksum_offset(self.flags);
        let checksum = head_checksum(&blocks[0], offset as usize);
        put_bytes(&mut blocks, offset as usize, &checksum.to_le_bytes());
        (blocks, checksum)
    }
}

/// Copies `bytes` to byte `start` of the blocks taken as one; what is beyond them is left out.
fn put_bytes(blocks: &mut [BlockBytes], start: usize, bytes: &[u8]) {
    let to = blocks.as_flattened_mut().iter_mut().skip(start);
    for (to, from) in to.zip(bytes) {
        *to = *from;
    }
}

impl RawCheckpoint {
    fn encode(&mut self, from: &Checkpoint, superblock: &Superblock) {
        self.checkpoint_ver.set(from.version);
        self.user_block_count.set(from.user_block_count);
        self.valid_block_count.set(from.valid_block_count);
        self.rsvd_segment_count.set(from.reserved_segments);
        self.overprov_segment_count.set(from.overprovision_segments);
        self.free_segment_count.set(from.free_segments);
        for (log, position) in from.logs.iter().enumerate() {
            self.set_log(log, *position);
        }
        self.ckpt_flags.set(from.flags.0);
        self.cp_pack_total_block_count.set(from.total_blocks);
        self.cp_pack_start_sum.set(from.summary_start);
        self.valid_node_count.set(from.valid_nodes);
        self.valid_inode_count.set(from.valid_inodes);
        self.next_free_nid.set(from.next_free_nid);
        self.sit_ver_bitmap_bytesize.set(bitmap_bytes(superblock.segment_count_sit));
        self.nat_ver_bitmap_bytesize.set(bitmap_bytes(superblock.segment_count_nat));
        self.checksum_offset.set(checksum_offset(from.flags));
        self.elapsed_time.set(from.elapsed_s);
    }

    fn set_log(&mut self, log: usize, position: LogPosition) {
        let (segments, offsets) = if log < 3 {
            (&mut self.cur_data_segno, &mut self.cur_data_blkoff)
        } else {
            (&mut self.cur_node_segno, &mut self.cur_node_blkoff)
        };
        segments[log % 3].set(position.segment.0);
        offsets[log % 3].set(position.offset);
        self.alloc_type[log] = u8::from(position.in_holes);
    }

    fn decode(&self, pack: u32, checksum: u32) -> Checkpoint {
        Checkpoint {
            pack,
            version: self.checkpoint_ver.get(),
            user_block_count: self.user_block_count.get(),
            valid_block_count: self.valid_block_count.get(),
            reserved_segments: self.rsvd_segment_count.get(),
            overprovision_segments: self.overprov_segment_count.get(),
            free_segments: self.free_segment_count.get(),
            logs: std::array::from_fn(|log| self.log(log)),
            positions: [BlockAddr::NULL; 6],
            discard_log_bytes: 0,
            discard_log_checksum: 0,
            flags: CheckpointFlags(self.ckpt_flags.get()),
            total_blocks: self.cp_pack_total_block_count.get(),
            summary_start: self.cp_pack_start_sum.get(),
            valid_nodes: self.valid_node_count.get(),
            valid_inodes: self.valid_inode_count.get(),
            next_free_nid: self.next_free_nid.get(),
            elapsed_s: self.elapsed_time.get(),
            checksum,
        }
    }

    fn log(&self, log: usize) -> LogPosition {
        let (segments, offsets) = if log < 3 {
            (&self.cur_data_segno, &self.cur_data_blkoff)
        } else {
            (&self.cur_node_segno, &self.cur_node_blkoff)
        };
        LogPosition {
            segment: SegNo(segments[log % 3].get()),
            offset: offsets[log % 3].get(),
            in_holes: self.alloc_type[log] == 1,
        }
    }
}

fn check_checksum(raw: &RawCheckpoint, block: &BlockBytes, place: Place) -> Result<u32, Corrupt> {
    let expected = checksum_offset(CheckpointFlags(raw.ckpt_flags.get()));
    Corrupt::check_equal(place, "checksum_offset", raw.checksum_offset, expected)?;
    let offset = expected as usize;
    let computed = head_checksum(block, offset);
    Corrupt::check_checksum(place, u32_at(block, offset), computed)?;
    Ok(computed)
}

fn checksum_offset(flags: CheckpointFlags) -> u32 {
    if flags.has(CheckpointFlags::LARGE_NAT) { LARGE_NAT_CHECKSUM_OFFSET } else { CHECKSUM_OFFSET }
}

/// The checksum of all of the head but its checksum, which stands at `offset`.
fn head_checksum(head: &BlockBytes, offset: usize) -> u32 {
    crc32(crc32(CRC_SEED, &head[..offset]), &head[offset + 4..])
}

/// Bytes of the version bitmap of an area whose two copies have so many segments.
fn bitmap_bytes(segments: u32) -> u32 {
    segments / 2 * (BLOCKS_IN_SEGMENT / 8)
}

/// The bytes of head and payload at which the bitmaps of SIT and NAT begin.
fn bitmap_starts(flags: CheckpointFlags, superblock: &Superblock) -> (usize, usize) {
    if flags.has(CheckpointFlags::LARGE_NAT) {
        (BITMAPS + 4 + bitmap_bytes(superblock.segment_count_nat) as usize, BITMAPS + 4)
    } else if superblock.cp_payload > 0 {
        (BLOCK, BITMAPS)
    } else {
        (BITMAPS, BITMAPS + bitmap_bytes(superblock.segment_count_sit) as usize)
    }
}

fn check_layout(raw: &RawCheckpoint, place: Place, superblock: &Superblock) -> Result<(), Corrupt> {
    let (sit, nat) =
        (bitmap_bytes(superblock.segment_count_sit), bitmap_bytes(superblock.segment_count_nat));
    Corrupt::check_equal(place, "sit_ver_bitmap_bytesize", raw.sit_ver_bitmap_bytesize, sit)?;
    Corrupt::check_equal(place, "nat_ver_bitmap_bytesize", raw.nat_ver_bitmap_bytesize, nat)?;
    let total = raw.cp_pack_total_block_count;
    Corrupt::check_range(place, "cp_pack_total_block_count", total, (3, BLOCKS_IN_SEGMENT.into()))?;
    let flags = CheckpointFlags(raw.ckpt_flags.get());
    let nodes = if flags.has(CheckpointFlags::UMOUNT) || flags.has(CheckpointFlags::FASTBOOT) {
        3
    } else {
        0
    };
    let data = if flags.has(CheckpointFlags::COMPACT) { 1 } else { 3 };
    let first = 1 + u64::from(superblock.cp_payload);
    let last = u64::from(total).saturating_sub(1 + nodes + data);
    Corrupt::check_range(place, "cp_pack_start_sum", raw.cp_pack_start_sum, (first, last))
}

/// Logs 0 to 5 write in the main area. A volume of fewer logs leaves the others at a segment number
/// of all ones.
fn check_logs(
    checkpoint: &Checkpoint,
    place: Place,
    superblock: &Superblock,
) -> Result<(), Corrupt> {
    let last = u64::from(superblock.segment_count_main - 1);
    for log in checkpoint.logs.iter().filter(|log| log.segment.0 != u32::MAX) {
        Corrupt::check_range(place, "cur_segno", log.segment.0, (0, last))?;
        Corrupt::check_range(
            place,
            "cur_blkoff",
            log.offset,
            (0, u64::from(BLOCKS_IN_SEGMENT) - 1),
        )?;
    }
    Ok(())
}

/// Version bitmaps of the SIT and the NAT. Each block has a bit, most significant bit first: clear
/// if the first of its two copies is current, set if the second is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmaps {
    /// One bit for each SIT block.
    pub sit: Vec<u8>,
    /// One bit for each NAT block.
    pub nat: Vec<u8>,
}

impl Bitmaps {
    /// Cuts the bitmaps out of `pack`: the head and its payload blocks, one after the other.
    ///
    /// # Errors
    /// Bitmaps that do not fit in there.
    pub fn parse(
        pack: &[u8],
        checkpoint: &Checkpoint,
        superblock: &Superblock,
    ) -> Result<Self, Corrupt> {
        if superblock.variant.is_iplfs() {
            return iplfs_checkpoint::bitmaps(pack, Place::Checkpoint(checkpoint.pack), superblock);
        }
        let (sit, nat) = bitmap_starts(checkpoint.flags, superblock);
        let cut = |start: usize, segments: u32| {
            let end = start + bitmap_bytes(segments) as usize;
            let crc = checksum_offset(checkpoint.flags) as usize;
            let limit = if start < crc { crc } else { pack.len() };
            let place = Place::Checkpoint(checkpoint.pack);
            Corrupt::check_range(place, "the version bitmaps' end", end as u64, (0, limit as u64))?;
            let bitmap = pack.get(start..end).map(<[u8]>::to_vec);
            Ok::<_, Corrupt>(bitmap.unwrap_or_default())
        };
        Ok(Self {
            sit: cut(sit, superblock.segment_count_sit)?,
            nat: cut(nat, superblock.segment_count_nat)?,
        })
    }
}
