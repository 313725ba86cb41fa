//! From logical to physical pages: mapping schemes behind one small trait.
//!
//! A scheme is one file, its `mod` and its place in [`SCHEMES`]. It reports what each lookup and
//! update cost.
//! The drive counts all of it, and charges the time of lookups and discards; an update hides behind
//! the program that it follows.

mod hash;
pub mod interval;
mod page;

use std::ops::Range;

use dovetail_nand::{Lpn, Ppn};
use dovetail_time::SimTime;

pub(crate) use page::PageMap;

/// The cost of a lookup or update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCost {
    /// Dependent accesses to the drive's memory.
    pub accesses: u32,
}

/// The copy of a map behind its trait; a map that is [`Clone`] has it.
pub trait CopyMap {
    /// A map of its own with the same entries.
    fn copy(&self) -> Box<dyn Mapping>;
}

impl<M: Mapping + Clone + 'static> CopyMap for M {
    fn copy(&self) -> Box<dyn Mapping> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Mapping> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

/// A map from logical to physical pages.
pub trait Mapping: std::fmt::Debug + Send + CopyMap {
    /// Returns where `lpn` is, if it is mapped.
    fn lookup(&self, lpn: Lpn) -> (Option<Ppn>, MapCost);

    /// Maps `lpn` to `to`, or unmaps it; returns what it was mapped to before.
    fn update(&mut self, lpn: Lpn, to: Option<Ppn>) -> (Option<Ppn>, MapCost);

    /// Bytes of the drive's memory that the map takes now.
    fn memory_bytes(&self) -> u64;

    /// Returns how many pages are mapped. For checks: it may look at every entry.
    fn mapped(&self) -> u64;

    /// Appends the first `most` mapped pages of `pages` to `found`, in their order; a scheme that
    /// has to look through all its entries for them may append all that there are in `pages`, so
    /// that nobody asks again. A [`Scheme::sparse`] one must not take longer for a long range of
    /// which little is mapped; others have `look_up_each`.
    fn find_mapped(&self, pages: Range<u64>, most: usize, found: &mut Vec<(Lpn, Ppn)>) -> MapCost;

    /// Returns where the pages from `first` on are, as many as `places` has room for: the physical
    /// page plus one, 0 where a page is not mapped.
    fn copy_places(&self, first: Lpn, places: &mut [u32]) {
        let mut found = Vec::new();
        self.find_mapped(first.0..first.0 + places.len() as u64, usize::MAX, &mut found);
        places.fill(0);
        for (lpn, ppn) in found {
            places[(lpn.0 - first.0) as usize] = ppn.0 + 1;
        }
    }

    /// Tells the map what time it is, so that it does what is due in the background; returns what
    /// that cost.
    fn tick(&mut self, now: SimTime) -> MapCost {
        let _ = now;
        MapCost::default()
    }

    /// Tells that `lpn` will be looked up or updated soon. Changes nothing but the host's cache.
    fn expect(&self, lpn: Lpn) {
        let _ = lpn;
    }
}

/// [`Mapping::find_mapped`] of a map that is not sparse: asks for each page.
pub fn look_up_each(
    map: &impl Mapping,
    pages: Range<u64>,
    most: usize,
    found: &mut Vec<(Lpn, Ppn)>,
) -> MapCost {
    let mut accesses: u32 = 0;
    let most = found.len().saturating_add(most);
    for lpn in pages.map(Lpn) {
        if found.len() == most {
            break;
        }
        let (place, cost) = map.lookup(lpn);
        accesses = accesses.saturating_add(cost.accesses);
        found.extend(place.map(|ppn| (lpn, ppn)));
    }
    MapCost { accesses }
}

/// The address space that a map is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapShape {
    /// Logical pages that the host can address: `0..pages`. Up to 7 * 2^58 blocks' worth.
    pub pages: u64,
    /// Blocks of 4 KiB in a page: 1, 2 or 4.
    pub blocks_per_page: u32,
}

/// One mapping scheme.
#[derive(Debug)]
pub struct Scheme {
    /// Its name in profiles and on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// Set if its memory follows what is mapped, so that it can map an address space that is
    /// larger than the flash.
    pub sparse: bool,
    /// Logical pages that it can map.
    pub reach: u64,
    /// Builds an empty map.
    pub build: fn(shape: MapShape) -> Box<dyn Mapping>,
}

