//! The policy of what counts as a change.

/// Values of a figure over the seeds of one configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Number of runs that have the figure.
    pub count: usize,
    /// Mean; `None` without values.
    pub mean: Option<f64>,
    /// Standard error of the mean; `None` below two values.
    pub error: Option<f64>,
}

impl Sample {
    /// The sample of some values.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len();
        // equal values have no error, not one of rounding
        let is_same = values.windows(2).all(|pair| pair[0] == pair[1]);
        let mean = || values.iter().sum::<f64>() / count as f64;
        let mean = values.first().map(|first| if is_same { *first } else { mean() });
        let error = mean.filter(|_| count > 1).map(|mean| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (count - 1) as f64 / count as f64).sqrt()
        });
        Self { count, mean, error }
    }
}

/// Judgement of a figure's change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both are the same to the last digit.
    Same,
    /// The difference is at most the threshold.
    Small,
    /// The difference is above the threshold, but other seeds alone make such differences.
    Spread,
    /// The difference is above the threshold and above what seeds make.
    Changed,
}

impl Verdict {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Small => "within threshold",
            Self::Spread => "within spread",
            Self::Changed => "changed",
        }
    }
}

/// A figure on both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The first side.
    pub a: Sample,
    /// The second side.
    pub b: Sample,
    /// Difference of the means in percent of the first; `None` where one side has none or the first
    /// is 0.
    pub percent: Option<f64>,
    /// Difference that seeds alone make in 1 of 20 comparisons, in percent of the first; `None`
    /// where neither side has several runs.
    pub spread_percent: Option<f64>,
    /// The judgement.
    pub verdict: Verdict,
}

/// Student's t for a two-sided test at 5 %, by degrees of freedom from 1 on.
const STUDENT: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
/// The same for more degrees of freedom than listed: that of 11 and that of 30, each of them for
/// all above.
const STUDENT_ABOVE: [(usize, f64); 2] = [(30, 2.042), (11, 2.201)];

fn student(freedom: usize) -> f64 {
    let listed = freedom.checked_sub(1).and_then(|at| STUDENT.get(at).copied());
    let above = STUDENT_ABOVE.iter().find(|(from, _)| freedom >= *from).map(|(_, t)| *t);
    listed.or(above).unwrap_or(f64::INFINITY)
}

/// Judges a figure by its values on both sides. `threshold` is in percent of the first side's mean;
/// at most that is no change. Above it, the difference has to exceed Student's t at 5 % times the
/// standard error of the difference, where a side has several values. The degrees of freedom are
/// those of the smaller sample that has any, which is on the careful side. A side with one value
/// has no known spread: it is taken to be that of the other side's values.
///
/// A side without any value is a change; so is a first mean of 0 beside another one,
/// unless seeds alone make as much.
pub fn change(a: &[f64], b: &[f64], threshold: f64) -> Change {
    let (a, b) = (Sample::of(a), Sample::of(b));
    let base = a.mean.filter(|mean| *mean != 0.0).map(f64::abs);
    let difference = a.mean.zip(b.mean).map(|(a, b)| b - a);
    let spread = spread(a, b);
    let of_base = |value: Option<f64>| base.zip(value).map(|(base, value)| value / base * 100.0);
    let (percent, spread_percent) = (of_base(difference), of_base(spread));
    let is_small = percent.is_some_and(|percent| percent.abs() <= threshold);
    let is_spread = difference.zip(spread).is_some_and(|(by, spread)| by.abs() <= spread);
    let verdict = match a.mean == b.mean {
        true => Verdict::Same,
        false if is_small => Verdict::Small,
        false if is_spread => Verdict::Spread,
        false => Verdict::Changed,
    };
    Change { a, b, percent, spread_percent, verdict }
}

/// The standard error of the difference times Student's t.
fn spread(a: Sample, b: Sample) -> Option<f64> {
    let freedom = [a, b].iter().filter(|side| side.count > 1).map(|side| side.count - 1).min()?;
    let error = match (a.error, b.error) {
        (Some(a), Some(b)) => a.hypot(b),
        (Some(error), None) => error.hypot(error_of_one(a)),
        (None, Some(error)) => error.hypot(error_of_one(b)),
        (None, None) => 0.0,
    };
    Some(student(freedom) * error)
}

