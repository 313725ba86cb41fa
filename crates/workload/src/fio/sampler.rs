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
    placement: Placement,
}

#[derive(Clone, Debug)]
enum Shape {
    Zipf(Zipf),
    /// The exponent: log(h) / log(1 - h).
    Pareto(f64),
    /// Deviation and center in blocks.
    Normal(f64, f64),
}

/// Position of the most frequent block, and of those that follow it in rank.
#[derive(Clone, Debug)]
enum Placement {
    /// Anywhere.
    Scattered(Permutation),
    /// From this block on, around the end.
    From(u64),
}

impl Sampler {
    /// `None` for distributions that are uniform, in parts at least.
    pub(super) fn new(distribution: &Distribution, blocks: u64, rng: &mut Rng) -> Option<Self> {
        let mut place = |center: Option<f64>| match center {
            Some(center) => Placement::From((center * blocks as f64) as u64),
            None => Placement::Scattered(Permutation::new(blocks, rng)),
        };
        let (shape, placement) = match *distribution {
            Distribution::Uniform | Distribution::Zoned(_) => return None,
            Distribution::Zipf { theta, center } => {
                (Shape::Zipf(Zipf::new(blocks, theta)), place(center))
            }
            Distribution::Pareto { h, center } => {
                (Shape::Pareto(libm::log(h) / libm::log(1.0 - h)), place(center))
            }
            Distribution::Normal { deviation, center } => {
                let blocks = blocks as f64;
                (Shape::Normal(deviation / 100.0 * blocks, center * blocks), Placement::From(0))
            }
        };
        Some(Self { blocks, shape, placement })
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        let rank = match &self.shape {
            Shape::Zipf(zipf) => zipf.draw(rng),
            Shape::Pareto(exponent) => {
                (libm::pow(unit(rng), *exponent) * (self.blocks - 1) as f64) as u64 % self.blocks
            }
            Shape::Normal(deviation, center) => {
                let block = center + deviation * standard_normal(rng);
                libm::fmod(block + self.blocks as f64 * 1e3, self.blocks as f64) as u64
                    % self.blocks
            }
        };
        match &self.placement {
            Placement::Scattered(permutation) => permutation.apply(rank),
            Placement::From(first) => (rank + first) % self.blocks,
        }
    }
}

/// Uniform in (0, 1).
pub(super) fn unit(rng: &mut Rng) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Box and Muller, "A note on the generation of random normal deviates", 1958.
fn standard_normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(unit(rng)));
    radius * libm::cos(std::f64::consts::TAU * unit(rng))
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
        let mut rng = Rng::new(5);
        let sampler = Sampler::new(distribution, blocks, &mut rng).unwrap();
        let mut counts = vec![0; blocks as usize];
        for _ in 0..DRAWS {
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
    fn normal_is_centered() {
        let mut rng = Rng::new(5);
        let sampler =
            Sampler::new(&Distribution::Normal { deviation: 10.0, center: 0.5 }, 1000, &mut rng)
                .unwrap();
        let near = (0..DRAWS).filter(|_| (400..600).contains(&sampler.draw(&mut rng))).count();
        assert!((0.67..0.70).contains(&(near as f64 / DRAWS as f64)), "{near}");
    }

    #[test]
    fn extremes_stay_in_range() {
        let mut rng = Rng::new(5);
        for blocks in [1, 2, 3] {
            for distribution in [
                Distribution::Zipf { theta: 100.0, center: Some(1.0) },
                Distribution::Zipf { theta: 0.01, center: None },
                Distribution::Pareto { h: 0.99, center: Some(1.0) },
                Distribution::Normal { deviation: 100.0, center: 1.0 },
                Distribution::Normal { deviation: 0.0, center: 0.0 },
            ] {
                let sampler = Sampler::new(&distribution, blocks, &mut rng).unwrap();
                assert!((0..1000).all(|_| sampler.draw(&mut rng) < blocks), "{distribution:?}");
            }
        }
    }
}
