//! The NAT against what was reached, and the maps of its full and empty blocks.

use std::collections::HashSet;
use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice, Content};

use super::tree::Role;
use super::{Checker, Finding, Name};
use crate::error::Error;
use crate::format::{
    BLOCK, BLOCKS_IN_SEGMENT, BlockAddr, FileType, NatEntry, Nid, RawInode, lsb_first,
    nat_block_address, nat_entry,
};
use crate::volume::open::pack_start;

/// The checkpoint flag that says that there are maps.
const NAT_BITS: u32 = 0x80;
/// Blocks of the NAT read at a time.
const RUN: usize = 64;

/// The maps of full and empty NAT blocks; a bit for each block, least significant bit first.
struct NatBits {
    full: Vec<u8>,
    empty: Vec<u8>,
}

/// An inode or node that nothing led to.
struct Lost {
    nid: Nid,
    ino: Nid,
    address: BlockAddr,
}

impl<D: BlockDevice> Checker<'_, D> {
    pub(super) fn check_nat(&mut self) -> Result<(), Error> {
        let mut lost = Vec::new();
        let bits = self.nat_bits()?;
        let blocks = self.volume.superblock.nat_blocks;
        let mut contents = vec![Content::Empty; RUN];
        for first in (0..blocks).step_by(RUN) {
            self.read_nat(first, &mut contents)?;
            for (block, content) in (first..).zip(&contents) {
                let used = match content {
                    Content::Bytes(bytes) => self.check_nat_block(block, bytes, &mut lost),
                    _ => u32::from(block == 0),
                };
                if let Some(bits) = bits.as_ref() {
                    self.check_nat_bits(bits, block, used);
                }
            }
        }
        let (journal, max) = (self.volume.nat_journal.clone(), self.volume.superblock.max_nid());
        for (nid, entry) in journal.into_iter().filter(|(nid, _)| nid.0 < max) {
            self.check_nat_entry(nid, entry, &mut lost);
        }
        self.enter_lost(lost)
    }

    /// Reads the current copies of NAT blocks from block `first` on, at most as many as lie in one
    /// segment.
    fn read_nat(&mut self, first: u32, into: &mut [Content]) -> Result<(), Error> {
        for (block, content) in (first..).zip(into) {
            let nid = self.volume.superblock.variant.first_nid(block);
            let address = nat_block_address(&self.volume.superblock, &self.volume.bitmaps.nat, nid);
            self.volume.blocks.read(address, std::slice::from_mut(content))?;
        }
        Ok(())
    }

    /// Returns how many entries of the block are used; nid 0 counts as used.
    fn check_nat_block(
        &mut self,
        block: u32,
        bytes: &Arc<BlockBytes>,
        lost: &mut Vec<Lost>,
    ) -> u32 {
        if bytes.iter().all(|&byte| byte == 0) {
            return u32::from(block == 0);
        }
        let mut used = 0;
        let variant = self.volume.superblock.variant;
        for nid in
            (variant.first_nid(block).0..).take(variant.nat_entries_in_block() as usize).map(Nid)
        {
            let entry = nat_entry(bytes, nid, variant);
            used += u32::from(entry.address != BlockAddr::NULL || nid == Nid::NONE);
            if self.volume.nat_journal.is_empty() || !self.volume.nat_journal.contains_key(&nid) {
                self.check_nat_entry(nid, entry, lost);
            }
        }
        used
    }

    fn check_nat_entry(&mut self, nid: Nid, entry: NatEntry, lost: &mut Vec<Lost>) {
        let NatEntry { ino, address, .. } = entry;
        match nid.0 {
            0 if address != BlockAddr::NULL => self.found(Finding::NatZero { address }),
            0 => {}
            1 | 2 if address != BlockAddr(1) || ino != nid => {
                self.found(Finding::NatReserved { nid, address });
            }
            1 | 2 => {}
            _ if address == BlockAddr::NULL || self.nodes.contains_key(&nid) => {}
            _ => lost.push(Lost { nid, ino, address }),
        }
    }

    /// Enters the inodes that nothing led to, so that their blocks belong to something: first
    /// directories that are not below another one of them, then what is left of directories
    /// (loops), then the rest.
    fn enter_lost(&mut self, lost: Vec<Lost>) -> Result<(), Error> {
        let inos: HashSet<Nid> = lost.iter().map(|lost| lost.nid).collect();
        let mut roots = Vec::new();
        for lost in lost.iter().filter(|lost| lost.nid == lost.ino) {
            if self.is_inode(lost.nid, lost.address)? {
                let block = self.volume.blocks.metadata(lost.address)?;
                let raw = RawInode::of(&block);
                let is_dir = FileType::of_mode(raw.i_mode.get()) == FileType::DIRECTORY;
                let below = inos.contains(&Nid(raw.i_pino.get()));
                let rank = if !is_dir { 2 } else { u8::from(below) };
                let name = raw.i_name[..raw.i_namelen.get().min(255) as usize].to_vec();
                roots.push((rank, lost.nid, name));
            }
        }
        roots.sort_unstable();
        for (_, ino, name) in roots {
            if !self.nodes.contains_key(&ino) {
                self.found(Finding::InodeUnreachable { ino, name: Name(name) });
                self.enter_inode(ino, Role::Unreachable)?;
                self.follow_names()?;
            }
        }
        for Lost { nid, ino, .. } in lost {
            if !self.nodes.contains_key(&nid) {
                self.found(Finding::NodeUnreachable { nid, ino });
            }
        }
        Ok(())
    }

    /// The maps, if the checkpoint says that there are some and they are of this checkpoint.
    fn nat_bits(&mut self) -> Result<Option<NatBits>, Error> {
        if self.volume.checkpoint.flags.0 & NAT_BITS == 0 || !self.may_have_nat_bits() {
            return Ok(None);
        }
        let superblock = &self.volume.superblock;
        let bytes = (superblock.segment_count_nat / 2 * (BLOCKS_IN_SEGMENT / 8)) as usize;
        let blocks = (8 + 2 * bytes).div_ceil(BLOCK);
        if blocks as u32 + self.volume.checkpoint.total_blocks > BLOCKS_IN_SEGMENT {
            return Ok(None);
        }
        let end =
            pack_start(superblock, self.volume.checkpoint.pack).plus(BLOCKS_IN_SEGMENT.into());
        let mut area = vec![0; blocks * BLOCK];
        self.volume.blocks.data(BlockAddr(end.0 - blocks as u64), &mut area)?;
        let checkpoint = &self.volume.checkpoint;
        let of = checkpoint.version | u64::from(checkpoint.checksum) << 32;
        let same = area.first_chunk().is_some_and(|first| u64::from_le_bytes(*first) == of);
        Ok(same.then(|| {
            let (full, empty) = area[8..].split_at(bytes);
            NatBits { full: full.to_vec(), empty: empty[..bytes].to_vec() }
        }))
    }

    fn check_nat_bits(&mut self, bits: &NatBits, block: u32, used: u32) {
        let full = lsb_first(&bits.full, block as usize);
        let empty = lsb_first(&bits.empty, block as usize);
        let all = self.volume.superblock.variant.nat_entries_in_block();
        if (full, empty) != (used == all, used == 0) {
            self.found(Finding::NatBits { block });
        }
    }
}
