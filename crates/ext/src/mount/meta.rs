//! Blocks that describe files: read once, edited in memory in the running transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, BlockBytes, Scheduler};
use dovetail_time::SimTime;
use rustc_hash::FxHashMap;

use super::Ext;
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BlockAddr, GroupNo, Ino, Superblock, dir_block_checksums, dx_block_checksums,
    extent_block_checksums, seal_dir_block, seal_dx_block, seal_extent_block, seal_xattr_block,
    xattr_block_checksums,
};
use crate::io::{HomeKind, bytes};

/// Kind of a metadata block: it decides how the checksum is made, where there are checksums. Seeds
/// are those of the inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Has none, or one that stands elsewhere: bitmaps, inode tables, descriptors, pointers,
    /// targets.
    Plain,
    /// A block of a directory, entries or index.
    Directory(Option<u32>),
    /// A node of an extent tree.
    Extents(Option<u32>),
    /// Extended attributes.
    Xattrs(Option<u32>),
}

impl Kind {
    const fn at_home(self) -> HomeKind {
        match self {
            Self::Directory(_) => HomeKind::Directory,
            _ => HomeKind::Other,
        }
    }
}

/// Blocks in memory, in their newest form.
#[derive(Debug)]
pub(super) struct MetaCache {
    blocks: FxHashMap<BlockAddr, Arc<BlockBytes>>,
    bound: usize,
}

impl MetaCache {
    /// A cache of about `bound` blocks, more if the running transaction has more.
    pub(super) fn new(bound: usize) -> Self {
        Self { blocks: FxHashMap::default(), bound: bound.max(64) }
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// The block, if it is in memory.
    pub(super) fn peek(&self, at: BlockAddr) -> Option<&BlockBytes> {
        self.blocks.get(&at).map(|block| &**block)
    }
}

/// The transaction that calls add to.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// Blocks that were edited.
    pub(super) blocks: BTreeMap<BlockAddr, Kind>,
    /// Blocks of metadata that were freed.
    pub(super) revokes: BTreeSet<BlockAddr>,
    /// Inodes that were edited.
    pub(super) inodes: BTreeSet<Ino>,
    /// Blocks of inode tables that they will be encoded into, unless those were edited before.
    tables: BTreeSet<BlockAddr>,
    /// Those of them that an fdatasync must make durable: more than times changed.
    pub(super) content: BTreeSet<Ino>,
    /// Groups whose descriptor changed.
    pub(super) groups: BTreeSet<GroupNo>,
    /// Files whose mapped pages are written before the commit.
    pub(super) ordered: BTreeSet<Ino>,
    /// Files with content that is logged.
    pub(super) journaled: BTreeSet<Ino>,
    /// The superblock changed.
    pub(super) superblock: bool,
    /// Runs of blocks that were freed.
    pub(super) freed: Vec<(BlockAddr, u32)>,
    /// Time at which it began.
    pub(super) began: Option<SimTime>,
}

impl Running {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
            && self.revokes.is_empty()
            && self.inodes.is_empty()
            && self.groups.is_empty()
            && !self.superblock
    }

    /// About how many blocks it will log.
    pub(super) fn size(&self, superblock: &Superblock) -> usize {
        let descriptors = self.groups.len().div_ceil(superblock.descriptors_per_block() as usize);
        self.blocks.len() + self.tables.len() + descriptors + self.revokes.len() / 100
    }
}

impl<D: Scheduler> Ext<D> {
    /// The inode changed: an fsync of it commits the running transaction.
    pub(super) fn add_inode(&mut self, ino: Ino) -> Result<(), Error> {
        if self.running.inodes.insert(ino) {
            let (table, _) = self.inode_place(ino)?;
            if !self.running.blocks.contains_key(&table) {
                self.running.tables.insert(table);
            }
        }
        Ok(())
    }

    /// The inode, or what it leads to, changed by more than times: an fdatasync commits it as well.
    pub(super) fn add_content(&mut self, ino: Ino) -> Result<(), Error> {
        self.running.content.insert(ino);
        self.add_inode(ino)
    }

    /// A block of metadata, checked when it is first read. `place` names it in case of damage.
    pub(super) fn meta(&mut self, at: BlockAddr, kind: Kind, place: Place) -> Result<&[u8], Error> {
        self.load_meta(at, kind, place)?;
        let size = self.block_size();
        Ok(self.meta.blocks.get(&at).map_or(&[], |block| &block[..size]))
    }

    fn load_meta(&mut self, at: BlockAddr, kind: Kind, place: Place) -> Result<(), Error> {
        if self.meta.blocks.contains_key(&at) {
            return Ok(());
        }
        if !self.is_place(at) {
            let last = self.superblock.blocks_count - 1;
            Corrupt::check_range(
                place,
                "block",
                at.0,
                (self.superblock.first_data_block.into(), last),
            )?;
        }
        let committed = self.journal.as_ref().and_then(|journal| journal.committed(at.0)).cloned();
        let content = match committed {
            Some(content) => content,
            None => self.io.read(at.0)?,
        };
        let block = bytes(&content);
        check_block(&block[..self.block_size()], at, kind, place)?;
        self.insert_meta(at, block);
        Ok(())
    }

