//! Memory that points may take at a time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// An amount that is shared: who needs more than is left waits.
#[derive(Debug)]
pub struct Budget {
    total: u64,
    left: Mutex<u64>,
    returned: Condvar,
}

/// A part of a budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    budget: &'a Budget,
    amount: u64,
}

impl Budget {
    /// So many bytes in all.
    pub const fn new(bytes: u64) -> Self {
        Self { total: bytes, left: Mutex::new(bytes), returned: Condvar::new() }
    }

    /// Waits for `bytes`. One that needs more than there is in all gets all of it, alone.
    pub(crate) fn take(&self, bytes: u64) -> Part<'_> {
        let amount = bytes.min(self.total);
        let mut left = self.lock();
        while *left < amount {
            left = self.returned.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
        *left -= amount;
        Part { budget: self, amount }
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        *self.budget.lock() += self.amount;
        self.budget.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn no_more_than_all_is_given_at_a_time() {
        let (budget, now, most) = (Budget::new(10), AtomicU64::new(0), AtomicU64::new(0));
        dovetail_lab::run_all(&[3, 4, 5, 20, 6, 1, 9, 2], 8, |_, need| {
            let part = budget.take(*need);
            let sum = now.fetch_add(part.amount, Ordering::SeqCst) + part.amount;
            most.fetch_max(sum, Ordering::SeqCst);
            now.fetch_sub(part.amount, Ordering::SeqCst);
        });
        assert_eq!(most.into_inner(), 10, "20 gets all");
        assert_eq!(*budget.lock(), 10);
    }
}