/// The standard deviation of a sample, which is the error of a single value.
fn error_of_one(of: Sample) -> f64 {
    of.error.unwrap_or(0.0) * (of.count as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(a: &[f64], b: &[f64]) -> Verdict {
        change(a, b, 2.0).verdict
    }

    #[test]
    fn one_run_each_is_judged_by_the_threshold() {
        assert_eq!(verdict(&[1.0], &[1.0]), Verdict::Same);
        assert_eq!(verdict(&[100.0], &[102.0]), Verdict::Small);
        assert_eq!(verdict(&[100.0], &[97.9]), Verdict::Changed);
        assert_eq!(change(&[200.0], &[150.0], 2.0).percent, Some(-25.0));
        assert_eq!(change(&[200.0], &[150.0], 2.0).spread_percent, None);
        assert_eq!(change(&[100.0], &[100.1], 0.0).verdict, Verdict::Changed);
    }

    /// Means 100 and 106; variances 4 and 4 of three values: the error of the difference is
    /// sqrt(4/3 + 4/3) = 1.633, and t of two degrees of freedom is 4.303: 7.03.
    #[test]
    fn several_seeds_are_judged_by_their_spread() {
        let (a, b) = ([98.0, 100.0, 102.0], [104.0, 106.0, 108.0]);
        let found = change(&a, &b, 2.0);
        assert_eq!(found.verdict, Verdict::Spread);
        assert!((found.spread_percent.unwrap() - 7.027).abs() < 0.001, "{found:?}");
        assert_eq!(verdict(&a, &[106.0, 108.0, 110.0]), Verdict::Changed, "8 above 7.03");
        let many: Vec<f64> = a.iter().chain(&a).chain(&a).copied().collect();
        assert_eq!(verdict(&many, &[106.0]), Verdict::Changed, "more seeds see more");
    }

    /// A standard deviation of 2 on both sides: the error of the difference is
    /// 2 * sqrt(1/3 + 1) = 2.309, times 4.303.
    #[test]
    fn one_run_beside_several_spreads_as_they_do() {
        let (several, one) = ([98.0, 100.0, 102.0], [109.0]);
        let found = change(&several, &one, 2.0);
        assert_eq!(found.verdict, Verdict::Spread);
        assert!((found.spread_percent.unwrap() - 9.937).abs() < 0.001, "{found:?}");
        assert_eq!(verdict(&one, &several), Verdict::Spread);
        assert_eq!(verdict(&several, &[110.0]), Verdict::Changed);
    }

    #[test]
    fn seeds_that_agree_have_no_spread() {
        let sample = Sample::of(&[46.2; 3]);
        assert_eq!((sample.mean, sample.error), (Some(46.2), Some(0.0)), "to the last digit");
        assert_eq!(verdict(&[5.0; 3], &[6.0; 3]), Verdict::Changed);
    }

    #[test]
    fn a_figure_that_comes_or_goes_has_changed() {
        assert_eq!(verdict(&[], &[]), Verdict::Same);
        assert_eq!(verdict(&[], &[1.0]), Verdict::Changed);
        assert_eq!(verdict(&[1.0], &[]), Verdict::Changed);
        assert_eq!(verdict(&[0.0], &[3.0]), Verdict::Changed);
        assert_eq!(verdict(&[0.0, 0.0], &[0.0, 1.0]), Verdict::Spread, "one seed of two");
        assert_eq!(change(&[0.0], &[3.0], 2.0).percent, None);
    }

    #[test]
    fn students_t_falls_with_the_degrees_of_freedom() {
        let all: Vec<f64> = (1..100).map(student).collect();
        assert!(all.windows(2).all(|pair| pair[0] >= pair[1]), "{all:?}");
        assert_eq!(
            [student(1), student(10), student(11), student(99)],
            [12.706, 2.228, 2.201, 2.042]
        );
        assert_eq!(student(0), f64::INFINITY);
    }
}
