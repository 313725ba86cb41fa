//! The calls of a simulation: content that is named instead of carried, and figures.

use std::ops::Range;

use dovetail_block::{BLOCK_SIZE, Content, Lifetime, Scheduler};
use dovetail_time::SimTime;
use dovetail_vfs::kit::{WriteData, put_dirty_over};
use dovetail_vfs::{Caller, Count, Error, Ino as Number, Simulated};

use super::map::State;
use super::vfs::ino_of;
use super::{Ext, figures};
use crate::error::Error as Failure;
use crate::format::{BlockAddr, GroupNo, Ino};
use crate::io::Channel;

impl<D: Scheduler> Ext<D> {
    /// Writes past the cache, and waits.
    fn write_direct(&mut self, ino: Ino, first: u64, contents: &[Content]) -> Result<(), Failure> {
        let end = first + contents.len() as u64;
        self.reserve(ino, first..end)?;
        self.pages.remove_range(ino.0.into(), first..end);
        self.place_delayed(ino)?;
        self.note_change(ino);
        self.io.set_content_of(ino.0);
        self.begin_hinted(ino)?;
        let mut index = first;
        while index < end {
            let run = self.map(ino, index as u32)?;
            let stop = run.end().min(end);
            let at = match run.state {
                State::Written(at) => at,
                State::Unwritten(at) => {
                    self.mark_written(ino, index as u32, (stop - index) as u32)?;
                    at
                }
                State::Hole => return Err(Failure::NoSpace),
            };
            for (offset, content) in
                contents[(index - first) as usize..(stop - first) as usize].iter().enumerate()
            {
                self.io.write(Channel::Data, at.0 + offset as u64, content.clone())?;
            }
            index = stop;
        }
        self.end_hinted()
    }

    /// Gives what is written from now on the hint of the file.
    fn begin_hinted(&mut self, ino: Ino) -> Result<(), Failure> {
        Ok(self.io.set_lifetime(self.lifetimes.get(&ino).copied().unwrap_or_default())?)
    }

    /// Waits for what was written; content of the page cache has no hint (Linux 6.12).
    fn end_hinted(&mut self) -> Result<(), Failure> {
        self.io.wait()?;
        Ok(self.io.set_lifetime(Lifetime::NotSet)?)
    }

    /// The runs of neighbouring blocks with content in a range of pages; blocks are of the size of
    /// a page.
    fn runs(&mut self, ino: Ino, range: Range<u64>) -> Result<Vec<(u64, BlockAddr, u64)>, Failure> {
        let (mut runs, mut index) = (Vec::new(), range.start);
        while index < range.end {
            let Ok(block) = u32::try_from(index) else { break };
            let run = self.map(ino, block)?;
            let end = run.end().min(range.end);
            if let State::Written(at) = run.state {
                runs.push((index, at, end - index));
            }
            index = end;
        }
        Ok(runs)
    }

    /// Reads past the cache: what is dirty there is newer than the device.
    fn read_direct(&mut self, ino: Ino, first: u64, into: &mut [Content]) -> Result<(), Failure> {
        into.fill(Content::Empty);
        let runs = self.runs(ino, first..first + into.len() as u64)?;
        let mut done = self.io.now();
        for &(block, at, count) in &runs {
            let start = (block - first) as usize;
            done = done.max(self.io.start_read(at.0, &mut into[start..start + count as usize])?);
        }
        if !runs.is_empty() {
            self.io.wait_read(done);
        }
        put_dirty_over(&mut self.pages, ino.0.into(), first, into);
        Ok(())
    }

    /// Content can go past the cache: it does not where blocks are smaller than pages, or content
    /// is journaled.
    fn goes_past_cache(&mut self, ino: Ino) -> Result<bool, Failure> {
        Ok(self.per_page() == 1 && !self.journals_content(ino)?)
    }
}

impl<D: Scheduler> Simulated for Ext<D> {
    fn returned_at(&self) -> SimTime {
        Self::now(self)
    }

    fn write_pages(
        &mut self,
        caller: &Caller,
        ino: Number,
        (offset, len): (u64, u64),
        contents: &[Content],
        direct: bool,
    ) -> Result<(), Error> {
        let dirtied = self.pages.dirtied();
        let ino = ino_of(ino);
        if direct && self.goes_past_cache(ino)? {
            self.change_again(|fs| {
                fs.begin_write(caller, ino, offset, len)?;
                fs.write_direct(ino, offset / BLOCK_SIZE, contents)?;
                Ok(fs.grow_to(ino, offset + len)?)
            })?;
        } else {
            self.write_pieces(caller, ino, offset, WriteData::Named { len, contents })?;
            if direct {
                self.change_again(|fs| {
                    fs.begin_hinted(ino)?;
                    fs.write_back_at_once(ino)?;
                    Ok(fs.end_hinted()?)
                })?;
            }
        }
        self.io.kick().map_err(Failure::from)?;
        // a writer that made no more pages dirty does not wait
        if self.pages.dirtied() > dirtied {
            self.throttle.wait(self.pages.dirty_total(), self.io.gatherer_mut());
        }
        Ok(())
    }

    fn read_pages(
        &mut self,
        ino: Number,
        first: u64,
        into: &mut [Content],
        direct: bool,
    ) -> Result<(), Error> {
        let ino = ino_of(ino);
        if direct && self.goes_past_cache(ino)? {
            return Ok(self.read_direct(ino, first, into)?);
        }
        self.read_ahead(ino, first..first + into.len() as u64)?;
        for (index, content) in (first..).zip(into) {
            *content = self.read_page(ino, index)?;
        }
        Ok(())
    }

    fn is_cached(&self, ino: Number, block: u64) -> bool {
        self.pages.contains(ino.0, block)
    }

    fn set_lifetime(&mut self, ino: Number, lifetime: Lifetime) {
        self.lifetimes.insert(ino_of(ino), lifetime);
    }

    fn drop_cache(&mut self, ino: Number) {
        self.pages.drop_clean_of(ino.0);
    }

    fn written(&self) -> Vec<Count> {
        let written = Self::written(self);
        Count::all(&figures::WRITTEN, [written.data, written.journal, written.home])
    }

    fn events(&self) -> Vec<Count> {
        let events = self.journal_events();
        Count::all(&figures::EVENTS, [events.commits, events.logged, events.checkpoints])
    }

    fn pieces(&mut self, ino: Number) -> Result<u64, Error> {
        let ino = ino_of(ino);
        let blocks = self.inode(ino)?.size.div_ceil(self.block_size() as u64);
        let runs = self.runs(ino, 0..blocks)?;
        let joined = runs.windows(2).filter(|pair| pair[0].1.0 + pair[0].2 == pair[1].1.0);
        Ok((runs.len() - joined.count()) as u64)
    }

    fn occupancy(&self, cells: usize) -> Vec<f64> {
        let count = self.superblock.group_count() as usize;
        let each = count.div_ceil(cells.max(1)).max(1);
        let cell = |start: usize| {
            let groups = (start..(start + each).min(count)).map(|group| GroupNo(group as u32));
            let (blocks, free) = groups.fold((0_u64, 0_u64), |(blocks, free), group| {
                let of_group = u64::from(self.superblock.group_blocks(group));
                (blocks + of_group, free + u64::from(self.groups.desc(group).free_blocks))
            });
            blocks.saturating_sub(free) as f64 / blocks.max(1) as f64
        };
        (0..count).step_by(each).map(cell).collect()
    }
}
