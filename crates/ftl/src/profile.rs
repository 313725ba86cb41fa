//! Drive profiles: TOML files that say what a drive is, each figure with its source.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dovetail_block::BLOCK_SIZE;
use dovetail_nand::{BlockId, Geometry, NandConfig, Timing};
use dovetail_time::{Ratio, Rng, SimSpan, parse_bytes};
use serde::Deserialize;

use crate::config::{ConfigError, DriveConfig};
use crate::lines::LineShape;
use crate::{mapping, victim};

/// The profiles that come with the project: name and text.
const BUILTIN: [(&str, &str); 5] = [
    ("femu-32g", include_str!("../../../profiles/femu-32g.toml")),
    ("openssd-230g", include_str!("../../../profiles/openssd-230g.toml")),
    ("flashsim-100g", include_str!("../../../profiles/flashsim-100g.toml")),
    ("fsdv-5g", include_str!("../../../profiles/fsdv-5g.toml")),
    ("nvme-250g", include_str!("../../../profiles/nvme-250g.toml")),
];

/// Names of the profiles that come with the project.
pub fn builtin_profiles() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// A profile that cannot be used; the message names the file, the key and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Neither a profile of the project nor a file.
    #[error("there is no drive profile '{name}': give one of {known}, or the path of a .toml file", known = known())]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The file could not be read.
    #[error("{file} cannot be read: {source}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// Not TOML, or an unknown or missing key.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Line in the file, from 1.
        line: usize,
        /// What is wrong, with the keys that are allowed.
        message: String,
    },
    /// A value out of its range.
    #[error("{file}: {key} is {value}, allowed is {allowed}")]
    Value {
        /// The file.
        file: String,
        /// Table and key.
        key: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// The values do not make a drive that works.
    #[error("{file}: {source}")]
    Config {
        /// The file.
        file: String,
        /// Why.
        source: ConfigError,
    },
}

fn known() -> String {
    builtin_profiles().collect::<Vec<_>>().join(", ")
}

/// What a run changes in a profile.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Shrinks the drive and keeps its ratios.
    pub scale: Option<Ratio>,
    /// Spare space in percent of the capacity.
    pub over_provisioning: Option<f64>,
    /// A victim policy's name.
    pub gc: Option<String>,
    /// A mapping scheme's name.
    pub map: Option<String>,
    /// Bytes in the write buffer.
    pub buffer: Option<u64>,
    /// Seeds the policies that draw.
    pub seed: u64,
}

/// A profile in which one assumed figure is another.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The figure: `table.key`.
    pub key: String,
    /// What it was.
    pub from: String,
    /// What it is.
    pub to: String,
    /// The profile with it.
    pub profile: Profile,
}

/// Half and double of a figure as TOML; the other state of a switch.
fn alternatives(figure: &str) -> Vec<String> {
    if let Ok(switch) = figure.parse::<bool>() {
        return vec![(!switch).to_string()];
    }
    if let Ok(whole) = figure.parse::<u64>() {
        return vec![(whole / 2).to_string(), (whole * 2).to_string()];
    }
    if let Ok(number) = figure.parse::<f64>() {
        return vec![format!("{:?}", number / 2.0), format!("{:?}", number * 2.0)];
    }
    match parse_bytes(figure) {
        Ok(bytes) => vec![format!("\"{}\"", bytes / 2), format!("\"{}\"", bytes * 2)],
        Err(_) => Vec::new(),
    }
}

