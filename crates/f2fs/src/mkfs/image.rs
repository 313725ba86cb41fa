//! The blocks of a new volume.

use dovetail_block::{BlockBytes, BlockRange, DeviceInfo, DriveSerial, Lba};

use super::geometry::Areas;
use super::logs::first_segments;
use super::reserve::Reserve;
use super::room::Room;
use super::{MkfsError, MkfsOptions};
use crate::format::{
    BLOCK, BLOCKS_IN_SEGMENT, Bitmaps, BlockAddr, Checkpoint, CheckpointFlags, DentryBlockMut,
    Features, FileType, Footer, InlineFlags, LogPosition, NatEntry, Nid, RawInode, SegNo, SitEntry,
    Summary, SummaryKind, Superblock, Variant, compact_summaries, name_hash, nat_bits_blocks,
    new_nat_bits, seal_inode, set_msb_first, set_nat_entry, summary_block,
};

pub(super) const ROOT: Nid = Nid(3);
const LOST_FOUND: Nid = Nid(4);
/// The NAT's entries of nids 1 and 2, which have no node, have this address.
pub(super) const NO_NODE: BlockAddr = BlockAddr(1);
/// Logs of hot data and hot nodes, in the checkpoint's order.
pub(super) const HOT_DATA: usize = 0;
pub(super) const HOT_NODE: usize = 3;
const WARM_NODE: usize = 4;
/// The version that footers of a new volume's nodes carry.
const FOOTER_VERSION: u64 = 1;
/// The version of mkfs.f2fs whose format this is.
const FORMAT_VERSION: (u16, u16) = (1, 15);

/// A directory of a new volume; the n-th one has the n-th block of the hot node and hot data log.
pub(super) struct Directory {
    pub(super) ino: Nid,
    parent: Nid,
    name: &'static [u8],
    mode: u16,
    /// Entry beside those of itself and its parent.
    child: Option<(&'static [u8], Nid)>,
}

/// A new volume: what is to be written, and where.
pub(super) struct Image {
    pub(super) superblock: Superblock,
    pub(super) checkpoint: Checkpoint,
    /// Everything was discarded: `zero` is zero already.
    pub(super) discarded: bool,
    /// Blocks that must read as zeros.
    pub(super) zero: Vec<BlockRange>,
    /// All blocks but the superblocks.
    pub(super) blocks: Vec<(BlockAddr, BlockBytes)>,
    /// Both superblocks.
    pub(super) superblock_block: BlockBytes,
}

impl Image {
    /// The volume on a device on which everything is discarded first, or nothing; zones are reset.
    pub(super) fn new(info: &DeviceInfo, options: &MkfsOptions) -> Result<Self, MkfsError> {
        options.check()?;
        let discarded = info.capabilities.discard;
        let room = Room::new(info, options)?;
        let areas = Areas::new(&room, options)?;
        let reserve = Reserve::new(&areas, options.overprovision_percent, &room)?;
        let superblock = Superblock {
            devices: room.devices.clone(),
            ..superblock(room.blocks, &areas, options)
        };
        let directories = directories(options.features);
        let segments = first_segments(&areas, options);
        let mut checkpoint =
            checkpoint(&superblock, &areas, &reserve, segments, directories.len() as u32, options);
        let trimmed = discarded || room.sequential.is_some();
        checkpoint.flags = flags(&superblock, checkpoint.total_blocks, options.large_nat, trimmed);
        let superblock_block = superblock.encode(&[0; BLOCK]);
        let mut image = Self {
            superblock,
            checkpoint,
            discarded,
            zero: Vec::new(),
            blocks: Vec::new(),
            superblock_block,
        };
        image.clear_tables(room.sequential);
        image.put_directories(&directories, options);
        image.put_packs(&directories);
        Ok(image)
    }

    fn main_block(&self, log: usize, offset: u32) -> BlockAddr {
        let segment = self.checkpoint.logs[log].segment.0;
        self.superblock
            .main_start
            .plus(u64::from(segment) * u64::from(BLOCKS_IN_SEGMENT) + u64::from(offset))
    }

    /// The first copies of SIT and NAT are the current ones. The first block of the warm node log
    /// would lead the search for what was fsynced into nodes of another volume.
    fn clear_tables(&mut self, sequential: Option<Lba>) {
        let sb = &self.superblock;
        let range = |start: BlockAddr, blocks: u32| BlockRange::new(Lba(start.0), blocks.into());
        self.zero.push(range(sb.sit_start, sb.segment_count_sit / 2 * BLOCKS_IN_SEGMENT));
        let pairs = (0..sb.segment_count_nat).step_by(2);
        let nat = |segment: u32| sb.nat_start.plus(u64::from(segment * BLOCKS_IN_SEGMENT));
        self.zero.extend(pairs.map(|segment| range(nat(segment), BLOCKS_IN_SEGMENT)));
        let first_record = range(self.main_block(WARM_NODE, 0), 1);
        if sequential.is_none_or(|from| first_record.start < from) {
            self.zero.push(first_record);
        }
        let second = sb.cp_start.plus(BLOCKS_IN_SEGMENT.into());
        self.zero.push(range(second.plus(1), sb.cp_payload));
    }

