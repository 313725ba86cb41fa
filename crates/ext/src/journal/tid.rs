//! Numbers of transactions.

use std::fmt;

/// The number of a transaction. Numbers wrap; of two, the later one is ahead by less than 2^31.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tid(pub u32);

impl Tid {
    /// The transaction after this one.
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The transaction that many after this one.
    pub const fn plus(self, transactions: u32) -> Self {
        Self(self.0.wrapping_add(transactions))
    }

    /// This one comes before `other`.
    pub const fn is_before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