/// A profile as it stands in its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What it models, in one sentence.
    pub about: String,
    capacity: Capacity,
    flash: Flash,
    timing: Times,
    host: Host,
    ftl: Ftl,
    /// For each key, as `table.key`: where its figure comes from, or "assumed" and why.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    #[serde(skip)]
    file: String,
    #[serde(skip)]
    text: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Capacity {
    user: String,
    over_provisioning_percent: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flash {
    channels: u32,
    dies_per_channel: u32,
    planes_per_die: u32,
    pages_per_block: u32,
    page: String,
    endurance: u32,
    factory_bad_per_mille: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Times {
    read_us: f64,
    program_us: f64,
    erase_us: f64,
    channel_mb_per_s: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    link_mb_per_s: f64,
    command_us: f64,
    write_buffer: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ftl {
    map: String,
    map_access_ns: u64,
    lines: String,
    streams: u8,
    gc: String,
    gc_choices: u32,
    gc_apart: bool,
    gc_foreground_percent: f64,
    gc_background_percent: f64,
    gc_idle_us: f64,
    wear_spread: u32,
}

impl Profile {
    /// A profile of the project by its name, or one in a file by its path.
    ///
    /// # Errors
    /// No such profile, an unreadable file, a key or value that is not allowed.
    pub fn load(name: &str) -> Result<Self, ProfileError> {
        if let Some((_, text)) = BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
            return Self::parse(text, &format!("profiles/{name}.toml"));
        }
        if Path::new(name).extension().is_none_or(|extension| extension != "toml") {
            return Err(ProfileError::Unknown { name: name.into() });
        }
        let text =
            fs::read_to_string(name).map_err(|source| ProfileError::Read { file: name.into(), source })?;
        Self::parse(&text, name)
    }

    /// Reads a profile from text; `file` is what errors call it.
    ///
    /// # Errors
    /// A key or value that is not allowed.
    pub fn parse(text: &str, file: &str) -> Result<Self, ProfileError> {
        let mut profile: Self = toml::from_str(text).map_err(|error| syntax(text, file, &error))?;
        profile.file = file.into();
        profile.text = text.into();
        profile.resolve(&Overrides::default())?;
        Ok(profile)
    }

    /// Every figure as it stands in the file: `table.key` and its value.
    pub fn figures(&self) -> Vec<(String, String)> {
        let document: toml::Table = self.text.parse().unwrap_or_default();
        let mut figures = Vec::new();
        for (table, keys) in document.iter().filter(|(name, _)| *name != "sources") {
            for (key, value) in keys.as_table().into_iter().flatten() {
                figures.push((format!("{table}.{key}"), value.to_string().trim_matches('"').to_string()));
            }
        }
        figures
    }

    /// The profile with each of its assumed figures halved and doubled (a switch: turned), one at a time: what a
    /// sensitivity check compares. Figures that cannot be changed so (a name, or a drive that could not work) are
    /// left out.
    pub fn variants_of_assumed(&self) -> Vec<Variant> {
        let is_assumed = |key: &str| self.sources.get(key).is_some_and(|source| source.contains("assumed"));
        let mut variants = Vec::new();
        for (key, from) in self.figures().into_iter().filter(|(key, _)| is_assumed(key)) {
            for to in alternatives(&from) {
                if let Some(profile) = self.with_figure(&key, &to).filter(|_| to != from) {
                    let to = to.trim_matches('"').to_string();
                    variants.push(Variant { key: key.clone(), from: from.clone(), to, profile });
                }
            }
        }
        variants
    }

    fn with_figure(&self, key: &str, value: &str) -> Option<Self> {
        let (table, name) = key.split_once('.')?;
        let mut document: toml::Table = self.text.parse().ok()?;
        let value: toml::Table = format!("value = {value}").parse().ok()?;
        document.get_mut(table)?.as_table_mut()?.insert(name.into(), value.get("value")?.clone());
        Self::parse(&document.to_string(), &self.file).ok()
    }

    /// The drive that the profile and the changes to it make.
    ///
    /// # Errors
    /// A value out of range, or a drive that cannot work.
    pub fn resolve(&self, overrides: &Overrides) -> Result<DriveConfig, ProfileError> {
        let scale = overrides.scale.unwrap_or(Ratio::ONE).value();
        self.range("--scale", scale, 1e-6, 1.0)?;
        let spare_percent = match overrides.over_provisioning {
            Some(percent) => self.range("--op", percent, 0.1, 1000.0)?,
            None => self.range(
                "capacity.over_provisioning_percent",
                self.capacity.over_provisioning_percent,
                0.1,
                1000.0,
            )?,
        };
        let (geometry, block_scale, user_blocks) = self.geometry(scale, spare_percent)?;
        let spare_pages =
            f64::from(geometry.pages()) - (user_blocks / u64::from(geometry.parts_per_page())) as f64;
        let shape = self.shape()?;
        let line_pages =
            geometry.pages_per_block * if shape == LineShape::Superblock { geometry.units() } else { 1 };
        let spare_lines =
            |percent: f64| (spare_pages / f64::from(line_pages) * percent / 100.0).round() as u32;
        let foreground =
            self.range("ftl.gc_foreground_percent", self.ftl.gc_foreground_percent, 0.0, 90.0)?;
        let background =
            self.range("ftl.gc_background_percent", self.ftl.gc_background_percent, 0.0, 90.0)?;
        let config = DriveConfig {
            name: self.name.clone(),
            nand: NandConfig {
                geometry,
                timing: self.timing(block_scale)?,
                endurance: self.flash.endurance,
                factory_bad: self.factory_bad(&geometry)?,
            },
            user_blocks,
            scheme: self.scheme(overrides)?,
            policy: self.policy(overrides)?,
            choices: self.ftl.gc_choices.max(1),
            shape,
            streams: self.ftl.streams,
            gc_apart: self.ftl.gc_apart,
            foreground_lines: spare_lines(foreground),
            background_lines: spare_lines(background),
            idle_after: self.us("ftl.gc_idle_us", self.ftl.gc_idle_us)?,
            buffer_pages: self.buffer_pages(overrides, scale, &geometry)?,
            wear_spread: self.ftl.wear_spread,
            map_access: SimSpan::from_ns(self.ftl.map_access_ns),
            link_4k: self.per_4k("host.link_mb_per_s", self.host.link_mb_per_s)?,
            command: self.us("host.command_us", self.host.command_us)?,
            seed: overrides.seed,
        };
        config.checked().map_err(|source| ProfileError::Config { file: self.file.clone(), source })
    }

    /// The layout at a scale, by how much blocks have shrunk, and the capacity in blocks of 4 KiB.
    ///
    /// A scaled drive has as many dies and (down to eight pages a block) as many blocks as the whole one: its
    /// blocks have fewer pages. So lines keep their share of the drive, and cleaning its costs and its moments.
    fn geometry(&self, scale: f64, spare_percent: f64) -> Result<(Geometry, f64, u64), ProfileError> {
        const FEWEST_PAGES: f64 = 8.0;
        let flash = &self.flash;
        let page_bytes = self.bytes("flash.page", &flash.page)? as u32;
        let full = f64::from(flash.pages_per_block);
        let pages_per_block = (full * scale).round().max(FEWEST_PAGES.min(full));
        let user_bytes = (self.bytes("capacity.user", &self.capacity.user)? as f64 * scale) as u64;
        let user_pages = user_bytes / u64::from(page_bytes).max(1);
        let row_pages = f64::from(flash.channels)
            * f64::from(flash.dies_per_channel)
            * f64::from(flash.planes_per_die)
            * pages_per_block;
        let rows = user_pages as f64 * (1.0 + spare_percent / 100.0) / row_pages.max(1.0);
        let geometry = Geometry {
            channels: flash.channels,
            dies_per_channel: flash.dies_per_channel,
            planes_per_die: flash.planes_per_die,
            blocks_per_plane: rows.ceil() as u32,
            pages_per_block: pages_per_block as u32,
            page_bytes,
        };
        let config =
            |error| ProfileError::Config { file: self.file.clone(), source: ConfigError::Geometry(error) };
        geometry.check().map_err(config)?;
        Ok((geometry, pages_per_block / full, user_pages * u64::from(page_bytes) / BLOCK_SIZE))
    }

    /// Erasing a block with fewer pages takes less time, so that its share in writing a page stays.
    fn timing(&self, block_scale: f64) -> Result<Timing, ProfileError> {
        let erase_us = self.timing.erase_us * block_scale;
        Ok(Timing {
            read: self.us("timing.read_us", self.timing.read_us)?,
            program: self.us("timing.program_us", self.timing.program_us)?,
            erase: self.us("timing.erase_us", erase_us)?,
            transfer_4k: self.per_4k("timing.channel_mb_per_s", self.timing.channel_mb_per_s)?,
        })
    }

    fn factory_bad(&self, geometry: &Geometry) -> Result<Vec<BlockId>, ProfileError> {
        let share =
            self.range("flash.factory_bad_per_mille", self.flash.factory_bad_per_mille, 0.0, 100.0)? / 1000.0;
        if share == 0.0 {
            return Ok(Vec::new());
        }
        let mut rng = Rng::new(0xBAD);
        Ok((0..geometry.blocks()).map(BlockId).filter(|_| rng.chance(share)).collect())
    }

    /// The write buffer shrinks with the drive, but not below a page for each unit.
    fn buffer_pages(
        &self,
        overrides: &Overrides,
        scale: f64,
        geometry: &Geometry,
    ) -> Result<u32, ProfileError> {
        let page = u64::from(geometry.page_bytes);
        if let Some(bytes) = overrides.buffer {
            return Ok((bytes / page) as u32);
        }
        let pages = (self.bytes("host.write_buffer", &self.host.write_buffer)? / page) as f64;
        let least = f64::from(geometry.units()).min(pages);
        Ok((pages * scale).round().max(least) as u32)
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
        let names = || mapping::SCHEMES.iter().map(|scheme| scheme.name).collect::<Vec<_>>().join(" or ");
        mapping::scheme(name).ok_or_else(|| self.value("ftl.map", name, names()))
    }

    fn policy(&self, overrides: &Overrides) -> Result<&'static victim::Policy, ProfileError> {
        let name = overrides.gc.as_ref().unwrap_or(&self.ftl.gc);
        let names = || victim::POLICIES.iter().map(|policy| policy.name).collect::<Vec<_>>().join(", ");
        victim::policy(name).ok_or_else(|| self.value("ftl.gc", name, format!("one of {}", names())))
    }

    fn value(&self, key: &'static str, value: &str, allowed: String) -> ProfileError {
        ProfileError::Value { file: self.file.clone(), key, value: format!("'{value}'"), allowed }
    }

    fn bytes(&self, key: &'static str, text: &str) -> Result<u64, ProfileError> {
        parse_bytes(text).map_err(|_| self.value(key, text, "a size such as 4KiB or 32GiB".into()))
    }

    fn range(&self, key: &'static str, value: f64, least: f64, most: f64) -> Result<f64, ProfileError> {
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(self.value(key, &value.to_string(), format!("{least} to {most}")))
    }

    fn us(&self, key: &'static str, us: f64) -> Result<SimSpan, ProfileError> {
        Ok(SimSpan::from_ns((self.range(key, us, 0.0, 1e9)? * 1000.0).round() as u64))
    }

    fn per_4k(&self, key: &'static str, mb_per_s: f64) -> Result<SimSpan, ProfileError> {
        let rate = self.range(key, mb_per_s, 1.0, 1e6)?;
        Ok(SimSpan::from_ns((4096.0 * 1000.0 / rate).round() as u64))
    }
}

fn syntax(text: &str, file: &str, error: &toml::de::Error) -> ProfileError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count() + 1;
    ProfileError::Syntax { file: file.into(), line, message: error.message().trim().replace('\n', " ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builtin(name: &str) -> Profile {
        Profile::load(name).unwrap()
    }

    #[test]
    fn every_figure_of_every_profile_has_a_source() {
        for name in builtin_profiles() {
            let profile = builtin(name);
            assert_eq!(profile.name, name);
            let figures = profile.figures();
            for (key, _) in &figures {
                let source = profile.sources.get(key);
                assert!(source.is_some_and(|s| s.len() > 6), "{name}: {key} has no source");
            }
            assert_eq!(
                figures.len(),
                profile.sources.len(),
                "{name}: a source names a key that is not there"
            );
        }
    }

    #[test]
    fn a_scaled_drive_keeps_its_ratios() {
        let whole = builtin("femu-32g").resolve(&Overrides::default()).unwrap();
        let scale = Overrides { scale: "1/16".parse().ok(), ..Overrides::default() };
        let small = builtin("femu-32g").resolve(&scale).unwrap();
        assert_eq!(small.user_blocks * 16, whole.user_blocks);
        assert_eq!(small.nand.geometry.blocks(), whole.nand.geometry.blocks());
        assert_eq!(small.nand.geometry.pages_per_block * 16, whole.nand.geometry.pages_per_block);
        assert_eq!(small.nand.timing.erase.as_ns() * 16, whole.nand.timing.erase.as_ns());
        assert_eq!(small.background_lines, whole.background_lines);
    }

    #[test]
    fn over_provisioning_is_spare_over_capacity() {
        for op in [7.0, 12.5, 28.0] {
            let change = Overrides { over_provisioning: Some(op), ..Overrides::default() };
            let config = builtin("femu-32g").resolve(&change).unwrap();
            let spare =
                config.nand.geometry.raw_bytes() as f64 / (config.user_blocks * BLOCK_SIZE) as f64 - 1.0;
            assert!((spare * 100.0 - op).abs() < 0.3, "{op}: {spare}");
        }
    }

    #[test]
    fn assumed_figures_are_varied_one_at_a_time() {
        let profile = builtin("femu-32g");
        let variants = profile.variants_of_assumed();
        let changes = |key: &str| {
            let of_key = variants.iter().filter(|v| v.key == key);
            of_key.map(|v| format!("{} to {}", v.from, v.to)).collect::<Vec<_>>()
        };
        assert_eq!(changes("timing.channel_mb_per_s"), ["800 to 400", "800 to 1600"]);
        assert_eq!(changes("host.write_buffer"), ["8MiB to 4194304", "8MiB to 16777216"]);
        assert_eq!(changes("ftl.gc_apart"), ["true to false"]);
        assert_eq!(changes("timing.program_us"), [""; 0], "the paper gives it");
        let doubled = variants.iter().find(|v| v.to == "16777216").unwrap();
        assert_eq!(doubled.profile.resolve(&Overrides::default()).unwrap().buffer_pages, 4096);
    }

    #[test]
    fn a_wrong_profile_names_file_key_and_what_is_allowed() {
        let text = builtin("femu-32g").text;
        let message = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            Profile::parse(&text.replacen(from, to, 1), "my.toml").unwrap_err().to_string()
        };
        assert_eq!(
            message("map = \"page\"", "map = \"pages\""),
            "my.toml: ftl.map is 'pages', allowed is page or hash"
        );
        let unknown = message("channels = 8", "chanels = 8");
        assert!(
            unknown.starts_with("my.toml:") && unknown.contains("`chanels`, expected one of `channels`"),
            "{unknown}"
        );
        let range = message("read_us = 50", "read_us = -1");
        assert_eq!(range, "my.toml: timing.read_us is '-1', allowed is 0 to 1000000000");
        let small = message("user = \"32GiB\"", "user = \"64MiB\"");
        assert!(small.contains("raise over-provisioning"), "{small}");
        assert!(Profile::load("femu").unwrap_err().to_string().contains("femu-32g, openssd-230g"));
    }
}
