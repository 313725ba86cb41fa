//! Translation pages when the power comes back, and whether they agree with the map.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_block::DeviceError;
use dovetail_nand::{Lpn, Ppn, Seq};

use super::page::entries_of;
use crate::cache::TranslationPage;
use crate::drive::Drive;
use crate::medium::UnrecoveredMedium;

/// The newest translation pages found on flash, and whether they can be read.
pub(in super::super) type FoundTranslations = BTreeMap<TranslationPage, (Seq, Ppn, bool)>;

/// Reads the newest translation pages, to learn which can be read.
pub(in super::super) fn read_found(
    flash: &mut UnrecoveredMedium,
    found: &mut FoundTranslations,
) -> Result<(), DeviceError> {
    for (_, ppn, readable) in found.values_mut() {
        *readable = flash.read_page(*ppn)?;
    }
    Ok(())
}

impl Drive {
    /// Takes over the translation pages found on flash, and owes those that say something else than the map.
    pub(in super::super) fn adopt_translations(&mut self, found: &FoundTranslations) {
        let Some(mut paging) = self.paging.take() else { return };
        let is_needed = |page: &TranslationPage| paging.regions.has(*page);
        let readable: Vec<_> = found.iter().filter(|(page, found)| found.2 && is_needed(page)).collect();
        for (&page, &(_, ppn, _)) in readable {
            paging.directory.insert(page, ppn);
            self.medium.adopt(ppn, self.medium.full_mask());
        }
        let mut pages: BTreeSet<TranslationPage> = found.keys().copied().collect();
        let valid = (0..self.geometry().pages()).map(Ppn).filter(|&ppn| self.medium.lines().is_valid(ppn));
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
        let entries = entries_of(page, paging.config, paging.host_pages);
        entries
            .zip(self.decode_translation(page))
            .any(|(entry, flash)| flash != self.map.lookup(Lpn(entry)).0)
    }

    /// Checks that no change of the map is neither on flash, nor dirty in the cache, nor owed.
    pub(in super::super) fn check_translations(&self) -> Result<(), String> {
        let Some(paging) = &self.paging else { return Ok(()) };
        let mut pages: BTreeSet<TranslationPage> = paging.directory.keys().copied().collect();
        let valid = (0..self.geometry().pages()).map(Ppn).filter(|&ppn| self.medium.lines().is_valid(ppn));
        let host = valid.map(|ppn| self.owner(ppn).0).filter(|&lpn| !self.system.owns(lpn));
        pages.extend(host.map(|lpn| paging.page_of(lpn)));
        for page in pages.into_iter().filter(|page| !paging.owed.contains(page)) {
            let entries = entries_of(page, paging.config, paging.host_pages);
            for (entry, flash) in entries.zip(self.decode_translation(page)) {
                let mapped = self.map.lookup(Lpn(entry)).0;
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
