//! Results of a scale: what it has put at its floor.

use std::fmt;

use dovetail_time::AtFloor;
use serde::{Deserialize, Serialize};

/// A figure that stands at its floor because of the scale.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FloorResult {
    /// Its key in the drive's profile, or its name.
    pub what: String,
    /// The unit of `value` and `asked`.
    pub unit: String,
    /// Its value: the floor.
    pub value: f64,
    /// The value that the scale asks for.
    pub asked: f64,
    /// The smallest scale at which it is not at its floor.
    pub from_scale: f64,
}

impl From<&AtFloor> for FloorResult {
    fn from(floor: &AtFloor) -> Self {
        let AtFloor { what, unit, value, asked, from_scale } = *floor;
        Self { what: what.into(), unit: unit.into(), value, asked, from_scale }
    }
}

/// A scale as it is given to `--scale`: not below the value.
fn scale(value: f64) -> String {
    match (1.0 / value + 1e-9).floor() {
        below if below > 1.0 => format!("1/{below}"),
        _ => "1".into(),
    }
}

/// At most two digits behind the point.
fn number(value: f64) -> String {
    format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').into()
}

impl fmt::Display for FloorResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, unit, value, asked, from_scale } = self;
        let (value, asked, from) = (number(*value), number(*asked), scale(*from_scale));
        write!(f, "{what} is at its floor: {value} {unit}, not the {asked} of the scale ")?;
        write!(f, "(in proportion from --scale {from} on)")
    }
}

/// The figures that stand at their floors in some of the runs, in a sentence each that begins with
/// those runs unless it is all.
pub fn floor_notes<'r>(
    runs: impl Iterator<Item = (&'r str, &'r [FloorResult])> + Clone,
) -> Vec<String> {
    let mut found: Vec<(&FloorResult, Vec<&str>)> = Vec::new();
    for (label, floors) in runs.clone() {
        for floor in floors {
            match found.iter_mut().find(|(known, _)| *known == floor) {
                Some((_, labels)) => labels.push(label),
                None => found.push((floor, vec![label])),
            }
        }
    }
    let all = runs.count();
    let note = |(floor, labels): (&FloorResult, Vec<&str>)| {
        if labels.len() == all {
            floor.to_string()
        } else {
            format!("{}: {floor}", labels.join(", "))
        }
    };
    found.into_iter().map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor(what: &str, from_scale: f64) -> FloorResult {
        FloorResult { what: what.into(), unit: "pages".into(), value: 8.0, asked: 2.5, from_scale }
    }

    #[test]
    fn a_note_names_figure_floor_wish_and_scale() {
        let text = floor("flash.pages_per_block", 1.0 / 32.0).to_string();
        let expected = "flash.pages_per_block is at its floor: 8 pages, not the 2.5 of the scale \
                        (in proportion from --scale 1/32 on)";
        assert_eq!(text, expected);
        let ends = |from| floor("x", from).to_string().split_once("--scale ").unwrap().1.to_owned();
        assert_eq!(ends(0.3), "1/3 on)", "1/4 would be too small");
        assert_eq!([ends(1.0), ends(0.9)], ["1 on)"; 2]);
    }

    #[test]
    fn runs_that_share_a_floor_share_its_note() {
        let (a, b) = ([floor("x", 0.5), floor("y", 0.5)], [floor("x", 0.5)]);
        let notes = floor_notes([("f2fs", &a[..]), ("ext4", &b[..])].into_iter());
        assert_eq!(notes.len(), 2);
        assert!(notes[0].starts_with("x is") && notes[1].starts_with("f2fs: y is"), "{notes:?}");
        assert_eq!(floor_notes([("f2fs", &[][..])].into_iter()), [""; 0]);
    }
}
