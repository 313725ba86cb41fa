//! `page`: a dense table, four bytes for each logical page, one access for each lookup and update.

use dovetail_nand::{Lpn, Ppn};

use super::{MapCost, Mapping, Scheme};

pub(super) const SCHEME: Scheme = Scheme {
    name: "page",
    about: "dense table, 4 bytes for each logical page",
    build: |pages| Box::new(PageMap { table: vec![0; pages as usize] }),
};

const ONE: MapCost = MapCost { accesses: 1 };

/// Entry `i` is the physical page of logical page `i` plus one, 0 where it is unmapped: a fresh table is zeros,
/// of which the host needs no memory until they are written.
#[derive(Debug)]
struct PageMap {
    table: Vec<u32>,
}

impl Mapping for PageMap {
    fn lookup(&self, lpn: Lpn) -> (Option<Ppn>, MapCost) {
        (self.table[lpn.0 as usize].checked_sub(1).map(Ppn), ONE)
    }

    fn update(&mut self, lpn: Lpn, to: Option<Ppn>) -> (Option<Ppn>, MapCost) {
        let entry = to.map_or(0, |ppn| ppn.0 + 1);
        let before = std::mem::replace(&mut self.table[lpn.0 as usize], entry);
        (before.checked_sub(1).map(Ppn), ONE)
    }

    fn memory_bytes(&self) -> u64 {
        self.table.len() as u64 * 4
    }
}
