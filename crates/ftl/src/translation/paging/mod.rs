//! The demand-paged map: translation pages on flash, and a cache of their entries.
//!
//! The map itself (`mapping/`) says where each page is; this module says what it costs that the
//! drive's memory holds only a part of it. A translation page has the addresses of so many logical
//! pages in a row, and is itself a page of the drive's own with a number above all others. The
//! global translation directory says where each is. What the cache asks for is carried out by the
//! drive (`drive/demand.rs`): reads of translation pages, and programs of whole new ones into lines
//! of their own.
//!
//! A change of the map that the cache does not take (a page was moved whose entry is not cached) is
//! *owed*: its translation page is written when the line that is being cleaned is done with, all
//! changes of a page at once. What is dirty or owed is lost with the power; recovery finds the map
//! by out-of-band areas as on any drive, compares it with the translation pages, and owes those
//! that differ. They are written with the first command.

mod entries;
mod recover;
mod regions;
mod shape;

use std::collections::BTreeSet;

use dovetail_nand::{Lpn, Ppn};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::Translation;
use crate::cache::{Access, Cache, CacheConfig, CacheStep, Occupancy, TranslationPage};
use crate::config::DriveConfig;

pub(crate) use entries::{ENTRIES_PER_SUBPAGE, FLASH_ENTRY_BYTES, encode_entries};
pub(crate) use recover::FoundTranslations;
use regions::Regions;
use shape::CachedShape;

/// Bytes of an entry of the global translation directory: where the page is, and how many of its
/// entries are mapped.
const DIRECTORY_ENTRY_BYTES: u64 = 4 + 2;
/// The same with the translation page's number, on a thin drive that has no table of all of them.
const SPARSE_DIRECTORY_ENTRY_BYTES: u64 = 8 + DIRECTORY_ENTRY_BYTES;

#[derive(Clone, Debug)]
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
    steps: Vec<CacheStep>,
    /// The entries of the translation page that is being written, one for each that a flash page
    /// has room for.
    places: Vec<u32>,
    /// The first logical page behind the request that is being served.
    request_end: u64,
    /// Set if changes of the map count: not while it is being rebuilt.
    is_ready: bool,
}

/// The first logical page number of translation pages: behind the host's and the drive's other own
/// ones.
pub(crate) fn first_translation(config: &DriveConfig, system_pages: u32) -> u64 {
    config.host_pages() + u64::from(system_pages)
}

