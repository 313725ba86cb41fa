//! `page`: a dense table, four bytes for each logical page, one access for each lookup and update.

use std::ops::Range;

use dovetail_block::prefetch;
use dovetail_nand::{Chunked, Lpn, Ppn};

use super::{MapCost, MapShape, Mapping, Scheme, look_up_each};

pub(super) const SCHEME: Scheme = Scheme {
    name: "page",
    about: "dense table, 4 bytes for each logical page",
    sparse: false,
    reach: u64::MAX,
    build: |shape| Box::new(PageMap::new(shape)),
};

const ONE: MapCost = MapCost { accesses: 1 };

/// Entry `i` is the physical page of logical page `i` plus one, 0 where it is unmapped: a fresh
/// table is zeros, of which the host needs no memory until they are written, the entries of 1024
/// pages at a time.
#[derive(Clone, Debug)]
pub(crate) struct PageMap {
    table: Chunked<u32, 1024>,
}

impl PageMap {
    pub(super) fn new(shape: MapShape) -> Self {
        Self { table: Chunked::new(shape.pages as usize) }
    }
}

impl Mapping for PageMap {
    #[inline]
    fn lookup(&self, lpn: Lpn) -> (Option<Ppn>, MapCost) {
        (self.table[lpn.0 as usize].checked_sub(1).map(Ppn), ONE)
    }

    #[inline]
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
        self.table.copy_to(first.0 as usize, places);
    }

    #[inline]
    fn expect(&self, lpn: Lpn) {
        self.table.written(lpn.0 as usize).into_iter().for_each(prefetch);
    }
}
