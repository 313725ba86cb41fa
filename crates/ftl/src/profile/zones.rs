//! The zones of a profile.

use dovetail_block::{BLOCK_SIZE, ZoneWindow};
use dovetail_nand::Geometry;
use dovetail_time::SimSpan;

use super::schema::Zones;
use super::{Profile, ProfileError};
use crate::zoned::{ZoneConfig, ZoneTimes};

/// Zones of a scaled drive are a multiple of this, if those of the whole one are: an F2FS segment.
const LEAST_STEP: u64 = 2 * 1024 * 1024;

impl Profile {
    /// Its zones at a scale. They keep their erase blocks, which have shrunk by `blocks_by`; a size
    /// that is a power of two stays one.
    pub(super) fn zones(
        &self,
        geometry: &Geometry,
        blocks_by: f64,
        scale: f64,
    ) -> Result<Option<ZoneConfig>, ProfileError> {
        let Some(zones) = &self.zones else { return Ok(None) };
        let size = self.whole_blocks("zones.size", &zones.size)?;
        let capacity = match &zones.capacity {
            Some(capacity) => self.whole_blocks("zones.capacity", capacity)?,
            None => size,
        };
        if size == 0 {
            return Err(self.value("zones.size", &zones.size, "4KiB or more".into()));
        }
        if capacity == 0 || capacity > size {
            let capacity = zones.capacity.as_deref().unwrap_or_default();
            return Err(self.value("zones.capacity", capacity, "4KiB to zones.size".into()));
        }
        let page = u64::from(geometry.page_bytes);
        let capacity = ((capacity as f64 * blocks_by) as u64 / page * page).max(page);
        let size = scaled_size(size, blocks_by).max(capacity);
        let conventional = self.whole_blocks("zones.conventional", &zones.conventional)?;
        let conventional = ((conventional as f64 * scale) as u64).next_multiple_of(size);
        let spare = self.range("zones.spare_percent", zones.spare_percent, 0.0, 50.0)?;
        Ok(Some(ZoneConfig {
            size: size / BLOCK_SIZE,
            capacity: capacity / BLOCK_SIZE,
            conventional: conventional / BLOCK_SIZE,
            dies: self.int("zones.dies", zones.dies, 1, 65_536)?,
            max_open: self.int("zones.max_open", zones.max_open, 0, 100_000)?,
            max_active: self.int("zones.max_active", zones.max_active, 1, 100_000)?,
            max_append: self.optional_bytes("zones.max_append", zones.max_append.as_ref())?
                / BLOCK_SIZE,
            window: self.zone_window(zones)?,
            spare: ((f64::from(geometry.blocks_per_plane) * spare / 100.0).ceil() as u32).max(1),
            finish_fills: zones.finish_fills.unwrap_or(false),
            times: ZoneTimes {
                reset: self.zone_us("zones.reset_us", zones.reset_us, blocks_by)?,
                reset_full: self.zone_us("zones.reset_full_us", zones.reset_full_us, blocks_by)?,
            },
        }))
    }

    fn zone_window(&self, zones: &Zones) -> Result<Option<ZoneWindow>, ProfileError> {
        let blocks = self.optional_bytes("zones.window", zones.window.as_ref())? / BLOCK_SIZE;
        if blocks == 0 {
            let stray = zones.window_step.as_ref().filter(|_| zones.window.is_none());
            let needs = || "left out: it needs zones.window".into();
            return match stray {
                None => Ok(None),
                Some(step) => Err(self.value("zones.window_step", step, needs())),
            };
        }
        let step = zones.window_step.as_ref().or(zones.window.as_ref());
        let granularity = self.optional_bytes("zones.window_step", step)? / BLOCK_SIZE;
        let most = zones.windows.unwrap_or(zones.max_active);
        let most = self.int("zones.windows", most, 1, 100_000)?;
        Ok(Some(ZoneWindow { blocks, granularity, most }))
    }

