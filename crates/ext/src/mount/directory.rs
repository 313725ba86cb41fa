//! Directories: entries found, added, removed and listed, in a row of blocks or by an index of
//! hashes.
//!
//! A listing goes by hash where a directory has an index, or may get one (a single block);
//! positions are hashes then, and hold while entries move between blocks. Other directories never
//! move an entry: positions are places.

use dovetail_block::Scheduler;
use dovetail_vfs::LeftOut;
use rustc_hash::FxHashSet;

use super::Ext;
use super::map::State;
use super::meta::Kind;
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BlockAddr, CRC32C_START, Compat, DirBlock, DirBlockMut, DirEntry, DirFormat, FileType,
    HashVersion, Incompat, Ino, InodeFlags, Superblock, crc32c, name_hash,
};

/// An entry, and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub(super) ino: Ino,
    pub(super) block: u32,
    pub(super) offset: usize,
}

/// The entries of a directory, in the order of their positions. It holds until a block of the
/// directory is edited otherwise than by a removal.
#[derive(Debug)]
pub(super) struct Listing {
    dir: Ino,
    entries: Vec<Listed>,
    /// Places of entries that were removed since: who lists and removes in turn would read the
    /// directory each time.
    gone: FxHashSet<u64>,
    /// Damaged parts.
    left_out: LeftOut,
}

#[derive(Debug)]
struct Listed {
    position: u64,
    /// Byte of the directory.
    place: u64,
    entry: DirEntry,
}

/// The hash that a name has in a listing. The legacy hash has 31 bits: others make its names differ
/// whatever else the directory holds.
fn position_hash(name: &[u8], version: HashVersion, superblock: &Superblock) -> Option<(u32, u32)> {
    let (major, minor) = name_hash(name, version, superblock.hash_seed)?;
    let is_legacy = version.algorithm == HashVersion::LEGACY;
    Some((major, if is_legacy { crc32c(CRC32C_START, name) } else { minor }))
}

/// Gives sorted entries that share a position places behind each other: a listing that goes on
/// behind one of them must find the others.
fn part_positions(entries: &mut [Listed]) {
    let mut last = 0;
    for listed in entries {
        listed.position = listed.position.max(last + 1);
        last = listed.position;
    }
}

impl<D: Scheduler> Ext<D> {
    pub(super) fn dir_format(&self) -> DirFormat {
        DirFormat {
            has_type: self.superblock.incompat.has(Incompat::FILETYPE),
            has_checksum: self.superblock.checksum_seed().is_some(),
        }
    }

    /// Number of blocks of the directory.
    pub(super) fn dir_blocks(&mut self, dir: Ino) -> Result<u32, Error> {
        let size = self.block_size() as u64;
        let blocks = self.inode(dir)?.size.div_ceil(size);
        let most = self.superblock.blocks_count.min(u32::MAX.into());
        Corrupt::check_range(Place::Inode(dir), "blocks of a directory", blocks, (0, most))?;
        Ok(blocks as u32)
    }

    /// Refuses a directory whose entries are not where they usually are.
    fn check_readable(&mut self, dir: Ino) -> Result<(), Error> {
        let flags = self.inode(dir)?.flags;
        for (flag, feature) in [
            (InodeFlags::INLINE_DATA, Incompat::INLINE_DATA),
            (InodeFlags::ENCRYPT, Incompat::ENCRYPT),
            (InodeFlags::CASEFOLD, Incompat::CASEFOLD),
        ] {
            if flags.has(flag) {
                return Err(crate::error::Incompatible::Features(feature).into());
            }
        }
        Ok(())
    }

    pub(super) fn dir_kind(&mut self, dir: Ino) -> Result<Kind, Error> {
        Ok(Kind::Directory(self.seed_of(dir)?))
    }

    /// Address of a block of the directory.
    pub(super) fn dir_place(&mut self, dir: Ino, block: u32) -> Result<BlockAddr, Error> {
        match self.map(dir, block)?.state {
            State::Written(at) => Ok(at),
            _ => {
                let place = Place::Directory(dir, block);
                Err(Corrupt::Mismatch {
                    place,
                    field: "a hole in a directory",
                    found: 1,
                    expected: 0,
                }
                .into())
            }
        }
    }

    /// A block of the directory.
    pub(super) fn dir_block(&mut self, dir: Ino, block: u32) -> Result<Vec<u8>, Error> {
        let (at, kind) = (self.dir_place(dir, block)?, self.dir_kind(dir)?);
        Ok(self.meta(at, kind, Place::Directory(dir, block))?.to_vec())
    }

    pub(super) fn edit_dir_block(&mut self, dir: Ino, block: u32) -> Result<&mut [u8], Error> {
        self.listing.take_if(|listing| listing.dir == dir);
        let (at, kind) = (self.dir_place(dir, block)?, self.dir_kind(dir)?);
        self.edit_meta(at, kind, Place::Directory(dir, block))
    }

