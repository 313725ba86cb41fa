//! Figures that shrink with a scale as far as a floor.

use crate::Ratio;

/// A figure that stands at its floor because of the scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtFloor {
    /// Its key or name.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its value: the floor.
    pub value: f64,
    /// The value that the scale asks for.
    pub asked: f64,
    /// The smallest scale at which it is not at the floor, at most 1.
    pub from_scale: f64,
}

impl AtFloor {
    /// The figure if it stands at its floor: the scale asks for less than `value` by at least half
    /// of one. `None` as well if the full scale asks for no more: then the scale is not the reason.
    pub fn find(
        what: &'static str,
        unit: &'static str,
        (asked, value): (f64, f64),
        scale: Ratio,
    ) -> Option<Self> {
        let from_scale = scale.value() * value / asked;
        let is_at_floor = value - asked >= 0.5 && from_scale <= 1.0;
        is_at_floor.then_some(Self { what, unit, value, asked, from_scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_at_its_floor_where_the_scale_alone_puts_it_there() {
        let find = |full: f64, floor: f64, scale: &str| {
            let scale: Ratio = scale.parse().unwrap();
            let asked = full * scale.value();
            AtFloor::find("x", "pages", (asked, asked.max(floor)), scale)
        };
        assert_eq!(find(256.0, 8.0, "1/32"), None);
        let found = find(256.0, 8.0, "1/64").unwrap();
        assert_eq!((found.value, found.asked, found.from_scale), (8.0, 4.0, 1.0 / 32.0));
        assert_eq!(find(4.0, 8.0, "1/2"), None, "the full one is at its floor as well");
        assert_eq!(find(256.0, 8.0, "1/33"), None, "7.8 is 8 when it is rounded");
        assert_eq!(find(0.0, 8.0, "1/2"), None);
    }
}
