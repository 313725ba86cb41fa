//! Reads that go past the page cache.

use dovetail_block::Content;

use crate::PageCache;

/// Puts the file's pages that are dirty in the cache over what was read past it from block `first`
/// on: they are newer.
pub fn put_dirty_over(pages: &mut PageCache, ino: u64, first: u64, into: &mut [Content]) {
    for (index, content) in (first..).zip(into) {
        if pages.is_dirty(ino, index) {
            *content = pages.get(ino, index).cloned().unwrap_or_default();
        }
    }
}
