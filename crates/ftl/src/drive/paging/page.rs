//! A translation page on flash: its bytes, its reads and programs.

use std::ops::Range;

use dovetail_block::{BLOCK_SIZE, BlockBytes, Content, DeviceError, Inode, StreamId};
use dovetail_nand::{Lpn, Ppn, Token};
use dovetail_time::SimTime;

use crate::buffer::MAX_PARTS;
use crate::cache::{CacheConfig, TranslationPage};
use crate::drive::Drive;
use crate::medium::Page;
use crate::stats::{Cause, MapUse, ReadCause};

/// Bytes of an entry in a translation page: the flash page plus one, 0 where nothing is mapped.
pub(crate) const FLASH_ENTRY_BYTES: usize = 8;
pub(super) const ENTRIES_PER_PART: usize = BLOCK_SIZE as usize / FLASH_ENTRY_BYTES;

/// The logical pages whose addresses a translation page has.
pub(super) fn entries_of(page: TranslationPage, config: CacheConfig, host_pages: u64) -> Range<u64> {
    let start = page.0 << config.shift;
    start..(start + (1 << config.shift)).min(host_pages)
}

impl Drive {
    pub(super) fn place_of(&self, page: TranslationPage) -> Option<Ppn> {
        self.paging.as_ref().and_then(|paging| paging.directory.get(&page).copied())
    }

    /// Reads a translation page, if there is one. One that cannot be read is owed: its entries are found anew by the
    /// out-of-band areas of the drive, for which no time is counted.
    pub(super) fn read_translation(
        &mut self,
        at: SimTime,
        page: TranslationPage,
        by: MapUse,
    ) -> Result<SimTime, DeviceError> {
        let Some(ppn) = self.place_of(page) else {
            self.counters.translation_absent[by as usize] += 1;
            return Ok(at);
        };
        self.counters.translation_reads[by as usize] += 1;
        let (done, readable) = self.read_for(at, ppn, ReadCause::Translation)?;
        if let Some(paging) = self.paging.as_mut().filter(|_| !readable) {
            paging.owed.insert(page);
        }
        Ok(done)
    }

    /// Writes a translation page as the map is now; returns when it is durable. Nothing is written where nothing is mapped.
    pub(super) fn write_translation(
        &mut self,
        at: SimTime,
        page: TranslationPage,
        whole: bool,
        by: MapUse,
    ) -> Result<SimTime, DeviceError> {
        let at = if whole { at } else { self.read_translation(at, page, by)? };
        let Some(paging) = &self.paging else { return Ok(at) };
        let lpn = paging.lpn_of(page);
        let Some(tokens) = self.encode_translation(page) else {
            self.owed_no_more(page);
            return Ok(at);
        };
        let (live, tokens) = (self.medium.full_mask(), &tokens[..self.config.parts() as usize]);
        let to_program = Page { lpn, live, tokens, stream: StreamId(0), inode: Inode(0) };
        let done = self.program(at, self.translation_frontier(), to_program, Cause::Translation)?;
        self.counters.translation_writes[by as usize] += 1;
        self.owed_no_more(page);
        Ok(done)
    }

    /// The content of a translation page as the map is now; `None` where nothing is mapped.
    fn encode_translation(&mut self, page: TranslationPage) -> Option<[Token; MAX_PARTS]> {
        let paging = self.paging.as_deref_mut()?;
        let entries = entries_of(page, paging.config, paging.host_pages);
        let (places, behind) = paging.places.split_at_mut((entries.end - entries.start) as usize);
        self.map.copy_places(Lpn(entries.start), places);
        behind.fill(0);
        if places.iter().all(|&place| place == 0) {
            return None;
        }
        let before = paging.directory.get(&page);
        let mut tokens = [Token::EMPTY; MAX_PARTS];
        for (part, places) in paging.places.chunks_exact(ENTRIES_PER_PART).enumerate() {
            let before = before.map_or(Token::EMPTY, |&ppn| self.medium.nand().token(ppn, part));
            tokens[part] = self.medium.intern_version(&encode(places), before);
        }
        Some(tokens)
    }

    /// What the translation page on flash says, entry by entry.
    pub(super) fn decode_translation(&self, page: TranslationPage) -> Vec<Option<Ppn>> {
        let parts = 0..self.config.parts() as usize;
        parts.flat_map(|part| self.decode_part(page, part).unwrap_or([None; ENTRIES_PER_PART])).collect()
    }

    fn decode_part(&self, page: TranslationPage, part: usize) -> Option<[Option<Ppn>; ENTRIES_PER_PART]> {
        match self.medium.nand().content(self.medium.nand().token(self.place_of(page)?, part))? {
            Content::Bytes(bytes) => Some(decode(&bytes)),
            _ => None,
        }
    }
}

/// Where pages are, each the flash page plus one, as a block of a translation page.
fn encode(places: &[u32]) -> BlockBytes {
    let mut block = [0; BLOCK_SIZE as usize];
    for (slot, &place) in block.as_chunks_mut::<FLASH_ENTRY_BYTES>().0.iter_mut().zip(places) {
        *slot = u64::from(place).to_le_bytes();
    }
    block
}

fn decode(block: &BlockBytes) -> [Option<Ppn>; ENTRIES_PER_PART] {
    let slots = block.as_chunks::<FLASH_ENTRY_BYTES>().0;
    std::array::from_fn(|index| {
        let number = u64::from_le_bytes(slots[index]).checked_sub(1)?;
        u32::try_from(number).ok().map(Ppn)
    })
}
