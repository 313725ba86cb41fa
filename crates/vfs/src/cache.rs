//! A cache of file pages with a bound on the clean ones.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, BlockBytes, Content};
use dovetail_time::SimTime;
use rustc_hash::FxHashMap;

mod write_back;

/// Pages that are looked up as one: a bit each in a word.
const CHUNK: u64 = 64;

/// A page is known by its inode and its index in the file.
type Key = (u64, u64);

#[derive(Debug)]
struct Page {
    key: Key,
    chunk: u32,
    content: Content,
    dirty: bool,
    used: bool,
}

/// Neighbouring pages of a file.
#[derive(Debug)]
struct Chunk {
    /// Its number in the file, and the file in `PageCache::files`.
    number: u64,
    file: u32,
    /// Its place among the file's dirty chunks, if it has dirty pages.
    place: u32,
    present: u64,
    dirty: u64,
    /// Index in `PageCache::pages` of each present page.
    slots: [u32; CHUNK as usize],
}

/// Pages of files. Dirty ones stay until they are marked clean; of the others, those not used
/// lately go when there are more pages than the bound (second chance).
#[derive(Debug)]
pub struct PageCache {
    pages: Vec<Page>,
    chunks: Vec<Chunk>,
    /// Chunks that hold no page.
    spare: Vec<u32>,
    /// Chunks by inode and number.
    index: FxHashMap<Key, u32>,
    /// The chunk that was used last.
    last: Option<(Key, u32)>,
    files: Vec<File>,
    /// Files without pages.
    spare_files: Vec<u32>,
    file_index: FxHashMap<u64, u32>,
    /// Files with dirty pages, by when they became so.
    dirty_files: BTreeMap<Since, u64>,
    now: SimTime,
    clock: u64,
    /// The file whose turn it was last to be written back, and the last one of its round.
    turn: Since,
    last_turn: Since,
    dirty: usize,
    dirtied: u64,
    hand: usize,
    bound: usize,
}

/// Cached pages of one file.
#[derive(Debug, Default)]
struct File {
    /// Numbers of its chunks.
    chunks: BTreeSet<u64>,
    /// Its chunks with dirty pages, in no order.
    dirty_chunks: Vec<u32>,
    dirty: usize,
    dirty_since: Since,
    /// The page at which write-back goes on.
    pass: u64,
}

/// Time at which a file became dirty, and a number that rises with each.
type Since = (SimTime, u64);

const fn bit(index: u64) -> u64 {
    1 << (index % CHUNK)
}

/// The pages of chunk `number` whose bits are set, in order.
fn pages_of(number: u64, mut bits: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let first = u64::from(bits.trailing_zeros());
        bits &= bits.wrapping_sub(1);
        (first < CHUNK).then_some(number * CHUNK + first)
    })
}

impl PageCache {
    /// A cache that keeps about `bound` pages, more only if more than that are dirty.
    pub fn new(bound: usize) -> Self {
        Self {
            pages: Vec::new(),
            chunks: Vec::new(),
            spare: Vec::new(),
            index: FxHashMap::default(),
            last: None,
            files: Vec::new(),
            spare_files: Vec::new(),
            file_index: FxHashMap::default(),
            dirty_files: BTreeMap::new(),
            now: SimTime::ZERO,
            clock: 0,
            turn: Since::default(),
            last_turn: Since::default(),
            dirtied: 0,
            dirty: 0,
            hand: 0,
            bound: bound.max(16),
        }
    }

    /// Sets the time at which pages become dirty from now on.
    pub fn set_now(&mut self, now: SimTime) {
        self.now = now;
    }

