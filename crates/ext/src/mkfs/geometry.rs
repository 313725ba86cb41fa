//! Sizes of a new volume: blocks, groups, inodes, and the blocks kept for more descriptors.

use dovetail_block::DriveSerial;

use super::{MkfsError, MkfsOptions};
use crate::format::{
    BlockAddr, CRC32C_START, Compat, ErrorRecord, FLAG_SIGNED_HASH, GroupNo, HashVersion, Incompat,
    Ino, RoCompat, State, Superblock, crc32c,
};

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;
/// Groups whose bitmaps lie together, as a logarithm (mke2fs.8, "-G").
const LOG_GROUPS_PER_FLEX: u8 = 4;
/// A last group with fewer blocks beside its tables than this is left out.
const LEAST_LAST_GROUP: u64 = 50;
/// `user_xattr` and `acl`, the default mount options of mke2fs.conf.
const DEFAULT_MOUNT_OPTS: u32 = 0x4 | 0x8;
/// Factor by which the volume may grow: descriptors are kept for that size.
const GROWTH: u64 = 1024;

/// The smallest group (mke2fs.8, "-g").
const LEAST_GROUP: u32 = 256;

/// The type of use that mke2fs.conf gives a device by its size: bytes in a block, and bytes for an
/// inode.
pub(super) const fn usage(bytes: u64) -> (u32, u32) {
    match bytes {
        _ if bytes < 3 * MIB => (1024, 8192),
        _ if bytes < 512 * MIB => (1024, 4096),
        _ if bytes < 4 * TIB => (4096, 16_384),
        _ if bytes < 16 * TIB => (4096, 32_768),
        _ => (4096, 65_536),
    }
}

/// The superblock of a new volume on a device of `bytes` bytes; what is free is not yet counted.
pub(super) fn new_superblock(bytes: u64, options: &MkfsOptions) -> Result<Superblock, MkfsError> {
    options.check()?;
    let block_size = options.block_size_on(bytes);
    if options.inode_size > block_size {
        return Err(MkfsError::InodeSize(options.inode_size));
    }
    let bits = block_size * 8;
    let blocks_per_group = options.blocks_per_group.unwrap_or(bits);
    if !(LEAST_GROUP..=bits).contains(&blocks_per_group) || !blocks_per_group.is_multiple_of(8) {
        return Err(MkfsError::GroupSize(blocks_per_group, bits));
    }
    let blocks = bytes / u64::from(block_size);
    if blocks >= 1 << 32 {
        return Err(MkfsError::TooLarge { blocks });
    }
    let usual_ratio = usage(bytes).1.max(block_size);
    let ratio = options.inode_ratio.unwrap_or(usual_ratio);
    let by_ratio = blocks * u64::from(block_size) / u64::from(ratio);
    let inodes = options.inodes.map_or(by_ratio, u64::from);
    if inodes > u32::MAX.into() {
        return Err(MkfsError::Inodes(inodes));
    }
    let mut superblock = blank(options, block_size);
    superblock.blocks_per_group = blocks_per_group;
    superblock.clusters_per_group = blocks_per_group;
    superblock.blocks_count = blocks;
    let without_last_group = fit(&mut superblock, inodes, bytes)?;
    let reserved = blocks * u64::from(options.reserved_percent) / 100;
    superblock.reserved_blocks = reserved * without_last_group.unwrap_or(blocks) / blocks;
    Ok(superblock)
}

/// Groups and inode tables for the number of blocks. Groups are made smaller if their bitmaps have
/// too few bits for the inodes; the volume ends earlier if its last group would be too small.
/// If a last group was left out, returns the number of blocks without it: mke2fs scales the reserve
/// by it, even if smaller groups take all blocks later.
fn fit(superblock: &mut Superblock, inodes: u64, bytes: u64) -> Result<Option<u64>, MkfsError> {
    let too_small = |short| MkfsError::TooSmall { bytes, short };
    let (all, mut shortened) = (superblock.blocks_count, None);
    loop {
        if superblock.blocks_count <= u64::from(superblock.first_data_block) + 8 {
            return Err(too_small("there is no room for a group"));
        }
        if inodes_per_group(superblock, inodes) > u64::from(superblock.block_size()) * 8 {
            if superblock.blocks_per_group < LEAST_GROUP {
                return Err(too_small("there is no room for so many inodes"));
            }
            superblock.blocks_per_group -= 8;
            superblock.clusters_per_group -= 8;
            superblock.blocks_count = all;
            continue;
        }
        set_inodes(superblock, inodes);
        superblock.reserved_gdt_blocks = reserved_gdt_blocks(superblock);
        let head = superblock.descriptor_blocks() + u32::from(superblock.reserved_gdt_blocks);
        if head > superblock.blocks_per_group * 3 / 4 {
            return Err(MkfsError::SmallGroups { blocks: superblock.blocks_per_group, head });
        }
        let last = GroupNo(superblock.group_count() - 1);
        let blocks = u64::from(superblock.group_blocks(last));
        let needed = u64::from(superblock.base_blocks(last))
            + 2
            + u64::from(superblock.inode_table_blocks());
        let whole = blocks == u64::from(superblock.blocks_per_group);
        let smallest = if last.0 == 0 { needed + LEAST_LAST_GROUP } else { needed };
        if blocks < smallest && (last.0 == 0 || whole) {
            return Err(too_small("there is no room for the tables of a group"));
        }
        if whole || blocks >= needed + LEAST_LAST_GROUP {
            return Ok(shortened);
        }
        superblock.blocks_count -= blocks;
        shortened = Some(superblock.blocks_count);
    }
}

