//! The content of a file: pages that are data, pages that are reserved, and holes.

use std::collections::BTreeMap;
use std::ops::Range;

const PAGE: u64 = 4096;

/// `None`: reserved, reads as zeros.
type Page = Option<Box<[u8; PAGE as usize]>>;

/// Bytes beyond the end are zeros in every page, so that a file that grows shows zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct FileContent {
    size: u64,
    pages: BTreeMap<u64, Page>,
}

/// The parts of a range by page: index, and the bytes in it.
fn parts(from: u64, end: u64) -> impl Iterator<Item = (u64, Range<usize>)> {
    (from / PAGE..end.div_ceil(PAGE)).map(move |index| {
        let start = from.max(index * PAGE) - index * PAGE;
        let stop = end.min((index + 1) * PAGE) - index * PAGE;
        (index, start as usize..stop as usize)
    })
}

impl FileContent {
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// In units of 512 bytes.
    pub(super) fn blocks(&self) -> u64 {
        self.pages.len() as u64 * 8
    }

    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let len = self.size.saturating_sub(offset).min(into.len() as u64);
        let mut done = 0;
        for (index, range) in parts(offset, offset.saturating_add(len)) {
            let target = &mut into[done..done + range.len()];
            match self.pages.get(&index) {
                Some(Some(bytes)) => target.copy_from_slice(&bytes[range.clone()]),
                _ => target.fill(0),
            }
            done += range.len();
        }
        done
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        let mut done = 0;
        for (index, range) in parts(offset, end) {
            let page = self.pages.entry(index).or_default();
            let page = page.get_or_insert_with(|| Box::new([0; PAGE as usize]));
            page[range.clone()].copy_from_slice(&bytes[done..done + range.len()]);
            done += range.len();
        }
        self.size = self.size.max(end);
    }

    pub(super) fn resize(&mut self, size: u64) {
        if size <= self.size {
            self.pages.split_off(&size.div_ceil(PAGE));
            self.zero_bytes(size, size.next_multiple_of(PAGE));
        }
        self.size = size;
    }

    pub(super) fn grow(&mut self, end: u64) {
        self.size = self.size.max(end);
    }

    pub(super) fn reserve(&mut self, offset: u64, end: u64) {
        for (index, _) in parts(offset, end) {
            self.pages.entry(index).or_default();
        }
    }

    /// Whole pages become holes, parts of pages zeros.
    pub(super) fn punch(&mut self, offset: u64, end: u64) {
        for (index, range) in parts(offset, end) {
            if range.len() == PAGE as usize {
                self.pages.remove(&index);
            }
        }
        self.zero_bytes(offset, end);
    }

    fn zero_bytes(&mut self, offset: u64, end: u64) {
        for (index, range) in parts(offset, end) {
            if let Some(Some(page)) = self.pages.get_mut(&index) {
                page[range].fill(0);
            }
        }
    }

    pub(super) fn next_data(&self, offset: u64) -> Option<u64> {
        let mut data = self.pages.range(offset / PAGE..).filter(|(_, page)| page.is_some());
        let found = data.next().map(|(&index, _)| (index * PAGE).max(offset));
        found.filter(|&at| at < self.size)
    }

    pub(super) fn next_hole(&self, offset: u64) -> Option<u64> {
        if offset >= self.size {
            return None;
        }
        let mut index = offset / PAGE;
        while matches!(self.pages.get(&index), Some(Some(_))) {
            index += 1;
        }
        Some((index * PAGE).max(offset).min(self.size))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_reads_as_a_plain_vector(ops in prop::collection::vec((0..5_u8, 0..20_000_u64, 1..9000_u64), 1..60)) {
            let mut content = FileContent::default();
            let mut plain: Vec<u8> = Vec::new();
            for (n, (op, offset, len)) in ops.into_iter().enumerate() {
                let end = offset + len;
                let grow = |plain: &mut Vec<u8>, size: u64| plain.resize(plain.len().max(size as usize), 0);
                let inside = |plain: &Vec<u8>| (offset as usize).min(plain.len())..(end as usize).min(plain.len());
                match op {
                    0 => {
                        let bytes = vec![n as u8 + 1; len as usize];
                        content.write(offset, &bytes);
                        grow(&mut plain, end);
                        plain[offset as usize..end as usize].copy_from_slice(&bytes);
                    }
                    1 => {
                        content.resize(offset);
                        plain.resize(offset as usize, 0);
                    }
                    2 => {
                        content.punch(offset, end);
                        let range = inside(&plain);
                        plain[range].fill(0);
                    }
                    3 => content.reserve(offset, end),
                    _ => {
                        content.grow(end);
                        grow(&mut plain, end);
                    }
                }
                prop_assert_eq!(content.size(), plain.len() as u64);
                let mut read = vec![7; 30_000];
                let len = content.read(0, &mut read);
                prop_assert_eq!(&read[..len], &plain[..]);
                if let Some(data) = content.next_data(0) {
                    prop_assert!(plain[..data as usize].iter().all(|&byte| byte == 0));
                }
            }
        }
    }

    #[test]
    fn holes_and_data_are_found() {
        let mut content = FileContent::default();
        content.write(2 * PAGE + 5, b"x");
        content.resize(10 * PAGE);
        assert_eq!((content.next_data(0), content.next_data(3 * PAGE)), (Some(2 * PAGE), None));
        assert_eq!((content.next_hole(0), content.next_hole(2 * PAGE + 1)), (Some(0), Some(3 * PAGE)));
        assert_eq!(content.next_hole(10 * PAGE), None);
    }
}
