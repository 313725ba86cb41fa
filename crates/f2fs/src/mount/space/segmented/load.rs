//! The space of a mount: SIT, logs and summaries as the last checkpoint left them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_block::{BlockBytes, REQUEST_BLOCKS, Scheduler};

use super::super::super::io::{Io, bytes};
use super::super::super::options::{AllocMode, Mode, Options};
use super::super::super::policy::Log;
use super::super::Found;
use super::logs::CurrentSegment;
use super::remap_staging::RemapStaging;
use super::segments::Segments;
use super::{DiscardQueue, Recovery, SegmentSpace, Victims, ZoneMap};
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BLOCKS_IN_SEGMENT, BlockAddr, Checkpoint, CheckpointFlags, Footer, SIT_ENTRIES_IN_BLOCK, SegNo,
    SitEntry, Summary, Superblock, compact_block_count, parse_compact, sit_block_address,
    sit_entry, summaries, written_kib,
};
use crate::section_zones::SectionZones;
use crate::volume::open::pack_start;

/// The owners of a segment's blocks.
type Summaries = Box<[Summary; 512]>;

impl SegmentSpace {
    /// Reads the SIT and the summaries of the logs.
    ///
    /// # Errors
    /// Tables that contradict each other; [`Error::Io`].
    pub(crate) fn load<D: Scheduler>(
        io: &mut Io<D>,
        found: &Found<'_>,
        options: &Options,
    ) -> Result<Self, Error> {
        let (superblock, checkpoint) = (found.superblock, found.checkpoint);
        let mut entries = read_sit(io, superblock, found.sit_bitmap)?;
        for (segno, entry) in found.sit_journal {
            let last = u64::from(superblock.segment_count_main - 1);
            Corrupt::check_range(Place::Sit(segno.0), "segno in the journal", segno.0, (0, last))?;
            entries[segno.0 as usize] = entry.clone();
        }
        let device = io.device().info().capabilities.zones;
        let zones = match SectionZones::of(superblock, device) {
            Err(_) if options.read_only => None,
            zones => zones?,
        };
        let usable = zones.map_or(superblock.segments_per_section, |zones| zones.usable_segments());
        let mut segments = Segments::load(superblock, &entries, usable)?;
        let sections = segments.sections();
        let zones = zones.map(|zones| ZoneMap::read(io, zones, sections)).transpose()?;
        let (logs, written_kib) = read_logs(io, superblock, checkpoint, &segments)?;
        logs.iter().for_each(|log| segments.take(log.segno));
        let small = options.is_small(superblock.segment_count_main);
        let by_size = if small { AllocMode::Reuse } else { AllocMode::Default };
        let mut space = Self {
            segments,
            logs,
            sit_journal: found.sit_journal.keys().copied().collect(),
            victims: Victims::default(),
            staging: RemapStaging::new(superblock.segments_per_section),
            discards: DiscardQueue::default(),
            discard_unit: options.discard_unit,
            recovery: Recovery::default(),
            zones,
            ssa_start: superblock.ssa_start,
            waiting_summaries: BTreeMap::new(),
            sections_per_zone: superblock.sections_per_zone,
            reserved_segments: checkpoint.reserved_segments,
            lfs: options.mode == Mode::Lfs,
            counts_dirty_data: options.mode == Mode::Lfs && options.gc_after_checkpoint,
            alloc: options.alloc.unwrap_or(by_size),
            written_kib,
        };
        space.set_worn_aside();
        space.note_dead_zones();
        Ok(space)
    }

    /// The checks of the tables against each other that the kernel makes as well.
    pub(crate) fn check_counts(
        &self,
        checkpoint: &Checkpoint,
        devirtualized: bool,
    ) -> Result<(), Corrupt> {
        let place = Place::Checkpoint(checkpoint.pack);
        let (user, valid) = (checkpoint.user_block_count, checkpoint.valid_block_count);
        let (nodes, segments) = (checkpoint.valid_nodes, self.segments.len());
        let main = u64::from(segments) * u64::from(BLOCKS_IN_SEGMENT);
        Corrupt::check_range(place, "user_block_count", user, (1, main))?;
        Corrupt::check_range(place, "valid_block_count", valid, (1, user))?;
        let blocks = self.segments.valid_blocks();
        Corrupt::check_range(place, "the SIT's valid blocks", blocks, (0, valid))?;
        let in_segments = self.valid_nodes();
        if devirtualized {
            // nodes at device addresses are in no segment
            let range = (in_segments, u32::MAX.into());
            Corrupt::check_range(place, "valid_node_count", nodes, range)?;
        } else {
            Corrupt::check_equal(place, "valid_node_count", nodes, in_segments)?;
        }
        let inodes = checkpoint.valid_inodes;
        Corrupt::check_range(place, "valid_inode_count", inodes, (1, nodes.into()))?;
        let reserved = checkpoint.reserved_segments;
        Corrupt::check_range(place, "rsvd_segment_count", reserved, (1, segments.into()))
    }

