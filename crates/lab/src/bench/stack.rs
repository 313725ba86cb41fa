//! A stack: a file system with its options on a drive, as TOML.

use std::collections::BTreeMap;
use std::path::Path;

use dovetail_block::BLOCK_SIZE;
use dovetail_ftl::{DriveConfig, Overrides, Profile, ProfileError};
use dovetail_host::HostCosts;
use dovetail_time::{Ratio, parse_bytes};
use dovetail_volume::discards;
use serde::{Deserialize, Serialize};

use super::guest::file_system_of;
use super::raw::NONE;
use super::{BenchError, Schedule};
use crate::prepared::NewDrive;

/// Stacks that come with dovetail: name and text.
const BUILT_IN: [(&str, &str); 20] = [
    ("f2fs", include_str!("../../stacks/f2fs.toml")),
    ("f2fs-lfs", include_str!("../../stacks/f2fs-lfs.toml")),
    ("f2fs-zoned", include_str!("../../stacks/f2fs-zoned.toml")),
    ("f2fs-streams", include_str!("../../stacks/f2fs-streams.toml")),
    ("f2fs-fdp", include_str!("../../stacks/f2fs-fdp.toml")),
    ("f2fs-gc-remap", include_str!("../../stacks/f2fs-gc-remap.toml")),
    ("iplfs", include_str!("../../stacks/iplfs.toml")),
    ("rm-ipu", include_str!("../../stacks/rm-ipu.toml")),
    ("rm-ipu-fsync", include_str!("../../stacks/rm-ipu-fsync.toml")),
    ("rm-ipu-adaptive", include_str!("../../stacks/rm-ipu-adaptive.toml")),
    ("ext4", include_str!("../../stacks/ext4.toml")),
    ("ext3", include_str!("../../stacks/ext3.toml")),
    ("fsdv-ext4", include_str!("../../stacks/fsdv-ext4.toml")),
    ("fsdv-ext3", include_str!("../../stacks/fsdv-ext3.toml")),
    ("linux-f2fs", include_str!("../../stacks/linux-f2fs.toml")),
    ("linux-ext4", include_str!("../../stacks/linux-ext4.toml")),
    ("linux-btrfs", include_str!("../../stacks/linux-btrfs.toml")),
    ("linux-xfs", include_str!("../../stacks/linux-xfs.toml")),
    ("linux-raw", include_str!("../../stacks/linux-raw.toml")),
    ("raw", include_str!("../../stacks/raw.toml")),
];

/// A stack as it stands in its file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// Its name.
    pub name: String,
    /// Description in one sentence.
    #[serde(default)]
    pub about: String,
    /// The file system's name; `none` for the raw drive.
    pub filesystem: String,
    /// Mount options, as mount(8) takes them after `-o`.
    #[serde(default)]
    pub mount: String,
    /// Options that the kernel has in sysfs rather than among the mount options.
    #[serde(default)]
    pub sysfs: toml::Table,
    /// Options of mkfs.
    #[serde(default)]
    pub mkfs: toml::Table,
    /// The name of a drive profile, or the path of one.
    pub drive: String,
    /// Figures of that profile that are others here, as `table.key`.
    #[serde(default, rename = "drive-figures")]
    pub drive_figures: BTreeMap<String, toml::Value>,
    /// The size of the partition; the whole drive if it is left out.
    pub partition: Option<String>,
    /// Memory of the page cache. Assumed default: 1 GiB.
    #[serde(default = "default_memory")]
    pub memory: String,
    /// The times at which the devirtualizer runs; never if they are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devirtualize: Option<Schedule>,
    /// The program of the kernel that a Linux guest runs, for `filesystem = "linux:..."`; the one
    /// that `dovetail linux build` makes if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Costs and limits of the host.
    #[serde(default)]
    pub host: HostCosts,
}

/// Bytes of a demand-paged map's cache: what the paper of the split cache has at most.
const DEFAULT_MAP_CACHE: u64 = 512 * 1024;

fn default_memory() -> String {
    "1GiB".into()
}

/// Position and message of a syntax error, on one line.
fn syntax(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim().replace('\n', " ");
    match error.span() {
        Some(span) => {
            let before = &text.as_bytes()[..span.start.min(text.len())];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            format!("line {line}: {message}")
        }
        None => message,
    }
}

