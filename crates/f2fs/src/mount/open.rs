//! Mounting: the state of the last checkpoint in memory, orphans gone, fsynced files rolled forward.

use std::collections::BTreeSet;

use dovetail_block::Scheduler;
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Moment, PageCache};
use rustc_hash::FxHashMap;

use super::background::Background;
use super::cleaner::Cleaner;
use super::discard::DiscardQueue;
use super::endless::Endless;
use super::io::Io;
use super::logs::CurrentSegment;
use super::nat::NatTable;
use super::nodes::NodeCache;
use super::physical::Physical;
use super::policy::Log;
use super::segments::Segments;
use super::slots::Slots;
use super::{AllocMode, Counts, Events, F2fs, IpuPolicy, Options, SinceCheckpoint, Unflushed};
use crate::error::{Corrupt, Error, Incompatible, Place};
use crate::format::{
    BLOCK, BLOCKS_IN_SEGMENT, BlockAddr, Checkpoint, CheckpointFlags, Features, Footer, Nid,
    SIT_ENTRIES_IN_BLOCK, SegNo, SitEntry, Summary, Superblock, Variant, compact_block_count, parse_compact,
    parse_orphans, sit_block_address, sit_entry, summaries, written_kib,
};
use crate::volume::Volume;

/// The owners of a segment's blocks.
type Summaries = Box<[Summary; 512]>;

/// Features whose structures are kept right by every change.
const WRITABLE: Features = Features(
    Features::ENCRYPT.0
        | Features::EXTRA_ATTR.0
        | Features::PROJECT_QUOTA.0
        | Features::INODE_CHECKSUM.0
        | Features::FLEXIBLE_INLINE_XATTR.0
        | Features::INODE_CRTIME.0
        | Features::LOST_FOUND.0
        | Features::VERITY.0
        | Features::SB_CHECKSUM.0
        | Features::COMPRESSION.0,
);

impl<D: Scheduler> F2fs<D> {
    /// Mounts the volume on `device` at virtual time `now`. What fsyncs wrote after the last checkpoint is recovered,
    /// which ends with a checkpoint.
    ///
    /// # Errors
    /// What [`Volume::open`] says; [`Error::Incompatible`] for a volume that can be read but not written (mount it with
    /// `ro`); [`Error::Corrupt`] for tables that contradict each other.
    pub fn mount(device: D, options: Options, now: impl Into<Moment>) -> Result<Self, Error> {
        let now = now.into().time;
        Self::check_remap(&device, &options)?;
        let mut volume = Volume::open(device)?;
        let mut options = options;
        let endless = Self::open_endless(&mut volume, &mut options)?;
        if !options.read_only {
            check_writable_volume(volume.superblock(), volume.checkpoint())?;
        }
        let mut fs = Self::from_volume(volume, options, now)?;
        fs.endless = endless;
        fs.check_counts()?;
        fs.open_places()?;
        if !fs.read_only {
            let listed = fs.read_orphans()?;
            fs.recovering = true;
            fs.recover(&listed)?;
            fs.recovering = false;
            fs.recover_places()?;
        }
        Ok(fs)
    }

    /// The space of an endless volume, if it is one; options that decide nothing there are set aside.
    fn open_endless(volume: &mut Volume<D>, options: &mut Options) -> Result<Option<Endless>, Error> {
        if volume.superblock().variant == Variant::F2fs {
            return Ok(None);
        }
        options.check_endless()?;
        options.mode = super::Mode::Lfs;
        options.background_gc = super::BackgroundGc::Off;
        options.gc_urgent = false;
        let info = volume.device_info();
        let (thin, capacity) = (info.capabilities.thin, volume.superblock().capacity);
        let thin = thin.filter(|_| info.capabilities.discard).ok_or(Incompatible::NotThin)?;
        if thin.capacity < capacity {
            return Err(Corrupt::Truncated { found: thin.capacity, expected: capacity }.into());
        }
        let log = volume.discard_log()?;
        Ok(Some(Endless::new(volume.superblock(), volume.checkpoint(), log)))
    }

