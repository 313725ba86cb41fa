//! The reverse map: which logical page a physical page holds, where its out-of-band area says
//! another.
//!
//! A remapped page keeps the out-of-band area that it was programmed with, which names the source.
//! Its entry here lives until the page's block is erased, also when the page is no longer valid:
//! the version that replaced it may still be under way and torn by a power cut. A page that is
//! moved is programmed with the right out-of-band area and needs no entry at its new place.

use dovetail_nand::{BlockId, Chunked, Divisor, Geometry, Lpn, Ppn, Seq};

/// The owner of a remapped page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remapped {
    /// Its owner.
    pub(crate) lpn: Lpn,
    /// Time when it was remapped: as a version of `lpn` it is as old as that.
    pub(crate) seq: Seq,
}

/// One page's entry; the first word is the logical page plus one, 0 where there is no entry.
#[derive(Clone, Copy, Debug, Default)]
struct PackedEntry([u64; 2]);

impl PackedEntry {
    fn new(entry: Remapped) -> Self {
        Self([entry.lpn.0 + 1, entry.seq.0])
    }

    fn get(self) -> Option<Remapped> {
        let [lpn, seq] = self.0;
        Some(Remapped { lpn: Lpn(lpn.checked_sub(1)?), seq: Seq(seq) })
    }
}

/// The entries of a block, kept to bring them back.
#[derive(Clone, Debug)]
pub(super) struct BlockEntries(Box<[PackedEntry]>);

/// Entries by block: erasing one drops them together.
#[derive(Clone, Debug)]
pub(crate) struct ReverseMap {
    geometry: Geometry,
    units: Divisor,
    pages_per_block: Divisor,
    blocks: Chunked<Option<Box<[PackedEntry]>>, 512>,
    /// Set if an entry was ever made: until then no page needs to be looked up.
    used: bool,
}

impl ReverseMap {
    /// Without entries.
    pub(crate) fn new(geometry: Geometry) -> Self {
        let blocks = Chunked::new(geometry.blocks() as usize);
        let (units, pages_per_block) =
            (Divisor::new(geometry.units()), Divisor::new(geometry.pages_per_block));
        Self { geometry, units, pages_per_block, blocks, used: false }
    }

    /// Takes all entries out.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Self::new(self.geometry);
        std::mem::replace(self, empty)
    }

    /// As [`Geometry::locate`], without a division.
    #[inline]
    pub(super) fn locate(&self, ppn: Ppn) -> (BlockId, u32) {
        let (row, unit) = self.units.divide(ppn.0);
        let (block_row, page) = self.pages_per_block.divide(row);
        (BlockId(block_row * self.units.divisor() + unit), page)
    }

    /// The entry of a page.
    #[inline]
    pub(crate) fn get(&self, ppn: Ppn) -> Option<Remapped> {
        if self.used { self.get_used(ppn) } else { None }
    }

    fn get_used(&self, ppn: Ppn) -> Option<Remapped> {
        let (block, page) = self.locate(ppn);
        self.blocks[block.0 as usize].as_ref().and_then(|slots| slots[page as usize].get())
    }

    /// Sets or clears an entry; returns the one before.
    pub(super) fn set(&mut self, ppn: Ppn, entry: Option<Remapped>) -> Option<Remapped> {
        let (block, page) = self.locate(ppn);
        let pages = self.geometry.pages_per_block as usize;
        self.used = true;
        let slots = self.blocks[block.0 as usize]
            .get_or_insert_with(|| vec![PackedEntry::default(); pages].into());
        let slot = entry.map(PackedEntry::new).unwrap_or_default();
        std::mem::replace(&mut slots[page as usize], slot).get()
    }

    /// Sets an entry unless there is a newer one.
    pub(crate) fn raise(&mut self, ppn: Ppn, entry: Remapped) {
        if self.get(ppn).is_none_or(|present| present.seq < entry.seq) {
            self.set(ppn, Some(entry));
        }
    }

    /// Drops the entries of an erased block.
    pub(super) fn forget(&mut self, block: BlockId) -> Option<BlockEntries> {
        self.blocks[block.0 as usize].as_ref()?;
        self.blocks[block.0 as usize].take().map(BlockEntries)
    }

    /// Brings back what [`ReverseMap::forget`] dropped.
    pub(super) fn restore(&mut self, block: BlockId, entries: BlockEntries) {
        self.blocks[block.0 as usize] = Some(entries.0);
        self.used = true;
    }

    /// All entries, by block.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ppn, Remapped)> {
        self.blocks.iter_written().flat_map(move |(block, slots)| {
            let slots = slots.as_deref().unwrap_or_default();
            slots.iter().enumerate().filter_map(move |(page, slot)| {
                Some((self.geometry.ppn(BlockId(block as u32), page as u32), slot.get()?))
            })
        })
    }

    /// Drops the entries that `keep` does not want.
    pub(crate) fn retain(&mut self, keep: impl Fn(Ppn, Remapped) -> bool) {
        let stale: Vec<Ppn> =
            self.iter().filter(|&(ppn, entry)| !keep(ppn, entry)).map(|(p, _)| p).collect();
        for ppn in stale {
            self.set(ppn, None);
        }
    }

    /// Pages that entries are kept for: those of blocks that have any.
    pub(super) fn pages(&self) -> u64 {
        let blocks = self.blocks.iter_written().filter(|(_, slots)| slots.is_some()).count() as u64;
        blocks * u64::from(self.geometry.pages_per_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry {
        channels: 1,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 2,
        pages_per_block: 4,
        page_bytes: 4096,
    };

    #[test]
    fn entries_go_with_their_block_and_come_back_with_it() {
        let mut map = ReverseMap::new(GEOMETRY);
        let entry = |n: u32| Remapped { lpn: Lpn(n.into()), seq: Seq((1 << 40) + u64::from(n)) };
        for ppn in 0..GEOMETRY.pages() {
            assert_eq!(map.set(Ppn(ppn), Some(entry(ppn))), None);
        }
        map.raise(Ppn(3), Remapped { lpn: Lpn(9), seq: Seq(1) });
        assert_eq!(map.get(Ppn(3)), Some(entry(3)), "the newer one stays");
        let forgotten = map.forget(BlockId(0)).unwrap();
        assert_eq!(map.iter().count(), 12);
        assert_eq!(
            (map.get(Ppn(2)), map.get(Ppn(1))),
            (None, Some(entry(1))),
            "block 0 is on unit 0"
        );
        map.restore(BlockId(0), forgotten);
        assert!(map.iter().all(|(ppn, found)| found == entry(ppn.0)) && map.iter().count() == 16);
        map.retain(|ppn, _| ppn.0 < 5);
        assert_eq!(map.iter().count(), 5);
    }
}