impl Stack {
    /// The names of the stacks that come with dovetail.
    pub fn built_in() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The stack of that name, or in the file of that name (ending in `.toml`).
    ///
    /// # Errors
    /// [`BenchError::UnknownStack`], [`BenchError::StackFile`].
    pub fn load(name: &str) -> Result<Self, BenchError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Self::parse(text, name);
        }
        if Path::new(name).extension().is_none_or(|extension| extension != "toml") {
            return Err(BenchError::UnknownStack(name.into()));
        }
        let failed = |error: std::io::Error| BenchError::StackFile {
            file: name.into(),
            reason: error.to_string(),
        };
        Self::parse(&dovetail_time::read_text(name).map_err(failed)?, name)
    }

    /// Reads a stack from text; `file` is named in errors.
    ///
    /// # Errors
    /// [`BenchError::StackFile`].
    pub fn parse(text: &str, file: &str) -> Result<Self, BenchError> {
        let failed = |reason: String| BenchError::StackFile { file: file.into(), reason };
        let stack: Self = toml::from_str(text).map_err(|error| failed(syntax(text, &error)))?;
        parse_bytes(&stack.memory).map_err(|error| failed(format!("memory: {error}")))?;
        let partition = stack.partition.as_deref().map(parse_bytes).transpose();
        partition.map_err(|error| failed(format!("partition: {error}")))?;
        stack.check_figures().map_err(failed)?;
        stack.host.check().map_err(|what| failed(format!("[host] {what}")))?;
        if let Some(schedule) = &stack.devirtualize {
            schedule.check().map_err(|what| failed(format!("[devirtualize] {what}")))?;
        }
        stack.check_raw().map_err(failed)?;
        stack.check_linux().map_err(failed)?;
        Ok(stack)
    }

    /// The stack as its file has it. Of paths the name stays: results say nothing of a machine's
    /// folders.
    pub fn to_file(&self) -> String {
        let name = |path: &str| {
            let name = Path::new(path).file_name().and_then(|name| name.to_str());
            name.unwrap_or(path).to_owned()
        };
        let named = Self {
            drive: name(&self.drive),
            kernel: self.kernel.as_deref().map(name),
            ..self.clone()
        };
        // strings, numbers and tables under fixed names are TOML
        toml::Table::try_from(&named).map(|table| table.to_string()).unwrap_or_default()
    }

    /// It is a drive without a file system.
    pub fn is_raw(&self) -> bool {
        self.filesystem == NONE
    }

    /// It is a real kernel in virtual time.
    pub fn is_linux(&self) -> bool {
        file_system_of(&self.filesystem).is_some()
    }

    /// Content that the drive held before stays on it when the stack is made.
    pub fn keeps_content(&self) -> bool {
        self.is_raw() || !discards(&self.mkfs)
    }

    /// TOML reads a key with a dot as a table, unless it is in quotes.
    fn check_figures(&self) -> Result<(), String> {
        match self.drive_figures.iter().find(|(_, value)| value.is_table()) {
            Some((table, value)) => {
                let key = value.as_table().and_then(|inner| inner.keys().next());
                let key = key.map_or_else(String::new, |key| format!(".{key}"));
                Err(format!(
                    "[drive-figures] {table}{key}: put the key into quotes: \"{table}{key}\" = ..."
                ))
            }
            None => Ok(()),
        }
    }

    /// A raw drive has none of what belongs to a file system.
    fn check_raw(&self) -> Result<(), String> {
        let settings = [
            ("mount", !self.mount.is_empty()),
            ("[mkfs]", !self.mkfs.is_empty()),
            ("[sysfs]", !self.sysfs.is_empty()),
            ("[devirtualize]", self.devirtualize.is_some()),
        ];
        match settings.into_iter().find(|(_, is_there)| self.is_raw() && *is_there) {
            Some((key, _)) => Err(format!(
                "{key} is of a file system, and filesystem = \"{NONE}\" is a drive without one: \
                 leave it out"
            )),
            None => Ok(()),
        }
    }

    /// A guest takes of a stack what its own programs take.
    fn check_linux(&self) -> Result<(), String> {
        let Some(system) = file_system_of(&self.filesystem) else {
            return match &self.kernel {
                Some(_) => {
                    Err("kernel is of a real one (filesystem = \"linux:...\"): leave it out".into())
                }
                None => Ok(()),
            };
        };
        let other = self.mkfs.iter().find(|(key, value)| *key != "options" || !value.is_str());
        if let Some((key, _)) = other {
            return Err(format!(
                "[mkfs] {key}: a real mkfs takes its command line, as options = \"...\""
            ));
        }
        let settings = [
            ("[devirtualize]", self.devirtualize.is_some()),
            ("[sysfs]", !self.sysfs.is_empty() && system != "f2fs"),
            ("mount", !self.mount.is_empty() && system == NONE),
            ("[mkfs]", !self.mkfs.is_empty() && system == NONE),
        ];
        match settings.into_iter().find(|(_, is_there)| *is_there) {
            Some((key, _)) => Err(format!(
                "{key}: filesystem = \"{}\" has no use for it: leave it out",
                self.filesystem
            )),
            None => Ok(()),
        }
    }

    /// The stack with its drive's map paged on demand, or in memory as a whole if `policy` is
    /// `none`. `bytes` are those at full scale; alone they are those of the drive's own policy, or
    /// of `dftl` where it has none.
    pub fn with_map_cache(
        &self,
        map: Option<&str>,
        policy: Option<&str>,
        bytes: Option<u64>,
    ) -> Self {
        let mut stack = self.clone();
        let mut set =
            |key: &str, value: toml::Value| drop(stack.drive_figures.insert(key.into(), value));
        if let Some(map) = map {
            set("ftl.map", map.into());
        }
        if policy.is_some() || bytes.is_some() || map == Some("demand") {
            let policy = policy.map(str::to_owned).or_else(|| self.map_cache_policy());
            set("map_cache.policy", policy.unwrap_or_else(|| "dftl".into()).into());
            set("map_cache.size", bytes.unwrap_or(DEFAULT_MAP_CACHE).to_string().into());
        }
        stack
    }

    /// The policy of the map's cache that the drive has by itself.
    fn map_cache_policy(&self) -> Option<String> {
        match self.drive_figures.get("map_cache.policy") {
            Some(policy) => policy.as_str().filter(|policy| *policy != "none").map(str::to_owned),
            None => Profile::load(&self.drive).ok()?.map_cache_policy().map(str::to_owned),
        }
    }

    /// The stack with another victim policy or other spare flash, in percent of the capacity.
    #[must_use]
    pub fn with_spare(&self, policy: Option<&str>, percent: Option<f64>) -> Self {
        let mut stack = self.clone();
        let mut set =
            |key: &str, value: toml::Value| drop(stack.drive_figures.insert(key.into(), value));
        policy.into_iter().for_each(|policy| set("ftl.gc", policy.into()));
        let key = "capacity.over_provisioning_percent";
        percent.into_iter().for_each(|percent| set(key, percent.into()));
        stack
    }

    /// The stack with more mount options, which override its own.
    ///
    /// # Errors
    /// [`BenchError::StackFile`] for a raw drive, which is not mounted.
    pub fn with_mount(&self, options: &str) -> Result<Self, BenchError> {
        let own = self.mount.as_str();
        let mount = if own.is_empty() { options.into() } else { format!("{own},{options}") };
        let stack = Self { mount, ..self.clone() };
        let failed = |reason| BenchError::StackFile { file: self.name.clone(), reason };
        stack.check_raw().and_then(|()| stack.check_linux()).map_err(failed)?;
        Ok(stack)
    }

    /// Bytes of the page cache at a scale.
    pub fn memory_bytes(&self, scale: Ratio) -> u64 {
        (parse_bytes(&self.memory).unwrap_or(0) as f64 * scale.value()) as u64
    }

    /// The drive at a scale.
    ///
    /// # Errors
    /// [`BenchError::Drive`].
    pub fn drive_config(&self, scale: Ratio, seed: u64) -> Result<DriveConfig, BenchError> {
        let overrides = Overrides { scale: Some(scale), seed, ..Overrides::default() };
        let failed = |error: ProfileError| BenchError::Drive(error.to_string());
        self.profile()?.resolve(&overrides).map_err(failed)
    }

    /// The drive's profile with the stack's figures.
    pub(super) fn profile(&self) -> Result<Profile, BenchError> {
        let failed = |error: ProfileError| BenchError::Drive(error.to_string());
        let profile = Profile::load(&self.drive).map_err(failed)?;
        let figures = self.drive_figures.iter().map(|(key, value)| (key.as_str(), value.clone()));
        profile.with_figures(figures).map_err(|error| BenchError::StackFile {
            file: self.name.clone(),
            reason: format!("[drive-figures]: {error}"),
        })
    }

    /// The drive at a scale, before its first command.
    ///
    /// # Errors
    /// As [`Self::drive_config`].
    pub fn new_drive(&self, scale: Ratio, seed: u64) -> Result<NewDrive, BenchError> {
        Ok(NewDrive::new(self.drive_config(scale, seed)?, None))
    }

    /// Bytes of the partition at a scale.
    ///
    /// # Errors
    /// As [`Self::drive_config`] and [`Self::partition_blocks`].
    pub fn partition_bytes(&self, scale: Ratio, seed: u64) -> Result<u64, BenchError> {
        let blocks = self.drive_config(scale, seed)?.user_blocks;
        Ok(self.partition_blocks(blocks, scale)? * BLOCK_SIZE)
    }

    /// Blocks of the partition on a drive of so many.
    ///
    /// # Errors
    /// [`BenchError::Partition`].
    pub fn partition_blocks(&self, drive_blocks: u64, scale: Ratio) -> Result<u64, BenchError> {
        let Some(partition) = &self.partition else { return Ok(drive_blocks) };
        let bytes = parse_bytes(partition).map_err(|error| BenchError::StackFile {
            file: self.name.clone(),
            reason: format!("partition: {error}"),
        })?;
        let blocks = (bytes as f64 * scale.value()) as u64 / 4096;
        if blocks > drive_blocks {
            return Err(BenchError::Partition {
                stack: self.name.clone(),
                wanted: blocks * 4096,
                drive: drive_blocks * 4096,
            });
        }
        Ok(blocks)
    }
}
