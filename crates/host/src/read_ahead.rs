//! Read-ahead as Linux's page cache does it (mm/readahead.c, 6.1): a window for each reader, which
//! grows while reads follow each other, and of which a part is read before it is asked for.
//!
//! A window is pages of a file. Where a reader comes upon a page that is not in memory, it waits
//! for a window that begins there. A mark in the window is where the next one is asked for, which
//! nobody waits for. All figures are the kernel's.

use std::ops::Range;

/// The greatest windows, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAheadLimits {
    /// Pages of a window (Linux: `read_ahead_kb`).
    pub pages: u64,
    /// Pages of a window for a call that asks for more than that (`max_sectors_kb`).
    pub call_pages: u64,
}

impl ReadAheadLimits {
    /// The greatest window for a call that asks for so many pages.
    fn most(self, wanted: u64) -> u64 {
        if wanted > self.pages { self.pages.max(self.call_pages.min(wanted)) } else { self.pages }
    }
}

/// The window of one reader of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadAhead {
    start: u64,
    size: u64,
    /// Pages from the mark to the end.
    ahead: u64,
    /// The page at which the last read ended.
    ended: Option<u64>,
}

/// The first window for a read of so many pages: `get_init_ra_size`.
fn first_size(wanted: u64, most: u64) -> u64 {
    let size = wanted.next_power_of_two();
    match size {
        _ if size <= most / 32 => size * 4,
        _ if size <= most / 4 => size * 2,
        _ => most,
    }
}

/// The window after one of so many pages: `get_next_ra_size`.
const fn next_size(size: u64, most: u64) -> u64 {
    match size {
        _ if size < most / 16 => size * 4,
        _ if size <= most / 2 => size * 2,
        _ => most,
    }
}

impl ReadAhead {
    /// The page at which the next window is asked for; `None` without a window.
    pub fn mark(&self) -> Option<u64> {
        (self.size > 0).then(|| self.start + self.size - self.ahead)
    }

    /// The page behind the window.
    fn next_start(&self) -> Option<u64> {
        (self.size > 0).then_some(self.start + self.size)
    }

    /// Pages to read and to wait for when page `index` is not in memory and a call asks for
    /// `wanted` pages from there. `before` is the number of pages just before it that are in memory.
    pub fn miss(
        &mut self,
        index: u64,
        wanted: u64,
        before: u64,
        limits: ReadAheadLimits,
    ) -> Range<u64> {
        let most = limits.most(wanted);
        if index > 0 && (self.mark() == Some(index) || self.next_start() == Some(index)) {
            (self.start, self.size) = (self.start + self.size, next_size(self.size, most));
            self.ahead = self.size;
            return if self.start == index {
                self.begin(index, self.size, self.size, most)
            } else {
                index..self.start + self.size
            };
        }
        let follows = self.ended.is_some_and(|ended| index == ended || index == ended + 1);
        if index == 0 || wanted > most || follows {
            let size = first_size(wanted, most);
            let ahead = if size > wanted { size - wanted } else { size };
            return self.begin(index, size, ahead, most);
        }
        if before > wanted {
            // as many pages in memory as the file has before it: read from the start, so twice
            let history = if before >= index { before * 2 } else { before };
            return self.begin(index, (history + wanted).min(most), 1, most);
        }
        index..index + wanted
    }

    /// Begins a window at a page that is asked for. If its mark would be that very page, the next
    /// window is part of it.
    fn begin(&mut self, index: u64, size: u64, ahead: u64, most: u64) -> Range<u64> {
        (self.start, self.size, self.ahead) = (index, size, ahead);
        if size == ahead {
            let more = next_size(size, most);
            (self.size, self.ahead) =
                if size + more <= most { (size + more, more) } else { (most, most / 2) };
        }
        index..index + self.size
    }

    /// Pages to read without waiting for them when a call that asks for `wanted` pages comes upon
    /// the mark.
    pub fn at_mark(&mut self, wanted: u64, limits: ReadAheadLimits) -> Range<u64> {
        self.start += self.size;
        self.size = next_size(self.size, limits.most(wanted));
        self.ahead = self.size;
        self.start..self.start + self.size
    }

    /// A read has ended before page `end`, or within it.
    pub fn ended(&mut self, end: u64) {
        self.ended = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ReadAheadLimits = ReadAheadLimits { pages: 32, call_pages: 320 };

    /// Reads in order from page 0, so many pages a call; the windows that were asked for, with
    /// whether the reader waits for them.
    fn in_order(each: u64, calls: u64) -> Vec<(Range<u64>, bool)> {
        let (mut reader, mut windows, mut have) = (ReadAhead::default(), Vec::new(), 0);
        for call in 0..calls {
            let end = (call + 1) * each;
            for page in call * each..end {
                if page >= have {
                    let window = reader.miss(page, end - page, 0, LIMITS);
                    have = window.end;
                    windows.push((window, true));
                }
                if reader.mark() == Some(page) {
                    let window = reader.at_mark(end - page, LIMITS);
                    assert_eq!(window.start, have, "windows lie side by side");
                    have = window.end;
                    windows.push((window, false));
                }
            }
            reader.ended(end);
        }
        windows
    }

    #[test]
    fn windows_of_a_reader_of_small_blocks_grow_to_the_greatest() {
        // what Linux 6.1 does with reads of 4 KiB and 128 KiB: 4, 8, 16, 32, 32 pages
        let expected =
            [(0..4, true), (4..12, false), (12..28, false), (28..60, false), (60..92, false)];
        assert_eq!(in_order(1, 60)[..5], expected);
        assert!(in_order(1, 500).iter().skip(1).all(|(_, waits)| !waits), "never again");
    }

    #[test]
    fn large_calls_have_windows_of_their_own_size() {
        // 1 MiB: the mark lies halfway, where half a call is left to be read
        let windows = in_order(256, 4);
        assert_eq!(windows[..3], [(0..256, true), (256..384, false), (384..640, false)]);
        assert_eq!(in_order(64, 2)[0], (0..64, true));
    }

    #[test]
    fn reads_at_random_read_what_they_ask_for() {
        let mut reader = ReadAhead::default();
        for page in [1000, 17, 40_000] {
            assert_eq!(reader.miss(page, 2, 0, LIMITS), page..page + 2);
            reader.ended(page + 2);
        }
        assert_eq!(reader.mark(), None);
        let window = reader.miss(40_002, 1, 0, LIMITS);
        assert_eq!(window, 40_002..40_006, "two reads that follow each other");
    }

    #[test]
    fn pages_in_memory_before_a_miss_tell_of_a_sequence() {
        let mut reader = ReadAhead::default();
        assert_eq!(reader.miss(100, 1, 6, LIMITS), 100..107);
        assert_eq!(reader.mark(), Some(106));
        assert_eq!(reader.miss(9, 1, 9, LIMITS), 9..28, "all from the start");
        assert_eq!(reader.miss(500, 1, 1, LIMITS), 500..501, "one is none");
    }
}