/// Inodes of a group if the volume has so many, or as many as it needs.
fn inodes_per_group(superblock: &Superblock, inodes: u64) -> u64 {
    let least = u64::from(superblock.first_ino.0) + 1;
    inodes.max(least).div_ceil(superblock.group_count().into())
}

/// As many inodes as were asked for: rounded up so that tables fill their blocks, then down so that
/// bitmaps fill their bytes, as far as all that are needed remain.
fn set_inodes(superblock: &mut Superblock, inodes: u64) {
    let per_block = u64::from(superblock.inodes_per_block());
    let filled = inodes_per_group(superblock, inodes).next_multiple_of(per_block);
    let least = inodes_per_group(superblock, 0).next_multiple_of(8);
    let most = u64::from(u32::MAX / superblock.group_count()) / per_block * per_block;
    let per_group = (filled.min(most) & !7).max(least) as u32;
    superblock.inodes_per_group = per_group;
    superblock.inodes_count = per_group * superblock.group_count();
}

/// Blocks kept behind the descriptors, so that the volume can grow to 1,024 times its size: at most
/// as many as one block of pointers can lead to.
fn reserved_gdt_blocks(superblock: &Superblock) -> u16 {
    if !superblock.compat.has(Compat::RESIZE_INODE) {
        return 0;
    }
    let most = (superblock.blocks_count * GROWTH).min(u32::MAX.into());
    let groups = (most - u64::from(superblock.first_data_block))
        .div_ceil(superblock.blocks_per_group.into());
    let blocks = groups.div_ceil(superblock.descriptors_per_block().into());
    let kept = blocks.saturating_sub(superblock.descriptor_blocks().into());
    kept.min(u64::from(superblock.block_size()) / 4) as u16
}

/// Fields of the superblock that do not depend on the size.
fn blank(options: &MkfsOptions, block_size: u32) -> Superblock {
    let log = block_size.trailing_zeros();
    let flex = options.incompat.has(Incompat::FLEX_BG);
    let checked = options.ro_compat.has(RoCompat::METADATA_CSUM);
    let seeded = options.incompat.has(Incompat::CSUM_SEED);
    let extra_isize = if options.inode_size > 128 { 32 } else { 0 };
    let mut label = [0; 16];
    label[..options.label.len()].copy_from_slice(options.label.as_bytes());
    let words = options.hash_seed.as_chunks::<4>().0;
    Superblock {
        inodes_count: 0,
        blocks_count: 0,
        reserved_blocks: 0,
        free_blocks: 0,
        free_inodes: 0,
        first_data_block: u32::from(log == 10),
        log_block_size: log,
        log_cluster_size: log,
        blocks_per_group: 0,
        clusters_per_group: 0,
        inodes_per_group: 8,
        mount_time: 0,
        write_time: options.time,
        mount_count: 0,
        max_mount_count: 0xFFFF,
        state: State(State::VALID),
        errors: 1,
        revision: (1, 0),
        last_check: options.time,
        check_interval: 0,
        creator_os: 0,
        reserve_owner: (0, 0),
        first_ino: Ino(11),
        inode_size: options.inode_size as u16,
        group: GroupNo(0),
        compat: options.compat,
        incompat: options.incompat,
        ro_compat: options.ro_compat,
        uuid: options.uuid,
        label,
        last_mounted: [0; 64],
        reserved_gdt_blocks: 0,
        journal_uuid: [0; 16],
        journal_ino: Ino::NONE,
        journal_dev: 0,
        last_orphan: Ino::NONE,
        hash_seed: std::array::from_fn(|i| u32::from_le_bytes(words[i])),
        hash_version: HashVersion::HALF_MD4,
        journal_backup_type: 0,
        desc_size: if options.incompat.has(Incompat::BITS_64) { 64 } else { 0 },
        default_mount_opts: DEFAULT_MOUNT_OPTS,
        first_meta_bg: 0,
        mkfs_time: options.time,
        journal_backup: [0; 17],
        min_extra_isize: extra_isize,
        want_extra_isize: extra_isize,
        flags: FLAG_SIGNED_HASH,
        raid_stride: 0,
        raid_stripe_width: 0,
        log_groups_per_flex: if flex { LOG_GROUPS_PER_FLEX } else { 0 },
        checksum_type: u8::from(checked),
        kbytes_written: 0,
        error_count: 0,
        first_error: ErrorRecord::default(),
        last_error: ErrorRecord::default(),
        mount_opts: [0; 64],
        overhead: 0,
        backup_groups: [0; 2],
        lost_found_ino: Ino::NONE,
        project_quota_ino: Ino::NONE,
        checksum_seed: if seeded { crc32c(CRC32C_START, &options.uuid) } else { 0 },
        orphan_file_ino: Ino::NONE,
        mmp_block: BlockAddr(0),
        last_batch: 0,
        physical_blocks: 0,
        drive: DriveSerial::default(),
    }
}

/// Blocks of the journal that mke2fs gives a volume of so many blocks; `None` for one that is too
/// small for a journal.
pub(super) const fn default_journal_blocks(blocks: u64) -> Option<u32> {
    const K: u64 = 1024;
    Some(match blocks {
        _ if blocks < 2048 => return None,
        _ if blocks < 32 * K => 1024,
        _ if blocks < 256 * K => 4096,
        _ if blocks < 512 * K => 8192,
        _ if blocks < 4096 * K => 16_384,
        _ if blocks < 8192 * K => 32_768,
        _ if blocks < 16_384 * K => 65_536,
        _ if blocks < 32_768 * K => 131_072,
        _ => 262_144,
    })
}
