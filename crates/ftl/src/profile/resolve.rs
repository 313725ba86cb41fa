//! From the figures of a profile to the drive that they make.

use dovetail_block::{BLOCK_SIZE, DriveSerial, Isolation};
use dovetail_nand::{BlockId, CellMode, Geometry, NandConfig, Timing};
use dovetail_time::{Ratio, Rng, SimSpan, parse_bytes};

use super::floors::{Asked, floors, segments};
use super::{Overrides, Profile, ProfileError};
use crate::config::{BufferOrder, ConfigError, DriveConfig, StreamsBy};
use crate::lines::LineShape;
use crate::victim;

/// Bytes that a size may have: beyond any drive, and far from where sums overflow.
pub(super) const MOST_BYTES: u64 = 1 << 50;

/// Pages that a block keeps however small the scale.
pub(super) const FEWEST_PAGES: f64 = 8.0;

/// Places that a write buffer keeps for each unit however small the scale, in pages or in word
/// lines that are programmed in one go: half of them are being programmed, and a unit that ends one
/// finds the next.
const FEWEST_BUFFERED: u32 = 4;

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
        let config = self.with_flash(&scaled, scale)?;
        let config = self.with_cleaning(config, overrides, &scaled)?;
        let config = self.with_host(config, overrides, scale, &scaled)?;
        let config = self.with_maps(config, overrides, scale)?;
        let config = DriveConfig {
            name: self.name.clone(),
            seed: overrides.seed,
            serial: DriveSerial::of(&[self.text.as_bytes(), &overrides.seed.to_le_bytes()]),
            ..config
        };
        self.checked(config, overrides, scale, &scaled)
    }

    /// A plain drive on this flash.
    fn with_flash(&self, scaled: &Scaled, scale: f64) -> Result<DriveConfig, ProfileError> {
        let geometry = scaled.geometry;
        Ok(DriveConfig {
            nand: NandConfig {
                geometry,
                timing: self.timing(scaled.blocks_by)?,
                retry: self.retry(scaled.blocks_by)?,
                endurance: self.int("flash.endurance", self.flash.endurance, 1, 1_000_000_000)?,
                factory_bad: self.factory_bad(&geometry)?,
            },
            single_cache: self.single_cache(&geometry, scale)?,
            refresh_reads: self.refresh_reads(scaled.blocks_by)?,
            zones: self.zones(&geometry, scaled.blocks_by, scale)?,
            spare_is_room: self.capacity.spare_is_room.unwrap_or(false),
            ..DriveConfig::plain(geometry, scaled.user_blocks)
        })
    }

    /// The drive with lines, streams and cleaning as the profile has them.
    fn with_cleaning(
        &self,
        config: DriveConfig,
        overrides: &Overrides,
        scaled: &Scaled,
    ) -> Result<DriveConfig, ProfileError> {
        let (shape, ftl) = (self.shape()?, &self.ftl);
        let lines = |key, percent| {
            Ok::<_, ProfileError>(self.lines(key, percent, scaled, shape)?.round() as u32)
        };
        Ok(DriveConfig {
            shape,
            policy: self.policy(overrides)?,
            choices: self.int("ftl.gc_choices", ftl.gc_choices, 1, 1000)?,
            streams: self.int("ftl.streams", ftl.streams, 1, 16)? as u8,
            streams_by: self.streams_by()?,
            gc_apart: ftl.gc_apart,
            gc_within_die: ftl.gc_within_die.unwrap_or(false),
            fdp: self.isolation()?,
            foreground_lines: lines("ftl.gc_foreground_percent", ftl.gc_foreground_percent)?,
            background_lines: lines("ftl.gc_background_percent", ftl.gc_background_percent)?,
            least_garbage: self.least_garbage(&scaled.geometry, shape)?,
            idle_after: self.us("ftl.gc_idle_us", ftl.gc_idle_us)?,
            wear_spread: self.int("ftl.wear_spread", ftl.wear_spread, 0, 1_000_000_000)?,
            ..config
        })
    }

    /// The drive with controller, link and write buffer as the profile has them.
    fn with_host(
        &self,
        config: DriveConfig,
        overrides: &Overrides,
        scale: f64,
        scaled: &Scaled,
    ) -> Result<DriveConfig, ProfileError> {
        let host = &self.host;
        let us = |key, us| self.us(key, us);
        let link = |key, rate| self.per_4k(key, rate);
        let serial_4k = host.write_serial_4k_us.unwrap_or_default();
        let request = host.request_serial_us.unwrap_or_default();
        Ok(DriveConfig {
            buffer_pages: self.buffer_pages(overrides, scale, scaled)?,
            buffer_order: self.buffer_order()?,
            link_4k: link("host.link_mb_per_s", host.link_mb_per_s)?,
            link_write_4k: host
                .link_write_mb_per_s
                .map(|rate| link("host.link_write_mb_per_s", rate))
                .transpose()?,
            command: us("host.command_us", host.command_us)?,
            write_command: host
                .write_command_us
                .map(|time| us("host.write_command_us", time))
                .transpose()?,
            command_serial: us(
                "host.command_serial_us",
                host.command_serial_us.unwrap_or_default(),
            )?,
            write_serial_4k: us("host.write_serial_4k_us", serial_4k)?,
            request_serial: us("host.request_serial_us", request)?,
            flush: us("host.flush_us", host.flush_us.unwrap_or_default())?,
            fua: us("host.fua_us", host.fua_us.unwrap_or_default())?,
            cores: self.int("host.cores", host.cores.unwrap_or(1), 1, 256)?,
            power_loss_protection: host.power_loss_protection.unwrap_or(false),
            ..config
        })
    }

    /// The drive, if it can work, with the figures that the scale has put at their floors.
    fn checked(
        &self,
        config: DriveConfig,
        overrides: &Overrides,
        scale: f64,
        scaled: &Scaled,
    ) -> Result<DriveConfig, ProfileError> {
        let geometry = scaled.geometry;
        let percent = self.ftl.gc_foreground_percent;
        let asked = Asked {
            scale: Ratio::new(scale).unwrap_or(Ratio::ONE),
            full_pages_per_block: f64::from(geometry.pages_per_block) / scaled.blocks_by,
            buffer_pages: self.buffer_asked(overrides, scale, &geometry)?,
            foreground_lines: self.lines(
                "ftl.gc_foreground_percent",
                percent,
                scaled,
                config.shape,
            )?,
            segments: segments(&config),
        };
        let config = config.checked().map_err(|source| self.config_error(source))?;
        let floors = floors(&asked, &config).into_iter();
        let floors = floors.map(|floor| self.where_it_ends(floor, overrides)).collect();
        Ok(DriveConfig { floors, ..config })
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

    fn isolation(&self) -> Result<Option<Isolation>, ProfileError> {
        let Some(fdp) = &self.fdp else { return Ok(None) };
        match fdp.isolation.as_str() {
            "initial" => Ok(Some(Isolation::Initial)),
            "persistent" => Ok(Some(Isolation::Persistent)),
            other => Err(self.value("fdp.isolation", other, "initial or persistent".into())),
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

    /// A share of the spare flash, or of all of it, in lines.
    fn lines(
        &self,
        key: &'static str,
        percent: f64,
        scaled: &Scaled,
        shape: LineShape,
    ) -> Result<f64, ProfileError> {
        let percent = self.range(key, percent, 0.0, 1000.0)?;
        let all_bytes = scaled.geometry.raw_bytes();
        let bytes = match self.ftl.gc_percent_of.as_deref() {
            None | Some("spare") => all_bytes.saturating_sub(scaled.user_blocks * BLOCK_SIZE),
            Some("all") => all_bytes,
            Some(other) => {
                return Err(self.value("ftl.gc_percent_of", other, "spare or all".into()));
            }
        };
        let line_pages = f64::from(shape.pages_per_line(&scaled.geometry));
        let line_bytes = line_pages * f64::from(scaled.geometry.page_bytes);
        Ok(bytes as f64 / line_bytes * percent / 100.0)
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

    fn policy(&self, overrides: &Overrides) -> Result<&'static victim::Policy, ProfileError> {
        let name = overrides.gc.as_ref().unwrap_or(&self.ftl.gc);
        let names =
            || victim::POLICIES.iter().map(|policy| policy.name).collect::<Vec<_>>().join(", ");
        victim::policy(name)
            .ok_or_else(|| self.value("ftl.gc", name, format!("one of {}", names())))
    }

    pub(super) fn config_error(&self, source: ConfigError) -> ProfileError {
        ProfileError::Config { file: self.file.clone(), source }
    }

    pub(super) fn value(&self, key: &'static str, value: &str, allowed: String) -> ProfileError {
        ProfileError::Value { file: self.file.clone(), key, value: format!("'{value}'"), allowed }
    }

    pub(super) fn bytes(&self, key: &'static str, text: &str) -> Result<u64, ProfileError> {
        match parse_bytes(text) {
            Err(_) => Err(self.value(key, text, "a size such as 4KiB or 32GiB".into())),
            Ok(bytes) if bytes > MOST_BYTES => {
                Err(self.value(key, text, "up to 1048576GiB".into()))
            }
            Ok(bytes) => Ok(bytes),
        }
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
