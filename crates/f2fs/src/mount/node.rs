//! Node blocks: found through the NAT, made, edited, written, given up.

use std::sync::Arc;

use dovetail_block::{BlockBytes, Scheduler};

use super::F2fs;
use super::io::Channel;
use super::io::WriteClass;
use super::nat::NatPage;
use super::node_cache::Frame;
use super::policy::{Log, node_log};
use crate::error::{Corrupt, Damage, Error, Place};
use crate::format::{
    BLOCK, BlockAddr, Footer, Geometry, Inode, NatEntry, Nid, RawInode, Summary, is_indirect,
    nat_block_address, nat_entry, seal_inode,
};
use dovetail_vfs::mode::is_dir;

/// The marks that an fsync leaves in the nodes it writes, and how it writes them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    pub(super) fsync: bool,
    pub(super) dentry: bool,
    /// The block is written out of place, and waits for its remap.
    pub(super) by_remap: bool,
}

impl<D: Scheduler> F2fs<D> {
    /// Makes sure that a page of the NAT is in memory.
    pub(super) fn load_nat_page(&mut self, page: u32) -> Result<(), Error> {
        if self.nat.is_loaded(page) {
            return Ok(());
        }
        let variant = self.superblock.variant;
        let first = variant.first_nid(page);
        let block = self.io.read(nat_block_address(
            &self.superblock,
            &self.committed.bitmaps().nat,
            first,
        ))?;
        let nids = (0..variant.nat_entries_in_block()).map(Nid);
        let entries: Box<NatPage> = nids.map(|nid| nat_entry(&block, nid, variant)).collect();
        self.nat.load(page, entries);
        Ok(())
    }

    /// The NAT entry of `nid`.
    pub(super) fn nat_entry(&mut self, nid: Nid) -> Result<NatEntry, Error> {
        let last = u64::from(self.nat.max_nid()) - 1;
        Corrupt::check_range(Place::Nat(nid), "nid", nid.0, (1, last))?;
        self.load_nat_page(self.nat.page_of(nid))?;
        Ok(self.nat.get(nid))
    }

    /// The version that summaries of blocks below this node carry.
    pub(super) fn node_version(&self, nid: Nid) -> u8 {
        let entry = self.nat.get(nid);
        if entry.address == BlockAddr::NULL { 0 } else { entry.version }
    }

    /// Makes sure that node `nid`, which must belong to `ino` and stand at `offset` among its
    /// nodes, is in memory.
    #[inline]
    pub(super) fn load_node(&mut self, nid: Nid, ino: Nid, offset: u32) -> Result<Frame, Error> {
        match self.nodes.find(nid) {
            Some(frame) if self.nodes.at(frame).is_of(ino, offset) => Ok(frame),
            found => self.fetch_node(nid, ino, offset, found),
        }
    }

    /// The same of a node that is not in memory, or is another one there.
    #[cold]
    fn fetch_node(
        &mut self,
        nid: Nid,
        ino: Nid,
        offset: u32,
        found: Option<Frame>,
    ) -> Result<Frame, Error> {
        if let Some(frame) = found {
            let node = self.nodes.at(frame);
            let place = Place::Node(nid);
            Corrupt::check_equal(place, "the footer's ino", node.ino.0, ino.0)?;
            Corrupt::check_equal(place, "the footer's node offset", node.offset, offset)?;
        }
        let block = self.read_node(nid, ino, offset)?;
        if offset == 0 {
            Inode::parse(Arc::clone(&block), ino, &self.superblock)?;
        }
        Ok(self.nodes.insert(nid, ino, offset, block))
    }

    fn read_node(&mut self, nid: Nid, ino: Nid, offset: u32) -> Result<Arc<BlockBytes>, Error> {
        let entry = self.nat_entry(nid)?;
        if entry.address == BlockAddr::NULL {
            return Err(Damage::NoNode(nid).into());
        }
        self.check_address(Place::Nat(nid), "block_addr", entry.address)?;
        Corrupt::check_equal(Place::Nat(nid), "ino", entry.ino.0, ino.0)?;
        let block = self.io.read(entry.address)?;
        let footer = Footer::parse(&block);
        let place = Place::Node(nid);
        Corrupt::check_equal(place, "the footer's nid", footer.nid.0, nid.0)?;
        Corrupt::check_equal(place, "the footer's ino", footer.ino.0, ino.0)?;
        Corrupt::check_equal(place, "the footer's node offset", footer.node_offset, offset)?;
        Ok(block)
    }

