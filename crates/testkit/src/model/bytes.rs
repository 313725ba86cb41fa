//! The content of a file, with holes.

use std::collections::BTreeMap;

use dovetail_vfs::Error;

const PAGE: u64 = 4096;

/// Pages that were written or reserved, by index; the others are holes.
#[derive(Clone, Debug, Default)]
pub(super) struct Bytes {
    /// `None`: reserved, reads as zeros.
    pages: BTreeMap<u64, Option<Box<[u8]>>>,
    size: u64,
}

impl Bytes {
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Number of pages that take space.
    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let len = self.size.saturating_sub(offset).min(into.len() as u64);
        for (index, at, piece) in pieces(offset, len) {
            let target = &mut into[piece.start as usize..piece.end as usize];
            match self.pages.get(&index) {
                Some(Some(page)) => target.copy_from_slice(&page[at..at + target.len()]),
                _ => target.fill(0),
            }
        }
        len as usize
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let len = bytes.len() as u64;
        for (index, at, piece) in pieces(offset, len) {
            let source = &bytes[piece.start as usize..piece.end as usize];
            self.page_mut(index)[at..at + source.len()].copy_from_slice(source);
        }
        self.size = self.size.max(offset + len);
    }

    /// Cuts off or continues with zeros.
    pub(super) fn resize(&mut self, size: u64) {
        if size < self.size {
            self.pages.retain(|&index, _| index < size.div_ceil(PAGE));
            self.zero(size, size.next_multiple_of(PAGE));
        }
        self.size = size;
    }

    pub(super) fn reserve(&mut self, start: u64, end: u64) {
        for index in start / PAGE..end.div_ceil(PAGE) {
            self.pages.entry(index).or_insert(None);
        }
    }

    /// Whole pages become holes, parts of pages zeros; the size stays.
    pub(super) fn punch(&mut self, start: u64, end: u64) {
        self.zero(start, end);
        let inner = start.div_ceil(PAGE)..end / PAGE;
        self.pages.retain(|index, _| !inner.contains(index));
    }

    /// The range reads as zeros and takes space.
    pub(super) fn zero_range(&mut self, start: u64, end: u64) {
        self.punch(start, end);
        self.reserve(start, end);
    }

    pub(super) fn grow(&mut self, size: u64) {
        self.size = self.size.max(size);
    }

    pub(super) fn seek_data(&self, offset: u64) -> Result<u64, Error> {
        let written = self.pages.range(offset / PAGE..).find(|(_, page)| page.is_some());
        let found = written.map(|(&index, _)| offset.max(index * PAGE));
        found.filter(|&found| found < self.size).ok_or(Error::BeyondEnd)
    }

    pub(super) fn seek_hole(&self, offset: u64) -> Result<u64, Error> {
        if offset >= self.size {
            return Err(Error::BeyondEnd);
        }
        let is_data = |index: &u64| matches!(self.pages.get(index), Some(Some(_)));
        let hole = (offset / PAGE..self.size.div_ceil(PAGE)).find(|index| !is_data(index));
        Ok(hole.map_or(self.size, |index| offset.max(index * PAGE)))
    }

    fn zero(&mut self, start: u64, end: u64) {
        let touched = self.pages.range_mut(start / PAGE..end.div_ceil(PAGE).max(start / PAGE));
        for (&index, page) in touched {
            let first = index * PAGE;
            if let Some(page) = page {
                page[start.saturating_sub(first) as usize..(end - first).min(PAGE) as usize]
                    .fill(0);
            }
        }
    }

    fn page_mut(&mut self, index: u64) -> &mut [u8] {
        let page = self.pages.entry(index).or_insert(None);
        page.get_or_insert_with(|| vec![0; PAGE as usize].into_boxed_slice())
    }
}

/// The pages of a range: index, where it begins in the page, and which bytes of the range it has.
fn pieces(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, std::ops::Range<u64>)> {
    let end = offset + len;
    (offset / PAGE..end.div_ceil(PAGE).max(offset / PAGE)).map(move |index| {
        let from = offset.max(index * PAGE);
        let to = end.min((index + 1) * PAGE);
        (index, (from % PAGE) as usize, from - offset..to - offset)
    })
}
