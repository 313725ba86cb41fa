//! Content of files: pages in memory, and the blocks that they are written to.
//!
//! With delayed allocation a block that is written to where there is a hole is only counted; it
//! gets its place when the page is written to the device, in runs as long as can be. Otherwise it
//! gets one at once, and the page is written before the transaction is committed (ordered mode).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, BlockBytes, Content, Scheduler};
use dovetail_time::SimTime;

use super::map::State;
use super::waiting::TreeSize;
use super::{DataMode, Ext};
use crate::error::Error;
use crate::format::{BlockAddr, Ino, InodeFlags};
use crate::io::{Channel, bytes};

/// Pages read in one command: 1 MiB.
const MAX_READ: usize = 256;

/// Content that goes through the journal, and files that lack room for some of theirs.
pub(super) type WrittenOrdered = (Vec<(BlockAddr, Content)>, BTreeSet<Ino>);

/// Blocks of a write that are to be counted.
#[derive(Debug, Default)]
struct NewBlocks {
    blocks: Vec<u32>,
    /// Runs that they lie in, at most.
    runs: u64,
}

impl NewBlocks {
    fn count(&self) -> u64 {
        self.blocks.len() as u64
    }

    fn add(&mut self, run: Range<u32>, is_known: impl Fn(u32) -> bool) {
        let before = self.blocks.len();
        self.blocks.extend(run.filter(|&block| !is_known(block)));
        self.runs += u64::from(self.blocks.len() > before);
    }
}

impl<D: Scheduler> Ext<D> {
    fn blocks_of_page(&self, index: u64) -> Range<u64> {
        index * self.per_page()..(index + 1) * self.per_page()
    }

    /// Page `index` of the file; a hole is empty.
    pub(super) fn read_page(&mut self, ino: Ino, index: u64) -> Result<Content, Error> {
        if let Some(content) = self.pages.get(ino.0.into(), index) {
            return Ok(content.clone());
        }
        let content = if self.per_page() == 1 {
            self.read_block(ino, index)?
        } else {
            self.read_parts(ino, index)?
        };
        if content != Content::Empty {
            self.pages.insert_clean(ino.0.into(), index, content.clone());
        }
        Ok(content)
    }

    /// A block of the file from the device, or from what the journal has in memory.
    fn read_block(&mut self, ino: Ino, block: u64) -> Result<Content, Error> {
        let Ok(block) = u32::try_from(block) else { return Ok(Content::Empty) };
        match self.map(ino, block)?.state {
            State::Written(at) => self.read_content_at(ino, at),
            State::Hole | State::Unwritten(_) => Ok(Content::Empty),
        }
    }

    fn read_content_at(&mut self, ino: Ino, at: BlockAddr) -> Result<Content, Error> {
        if self.journals_content(ino)?
            && let Some(content) = self.journal.as_ref().and_then(|journal| journal.committed(at.0))
        {
            return Ok(content.clone());
        }
        Ok(self.io.read(at.0)?)
    }

    /// A page of several blocks.
    fn read_parts(&mut self, ino: Ino, index: u64) -> Result<Content, Error> {
        let size = self.block_size();
        let mut page: Option<Box<BlockBytes>> = None;
        for (part, block) in self.blocks_of_page(index).enumerate() {
            let content = self.read_block(ino, block)?;
            if content != Content::Empty {
                let page = page.get_or_insert_with(|| Box::new([0; BLOCK_SIZE as usize]));
                page[part * size..(part + 1) * size].copy_from_slice(&bytes(&content)[..size]);
            }
        }
        Ok(page.map_or(Content::Empty, |page| Content::Bytes(page.into())))
    }

    /// Reads pages that are not in memory, neighbours on the device in one command.
    pub(super) fn read_ahead(&mut self, ino: Ino, range: Range<u64>) -> Result<(), Error> {
        if self.per_page() > 1 || self.journals_content(ino)? {
            return Ok(()); // pages come one by one then
        }
        let (mut index, mut done) = (range.start, self.io.now());
        while index < range.end {
            let Ok(block) = u32::try_from(index) else { break };
            let run = self.map(ino, block)?;
            let end = run.end().min(range.end).min(index + MAX_READ as u64);
            if let State::Written(at) = run.state
                && let Some(time) = self.start_run(ino, index..end, at)?
            {
                done = done.max(time);
            }
            index = end;
        }
        self.io.wait_read(done);
        Ok(())
    }

