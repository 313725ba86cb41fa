//! The flash in a file: written as it changes, read when the drive is switched on.
//!
//! The host may lose any of what was written since the last sync. What was programmed is durable
//! before an erase is written: of a page that cleaning has moved, the copy or the original is
//! there. And all is durable before a page of the drive's own is written, which tells of other
//! pages (`BackingStore::barrier`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dovetail_block::{BLOCK_SIZE, BlockBytes, Content, Pattern};
use dovetail_nand::{
    BackingStore, BlockId, CellMode, Geometry, Oob, Ppn, Seq, StoredBlock, StoredPage,
};

use super::layout::{BLOCK_RECORD, BlockRecord, Layout, PAGE_RECORD, PageRecord, StoredContent};
use crate::buffer::MAX_SUBPAGES;

/// The reason why the file no longer holds what the drive does: shared by the backing store and
/// whoever flushes.
pub(super) type Failure = Arc<Mutex<Option<io::Error>>>;

/// Tells the failure, if there is one.
pub(super) fn failed(failure: &Failure) -> Option<String> {
    failure.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(ToString::to_string)
}

/// A file that the flash of a drive is in, all parts of it.
#[derive(Clone, Debug)]
pub(super) struct SharedFile {
    pub(super) file: Arc<File>,
    /// Something was written since all was made durable.
    unsynced: Arc<AtomicBool>,
    pub(super) failure: Failure,
}

impl SharedFile {
    pub(super) fn new(file: File) -> Self {
        let unsynced = Arc::new(AtomicBool::new(true));
        Self { file: Arc::new(file), unsynced, failure: Failure::default() }
    }
}

/// Writes every change of the flash to its place in the file.
#[derive(Debug)]
pub(super) struct FlashFile {
    shared: SharedFile,
    layout: Layout,
    geometry: Geometry,
    /// Erases of each block: what the records of its pages must name to count.
    erases: Vec<u32>,
}

impl FlashFile {
    pub(super) fn new(
        shared: SharedFile,
        layout: Layout,
        geometry: Geometry,
        erases: Vec<u32>,
    ) -> Self {
        Self { shared, layout, geometry, erases }
    }

    fn is_unsynced(&self) {
        self.shared.unsynced.store(true, Ordering::Relaxed);
    }

    /// After the first failure the file stays as it is: what it holds is what was once on the
    /// flash.
    fn attempt(&self, write: impl FnOnce() -> io::Result<()>) {
        let mut failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            *failure = write().err();
        }
    }

    fn write_page(
        &self,
        ppn: Ppn,
        content: Option<(Oob, [StoredContent; MAX_SUBPAGES])>,
    ) -> io::Result<()> {
        let erases = self.erases[self.geometry.locate(ppn).0.0 as usize];
        self.shared
            .file
            .write_all_at(&PageRecord { erases, content }.encode(), self.layout.page_record(ppn))
    }

    fn write_block(&mut self, block: BlockId, record: BlockRecord) {
        self.barrier();
        self.is_unsynced();
        let at = self.layout.block_record(block.0);
        self.attempt(|| self.shared.file.write_all_at(&record.encode(), at));
    }
}

impl BackingStore for FlashFile {
    fn programmed(&mut self, ppn: Ppn, oob: Oob, contents: &[Option<Content>]) {
        self.is_unsynced();
        self.attempt(|| {
            let mut stored = [StoredContent::Empty; MAX_SUBPAGES];
            for (index, (stored, content)) in stored.iter_mut().zip(contents).enumerate() {
                *stored = StoredContent::of(content.as_ref());
                if let Some(Content::Bytes(bytes)) = content {
                    let at = self.layout.page_data(ppn) + index as u64 * BLOCK_SIZE;
                    self.shared.file.write_all_at(&**bytes, at)?;
                }
            }
            self.write_page(ppn, Some((oob, stored)))
        });
    }

    fn barrier(&mut self) {
        if self.shared.unsynced.swap(false, Ordering::Relaxed) {
            self.attempt(|| self.shared.file.sync_data());
        }
    }

    fn spoiled(&mut self, ppn: Ppn) {
        self.is_unsynced();
        self.attempt(|| self.write_page(ppn, None));
    }

