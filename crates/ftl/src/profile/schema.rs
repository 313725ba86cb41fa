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
    pub(super) endurance: i64,
    pub(super) factory_bad_per_mille: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Times {
    pub(super) read_us: f64,
    pub(super) program_us: f64,
    pub(super) erase_us: f64,
    pub(super) channel_mb_per_s: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    pub(super) link_mb_per_s: f64,
    pub(super) command_us: f64,
    /// Time in which the controller takes no other command. Left out: none.
    pub(super) command_serial_us: Option<f64>,
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
