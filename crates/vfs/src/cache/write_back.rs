//! The order in which dirty pages are written back.
//!
//! The background takes dirty files by turns, and of each a share, from where its last one ended
//! (Linux: `wb_writeback`, `writeback_index`). So a page that is written to again and again is
//! written back once in a pass over all files.

use std::ops::Bound::{Excluded, Unbounded};

use dovetail_time::SimTime;

use super::{CHUNK, PageCache, pages_of};

impl PageCache {
    /// Number of files with dirty pages.
    pub fn dirty_files(&self) -> usize {
        self.dirty_files.len()
    }

    /// The files with dirty pages, the one first that has been so for longest.
    pub fn dirty_inodes(&self) -> Vec<u64> {
        self.dirty_files.values().copied().collect()
    }

    /// Those of them that became so at `time` or before.
    pub fn dirty_inodes_since(&self, time: SimTime) -> Vec<u64> {
        self.dirty_files.range(..=(time, u64::MAX)).map(|(_, ino)| *ino).collect()
    }

    /// The time from which a file has had dirty pages.
    pub fn dirty_since(&self, ino: u64) -> Option<SimTime> {
        self.file(ino).filter(|file| file.dirty > 0).map(|file| file.dirty_since.0)
    }

    /// Number of times that a clean page has become dirty.
    pub fn dirtied(&self) -> u64 {
        self.dirtied
    }

    /// The file with dirty pages whose turn it is: the next one, by when they became so. Those that
    /// came after a round had begun wait for the next one (Linux: `queue_io`).
    pub fn next_dirty_inode(&mut self) -> Option<u64> {
        let later = self.dirty_files.range((Excluded(self.turn), Unbounded)).next();
        let next = later.filter(|(turn, _)| **turn <= self.last_turn);
        let (&turn, &ino) = match next {
            Some(next) => next,
            None => {
                self.last_turn = *self.dirty_files.last_key_value()?.0;
                self.dirty_files.first_key_value()?
            }
        };
        self.turn = turn;
        Some(ino)
    }

    /// The dirty pages of a file that a pass over it comes to next, in order, at most `most`, in
    /// place of what `pages` holds. Where the pass ends another one begins with the next call, and
    /// pages that became dirty behind it count as dirty from now on.
    pub fn next_dirty_pages_into(&mut self, ino: u64, most: usize, pages: &mut Vec<u64>) {
        pages.clear();
        let Some(&place) = self.file_index.get(&ino) else { return };
        self.dirty_pages_from(place, self.files[place as usize].pass, pages);
        if pages.is_empty() {
            self.dirty_pages_from(place, 0, pages);
        }
        pages.sort_unstable();
        let is_end = pages.len() <= most;
        pages.truncate(most);
        let file = &mut self.files[place as usize];
        file.pass = if is_end { 0 } else { pages.last().map_or(0, |last| last + 1) };
        if is_end && file.dirty > pages.len() {
            self.dirty_files.remove(&file.dirty_since);
            self.clock += 1;
            file.dirty_since = (self.now, self.clock);
            self.dirty_files.insert(file.dirty_since, ino);
        }
    }

    /// Adds the dirty pages of a file from a page on, in no order.
    fn dirty_pages_from(&self, file: u32, from: u64, pages: &mut Vec<u64>) {
        let chunks = self.files[file as usize].dirty_chunks.iter();
        let chunks = chunks.map(|&chunk| &self.chunks[chunk as usize]);
        for chunk in chunks.filter(|chunk| chunk.number >= from / CHUNK) {
            pages.extend(pages_of(chunk.number, chunk.dirty).filter(|page| *page >= from));
        }
    }
}

#[cfg(test)]
mod tests {
    use dovetail_block::{Content, Pattern};

    use super::*;

    fn write(cache: &mut PageCache, ino: u64, index: u64) {
        cache.write(ino, index, Content::Pattern(Pattern::new(1)));
    }

