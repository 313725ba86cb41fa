//! `dftl-flashsim`: the DFTL that FlashSim has, on which the split cache's paper builds. Its
//! replacement goes by age and not by last use (FlashSim's `ssd_interface.c`, `callFsim`).
//!
//! An entry comes into the real table with the greatest age there is plus one. A hit makes it older
//! by one. When the real table is full, the entry of the smallest age goes to the ghost table; from
//! a full ghost table the entry of the smallest age is dropped, and a dirty one is written alone. A
//! ghost entry that is hit and is then no younger than the real table's smallest takes its place.
//! So an entry that is hit now and then goes hardly later than one that is never hit: a first-in,
//! first-out queue with small jumps.
//!
//! Both tables are in memory, and both answer requests. FlashSim compares a ghost entry with the
//! smallest age as it was last looked up, here with what it is. Of two of one age the one that has
//! had it for longer goes; FlashSim takes the one that lies further back in its table.

use std::collections::BTreeSet;

use super::single::SingleEntries;
use super::table::Table;
use super::{CacheConfig, CacheStep, Entry, Policy};

pub(super) const POLICY: Policy = Policy {
    name: "dftl-flashsim",
    about: "FlashSim's DFTL: what goes is the smallest age, a hit adds one, dirty ones go one by one",
    build: |config| Box::new(Aged::new(config)),
};

/// Share of the real table in percent: FlashSim has 6,552 entries in it and 1,640 ghosts.
pub(super) const REAL_PERCENT: usize = 80;

const REAL: u8 = 0;
const GHOST: u8 = 1;

/// Place of an entry in the order in which entries go: its age, and since when it has had it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    age: u64,
    since: u64,
}

#[derive(Clone, Debug)]
struct Aged {
    table: Table,
    /// The rank of each slot.
    ranks: Vec<Rank>,
    /// The real table and the ghosts.
    parts: [BTreeSet<(Rank, u32)>; 2],
    real_most: usize,
    /// The greatest age there has been.
    oldest: u64,
    now: u64,
}

impl Aged {
    fn new(config: CacheConfig) -> Self {
        let entries = config.entries();
        Self {
            table: Table::new(config, entries),
            ranks: Vec::new(),
            parts: Default::default(),
            real_most: entries * REAL_PERCENT / 100,
            oldest: 0,
            now: 0,
        }
    }

    fn part(&mut self, slot: u32) -> &mut BTreeSet<(Rank, u32)> {
        &mut self.parts[usize::from(self.table.tag(slot))]
    }

    fn leave(&mut self, slot: u32) {
        let rank = self.ranks[slot as usize];
        self.part(slot).remove(&(rank, slot));
    }

    /// Puts a slot that is in no part into one.
    fn enter(&mut self, slot: u32, part: u8) {
        let rank = self.ranks[slot as usize];
        self.table.set_tag(slot, part);
        self.part(slot).insert((rank, slot));
    }

    fn give_age(&mut self, slot: u32, age: u64) {
        self.now += 1;
        self.oldest = self.oldest.max(age);
        if self.ranks.len() <= slot as usize {
            self.ranks.resize(slot as usize + 1, Rank::default());
        }
        self.ranks[slot as usize] = Rank { age, since: self.now };
    }

    fn smallest(&self, part: u8) -> Option<(Rank, u32)> {
        self.parts[usize::from(part)].first().copied()
    }

    fn drop_ghost(&mut self, steps: &mut Vec<CacheStep>) {
        let Some((_, victim)) = self.smallest(GHOST) else { return };
        if self.table.is_dirty(victim) {
            let page = self.table.page(victim);
            steps.push(CacheStep::Write { page, whole: false });
            self.table.set_clean(victim);
        }
        self.leave(victim);
        self.table.remove(victim);
    }

    fn demote(&mut self) {
        let Some((_, coldest)) = self.smallest(REAL) else { return };
        self.leave(coldest);
        self.enter(coldest, GHOST);
    }
}

impl SingleEntries for Aged {
    fn table(&self) -> &Table {
        &self.table
    }

    fn table_mut(&mut self) -> &mut Table {
        &mut self.table
    }

    fn hit(&mut self, slot: u32) {
        let (part, age) = (self.table.tag(slot), self.ranks[slot as usize].age + 1);
        self.leave(slot);
        self.give_age(slot, age);
        let overtaken = self.smallest(REAL).filter(|(rank, _)| part == GHOST && rank.age <= age);
        let Some((_, other)) = overtaken else { return self.enter(slot, part) };
        self.leave(other);
        self.enter(other, GHOST);
        self.enter(slot, REAL);
    }

    fn admit(&mut self, entry: Entry, steps: &mut Vec<CacheStep>) -> u32 {
        if self.table.is_full() {
            self.drop_ghost(steps);
        }
        if self.parts[usize::from(REAL)].len() >= self.real_most {
            self.demote();
        }
        let slot = self.table.insert(entry, REAL);
        self.give_age(slot, self.oldest + 1);
        self.enter(slot, REAL);
        steps.push(CacheStep::Read { page: self.table.page(slot) });
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::nothing_mapped;
    use super::*;
    use crate::cache::{Access, Cache, TranslationPage};

    /// Ten entries: eight real ones, two ghosts; each in a translation page of its own.
    struct Example(Box<dyn Cache>);

    impl Example {
        fn new() -> Self {
            Self((POLICY.build)(CacheConfig { bytes: 80, shift: 0 }))
        }

        fn does(&mut self, access: Access, entry: Entry) -> (bool, Vec<CacheStep>) {
            let mut steps = Vec::new();
            let shape = nothing_mapped(CacheConfig { bytes: 80, shift: 0 });
            (self.0.access(entry, access, 0, &shape, &mut steps), steps)
        }

        fn has(&mut self, entry: Entry) -> bool {
            self.does(Access::Read, entry).0
        }
    }

    #[test]
    fn a_hit_delays_an_entry_by_one_place_only() {
        let mut example = Example::new();
        (0..10).for_each(|entry| assert!(!example.has(entry)));
        // ages 1 to 10; with three hits entry 0 is of age 4, and 1 is the smallest
        (0..3).for_each(|_| assert!(example.has(0)));
        (10..13).for_each(|entry| assert!(!example.has(entry)));
        // 1, 2 and 3 are gone; now 0 is the smallest, used after all others as it is
        assert!(!example.has(13));
        assert!(!example.has(0), "an LRU list would have kept it");
    }

    #[test]
    fn dirty_ones_are_written_one_by_one() {
        let mut example = Example::new();
        (0..10).for_each(|entry| drop(example.does(Access::Write, entry)));
        let page = TranslationPage;
        let (hit, steps) = example.does(Access::Read, 10);
        let written = CacheStep::Write { page: page(0), whole: false };
        assert_eq!((hit, steps), (false, vec![written, CacheStep::Read { page: page(10) }]));
        assert!(!example.0.is_dirty(0) && example.0.is_dirty(1));
    }
}
