//! Read-ahead of a workload's buffered reads: windows are read before they are asked for, by plans
//! of their own, and a call waits for those of its pages that are on their way.

use std::collections::HashMap;
use std::ops::Range;

use dovetail_block::EventId;
use dovetail_host::{HostCosts, ReadAhead, ReadAheadLimits};
use dovetail_vfs::{Ino, Simulated};
use dovetail_workload::{FileId, ThreadId};

/// Events of read-ahead have this bit in their numbers, those of file systems do not.
const OWN_EVENTS: u64 = 1 << 63;

/// Pages that are on their way.
#[derive(Debug)]
struct OnTheWay {
    ino: Ino,
    pages: Range<u64>,
    event: EventId,
}

/// A buffered read of a file that is there.
#[derive(Clone, Debug)]
pub(super) struct BufferedRead {
    pub(super) thread: ThreadId,
    pub(super) file: FileId,
    pub(super) ino: Ino,
    /// The pages that it asks for, none behind the end of the file.
    pub(super) pages: Range<u64>,
    /// The file's pages.
    pub(super) file_pages: u64,
}

/// Work that read-ahead makes of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Windows {
    /// Arrivals of pages that the call asks for.
    pub(super) awaited: Vec<EventId>,
    /// Pages that the call reads and waits for.
    pub(super) now: Vec<Range<u64>>,
    /// Pages to read that nobody waits for.
    pub(super) later: Vec<Range<u64>>,
}

/// Windows of a read that nobody waits for.
#[derive(Clone, Debug)]
pub(super) struct Later {
    pub(super) read: BufferedRead,
    pub(super) windows: Vec<Range<u64>>,
}

/// The readers of a run.
#[derive(Debug)]
pub(super) struct Readers {
    limits: ReadAheadLimits,
    readers: HashMap<(ThreadId, FileId), ReadAhead>,
    /// By their slots.
    on_the_way: Vec<Option<OnTheWay>>,
    free: Vec<usize>,
    events: u64,
}

impl Readers {
    /// Readers under a host's limits; `None` if it does not read ahead.
    pub(super) fn new(costs: &HostCosts) -> Option<Self> {
        let limits = costs.read_ahead_limits()?;
        Some(Self {
            limits,
            readers: HashMap::default(),
            on_the_way: Vec::new(),
            free: Vec::new(),
            events: OWN_EVENTS,
        })
    }

    /// The windows that a read asks for, by what is in memory.
    pub(super) fn windows(&mut self, read: &BufferedRead, fs: &dyn Simulated) -> Windows {
        let mut windows = Windows::default();
        let BufferedRead { thread, file, ino, ref pages, file_pages } = *read;
        let reader = self.readers.entry((thread, file)).or_default();
        let mut read_until = pages.start;
        for page in pages.clone() {
            let left = pages.end - page;
            let coming = arrival(&self.on_the_way, ino, page);
            if let Some(event) = coming {
                windows.awaited.extend((!windows.awaited.contains(&event)).then_some(event));
            } else if page >= read_until && !fs.is_cached(ino, page) {
                let before = cached_before(fs, ino, page, self.limits.pages);
                let window = reader.miss(page, left, before, self.limits);
                read_until = window.end;
                windows.now.push(window);
            }
            if reader.mark() == Some(page) {
                windows.later.push(reader.at_mark(left, self.limits));
            }
        }
        reader.ended(pages.end);
        let in_file = |window: &Range<u64>| window.start..window.end.min(file_pages);
        let inside = |all: &[Range<u64>]| -> Vec<Range<u64>> {
            all.iter().map(in_file).filter(|window| !window.is_empty()).collect()
        };
        Windows { now: inside(&windows.now), later: inside(&windows.later), ..windows }
    }

    /// Notes that pages are on their way; returns their slot, and the event that tells when they
    /// are there.
    pub(super) fn begin(&mut self, ino: Ino, pages: Range<u64>) -> (usize, EventId) {
        let slot = self.free.pop().unwrap_or(self.on_the_way.len());
        if slot == self.on_the_way.len() {
            self.on_the_way.push(None);
        }
        self.events += 1;
        let event = EventId(self.events);
        self.on_the_way[slot] = Some(OnTheWay { ino, pages, event });
        (slot, event)
    }

    /// The pages of a slot are there.
    pub(super) fn end(&mut self, slot: usize) {
        self.on_the_way[slot] = None;
        self.free.push(slot);
    }
}

/// The event of a page that is on its way.
fn arrival(on_the_way: &[Option<OnTheWay>], ino: Ino, page: u64) -> Option<EventId> {
    let mut all = on_the_way.iter().flatten();
    all.find(|coming| coming.ino == ino && coming.pages.contains(&page)).map(|coming| coming.event)
}

/// Pages just before one that are in memory, at most `most`.
fn cached_before(fs: &dyn Simulated, ino: Ino, page: u64, most: u64) -> u64 {
    let before = (page.saturating_sub(most)..page).rev();
    before.take_while(|&page| fs.is_cached(ino, page)).count() as u64
}