    fn put_directories(&mut self, directories: &[Directory], options: &MkfsOptions) {
        let mut nat = [0; BLOCK];
        for nid in [Nid(1), Nid(2)] {
            set_nat_entry(
                &mut nat,
                nid,
                NatEntry { version: 0, ino: nid, address: NO_NODE },
                Variant::F2fs,
            );
        }
        for (directory, n) in directories.iter().zip(0..) {
            let (node, data) = (self.main_block(HOT_NODE, n), self.main_block(HOT_DATA, n));
            let inode = inode(directory, node, data, &self.superblock, options);
            self.blocks.push((node, inode));
            self.blocks.push((data, entries(directory)));
        }
        set_nat_entry(&mut nat, ROOT, nat_entry(ROOT, self.main_block(HOT_NODE, 0)), Variant::F2fs); // the journal has the others
        self.blocks.push((self.superblock.nat_start, nat));
    }

    /// The first pack counts; the second is of version 0.
    fn put_packs(&mut self, directories: &[Directory]) {
        let sb = &self.superblock;
        let base = base_head();
        let bitmap = |segments: u32| vec![0; (segments / 2 * (BLOCKS_IN_SEGMENT / 8)) as usize];
        let bitmaps =
            Bitmaps { sit: bitmap(sb.segment_count_sit), nat: bitmap(sb.segment_count_nat) };
        let (head, checksum) = self.checkpoint.encode(&bitmaps, sb, &base);
        self.checkpoint.checksum = checksum;
        let mut pack = head.clone();
        pack.push(self.data_summaries(directories));
        pack.extend(node_summaries(directories));
        pack.push(head[0]);
        let start = sb.cp_start;
        let mut blocks: Vec<_> = (start.0..).map(BlockAddr).zip(pack).collect();
        if self.checkpoint.flags.has(CheckpointFlags::NAT_BITS) {
            let bits = new_nat_bits(sb, self.checkpoint.version, checksum);
            let first = start.plus(u64::from(BLOCKS_IN_SEGMENT) - bits.len() as u64);
            blocks.extend((first.0..).map(BlockAddr).zip(bits));
        }
        let older = Checkpoint { version: 0, ..self.checkpoint.clone() };
        let head = older.encode(&bitmaps, sb, &base).0[0];
        let second = start.plus(BLOCKS_IN_SEGMENT.into());
        blocks.push((second, head));
        blocks.push((second.plus(u64::from(older.total_blocks) - 1), head));
        self.blocks.extend(blocks);
    }

    /// Compacted, with the journals: the inodes' NAT entries and the SIT entries of the six logs.
    fn data_summaries(&self, directories: &[Directory]) -> BlockBytes {
        let none = [Summary::default(); 512];
        let mut hot = none;
        for (entry, directory) in hot.iter_mut().zip(directories) {
            entry.nid = directory.ino;
        }
        let nat: Vec<_> = directories
            .iter()
            .zip(0..)
            .map(|(directory, n)| {
                (directory.ino, nat_entry(directory.ino, self.main_block(HOT_NODE, n)))
            })
            .collect();
        // the journal lists nodes first
        let sit: Vec<_> = [3, 4, 5, 0, 1, 2].map(|log| self.sit_entry(log)).to_vec();
        compact_summaries([(&hot, directories.len()), (&none, 0), (&none, 0)], &nat, &sit)[0]
    }

