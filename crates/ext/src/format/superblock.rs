//! The superblock: what the volume is. 1024 bytes at byte 1024 of the device, and copies in some
//! groups.

use dovetail_block::{DriveSerial, WrongDrive};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_mut, transmute_ref,
};

use super::layout::prove_layout;
use super::{
    BlockAddr, CRC32C_START, Compat, GroupNo, HashVersion, Incompat, Ino, RoCompat, crc32c,
};
use crate::error::{Corrupt, Error, Incompatible, Place};

/// The magic number of ext2, ext3 and ext4.
pub const MAGIC: u16 = 0xEF53;
/// Offset of the first superblock, in bytes from the start of the device.
pub const SUPERBLOCK_OFFSET: u64 = 1024;
/// The size of a superblock.
pub const SUPERBLOCK_SIZE: usize = 1024;

/// Offset of the checksum, and number of bytes that it covers.
const CHECKSUM_OFFSET: usize = 1020;
/// `s_checksum_type` of CRC-32C, the only one there is.
const CRC32C: u8 = 1;
/// Inodes of revision 0 have this size, and the first one for files is 11.
const OLD_INODE_SIZE: u16 = 128;
const OLD_FIRST_INO: u32 = 11;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSuperblock {
    s_inodes_count: U32,
    s_blocks_count_lo: U32,
    s_r_blocks_count_lo: U32,
    s_free_blocks_count_lo: U32,
    s_free_inodes_count: U32,
    s_first_data_block: U32,
    s_log_block_size: U32,
    s_log_cluster_size: U32,
    s_blocks_per_group: U32,
    s_clusters_per_group: U32,
    s_inodes_per_group: U32,
    s_mtime: U32,
    s_wtime: U32,
    s_mnt_count: U16,
    s_max_mnt_count: U16,
    s_magic: U16,
    s_state: U16,
    s_errors: U16,
    s_minor_rev_level: U16,
    s_lastcheck: U32,
    s_checkinterval: U32,
    s_creator_os: U32,
    s_rev_level: U32,
    s_def_resuid: U16,
    s_def_resgid: U16,
    s_first_ino: U32,
    s_inode_size: U16,
    s_block_group_nr: U16,
    s_feature_compat: U32,
    s_feature_incompat: U32,
    s_feature_ro_compat: U32,
    s_uuid: [u8; 16],
    s_volume_name: [u8; 16],
    s_last_mounted: [u8; 64],
    s_algorithm_usage_bitmap: U32,
    s_prealloc_blocks: u8,
    s_prealloc_dir_blocks: u8,
    s_reserved_gdt_blocks: U16,
    s_journal_uuid: [u8; 16],
    s_journal_inum: U32,
    s_journal_dev: U32,
    s_last_orphan: U32,
    s_hash_seed: [U32; 4],
    s_def_hash_version: u8,
    s_jnl_backup_type: u8,
    s_desc_size: U16,
    s_default_mount_opts: U32,
    s_first_meta_bg: U32,
    s_mkfs_time: U32,
    s_jnl_blocks: [U32; 17],
    s_blocks_count_hi: U32,
    s_r_blocks_count_hi: U32,
    s_free_blocks_count_hi: U32,
    s_min_extra_isize: U16,
    s_want_extra_isize: U16,
    s_flags: U32,
    s_raid_stride: U16,
    s_mmp_interval: U16,
    s_mmp_block: U64,
    s_raid_stripe_width: U32,
    s_log_groups_per_flex: u8,
    s_checksum_type: u8,
    s_reserved_pad: U16,
    s_kbytes_written: U64,
    s_snapshot_inum: U32,
    s_snapshot_id: U32,
    s_snapshot_r_blocks_count: U64,
    s_snapshot_list: U32,
    s_error_count: U32,
    s_first_error_time: U32,
    s_first_error_ino: U32,
    s_first_error_block: U64,
    s_first_error_func: [u8; 32],
    s_first_error_line: U32,
    s_last_error_time: U32,
    s_last_error_ino: U32,
    s_last_error_line: U32,
    s_last_error_block: U64,
    s_last_error_func: [u8; 32],
    s_mount_opts: [u8; 64],
    s_usr_quota_inum: U32,
    s_grp_quota_inum: U32,
    s_overhead_clusters: U32,
    s_backup_bgs: [U32; 2],
    s_encrypt_algos: [u8; 4],
    s_encrypt_pw_salt: [u8; 16],
    s_lpf_ino: U32,
    s_prj_quota_inum: U32,
    s_checksum_seed: U32,
    s_wtime_hi: u8,
    s_mtime_hi: u8,
    s_mkfs_time_hi: u8,
    s_lastcheck_hi: u8,
    s_first_error_time_hi: u8,
    s_last_error_time_hi: u8,
    s_first_error_errcode: u8,
    s_last_error_errcode: u8,
    s_encoding: U16,
    s_encoding_flags: U16,
    s_orphan_file_inum: U32,
    s_reserved: [U32; 88],
    /// Of devirtualised volumes only: the last batch of renames, how many blocks are reached by
    /// physical address, and the serial number of the drive that they lie on.
    d_last_batch: U64,
    d_physical_blocks: U64,
    d_drive: U64,
    s_checksum: U32,
}

