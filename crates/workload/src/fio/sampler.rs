//! Draws blocks from a distribution that is not uniform.
//!
//! Logarithms and powers are libm's, not the platform's, so that the same seed gives the same
//! blocks anywhere.

use dovetail_time::Rng;

use super::distribution::Distribution;
use super::permutation::Permutation;

/// Draws from `0..blocks`.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    blocks: u64,
    shape: Shape,
    /// Position of each rank. As with fio, ranks that follow each other are far apart.
    scattered: Permutation,
    /// Added to that, around the end.
    shift: u64,
}

#[derive(Clone, Debug)]
enum Shape {
    Zipf(Zipf),
    /// The exponent: log(h) / log(1 - h).
    Pareto(f64),
    /// Width in blocks of what is added to a mean of twelve.
    Normal(u64),
}

impl Sampler {
    /// `None` for distributions that are uniform, in parts at least.
    pub(super) fn new(distribution: &Distribution, blocks: u64, rng: &mut Rng) -> Option<Self> {
        let (shape, center) = match *distribution {
            Distribution::Uniform | Distribution::Zoned(_) => return None,
            Distribution::Zipf { theta, center } => (Shape::Zipf(Zipf::new(blocks, theta)), center),
            Distribution::Pareto { h, center } => {
                (Shape::Pareto(libm::log(h) / libm::log(1.0 - h)), center)
            }
            Distribution::Normal { deviation } => {
                let width = libm::ceil(blocks as f64 * deviation / 100.0) as u64;
                (Shape::Normal(width.min(blocks / 2)), None)
            }
        };
        let scattered = Permutation::new(blocks, rng);
        let shift = center.map_or(0, |center| {
            let at = (center * blocks as f64) as u64;
            (at + blocks - scattered.apply(0)) % blocks
        });
        Some(Self { blocks, shape, scattered, shift })
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        let rank = match &self.shape {
            Shape::Zipf(zipf) => zipf.draw(rng),
            Shape::Pareto(exponent) => {
                (libm::pow(unit(rng), *exponent) * (self.blocks - 1) as f64) as u64 % self.blocks
            }
            Shape::Normal(width) => normal(self.blocks, *width, rng),
        };
        (self.scattered.apply(rank) + self.shift) % self.blocks
    }
}

/// Uniform in (0, 1).
pub(super) fn unit(rng: &mut Rng) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// fio's normal distribution of ranks (its logs, 3.33): the mean of twelve uniform numbers, which
/// alone deviates by a twelfth of the blocks, and a uniform one of the width given. That one is
/// halved until the sum is a block.
fn normal(blocks: u64, width: u64, rng: &mut Rng) -> u64 {
    const NUMBERS: u64 = 12;
    let sum: u64 = (0..NUMBERS).map(|_| rng.below(blocks + 1)).sum();
    let mean = sum.div_ceil(NUMBERS) as i64;
    let mut off = if width > 0 { rng.below(width) as i64 - (width / 2) as i64 } else { 0 };
    while off != 0 && !(0..blocks as i64).contains(&(mean + off)) {
        off /= 2;
    }
    (mean + off) as u64 % blocks
}

/// Rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", ACM TOMACS 6, 1996): exact, and no sum over all blocks first.
#[derive(Clone, Debug)]
struct Zipf {
    n: u64,
    theta: f64,
    h_first: f64,
    h_last: f64,
    shift: f64,
}

