//! Reads and writes in blocks: those that a write covers only in part, and those that go past the page cache.

use dovetail_block::{BLOCK_SIZE, Content};

use crate::PageCache;

/// The blocks that a write of `len` bytes at `offset` covers only in part, and that hold something of a file of `size`
/// bytes besides: they have to be read first.
pub fn edges(offset: u64, len: u64, size: u64) -> impl Iterator<Item = u64> {
    let end = offset + len;
    let head = (!offset.is_multiple_of(BLOCK_SIZE)).then_some(offset / BLOCK_SIZE);
    let tail = (!end.is_multiple_of(BLOCK_SIZE) && end < size).then_some(end / BLOCK_SIZE);
    head.into_iter().chain(tail.filter(|tail| head != Some(*tail)))
}

/// Puts the file's pages that are dirty in the cache over what was read past it from block `first` on: they are newer.
pub fn put_dirty_over(pages: &mut PageCache, ino: u64, first: u64, into: &mut [Content]) {
    for (index, content) in (first..).zip(into) {
        if pages.is_dirty(ino, index) {
            *content = pages.get(ino, index).cloned().unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(offset: u64, len: u64, size: u64) -> Vec<u64> {
        edges(offset, len, size).collect()
    }

    #[test]
    fn a_block_that_is_written_in_part_is_read_once() {
        assert_eq!(of(0, 8192, 1 << 20), [0; 0], "whole blocks");
        assert_eq!(of(100, 50, 1 << 20), [0], "both edges in one block");
        assert_eq!(of(0, 100, 4096), [0], "the start of a block that has more");
        assert_eq!(of(0, 100, 100), [0; 0], "up to the end of the file");
        assert_eq!(of(100, 8192, 1 << 20), [0, 2]);
        assert_eq!(of(4096, 5000, 1 << 20), [2]);
    }
}
