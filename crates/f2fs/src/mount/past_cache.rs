//! Large writes of a mount, which go from the caller's bytes to the device: a copy in the page
//! cache would be written soon, and the system above has one of its own.
//!
//! Only where a block simply goes to the next place of its log. Whatever holds pages back, or has
//! rules for where they go, keeps the way through the cache. Mounts over an image ask for it
//! (`Options::writes_past_cache`).

use std::ops::Range;

use dovetail_block::Scheduler;
use dovetail_vfs::Error;
use dovetail_vfs::kit::{Parts, WriteData};

use super::F2fs;
use super::data::WritebackReason;
use super::policy::{DataFacts, Log, WriteMode, need_ssr};
use crate::error::Error as Failure;
use crate::format::{BLOCK, BLOCKS_IN_SEGMENT, BlockAddr, InodeFlags, Nid, Variant};

/// Whole pages from which on a write goes past the cache (assumed): smaller ones may come again for
/// the same page, and would then take a block each time.
const LEAST_PAGES: u64 = 16;

/// Neighbouring blocks that were given their places, and are not written yet.
struct Placed {
    log: Log,
    address: BlockAddr,
    /// Their pages, counted from the first of the write.
    pages: Range<usize>,
}

impl Placed {
    fn goes_on(&self, log: Log, address: BlockAddr) -> bool {
        self.log == log && self.address.plus(self.pages.len() as u64) == address
    }
}

impl<D: Scheduler> F2fs<D> {
    /// The parts of a write before, of and after the pages that go past the cache; `None` if none
    /// does.
    pub(super) fn past_cache<'a>(
        &mut self,
        ino: Nid,
        offset: u64,
        data: WriteData<'a>,
    ) -> Result<Option<Parts<'a>>, Failure> {
        let Some(parts) = data.around_whole_pages(offset, LEAST_PAGES) else { return Ok(None) };
        let is_plain = self.options.writes_past_cache
            && self.superblock.variant == Variant::F2fs
            && !self.superblock.is_zoned()
            && !self.remaps()
            && !self.io.is_moving_blocks()
            && !self.state.is_recovering()
            && !need_ssr(&self.space_facts());
        if !is_plain || self.inode(ino)?.i_flags.get() & InodeFlags::COMPRESSED.0 != 0 {
            return Ok(None);
        }
        let count = parts[1].1.len() / BLOCK;
        let update = self.update_facts(ino, WritebackReason::InCall, count)?;
        let modes = self.write_modes(ino, &[], update, WritebackReason::InCall)?;
        Ok((modes.of(0) == WriteMode::Append).then_some(parts))
    }

    /// Writes whole pages from page `first` on. What has got a place is written before anything
    /// else happens: an error, cleaning, a checkpoint.
    pub(super) fn write_past_cache(
        &mut self,
        ino: Nid,
        first: u64,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let facts = self.data_facts(ino, bytes.len() / BLOCK)?;
        let segment = BLOCKS_IN_SEGMENT as usize;
        for (number, part) in bytes.chunks(segment * BLOCK).enumerate() {
            if number > 0 {
                self.balance()?;
            }
            let first = first + (number * segment) as u64;
            self.write_placed(ino, first, part, facts)?;
        }
        Ok(())
    }

    fn write_placed(
        &mut self,
        ino: Nid,
        first: u64,
        bytes: &[u8],
        facts: DataFacts,
    ) -> Result<(), Failure> {
        let mut open: Option<Placed> = None;
        for number in 0..bytes.len() / BLOCK {
            let placed = self.give_place(ino, first + number as u64, facts);
            let Ok((address, log)) = placed else {
                self.write_run(ino, first, open.take(), bytes)?;
                return placed.map(drop);
            };
            match &mut open {
                Some(run) if run.goes_on(log, address) => run.pages.end += 1,
                _ => {
                    let run = Placed { log, address, pages: number..number + 1 };
                    let before = open.replace(run);
                    self.write_run(ino, first, before, bytes)?;
                }
            }
        }
        self.write_run(ino, first, open, bytes)
    }

    /// Gives a page the next block of its log.
    fn give_place(
        &mut self,
        ino: Nid,
        index: u64,
        facts: DataFacts,
    ) -> Result<(BlockAddr, Log), Failure> {
        self.reserve(ino, index)?;
        let pointer = self.make_pointer(ino, index)?;
        let placed = self.readdress(ino, &pointer, facts)?;
        self.pages.remove_range(ino.0.into(), index..index + 1);
        Ok(placed)
    }

    fn write_run(
        &mut self,
        ino: Nid,
        first: u64,
        run: Option<Placed>,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let Some(Placed { log, address, pages }) = run else { return Ok(()) };
        self.io.set_owner(ino);
        let part = &bytes[pages.start * BLOCK..pages.end * BLOCK];
        self.io.write_content_bytes(log, address, part)?;
        self.grow_to(ino, (first + pages.end as u64) * BLOCK as u64)
    }
}
