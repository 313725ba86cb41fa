//! Combinations of the axes' values, with the runs of each.

use super::{Swept, SweptPoint, SweptRun};

/// The axis whose points are repetitions.
const SEED: &str = "seed";
/// The axis of points that have several runs.
const RUN: &str = "run";
/// The value of a point that does not have an axis.
const NONE: &str = "\u{2013}";

/// An axis with several values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) name: String,
    /// Values, in the order in which points first have them.
    pub(super) values: Vec<String>,
}

/// A combination: its place on each axis, and its runs.
#[derive(Clone, Debug)]
pub(super) struct Cell<'a> {
    pub(super) at: Vec<usize>,
    pub(super) runs: Vec<&'a SweptRun>,
}

/// All combinations that have a run.
#[derive(Clone, Debug)]
pub(super) struct Grid<'a> {
    pub(super) axes: Vec<Axis>,
    /// Axes on which all runs have one value: they tell nothing apart.
    pub(super) constant: Vec<Axis>,
    pub(super) cells: Vec<Cell<'a>>,
}

impl<'a> Grid<'a> {
    pub(super) fn of(swept: &'a Swept) -> Self {
        let has_runs = swept.points.iter().any(|point| {
            let first = point.runs.first().map(|run| repeated(&run.label));
            point.runs.iter().any(|run| Some(repeated(&run.label)) != first)
        });
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in swept.points.iter().flat_map(|point| &point.values) {
            if name != SEED && !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let with_runs = names.into_iter().chain(has_runs.then_some(RUN));
        let mut axes: Vec<Axis> =
            with_runs.map(|name| Axis { name: name.into(), values: Vec::new() }).collect();
        let mut cells: Vec<Cell<'a>> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for point in &swept.points {
            for run in &point.runs {
                let at: Vec<usize> = axes
                    .iter_mut()
                    .map(|axis| place(axis, value(point, run, &axis.name)))
                    .collect();
                let cell = *places.entry(at.clone()).or_insert_with(|| {
                    cells.push(Cell { at, runs: Vec::new() });
                    cells.len() - 1
                });
                cells[cell].runs.push(run);
            }
        }
        Self { axes, constant: Vec::new(), cells }.without_constant_axes()
    }

    /// Moves axes of one value to `constant`, and drops those without any.
    fn without_constant_axes(mut self) -> Self {
        let kept: Vec<bool> = self.axes.iter().map(|axis| axis.values.len() > 1).collect();
        let (axes, constant) = self.axes.into_iter().partition(|axis| axis.values.len() > 1);
        (self.axes, self.constant) = (axes, constant);
        self.constant.retain(|axis| !axis.values.is_empty());
        for cell in &mut self.cells {
            let mut keep = kept.iter();
            cell.at.retain(|_| *keep.next().unwrap_or(&true));
        }
        self
    }

    /// A combination in words, with the axes that `is_named` takes by their place: `op 7, gc
    /// greedy`.
    pub(super) fn name(&self, cell: usize, is_named: impl Fn(usize) -> bool) -> String {
        let each = self.axes.iter().zip(&self.cells[cell].at).enumerate();
        let named = each.filter(|(place, _)| is_named(*place));
        let named = named.map(|(_, (axis, at))| format!("{} {}", axis.name, axis.values[*at]));
        named.collect::<Vec<_>>().join(", ")
    }

    /// Factor by which a figure depends on each axis: greatest over least value along it, all else
    /// being equal; geometric mean over all that is else. 1 where nothing depends on it.
    pub(super) fn effects(&self, means: &[Option<f64>]) -> Vec<f64> {
        (0..self.axes.len()).map(|axis| self.effect(axis, means)).collect()
    }

    fn effect(&self, axis: usize, means: &[Option<f64>]) -> f64 {
        let mut along: std::collections::BTreeMap<Vec<usize>, Vec<f64>> = Default::default();
        for (cell, mean) in self.cells.iter().zip(means) {
            let mut others = cell.at.clone();
            others.remove(axis);
            along.entry(others).or_default().extend(mean.filter(|mean| *mean > 0.0));
        }
        let ratio = |values: &Vec<f64>| {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(0.0, f64::max);
            (values.len() > 1).then(|| (most / least).ln())
        };
        let logs: Vec<f64> = along.values().filter_map(ratio).collect();
        (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
    }
}

fn value<'p>(point: &'p SweptPoint, run: &'p SweptRun, axis: &str) -> &'p str {
    if axis == RUN && !point.values.iter().any(|(name, _)| name == RUN) {
        return repeated(&run.label);
    }
    let found = point.values.iter().find(|(name, _)| name == axis);
    found.map_or(NONE, |(_, value)| value)
}

/// The label of a run without the number of its repetition.
fn repeated(label: &str) -> &str {
    let split = label.rsplit_once(" #");
    split.filter(|(_, number)| number.parse::<u32>().is_ok()).map_or(label, |(name, _)| name)
}

fn place(axis: &mut Axis, value: &str) -> usize {
    let known = axis.values.iter().position(|known| known == value);
    known.unwrap_or_else(|| {
        axis.values.push(value.into());
        axis.values.len() - 1
    })
}
