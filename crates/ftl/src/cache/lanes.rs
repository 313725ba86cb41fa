//! `lanes`: runs in compact nodes, loaded ahead of sequences, and kept by reads (ours).
//!
//! As `extent`, with three differences, each of which `docs/mapping-caches.md` has the gain of:
//! - *Ahead.* An access that goes on with a sequence (see `sequences.rs`) and misses brings in all
//!   runs from there to the end of its translation page: the page was read anyway, and they are
//!   wanted next. So a log that goes on in a page reads it once. A trim brings in the whole page:
//!   what dies lies scattered, and hosts discard it together. A page that is cached as a whole is
//!   written before a part of it goes, so that it need not be read again.
//! - *Compact.* What the runs of a translation page take is the least of three forms: see
//!   [`runs_bytes`].
//! - *Kept by reads.* A run that is read again, and not by a sequence, is protected from those that
//!   were used once. Writes protect nothing: in a log, what was written is not written again.

use std::ops::Range;

use super::runs::{PageShape, Runs, distance, end_of_run, start_of_run};
use super::{
    Access, Cache, CacheConfig, CacheStep, Entry, Occupancy, Policy, Shape, TranslationPage,
};
use crate::sequences::Sequences;

pub(super) const POLICY: Policy = Policy {
    name: "lanes",
    about: "runs in compact nodes, loaded ahead of sequences (ours)",
    build: |config| Box::new(Lanes::new(config)),
};

/// Bytes of a run that is alone in its translation page: its first entry 4, its first flash page 4,
/// its length and its state 2 (assumed).
const LONE_BYTES: u64 = 10;
/// Bytes of a translation page with several runs: its number 4, where they are 4 (assumed; as
/// `tpftl`'s).
const NODE_BYTES: u64 = 8;
/// Bytes of a run below a node: its first flash page 4, its place and its length (two numbers of up
/// to 11 bits) and whether it is dirty in 3.
const RUN_BYTES: u64 = 7;
/// Bytes of a flash page's number.
const ADDRESS_BYTES: u64 = 4;
/// Bytes that there are at least, whatever is asked for.
pub(super) const FEWEST_BYTES: u64 = 20 * LONE_BYTES;
/// Bytes that cutting an entry out of its run may add.
pub(super) const MOST_CUT: u64 = NODE_BYTES + 2 * RUN_BYTES;
/// Sequences of reads, and of writes, that are told apart at a time (assumed).
pub(super) const SEQUENCES: usize = 8;
/// Share of the runs that may be protected (assumed; 20 to 50 % make little difference).
pub(super) const PROTECTED_PERCENT: usize = 30;

/// The least of three forms of the runs of a translation page, without its number:
/// - a record for each run;
/// - three bits for each entry (not known, or dirty or not: without a flash page, at the distance of
///   the one before that has one, at another) and an address for each piece;
/// - two bits for each entry (known, dirty) and an address for each.
///
/// Not counted, as for all policies: the order of use, and which of two lists a run is in.
pub(super) fn runs_bytes(config: &CacheConfig, shape: PageShape) -> u64 {
    let bits = |each: u64| (each * config.page_entries()).div_ceil(8);
    let records = u64::from(shape.runs) * RUN_BYTES;
    let marked = bits(3) + u64::from(shape.pieces) * ADDRESS_BYTES;
    let plain = bits(2) + config.page_entries() * ADDRESS_BYTES;
    records.min(marked).min(plain)
}

/// Bytes of a translation page with these runs.
pub(super) fn page_bytes(config: &CacheConfig, shape: PageShape) -> u64 {
    match shape.runs {
        0 => 0,
        1 => LONE_BYTES,
        _ => NODE_BYTES + runs_bytes(config, shape),
    }
}

#[derive(Clone, Debug)]
struct Lanes {
    config: CacheConfig,
    runs: Runs,
    reads: Sequences,
    changes: Sequences,
}

impl Lanes {
    fn new(config: CacheConfig) -> Self {
        Self {
            config,
            runs: Runs::new(config, page_bytes),
            reads: Sequences::new(SEQUENCES),
            changes: Sequences::new(SEQUENCES),
        }
    }

    /// Tells whether an access goes on with a sequence.
    fn goes_on(&mut self, entry: Entry, access: Access) -> bool {
        let sequences = if access == Access::Read { &mut self.reads } else { &mut self.changes };
        sequences.visit(entry).is_some()
    }