prove_layout!(RawSuperblock, 1024, {
    0x18 => s_log_block_size, 0x38 => s_magic, 0x4C => s_rev_level, 0x58 => s_inode_size,
    0x60 => s_feature_incompat, 0x68 => s_uuid, 0x78 => s_volume_name, 0xC8 => s_algorithm_usage_bitmap,
    0xD0 => s_journal_uuid, 0xE0 => s_journal_inum, 0xEC => s_hash_seed, 0xFC => s_def_hash_version,
    0xFE => s_desc_size, 0x108 => s_mkfs_time, 0x10C => s_jnl_blocks, 0x150 => s_blocks_count_hi,
    0x15C => s_min_extra_isize, 0x160 => s_flags, 0x168 => s_mmp_block, 0x174 => s_log_groups_per_flex,
    0x178 => s_kbytes_written, 0x194 => s_error_count, 0x1CC => s_last_error_time, 0x200 => s_mount_opts,
    0x248 => s_overhead_clusters, 0x24C => s_backup_bgs, 0x268 => s_lpf_ino, 0x270 => s_checksum_seed,
    0x274 => s_wtime_hi, 0x27C => s_encoding, 0x280 => s_orphan_file_inum, 0x3E4 => d_last_batch,
    0x3F4 => d_drive, 0x3FC => s_checksum,
});

/// State in which the volume was left (`s_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State(pub u16);

impl State {
    /// Unmounted (a journal may still have to be replayed).
    pub const VALID: u16 = 1;
    /// Errors were found.
    pub const ERROR: u16 = 2;
    /// Orphans are being dealt with.
    pub const ORPHANS: u16 = 4;

    /// All of `bits` are set.
    pub const fn has(self, bits: u16) -> bool {
        self.0 & bits == bits
    }
}

/// `s_flags`: names are hashed as signed characters.
pub const FLAG_SIGNED_HASH: u32 = 1;
/// `s_flags`: names are hashed as unsigned characters.
pub const FLAG_UNSIGNED_HASH: u32 = 2;

/// The first or the last error that a kernel found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorRecord {
    /// Time of the error, in seconds since 1970; 0 if there was none.
    pub time: u64,
    /// The inode that was worked on.
    pub ino: Ino,
    /// The block that was worked on.
    pub block: BlockAddr,
    /// Name of the kernel's function, up to 32 bytes.
    pub function: [u8; 32],
    /// The line in its source.
    pub line: u32,
    /// Kind of error.
    pub code: u8,
}

