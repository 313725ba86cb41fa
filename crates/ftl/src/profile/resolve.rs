//! From the figures of a profile to the drive that they make.

use dovetail_block::{AREA_BLOCKS, AREAS, BLOCK_SIZE, DriveSerial, RemapLimits};
use dovetail_nand::{BlockId, CellMode, Geometry, NandConfig, Timing};
use dovetail_time::{Ratio, Rng, SimSpan, parse_bytes};

use super::floors::{Asked, floors, segments};
use super::schema::Remap;
use super::{Overrides, Profile, ProfileError};
use crate::config::{
    BufferOrder, ConfigError, DriveConfig, MapCacheConfig, StreamsBy, most_page_entries,
};
use crate::lines::LineShape;
use crate::log_block::{LogBlockConfig, LogScheme};
use crate::remap::{RemapConfig, RemapStore};
use crate::{cache, mapping, victim};

/// Pages that a block keeps however small the scale.
pub(super) const FEWEST_PAGES: f64 = 8.0;

/// Places that a write buffer keeps for each unit however small the scale, in pages or in word
/// lines that are programmed in one go: half of them are being programmed, and a unit that ends one
/// finds the next.
const FEWEST_BUFFERED: u32 = 4;

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

/// The flash at a scale.
struct Scaled {
    geometry: Geometry,
    /// By how much blocks have shrunk.
    blocks_by: f64,
    /// The capacity in blocks of 4 KiB.
    user_blocks: u64,
}