    /// A run that is cached was used.
    fn used(&mut self, slot: u32, access: Access, goes_on: bool) {
        let is_protected = self.runs.get(slot).is_protected;
        if access == Access::Read && !goes_on && !is_protected {
            self.runs.protect(slot, true);
        } else {
            self.runs.touch(slot);
        }
    }

    /// Lets go of protected runs beyond their share.
    fn demote(&mut self) {
        while self.runs.list(true).len() * 100 > self.runs.len() * PROTECTED_PERCENT {
            let Some(coldest) = self.runs.list(true).back() else { return };
            self.runs.protect(coldest, false);
        }
    }

    /// Drops runs until the rest fits, but not the one with `entry`.
    fn make_room(&mut self, entry: Entry, steps: &mut Vec<CacheStep>) {
        self.demote();
        while self.runs.bytes() + MOST_CUT > self.config.bytes.max(FEWEST_BYTES) {
            let coldest = self.runs.list(false).back();
            let Some(victim) = coldest.filter(|&slot| Some(slot) != self.runs.find(entry)) else {
                return;
            };
            self.runs.write_if_whole(victim, steps);
            self.runs.evict(victim, steps);
            self.demote();
        }
    }

    /// Brings in what a miss is for: the run around an entry that is read, or the entry alone; if
    /// it goes on with a sequence, everything from there on too.
    fn load(&mut self, entry: Entry, access: Access, goes_on: bool, shape: &dyn Shape) -> u32 {
        let page = self.runs.page_around(entry);
        if access == Access::Trim {
            return self.load_page(entry, page, shape);
        }
        let is_read = access == Access::Read;
        let start = if is_read { start_of_run(shape, entry, page.start) } else { entry };
        let end = if is_read || goes_on { end_of_run(shape, entry, page.end) } else { entry + 1 };
        if goes_on {
            self.load_ahead(end, page.end, shape);
        }
        self.add(start..end, shape)
    }

    /// Brings in what is not cached of a translation page, the run of `entry` as the most recently
    /// used.
    fn load_page(&mut self, entry: Entry, page: Range<Entry>, shape: &dyn Shape) -> u32 {
        let (mut others, mut wanted) = (Vec::new(), entry..entry + 1);
        let mut next = page.start;
        while next < page.end {
            if let Some(slot) = self.runs.find(next) {
                next = self.runs.get(slot).end;
                continue;
            }
            let run = next..end_of_run(shape, next, self.runs.next_cached(next..page.end));
            next = run.end;
            if run.contains(&entry) {
                wanted = run;
            } else {
                others.push(run);
            }
        }
        for run in others.into_iter().rev() {
            self.add(run, shape);
        }
        self.add(wanted, shape)
    }

    fn add(&mut self, run: Range<Entry>, shape: &dyn Shape) -> u32 {
        let distance = distance(shape, run.start);
        self.runs.add(run, distance)
    }

    /// Brings in the runs of a translation page from `start` on that are not cached, the next one
    /// as the most recently used.
    fn load_ahead(&mut self, start: Entry, end: Entry, shape: &dyn Shape) {
        let mut ahead = Vec::new();
        let mut next = start;
        while next < end {
            let begin = next;
            next = end_of_run(shape, begin, end);
            ahead.push(begin..next);
        }
        for run in ahead.into_iter().rev() {
            if !self.runs.has_any(run.clone()) {
                self.add(run, shape);
            }
        }
    }
}

impl Cache for Lanes {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        shape: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        self.runs.join_changed(shape);
        let goes_on = self.goes_on(entry, access);
        let found = self.runs.find(entry);
        let slot = match found {
            Some(slot) => {
                self.used(slot, access, goes_on);
                slot
            }
            None => self.load(entry, access, goes_on, shape),
        };
        self.make_room(entry, steps);
        if found.is_none() {
            steps.push(CacheStep::Read { page: self.config.page_of(entry) });
        }
        if access.is_change() {
            self.runs.cut_out(slot, entry);
        }
        found.is_some()
    }

    fn moved(&mut self, entry: Entry) -> bool {
        self.runs.moved(entry)
    }

    fn written(&mut self, page: TranslationPage) {
        self.runs.clean(page);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.runs.is_dirty(entry)
    }

    fn occupancy(&self) -> Occupancy {
        self.runs.occupancy()
    }
}
