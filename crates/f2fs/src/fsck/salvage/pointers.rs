//! Pointers to content that lead to nothing of the volume.
//!
//! A pointer is wrong if it leaves the main area, or if it leads to a block of which SIT and summary
//! say otherwise. Its own block is one that the SIT has in use, that nothing leads to, and whose
//! summary names the pointer: it leads there again. Without one it becomes a hole.

use std::collections::HashMap;

use dovetail_block::{BlockBytes, BlockDevice};

use super::super::{Checker, Finding};
use crate::error::Error;
use crate::format::{
    BLOCKS_IN_SEGMENT, BlockAddr, Footer, Nid, RawInode, msb_first, seal_inode, set_pointer,
};
use crate::volume::Volume;

/// A pointer that was changed in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fsck) struct Mended {
    pub(in crate::fsck) ino: Nid,
    /// The node that it lies in, and its number there.
    pub(in crate::fsck) nid: Nid,
    pub(super) index: u32,
    /// Where it leads now; 0 is a hole.
    pub(super) to: BlockAddr,
}

/// A wrong pointer: inode, node, number in the node.
type Wrong = (Nid, Nid, u32);

impl<D: BlockDevice> Checker<'_, D> {
    /// The pointers that are wrong by the findings of this check, and where they lead if they are
    /// put right.
    pub(super) fn wrong_pointers(&mut self) -> Result<Vec<Mended>, Error> {
        let mut wrong: Vec<Wrong> = Vec::new();
        for finding in self.report.findings.clone() {
            match finding {
                Finding::DataAddress { ino, block, .. } => {
                    let Ok(inode) = self.volume.inode(ino) else { continue };
                    let place = self.volume.pointer_place(&inode, block)?;
                    wrong.extend(place.map(|(nid, index)| (ino, nid, index as u32)));
                }
                Finding::SummaryData { address, nid, index, .. } if !self.is_in_use(address)? => {
                    let ino = Footer::parse(&*self.volume.node_block(nid)?).ino;
                    wrong.push((ino, nid, index));
                }
                _ => {}
            }
        }
        if wrong.is_empty() {
            return Ok(Vec::new());
        }
        let lost = self.blocks_without_owner()?;
        let mended = |(ino, nid, index)| {
            let to = match lost.get(&(nid, index)).map(Vec::as_slice) {
                Some([only]) => *only,
                _ => BlockAddr::NULL,
            };
            Mended { ino, nid, index, to }
        };
        Ok(wrong.into_iter().map(mended).collect())
    }

    fn is_in_use(&mut self, address: BlockAddr) -> Result<bool, Error> {
        let (segno, offset) = self.segment_of(address);
        Ok(self.volume.stored_segment(segno)?.is_valid(offset))
    }

    /// Blocks that the SIT has in use and nothing leads to, by the pointer that their summary names.
    fn blocks_without_owner(&mut self) -> Result<HashMap<(Nid, u32), Vec<BlockAddr>>, Error> {
        let mut found: HashMap<_, Vec<_>> = HashMap::new();
        for finding in self.report.findings.clone() {
            let Finding::BlocksLeaked { segno, .. } = finding else { continue };
            let entry = self.volume.stored_segment(segno)?;
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

/// Changes pointers in memory.
pub(super) fn mend<D: BlockDevice>(
    volume: &mut Volume<D>,
    pointers: &[Mended],
) -> Result<(), Error> {
    for &Mended { ino, nid, index, to } in pointers {
        let layout = volume.superblock.layout();
        change(volume, nid, |node| set_pointer(node, nid == ino, index as usize, to, layout))?;
        if to == BlockAddr::NULL {
            change(volume, ino, |node| {
                let inode = RawInode::of_mut(node);
                inode.i_blocks.set(inode.i_blocks.get().saturating_sub(1));
            })?;
        }
    }
    Ok(())
}

fn change<D: BlockDevice>(
    volume: &mut Volume<D>,
    nid: Nid,
    edit: impl FnOnce(&mut BlockBytes),
) -> Result<(), Error> {
    let address = volume.nat(nid)?.address;
    let mut node = *volume.node_block(nid)?;
    edit(&mut node);
    if Footer::parse(&node).ino == nid {
        seal_inode(&mut node, &volume.superblock);
    }
    volume.blocks.change(address, node);
    Ok(())
}
