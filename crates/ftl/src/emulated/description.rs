//! The description of the drive in a drive file: the profile as it was when the file was made, and
//! what was changed in it.

use dovetail_block::DriveSerial;
use dovetail_time::Ratio;
use serde::{Deserialize, Serialize};

use super::EmulatedError;
use crate::config::DriveConfig;
use crate::profile::{Overrides, Profile};
use crate::remap::RemapStore;

/// The header's text, in TOML.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Description {
    scale: Option<f64>,
    over_provisioning: Option<f64>,
    gc: Option<String>,
    map: Option<String>,
    addresses: Option<String>,
    cache: Option<String>,
    cache_size: Option<u64>,
    buffer: Option<u64>,
    seed: u64,
    /// Of a file of earlier versions it is the profile's.
    serial: Option<u64>,
    profile: String,
}

impl Description {
    /// A drive that gets its serial number from its name and all that is described here.
    pub(super) fn new(name: &str, profile: &Profile, overrides: &Overrides) -> Self {
        let mut description = Self {
            scale: overrides.scale.map(Ratio::value),
            over_provisioning: overrides.over_provisioning,
            gc: overrides.gc.clone(),
            map: overrides.map.clone(),
            addresses: overrides.addresses.clone(),
            cache: overrides.cache.clone(),
            cache_size: overrides.cache_size,
            buffer: overrides.buffer,
            seed: overrides.seed,
            serial: None,
            profile: profile.text().into(),
        };
        let text = toml::to_string(&description).unwrap_or_default();
        let serial = DriveSerial::of(&[name.as_bytes(), text.as_bytes()]);
        description.serial = Some(serial.0);
        description
    }

    /// The drive that it describes.
    pub(super) fn config(&self) -> Result<DriveConfig, EmulatedError> {
        let bad = |error: &dyn std::fmt::Display| EmulatedError::Description(error.to_string());
        let overrides = Overrides {
            scale: self
                .scale
                .map(|scale| scale.to_string().parse::<Ratio>())
                .transpose()
                .map_err(|error| bad(&error))?,
            over_provisioning: self.over_provisioning,
            gc: self.gc.clone(),
            map: self.map.clone(),
            addresses: self.addresses.clone(),
            cache: self.cache.clone(),
            cache_size: self.cache_size,
            buffer: self.buffer,
            seed: self.seed,
        };
        let profile = Profile::parse(&self.profile, "profile").map_err(|error| bad(&error))?;
        let mut config = profile.resolve(&overrides).map_err(|error| bad(&error))?;
        // the file is the flash: nothing keeps the write buffer when the program ends
        config.power_loss_protection = false;
        config.serial = self.serial.map_or(config.serial, DriveSerial);
        match config.remap.map(|remap| remap.store) {
            Some(RemapStore::NonVolatile { .. } | RemapStore::SegmentedLog { .. }) => {
                Err(EmulatedError::NonVolatile)
            }
            _ => Ok(config),
        }
    }
}
