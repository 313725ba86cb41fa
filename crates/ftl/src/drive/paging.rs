//! The demand-paged map: translation pages on flash, and a cache of their entries.
//!
//! The map itself (`mapping/`) says where each page is; this file says what it costs that the drive's memory holds only a part
//! of it. A translation page has the addresses of so many logical pages in a row, and is itself a page of the drive's own
//! with a number above all others. The global translation directory says where each is. What the cache asks for is carried
//! out here: reads of translation pages, and programs of whole new ones into lines of their own.
//!
//! A change of the map that the cache does not take (a page was moved whose entry is not cached) is *owed*: its translation
//! page is written when the line that is being cleaned is done with, all changes of a page at once. What is dirty or owed is
//! lost with the power; recovery finds the map by out-of-band areas as on any drive, compares it with the translation
//! pages, and owes those that differ. They are written with the first command.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, BlockBytes, BlockRange, Content, DeviceError, Inode, StreamId};
use dovetail_nand::{Lpn, Nand, NandError, Ppn, Seq, Token};
use dovetail_time::SimTime;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::place::Page;
use super::regions::Regions;
use super::{Drive, device_error};
use crate::buffer::MAX_PARTS;
use crate::cache::{Access, Cache, CacheConfig, Entry, Occupancy, Shape, Step, TranslationPage};
use crate::config::DriveConfig;
use crate::mapping::Mapping;
use crate::stats::{Cause, MapUse, ReadCause};

/// Bytes of an entry in a translation page: the flash page plus one, 0 where nothing is mapped.
pub(crate) const FLASH_ENTRY_BYTES: usize = 8;
const ENTRIES_PER_PART: usize = BLOCK_SIZE as usize / FLASH_ENTRY_BYTES;
/// Bytes of an entry of the global translation directory: where the page is, and how many of its entries are mapped.
const DIRECTORY_ENTRY_BYTES: u64 = 4 + 2;
/// The same with the translation page's number, on a thin drive that has no table of all of them.
const SPARSE_DIRECTORY_ENTRY_BYTES: u64 = 8 + DIRECTORY_ENTRY_BYTES;

/// The newest translation pages found on flash, and whether they can be read.
pub(super) type FoundTranslations = BTreeMap<TranslationPage, (Seq, Ppn, bool)>;

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
    /// The first logical page behind the request that is being served.
    request_end: u64,
    /// Whether changes of the map count: not while it is being rebuilt.
    is_ready: bool,
}

/// The first logical page number of translation pages.
pub(super) fn first_translation(config: &DriveConfig) -> u64 {
    config.host_pages() + u64::from(super::system_pages(config))
}

/// A translation page as seen by the cache.
struct Runs<'a> {
    map: &'a dyn Mapping,
    config: CacheConfig,
    host_pages: u64,
}

impl Shape for Runs<'_> {
    fn runs(&self, page: TranslationPage) -> u32 {
        let mut found = Vec::new();
        self.map.find_mapped(entries_of(page, self.config, self.host_pages), usize::MAX, &mut found);
        let breaks = found.windows(2).filter(|pair| {
            let [(a, at_a), (b, at_b)] = [pair[0], pair[1]];
            b.0 - a.0 != u64::from(at_b.0.wrapping_sub(at_a.0))
        });
        u32::from(!found.is_empty()) + breaks.count() as u32
    }

    fn follows(&self, entry: Entry) -> bool {
        if entry + 1 >= self.host_pages {
            return false;
        }
        let place = |entry| self.map.lookup(Lpn(entry)).0;
        match (place(entry), place(entry + 1)) {
            (Some(before), Some(after)) => after.0.checked_sub(1) == Some(before.0),
            (before, after) => before.is_none() && after.is_none(),
        }
    }
}

