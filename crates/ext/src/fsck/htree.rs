//! The index of a directory: each block of entries is reached once, and its names have the hashes
//! that lead there.

use std::collections::HashSet;
use std::ops::Range;

use dovetail_block::BlockDevice;

use super::{Checker, Finding, Name};
use crate::error::{Corrupt, Error, Place};
use crate::format::{BlockAddr, DirBlock, DxBlock, HashVersion, Incompat, Inode, name_hash};
use crate::volume::Block;

/// An index that is being walked.
struct Walk<'a> {
    dir: &'a Inode,
    version: HashVersion,
    reached: HashSet<u32>,
    blocks: u32,
}

impl<D: BlockDevice> Checker<D> {
    pub(super) fn check_index(&mut self, dir: &Inode) -> Result<(), Error> {
        let has_checksum = self.volume.dir_format().has_checksum;
        let large_dir = self.volume.superblock.incompat.has(Incompat::LARGE_DIR);
        let Some(block) = self.index_block(dir, 0)? else { return Ok(()) };
        let Some(root) =
            self.decoded(DxBlock::parse_root(&block, dir.ino, has_checksum, large_dir))
        else {
            return Ok(());
        };
        let info = root.info.unwrap_or_default();
        let version = self.volume.superblock.hash_version(info.hash_version);
        let blocks = (dir.size / u64::from(self.volume.superblock.block_size())) as u32;
        let mut walk = Walk { dir, version, reached: HashSet::from([0]), blocks };
        self.check_node(&mut walk, 0, &root, info.indirect_levels, 0..1 << 32)?;
        for block in (0..blocks).filter(|block| !walk.reached.contains(block)).take(1000) {
            self.found(Finding::IndexBlock { dir: dir.ino, block, what: "not at all" });
        }
        Ok(())
    }

    /// A node whose names have hashes in `range`; `levels` nodes stand between it and the blocks of
    /// entries.
    fn check_node(
        &mut self,
        walk: &mut Walk<'_>,
        number: u32,
        node: &DxBlock,
        levels: u8,
        range: Range<u64>,
    ) -> Result<(), Error> {
        let dir = walk.dir.ino;
        if !node.entries[1..].is_sorted_by(|a, b| a.hash < b.hash) {
            self.found(Finding::IndexOrder { dir, block: number });
        }
        for (index, entry) in node.entries.iter().enumerate() {
            let start = if index == 0 { range.start } else { u64::from(entry.hash & !1) };
            // names of the next block's first hash may still stand here, if its lowest bit says so
            let next = node.entries.get(index + 1);
            let end =
                next.map_or(range.end, |next| u64::from(next.hash & !1) + u64::from(next.hash & 1));
            if entry.block >= walk.blocks || !walk.reached.insert(entry.block) {
                self.found(Finding::IndexBlock {
                    dir,
                    block: entry.block,
                    what: "that is reached already, or is none",
                });
                continue;
            }
            let Some(block) = self.index_block(walk.dir, entry.block)? else { continue };
            if levels == 0 {
                self.check_leaf(walk, entry.block, &block, &(start..end));
                continue;
            }
            let has_checksum = self.volume.dir_format().has_checksum;
            if let Some(below) =
                self.decoded(DxBlock::parse_node(&block, dir, entry.block, has_checksum))
            {
                self.check_node(walk, entry.block, &below, levels - 1, start..end)?;
            }
        }
        Ok(())
    }

    fn check_leaf(&mut self, walk: &Walk<'_>, number: u32, block: &Block, range: &Range<u64>) {
        let seed = self.volume.superblock.hash_seed;
        let dir = walk.dir.ino;
        let records = DirBlock::new(block, self.volume.dir_format(), dir, number).entries();
        // records that cannot be decoded were told of before
        for record in records.map_while(Result::ok) {
            let hash = name_hash(record.name, walk.version, seed).unwrap_or_default().0;
            if !range.contains(&hash.into()) {
                self.found(Finding::IndexHash {
                    dir,
                    block: number,
                    name: Name(record.name.to_vec()),
                });
            }
        }
    }

    fn index_block(&mut self, dir: &Inode, number: u32) -> Result<Option<Block>, Error> {
        let run = self.volume.run(dir, number.into());
        let Some(run) = self.sound(run)? else { return Ok(None) };
        let place = Place::Directory(dir.ino, number);
        let missing =
            Corrupt::Range { place, field: "blocks in the hole", found: 1, min: 0, max: 0 };
        let Some(at) = self.decoded(run.mapped.data().ok_or(missing)) else { return Ok(None) };
        Ok(Some(self.volume.blocks.metadata(BlockAddr(at.0))?))
    }
}
