//! Roll-forward recovery: what fsyncs wrote after the last checkpoint.
//!
//! The nodes that fsyncs marked form a chain through the warm node log, from where the checkpoint
//! left it. They are replayed on the state of the checkpoint, and a new checkpoint makes the result
//! durable. Until then a power cut must find the chain, and the content it leads to, as they were.
//! So all logs first move to segments that hold none of it; then recovery can be cut short and
//! begun again any number of times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_block::{BlockBytes, Content, Scheduler};
use rustc_hash::{FxHashMap, FxHashSet};

use super::F2fs;
use super::chain::ChainReader;
use super::checkpoint::CheckpointReason;
use super::policy::Log;
use crate::error::{Corrupt, Damage, Error, Place};
use crate::format::{
    BlockAddr, FileType, Footer, InlineFlags, Inode, Nid, RawInode, Summary, XATTR_BYTES_IN_NODE,
    XATTR_NODE_OFFSET, first_block, is_indirect,
};

/// A node of the chain.
#[derive(Clone, Copy, Debug)]
struct Record {
    address: BlockAddr,
    footer: Footer,
}

/// The findings of the chain about one file.
#[derive(Clone, Copy, Debug, Default)]
struct Synced {
    /// The last of its nodes with a mark, as a place in the chain.
    last: usize,
    /// The last of its inodes that recovery must name.
    named: Option<usize>,
}

/// Content that is taken over from the chain.
#[derive(Default)]
struct Adopted {
    /// Each address that is taken over, and the file's block that it is.
    owners: FxHashMap<BlockAddr, (Nid, u64)>,
    /// Reads it, to see whether it is there.
    reader: ChainReader,
}

impl<D: Scheduler> F2fs<D> {
    /// Gives up the orphans listed, and rolls forward what fsyncs wrote. Nothing is written if
    /// there is nothing to do.
    pub(super) fn recover(&mut self, orphans: &[Nid]) -> Result<(), Error> {
        let recovered = self.roll_forward(orphans);
        self.pages.remove_inode(ChainReader::INO);
        recovered
    }

    fn roll_forward(&mut self, orphans: &[Nid]) -> Result<(), Error> {
        if self.options.no_recovery {
            return self.give_up_chain(orphans);
        }
        let chain = self.read_chain()?;
        let synced = self.synced_files(&chain)?;
        if orphans.is_empty() && synced.is_empty() {
            return self.discard_beyond();
        }
        self.guard_chain(&chain, &synced)?;
        self.drop_listed_orphans(orphans)?;
        self.recreate_files(&chain, &synced)?;
        let (mut reader, mut adopted) = (ChainReader::default(), Adopted::default());
        for (at, record) in chain.iter().enumerate() {
            let Some(file) = synced.get(&record.footer.ino) else { continue };
            // gone if a later file has its name
            if at <= file.last && self.is_known(record.footer.ino)? {
                let block = self.chain_block(&mut reader, record.address)?;
                self.replay(record, &block, file.named == Some(at), &mut adopted)?;
            }
        }
        self.space.end_recovery(&mut self.io)?;
        self.write_checkpoint(CheckpointReason::Sync)
    }

    /// Gives up what fsyncs wrote, by a checkpoint: the next mount would otherwise take the chain,
    /// which leads to blocks that this one writes anew.
    fn give_up_chain(&mut self, orphans: &[Nid]) -> Result<(), Error> {
        let chain = self.read_chain();
        if orphans.is_empty() && chain.as_ref().is_ok_and(Vec::is_empty) {
            return self.discard_beyond();
        }
        self.guard_claimed(std::iter::empty())?;
        self.drop_listed_orphans(orphans)?;
        self.space.end_recovery(&mut self.io)?;
        self.write_checkpoint(CheckpointReason::Sync)
    }

    /// Says whether fsyncs left something that a mount for writing would recover. For volumes that
    /// are mounted read-only.
    ///
    /// # Errors
    /// A damaged chain; [`Error::Io`].
    pub fn has_unrecovered(&mut self) -> Result<bool, Error> {
        let chain = self.read_chain();
        self.pages.remove_inode(ChainReader::INO);
        Ok(!self.synced_files(&chain?)?.is_empty())
    }

