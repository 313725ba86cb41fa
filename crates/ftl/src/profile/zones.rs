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
        let size = self.bytes("zones.size", &zones.size)?;
        let capacity = match &zones.capacity {
            Some(capacity) => self.bytes("zones.capacity", capacity)?,
            None => size,
        };
        let page = u64::from(geometry.page_bytes);
        let capacity = ((capacity as f64 * blocks_by) as u64 / page * page).max(page);
        let size = scaled_size(size, blocks_by).max(capacity);
        let conventional = self.bytes("zones.conventional", &zones.conventional)?;
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
                reset: self.optional_us("zones.reset_us", zones.reset_us)?,
                reset_full: self.optional_us("zones.reset_full_us", zones.reset_full_us)?,
            },
        }))
    }

    fn zone_window(&self, zones: &Zones) -> Result<Option<ZoneWindow>, ProfileError> {
        let blocks = self.optional_bytes("zones.window", zones.window.as_ref())? / BLOCK_SIZE;
        if blocks == 0 {
            return Ok(None);
        }
        let step = zones.window_step.as_ref().or(zones.window.as_ref());
        let granularity = self.optional_bytes("zones.window_step", step)? / BLOCK_SIZE;
        let most = zones.windows.unwrap_or(zones.max_active);
        let most = self.int("zones.windows", most, 1, 100_000)?;
        Ok(Some(ZoneWindow { blocks, granularity, most }))
    }

    fn optional_us(&self, key: &'static str, us: Option<f64>) -> Result<SimSpan, ProfileError> {
        us.map_or(Ok(SimSpan::ZERO), |us| self.us(key, us))
    }

    fn optional_bytes(
        &self,
        key: &'static str,
        text: Option<&String>,
    ) -> Result<u64, ProfileError> {
        text.map_or(Ok(0), |text| self.bytes(key, text))
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
    fn the_zn540_has_as_many_zones_as_its_makers_say() {
        let config = Profile::load("zn540-1t").unwrap().resolve(&crate::Overrides::default());
        let (zone, config) = (1077 * 256, config.unwrap());
        assert_eq!(config.user_blocks, 904 * zone);
    }
}