impl Profile {
    /// The drive that the profile and the changes to it make.
    ///
    /// # Errors
    /// A value out of range, or a drive that cannot work.
    pub fn resolve(&self, overrides: &Overrides) -> Result<DriveConfig, ProfileError> {
        let scale =
            self.range("--scale", overrides.scale.unwrap_or(Ratio::ONE).value(), 1e-6, 1.0)?;
        let scaled = self.scaled(scale, self.spare_percent(overrides)?)?;
        let geometry = scaled.geometry;
        let shape = self.shape()?;
        let config = DriveConfig {
            name: self.name.clone(),
            nand: NandConfig {
                geometry,
                timing: self.timing(scaled.blocks_by)?,
                retry: self.retry()?,
                endurance: self.int("flash.endurance", self.flash.endurance, 1, 1_000_000_000)?,
                factory_bad: self.factory_bad(&geometry)?,
            },
            user_blocks: scaled.user_blocks,
            addresses: self.addresses(overrides)?,
            pages_per_bitmap: None,
            scheme: self.scheme(overrides)?,
            policy: self.policy(overrides)?,
            choices: self.int("ftl.gc_choices", self.ftl.gc_choices, 1, 1000)?,
            shape,
            streams: self.int("ftl.streams", self.ftl.streams, 1, 16)? as u8,
            streams_by: self.streams_by()?,
            gc_apart: self.ftl.gc_apart,
            foreground_lines: self.spare_lines(
                "ftl.gc_foreground_percent",
                self.ftl.gc_foreground_percent,
                &scaled,
                shape,
            )?,
            background_lines: self.spare_lines(
                "ftl.gc_background_percent",
                self.ftl.gc_background_percent,
                &scaled,
                shape,
            )?,
            least_garbage: self.least_garbage(&geometry, shape)?,
            idle_after: self.us("ftl.gc_idle_us", self.ftl.gc_idle_us)?,
            buffer_pages: self.buffer_pages(overrides, scale, &scaled)?,
            buffer_order: self.buffer_order()?,
            wear_spread: self.int("ftl.wear_spread", self.ftl.wear_spread, 0, 1_000_000_000)?,
            map_access: SimSpan::from_ns(
                self.int("ftl.map_access_ns", self.ftl.map_access_ns, 0, 1_000_000_000)?.into(),
            ),
            link_4k: self.per_4k("host.link_mb_per_s", self.host.link_mb_per_s)?,
            link_write_4k: self
                .host
                .link_write_mb_per_s
                .map(|rate| self.per_4k("host.link_write_mb_per_s", rate))
                .transpose()?,
            command: self.us("host.command_us", self.host.command_us)?,
            write_command: self
                .host
                .write_command_us
                .map(|us| self.us("host.write_command_us", us))
                .transpose()?,
            write_serial_4k: self
                .us("host.write_serial_4k_us", self.host.write_serial_4k_us.unwrap_or_default())?,
            cores: self.int("host.cores", self.host.cores.unwrap_or(1), 1, 256)?,
            power_loss_protection: self.host.power_loss_protection.unwrap_or(false),
            single_cache: self.single_cache(&geometry, scale)?,
            refresh_reads: self.refresh_reads()?,
            command_serial: self
                .us("host.command_serial_us", self.host.command_serial_us.unwrap_or_default())?,
            map_cache: self.map_cache(overrides, scale, &geometry)?,
            log_block: self.log_block(overrides)?,
            remap: self.remap(scale)?,
            devirtualize: self.devirtualize(overrides)?,
            zones: self.zones(&geometry, scaled.blocks_by, scale)?,
            seed: overrides.seed,
            serial: DriveSerial::of(&[self.text.as_bytes(), &overrides.seed.to_le_bytes()]),
            floors: Vec::new(),
        };
        let asked = Asked {
            scale: Ratio::new(scale).unwrap_or(Ratio::ONE),
            full_pages_per_block: f64::from(geometry.pages_per_block) / scaled.blocks_by,
            buffer_pages: self.buffer_asked(overrides, scale, &geometry)?,
            foreground_lines: config.foreground_lines,
            segments: segments(&config),
        };
        let config = config.checked().map_err(|source| self.config_error(source))?;
        let floors = floors(&asked, &config).into_iter();
        let floors = floors.map(|floor| self.where_it_ends(floor, overrides)).collect();
        Ok(DriveConfig { floors, ..config })
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

    fn buffer_order(&self) -> Result<BufferOrder, ProfileError> {
        match self.host.write_buffer_order.as_deref() {
            None | Some("age") => Ok(BufferOrder::Age),
            Some("address") => Ok(BufferOrder::Address),
            Some(other) => {
                Err(self.value("host.write_buffer_order", other, "age or address".into()))
            }
        }
    }

    fn streams_by(&self) -> Result<StreamsBy, ProfileError> {
        match self.ftl.streams_by.as_deref() {
            None | Some("hint") => Ok(StreamsBy::Hint),
            Some("address") => Ok(StreamsBy::Address),
            Some(other) => Err(self.value("ftl.streams_by", other, "hint or address".into())),
        }
    }

    fn spare_percent(&self, overrides: &Overrides) -> Result<f64, ProfileError> {
        match overrides.over_provisioning {
            Some(percent) => self.range("--op", percent, 0.1, 1000.0),
            None => {
                let percent = self.capacity.over_provisioning_percent;
                self.range("capacity.over_provisioning_percent", percent, 0.1, 1000.0)
            }
        }
    }

    /// A scaled drive has as many dies and (down to eight pages a block) as many blocks as the
    /// whole one: its blocks have fewer pages. So lines keep their share of the drive, and cleaning
    /// its costs and its moments.
    fn scaled(&self, scale: f64, spare_percent: f64) -> Result<Scaled, ProfileError> {
        let flash = &self.flash;
        let page_bytes = match self.bytes("flash.page", &flash.page)? {
            bytes @ (4096 | 8192 | 16384) => bytes,
            _ => return Err(self.value("flash.page", &flash.page, "4KiB, 8KiB or 16KiB".into())),
        };
        let parts = self.parts()?;
        let page_bytes = page_bytes / u64::from(parts);
        let full =
            f64::from(parts * self.int("flash.pages_per_block", flash.pages_per_block, 1, 65_536)?);
        let pages_per_block = self.whole_word_lines(full * scale, FEWEST_PAGES.min(full))?;
        let user_bytes = self.bytes("capacity.user", &self.capacity.user)? as f64 * scale;
        let user_pages = (user_bytes / page_bytes as f64) as u64;
        if user_pages == 0 {
            return Err(self.value(
                "capacity.user",
                &self.capacity.user,
                "at least a page, at this scale".into(),
            ));
        }
        let mut geometry = Geometry {
            channels: self.int("flash.channels", flash.channels, 1, 256)?,
            dies_per_channel: self.int("flash.dies_per_channel", flash.dies_per_channel, 1, 256)?,
            planes_per_die: self.int("flash.planes_per_die", flash.planes_per_die, 1, 32)?,
            blocks_per_plane: 0,
            pages_per_block: pages_per_block as u32,
            page_bytes: page_bytes as u32,
        };
        let row_pages = f64::from(geometry.units()) * pages_per_block;
        let rows = user_pages as f64 * (1.0 + spare_percent / 100.0) / row_pages;
        geometry.blocks_per_plane = rows.ceil() as u32;
        geometry.check().map_err(|error| self.config_error(ConfigError::Geometry(error)))?;
        let user_blocks = user_pages * (page_bytes / BLOCK_SIZE);
        Ok(Scaled { geometry, blocks_by: pages_per_block / full, user_blocks })
    }

    /// Erasing a block with fewer pages takes less time, so that its share in writing a page stays.
    fn timing(&self, blocks_by: f64) -> Result<Timing, ProfileError> {
        Ok(Timing {
            read: self.mean("timing.read_us", &self.timing.read_us)?,
            program: self.mean("timing.program_us", &self.timing.program_us)?,
            cells: self.cells()?,
            single: self.single_timing(blocks_by)?,
            suspend: self.suspend(blocks_by)?,
            planes_read_apart: self.planes_read_apart()?,
            bus: self.bus()?,
            erase: self.us("timing.erase_us", self.timing.erase_us * blocks_by)?,
            transfer_4k: self.per_4k("timing.channel_mb_per_s", self.timing.channel_mb_per_s)?,
        })
    }

    /// A share of the spare flash in lines.
    fn spare_lines(
        &self,
        key: &'static str,
        percent: f64,
        scaled: &Scaled,
        shape: LineShape,
    ) -> Result<u32, ProfileError> {
        let percent = self.range(key, percent, 0.0, 1000.0)?;
        let spare_bytes =
            scaled.geometry.raw_bytes().saturating_sub(scaled.user_blocks * BLOCK_SIZE);
        let line_bytes = shape.pages_per_line(&scaled.geometry) * scaled.geometry.page_bytes;
        Ok((spare_bytes as f64 / f64::from(line_bytes) * percent / 100.0).round() as u32)
    }

    /// Garbage of a line that is cleaned in the background, in pages.
    fn least_garbage(&self, geometry: &Geometry, shape: LineShape) -> Result<u32, ProfileError> {
        let percent = self.ftl.gc_least_garbage_percent.unwrap_or_default();
        let percent = self.range("ftl.gc_least_garbage_percent", percent, 0.0, 50.0)?;
        Ok((f64::from(shape.pages_per_line(geometry)) * percent / 100.0).round() as u32)
    }

    fn factory_bad(&self, geometry: &Geometry) -> Result<Vec<BlockId>, ProfileError> {
        let share = self.range(
            "flash.factory_bad_per_mille",
            self.flash.factory_bad_per_mille,
            0.0,
            100.0,
        )? / 1000.0;
        if share == 0.0 {
            return Ok(Vec::new());
        }
        let mut rng = Rng::new(0xBAD);
        Ok((0..geometry.blocks()).map(BlockId).filter(|_| rng.chance(share)).collect())
    }

    /// The write buffer shrinks with the drive, but not below what keeps all units at work.
    fn buffer_pages(
        &self,
        overrides: &Overrides,
        scale: f64,
        scaled: &Scaled,
    ) -> Result<u32, ProfileError> {
        let page = u64::from(scaled.geometry.page_bytes);
        let capacity = scaled.user_blocks * BLOCK_SIZE;
        let (key, bytes, scale) = self.buffer_bytes(overrides, scale)?;
        let most =
            if overrides.buffer.is_some() { capacity } else { (capacity as f64 / scale) as u64 };
        if bytes != 0 && !(page..=most).contains(&bytes) {
            return Err(self.value(
                key,
                &bytes.to_string(),
                format!("0, or {page} (a page) to {most} bytes"),
            ));
        }
        let pages = (bytes / page) as f64;
        let at_once = self.cells()?.map_or(1, |cells| cells.pages_at_once(CellMode::Native));
        let least = f64::from(scaled.geometry.units() * at_once * FEWEST_BUFFERED).min(pages);
        Ok((pages * scale).round().max(least) as u32)
    }

    /// The key of the write buffer's size, its bytes, and the scale by which it shrinks: one that
    /// the run gives does not.
    fn buffer_bytes(
        &self,
        overrides: &Overrides,
        scale: f64,
    ) -> Result<(&'static str, u64, f64), ProfileError> {
        const KEY: &str = "host.write_buffer";
        match overrides.buffer {
            Some(bytes) => Ok(("--buffer", bytes, 1.0)),
            None => Ok((KEY, self.bytes(KEY, &self.host.write_buffer)?, scale)),
        }
    }

    /// Pages of the write buffer as the scale asks for them.
    fn buffer_asked(
        &self,
        overrides: &Overrides,
        scale: f64,
        geometry: &Geometry,
    ) -> Result<f64, ProfileError> {
        let (_, bytes, scale) = self.buffer_bytes(overrides, scale)?;
        Ok((bytes / u64::from(geometry.page_bytes)) as f64 * scale)
    }

    fn shape(&self) -> Result<LineShape, ProfileError> {
        match self.ftl.lines.as_str() {
            "superblock" => Ok(LineShape::Superblock),
            "block" => Ok(LineShape::Block),
            other => Err(self.value("ftl.lines", other, "superblock or block".into())),
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
        const KEY: &str = "ftl.log_blocks";
        let asked = self.ftl.log_blocks;
        let name = overrides.map.as_ref().unwrap_or(&self.ftl.map);
        let Some(scheme) = LogScheme::named(name) else {
            return match (asked, &overrides.map) {
                (Some(blocks), None) => {
                    Err(self.value(KEY, &blocks.to_string(), "only with map bast or fast".into()))
                }
                _ => Ok(None),
            };
        };
        let log_lines = self.int(KEY, asked.unwrap_or(DEFAULT_LOG_BLOCKS), 1, 4096)?;
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
        let default = is_demand.then_some(DEFAULT_CACHE.0);
        let name = overrides.cache.as_deref().or(own.map(|own| own.policy.as_str())).or(default);
        let Some(name) = name.filter(|name| *name != NO_CACHE) else { return Ok(None) };
        let names = || {
            let names = cache::POLICIES.iter().map(|policy| policy.name).chain([NO_CACHE]);
            names.collect::<Vec<_>>().join(", ")
        };
        let policy = cache::policy(name);
        let policy = policy
            .ok_or_else(|| self.value("map_cache.policy", name, format!("one of {}", names())))?;
        let bytes = match (overrides.cache_size, own) {
            (Some(bytes), _) => bytes,
            (None, Some(own)) => (self.bytes("map_cache.size", &own.size)? as f64 * scale) as u64,
            (None, None) => DEFAULT_CACHE.1,
        };
        Ok(Some(MapCacheConfig { policy, bytes, page_entries: most_page_entries(geometry) }))
    }

    fn policy(&self, overrides: &Overrides) -> Result<&'static victim::Policy, ProfileError> {
        let name = overrides.gc.as_ref().unwrap_or(&self.ftl.gc);
        let names =
            || victim::POLICIES.iter().map(|policy| policy.name).collect::<Vec<_>>().join(", ");
        victim::policy(name)
            .ok_or_else(|| self.value("ftl.gc", name, format!("one of {}", names())))
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

    /// With a map of another kind than the profile's it may be impossible, which leaves it out.
    fn devirtualize(&self, overrides: &Overrides) -> Result<Option<u32>, ProfileError> {
        let sparse = overrides.map.is_none() || self.scheme(overrides)?.sparse;
        let renames = self.remap.as_ref().and_then(|remap| remap.renames).filter(|_| sparse);
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

    pub(super) fn config_error(&self, source: ConfigError) -> ProfileError {
        ProfileError::Config { file: self.file.clone(), source }
    }

    pub(super) fn value(&self, key: &'static str, value: &str, allowed: String) -> ProfileError {
        ProfileError::Value { file: self.file.clone(), key, value: format!("'{value}'"), allowed }
    }

    pub(super) fn bytes(&self, key: &'static str, text: &str) -> Result<u64, ProfileError> {
        parse_bytes(text).map_err(|_| self.value(key, text, "a size such as 4KiB or 32GiB".into()))
    }

    pub(super) fn range(
        &self,
        key: &'static str,
        value: f64,
        least: f64,
        most: f64,
    ) -> Result<f64, ProfileError> {
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(self.value(key, &value.to_string(), format!("{least} to {most}")))
    }

    pub(super) fn int(
        &self,
        key: &'static str,
        value: i64,
        least: u32,
        most: u32,
    ) -> Result<u32, ProfileError> {
        let in_range = u32::try_from(value).ok().filter(|value| (least..=most).contains(value));
        in_range.ok_or_else(|| self.value(key, &value.to_string(), format!("{least} to {most}")))
    }

    pub(super) fn us(&self, key: &'static str, us: f64) -> Result<SimSpan, ProfileError> {
        Ok(SimSpan::from_ns((self.range(key, us, 0.0, 1e9)? * 1000.0).round() as u64))
    }

    fn per_4k(&self, key: &'static str, mb_per_s: f64) -> Result<SimSpan, ProfileError> {
        if mb_per_s == 0.0 {
            return Ok(SimSpan::ZERO);
        }
        let rate = self.range(key, mb_per_s, 1.0, 1e6)?;
        Ok(SimSpan::from_ns((4096.0 * 1000.0 / rate).round() as u64))
    }
}