impl Zipf {
    fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Self { n, theta, h_first: 0.0, h_last: 0.0, shift: 0.0 };
        zipf.h_first = zipf.integral(1.5) - 1.0;
        zipf.h_last = zipf.integral(n as f64 + 0.5);
        zipf.shift = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// A rank from 0.
    fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.h_last + unit(rng) * (self.h_first - self.h_last);
            let x = self.inverse(u);
            let k = libm::floor(x + 0.5).clamp(1.0, self.n as f64);
            if k - x <= self.shift || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64 - 1;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        libm::pow(x, -self.theta)
    }

    /// Of the density; theta is never 1.
    fn integral(&self, x: f64) -> f64 {
        (libm::pow(x, 1.0 - self.theta) - 1.0) / (1.0 - self.theta)
    }

    fn inverse(&self, area: f64) -> f64 {
        libm::pow(
            (1.0 + area * (1.0 - self.theta)).max(f64::MIN_POSITIVE),
            1.0 / (1.0 - self.theta),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    /// Number of draws of each block, most frequent first.
    fn counts(distribution: &Distribution, blocks: u64) -> Vec<u64> {
        counts_of(DRAWS, distribution, blocks)
    }

    fn counts_of(draws: usize, distribution: &Distribution, blocks: u64) -> Vec<u64> {
        let mut rng = Rng::new(5);
        let sampler = Sampler::new(distribution, blocks, &mut rng).unwrap();
        let mut counts = vec![0; blocks as usize];
        for _ in 0..draws {
            counts[sampler.draw(&mut rng) as usize] += 1;
        }
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        counts
    }

    #[test]
    fn zipf_has_its_frequencies() {
        for theta in [0.5, 0.9, 1.2, 2.0] {
            let counts = counts(&Distribution::Zipf { theta, center: None }, 1000);
            let sum: f64 = (1..=1000).map(|k| f64::from(k).powf(-theta)).sum();
            for rank in [1_usize, 2, 5, 10] {
                let expected = DRAWS as f64 * (rank as f64).powf(-theta) / sum;
                let found = counts[rank - 1] as f64;
                assert!(
                    (found - expected).abs() < 6.0 * expected.sqrt() + 0.02 * expected,
                    "{theta} {rank} {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn pareto_gives_most_calls_to_few_blocks() {
        let counts = counts(&Distribution::Pareto { h: 0.2, center: None }, 10_000);
        let hot: u64 = counts[..2_000].iter().sum();
        assert!((0.78..0.83).contains(&(hot as f64 / DRAWS as f64)), "{hot}");
    }

    #[test]
    fn normal_has_the_frequencies_of_fio() {
        // Shares of the 100, 200 and 400 most frequent of 1,024 blocks in logs of fio 3.33:
        // rw=randread, bs=1m, filesize=1g, norandommap, ioengine=null, number_ios=40000.
        const CALLS: usize = 40_000;
        for (deviation, shares) in [
            (0.0, [0.438, 0.755, 0.983]),
            (20.0, [0.367, 0.656, 0.950]),
            (60.0, [0.214, 0.405, 0.734]),
        ] {
            let counts = counts_of(CALLS, &Distribution::Normal { deviation }, 1024);
            for (most, share) in [100, 200, 400].into_iter().zip(shares) {
                let ours = counts[..most].iter().sum::<u64>() as f64 / CALLS as f64;
                assert!((ours - share).abs() < 0.01, "{deviation} {most}: {ours}, fio {share}");
            }
        }
    }

    #[test]
    fn a_center_moves_the_most_frequent_block_and_scatters_the_others() {
        let mut rng = Rng::new(5);
        let zipf = Distribution::Zipf { theta: 1.2, center: Some(0.2) };
        let sampler = Sampler::new(&zipf, 1000, &mut rng).unwrap();
        let mut counts = [0_u64; 1000];
        for _ in 0..DRAWS {
            counts[sampler.draw(&mut rng) as usize] += 1;
        }
        let most = counts.iter().enumerate().max_by_key(|(_, count)| **count).unwrap();
        assert_eq!(most.0, 200);
        // 36 % if the ranks stood side by side
        let beside: u64 = counts[201..220].iter().sum();
        assert!((beside as f64) < 0.1 * DRAWS as f64, "{beside}");
    }

    #[test]
    fn extremes_stay_in_range() {
        let mut rng = Rng::new(5);
        for blocks in [1, 2, 3] {
            for distribution in [
                Distribution::Zipf { theta: 100.0, center: Some(1.0) },
                Distribution::Zipf { theta: 0.01, center: None },
                Distribution::Pareto { h: 0.99, center: Some(1.0) },
                Distribution::Normal { deviation: 99.0 },
                Distribution::Normal { deviation: 0.0 },
            ] {
                let sampler = Sampler::new(&distribution, blocks, &mut rng).unwrap();
                assert!((0..1000).all(|_| sampler.draw(&mut rng) < blocks), "{distribution:?}");
            }
        }
    }
}
