//! Sizes of files: a log-normal body with a Pareto tail.

use dovetail_time::Rng;

use super::error::FileSetError;
use super::{Amount, FileSetConfig, MOST_FILES};
use crate::draw::{normal, uniform};

/// A set of given bytes is full when less than this share is left: half of what is promised.
const LEFT_OVER: u64 = 200;
/// Files of given number and sum come to the sum to one part in so many: Impressions' tolerance of
/// 5 % (its beta).
const TOLERANCE: u64 = 20;
/// Draws for a set of given number and sum, at most (assumed: some seconds).
const MOST_DRAWS: u64 = 1 << 25;
/// So many draws in a row that do not fit into what is left: the last file takes the rest.
const MOST_MISSES: u32 = 1000;

/// File sizes by count: with probability `body` log-normal, else Pareto (Impressions, table 2,
/// "file size by count").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeModel {
    /// Share of the log-normal body, 0 to 1 (the paper's alpha1).
    pub body: f64,
    /// Mean of the size's natural logarithm.
    pub mu: f64,
    /// Standard deviation of the size's natural logarithm.
    pub sigma: f64,
    /// Shape of the Pareto tail.
    pub k: f64,
    /// Smallest size of the tail in bytes.
    pub xm: f64,
}

impl Default for SizeModel {
    fn default() -> Self {
        Self { body: 0.99994, mu: 9.48, sigma: 2.46, k: 0.91, xm: 512.0 * 1024.0 * 1024.0 }
    }
}

impl SizeModel {
    /// The share of files of at most `size` bytes, in theory.
    pub fn cumulative(&self, size: f64) -> f64 {
        if size <= 0.0 {
            return 0.0;
        }
        let standard = (libm::log(size) - self.mu) / self.sigma;
        let body = 0.5 * libm::erfc(-standard * std::f64::consts::FRAC_1_SQRT_2);
        let tail = if size > self.xm { 1.0 - libm::pow(self.xm / size, self.k) } else { 0.0 };
        self.body * body + (1.0 - self.body) * tail
    }

    pub(super) fn check(&self) -> Result<(), FileSetError> {
        let figures = [
            ("body", self.body, (0.0, 1.0), "0 to 1"),
            ("mu", self.mu, (0.0, 40.0), "0 to 40"),
            ("sigma", self.sigma, (0.01, 10.0), "0.01 to 10"),
            ("k", self.k, (0.1, 10.0), "0.1 to 10"),
            ("xm", self.xm, (1.0, 1e15), "1 to 1e15 bytes"),
        ];
        let wrong = figures
            .into_iter()
            .find(|(_, value, (least, most), _)| !(least..=most).contains(&value));
        wrong.map_or(Ok(()), |(key, value, _, allowed)| {
            Err(FileSetError::Value { key, value, allowed })
        })
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let size = if rng.chance(self.body) {
            libm::exp(self.mu + self.sigma * normal(rng))
        } else {
            self.xm * libm::pow(1.0 - uniform(rng), -1.0 / self.k)
        };
        size as u64
    }
}

/// The sizes of a set.
pub(super) fn draw(config: &FileSetConfig, rng: &mut Rng) -> Result<Vec<u64>, FileSetError> {
    match config.amount {
        Amount::Files(count) if count > MOST_FILES => {
            Err(FileSetError::TooMany { most: MOST_FILES })
        }
        Amount::Files(count) => {
            Ok((0..count).map(|_| below(config, config.largest(), rng)).collect())
        }
        Amount::FilesOfBytes { files, .. } if files > MOST_FILES => {
            Err(FileSetError::TooMany { most: MOST_FILES })
        }
        Amount::FilesOfBytes { files, bytes } => with_sum(config, files, bytes, rng),
        Amount::Bytes(bytes) => fill(config, bytes, rng),
    }
}

/// A size of at most `most` bytes; after many that are larger, `most` itself.
fn below(config: &FileSetConfig, most: u64, rng: &mut Rng) -> u64 {
    (0..MOST_MISSES).map(|_| config.sizes.draw(rng)).find(|size| *size <= most).unwrap_or(most)
}

/// Sizes that come to `bytes`: what does not fit into the rest is drawn again.
fn fill(config: &FileSetConfig, bytes: u64, rng: &mut Rng) -> Result<Vec<u64>, FileSetError> {
    let mut sizes = Vec::new();
    let mut left = bytes;
    while left > bytes / LEFT_OVER {
        if sizes.len() as u64 >= MOST_FILES {
            return Err(FileSetError::TooMany { most: MOST_FILES });
        }
        let size = below(config, left.min(config.largest()), rng);
        sizes.push(size);
        left -= size;
    }
    Ok(sizes)
}

