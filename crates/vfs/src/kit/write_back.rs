//! Write-back under way, and the writers that wait for it.
//!
//! A file system's pages are clean as soon as a write-back is planned; a kernel's writers wait while
//! too many are dirty or on their way to the device. Were each to write back what there is, and wait
//! alone, the others would fill the cache meanwhile one after another, and a log would hold the
//! blocks of one writer at a time.

use std::collections::VecDeque;

use dovetail_block::EventId;

/// Share of the page cache that may be dirty or on its way before writers wait, in percent (Linux:
/// `vm.dirty_ratio`).
const DIRTY_PERCENT: u64 = 20;
/// Share of the page cache that may be dirty before the background writes it back, in percent
/// (Linux: `vm.dirty_background_ratio`).
const DIRTY_BACKGROUND_PERCENT: u64 = 10;
/// A chunk of a write-back, in parts of what may be dirty (Linux: `DIRTY_SCOPE`, of which
/// `writeback_chunk_size` makes the same use).
const CHUNKS: usize = 8;
/// Events of write-back have this bit in their numbers, other events of a file system do not.
const OWN_EVENTS: u64 = 1 << 62;

/// Pages of a write-back, up to an event that comes when they have been submitted.
#[derive(Debug)]
struct Chunk {
    event: EventId,
    pages: usize,
}

/// Pages that a write-back has planned and the device may not have been given yet.
#[derive(Debug)]
pub struct WriteBack {
    /// Pages that may be dirty or on their way.
    limit: usize,
    chunks: VecDeque<Chunk>,
    /// Pages behind the last chunk of the write-back that is being planned.
    rest: Option<usize>,
    events: u64,
}

impl WriteBack {
    /// Nothing under way. The page cache has so many bytes.
    pub const fn new(page_cache_bytes: u64) -> Self {
        let limit = (page_cache_bytes / 4096 / 100 * DIRTY_PERCENT) as usize;
        Self { limit, chunks: VecDeque::new(), rest: None, events: OWN_EVENTS }
    }

    /// Bytes of dirty content from which the background writes it back, of a page cache.
    pub const fn background_bytes(page_cache_bytes: u64) -> u64 {
        page_cache_bytes / 100 * DIRTY_BACKGROUND_PERCENT
    }

    /// A write-back begins. `is_signalled` tells which events have come.
    pub fn begin(&mut self, is_signalled: impl Fn(EventId) -> bool) {
        self.forget_submitted(is_signalled);
        self.rest = Some(0);
    }

    /// One more page has been planned, by a write-back or by a call that waits for it itself.
    /// Returns the event to signal behind it, if it ends a chunk.
    pub fn add_page(&mut self) -> Option<EventId> {
        let rest = self.rest.as_mut()?;
        *rest += 1;
        let is_full = *rest > self.limit / CHUNKS;
        is_full.then(|| std::mem::take(rest)).map(|pages| self.end_chunk(pages))
    }

    /// The write-back has come to its end. Returns the event to signal there, if pages were added
    /// behind the last one.
    pub fn end(&mut self) -> Option<EventId> {
        let pages = self.rest.take().filter(|pages| *pages > 0);
        pages.map(|pages| self.end_chunk(pages))
    }

    /// The event that a writer awaits before it goes on while so many pages are dirty; `None` if
    /// it need not wait.
    pub fn throttle(
        &mut self,
        dirty: usize,
        is_signalled: impl Fn(EventId) -> bool,
    ) -> Option<EventId> {
        self.forget_submitted(is_signalled);
        let under_way: usize = self.chunks.iter().map(|chunk| chunk.pages).sum();
        let first = self.chunks.front()?;
        (dirty + under_way > self.limit).then_some(first.event)
    }

    fn end_chunk(&mut self, pages: usize) -> EventId {
        self.events += 1;
        let event = EventId(self.events);
        self.chunks.push_back(Chunk { event, pages });
        event
    }

    fn forget_submitted(&mut self, is_signalled: impl Fn(EventId) -> bool) {
        while self.chunks.front().is_some_and(|chunk| is_signalled(chunk.event)) {
            self.chunks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page cache of which 80 pages may be dirty: chunks of 11 pages.
    const PAGES: u64 = 400;

    fn written_back(pages: usize) -> (WriteBack, Vec<EventId>) {
        let mut under_way = WriteBack::new(PAGES * 4096);
        under_way.begin(|_| false);
        let mut events: Vec<EventId> = (0..pages).filter_map(|_| under_way.add_page()).collect();
        events.extend(under_way.end());
        (under_way, events)
    }

    #[test]
    fn a_writer_waits_for_the_first_chunk_and_no_longer() {
        let (mut under_way, events) = written_back(25);
        assert_eq!(events.len(), 3, "11, 11 and 3 pages");
        assert_eq!(under_way.throttle(80 - 25, |_| false), None);
        assert_eq!(under_way.throttle(81 - 25, |_| false), Some(events[0]));
        let first_is_there = |event| event == events[0];
        assert_eq!(under_way.throttle(80 - 14, first_is_there), None);
        assert_eq!(under_way.throttle(81 - 14, first_is_there), Some(events[1]));
    }

    #[test]
    fn nobody_waits_where_nothing_is_under_way() {
        let (mut under_way, _) = written_back(25);
        assert_eq!(under_way.throttle(usize::MAX / 2, |_| true), None);
        assert!(under_way.chunks.is_empty());
    }

    #[test]
    fn pages_of_calls_that_wait_themselves_do_not_count() {
        let (mut under_way, _) = written_back(0);
        assert!((0..100).all(|_| under_way.add_page().is_none()));
        assert_eq!(under_way.throttle(100, |_| false), None);
    }
}
