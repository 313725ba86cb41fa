//! A part of a sweep, for batch systems.

use std::str::FromStr;

/// Every so-manieth point: shard `index` of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// All points.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Returns whether the point with this number is one of the shard's.
    pub const fn has(self, number: u32) -> bool {
        number % self.count == self.index
    }

    /// Name of the file with the shard's results.
    pub(crate) fn file(self) -> String {
        format!("points-{}-of-{}.jsonl", self.index + 1, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    /// `1/4` to `4/4`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(i, n)| Some((i.parse().ok()?, n.parse::<u32>().ok()?)));
        match numbers {
            Some((index, count)) if (1..=count).contains(&index) => {
                Ok(Self { index: index - 1, count })
            }
            _ => Err("give a part such as 1/4, up to 4/4".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_divide_the_points() {
        let shards: Vec<Shard> =
            ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
        for number in 0..100 {
            assert_eq!(shards.iter().filter(|shard| shard.has(number)).count(), 1);
        }
        for bad in ["", "0/3", "4/3", "1", "a/b", "1/0"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