    /// Checks that `found` lies in the main area, or is an address of the device.
    pub(super) fn check_address(
        &self,
        place: Place,
        field: &'static str,
        found: BlockAddr,
    ) -> Result<(), Corrupt> {
        if self.superblock.in_main(found) || self.io.device_addresses().has(found) {
            return Ok(());
        }
        let (first, last) = (self.superblock.main_start.0, self.superblock.main_end().0 - 1);
        Err(Damage::Address { place, field, found, first, last }.into())
    }

    /// The block of a node, loaded if need be.
    pub(super) fn node(&mut self, nid: Nid, ino: Nid, offset: u32) -> Result<&BlockBytes, Error> {
        let frame = self.load_node(nid, ino, offset)?;
        Ok(&self.nodes.at(frame).block)
    }

    /// The block of a node that is in memory.
    pub(super) fn cached(&mut self, nid: Nid) -> Result<&BlockBytes, Error> {
        let node = self.nodes.get(nid).ok_or(Damage::NoNode(nid))?;
        Ok(&node.block)
    }

    /// The block of a node that is in memory, to be changed.
    pub(super) fn edit_node(&mut self, nid: Nid) -> Result<&mut BlockBytes, Error> {
        match self.nodes.find(nid) {
            Some(frame) => Ok(self.edit_at(frame)),
            None => Err(Damage::NoNode(nid).into()),
        }
    }

    /// The same by where it lies.
    pub(super) fn edit_at(&mut self, frame: Frame) -> &mut BlockBytes {
        let node = self.nodes.at(frame);
        if !node.dirty {
            // from now on the node in memory is the only one that counts
            self.io.forget(self.nat.get(node.nid).address);
        }
        self.nodes.edit_at(frame)
    }

    /// The fields of an inode.
    pub(super) fn inode(&mut self, ino: Nid) -> Result<&RawInode, Error> {
        Ok(RawInode::of(self.node(ino, ino, 0)?))
    }

    /// The fields of an inode, to be changed.
    pub(super) fn edit_inode(&mut self, ino: Nid) -> Result<&mut RawInode, Error> {
        let frame = self.load_node(ino, ino, 0)?;
        Ok(RawInode::of_mut(self.edit_at(frame)))
    }

    /// The layout of the inode.
    pub(super) fn geometry(&mut self, ino: Nid) -> Result<Geometry, Error> {
        let layout = self.superblock.layout();
        Ok(self.inode(ino)?.geometry(layout))
    }

    /// A free nid.
    pub(super) fn take_nid(&mut self) -> Result<Nid, Error> {
        loop {
            if let Some(nid) = self.nat.take() {
                return Ok(nid);
            }
            let page = self.nat.next_page_to_scan().ok_or(Error::NoSpace)?;
            self.load_nat_page(page)?;
            self.nat.scan(page);
        }
    }

    /// Makes an empty node of inode `ino` at `offset` among its nodes; the caller points to it. The
    /// inode's own blocks count it.
    pub(super) fn new_node(&mut self, ino: Nid, offset: u32) -> Result<Nid, Error> {
        self.check_free_blocks(1)?;
        let nid = self.take_nid()?;
        self.load_nat_page(self.nat.page_of(nid))?;
        let dir = self.is_dir(ino)?;
        self.add_node(nid, ino, offset, dir);
        let inode = self.edit_inode(ino)?;
        inode.i_blocks.set(inode.i_blocks.get().saturating_add(1));
        Ok(nid)
    }

