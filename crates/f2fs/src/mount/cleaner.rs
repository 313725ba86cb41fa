//! Segment cleaning: the valid blocks of a section are moved to the logs, so that the section
//! becomes free.

use std::collections::BTreeSet;

use dovetail_block::{Content, Scheduler};

use super::F2fs;
use super::checkpoint::CheckpointReason;
use super::io::WriteClass;
use super::node::Marks;
use super::pointers::Pointer;
use super::policy::CleaningWindow;
use super::space::ValidBlocks;
use crate::error::{Corrupt, Damage, Error, Place};
use crate::format::{BlockAddr, Footer, Inode, Nid, SegNo, Summary};

/// Free sections beyond half of the reserve that cleaning leaves for a checkpoint. Assumed.
const FEW_SECTIONS: u32 = 3;

/// The owner of a block of content.
pub(super) struct Owner {
    pub(super) ino: Nid,
    pub(super) pointer: Pointer,
    pub(super) block: u64,
}

impl<D: Scheduler> F2fs<D> {
    /// Cleans until there will be space for what is dirty when the next checkpoint is written, as
    /// far as there is anything to gain. The checkpoint that frees the last section is left to the
    /// next call.
    pub(super) fn clean_for_space(&mut self) -> Result<(), Error> {
        self.io.hold();
        let cleaned = self.clean_while_held();
        self.io.release();
        cleaned
    }

    fn clean_while_held(&mut self) -> Result<(), Error> {
        self.space.return_sections(false, self.discards());
        let (mut freed, mut seen) = (0, BTreeSet::new());
        while !self.space.has_enough(&self.demand(), freed) {
            if self.space.prefree_count() > 0 && self.is_checkpoint_first(seen.is_empty()) {
                self.write_checkpoint(CheckpointReason::Sync)?;
                freed = 0;
                if !self.options.gc_after_checkpoint && self.space.has_enough(&self.demand(), 0) {
                    return Ok(());
                }
            }
            let Some(section) = self.space.greedy_victim(&seen) else { return Ok(()) };
            seen.insert(section);
            let cleaned = self.clean_section(section);
            if let Some(is_empty) = self.set_aside_unreadable(section, cleaned)? {
                freed += u32::from(is_empty);
                self.events.foreground_cleanings += 1;
            }
        }
        Ok(())
    }

    /// A checkpoint comes before the next section: from Linux 6.4 on always, before only at the
    /// start, or where moved blocks and the nodes that point to them might run out of sections.
    fn is_checkpoint_first(&self, at_start: bool) -> bool {
        let facts = self.space_facts();
        let few = facts.free_sections <= facts.reserved_sections / 2 + FEW_SECTIONS;
        at_start || self.options.gc_after_checkpoint || few
    }

