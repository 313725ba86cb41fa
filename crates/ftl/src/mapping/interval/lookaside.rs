//! Runs that were used lately, so that most pages need no walk through their tree.
//!
//! A table with a place for every so many segments; a segment's run always stands in the same
//! place, and replaces the one that was there. It is as long as there are whole tables' worth of
//! covered pages: with fewer places random lookups over all that is live would miss, with more the
//! map would take more than a percent beyond its tables. One run stands before the table, as if in
//! registers: a stream's next page needs no address from it.

use std::cell::Cell;

use super::super::MapCost;
use super::address::LogicalPage;
use super::node::{Entries, Node};

/// Places of the smallest lookaside table.
const MIN_RUNS: usize = 64;

/// Covered pages for each place, and neighbours that share one: the pages of a segment, in pages of
/// 4 KiB. With larger pages some segments share a place, but a constant shift makes a lookup
/// shorter.
const PAGES_PER_RUN: u64 = 1 << PLACE_SHIFT;
const PLACE_SHIFT: u32 = 12;

/// A run becomes the one before the table if the page is a multiple of this: a stream comes by one
/// that is within 256 KiB, and scattered accesses need not write all this each time.
const STREAM_EVERY: u64 = 64;

/// An entry of the run in registers.
pub(super) const STREAM: MapCost = MapCost { accesses: 1 };

/// An entry of another known run: the lookaside table, and the run's.
pub(super) const KNOWN: MapCost = MapCost { accesses: 2 };

/// A covered run. Each field is read and written on its own, in one width: reads that span several
/// writes would wait for all memory accesses before them.
#[derive(Clone, Debug, Default)]
#[repr(align(32))]
struct KnownRun {
    start: Cell<u64>,
    /// 0 is none.
    pages: Cell<u64>,
    /// Index of the first page's entry among the words of tables.
    at: Cell<usize>,
    node: Cell<Node>,
}

impl KnownRun {
    /// Index of the entry of `page`, if it is in the run.
    #[inline]
    fn find(&self, page: LogicalPage) -> Option<usize> {
        let index = page.index().wrapping_sub(self.start.get());
        (index < self.pages.get()).then(|| self.at.get() + index as usize)
    }

    fn set(&self, other: &Self) {
        self.start.set(other.start.get());
        self.pages.set(other.pages.get());
        self.at.set(other.at.get());
        self.node.set(other.node.get());
    }
}

const RUN_BYTES: usize = size_of::<KnownRun>();
const _: () = assert!(RUN_BYTES == 1 << RUN_SHIFT);
const RUN_SHIFT: u32 = 5;

/// The known runs.
#[derive(Clone, Debug)]
pub(super) struct Lookaside {
    stream: KnownRun,
    /// The bytes from the first run to the last.
    mask: u64,
    /// A power of two of them.
    runs: Box<[KnownRun]>,
}

impl Lookaside {
    pub(super) fn new() -> Self {
        let runs = empty(MIN_RUNS);
        Self { stream: KnownRun::default(), mask: mask(&runs), runs }
    }

    #[inline]
    #[allow(
        unsafe_code,
        reason = "measured hot path: an index takes a shift and a check more, 10 % of a random lookup"
    )]
    fn place(&self, page: LogicalPage) -> &KnownRun {
        let offset = (page.index() >> (PLACE_SHIFT - RUN_SHIFT)) & self.mask;
        debug_assert!(offset as usize / RUN_BYTES < self.runs.len());
        // SAFETY: `mask` is what `mask` makes of `runs` wherever either is set, so that `offset` is
        // a multiple of a run's bytes and below those of all.
        unsafe { &*self.runs.as_ptr().byte_add(offset as usize) }
    }

    /// Index of the entry of `page`, if it is in the run before the table; that takes [`STREAM`] to
    /// read.
    #[inline]
    pub(super) fn find_in_stream(&self, page: LogicalPage) -> Option<usize> {
        self.stream.find(page)
    }

    /// Index of the entry of `page`, if the table knows its run; that takes [`KNOWN`] to read.
    #[inline]
    pub(super) fn find_in_table(&self, page: LogicalPage) -> Option<usize> {
        let place = self.place(page);
        let at = place.find(page)?;
        if page.index().is_multiple_of(STREAM_EVERY) {
            self.go_on_with(place);
        }
        Some(at)
    }

    /// Index of the entry of `page`, if the table knows its run, of which it is not taken as a use.
    #[inline]
    pub(super) fn peek(&self, page: LogicalPage) -> Option<usize> {
        self.place(page).find(page)
    }

    #[cold]
    fn go_on_with(&self, run: &KnownRun) {
        self.stream.set(run);
    }

    /// The node of `page`, whose run is known.
    #[inline]
    pub(super) fn node(&self, page: LogicalPage) -> Node {
        let run = if self.stream.find(page).is_some() { &self.stream } else { self.place(page) };
        run.node.get()
    }

    /// Keeps a run that begins at `start`.
    pub(super) fn keep(&self, start: LogicalPage, node: Node, Entries { run, at }: Entries) {
        let place = self.place(start);
        place.start.set(start.index());
        place.pages.set(run.pages.into());
        place.at.set(at);
        place.node.set(node);
    }

    /// Forgets the run of the segment of `page`.
    pub(super) fn forget(&self, page: LogicalPage) {
        self.place(page).pages.set(0);
        self.stream.pages.set(0);
    }

    /// Forgets all runs.
    pub(super) fn clear(&self) {
        self.runs.iter().chain([&self.stream]).for_each(|run| run.pages.set(0));
    }

    /// Makes the table as long as a map of that many covered pages needs.
    pub(super) fn fit(&mut self, covered_pages: u64) {
        let wanted = MIN_RUNS.max((covered_pages / PAGES_PER_RUN) as usize).next_power_of_two();
        if wanted > self.runs.len() || wanted * 4 <= self.runs.len() {
            self.runs = empty(wanted);
            self.mask = mask(&self.runs);
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        size_of_val(&*self.runs) as u64
    }
}

/// Returns what keeps of an address the offset of a run.
fn mask(runs: &[KnownRun]) -> u64 {
    (size_of_val(runs) - RUN_BYTES) as u64
}

fn empty(places: usize) -> Box<[KnownRun]> {
    std::iter::repeat_with(KnownRun::default).take(places).collect()
}
