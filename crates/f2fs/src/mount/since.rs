//! Changes since the last checkpoint, as far as an fsync asks for them.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::policy::FsyncFacts;
use crate::format::Nid;

/// Changes since the last checkpoint that a record of an fsync would not say, or says only once.
#[derive(Debug, Default)]
pub(super) struct SinceCheckpoint {
    /// Inodes that the last checkpoint does not know.
    new_inodes: BTreeSet<Nid>,
    /// Inodes whose block was logged by an fsync.
    logged: BTreeSet<Nid>,
    /// Directories whose extended attributes changed.
    xattr_dirs: BTreeSet<Nid>,
    /// Directories that lost an entry.
    changed_dirs: BTreeSet<Nid>,
    /// Directories from which a directory was removed or moved away.
    lost_dirs: BTreeSet<Nid>,
    /// Inodes of which nodes were written without a mark, after the last mark in the chain if there
    /// is one: cleaning moved them, or a checkpoint found no space for the rest.
    unmarked: BTreeSet<Nid>,
    /// Inodes of which blocks wait for the next checkpoint to get to their addresses.
    held_moves: BTreeSet<Nid>,
    /// The warm node log could not go on where its last block says.
    chain_broken: bool,
    /// Inodes that lost whole nodes by a truncation.
    dropped_nodes: BTreeSet<Nid>,
    /// Blocks that came to be used, as opposed to rewritten.
    allocated: u64,
    /// Nodes that records hold: a recovery writes each of them once.
    recorded: FxHashSet<Nid>,
    /// Blocks that a recovery writes beside those nodes.
    recovered_beside: u64,
}

impl SinceCheckpoint {
    pub(super) fn note_new_inode(&mut self, ino: Nid) {
        self.new_inodes.insert(ino);
    }

    pub(super) fn note_dropped_inode(&mut self, ino: Nid) {
        self.new_inodes.remove(&ino);
        self.logged.remove(&ino);
    }

    /// An fsync has written the inode's block, with a mark for the chain.
    pub(super) fn note_logged(&mut self, ino: Nid) {
        self.logged.insert(ino);
        self.unmarked.remove(&ino);
    }

    /// An fsync writes a node as a record. With a name a recovery writes a block of a directory,
    /// its inode and a node between them, too; `beside` are further blocks.
    pub(super) fn note_record(&mut self, nid: Nid, named: bool, beside: u64) {
        self.recorded.insert(nid);
        self.recovered_beside += beside + if named { 3 } else { 0 };
    }

    /// Blocks that a recovery of the records so far would write.
    pub(super) fn blocks_to_recover(&self) -> u64 {
        self.recorded.len() as u64 + self.recovered_beside
    }

    /// A node of the inode has been written without a mark.
    pub(super) fn note_unmarked(&mut self, ino: Nid) {
        self.unmarked.insert(ino);
    }

    /// Cleaning has given a block of the inode an address that the device moves it to with the next
    /// checkpoint.
    pub(super) fn note_held_move(&mut self, ino: Nid) {
        self.held_moves.insert(ino);
    }

    pub(super) fn note_xattrs_of_dir(&mut self, dir: Nid) {
        self.xattr_dirs.insert(dir);
    }

    /// The directory has lost an entry.
    pub(super) fn note_changed_dir(&mut self, dir: Nid) {
        self.changed_dirs.insert(dir);
    }

    /// A directory was removed or moved away from this one.
    pub(super) fn note_lost_dir(&mut self, from: Nid) {
        self.lost_dirs.insert(from);
    }

    pub(super) fn note_dropped_nodes(&mut self, ino: Nid) {
        self.dropped_nodes.insert(ino);
    }

    pub(super) fn note_allocated(&mut self, blocks: u64) {
        self.allocated += blocks;
    }

    /// Recovery would not get beyond this point of the chain: until the next checkpoint no fsync
    /// can be a record.
    pub(super) fn break_chain(&mut self) {
        self.chain_broken = true;
    }

    pub(super) fn is_new(&self, ino: Nid) -> bool {
        self.new_inodes.contains(&ino)
    }

    pub(super) fn is_logged(&self, ino: Nid) -> bool {
        self.logged.contains(&ino)
    }

    pub(super) fn has_unmarked_nodes(&self, ino: Nid) -> bool {
        self.unmarked.contains(&ino)
    }

    /// Blocks that came to be used.
    pub(super) fn allocated(&self) -> u64 {
        self.allocated
    }

    /// The facts for an fsync that depend on these changes.
    pub(super) fn fsync_facts(&self, ino: Nid, parent: Nid) -> FsyncFacts {
        FsyncFacts {
            new_parent: self.is_new(parent),
            parent_xattrs: self.xattr_dirs.contains(&parent),
            strict_parent_changed: self.is_new(ino) && self.changed_dirs.contains(&parent),
            no_chain: self.chain_broken,
            parent_lost_dir: self.is_new(ino) && self.lost_dirs.contains(&parent),
            dropped_nodes: self.dropped_nodes.contains(&ino),
            held_moves: self.held_moves.contains(&ino),
            ..FsyncFacts::default()
        }
    }
}
