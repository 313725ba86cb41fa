//! Space for changed blocks: free segments that no log writes to.

use std::sync::Arc;

use dovetail_block::BlockDevice;

use super::{Repair, RepairError};
use crate::format::{
    BLOCK, BLOCKS_IN_SEGMENT, BlockAddr, CheckpointFlags, Footer, NatEntry, Nid, SegNo, Summary,
    SummaryKind, seal_inode, set_pointer, summary_block,
};
use crate::section_zones::SectionZones;

/// The segments that are being filled.
#[derive(Debug, Default)]
pub(super) struct Space {
    nodes: Option<(SegNo, u32)>,
    data: Option<(SegNo, u32)>,
    /// Segments above this one were asked already; `None` at the start.
    below: Option<u32>,
    /// Sections above this one were asked already, on a zoned volume.
    sections_below: Option<u32>,
}

impl<D: BlockDevice> Repair<'_, D> {
    /// Writes changed blocks of directories, then changed nodes, each to a new place.
    pub(super) fn move_blocks(&mut self) -> Result<(), RepairError> {
        for ((dir, block), bytes) in std::mem::take(&mut self.data) {
            let inode = self.checker.volume.inode(dir)?;
            let old = self.checker.volume.block_of(&inode, block)?;
            let Some((owner, index)) = self.checker.volume.pointer_place(&inode, block)? else {
                continue;
            };
            let new = self.next_block(false)?;
            self.checker.volume.blocks.write(new, Arc::new(*bytes), false)?;
            let version = self.nat_of(owner)?.version;
            self.set_summary(new, Summary { nid: owner, version, offset: index as u16 })?;
            self.set_pointer(owner, owner == dir, index, new)?;
            self.change_claim(old, new, false);
        }
        while let Some((nid, mut bytes)) = self.nodes.pop_first() {
            let entry = self.nat_of(nid)?;
            let new = self.next_block(true)?;
            self.finish_node(nid, &mut bytes, new);
            self.checker.volume.blocks.write(new, Arc::new(*bytes), false)?;
            self.set_summary(new, Summary { nid, version: 0, offset: 0 })?;
            self.nat.insert(nid, NatEntry { address: new, ..entry });
            self.change_claim(entry.address, new, true);
        }
        Ok(())
    }

    fn set_pointer(
        &mut self,
        owner: Nid,
        is_inode: bool,
        index: usize,
        to: BlockAddr,
    ) -> Result<(), RepairError> {
        let layout = self.checker.volume.superblock.layout();
        let Some(node) = self.node_mut(owner)? else { return Ok(()) };
        set_pointer(node, is_inode, index, to, layout);
        Ok(())
    }

    /// Footer and checksum of a node that goes to `address`.
    fn finish_node(&self, nid: Nid, bytes: &mut [u8; BLOCK], address: BlockAddr) {
        let (superblock, checkpoint) =
            (&self.checker.volume.superblock, &self.checker.volume.checkpoint);
        let mut footer = Footer::parse(bytes);
        (footer.fsync_mark, footer.dentry_mark) = (false, false);
        let crc = if checkpoint.flags.has(CheckpointFlags::CRC_RECOVERY) {
            checkpoint.checksum
        } else {
            0
        };
        footer.checkpoint = checkpoint.version | u64::from(crc) << 32;
        let next = if superblock.in_main(address.plus(1)) { address.plus(1) } else { address };
        footer.next = Footer::next_of(superblock.variant, address, next);
        footer.write(bytes);
        if footer.ino == nid {
            seal_inode(bytes, superblock);
        }
    }

    fn change_claim(&mut self, old: BlockAddr, new: BlockAddr, node: bool) {
        let (old, new) = (self.checker.main_index(old), self.checker.main_index(new));
        self.checker.claims.release(old, node);
        self.checker.claims.claim(new, node);
    }

    fn next_block(&mut self, node: bool) -> Result<BlockAddr, RepairError> {
        let current = if node { self.space.nodes } else { self.space.data };
        let zones = self.checker.zones;
        let room = |segno| zones.map_or(BLOCKS_IN_SEGMENT, |zones| zones.usable_blocks(segno));
        let (segno, offset) = match current.filter(|&(segno, offset)| offset < room(segno)) {
            Some(place) => place,
            None => {
                let following = current.and_then(|(segno, _)| self.following(segno));
                let segno = match (following, zones) {
                    (Some(segno), _) => segno,
                    (None, Some(zones)) => self.open_section(&zones)?,
                    (None, None) => self.find_segment()?,
                };
                self.begin_summary(segno, node);
                (segno, 0)
            }
        };
        *(if node { &mut self.space.nodes } else { &mut self.space.data }) =
            Some((segno, offset + 1));
        Ok(self.checker.volume.block_in_segment(segno, offset))
    }

    /// The next segment of a section of a zoned volume, if it can be written.
    fn following(&self, segno: SegNo) -> Option<SegNo> {
        let zones = self.checker.zones?;
        let next = SegNo(segno.0 + 1);
        let per_section = self.checker.volume.superblock.segments_per_section;
        let is_same = next.0 / per_section == segno.0 / per_section;
        (is_same && zones.usable_blocks(next) > 0).then_some(next)
    }

    /// The first segment of a section of a zoned volume without a block in use, searched from the
    /// end; its zone is emptied.
    fn open_section(&mut self, zones: &SectionZones) -> Result<SegNo, RepairError> {
        let superblock = &self.checker.volume.superblock;
        let (per_section, sections) = (superblock.segments_per_section, superblock.section_count);
        for section in (0..self.space.sections_below.unwrap_or(sections)).rev() {
            self.space.sections_below = Some(section);
            let first = section * per_section;
            let mut is_free = !self.checker.worn.contains(&section);
            for segno in (first..first + per_section).map(SegNo) {
                is_free &= self.is_free(segno)?;
            }
            if is_free {
                if zones.is_sequential(section) {
                    self.checker.volume.blocks.reset_zone(zones.start(section))?;
                }
                return Ok(SegNo(first));
            }
        }
        Err(RepairError::NoSpace)
    }

    fn is_free(&mut self, segno: SegNo) -> Result<bool, RepairError> {
        let entry = self.checker.volume.stored_segment(segno)?;
        let empty = entry.valid_map == [0; 64] && self.checker.claims.segment(segno).is_none();
        Ok(empty && !self.checker.logs.writes_to(segno))
    }

    fn begin_summary(&mut self, segno: SegNo, node: bool) {
        let kind = if node { SummaryKind::Node } else { SummaryKind::Data };
        let empty = summary_block(&[Summary::default(); 512], kind);
        self.summaries.insert(segno, Box::new(empty));
    }

    /// Repaired blocks were written to the section.
    pub(super) fn has_written_to(&self, section: u32) -> bool {
        let per_section = self.checker.volume.superblock.segments_per_section;
        self.summaries.keys().any(|segno| segno.0 / per_section == section)
            && self.space.sections_below.is_some_and(|below| section >= below)
    }

    /// A segment without a block in use, searched from the end.
    fn find_segment(&mut self) -> Result<SegNo, RepairError> {
        let count = self.space.below.unwrap_or(self.checker.volume.superblock.segment_count_main);
        for segno in (0..count).rev().map(SegNo) {
            if self.is_free(segno)? {
                self.space.below = Some(segno.0);
                return Ok(segno);
            }
        }
        Err(RepairError::NoSpace)
    }
}