    /// Asks for those of a run's pages that are missing, from the first to the last of them.
    fn start_run(
        &mut self,
        ino: Ino,
        range: Range<u64>,
        at: BlockAddr,
    ) -> Result<Option<SimTime>, Error> {
        let missing: Vec<u64> =
            range.clone().filter(|&index| self.pages.get(ino.0.into(), index).is_none()).collect();
        let (Some(&first), Some(&last)) = (missing.first(), missing.last()) else {
            return Ok(None);
        };
        let mut contents = vec![Content::Empty; (last - first + 1) as usize];
        let done = self.io.start_read(at.0 + (first - range.start), &mut contents)?;
        for (index, content) in (first..).zip(contents) {
            self.pages.insert_clean(ino.0.into(), index, content);
        }
        Ok(Some(done))
    }

    /// Content goes through the journal.
    pub(super) fn journals_content(&mut self, ino: Ino) -> Result<bool, Error> {
        Ok(self.options.data == DataMode::Journal
            || self.inode(ino)?.flags.has(InodeFlags::JOURNAL_DATA))
    }

    /// Blocks of content that the running transaction will log.
    pub(super) fn journaled_blocks(&self) -> usize {
        let pages = if self.options.data == DataMode::Journal {
            self.pages.dirty_total()
        } else {
            self.running.journaled.iter().map(|ino| self.pages.dirty_count(ino.0.into())).sum()
        };
        pages * self.per_page() as usize
    }

    /// Most bytes of a file that one call may write, so that they go into one transaction; a
    /// multiple of a page.
    pub(super) fn most_in_a_call(&mut self, ino: Ino) -> Result<usize, Error> {
        let pages = if self.journals_content(ino)? {
            self.max_transaction() / 4 / self.per_page() as usize
        } else {
            self.max_transaction() // one in four may need a block of its own that says where it is
        };
        Ok(pages.max(1).saturating_mul(BLOCK_SIZE as usize))
    }

    /// Makes sure that the blocks of `range` can be written to: holes are counted, or get a place;
    /// reserved blocks are counted, or become written ones. Nothing has changed if there is no
    /// space for all of them.
    pub(super) fn reserve(&mut self, ino: Ino, range: Range<u64>) -> Result<(), Error> {
        let (holes, unwritten) = self.new_blocks(ino, range)?;
        if holes.blocks.is_empty() && unwritten.blocks.is_empty() {
            return Ok(());
        }
        let delay =
            self.options.delalloc && self.is_extent_mapped(ino)? && !self.journals_content(ino)?;
        let tree = self.tree_size(ino)?;
        let room = if holes.blocks.is_empty() {
            0
        } else if delay {
            holes.count() + self.delayed.more_nodes(ino, (holes.count(), holes.runs), tree)
        } else {
            holes.count() + self.nodes_for(holes.count())
        };
        let converts_now = self.must_convert(ino, &unwritten, tree, room)?;
        self.check_room(room)?;
        self.delayed.insert(ino, tree, holes.blocks);
        if converts_now {
            unwritten.blocks.iter().try_for_each(|&at| self.mark_written(ino, at, 1))?;
            self.running.ordered.insert(ino);
        } else {
            self.unwritten.insert(ino, tree, unwritten.blocks);
        }
        if room == 0 || delay { Ok(()) } else { self.place_delayed(ino) }
    }

    /// The blocks of a range that are not counted yet: holes, and reserved ones.
    fn new_blocks(&mut self, ino: Ino, range: Range<u64>) -> Result<(NewBlocks, NewBlocks), Error> {
        let (mut holes, mut unwritten) = (NewBlocks::default(), NewBlocks::default());
        let mut block = range.start;
        while block < range.end {
            let at = u32::try_from(block).map_err(|_| Error::FileTooBig)?;
            let run = self.map(ino, at)?;
            let end = run.end().min(range.end);
            let blocks = at..end as u32;
            match run.state {
                State::Hole => holes.add(blocks, |at| self.delayed.contains(ino, at)),
                State::Unwritten(_) => {
                    unwritten.add(blocks, |at| self.unwritten.contains(ino, at));
                }
                State::Written(_) => {}
            }
            block = end;
        }
        Ok((holes, unwritten))
    }

