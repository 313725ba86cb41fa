//! Directories: listing all entries, and finding one, through the index where there is one.

use dovetail_block::BlockDevice;
use dovetail_vfs::LeftOut;
use dovetail_vfs::kit::{Dots, PathError, all_entries, find_entry, whole_entries};

use super::{Block, Volume};
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BlockAddr, DirBlock, DirEntry, DirRecord, DxBlock, Incompat, Inode, InodeFlags,
    dir_block_checksums, dx_block_checksums, dx_table_offset, name_hash,
};

/// Blocks of a directory that may be unreachable before the rest of it is given up: as many as a
/// damaged pointer of the second level loses. A bound for damaged sizes; assumed.
const MAX_MISSES: u64 = 1 << 20;

impl<D: BlockDevice> Volume<D> {
    /// Calls `found` for each entry of directory `dir`, "." and ".." included, in the order of the
    /// disk, and for each piece of it that is damaged: an entry, the rest of a block, or blocks
    /// that nothing leads to. Memory does not depend on the directory's size: one block at a time
    /// is decoded.
    ///
    /// # Errors
    /// [`PathError::NotADirectory`], [`Error::Io`]; whatever `found` returns.
    pub fn for_each_entry(
        &mut self,
        dir: &Inode,
        mut found: impl FnMut(&mut Self, Result<DirEntry, Error>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        check_dir(dir)?;
        let (mut from, mut misses, mut dots) = (0, 0, Dots::default());
        loop {
            let (number, at) = match self.next_dir_block(dir, from) {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(()),
                Err((block, error)) => {
                    found(self, Err(Self::damage(error)?))?;
                    misses += 1;
                    if misses == MAX_MISSES {
                        return found(self, Err(lost_behind(dir, block)));
                    }
                    from = block + 1;
                    continue;
                }
            };
            let block = self.blocks.metadata(at)?;
            // what the entries lead to says for itself whether it is whole
            if let Err(error) = self.check_sum(dir, number, &block) {
                found(self, Err(error.into()))?;
            }
            for record in DirBlock::new(&block, self.dir_format(), dir.ino, number).entries() {
                let entry = self.checked_entry(dir, record, Some(&mut dots));
                found(self, entry)?;
            }
            from = u64::from(number) + 1;
        }
    }

    /// The error again, if it is damage.
    fn damage(error: Error) -> Result<Error, Error> {
        if matches!(error, Error::Corrupt(_)) { Ok(error) } else { Err(error) }
    }

    /// The entries of directory `dir` in the order of the disk, "." and ".." included.
    ///
    /// # Errors
    /// As [`Self::for_each_entry`], and the first piece of the directory that is damaged.
    pub fn entries(&mut self, dir: &Inode) -> Result<Vec<DirEntry>, Error> {
        all_entries(|take| self.for_each_entry(dir, |_, entry| take(entry)))
    }

    /// The entries of directory `dir` that are whole, and why others are not.
    ///
    /// # Errors
    /// As [`Self::for_each_entry`].
    pub fn whole_entries(&mut self, dir: &Inode) -> Result<(Vec<DirEntry>, LeftOut), Error> {
        let said = |error| match error {
            Error::Corrupt(what) => what.to_string(),
            error => error.to_string(),
        };
        whole_entries(|take| self.for_each_entry(dir, |_, entry| take(entry)), said)
    }

    /// The entry called `name` in directory `dir`. An index that is damaged is passed over: every
    /// block is looked at then, as the kernel does.
    ///
    /// # Errors
    /// As [`Self::for_each_entry`]; of damage, if the name is not found, what may have hidden it.
    pub fn lookup(&mut self, dir: &Inode, name: &[u8]) -> Result<Option<DirEntry>, Error> {
        check_dir(dir)?;
        if dir.flags.has(InodeFlags::INDEX) && name != b"." && name != b".." {
            match self.lookup_indexed(dir, name) {
                Err(Error::Corrupt(_)) => {}
                found => return found,
            }
        }
        find_entry(
            |take| self.for_each_entry(dir, |_, entry| take(entry)),
            |entry| entry.name == name,
        )
    }

    fn find_in_block(
        &self,
        dir: &Inode,
        number: u32,
        block: &Block,
        name: &[u8],
    ) -> Result<Option<DirEntry>, Error> {
        let found = DirBlock::new(block, self.dir_format(), dir.ino, number).find(name)?;
        found.map(|record| self.checked_entry(dir, Ok(record), None)).transpose()
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

    /// Searches what `node` leads to, `levels` nodes above the blocks of entries. Names of one hash
    /// may go on in the next block, which its hash says.
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
                let below =
                    DxBlock::parse_node(&block, dir.ino, number, self.dir_format().has_checksum)?;
                self.lookup_below(dir, &below, levels - 1, (hash, name))?
            };
            position += 1;
            let goes_on = node.entries.get(position).is_some_and(|entry| entry.hash == hash | 1);
            if found.is_some() || !goes_on {
                return Ok(found);
            }
        }
    }

    /// The first block of directory `dir` from `from` on that is no hole: its number, and where it
    /// lies. An error comes with the block that cannot be found.
    fn next_dir_block(
        &mut self,
        dir: &Inode,
        from: u64,
    ) -> Result<Option<(u32, BlockAddr)>, (u64, Error)> {
        // no directory has more blocks than its volume; a damaged size must not count for more
        let end =
            (dir.size / u64::from(self.superblock.block_size())).min(self.superblock.blocks_count);
        let mut block = from;
        while block < end {
            let run = self.run(dir, block).map_err(|error| (block, error))?;
            if let Some(at) = run.mapped.data() {
                return Ok(Some((block as u32, at))); // a run of data lies below 2^32
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
                Err(Corrupt::Range { place, field: "blocks in the hole", found: 1, min: 0, max: 0 }
                    .into())
            }
        }
    }

    fn checked_dir_block(
        &mut self,
        dir: &Inode,
        number: u32,
        at: BlockAddr,
    ) -> Result<Block, Error> {
        let block = self.blocks.metadata(at)?;
        self.check_sum(dir, number, &block)?;
        Ok(block)
    }

    fn check_sum(&self, dir: &Inode, number: u32, block: &Block) -> Result<(), Corrupt> {
        let seed = dir.checksum_seed(&self.superblock);
        seed.map_or(Ok(()), |seed| check_dir_checksum(block, dir, number, seed))
    }

    /// An entry of a listing, which goes by `dots`, or one that was looked for.
    fn checked_entry(
        &self,
        dir: &Inode,
        record: Result<DirRecord<'_>, Corrupt>,
        dots: Option<&mut Dots>,
    ) -> Result<DirEntry, Error> {
        let record = record?;
        dots.map_or(Ok(()), |dots| dots.check(dir.ino, record.name))?;
        let last = u64::from(self.superblock.inodes_count);
        if u64::from(record.ino.0) > last {
            let (dir, name, ino) = (dir.ino, dovetail_vfs::shown(record.name), record.ino);
            return Err(Corrupt::EntryInode { dir, name, ino, last }.into());
        }
        Ok(DirEntry { name: record.name.to_vec(), ino: record.ino, file_type: record.file_type })
    }
}

