//! Translation: where each logical page is. The only code that looks an address up and points it
//! elsewhere.
//!
//! The host's pages are in a mapping scheme (`mapping/`), the drive's own in a dense table, the
//! pages of a demand-paged map in its directory. All of them are pointed by [`Translation::point`],
//! which keeps the count of mapped pages and tells the cache of a demand-paged map. It performs no
//! flash operation.

mod direct_map;
mod host_map;
mod paging;
mod system_pages;

use std::ops::Range;

use dovetail_nand::{Lpn, Ppn};
use dovetail_time::SimTime;

use crate::config::DriveConfig;
use crate::mapping::MapCost;
use host_map::HostMap;
use paging::Paging;
pub(crate) use paging::{
    ENTRIES_PER_SUBPAGE, FLASH_ENTRY_BYTES, FoundTranslations, encode_entries, first_translation,
};
use system_pages::SystemPages;

/// The addresses of all pages, the host's and the drive's own.
#[derive(Clone, Debug)]
pub(crate) struct Translation {
    /// The host's pages.
    map: HostMap,
    /// Number of of them are mapped.
    mapped: u64,
    system: SystemPages,
    /// Of a map that is demand-paged.
    paging: Option<Box<Paging>>,
}

/// The outcome of pointing a page elsewhere.
#[derive(Clone, Copy, Debug)]
#[must_use = "flash pages that nothing points at any more must be invalidated"]
pub(crate) struct Pointed {
    /// Place where it was.
    pub(crate) before: Option<Ppn>,
    /// The cost of it.
    pub(crate) cost: MapCost,
    /// The flash page of a translation page that has no mapped entry any more: nothing points at it
    /// now.
    pub(crate) abandoned: Option<Ppn>,
}

impl Translation {
    /// Nothing is mapped; the drive's own pages are numbered from behind the host's on,
    /// `system_pages` of them.
    pub(crate) fn new(config: &DriveConfig, system_pages: u32) -> Self {
        Self {
            map: HostMap::new(config),
            mapped: 0,
            system: SystemPages::new(config.host_pages(), system_pages),
            paging: Paging::new(config, first_translation(config, system_pages)),
        }
    }

    /// Tells whether a page is the drive's own.
    #[inline]
    pub(crate) fn is_own(&self, lpn: Lpn) -> bool {
        self.system.owns(lpn)
    }

    /// Returns where a page of the host's is.
    #[inline]
    pub(crate) fn lookup(&self, lpn: Lpn) -> (Option<Ppn>, MapCost) {
        self.map.lookup(lpn)
    }

    /// Returns where a page of the host's or of the drive's own is.
    pub(crate) fn lookup_any(&self, lpn: Lpn) -> Option<Ppn> {
        match &self.paging {
            Some(paging) if paging.owns(lpn) => paging.place(lpn),
            _ if self.system.owns(lpn) => self.system.get(lpn),
            _ => self.map.lookup(lpn).0,
        }
    }

    /// Points a page, the host's or the drive's own, at a flash page or nowhere.
    #[inline(always)] // for each page that is programmed
    pub(crate) fn point(&mut self, lpn: Lpn, to: Option<Ppn>) -> Pointed {
        if self.system.owns(lpn) {
            return Pointed {
                before: self.point_own(lpn, to),
                cost: MapCost { accesses: 1 },
                abandoned: None,
            };
        }
        let (before, cost) = self.map.update(lpn, to);
        self.mapped = self.mapped + u64::from(to.is_some()) - u64::from(before.is_some());
        let paging = self.paging.as_mut();
        let abandoned = paging.and_then(|paging| paging.note(lpn, before.is_some(), to.is_some()));
        Pointed { before, cost, abandoned }
    }

    fn point_own(&mut self, lpn: Lpn, to: Option<Ppn>) -> Option<Ppn> {
        match &mut self.paging {
            Some(paging) if paging.owns(lpn) => paging.set_place(lpn, to),
            _ => self.system.set(lpn, to),
        }
    }

    /// Pages of the host's that are mapped.
    pub(crate) fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Appends the first `most` mapped pages of `pages`, as [`Mapping::find_mapped`].
    pub(crate) fn find_mapped(
        &self,
        pages: Range<u64>,
        most: usize,
        found: &mut Vec<(Lpn, Ppn)>,
    ) -> MapCost {
        self.map.find_mapped(pages, most, found)
    }

    /// Tells the map what time it is; returns what its background work cost.
    pub(crate) fn tick(&mut self, now: SimTime) -> MapCost {
        self.map.tick(now)
    }

    /// Tells that the entry of a page of the host's is needed soon; only a hint.
    #[inline]
    pub(crate) fn expect(&self, lpn: Lpn) {
        self.map.expect(lpn);
    }

    /// Bytes of the drive's own memory that all of it takes now.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let paging = self.paging.as_ref();
        paging.map_or_else(|| self.map.memory_bytes(), |paging| paging.memory_bytes())
            + self.system.memory_bytes()
    }

    /// Checks that nothing is mapped but so many valid pages, of which no two belong to one logical
    /// page.
    ///
    /// # Errors
    /// The disagreement, in words.
    pub(crate) fn check_mapped(&self, valid: u64) -> Result<(), String> {
        let (host, counted) = (self.map.mapped(), self.mapped);
        let own = self.system.count() + self.paging.as_ref().map_or(0, |paging| paging.count());
        if host != counted || host + own != valid {
            return Err(format!(
                "{host} pages of the host's ({counted} counted) and {own} own are mapped, {valid} are valid"
            ));
        }
        Ok(())
    }
}
