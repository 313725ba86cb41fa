//! The calls of a simulation: content that is named instead of carried, and figures.

use std::ops::Range;

use dovetail_block::{Content, Lifetime, Scheduler};
use dovetail_time::SimTime;
use dovetail_vfs::kit::{WriteData, put_dirty_over};
use dovetail_vfs::{BackgroundThread, Caller, Count, Error, Ino, Simulated};

use super::data::WritebackReason;
use super::{F2fs, figures};
use crate::format::{BLOCK, BLOCKS_IN_SEGMENT, BlockAddr, Nid};

const BLOCK_BYTES: u64 = BLOCK as u64;

fn nid(ino: Ino) -> Nid {
    Nid(u32::try_from(ino.0).unwrap_or(0))
}

impl<D: Scheduler> F2fs<D> {
    /// Writes past the cache, and waits. Where the volume is no pure log, blocks that have a place
    /// keep it (Linux 6.1).
    fn write_direct(&mut self, ino: Nid, first: u64, contents: &[Content]) -> Result<(), Error> {
        let facts = self.data_facts(ino, contents.len())?;
        let update = self.update_facts(ino, WritebackReason::Direct, contents.len())?;
        let blocks: Vec<u64> = (first..first + contents.len() as u64).collect();
        let modes = self.write_modes(ino, &blocks, update, WritebackReason::Direct)?;
        for (number, (index, content)) in (first..).zip(contents).enumerate() {
            self.look_for_headroom(number)?;
            self.pages.remove_range(ino.0.into(), index..index + 1);
            self.place_page(ino, index, content.clone(), facts, modes.of(number))?;
            if (index - first + 1).is_multiple_of(BLOCKS_IN_SEGMENT.into()) {
                self.balance()?;
            }
        }
        self.remap_due()?;
        Ok(self.io.wait().map_err(crate::Error::from)?)
    }

    /// The runs of neighbouring blocks in a range of the file; holes are left out.
    fn runs(
        &mut self,
        ino: Nid,
        range: Range<u64>,
    ) -> Result<Vec<(u64, BlockAddr, u64)>, crate::Error> {
        let mut runs: Vec<(u64, BlockAddr, u64)> = Vec::new();
        let mut index = range.start;
        while let Some((block, address)) = self.next_mapped(ino, index, range.end)? {
            index = block + 1;
            if address.is_hole() || address == BlockAddr::COMPRESSED {
                continue;
            }
            match runs.last_mut() {
                Some((from, at, count))
                    if *from + *count == block && at.0 + *count == address.0 =>
                {
                    *count += 1;
                }
                _ => runs.push((block, address, 1)),
            }
        }
        Ok(runs)
    }

    /// Reads past the cache: what is dirty there is newer than the device.
    fn read_direct(
        &mut self,
        ino: Nid,
        first: u64,
        into: &mut [Content],
    ) -> Result<(), crate::Error> {
        into.fill(Content::Empty);
        let runs = self.runs(ino, first..first + into.len() as u64)?;
        let mut done = self.io.now();
        for &(block, address, count) in &runs {
            let at = (block - first) as usize;
            done = done.max(self.io.start_read(address, &mut into[at..at + count as usize])?);
        }
        self.io.wait_read(done);
        put_dirty_over(&mut self.pages, ino.0.into(), first, into);
        Ok(())
    }
}

impl<D: Scheduler> Simulated for F2fs<D> {
    fn returned_at(&self) -> SimTime {
        Self::now(self)
    }

    fn next_wake_of(&self, thread: BackgroundThread) -> Option<SimTime> {
        Self::next_wake_of(self, thread)
    }

    fn wake_thread(&mut self, thread: BackgroundThread) -> Result<(), Error> {
        Ok(Self::wake_thread(self, thread)?)
    }

    fn write_pages(
        &mut self,
        caller: &Caller,
        ino: Ino,
        (offset, len): (u64, u64),
        contents: &[Content],
        direct: bool,
    ) -> Result<(), Error> {
        let dirtied = self.pages.dirtied();
        let ino = nid(ino);
        if direct {
            self.change(|fs| {
                let end = fs.begin_write(caller, ino, offset, len)?;
                fs.convert_inline(ino)?;
                fs.write_direct(ino, offset / BLOCK_BYTES, contents)?;
                Ok(fs.grow_to(ino, end)?)
            })?;
        } else {
            self.write_buffered(caller, ino, offset, WriteData::Named { len, contents })?;
        }
        self.io.kick().map_err(crate::Error::from)?;
        // a writer that made no more pages dirty does not wait
        if self.pages.dirtied() > dirtied {
            self.throttle.wait(self.pages.dirty_total(), self.io.gatherer_mut());
        }
        Ok(())
    }

    fn read_pages(
        &mut self,
        ino: Ino,
        first: u64,
        into: &mut [Content],
        direct: bool,
    ) -> Result<(), Error> {
        let ino = nid(ino);
        if self.has_inline_data(ino)? {
            into.fill(Content::Empty);
            if let (0, [content, ..]) = (first, into) {
                *content = self.inline_content(ino)?;
            }
            return Ok(());
        }
        if direct {
            return Ok(self.read_direct(ino, first, into)?);
        }
        self.read_ahead(ino, first..first + into.len() as u64)?;
        for (index, content) in (first..).zip(into) {
            *content = self.read_page(ino, index)?;
        }
        Ok(())
    }

    fn is_cached(&self, ino: Ino, block: u64) -> bool {
        self.pages.contains(ino.0, block)
    }

    fn set_lifetime(&mut self, ino: Ino, lifetime: Lifetime) {
        self.lifetimes.insert(nid(ino), lifetime);
    }

    fn drop_cache(&mut self, ino: Ino) {
        self.pages.drop_clean_of(ino.0);
    }

    fn written(&self) -> Vec<Count> {
        let w = Self::written(self);
        let counts = [w.data, w.node, w.checkpoint, w.nat, w.sit, w.ssa, w.cleaning];
        Count::all(&figures::WRITTEN, counts)
    }

    fn events(&self) -> Vec<Count> {
        let events = Self::events(self);
        let counts = [
            events.checkpoints,
            events.foreground_cleanings,
            events.background_cleanings,
            events.moved_blocks,
            events.gc_remapped_blocks,
            events.ssr_blocks,
            events.lfs_blocks,
            events.in_place_blocks,
            events.remapped_blocks,
        ];
        Count::all(&figures::EVENTS, counts)
    }

    fn pieces(&mut self, ino: Ino) -> Result<u64, Error> {
        let blocks = self.inode(nid(ino))?.i_size.get().div_ceil(BLOCK_BYTES);
        Ok(self.runs(nid(ino), 0..blocks)?.len() as u64)
    }

    fn occupancy(&self, cells: usize) -> Vec<f64> {
        self.space.occupancy(cells)
    }
}