    /// The nodes of the chain, in order.
    fn read_chain(&mut self) -> Result<Vec<Record>, Error> {
        let (version, mask) = self.committed.checkpoint().footer_version();
        let (mut reader, mut chain) = (ChainReader::default(), Vec::new());
        let mut seen = BTreeSet::new();
        let mut next = self.space.next_address(Log::WarmNode);
        while self.superblock.in_main(next) && seen.insert(next) {
            let footer = Footer::parse(&*self.chain_block(&mut reader, next)?);
            if footer.checkpoint & mask != version & mask {
                break;
            }
            chain.push(Record { address: next, footer });
            next = footer.next_address(self.superblock.variant, next);
        }
        Ok(chain)
    }

    /// The files that the chain recovers: those that the checkpoint knows, and those whose inode it
    /// holds with both marks.
    fn synced_files(&mut self, chain: &[Record]) -> Result<BTreeMap<Nid, Synced>, Error> {
        let mut files: BTreeMap<Nid, Synced> = BTreeMap::new();
        for (at, record) in chain.iter().enumerate() {
            let footer = record.footer;
            if !footer.fsync_mark {
                continue;
            }
            let inode = footer.node_offset == 0;
            let named = inode && footer.dentry_mark;
            let last = u64::from(self.nat.max_nid()) - 1;
            Corrupt::check_range(
                Place::Node(footer.nid),
                "the footer's ino",
                footer.ino.0,
                (3, last),
            )?;
            let known = files.contains_key(&footer.ino)
                || self.nat_entry(footer.ino)?.address != BlockAddr::NULL;
            if !known && !named {
                continue;
            }
            let file = files.entry(footer.ino).or_default();
            file.last = at;
            if named {
                file.named = Some(at);
            }
        }
        Ok(files)
    }

    /// Keeps the chain, and the content it leads to, from being written.
    fn guard_chain(
        &mut self,
        chain: &[Record],
        synced: &BTreeMap<Nid, Synced>,
    ) -> Result<(), Error> {
        let (mut reader, mut claimed) = (ChainReader::default(), FxHashSet::default());
        // what lies further out is of a recovery that was cut: kept, it could take space each time
        let used = synced.values().map(|file| file.last + 1).max().unwrap_or(0);
        let kept = if self.space.guards_whole_chain() { chain.len() } else { used };
        for (at, record) in chain.iter().enumerate().take(kept) {
            claimed.insert(record.address);
            if synced.get(&record.footer.ino).is_none_or(|file| at > file.last) {
                continue;
            }
            let block = self.chain_block(&mut reader, record.address)?;
            for (_, address) in self.logged_pointers(record, &block)? {
                if self.superblock.in_main(address) {
                    claimed.insert(address);
                }
            }
        }
        self.guard_claimed(claimed.into_iter())
    }

    /// The pointers to content that a node of the chain holds: their index in the node, and where
    /// they lead.
    fn logged_pointers(
        &mut self,
        record: &Record,
        block: &BlockBytes,
    ) -> Result<Vec<(usize, BlockAddr)>, Error> {
        let (variant, offset) = (self.superblock.variant, record.footer.node_offset);
        if offset == XATTR_NODE_OFFSET || is_indirect(offset) {
            return Ok(Vec::new());
        }
        let (count, start) = if offset == 0 {
            let raw = RawInode::of(block);
            if raw.i_inline & (InlineFlags::DATA.0 | InlineFlags::DENTRY.0) != 0 {
                return Ok(Vec::new());
            }
            Inode::parse(Arc::new(*block), record.footer.ino, &self.superblock)?;
            let geometry = raw.geometry(self.superblock.layout());
            (geometry.pointers(), geometry.pointer_at(0))
        } else {
            (variant.direct_pointers(), 0)
        };
        let at = |index| start + variant.address_bytes() * index;
        Ok((0..count).map(|index| (index, variant.address_at(block, at(index)))).collect())
    }

    /// Makes the files that the checkpoint does not know, so that their nodes find them in whatever
    /// order they come.
    fn recreate_files(
        &mut self,
        chain: &[Record],
        synced: &BTreeMap<Nid, Synced>,
    ) -> Result<(), Error> {
        for (&ino, file) in synced {
            let Some(named) = file.named else { continue };
            if !self.is_known(ino)? {
                let block = self.chain_block(&mut ChainReader::default(), chain[named].address)?;
                self.recreate_inode(ino, &block)?;
            }
        }
        Ok(())
    }

