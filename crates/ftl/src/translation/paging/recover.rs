//! Translation pages when the power comes back, and whether they agree with the map.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_nand::{Lpn, Nand, Ppn, Seq};

use super::Translation;
use super::entries::entries_of;
use crate::cache::TranslationPage;

/// The newest translation pages found on flash, and whether they can be read.
pub(crate) type FoundTranslations = BTreeMap<TranslationPage, (Seq, Ppn, bool)>;

impl Translation {
    /// Takes over the translation pages found on flash that can be read and are needed; returns
    /// where they are.
    pub(crate) fn adopt_directory(&mut self, found: &FoundTranslations) -> Vec<Ppn> {
        let Some(paging) = &mut self.paging else { return Vec::new() };
        let needed = found.iter().filter(|(page, found)| found.2 && paging.regions.has(**page));
        let adopted: Vec<(TranslationPage, Ppn)> =
            needed.map(|(&page, &(_, ppn, _))| (page, ppn)).collect();
        paging.directory.extend(adopted.iter().copied());
        adopted.into_iter().map(|(_, ppn)| ppn).collect()
    }

    /// Owes the translation pages that say something else than the map, of those found and those
    /// with an entry for one of `mapped`. From now on changes of the map count.
    pub(crate) fn begin_behind(
        &mut self,
        nand: &Nand,
        found: &FoundTranslations,
        mapped: impl Iterator<Item = Lpn>,
    ) {
        let Some(paging) = &self.paging else { return };
        let mut pages: BTreeSet<TranslationPage> = found.keys().copied().collect();
        pages.extend(mapped.map(|lpn| paging.page_of(lpn)));
        let owed = pages.into_iter().filter(|&page| self.is_behind(nand, page)).collect();
        if let Some(paging) = &mut self.paging {
            paging.owed = owed;
            paging.begin();
        }
    }

    /// Tells whether a translation page says something else than the map.
    fn is_behind(&self, nand: &Nand, page: TranslationPage) -> bool {
        let Some(paging) = &self.paging else { return false };
        let entries = entries_of(page, paging.config, paging.host_pages);
        entries
            .zip(self.decode_translation(nand, page))
            .any(|(entry, flash)| flash != self.map.lookup(Lpn(entry)).0)
    }

    /// Checks that no change of the map is neither on flash, nor dirty in the cache, nor owed.
    /// `mapped` are the host's pages on flash.
    ///
    /// # Errors
    /// The first disagreement, in words.
    pub(crate) fn check_translations(
        &self,
        nand: &Nand,
        mapped: impl Iterator<Item = Lpn>,
    ) -> Result<(), String> {
        let Some(paging) = &self.paging else { return Ok(()) };
        let mut pages: BTreeSet<TranslationPage> = paging.directory.keys().copied().collect();
        pages.extend(mapped.map(|lpn| paging.page_of(lpn)));
        for page in pages.into_iter().filter(|page| !paging.owed.contains(page)) {
            let entries = entries_of(page, paging.config, paging.host_pages);
            for (entry, flash) in entries.zip(self.decode_translation(nand, page)) {
                let mapped = self.map.lookup(Lpn(entry)).0;
                if flash != mapped && !paging.cache.is_dirty(entry) {
                    return Err(format!(
                        "{entry} is mapped to {mapped:?}, {page:?} on flash says {flash:?}, and the cache has no change \
                         of it"
                    ));
                }
            }
        }
        Ok(())
    }
}
