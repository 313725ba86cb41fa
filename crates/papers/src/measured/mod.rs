//! Real drives: what others measured on them, and what the drive model gives for the same.
//!
//! A profile may be calibrated on part of a device's figures; they are marked, and the rest are the
//! check. A published figure is an input of a profile alone, where the profile's sources name it.

mod devices;
mod load;
mod reading;
mod table;
mod workload;
mod zones;

use dovetail_block::DeviceError;
use dovetail_ftl::ProfileError;
use serde::Serialize;

pub use devices::TESTS;
pub use reading::Reading;
pub use table::markdown;
pub use workload::Workload;
pub use zones::{Filled, ZONE_TESTS, ZoneTest};

/// A published figure.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// The quantity.
    pub reading: Reading,
    /// Its value, in the unit of the reading.
    pub value: f64,
    /// Percent by which ours may be off.
    pub limit: f64,
    /// Set if the profile was made with it.
    pub is_calibrated: bool,
}

/// A test on a real drive, and its figures.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// The device.
    pub device: &'static str,
    /// The profile that models it.
    pub profile: &'static str,
    /// The workload.
    pub workload: Workload,
    /// The place of its publication.
    pub source: &'static str,
    /// The figures.
    pub figures: &'static [Published],
}

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Seeds everything.
    pub seed: u64,
    /// By how much the drives are smaller than each workload's own choice, at most 1.
    pub scale: f64,
}

/// A test that could not be run here.
#[derive(Debug, thiserror::Error)]
pub enum MeasuredError {
    /// Its profile cannot be used.
    #[error("{0}")]
    Profile(#[from] ProfileError),
    /// The drive refused a command.
    #[error("the drive refused a command: {0}")]
    Device(#[from] DeviceError),
    /// No drive can be made at this scale.
    #[error("no drive at this scale: {0}")]
    Scale(String),
}

/// A published figure and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The device.
    pub device: String,
    /// The profile that models it.
    pub profile: String,
    /// The test and the figure.
    pub what: String,
    /// The unit of both figures.
    pub unit: String,
    /// The published figure.
    pub published: f64,
    /// Ours.
    pub ours: f64,
    /// Percent by which ours may be off.
    pub limit: f64,
    /// Set if the profile was made with it.
    pub is_calibrated: bool,
    /// The place of its publication.
    pub source: String,
}

impl Row {
    /// Percent by which ours is off.
    pub fn off_by(&self) -> f64 {
        (self.ours / self.published - 1.0) * 100.0
    }
}

impl Test {
    /// Runs it.
    ///
    /// # Errors
    /// See [`MeasuredError`].
    pub fn run(&self, setting: Setting) -> Result<Vec<Row>, MeasuredError> {
        let observed = self.workload.run(self.profile, setting)?;
        let row = |published: &Published| Row {
            device: self.device.into(),
            profile: self.profile.into(),
            what: format!("{}: {}", self.workload, published.reading.name()),
            unit: published.reading.unit().into(),
            published: published.value,
            ours: published.reading.of(&observed),
            limit: published.limit,
            is_calibrated: published.is_calibrated,
            source: self.source.into(),
        };
        Ok(self.figures.iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::numbers;
    use dovetail_ftl::Profile;

    #[test]
    fn every_test_has_a_profile_and_figures_to_be_held_against() {
        for test in TESTS.iter().chain(ZONE_TESTS) {
            assert!(Profile::load(test.profile).is_ok(), "{}", test.profile);
            assert!(!test.figures.is_empty() && test.source.len() > 3);
            assert!(test.figures.iter().all(|figure| figure.value > 0.0 && figure.limit <= 40.0));
        }
    }

    /// A source that says "assumed" has its numbers from elsewhere.
    #[test]
    fn no_figure_that_a_profile_names_as_its_source_is_a_check() {
        let mut found = Vec::new();
        for test in TESTS.iter().chain(ZONE_TESTS) {
            let sources = Profile::load(test.profile).unwrap().sources;
            for figure in test.figures.iter().filter(|figure| !figure.is_calibrated) {
                let unit = match figure.reading {
                    Reading::ThousandsPerSecond => 1000.0,
                    _ => 1.0,
                };
                let is_it = |number: &f64| (number - figure.value * unit).abs() < 1e-6;
                let names = |text: &str| numbers(text).iter().any(is_it);
                let is_named = |text: &&String| !text.contains("assumed") && names(text);
                found.extend(
                    sources.values().find(is_named).map(|text| (test.profile, text.clone())),
                );
            }
        }
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn the_cache_of_a_consumer_drive_is_full_where_it_was_measured() {
        let fill = TESTS
            .iter()
            .find(|test| test.profile == "evo970-500g" && test.workload == Workload::Fill);
        let rows = fill.unwrap().run(Setting { seed: 1, scale: 1.0 / 8.0 }).unwrap();
        for row in rows {
            assert!(row.off_by().abs() <= 20.0, "{}: {} and {}", row.what, row.published, row.ours);
        }
    }
}