    fn sit_entry(&self, log: usize) -> (SegNo, SitEntry) {
        let position = self.checkpoint.logs[log];
        let mut valid_map = [0; 64];
        (0..position.offset.into()).for_each(|block| set_msb_first(&mut valid_map, block, true));
        let valid_blocks = position.offset.into();
        (position.segment, SitEntry { valid_blocks, log: log as u8, valid_map, mtime_s: 0 })
    }
}

pub(super) fn nat_entry(ino: Nid, address: BlockAddr) -> NatEntry {
    NatEntry { version: 0, ino, address }
}

/// Hot, warm and cold nodes.
fn node_summaries(directories: &[Directory]) -> [BlockBytes; 3] {
    let none = [Summary::default(); 512];
    let mut hot = none;
    for (entry, directory) in hot.iter_mut().zip(directories) {
        entry.nid = directory.ino;
    }
    [hot, none, none].map(|entries| summary_block(&entries, SummaryKind::Node))
}

/// A checkpoint has room for eight logs of each kind; those beyond the three have no segment.
fn base_head() -> BlockBytes {
    let mut head = [0; BLOCK];
    head[36 + 3 * 4..36 + 8 * 4].fill(0xFF);
    head[84 + 3 * 4..84 + 8 * 4].fill(0xFF);
    head
}

pub(super) fn directories(features: Features) -> Vec<Directory> {
    const NAME: &[u8] = b"lost+found";
    let with_lost_found = features.has(Features::LOST_FOUND);
    let root = Directory {
        ino: ROOT,
        parent: ROOT,
        name: b"",
        mode: 0o040_755,
        child: with_lost_found.then_some((NAME, LOST_FOUND)),
    };
    let lost_found =
        Directory { ino: LOST_FOUND, parent: ROOT, name: NAME, mode: 0o040_700, child: None };
    [root].into_iter().chain(with_lost_found.then_some(lost_found)).collect()
}

pub(super) fn entries(directory: &Directory) -> BlockBytes {
    let mut block = [0; BLOCK];
    let mut entries = DentryBlockMut::block(&mut block);
    entries.insert(b".", 0, directory.ino, FileType::DIRECTORY);
    entries.insert(b"..", 0, directory.parent, FileType::DIRECTORY);
    if let Some((name, ino)) = directory.child {
        entries.insert(name, name_hash(name), ino, FileType::DIRECTORY);
    }
    block
}

pub(super) fn inode(
    directory: &Directory,
    node: BlockAddr,
    data: BlockAddr,
    superblock: &Superblock,
    options: &MkfsOptions,
) -> BlockBytes {
    let mut block = [0; BLOCK];
    let raw = RawInode::of_mut(&mut block);
    raw.i_mode.set(directory.mode);
    raw.i_uid.set(options.root_owner.0);
    raw.i_gid.set(options.root_owner.1);
    raw.i_links.set(2 + u32::from(directory.child.is_some()));
    raw.i_size.set(BLOCK as u64);
    raw.i_blocks.set(2);
    for (seconds, nanoseconds) in [
        (&mut raw.i_atime, &mut raw.i_atime_nsec),
        (&mut raw.i_ctime, &mut raw.i_ctime_nsec),
        (&mut raw.i_mtime, &mut raw.i_mtime_nsec),
    ] {
        seconds.set(options.time.seconds as u64);
        nanoseconds.set(options.time.nanoseconds);
    }
    raw.i_current_depth.set(1);
    if !directory.name.is_empty() {
        raw.i_pino.set(directory.parent.0);
        raw.i_namelen.set(directory.name.len() as u32);
        raw.i_name[..directory.name.len()].copy_from_slice(directory.name);
    }
    set_extra(raw, superblock.features, options);
    let pointer = raw.geometry(superblock.layout()).pointer_at(0);
    superblock.variant.put_address(&mut block, pointer, data);
    let (nid, checkpoint) = (directory.ino, FOOTER_VERSION);
    let next = Footer::next_of(superblock.variant, node, node.plus(1));
    let footer = Footer {
        nid,
        ino: nid,
        cold: false,
        fsync_mark: false,
        dentry_mark: false,
        node_offset: 0,
        checkpoint,
        next,
    };
    footer.write(&mut block);
    seal_inode(&mut block, superblock);
    block
}

/// As many extra attributes as the features use.
fn set_extra(raw: &mut RawInode, features: Features, options: &MkfsOptions) {
    if !features.has(Features::EXTRA_ATTR) {
        return;
    }
    let sizes = [
        (Features::EXTRA_ATTR, 4),
        (Features::PROJECT_QUOTA, 8),
        (Features::INODE_CHECKSUM, 12),
        (Features::INODE_CRTIME, 24),
        (Features::COMPRESSION, 36),
    ];
    let size =
        sizes.into_iter().filter(|(feature, _)| features.has(*feature)).map(|(_, size)| size).max();
    raw.i_inline = InlineFlags::EXTRA_ATTR.0;
    raw.extra.i_extra_isize.set(size.unwrap_or(4));
    if features.has(Features::INODE_CRTIME) {
        raw.extra.i_crtime.set(options.time.seconds as u64);
        raw.extra.i_crtime_nsec.set(options.time.nanoseconds);
    }
}

fn superblock(blocks: u64, areas: &Areas, options: &MkfsOptions) -> Superblock {
    let after =
        |start: BlockAddr, segments: u32| start.plus(u64::from(segments * BLOCKS_IN_SEGMENT));
    let cp_start = BlockAddr(areas.start.into());
    let sit_start = after(cp_start, 2);
    let nat_start = after(sit_start, areas.sit);
    let ssa_start = after(nat_start, areas.nat);
    Superblock {
        capacity: blocks,
        nat_blocks: areas.nat / 2 * BLOCKS_IN_SEGMENT,
        segments_per_section: areas.segments_per_section,
        sections_per_zone: areas.sections_per_zone,
        block_count: blocks,
        section_count: areas.sections,
        segment_count: areas.segments,
        segment_count_sit: areas.sit,
        segment_count_nat: areas.nat,
        segment_count_ssa: areas.ssa,
        segment_count_main: areas.main,
        cp_start,
        sit_start,
        nat_start,
        ssa_start,
        main_start: after(ssa_start, areas.ssa),
        cp_payload: areas.cp_payload,
        ..named_superblock(options)
    }
}

/// A superblock with what options say of the volume, and no place for anything.
pub(super) fn named_superblock(options: &MkfsOptions) -> Superblock {
    let list =
        |extensions: &[String]| extensions.iter().map(|one| one.as_bytes().to_vec()).collect();
    let casefold = options.features.has(Features::CASEFOLD);
    Superblock {
        variant: Variant::F2fs,
        devirtualized: false,
        drive: DriveSerial::default(),
        capacity: 0,
        nat_blocks: 0,
        pack_blocks: BLOCKS_IN_SEGMENT,
        version: FORMAT_VERSION,
        log_sector_size: 9,
        segments_per_section: 1,
        sections_per_zone: 1,
        block_count: 0,
        section_count: 0,
        segment_count: 0,
        segment_count_sit: 0,
        segment_count_nat: 0,
        segment_count_ssa: 0,
        segment_count_main: 0,
        cp_start: BlockAddr::NULL,
        sit_start: BlockAddr::NULL,
        nat_start: BlockAddr::NULL,
        ssa_start: BlockAddr::NULL,
        main_start: BlockAddr::NULL,
        cp_payload: 0,
        root: ROOT,
        uuid: options.uuid,
        label: options.label.clone(),
        cold_extensions: list(&options.cold_extensions),
        hot_extensions: list(&options.hot_extensions),
        encoding: (u16::from(casefold), 0),
        features: options.features,
        devices: Vec::new(),
        quota_files: [Nid::NONE; 3],
        last_kernel: made_by(),
        made_by: made_by(),
    }
}

fn made_by() -> String {
    format!("Dovetail {}", env!("CARGO_PKG_VERSION"))
}

/// As after a clean unmount.
fn flags(
    superblock: &Superblock,
    pack_blocks: u32,
    large_nat: bool,
    discarded: bool,
) -> CheckpointFlags {
    let nat_bits = pack_blocks + nat_bits_blocks(superblock) <= BLOCKS_IN_SEGMENT;
    let flags = [
        (CheckpointFlags::UMOUNT, true),
        (CheckpointFlags::COMPACT, true),
        (CheckpointFlags::NAT_BITS, nat_bits),
        (CheckpointFlags::TRIMMED, discarded),
        (CheckpointFlags::LARGE_NAT, large_nat),
    ];
    let set = flags.into_iter().filter(|(_, set)| *set);
    set.fold(CheckpointFlags(0), |all, (flag, _)| all.with(flag))
}

fn checkpoint(
    superblock: &Superblock,
    areas: &Areas,
    reserve: &Reserve,
    segments: [SegNo; 6],
    directories: u32,
    options: &MkfsOptions,
) -> Checkpoint {
    let mut logs = segments.map(|segment| LogPosition { segment, offset: 0, in_holes: false });
    logs[HOT_DATA].offset = directories as u16;
    logs[HOT_NODE].offset = directories as u16;
    let total_blocks = 1 + superblock.cp_payload + 1 + 3 + 1;
    let main = areas.usable;
    Checkpoint {
        pack: 1,
        version: options.checkpoint_version,
        user_block_count: u64::from(main - reserve.overprovision) * u64::from(BLOCKS_IN_SEGMENT),
        valid_block_count: u64::from(2 * directories),
        reserved_segments: reserve.reserved,
        overprovision_segments: reserve.overprovision,
        free_segments: main - segments.len() as u32,
        logs,
        positions: [BlockAddr::NULL; 6],
        discard_log_bytes: 0,
        discard_log_checksum: 0,
        flags: CheckpointFlags(0),
        total_blocks,
        summary_start: 1 + superblock.cp_payload,
        valid_nodes: directories,
        valid_inodes: directories,
        next_free_nid: ROOT.0 + directories,
        elapsed_s: 0,
        checksum: 0,
    }
}