/// The superblock. Blocks are in the volume's block size, times in seconds since 1970. Bytes
/// without a field here are kept from those that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Inodes, used or not: as many as groups times [`Self::inodes_per_group`].
    pub inodes_count: u32,
    /// The size of the volume.
    pub blocks_count: u64,
    /// Blocks that only the owner of the reserve may fill.
    pub reserved_blocks: u64,
    /// Blocks that hold nothing. In a mounted volume kernels keep it in memory; the groups' counts
    /// are what holds.
    pub free_blocks: u64,
    /// Inodes that are not used.
    pub free_inodes: u32,
    /// The block that group 0 begins at: 1 with blocks of 1 KiB, otherwise 0.
    pub first_data_block: u32,
    /// The logarithm of the block's size, 10 to 12.
    pub log_block_size: u32,
    /// The logarithm of an allocation cluster's size; that of the block but with the feature
    /// bigalloc.
    pub log_cluster_size: u32,
    /// Blocks in a group; the last one may have fewer.
    pub blocks_per_group: u32,
    /// Clusters in a group.
    pub clusters_per_group: u32,
    /// Inodes in a group.
    pub inodes_per_group: u32,
    /// Last mounted.
    pub mount_time: u64,
    /// Superblock last written.
    pub write_time: u64,
    /// Mounts since the last check.
    pub mount_count: u16,
    /// Mounts after which a check is due; 0xFFFF for never.
    pub max_mount_count: u16,
    /// State in which it was left.
    pub state: State,
    /// Reaction of a kernel to errors: 1 go on, 2 read only, 3 panic.
    pub errors: u16,
    /// Revision, major and minor.
    pub revision: (u32, u16),
    /// Last checked.
    pub last_check: u64,
    /// Seconds after which a check is due; 0 for never.
    pub check_interval: u32,
    /// 0 is Linux.
    pub creator_os: u32,
    /// The user and the group that may use the reserve.
    pub reserve_owner: (u16, u16),
    /// The first inode for files.
    pub first_ino: Ino,
    /// The size of an inode in bytes, a power of two from 128 on.
    pub inode_size: u16,
    /// The group of this copy of the superblock.
    pub group: GroupNo,
    /// Features that may be ignored.
    pub compat: Compat,
    /// Features that must be known.
    pub incompat: Incompat,
    /// Features that must be known for writing.
    pub ro_compat: RoCompat,
    /// The volume's UUID.
    pub uuid: [u8; 16],
    /// The label, filled with zeros.
    pub label: [u8; 16],
    /// Path at which it was last mounted, filled with zeros.
    pub last_mounted: [u8; 64],
    /// Blocks kept behind each table of descriptors for its growth.
    pub reserved_gdt_blocks: u16,
    /// UUID of a journal on another device.
    pub journal_uuid: [u8; 16],
    /// The journal.
    pub journal_ino: Ino,
    /// The other device of the journal.
    pub journal_dev: u32,
    /// The first inode of the list of orphans; 0 for none. The next one stands in its `dtime`.
    pub last_orphan: Ino,
    /// Initial value of the hashes of names; zeros stand for the algorithm's own start.
    pub hash_seed: [u32; 4],
    /// The hash of new indexed directories, as in an index: 0 to 2.
    pub hash_version: u8,
    /// Kind of [`Self::journal_backup`]: 1 for a copy of the journal's inode.
    pub journal_backup_type: u8,
    /// Bytes of a group descriptor as stored; 0 without the feature 64bit. See
    /// [`Self::descriptor_size`].
    pub desc_size: u16,
    /// Mount options that hold unless others are given.
    pub default_mount_opts: u32,
    /// With the feature meta_bg: the first descriptor block that lies in its own group.
    pub first_meta_bg: u32,
    /// Made.
    pub mkfs_time: u64,
    /// A copy of the journal inode's `i_block`, and of its size (high word, low word).
    pub journal_backup: [u32; 17],
    /// Bytes beyond 128 that all inodes have.
    pub min_extra_isize: u16,
    /// Bytes beyond 128 that new inodes should have.
    pub want_extra_isize: u16,
    /// [`FLAG_SIGNED_HASH`], [`FLAG_UNSIGNED_HASH`].
    pub flags: u32,
    /// Blocks written to one disk of a RAID before the next.
    pub raid_stride: u16,
    /// Blocks of a whole stripe of a RAID.
    pub raid_stripe_width: u32,
    /// Groups whose bitmaps and inode tables lie together, as a logarithm.
    pub log_groups_per_flex: u8,
    /// Algorithm of the metadata checksums: 1 is CRC-32C.
    pub checksum_type: u8,
    /// KiB written in the volume's life.
    pub kbytes_written: u64,
    /// Errors found by kernels.
    pub error_count: u32,
    /// The first one.
    pub first_error: ErrorRecord,
    /// The last one.
    pub last_error: ErrorRecord,
    /// More mount options that hold unless others are given.
    pub mount_opts: [u8; 64],
    /// Blocks (clusters) that metadata of the format take; 0 if it was not counted.
    pub overhead: u32,
    /// With the feature sparse_super2: the groups of the backups.
    pub backup_groups: [u32; 2],
    /// lost+found; 0 if it is not known.
    pub lost_found_ino: Ino,
    /// The file of projects' quotas, with the features quota and project. Those of users and groups
    /// have numbers that are kept.
    pub project_quota_ino: Ino,
    /// The seed of checksums, with the feature metadata_csum_seed.
    pub checksum_seed: u32,
    /// The file of orphans, with the feature orphan_file.
    pub orphan_file_ino: Ino,
    /// The MMP block (multiple mount protection), with the feature mmp; 0 without.
    pub mmp_block: BlockAddr,
    /// With [`Incompat::DEVIRTUALIZED`]: the last batch of renames of which the pointers are
    /// written.
    pub last_batch: u64,
    /// With [`Incompat::DEVIRTUALIZED`]: blocks that are reached by the addresses of the drive. No
    /// bitmap tells of them; [`Self::free_blocks`] does not count them as free.
    pub physical_blocks: u64,
    /// With [`Incompat::DEVIRTUALIZED`]: the drive whose addresses those are.
    pub drive: DriveSerial,
}