    fn from_volume(volume: Volume<D>, options: Options, now: SimTime) -> Result<Self, Error> {
        let Volume { blocks, superblock, checkpoint, bitmaps, nat_journal, sit_journal, .. } = volume;
        let mut io = Io::new(blocks.into_device(), now);
        let last_nid = u64::from(superblock.max_nid()) - 1;
        for nid in nat_journal.keys() {
            Corrupt::check_range(Place::Nat(*nid), "nid in the journal", nid.0, (0, last_nid))?;
        }
        let head = io.read(pack_start(&superblock, &checkpoint))?;
        let mut entries = read_sit(&mut io, &superblock, &bitmaps.sit)?;
        for (segno, entry) in &sit_journal {
            let last = u64::from(superblock.segment_count_main - 1);
            Corrupt::check_range(Place::Sit(segno.0), "segno in the journal", segno.0, (0, last))?;
            entries[segno.0 as usize] = entry.clone();
        }
        let mut segments = Segments::load(&superblock, &entries)?;
        let (logs, written_kib) = read_logs(&mut io, &superblock, &checkpoint, &segments)?;
        let taken = logs.iter().map(|log| log.segno).filter(|segno| segno.0 < segments.len());
        taken.collect::<Vec<_>>().into_iter().for_each(|segno| segments.take(segno));
        let small = options.is_small(superblock.segment_count_main);
        let alloc_mode = options.alloc.unwrap_or(if small { AllocMode::Reuse } else { AllocMode::Default });
        let counts = Counts {
            valid_blocks: checkpoint.valid_block_count,
            valid_nodes: checkpoint.valid_nodes,
            valid_inodes: checkpoint.valid_inodes,
        };
        Ok(Self {
            ipu_policy: options.ipu_policy.unwrap_or(IpuPolicy::default_for(small)),
            alloc_mode,
            segments,
            logs,
            endless: None,
            nat: NatTable::new(
                superblock.variant,
                superblock.max_nid(),
                checkpoint.next_free_nid,
                nat_journal,
            ),
            nodes: NodeCache::new((options.node_cache_bytes / BLOCK as u64) as usize),
            pages: PageCache::new((options.page_cache_bytes / BLOCK as u64) as usize),
            dirty_dents: Default::default(),
            counts,
            since: SinceCheckpoint::default(),
            slots: Slots::new(superblock.segments_per_section),
            committing: false,
            unflushed: Unflushed::default(),
            time_only: BTreeSet::new(),
            orphans: BTreeSet::new(),
            orphan_devices: FxHashMap::default(),
            holds: FxHashMap::default(),
            cleaner: Cleaner::default(),
            discards: DiscardQueue::default(),
            physical: Physical::default(),
            background: Background::new(now, checkpoint.elapsed_s, options.gc_urgent),
            events: Events::default(),
            random: Rng::new(options.seed ^ checkpoint.version),
            mounted_at: now,
            recovering: false,
            read_only: options.read_only,
            stopped: false,
            written_kib,
            sit_journal: sit_journal.keys().copied().collect(),
            io,
            superblock,
            checkpoint,
            head,
            bitmaps,
            options,
        })
    }