    /// Reserved blocks that are written to become written ones with the page, which may take nodes.
    /// They must do so at once if there is no room for as many as there may be, beside `others`.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if they cannot do so at once either.
    fn must_convert(
        &mut self,
        ino: Ino,
        new: &NewBlocks,
        tree: TreeSize,
        others: u64,
    ) -> Result<bool, Error> {
        if new.blocks.is_empty() {
            return Ok(false);
        }
        let nodes = self.unwritten.more_nodes(ino, (new.count(), new.runs), tree);
        if self.check_room(others + nodes).is_ok() {
            return Ok(false);
        }
        self.check_room_for_few(others + self.nodes_for(new.runs))?;
        Ok(true)
    }

    /// The pages of a range of blocks are gone: nothing of it has to be written.
    pub(super) fn forget_waiting(&mut self, ino: Ino, range: Range<u64>) {
        self.delayed.remove(ino, range.clone());
        self.unwritten.remove(ino, range);
    }

    /// Puts new content into the cache as page `index`, to be written later.
    pub(super) fn write_page(
        &mut self,
        ino: Ino,
        index: u64,
        content: Content,
    ) -> Result<(), Error> {
        self.reserve(ino, self.blocks_of_page(index))?;
        self.pages.write(ino.0.into(), index, content);
        self.note_dirty_page(ino)
    }

    /// A page of the file has become dirty.
    pub(super) fn note_dirty_page(&mut self, ino: Ino) -> Result<(), Error> {
        self.note_change(ino);
        if self.journals_content(ino)? {
            self.note_edit();
            self.running.ordered.insert(ino);
            self.running.journaled.insert(ino);
            self.add_content(ino)?;
        }
        Ok(())
    }

    /// Gives the file's delayed blocks a place. The pages must then be written before the next
    /// commit, which sees to it.
    pub(super) fn place_delayed(&mut self, ino: Ino) -> Result<(), Error> {
        self.place_delayed_in(ino, 0..u32::MAX)
    }

    /// The same of those in a range.
    fn place_delayed_in(&mut self, ino: Ino, range: Range<u32>) -> Result<(), Error> {
        let mut from = range.start;
        while let Some((block, blocks)) = self.delayed.first_run(ino, from)
            && block < range.end
        {
            self.note_placed(ino);
            let run = self.allocate_run(ino, block, blocks.min(range.end - block), true)?;
            self.delayed.remove(ino, block.into()..run.end());
            self.running.ordered.insert(ino);
            from = block;
        }
        Ok(())
    }

    /// Sees to it that the file's content is written before the next commit, which makes it
    /// reachable.
    pub(super) fn send_before_commit(&mut self, ino: Ino) -> Result<(), Error> {
        match self.options.data {
            DataMode::Ordered => self.place_delayed(ino),
            DataMode::Writeback | DataMode::Journal => self.write_back_at_once(ino),
        }
    }

    /// Writes the dirty pages of one file, if that edits many nodes with commits in between: not
    /// within a call that changes something else.
    pub(super) fn write_back(&mut self, ino: Ino) -> Result<(), Error> {
        let most = self.max_transaction() / 4;
        let edits = self.delayed.runs(ino) + self.unwritten.runs(ino);
        if edits <= most as u64 || self.journals_content(ino)? {
            return self.write_back_at_once(ino);
        }
        self.check_writable()?; // what is half done must not be committed
        for share in self.pages.dirty_pages(ino.0.into()).chunks(most.max(1)) {
            self.place_and_write(ino, share)?;
            self.commit_if_large()?;
        }
        Ok(())
    }

    /// Writes the dirty pages of one file, in the running transaction. Content that goes through
    /// the journal waits for the commit.
    pub(super) fn write_back_at_once(&mut self, ino: Ino) -> Result<(), Error> {
        if self.pages.dirty_count(ino.0.into()) == 0 {
            return Ok(());
        }
        self.place_delayed(ino)?;
        if self.journals_content(ino)? {
            return Ok(());
        }
        self.write_mapped(ino, true)
    }

