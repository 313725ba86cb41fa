//! `split-bounded`: the split cache with a floor under its write part. A variant of ours.
//!
//! In the split cache as published reads take the write part down to MAHT. On a file system that
//! writes nothing twice MAHT is 0, and each dirty entry goes alone: a translation page is written
//! for each block. Entries that wait longer are written together. So the write part has a floor,
//! and two ghost lists say what it should be, as in ARC:
//!
//! - A read misses an entry that the read part has given up lately: with a larger read part a
//!   translation page need not have been read. The floor falls by one.
//! - A translation page is written that was written lately: with a larger write part one of the two
//!   times would have done, which is a page read and a page written. The floor rises by two.
//!
//! "Lately" is within as many evictions of that part as a ghost list has places. The lists take
//! their bytes from the entries. Operations of flash count alike: a cache does not know their
//! times.

use std::collections::VecDeque;
use std::hash::Hash;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::split::{Floor, Split};
use super::{Access, CacheConfig, Entry, Policy, TranslationPage};

pub(super) const POLICY: Policy = Policy {
    name: "split-bounded",
    about: "split with a floor under its write part, moved by what ghost lists say (ours)",
    build: |config| Box::new(Split::new(config, entries(config), Ghosts::new(config))),
};

/// Entries for one place in each ghost list (assumed). A place has a number of 4 bytes, so that
/// the two lists together take the bytes of one entry for each place.
const ENTRIES_A_GHOST: usize = 16;

/// Places of a ghost list.
pub(super) fn ghosts(config: CacheConfig) -> usize {
    (config.entries() / ENTRIES_A_GHOST).max(1)
}

/// Entries that the ghost lists leave room for.
pub(super) fn entries(config: CacheConfig) -> usize {
    config.entries() - ghosts(config)
}

#[derive(Clone, Debug)]
struct Ghosts {
    entries: usize,
    most: usize,
    /// Entries that left the read part.
    read: Lately<Entry>,
    /// Pages that were written when an entry left the write part.
    written: Lately<TranslationPage>,
}

impl Ghosts {
    fn new(config: CacheConfig) -> Self {
        let places = ghosts(config);
        Self {
            entries: 0,
            most: entries(config) - 1,
            read: Lately::new(places),
            written: Lately::new(places),
        }
    }
}

impl Floor for Ghosts {
    fn entries(&self) -> usize {
        self.entries
    }

    fn missed(&mut self, entry: Entry, access: Access) {
        if access == Access::Read && self.read.contains(entry) {
            self.entries = self.entries.saturating_sub(1);
        }
    }

    fn read_entry_left(&mut self, entry: Entry) {
        self.read.pass(Some(entry));
    }

    fn write_entry_left(&mut self, written: Option<TranslationPage>) {
        if written.is_some_and(|page| self.written.contains(page)) {
            self.entries = (self.entries + 2).min(self.most);
        }
        self.written.pass(written);
    }
}

/// The things of the last evictions.
#[derive(Clone, Debug)]
struct Lately<T> {
    evictions: u64,
    places: usize,
    order: VecDeque<(u64, T)>,
    /// The eviction at which a thing was there last.
    last: HashMap<T, u64, FxBuildHasher>,
}

impl<T: Copy + Eq + Hash> Lately<T> {
    fn new(places: usize) -> Self {
        Self { evictions: 0, places, order: VecDeque::new(), last: HashMap::default() }
    }

    fn contains(&self, thing: T) -> bool {
        self.last.contains_key(&thing)
    }

    /// An eviction passes, and leaves a thing or nothing.
    fn pass(&mut self, thing: Option<T>) {
        self.evictions += 1;
        if let Some(thing) = thing {
            self.order.push_back((self.evictions, thing));
            self.last.insert(thing, self.evictions);
        }
        let gone = self.evictions.saturating_sub(self.places as u64);
        while let Some(&(at, thing)) = self.order.front().filter(|(at, _)| *at <= gone) {
            self.order.pop_front();
            if self.last.get(&thing) == Some(&at) {
                self.last.remove(&thing);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::nothing_mapped;
    use super::*;

    /// Translation pages written for each write, with 64 entries of which reads want more.
    fn written(name: &str) -> f64 {
        let config = CacheConfig { bytes: 64 * 8, shift: 4 };
        let shape = nothing_mapped(config);
        let mut cache = (super::super::policy(name).unwrap().build)(config);
        let (mut steps, mut rng) = (Vec::new(), dovetail_time::Rng::new(1));
        for write in 0..4000 {
            // a log, and two reads of a large table for each append
            cache.access(write, Access::Write, 0, &shape, &mut steps);
            for _ in 0..2 {
                cache.access(1 << 20 | rng.below(4096), Access::Read, 0, &shape, &mut steps);
            }
        }
        let writes =
            steps.iter().filter(|step| matches!(step, super::super::CacheStep::Write { .. }));
        writes.count() as f64 / 4000.0
    }

    #[test]
    fn appends_are_written_together_beside_many_reads() {
        let (published, bounded) = (written("split"), written("split-bounded"));
        assert!(published > 0.9, "{published}: a page for each append");
        assert!(bounded < 0.25, "{bounded}");
    }
}
