//! Summaries against what was reached.

use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice};

use super::logs::LogSummary;
use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{
    BLOCKS_IN_SEGMENT, BlockAddr, Nid, SegNo, SummaryKind, ssa_address, summary_entry, summary_kind,
};

/// A pointer to a data block: what its summary must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) nid: Nid,
    pub(super) version: u8,
    pub(super) index: u32,
}

impl<D: BlockDevice> Checker<'_, D> {
    pub(super) fn segment_of(&self, address: BlockAddr) -> (SegNo, u32) {
        let index = self.main_index(address);
        let blocks = u64::from(BLOCKS_IN_SEGMENT);
        (SegNo((index / blocks) as u32), (index % blocks) as u32)
    }

    pub(super) fn check_node_owner(&mut self, address: BlockAddr, nid: Nid) -> Result<(), Error> {
        let (segno, offset) = self.segment_of(address);
        let Some(block) = self.summary_of(segno, SummaryKind::Node)? else { return Ok(()) };
        let found = summary_entry(&block, offset).nid;
        if found != nid {
            self.found(Finding::SummaryNode { address, nid, found });
        }
        Ok(())
    }

    pub(super) fn check_data_owner(
        &mut self,
        address: BlockAddr,
        owner: Owner,
    ) -> Result<(), Error> {
        let (segno, offset) = self.segment_of(address);
        let Some(block) = self.summary_of(segno, SummaryKind::Data)? else { return Ok(()) };
        let found = summary_entry(&block, offset);
        let Owner { nid, version, index } = owner;
        if (found.nid, found.version, u32::from(found.offset)) != (nid, version, index) {
            let (found_nid, found_version, found_index) =
                (found.nid, found.version, found.offset.into());
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

    /// The summary block that counts for a segment, after its type was compared once a segment.
    /// `None` for a log of nodes whose summary is not stored: there the nodes speak for themselves.
    fn summary_of(
        &mut self,
        segno: SegNo,
        expected: SummaryKind,
    ) -> Result<Option<Arc<BlockBytes>>, Error> {
        let (block, found) = match self.logs.of_segment(segno) {
            Some(LogSummary::Stored(block, kind)) => (Some(block.clone()), Ok(*kind)),
            Some(LogSummary::Footers) => (None, Ok(SummaryKind::Node)),
            None => {
                let block = self.ssa_block(segno)?;
                let kind = summary_kind(&block);
                (Some(block), kind)
            }
        };
        if found != Ok(expected) && self.logs.first_complaint(segno) {
            let (found, expected) =
                (found.map_or_else(|other| other, SummaryKind::code), expected.code());
            self.found(Finding::SummaryType { segno, found, expected });
        }
        Ok(block)
    }

    fn ssa_block(&mut self, segno: SegNo) -> Result<Arc<BlockBytes>, Error> {
        let address = ssa_address(&self.volume.superblock, segno);
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
