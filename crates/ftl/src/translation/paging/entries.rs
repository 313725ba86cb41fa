//! The entries of a translation page, as the map has them and as flash has them.

use std::ops::Range;

use dovetail_block::{BLOCK_SIZE, BlockBytes, Content};
use dovetail_nand::{Lpn, Nand, Ppn};

use super::Translation;
use crate::cache::{CacheConfig, TranslationPage};

/// Bytes of an entry in a translation page: the flash page plus one, 0 where nothing is mapped.
pub(crate) const FLASH_ENTRY_BYTES: usize = 8;
/// Entries in a block of 4 KiB.
pub(crate) const ENTRIES_PER_SUBPAGE: usize = BLOCK_SIZE as usize / FLASH_ENTRY_BYTES;

/// The logical pages whose addresses a translation page has.
pub(super) fn entries_of(
    page: TranslationPage,
    config: CacheConfig,
    host_pages: u64,
) -> Range<u64> {
    let start = page.0 << config.shift;
    start..(start + (1 << config.shift)).min(host_pages)
}

impl Translation {
    /// The entries of a translation page as the map is now, padded to whole blocks, and where the
    /// page is on flash; `None` where nothing is mapped.
    pub(crate) fn entries(&mut self, page: TranslationPage) -> Option<(&[u32], Option<Ppn>)> {
        let paging = self.paging.as_deref_mut()?;
        let entries = entries_of(page, paging.config, paging.host_pages);
        let (places, behind) = paging.places.split_at_mut((entries.end - entries.start) as usize);
        self.map.copy_places(Lpn(entries.start), places);
        behind.fill(0);
        if places.iter().all(|&place| place == 0) {
            return None;
        }
        Some((&paging.places, paging.directory.get(&page).copied()))
    }

    /// Returns what the translation page on flash says, entry by entry.
    pub(super) fn decode_translation(
        &self,
        nand: &Nand,
        page: TranslationPage,
    ) -> Vec<Option<Ppn>> {
        let subpages = 0..nand.geometry().subpages_per_page() as usize;
        let decode = |subpage| {
            self.decode_subpage(nand, page, subpage).unwrap_or([None; ENTRIES_PER_SUBPAGE])
        };
        subpages.flat_map(decode).collect()
    }

    fn decode_subpage(
        &self,
        nand: &Nand,
        page: TranslationPage,
        subpage: usize,
    ) -> Option<[Option<Ppn>; ENTRIES_PER_SUBPAGE]> {
        match nand.content(nand.token(self.directory(page)?, subpage))? {
            Content::Bytes(bytes) => Some(decode(&bytes)),
            _ => None,
        }
    }
}

/// Returns where pages are, each the flash page plus one, as a block of a translation page.
pub(crate) fn encode_entries(places: &[u32]) -> BlockBytes {
    let mut block = [0; BLOCK_SIZE as usize];
    for (slot, &place) in block.as_chunks_mut::<FLASH_ENTRY_BYTES>().0.iter_mut().zip(places) {
        *slot = u64::from(place).to_le_bytes();
    }
    block
}

fn decode(block: &BlockBytes) -> [Option<Ppn>; ENTRIES_PER_SUBPAGE] {
    let slots = block.as_chunks::<FLASH_ENTRY_BYTES>().0;
    std::array::from_fn(|index| {
        let number = u64::from_le_bytes(slots[index]).checked_sub(1)?;
        u32::try_from(number).ok().map(Ppn)
    })
}