fn entries_of(page: TranslationPage, config: CacheConfig, host_pages: u64) -> std::ops::Range<u64> {
    let start = page.0 << config.shift;
    start..(start + (1 << config.shift)).min(host_pages)
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
    fn translation_frontier(&self) -> usize {
        self.frontiers.len() - 1
    }

    /// Where a page that is moved goes.
    pub(super) fn frontier_of_moved(&self, lpn: Lpn, stream: StreamId) -> usize {
        match &self.paging {
            Some(paging) if paging.owns(lpn) => self.translation_frontier(),
            _ => self.move_frontier(stream),
        }
    }

    /// A request for this range begins: its pages will be asked for one after the other.
    pub(super) fn begin_request(&mut self, range: BlockRange) {
        let end = self.pages_of(range).end;
        if let Some(paging) = &mut self.paging {
            paging.request_end = end;
        }
    }

    /// What is asked for next belongs to no request that goes on.
    pub(super) fn end_request(&mut self) {
        if let Some(paging) = &mut self.paging {
            paging.request_end = 0;
        }
    }

    /// Makes the map's entry of `lpn` available; returns when it is. Pages may move meanwhile.
    pub(super) fn want(&mut self, at: SimTime, lpn: Lpn, access: Access) -> Result<SimTime, DeviceError> {
        let Some(paging) = self.paging.as_deref_mut() else { return Ok(at) };
        let following = paging.request_end.saturating_sub(lpn.0 + 1).min(1 << paging.config.shift) as u32;
        let shape = Runs { map: &*self.map, config: paging.config, host_pages: paging.host_pages };
        let hit = paging.cache.access(lpn.0, access, following, &shape, &mut paging.steps);
        let counted = if hit { &mut self.counters.map_hits } else { &mut self.counters.map_misses };
        counted[access as usize] += 1;
        if paging.steps.is_empty() {
            return Ok(at);
        }
        let mut steps = std::mem::take(&mut paging.steps);
        let done = self.perform_steps(at, &steps, MapUse::of(access))?;
        steps.clear();
        if let Some(paging) = &mut self.paging {
            paging.steps = steps;
        }
        Ok(done)
    }

    fn perform_steps(&mut self, mut at: SimTime, steps: &[Step], by: MapUse) -> Result<SimTime, DeviceError> {
        for &step in steps {
            at = match step {
                Step::Read { page } => self.read_translation(at, page, by)?,
                Step::Write { page, whole } => self.write_back(at, page, whole, by)?,
            };
        }
        Ok(at)
    }

    /// Writes what the cache gave up. A drive that has no room for it keeps it as owed, and can still be read.
    fn write_back(
        &mut self,
        at: SimTime,
        page: TranslationPage,
        whole: bool,
        by: MapUse,
    ) -> Result<SimTime, DeviceError> {
        let written = match self.make_room(at) {
            Ok(()) => self.write_translation(at, page, whole, by),
            Err(error) => Err(error),
        };
        match (written, &mut self.paging) {
            (Err(DeviceError::ReadOnly(_)), Some(paging)) => {
                paging.owed.insert(page);
                Ok(at)
            }
            (written, _) => written,
        }
    }

    fn place_of(&self, page: TranslationPage) -> Option<Ppn> {
        self.paging.as_ref().and_then(|paging| paging.directory.get(&page).copied())
    }

    /// Reads a translation page, if there is one. One that cannot be read is owed: its entries are found anew by the
    /// out-of-band areas of the drive, for which no time is counted.
    fn read_translation(
        &mut self,
        at: SimTime,
        page: TranslationPage,
        by: MapUse,
    ) -> Result<SimTime, DeviceError> {
        let Some(ppn) = self.place_of(page) else {
            self.counters.translation_absent[by as usize] += 1;
            return Ok(at);
        };
        self.counters.translation_reads[by as usize] += 1;
        let (done, readable) = self.read_for(at, ppn, ReadCause::Translation)?;
        if let Some(paging) = self.paging.as_mut().filter(|_| !readable) {
            paging.owed.insert(page);
        }
        Ok(done)
    }

    /// Writes a translation page as the map is now; returns when it is durable. A page without entries is given up instead.
    fn write_translation(
        &mut self,
        at: SimTime,
        page: TranslationPage,
        whole: bool,
        by: MapUse,
    ) -> Result<SimTime, DeviceError> {
        let at = if whole { at } else { self.read_translation(at, page, by)? };
        let Some(paging) = &self.paging else { return Ok(at) };
        let lpn = paging.lpn_of(page);
        let Some(parts) = self.encode_translation(page) else {
            self.owed_no_more(page);
            return Ok(at);
        };
        let mut tokens = [Token::EMPTY; MAX_PARTS];
        for (token, part) in tokens.iter_mut().zip(&parts) {
            *token = self.nand.intern(&Content::Bytes(Arc::clone(part)));
        }
        let live = self.all_parts();
        let to_program =
            Page { lpn, live, tokens: &tokens[..parts.len()], stream: StreamId(0), inode: Inode(0) };
        let done = self.program(at, self.translation_frontier(), to_program, Cause::Translation)?;
        self.counters.translation_writes[by as usize] += 1;
        self.owed_no_more(page);
        Ok(done)
    }

    /// Gives up a translation page of which no entry is mapped any more: the directory says so, and nothing needs to be
    /// written. After a power cut it may be found again; it is taken for what it is, since the map has nothing there.
    pub(super) fn give_up_translation(&mut self, page: TranslationPage) {
        let Some(paging) = &mut self.paging else { return };
        paging.cache.written(page);
        paging.owed.remove(&page);
        let lpn = paging.lpn_of(page);
        if let (Some(before), _) = self.point_at(lpn, None) {
            self.forget(before);
        }
    }

    fn owed_no_more(&mut self, page: TranslationPage) {
        if let Some(paging) = &mut self.paging {
            paging.owed.remove(&page);
        }
    }

    /// The blocks of a translation page; `None` where nothing is mapped.
    fn encode_translation(&self, page: TranslationPage) -> Option<Vec<Arc<BlockBytes>>> {
        let paging = self.paging.as_ref()?;
        let entries = entries_of(page, paging.config, paging.host_pages);
        let mut found = Vec::with_capacity(1 << paging.config.shift);
        self.map.find_mapped(entries.clone(), usize::MAX, &mut found);
        if found.is_empty() {
            return None;
        }
        let parts = self.config.parts() as usize;
        let mut blocks = vec![[0; BLOCK_SIZE as usize]; parts];
        for (lpn, ppn) in found {
            let index = (lpn.0 - entries.start) as usize;
            let at = index % ENTRIES_PER_PART * FLASH_ENTRY_BYTES;
            let bytes = (u64::from(ppn.0) + 1).to_le_bytes();
            blocks[index / ENTRIES_PER_PART][at..at + FLASH_ENTRY_BYTES].copy_from_slice(&bytes);
        }
        Some(blocks.into_iter().map(Arc::new).collect())
    }

    /// Writes translation pages that are owed when a line of `most` pages has been emptied: no more than it can have added.
    pub(super) fn settle(&mut self, at: SimTime, most: u32) -> Result<(), DeviceError> {
        for _ in 0..most {
            let Some(page) = self.first_owed() else { break };
            self.settle_page(at, page)?;
        }
        Ok(())
    }

    /// Writes the translation pages that are owed, between commands: with room made for each. While a line is being cleaned
    /// its own wait for its end, unless there are many.
    pub(super) fn settle_between_commands(&mut self, at: SimTime) -> Result<(), DeviceError> {
        while let Some(page) = self.first_owed() {
            let owed = self.paging.as_ref().map_or(0, |paging| paging.owed.len());
            if self.run.is_some() && owed <= self.lines.pages_per_line() as usize {
                break;
            }
            self.make_room(at)?;
            self.settle_page(at, page)?;
        }
        Ok(())
    }

    fn first_owed(&self) -> Option<TranslationPage> {
        self.paging.as_ref().and_then(|paging| paging.owed.first().copied())
    }

    fn settle_page(&mut self, at: SimTime, page: TranslationPage) -> Result<(), DeviceError> {
        self.write_translation(at, page, false, MapUse::Move)?;
        if let Some(paging) = &mut self.paging {
            paging.cache.written(page);
            paging.owed.remove(&page);
        }
        Ok(())
    }

    /// Takes over the translation pages found on flash, and owes those that say something else than the map.
    pub(super) fn adopt_translations(&mut self, found: &FoundTranslations) {
        let Some(mut paging) = self.paging.take() else { return };
        let needed = |page: &TranslationPage| paging.regions.has(*page);
        let readable: Vec<_> = found.iter().filter(|(page, found)| found.2 && needed(page)).collect();
        for (&page, &(_, ppn, _)) in readable {
            paging.directory.insert(page, ppn);
            self.adopt(ppn, self.all_parts());
        }
        let mut pages: BTreeSet<TranslationPage> = found.keys().copied().collect();
        let valid = (0..self.geometry().pages()).map(Ppn).filter(|&ppn| self.lines.is_valid(ppn));
        let host = valid.map(|ppn| self.owner(ppn).0).filter(|&lpn| !self.system.owns(lpn));
        pages.extend(host.map(|lpn| paging.page_of(lpn)));
        self.paging = Some(paging);
        let owed = pages.into_iter().filter(|&page| self.is_behind(page)).collect();
        if let Some(paging) = &mut self.paging {
            paging.owed = owed;
            paging.begin();
        }
    }

    /// Whether a translation page says something else than the map.
    fn is_behind(&self, page: TranslationPage) -> bool {
        let Some(paging) = &self.paging else { return false };
        entries_of(page, paging.config, paging.host_pages)
            .any(|entry| self.on_flash(page, entry) != self.map.lookup(Lpn(entry)).0)
    }

    /// What the translation page on flash says of an entry.
    fn on_flash(&self, page: TranslationPage, entry: u64) -> Option<Ppn> {
        let place = self.place_of(page)?;
        let index = (entry - (page.0 << self.paging.as_ref()?.config.shift)) as usize;
        let content = self.nand.content(self.nand.token(place, index / ENTRIES_PER_PART))?;
        let Content::Bytes(bytes) = content else { return None };
        let at = index % ENTRIES_PER_PART * FLASH_ENTRY_BYTES;
        let number = super::journal::u64_at(&bytes[..], at);
        Some(Ppn(u32::try_from(number.checked_sub(1)?).ok()?))
    }

    /// Checks that no change of the map is neither on flash, nor dirty in the cache, nor owed.
    pub(super) fn check_translations(&self) -> Result<(), String> {
        let Some(paging) = &self.paging else { return Ok(()) };
        let mut pages: BTreeSet<TranslationPage> = paging.directory.keys().copied().collect();
        let valid = (0..self.geometry().pages()).map(Ppn).filter(|&ppn| self.lines.is_valid(ppn));
        let host = valid.map(|ppn| self.owner(ppn).0).filter(|&lpn| !self.system.owns(lpn));
        pages.extend(host.map(|lpn| paging.page_of(lpn)));
        for page in pages.into_iter().filter(|page| !paging.owed.contains(page)) {
            for entry in entries_of(page, paging.config, paging.host_pages) {
                let (flash, mapped) = (self.on_flash(page, entry), self.map.lookup(Lpn(entry)).0);
                if flash != mapped && !paging.cache.is_dirty(entry) {
                    return Err(format!(
                        "{entry} is mapped to {mapped:?}, {page:?} on flash says {flash:?}, and the cache has no change of it"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Reads the newest translation pages, to learn which can be read.
pub(super) fn read_found(nand: &mut Nand, found: &mut FoundTranslations) -> Result<(), DeviceError> {
    let page_bytes = nand.geometry().page_bytes;
    for (_, ppn, readable) in found.values_mut() {
        *readable = match nand.read(SimTime::ZERO, *ppn, page_bytes) {
            Ok(_) => true,
            Err(NandError::Unreadable(_)) => false,
            Err(error) => return Err(device_error(&error)),
        };
    }
    Ok(())
}
