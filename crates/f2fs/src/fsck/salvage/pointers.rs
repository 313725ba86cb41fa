//! Pointers to content that lead to nothing of the volume.
//!
//! A pointer is wrong if it leaves the main area, or if it leads to a block of which SIT and summary
//! say otherwise. Its own block is one that the SIT has in use, that nothing leads to, and whose
//! summary names the pointer: it leads there again. Without such a block a pointer out of the main
//! area becomes a hole, but not in a compressed file, whose clusters are whole or nothing. One to a
//! free block is left then: its SIT and summary may be the damage.

use std::collections::{HashMap, HashSet};

use dovetail_block::{BlockBytes, BlockDevice};

use super::super::{Checker, Finding};
use crate::error::Error;
use crate::format::{
    BLOCKS_IN_SEGMENT, BlockAddr, FIRST_NODE_LOG, Nid, msb_first, seal_inode, set_pointer,
};
use crate::volume::Volume;

/// A pointer that was changed in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fsck) struct Mended {
    pub(super) ino: Nid,
    /// The node that it lies in, and its number there.
    pub(in crate::fsck) nid: Nid,
    pub(super) index: u32,
    /// The block that it leads to now; 0 is a hole.
    pub(super) to: BlockAddr,
    /// The inode has a right checksum, which is to stay one.
    is_sealed: bool,
}

impl<D: BlockDevice> Checker<'_, D> {
    /// The pointers that are wrong by this check, and where they lead if they are put right.
    pub(super) fn wrong_pointers(&mut self) -> Result<Vec<Mended>, Error> {
        let mut denied = Vec::new();
        for finding in self.report.findings.clone() {
            if let Finding::SummaryData { address, nid, index, .. } = finding
                && let Some(&ino) = self.nodes.get(&nid)
                && !self.is_in_use(address)?
            {
                denied.push((ino, nid, index));
            }
        }
        if denied.is_empty() && self.outside.is_empty() {
            return Ok(Vec::new());
        }
        let lost = self.blocks_without_owner()?;
        let unsealed: HashSet<Nid> = (self.report.findings.iter())
            .filter_map(|finding| match finding {
                Finding::InodeChecksum { ino, .. } => Some(*ino),
                _ => None,
            })
            .collect();
        let mended = |(ino, nid, index), to| Mended {
            ino,
            nid,
            index,
            to,
            is_sealed: !unsealed.contains(&ino),
        };
        let block_of = |nid, index| match lost.get(&(nid, index)).map(Vec::as_slice) {
            Some([only]) => Some(*only),
            _ => None,
        };
        let mut pointers = Vec::new();
        for pointer @ (_, nid, index) in denied {
            pointers.extend(block_of(nid, index).map(|to| mended(pointer, to)));
        }
        for pointer @ (ino, nid, index) in std::mem::take(&mut self.outside) {
            let is_plain = self.volume.inode(ino).is_ok_and(|inode| inode.cluster_blocks == 1);
            let hole = is_plain.then_some(BlockAddr::NULL);
            pointers.extend(block_of(nid, index).or(hole).map(|to| mended(pointer, to)));
        }
        Ok(pointers)
    }

    fn is_in_use(&mut self, address: BlockAddr) -> Result<bool, Error> {
        let (segno, offset) = self.segment_of(address);
        Ok(self.volume.stored_segment(segno)?.is_valid(offset))
    }

    /// Blocks that the SIT has in use and nothing leads to, by the pointer that their summary names.
    fn blocks_without_owner(&mut self) -> Result<HashMap<(Nid, u32), Vec<BlockAddr>>, Error> {
        let mut found: HashMap<_, Vec<_>> = HashMap::new();
        let doubtful: HashSet<_> = (self.report.findings.iter())
            .filter_map(|finding| match finding {
                Finding::SummaryType { segno, .. } => Some(*segno),
                _ => None,
            })
            .collect();
        for finding in self.report.findings.clone() {
            let Finding::BlocksLeaked { segno, .. } = finding else { continue };
            let entry = self.volume.stored_segment(segno)?;
            if entry.log >= FIRST_NODE_LOG || doubtful.contains(&segno) {
                continue;
            }
            let reached = self.claims.segment(segno).map_or([0; 64], |claimed| claimed.map);
            let summaries = self.volume.summaries(segno)?;
            for offset in (0..BLOCKS_IN_SEGMENT).filter(|&offset| entry.is_valid(offset)) {
                let summary = summaries[offset as usize];
                let is_current = !msb_first(&reached, offset as usize)
                    && self.nodes.contains_key(&summary.nid)
                    && self.volume.nat(summary.nid)?.version == summary.version;
                if is_current {
                    let owner = (summary.nid, u32::from(summary.offset));
                    found
                        .entry(owner)
                        .or_default()
                        .push(self.volume.block_in_segment(segno, offset));
                }
            }
        }
        Ok(found)
    }
}

/// Changes pointers in memory. Counts of blocks follow from the next check.
pub(super) fn mend<D: BlockDevice>(
    volume: &mut Volume<D>,
    pointers: &[Mended],
) -> Result<(), Error> {
    for &Mended { ino, nid, index, to, is_sealed } in pointers {
        let address = volume.nat(nid)?.address;
        let mut node: BlockBytes = *volume.node_block(nid)?;
        set_pointer(&mut node, nid == ino, index as usize, to, volume.superblock.layout());
        if nid == ino && is_sealed {
            seal_inode(&mut node, &volume.superblock);
        }
        volume.blocks.change(address, node);
    }
    Ok(())
}