    fn replay(
        &mut self,
        record: &Record,
        block: &Arc<BlockBytes>,
        named: bool,
        adopted: &mut Adopted,
    ) -> Result<(), Error> {
        let ino = record.footer.ino;
        match record.footer.node_offset {
            0 => {
                self.replay_inode(ino, block, named)?;
                self.replay_pointers(record, block, adopted)
            }
            XATTR_NODE_OFFSET => self.replay_xattr_node(ino, block),
            offset if is_indirect(offset) => Ok(()),
            _ => {
                // a file that has direct nodes has outgrown its inode, whatever the checkpoint says
                if self.has_inline_data(ino)? {
                    self.leave_inode(ino)?;
                }
                self.replay_pointers(record, block, adopted)
            }
        }
    }

    fn is_known(&mut self, ino: Nid) -> Result<bool, Error> {
        Ok(self.nodes.contains(ino) || self.nat_entry(ino)?.address != BlockAddr::NULL)
    }

    fn replay_inode(
        &mut self,
        ino: Nid,
        block: &Arc<BlockBytes>,
        named: bool,
    ) -> Result<(), Error> {
        let logged = Inode::parse(Arc::clone(block), ino, &self.superblock)?;
        self.check_same_geometry(ino, RawInode::of(block))?;
        self.replay_size(ino, &logged)?;
        self.replay_fields(ino, RawInode::of(block))?;
        self.replay_inline(ino, &logged)?;
        if named {
            self.replay_name(ino, &logged)?;
        }
        Ok(())
    }

    /// An inode never changes its layout.
    fn check_same_geometry(&mut self, ino: Nid, logged: &RawInode) -> Result<(), Error> {
        let (old, new) = (self.geometry(ino)?, logged.geometry(self.superblock.layout()));
        let check = |field, found: usize, expected: usize| {
            Corrupt::check_equal(Place::Inode(ino), field, found as u64, expected as u64)
        };
        check("the logged inode's number of pointers", new.pointers(), old.pointers())?;
        Ok(check("where its pointers begin", new.pointer_at(0), old.pointer_at(0))?)
    }

    /// Makes an inode that the checkpoint does not know: empty, with one name to come.
    fn recreate_inode(&mut self, ino: Nid, block: &Arc<BlockBytes>) -> Result<(), Error> {
        Inode::parse(Arc::clone(block), ino, &self.superblock)?;
        if !self.nat.take_this(ino) {
            return Err(Damage::NoNode(ino).into());
        }
        let dir = FileType::of_mode(RawInode::of(block).i_mode.get()) == FileType::DIRECTORY;
        self.add_node(ino, ino, 0, dir);
        self.counts.valid_inodes += 1;
        let extra_end = RawInode::of(block).geometry(self.superblock.layout()).pointer_at(0);
        let bytes = self.edit_node(ino)?;
        bytes[..348].copy_from_slice(&block[..348]);
        bytes[360..extra_end].copy_from_slice(&block[360..extra_end]);
        let raw = RawInode::of_mut(bytes);
        raw.i_inline &= InlineFlags::XATTR.0 | InlineFlags::EXTRA_ATTR.0;
        raw.i_size.set(0);
        raw.i_blocks.set(1);
        raw.i_links.set(1);
        raw.i_xattr_nid.set(0);
        self.since.note_new_inode(ino);
        Ok(())
    }

    /// A file that became shorter loses what lies beyond.
    fn replay_size(&mut self, ino: Nid, logged: &Inode) -> Result<(), Error> {
        let shorter = logged.size < self.inode(ino)?.i_size.get();
        if shorter && self.has_block_pointers(ino)? {
            self.truncate_blocks(ino, logged.size.div_ceil(crate::format::BLOCK as u64))?;
        }
        Ok(())
    }

