//! Segment cleaning: the valid blocks of a section are moved to the logs, so that the section becomes free.

use std::collections::BTreeSet;

use dovetail_block::{Content, Scheduler};

use super::F2fs;
use super::checkpoint::Reason;
use super::io::Cause;
use super::node::Marks;
use super::pointers::Pointer;
use super::policy::{SpaceFacts, cost_benefit, enough_free};
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BLOCKS_IN_SEGMENT, BlockAddr, Footer, Inode, Nid, SegNo, Summary, ssa_address, summaries,
};

/// Candidates that a background search looks at (Linux 6.1: `max_victim_search`).
const MAX_SEARCH: usize = 4096;
/// Free sections beyond the need below which cleaning writes a checkpoint in between (Linux 6.1).
const CHECKPOINT_SECTIONS: u32 = 3;

/// What cleaning remembers.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    /// Where the last background search ended.
    last: u32,
    /// The section that is being cleaned.
    victim: Option<u32>,
}

impl Cleaner {
    /// The section is being cleaned: nothing must be written to it.
    pub(super) fn is_at(&self, section: u32) -> bool {
        self.victim == Some(section)
    }
}

/// The owner of a block of content.
pub(super) struct Owner {
    pub(super) ino: Nid,
    pub(super) pointer: Pointer,
    pub(super) block: u64,
}

impl<D: Scheduler> F2fs<D> {
    /// Cleans until there is room for what is dirty, as far as there is anything to gain.
    pub(super) fn clean_for_room(&mut self) -> Result<(), Error> {
        self.io.hold();
        let cleaned = self.clean_while_held();
        self.io.release();
        cleaned
    }

    fn clean_while_held(&mut self) -> Result<(), Error> {
        self.return_slots(false);
        if self.segments.prefree_count() > 0 {
            self.write_checkpoint(Reason::Sync)?;
        }
        let mut freed = 0;
        let mut seen = BTreeSet::new();
        while !enough_free(&self.with_freed(freed)) {
            let Some(section) = self.greedy_victim(&seen) else { break };
            seen.insert(section);
            self.clean_section(section)?;
            self.events.foreground_cleanings += 1;
            freed += u32::from(self.segments.section_valid(section) == 0);
            let facts = self.space_facts();
            if facts.free_sections <= facts.reserved_sections / 2 + CHECKPOINT_SECTIONS && freed > 0 {
                self.write_checkpoint(Reason::Sync)?;
                freed = 0;
            }
        }
        if self.segments.prefree_count() > 0 {
            self.write_checkpoint(Reason::Sync)?;
        }
        Ok(())
    }

    fn with_freed(&self, freed: u32) -> SpaceFacts {
        let facts = self.space_facts();
        SpaceFacts { free_sections: facts.free_sections + freed, ..facts }
    }

    /// Cleans one section that is worth it; `false` if none is.
    pub(super) fn clean_in_background(&mut self) -> Result<bool, Error> {
        let Some(section) = self.cost_benefit_victim() else { return Ok(false) };
        self.clean_section(section)?;
        self.events.background_cleanings += 1;
        Ok(true)
    }

    /// A section that can be cleaned: partly valid, with no log in it.
    fn is_candidate(&self, section: u32) -> bool {
        let full = self.segments.per_section() * BLOCKS_IN_SEGMENT;
        let valid = self.segments.section_valid(section);
        valid > 0
            && valid < full
            && !self.logs.iter().any(|log| self.segments.section_of(log.segno) == section)
    }

    /// The candidate with the fewest valid blocks, not yet among `seen`.
    fn greedy_victim(&self, seen: &BTreeSet<u32>) -> Option<u32> {
        let (mut fewest, mut best) = (u32::MAX, None);
        for section in 0..self.segments.sections() {
            let valid = self.segments.section_valid(section);
            if valid < fewest && self.is_candidate(section) && !seen.contains(&section) {
                (fewest, best) = (valid, Some(section));
            }
        }
        best
    }

    fn cost_benefit_victim(&mut self) -> Option<u32> {
        let sections = self.segments.sections();
        let order = (self.cleaner.last..sections).chain(0..self.cleaner.last.min(sections));
        let candidates = order.filter(|&section| self.is_candidate(section)).take(MAX_SEARCH);
        let best = candidates.min_by_key(|&section| self.section_cost(section));
        self.cleaner.last = best.map_or(0, |section| section + 1);
        best
    }

    fn section_cost(&self, section: u32) -> u64 {
        let per_section = self.segments.per_section();
        let mtimes = self.segments.segments_of(section).map(|segno| self.segments.get(segno).mtime_s);
        let mtime = mtimes.fold(0, u64::saturating_add);
        let blocks = per_section * BLOCKS_IN_SEGMENT;
        cost_benefit(
            self.segments.section_valid(section),
            blocks,
            mtime / u64::from(per_section),
            self.segments.age(),
        )
    }

