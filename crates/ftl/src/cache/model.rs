//! Plain, slow references of the policies, each after its paper's text, compared with the policies
//! after every operation.
//!
//! They know no lists: every entry carries the time of its last use, and what goes is found by
//! looking at all of them.

mod entries;
mod extent;
mod forms;
mod lanes;
mod pages;
mod runs;
mod split;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_time::Rng;

use super::*;

/// A reference.
pub(super) trait Model {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        following: u32,
        shape: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool;
    fn moved(&mut self, entry: Entry) -> bool;
    fn written(&mut self, page: TranslationPage);
    fn is_dirty(&self, entry: Entry) -> bool;
    /// Entries that it holds, if it keeps runs of them.
    fn entries_in_runs(&self) -> Option<u64> {
        None
    }
}

fn model_of(name: &str, config: CacheConfig) -> Box<dyn Model> {
    match name {
        "lru" => Box::new(entries::Lru::new(config)),
        "dftl" => Box::new(entries::Dftl::new(config, true)),
        "dftl-single" => Box::new(entries::Dftl::new(config, false)),
        "dftl-flashsim" => Box::new(entries::FlashSim::new(config)),
        "split" => Box::new(split::Split::new(config)),
        "split-bounded" => Box::new(split::Split::bounded(config)),
        "cdftl" => Box::new(pages::Cdftl::new(config)),
        "s-ftl" => Box::new(pages::CondensedPages::new(config, s_ftl::by_runs)),
        "leaftl" => Box::new(pages::CondensedPages::new(config, leaftl::exact)),
        "leaftl-4" => Box::new(pages::CondensedPages::new(config, leaftl::bounded)),
        "lanes" => Box::new(lanes::Lanes::new(config)),
        "tpftl" => Box::new(pages::Tpftl::new(config)),
        "extent" => Box::new(extent::Extents::new(config)),
        _ => panic!("{name} has no reference"),
    }
}

/// The flash pages of entries.
pub(super) struct Places {
    config: CacheConfig,
    places: RefCell<BTreeMap<Entry, u64>>,
}

impl Places {
    /// An entry is mapped anew: most of the time behind the one before it, as a log has them, or
    /// nowhere.
    fn change(&self, entry: Entry, rng: &mut Rng) {
        let mut places = self.places.borrow_mut();
        let before = entry.checked_sub(1).and_then(|before| places.get(&before).copied());
        match rng.below(5) {
            0 => places.remove(&entry),
            1 => places.insert(entry, rng.next_u64() >> 1),
            _ => places
                .insert(entry, before.map_or_else(|| rng.next_u64() >> 1, |before| before + 1)),
        };
    }
}

/// A map in which nothing has a place.
pub(super) fn nothing_mapped(config: CacheConfig) -> Places {
    Places { config, places: RefCell::default() }
}

impl Shape for Places {
    fn runs(&self, page: TranslationPage) -> u32 {
        let first = page.0 << self.config.shift;
        let breaks =
            (first..first + self.config.page_entries() - 1).filter(|&entry| !self.follows(entry));
        1 + breaks.count() as u32
    }

    fn place(&self, entry: Entry) -> Option<u64> {
        self.places.borrow().get(&entry).copied()
    }

    fn follows(&self, entry: Entry) -> bool {
        self.place(entry + 1) == self.place(entry).map(|place| place + 1)
    }
}

/// Returns where a run's entries lie: everywhere, or mostly among a few.
fn draw(rng: &mut Rng, entries: u64) -> Entry {
    if rng.chance(0.7) { rng.below(entries / 8 + 1) } else { rng.below(entries) }
}

fn compare(policy: &Policy, config: CacheConfig, seed: u64, operations: u32) {
    let mut rng = Rng::new(seed);
    let (mut cache, mut model) = ((policy.build)(config), model_of(policy.name, config));
    let (shape, entries) = (Places { config, places: RefCell::default() }, 16 << config.shift);
    let at = |step: u32| format!("{} of {config:?}, seed {seed}, operation {step}", policy.name);
    // What flash lacks, known without any cache: whatever was changed since its page was last
    // written.
    let mut unwritten: BTreeSet<Entry> = BTreeSet::new();
    let mut entry = 0;
    for step in 0..operations {
        // Half of the time the one behind the last.
        entry = if rng.chance(0.5) { (entry + 1) % entries } else { draw(&mut rng, entries) };
        let (mut steps, mut expected) = (Vec::new(), Vec::new());
        match rng.below(20) {
            0 => {
                shape.change(entry, &mut rng);
                let took = cache.moved(entry);
                assert_eq!(took, model.moved(entry), "{}", at(step));
                if took {
                    unwritten.insert(entry);
                }
            }
            1 => {
                let page = config.page_of(entry);
                cache.written(page);
                model.written(page);
                unwritten.retain(|&entry| config.page_of(entry) != page);
            }
            kind => {
                let access = [
                    Access::Read,
                    Access::Write,
                    Access::Read,
                    Access::Write,
                    Access::Trim,
                    Access::Remap,
                ][kind as usize % 6];
                let following = if rng.chance(0.3) { rng.below(6) as u32 } else { 0 };
                let hit = cache.access(entry, access, following, &shape, &mut steps);
                let wanted = model.access(entry, access, following, &shape, &mut expected);
                assert_eq!((hit, &steps), (wanted, &expected), "{}", at(step));
                for written in &steps {
                    if let CacheStep::Write { page, .. } = *written {
                        unwritten.retain(|&entry| config.page_of(entry) != page);
                    }
                }
                if access.is_change() {
                    unwritten.insert(entry);
                    // A write that fails changes nothing.
                    if rng.chance(0.9) {
                        shape.change(entry, &mut rng);
                        assert_eq!(cache.moved(entry), model.moved(entry), "{}", at(step));
                    }
                }
            }
        }
        assert_eq!(cache.is_dirty(entry), model.is_dirty(entry), "{}", at(step));
        let lost = unwritten.iter().find(|&&entry| !cache.is_dirty(entry));
        assert_eq!(lost, None, "{}: a change is neither cached nor on flash", at(step));
        if let Some(held) = model.entries_in_runs() {
            let dirty = (0..entries).filter(|&entry| cache.is_dirty(entry)).count() as u64;
            let found = cache.occupancy();
            assert_eq!((found.entries, found.dirty), (held, dirty), "{}", at(step));
        }
    }
}

#[test]
fn every_policy_does_what_its_reference_does() {
    for policy in &POLICIES {
        for seed in 0..12 {
            let shift = [2, 3, 4][(seed % 3) as usize];
            let bytes = [64, 96, 256, 700][(seed % 4) as usize];
            compare(policy, CacheConfig { bytes, shift }, seed, 4000);
        }
    }
}
