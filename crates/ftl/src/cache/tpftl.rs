//! `tpftl`: single entries, kept and replaced by translation page, brought in by request (Zhou, Wu,
//! Huang, He, Xie and Zhou, "An efficient page-level FTL to optimize address translation in flash
//! memory", EuroSys 2015).
//!
//! Entries hang below a node for their translation page. A miss brings in all entries of the
//! request that are in the same page; when nodes have become fewer, also as many as entries before
//! the missed one are cached in a row. What goes is an entry of the coldest node, the least
//! recently used clean one first; a dirty one only with all changes of its page written. Where the
//! paper orders nodes by the mean hotness of their entries, they stand here in the order of use.

use super::list::List;
use super::pages::Pages;
use super::table::Table;
use super::{
    Access, Cache, CacheConfig, CacheStep, Entry, Occupancy, Policy, Shape, TranslationPage,
};

pub(super) const POLICY: Policy = Policy {
    name: "tpftl",
    about: "single entries replaced by translation page, with prefetching (EuroSys 2015)",
    build: |config| Box::new(Tpftl::new(config)),
};

/// Bytes of an entry: the offset within its page instead of the whole number, and the address
/// (section 4.1).
pub(super) const PACKED_ENTRY_BYTES: u64 = 6;
/// Bytes of a node (assumed: page number and the heads of its lists).
pub(super) const NODE_BYTES: u64 = 8;
/// Nodes that must have come or gone, on balance, to switch selective prefetching (section 4.3).
pub(super) const SWITCH: i32 = 3;

const CLEAN: u8 = 0;
const DIRTY: u8 = 1;

#[derive(Clone, Debug, Default)]
struct Node {
    /// By tag.
    entries: [List; 2],
}

impl Node {
    fn len(&self) -> usize {
        self.entries[0].len() + self.entries[1].len()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Tpftl {
    config: CacheConfig,
    table: Table,
    nodes: Pages<Node>,
    /// Nodes come less nodes gone since the last switch.
    balance: i32,
    is_selective: bool,
}

impl Tpftl {
    pub(super) fn new(config: CacheConfig) -> Self {
        let table = Table::new(config, usize::MAX);
        Self { config, table, nodes: Pages::new(), balance: 0, is_selective: false }
    }

    fn bytes(&self) -> u64 {
        self.table.len() as u64 * PACKED_ENTRY_BYTES + self.nodes.len() as u64 * NODE_BYTES
    }

    fn has_room(&self) -> bool {
        let least = self.config.entries() as u64 * PACKED_ENTRY_BYTES;
        self.bytes() + PACKED_ENTRY_BYTES + NODE_BYTES <= self.config.bytes.max(least)
    }

    /// Moves an entry to the front of its node's list for `tag`.
    fn file(&mut self, node: u32, slot: u32, tag: u8) {
        let lists = &mut self.nodes.get_mut(node).entries;
        lists[usize::from(self.table.tag(slot))].remove(&mut self.table.links, slot);
        lists[usize::from(tag)].push_front(&mut self.table.links, slot);
        self.table.set_tag(slot, tag);
    }

    fn change(&mut self, node: u32, slot: u32) {
        self.file(node, slot, DIRTY);
        self.table.set_dirty(slot);
    }

    /// The changes of a node's page are written: its dirty entries become its most recently used
    /// clean ones.
    fn clean(&mut self, node: u32) {
        while let Some(slot) = self.nodes.get(node).entries[usize::from(DIRTY)].back() {
            self.file(node, slot, CLEAN);
        }
        self.table.clean_page(self.nodes.page(node));
    }

    fn evict(&mut self, steps: &mut Vec<CacheStep>) {
        let Some(node) = self.nodes.coldest().next() else { return };
        if self.nodes.get(node).entries[usize::from(CLEAN)].is_empty() {
            steps.push(CacheStep::Write { page: self.nodes.page(node), whole: false });
            self.clean(node);
        }
        let clean = &mut self.nodes.get_mut(node).entries[usize::from(CLEAN)];
        let Some(victim) = clean.back() else { return };
        clean.remove(&mut self.table.links, victim);
        self.table.remove(victim);
        if self.nodes.get(node).len() == 0 {
            self.nodes.remove(node);
            self.note_nodes(-1);
        }
    }

    fn note_nodes(&mut self, by: i32) {
        self.balance += by;
        if self.balance.abs() >= SWITCH {
            self.is_selective = self.balance < 0;
            self.balance = 0;
        }
    }

    fn node_of(&mut self, page: TranslationPage) -> u32 {
        match self.nodes.find(page) {
            Some(node) => {
                self.nodes.touch(node);
                node
            }
            None => {
                self.note_nodes(1);
                self.nodes.insert(page, Node::default())
            }
        }
    }

    fn admit(&mut self, entry: Entry, steps: &mut Vec<CacheStep>) -> u32 {
        while !self.has_room() && self.table.len() > 0 {
            self.evict(steps);
        }
        let node = self.node_of(self.config.page_of(entry));
        let slot = self.table.insert(entry, CLEAN);
        self.nodes.get_mut(node).entries[usize::from(CLEAN)]
            .push_front(&mut self.table.links, slot);
        slot
    }

    /// Returns how many entries after a missed one are brought in with it: within its page, and in
    /// place of those of one node.
    fn prefetched(&self, entry: Entry, following: u32) -> u64 {
        let offset = entry & (self.config.page_entries() - 1);
        let before =
            (1..=offset).take_while(|back| self.table.find(entry - back).is_some()).count() as u64;
        let wanted = u64::from(following).max(if self.is_selective { before } else { 0 });
        let coldest =
            self.nodes.coldest().next().map_or(0, |node| self.nodes.get(node).len()) as u64;
        let room = self.config.bytes.saturating_sub(self.bytes()) / PACKED_ENTRY_BYTES + coldest;
        wanted.min(self.config.page_entries() - 1 - offset).min(room.saturating_sub(1))
    }

    /// Brings in the entries behind a missed one, the furthest first, so that the nearest is used
    /// longest.
    fn prefetch(&mut self, entry: Entry, count: u64, steps: &mut Vec<CacheStep>) {
        for ahead in (1..=count).rev().map(|i| entry + i) {
            if self.table.find(ahead).is_none() {
                self.admit(ahead, steps);
            }
        }
    }
}

impl Cache for Tpftl {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        following: u32,
        _: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        let found = self.table.find(entry);
        let slot = match found {
            Some(slot) => slot,
            None => {
                let count = self.prefetched(entry, following);
                self.prefetch(entry, count, steps);
                let slot = self.admit(entry, steps);
                steps.push(CacheStep::Read { page: self.config.page_of(entry) });
                slot
            }
        };
        let node = self.node_of(self.config.page_of(entry));
        match access {
            Access::Read => self.file(node, slot, self.table.tag(slot)),
            Access::Write | Access::Trim | Access::Remap => self.change(node, slot),
        }
        found.is_some()
    }

    fn moved(&mut self, entry: Entry) -> bool {
        let Some(slot) = self.table.find(entry) else { return false };
        if let Some(node) = self.nodes.find(self.config.page_of(entry)) {
            self.change(node, slot);
        }
        true
    }

    fn written(&mut self, page: TranslationPage) {
        if let Some(node) = self.nodes.find(page) {
            self.clean(node);
        }
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.table.is_dirty_entry(entry)
    }

    fn occupancy(&self) -> Occupancy {
        let (entries, dirty) = (self.table.len() as u64, self.table.dirty() as u64);
        Occupancy { entries, dirty, ..Occupancy::default() }
    }
}
