//! Edits of nodes, of directories' blocks and of summaries.

use dovetail_block::{BlockBytes, BlockDevice};

use super::{Repair, RepairError};
use crate::format::{
    BlockAddr, DentryBlockMut, Footer, InlineFlags, NatEntry, Nid, RawInode, SegNo, Summary,
    SummaryKind, nat_entry, set_summary_entry, set_summary_kind, ssa_address,
};
use crate::fsck::dentries::DentryFix;
use crate::fsck::finding::Finding;
use crate::fsck::logs::LogSummary;

impl<D: BlockDevice> Repair<'_, D> {
    /// The content of a node, to be changed; `None` if the NAT does not lead to it.
    pub(super) fn node_mut(&mut self, nid: Nid) -> Result<Option<&mut BlockBytes>, RepairError> {
        let volume = &mut self.checker.volume;
        let address = volume.nat(nid)?.address;
        if !volume.superblock.in_main(address) {
            return Ok(None);
        }
        let block = volume.blocks.metadata(address)?;
        Ok(Some(self.nodes.entry(nid).or_insert_with(|| Box::new(*block))))
    }

    /// Writes a node as it is in memory.
    pub(super) fn keep_node(&mut self, nid: Nid) -> Result<(), RepairError> {
        self.node_mut(nid).map(drop)
    }

    fn edit_inode(
        &mut self,
        ino: Nid,
        edit: impl FnOnce(&mut RawInode),
    ) -> Result<(), RepairError> {
        if let Some(block) = self.node_mut(ino)? {
            edit(RawInode::of_mut(block));
        }
        Ok(())
    }

    fn edit_footer(&mut self, nid: Nid, edit: impl FnOnce(&mut Footer)) -> Result<(), RepairError> {
        if let Some(block) = self.node_mut(nid)? {
            let mut footer = Footer::parse(block);
            edit(&mut footer);
            footer.write(block);
        }
        Ok(())
    }

    pub(super) fn edit_nodes(&mut self, findings: &[Finding]) -> Result<(), RepairError> {
        for finding in findings {
            match *finding {
                Finding::InodeBlocks { ino, expected, .. } => {
                    self.edit_inode(ino, |inode| inode.i_blocks.set(expected))?;
                }
                Finding::Links { ino, expected, .. }
                | Finding::DirectoryLinks { ino, expected, .. } => {
                    self.edit_inode(ino, |inode| inode.i_links.set(expected))?;
                }
                Finding::Extent { ino, .. } => {
                    self.edit_inode(ino, |inode| {
                        inode.i_ext.iter_mut().for_each(|word| word.set(0));
                    })?;
                }
                Finding::GcFailures { ino, .. } => {
                    self.edit_inode(ino, |inode| inode.i_current_depth.set(0))?;
                }
                Finding::DirectoryDepth { ino, expected, .. } => {
                    self.edit_inode(ino, |inode| inode.i_current_depth.set(expected))?;
                }
                Finding::DirectorySize { ino, expected, .. } => {
                    self.edit_inode(ino, |inode| inode.i_size.set(expected))?;
                }
                Finding::InlineReserved { ino, .. } => self.clear_reserved(ino)?,
                Finding::FooterInode { nid, expected, .. } => {
                    self.edit_footer(nid, |footer| footer.ino = expected)?;
                }
                Finding::FooterOffset { nid, expected, .. } => {
                    self.edit_footer(nid, |footer| footer.node_offset = expected)?;
                }
                Finding::FooterCold { nid, found } => {
                    self.edit_footer(nid, |footer| footer.cold = !found)?;
                }
                Finding::NatZero { .. } => self.set_nat(Nid::NONE, NatEntry::default()),
                Finding::NatReserved { nid, .. } => {
                    self.set_nat(nid, NatEntry { version: 0, ino: nid, address: BlockAddr(1) });
                }
                Finding::NatInode { nid, expected, .. } => self.set_nat_inode(nid, expected)?,
                Finding::NatNoInode { nid } => {
                    if let Some(&ino) = self.checker.nodes.get(&nid) {
                        self.set_nat_inode(nid, ino)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn set_nat(&mut self, nid: Nid, entry: NatEntry) {
        self.nat.insert(nid, entry);
    }

    fn set_nat_inode(&mut self, nid: Nid, ino: Nid) -> Result<(), RepairError> {
        let entry = self.checker.volume.nat(nid)?;
        self.set_nat(nid, NatEntry { ino, ..entry });
        Ok(())
    }

    fn clear_reserved(&mut self, ino: Nid) -> Result<(), RepairError> {
        let layout = self.checker.volume.superblock.layout();
        if let Some(block) = self.node_mut(ino)? {
            let at = RawInode::of(block).geometry(layout).pointer_at(0);
            block[at..at + 4].fill(0);
        }
        Ok(())
    }

    /// Entries of directories; one that cannot be found again is left as it is.
    pub(super) fn edit_dentries(&mut self) -> Result<(), RepairError> {
        for DentryFix { place, fix } in std::mem::take(&mut self.checker.fixes) {
            let Some(block) = place.block else {
                self.edit_inline(place.dir, |area| {
                    fix.apply(DentryBlockMut::inline(area), place.slot);
                })?;
                continue;
            };
            if let Some(bytes) = self.data_mut(place.dir, block)? {
                fix.apply(DentryBlockMut::block(bytes), place.slot);
            }
        }
        Ok(())
    }

    fn edit_inline(&mut self, dir: Nid, edit: impl FnOnce(&mut [u8])) -> Result<(), RepairError> {
        let layout = self.checker.volume.superblock.layout();
        if let Some(block) = self.node_mut(dir)? {
            let raw = RawInode::of(block);
            if InlineFlags(raw.i_inline).has(InlineFlags::DENTRY) {
                let area = raw.geometry(layout).inline_area();
                edit(&mut block[area]);
            }
        }
        Ok(())
    }

    fn data_mut(&mut self, dir: Nid, block: u64) -> Result<Option<&mut BlockBytes>, RepairError> {
        let volume = &mut self.checker.volume;
        let Ok(inode) = volume.inode(dir) else { return Ok(None) };
        let Ok(address) = volume.block_of(&inode, block) else { return Ok(None) };
        if !volume.superblock.in_main(address) {
            return Ok(None);
        }
        let bytes = volume.blocks.metadata(address)?;
        Ok(Some(self.data.entry((dir, block)).or_insert_with(|| Box::new(*bytes))))
    }

    /// Entries of summaries: in the SSA, or in the summary of a log, which the new pack will carry.
    pub(super) fn edit_summaries(&mut self, findings: &[Finding]) -> Result<(), RepairError> {
        for finding in findings {
            match *finding {
                Finding::SummaryType { segno, expected, .. } => {
                    let kind = if expected == SummaryKind::Node.code() {
                        SummaryKind::Node
                    } else {
                        SummaryKind::Data
                    };
                    self.edit_summary(segno, |block| set_summary_kind(block, kind))?;
                }
                Finding::SummaryNode { address, nid, .. } => {
                    self.set_summary(address, Summary { nid, version: 0, offset: 0 })?;
                }
                Finding::SummaryData { address, nid, version, index, .. } => {
                    self.set_summary(address, Summary { nid, version, offset: index as u16 })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn set_summary(
        &mut self,
        address: BlockAddr,
        summary: Summary,
    ) -> Result<(), RepairError> {
        let (segno, offset) = self.checker.segment_of(address);
        self.edit_summary(segno, |block| set_summary_entry(block, offset, summary))
    }

    fn edit_summary(
        &mut self,
        segno: SegNo,
        edit: impl FnOnce(&mut BlockBytes),
    ) -> Result<(), RepairError> {
        match self.checker.logs.of_segment_mut(segno) {
            Some(LogSummary::Stored(block, _)) => edit(std::sync::Arc::make_mut(block)),
            Some(LogSummary::Footers) => {}
            None => {
                let address = ssa_address(&self.checker.volume.superblock, segno);
                let stored = self.checker.volume.blocks.metadata(address)?;
                edit(self.summaries.entry(segno).or_insert_with(|| Box::new(*stored)));
            }
        }
        Ok(())
    }

    /// The NAT entry of a node, with what was changed.
    pub(super) fn nat_of(&mut self, nid: Nid) -> Result<NatEntry, RepairError> {
        if let Some(entry) = self.nat.get(&nid) {
            return Ok(*entry);
        }
        if nid == Nid::NONE {
            let (address, variant) =
                (self.checker.volume.superblock.nat_start, self.checker.volume.superblock.variant);
            return Ok(nat_entry(&*self.checker.volume.blocks.metadata(address)?, nid, variant));
        }
        Ok(self.checker.volume.nat(nid)?)
    }
}