    fn insert_meta(&mut self, at: BlockAddr, block: Arc<BlockBytes>) {
        if self.meta.blocks.len() >= self.meta.bound.max(2 * self.running.blocks.len()) {
            let running = &self.running.blocks;
            self.meta.blocks.retain(|at, _| running.contains_key(at));
        }
        self.meta.blocks.insert(at, block);
    }

    /// The block to be changed; the change is in the running transaction, and so is the inode whose
    /// block it is: an fsync finds the transaction by the inode.
    pub(super) fn edit_meta(
        &mut self,
        at: BlockAddr,
        kind: Kind,
        place: Place,
    ) -> Result<&mut [u8], Error> {
        self.load_meta(at, kind, place)?;
        self.note_edit();
        if let Place::Pointers(ino) | Place::Extents(ino, _) = place {
            self.io.set_metadata_of(at.0, ino.0);
        }
        if matches!(place, Place::Inode(_)) {
            self.io.set_kind(at.0, HomeKind::Inodes);
        } else {
            self.io.set_kind(at.0, kind.at_home());
        }
        if let Place::Directory(ino, _) | Place::Pointers(ino) | Place::Extents(ino, _) = place {
            self.add_content(ino)?;
        }
        self.running.blocks.insert(at, kind);
        let size = self.block_size();
        Ok(self.meta.blocks.get_mut(&at).map_or(&mut [], |block| &mut Arc::make_mut(block)[..size]))
    }

    /// A new block of zeros, to be filled; what was there is not read.
    pub(super) fn new_meta(&mut self, at: BlockAddr, kind: Kind) -> &mut [u8] {
        self.note_edit();
        self.insert_meta(at, Arc::new([0; BLOCK_SIZE as usize]));
        self.io.set_kind(at.0, kind.at_home());
        self.running.blocks.insert(at, kind);
        let size = self.block_size();
        self.meta.blocks.get_mut(&at).map_or(&mut [], |block| &mut Arc::make_mut(block)[..size])
    }

    /// The block is no longer metadata.
    pub(super) fn forget_meta(&mut self, at: BlockAddr) {
        self.note_edit();
        self.meta.blocks.remove(&at);
        self.running.blocks.remove(&at);
        self.running.revokes.insert(at);
        self.io.forget_metadata(at.0);
    }

    /// Gives the content of a metadata block another address from now on; the old one is as after
    /// [`Self::forget_meta`].
    pub(super) fn rename_meta(&mut self, from: BlockAddr, to: BlockAddr, ino: Ino) {
        let block = self.meta.blocks.get(&from).cloned();
        self.forget_meta(from);
        if let Some(block) = block {
            self.insert_meta(to, block);
        }
        self.io.set_metadata_of(to.0, ino.0);
    }

    /// Something is about to change.
    pub(super) fn note_edit(&mut self) {
        self.edits += 1;
        self.running.began.get_or_insert(self.io.now());
    }

    /// The bytes of an edited block with their checksum, as they are logged.
    pub(super) fn sealed(&mut self, at: BlockAddr, kind: Kind) -> Option<Arc<BlockBytes>> {
        let size = self.block_size();
        let block = self.meta.blocks.get_mut(&at)?;
        match kind {
            Kind::Plain | Kind::Directory(None) | Kind::Extents(None) | Kind::Xattrs(None) => {}
            Kind::Directory(Some(seed)) => {
                let bytes = &mut Arc::make_mut(block)[..size];
                if dx_block_checksums(bytes, seed).is_some() {
                    seal_dx_block(bytes, seed);
                } else {
                    seal_dir_block(bytes, seed);
                }
            }
            Kind::Extents(Some(seed)) => seal_extent_block(&mut Arc::make_mut(block)[..size], seed),
            Kind::Xattrs(Some(seed)) => {
                seal_xattr_block(&mut Arc::make_mut(block)[..size], at, seed);
            }
        }
        Some(Arc::clone(block))
    }
}

/// The checksum of a block that was read is right.
fn check_block(block: &[u8], at: BlockAddr, kind: Kind, place: Place) -> Result<(), Corrupt> {
    let sums = match kind {
        Kind::Plain | Kind::Directory(None) | Kind::Extents(None) | Kind::Xattrs(None) => None,
        Kind::Directory(Some(seed)) => {
            // a kernel leaves the tail of the entries in a block that it makes the root of an index
            dx_block_checksums(block, seed).or_else(|| dir_block_checksums(block, seed))
        }
        Kind::Extents(Some(seed)) => extent_block_checksums(block, seed),
        Kind::Xattrs(Some(seed)) => Some(xattr_block_checksums(block, at, seed)),
    };
    sums.map_or(Ok(()), |(found, computed)| Corrupt::check_checksum(place, found, computed))
}
