//! Drive profiles: TOML files that say what a drive is, each figure with its source.

mod cells;
mod document;
mod floors;
mod maps;
mod resolve;
mod schema;
mod sensitivity;
mod zones;

use std::collections::BTreeMap;
use std::path::Path;

use dovetail_time::Ratio;
use serde::Deserialize;

use crate::config::ConfigError;
use schema::{
    BusTimes, Capacity, Fdp, Flash, Ftl, Host, MapCache, Remap, Retries, Slc, Suspension, Times,
    Zones,
};

pub use sensitivity::Variant;

/// The profiles that come with the project: name and text.
const BUILTIN: [(&str, &str); 25] = [
    ("femu-32g", include_str!("../../profiles/femu-32g.toml")),
    ("femu-32g-zoned", include_str!("../../profiles/femu-32g-zoned.toml")),
    ("femu-32g-fdp", include_str!("../../profiles/femu-32g-fdp.toml")),
    ("femu-32g-log", include_str!("../../profiles/femu-32g-log.toml")),
    ("femu-32g-nvm-log", include_str!("../../profiles/femu-32g-nvm-log.toml")),
    ("openssd-230g", include_str!("../../profiles/openssd-230g.toml")),
    ("flashsim-100g", include_str!("../../profiles/flashsim-100g.toml")),
    ("fsdv-5g", include_str!("../../profiles/fsdv-5g.toml")),
    ("nvme-250g", include_str!("../../profiles/nvme-250g.toml")),
    ("nvme-250g-4k", include_str!("../../profiles/nvme-250g-4k.toml")),
    ("evo970-500g", include_str!("../../profiles/evo970-500g.toml")),
    ("evo970-250g", include_str!("../../profiles/evo970-250g.toml")),
    ("evo970-1t", include_str!("../../profiles/evo970-1t.toml")),
    ("atom50-1t", include_str!("../../profiles/atom50-1t.toml")),
    ("p1-1t", include_str!("../../profiles/p1-1t.toml")),
    ("pm9a3-960g", include_str!("../../profiles/pm9a3-960g.toml")),
    ("pm9d3-1880g-fdp", include_str!("../../profiles/pm9d3-1880g-fdp.toml")),
    ("m7450max-800g", include_str!("../../profiles/m7450max-800g.toml")),
    ("nvmeb-a", include_str!("../../profiles/nvmeb-a.toml")),
    ("zn540-1t", include_str!("../../profiles/zn540-1t.toml")),
    ("zet983-480g", include_str!("../../profiles/zet983-480g.toml")),
    ("ufs31-256g", include_str!("../../profiles/ufs31-256g.toml")),
    ("emmc51-64g", include_str!("../../profiles/emmc51-64g.toml")),
    ("sd-a2-64g", include_str!("../../profiles/sd-a2-64g.toml")),
    ("sd-fast-a2-64g", include_str!("../../profiles/sd-fast-a2-64g.toml")),
];

/// Names of the profiles that come with the project.
pub fn builtin_profiles() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// A profile that cannot be used; the message names the file, the key and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Neither a profile of the project nor a file.
    #[error(
        "there is no drive profile '{name}'{hint}: give one of {known}, or the path of a .toml file",
        hint = dovetail_time::did_you_mean(name, builtin_profiles()),
        known = known()
    )]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
    /// The file could not be read.
    #[error("{file} cannot be read: {source}")]
    Read {
        /// The file.
        file: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Not TOML, or an unknown or missing key.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Line in the file, from 1.
        line: usize,
        /// The mistake, with the keys that are allowed.
        message: String,
    },
    /// Keys that there are not, or that are missing: all of them.
    #[error("{file}: {mistakes}")]
    Keys {
        /// The file.
        file: String,
        /// Each key and what is wrong with it.
        mistakes: String,
    },
    /// A profile to stand on that is not there.
    #[error("{file}: {message}")]
    Base {
        /// The file.
        file: String,
        /// The mistake.
        message: String,
    },
    /// A value of the wrong type on no line of the profile with that key: of its base, or in another
    /// form.
    #[error("{file}: {message}")]
    Based {
        /// The file.
        file: String,
        /// The key and the mistake.
        message: String,
    },
    /// A value out of its range.
    #[error("{file}: {key} is {value}, allowed is {allowed}")]
    Value {
        /// The file.
        file: String,
        /// Table and key.
        key: &'static str,
        /// The value found.
        value: String,
        /// The values allowed.
        allowed: String,
    },
    /// The values do not make a drive that works.
    #[error("{file}: {source}")]
    Config {
        /// The file.
        file: String,
        /// Rule that the values break.
        source: ConfigError,
    },
}

