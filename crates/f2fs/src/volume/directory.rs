//! Directories: listing all entries, and finding one by its hash.

use dovetail_block::BlockDevice;

use super::Volume;
use crate::error::{Corrupt, Error, Incompatible, Place};
use crate::format::{
    BLOCK, BlockAddr, DentryBlock, DirEntry, InlineFlags, Inode, InodeFlags, dentry_bucket, name_hash,
};

impl<D: BlockDevice> Volume<D> {
    /// Calls `found` for each entry of directory `dir`, "." and ".." included, in the order of the disk. Costs and
    /// memory do not depend on the directory's size in memory: one block at a time is decoded.
    ///
    /// # Errors
    /// [`Error::NotADirectory`], [`Incompatible::Encrypted`], a damaged block; whatever `found` returns.
    pub fn for_each_entry(
        &mut self,
        dir: &Inode,
        mut found: impl FnMut(&mut Self, DirEntry) -> Result<(), Error>,
    ) -> Result<(), Error> {
        check_dir(dir)?;
        if dir.inline.has(InlineFlags::DENTRY) {
            for entry in DentryBlock::inline(dir.inline_area(), dir.ino).entries() {
                let entry = self.checked_entry(dir, entry?)?;
                found(self, entry)?;
            }
            return Ok(());
        }
        let end = dir.size.div_ceil(BLOCK as u64);
        let mut from = 0;
        while let Some((block, address)) = self.next_mapped(dir, from, end)? {
            let bytes = self.dentry_block(dir, address)?;
            for entry in DentryBlock::block(&bytes, dir.ino).entries() {
                let entry = self.checked_entry(dir, entry?)?;
                found(self, entry)?;
            }
            from = block + 1;
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

    /// The entry called `name` in directory `dir`, found by its hash. A casefolded directory is searched as a whole,
    /// for the same bytes: its hashes are those of folded names.
    ///
    /// # Errors
    /// As [`Self::for_each_entry`].
    pub fn lookup(&mut self, dir: &Inode, name: &[u8]) -> Result<Option<DirEntry>, Error> {
        check_dir(dir)?;
        if dir.inline.has(InlineFlags::DENTRY) || dir.flags.has(InodeFlags::CASEFOLD) {
            return Ok(self.entries(dir)?.into_iter().find(|entry| entry.name == name));
        }
        let hash = name_hash(name);
        for level in 0..dir.depth {
            let bucket = dentry_bucket(level, dir.dir_level.into(), hash);
            for block in bucket {
                if let Some(entry) = self.lookup_in_block(dir, block, name, hash)? {
                    return Ok(Some(entry));
                }
            }
        }
        Ok(None)
    }

    fn lookup_in_block(
        &mut self,
        dir: &Inode,
        block: u64,
        name: &[u8],
        hash: u32,
    ) -> Result<Option<DirEntry>, Error> {
        let address = self.block_of(dir, block)?;
        if address.is_hole() {
            return Ok(None);
        }
        let bytes = self.dentry_block(dir, address)?;
        for entry in DentryBlock::block(&bytes, dir.ino).entries() {
            let entry = entry?;
            if entry.hash == hash && entry.name == name {
                return self.checked_entry(dir, entry).map(Some);
            }
        }
        Ok(None)
    }

    fn dentry_block(
        &mut self,
        dir: &Inode,
        address: BlockAddr,
    ) -> Result<std::sync::Arc<dovetail_block::BlockBytes>, Error> {
        self.check_address(Place::Directory(dir.ino), "a data pointer", address)?;
        Ok(self.blocks.metadata(address)?)
    }

    fn checked_entry(&self, dir: &Inode, entry: DirEntry) -> Result<DirEntry, Error> {
        let last = u64::from(self.superblock.max_nid()) - 1;
        Corrupt::check_range(Place::Directory(dir.ino), "an entry's ino", entry.ino.0, (3, last))?;
        Ok(entry)
    }
}

fn check_dir(dir: &Inode) -> Result<(), Error> {
    if !dir.is_dir() {
        return Err(Error::NotADirectory(format!("inode {}", dir.ino)));
    }
    if dir.is_encrypted() {
        return Err(Incompatible::Encrypted(dir.ino).into());
    }
    Ok(())
}