    /// The checks of the tables against each other that the kernel makes as well.
    fn check_counts(&self) -> Result<(), Error> {
        let place = Place::Checkpoint(self.checkpoint.pack);
        let user = self.checkpoint.user_block_count;
        if self.endless.is_some() {
            Corrupt::check_range(place, "valid_block_count", self.counts.valid_blocks, (1, user))?;
            let nodes = u64::from(self.counts.valid_nodes);
            let most = self.counts.valid_blocks.min(self.superblock.max_nid().into());
            Corrupt::check_range(place, "valid_node_count", nodes, (1, most))?;
            Corrupt::check_range(place, "valid_inode_count", self.counts.valid_inodes, (1, nodes))?;
            return Ok(());
        }
        let main = u64::from(self.segments.len()) * u64::from(BLOCKS_IN_SEGMENT);
        Corrupt::check_range(place, "user_block_count", user, (1, main))?;
        Corrupt::check_range(place, "valid_block_count", self.counts.valid_blocks, (1, user))?;
        let blocks = self.segments.valid_blocks();
        Corrupt::check_range(place, "the SIT's valid blocks", blocks, (0, self.counts.valid_blocks))?;
        let nodes: u64 = (0..self.segments.len())
            .map(|segno| self.segments.get(SegNo(segno)))
            .filter(|segment| segment.log >= 3)
            .map(|segment| u64::from(segment.valid))
            .sum();
        if self.superblock.devirtualized {
            // nodes at places of the device are in no segment
            Corrupt::check_range(
                place,
                "valid_node_count",
                self.counts.valid_nodes,
                (nodes, u32::MAX.into()),
            )?;
        } else {
            Corrupt::check_equal(place, "valid_node_count", self.counts.valid_nodes, nodes)?;
        }
        Corrupt::check_range(
            place,
            "valid_inode_count",
            self.counts.valid_inodes,
            (1, self.counts.valid_nodes.into()),
        )?;
        let reserved = u64::from(self.checkpoint.reserved_segments);
        Corrupt::check_range(place, "rsvd_segment_count", reserved, (1, self.segments.len().into()))?;
        Ok(())
    }

    fn read_orphans(&mut self) -> Result<Vec<Nid>, Error> {
        let mut listed = Vec::new();
        if !self.checkpoint.flags.has(CheckpointFlags::ORPHAN) {
            return Ok(listed);
        }
        let start = pack_start(&self.superblock, &self.checkpoint);
        for offset in 1 + self.superblock.cp_payload..self.checkpoint.summary_start {
            listed.extend(parse_orphans(&*self.io.read(start.plus(offset.into()))?));
        }
        Ok(listed)
    }
}

/// Refuses to write where something is not kept right, or is not right already.
fn check_writable_volume(superblock: &Superblock, checkpoint: &Checkpoint) -> Result<(), Error> {
    let unmaintained = superblock.features.without(WRITABLE);
    if unmaintained != Features(0) {
        return Err(Incompatible::Unmaintained(unmaintained).into());
    }
    let refused = CheckpointFlags::ERROR.0
        | CheckpointFlags::FSCK.0
        | CheckpointFlags::QUOTA_NEED_FSCK.0
        | CheckpointFlags::DISABLED.0
        | CheckpointFlags::DISABLED_QUICK.0
        | CheckpointFlags::RESIZEFS.0;
    let found = CheckpointFlags(checkpoint.flags.0 & refused);
    if found != CheckpointFlags(0) {
        return Err(Incompatible::CheckpointState(found).into());
    }
    Ok(())
}

fn pack_start(superblock: &Superblock, checkpoint: &Checkpoint) -> BlockAddr {
    crate::volume::open::pack_start(superblock, checkpoint.pack)
}

/// The entries of all segments as the table has them.
fn read_sit<D: Scheduler>(
    io: &mut Io<D>,
    superblock: &Superblock,
    bitmap: &[u8],
) -> Result<Vec<SitEntry>, Error> {
    let count = superblock.segment_count_main;
    let mut entries = Vec::new();
    for first in (0..count).step_by(SIT_ENTRIES_IN_BLOCK as usize) {
        let block = io.read(sit_block_address(superblock, bitmap, SegNo(first)))?;
        let last = (first + SIT_ENTRIES_IN_BLOCK).min(count);
        entries.extend((first..last).map(|segno| sit_entry(&block, SegNo(segno))));
    }
    Ok(entries)
}

