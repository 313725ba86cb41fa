//! The node address table in memory: entries, what changed since the last checkpoint, and free
//! nids.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::format::{BlockAddr, NatEntry, Nid, Variant};

/// The entries of one block of the table.
pub(crate) type NatPage = [NatEntry];

/// The table. Pages are loaded by the owner, who has the device.
#[derive(Debug)]
pub(crate) struct NatTable {
    variant: Variant,
    pages: Vec<Option<Box<NatPage>>>,
    /// Entries in the last checkpoint's journal: newer than the table on disk.
    journal: BTreeMap<Nid, NatEntry>,
    dirty: BTreeSet<Nid>,
    free: VecDeque<Nid>,
    /// Handed out, and not yet in the table.
    taken: BTreeSet<Nid>,
    /// Freed since the last checkpoint; not to be used before the next.
    freed: Vec<Nid>,
    next_scan: u32,
    scanned: u32,
    max_nid: u32,
}

impl NatTable {
    pub(crate) fn new(
        variant: Variant,
        max_nid: u32,
        next_free: u32,
        journal: BTreeMap<Nid, NatEntry>,
    ) -> Self {
        let pages = max_nid.div_ceil(variant.nat_entries_in_block());
        Self {
            variant,
            pages: (0..pages).map(|_| None).collect(),
            journal,
            dirty: BTreeSet::new(),
            free: VecDeque::new(),
            taken: BTreeSet::new(),
            freed: Vec::new(),
            next_scan: variant.nat_position(Nid(next_free)).0 % pages.max(1),
            scanned: 0,
            max_nid,
        }
    }

    pub(crate) fn max_nid(&self) -> u32 {
        self.max_nid
    }

    /// The number of the page that holds `nid`.
    pub(crate) const fn page_of(&self, nid: Nid) -> u32 {
        self.variant.nat_position(nid).0
    }

    /// The nids of a page.
    fn nids_of(&self, page: u32) -> std::ops::Range<u32> {
        let first = self.variant.first_nid(page).0;
        first..first.saturating_add(self.variant.nat_entries_in_block())
    }

    pub(crate) fn is_loaded(&self, page: u32) -> bool {
        self.pages.get(page as usize).is_some_and(Option::is_some)
    }

    /// Takes in a page as it stands on disk; the journal's entries go over it.
    pub(crate) fn load(&mut self, page: u32, mut entries: Box<NatPage>) {
        let nids = self.nids_of(page);
        for (nid, entry) in self.journal.range(Nid(nids.start)..Nid(nids.end)) {
            entries[(nid.0 - nids.start) as usize] = *entry;
        }
        self.pages[page as usize] = Some(entries);
    }

    /// The entry of a nid whose page is loaded.
    pub(crate) fn get(&self, nid: Nid) -> NatEntry {
        let (page, at) = self.variant.nat_position(nid);
        let page = self.pages.get(page as usize).and_then(Option::as_ref);
        page.map_or_else(NatEntry::default, |page| page[at])
    }

    /// All entries of a loaded page.
    pub(crate) fn page(&self, page: u32) -> Option<&NatPage> {
        self.pages.get(page as usize)?.as_deref()
    }

    /// Changes the entry of a nid whose page is loaded.
    pub(crate) fn set(&mut self, nid: Nid, entry: NatEntry) {
        let (page, at) = self.variant.nat_position(nid);
        if let Some(Some(page)) = self.pages.get_mut(page as usize) {
            page[at] = entry;
            self.dirty.insert(nid);
            self.taken.remove(&nid);
        }
    }

    /// The node is gone. A nid that was never written to the table can be used again at once, any
    /// other after the next checkpoint.
    pub(crate) fn release(&mut self, nid: Nid) {
        if self.taken.remove(&nid) {
            self.free.push_front(nid);
            return;
        }
        let entry = self.get(nid);
        let version = entry.version.wrapping_add(1);
        self.set(nid, NatEntry { version, address: BlockAddr::NULL, ..entry });
        self.freed.push(nid);
    }

    /// A free nid; `None` if none is known. Then [`Self::next_page_to_scan`] says where to look on.
    pub(crate) fn take(&mut self) -> Option<Nid> {
        let nid = self.free.pop_front()?;
        self.taken.insert(nid);
        Some(nid)
    }

    /// Takes a nid that a recovered file has; `false` if it is in use.
    pub(crate) fn take_this(&mut self, nid: Nid) -> bool {
        if self.get(nid).address != BlockAddr::NULL || self.taken.contains(&nid) {
            return false;
        }
        self.free.retain(|&free| free != nid);
        self.taken.insert(nid)
    }

    /// The next page in which free nids have not been looked for; `None` when all were.
    pub(crate) fn next_page_to_scan(&mut self) -> Option<u32> {
        let pages = self.pages.len() as u32;
        if self.scanned == pages {
            return None;
        }
        let page = self.next_scan;
        self.next_scan = (self.next_scan + 1) % pages;
        self.scanned += 1;
        Some(page)
    }