    /// Writes the dirty pages of one file that a pass over it comes to next, at most `most`.
    /// Content that goes through the journal waits for the commit.
    pub(super) fn write_back_next(&mut self, ino: Ino, most: usize) -> Result<(), Error> {
        if self.journals_content(ino)? {
            return self.place_delayed(ino);
        }
        let share = (self.max_transaction() / 4).max(1);
        let has_many_runs = self.delayed.runs(ino) + self.unwritten.runs(ino) > share as u64;
        let most = if has_many_runs { most.min(share) } else { most };
        let mut dirty = std::mem::take(&mut self.scratch);
        self.pages.next_dirty_pages_into(ino.0.into(), most, &mut dirty);
        let written = self.place_and_write(ino, &dirty);
        self.scratch = dirty;
        written
    }

    fn place_and_write(&mut self, ino: Ino, dirty: &[u64]) -> Result<(), Error> {
        let (Some(&first), Some(&last)) = (dirty.first(), dirty.last()) else { return Ok(()) };
        let blocks = self.blocks_of_page(first).start..self.blocks_of_page(last).end;
        let clamp = |block: u64| block.min(u32::MAX.into()) as u32;
        let was_placed = self.running.ordered.contains(&ino);
        self.place_delayed_in(ino, clamp(blocks.start)..clamp(blocks.end))?;
        self.write_mapped_pages(ino, dirty, true)?;
        // what was placed here is written: no commit has to
        if !was_placed {
            self.running.ordered.remove(&ino);
        }
        Ok(())
    }

    /// Writes those blocks of dirty pages that have a place; with `converts` reserved blocks become
    /// written ones.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if reserved blocks did not become written ones; all others are written.
    fn write_mapped(&mut self, ino: Ino, converts: bool) -> Result<(), Error> {
        let mut dirty = std::mem::take(&mut self.scratch);
        self.pages.dirty_pages_into(ino.0.into(), &mut dirty);
        let written = self.write_mapped_pages(ino, &dirty, converts);
        self.scratch = dirty;
        written
    }

    /// The same of these dirty pages.
    fn write_mapped_pages(&mut self, ino: Ino, dirty: &[u64], converts: bool) -> Result<(), Error> {
        let (mut known, mut lacks_room) = (None, false);
        self.io.set_content_of(ino.0);
        for &index in dirty {
            let Some(content) = self.pages.get(ino.0.into(), index).cloned() else { continue };
            match self.write_mapped_page(ino, (index, &content), &mut known, converts) {
                Err(Error::NoSpace) => lacks_room = true,
                complete => {
                    if complete? {
                        self.pages.mark_clean(ino.0.into(), index);
                        self.unwritten.remove(ino, self.blocks_of_page(index));
                        self.throttle.add_page(self.io.gatherer_mut())?;
                    }
                }
            }
        }
        if self.pages.dirty_count(ino.0.into()) == 0 {
            self.running.ordered.remove(&ino);
        }
        if lacks_room { Err(Error::NoSpace) } else { Ok(()) }
    }

    /// Writes those blocks of a page that have a place; false if others wait for theirs.
    fn write_mapped_page(
        &mut self,
        ino: Ino,
        (index, content): (u64, &Content),
        known: &mut Option<super::map::Run>,
        converts: bool,
    ) -> Result<bool, Error> {
        let (mut complete, mut lacks_room) = (true, false);
        for (part, block) in self.blocks_of_page(index).enumerate() {
            complete &= !self.delayed.contains(ino, block as u32);
            match self.place_for_write(ino, block, known, converts) {
                Err(Error::NoSpace) => lacks_room = true,
                place => {
                    if let Some(at) = place? {
                        self.io.write(Channel::Data, at.0, self.part_of(content, part))?;
                    }
                }
            }
        }
        if lacks_room { Err(Error::NoSpace) } else { Ok(complete) }
    }

    /// Finds the place to which a block is written; reserved blocks count as written from now on,
    /// or have no place if it `converts` none. `known` is the run of the block before.
    fn place_for_write(
        &mut self,
        ino: Ino,
        block: u64,
        known: &mut Option<super::map::Run>,
        converts: bool,
    ) -> Result<Option<BlockAddr>, Error> {
        // blocks reserved behind the end stay reserved: a page may reach there
        let size = self.block_size() as u64;
        if block >= self.inode(ino)?.size.div_ceil(size) {
            return Ok(None);
        }
        let Ok(block) = u32::try_from(block) else { return Ok(None) };
        let inside = |run: &super::map::Run| run.block <= block && run.end() > block.into();
        let run = match known.filter(inside) {
            Some(run) => run.from(block),
            None => self.map(ino, block)?,
        };
        *known = Some(run);
        match run.state {
            State::Written(at) => Ok(Some(at)),
            State::Hole => Ok(None),
            // what was not written to in such a block, of a page that holds several, is zeros
            State::Unwritten(_) if !self.unwritten.contains(ino, block) => Ok(None),
            State::Unwritten(_) if !converts => Err(Error::NoSpace),
            State::Unwritten(at) => {
                self.mark_written(ino, block, 1)?;
                *known = None;
                Ok(Some(at))
            }
        }
    }

