//! Writers that wait for write-back.
//!
//! A file system's pages are clean as soon as a write-back is planned; a kernel's writers wait while
//! too many are dirty or on their way to the device. Were each to write back what there is, and wait
//! alone, the others would fill the cache meanwhile one after another, and a log would hold the
//! blocks of one writer at a time.

use dovetail_block::{DeviceError, EventId, Gatherer, Scheduler, SchedulingHint};

/// Share of the page cache that may be dirty or on its way before writers wait, in percent (Linux:
/// `vm.dirty_ratio`).
const DIRTY_PERCENT: u64 = 20;
/// Share of the page cache that may be dirty before the background writes it back, in percent
/// (Linux: `vm.dirty_background_ratio`).
const DIRTY_BACKGROUND_PERCENT: u64 = 10;
/// A chunk of a write-back, in parts of what may be dirty (Linux: `writeback_chunk_size` takes
/// `DIRTY_SCOPE` parts, or half a second's bandwidth if that is less).
const CHUNKS: usize = 8;
/// Pages of the smallest chunk: a request to the device is not cut for it.
const SMALLEST_CHUNK: usize = 256;
/// Events of write-back have this bit in their numbers, other events of a file system do not.
const OWN_EVENTS: u64 = 1 << 62;

/// Pages of a write-back, up to an event that comes when the device has written them.
#[derive(Debug)]
struct Chunk {
    event: EventId,
    pages: usize,
}

/// The pages that write-backs have planned and the device may not have written yet (Linux:
/// `NR_WRITEBACK`), and who waits for them.
#[derive(Debug)]
pub struct Throttle {
    /// Pages that may be dirty or on their way.
    limit: usize,
    chunks: Vec<Chunk>,
    /// Pages behind the last chunk of the write-back that is being planned.
    rest: Option<usize>,
    events: u64,
}

impl Throttle {
    /// Nothing under way. The page cache has so many bytes.
    pub const fn new(page_cache_bytes: u64) -> Self {
        let limit = (page_cache_bytes / 4096 / 100 * DIRTY_PERCENT) as usize;
        Self { limit, chunks: Vec::new(), rest: None, events: OWN_EVENTS }
    }

    /// Bytes of dirty content from which the background writes it back, of a page cache.
    pub const fn background_bytes(page_cache_bytes: u64) -> u64 {
        page_cache_bytes / 100 * DIRTY_BACKGROUND_PERCENT
    }

    /// A write-back begins.
    pub fn begin<D: Scheduler, const N: usize>(&mut self, io: &Gatherer<D, N>) {
        debug_assert!(self.rest.is_none(), "a write-back in a write-back");
        self.forget_done(|event| io.device().is_signalled(event));
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
        self.count_page().map_or(Ok(()), |event| io.kick_and_signal(event))
    }

    /// The write-back has come to its end, with all that belongs to it, a checkpoint for example.
    ///
    /// # Errors
    /// As [`Gatherer::kick`].
    pub fn end<D: Scheduler, const N: usize>(
        &mut self,
        io: &mut Gatherer<D, N>,
    ) -> Result<(), DeviceError> {
        self.end_event().map_or(Ok(()), |event| io.kick_and_signal(event))
    }

    /// Has the writer that is making a call wait if too many pages are on their way or `dirty`.
    pub fn wait<D: Scheduler, const N: usize>(&mut self, dirty: usize, io: &mut Gatherer<D, N>) {
        self.forget_done(|event| io.device().is_signalled(event));
        if let Some(event) = self.awaited(dirty) {
            io.device_mut().hint(SchedulingHint::Await(event));
        }
    }

    /// Counts a page of a write-back; the event of the chunk that it ends.
    fn count_page(&mut self) -> Option<EventId> {
        let rest = self.rest.as_mut()?;
        *rest += 1;
        let is_full = *rest >= (self.limit / CHUNKS).max(SMALLEST_CHUNK);
        is_full.then(|| std::mem::take(rest)).map(|pages| self.end_chunk(pages))
    }

