//! Draws from distributions. The functions are libm's own, not the machine's, so that every machine
//! draws the same.

use std::f64::consts::TAU;

use dovetail_time::Rng;

/// A uniform number in `[0, 1)`.
pub(crate) fn uniform(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A number of the standard normal distribution (Box and Muller, 1958).
pub(crate) fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - uniform(rng))).sqrt();
    radius * libm::cos(TAU * uniform(rng))
}

/// A number of the gamma distribution (Marsaglia and Tsang, "A simple method for generating gamma
/// variables", TOMS 2000). `shape` and `mean` are above 0; the standard deviation is
/// `mean / sqrt(shape)`.
pub(crate) fn gamma(rng: &mut Rng, shape: f64, mean: f64) -> f64 {
    let scale = mean / shape;
    if shape < 1.0 {
        let boost = libm::pow(1.0 - uniform(rng), 1.0 / shape);
        return scale * boost * standard_gamma(rng, shape + 1.0);
    }
    scale * standard_gamma(rng, shape)
}

fn standard_gamma(rng: &mut Rng, shape: f64) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
        if v > 0.0 && libm::log(1.0 - uniform(rng)) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 100_000;

    fn mean_and_variance(mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let drawn: Vec<f64> = (0..DRAWS).map(|_| draw()).collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(DRAWS);
        let variance =
            drawn.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(DRAWS);
        (mean, variance)
    }

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut rng = Rng::new(1);
        let (mean, variance) = mean_and_variance(|| normal(&mut rng));
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }

    #[test]
    fn gamma_numbers_have_their_mean_and_variance() {
        for shape in [0.5, 1.5, 4.0] {
            let mut rng = Rng::new(2);
            let (mean, variance) = mean_and_variance(|| gamma(&mut rng, shape, 1000.0));
            let wanted = 1000.0 * 1000.0 / shape;
            assert!((mean / 1000.0 - 1.0).abs() < 0.02, "{shape}: mean {mean}");
            assert!(
                (variance / wanted - 1.0).abs() < 0.05,
                "{shape}: variance {variance}, {wanted} in theory"
            );
        }
    }
}
