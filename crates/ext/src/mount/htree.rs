//! The index of a directory: names found by their hash, blocks split when they are full.

use dovetail_block::Scheduler;
use dovetail_vfs::kit::PathError;

use super::Ext;
use super::directory::Entry;
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    DirBlock, DirBlockMut, DirEntry, DxBlock, DxEntry, DxInfo, FileType, HashVersion, Incompat,
    Ino, InodeFlags, dir_record_len, dx_limit, name_hash,
};

/// The way from the root to a block of entries: index blocks with their tables, and the entry that
/// was taken in each.
struct Way {
    steps: Vec<(u32, DxBlock, usize)>,
}

impl Way {
    /// The block of entries at its end.
    fn leaf(&self) -> u32 {
        self.steps.last().map_or(0, |(_, table, at)| table.entries[*at].block)
    }
}

impl<D: Scheduler> Ext<D> {
    fn has_sums(&self) -> bool {
        self.dir_format().has_checksum
    }

    fn dx_root(&mut self, dir: Ino) -> Result<DxBlock, Error> {
        let (sums, large) = (self.has_sums(), self.superblock.incompat.has(Incompat::LARGE_DIR));
        Ok(DxBlock::parse_root(&self.dir_block(dir, 0)?, dir, sums, large)?)
    }

    fn dx_node(&mut self, dir: Ino, block: u32) -> Result<DxBlock, Error> {
        let sums = self.has_sums();
        Ok(DxBlock::parse_node(&self.dir_block(dir, block)?, dir, block, sums)?)
    }

    /// Hash of the names in a directory, or the one that an index of it would use.
    pub(super) fn hash_version(&mut self, dir: Ino) -> Result<HashVersion, Error> {
        let version = if self.is_indexed(dir)? {
            self.dx_root(dir)?.info.map_or(0, |info| info.hash_version)
        } else {
            self.superblock.hash_version.min(HashVersion::TEA)
        };
        Ok(self.superblock.hash_version(version))
    }

    fn hash(&self, name: &[u8], version: HashVersion) -> u32 {
        name_hash(name, version, self.superblock.hash_seed).map_or(0, |(major, _)| major)
    }

    fn root_and_hash(&mut self, dir: Ino, name: &[u8]) -> Result<(DxBlock, u32), Error> {
        let root = self.dx_root(dir)?;
        let version = root.info.map_or(0, |info| info.hash_version);
        let hash = self.hash(name, self.superblock.hash_version(version));
        Ok((root, hash))
    }

    fn way_to(&mut self, dir: Ino, root: DxBlock, hash: u32) -> Result<Way, Error> {
        let levels = root.info.map_or(0, |info| info.indirect_levels);
        let at = root.position(hash);
        let mut way = Way { steps: vec![(0, root, at)] };
        for _ in 0..levels {
            let block = way.leaf();
            let node = self.dx_node(dir, block)?;
            let at = node.position(hash);
            way.steps.push((block, node, at));
        }
        Ok(way)
    }

    /// The index leads to a block for the name.
    pub(super) fn check_index(&mut self, dir: Ino, name: &[u8]) -> Result<(), Error> {
        let (root, hash) = self.root_and_hash(dir, name)?;
        self.way_to(dir, root, hash).map(drop)
    }

    /// Goes on to the next block of entries if names of this hash may stand there.
    fn continue_way(&mut self, dir: Ino, way: &mut Way, hash: u32) -> Result<bool, Error> {
        let more = |(_, table, at): &(u32, DxBlock, usize)| at + 1 < table.entries.len();
        let Some(level) = way.steps.iter().rposition(more) else { return Ok(false) };
        let depth = way.steps.len();
        let (_, table, at) = &mut way.steps[level];
        *at += 1;
        if table.entries[*at].hash != hash | 1 {
            return Ok(false);
        }
        way.steps.truncate(level + 1);
        while way.steps.len() < depth {
            let block = way.leaf();
            way.steps.push((block, self.dx_node(dir, block)?, 0));
        }
        Ok(true)
    }

