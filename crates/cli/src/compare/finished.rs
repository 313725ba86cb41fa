//! The points that sweeps have finished. Those that one side has not are left out: a missing run is
//! no change.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_lab::compare::Run;
use dovetail_sweep::{Point, Record, Sweep};

use crate::Failure;
use crate::sources::Source;

/// Error that marks a point until its runs are taken out.
const LEFT_OUT: &str = "left out of the comparison";

/// Values of a point on the axes, in no order: they tell it from the others of its sweep.
type Values = BTreeSet<(String, String)>;

/// Marks the points that a side has not finished, on the other side, too, also of repetitions. Returns the names of the points that each side has not finished.
pub(super) fn leave_out_unfinished(sides: [&mut Source; 2]) -> [Vec<String>; 2] {
    let unfinished = sides.each_ref().map(|side| unfinished(side));
    let left_out: BTreeSet<Values> = unfinished.iter().flatten().map(values).collect();
    for side in sides {
        if let Source::Sweep(sweep, records) = side {
            mark(sweep, records, &left_out);
        }
    }
    unfinished.map(|points| points.iter().map(name).collect())
}

/// The runs of a source without those of points that are marked.
pub(super) fn runs(source: &Source) -> Result<Vec<Run>, Failure> {
    let mut runs = source.runs()?;
    runs.retain(|run| run.error.as_deref() != Some(LEFT_OUT));
    Ok(runs)
}

fn unfinished(source: &Source) -> Vec<Point> {
    let Source::Sweep(sweep, records) = source else { return Vec::new() };
    let points = sweep.points().iter();
    points.filter(|point| !records.contains_key(&point.number)).cloned().collect()
}

fn mark(sweep: &Sweep, records: &mut BTreeMap<u32, Record>, left_out: &BTreeSet<Values>) {
    for point in sweep.points().iter().filter(|point| left_out.contains(&values(point))) {
        let record = Record { point: point.number, runs: Vec::new(), error: Some(LEFT_OUT.into()) };
        records.insert(point.number, record);
    }
}

fn values(point: &Point) -> Values {
    point.values.iter().cloned().collect()
}

fn name(point: &Point) -> String {
    if point.values.is_empty() { "all".into() } else { point.name() }
}
