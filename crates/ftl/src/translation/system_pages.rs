//! Addresses of the drive's own pages. There are few, and they are numbered from behind the host's
//! address space on, however large that is: a dense table, apart from the map of the host's pages.

use dovetail_nand::{Lpn, Ppn};

/// The places of the drive's own pages.
#[derive(Clone, Debug)]
pub(super) struct SystemPages {
    first: u64,
    places: Vec<Option<Ppn>>,
}

impl SystemPages {
    /// For the logical pages `first..first + pages`; none is on flash.
    pub(super) fn new(first: u64, pages: u32) -> Self {
        Self { first, places: vec![None; pages as usize] }
    }

    /// Tells whether a page is the drive's own, or would be.
    pub(super) fn owns(&self, lpn: Lpn) -> bool {
        lpn.0 >= self.first
    }

    /// Returns where a page of the drive's own is.
    pub(super) fn get(&self, lpn: Lpn) -> Option<Ppn> {
        let index = usize::try_from(lpn.0.checked_sub(self.first)?).ok()?;
        self.places.get(index).copied().flatten()
    }

    /// Enters where a page of the drive's own is; returns where it was.
    pub(super) fn set(&mut self, lpn: Lpn, to: Option<Ppn>) -> Option<Ppn> {
        let index = usize::try_from(lpn.0.checked_sub(self.first)?).ok()?;
        self.places.get_mut(index).and_then(|place| std::mem::replace(place, to))
    }

    /// Returns how many of them are on flash.
    pub(super) fn count(&self) -> u64 {
        self.places.iter().flatten().count() as u64
    }

    /// Bytes of the drive's memory: four for each page.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.places.len() as u64 * 4
    }
}
