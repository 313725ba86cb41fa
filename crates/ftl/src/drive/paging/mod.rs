//! The demand-paged map: translation pages on flash, and a cache of their entries.
//!
//! The map itself (`mapping/`) says where each page is; this module says what it costs that the drive's memory holds only a part
//! of it. A translation page has the addresses of so many logical pages in a row, and is itself a page of the drive's own
//! with a number above all others. The global translation directory says where each is. What the cache asks for is carried
//! out in `demand.rs`: reads of translation pages, and programs of whole new ones into lines of their own.
//!
//! A change of the map that the cache does not take (a page was moved whose entry is not cached) is *owed*: its translation
//! page is written when the line that is being cleaned is done with, all changes of a page at once. What is dirty or owed is
//! lost with the power; recovery finds the map by out-of-band areas as on any drive, compares it with the translation
//! pages, and owes those that differ. They are written with the first command.

mod demand;
mod owed;
mod page;
mod recover;
mod regions;

use std::collections::BTreeSet;

use dovetail_block::StreamId;
use dovetail_nand::{Lpn, Ppn};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::Drive;
use crate::cache::{Cache, CacheConfig, Occupancy, Step, TranslationPage};
use crate::config::DriveConfig;
use crate::medium::FrontierId;

pub(crate) use page::FLASH_ENTRY_BYTES;
pub(super) use recover::{FoundTranslations, read_found};
use regions::Regions;

/// Bytes of an entry of the global translation directory: where the page is, and how many of its entries are mapped.
const DIRECTORY_ENTRY_BYTES: u64 = 4 + 2;
/// The same with the translation page's number, on a thin drive that has no table of all of them.
const SPARSE_DIRECTORY_ENTRY_BYTES: u64 = 8 + DIRECTORY_ENTRY_BYTES;

#[derive(Debug)]
pub(super) struct Paging {
    cache: Box<dyn Cache>,
    config: CacheConfig,
    /// The logical page of translation page 0.
    first: u64,
    /// Logical pages of the host's.
    host_pages: u64,
    /// The global translation directory.
    directory: HashMap<TranslationPage, Ppn, FxBuildHasher>,
    directory_entry_bytes: u64,
    regions: Regions,
    owed: BTreeSet<TranslationPage>,
    steps: Vec<Step>,
    /// The entries of the translation page that is being written, one for each that a flash page has room for.
    places: Vec<u32>,
    /// The first logical page behind the request that is being served.
    request_end: u64,
    /// Whether changes of the map count: not while it is being rebuilt.
    is_ready: bool,
}

/// The first logical page number of translation pages.
pub(super) fn first_translation(config: &DriveConfig) -> u64 {
    config.host_pages() + u64::from(super::system_pages(config))
}

impl Paging {
    pub(super) fn new(config: &DriveConfig) -> Option<Box<Self>> {
        let map_cache = config.map_cache?;
        let cache = CacheConfig { bytes: map_cache.bytes, shift: map_cache.page_entries.trailing_zeros() };
        Some(Box::new(Self {
            cache: (map_cache.policy.build)(cache),
            config: cache,
            first: first_translation(config),
            host_pages: config.host_pages(),
            directory: HashMap::default(),
            directory_entry_bytes: match config.addresses {
                Some(_) => SPARSE_DIRECTORY_ENTRY_BYTES,
                None => DIRECTORY_ENTRY_BYTES,
            },
            regions: Regions::default(),
            owed: BTreeSet::new(),
            steps: Vec::new(),
            places: vec![0; config.parts() as usize * page::ENTRIES_PER_PART],
            request_end: 0,
            is_ready: false,
        }))
    }

    /// A drive with nothing on it needs no rebuilding.
    pub(super) fn begin(&mut self) {
        self.is_ready = true;
    }

    pub(super) fn owns(&self, lpn: Lpn) -> bool {
        lpn.0 >= self.first
    }

    fn page_at(&self, lpn: Lpn) -> TranslationPage {
        TranslationPage(lpn.0 - self.first)
    }

    fn page_of(&self, lpn: Lpn) -> TranslationPage {
        TranslationPage(lpn.0 >> self.config.shift)
    }

    fn lpn_of(&self, page: TranslationPage) -> Lpn {
        Lpn(self.first + page.0)
    }

    pub(super) fn place(&self, lpn: Lpn) -> Option<Ppn> {
        self.directory.get(&self.page_at(lpn)).copied()
    }

    pub(super) fn set_place(&mut self, lpn: Lpn, to: Option<Ppn>) -> Option<Ppn> {
        match to {
            Some(ppn) => self.directory.insert(self.page_at(lpn), ppn),
            None => self.directory.remove(&self.page_at(lpn)),
        }
    }

    /// Translation pages that are on flash.
    pub(super) fn count(&self) -> u64 {
        self.directory.len() as u64
    }

    /// The map has changed at `lpn`: the cache takes it, or its translation page is owed. Returns the translation page if
    /// nothing is left that it would say: flash need not have it any more.
    pub(super) fn note(&mut self, lpn: Lpn, was_mapped: bool, is_mapped: bool) -> Option<TranslationPage> {
        let page = self.page_of(lpn);
        if self.is_ready && !self.cache.moved(lpn.0) {
            self.owed.insert(page);
        }
        let is_emptied = match (was_mapped, is_mapped) {
            (false, true) => self.regions.add(page),
            (true, false) => self.regions.remove(page),
            _ => false,
        };
        (is_emptied && self.is_ready).then_some(page)
    }

    /// Translation pages with an entry that is mapped.
    pub(super) fn needed(&self) -> u64 {
        self.regions.count()
    }

    pub(super) fn page_entries(&self) -> u64 {
        1 << self.config.shift
    }

    /// A translation page can no longer be read: what it said is written anew.
    pub(super) fn owe(&mut self, lpn: Lpn) {
        self.owed.insert(self.page_at(lpn));
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.config.bytes + self.count() * self.directory_entry_bytes
    }
}

impl Drive {
    /// What the cache of the demand-paged map holds; `None` for a drive that has its whole map in memory.
    pub fn map_cache(&self) -> Option<Occupancy> {
        self.paging.as_ref().map(|paging| paging.cache.occupancy())
    }

    /// The frontier of translation pages.
    fn translation_frontier(&self) -> FrontierId {
        FrontierId(self.medium.frontiers() - 1)
    }

    /// Where a page that is moved goes.
    pub(super) fn frontier_of_moved(&self, lpn: Lpn, stream: StreamId) -> FrontierId {
        match &self.paging {
            Some(paging) if paging.owns(lpn) => self.translation_frontier(),
            _ => self.move_frontier(stream),
        }
    }
}
