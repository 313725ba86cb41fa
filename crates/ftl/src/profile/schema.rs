//! The tables of a profile as they stand in its file.

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Capacity {
    pub(super) user: String,
    pub(super) over_provisioning_percent: f64,
    /// `capacity` if it is left out: as many addresses as room. `iplfs`: seven areas of 2^58
    /// blocks.
    pub(super) addresses: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Flash {
    pub(super) channels: i64,
    pub(super) dies_per_channel: i64,
    pub(super) planes_per_die: i64,
    pub(super) pages_per_block: i64,
    pub(super) page: String,
    /// `slc`, `mlc`, `tlc` or `qlc`. Left out: the pages of a block are all alike.
    pub(super) cell: Option<String>,
    /// `one-shot` or `page`: a word line is programmed in one go, or a page at a time.
    pub(super) program: Option<String>,
    /// `together` (or left out) or `apart`: whether the planes of a die read by themselves.
    pub(super) plane_reads: Option<String>,
    pub(super) endurance: i64,
    pub(super) factory_bad_per_mille: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Times {
    pub(super) read_us: Times4,
    pub(super) program_us: Times4,
    pub(super) erase_us: f64,
    pub(super) channel_mb_per_s: f64,
}

/// A time, or one for each page of a word line.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Times4 {
    All(f64),
    ByPage(Vec<f64>),
}

/// Left out by drives without an SLC cache.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slc {
    pub(super) read_us: f64,
    pub(super) program_us: f64,
    pub(super) erase_us: f64,
    /// Bytes of the host's that fit.
    #[serde(rename = "static")]
    pub(super) fixed: String,
    /// Bytes of the host's that fit beside them on an empty drive.
    pub(super) dynamic: String,
    pub(super) shrink_from_percent: f64,
    pub(super) shrink_to_percent: f64,
    /// `direct` or `fold`.
    pub(super) when_full: String,
    pub(super) fold_when_idle: bool,
}

/// Left out by drives that do not suspend.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suspension {
    pub(super) program_us: f64,
    pub(super) erase_us: f64,
    pub(super) most_times: i64,
}

/// Left out by drives whose reads always succeed at once.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Retries {
    pub(super) step_us: f64,
    /// 0: no influence.
    pub(super) erases_per_step: f64,
    pub(super) reads_per_step: f64,
    pub(super) days_per_step: f64,
    pub(super) days_at_start: f64,
    pub(super) most: i64,
    /// Left out: blocks are not rewritten.
    pub(super) refresh_reads: Option<i64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    pub(super) link_mb_per_s: f64,
    pub(super) command_us: f64,
    /// Time in which the controller takes no other command. Left out: none.
    pub(super) command_serial_us: Option<f64>,
    /// Left out: as `command_us`.
    pub(super) write_command_us: Option<f64>,
    /// What `command_serial_us` is more for each 4 KiB of a write. Left out: none.
    pub(super) write_serial_4k_us: Option<f64>,
    /// Left out: one.
    pub(super) cores: Option<i64>,
    /// Left out: none.
    pub(super) power_loss_protection: Option<bool>,
    pub(super) write_buffer: String,
    /// Left out: by age.
    pub(super) write_buffer_order: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ftl {
    pub(super) map: String,
    pub(super) map_access_ns: i64,
    pub(super) lines: String,
    pub(super) streams: i64,
    /// Left out: by the host's hints.
    pub(super) streams_by: Option<String>,
    pub(super) gc: String,
    pub(super) gc_choices: i64,
    pub(super) gc_apart: bool,
    pub(super) gc_foreground_percent: f64,
    pub(super) gc_background_percent: f64,
    /// Least garbage of a line that is cleaned before writes have to wait. Left out: none.
    pub(super) gc_least_garbage_percent: Option<f64>,
    pub(super) gc_idle_us: f64,
    pub(super) wear_spread: i64,
}

/// Left out by drives with their whole map in memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MapCache {
    pub(super) policy: String,
    pub(super) size: String,
}

/// Left out by drives that do not remap.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Remap {
    pub(super) store: String,
    pub(super) pairs_per_command: i64,
    pub(super) held_pairs: i64,
    /// Left out by drives that do not devirtualise.
    pub(super) renames: Option<i64>,
    /// With non-volatile memory only.
    pub(super) entry_us: Option<f64>,
    pub(super) discard_records: Option<i64>,
    /// The size of a segmented log there.
    pub(super) log: Option<String>,
}
