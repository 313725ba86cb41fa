//! Maps of a drive as its profile has them: addresses, schemes, caches, log blocks and remaps.

use dovetail_block::{AREA_BLOCKS, AREAS, RemapLimits};
use dovetail_nand::Geometry;
use dovetail_time::SimSpan;

use super::resolve::MOST_BYTES;
use super::schema::Remap;
use super::{Overrides, Profile, ProfileError};
use crate::config::{DriveConfig, MapCacheConfig, most_page_entries};
use crate::log_block::{LogBlockConfig, LogScheme};
use crate::remap::{RemapConfig, RemapStore};
use crate::{cache, mapping};

/// The name of a page map that is paged on demand.
const DEMAND: &str = "demand";
/// The cache of such a map that nothing more is said of.
const DEFAULT_CACHE: (&str, u64) = ("dftl", 512 * 1024);
/// No cache: the whole map is in memory.
const NO_CACHE: &str = "none";

/// Log blocks of a log-block map that nothing more is said of. Assumed.
const DEFAULT_LOG_BLOCKS: i64 = 8;

/// Bytes of a segment of the log of remaps in non-volatile memory. Assumed: 31 entries.
const SEGMENT_BYTES: u32 = 512;

impl Profile {
    /// The drive with addresses, map and remaps as the profile has them.
    pub(super) fn with_maps(
        &self,
        config: DriveConfig,
        overrides: &Overrides,
        scale: f64,
    ) -> Result<DriveConfig, ProfileError> {
        let access = self.int("ftl.map_access_ns", self.ftl.map_access_ns, 0, 1_000_000_000)?;
        let config = DriveConfig {
            addresses: self.addresses(overrides)?,
            scheme: self.scheme(overrides)?,
            map_access: SimSpan::from_ns(access.into()),
            map_cache: self.map_cache(overrides, scale, &config.nand.geometry)?,
            log_block: self.log_block(overrides)?,
            remap: self.remap(scale)?,
            ..config
        };
        Ok(DriveConfig { devirtualize: self.devirtualize(overrides, &config)?, ..config })
    }

    fn addresses(&self, overrides: &Overrides) -> Result<Option<u64>, ProfileError> {
        let (key, name) = match &overrides.addresses {
            Some(name) => ("--addresses", Some(name)),
            None => ("capacity.addresses", self.capacity.addresses.as_ref()),
        };
        match name.map(String::as_str) {
            None | Some("capacity") => Ok(None),
            Some("iplfs") => Ok(Some(AREAS * AREA_BLOCKS)),
            Some(other) => Err(self.value(key, other, "capacity or iplfs".into())),
        }
    }