    fn clean_section(&mut self, section: u32) -> Result<(), Error> {
        self.cleaner.victim = Some(section);
        let cleaned = self.move_section(section);
        self.cleaner.victim = None;
        cleaned
    }

    fn move_section(&mut self, section: u32) -> Result<(), Error> {
        for segno in self.segments.segments_of(section) {
            let segment = self.segments.get(segno);
            if segment.valid == 0 {
                continue;
            }
            if segment.log >= 3 { self.clean_nodes(segno)? } else { self.clean_data(segno)? }
        }
        Ok(())
    }

    fn clean_nodes(&mut self, segno: SegNo) -> Result<(), Error> {
        let summary = self.summaries_of(segno)?;
        for offset in self.segments.get(segno).valid_offsets() {
            let address = self.segments.address(segno, offset);
            let nid = summary[offset as usize].nid;
            let entry = self.nat_entry(nid)?;
            if entry.address != address {
                return Err(Corrupt::Owner { address, nid }.into());
            }
            self.load_any_node(nid)?;
            self.write_node(nid, Marks::default(), Cause::Cleaning)?;
            self.events.moved_blocks += 1;
        }
        Ok(())
    }

    fn clean_data(&mut self, segno: SegNo) -> Result<(), Error> {
        let summary = self.summaries_of(segno)?;
        let offsets = self.segments.get(segno).valid_offsets();
        let contents = self.read_valid(segno, &offsets)?;
        for (offset, content) in offsets.into_iter().zip(contents) {
            let address = self.segments.address(segno, offset);
            let owner = self.owner_of(address, summary[offset as usize])?;
            self.move_owned(owner, content)?;
        }
        Ok(())
    }

    /// The content of these blocks of a segment; neighbours are read in one command.
    fn read_valid(&mut self, segno: SegNo, offsets: &[u32]) -> Result<Vec<Content>, Error> {
        let mut contents = vec![Content::Empty; offsets.len()];
        let (mut at, mut done) = (0, self.io.now());
        while at < offsets.len() {
            let follows = |run: usize| offsets.get(at + run) == Some(&(offsets[at] + run as u32));
            let run = (1..).find(|&run| !follows(run)).unwrap_or(1);
            let address = self.segments.address(segno, offsets[at]);
            done = done.max(self.io.start_read_stored(address, &mut contents[at..at + run])?);
            at += run;
        }
        self.io.wait_read(done);
        Ok(contents)
    }

    /// Moves one block of content; a newer content in memory goes instead of the old one, unless it must wait for its fsync.
    /// An update that waits goes on waiting, for the new place.
    fn move_owned(&mut self, owner: Owner, content: Content) -> Result<(), Error> {
        let (key, block) = (u64::from(owner.ino.0), owner.block);
        let mut facts = self.data_facts(owner.ino, 0)?;
        facts.cleaning = true;
        // a clean page may be what a compressed block unpacks to
        let may_show = self.pages.is_dirty(key, block) && !self.defers_updates();
        let newer = if may_show { self.pages.get(key, block).cloned() } else { None };
        let waiting = if may_show { None } else { self.io.waiting.remove(owner.pointer.address) };
        let is_newest = newer.is_some();
        let content = newer.unwrap_or(content);
        let moved = self.move_block(owner.ino, &owner.pointer, content, facts, Cause::Cleaning);
        self.redirect_update(waiting, *moved.as_ref().unwrap_or(&owner.pointer.address));
        moved?;
        if is_newest {
            self.pages.mark_clean(key, block);
        }
        self.events.moved_blocks += 1;
        Ok(())
    }

    /// The summary of a segment in which no log writes.
    pub(super) fn summaries_of(&mut self, segno: SegNo) -> Result<Box<[Summary; 512]>, Error> {
        if let Some(log) = self.logs.iter().find(|log| log.segno == segno) {
            return Ok(log.summaries.clone());
        }
        Ok(summaries(&*self.io.read(ssa_address(&self.superblock, segno))?))
    }

    /// Makes sure that a node is in memory, wherever it stands in its file; returns its inode and its place.
    pub(super) fn load_any_node(&mut self, nid: Nid) -> Result<(Nid, u32), Error> {
        if let Some(node) = self.nodes.get(nid) {
            return Ok((node.ino, node.offset));
        }
        let entry = self.nat_entry(nid)?;
        if entry.address == BlockAddr::NULL {
            return Err(Corrupt::NoNode(nid).into());
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

    /// Who points to a block of content, by its summary.
    pub(super) fn owner_of(&mut self, address: BlockAddr, summary: Summary) -> Result<Owner, Error> {
        let wrong = Corrupt::Owner { address, nid: summary.nid };
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
