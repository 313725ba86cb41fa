//! A translation page on flash: its bytes, its reads and programs.

use std::ops::Range;
use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, BlockBytes, Content, DeviceError, Inode, StreamId};
use dovetail_nand::{Ppn, Token};
use dovetail_time::SimTime;

use crate::buffer::MAX_PARTS;
use crate::cache::{CacheConfig, TranslationPage};
use crate::drive::Drive;
use crate::drive::place::Page;
use crate::stats::{Cause, MapUse, ReadCause};

/// Bytes of an entry in a translation page: the flash page plus one, 0 where nothing is mapped.
pub(crate) const FLASH_ENTRY_BYTES: usize = 8;
const ENTRIES_PER_PART: usize = BLOCK_SIZE as usize / FLASH_ENTRY_BYTES;

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

    /// Writes a translation page as the map is now; returns when it is durable. A page without entries is given up instead.
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
        let Some(parts) = self.encode_translation(page) else {
            if let (Some(before), _) = self.point_at(lpn, None) {
                self.forget(before);
            }
            self.owed_no_more(page);
            return Ok(at);
        };
        let mut tokens = [Token::EMPTY; MAX_PARTS];
        for (token, part) in tokens.iter_mut().zip(&parts) {
            *token = self.nand.intern(&Content::Bytes(Arc::clone(part)));
        }
        let live = self.all_parts();
        let to_program =
            Page { lpn, live, tokens: &tokens[..parts.len()], stream: StreamId(0), inode: Inode(0) };
        let done = self.program(at, self.translation_frontier(), to_program, Cause::Translation)?;
        self.counters.translation_writes[by as usize] += 1;
        self.owed_no_more(page);
        Ok(done)
    }

    /// The blocks of a translation page; `None` where nothing is mapped.
    fn encode_translation(&self, page: TranslationPage) -> Option<Vec<Arc<BlockBytes>>> {
        let paging = self.paging.as_ref()?;
        let entries = entries_of(page, paging.config, paging.host_pages);
        let mut found = Vec::with_capacity(1 << paging.config.shift);
        self.map.find_mapped(entries.clone(), usize::MAX, &mut found);
        if found.is_empty() {
            return None;
        }
        let parts = self.config.parts() as usize;
        let mut blocks = vec![[0; BLOCK_SIZE as usize]; parts];
        for (lpn, ppn) in found {
            let index = (lpn.0 - entries.start) as usize;
            let at = index % ENTRIES_PER_PART * FLASH_ENTRY_BYTES;
            let bytes = (u64::from(ppn.0) + 1).to_le_bytes();
            blocks[index / ENTRIES_PER_PART][at..at + FLASH_ENTRY_BYTES].copy_from_slice(&bytes);
        }
        Some(blocks.into_iter().map(Arc::new).collect())
    }

    /// What the translation page on flash says of an entry.
    pub(super) fn on_flash(&self, page: TranslationPage, entry: u64) -> Option<Ppn> {
        let place = self.place_of(page)?;
        let index = (entry - (page.0 << self.paging.as_ref()?.config.shift)) as usize;
        let content = self.nand.content(self.nand.token(place, index / ENTRIES_PER_PART))?;
        let Content::Bytes(bytes) = content else { return None };
        let at = index % ENTRIES_PER_PART * FLASH_ENTRY_BYTES;
        let number = crate::drive::journal::u64_at(&bytes[..], at);
        Some(Ppn(u32::try_from(number.checked_sub(1)?).ok()?))
    }
}
