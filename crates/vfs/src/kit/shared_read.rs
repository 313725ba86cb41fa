//! Reads of content by callers who share a file system: pages in memory first, the device for the
//! rest, straight into the caller's bytes.

use std::ops::Range;

use dovetail_block::{BLOCK_SIZE, Content};

use crate::PageCache;

/// Bytes of a file that lie side by side, as the volume has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBytes {
    /// The first byte of the file behind them.
    pub end: u64,
    /// Byte of the device at which the first lies; `None` for zeros that are stored nowhere.
    pub at: Option<u64>,
}

/// Reads the bytes of a file from `offset` on. `stored` says where bytes of the file lie, those at
/// the start of a range and as many more as are known; `read` reads the device from a byte on, and
/// may refuse. `None` if something is not known, or refused.
pub fn read_shared(
    (pages, file): (&PageCache, u64),
    offset: u64,
    into: &mut [u8],
    stored: impl Fn(Range<u64>) -> Option<StoredBytes>,
    read: impl Fn(u64, &mut [u8]) -> bool,
) -> Option<()> {
    let end = offset.checked_add(into.len() as u64)?;
    let (mut at, mut rest) = (offset, into);
    while !rest.is_empty() {
        let page = at / BLOCK_SIZE;
        let cached = pages.first_in(file, page..end.div_ceil(BLOCK_SIZE));
        let (part, after);
        if cached == Some(page) {
            let start = (at % BLOCK_SIZE) as usize;
            (part, after) = rest.split_at_mut(rest.len().min(BLOCK_SIZE as usize - start));
            match pages.peek(file, page)? {
                Content::Bytes(bytes) => part.copy_from_slice(&bytes[start..start + part.len()]),
                _ => part.fill(0),
            }
        } else {
            let until = cached.map_or(end, |cached| cached * BLOCK_SIZE);
            let run = stored(at..until)?;
            let len = run.end.min(until).checked_sub(at).filter(|len| *len > 0)?;
            (part, after) = rest.split_at_mut(len as usize);
            match run.at {
                Some(from) if !read(from, part) => return None,
                Some(_) => {}
                None => part.fill(0),
            }
        }
        at += part.len() as u64;
        rest = after;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    /// Page `n` of the file lies in block `100 - n`; every third one is a hole.
    fn stored(range: Range<u64>) -> Option<StoredBytes> {
        let page = range.start / BLOCK_SIZE;
        let from = (100 - page) * BLOCK_SIZE + range.start % BLOCK_SIZE;
        Some(StoredBytes { end: (page + 1) * BLOCK_SIZE, at: (page % 3 != 2).then_some(from) })
    }

    /// Every byte of the device is the number of its block.
    fn read(at: u64, into: &mut [u8]) -> bool {
        let bytes = at..at + into.len() as u64;
        into.iter_mut().zip(bytes).for_each(|(byte, at)| *byte = (at / BLOCK_SIZE) as u8);
        true
    }

    proptest! {
        #[test]
        fn bytes_come_from_memory_else_from_the_device_else_are_zeros(
            cached in prop::collection::btree_set(0..20_u64, 0..8),
            offset in 0..60_000_u64,
            len in 0..20_000_usize,
        ) {
            let mut pages = PageCache::new(100);
            for &page in &cached {
                pages.insert_clean(7, page, Content::Bytes(Arc::new([200 + page as u8; 4096])));
            }
            let mut into = vec![1; len];
            prop_assert_eq!(read_shared((&pages, 7), offset, &mut into, stored, read), Some(()));
            for (at, byte) in (offset..).zip(into) {
                let page = at / BLOCK_SIZE;
                let expected = match page {
                    page if cached.contains(&page) => 200 + page as u8,
                    page if page % 3 == 2 => 0,
                    page => 100 - page as u8,
                };
                prop_assert_eq!(byte, expected, "byte {}", at);
            }
        }
    }

    #[test]
    fn what_is_not_known_or_refused_is_no_answer() {
        let pages = PageCache::new(100);
        let mut into = [0; 100];
        let file = (&pages, 7);
        assert_eq!(read_shared(file, 0, &mut into, |_| None, read), None);
        assert_eq!(read_shared(file, 0, &mut into, stored, |_, _| false), None);
        let empty = |range: Range<u64>| Some(StoredBytes { end: range.start, at: None });
        assert_eq!(read_shared(file, 0, &mut into, empty, read), None, "and no endless loop");
        assert_eq!(read_shared(file, u64::MAX, &mut into, stored, read), None);
    }
}