    /// Takes in the free nids of a loaded page.
    pub(crate) fn scan(&mut self, page: u32) {
        let nids = self.nids_of(page);
        for nid in (nids.start..nids.end.min(self.max_nid)).map(Nid) {
            let usable = nid.0 > 3 && self.get(nid).address == BlockAddr::NULL;
            if usable
                && !self.taken.contains(&nid)
                && !self.dirty.contains(&nid)
                && !self.free.contains(&nid)
            {
                self.free.push_back(nid);
            }
        }
    }

    /// Nid at which a search after the next mount should begin.
    pub(crate) fn next_free_hint(&self) -> u32 {
        self.free.front().map_or(self.variant.first_nid(self.next_scan).0, |nid| nid.0)
    }

    /// Number of entries that changed since the last checkpoint.
    pub(crate) fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    /// Plans what a checkpoint writes: the journal, and the pages to write as a whole. Up to
    /// `capacity` entries stay in the journal, small groups (entries of the same page) first.
    pub(crate) fn plan_flush(&self, capacity: usize) -> FlushPlan {
        let known: BTreeSet<Nid> = self.journal.keys().chain(&self.dirty).copied().collect();
        if known.len() <= capacity {
            return FlushPlan { journal: known.into_iter().collect(), pages: Vec::new() };
        }
        let mut groups: BTreeMap<u32, Vec<Nid>> = BTreeMap::new();
        known.into_iter().for_each(|nid| groups.entry(self.page_of(nid)).or_default().push(nid));
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(page, nids)| (nids.len(), *page));
        let mut plan = FlushPlan::default();
        for (page, nids) in groups {
            if plan.journal.len() + nids.len() <= capacity {
                plan.journal.extend(nids);
            } else {
                plan.pages.push(page);
            }
        }
        plan.pages.sort_unstable();
        plan
    }

    /// The pages that a flush needs loaded.
    pub(crate) fn pages_to_flush(&self) -> BTreeSet<u32> {
        self.journal.keys().map(|&nid| self.page_of(nid)).collect()
    }

    /// A checkpoint with `journal` is complete.
    pub(crate) fn commit(&mut self, journal: &[Nid]) {
        let entry = |nid: &Nid| (*nid, self.get(*nid));
        self.journal = journal.iter().map(entry).collect();
        self.dirty.clear();
        for nid in std::mem::take(&mut self.freed) {
            if self.get(nid).address == BlockAddr::NULL && !self.taken.contains(&nid) {
                self.free.push_back(nid);
            }
        }
    }
}

/// Plan of a checkpoint for the table: the entries of the journal, and the pages to write.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FlushPlan {
    /// The nids of the journal.
    pub(crate) journal: Vec<Nid>,
    /// The pages to be written.
    pub(crate) pages: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> NatTable {
        let mut table = NatTable::new(Variant::F2fs, 4 * 455, 4, BTreeMap::new());
        for page in 0..4 {
            table.load(page, Box::new([NatEntry::default(); 455]));
        }
        table
    }

    fn live(address: u32) -> NatEntry {
        NatEntry { version: 0, ino: Nid(9), address: BlockAddr(address.into()) }
    }

    #[test]
    fn a_freed_nid_waits_for_the_checkpoint() {
        let mut table = table();
        assert_eq!(table.take(), None);
        let page = table.next_page_to_scan().unwrap();
        table.scan(page);
        let nid = table.take().unwrap();
        assert_eq!(nid, Nid(4));
        table.release(nid);
        assert_eq!(table.take(), Some(nid), "never written");
        table.set(nid, live(77));
        table.release(nid);
        assert_eq!(table.get(nid).version, 1);
        let rest = std::iter::from_fn(|| table.take()).collect::<Vec<_>>();
        assert!(!rest.contains(&nid));
        table.commit(&[]);
        assert_eq!(table.take(), Some(nid));
    }

    #[test]
    fn small_groups_stay_in_the_journal() {
        let mut table = table();
        (10..30).for_each(|nid| table.set(Nid(nid), live(nid)));
        (500..520).for_each(|nid| table.set(Nid(nid), live(nid)));
        table.set(Nid(1000), live(1));
        let plan = table.plan_flush(38);
        assert_eq!(plan.pages, [1]);
        assert_eq!(plan.journal.len(), 21);
        assert_eq!(table.plan_flush(0).pages, [0, 1, 2]);
        assert_eq!(table.plan_flush(41).pages, [0_u32; 0]);
    }

    #[test]
    fn every_page_is_scanned_once() {
        let mut table = NatTable::new(Variant::F2fs, 4 * 455, 2 * 455, BTreeMap::new());
        let pages: Vec<_> = std::iter::from_fn(|| table.next_page_to_scan()).collect();
        assert_eq!(pages, [2, 3, 0, 1]);
    }
}
