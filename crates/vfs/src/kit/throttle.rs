//! Writers that wait for write-back.
//!
//! A file system's pages are clean as soon as a write-back is planned; a kernel's writers wait while
//! too many are dirty or on their way to the device. Were each to write back what there is, and wait
//! alone, the others would fill the cache meanwhile one after another, and a log would hold the
//! blocks of one writer at a time.

use dovetail_block::{DeviceError, Gatherer, REQUEST_BLOCKS, Scheduler, SchedulingHint};

/// Share of the page cache that may be dirty or on its way before writers wait, in percent (Linux:
/// `vm.dirty_ratio`).
const DIRTY_PERCENT: u64 = 20;
/// Share of the page cache that may be dirty before the background writes it back, in percent
/// (Linux: `vm.dirty_background_ratio`).
const DIRTY_BACKGROUND_PERCENT: u64 = 10;
/// A chunk of a write-back, in parts of what may be dirty (Linux: `writeback_chunk_size` takes
/// `DIRTY_SCOPE` parts, or half a second's bandwidth if that is less).
const CHUNKS: usize = 8;
/// Pages of a file's turn are more than a chunk, and a multiple of this (Linux:
/// `MIN_WRITEBACK_PAGES`).
const TURN_PAGES: usize = 1024;

/// The pages that a write-back has planned, and what may be dirty or on its way (Linux:
/// `NR_FILE_DIRTY` and `NR_WRITEBACK`).
#[derive(Debug)]
pub struct Throttle {
    /// Pages that may be dirty or on their way.
    limit: usize,
    /// Pages behind the last chunk of the write-back that is being planned.
    rest: Option<usize>,
}

impl Throttle {
    /// Nothing under way. The page cache has so many bytes.
    pub const fn new(page_cache_bytes: u64) -> Self {
        let limit = (Self::limit_bytes(page_cache_bytes) / 4096) as usize;
        Self { limit, rest: None }
    }

    /// Bytes of a page cache that may be dirty or on their way.
    pub const fn limit_bytes(page_cache_bytes: u64) -> u64 {
        page_cache_bytes / 100 * DIRTY_PERCENT
    }

    /// Bytes of dirty content from which the background writes it back, of a page cache.
    pub const fn background_bytes(page_cache_bytes: u64) -> u64 {
        page_cache_bytes / 100 * DIRTY_BACKGROUND_PERCENT
    }

    /// Pages of a file that the background writes before it turns to another one: no more than a
    /// half of what may be dirty, which matters for caches smaller than any kernel's.
    pub fn turn_pages(&self) -> usize {
        let turn = (self.limit / CHUNKS + TURN_PAGES) / TURN_PAGES * TURN_PAGES;
        turn.min(self.limit / 2).max(1)
    }

    /// Pages of a chunk: full requests, so that none is cut for it.
    fn chunk_pages(&self) -> usize {
        (self.limit / CHUNKS / REQUEST_BLOCKS).max(1) * REQUEST_BLOCKS
    }

    /// A write-back begins.
    pub fn begin(&mut self) {
        debug_assert!(self.rest.is_none(), "a write-back in a write-back");
        self.rest = Some(0);
    }

    /// One more page has been written, by a write-back or by a call that waits for it itself.
    ///
    /// # Errors
    /// As [`Gatherer::kick`]: what ends a chunk is submitted.
    pub fn add_page<D: Scheduler, const N: usize>(
        &mut self,
        io: &mut Gatherer<D, N>,
    ) -> Result<(), DeviceError> {
        self.count_page().map_or(Ok(()), |pages| send(pages, io))
    }

    /// The write-back has come to its end; so many pages are dirty.
    ///
    /// # Errors
    /// As [`Gatherer::kick`].
    pub fn end<D: Scheduler, const N: usize>(
        &mut self,
        dirty: usize,
        io: &mut Gatherer<D, N>,
    ) -> Result<(), DeviceError> {
        io.device_mut().hint(SchedulingHint::Dirty(dirty));
        match self.rest.take() {
            Some(pages) if pages > 0 => send(pages, io),
            _ => Ok(()),
        }
    }

    /// Has the writer that is making a call wait while too many pages are on their way or `dirty`.
    pub fn wait<D: Scheduler, const N: usize>(&self, dirty: usize, io: &mut Gatherer<D, N>) {
        let on_their_way = io.device().pages_on_their_way();
        let device = io.device_mut();
        device.hint(SchedulingHint::Dirty(dirty));
        if on_their_way > 0 && dirty + on_their_way > self.limit {
            device.hint(SchedulingHint::AwaitRoom(self.limit));
        }
    }

    /// Counts a page of a write-back; the pages of the chunk that it ends.
    fn count_page(&mut self) -> Option<usize> {
        let chunk = self.chunk_pages();
        let rest = self.rest.as_mut()?;
        *rest += 1;
        (*rest >= chunk).then(|| std::mem::take(rest))
    }
}

/// Submits what was gathered. Its pages are on their way even if the device fails.
fn send<D: Scheduler, const N: usize>(
    pages: usize,
    io: &mut Gatherer<D, N>,
) -> Result<(), DeviceError> {
    let submitted = io.kick();
    io.device_mut().hint(SchedulingHint::OnTheirWay(pages));
    submitted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chunks of a write-back.
    fn chunks(page_cache: u64, pages: usize) -> Vec<usize> {
        let mut throttle = Throttle { rest: Some(0), ..Throttle::new(page_cache) };
        let mut chunks: Vec<usize> = (0..pages).filter_map(|_| throttle.count_page()).collect();
        chunks.extend(throttle.rest);
        chunks
    }

    #[test]
    fn a_chunk_is_an_eighth_of_what_may_be_dirty_in_full_requests() {
        assert_eq!(chunks(20_480 * 6_553, 1600), [768, 768, 64]);
        assert_eq!(chunks(20_480 * 200, 1000), [256, 256, 256, 232]);
    }

    #[test]
    fn pages_of_calls_that_wait_themselves_do_not_count() {
        let mut throttle = Throttle::new(20_480 * 4_000);
        assert!((0..1000).all(|_| throttle.count_page().is_none()));
    }

    #[test]
    fn a_turn_is_a_multiple_of_four_mebibytes_or_half_of_what_may_be_dirty() {
        let turn = |mebibytes: u64| Throttle::new(mebibytes << 20).turn_pages();
        assert_eq!([64, 700, 1024].map(turn), [1024, 5 * 1024, 7 * 1024]);
        assert_eq!([0, 1, 16].map(turn), [1, 25, 409]);
        assert_eq!(Throttle::new(160 << 10).turn_pages(), 3);
    }
}