/// The six logs with the summaries of their segments, and how many KiB were ever written.
fn read_logs<D: Scheduler>(
    io: &mut Io<D>,
    superblock: &Superblock,
    checkpoint: &Checkpoint,
    segments: &Segments,
) -> Result<([CurrentSegment; 6], u64), Error> {
    if superblock.variant == Variant::Iplfs {
        return Ok((Log::ALL.map(|_| CurrentSegment::none()), 0));
    }
    check_logs(superblock, checkpoint, segments)?;
    let data = read_data_summaries(io, superblock, checkpoint)?;
    let (nodes, written) = read_node_summaries(io, superblock, checkpoint, segments)?;
    let mut all = data.into_iter().chain(nodes);
    let logs = Log::ALL.map(|log| {
        let position = checkpoint.logs[log.index()];
        CurrentSegment {
            segno: position.segment,
            next: position.offset.into(),
            in_holes: position.in_holes,
            summaries: all.next().unwrap_or_else(|| Box::new([Summary::default(); 512])),
        }
    });
    Ok((logs, written))
}

/// Six different segments, each free where its log goes on.
fn check_logs(superblock: &Superblock, checkpoint: &Checkpoint, segments: &Segments) -> Result<(), Error> {
    let place = Place::Checkpoint(checkpoint.pack);
    let mut seen = BTreeSet::new();
    for position in &checkpoint.logs {
        let last = u64::from(superblock.segment_count_main - 1);
        Corrupt::check_range(place, "cur_segno", position.segment.0, (0, last))?;
        Corrupt::check_equal(place, "segments shared by two logs", !seen.insert(position.segment), false)?;
        let segment = segments.get(position.segment);
        let offset = u32::from(position.offset);
        let end = if position.in_holes { offset + 1 } else { BLOCKS_IN_SEGMENT };
        let used = (offset..end).filter(|&offset| segment.is_valid(offset)).count();
        Corrupt::check_equal(place, "valid blocks where a log goes on", used as u64, 0_u64)?;
    }
    Ok(())
}

fn read_data_summaries<D: Scheduler>(
    io: &mut Io<D>,
    superblock: &Superblock,
    checkpoint: &Checkpoint,
) -> Result<[Summaries; 3], Error> {
    let start = pack_start(superblock, checkpoint);
    if checkpoint.flags.has(CheckpointFlags::COMPACT) {
        let counts = checkpoint.compact_entries();
        let blocks = compact_block_count(counts).unwrap_or(1) as u32;
        let first = start.plus(checkpoint.summary_start.into());
        let blocks =
            (0..blocks).map(|block| io.read(first.plus(block.into()))).collect::<Result<Vec<_>, _>>()?;
        let blocks: Vec<_> = blocks.iter().map(|block| **block).collect();
        return Ok(parse_compact(&blocks, counts));
    }
    let after = if checkpoint.has_node_summaries() { 6 } else { 3 };
    let first = start.plus(checkpoint.total_blocks.saturating_sub(1 + after).into());
    let mut read = |log| io.read(first.plus(log)).map(|block| summaries(&block));
    Ok([read(0)?, read(1)?, read(2)?])
}

/// The summaries of the node logs: from the pack, or from the footers of the nodes themselves.
fn read_node_summaries<D: Scheduler>(
    io: &mut Io<D>,
    superblock: &Superblock,
    checkpoint: &Checkpoint,
    segments: &Segments,
) -> Result<([Summaries; 3], u64), Error> {
    if checkpoint.has_node_summaries() {
        let first = pack_start(superblock, checkpoint).plus(u64::from(checkpoint.total_blocks) - 4);
        let written = written_kib(&*io.read(first)?);
        let mut read = |log| io.read(first.plus(log)).map(|block| summaries(&block));
        return Ok(([read(0)?, read(1)?, read(2)?], written));
    }
    let mut all = [0, 1, 2].map(|_| Box::new([Summary::default(); 512]));
    for (log, entries) in all.iter_mut().enumerate() {
        let segno = checkpoint.logs[3 + log].segment;
        for offset in segments.get(segno).valid_offsets() {
            let block = io.read(segments.address(segno, offset))?;
            entries[offset as usize] = Summary { nid: Footer::parse(&block).nid, version: 0, offset: 0 };
        }
    }
    Ok((all, 0))
}
