//! Directories: listing all entries, and finding one, through the index where there is one.

use dovetail_block::BlockDevice;

use super::{Block, Volume};
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BlockAddr, DirBlock, DirEntry, DirRecord, DxBlock, Incompat, Inode, InodeFlags, dir_block_checksums,
    dx_block_checksums, dx_table_offset, name_hash,
};

impl<D: BlockDevice> Volume<D> {
    /// Calls `found` for each entry of directory `dir`, "." and ".." included, in the order of the disk. Memory does not
    /// depend on the directory's size: one block at a time is decoded.
    ///
    /// # Errors
    /// [`Error::NotADirectory`], a damaged block; whatever `found` returns.
    pub fn for_each_entry(
        &mut self,
        dir: &Inode,
        mut found: impl FnMut(&mut Self, DirEntry) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut from = 0;
        while let Some((number, block)) = self.next_dir_block(dir, from)? {
            for record in DirBlock::new(&block, self.dir_format(), dir.ino, number).entries() {
                let entry = self.checked_entry(dir, number, record?)?;
                found(self, entry)?;
            }
            from = u64::from(number) + 1;
        }
        Ok(())
    }

    /// The entries of directory `dir` in the order of the disk, "." and ".." included.
    ///
    /// # Errors
    /// As [`Self::for_each_entry`].
    pub fn entries(&mut self, dir: &Inode) -> Result<Vec<DirEntry>, Error> {
        let mut entries = Vec::new();
        self.for_each_entry(dir, |_, entry| {
            entries.push(entry);
            Ok(())
        })?;
        Ok(entries)
    }

    /// The entry called `name` in directory `dir`. An index that is damaged is passed over: every block is looked at
    /// then, as the kernel does.
    ///
    /// # Errors
    /// As [`Self::for_each_entry`].
    pub fn lookup(&mut self, dir: &Inode, name: &[u8]) -> Result<Option<DirEntry>, Error> {
        check_dir(dir)?;
        if dir.flags.has(InodeFlags::INDEX) && name != b"." && name != b".." {
            match self.lookup_indexed(dir, name) {
                Err(Error::Corrupt(_)) => {}
                found => return found,
            }
        }
        let mut from = 0;
        while let Some((number, block)) = self.next_dir_block(dir, from)? {
            if let Some(entry) = self.find_in_block(dir, number, &block, name)? {
                return Ok(Some(entry));
            }
            from = u64::from(number) + 1;
        }
        Ok(None)
    }

    fn find_in_block(
        &self,
        dir: &Inode,
        number: u32,
        block: &Block,
        name: &[u8],
    ) -> Result<Option<DirEntry>, Error> {
        let found = DirBlock::new(block, self.dir_format(), dir.ino, number).find(name)?;
        found.map(|record| self.checked_entry(dir, number, record)).transpose()
    }

    fn lookup_indexed(&mut self, dir: &Inode, name: &[u8]) -> Result<Option<DirEntry>, Error> {
        let has_checksum = self.dir_format().has_checksum;
        let large_dir = self.superblock.incompat.has(Incompat::LARGE_DIR);
        let block = self.dir_block(dir, 0)?;
        let root = DxBlock::parse_root(&block, dir.ino, has_checksum, large_dir)?;
        let info = root.info.unwrap_or_default();
        let version = self.superblock.hash_version(info.hash_version);
        let (hash, _) = name_hash(name, version, self.superblock.hash_seed).unwrap_or_default();
        self.lookup_below(dir, &root, info.indirect_levels, (hash, name))
    }

    /// Searches what `node` leads to, `levels` nodes above the blocks of entries. Names of one hash may go on in the next
    /// block, which its hash says.
    fn lookup_below(
        &mut self,
        dir: &Inode,
        node: &DxBlock,
        levels: u8,
        (hash, name): (u32, &[u8]),
    ) -> Result<Option<DirEntry>, Error> {
        let mut position = node.position(hash);
        loop {
            let number = node.entries[position].block;
            let block = self.dir_block(dir, number)?;
            let found = if levels == 0 {
                self.find_in_block(dir, number, &block, name)?
            } else {
                let below = DxBlock::parse_node(&block, dir.ino, number, self.dir_format().has_checksum)?;
                self.lookup_below(dir, &below, levels - 1, (hash, name))?
            };
            position += 1;
            let goes_on = node.entries.get(position).is_some_and(|entry| entry.hash == hash | 1);
            if found.is_some() || !goes_on {
                return Ok(found);
            }
        }
    }

    /// The first block of directory `dir` from `from` on that is no hole, and its number.
    pub(crate) fn next_dir_block(&mut self, dir: &Inode, from: u64) -> Result<Option<(u32, Block)>, Error> {
        check_dir(dir)?;
        let end = dir.size / u64::from(self.superblock.block_size());
        let mut block = from;
        while block < end {
            let run = self.run(dir, block)?;
            if let Some(at) = run.mapped.data() {
                let number = block as u32; // a run of data lies below 2^32
                return Ok(Some((number, self.checked_dir_block(dir, number, at)?)));
            }
            block = block.saturating_add(run.len);
        }
        Ok(None)
    }

    /// Block `number` of directory `dir`, which an index leads to.
    fn dir_block(&mut self, dir: &Inode, number: u32) -> Result<Block, Error> {
        let place = Place::Directory(dir.ino, number);
        let blocks = dir.size / u64::from(self.superblock.block_size());
        Corrupt::check_range(place, "the block", number, (0, blocks.saturating_sub(1)))?;
        match self.run(dir, number.into())?.mapped.data() {
            Some(at) => self.checked_dir_block(dir, number, at),
            None => {
                Err(Corrupt::Range { place, field: "blocks in the hole", found: 1, min: 0, max: 0 }.into())
            }
        }
    }

    fn checked_dir_block(&mut self, dir: &Inode, number: u32, at: BlockAddr) -> Result<Block, Error> {
        let block = self.blocks.metadata(at)?;
        if let Some(seed) = dir.checksum_seed(&self.superblock) {
            check_dir_checksum(&block, dir, number, seed)?;
        }
        Ok(block)
    }

    fn checked_entry(&self, dir: &Inode, number: u32, record: DirRecord<'_>) -> Result<DirEntry, Error> {
        let most = u64::from(self.superblock.inodes_count);
        Corrupt::check_range(Place::Directory(dir.ino, number), "inode", record.ino.0, (1, most))?;
        Ok(DirEntry { name: record.name.to_vec(), ino: record.ino, file_type: record.file_type })
    }
}

/// Checks the checksum of a directory's block, of entries or of the index.
pub(crate) fn check_dir_checksum(block: &[u8], dir: &Inode, number: u32, seed: u32) -> Result<(), Corrupt> {
    let place = Place::Directory(dir.ino, number);
    let of_index = dir.flags.has(InodeFlags::INDEX) && dx_table_offset(block).is_some();
    let sums = if of_index { dx_block_checksums(block, seed) } else { dir_block_checksums(block, seed) };
    let missing = Corrupt::Mismatch { place, field: "room for the checksum", found: 0, expected: 1 };
    let (found, computed) = sums.ok_or(missing)?;
    Corrupt::check_checksum(place, found, computed)
}

fn check_dir(dir: &Inode) -> Result<(), Error> {
    if !dir.is_dir() {
        return Err(Error::NotADirectory(format!("inode {}", dir.ino)));
    }
    Ok(())
}
