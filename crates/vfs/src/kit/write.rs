//! Writes, cut into pages at the door: the bytes of a mount and the named blocks of a simulation
//! take the same way from here.

use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, BlockBytes, Content};

/// The content of a write.
#[derive(Clone, Copy, Debug)]
pub enum WriteData<'a> {
    /// Bytes, as a mount has them.
    Bytes(&'a [u8]),
    /// Blocks by name, as a simulation has them.
    Named {
        /// Bytes written.
        len: u64,
        /// The blocks that the write touches, as they are after it.
        contents: &'a [Content],
    },
}

/// Parts of a write that follow each other, each with the byte of the file where it begins.
pub type Parts<'a> = [(u64, &'a [u8]); 3];

/// The part of a write that lies in one page of the file.
#[derive(Clone, Debug)]
pub struct PageWrite<'a> {
    /// Number of the page in the file.
    pub index: u64,
    /// First byte of the page that is written.
    pub start: usize,
    /// Bytes written.
    pub len: usize,
    /// Their content.
    pub content: PageContent<'a>,
}

/// The content of a page that is written.
#[derive(Clone, Debug)]
pub enum PageContent<'a> {
    /// The whole page.
    Whole(Content),
    /// Bytes that go over those that are there.
    Part(&'a [u8]),
    /// The name of the page after a write of a part of it.
    NamedPart(&'a Content),
}

impl<'a> WriteData<'a> {
    /// Bytes written.
    pub const fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Named { len, .. } => *len,
        }
    }

    /// Is true if nothing is written.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pages of the write when it begins at byte `offset` of the file, in order.
    pub fn pages(self, offset: u64) -> impl Iterator<Item = PageWrite<'a>> {
        let (first, end) = (offset / BLOCK_SIZE, offset + self.len());
        (first..end.div_ceil(BLOCK_SIZE)).map(move |index| {
            let from = offset.max(index * BLOCK_SIZE);
            let len = (end.min((index + 1) * BLOCK_SIZE) - from) as usize;
            let content = match self {
                Self::Bytes(bytes) => of_bytes(&bytes[(from - offset) as usize..][..len]),
                Self::Named { contents, .. } => of_name(&contents[(index - first) as usize], len),
            };
            PageWrite { index, start: (from % BLOCK_SIZE) as usize, len, content }
        })
    }

    /// The whole pages of bytes in the write when it begins at byte `offset` of the file: the parts
    /// before them, of them and after them. `None` if there are fewer than `least`.
    pub fn around_whole_pages(self, offset: u64, least: u64) -> Option<Parts<'a>> {
        let Self::Bytes(bytes) = self else { return None };
        let (from, end) = (offset.next_multiple_of(BLOCK_SIZE), offset + self.len());
        let to = end / BLOCK_SIZE * BLOCK_SIZE;
        if to < from.saturating_add(least.max(1) * BLOCK_SIZE) {
            return None;
        }
        let part =
            |from: u64, to: u64| (from, &bytes[(from - offset) as usize..(to - offset) as usize]);
        Some([part(offset, from), part(from, to), part(to, end)])
    }

    /// The write in pieces of at most `most` bytes (a page at least), each with the byte of the
    /// file where it begins. A piece ends at the end of a page.
    pub fn pieces(self, offset: u64, most: u64) -> impl Iterator<Item = (u64, Self)> {
        let (end, most) =
            (offset.saturating_add(self.len()), (most / BLOCK_SIZE).max(1) * BLOCK_SIZE);
        let mut next = Some(offset);
        std::iter::from_fn(move || {
            let from = next?;
            let to = end.min((from / BLOCK_SIZE * BLOCK_SIZE).saturating_add(most));
            next = (to < end).then_some(to);
            Some((from, self.between(from - offset, to - offset, offset)))
        })
    }

    fn between(self, from: u64, to: u64, offset: u64) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Bytes(&bytes[from as usize..to as usize]),
            Self::Named { contents, .. } => {
                let before = (offset + from) / BLOCK_SIZE - offset / BLOCK_SIZE;
                Self::Named { len: to - from, contents: &contents[before as usize..] }
            }
        }
    }
}

fn of_bytes(bytes: &[u8]) -> PageContent<'_> {
    match <&BlockBytes>::try_from(bytes) {
        Ok(whole) => PageContent::Whole(Content::Bytes(Arc::new(*whole))),
        Err(_) => PageContent::Part(bytes),
    }
}