impl Superblock {
    /// Decodes and checks the superblock that lies in `group`.
    ///
    /// # Errors
    /// [`Error::NotExt`]; [`Error::Incompatible`] for other block sizes, revisions and unknown
    /// incompatible features (a read-only one is the caller's to look at: [`RoCompat::WRITTEN`]);
    /// [`Error::Corrupt`] with the field that is wrong.
    pub fn parse(bytes: &[u8; SUPERBLOCK_SIZE], group: GroupNo) -> Result<Self, Error> {
        let superblock = Self::parse_on_drive(bytes, group)?;
        match superblock.incompat.has(Incompat::DEVIRTUALIZED) {
            true => Err(Incompatible::from(WrongDrive::NoAddresses(superblock.drive)).into()),
            false => Ok(superblock),
        }
    }

    /// The same where the volume may lie on the drive to whose addresses it has pointers.
    pub(crate) fn parse_on_drive(
        bytes: &[u8; SUPERBLOCK_SIZE],
        group: GroupNo,
    ) -> Result<Self, Error> {
        let raw: &RawSuperblock = transmute_ref!(bytes);
        if raw.s_magic != MAGIC {
            return Err(Error::NotExt { found: raw.s_magic.get() });
        }
        let place = Place::Superblock(group);
        // first: damage must not pass for something that is not known
        if let Some((found, computed)) = superblock_checksums(bytes) {
            Corrupt::check_checksum(place, found, computed)?;
        }
        check_known(raw)?;
        Corrupt::check_range(place, "s_log_block_size", raw.s_log_block_size, (0, 2))?;
        let superblock = raw.decode();
        superblock.check(place)?;
        Ok(superblock)
    }

    /// The bytes. What this type does not know of is kept from `base`, the bytes that were read;
    /// zeros for a new volume.
    pub fn encode(&self, base: &[u8; SUPERBLOCK_SIZE]) -> [u8; SUPERBLOCK_SIZE] {
        let mut bytes = *base;
        let raw: &mut RawSuperblock = transmute_mut!(&mut bytes);
        raw.encode(self);
        if self.ro_compat.has(RoCompat::METADATA_CSUM) {
            let checksum = crc32c(CRC32C_START, &bytes[..CHECKSUM_OFFSET]);
            bytes[CHECKSUM_OFFSET..].copy_from_slice(&checksum.to_le_bytes());
        }
        bytes
    }

    /// Initial value of the metadata checksums; `None` without the feature metadata_csum.
    pub fn checksum_seed(&self) -> Option<u32> {
        let own = || match self.incompat.has(Incompat::CSUM_SEED) {
            true => self.checksum_seed,
            false => crc32c(CRC32C_START, &self.uuid),
        };
        self.ro_compat.has(RoCompat::METADATA_CSUM).then(own)
    }