    /// Part of a page that one of its blocks holds, at the start of a content.
    pub(super) fn part_of(&self, page: &Content, part: usize) -> Content {
        let size = self.block_size();
        if size == BLOCK_SIZE as usize {
            return match page {
                Content::Empty => Content::Bytes(Arc::new([0; BLOCK_SIZE as usize])),
                other => other.clone(),
            };
        }
        let mut block = [0; BLOCK_SIZE as usize];
        block[..size].copy_from_slice(&bytes(page)[part * size..(part + 1) * size]);
        Content::Bytes(Arc::new(block))
    }

    /// Takes the dirty blocks of a file whose content goes through the journal, with their places.
    /// Their pages are clean afterwards.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if reserved blocks could not become written ones; all others are taken.
    fn take_journaled(
        &mut self,
        ino: Ino,
        blocks: &mut Vec<(BlockAddr, Content)>,
    ) -> Result<(), Error> {
        let (mut known, mut lacks_room) = (None, false);
        for index in self.pages.dirty_pages(ino.0.into()) {
            let Some(content) = self.pages.get(ino.0.into(), index).cloned() else { continue };
            let mut complete = true;
            for (part, block) in self.blocks_of_page(index).enumerate() {
                match self.place_for_write(ino, block, &mut known, true) {
                    Err(Error::NoSpace) => complete = false,
                    place => blocks.extend(place?.map(|at| (at, self.part_of(&content, part)))),
                }
            }
            lacks_room |= !complete;
            if complete {
                self.pages.mark_clean(ino.0.into(), index);
                self.unwritten.remove(ino, self.blocks_of_page(index));
            }
        }
        if lacks_room { Err(Error::NoSpace) } else { Ok(()) }
    }

    /// Writes pages of files that got blocks: they must be on their way before the transaction is
    /// committed. Content that goes through the journal comes back, and files of which reserved
    /// blocks lack room to become written ones, on the volume or in the transaction: those read as
    /// zeros until a later commit.
    pub(super) fn write_ordered(&mut self) -> Result<WrittenOrdered, Error> {
        let (mut journaled, mut waiting) = (Vec::new(), BTreeSet::new());
        let most = self.max_transaction().saturating_mul(2);
        for ino in self.running.ordered.iter().copied().collect::<Vec<_>>() {
            let written = if self.journals_content(ino)? {
                self.take_journaled(ino, &mut journaled)
            } else if self.options.data == DataMode::Ordered {
                let edits = self.unwritten.runs(ino) as usize;
                let has_room = self.running.size(&self.superblock) + edits <= most;
                self.write_mapped(ino, has_room)
            } else {
                Ok(())
            };
            match written {
                Err(Error::NoSpace) => drop(waiting.insert(ino)),
                written => written?,
            }
        }
        Ok((journaled, waiting))
    }

    /// Writes the dirty pages of all files; answers as [`Self::write_back_files`].
    pub(super) fn write_back_all(&mut self) -> Result<Option<Error>, Error> {
        let files = self.pages.dirty_inodes();
        self.write_back_files(files)
    }

    /// Writes the dirty pages of files. One that cannot be written does not keep the others from
    /// it: the first such error comes back.
    ///
    /// # Errors
    /// Errors after which no other file should be written.
    pub(super) fn write_back_files(&mut self, files: Vec<u64>) -> Result<Option<Error>, Error> {
        let mut first = None;
        for ino in files {
            let edits = self.edits;
            if let Err(error) = self.write_back(Ino(ino as u32)) {
                let is_whole = self.edits == edits && self.io.failure().is_none();
                if error != Error::NoSpace && !is_whole {
                    return Err(error);
                }
                first.get_or_insert(error);
            }
            self.commit_if_large()?;
        }
        Ok(first)
    }
}
