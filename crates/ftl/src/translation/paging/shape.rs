//! The shape of a translation page's entries, as a cache sees it.

use dovetail_nand::Lpn;

use super::entries::entries_of;
use crate::cache::{CacheConfig, Entry, Shape, TranslationPage};
use crate::mapping::Mapping;

/// A translation page as seen by the cache.
pub(super) struct CachedShape<'a> {
    pub(super) map: &'a dyn Mapping,
    pub(super) config: CacheConfig,
    pub(super) host_pages: u64,
}

impl Shape for CachedShape<'_> {
    fn runs(&self, page: TranslationPage) -> u32 {
        let entries = entries_of(page, self.config, self.host_pages);
        let mut places = vec![0; (entries.end - entries.start) as usize];
        self.map.copy_places(Lpn(entries.start), &mut places);
        runs_of(&places)
    }

    fn place(&self, entry: Entry) -> Option<u64> {
        let entry = Some(entry).filter(|entry| *entry < self.host_pages)?;
        self.map.lookup(Lpn(entry)).0.map(|place| place.0.into())
    }

    fn follows(&self, entry: Entry) -> bool {
        entry + 1 < self.host_pages
            && self.place(entry + 1) == self.place(entry).map(|place| place + 1)
    }
}

/// Pieces of `places` that are mapped to flash pages as far from each other as they are themselves.
/// 0 is nowhere.
fn runs_of(places: &[u32]) -> u32 {
    let mapped = (0..).zip(places).filter(|&(_, &place)| place != 0);
    let starts = mapped.map(|(index, place)| place.wrapping_sub(index));
    let (mut runs, mut before) = (0, None);
    for start in starts {
        runs += u32::from(before != Some(start));
        before = Some(start);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::runs_of;

    #[test]
    fn runs_end_where_distances_differ() {
        for (places, runs) in [
            (&[0, 0][..], 0),
            (&[7, 8, 9], 1),
            (&[7, 0, 9, 0], 1),
            (&[7, 9, 10, 1], 3),
            (&[2, 1], 2),
            (&[0, 1, 0, 4], 2),
        ] {
            assert_eq!(runs_of(places), runs, "{places:?}");
        }
    }
}
