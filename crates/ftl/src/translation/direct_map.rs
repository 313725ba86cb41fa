//! A map of which some pages need no entry: those that are reached by the address of the place
//! where they are.
//!
//! It wraps a scheme. A page of the device's own addresses without an entry is at that place, if
//! its bit says that it is there at all; an entry says that it has moved.

use std::ops::Range;

use dovetail_nand::{Lpn, Ppn};
use dovetail_time::SimTime;

use crate::bits::Bits;
use crate::mapping::{MapCost, Mapping};

/// A map around another one.
#[derive(Clone, Debug)]
pub(super) struct DirectMap {
    entries: Box<dyn Mapping>,
    /// The page of place 0.
    first: u64,
    places: u64,
    /// The places that are reached without an entry.
    direct: Bits,
    count: u64,
}

impl DirectMap {
    /// Around an empty map; places have the pages from `first` on.
    pub(super) fn new(entries: Box<dyn Mapping>, first: Lpn, places: u64) -> Self {
        Self { entries, first: first.0, places, direct: Bits::new(places), count: 0 }
    }

    /// The place that a page names.
    fn place(&self, lpn: Lpn) -> Option<Ppn> {
        let place = lpn.0.checked_sub(self.first).filter(|place| *place < self.places)?;
        Some(Ppn(place as u32))
    }

    fn direct(&self, lpn: Lpn) -> Option<Ppn> {
        self.place(lpn).filter(|place| self.direct.get(place.0.into()))
    }

    fn set_direct(&mut self, place: Ppn) {
        self.direct.set(place.0.into());
        self.count += 1;
    }

    fn clear_direct(&mut self, place: Ppn) {
        self.direct.clear(place.0.into());
        self.count -= 1;
    }
}

impl Mapping for DirectMap {
    fn lookup(&self, lpn: Lpn) -> (Option<Ppn>, MapCost) {
        let (entry, cost) = self.entries.lookup(lpn);
        (entry.or_else(|| self.direct(lpn)), cost)
    }

    fn update(&mut self, lpn: Lpn, to: Option<Ppn>) -> (Option<Ppn>, MapCost) {
        let before = self.direct(lpn);
        if let Some(place) = before {
            self.clear_direct(place);
        }
        if to.is_some() && to == self.place(lpn) {
            to.into_iter().for_each(|place| self.set_direct(place));
            let (entry, cost) = self.entries.update(lpn, None);
            return (before.or(entry), cost);
        }
        let (entry, cost) = self.entries.update(lpn, to);
        (before.or(entry), cost)
    }

    fn memory_bytes(&self) -> u64 {
        self.entries.memory_bytes() + self.direct.memory_bytes()
    }

    fn mapped(&self) -> u64 {
        self.entries.mapped() + self.count
    }

    fn find_mapped(&self, pages: Range<u64>, most: usize, found: &mut Vec<(Lpn, Ppn)>) -> MapCost {
        let before = found.len();
        let cost = self.entries.find_mapped(pages.clone(), most, found);
        let own = pages.start.max(self.first)..pages.end.min(self.first + self.places);
        let direct = own.filter_map(|lpn| Some((Lpn(lpn), self.direct(Lpn(lpn))?)));
        found.extend(direct.take(most));
        found[before..].sort_unstable();
        found.truncate(before.saturating_add(most));
        cost
    }

    fn tick(&mut self, now: SimTime) -> MapCost {
        self.entries.tick(now)
    }

    fn expect(&self, lpn: Lpn) {
        self.entries.expect(lpn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{MapShape, scheme};
    use dovetail_time::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn a_page_at_its_own_place_takes_no_entry() {
        let shape = MapShape { pages: 300, blocks_per_page: 1 };
        let mut map = DirectMap::new((scheme("hash").unwrap().build)(shape), Lpn(100), 200);
        let (mut model, mut rng) = (BTreeMap::new(), Rng::new(5));
        let empty = map.memory_bytes();
        for step in 0..20_000 {
            let lpn = Lpn(rng.below(300));
            let own = lpn.0.checked_sub(100).map(|place| Ppn(place as u32));
            let to = match rng.below(3) {
                0 => None,
                1 => own,
                _ => Some(Ppn(rng.below(200) as u32)),
            };
            let before = match to {
                Some(ppn) => model.insert(lpn, ppn),
                None => model.remove(&lpn),
            };
            assert_eq!(map.update(lpn, to).0, before, "step {step}");
            let (start, most) = (rng.below(300), rng.below(9) as usize);
            let expected: Vec<_> =
                model.range(Lpn(start)..).take(most).map(|(&l, &p)| (l, p)).collect();
            let mut found = Vec::new();
            map.find_mapped(start..300, most, &mut found);
            assert_eq!(found, expected, "step {step}");
            assert_eq!(map.mapped(), model.len() as u64);
        }
        for lpn in 0..300 {
            map.update(Lpn(lpn), lpn.checked_sub(100).map(|place| Ppn(place as u32)));
        }
        assert_eq!((map.memory_bytes(), map.mapped()), (empty, 200));
    }
}
