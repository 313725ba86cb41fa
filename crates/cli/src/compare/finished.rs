//! The points that sweeps have finished. Those that one side has not are left out: a missing run is
//! no change.

use std::collections::BTreeSet;

use dovetail_sweep::Point;

use crate::sources::Source;

/// Values of a point on the axes, in no order: they tell it from the others of its sweep.
type Values = BTreeSet<(String, String)>;

/// Takes out the points that one side has not finished, on both sides; of repetitions, too. Returns
/// the names of the points that each side has not finished.
pub(super) fn leave_out_unfinished(sides: [&mut Source; 2]) -> [Vec<String>; 2] {
    let unfinished = sides.each_ref().map(|side| unfinished(side));
    let left_out: BTreeSet<Values> = unfinished.iter().flatten().map(values).collect();
    for side in sides {
        let Source::Sweep(sweep, records) = side else { continue };
        for point in sweep.points().iter().filter(|point| left_out.contains(&values(point))) {
            records.remove(&point.number);
        }
    }
    unfinished.map(|points| points.iter().map(name).collect())
}

fn unfinished(source: &Source) -> Vec<Point> {
    let Source::Sweep(sweep, records) = source else { return Vec::new() };
    let points = sweep.points().iter();
    points.filter(|point| !records.contains_key(&point.number)).cloned().collect()
}

fn values(point: &Point) -> Values {
    point.values.iter().cloned().collect()
}

fn name(point: &Point) -> String {
    if point.values.is_empty() { "all".into() } else { point.name() }
}