    /// Hash of the names in a directory whose index says `version` (0 to 2).
    pub fn hash_version(&self, version: u8) -> HashVersion {
        HashVersion { algorithm: version, unsigned: self.flags & FLAG_UNSIGNED_HASH != 0 }
    }
}

/// The checksum of a superblock, stored and computed; `None` without the feature metadata_csum.
pub fn superblock_checksums(bytes: &[u8; SUPERBLOCK_SIZE]) -> Option<(u32, u32)> {
    let raw: &RawSuperblock = transmute_ref!(bytes);
    let checked = RoCompat(raw.s_feature_ro_compat.get()).has(RoCompat::METADATA_CSUM);
    let computed = || crc32c(CRC32C_START, &bytes[..CHECKSUM_OFFSET]);
    (checked && raw.s_rev_level != 0).then(|| (raw.s_checksum.get(), computed()))
}

/// Refuses what would be read wrongly.
fn check_known(raw: &RawSuperblock) -> Result<(), Incompatible> {
    let revision = raw.s_rev_level.get();
    if revision > 1 {
        return Err(Incompatible::Revision(revision));
    }
    let features = Incompat(if revision == 0 { 0 } else { raw.s_feature_incompat.get() });
    let unknown = features.without(Incompat::READ.with(Incompat::DEVIRTUALIZED));
    if unknown != Incompat(0) {
        return Err(Incompatible::Features(unknown));
    }
    match raw.s_log_block_size.get() {
        0..=2 => Ok(()),
        log @ 3..=6 => Err(Incompatible::BlockSize { log: log + 10 }),
        _ => Ok(()), // no size at all: damaged, which the caller says
    }
}

impl Superblock {
    fn check(&self, place: Place) -> Result<(), Corrupt> {
        let block = u64::from(self.block_size());
        let bits = block * 8;
        Corrupt::check_range(place, "s_inode_size", self.inode_size, (128, block))?;
        let power = u64::from(self.inode_size).next_power_of_two();
        Corrupt::check_equal(place, "s_inode_size", self.inode_size, power)?;
        self.check_clusters(place, bits)?;
        let in_block = block / u64::from(self.inode_size);
        Corrupt::check_range(place, "s_inodes_per_group", self.inodes_per_group, (in_block, bits))?;
        let first = u64::from(self.log_block_size == 10);
        if !self.ro_compat.has(RoCompat::BIGALLOC) {
            Corrupt::check_equal(place, "s_first_data_block", self.first_data_block, first)?;
        }
        self.check_counts(place)?;
        self.check_descriptors(place, block)
    }

    fn check_clusters(&self, place: Place, bits: u64) -> Result<(), Corrupt> {
        Corrupt::check_range(place, "s_clusters_per_group", self.clusters_per_group, (8, bits))?;
        let max = if self.ro_compat.has(RoCompat::BIGALLOC) { 29 } else { self.log_block_size };
        let allowed = (self.log_block_size.into(), max.into());
        Corrupt::check_range(place, "s_log_cluster_size", self.log_cluster_size, allowed)?;
        let ratio = self.log_cluster_size - self.log_block_size;
        let blocks = u64::from(self.clusters_per_group) << ratio;
        Corrupt::check_equal(place, "s_blocks_per_group", self.blocks_per_group, blocks)
    }

    fn check_counts(&self, place: Place) -> Result<(), Corrupt> {
        let first = u64::from(self.first_data_block);
        // inode numbers have 32 bits, and every group has at least one inode
        let groups = u64::from(u32::MAX) / u64::from(self.inodes_per_group);
        let most = (groups.saturating_mul(self.blocks_per_group.into()) + first).min(1 << 48);
        Corrupt::check_range(place, "s_blocks_count", self.blocks_count, (first + 1, most))?;
        let inodes = u64::from(self.group_count()) * u64::from(self.inodes_per_group);
        Corrupt::check_equal(place, "s_inodes_count", self.inodes_count, inodes)?;
        Corrupt::check_range(place, "s_first_ino", self.first_ino.0, (OLD_FIRST_INO.into(), inodes))
    }