    /// Valid blocks in segments of the node logs.
    fn valid_nodes(&self) -> u64 {
        let segments = (0..self.segments.len()).map(|segno| self.segments.get(SegNo(segno)));
        segments.filter(|segment| segment.log >= 3).map(|segment| u64::from(segment.valid)).sum()
    }
}

/// The entries of all segments as the table has them.
fn read_sit<D: Scheduler>(
    io: &mut Io<D>,
    superblock: &Superblock,
    bitmap: &[u8],
) -> Result<Vec<SitEntry>, Error> {
    let count = superblock.segment_count_main;
    let firsts = (0..count).step_by(SIT_ENTRIES_IN_BLOCK as usize);
    let addresses: Vec<BlockAddr> =
        firsts.map(|first| sit_block_address(superblock, bitmap, SegNo(first))).collect();
    let mut entries = Vec::new();
    for run in addresses.chunk_by(|here, next| here.plus(1) == *next) {
        for part in run.chunks(REQUEST_BLOCKS) {
            for block in read_part(io, part)? {
                let first = entries.len() as u32;
                let last = (first + SIT_ENTRIES_IN_BLOCK).min(count);
                entries.extend((first..last).map(|segno| sit_entry(&block, SegNo(segno))));
            }
        }
    }
    Ok(entries)
}

/// Neighbouring blocks by one read, or each by its own where that fails.
fn read_part<D: Scheduler>(
    io: &mut Io<D>,
    addresses: &[BlockAddr],
) -> Result<Vec<Arc<BlockBytes>>, Error> {
    match io.read_ahead(addresses[0], addresses.len()) {
        Some(read) => Ok(read.into_iter().map(bytes).collect()),
        None => addresses.iter().map(|&address| Ok(io.read(address)?)).collect(),
    }
}

/// The six logs with the summaries of their segments, and how many KiB were ever written.
fn read_logs<D: Scheduler>(
    io: &mut Io<D>,
    superblock: &Superblock,
    checkpoint: &Checkpoint,
    segments: &Segments,
) -> Result<([CurrentSegment; 6], u64), Error> {
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
fn check_logs(
    superblock: &Superblock,
    checkpoint: &Checkpoint,
    segments: &Segments,
) -> Result<(), Error> {
    let place = Place::Checkpoint(checkpoint.pack);
    let mut seen = BTreeSet::new();
    for position in &checkpoint.logs {
        let last = u64::from(superblock.segment_count_main - 1);
        Corrupt::check_range(place, "cur_segno", position.segment.0, (0, last))?;
        Corrupt::check_equal(
            place,
            "segments shared by two logs",
            !seen.insert(position.segment),
            false,
        )?;
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
    let start = pack_start(superblock, checkpoint.pack);
    if checkpoint.flags.has(CheckpointFlags::COMPACT) {
        let counts = checkpoint.compact_entries();
        let blocks = compact_block_count(counts).unwrap_or(1) as u32;
        let first = start.plus(checkpoint.summary_start.into());
        let blocks = (0..blocks)
            .map(|block| io.read(first.plus(block.into())))
            .collect::<Result<Vec<_>, _>>()?;
        let blocks: Vec<_> = blocks.iter().map(|block| **block).collect();
        return Ok(parse_compact(&blocks, counts));
    }
    let after = if checkpoint.has_node_summaries() { 6 } else { 3 };
    let first = start.plus(checkpoint.total_blocks.saturating_sub(1 + after).into());
    let mut read = |log| io.read(first.plus(log)).map(|block| summaries(&block));
    Ok([read(0)?, read(1)?, read(2)?])
}

/// The summaries of the node logs: from the pack, or from the footers of the nodes themselves. Linux
/// reads the whole of their segments for that, and so do we.
fn read_node_summaries<D: Scheduler>(
    io: &mut Io<D>,
    superblock: &Superblock,
    checkpoint: &Checkpoint,
    segments: &Segments,
) -> Result<([Summaries; 3], u64), Error> {
    if checkpoint.has_node_summaries() {
        let first =
            pack_start(superblock, checkpoint.pack).plus(u64::from(checkpoint.total_blocks) - 4);
        let written = written_kib(&*io.read(first)?);
        let mut read = |log| io.read(first.plus(log)).map(|block| summaries(&block));
        return Ok(([read(0)?, read(1)?, read(2)?], written));
    }
    let mut all = [0, 1, 2].map(|_| Box::new([Summary::default(); 512]));
    for (log, entries) in all.iter_mut().enumerate() {
        let segno = checkpoint.logs[3 + log].segment;
        let nodes = io.read_ahead(segments.address(segno, 0), BLOCKS_IN_SEGMENT as usize);
        for offset in segments.get(segno).valid_offsets() {
            let block = match &nodes {
                Some(nodes) => bytes(nodes[offset as usize].clone()),
                None => io.read(segments.address(segno, offset))?,
            };
            entries[offset as usize] =
                Summary { nid: Footer::parse(&block).nid, version: 0, offset: 0 };
        }
    }
    Ok((all, 0))
}