    /// Cleans one section that is worth it; `false` if none is.
    pub(super) fn clean_in_background(&mut self) -> Result<bool, Error> {
        while let Some(section) = self.space.cost_benefit_victim() {
            let cleaned = self.clean_section(section);
            if self.set_aside_unreadable(section, cleaned)?.is_some() {
                self.events.background_cleanings += 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A section with a block that cannot be read, or whose owner cannot be found, is not chosen
    /// again before the next checkpoint: cleaning would end at it each time. `None` of such a
    /// section.
    fn set_aside_unreadable<T>(
        &mut self,
        section: u32,
        cleaned: Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match cleaned {
            Err(Error::Io(_) | Error::Corrupt(_)) if !self.is_read_only() => {
                self.space.set_aside(section);
                Ok(None)
            }
            cleaned => cleaned.map(Some),
        }
    }

    /// Cleans the next segments of a section of a zoned volume; `false` if no section is worth it.
    pub(super) fn clean_window(&mut self, window: CleaningWindow) -> Result<bool, Error> {
        let going_on = self.background.window.take();
        let going_on = going_on.filter(|&(section, _)| self.space.can_be_cleaned(section));
        let chosen = match going_on {
            None if window.greedy => self.space.greedy_victim(&BTreeSet::new()).map(|s| (s, 0)),
            None => self.space.cost_benefit_victim().map(|section| (section, 0)),
            some => some,
        };
        let Some((section, done)) = chosen else { return Ok(false) };
        let segments = self.space.begin_cleaning(section);
        let all = segments.len() as u32;
        let part = segments.into_iter().skip(done as usize).take(window.segments as usize);
        let cleaned = part.into_iter().try_for_each(|segno| self.clean_segment(segno));
        self.space.end_cleaning();
        if self.set_aside_unreadable(section, cleaned)?.is_none() {
            return Ok(true);
        }
        let done = done + window.segments;
        self.background.window = (done < all).then_some((section, done));
        self.events.background_cleanings += u64::from(done >= all);
        Ok(true)
    }

    /// Moves what is valid in a section; `true` if nothing is left there.
    fn clean_section(&mut self, section: u32) -> Result<bool, Error> {
        let segments = self.space.begin_cleaning(section);
        let cleaned = segments.into_iter().try_for_each(|segno| self.clean_segment(segno));
        let is_empty = self.space.end_cleaning();
        cleaned.map(|()| is_empty)
    }

    fn clean_segment(&mut self, segno: SegNo) -> Result<(), Error> {
        match self.space.valid_blocks(&mut self.io, segno)? {
            Some(ValidBlocks { are_nodes: true, blocks }) => self.clean_nodes(&blocks),
            Some(ValidBlocks { are_nodes: false, blocks }) => self.clean_data(&blocks),
            None => Ok(()),
        }
    }

    fn clean_nodes(&mut self, blocks: &[(BlockAddr, Summary)]) -> Result<(), Error> {
        for &(address, Summary { nid, .. }) in blocks {
            let entry = self.nat_entry(nid)?;
            if entry.address != address {
                return Err(Damage::Owner { address, nid }.into());
            }
            self.load_any_node(nid)?;
            self.write_node(nid, Marks::default(), WriteClass::Cleaning)?;
            self.events.moved_blocks += 1;
        }
        Ok(())
    }

    fn clean_data(&mut self, blocks: &[(BlockAddr, Summary)]) -> Result<(), Error> {
        if self.options.gc_remap {
            return blocks.iter().try_for_each(|block| self.remap_or_move(block));
        }
        let contents = self.read_valid(blocks)?;
        for (&(address, summary), content) in blocks.iter().zip(contents) {
            let owner = self.owner_of(address, summary)?;
            self.move_owned(owner, content)?;
        }
        Ok(())
    }

    /// Has the device move a block of content; copies it if a newer content in memory may go in its
    /// place, or too many moves are held.
    fn remap_or_move(&mut self, block: &(BlockAddr, Summary)) -> Result<(), Error> {
        let owner = self.owner_of(block.0, block.1)?;
        if self.can_hold_move() && !self.may_show_newer(&owner) {
            return self.remap_owned(&owner);
        }
        let content = self.read_valid(std::slice::from_ref(block))?.pop();
        content.map_or(Ok(()), |content| self.move_owned(owner, content))
    }

    /// A newer content of the block is in memory, and need not wait for an fsync.
    fn may_show_newer(&self, owner: &Owner) -> bool {
        // a clean page may be what a compressed block unpacks to
        self.pages.is_dirty(owner.ino.0.into(), owner.block) && !self.defers_updates()
    }

    /// The content of blocks of a segment, in order; neighbours are read in one command.
    fn read_valid(&mut self, blocks: &[(BlockAddr, Summary)]) -> Result<Vec<Content>, Error> {
        let mut contents = vec![Content::Empty; blocks.len()];
        let (mut at, mut done) = (0, self.io.now());
        while at < blocks.len() {
            let first = blocks[at].0;
            let follows = |run: usize| {
                blocks.get(at + run).is_some_and(|(address, _)| *address == first.plus(run as u64))
            };
            let run = (1..).find(|&run| !follows(run)).unwrap_or(1);
            done = done.max(self.io.start_read_stored(first, &mut contents[at..at + run])?);
            at += run;
        }
        self.io.wait_read(done);
        Ok(contents)
    }

    /// Moves one block of content; a newer content in memory goes instead of the old one, unless it
    /// must wait for its fsync. An update that waits goes on waiting, for the new address.
    fn move_owned(&mut self, owner: Owner, content: Content) -> Result<(), Error> {
        let (key, block) = (u64::from(owner.ino.0), owner.block);
        let mut facts = self.data_facts(owner.ino, 0)?;
        facts.cleaning = true;
        let may_show = self.may_show_newer(&owner);
        let newer = if may_show { self.pages.get(key, block).cloned() } else { None };
        let update =
            if may_show { None } else { self.io.pending_remaps.remove(owner.pointer.address) };
        let is_newest = newer.is_some();
        let content = newer.unwrap_or(content);
        let moved =
            self.move_block(owner.ino, &owner.pointer, content, facts, WriteClass::Cleaning);
        self.redirect_update(update, *moved.as_ref().unwrap_or(&owner.pointer.address));
        moved?;
        if is_newest {
            self.pages.mark_clean(key, block);
        }
        self.events.moved_blocks += 1;
        Ok(())
    }

    /// Makes sure that a node is in memory, wherever it stands in its file; returns its inode and
    /// its offset.
    pub(super) fn load_any_node(&mut self, nid: Nid) -> Result<(Nid, u32), Error> {
        if let Some(node) = self.nodes.get(nid) {
            return Ok((node.ino, node.offset));
        }
        let entry = self.nat_entry(nid)?;
        if entry.address == BlockAddr::NULL {
            return Err(Damage::NoNode(nid).into());
        }
        self.check_address(Place::Nat(nid), "block_addr", entry.address)?;
        let block = self.io.read(entry.address)?;
        let footer = Footer::parse(&block);
        Corrupt::check_equal(Place::Node(nid), "the footer's nid", footer.nid.0, nid.0)?;
        Corrupt::check_equal(Place::Node(nid), "the footer's ino", footer.ino.0, entry.ino.0)?;
        if footer.node_offset == 0 {
            Inode::parse(std::sync::Arc::clone(&block), nid, &self.superblock)?;
        }
        self.nodes.insert(nid, footer.ino, footer.node_offset, block);
        Ok((footer.ino, footer.node_offset))
    }

    /// Owner of a block of content, by its summary.
    pub(super) fn owner_of(
        &mut self,
        address: BlockAddr,
        summary: Summary,
    ) -> Result<Owner, Error> {
        let wrong = Damage::Owner { address, nid: summary.nid };
        self.nat_entry(summary.nid)?;
        if self.node_version(summary.nid) != summary.version {
            return Err(wrong.into());
        }
        let (ino, offset) = self.load_any_node(summary.nid)?;
        let pointer = self.pointer_at(ino, summary.nid, offset, summary.offset)?;
        let pointer = pointer.filter(|pointer| pointer.address == address).ok_or(wrong)?;
        let block = self.block_of_pointer(ino, offset, summary.offset)?;
        Ok(Owner { ino, pointer, block })
    }
}
