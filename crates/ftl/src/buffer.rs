//! The volatile write buffer: pages that were acknowledged and are not on flash yet.
//!
//! A page is *dirty* until it is sent to flash, then *in flight* until its program ends and its
//! place can be used again. Writes to a dirty page merge into it. Places become free in the order
//! in which pages were sent.
//!
//! A page in flight answers reads, whatever becomes of its copy on flash: the buffer owns a
//! reference to each of its tokens from the write until its place is reclaimed.

use std::collections::VecDeque;
use std::ops::Range;

use dovetail_block::Hints;
use dovetail_nand::{Lpn, Token};
use dovetail_time::SimTime;
use rustc_hash::FxBuildHasher;

/// 4 KiB subpages in the largest page.
pub(crate) const MAX_SUBPAGES: usize = 4;

/// A page in the buffer. Parts that it does not hold are [`Token::EMPTY`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferEntry {
    pub(crate) lpn: Lpn,
    pub(crate) hints: Hints,
    pub(crate) tokens: [Token; MAX_SUBPAGES],
    /// One bit a subpage that the entry holds.
    pub(crate) mask: u8,
    dirty: bool,
    /// Dirty, and flash has no page of it yet.
    fresh: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct WriteBuffer {
    capacity: usize,
    entries: Vec<BufferEntry>,
    unused: Vec<u32>,
    index: hashbrown::HashMap<u64, u32, FxBuildHasher>,
    /// Dirty pages, oldest first; may name places that were sent early or reused.
    queue: VecDeque<u32>,
    dirty: usize,
    fresh: usize,
    in_flight: VecDeque<(u32, SimTime)>,
}

impl WriteBuffer {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: Vec::new(),
            unused: Vec::new(),
            index: hashbrown::HashMap::with_hasher(FxBuildHasher),
            queue: VecDeque::new(),
            dirty: 0,
            fresh: 0,
            in_flight: VecDeque::new(),
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn dirty(&self) -> usize {
        self.dirty
    }

    pub(crate) fn is_full(&self) -> bool {
        self.dirty + self.in_flight.len() >= self.capacity
    }

    /// The page as the host last wrote it, dirty or in flight.
    pub(crate) fn get(&self, lpn: Lpn) -> Option<&BufferEntry> {
        self.index.get(&lpn.0).map(|&place| &self.entries[place as usize])
    }

    /// The dirty page of `lpn`.
    pub(crate) fn dirty_mut(&mut self, lpn: Lpn) -> Option<&mut BufferEntry> {
        let place = *self.index.get(&lpn.0)?;
        let entry = &mut self.entries[place as usize];
        entry.dirty.then_some(entry)
    }

    /// Tells whether the page of `lpn` is dirty.
    pub(crate) fn is_dirty(&self, lpn: Lpn) -> bool {
        self.get(lpn).is_some_and(|entry| entry.dirty)
    }

    /// Dirty pages of which flash has nothing yet, as far as [`WriteBuffer::is_new`] was told.
    pub(crate) fn fresh(&self) -> usize {
        self.fresh
    }

    /// Flash has no page of `lpn`; if it is dirty here, it will take one.
    pub(crate) fn is_new(&mut self, lpn: Lpn) {
        if let Some(entry) = self.dirty_mut(lpn) {
            let known = std::mem::replace(&mut entry.fresh, true);
            self.fresh += usize::from(!known);
        }
    }

    /// The pages of `pages` that are here, dirty or in flight, in their order.
    pub(crate) fn within(&self, pages: Range<u64>) -> Vec<Lpn> {
        let mut found: Vec<Lpn> = if pages.end.saturating_sub(pages.start) < self.index.len() as u64
        {
            pages.filter(|lpn| self.index.contains_key(lpn)).map(Lpn).collect()
        } else {
            self.index.keys().copied().filter(|lpn| pages.contains(lpn)).map(Lpn).collect()
        };
        found.sort_unstable();
        found
    }

    /// The dirty pages.
    pub(crate) fn dirty_pages(&self) -> impl Iterator<Item = &BufferEntry> {
        self.index.values().map(|&place| &self.entries[place as usize]).filter(|entry| entry.dirty)
    }