    /// A new block at the end of the directory, without entries.
    pub(super) fn append_dir_block(&mut self, dir: Ino) -> Result<u32, Error> {
        self.listing.take_if(|listing| listing.dir == dir);
        let block = self.dir_blocks(dir)?;
        let State::Written(at) = self.allocate_run(dir, block, 1, true)?.state else {
            return Err(Error::NoSpace);
        };
        let (kind, format) = (self.dir_kind(dir)?, self.dir_format());
        DirBlockMut::init(self.new_meta(at, kind), format, dir, block);
        let size = self.block_size() as u64;
        self.edit_inode(dir)?.size = (u64::from(block) + 1) * size;
        Ok(block)
    }

    pub(super) fn is_indexed(&mut self, dir: Ino) -> Result<bool, Error> {
        let has_feature = self.superblock.compat.has(Compat::DIR_INDEX);
        Ok(has_feature && self.inode(dir)?.flags.has(InodeFlags::INDEX))
    }

    /// As in Linux a damaged index is passed over, unless blocks have checksums: then the blocks of
    /// an index are no blocks of entries.
    fn may_pass_over_indexes(&self) -> bool {
        self.superblock.checksum_seed().is_none()
    }

    /// The index does not lead to where the name belongs, and may be passed over.
    fn passes_over_index(&mut self, dir: Ino, name: &[u8]) -> Result<bool, Error> {
        match self.check_index(dir, name) {
            Err(Error::Corrupt(_)) if self.may_pass_over_indexes() => Ok(true),
            checked => checked.map(|()| false),
        }
    }