fn known() -> String {
    builtin_profiles().collect::<Vec<_>>().join(", ")
}

/// Changes of a profile for one run.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Shrinks the drive and keeps its ratios.
    pub scale: Option<Ratio>,
    /// Spare space in percent of the capacity.
    pub over_provisioning: Option<f64>,
    /// A victim policy's name.
    pub gc: Option<String>,
    /// A mapping scheme's name, or `demand`: a page map that is paged on demand.
    pub map: Option<String>,
    /// The address space of the host, by its name in profiles: capacity or iplfs.
    pub addresses: Option<String>,
    /// The cache policy of a demand-paged map: a policy's name, or `none` for the whole map in
    /// memory.
    pub cache: Option<String>,
    /// Bytes of that cache.
    pub cache_size: Option<u64>,
    /// Bytes in the write buffer.
    pub buffer: Option<u64>,
    /// Seeds the policies that draw.
    pub seed: u64,
}

/// A profile as it stands in its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// The drive that it models, in one sentence.
    pub about: String,
    capacity: Capacity,
    flash: Flash,
    timing: Times,
    host: Host,
    ftl: Ftl,
    slc: Option<Slc>,
    suspend: Option<Suspension>,
    bus: Option<BusTimes>,
    retry: Option<Retries>,
    map_cache: Option<MapCache>,
    remap: Option<Remap>,
    zones: Option<Zones>,
    fdp: Option<Fdp>,
    /// For each key, as `table.key`: where its figure comes from, or "assumed" and why.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    #[serde(skip)]
    file: String,
    #[serde(skip)]
    text: String,
}

impl Profile {
    /// A profile of the project by its name, or one in a file by its path.
    ///
    /// # Errors
    /// No such profile, an unreadable file, a key or value that is not allowed.
    pub fn load(name: &str) -> Result<Self, ProfileError> {
        if let Some((_, text)) = BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
            return Self::parse(text, name);
        }
        if Path::new(name).extension().is_none_or(|extension| extension != "toml") {
            return Err(ProfileError::Unknown { name: name.into() });
        }
        let text = dovetail_time::read_text(name)
            .map_err(|source| ProfileError::Read { file: name.into(), source })?;
        Self::parse(&text, name)
    }

    /// Reads a profile from text; `file` is what errors call it.
    ///
    /// # Errors
    /// A key or value that is not allowed.
    pub fn parse(text: &str, file: &str) -> Result<Self, ProfileError> {
        let own = text;
        let text = document::complete(own, file)?;
        let wrong = |error| match text == own {
            true => syntax(own, file, &error),
            false => syntax_over_base(own, &text, file, &error),
        };
        let mut profile: Self = toml::from_str(&text).map_err(wrong)?;
        profile.file = file.into();
        profile.text = text;
        profile.resolve(&Overrides::default())?;
        Ok(profile)
    }

    /// The profile in TOML, with all that it takes from its base.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every figure as it stands in the file: `table.key` and its value.
    pub fn figures(&self) -> Vec<(String, String)> {
        let document: toml::Table = self.text.parse().unwrap_or_default();
        let mut figures = Vec::new();
        for (table, keys) in document.iter().filter(|(name, _)| *name != "sources") {
            for (key, value) in keys.as_table().into_iter().flatten() {
                figures.push((
                    format!("{table}.{key}"),
                    value.to_string().trim_matches('"').to_string(),
                ));
            }
        }
        figures
    }
}

