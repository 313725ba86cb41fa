//! References of the policies for single entries in one order.

use super::super::dftl::PROTECTED_PERCENT;
use super::super::flashsim::REAL_PERCENT;
use super::*;

#[derive(Clone, Copy, Debug)]
pub(super) struct Cached {
    pub(super) entry: Entry,
    pub(super) used: u64,
    pub(super) dirty: bool,
    pub(super) protected: bool,
    /// Time when it became dirty.
    pub(super) changed: u64,
}

/// Cached entries in no order.
#[derive(Debug)]
pub(super) struct Bag {
    pub(super) config: CacheConfig,
    pub(super) entries: Vec<Cached>,
    now: u64,
}

impl Bag {
    pub(super) fn new(config: CacheConfig) -> Self {
        Self { config, entries: Vec::new(), now: 0 }
    }

    pub(super) fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    pub(super) fn find(&mut self, entry: Entry) -> Option<&mut Cached> {
        self.entries.iter_mut().find(|cached| cached.entry == entry)
    }

    pub(super) fn oldest(&self, of: impl Fn(&Cached) -> bool) -> Option<Cached> {
        self.entries.iter().filter(|cached| of(cached)).min_by_key(|cached| cached.used).copied()
    }

    pub(super) fn drop_entry(&mut self, entry: Entry) {
        self.entries.retain(|cached| cached.entry != entry);
    }

    pub(super) fn add(&mut self, entry: Entry) {
        let used = self.tick();
        self.entries.push(Cached { entry, used, dirty: false, protected: false, changed: 0 });
    }

    pub(super) fn clean(&mut self, page: TranslationPage) {
        let config = self.config;
        let of_page = |cached: &&mut Cached| config.page_of(cached.entry) == page;
        self.entries.iter_mut().filter(of_page).for_each(|cached| cached.dirty = false);
    }

    pub(super) fn is_dirty(&self, entry: Entry) -> bool {
        self.entries.iter().any(|cached| cached.entry == entry && cached.dirty)
    }

    pub(super) fn moved(&mut self, entry: Entry) -> bool {
        self.find(entry).map(|cached| cached.dirty = true).is_some()
    }
}

pub(super) struct Lru(Bag);

impl Lru {
    pub(super) fn new(config: CacheConfig) -> Self {
        Self(Bag::new(config))
    }
}

impl Model for Lru {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        _: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        let bag = &mut self.0;
        let hit = bag.find(entry).is_some();
        if !hit {
            if bag.entries.len() == bag.config.entries() {
                let victim = bag.oldest(|_| true).unwrap();
                if victim.dirty {
                    steps.push(CacheStep::Write {
                        page: bag.config.page_of(victim.entry),
                        whole: false,
                    });
                }
                bag.drop_entry(victim.entry);
            }
            steps.push(CacheStep::Read { page: bag.config.page_of(entry) });
            bag.add(entry);
        }
        let now = bag.tick();
        let cached = bag.find(entry).unwrap();
        cached.used = now;
        cached.dirty |= access.is_change();
        hit
    }

    fn moved(&mut self, entry: Entry) -> bool {
        self.0.moved(entry)
    }

    fn written(&mut self, page: TranslationPage) {
        self.0.clean(page);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.0.is_dirty(entry)
    }
}

/// With the dirty entries of a page written together, or one by one.
pub(super) struct Dftl(Bag, bool);

impl Dftl {
    pub(super) fn new(config: CacheConfig, is_batched: bool) -> Self {
        Self(Bag::new(config), is_batched)
    }

    fn make_room(&mut self, steps: &mut Vec<CacheStep>) {
        let bag = &mut self.0;
        if bag.entries.len() < bag.config.entries() {
            return;
        }
        let victim = bag.oldest(|cached| !cached.protected).unwrap();
        if victim.dirty {
            let page = bag.config.page_of(victim.entry);
            steps.push(CacheStep::Write { page, whole: false });
            if self.1 {
                bag.clean(page);
            }
        }
        bag.drop_entry(victim.entry);
    }

