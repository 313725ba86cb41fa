//! `interval`: Interval Mapping (IPLFS paper §5), a map of 2^61 blocks whose memory follows what is
//! mapped.
//!
//! Seven areas, chosen by the top three bits of a block address, have a tree each: a root over the
//! zones in use (`root.rs`), zone nodes of 16 GiB, map nodes of 16 MiB (`node.rs`) with a table
//! that covers only what is valid, as far as regions of 256 KiB and more can tell (`coverage.rs`).
//! Most lookups need no walk (`lookaside.rs`). All nodes and tables live in slabs (`arena.rs`).
//! [`IntervalMap`] is the whole; as a mapping scheme it serves drives with the seven areas, and
//! drives of ordinary size, of which all addresses lie in the first area.
//!
//! The paper's design, the differences of this one, and the cost of both: `docs/interval-map.md`.
//! Left out here: the validity of parts of a page (the drive keeps it), and rebuilding the map from
//! flash, which is writing every page in again.

mod address;
mod arena;
mod change;
mod coverage;
mod lookaside;
mod map;
mod memory;
mod next;
mod node;
mod root;
mod sizes;
mod zone;

use std::ops::Range;

use dovetail_block::prefetch;
use dovetail_nand::{Lpn, Ppn};
use dovetail_time::SimTime;

use super::{MapCost, Mapping, Scheme};

pub use address::{AREA_BLOCKS, AREAS, AddressError, Layout, LogicalPage};
pub use change::{Compaction, CompactionPolicy};
pub use coverage::RegionSize;
pub use map::IntervalMap;
pub use memory::MapMemory;
pub use sizes::NodeSize;

pub(super) const SCHEME: Scheme = Scheme {
    name: "interval",
    about: "tree of zones and 16 MiB map nodes, whose tables leave out what is not mapped",
    sparse: true,
    reach: dovetail_block::AREAS * dovetail_block::AREA_BLOCKS,
    build: |shape| {
        let layout = Layout::new(shape.blocks_per_page).unwrap_or(Layout::SINGLE_BLOCKS);
        Box::new(IntervalMap::new(layout, 0))
    },
};

impl Mapping for IntervalMap {
    fn lookup(&self, lpn: Lpn) -> (Option<Ppn>, MapCost) {
        self.lookup(lpn.into())
    }

    fn update(&mut self, lpn: Lpn, to: Option<Ppn>) -> (Option<Ppn>, MapCost) {
        self.update(lpn.into(), to)
    }

    fn memory_bytes(&self) -> u64 {
        self.memory().total()
    }

    fn mapped(&self) -> u64 {
        self.mapped()
    }

    fn find_mapped(&self, pages: Range<u64>, most: usize, found: &mut Vec<(Lpn, Ppn)>) -> MapCost {
        self.find_mapped(pages, most, &mut |page, ppn| found.push((Lpn(page.index()), ppn)))
    }

    fn tick(&mut self, now: SimTime) -> MapCost {
        self.tick(now).cost
    }

    fn expect(&self, lpn: Lpn) {
        if let Some(index) = self.entry_index(lpn.into()) {
            self.words().get(index).into_iter().for_each(prefetch);
        }
    }
}