/// So many sizes that come to `bytes`: sets are drawn until one does, so that sizes follow the model,
/// given their sum. Impressions puts extra samples in the place of others (section 3.4), which moves
/// all sizes where the sum is far from what the model gives.
fn with_sum(
    config: &FileSetConfig,
    files: u64,
    bytes: u64,
    rng: &mut Rng,
) -> Result<Vec<u64>, FileSetError> {
    let sets = MOST_DRAWS / files.max(1);
    let mut sets = (0..sets)
        .map(|_| (0..files).map(|_| below(config, config.largest(), rng)).collect::<Vec<_>>());
    let is_met = |sizes: &Vec<u64>| sizes.iter().sum::<u64>().abs_diff(bytes) <= bytes / TOLERANCE;
    sets.find(is_met).ok_or(FileSetError::Sum { files, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest distance between the sample and the theory below `most` (Kolmogorov and
    /// Smirnov).
    fn distance(model: &SizeModel, sizes: &[u64], most: u64) -> f64 {
        let mut sorted = sizes.to_vec();
        sorted.sort_unstable();
        let n = sorted.len() as f64;
        let whole = model.cumulative(most as f64 + 1.0);
        // A size of x bytes stands for all from x up to x + 1.
        let theory = |size: u64| model.cumulative(size as f64 + 1.0) / whole;
        let ends = (0..sorted.len()).filter(|&i| sorted.get(i + 1) != Some(&sorted[i]));
        ends.map(|i| ((i + 1) as f64 / n - theory(sorted[i])).abs()).fold(0.0, f64::max)
    }

    /// Distance that a sample of `n` exceeds once in a hundred times.
    fn critical(n: usize) -> f64 {
        1.63 / (n as f64).sqrt()
    }

    #[test]
    fn sizes_follow_the_paper() {
        let config = FileSetConfig::new(Amount::Files(200_000));
        let sizes = draw(&config, &mut Rng::new(1)).unwrap();
        let (found, most) =
            (distance(&config.sizes, &sizes, config.largest()), critical(sizes.len()));
        assert!(found < most, "{found} of {most}");
        let other = SizeModel { sigma: 2.5, ..config.sizes };
        assert!(
            distance(&other, &sizes, config.largest()) > most,
            "the test would not see another sigma"
        );
    }

    #[test]
    fn the_tail_follows_the_paper() {
        let mut config = FileSetConfig::new(Amount::Files(50_000));
        config.sizes.body = 0.0;
        let sizes = draw(&config, &mut Rng::new(2)).unwrap();
        assert!(distance(&config.sizes, &sizes, config.largest()) < critical(sizes.len()));
        let other = SizeModel { k: 0.95, ..config.sizes };
        assert!(distance(&other, &sizes, config.largest()) > critical(sizes.len()));
    }

    #[test]
    fn a_fill_keeps_the_distribution_and_comes_within_1_percent() {
        for gib in [1u64, 4] {
            let config = FileSetConfig::new(Amount::Bytes(gib << 30));
            let sizes = draw(&config, &mut Rng::new(gib)).unwrap();
            let share = sizes.iter().sum::<u64>() as f64 / (gib << 30) as f64;
            assert!((0.99..=1.0).contains(&share), "{share}");
            assert!(distance(&config.sizes, &sizes, config.largest()) < critical(sizes.len()));
            assert!(sizes.len() > 1000);
        }
    }

    #[test]
    fn a_small_fill_is_met_too() {
        for bytes in [0u64, 1, 1000, 4096, 1 << 20] {
            let config = FileSetConfig::new(Amount::Bytes(bytes));
            let total: u64 = draw(&config, &mut Rng::new(3)).unwrap().iter().sum();
            assert!(total <= bytes && total >= bytes - bytes / 100, "{total} of {bytes}");
        }
    }

    #[test]
    fn files_of_given_number_come_to_the_bytes_or_are_refused() {
        for (files, bytes) in [(3000, 3_600_000_000), (100, 100_000_000), (10, 1_000_000)] {
            let config = FileSetConfig::new(Amount::FilesOfBytes { files, bytes });
            for seed in 0..5 {
                let sizes = draw(&config, &mut Rng::new(seed)).unwrap();
                let sum: u64 = sizes.iter().sum();
                assert_eq!(sizes.len() as u64, files);
                assert!(sum.abs_diff(bytes) <= bytes / 20, "{sum} of {bytes}");
            }
        }
        let impossible =
            FileSetConfig::new(Amount::FilesOfBytes { files: 1 << 16, bytes: 1 << 20 });
        let error = draw(&impossible, &mut Rng::new(1)).unwrap_err().to_string();
        assert!(
            error.contains("65536 files of these sizes do not come to 1048576 bytes"),
            "{error}"
        );
    }
}
