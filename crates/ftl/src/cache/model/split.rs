//! The split cache after the text of its paper, and the worked examples of its figures 3 and 4.

use super::super::split_bounded::{entries, ghosts};
use super::*;

/// Section IV.A: tag 0 for a write address mapping, 1 for a read address mapping.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    entry: Entry,
    tag: u8,
    used: u64,
    dirty: bool,
    hit_by_write: bool,
}

pub(super) struct Split {
    config: CacheConfig,
    mappings: Vec<Mapping>,
    re: usize,
    we: usize,
    maht: usize,
    now: u64,
    entries: usize,
    /// Of the bounded variant.
    bound: Option<Bound>,
}

/// The floor under the write part, and what each eviction of the two parts left behind: an entry of
/// the read part, a page that was written or none.
#[derive(Default)]
struct Bound {
    floor: usize,
    read: Vec<Entry>,
    written: Vec<Option<TranslationPage>>,
}

impl Split {
    pub(super) fn new(config: CacheConfig) -> Self {
        let entries = config.entries();
        Self { config, mappings: Vec::new(), re: 0, we: 0, maht: 0, now: 0, entries, bound: None }
    }

    pub(super) fn bounded(config: CacheConfig) -> Self {
        let bound = Some(Bound::default());
        Self { entries: entries(config), bound, ..Self::new(config) }
    }

    fn least(&self) -> usize {
        self.maht.max(self.bound.as_ref().map_or(0, |bound| bound.floor))
    }

    fn note_miss(&mut self, entry: Entry, access: Access) {
        let last = ghosts(self.config);
        let Some(bound) = &mut self.bound else { return };
        if access == Access::Read && bound.read.iter().rev().take(last).any(|it| *it == entry) {
            bound.floor = bound.floor.saturating_sub(1);
        }
    }

    fn note_write_eviction(&mut self, gone: Mapping) {
        let (page, last) = (self.config.page_of(gone.entry), ghosts(self.config));
        let most = self.entries - 1;
        let Some(bound) = &mut self.bound else { return };
        let again = bound.written.iter().rev().take(last).any(|it| *it == Some(page));
        if gone.dirty && again {
            bound.floor = (bound.floor + 2).min(most);
        }
        bound.written.push(gone.dirty.then_some(page));
    }

    fn lru_of(&self, tag: u8) -> usize {
        let of_part = self.mappings.iter().enumerate().filter(|(_, mapping)| mapping.tag == tag);
        of_part.min_by_key(|(_, mapping)| mapping.used).unwrap().0
    }

    /// "All the entries belonging to the translation page of the current evicted mapping entries
    /// are selected and written back. The written back entries are not erased."
    fn write_back(&mut self, victim: Mapping, steps: &mut Vec<CacheStep>) {
        if victim.dirty {
            let page = self.config.page_of(victim.entry);
            steps.push(CacheStep::Write { page, whole: false });
            self.written(page);
        }
    }

    fn evict(&mut self, missing: Access, steps: &mut Vec<CacheStep>) {
        if self.least() < self.we || self.re == 0 {
            let victim = self.lru_of(0);
            let gone = self.mappings[victim];
            self.note_write_eviction(gone);
            self.write_back(gone, steps);
            // "If the hit entry is evicted, MAHT is decreased."
            if gone.hit_by_write && self.maht > 0 {
                self.maht -= 1;
            }
            self.mappings.swap_remove(victim);
            self.we -= 1;
        } else {
            let victim = self.lru_of(1);
            assert!(
                !self.mappings[victim].dirty,
                "the entries in the read mapping cache are all clean"
            );
            let gone = self.mappings.swap_remove(victim);
            self.bound.iter_mut().for_each(|bound| bound.read.push(gone.entry));
            self.re -= 1;
            if missing == Access::Read && self.maht > 0 {
                self.maht -= 1;
            }
        }
    }

    fn miss(&mut self, entry: Entry, access: Access, steps: &mut Vec<CacheStep>) {
        self.note_miss(entry, access);
        if self.mappings.len() == self.entries {
            self.evict(access, steps);
        }
        steps.push(CacheStep::Read { page: self.config.page_of(entry) });
        let (tag, part) = match access {
            Access::Read => (1, &mut self.re),
            Access::Write | Access::Trim | Access::Remap => (0, &mut self.we),
        };
        *part += 1;
        let dirty = access.is_change();
        self.mappings.push(Mapping { entry, tag, used: self.now, dirty, hit_by_write: false });
    }
}

impl Model for Split {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        _: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        self.now += 1;
        let Some(mapping) = self.mappings.iter_mut().find(|mapping| mapping.entry == entry) else {
            self.miss(entry, access, steps);
            return false;
        };
        mapping.used = self.now;
        if access == Access::Write && !mapping.hit_by_write {
            (mapping.hit_by_write, self.maht) = (true, self.maht + 1);
        }
        if access.is_change() {
            if mapping.tag == 1 {
                (mapping.tag, self.re, self.we) = (0, self.re - 1, self.we + 1);
            }
            mapping.dirty = true;
        }
        true
    }

    fn moved(&mut self, entry: Entry) -> bool {
        let found =
            self.mappings.iter_mut().find(|mapping| mapping.entry == entry && mapping.tag == 0);
        found.map(|mapping| mapping.dirty = true).is_some()
    }

    fn written(&mut self, page: TranslationPage) {
        let config = self.config;
        let of_page = |mapping: &&mut Mapping| config.page_of(mapping.entry) == page;
        self.mappings.iter_mut().filter(of_page).for_each(|mapping| mapping.dirty = false);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.mappings.iter().any(|mapping| mapping.entry == entry && mapping.dirty)
    }
}

use super::super::split::POLICY;