    fn replay_fields(&mut self, ino: Nid, from: &RawInode) -> Result<(), Error> {
        let projects = self.superblock.features.has(crate::format::Features::PROJECT_QUOTA);
        let to = self.edit_inode(ino)?;
        (to.i_mode, to.i_uid, to.i_gid) = (from.i_mode, from.i_uid, from.i_gid);
        (to.i_size, to.i_advise, to.i_flags) = (from.i_size, from.i_advise, from.i_flags);
        (to.i_atime, to.i_ctime, to.i_mtime) = (from.i_atime, from.i_ctime, from.i_mtime);
        (to.i_atime_nsec, to.i_ctime_nsec, to.i_mtime_nsec) =
            (from.i_atime_nsec, from.i_ctime_nsec, from.i_mtime_nsec);
        (to.i_current_depth, to.i_pino) = (from.i_current_depth, from.i_pino);
        (to.i_namelen, to.i_name) = (from.i_namelen, from.i_name);
        if projects && from.extra.i_extra_isize.get() >= 8 && to.extra.i_extra_isize.get() >= 8 {
            to.extra.i_projid = from.extra.i_projid;
        }
        Ok(())
    }

    /// Content and attributes that lie in the inode itself.
    fn replay_inline(&mut self, ino: Nid, logged: &Inode) -> Result<(), Error> {
        let old = InlineFlags(self.inode(ino)?.i_inline);
        if logged.inline.has(InlineFlags::XATTR) && old.has(InlineFlags::XATTR) {
            let area = self.geometry(ino)?.inline_xattrs();
            let (found, expected) = (logged.inline_xattrs().len() as u64, area.len() as u64);
            Corrupt::check_equal(
                Place::Inode(ino),
                "the logged bytes of inline xattrs",
                found,
                expected,
            )?;
            self.edit_node(ino)?[area].copy_from_slice(logged.inline_xattrs());
        }
        if logged.inline.has(InlineFlags::DATA) {
            if !old.has(InlineFlags::DATA) && self.has_block_pointers(ino)? {
                self.truncate_blocks(ino, 0)?;
            }
            self.edit_inode(ino)?.i_inline = logged.inline.0;
            let area = self.edit_inline_area(ino)?;
            let (found, expected) = (logged.inline_area().len() as u64, area.len() as u64);
            Corrupt::check_equal(
                Place::Inode(ino),
                "the logged bytes of inline content",
                found,
                expected,
            )?;
            area.copy_from_slice(logged.inline_area());
        } else if old.has(InlineFlags::DATA) {
            self.leave_inode(ino)?;
            self.edit_inode(ino)?.i_inline = logged.inline.0;
        }
        Ok(())
    }

    /// Content lies in blocks from now on. A device that can tell what it has lost shows an fsync
    /// that was cut: then the bytes that were in the inode must be in block 0.
    fn leave_inode(&mut self, ino: Nid) -> Result<(), Error> {
        if !self.space.shows_lost_blocks() {
            return self.clear_inline(ino);
        }
        self.convert_inline(ino)?;
        // what the chain says of block 0 is not in memory
        self.pages.remove_range(ino.0.into(), 0..1);
        Ok(())
    }

    /// Gives the file the name that its inode notes, in the directory that it notes.
    fn replay_name(&mut self, ino: Nid, logged: &Inode) -> Result<(), Error> {
        let dir = logged.parent;
        let wrong = |byte: &u8| matches!(byte, 0 | b'/');
        if matches!(&logged.name[..], b"" | b"." | b"..") || logged.name.iter().any(wrong) {
            let name = dovetail_vfs::shown(&logged.name);
            return Err(Corrupt::Name { dir, name }.into());
        }
        let is_dir = self.is_dir(dir)?;
        Corrupt::check_equal(Place::Inode(dir), "whether the parent is a directory", is_dir, true)?;
        if let Some(taken) = self.find_entry(dir, &logged.name)? {
            if taken.ino == ino {
                return Ok(());
            }
            self.remove_entry(dir, &taken)?;
            if self.is_dir(taken.ino)? {
                self.add_links(dir, -1)?;
                self.drop_tree(taken.ino)?;
            } else {
                self.lose_name(taken.ino)?;
            }
        }
        self.add_entry(dir, &logged.name, ino, logged.file_type())
    }

    /// Gives up a directory with all below it: it was removed, or moved without a checkpoint,
    /// before its name was given to a file that was fsynced.
    fn drop_tree(&mut self, top: Nid) -> Result<(), Error> {
        let (mut todo, mut dirs) = (vec![top], BTreeSet::new());
        while let Some(dir) = todo.pop() {
            if !dirs.insert(dir) {
                continue;
            }
            let mut entries = Vec::new();
            self.list(dir, 0, &mut |entry| {
                entries.push(entry);
                true
            })?;
            let entries = entries.into_iter().collect::<Result<Vec<_>, _>>()?;
            for child in
                entries.into_iter().filter(|(_, entry)| !entry.is_dot()).map(|(_, entry)| entry.ino)
            {
                if self.is_dir(child)? { todo.push(child) } else { self.lose_name(child)? }
            }
        }
        dirs.into_iter().try_for_each(|dir| self.lose_name(dir))
    }

