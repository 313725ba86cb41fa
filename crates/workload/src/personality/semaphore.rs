//! The pair of semaphores behind `semblock` and `sempost` (`flowoplib_semblock`, the System V
//! branch).
//!
//! Each instance of a `semblock` has its own pair. `low` counts what was posted to it, `high` how
//! much more may be posted by those who post with `blocking`.

#[derive(Clone, Copy, Debug)]
pub(super) struct Semaphore {
    low: u64,
    high: u64,
}

impl Semaphore {
    pub(super) fn new(highwater: u64) -> Self {
        Self { low: 0, high: highwater }
    }

    /// A `semblock` begins: it lets in `value` more posts.
    pub(super) fn let_in(&mut self, value: u64) {
        self.high = self.high.saturating_add(value);
    }

    /// A `semblock` goes on if `value` was posted.
    pub(super) fn take(&mut self, value: u64) -> bool {
        let enough = self.low >= value;
        if enough {
            self.low -= value;
        }
        enough
    }

    /// A `sempost`; false if it has to wait.
    pub(super) fn post(&mut self, value: u64, blocking: bool) -> bool {
        if blocking {
            let Some(left) = self.high.checked_sub(value) else { return false };
            self.high = left;
        }
        self.low = self.low.saturating_add(value);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_wait_at_the_high_water_and_blocks_wait_for_posts() {
        let mut semaphore = Semaphore::new(2);
        assert!(semaphore.post(1, true) && semaphore.post(1, true));
        assert!(!semaphore.post(1, true), "the high water is reached");
        assert!(semaphore.post(1, false), "who does not block may always post");
        semaphore.let_in(4);
        assert!(!semaphore.take(4), "three were posted");
        assert!(semaphore.post(1, true));
        assert!(semaphore.take(4) && !semaphore.take(1));
    }
}