/// The directory goes on behind `block`, and is not looked at any more.
fn lost_behind(dir: &Inode, block: u64) -> Error {
    let place = Place::Directory(dir.ino, u32::try_from(block).unwrap_or(u32::MAX));
    Corrupt::Range {
        place,
        field: "blocks that cannot be found",
        found: MAX_MISSES,
        min: 0,
        max: MAX_MISSES - 1,
    }
    .into()
}

/// Checks the checksum of a directory's block, of entries or of the index.
pub(crate) fn check_dir_checksum(
    block: &[u8],
    dir: &Inode,
    number: u32,
    seed: u32,
) -> Result<(), Corrupt> {
    let place = Place::Directory(dir.ino, number);
    let of_index = dir.flags.has(InodeFlags::INDEX) && dx_table_offset(block).is_some();
    let sums =
        if of_index { dx_block_checksums(block, seed) } else { dir_block_checksums(block, seed) };
    let missing =
        Corrupt::Mismatch { place, field: "room for the checksum", found: 0, expected: 1 };
    let (found, computed) = sums.ok_or(missing)?;
    Corrupt::check_checksum(place, found, computed)
}

fn check_dir(dir: &Inode) -> Result<(), Error> {
    if !dir.is_dir() {
        return Err(PathError::NotADirectory(format!("inode {}", dir.ino)).into());
    }
    Ok(())
}