    /// The event of the end, if there was something to write.
    fn end_event(&mut self) -> Option<EventId> {
        let pages = self.rest.take()?;
        (pages > 0 || !self.chunks.is_empty()).then(|| self.end_chunk(pages))
    }

    /// The first event after which no more pages are dirty or on their way than may be, or else the
    /// last; `None` if no more are already.
    fn awaited(&self, dirty: usize) -> Option<EventId> {
        let mut pages = dirty + self.chunks.iter().map(|chunk| chunk.pages).sum::<usize>();
        if pages <= self.limit {
            return None;
        }
        let is_enough = |chunk: &&Chunk| {
            pages -= chunk.pages;
            pages <= self.limit
        };
        let enough = self.chunks.iter().find(is_enough).or(self.chunks.last());
        enough.map(|chunk| chunk.event)
    }

    fn end_chunk(&mut self, pages: usize) -> EventId {
        self.events += 1;
        let event = EventId(self.events);
        self.chunks.push(Chunk { event, pages });
        event
    }

    fn forget_done(&mut self, is_signalled: impl Fn(EventId) -> bool) {
        self.chunks.retain(|chunk| !is_signalled(chunk.event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page cache of which 4000 pages may be dirty: chunks of 500 pages.
    const PAGES: u64 = 20_000;

    fn written_back(pages: usize) -> (Throttle, Vec<EventId>) {
        let mut throttle = Throttle { rest: Some(0), ..Throttle::new(PAGES * 4096) };
        let mut events: Vec<EventId> = (0..pages).filter_map(|_| throttle.count_page()).collect();
        events.extend(throttle.end_event());
        (throttle, events)
    }

    #[test]
    fn a_writer_waits_for_as_many_chunks_as_it_takes() {
        let (mut throttle, events) = written_back(1100);
        assert_eq!(events.len(), 3, "500, 500 and 100 pages");
        assert_eq!(throttle.awaited(4000 - 1100), None);
        assert_eq!(throttle.awaited(4001 - 1100), Some(events[0]));
        assert_eq!(throttle.awaited(4000 - 600), Some(events[0]));
        assert_eq!(throttle.awaited(4001 - 600), Some(events[1]));
        assert_eq!([4000, 9999].map(|dirty| throttle.awaited(dirty)), [Some(events[2]); 2]);
        throttle.forget_done(|event| event == events[0]);
        assert_eq!(throttle.awaited(4000 - 600), None);
        assert_eq!(throttle.awaited(4001 - 600), Some(events[1]));
    }

    #[test]
    fn whoever_finds_too_much_dirty_waits_for_what_ends_the_write_back() {
        let (mut throttle, events) = written_back(1000);
        assert_eq!(events.len(), 3, "500 pages, 500 pages, and a checkpoint");
        throttle.forget_done(|event| event != events[2]);
        assert_eq!(throttle.awaited(4000), None);
        assert_eq!(throttle.awaited(4001), Some(events[2]));
    }

    #[test]
    fn a_small_cache_has_chunks_of_a_request() {
        let mut throttle = Throttle { rest: Some(0), ..Throttle::new(1000 * 4096) };
        let chunks = (0..1000).filter_map(|_| throttle.count_page()).count();
        assert_eq!(chunks, 1000 / SMALLEST_CHUNK);
    }

    #[test]
    fn nobody_waits_where_nothing_is_under_way() {
        let (mut throttle, _) = written_back(1100);
        throttle.forget_done(|_| true);
        assert_eq!(throttle.awaited(usize::MAX / 2), None);
        assert!(throttle.chunks.is_empty());
        assert_eq!(written_back(0).1, []);
    }

    #[test]
    fn pages_of_calls_that_wait_themselves_do_not_count() {
        let (mut throttle, _) = written_back(0);
        assert!((0..1000).all(|_| throttle.count_page().is_none()));
        assert_eq!(throttle.awaited(4001), None);
    }
}
