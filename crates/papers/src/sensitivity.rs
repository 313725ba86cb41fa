//! Sensitivity of a figure's main statement to costs of host and drive that no source gives, each
//! over a range.

use dovetail_lab::bench::{BenchError, Source, Stack};
use dovetail_lab::results::RunResult;
use serde::Serialize;

use super::{Plan, Setting, of};

/// A ratio of two stacks, over costs that are varied one at a time.
pub struct Sensitivity {
    /// Meaning of the ratio.
    pub what: &'static str,
    /// Its scale: 1 over this.
    pub reduced: u32,
    pub(crate) source: fn() -> Result<Source, BenchError>,
    pub(crate) drive: &'static str,
    /// The stack above, and the one below.
    pub(crate) stacks: [&'static str; 2],
    /// Figure of a run that is compared.
    pub(crate) figure: fn(&RunResult) -> f64,
    pub(crate) costs: &'static [Cost],
}

/// A cost and the values that it takes, its default among them.
pub(crate) struct Cost {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) values: &'static [f64],
    pub(crate) set: fn(&mut Stack, f64),
}

/// The ratio with one cost at one value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SensitivityPoint {
    /// The cost.
    pub cost: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its value; all others have their defaults.
    pub value: f64,
    /// The figure of each stack.
    pub figures: [f64; 2],
    /// The first over the second.
    pub ratio: f64,
}

impl Sensitivity {
    /// Runs both stacks with each cost at each of its values.
    ///
    /// # Errors
    /// The first run that failed.
    pub fn run(&self, setting: &Setting<'_>) -> Result<Vec<SensitivityPoint>, BenchError> {
        let source = (self.source)()?;
        let pairs =
            self.costs.iter().flat_map(|cost| cost.values.iter().map(move |value| (cost, *value)));
        let pairs: Vec<(&Cost, f64)> = pairs.collect();
        let mut stacks = Vec::new();
        for (cost, value) in &pairs {
            for mut stack in super::stacks_before_6_4(&self.stacks, self.drive)? {
                (cost.set)(&mut stack, *value);
                stack.name = name(&stack.name, cost, *value);
                stacks.push(stack);
            }
        }
        let plan = Plan { source: &source, fill: None, stacks, final_sync: false, restart: false };
        let results = setting.perform(&plan)?;
        let point = |(cost, value): (&Cost, f64)| {
            let [above, below] = self.stacks.map(|stack| of(&results, &name(stack, cost, value)));
            let figures = [(self.figure)(above?), (self.figure)(below?)];
            let ratio = figures[0] / figures[1];
            Ok(SensitivityPoint { cost: cost.name, unit: cost.unit, value, figures, ratio })
        };
        pairs.into_iter().map(point).collect()
    }
}

fn name(stack: &str, cost: &Cost, value: f64) -> String {
    format!("{stack}, {} = {value}", cost.name)
}
