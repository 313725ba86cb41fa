//! Whole pages of a mount's writes, which go from the caller's bytes to their blocks: a copy in the
//! page cache would be written soon, and the system above has one of its own.
//!
//! Content is written as soon as its blocks belong to the file, and a commit comes between calls,
//! so that none leads to blocks that hold something else. Small writes into holes keep the way
//! through the cache: they get places in longer runs, later. Mounts over an image ask for it
//! (`Options::writes_past_cache`).

use dovetail_block::{BLOCK_SIZE, Scheduler};
use dovetail_vfs::kit::{Parts, WriteData};

use super::Ext;
use super::map::{Run, State};
use crate::error::Error;
use crate::format::{BlockAddr, Ino};

/// Whole pages from which on a write into holes goes past the cache (assumed).
const LEAST_IN_HOLES: usize = 16;

/// A write that goes past the cache.
pub(super) struct PastCache<'a> {
    /// The parts before, of and after whole pages.
    pub(super) parts: Parts<'a>,
    /// The runs of the whole pages as they are before the write.
    pub(super) runs: Vec<Run>,
}

impl<D: Scheduler> Ext<D> {
    /// The parts of a write if its whole pages can go past the cache.
    pub(super) fn past_cache<'a>(
        &mut self,
        ino: Ino,
        offset: u64,
        data: WriteData<'a>,
    ) -> Result<Option<PastCache<'a>>, Error> {
        let Some(parts) = data.around_whole_pages(offset, 1) else { return Ok(None) };
        let is_plain = self.options.writes_past_cache
            && self.per_page() == 1
            && self.io.space().is_none()
            && self.is_extent_mapped(ino)?
            && !self.journals_content(ino)?;
        if !is_plain {
            return Ok(None);
        }
        let (first, blocks) = (parts[1].0 / BLOCK_SIZE, parts[1].1.len() / BLOCK_SIZE as usize);
        let runs = self.runs_between(ino, first, first + blocks as u64)?;
        let has_holes = runs.iter().any(|run| run.state == State::Hole);
        let goes = !has_holes || blocks >= LEAST_IN_HOLES;
        Ok(goes.then_some(PastCache { parts, runs }))
    }

    /// The runs of a file that cover a range of blocks, the last of them cut off at its end.
    fn runs_between(&mut self, ino: Ino, first: u64, end: u64) -> Result<Vec<Run>, Error> {
        let (mut runs, mut at) = (Vec::new(), first);
        while at < end {
            let block = u32::try_from(at).map_err(|_| Error::FileTooBig)?;
            let run = self.map(ino, block)?;
            at = run.end().min(end);
            runs.push(Run { blocks: (at - u64::from(block)) as u32, ..run });
        }
        Ok(runs)
    }

    /// Writes whole pages from page `first` on, whose blocks are `runs`.
    pub(super) fn write_past_cache(
        &mut self,
        ino: Ino,
        first: u64,
        bytes: &[u8],
        runs: &[Run],
    ) -> Result<(), Error> {
        self.check_room_for(ino, runs)?;
        self.note_change(ino);
        self.io.set_content_of(ino.0);
        for &run in runs {
            let mut rest = run;
            while rest.blocks > 0 {
                let (at, blocks) = self.place_for_bytes(ino, rest)?;
                let from = (u64::from(rest.block) - first) * BLOCK_SIZE;
                let part = &bytes[from as usize..][..blocks as usize * BLOCK_SIZE as usize];
                self.io.write_content_bytes(at.0, part)?;
                let done = u64::from(rest.block) + u64::from(blocks);
                // not before: an error must not take what was written earlier
                self.pages.remove_range(ino.0.into(), rest.block.into()..done);
                self.grow_to(ino, done * BLOCK_SIZE)?;
                rest = Run { block: done as u32, blocks: rest.blocks - blocks, ..rest };
            }
        }
        Ok(())
    }

    /// Checks that there is room for all that a write to these runs may take.
    fn check_room_for(&mut self, ino: Ino, runs: &[Run]) -> Result<(), Error> {
        let (mut holes, mut pieces) = (0, 0);
        for run in runs {
            match run.state {
                State::Hole => {
                    // delayed blocks have their room, with that of their nodes
                    let delayed = self.delayed.count_in(ino, run.block.into()..run.end());
                    let new = u64::from(run.blocks) - delayed;
                    holes += new;
                    pieces += new;
                }
                State::Unwritten(_) => pieces += 1,
                State::Written(_) => {}
            }
        }
        match (holes, pieces) {
            (_, 0) => Ok(()),
            (0, pieces) => self.check_room_for_few(self.nodes_for(pieces)),
            (holes, pieces) => self.check_room(holes + self.nodes_for(pieces)),
        }
    }

    /// The place of the first blocks of a run, which hold content from now on, and how many lie
    /// there.
    fn place_for_bytes(&mut self, ino: Ino, run: Run) -> Result<(BlockAddr, u32), Error> {
        // a part of a page before may have given delayed blocks their places
        let now = self.map(ino, run.block)?;
        let blocks = run.blocks.min(now.blocks);
        match now.state {
            State::Written(at) => Ok((at, blocks)),
            State::Unwritten(at) => {
                self.mark_written(ino, run.block, blocks)?;
                Ok((at, blocks))
            }
            State::Hole => {
                self.note_placed(ino);
                let taken = self.allocate_run(ino, run.block, blocks, true)?;
                self.delayed.remove(ino, taken.block.into()..taken.end());
                match taken.state {
                    State::Written(at) => Ok((at, taken.blocks)),
                    _ => Err(Error::NoSpace),
                }
            }
        }
    }
}