    /// Puts an empty node into the cache, and counts it.
    pub(super) fn add_node(&mut self, nid: Nid, ino: Nid, offset: u32, dir: bool) {
        let mut block = [0; BLOCK];
        let footer = Footer {
            nid,
            ino,
            cold: !dir,
            fsync_mark: false,
            dentry_mark: false,
            node_offset: offset,
            checkpoint: 0,
            next: 0,
        };
        footer.write(&mut block);
        let frame = self.nodes.insert(nid, ino, offset, Arc::new(block));
        self.nodes.edit_at(frame);
        self.space.note_promise(BlockAddr::NULL, BlockAddr::NEW);
        self.since.note_allocated(1);
        self.counts.valid_nodes += 1;
        self.counts.valid_blocks += 1;
    }

    /// Gives up a node: its block, its nid. Its inode's block count is the caller's.
    pub(super) fn drop_node(&mut self, nid: Nid) -> Result<(), Error> {
        let entry = self.nat_entry(nid)?;
        let place = Place::Checkpoint(self.committed.checkpoint().pack);
        Corrupt::check_range(
            place,
            "valid_node_count",
            self.counts.valid_nodes,
            (1, u32::MAX.into()),
        )?;
        Corrupt::check_range(place, "valid_block_count", self.counts.valid_blocks, (1, u64::MAX))?;
        if entry.address == BlockAddr::NULL {
            self.space.note_promise(BlockAddr::NEW, BlockAddr::NULL);
        } else {
            self.free_block(entry.address)?;
        }
        self.nat.release(nid);
        self.nodes.remove(nid);
        self.counts.valid_nodes -= 1;
        self.counts.valid_blocks -= 1;
        Ok(())
    }

    /// Writes a node that is in memory to its log, with a final footer.
    pub(super) fn write_node(
        &mut self,
        nid: Nid,
        marks: Marks,
        cause: WriteClass,
    ) -> Result<(), Error> {
        let mut footer = self.nodes.get(nid).ok_or(Damage::NoNode(nid))?.footer();
        footer.cold = self.is_cold(&footer);
        let log = node_log(self.options.logs, is_indirect(footer.node_offset), !footer.cold);
        let entry = self.nat_entry(nid)?;
        let staged =
            if marks.by_remap { Some(self.take_staged(0).ok_or(Error::NoSpace)?) } else { None };
        let address = self.allocate(log, Summary { nid, version: 0, offset: 0 });
        if let (Err(_), Some(staged)) = (&address, staged) {
            self.space.release_staged(staged);
        }
        let address = address?;
        if !marks.fsync {
            self.since.note_unmarked(footer.ino);
        }
        footer.checkpoint = self.committed.checkpoint().footer_version().0;
        footer.next =
            Footer::next_of(self.superblock.variant, address, self.space.next_address(log));
        (footer.fsync_mark, footer.dentry_mark) = (marks.fsync, marks.dentry);
        if marks.fsync {
            let first = footer.node_offset == 0 && !self.since.is_logged(footer.ino);
            self.space.note_recoverable(first, marks.dentry);
            // content that was in the inode at the checkpoint
            let beside = u64::from(first && self.space.shows_lost_blocks());
            self.since.note_record(nid, marks.dentry, beside);
        }
        let version = self.node_version(nid);
        self.note_rewritten(footer.ino);
        if entry.address == BlockAddr::NULL {
            self.space.note_promise(BlockAddr::NEW, address);
        } else {
            self.free_block(entry.address)?;
        }
        self.nat.set(nid, NatEntry { version, ino: footer.ino, address });
        let superblock = &self.superblock;
        let block = self.nodes.seal(nid).ok_or(Damage::NoNode(nid))?;
        let bytes = Arc::make_mut(block);
        footer.write(bytes);
        if footer.node_offset == 0 {
            seal_inode(bytes, superblock);
        }
        let block = Arc::clone(block);
        self.io.set_owner(footer.ino);
        if let Some(from) = staged {
            self.io.write_bytes(Channel::UPDATES, cause, from, block)?;
            self.await_remap(footer.ino, address, from);
        } else {
            self.io.write_bytes(Channel(log as u8), cause, address, block)?;
            self.note_unflushed(footer.ino);
            if log == Log::WarmNode {
                self.updates.note_unflushed_chain();
            }
        }
        Ok(())
    }

