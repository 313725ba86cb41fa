//! Entries of summary blocks. Private to the check until `format` has a decoder of its own.

use dovetail_block::{BlockBytes, BlockDevice};

use super::logs::LogSummary;
use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{BLOCKS_IN_SEGMENT, BlockAddr, Nid, SegNo, u32_at};

/// Bytes of an entry.
pub(super) const ENTRY: usize = 7;
/// Where a summary block says what its segment holds.
pub(super) const TYPE: usize = 4091;
/// A segment of data.
pub(super) const DATA: u8 = 0;
/// A segment of nodes.
pub(super) const NODES: u8 = 1;

/// Who owns a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) nid: Nid,
    pub(super) version: u8,
    pub(super) index: u16,
}

impl Summary {
    pub(super) fn parse(block: &BlockBytes, offset: u32) -> Self {
        let entry = &block[offset as usize * ENTRY..][..ENTRY];
        Self {
            nid: Nid(u32_at(entry, 0)),
            version: entry[4],
            index: u16::from_le_bytes([entry[5], entry[6]]),
        }
    }

    pub(super) fn write(self, block: &mut BlockBytes, offset: u32) {
        let entry = &mut block[offset as usize * ENTRY..][..ENTRY];
        entry[..4].copy_from_slice(&self.nid.0.to_le_bytes());
        entry[4] = self.version;
        entry[5..].copy_from_slice(&self.index.to_le_bytes());
    }
}

/// A pointer to a data block: what its summary must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) nid: Nid,
    pub(super) version: u8,
    pub(super) index: u32,
}

impl<D: BlockDevice> Checker<'_, D> {
    pub(super) fn segment_of(&self, address: BlockAddr) -> (SegNo, u32) {
        let index = address.0 - self.volume.superblock.main_start.0;
        (SegNo(index / BLOCKS_IN_SEGMENT), index % BLOCKS_IN_SEGMENT)
    }

    /// Compares the summary of block `address` (in the main area), which is node `nid`.
    pub(super) fn check_node_summary(&mut self, address: BlockAddr, nid: Nid) -> Result<(), Error> {
        let (segno, offset) = self.segment_of(address);
        let Some(block) = self.summary_of(segno, NODES)? else { return Ok(()) };
        let found = Summary::parse(&block, offset).nid;
        if found != nid {
            self.found(Finding::SummaryNode { address, nid, found });
        }
        Ok(())
    }

    /// Compares the summary of block `address` (in the main area), to which `owner` points.
    pub(super) fn check_data_summary(&mut self, address: BlockAddr, owner: Owner) -> Result<(), Error> {
        let (segno, offset) = self.segment_of(address);
        let Some(block) = self.summary_of(segno, DATA)? else { return Ok(()) };
        let found = Summary::parse(&block, offset);
        let Owner { nid, version, index } = owner;
        if (found.nid, found.version, u32::from(found.index)) != (nid, version, index) {
            let (found_nid, found_version, found_index) = (found.nid, found.version, found.index.into());
            self.found(Finding::SummaryData {
                address,
                nid,
                version,
                index,
                found_nid,
                found_version,
                found_index,
            });
        }
        Ok(())
    }

    /// The summary block that counts for a segment, after its type was compared once a segment. `None` for a log of
    /// nodes whose summary is not stored: there the nodes speak for themselves.
    fn summary_of(
        &mut self,
        segno: SegNo,
        expected: u8,
    ) -> Result<Option<std::sync::Arc<BlockBytes>>, Error> {
        let (block, found) = match self.logs.of_segment(segno) {
            Some(LogSummary::Stored(block, kind)) => (Some(block.clone()), *kind),
            Some(LogSummary::Footers) => (None, NODES),
            None => {
                let block = self.ssa_block(segno)?;
                let kind = block[TYPE];
                (Some(block), kind)
            }
        };
        if found != expected && self.logs.first_complaint(segno) {
            self.found(Finding::SummaryType { segno, found, expected });
        }
        Ok(block)
    }

    fn ssa_block(&mut self, segno: SegNo) -> Result<std::sync::Arc<BlockBytes>, Error> {
        let address = BlockAddr(self.volume.superblock.ssa_start.0 + segno.0);
        if let Some((cached, block)) = &self.summary
            && *cached == address
        {
            return Ok(block.clone());
        }
        let block = self.volume.blocks.metadata(address)?;
        self.summary = Some((address, block.clone()));
        Ok(block)
    }
}