impl PartialEq for Scheme {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// All mapping schemes.
pub static SCHEMES: &[Scheme] = &[page::SCHEME, hash::SCHEME, interval::SCHEME];

/// The scheme of that name.
pub fn scheme(name: &str) -> Option<&'static Scheme> {
    SCHEMES.iter().find(|scheme| scheme.name == name)
}

/// An empty map of a scheme, if that is the dense table: its owner can ask it without a detour.
pub(crate) fn dense(scheme: &Scheme, shape: MapShape) -> Option<PageMap> {
    (scheme.name == page::SCHEME.name).then(|| PageMap::new(shape))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_time::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn every_scheme_agrees_with_a_sorted_map() {
        for scheme in SCHEMES {
            let mut rng = Rng::new(11);
            let shape = MapShape { pages: 500, blocks_per_page: 4 };
            let (mut map, mut model) = ((scheme.build)(shape), BTreeMap::new());
            for step in 0..20_000 {
                let lpn = Lpn(rng.below(500));
                let to = rng.chance(0.6).then(|| Ppn(rng.below(1 << 30) as u32));
                let before = match to {
                    Some(ppn) => model.insert(lpn, ppn),
                    None => model.remove(&lpn),
                };
                assert_eq!(map.update(lpn, to).0, before, "{} step {step}", scheme.name);
                let probe = Lpn(rng.below(500));
                assert_eq!(
                    map.lookup(probe).0,
                    model.get(&probe).copied(),
                    "{} step {step}",
                    scheme.name
                );
                if step % 64 == 0 {
                    compare_ranges(&*map, &model, 500, &mut rng);
                }
            }
        }
    }

    /// Any range of the address space, in pieces of any length.
    fn compare_ranges(map: &dyn Mapping, model: &BTreeMap<Lpn, Ppn>, pages: u64, rng: &mut Rng) {
        assert_eq!(map.mapped(), model.len() as u64);
        let start = rng.below(pages);
        let end = start + rng.below(pages - start + 1);
        let most = 1 + rng.below(40) as usize;
        let expected: Vec<_> =
            model.range(Lpn(start)..Lpn(end)).take(most).map(|(&lpn, &ppn)| (lpn, ppn)).collect();
        let mut found = Vec::new();
        map.find_mapped(start..end, most, &mut found);
        let all = model.range(Lpn(start)..Lpn(end)).map(|(&lpn, &ppn)| (lpn, ppn));
        assert!(found == expected || found.iter().copied().eq(all), "{start}..{end}: {found:?}");
        let mut places = vec![7; most.min((pages - start) as usize)];
        map.copy_places(Lpn(start), &mut places);
        let place = |lpn| model.get(&Lpn(lpn)).map_or(0, |ppn| ppn.0 + 1);
        assert!((start..).map(place).take(places.len()).eq(places), "{start}");
    }

    #[test]
    fn sparse_schemes_find_what_is_mapped_anywhere_in_seven_areas() {
        for scheme in SCHEMES.iter().filter(|scheme| scheme.sparse) {
            for blocks_per_page in [1, 4] {
                let area = dovetail_block::AREA_BLOCKS / u64::from(blocks_per_page);
                let pages = area * dovetail_block::AREAS;
                let mut rng = Rng::new(12);
                let mut map = (scheme.build)(MapShape { pages, blocks_per_page });
                let mut model = BTreeMap::new();
                let starts: Vec<u64> = (0..40).map(|_| rng.below(pages - 300)).collect();
                let ends = (1..=dovetail_block::AREAS).map(|i| i * area - 300);
                let starts: Vec<u64> = starts.into_iter().chain(ends).collect();
                for step in 0..20_000 {
                    let start = starts[rng.below(starts.len() as u64) as usize];
                    let lpn = Lpn(start + rng.below(300));
                    let to = rng.chance(0.5).then_some(Ppn(step));
                    match to {
                        Some(ppn) => model.insert(lpn, ppn),
                        None => model.remove(&lpn),
                    };
                    map.update(lpn, to);
                    if step % 256 == 0 {
                        compare_ranges(&*map, &model, pages, &mut rng);
                    }
                }
                let mut found = Vec::new();
                map.find_mapped(0..pages, usize::MAX, &mut found);
                assert!(found.into_iter().eq(model), "{}", scheme.name);
            }
        }
    }
}