/// Twelve entries as in figure 3, four to a translation page.
const FIGURE: CacheConfig = CacheConfig { bytes: 12 * ENTRY_BYTES, shift: 2 };

struct Example(Box<dyn Cache>);

impl Example {
    fn new() -> Self {
        Self((POLICY.build)(FIGURE))
    }

    fn does(&mut self, access: Access, entry: Entry) -> (bool, Vec<CacheStep>) {
        let (mut steps, nothing_mapped) =
            (Vec::new(), Places { config: FIGURE, places: RefCell::default() });
        (self.0.access(entry, access, 0, &nothing_mapped, &mut steps), steps)
    }

    /// Read entries, write entries, MAHT.
    fn sizes(&self) -> (u64, u64, u64) {
        let Occupancy { entries, write_part, maht, .. } = self.0.occupancy();
        (entries - write_part, write_part, maht)
    }
}

fn page(page: u64) -> TranslationPage {
    TranslationPage(page)
}

fn read(of: u64) -> CacheStep {
    CacheStep::Read { page: page(of) }
}

fn write(of: u64) -> CacheStep {
    CacheStep::Write { page: page(of), whole: false }
}

/// Six read entries (0, 4, 8, ...), then six write entries (100, 104, ...): each in a translation
/// page of its own.
fn full() -> Example {
    let mut example = Example::new();
    for i in 0..6 {
        assert_eq!(
            example.does(Access::Read, i * 4),
            (false, vec![read(i)]),
            "a free entry is taken"
        );
    }
    for i in 0..6 {
        assert_eq!(example.does(Access::Write, 100 + i * 4), (false, vec![read(25 + i)]));
    }
    assert_eq!(example.sizes(), (6, 6, 0));
    example
}

#[test]
fn figure_3_case_1_takes_the_write_parts_oldest() {
    let mut example = full();
    assert!(example.does(Access::Write, 104).0);
    assert!(example.does(Access::Write, 104).0);
    assert_eq!(example.sizes(), (6, 6, 1), "only the first hit by a write counts");
    assert_eq!(example.does(Access::Read, 400), (false, vec![write(25), read(100)]));
    assert_eq!(example.sizes(), (7, 5, 1), "for a read, RE grows and WE falls");
    assert_eq!(
        example.does(Access::Write, 404),
        (false, vec![write(27), read(101)]),
        "104 was used since"
    );
    assert_eq!(example.sizes(), (7, 5, 1), "for a write, neither changes");
}

#[test]
fn figure_3_cases_2_and_3_take_a_read_entry_then_write_entries_again() {
    let mut example = full();
    for i in 0..6 {
        example.does(Access::Write, 100 + i * 4);
    }
    assert_eq!(example.sizes(), (6, 6, 6));
    assert_eq!(
        example.does(Access::Write, 400),
        (false, vec![read(100)]),
        "a read entry costs nothing"
    );
    assert_eq!(example.sizes(), (5, 7, 6), "case 2, a write: MAHT is kept");
    assert!(example.does(Access::Write, 400).0);
    assert_eq!(example.sizes(), (5, 7, 7));
    assert_eq!(example.does(Access::Read, 404), (false, vec![read(101)]));
    assert_eq!(example.sizes(), (5, 7, 6), "case 2, a read: RE and WE stay, MAHT falls");
    assert!(!example.does(Access::Read, 0).0, "entry 0 went first");
    assert_eq!(example.sizes(), (6, 6, 5), "case 3: 100 went, and was one of those that count");
}

#[test]
fn written_back_entries_stay_and_are_overwritten_for_nothing() {
    let mut example = Example::new();
    (0..12).for_each(|i| drop(example.does(Access::Write, i)));
    assert_eq!(example.does(Access::Read, 100), (false, vec![write(0), read(25)]));
    assert!(example.does(Access::Read, 1).0, "written with 0, and still there");
    assert_eq!(example.does(Access::Read, 104), (false, vec![read(26)]), "2 is clean");
    assert_eq!(example.does(Access::Read, 108), (false, vec![read(27)]), "3 is clean");
    assert_eq!(example.does(Access::Read, 112), (false, vec![write(1), read(28)]), "4 is not");
}

#[test]
fn figure_4_six_requests() {
    let mut example = Example::new();
    example.does(Access::Read, 1);
    example.does(Access::Read, 2);
    example.does(Access::Write, 3);
    assert_eq!(example.sizes(), (2, 1, 0));
    assert_eq!(example.does(Access::Read, 1), (true, vec![]), "(1)-(2) a read hits the read part");
    assert_eq!(example.sizes(), (2, 1, 0));
    assert_eq!(
        example.does(Access::Write, 2),
        (true, vec![]),
        "(3)-(5) a write hits the read part"
    );
    assert_eq!(example.sizes(), (1, 2, 1), "the entry is in the write part now");
    assert_eq!(example.does(Access::Read, 3), (true, vec![]), "(6)-(7) a read hits the write part");
    assert_eq!(example.sizes(), (1, 2, 1), "and stays there");
    assert_eq!(
        example.does(Access::Write, 3),
        (true, vec![]),
        "(8)-(9) a write hits the write part"
    );
    assert_eq!(example.sizes(), (1, 2, 2));
    assert_eq!(
        example.does(Access::Write, 41),
        (false, vec![read(10)]),
        "(10)-(13) a write misses"
    );
    assert_eq!(example.does(Access::Read, 81), (false, vec![read(20)]), "(10)-(13) a read misses");
    assert_eq!(example.sizes(), (2, 3, 2));
    assert!(example.0.is_dirty(2) && example.0.is_dirty(3) && example.0.is_dirty(41));
    assert!(!example.0.is_dirty(1) && !example.0.is_dirty(81));
}