    fn check_descriptors(&self, place: Place, block: u64) -> Result<(), Corrupt> {
        let size = self.descriptor_size() as u64;
        let least = if self.incompat.has(Incompat::BITS_64) { 64 } else { 32 };
        Corrupt::check_range(place, "s_desc_size", size, (least, 1024.min(block)))?;
        Corrupt::check_equal(place, "s_desc_size", size, size.next_power_of_two())?;
        Corrupt::check_range(
            place,
            "s_reserved_gdt_blocks",
            self.reserved_gdt_blocks,
            (0, block / 4),
        )?;
        Corrupt::check_range(place, "s_log_groups_per_flex", self.log_groups_per_flex, (0, 31))?;
        if self.ro_compat.has(RoCompat::METADATA_CSUM) {
            Corrupt::check_equal(place, "s_checksum_type", self.checksum_type, CRC32C)?;
        }
        Ok(())
    }
}

fn wide(low: U32, high: U32) -> u64 {
    u64::from(high.get()) << 32 | u64::from(low.get())
}

fn time(low: U32, high: u8) -> u64 {
    u64::from(high) << 32 | u64::from(low.get())
}

/// The two parts of a time that [`time`] puts together.
fn split_time(time: u64) -> (U32, u8) {
    (U32::new(time as u32), (time >> 32) as u8)
}

impl RawSuperblock {
    fn decode(&self) -> Superblock {
        let old = self.s_rev_level == 0;
        let wide_counts = !old && Incompat(self.s_feature_incompat.get()).has(Incompat::BITS_64);
        let count =
            |low, high| if wide_counts { wide(low, high) } else { u64::from(U32::get(low)) };
        let feature = |word: U32| if old { 0 } else { word.get() };
        Superblock {
            inodes_count: self.s_inodes_count.get(),
            blocks_count: count(self.s_blocks_count_lo, self.s_blocks_count_hi),
            reserved_blocks: count(self.s_r_blocks_count_lo, self.s_r_blocks_count_hi),
            free_blocks: count(self.s_free_blocks_count_lo, self.s_free_blocks_count_hi),
            free_inodes: self.s_free_inodes_count.get(),
            first_data_block: self.s_first_data_block.get(),
            log_block_size: self.s_log_block_size.get() + 10,
            log_cluster_size: self.s_log_cluster_size.get().saturating_add(10),
            blocks_per_group: self.s_blocks_per_group.get(),
            clusters_per_group: self.s_clusters_per_group.get(),
            inodes_per_group: self.s_inodes_per_group.get(),
            mount_time: time(self.s_mtime, self.s_mtime_hi),
            write_time: time(self.s_wtime, self.s_wtime_hi),
            mount_count: self.s_mnt_count.get(),
            max_mount_count: self.s_max_mnt_count.get(),
            state: State(self.s_state.get()),
            errors: self.s_errors.get(),
            revision: (self.s_rev_level.get(), self.s_minor_rev_level.get()),
            last_check: time(self.s_lastcheck, self.s_lastcheck_hi),
            check_interval: self.s_checkinterval.get(),
            creator_os: self.s_creator_os.get(),
            reserve_owner: (self.s_def_resuid.get(), self.s_def_resgid.get()),
            first_ino: Ino(if old { OLD_FIRST_INO } else { self.s_first_ino.get() }),
            inode_size: if old { OLD_INODE_SIZE } else { self.s_inode_size.get() },
            group: GroupNo(self.s_block_group_nr.get().into()),
            compat: Compat(feature(self.s_feature_compat)),
            incompat: Incompat(feature(self.s_feature_incompat)),
            ro_compat: RoCompat(feature(self.s_feature_ro_compat)),
            uuid: self.s_uuid,
            label: self.s_volume_name,
            last_mounted: self.s_last_mounted,
            reserved_gdt_blocks: self.s_reserved_gdt_blocks.get(),
            journal_uuid: self.s_journal_uuid,
            journal_ino: Ino(self.s_journal_inum.get()),
            journal_dev: self.s_journal_dev.get(),
            last_orphan: Ino(self.s_last_orphan.get()),
            hash_seed: self.s_hash_seed.map(U32::get),
            hash_version: self.s_def_hash_version,
            journal_backup_type: self.s_jnl_backup_type,
            desc_size: self.s_desc_size.get(),
            default_mount_opts: self.s_default_mount_opts.get(),
            first_meta_bg: self.s_first_meta_bg.get(),
            mkfs_time: time(self.s_mkfs_time, self.s_mkfs_time_hi),
            journal_backup: self.s_jnl_blocks.map(U32::get),
            min_extra_isize: self.s_min_extra_isize.get(),
            want_extra_isize: self.s_want_extra_isize.get(),
            flags: self.s_flags.get(),
            raid_stride: self.s_raid_stride.get(),
            raid_stripe_width: self.s_raid_stripe_width.get(),
            log_groups_per_flex: self.s_log_groups_per_flex,
            checksum_type: self.s_checksum_type,
            kbytes_written: self.s_kbytes_written.get(),
            error_count: self.s_error_count.get(),
            first_error: self.first_error(),
            last_error: self.last_error(),
            mount_opts: self.s_mount_opts,
            overhead: self.s_overhead_clusters.get(),
            backup_groups: self.s_backup_bgs.map(U32::get),
            lost_found_ino: Ino(self.s_lpf_ino.get()),
            project_quota_ino: Ino(self.s_prj_quota_inum.get()),
            checksum_seed: self.s_checksum_seed.get(),
            orphan_file_ino: Ino(self.s_orphan_file_inum.get()),
            mmp_block: BlockAddr(self.s_mmp_block.get()),
            last_batch: self.d_last_batch.get(),
            physical_blocks: self.d_physical_blocks.get(),
            drive: DriveSerial(self.d_drive.get()),
        }
    }