    /// A node belongs to something other than a directory. Its inode says so, if it is in memory,
    /// as with each fsync: the node's own mark may be wrong, and would have an fsync write to a log
    /// that recovery does not read.
    fn is_cold(&self, footer: &Footer) -> bool {
        let inode = self.nodes.peek(footer.ino).filter(|inode| inode.is_of(footer.ino, 0));
        inode.map_or(footer.cold, |inode| !is_dir(RawInode::of(&inode.block).i_mode.get()))
    }

    /// Writes all dirty nodes.
    pub(super) fn write_dirty_nodes(&mut self) -> Result<(), Error> {
        for nid in self.nodes.all_dirty() {
            if self.nodes.is_dirty(nid) {
                self.write_node(nid, Marks::default(), WriteClass::Node)?;
            }
        }
        Ok(())
    }

    /// The inode is a directory.
    pub(super) fn is_dir(&mut self, ino: Nid) -> Result<bool, Error> {
        Ok(is_dir(self.inode(ino)?.i_mode.get()))
    }

    /// Checks that `blocks` more blocks may be used.
    pub(super) fn check_free_blocks(&self, blocks: u64) -> Result<(), Error> {
        if self.counts.valid_blocks + blocks > self.committed.checkpoint().user_block_count
            || self.space.is_device_full()
        {
            return Err(Error::NoSpace);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dovetail_block::MemoryDevice;
    use dovetail_time::SimTime;
    use dovetail_vfs::{Caller, FileSystem, NewNode};

    use super::super::data::WritebackReason;
    use super::super::{F2fs, Options};
    use super::{Marks, WriteClass};
    use crate::format::Nid;
    use crate::mkfs::{MkfsOptions, mkfs};

    fn mounted(device: MemoryDevice) -> F2fs<MemoryDevice> {
        // nothing is overwritten in place
        let options = Options::parse("mode=lfs").unwrap();
        F2fs::mount(device, options, SimTime::ZERO).unwrap()
    }

    /// A checkpoint that finds no room half-way has written nodes without a mark: recovery passes
    /// over them, so that the next fsync has to write one with it, though none is dirty.
    #[test]
    fn an_fsync_marks_what_a_checkpoint_that_stopped_has_written() {
        let mut device = MemoryDevice::new((128 << 20) / 4096);
        mkfs(&mut device, &MkfsOptions::default()).unwrap();
        let mut fs = mounted(device);
        let (caller, root) = (Caller::default(), fs.root());
        let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
        let ino = fs.create(&caller, root, b"file", &node).unwrap().ino;
        fs.write(&caller, ino, 0, &[1; 8192]).unwrap();
        fs.sync().unwrap();

        fs.write(&caller, ino, 0, &[2; 8192]).unwrap();
        fs.write_back(Nid(ino.0 as u32), WritebackReason::InCall).unwrap();
        fs.write_dirty_nodes().unwrap();
        fs.fsync(ino, false).unwrap();

        let mut after_cut = mounted(fs.io.into_device());
        let mut content = [0; 8192];
        after_cut.read(ino, 0, &mut content).unwrap();
        assert_eq!(content, [2; 8192]);
    }

    #[test]
    fn a_staged_block_is_given_back_when_the_log_has_no_space() {
        let mut device = MemoryDevice::new((64 << 20) / 4096);
        mkfs(&mut device, &MkfsOptions::default()).unwrap();
        let options = Options::parse("mode=rm-ipu,remap=fsync").unwrap();
        let mut fs = F2fs::mount(device, options, SimTime::ZERO).unwrap();
        while fs.space.borrow_section() {}
        let (root, marks) = (fs.superblock.root, Marks { by_remap: true, ..Marks::default() });
        fs.node(root, root, 0).unwrap();
        let mut before = fs.space.staging_free();
        while fs.write_node(root, marks, WriteClass::Node).is_ok() {
            before = fs.space.staging_free();
        }
        assert!(before > 0);
        assert_eq!(fs.space.staging_free(), before);
    }
}
