//! The shape of a translation page's entries, as a cache sees it.

use dovetail_nand::Lpn;

use super::entries::entries_of;
use crate::cache::{CacheConfig, Entry, Shape, TranslationPage};
use crate::mapping::Mapping;

/// Entries that are looked at together.
const PIECE: usize = 1024;

/// A translation page as seen by the cache.
pub(super) struct CachedShape<'a> {
    pub(super) map: &'a dyn Mapping,
    pub(super) config: CacheConfig,
    pub(super) host_pages: u64,
}

impl Shape for CachedShape<'_> {
    fn runs(&self, page: TranslationPage) -> u32 {
        let entries = entries_of(page, self.config, self.host_pages);
        let (mut runs, mut places) = (Runs::default(), [0; PIECE]);
        for first in entries.clone().step_by(PIECE) {
            let piece = &mut places[..PIECE.min((entries.end - first) as usize)];
            self.map.copy_places(Lpn(first), piece);
            runs.count(first, piece);
        }
        runs.number
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

/// Runs of pages whose flash pages follow each other, or that have none.
#[derive(Default)]
struct Runs {
    number: u32,
    /// The flash page of logical page 0 if that belonged to the last run, modulo 2^32; `None`
    /// inside for pages without one, and outside before the first page.
    last: Option<Option<u32>>,
}

impl Runs {
    /// Counts on, with where the pages from `first` on are; 0 is nowhere.
    fn count(&mut self, first: u64, places: &[u32]) {
        for (index, &place) in (0..).zip(places) {
            // thin drives have pages beyond 32 bits; the difference of two is what counts
            let page = (first as u32).wrapping_add(index);
            let origin = Some((place != 0).then(|| place.wrapping_sub(page)));
            self.number += u32::from(self.last != origin);
            self.last = origin;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Runs;

    #[test]
    fn runs_end_where_distances_differ_and_at_holes() {
        for (places, runs) in [
            (&[0, 0][..], 1),
            (&[7, 8, 9], 1),
            (&[7, 0, 9, 0], 4),
            (&[7, 0, 0, 10], 3),
            (&[7, 9, 10, 1], 3),
            (&[2, 1], 2),
            (&[0, 1, 0, 4], 4),
        ] {
            let begins = [0, 70, u64::from(u32::MAX) - 1, 1 << 40];
            for (first, cut) in
                begins.iter().flat_map(|n| (0..=places.len()).map(move |cut| (n, cut)))
            {
                let mut counted = Runs::default();
                counted.count(*first, &places[..cut]);
                counted.count(first + cut as u64, &places[cut..]);
                assert_eq!(counted.number, runs, "{places:?} at {first}, cut at {cut}");
            }
        }
    }
}
