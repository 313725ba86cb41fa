//! The blocks of a new IPLFS volume: metadata at the start of area 0, six logs at the start of
//! theirs.

use dovetail_block::{AREA_BLOCKS, AREAS, BlockBytes, DeviceInfo};

use super::image::{self, Directory, HOT_DATA, HOT_NODE, Image, ROOT};
use super::{MkfsError, MkfsOptions};
use crate::format::{
    BLOCK, BLOCKS_IN_SEGMENT, Bitmaps, BlockAddr, Checkpoint, CheckpointFlags, IPLFS_SECTION,
    LogPosition, MIN_CAPACITY, NatEntry, Nid, Superblock, area_start, discard_log_checksum,
    iplfs_log_blocks, iplfs_orphan_blocks, iplfs_payload, set_nat_entry,
};

/// The start of the packs: the superblocks have a segment for themselves, as with F2FS.
const PACKS: u64 = BLOCKS_IN_SEGMENT as u64;
/// The share of the space for files that users do not get: a 32nd, and 256 blocks at least, so that
/// an overwrite finds space before what it replaces is discarded. Assumed.
const SLACK_SHARE: u64 = 32;
const MIN_SLACK: u64 = 256;
/// Blocks that users get at least.
const MIN_USER: u64 = 128;

impl Image {
    /// An IPLFS volume on a thin device.
    pub(super) fn iplfs(info: &DeviceInfo, options: &MkfsOptions) -> Result<Self, MkfsError> {
        options.check()?;
        let thin = info
            .capabilities
            .thin
            .filter(|_| info.capabilities.discard)
            .ok_or(MkfsError::NotThin)?;
        let needed = AREAS * AREA_BLOCKS;
        if info.blocks < needed {
            return Err(MkfsError::TooFewAddresses { blocks: info.blocks, needed });
        }
        let superblock = superblock(thin.capacity, options)?;
        let directories = image::directories(options.features);
        let user_blocks = user_blocks(&superblock)?;
        let checkpoint = checkpoint(&superblock, user_blocks, directories.len() as u32, options)?;
        let superblock_block = superblock.encode(&[0; BLOCK]);
        let mut image = Self {
            superblock,
            checkpoint,
            discarded: true,
            zero: Vec::new(),
            blocks: Vec::new(),
            superblock_block,
        };
        image.put_iplfs_directories(&directories, options);
        image.put_iplfs_pack();
        Ok(image)
    }

    /// Each directory has the next block of the hot node log and of the hot data log.
    fn put_iplfs_directories(&mut self, directories: &[Directory], options: &MkfsOptions) {
        let variant = self.superblock.variant;
        let mut nat: BlockBytes = [0; BLOCK];
        for nid in [Nid(1), Nid(2)] {
            set_nat_entry(
                &mut nat,
                nid,
                NatEntry { version: 0, ino: nid, address: image::NO_NODE },
                variant,
            );
        }
        for directory in directories {
            let (node, data) = (self.take_next(HOT_NODE), self.take_next(HOT_DATA));
            let inode = image::inode(directory, node, data, &self.superblock, options);
            self.blocks.push((node, inode));
            self.blocks.push((data, image::entries(directory)));
            set_nat_entry(&mut nat, directory.ino, image::nat_entry(directory.ino, node), variant);
        }
        self.blocks.push((self.superblock.nat_start, nat));
    }

    fn take_next(&mut self, log: usize) -> BlockAddr {
        let address = self.checkpoint.positions[log];
        self.checkpoint.positions[log] = address.plus(1);
        address
    }

    /// The first pack alone: where the second will be nothing is mapped.
    fn put_iplfs_pack(&mut self) {
        let bitmaps = Bitmaps {
            sit: Vec::new(),
            nat: vec![0; self.superblock.nat_blocks.div_ceil(8) as usize],
        };
        let (mut pack, checksum) = self.checkpoint.encode_iplfs(&bitmaps, &[], &self.superblock);
        self.checkpoint.checksum = checksum;
        pack.push(pack[0]);
        self.blocks.extend((self.superblock.cp_start.0..).map(BlockAddr).zip(pack));
    }
}

fn superblock(capacity: u64, options: &MkfsOptions) -> Result<Superblock, MkfsError> {
    let variant = options.variant;
    let short = |short| MkfsError::NoRoom { capacity, short };
    if capacity < MIN_CAPACITY {
        return Err(short("1024 blocks are needed at least"));
    }
    let most = variant.area_blocks();
    if capacity > most {
        return Err(MkfsError::CapacityBeyondArea { capacity, most });
    }
    let nids = capacity.min((u32::MAX - variant.nat_entries_in_block()).into());
    let nat_blocks = nids.div_ceil(variant.nat_entries_in_block().into()) as u32;
    let cp_payload = iplfs_payload(nat_blocks);
    let log_blocks = options.discard_log_blocks.unwrap_or(iplfs_log_blocks(capacity)).max(1);
    let pack_blocks = log_blocks.saturating_add(2 + cp_payload + iplfs_orphan_blocks(capacity));
    if u64::from(pack_blocks) > capacity {
        return Err(short("the checkpoint packs"));
    }
    Ok(Superblock {
        variant,
        capacity,
        nat_blocks,
        pack_blocks,
        segments_per_section: IPLFS_SECTION,
        sections_per_zone: 1,
        block_count: AREAS * AREA_BLOCKS,
        section_count: 0,
        segment_count: 0,
        segment_count_sit: 0,
        segment_count_nat: 0,
        segment_count_ssa: 0,
        segment_count_main: 0,
        cp_start: BlockAddr(PACKS),
        sit_start: BlockAddr::NULL,
        nat_start: BlockAddr(PACKS + 2 * u64::from(pack_blocks)),
        ssa_start: BlockAddr::NULL,
        main_start: BlockAddr(AREA_BLOCKS),
        cp_payload,
        ..image::named_superblock(options)
    })
}

/// Blocks that users may fill.
fn user_blocks(superblock: &Superblock) -> Result<u64, MkfsError> {
    let room = superblock.room_for_files();
    let user = room.saturating_sub((room / SLACK_SHARE).max(MIN_SLACK));
    let capacity = superblock.capacity;
    if user < MIN_USER {
        Err(MkfsError::NoRoom { capacity, short: "nothing is left for files" })
    } else {
        Ok(user)
    }
}

fn checkpoint(
    superblock: &Superblock,
    user_block_count: u64,
    directories: u32,
    options: &MkfsOptions,
) -> Result<Checkpoint, MkfsError> {
    let area = superblock.variant.area_blocks();
    if options.log_start > area - u64::from(directories) {
        return Err(MkfsError::LogStart { start: options.log_start, area });
    }
    Ok(Checkpoint {
        pack: 1,
        version: options.checkpoint_version,
        user_block_count,
        valid_block_count: u64::from(2 * directories),
        reserved_segments: 0,
        overprovision_segments: 0,
        free_segments: 0,
        logs: [LogPosition::default(); 6],
        positions: std::array::from_fn(|log| area_start(log).plus(options.log_start)),
        discard_log_bytes: 0,
        discard_log_checksum: discard_log_checksum(&[]),
        flags: CheckpointFlags::UMOUNT.with(CheckpointFlags::TRIMMED),
        total_blocks: 2 + superblock.cp_payload,
        summary_start: 1 + superblock.cp_payload,
        valid_nodes: directories,
        valid_inodes: directories,
        next_free_nid: ROOT.0 + directories,
        elapsed_s: 0,
        checksum: 0,
    })
}
