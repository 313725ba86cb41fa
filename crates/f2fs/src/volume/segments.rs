//! SIT entries of segments, and owners of their blocks.

use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice};

use super::Volume;
use super::map::direct_of;
use super::open::pack_start;
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BLOCKS_IN_SEGMENT, BlockAddr, CheckpointFlags, FIRST_NODE_LOG, Footer, Nid, SegNo, SitEntry,
    Summary, compact_block_count, first_block, parse_compact, sit_block_address, sit_entry,
    ssa_address, summaries,
};

/// Owner of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The node itself, or the node that points to the data block.
    pub nid: Nid,
    /// The inode that it belongs to.
    pub ino: Nid,
    /// The node's place among those of the inode, 0 for the inode itself.
    pub node_offset: u32,
    /// Index of the block in the file; `None` for a node.
    pub file_block: Option<u64>,
}

impl<D: BlockDevice> Volume<D> {
    /// The SIT's entry of a segment of the main area, the journal first.
    ///
    /// # Errors
    /// [`Corrupt::Range`] for a segment beyond the main area; an entry that contradicts itself;
    /// [`Error::Io`].
    pub fn segment(&mut self, segno: SegNo) -> Result<SitEntry, Error> {
        self.check_segment(segno)?;
        let entry = self.stored_segment(segno)?;
        entry.check(segno)?;
        Ok(entry)
    }

    fn check_segment(&self, segno: SegNo) -> Result<(), Corrupt> {
        // a volume of IPLFS has none
        let last = u64::from(self.superblock.segment_count_main).wrapping_sub(1);
        Corrupt::check_range(
            Place::Sit(segno.0),
            "segment_count_main",
            self.superblock.segment_count_main,
            (1, u64::MAX),
        )?;
        Corrupt::check_range(Place::Sit(segno.0), "segno", segno.0, (0, last))
    }

    /// As [`Self::segment`], but as it is stored; `segno` must lie in the main area.
    pub(crate) fn stored_segment(&mut self, segno: SegNo) -> Result<SitEntry, Error> {
        if let Some(entry) = self.sit_journal.get(&segno) {
            return Ok(entry.clone());
        }
        self.table_segment(segno)
    }

    /// As [`Self::stored_segment`] without the journal.
    pub(crate) fn table_segment(&mut self, segno: SegNo) -> Result<SitEntry, Error> {
        let address = sit_block_address(&self.superblock, &self.bitmaps.sit, segno);
        Ok(sit_entry(&*self.blocks.metadata(address)?, segno))
    }

    /// Summaries of a segment's 512 blocks. They come from the checkpoint for a segment that a log
    /// writes to, from the nodes' own footers where that log's are not stored, and from the summary
    /// area for all others.
    ///
    /// # Errors
    /// [`Corrupt::Range`] for a segment beyond the main area; [`Error::Io`].
    pub fn summaries(&mut self, segno: SegNo) -> Result<Box<[Summary; 512]>, Error> {
        self.check_segment(segno)?;
        match self.checkpoint.logs.iter().position(|log| log.segment == segno) {
            Some(log) if log < usize::from(FIRST_NODE_LOG) => self.data_log_summaries(log),
            Some(log) if self.checkpoint.has_node_summaries() => {
                let first = self.checkpoint.total_blocks.saturating_sub(4);
                Ok(summaries(&*self.pack_block(first + log as u32 - u32::from(FIRST_NODE_LOG))?))
            }
            Some(_) => self.footers(segno),
            None => Ok(summaries(&*self.blocks.metadata(ssa_address(&self.superblock, segno))?)),
        }
    }

    fn pack_block(&mut self, index: u32) -> Result<Arc<BlockBytes>, Error> {
        let start = pack_start(&self.superblock, self.checkpoint.pack);
        Ok(self.blocks.metadata(start.plus(index.min(BLOCKS_IN_SEGMENT - 1).into()))?)
    }

    fn data_log_summaries(&mut self, log: usize) -> Result<Box<[Summary; 512]>, Error> {
        if !self.checkpoint.flags.has(CheckpointFlags::COMPACT) {
            let after = if self.checkpoint.has_node_summaries() { 6 } else { 3 };
            let first = self.checkpoint.total_blocks.saturating_sub(1 + after);
            return Ok(summaries(&*self.pack_block(first + log as u32)?));
        }
        let counts = self.checkpoint.compact_entries();
        let (first, count) =
            (self.checkpoint.summary_start, compact_block_count(counts).unwrap_or(1) as u32);
        let blocks = (first..first + count)
            .map(|index| self.pack_block(index))
            .collect::<Result<Vec<_>, _>>()?;
        let blocks: Vec<BlockBytes> = blocks.iter().map(|block| **block).collect();
        let [hot, warm, cold] = parse_compact(&blocks, counts);
        Ok(match log {
            0 => hot,
            1 => warm,
            _ => cold,
        })
    }

    fn footers(&mut self, segno: SegNo) -> Result<Box<[Summary; 512]>, Error> {
        let entry = self.stored_segment(segno)?;
        let mut all = Box::new([Summary::default(); 512]);
        for offset in (0..BLOCKS_IN_SEGMENT).filter(|&offset| entry.is_valid(offset)) {
            let address = self.block_in_segment(segno, offset);
            let nid = Footer::parse(&*self.blocks.metadata(address)?).nid;
            all[offset as usize] = Summary { nid, version: 0, offset: 0 };
        }
        Ok(all)
    }

    /// Address of block `offset` (0 to 511) of a segment of the main area.
    pub fn block_in_segment(&self, segno: SegNo, offset: u32) -> BlockAddr {
        let block = u64::from(segno.0) * u64::from(BLOCKS_IN_SEGMENT) + u64::from(offset);
        self.superblock.main_start.plus(block)
    }

    /// Owner of the block that `summary` describes, in a segment of nodes if `is_node`, otherwise
    /// of data.
    ///
    /// # Errors
    /// Damage of the node that the summary names, or of its inode; [`Error::Io`].
    pub fn owner(&mut self, summary: Summary, is_node: bool) -> Result<Owner, Error> {
        let footer = Footer::parse(&*self.node_block(summary.nid)?);
        let owner = Owner {
            nid: summary.nid,
            ino: footer.ino,
            node_offset: footer.node_offset,
            file_block: None,
        };
        if is_node {
            return Ok(owner);
        }
        let inode = self.inode(footer.ino)?;
        let direct = direct_of(&inode, self.superblock.variant);
        let limit = if footer.node_offset == 0 { inode.pointer_count() as u64 } else { direct };
        let last = limit.saturating_sub(1);
        Corrupt::check_range(
            Place::Node(summary.nid),
            "the summary's pointer",
            summary.offset,
            (0, last),
        )?;
        let first = first_block(footer.node_offset, inode.pointer_count() as u64, direct);
        Ok(Owner { file_block: Some(first + u64::from(summary.offset)), ..owner })
    }
}