    /// Number of pages.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    fn chunk_of(&self, ino: u64, index: u64) -> Option<u32> {
        let key = (ino, index / CHUNK);
        match self.last {
            Some((last, chunk)) if last == key => Some(chunk),
            _ => self.index.get(&key).copied(),
        }
    }

    fn file(&self, ino: u64) -> Option<&File> {
        self.file_index.get(&ino).map(|&file| &self.files[file as usize])
    }

    fn slot_of(&self, ino: u64, index: u64) -> Option<usize> {
        self.slot_in(self.chunk_of(ino, index)?, index)
    }

    /// As [`Self::slot_of`], of a page whose neighbours are likely to be used next.
    fn slot_to_use(&mut self, ino: u64, index: u64) -> Option<usize> {
        let chunk = self.chunk_of(ino, index)?;
        self.last = Some(((ino, index / CHUNK), chunk));
        self.slot_in(chunk, index)
    }

    fn slot_in(&self, chunk: u32, index: u64) -> Option<usize> {
        let chunk = &self.chunks[chunk as usize];
        (chunk.present & bit(index) != 0).then(|| chunk.slots[(index % CHUNK) as usize] as usize)
    }

    /// The page is there. It does not count as a use.
    pub fn contains(&self, ino: u64, index: u64) -> bool {
        self.slot_of(ino, index).is_some()
    }

    /// The content of a page, if it is there.
    pub fn get(&mut self, ino: u64, index: u64) -> Option<&Content> {
        let slot = self.slot_to_use(ino, index)?;
        let page = &mut self.pages[slot];
        page.used = true;
        Some(&page.content)
    }

    /// As [`Self::get`], by one of several who look at the same time. It does not count as a use.
    pub fn peek(&self, ino: u64, index: u64) -> Option<&Content> {
        self.slot_of(ino, index).map(|slot| &self.pages[slot].content)
    }

    /// The first page of a range that is there.
    pub fn first_in(&self, ino: u64, range: Range<u64>) -> Option<u64> {
        let file = self.file(ino)?;
        let chunks = file.chunks.range(range.start / CHUNK..range.end.div_ceil(CHUNK));
        let present = |number: &u64| {
            let chunk = self.index.get(&(ino, *number)).map(|&chunk| &self.chunks[chunk as usize]);
            pages_of(*number, chunk.map_or(0, |chunk| chunk.present))
        };
        chunks.flat_map(present).find(|page| range.contains(page))
    }

    /// The bytes of a page, to be changed; pages that are no bytes become zeros. Marking it dirty
    /// is the caller's.
    pub fn bytes_mut(&mut self, ino: u64, index: u64) -> Option<&mut BlockBytes> {
        let slot = self.slot_to_use(ino, index)?;
        let page = &mut self.pages[slot];
        page.used = true;
        if !matches!(page.content, Content::Bytes(_)) {
            page.content = Content::Bytes(Arc::new([0; BLOCK_SIZE as usize]));
        }
        match &mut page.content {
            Content::Bytes(bytes) => Some(Arc::make_mut(bytes)),
            _ => None,
        }
    }

    /// Takes in what was read from the device. A page that is there already stays as it is.
    pub fn insert_clean(&mut self, ino: u64, index: u64, content: Content) {
        if self.slot_of(ino, index).is_none() {
            self.insert(ino, index, content);
        }
    }

    /// Takes in new content; the page is dirty from now on.
    pub fn write(&mut self, ino: u64, index: u64, content: Content) {
        let slot = match self.slot_to_use(ino, index) {
            Some(slot) => {
                self.pages[slot].content = content;
                slot
            }
            None => self.insert(ino, index, content),
        };
        self.mark_slot_dirty(slot);
    }

    fn insert(&mut self, ino: u64, index: u64, content: Content) -> usize {
        self.make_room();
        let number = match self.chunk_of(ino, index) {
            Some(chunk) => chunk,
            None => self.add_chunk(ino, index / CHUNK),
        };
        let slot = self.pages.len();
        let chunk = &mut self.chunks[number as usize];
        chunk.present |= bit(index);
        chunk.slots[(index % CHUNK) as usize] = slot as u32;
        self.pages.push(Page {
            key: (ino, index),
            chunk: number,
            content,
            dirty: false,
            used: true,
        });
        slot
    }

    fn add_chunk(&mut self, ino: u64, number: u64) -> u32 {
        let file = self.file_to_fill(ino);
        self.files[file as usize].chunks.insert(number);
        let chunk = self.spare.pop().unwrap_or_else(|| {
            let slots = [0; CHUNK as usize];
            self.chunks.push(Chunk { number, file, place: 0, present: 0, dirty: 0, slots });
            self.chunks.len() as u32 - 1
        });
        (self.chunks[chunk as usize].number, self.chunks[chunk as usize].file) = (number, file);
        self.index.insert((ino, number), chunk);
        chunk
    }

    fn file_to_fill(&mut self, ino: u64) -> u32 {
        if let Some(&file) = self.file_index.get(&ino) {
            return file;
        }
        let file = self.spare_files.pop().unwrap_or_else(|| {
            self.files.push(File::default());
            self.files.len() as u32 - 1
        });
        self.file_index.insert(ino, file);
        file
    }

    fn make_room(&mut self) {
        let mut tries = 2 * self.pages.len();
        while self.pages.len() >= self.bound && self.pages.len() > self.dirty && tries > 0 {
            tries -= 1;
            self.hand = if self.hand < self.pages.len() { self.hand } else { 0 };
            let page = &mut self.pages[self.hand];
            if page.dirty || page.used {
                page.used = false;
                self.hand += 1;
            } else {
                self.remove_slot(self.hand);
            }
        }
    }

    fn remove(&mut self, ino: u64, index: u64) {
        if let Some(slot) = self.slot_of(ino, index) {
            self.remove_slot(slot);
        }
    }

    fn remove_slot(&mut self, slot: usize) {
        self.mark_slot_clean(slot);
        let Page { key: (ino, index), chunk, .. } = self.pages.swap_remove(slot);
        if let Some(moved) = self.pages.get(slot) {
            self.chunks[moved.chunk as usize].slots[(moved.key.1 % CHUNK) as usize] = slot as u32;
        }
        self.chunks[chunk as usize].present &= !bit(index);
        if self.chunks[chunk as usize].present == 0 {
            self.drop_chunk(ino, index / CHUNK, chunk);
        }
    }

    fn drop_chunk(&mut self, ino: u64, number: u64, chunk: u32) {
        self.index.remove(&(ino, number));
        self.last = None;
        self.spare.push(chunk);
        let place = self.chunks[chunk as usize].file;
        let file = &mut self.files[place as usize];
        file.chunks.remove(&number);
        if file.chunks.is_empty() {
            self.file_index.remove(&ino);
            file.pass = 0;
            self.spare_files.push(place);
        }
    }

    /// The page must be written to the device some time.
    pub fn mark_dirty(&mut self, ino: u64, index: u64) {
        if let Some(slot) = self.slot_of(ino, index) {
            self.mark_slot_dirty(slot);
        }
    }

    fn mark_slot_dirty(&mut self, slot: usize) {
        let page = &mut self.pages[slot];
        if std::mem::replace(&mut page.dirty, true) {
            return;
        }
        let (ino, index) = page.key;
        self.dirty += 1;
        self.dirtied += 1;
        let number = page.chunk;
        let chunk = &mut self.chunks[number as usize];
        let file = &mut self.files[chunk.file as usize];
        if file.dirty == 0 {
            self.clock += 1;
            file.dirty_since = (self.now, self.clock);
            self.dirty_files.insert(file.dirty_since, ino);
        }
        file.dirty += 1;
        if chunk.dirty == 0 {
            chunk.place = file.dirty_chunks.len() as u32;
            file.dirty_chunks.push(number);
        }
        chunk.dirty |= bit(index);
    }

    /// The page is on the device.
    pub fn mark_clean(&mut self, ino: u64, index: u64) {
        if let Some(slot) = self.slot_of(ino, index) {
            self.mark_slot_clean(slot);
        }
    }

    fn mark_slot_clean(&mut self, slot: usize) {
        let page = &mut self.pages[slot];
        if !std::mem::replace(&mut page.dirty, false) {
            return;
        }
        let (_, index) = page.key;
        self.dirty -= 1;
        let chunk = &mut self.chunks[page.chunk as usize];
        let file = &mut self.files[chunk.file as usize];
        file.dirty -= 1;
        if file.dirty == 0 {
            self.dirty_files.remove(&file.dirty_since);
        }
        chunk.dirty &= !bit(index);
        if chunk.dirty == 0 {
            let place = chunk.place;
            file.dirty_chunks.swap_remove(place as usize);
            if let Some(&moved) = file.dirty_chunks.get(place as usize) {
                self.chunks[moved as usize].place = place;
            }
        }
    }

    /// The page is there and dirty.
    pub fn is_dirty(&self, ino: u64, index: u64) -> bool {
        self.slot_of(ino, index).is_some_and(|slot| self.pages[slot].dirty)
    }

    /// The dirty pages of a file, in order.
    pub fn dirty_pages(&self, ino: u64) -> Vec<u64> {
        let mut pages = Vec::new();
        self.dirty_pages_into(ino, &mut pages);
        pages
    }

    /// The same, in place of what `pages` holds.
    pub fn dirty_pages_into(&self, ino: u64, pages: &mut Vec<u64>) {
        pages.clear();
        let Some(file) = self.file(ino) else { return };
        // a chunk's pages come in order; chunks are many only where files are written back whole
        for &chunk in &file.dirty_chunks {
            let chunk = &self.chunks[chunk as usize];
            pages.extend(pages_of(chunk.number, chunk.dirty));
        }
        pages.sort_unstable();
    }

    /// Number of dirty pages of a file.
    pub fn dirty_count(&self, ino: u64) -> usize {
        self.file(ino).map_or(0, |file| file.dirty)
    }

    /// Number of dirty pages.
    pub fn dirty_total(&self) -> usize {
        self.dirty
    }

    /// The pages of a file in a range that `choose` takes from a chunk.
    fn pages_in(&self, ino: u64, range: Range<u64>, choose: impl Fn(&Chunk) -> u64) -> Vec<u64> {
        let Some(file) = self.file(ino) else { return Vec::new() };
        let mut pages = Vec::new();
        for &number in file.chunks.range(range.start / CHUNK..range.end.div_ceil(CHUNK)) {
            let chunk = self.index.get(&(ino, number)).map(|&chunk| &self.chunks[chunk as usize]);
            pages.extend(
                pages_of(number, chunk.map_or(0, &choose)).filter(|page| range.contains(page)),
            );
        }
        pages
    }

    /// Forgets the pages of a range, dirty or not.
    pub fn remove_range(&mut self, ino: u64, range: Range<u64>) {
        let pages = self.pages_in(ino, range, |chunk| chunk.present);
        pages.into_iter().for_each(|index| self.remove(ino, index));
    }

    /// Forgets all pages of a file, dirty or not.
    pub fn remove_inode(&mut self, ino: u64) {
        self.remove_range(ino, 0..u64::MAX);
    }

    /// Forgets the pages of a file that are not dirty.
    pub fn drop_clean_of(&mut self, ino: u64) {
        let clean = self.pages_in(ino, 0..u64::MAX, |chunk| chunk.present & !chunk.dirty);
        clean.into_iter().for_each(|index| self.remove(ino, index));
    }

    /// Forgets the pages that are not dirty.
    pub fn drop_clean(&mut self) {
        let clean: Vec<Key> =
            self.pages.iter().filter(|page| !page.dirty).map(|page| page.key).collect();
        clean.into_iter().for_each(|(ino, index)| self.remove(ino, index));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dovetail_block::Pattern;
    use proptest::prelude::*;

    use super::*;

    fn pattern(n: u64) -> Content {
        Content::Pattern(Pattern::new(n))
    }

    proptest! {
        #[test]
        fn dirty_pages_are_as_in_a_map(ops in prop::collection::vec((0..6_u8, 0..4_u64, 0..40_u64), 1..300)) {
            let mut cache = PageCache::new(20);
            let mut dirty: BTreeMap<(u64, u64), u64> = BTreeMap::new();
            let mut most_dirty = 0;
            for (n, (op, ino, index)) in ops.into_iter().enumerate() {
                let n = n as u64;
                match op {
                    0 | 1 => {
                        cache.write(ino, index, pattern(n));
                        dirty.insert((ino, index), n);
                    }
                    2 => cache.insert_clean(ino, index, pattern(1000 + n)),
                    3 => {
                        cache.mark_clean(ino, index);
                        dirty.remove(&(ino, index));
                    }
                    4 => {
                        cache.remove_range(ino, index..index + 5);
                        dirty.retain(|&(i, x), _| i != ino || !(index..index + 5).contains(&x));
                    }
                    _ => drop(cache.get(ino, index)),
                }
                prop_assert_eq!(cache.dirty_total(), dirty.len());
                most_dirty = most_dirty.max(dirty.len());
                prop_assert!(cache.len() <= 21 + most_dirty);
                for ino in 0..4 {
                    let expected: Vec<u64> = dirty.range((ino, 0)..(ino + 1, 0)).map(|(&(_, x), _)| x).collect();
                    prop_assert_eq!(cache.dirty_pages(ino), expected);
                }
                for (&(ino, index), &n) in &dirty {
                    prop_assert_eq!(cache.get(ino, index), Some(&pattern(n)));
                }
            }
        }
    }

    #[test]
    fn bytes_are_changed_in_place() {
        let mut cache = PageCache::new(100);
        cache.write(7, 5, pattern(2));
        cache.bytes_mut(7, 5).unwrap()[3] = 9;
        assert!(
            matches!(cache.get(7, 5), Some(Content::Bytes(bytes)) if bytes[3] == 9 && bytes[4] == 0)
        );
    }
}