    fn first_error(&self) -> ErrorRecord {
        ErrorRecord {
            time: time(self.s_first_error_time, self.s_first_error_time_hi),
            ino: Ino(self.s_first_error_ino.get()),
            block: BlockAddr(self.s_first_error_block.get()),
            function: self.s_first_error_func,
            line: self.s_first_error_line.get(),
            code: self.s_first_error_errcode,
        }
    }

    fn last_error(&self) -> ErrorRecord {
        ErrorRecord {
            time: time(self.s_last_error_time, self.s_last_error_time_hi),
            ino: Ino(self.s_last_error_ino.get()),
            block: BlockAddr(self.s_last_error_block.get()),
            function: self.s_last_error_func,
            line: self.s_last_error_line.get(),
            code: self.s_last_error_errcode,
        }
    }

    fn encode(&mut self, from: &Superblock) {
        self.s_magic.set(MAGIC);
        self.encode_size(from);
        self.encode_times(from);
        self.encode_identity(from);
        self.encode_journal(from);
        self.encode_tuning(from);
        self.encode_errors(from);
    }

    fn encode_size(&mut self, from: &Superblock) {
        self.s_inodes_count.set(from.inodes_count);
        self.encode_counts(from);
        self.s_free_inodes_count.set(from.free_inodes);
        self.s_first_data_block.set(from.first_data_block);
        self.s_log_block_size.set(from.log_block_size - 10);
        self.s_log_cluster_size.set(from.log_cluster_size - 10);
        self.s_blocks_per_group.set(from.blocks_per_group);
        self.s_clusters_per_group.set(from.clusters_per_group);
        self.s_inodes_per_group.set(from.inodes_per_group);
        (self.s_rev_level, self.s_minor_rev_level) =
            (U32::new(from.revision.0), U16::new(from.revision.1));
        if from.revision.0 > 0 {
            self.s_first_ino.set(from.first_ino.0);
            self.s_inode_size.set(from.inode_size);
        }
        self.s_block_group_nr.set(from.group.0 as u16);
        self.s_reserved_gdt_blocks.set(from.reserved_gdt_blocks);
        self.s_desc_size.set(from.desc_size);
        self.s_first_meta_bg.set(from.first_meta_bg);
        self.s_log_groups_per_flex = from.log_groups_per_flex;
        self.s_overhead_clusters.set(from.overhead);
        self.s_backup_bgs = from.backup_groups.map(U32::new);
    }