    pub(super) fn find_by_hash(&mut self, dir: Ino, name: &[u8]) -> Result<Option<Entry>, Error> {
        let (root, hash) = self.root_and_hash(dir, name)?;
        let mut way = self.way_to(dir, root, hash)?;
        loop {
            if let Some(entry) = self.find_in_block(dir, way.leaf(), name)? {
                return Ok(Some(entry));
            }
            if !self.continue_way(dir, &mut way, hash)? {
                return Ok(None);
            }
        }
    }

    pub(super) fn add_by_hash(
        &mut self,
        dir: Ino,
        name: &[u8],
        ino: Ino,
        kind: FileType,
    ) -> Result<(), Error> {
        // each try splits a block; a block of entries of one hash cannot be split to any use
        for _ in 0..16 {
            let (root, hash) = self.root_and_hash(dir, name)?;
            let way = self.way_to(dir, root, hash)?;
            if self.add_in_block(dir, way.leaf(), (name, ino, kind))? {
                return Ok(());
            }
            self.split_leaf(dir, way)?;
        }
        Err(Error::NoSpace)
    }

    /// The only block of a directory becomes the root of an index, its entries move to a block
    /// below.
    pub(super) fn make_index(&mut self, dir: Ino) -> Result<(), Error> {
        let format = self.dir_format();
        let old = self.dir_block(dir, 0)?;
        let parent =
            self.find_in_block(dir, 0, b"..")?.ok_or(PathError::NotFound("..".into()))?.ino;
        let entries = entries_of(&DirBlock::new(&old, format, dir, 0))?;
        let leaf = self.append_dir_block(dir)?;
        let mut moved = vec![0; old.len()];
        let names = entries.iter().filter(|entry| !entry.is_dot());
        fill(&mut DirBlockMut::init(&mut moved, format, dir, leaf), names)?;
        self.edit_dir_block(dir, leaf)?.copy_from_slice(&moved);
        let root = DxBlock {
            info: Some(DxInfo {
                hash_version: self.superblock.hash_version.min(HashVersion::TEA),
                indirect_levels: 0,
            }),
            limit: dx_limit(old.len(), true, format.has_checksum),
            entries: vec![DxEntry { hash: 0, block: leaf }],
        };
        let mut block = vec![0; old.len()];
        // without a tail: the record of ".." covers the rest
        let dots = crate::format::DirFormat { has_checksum: false, ..format };
        let mut first = DirBlockMut::init(&mut block, dots, dir, 0);
        first.insert(b".", dir, FileType::DIRECTORY)?;
        first.insert(b"..", parent, FileType::DIRECTORY)?;
        root.encode(&mut block);
        self.edit_dir_block(dir, 0)?.copy_from_slice(&block);
        let inode = self.edit_inode(dir)?;
        inode.flags = inode.flags.with(InodeFlags::INDEX);
        Ok(())
    }

    /// The upper half of a full block's hashes moves to a new block.
    fn split_leaf(&mut self, dir: Ino, way: Way) -> Result<(), Error> {
        let Some(mut way) = self.make_index_room(dir, way)? else { return Ok(()) };
        let format = self.dir_format();
        let leaf = way.leaf();
        let version = self.hash_version(dir)?;
        let bytes = self.dir_block(dir, leaf)?;
        let entries = entries_of(&DirBlock::new(&bytes, format, dir, leaf))?;
        let mut hashed: Vec<(u32, DirEntry)> =
            entries.into_iter().map(|entry| (self.hash(&entry.name, version), entry)).collect();
        hashed.sort_by_key(|(hash, _)| *hash);
        let at = half(&hashed).ok_or(Error::NoSpace)?;
        let hash = hashed[at].0 | u32::from(hashed[at - 1].0 == hashed[at].0);
        let new = self.append_dir_block(dir)?;
        for (block, part) in [(leaf, &hashed[..at]), (new, &hashed[at..])] {
            let mut bytes = vec![0; bytes.len()];
            fill(
                &mut DirBlockMut::init(&mut bytes, format, dir, block),
                part.iter().map(|(_, entry)| entry),
            )?;
            self.edit_dir_block(dir, block)?.copy_from_slice(&bytes);
        }
        if let Some((block, table, at)) = way.steps.last_mut() {
            table.entries.insert(*at + 1, DxEntry { hash, block: new });
            let table = table.clone();
            self.write_table(dir, *block, &table)?;
        }
        Ok(())
    }