    fn erased(&mut self, block: BlockId, erases: u32, last_seq: Seq) {
        self.erases[block.0 as usize] = erases;
        let mode = CellMode::Native;
        self.write_block(block, BlockRecord { erases, bad: false, mode, last_seq });
    }

    fn mode_set(&mut self, block: BlockId, erases: u32, last_seq: Seq, mode: CellMode) {
        self.write_block(block, BlockRecord { erases, bad: false, mode, last_seq });
    }

    fn retired(&mut self, block: BlockId, erases: u32, last_seq: Seq, mode: CellMode) {
        self.write_block(block, BlockRecord { erases, bad: true, mode, last_seq });
    }
}

/// Reads the whole flash. A page of which only a part reached the file counts as torn.
pub(super) fn read_flash(
    file: &File,
    layout: Layout,
    geometry: &Geometry,
) -> io::Result<Vec<StoredBlock>> {
    let (units, mut blocks) = (geometry.units(), Vec::new());
    // the blocks of a row take turns page by page: their records lie together
    let mut records = vec![0; (units * geometry.pages_per_block) as usize * PAGE_RECORD as usize];
    for first in (0..geometry.blocks()).step_by(units as usize) {
        file.read_exact_at(&mut records, layout.page_record(geometry.ppn(BlockId(first), 0)))?;
        for unit in 0..units {
            let own = records
                .chunks_exact(PAGE_RECORD as usize)
                .skip(unit as usize)
                .step_by(units as usize);
            let own: Vec<Option<PageRecord>> = own.map(PageRecord::decode).collect();
            blocks.push(read_block(file, layout, geometry, BlockId(first + unit), &own)?);
        }
    }
    Ok(blocks)
}

/// A block and its pages. Where the host has lost the record of an erase, those of the pages
/// programmed since tell of it.
fn read_block(
    file: &File,
    layout: Layout,
    geometry: &Geometry,
    block: BlockId,
    records: &[Option<PageRecord>],
) -> io::Result<StoredBlock> {
    let mut bytes = [0; BLOCK_RECORD as usize];
    file.read_exact_at(&mut bytes, layout.block_record(block.0))?;
    let damaged = || io::Error::other(format!("the record of erase block {} is damaged", block.0));
    let BlockRecord { erases, bad, mode, last_seq } =
        BlockRecord::decode(&bytes).ok_or_else(damaged)?;
    let erases = records.iter().flatten().map(|record| record.erases).fold(erases, u32::max);
    let own = |record: &Option<PageRecord>| record.filter(|record| record.erases == erases);
    let used = records.iter().rposition(|record| own(record).is_some()).map_or(0, |last| last + 1);
    let mut pages = Vec::new();
    for (page, record) in records[..used].iter().enumerate() {
        let at = layout.page_data(geometry.ppn(block, page as u32));
        let content = own(record).and_then(|record| record.content);
        pages.push(
            content.map(|content| read_page(file, geometry, at, content)).transpose()?.flatten(),
        );
    }
    Ok(StoredBlock { erases, bad, mode, last_seq, pages })
}

/// A page with its bytes; `None` where they are not those that its record names.
fn read_page(
    file: &File,
    geometry: &Geometry,
    at: u64,
    (oob, stored): (Oob, [StoredContent; MAX_SUBPAGES]),
) -> io::Result<StoredPage> {
    let mut contents = Vec::new();
    for (index, stored) in
        stored.into_iter().enumerate().take(geometry.subpages_per_page() as usize)
    {
        contents.push(match stored {
            StoredContent::Empty => Some(Content::Empty),
            StoredContent::Pattern(number) => Some(Content::Pattern(Pattern::new(number))),
            StoredContent::Lost => None,
            StoredContent::Bytes(checksum) => {
                let mut bytes: BlockBytes = [0; BLOCK_SIZE as usize];
                file.read_exact_at(&mut bytes, at + index as u64 * BLOCK_SIZE)?;
                if crc32c::crc32c(&bytes) != checksum {
                    return Ok(None);
                }
                Some(Content::Bytes(Arc::new(bytes)))
            }
        });
    }
    Ok(Some((oob, contents)))
}
