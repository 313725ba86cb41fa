//! `hash`: a sparse, chained table whose memory follows its entries, as in the FSDV paper's drive (§IV: a
//! simple hash table that chains the entries of a bucket).
//!
//! The number of buckets is a power of two between half the entries and all of them: it doubles when entries
//! outgrow it and halves when they fall below a quarter. An entry takes 12 bytes, a bucket 4.

use dovetail_nand::{Lpn, Ppn};

use super::{MapCost, Mapping, Scheme};

pub(super) const SCHEME: Scheme = Scheme {
    name: "hash",
    about: "sparse chained table, 12 bytes for each mapped page and 4 for each bucket",
    build: |_| Box::new(HashMap::new()),
};

const NIL: u32 = u32::MAX;
const MIN_BUCKETS: usize = 16;
const ENTRY_BYTES: u64 = 12;
const BUCKET_BYTES: u64 = 4;

#[derive(Clone, Copy, Debug)]
struct Entry {
    lpn: u32,
    ppn: u32,
    next: u32,
}

#[derive(Debug)]
struct HashMap {
    buckets: Vec<u32>,
    entries: Vec<Entry>,
}

impl HashMap {
    fn new() -> Self {
        Self { buckets: vec![NIL; MIN_BUCKETS], entries: Vec::new() }
    }

    fn bucket(&self, lpn: u32) -> usize {
        let spread = u64::from(lpn).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        spread as usize & (self.buckets.len() - 1)
    }

    /// Walks the chain: the index of the entry of `lpn` and the one before it, and the accesses made.
    fn find(&self, lpn: u32) -> (Option<u32>, Option<u32>, MapCost) {
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

    fn insert(&mut self, lpn: u32, ppn: u32) {
        if self.entries.len() == self.buckets.len() {
            self.rehash(self.buckets.len() * 2);
        }
        let bucket = self.bucket(lpn);
        self.entries.push(Entry { lpn, ppn, next: self.buckets[bucket] });
        self.buckets[bucket] = self.entries.len() as u32 - 1;
    }

    fn remove(&mut self, index: u32, before: Option<u32>) {
        let Entry { lpn, next, .. } = self.entries[index as usize];
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

    fn relink(&mut self, lpn: u32, before: Option<u32>, to: u32) {
        match before {
            Some(before) => self.entries[before as usize].next = to,
            None => {
                let bucket = self.bucket(lpn);
                self.buckets[bucket] = to;
            }
        }
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
        self.entries.len() as u64 * ENTRY_BYTES + self.buckets.len() as u64 * BUCKET_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_the_entries_down_as_well_as_up() {
        let mut map = HashMap::new();
        let empty = map.memory_bytes();
        for lpn in 0..10_000 {
            map.update(Lpn(lpn * 977), Some(Ppn(lpn)));
        }
        assert!(map.memory_bytes() <= 10_000 * 20, "{}", map.memory_bytes());
        for lpn in 0..10_000 {
            map.update(Lpn(lpn * 977), None);
        }
        assert_eq!(map.memory_bytes(), empty);
    }
}