    fn write_table(&mut self, dir: Ino, block: u32, table: &DxBlock) -> Result<(), Error> {
        table.encode(self.edit_dir_block(dir, block)?);
        Ok(())
    }

    /// The way as it was, if its last table has room for an entry; `None` if the tree was changed
    /// so that the next way has more.
    fn make_index_room(&mut self, dir: Ino, way: Way) -> Result<Option<Way>, Error> {
        let full =
            |(_, table, _): &(u32, DxBlock, usize)| table.entries.len() >= table.limit.into();
        if way.steps.last().is_none_or(|step| !full(step)) {
            return Ok(Some(way));
        }
        let with_room = way.steps.iter().rposition(|step| !full(step));
        match with_room {
            Some(level) => self.split_node(dir, &way, level)?,
            None => self.deepen(dir, &way)?,
        }
        Ok(None)
    }

    /// The full node below `level` gives half of its entries to a new one.
    fn split_node(&mut self, dir: Ino, way: &Way, level: usize) -> Result<(), Error> {
        let (parent, mut table, at) = way.steps[level].clone();
        let (block, mut node, _) = way.steps[level + 1].clone();
        let upper = node.entries.split_off(node.entries.len() / 2);
        let new = self.append_dir_block(dir)?;
        table.entries.insert(at + 1, DxEntry { hash: upper[0].hash, block: new });
        self.write_table(dir, block, &node)?;
        self.write_table(dir, new, &DxBlock { info: None, limit: node.limit, entries: upper })?;
        self.write_table(dir, parent, &table)
    }

    /// The full root gets a level of nodes below it.
    fn deepen(&mut self, dir: Ino, way: &Way) -> Result<(), Error> {
        let (_, mut root, _) = way.steps[0].clone();
        let Some(info) = root.info.as_mut() else { return Err(Error::NoSpace) };
        let most = if self.superblock.incompat.has(Incompat::LARGE_DIR) { 2 } else { 1 };
        if info.indirect_levels >= most {
            return Err(Error::NoSpace);
        }
        info.indirect_levels += 1;
        let new = self.append_dir_block(dir)?;
        let limit = dx_limit(self.block_size(), false, self.has_sums());
        let entries = std::mem::replace(&mut root.entries, vec![DxEntry { hash: 0, block: new }]);
        Corrupt::check_range(
            Place::Directory(dir, 0),
            "count",
            entries.len() as u64,
            (1, limit.into()),
        )?;
        self.write_table(dir, new, &DxBlock { info: None, limit, entries })?;
        self.write_table(dir, 0, &root)
    }
}

fn entries_of(block: &DirBlock<'_>) -> Result<Vec<DirEntry>, Corrupt> {
    let entry = |record: Result<crate::format::DirRecord<'_>, Corrupt>| {
        let record = record?;
        Ok(DirEntry { name: record.name.to_vec(), ino: record.ino, file_type: record.file_type })
    };
    block.entries().map(entry).collect()
}

fn fill<'a>(
    block: &mut DirBlockMut<'_>,
    entries: impl Iterator<Item = &'a DirEntry>,
) -> Result<(), Corrupt> {
    for entry in entries {
        block.insert(&entry.name, entry.ino, entry.file_type)?;
    }
    Ok(())
}

/// Index of the entry with which the second half begins, by bytes; `None` for fewer than two
/// entries.
fn half(hashed: &[(u32, DirEntry)]) -> Option<usize> {
    let sizes = hashed.iter().map(|(_, entry)| dir_record_len(entry.name.len()));
    let total: usize = sizes.clone().sum();
    let mut sum = 0;
    let at = sizes.take_while(|size| {
        sum += size;
        sum <= total / 2
    });
    let at = at.count().clamp(1, hashed.len().max(2) - 1);
    (hashed.len() > 1).then_some(at)
}