impl Paging {
    pub(super) fn new(config: &DriveConfig, first: u64) -> Option<Box<Self>> {
        let map_cache = config.map_cache?;
        let cache =
            CacheConfig { bytes: map_cache.bytes, shift: map_cache.page_entries.trailing_zeros() };
        Some(Box::new(Self {
            cache: (map_cache.policy.build)(cache),
            config: cache,
            first,
            host_pages: config.host_pages(),
            directory: HashMap::default(),
            directory_entry_bytes: match config.addresses {
                Some(_) => SPARSE_DIRECTORY_ENTRY_BYTES,
                None => DIRECTORY_ENTRY_BYTES,
            },
            regions: Regions::default(),
            owed: BTreeSet::new(),
            steps: Vec::new(),
            places: vec![0; config.subpages() as usize * ENTRIES_PER_SUBPAGE],
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

    /// The map has changed at `lpn`: the cache takes it, or its translation page is owed. If
    /// nothing is left that the translation page would say, it is abandoned.
    pub(super) fn note(&mut self, lpn: Lpn, was_mapped: bool, is_mapped: bool) -> Option<Ppn> {
        let page = self.page_of(lpn);
        if self.is_ready && !self.cache.moved(lpn.0) {
            self.owed.insert(page);
        }
        let is_emptied = match (was_mapped, is_mapped) {
            (false, true) => self.regions.add(page),
            (true, false) => self.regions.remove(page),
            _ => false,
        };
        if is_emptied && self.is_ready { self.abandon(page) } else { None }
    }

    /// Gives up a translation page of which no entry is mapped any more: the directory says so, and
    /// nothing needs to be written. Returns where it was on flash. After a power cut it may be
    /// found again, and is passed over: the map has nothing there.
    fn abandon(&mut self, page: TranslationPage) -> Option<Ppn> {
        self.cache.written(page);
        self.owed.remove(&page);
        self.directory.remove(&page)
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.config.bytes + self.count() * self.directory_entry_bytes
    }
}

/// Queries of a drive with a demand-paged map. Without one there is nothing to do.
impl Translation {
    /// Tells whether the map is demand-paged.
    #[inline]
    pub(crate) fn is_paged(&self) -> bool {
        self.paging.is_some()
    }

    /// Tells whether a page is a translation page.
    #[inline]
    pub(crate) fn is_translation_page(&self, lpn: Lpn) -> bool {
        self.paging.as_ref().is_some_and(|paging| paging.owns(lpn))
    }

    /// Returns what the cache holds; `None` where the whole map is in memory.
    pub(crate) fn occupancy(&self) -> Option<Occupancy> {
        self.paging.as_ref().map(|paging| paging.cache.occupancy())
    }

    /// From now on changes of the map count: a drive with nothing on it needs no rebuilding.
    pub(crate) fn begin(&mut self) {
        if let Some(paging) = &mut self.paging {
            paging.begin();
        }
    }

    /// A request begins whose pages, up to `end`, will be asked for one after the other; 0 for
    /// none.
    #[inline]
    pub(crate) fn begin_request(&mut self, end: u64) {
        if let Some(paging) = &mut self.paging {
            paging.request_end = end;
        }
    }

    /// Accesses the cached entry of a page of the host's. Returns whether it was there, and the
    /// steps that the cache asks for, which are to be given back; `None` where the whole map is in
    /// memory.
    #[inline]
    pub(crate) fn access(&mut self, lpn: Lpn, access: Access) -> Option<(bool, Vec<CacheStep>)> {
        let paging = self.paging.as_deref_mut()?;
        let following =
            paging.request_end.saturating_sub(lpn.0 + 1).min(1 << paging.config.shift) as u32;
        let shape =
            CachedShape { map: &*self.map, config: paging.config, host_pages: paging.host_pages };
        let mut steps = std::mem::take(&mut paging.steps);
        let hit = paging.cache.access(lpn.0, access, following, &shape, &mut steps);
        Some((hit, steps))
    }

    /// Gives back the room for steps, to be used again.
    pub(crate) fn give_back(&mut self, mut steps: Vec<CacheStep>) {
        steps.clear();
        if let Some(paging) = &mut self.paging {
            paging.steps = steps;
        }
    }

    /// Returns where a translation page is on flash.
    pub(crate) fn directory(&self, page: TranslationPage) -> Option<Ppn> {
        self.paging.as_ref().and_then(|paging| paging.directory.get(&page).copied())
    }

    /// The logical page of a translation page.
    pub(crate) fn lpn_of(&self, page: TranslationPage) -> Option<Lpn> {
        self.paging.as_ref().map(|paging| paging.lpn_of(page))
    }

    /// Translation pages that are owed.
    pub(crate) fn owed(&self) -> usize {
        self.paging.as_ref().map_or(0, |paging| paging.owed.len())
    }

    /// The first translation page that is owed.
    pub(crate) fn first_owed(&self) -> Option<TranslationPage> {
        self.paging.as_ref().and_then(|paging| paging.owed.first().copied())
    }

    /// A translation page is to be written before long: flash does not say what the map says, or
    /// cannot be read.
    pub(crate) fn owe(&mut self, page: TranslationPage) {
        if let Some(paging) = &mut self.paging {
            paging.owed.insert(page);
        }
    }

    /// As [`Translation::owe`], by the page's number.
    pub(crate) fn owe_at(&mut self, lpn: Lpn) {
        if let Some(paging) = &mut self.paging {
            paging.owed.insert(paging.page_at(lpn));
        }
    }

    /// A translation page is not owed any more.
    pub(crate) fn owe_no_more(&mut self, page: TranslationPage) {
        if let Some(paging) = &mut self.paging {
            paging.owed.remove(&page);
        }
    }

    /// A translation page was written as the map is now: the cache has no change of it, and it is
    /// not owed.
    pub(crate) fn settled(&mut self, page: TranslationPage) {
        if let Some(paging) = &mut self.paging {
            paging.cache.written(page);
            paging.owed.remove(&page);
        }
    }

    /// Translation pages with an entry that is mapped.
    pub(crate) fn needed_translations(&self) -> Option<u64> {
        self.paging.as_ref().map(|paging| paging.regions.count())
    }

    /// Entries of a translation page.
    pub(crate) fn page_entries(&self) -> Option<u64> {
        self.paging.as_ref().map(|paging| 1 << paging.config.shift)
    }
}