    /// The entry called `name`; "." and ".." are entries as well.
    pub(super) fn find_entry(&mut self, dir: Ino, name: &[u8]) -> Result<Option<Entry>, Error> {
        self.check_readable(dir)?;
        if name == b"." || name == b".." {
            return self.find_in_block(dir, 0, name);
        }
        if self.is_indexed(dir)? {
            match self.find_by_hash(dir, name) {
                Err(Error::Corrupt(_)) if self.may_pass_over_indexes() => {}
                found => return found,
            }
        }
        for block in 0..self.dir_blocks(dir)? {
            if let Some(entry) = self.find_in_block(dir, block, name)? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    pub(super) fn find_in_block(
        &mut self,
        dir: Ino,
        block: u32,
        name: &[u8],
    ) -> Result<Option<Entry>, Error> {
        let format = self.dir_format();
        let (at, kind) = (self.dir_place(dir, block)?, self.dir_kind(dir)?);
        let bytes = self.meta(at, kind, Place::Directory(dir, block))?;
        let Some(found) = DirBlock::new(bytes, format, dir, block).find(name)? else {
            return Ok(None);
        };
        let (ino, offset) = (found.ino, found.offset);
        let last = u64::from(self.superblock.inodes_count);
        Corrupt::check_range(Place::Directory(dir, block), "an entry's inode", ino.0, (1, last))?;
        Ok(Some(Entry { ino, block, offset }))
    }

    /// Names inode `ino` in the directory. That the name is not taken is the caller's to know.
    pub(super) fn add_entry(
        &mut self,
        dir: Ino,
        name: &[u8],
        ino: Ino,
        kind: FileType,
    ) -> Result<(), Error> {
        if self.is_indexed(dir)? && !self.passes_over_index(dir, name)? {
            return self.add_by_hash(dir, name, ino, kind);
        }
        if self.inode(dir)?.flags.has(InodeFlags::INDEX) {
            // the name may take the place of the index's root
            let inode = self.edit_inode(dir)?;
            inode.flags = inode.flags.without(InodeFlags::INDEX);
        }
        let blocks = self.dir_blocks(dir)?;
        for block in 0..blocks {
            if self.add_in_block(dir, block, (name, ino, kind))? {
                return Ok(());
            }
        }
        if blocks == 1 && self.superblock.compat.has(Compat::DIR_INDEX) {
            self.make_index(dir)?;
            return self.add_by_hash(dir, name, ino, kind);
        }
        let block = self.append_dir_block(dir)?;
        self.add_in_block(dir, block, (name, ino, kind)).map(drop)
    }

    /// Adds an entry to a block, if it has room.
    pub(super) fn add_in_block(
        &mut self,
        dir: Ino,
        block: u32,
        (name, ino, kind): (&[u8], Ino, FileType),
    ) -> Result<bool, Error> {
        let format = self.dir_format();
        let mut bytes = self.dir_block(dir, block)?;
        // tried on a copy: most blocks on the way are full
        if DirBlockMut::new(&mut bytes, format, dir, block).insert(name, ino, kind)?.is_none() {
            return Ok(false);
        }
        self.edit_dir_block(dir, block)?.copy_from_slice(&bytes);
        Ok(true)
    }

    pub(super) fn remove_entry(&mut self, dir: Ino, entry: &Entry) -> Result<(), Error> {
        let format = self.dir_format();
        let listing = self.listing.take_if(|listing| listing.dir == dir);
        let bytes = self.edit_dir_block(dir, entry.block)?;
        DirBlockMut::new(bytes, format, dir, entry.block).remove(entry.offset)?;
        if let Some(mut listing) = listing {
            listing.gone.insert(self.place_in_dir(entry.block, entry.offset));
            self.listing = Some(listing);
        }
        Ok(())
    }

    fn place_in_dir(&self, block: u32, offset: usize) -> u64 {
        u64::from(block) * self.block_size() as u64 + offset as u64
    }

    /// Makes an entry name another inode.
    pub(super) fn set_entry(
        &mut self,
        dir: Ino,
        entry: &Entry,
        ino: Ino,
        kind: FileType,
    ) -> Result<(), Error> {
        let format = self.dir_format();
        let bytes = self.edit_dir_block(dir, entry.block)?;
        DirBlockMut::new(bytes, format, dir, entry.block).set_target(entry.offset, ino, kind);
        Ok(())
    }

    /// "." and ".." of a new directory.
    pub(super) fn fill_directory(&mut self, dir: Ino, parent: Ino) -> Result<(), Error> {
        let block = self.append_dir_block(dir)?;
        self.add_in_block(dir, block, (b".", dir, FileType::DIRECTORY))?;
        self.add_in_block(dir, block, (b"..", parent, FileType::DIRECTORY)).map(drop)
    }

    /// Only "." and ".." are left.
    pub(super) fn is_empty_dir(&mut self, dir: Ino) -> Result<bool, Error> {
        let format = self.dir_format();
        for block in 0..self.dir_blocks(dir)? {
            let bytes = self.dir_block(dir, block)?;
            for entry in DirBlock::new(&bytes, format, dir, block).entries() {
                if !matches!(entry?.name, b"." | b"..") {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Calls `found` for each entry behind position `cookie`, with its own, until that returns
    /// `false`.
    pub(super) fn list(
        &mut self,
        dir: Ino,
        cookie: u64,
        found: &mut dyn FnMut(u64, &DirEntry) -> bool,
    ) -> Result<(), Error> {
        let listing = self.listing_of(dir)?;
        let from = listing.entries.partition_point(|listed| listed.position <= cookie);
        let entries = listing.entries[from..].iter();
        for listed in entries.filter(|listed| !listing.gone.contains(&listed.place)) {
            if !found(listed.position, &listed.entry) {
                break;
            }
        }
        self.listing = Some(listing);
        Ok(())
    }

    /// Damaged parts, in which [`Self::list`] finds no entry.
    pub(super) fn left_out_of(&mut self, dir: Ino) -> Result<LeftOut, Error> {
        let listing = self.listing_of(dir)?;
        let left = listing.left_out.clone();
        self.listing = Some(listing);
        Ok(left)
    }

    /// The listing that is known, or a new one.
    fn listing_of(&mut self, dir: Ino) -> Result<Listing, Error> {
        self.check_readable(dir)?;
        match self.listing.take().filter(|listing| listing.dir == dir) {
            Some(listing) => Ok(listing),
            None => self.read_entries(dir),
        }
    }

    /// All entries, in the order of their positions. A block that is damaged is passed over, and so
    /// is what follows damage in one, as the kernel does.
    fn read_entries(&mut self, dir: Ino) -> Result<Listing, Error> {
        let format = self.dir_format();
        let blocks = self.dir_blocks(dir)?;
        let by_hash =
            self.superblock.compat.has(Compat::DIR_INDEX) && (self.is_indexed(dir)? || blocks == 1);
        let version = match by_hash.then(|| self.hash_version(dir)) {
            Some(Err(Error::Corrupt(_))) if self.may_pass_over_indexes() => None,
            version => version.transpose()?,
        };
        let (mut entries, mut left_out) = (Vec::new(), LeftOut::default());
        for block in 0..blocks {
            let bytes = match self.dir_block(dir, block) {
                Err(Error::Corrupt(what)) => {
                    left_out.push(what);
                    continue;
                }
                bytes => bytes?,
            };
            for record in DirBlock::new(&bytes, format, dir, block).entries() {
                let record = match record {
                    Ok(record) => record,
                    Err(error) => {
                        left_out.push(error);
                        continue;
                    }
                };
                let place = self.place_in_dir(block, record.offset);
                let hash = version
                    .and_then(|version| position_hash(record.name, version, &self.superblock));
                let position = match (record.name, hash) {
                    (b".", Some(_)) => 1,
                    (b"..", Some(_)) => 2,
                    (_, Some((major, minor))) => {
                        3 + (u64::from(major >> 1) << 32 | u64::from(minor))
                    }
                    (_, None) => place + 1,
                };
                let (name, ino, file_type) = (record.name.to_vec(), record.ino, record.file_type);
                entries.push(Listed { position, place, entry: DirEntry { name, ino, file_type } });
            }
        }
        entries.sort_by(|a, b| (a.position, &a.entry.name).cmp(&(b.position, &b.entry.name)));
        part_positions(&mut entries);
        Ok(Listing { dir, entries, gone: FxHashSet::default(), left_out })
    }
}
