//! `split`: a read part and a write part, the write part bounded from below by a multiple access
//! hard threshold (Gao, Di, Deng, Liu, Ji, Xue and Shi, "F2FS Aware Mapping Cache Design on Solid
//! State Drives", section IV).
//!
//! F2FS writes an address hardly ever twice: what a write brought in goes first, save as many
//! entries of the write part as were written again (MAHT). When the write part is down to MAHT,
//! what a read brought in goes; if it went for a read, MAHT falls by one so that the next miss
//! takes from the write part again. All entries of the read part are clean. An entry of the write
//! part is written with all dirty ones of its translation page; those stay where they are.

use super::list::List;
use super::table::Table;
use super::{
    Access, Cache, CacheConfig, CacheStep, Entry, Occupancy, Policy, Shape, TranslationPage,
};

pub(super) const POLICY: Policy = Policy {
    name: "split",
    about: "a read part and a write part bounded by MAHT, for F2FS (Gao et al.)",
    build: |config| Box::new(Split::new(config, config.entries(), Maht)),
};

/// The paper's tag: 0 for the write part, 1 for the read part.
const READ_TAG: u8 = 1;
/// Set in an entry that a write has hit: it is counted in MAHT.
const HIT_BY_WRITE: u8 = 2;

/// A floor under the write part besides MAHT.
pub(super) trait Floor: Clone + std::fmt::Debug + Send + 'static {
    /// Entries of the write part that reads do not take.
    fn entries(&self) -> usize;

    /// An entry is wanted that is not cached.
    fn missed(&mut self, entry: Entry, access: Access);

    /// An entry of the read part is gone.
    fn read_entry_left(&mut self, entry: Entry);

    /// An entry of the write part is gone; its translation page was written for it, or not.
    fn write_entry_left(&mut self, written: Option<TranslationPage>);
}

/// The paper's: MAHT alone.
#[derive(Clone, Debug)]
struct Maht;

impl Floor for Maht {
    fn entries(&self) -> usize {
        0
    }

    fn missed(&mut self, _: Entry, _: Access) {}

    fn read_entry_left(&mut self, _: Entry) {}

    fn write_entry_left(&mut self, _: Option<TranslationPage>) {}
}

#[derive(Clone, Debug)]
pub(super) struct Split<F> {
    table: Table,
    read: List,
    write: List,
    maht: usize,
    floor: F,
}

impl<F: Floor> Split<F> {
    pub(super) fn new(config: CacheConfig, entries: usize, floor: F) -> Self {
        let table = Table::new(config, entries);
        Self { table, read: List::default(), write: List::default(), maht: 0, floor }
    }

    fn in_read_part(&self, slot: u32) -> bool {
        self.table.tag(slot) & READ_TAG != 0
    }

    fn hit(&mut self, slot: u32, access: Access) {
        match (self.in_read_part(slot), access) {
            (true, Access::Read) => self.read.promote(&mut self.table.links, slot),
            (true, Access::Write | Access::Trim | Access::Remap) => {
                self.read.remove(&mut self.table.links, slot);
                self.write.push_front(&mut self.table.links, slot);
                self.table.set_tag(slot, 0);
            }
            (false, _) => self.write.promote(&mut self.table.links, slot),
        }
        if access == Access::Write {
            self.note_write_hit(slot);
        }
    }

    /// "If a write request hits one mapping entry for the first time, the MAHT is increased." Of
    /// trims the paper does not speak; what is trimmed is not written again any sooner.
    fn note_write_hit(&mut self, slot: u32) {
        if self.table.tag(slot) & HIT_BY_WRITE == 0 {
            self.table.set_tag(slot, self.table.tag(slot) | HIT_BY_WRITE);
            self.maht += 1;
        }
    }

    /// Cases 1 and 2 of section IV.C; case 3 is what follows from MAHT having fallen. The paper
    /// does not say what goes when the read part is empty: here the least recently used of the
    /// write part.
    fn evict(&mut self, missing: Access, steps: &mut Vec<CacheStep>) {
        let least = self.maht.max(self.floor.entries());
        if least < self.write.len() || self.read.is_empty() {
            self.evict_write(steps);
        } else {
            self.evict_read(missing);
        }
    }

    fn evict_write(&mut self, steps: &mut Vec<CacheStep>) {
        let Some(victim) = self.write.back() else { return };
        let written = self.table.is_dirty(victim).then(|| self.table.page(victim));
        if let Some(page) = written {
            steps.push(CacheStep::Write { page, whole: false });
            self.table.clean_page(page);
        }
        self.floor.write_entry_left(written);
        if self.table.tag(victim) & HIT_BY_WRITE != 0 {
            self.maht = self.maht.saturating_sub(1);
        }
        self.write.remove(&mut self.table.links, victim);
        self.table.remove(victim);
    }

    fn evict_read(&mut self, missing: Access) {
        let Some(victim) = self.read.back() else { return };
        self.floor.read_entry_left(self.table.entry(victim));
        self.read.remove(&mut self.table.links, victim);
        self.table.remove(victim);
        if missing == Access::Read {
            self.maht = self.maht.saturating_sub(1);
        }
    }

    fn admit(&mut self, entry: Entry, access: Access, steps: &mut Vec<CacheStep>) -> u32 {
        self.floor.missed(entry, access);
        if self.table.is_full() {
            self.evict(access, steps);
        }
        let (tag, part) = match access {
            Access::Read => (READ_TAG, &mut self.read),
            Access::Write | Access::Trim | Access::Remap => (0, &mut self.write),
        };
        let slot = self.table.insert(entry, tag);
        part.push_front(&mut self.table.links, slot);
        steps.push(CacheStep::Read { page: self.table.page(slot) });
        slot
    }
}

impl<F: Floor> Cache for Split<F> {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        _: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        let found = self.table.find(entry);
        let slot = match found {
            Some(slot) => {
                self.hit(slot, access);
                slot
            }
            None => self.admit(entry, access, steps),
        };
        if access.is_change() {
            self.table.set_dirty(slot);
        }
        found.is_some()
    }

    /// The read part stays clean: a move of one of its entries is written with those of entries
    /// that are not cached.
    fn moved(&mut self, entry: Entry) -> bool {
        let in_write_part = |slot: &u32| !self.in_read_part(*slot);
        let Some(slot) = self.table.find(entry).filter(in_write_part) else { return false };
        self.table.set_dirty(slot);
        true
    }

    fn written(&mut self, page: TranslationPage) {
        self.table.clean_page(page);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.table.is_dirty_entry(entry)
    }

    fn occupancy(&self) -> Occupancy {
        Occupancy {
            entries: self.table.len() as u64,
            dirty: self.table.dirty() as u64,
            write_part: self.write.len() as u64,
            maht: self.maht as u64,
        }
    }
}
