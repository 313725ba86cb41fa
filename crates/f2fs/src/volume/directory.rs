//! Directories: listing all entries, and finding one by its hash.

use dovetail_block::BlockDevice;
use dovetail_vfs::LeftOut;
use dovetail_vfs::kit::{Dots, PathError, all_entries, find_entry, whole_entries};

use super::Volume;
use crate::error::{Corrupt, Error, Incompatible, Place};
use crate::format::{
    BLOCK, BlockAddr, DentryBlock, DirEntry, InlineFlags, Inode, InodeFlags, dentry_bucket,
    name_hash,
};

impl<D: BlockDevice> Volume<D> {
    /// Calls `found` for each entry of directory `dir`, "." and ".." included, in the order of the
    /// disk, and for each piece of it that is damaged: an entry, a block, or what a damaged node
    /// leads to. Memory does not depend on the directory's size: one block at a time is decoded.
    ///
    /// # Errors
    /// [`PathError::NotADirectory`], [`Incompatible::Encrypted`], [`Error::Io`]; whatever `found`
    /// returns.
    pub fn for_each_entry(
        &mut self,
        dir: &Inode,
        mut found: impl FnMut(&mut Self, Result<DirEntry, Error>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        check_dir(dir)?;
        let mut dots = Dots::default();
        if dir.inline.has(InlineFlags::DENTRY) {
            for entry in DentryBlock::inline(dir.inline_area(), dir.ino).entries() {
                let entry = self.checked_entry(dir, entry, &mut dots);
                found(self, entry)?;
            }
            return Ok(());
        }
        let end = dir.size.div_ceil(BLOCK as u64);
        let mut from = 0;
        while let Some(next) = self.next_or_damage(dir, from, end)? {
            from = match next {
                Ok((block, address)) => {
                    self.entries_of_block(dir, address, &mut dots, &mut found)?;
                    block + 1
                }
                Err((next, error)) => {
                    found(self, Err(error))?;
                    next
                }
            };
        }
        Ok(())
    }

    fn entries_of_block(
        &mut self,
        dir: &Inode,
        address: BlockAddr,
        dots: &mut Dots,
        found: &mut impl FnMut(&mut Self, Result<DirEntry, Error>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let bytes = match self.dentry_block(dir, address) {
            Err(error @ Error::Corrupt(_)) => return found(self, Err(error)),
            bytes => bytes?,
        };
        for entry in DentryBlock::block(&bytes, dir.ino).entries() {
            let entry = self.checked_entry(dir, entry, dots);
            found(self, entry)?;
        }
        Ok(())
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

    /// The entry called `name` in directory `dir`, found by its hash. A casefolded directory is
    /// searched as a whole, for the same bytes: its hashes are those of folded names.
    ///
    /// # Errors
    /// As [`Self::for_each_entry`]; of damage, if the name is not found, what may have hidden it.
    pub fn lookup(&mut self, dir: &Inode, name: &[u8]) -> Result<Option<DirEntry>, Error> {
        check_dir(dir)?;
        if dir.inline.has(InlineFlags::DENTRY) || dir.flags.has(InodeFlags::CASEFOLD) {
            return self.search(dir, name);
        }
        let hash = name_hash(name);
        let mut damage = None;
        for level in 0..dir.depth {
            let bucket = dentry_bucket(level, dir.dir_level.into(), hash);
            for block in bucket {
                match self.lookup_in_block(dir, block, name, hash) {
                    Ok(None) => {}
                    Ok(found) => return Ok(found),
                    Err(error @ Error::Corrupt(_)) => damage = damage.or(Some(error)),
                    Err(error) => return Err(error),
                }
            }
        }
        damage.map_or(Ok(None), Err)
    }

    /// Looks at every entry.
    fn search(&mut self, dir: &Inode, name: &[u8]) -> Result<Option<DirEntry>, Error> {
        find_entry(
            |take| self.for_each_entry(dir, |_, entry| take(entry)),
            |entry| entry.name == name,
        )
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
        let mut damage = None;
        for entry in DentryBlock::block(&bytes, dir.ino).entries() {
            match entry {
                Ok(entry) if entry.hash == hash && entry.name == name => {
                    return self.checked_entry(dir, Ok(entry), &mut Dots::default()).map(Some);
                }
                Ok(_) => {}
                Err(error) => damage = damage.or(Some(error)),
            }
        }
        damage.map_or(Ok(None), |error| Err(error.into()))
    }

    fn dentry_block(
        &mut self,
        dir: &Inode,
        address: BlockAddr,
    ) -> Result<std::sync::Arc<dovetail_block::BlockBytes>, Error> {
        self.check_address(Place::Directory(dir.ino), "a data pointer", address)?;
        Ok(self.blocks.metadata(address)?)
    }

    fn checked_entry(
        &self,
        dir: &Inode,
        entry: Result<DirEntry, Corrupt>,
        dots: &mut Dots,
    ) -> Result<DirEntry, Error> {
        let entry = entry?;
        dots.check(dir.ino, &entry.name)?;
        let (last, name) = (u64::from(self.superblock.max_nid()) - 1, &entry.name);
        if !(3..=last).contains(&entry.ino.0.into()) {
            let (dir, name, ino) = (dir.ino, dovetail_vfs::shown(name), entry.ino);
            return Err(Corrupt::EntryInode { dir, name, ino, last }.into());
        }
        Ok(entry)
    }
}

fn check_dir(dir: &Inode) -> Result<(), Error> {
    if !dir.is_dir() {
        return Err(PathError::NotADirectory(format!("inode {}", dir.ino)).into());
    }
    if dir.is_encrypted() {
        return Err(Incompatible::Encrypted(dir.ino).into());
    }
    Ok(())
}
