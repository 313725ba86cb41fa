//! Translation pages of a demand-paged map that are needed: those with an entry that is mapped.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::cache::TranslationPage;

/// Counts of mapped entries of each translation page, where there are any.
#[derive(Clone, Debug, Default)]
pub(super) struct Regions(HashMap<TranslationPage, u32, FxBuildHasher>);

impl Regions {
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn has(&self, page: TranslationPage) -> bool {
        self.0.contains_key(&page)
    }

    /// An entry of `page` is mapped that was not. Says whether none is mapped now, as
    /// [`Regions::remove`] does.
    pub(super) fn add(&mut self, page: TranslationPage) -> bool {
        *self.0.entry(page).or_default() += 1;
        false
    }

    /// An entry of `page` is unmapped. Says whether none is mapped now.
    pub(super) fn remove(&mut self, page: TranslationPage) -> bool {
        let Some(mapped) = self.0.get_mut(&page) else { return false };
        *mapped -= 1;
        let is_empty = *mapped == 0;
        if is_empty {
            self.0.remove(&page);
        }
        is_empty
    }
}