    fn encode_counts(&mut self, from: &Superblock) {
        self.s_blocks_count_lo.set(from.blocks_count as u32);
        self.s_r_blocks_count_lo.set(from.reserved_blocks as u32);
        self.s_free_blocks_count_lo.set(from.free_blocks as u32);
        self.d_last_batch.set(from.last_batch);
        self.d_physical_blocks.set(from.physical_blocks);
        self.d_drive.set(from.drive.0);
        if from.incompat.has(Incompat::BITS_64) {
            self.s_blocks_count_hi.set((from.blocks_count >> 32) as u32);
            self.s_r_blocks_count_hi.set((from.reserved_blocks >> 32) as u32);
            self.s_free_blocks_count_hi.set((from.free_blocks >> 32) as u32);
        }
    }

    fn encode_times(&mut self, from: &Superblock) {
        (self.s_mtime, self.s_mtime_hi) = split_time(from.mount_time);
        (self.s_wtime, self.s_wtime_hi) = split_time(from.write_time);
        (self.s_lastcheck, self.s_lastcheck_hi) = split_time(from.last_check);
        (self.s_mkfs_time, self.s_mkfs_time_hi) = split_time(from.mkfs_time);
        self.s_mnt_count.set(from.mount_count);
        self.s_max_mnt_count.set(from.max_mount_count);
        self.s_checkinterval.set(from.check_interval);
        self.s_kbytes_written.set(from.kbytes_written);
    }

    fn encode_identity(&mut self, from: &Superblock) {
        self.s_state.set(from.state.0);
        self.s_errors.set(from.errors);
        self.s_creator_os.set(from.creator_os);
        (self.s_def_resuid, self.s_def_resgid) =
            (U16::new(from.reserve_owner.0), U16::new(from.reserve_owner.1));
        self.s_feature_compat.set(from.compat.0);
        self.s_feature_incompat.set(from.incompat.0);
        self.s_feature_ro_compat.set(from.ro_compat.0);
        self.s_uuid = from.uuid;
        self.s_volume_name = from.label;
        self.s_last_mounted = from.last_mounted;
        self.s_checksum_type = from.checksum_type;
        self.s_checksum_seed.set(from.checksum_seed);
    }

    fn encode_journal(&mut self, from: &Superblock) {
        self.s_journal_uuid = from.journal_uuid;
        self.s_journal_inum.set(from.journal_ino.0);
        self.s_journal_dev.set(from.journal_dev);
        self.s_last_orphan.set(from.last_orphan.0);
        self.s_orphan_file_inum.set(from.orphan_file_ino.0);
        self.s_mmp_block.set(from.mmp_block.0);
        self.s_jnl_backup_type = from.journal_backup_type;
        self.s_jnl_blocks = from.journal_backup.map(U32::new);
    }

    fn encode_tuning(&mut self, from: &Superblock) {
        self.s_hash_seed = from.hash_seed.map(U32::new);
        self.s_def_hash_version = from.hash_version;
        self.s_default_mount_opts.set(from.default_mount_opts);
        self.s_min_extra_isize.set(from.min_extra_isize);
        self.s_want_extra_isize.set(from.want_extra_isize);
        self.s_flags.set(from.flags);
        self.s_raid_stride.set(from.raid_stride);
        self.s_raid_stripe_width.set(from.raid_stripe_width);
        self.s_mount_opts = from.mount_opts;
        self.s_lpf_ino.set(from.lost_found_ino.0);
        self.s_prj_quota_inum.set(from.project_quota_ino.0);
    }

    fn encode_errors(&mut self, from: &Superblock) {
        self.s_error_count.set(from.error_count);
        let first = &from.first_error;
        (self.s_first_error_time, self.s_first_error_time_hi) = split_time(first.time);
        self.s_first_error_ino.set(first.ino.0);
        self.s_first_error_block.set(first.block.0);
        self.s_first_error_func = first.function;
        self.s_first_error_line.set(first.line);
        self.s_first_error_errcode = first.code;
        let last = &from.last_error;
        (self.s_last_error_time, self.s_last_error_time_hi) = split_time(last.time);
        self.s_last_error_ino.set(last.ino.0);
        self.s_last_error_block.set(last.block.0);
        self.s_last_error_func = last.function;
        self.s_last_error_line.set(last.line);
        self.s_last_error_errcode = last.code;
    }
}