    fn replay_xattr_node(&mut self, ino: Nid, block: &BlockBytes) -> Result<(), Error> {
        let old = Nid(self.inode(ino)?.i_xattr_nid.get());
        let nid = if old.is_some() {
            self.load_node(old, ino, XATTR_NODE_OFFSET)?;
            old
        } else {
            let nid = self.new_node(ino, XATTR_NODE_OFFSET)?;
            self.edit_inode(ino)?.i_xattr_nid.set(nid.0);
            nid
        };
        self.edit_node(nid)?[..XATTR_BYTES_IN_NODE].copy_from_slice(&block[..XATTR_BYTES_IN_NODE]);
        Ok(())
    }

    fn replay_pointers(
        &mut self,
        record: &Record,
        block: &BlockBytes,
        adopted: &mut Adopted,
    ) -> Result<(), Error> {
        let ino = record.footer.ino;
        if !self.has_block_pointers(ino)? {
            return Ok(());
        }
        let shape = self.shape(ino)?;
        let first = first_block(record.footer.node_offset, shape.pointers, shape.direct);
        let used = if record.footer.node_offset == 0 { shape.pointers } else { shape.direct };
        for (index, logged) in self.logged_pointers(record, block)?.into_iter().take(used as usize)
        {
            self.replay_pointer(ino, first + index as u64, logged, adopted)?;
        }
        Ok(())
    }

    /// Makes block `block` of the file what the chain says it is.
    fn replay_pointer(
        &mut self,
        ino: Nid,
        block: u64,
        logged: BlockAddr,
        adopted: &mut Adopted,
    ) -> Result<(), Error> {
        if logged == BlockAddr::NULL {
            return self.punch_blocks(ino, block, block + 1);
        }
        let pointer = self.make_pointer(ino, block)?;
        let old = pointer.address;
        if old == logged || (logged != BlockAddr::NEW && !self.superblock.in_main(logged)) {
            return Ok(());
        }
        if logged != BlockAddr::NEW && self.was_lost(logged, &mut adopted.reader)? {
            return Ok(()); // its fsync never returned: what was there before is as good
        }
        if logged != BlockAddr::NEW && self.space.is_taken(logged) {
            self.take_from_owner(logged, adopted)?;
        }
        let pointer = self.make_pointer(ino, block)?;
        if old == BlockAddr::NULL {
            self.count_blocks(ino, 1)?;
        } else if !old.is_hole() && old != BlockAddr::COMPRESSED {
            adopted.owners.remove(&old);
            self.free_block(old)?;
        }
        if logged != BlockAddr::NEW {
            let version = self.node_version(pointer.nid);
            let owner = Summary { nid: pointer.nid, version, offset: pointer.index };
            self.space.adopt(logged, owner, self.elapsed_s())?;
            adopted.owners.insert(logged, (ino, block));
        }
        self.set_pointer(ino, &pointer, logged)
    }

    /// The device does not hold a block that the chain leads to: its fsync never returned.
    fn was_lost(&mut self, address: BlockAddr, reader: &mut ChainReader) -> Result<bool, Error> {
        if !self.space.shows_lost_blocks() {
            return Ok(false);
        }
        if let Some(is_lost) = self.space.is_beyond_pointer(address) {
            return Ok(is_lost);
        }
        Ok(self.chain_content(reader, address)? == Content::Empty)
    }

    /// A block was given up and used again between two fsyncs: who had it first has a hole.
    fn take_from_owner(&mut self, address: BlockAddr, adopted: &mut Adopted) -> Result<(), Error> {
        let (ino, block) = match adopted.owners.remove(&address) {
            Some(owner) => owner,
            None => {
                let summary = self.space.summary_of(&mut self.io, address)?;
                let owner = self.owner_of(address, summary)?;
                (owner.ino, owner.block)
            }
        };
        self.punch_blocks(ino, block, block + 1)
    }
}