    /// The dirty pages, the oldest first; one may come twice.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = &BufferEntry> {
        // a place that is used again stands in the queue twice
        let entries = self.queue.iter().map(|&place| &self.entries[place as usize]);
        entries.filter(|entry| entry.dirty)
    }

    /// The oldest dirty page.
    pub(crate) fn oldest(&mut self) -> Option<Lpn> {
        loop {
            let entry = &self.entries[*self.queue.front()? as usize];
            if entry.dirty {
                return Some(entry.lpn);
            }
            self.queue.pop_front();
        }
    }

    /// Adds a dirty page that holds nothing yet; there must be room.
    pub(crate) fn add(&mut self, lpn: Lpn, hints: Hints) -> &mut BufferEntry {
        let entry = BufferEntry {
            lpn,
            hints,
            tokens: [Token::EMPTY; MAX_SUBPAGES],
            mask: 0,
            dirty: true,
            fresh: false,
        };
        let place = match self.unused.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.index.insert(lpn.0, place);
        if self.queue.len() > 2 * self.capacity {
            let entries = &self.entries;
            self.queue.retain(|&place| entries[place as usize].dirty);
        }
        self.queue.push_back(place);
        self.dirty += 1;
        &mut self.entries[place as usize]
    }

    /// The dirty page of `lpn` was sent to flash and will be there at `done`.
    pub(crate) fn sent(&mut self, lpn: Lpn, done: SimTime) {
        if let Some(&place) = self.index.get(&lpn.0) {
            let entry = &mut self.entries[place as usize];
            entry.dirty = false;
            self.dirty -= 1;
            self.fresh -= usize::from(std::mem::take(&mut entry.fresh));
            self.in_flight.push_back((place, done));
        }
    }

    /// Frees the place that was sent first; returns when it is free, and the page, whose references
    /// are the caller's now. `None` when nothing is in flight.
    pub(crate) fn reclaim(&mut self) -> Option<(SimTime, BufferEntry)> {
        let (place, done) = self.in_flight.pop_front()?;
        let lpn = self.entries[place as usize].lpn.0;
        if self.index.get(&lpn) == Some(&place) {
            self.index.remove(&lpn);
        }
        self.unused.push(place);
        Some((done, self.entries[place as usize]))
    }

    /// Forgets the page of `lpn`, because nothing of it is needed any more.
    pub(crate) fn forget(&mut self, lpn: Lpn) {
        if let Some(place) = self.index.remove(&lpn.0) {
            let entry = &mut self.entries[place as usize];
            if std::mem::take(&mut entry.dirty) {
                self.dirty -= 1;
                self.fresh -= usize::from(std::mem::take(&mut entry.fresh));
                self.in_flight.push_front((place, SimTime::ZERO));
            }
        }
    }

    /// Bytes of the drive's memory for page data.
    pub(crate) fn memory_bytes(&self, page_bytes: u32) -> u64 {
        self.capacity as u64 * u64::from(page_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_reused_in_the_order_sent() {
        let mut buffer = WriteBuffer::new(2);
        buffer.add(Lpn(1), Hints::default());
        buffer.add(Lpn(2), Hints::default());
        assert!(buffer.is_full());
        assert_eq!(buffer.oldest(), Some(Lpn(1)));
        buffer.sent(Lpn(1), SimTime::from_ns(10));
        assert!(buffer.is_full() && buffer.get(Lpn(1)).is_some(), "in flight, still readable");
        assert_eq!(buffer.reclaim().map(|(free_at, _)| free_at), Some(SimTime::from_ns(10)));
        assert!(buffer.get(Lpn(1)).is_none());
        assert!(buffer.oldest() == Some(Lpn(2)) && buffer.reclaim().is_none());
    }

    #[test]
    fn a_page_written_again_in_flight_is_dirty_anew() {
        let mut buffer = WriteBuffer::new(4);
        buffer.add(Lpn(7), Hints::default());
        buffer.sent(Lpn(7), SimTime::from_ns(5));
        assert!(buffer.dirty_mut(Lpn(7)).is_none());
        buffer.add(Lpn(7), Hints::default()).mask = 1;
        assert_eq!(buffer.reclaim().map(|(free_at, _)| free_at), Some(SimTime::from_ns(5)));
        assert_eq!(buffer.get(Lpn(7)).map(|e| e.mask), Some(1), "the newer one stays");
        buffer.forget(Lpn(7));
        assert_eq!((buffer.dirty(), buffer.oldest()), (0, None));
    }
}