    /// Writes the next share of a file.
    fn pass(cache: &mut PageCache, ino: u64, most: usize) -> Vec<u64> {
        let mut pages = vec![77];
        cache.next_dirty_pages_into(ino, most, &mut pages);
        pages.iter().for_each(|&index| cache.mark_clean(ino, index));
        pages
    }

    #[test]
    fn files_come_in_the_order_in_which_they_became_dirty() {
        let mut cache = PageCache::new(100);
        for (ino, index) in [(7, 0), (3, 0), (7, 1)] {
            write(&mut cache, ino, index);
        }
        assert_eq!(cache.dirty_inodes(), [7, 3]);
        cache.mark_clean(7, 0);
        assert_eq!(cache.dirty_inodes(), [7, 3]);
        cache.mark_clean(7, 1);
        write(&mut cache, 7, 5);
        assert_eq!(cache.dirty_inodes(), [3, 7]);
    }

    #[test]
    fn files_are_as_old_as_their_first_dirty_page() {
        let mut cache = PageCache::new(100);
        let second = |n: u64| SimTime::from_ns(n * 1_000_000_000);
        for (now, ino) in [(1, 7), (2, 3), (3, 7)] {
            cache.set_now(second(now));
            write(&mut cache, ino, now);
        }
        assert_eq!(cache.dirty_inodes_since(second(0)), []);
        assert_eq!(cache.dirty_inodes_since(second(1)), [7]);
        assert_eq!(cache.dirty_inodes_since(second(2)), [7, 3]);
        cache.mark_clean(7, 1);
        assert_eq!(cache.dirty_since(7), Some(second(1)));
        cache.mark_clean(7, 3);
        assert_eq!((cache.dirty_since(7), cache.dirty_since(8)), (None, None));
    }

    #[test]
    fn files_take_turns_and_those_that_came_later_wait_for_the_next_round() {
        let mut cache = PageCache::new(100);
        assert_eq!(cache.next_dirty_inode(), None);
        [4, 9, 2].into_iter().for_each(|ino| write(&mut cache, ino, 0));
        assert_eq!([0; 2].map(|_| cache.next_dirty_inode()), [Some(4), Some(9)]);
        cache.mark_clean(9, 0);
        write(&mut cache, 1, 0);
        let turns = [0; 5].map(|_| cache.next_dirty_inode().unwrap());
        assert_eq!(turns, [2, 4, 2, 1, 4]);
        for ino in 10..20 {
            write(&mut cache, ino, 0);
            assert!(cache.next_dirty_inode().unwrap() < 10 || ino > 11, "new ones do not go first");
        }
    }

    #[test]
    fn a_pass_goes_to_the_end_before_it_begins_again() {
        let mut cache = PageCache::new(1000);
        (0..10).for_each(|n| write(&mut cache, 5, n * 50));
        assert_eq!(pass(&mut cache, 5, 4), [0, 50, 100, 150]);
        [0, 10, 200].into_iter().for_each(|index| write(&mut cache, 5, index));
        cache.set_now(SimTime::from_ns(8));
        assert_eq!(pass(&mut cache, 5, 4), [200, 250, 300, 350]);
        assert_eq!(cache.dirty_since(5), Some(SimTime::ZERO));
        assert_eq!(pass(&mut cache, 5, 4), [400, 450]);
        assert_eq!(cache.dirty_since(5), Some(SimTime::from_ns(8)), "what was behind the pass");
        assert_eq!(pass(&mut cache, 5, 4), [0, 10]);
        assert_eq!((pass(&mut cache, 5, 4), cache.dirty_total()), (vec![], 0));
    }

    #[test]
    fn a_pass_with_nothing_before_it_begins_again_at_once() {
        let mut cache = PageCache::new(100);
        [1, 2, 3].into_iter().for_each(|index| write(&mut cache, 5, index));
        assert_eq!(pass(&mut cache, 5, 2), [1, 2]);
        cache.mark_clean(5, 3);
        write(&mut cache, 5, 0);
        assert_eq!(pass(&mut cache, 5, 2), [0]);
    }
}
