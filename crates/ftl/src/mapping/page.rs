//! `page`: a dense table, four bytes for each logical page, one access for each lookup and update.

use std::ops::Range;

use dovetail_nand::{Chunked, Lpn, Ppn};

use super::{MapCost, Mapping, Scheme, look_up_each};

pub(super) const SCHEME: Scheme = Scheme {
    name: "page",
    about: "dense table, 4 bytes for each logical page",
    sparse: false,
    build: |shape| Box::new(PageMap { table: Chunked::new(shape.pages as usize) }),
};

const ONE: MapCost = MapCost { accesses: 1 };

/// Entry `i` is the physical page of logical page `i` plus one, 0 where it is unmapped: a fresh
/// table is zeros, of which the host needs no memory until they are written, the entries of 1024
/// pages at a time.
#[derive(Clone, Debug)]
struct PageMap {
    table: Chunked<u32, 1024>,
}

impl Mapping for PageMap {
    fn lookup(&self, lpn: Lpn) -> (Option<Ppn>, MapCost) {
        (self.table[lpn.0 as usize].checked_sub(1).map(Ppn), ONE)
    }

    fn update(&mut self, lpn: Lpn, to: Option<Ppn>) -> (Option<Ppn>, MapCost) {
        let entry = to.map_or(0, |ppn| ppn.0 + 1);
        // what was never mapped is not made to be unmapped
        if to.is_none() && self.table.written(lpn.0 as usize).is_none() {
            return (None, ONE);
        }
        let before = std::mem::replace(&mut self.table[lpn.0 as usize], entry);
        (before.checked_sub(1).map(Ppn), ONE)
    }

    fn memory_bytes(&self) -> u64 {
        self.table.len() as u64 * 4
    }

    fn mapped(&self) -> u64 {
        self.table.iter_written().filter(|(_, entry)| **entry != 0).count() as u64
    }

    fn find_mapped(&self, pages: Range<u64>, most: usize, found: &mut Vec<(Lpn, Ppn)>) -> MapCost {
        look_up_each(self, pages, most, found)
    }

    fn copy_places(&self, first: Lpn, places: &mut [u32]) {
        for (place, index) in places.iter_mut().zip(first.0 as usize..) {
            *place = self.table[index];
        }
    }

    fn expect(&self, lpn: Lpn) {
        prefetch(self.table.written(lpn.0 as usize));
    }
}

/// Asks for the cache line of an entry. A random update waits for memory longer than for all else
/// together: asking ahead makes the benchmark `random_write` half as fast again.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "measured hot path; there is no safe prefetch")]
pub(super) fn prefetch(entry: Option<&u32>) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    if let Some(entry) = entry {
        // SAFETY: prefetching has no effect on memory and the address is that of a live reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn prefetch(_: Option<&u32>) {}
