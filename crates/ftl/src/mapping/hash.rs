//! `hash`: a sparse, chained table whose memory follows its entries, as in the FSDV paper's drive
//! (§IV: a simple hash table that chains the entries of a bucket).
//!
//! The number of buckets is a power of two between half the entries and all of them: it doubles
//! when entries outgrow it and halves when they fall below a quarter. An entry takes 12 bytes (16
//! if addresses are more than 2^32 pages), a bucket 4.

use dovetail_nand::{Lpn, Ppn};

use std::ops::Range;

use super::{MapCost, MapShape, Mapping, Scheme};

pub(super) const SCHEME: Scheme = Scheme {
    name: "hash",
    about: "sparse chained table, 12 bytes for each mapped page (16 if addresses are more than 2^32 pages) and 4 for each bucket",
    sparse: true,
    reach: u64::MAX,
    build: |shape| Box::new(HashMap::new(shape)),
};

const NIL: u32 = u32::MAX;
const MIN_BUCKETS: usize = 16;
/// Page, place, next entry.
const ENTRY_BYTES: u64 = 12;
/// The same with a page of 64 bits.
const WIDE_ENTRY_BYTES: u64 = 16;
const BUCKET_BYTES: u64 = 4;

#[derive(Clone, Copy, Debug)]
struct HashEntry {
    lpn: u64,
    ppn: u32,
    next: u32,
}

#[derive(Clone, Debug)]
struct HashMap {
    buckets: Vec<u32>,
    entries: Vec<HashEntry>,
    entry_bytes: u64,
}

impl HashMap {
    fn new(shape: MapShape) -> Self {
        let entry_bytes = if shape.pages > 1 << 32 { WIDE_ENTRY_BYTES } else { ENTRY_BYTES };
        Self { buckets: vec![NIL; MIN_BUCKETS], entries: Vec::new(), entry_bytes }
    }

    fn bucket(&self, lpn: u64) -> usize {
        let spread = lpn.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        spread as usize & (self.buckets.len() - 1)
    }

    /// Walks the chain: the index of the entry of `lpn` and the one before it, and the accesses
    /// made.
    fn find(&self, lpn: u64) -> (Option<u32>, Option<u32>, MapCost) {
        let (mut before, mut accesses) = (None, 1);
        let mut at = self.buckets[self.bucket(lpn)];
        while at != NIL {
            accesses += 1;
            let entry = self.entries[at as usize];
            if entry.lpn == lpn {
                return (Some(at), before, MapCost { accesses });
            }
            before = Some(at);
            at = entry.next;
        }
        (None, before, MapCost { accesses })
    }

    fn insert(&mut self, lpn: u64, ppn: u32) {
        if self.entries.len() == self.buckets.len() {
            self.rehash(self.buckets.len() * 2);
        }
        let bucket = self.bucket(lpn);
        self.entries.push(HashEntry { lpn, ppn, next: self.buckets[bucket] });
        self.buckets[bucket] = self.entries.len() as u32 - 1;
    }

    fn remove(&mut self, index: u32, before: Option<u32>) {
        let HashEntry { lpn, next, .. } = self.entries[index as usize];
        self.relink(lpn, before, next);
        self.move_last_to(index);
        if self.buckets.len() > MIN_BUCKETS && self.entries.len() < self.buckets.len() / 4 {
            self.rehash(self.buckets.len() / 2);
        }
    }

    /// Keeps the entries dense: the last one takes the place of the removed one.
    fn move_last_to(&mut self, index: u32) {
        let last = self.entries.len() as u32 - 1;
        if index != last {
            let lpn = self.entries[last as usize].lpn;
            let (_, before, _) = self.find(lpn);
            self.relink(lpn, before, index);
            self.entries[index as usize] = self.entries[last as usize];
        }
        self.entries.pop();
        if self.entries.len() * 4 < self.entries.capacity() {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }

    fn relink(&mut self, lpn: u64, before: Option<u32>, to: u32) {
        match before {
            Some(before) => self.entries[before as usize].next = to,
            None => {
                let bucket = self.bucket(lpn);
                self.buckets[bucket] = to;
            }
        }
    }

    fn ask_for_each(&self, pages: Range<u64>, most: usize, found: &mut Vec<(Lpn, Ppn)>) -> MapCost {
        let (mut accesses, before) = (0, found.len());
        for lpn in pages {
            if found.len() - before == most {
                break;
            }
            let (place, _, cost) = self.find(lpn);
            accesses += cost.accesses;
            found.extend(place.map(|index| (Lpn(lpn), Ppn(self.entries[index as usize].ppn))));
        }
        MapCost { accesses }
    }

    fn rehash(&mut self, buckets: usize) {
        self.buckets = vec![NIL; buckets];
        for index in 0..self.entries.len() {
            let bucket = self.bucket(self.entries[index].lpn);
            self.entries[index].next = std::mem::replace(&mut self.buckets[bucket], index as u32);
        }
    }
}

impl Mapping for HashMap {
    fn lookup(&self, lpn: Lpn) -> (Option<Ppn>, MapCost) {
        let (found, _, cost) = self.find(lpn.0);
        (found.map(|index| Ppn(self.entries[index as usize].ppn)), cost)
    }

    fn update(&mut self, lpn: Lpn, to: Option<Ppn>) -> (Option<Ppn>, MapCost) {
        let (found, before, cost) = self.find(lpn.0);
        let old = found.map(|index| Ppn(self.entries[index as usize].ppn));
        match (found, to) {
            (Some(index), Some(ppn)) => self.entries[index as usize].ppn = ppn.0,
            (Some(index), None) => self.remove(index, before),
            (None, Some(ppn)) => self.insert(lpn.0, ppn.0),
            (None, None) => {}
        }
        (old, cost)
    }

    fn memory_bytes(&self) -> u64 {
        self.entries.len() as u64 * self.entry_bytes + self.buckets.len() as u64 * BUCKET_BYTES
    }

    fn mapped(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Asks for each page of a short range, and looks through all entries for a long one: once.
    fn find_mapped(&self, pages: Range<u64>, most: usize, found: &mut Vec<(Lpn, Ppn)>) -> MapCost {
        if pages.end.saturating_sub(pages.start) <= self.entries.len() as u64 {
            return self.ask_for_each(pages, most, found);
        }
        let before = found.len();
        let inside = self.entries.iter().filter(|entry| pages.contains(&entry.lpn));
        found.extend(inside.map(|entry| (Lpn(entry.lpn), Ppn(entry.ppn))));
        found[before..].sort_unstable();
        MapCost { accesses: self.entries.len() as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_the_entries_down_as_well_as_up() {
        let mut map = HashMap::new(MapShape { pages: 1 << 30, blocks_per_page: 1 });
        let empty = map.memory_bytes();
        for lpn in 0..10_000 {
            map.update(Lpn(lpn * 977), Some(Ppn(lpn as u32)));
        }
        assert!(map.memory_bytes() <= 10_000 * 20, "{}", map.memory_bytes());
        for lpn in 0..10_000 {
            map.update(Lpn(lpn * 977), None);
        }
        assert_eq!(map.memory_bytes(), empty);
    }
}