    /// A time of a whole zone, which shrinks with it; none where it is left out.
    fn zone_us(
        &self,
        key: &'static str,
        us: Option<f64>,
        blocks_by: f64,
    ) -> Result<SimSpan, ProfileError> {
        us.map_or(Ok(SimSpan::ZERO), |us| self.us(key, us * blocks_by))
    }

    fn whole_blocks(&self, key: &'static str, text: &str) -> Result<u64, ProfileError> {
        let bytes = self.bytes(key, text)?;
        match bytes.is_multiple_of(BLOCK_SIZE) {
            true => Ok(bytes),
            false => Err(self.value(key, text, "a multiple of 4KiB".into())),
        }
    }

    fn optional_bytes(
        &self,
        key: &'static str,
        text: Option<&String>,
    ) -> Result<u64, ProfileError> {
        text.map_or(Ok(0), |text| self.whole_blocks(key, text))
    }
}

fn scaled_size(size: u64, blocks_by: f64) -> u64 {
    let scaled = (size as f64 * blocks_by).ceil() as u64;
    match size {
        size if size.is_power_of_two() => scaled.next_power_of_two().max(LEAST_STEP.min(size)),
        size if size.is_multiple_of(LEAST_STEP) => scaled.next_multiple_of(LEAST_STEP),
        _ => scaled.next_multiple_of(BLOCK_SIZE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stay_powers_of_two_and_whole_segments() {
        const MIB: u64 = 1 << 20;
        assert_eq!(scaled_size(64 * MIB, 1.0 / 16.0), 4 * MIB);
        assert_eq!(scaled_size(64 * MIB, 1.0 / 128.0), 2 * MIB);
        assert_eq!(scaled_size(2048 * MIB, 0.06), 128 * MIB);
        assert_eq!(scaled_size(96 * MIB, 1.0 / 16.0), 6 * MIB);
        assert_eq!(scaled_size(96 * MIB, 0.05), 6 * MIB);
    }

    #[test]
    fn zones_that_cannot_be_are_refused_with_their_key() {
        let text = Profile::load("femu-32g-zoned").unwrap().text().to_string();
        let zones: toml::Table = text.parse().unwrap();
        let size = zones["zones"]["size"].as_str().unwrap().to_string();
        let message = |key: &str, value: &str| {
            let mut document = zones.clone();
            let table = document["zones"].as_table_mut().unwrap();
            table.insert(key.into(), value.into());
            Profile::parse(&document.to_string(), "my.toml").unwrap_err().to_string()
        };
        for (key, value, allowed) in [
            ("size", "0", "4KiB or more"),
            ("size", "5000", "a multiple of 4KiB"),
            ("capacity", "1GiB", "4KiB to zones.size"),
            ("capacity", "0", "4KiB to zones.size"),
            ("conventional", "18446744073709547520", "up to 1048576GiB"),
            ("max_append", "5000", "a multiple of 4KiB"),
            ("window_step", "64KiB", "it needs zones.window"),
        ] {
            let message = message(key, value);
            let is_told = message.contains(&format!("zones.{key} is"));
            assert!(is_told && message.contains(allowed), "{key} {value} of {size}: {message}");
        }
    }

    #[test]
    fn a_reset_takes_the_same_share_of_a_shrunk_zone() {
        let profile = Profile::load("zn540-1t").unwrap();
        let reset = |scale: &str| {
            let scale = Some(scale.parse().unwrap());
            let config = profile.resolve(&crate::Overrides { scale, ..Default::default() });
            let zones = config.unwrap().zones.unwrap();
            zones.times.reset_full.as_ns() as f64 / zones.capacity as f64
        };
        let (whole, shrunk) = (reset("1"), reset("1/8"));
        assert!(whole > 0.0 && (shrunk / whole - 1.0).abs() < 0.01, "{shrunk} of {whole}");
    }

    #[test]
    fn the_zn540_has_as_many_zones_as_its_makers_say() {
        let config = Profile::load("zn540-1t").unwrap().resolve(&crate::Overrides::default());
        let (zone, config) = (1077 * 256, config.unwrap());
        assert_eq!(config.user_blocks, 904 * zone);
    }
}
