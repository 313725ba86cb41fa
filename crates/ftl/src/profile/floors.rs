//! Figures of a drive that a scale has put at their floors.

use dovetail_time::{AtFloor, Ratio};

use super::resolve::FEWEST_PAGES;
use super::{Overrides, Profile};
use crate::config::DriveConfig;
use crate::remap::RemapStore;

/// Figures as a scale asks for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) scale: Ratio,
    /// Pages of a block at full scale.
    pub(super) full_pages_per_block: f64,
    /// Pages of the write buffer.
    pub(super) buffer_pages: f64,
    /// Free lines at which writes wait.
    pub(super) foreground_lines: f64,
    /// Segments of the log of remaps in non-volatile memory; 0 without one.
    pub(super) segments: u32,
}

/// Segments of a drive's log of remaps in non-volatile memory; 0 without one.
pub(super) fn segments(config: &DriveConfig) -> u32 {
    match config.remap.map(|remap| remap.store) {
        Some(RemapStore::SegmentedLog { segments, .. }) => segments,
        _ => 0,
    }
}

impl Profile {
    /// A floor that rises with the scale ends at a larger one than that of the figure in proportion:
    /// looks at that one, and so on.
    pub(super) fn where_it_ends(&self, floor: AtFloor, overrides: &Overrides) -> AtFloor {
        let next = (floor.from_scale * (1.0 + 1e-9)).min(1.0);
        let Ok(scale) = Ratio::new(next) else { return floor };
        let larger = self.resolve(&Overrides { scale: Some(scale), ..overrides.clone() });
        let floors = larger.map(|config| config.floors).unwrap_or_default();
        let again = floors.iter().find(|again| again.what == floor.what);
        AtFloor { from_scale: again.map_or(floor.from_scale, |it| it.from_scale), ..floor }
    }
}

/// The figures of `config` that stand at their floors, of those that were asked for.
pub(super) fn floors(asked: &Asked, config: &DriveConfig) -> Vec<AtFloor> {
    let Asked { scale, full_pages_per_block: full, .. } = *asked;
    let geometry = &config.nand.geometry;
    let find = |what, unit, asked: f64, value: u32| {
        AtFloor::find(what, unit, (asked, f64::from(value)), scale)
    };
    let pages =
        find("flash.pages_per_block", "pages", full * scale.value(), geometry.pages_per_block);
    let buffer = find("host.write_buffer", "flash pages", asked.buffer_pages, config.buffer_pages);
    let segments = find("remap.log", "segments", asked.segments.into(), segments(config));
    [pages, buffer, segments, lines(asked, config)].into_iter().flatten().collect()
}

/// The reserve of cleaning. Lines are as many as at full scale down to the scale at which blocks are
/// at their floor; below it they are fewer, and the reserve may be a larger part of them.
fn lines(asked: &Asked, config: &DriveConfig) -> Option<AtFloor> {
    let from_scale = FEWEST_PAGES.min(asked.full_pages_per_block) / asked.full_pages_per_block;
    let (value, asked_lines) = (f64::from(config.foreground_lines), asked.foreground_lines);
    let is_at_floor = value - asked_lines >= 0.5 && asked.scale.value() < from_scale;
    is_at_floor.then_some(AtFloor {
        what: "ftl.gc_foreground_percent",
        unit: "lines",
        value,
        asked: asked_lines,
        from_scale,
    })
}

#[cfg(test)]
mod tests {
    use crate::{Overrides, Profile};

    /// The figures at their floors, with the scale from which on they are not.
    fn at(drive: &str, scale: &str, buffer: Option<u64>) -> Vec<(&'static str, f64, f64, f64)> {
        let scale = Some(scale.parse().unwrap());
        let overrides = Overrides { scale, buffer, ..Overrides::default() };
        let floors = Profile::load(drive).unwrap().resolve(&overrides).unwrap().floors;
        floors.iter().map(|it| (it.what, it.value, it.asked, 1.0 / it.from_scale)).collect()
    }

    #[test]
    fn blocks_and_the_write_buffer_have_floors() {
        assert_eq!(at("femu-32g", "1", None), []);
        assert_eq!(at("femu-32g", "1/32", None), []);
        assert_eq!(at("femu-32g", "1/64", None), [("flash.pages_per_block", 8.0, 4.0, 32.0)]);
        let found = at("openssd-230g", "1/16", None);
        let [("host.write_buffer", value, asked, below)] = found[..] else { panic!("{found:?}") };
        assert!(value > asked && below < 16.0, "{found:?}");
        assert_eq!(at("openssd-230g", "1/16", Some(1 << 20)), [], "the run's own is not shrunk");
    }

    /// The reserve is a larger part of fewer lines, also where it is at its floor at full size.
    #[test]
    fn a_reserve_that_is_at_its_floor_at_any_scale_is_told_where_lines_are_fewer() {
        let lines = |scale: &str| {
            let scale = Some(scale.parse().unwrap());
            let overrides =
                Overrides { scale, over_provisioning: Some(7.0), ..Overrides::default() };
            let floors = Profile::load("nvme-250g").unwrap().resolve(&overrides).unwrap().floors;
            floors.iter().any(|floor| floor.what == "ftl.gc_foreground_percent")
        };
        assert!(lines("1/512") && lines("1/256") && !lines("1/16"));
    }

    #[test]
    fn at_the_scale_that_is_named_a_figure_is_not_at_its_floor() {
        let small = Overrides { scale: "1/64".parse().ok(), ..Overrides::default() };
        let fits = |drive: &&str| Profile::load(drive).unwrap().resolve(&small).is_ok();
        for drive in crate::builtin_profiles().filter(fits) {
            for (what, _, _, below) in at(drive, "1/64", None) {
                let named = (1.0 / below * 1.001).min(1.0).to_string();
                let left = at(drive, &named, None);
                assert!(
                    left.iter().all(|(other, ..)| *other != what),
                    "{drive}, {named}: {left:?}"
                );
            }
        }
    }
}