fn syntax(text: &str, file: &str, error: &toml::de::Error) -> ProfileError {
    let (line, _, message) = mistake(text, error);
    ProfileError::Syntax { file: file.into(), line: line + 1, message }
}

/// The mistake in `text`, which `own` was laid over its base to make: on the line of `own` that has
/// its key, if one has.
fn syntax_over_base(own: &str, text: &str, file: &str, error: &toml::de::Error) -> ProfileError {
    let (_, key, message) = mistake(text, error);
    let file = file.into();
    let mut lines =
        own.lines().enumerate().filter(|(_, line)| key.is_some() && key_of(line) == key);
    match (lines.next(), lines.next()) {
        (Some((line, _)), None) => ProfileError::Syntax { file, line: line + 1, message },
        _ => ProfileError::Based { file, message },
    }
}

/// The line of a mistake, from 0, its key, and a sentence with that.
fn mistake<'a>(text: &'a str, error: &toml::de::Error) -> (usize, Option<&'a str>, String) {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count();
    let key = text.lines().nth(line).and_then(key_of);
    let message = error
        .message()
        .trim()
        .replace('\n', " ")
        .replace("i64", "a whole number")
        .replace("f64", "a number");
    let message = key.map_or_else(|| message.clone(), |key| format!("{key}: {message}"));
    (line, key, message)
}