fn of_name(content: &Content, len: usize) -> PageContent<'_> {
    if len as u64 == BLOCK_SIZE {
        PageContent::Whole(content.clone())
    } else {
        PageContent::NamedPart(content)
    }
}

impl PageWrite<'_> {
    /// Byte of the file behind the last one written.
    pub const fn end(&self) -> u64 {
        self.index * BLOCK_SIZE + (self.start + self.len) as u64
    }

    /// Is true if the page keeps bytes of a file of `size` bytes that are not written, so that it
    /// has to be read first.
    pub const fn keeps_bytes(&self, size: u64) -> bool {
        self.start > 0 || (self.len < BLOCK_SIZE as usize && self.end() < size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::Pattern;

    fn shape(data: WriteData<'_>, offset: u64, size: u64) -> Vec<(u64, usize, usize, bool)> {
        data.pages(offset)
            .map(|page| (page.index, page.start, page.len, page.keeps_bytes(size)))
            .collect()
    }

    #[test]
    fn bytes_and_names_are_cut_alike() {
        let (bytes, names) =
            (vec![7; 9000], [1, 2, 3, 4].map(|n| Content::Pattern(Pattern::new(n))));
        for (offset, len) in
            [(0, 4096), (0, 100), (100, 50), (100, 8192), (4096, 5000), (4000, 9000)]
        {
            let named = WriteData::Named { len, contents: &names };
            let carried = WriteData::Bytes(&bytes[..len as usize]);
            for size in [0, 100, 4096, 5000, 1 << 20] {
                assert_eq!(
                    shape(carried, offset, size),
                    shape(named, offset, size),
                    "{len} at {offset} of {size}"
                );
            }
        }
    }

    #[test]
    fn a_page_is_read_first_if_it_keeps_something() {
        let bytes = [7; 9000];
        let of = |offset, len, size| -> Vec<u64> {
            let pages = WriteData::Bytes(&bytes[..len]).pages(offset);
            pages.filter(|page| page.keeps_bytes(size)).map(|page| page.index).collect()
        };
        assert_eq!(of(0, 8192, 1 << 20), [0; 0], "whole blocks");
        assert_eq!(of(100, 50, 1 << 20), [0], "both edges in one block");
        assert_eq!(of(0, 100, 4096), [0], "the start of a block that has more");
        assert_eq!(of(0, 100, 100), [0; 0], "up to the end of the file");
        assert_eq!(of(100, 8192, 1 << 20), [0, 2]);
        assert_eq!(of(4096, 5000, 1 << 20), [2]);
    }

    #[test]
    fn whole_pages_are_found_between_parts_of_pages() {
        let bytes: Vec<u8> = (0..20_000).map(|n| n as u8).collect();
        for (offset, len, whole) in [
            (0, 8192, Some((0, 8192))),
            (100, 20_000, Some((4096, 12288))),
            (4096, 4096, None),
            (100, 8192, None),
            (1, 4095, None),
        ] {
            let found = WriteData::Bytes(&bytes[..len]).around_whole_pages(offset, 2);
            assert_eq!(
                found.map(|[_, (at, part), _]| (at, part.len())),
                whole,
                "{len} at {offset}"
            );
            let Some(parts) = found else { continue };
            assert_eq!(parts.map(|(_, part)| part).concat(), bytes[..len]);
            assert!(parts.windows(2).all(|two| two[0].0 + two[0].1.len() as u64 == two[1].0));
        }
        let named = WriteData::Named { len: 4096, contents: &[Content::Empty] };
        assert!(named.around_whole_pages(0, 1).is_none());
    }

    #[test]
    fn pieces_are_the_same_pages() {
        let names: Vec<Content> = (0..10).map(|n| Content::Pattern(Pattern::new(n))).collect();
        for data in
            [WriteData::Bytes(&[7; 30_000]), WriteData::Named { len: 30_000, contents: &names }]
        {
            for (offset, most) in [(0, 4096), (5, 8192), (4095, 1), (100, 1 << 20)] {
                let whole: Vec<String> =
                    data.pages(offset).map(|page| format!("{page:?}")).collect();
                let pieces = data.pieces(offset, most);
                let cut: Vec<String> = pieces
                    .flat_map(|(at, piece)| piece.pages(at))
                    .map(|page| format!("{page:?}"))
                    .collect();
                assert_eq!(whole, cut, "at {offset}, {most} at a time");
            }
        }
        assert_eq!(
            WriteData::Bytes(&[]).pieces(5, 4096).count(),
            1,
            "an empty write is a call, too"
        );
    }
}