    fn scheme(&self, overrides: &Overrides) -> Result<&'static mapping::Scheme, ProfileError> {
        let name = overrides.map.as_ref().unwrap_or(&self.ftl.map);
        let names = || {
            let names = mapping::SCHEMES.iter().map(|scheme| scheme.name).chain([DEMAND]);
            let names = names.chain(LogScheme::ALL.map(LogScheme::name));
            names.collect::<Vec<_>>().join(" or ")
        };
        let is_over_pages = name == DEMAND || LogScheme::named(name).is_some();
        mapping::scheme(if is_over_pages { "page" } else { name })
            .ok_or_else(|| self.value("ftl.map", name, names()))
    }

    fn log_block(&self, overrides: &Overrides) -> Result<Option<LogBlockConfig>, ProfileError> {
        let name = overrides.map.as_ref().unwrap_or(&self.ftl.map);
        let Some(scheme) = LogScheme::named(name) else { return Ok(None) };
        let asked = self.ftl.log_blocks.unwrap_or(DEFAULT_LOG_BLOCKS);
        let log_lines = self.int("ftl.log_blocks", asked, 1, 4096)?;
        Ok(Some(LogBlockConfig { scheme, log_lines }))
    }

    /// A cache that the profile gives shrinks with the drive; one that the run gives does not.
    fn map_cache(
        &self,
        overrides: &Overrides,
        scale: f64,
        geometry: &Geometry,
    ) -> Result<Option<MapCacheConfig>, ProfileError> {
        let is_demand = overrides.map.as_ref().unwrap_or(&self.ftl.map) == DEMAND;
        let own = self.map_cache.as_ref();
        let is_sized = overrides.cache_size.is_some();
        let default = (is_demand || is_sized).then_some(DEFAULT_CACHE.0);
        let of_profile = match is_sized {
            true => self.map_cache_policy(),
            false => own.map(|own| own.policy.as_str()),
        };
        let name = overrides.cache.as_deref().or(of_profile).or(default);
        let Some(name) = name.filter(|name| *name != NO_CACHE) else { return Ok(None) };
        let names = || {
            let names = cache::POLICIES.iter().map(|policy| policy.name).chain([NO_CACHE]);
            names.collect::<Vec<_>>().join(", ")
        };
        let policy = cache::policy(name);
        let policy = policy
            .ok_or_else(|| self.value("map_cache.policy", name, format!("one of {}", names())))?;
        let bytes = match (overrides.cache_size, own) {
            (Some(bytes), _) if bytes > MOST_BYTES => {
                let allowed = "up to 1048576GiB".into();
                return Err(self.value("map_cache.size", &bytes.to_string(), allowed));
            }
            (Some(bytes), _) => bytes,
            (None, Some(own)) => (self.bytes("map_cache.size", &own.size)? as f64 * scale) as u64,
            (None, None) => DEFAULT_CACHE.1,
        };
        Ok(Some(MapCacheConfig { policy, bytes, page_entries: most_page_entries(geometry) }))
    }

    /// The policy of the map's cache that the profile has; `None` for a map in memory.
    pub fn map_cache_policy(&self) -> Option<&str> {
        let own = self.map_cache.as_ref().map(|own| own.policy.as_str());
        own.filter(|policy| *policy != NO_CACHE)
    }

    fn remap(&self, scale: f64) -> Result<Option<RemapConfig>, ProfileError> {
        const MOST: u32 = 1 << 20;
        let Some(remap) = &self.remap else { return Ok(None) };
        let store = match remap.store.as_str() {
            "nvm" => self.non_volatile(remap)?,
            "nvm-log" => self.segmented_log(remap, scale)?,
            "log" => self.remap_log(remap)?,
            other => return Err(self.value("remap.store", other, "nvm, nvm-log or log".into())),
        };
        let (command_time, pair_time) = match store {
            RemapStore::NonVolatile { access, .. } | RemapStore::SegmentedLog { access, .. } => {
                (SimSpan::ZERO, access)
            }
            RemapStore::Log => {
                (self.mean("timing.program_us", &self.timing.program_us)?, SimSpan::ZERO)
            }
        };
        let limits = RemapLimits {
            pairs_per_command: self.int(
                "remap.pairs_per_command",
                remap.pairs_per_command,
                1,
                MOST,
            )?,
            held_pairs: self.int("remap.held_pairs", remap.held_pairs, 0, MOST)?,
            command_time,
            pair_time,
        };
        Ok(Some(RemapConfig { limits, store }))
    }

    /// With another map or other addresses than the profile's it may be impossible, which leaves it
    /// out: the map must hold the addresses of the flash behind the host's.
    fn devirtualize(
        &self,
        overrides: &Overrides,
        config: &DriveConfig,
    ) -> Result<Option<u32>, ProfileError> {
        let is_its_own = overrides.map.is_none() && overrides.addresses.is_none();
        let pages = config.host_pages() + u64::from(config.nand.geometry.pages());
        let can = is_its_own || config.scheme.sparse && pages <= config.scheme.reach;
        let renames = self.remap.as_ref().and_then(|remap| remap.renames).filter(|_| can);
        renames.map(|renames| self.int("remap.renames", renames, 1, 1 << 16)).transpose()
    }

    fn non_volatile(&self, remap: &Remap) -> Result<RemapStore, ProfileError> {
        if let Some(log) = &remap.log {
            return Err(self.value("remap.log", log, "nothing with store = \"nvm\"".into()));
        }
        let (access, discard_records) = self.non_volatile_figures(remap)?;
        Ok(RemapStore::NonVolatile { access, discard_records })
    }

    /// The log shrinks with the drive, as far as the longest remap allows.
    fn segmented_log(&self, remap: &Remap, scale: f64) -> Result<RemapStore, ProfileError> {
        let lacks =
            || self.value("remap.log", "left out", "a size with store = \"nvm-log\"".into());
        let bytes = self.bytes("remap.log", remap.log.as_ref().ok_or_else(lacks)?)?;
        let segments = (bytes as f64 * scale / f64::from(SEGMENT_BYTES)) as u32;
        let (access, discard_records) = self.non_volatile_figures(remap)?;
        let segment_bytes = SEGMENT_BYTES;
        Ok(RemapStore::SegmentedLog { access, discard_records, segments, segment_bytes })
    }

    /// The time of an entry, and the room for records of discards.
    fn non_volatile_figures(&self, remap: &Remap) -> Result<(SimSpan, u32), ProfileError> {
        let lacks = |key, range: &str| {
            self.value(key, "left out", format!("{range} with non-volatile memory"))
        };
        let entry_us = remap.entry_us.ok_or_else(|| lacks("remap.entry_us", "0 to 1000000000"))?;
        let records =
            remap.discard_records.ok_or_else(|| lacks("remap.discard_records", "1 to 1000000"))?;
        let records = self.int("remap.discard_records", records, 1, 1_000_000)?;
        Ok((self.us("remap.entry_us", entry_us)?, records))
    }

    fn remap_log(&self, remap: &Remap) -> Result<RemapStore, ProfileError> {
        let needless =
            |key, value: String| self.value(key, &value, "nothing with store = \"log\"".into());
        match (remap.entry_us, remap.discard_records, &remap.log) {
            (Some(us), ..) => Err(needless("remap.entry_us", us.to_string())),
            (_, Some(records), _) => Err(needless("remap.discard_records", records.to_string())),
            (_, _, Some(log)) => Err(needless("remap.log", log.clone())),
            _ => Ok(RemapStore::Log),
        }
    }
}