fn key_of(line: &str) -> Option<&str> {
    line.split_once('=').map(|(key, _)| key.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RemapStore;
    use dovetail_block::BLOCK_SIZE;
    use dovetail_time::SimSpan;

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

    /// FEMU's are of all lines: 45 and 225 % of the spare ones with its 12.5 % of spare flash, less
    /// with more.
    #[test]
    fn lines_that_are_kept_free_are_of_the_spare_ones_or_of_all() {
        let lines = |name: &str, percent_of: &str, figures: [f64; 2], op, scale: &str| {
            let changes: [(&str, toml::Value); 3] = [
                ("ftl.gc_percent_of", percent_of.into()),
                ("ftl.gc_foreground_percent", figures[0].into()),
                ("ftl.gc_background_percent", figures[1].into()),
            ];
            let profile = builtin(name).with_figures(changes).unwrap();
            let scale = scale.parse().ok();
            let overrides = Overrides { scale, over_provisioning: op, ..Overrides::default() };
            let config = profile.resolve(&overrides).unwrap();
            (config.foreground_lines, config.background_lines)
        };
        for name in builtin_profiles().filter(|name| name.starts_with("femu-32g")) {
            for scale in ["1", "1/4", "1/8", "1/16", "1/32", "1/64"] {
                let all = lines(name, "all", [5.0, 25.0], None, scale);
                assert_eq!(
                    all,
                    lines(name, "spare", [45.0, 225.0], None, scale),
                    "{name}, {scale}"
                );
            }
        }
        let at = |op| lines("femu-32g", "all", [5.0, 25.0], Some(op), "1").1;
        assert!((f64::from(at(100.0)) / f64::from(at(50.0)) - 200.0 / 150.0).abs() < 0.01);
    }

    #[test]
    fn a_drive_renames_where_its_map_holds_the_addresses_of_its_flash() {
        let renames = |map: &str, addresses: &str| {
            let (map, addresses) = (Some(map.to_owned()), Some(addresses.to_owned()));
            let scale = "1/8".parse().ok();
            let overrides = Overrides { scale, map, addresses, ..Overrides::default() };
            builtin("fsdv-5g").resolve(&overrides).unwrap().devirtualize.is_some()
        };
        assert!(renames("interval", "capacity") && renames("hash", "iplfs"));
        assert!(!renames("interval", "iplfs") && !renames("page", "capacity"));
    }

    /// A block of a sixteenth of the pages takes a sixteenth of the reads.
    #[test]
    fn reads_that_wear_a_block_out_shrink_with_its_pages() {
        let text = format!(
            "{}\n[retry]\nstep_us = 50.0\nerases_per_step = 1000.0\nreads_per_step = 3200.0\n\
             days_per_step = 30.0\ndays_at_start = 0.0\nmost = 4\nrefresh_reads = 160_000\n",
            builtin("femu-32g").text
        );
        let profile = Profile::parse(&text, "my.toml").unwrap();
        let of = |scale: &str| {
            let scale = scale.parse().ok();
            let config = profile.resolve(&Overrides { scale, ..Overrides::default() }).unwrap();
            let retry = config.nand.retry.unwrap();
            (1.0 / retry.steps_per_read, 1.0 / retry.steps_per_erase, config.refresh_reads)
        };
        let rounded = |(reads, erases, refresh): (f64, f64, _)| {
            (reads.round() as u64, erases.round() as u64, refresh)
        };
        assert_eq!(rounded(of("1")), (3200, 1000, Some(160_000)));
        assert_eq!(rounded(of("1/16")), (200, 1000, Some(10_000)));
    }

    #[test]
    fn the_log_variant_differs_in_remapping_alone() {
        let figures = |name: &str| {
            let all = builtin(name).figures();
            all.into_iter().filter(|(key, _)| !key.starts_with("remap.")).collect::<Vec<_>>()
        };
        assert_eq!(figures("femu-32g"), figures("femu-32g-log"));
        let store =
            |name: &str| builtin(name).resolve(&Overrides::default()).unwrap().remap.unwrap().store;
        let access = SimSpan::from_ns(100);
        assert_eq!(store("femu-32g"), RemapStore::NonVolatile { access, discard_records: 169 });
        assert_eq!(store("femu-32g-log"), RemapStore::Log);
    }

    #[test]
    fn over_provisioning_is_spare_over_capacity() {
        for op in [7.0, 12.5, 28.0] {
            let change = Overrides { over_provisioning: Some(op), ..Overrides::default() };
            let config = builtin("femu-32g").resolve(&change).unwrap();
            let spare = config.nand.geometry.raw_bytes() as f64
                / (config.user_blocks * BLOCK_SIZE) as f64
                - 1.0;
            assert!((spare * 100.0 - op).abs() < 0.3, "{op}: {spare}");
        }
    }

    #[test]
    fn a_profile_takes_what_it_does_not_say_from_its_base() {
        let text = "name = \"mine\"\nabout = \"a\"\nbase = \"femu-32g\"\n[timing]\nread_us = 60";
        let mine = Profile::parse(text, "mine.toml").unwrap();
        let figure = |profile: &Profile, key: &str| {
            profile.figures().into_iter().find(|(name, _)| name == key).map(|(_, value)| value)
        };
        assert_eq!(figure(&mine, "timing.read_us").as_deref(), Some("60"));
        assert_eq!(mine.name, "mine");
        let femu = builtin("femu-32g");
        for (key, value) in femu.figures().iter().filter(|(key, _)| key != "timing.read_us") {
            assert_eq!(figure(&mine, key).as_ref(), Some(value), "{key}");
        }
        let nobody = text.replace("femu-32g", "nobody.toml");
        let error = Profile::parse(&nobody, "mine.toml").unwrap_err().to_string();
        assert!(
            error.starts_with("mine.toml: base is nobody.toml, which is no profile"),
            "{error}"
        );
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
            "my.toml: ftl.map is 'pages', allowed is page or hash or interval or demand or bast or fast"
        );
        let unknown = message("channels = 8", "chanels = 8");
        assert_eq!(
            unknown,
            "my.toml: line 9: unknown key flash.chanels (did you mean channels?); flash.channels is missing"
        );
        let negative = message("streams = 1", "streams = -1");
        assert_eq!(negative, "my.toml: ftl.streams is '-1', allowed is 1 to 16");
        let own =
            "name = \"mine\"\nabout = \"a\"\nbase = \"femu-32g\"\n[timing]\nread_us = \"x\"\n";
        let based = |text: &str| Profile::parse(text, "my.toml").unwrap_err().to_string();
        assert!(based(own).starts_with("my.toml:5: read_us: give a number"), "{}", based(own));
        let dotted = own.replace("[timing]\nread_us", "timing.read_us");
        assert!(
            based(&dotted).starts_with("my.toml: read_us: give a number"),
            "{}",
            based(&dotted)
        );
        let text_for_number = message("endurance = 100000", "endurance = \"many\"");
        assert!(text_for_number.contains(": endurance: invalid type"), "{text_for_number}");
        let page = message("page = \"4KiB\"", "page = \"8GiB\"");
        assert_eq!(page, "my.toml: flash.page is '8GiB', allowed is 4KiB, 8KiB or 16KiB");
        let buffer = message("write_buffer = \"0\"", "write_buffer = \"15T\"");
        assert!(
            buffer.starts_with(
                "my.toml: host.write_buffer is '16492674416640', allowed is 0, or 4096"
            ),
            "{buffer}"
        );
        let store = message("store = \"nvm\"", "store = \"ram\"");
        assert_eq!(store, "my.toml: remap.store is 'ram', allowed is nvm, nvm-log or log");
        let entry = message("entry_us = 0.1", "");
        assert_eq!(
            entry,
            "my.toml: remap.entry_us is 'left out', allowed is 0 to 1000000000 with non-volatile memory"
        );
        let needless = message("store = \"nvm\"", "store = \"log\"");
        assert_eq!(
            needless,
            "my.toml: remap.entry_us is '0.1', allowed is nothing with store = \"log\""
        );
        let policy = message("[remap]", "[map_cache]\npolicy = \"mru\"\nsize = \"64KiB\"\n[remap]");
        assert_eq!(
            policy,
            "my.toml: map_cache.policy is 'mru', allowed is one of dftl, split, split-bounded, dftl-single, dftl-flashsim, lru, cdftl, s-ftl, leaftl, leaftl-4, tpftl, extent, lanes, none"
        );
        let huge = "[map_cache]\npolicy = \"cdftl\"\nsize = \"17000000000000000000\"\n[remap]";
        let huge = message("[remap]", huge);
        assert_eq!(
            huge,
            "my.toml: map_cache.size is '17000000000000000000', allowed is up to 1048576GiB"
        );
        let range = message("read_us = 50", "read_us = -1");
        assert_eq!(range, "my.toml: timing.read_us is '-1', allowed is 0 to 1000000000");
        let two = "read_us = 50\nprogram_us = 500";
        let lacking = message(two, "[slcc]\nread = 1");
        assert_eq!(
            lacking,
            "my.toml: line 18: unknown slcc (tables are capacity, flash, timing, host, ftl, slc, suspend, bus, retry, \
             map_cache, remap, zones, fdp, sources); timing.read_us is missing; timing.program_us is missing; \
             timing.erase_us is missing; timing.channel_mb_per_s is missing"
        );
        let cells = message("page = \"4KiB\"", "page = \"4KiB\"\ncell = \"tlc\"");
        assert_eq!(
            cells,
            "my.toml: flash.pages_per_block is '256', allowed is a multiple of the 3 bits of a cell"
        );
        let needless_go = message("page = \"4KiB\"", "page = \"4KiB\"\nprogram = \"one-shot\"");
        assert_eq!(
            needless_go,
            "my.toml: flash.program is 'one-shot', allowed is page, where a cell has one bit"
        );
        let small = message("user = \"32GiB\"", "user = \"64MiB\"");
        assert!(small.contains("raise over-provisioning"), "{small}");
        assert!(Profile::load("femu").unwrap_err().to_string().contains(
            "femu-32g, femu-32g-zoned, femu-32g-fdp, femu-32g-log, femu-32g-nvm-log, openssd-230g"
        ));
    }
}