    fn demote(&mut self) {
        let bag = &mut self.0;
        let protected = bag.entries.iter().filter(|cached| cached.protected).count();
        if protected > bag.config.entries() * PROTECTED_PERCENT / 100 {
            let coldest = bag.oldest(|cached| cached.protected).unwrap();
            let now = bag.tick();
            let cached = bag.find(coldest.entry).unwrap();
            (cached.protected, cached.used) = (false, now);
        }
    }
}

impl Model for Dftl {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        _: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        let hit = self.0.find(entry).is_some();
        if hit {
            let now = self.0.tick();
            let cached = self.0.find(entry).unwrap();
            (cached.protected, cached.used) = (true, now);
            self.demote();
        } else {
            self.make_room(steps);
            steps.push(CacheStep::Read { page: self.0.config.page_of(entry) });
            self.0.add(entry);
        }
        self.0.find(entry).unwrap().dirty |= access.is_change();
        hit
    }

    fn moved(&mut self, entry: Entry) -> bool {
        self.0.moved(entry)
    }

    fn written(&mut self, page: TranslationPage) {
        self.0.clean(page);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.0.is_dirty(entry)
    }
}

/// After FlashSim's `callFsim`: tables of real and of ghost entries, `used` is the age, `changed`
/// the time when the entry came to it, and `protected` means real.
pub(super) struct FlashSim {
    bag: Bag,
    real_max_age: u64,
}

impl FlashSim {
    pub(super) fn new(config: CacheConfig) -> Self {
        Self { bag: Bag::new(config), real_max_age: 0 }
    }

    fn find_min(&self, real: bool) -> Option<Cached> {
        let of_table = self.bag.entries.iter().filter(|cached| cached.protected == real);
        of_table.min_by_key(|cached| (cached.used, cached.changed)).copied()
    }

    fn set_real(&mut self, entry: Entry, real: bool) {
        self.bag.find(entry).unwrap().protected = real;
    }

    fn hit(&mut self, entry: Entry) {
        let now = self.bag.tick();
        let real_min = self.find_min(true).unwrap();
        let cached = self.bag.find(entry).unwrap();
        (cached.used, cached.changed) = (cached.used + 1, now);
        let (age, was_real) = (cached.used, cached.protected);
        self.real_max_age = self.real_max_age.max(age);
        if !was_real && real_min.used <= age {
            self.set_real(entry, true);
            self.set_real(real_min.entry, false);
        }
    }

    fn make_room(&mut self, steps: &mut Vec<CacheStep>) {
        let entries = self.bag.config.entries();
        if self.bag.entries.len() == entries {
            let ghost = self.find_min(false).unwrap();
            if ghost.dirty {
                let page = self.bag.config.page_of(ghost.entry);
                steps.push(CacheStep::Write { page, whole: false });
            }
            self.bag.drop_entry(ghost.entry);
        }
        let real = self.bag.entries.iter().filter(|cached| cached.protected).count();
        if real == entries * REAL_PERCENT / 100 {
            let real_min = self.find_min(true).unwrap();
            self.set_real(real_min.entry, false);
        }
    }
}

impl Model for FlashSim {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        _: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        let hit = self.bag.find(entry).is_some();
        if hit {
            self.hit(entry);
        } else {
            self.make_room(steps);
            steps.push(CacheStep::Read { page: self.bag.config.page_of(entry) });
            self.real_max_age += 1;
            let (used, changed) = (self.real_max_age, self.bag.tick());
            self.bag.entries.push(Cached { entry, used, dirty: false, protected: true, changed });
        }
        self.bag.find(entry).unwrap().dirty |= access.is_change();
        hit
    }

    fn moved(&mut self, entry: Entry) -> bool {
        self.bag.moved(entry)
    }

    fn written(&mut self, page: TranslationPage) {
        self.bag.clean(page);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.bag.is_dirty(entry)
    }
}
