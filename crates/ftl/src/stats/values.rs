//! A distribution that takes little room while it is small.

use std::borrow::Cow;

use hdrhistogram::{Counter, Histogram};

/// Values kept as they are: a histogram of three digits takes as much as 2,000 of them, and there
/// may be one for each of thousands of threads.
const FEW: usize = 64;
/// Room that the first value makes.
const VERY_FEW: usize = 8;

/// Values with so many significant digits: the first ones as they are, more in a histogram that
/// grows as needed.
#[derive(Clone, Debug)]
pub struct Values<C: Counter> {
    digits: u8,
    few: Vec<u64>,
    many: Option<Box<Histogram<C>>>,
}

impl<C: Counter> Values<C> {
    /// No value; `digits` is 1 to 5.
    pub const fn new(digits: u8) -> Self {
        Self { digits, few: Vec::new(), many: None }
    }

    /// There is no value.
    pub fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_none()
    }

    /// Takes in a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        match &mut self.many {
            Some(many) => put(many, value),
            None => self.record_first(value),
        }
    }

    #[inline(never)]
    fn record_first(&mut self, value: u64) {
        if self.many.is_none() && self.few.len() < FEW {
            if self.few.len() == self.few.capacity() {
                // twice in all: most have either very few or more than FEW
                let more = if self.few.is_empty() { VERY_FEW } else { FEW - self.few.len() };
                self.few.reserve_exact(more);
            }
            self.few.push(value);
        } else {
            put(self.grown(), value);
        }
    }

    /// Takes in the values of `other`, which has as many digits.
    pub fn add(&mut self, other: &Self) {
        if let Some(many) = &other.many {
            let added = self.grown().add(&**many);
            debug_assert!(added.is_ok(), "the histogram grows as needed");
        }
        other.few.iter().for_each(|&value| self.record(value));
    }

    /// The values as a histogram.
    pub fn histogram(&self) -> Cow<'_, Histogram<C>> {
        if let Some(many) = &self.many {
            return Cow::Borrowed(many);
        }
        let mut histogram = empty(self.digits);
        self.few.iter().for_each(|&value| put(&mut histogram, value));
        Cow::Owned(histogram)
    }

    fn grown(&mut self) -> &mut Histogram<C> {
        let (digits, few) = (self.digits, std::mem::take(&mut self.few));
        let many = self.many.get_or_insert_with(|| Box::new(empty(digits)));
        few.into_iter().for_each(|value| put(many, value));
        many
    }
}

fn empty<C: Counter>(digits: u8) -> Histogram<C> {
    #[allow(clippy::expect_used, reason = "one to five digits are always accepted")]
    Histogram::new(digits).expect("one to five significant digits")
}

fn put<C: Counter>(histogram: &mut Histogram<C>, value: u64) {
    let recorded = histogram.record(value);
    debug_assert!(recorded.is_ok(), "the histogram grows as needed");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_and_many_give_what_a_histogram_gives() {
        for count in [0, 1, 5, FEW as u64, FEW as u64 + 1, 5000] {
            let (mut whole, mut left, mut right) =
                (Values::<u64>::new(3), Values::<u64>::new(3), Values::<u64>::new(3));
            let mut expected: Histogram<u64> = empty(3);
            for n in 0..count {
                let value = n * n * 7919 + 1;
                whole.record(value);
                if n % 3 == 0 {
                    left.record(value);
                } else {
                    right.record(value);
                }
                expected.record(value).unwrap();
            }
            left.add(&right);
            assert_eq!(whole.is_empty(), count == 0);
            assert!(*whole.histogram() == expected && *left.histogram() == expected, "{count}");
        }
    }

    #[test]
    fn a_few_values_take_no_histogram() {
        let mut values = Values::<u64>::new(3);
        (0..FEW as u64).for_each(|n| values.record(n << 40));
        assert!(values.many.is_none() && values.few.capacity() <= 2 * FEW);
    }
}
