//! The tables of a profile as they stand in its file, and the keys that they may have.

use serde::Deserialize;

/// The keys of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub(super) table: &'static str,
    /// Set if a profile cannot do without the table.
    pub(super) is_needed: bool,
    pub(super) needed: &'static [&'static str],
    pub(super) optional: &'static [&'static str],
}

/// A table as a type, and its keys: those that it must have, and those that may be left out.
macro_rules! table {
    (
        $(#[$about:meta])* $name:ident, $table:literal, needed: $is_needed:literal,
        must { $($(#[$note:meta])* $key:ident: $kind:ty,)* }
        may { $($(#[$remark:meta])* $may:ident: $sort:ty,)* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$note])* pub(super) $key: $kind,)*
            $($(#[$remark])* pub(super) $may: Option<$sort>,)*
        }

        impl $name {
            pub(super) const KEYS: Keys = Keys {
                table: $table,
                is_needed: $is_needed,
                needed: &[$(stringify!($key)),*],
                optional: &[$(stringify!($may)),*],
            };
        }
    };
}

/// All tables of a profile but its sources.
pub(super) const TABLES: [Keys; 13] = [
    Capacity::KEYS,
    Flash::KEYS,
    Times::KEYS,
    Host::KEYS,
    Ftl::KEYS,
    Slc::KEYS,
    Suspension::KEYS,
    BusTimes::KEYS,
    Retries::KEYS,
    MapCache::KEYS,
    Remap::KEYS,
    Zones::KEYS,
    Fdp::KEYS,
];

/// A time, or one for each page of a word line.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "give a number of us, or a list with one for each page of a word line"
)]
pub(super) enum Times4 {
    All(f64),
    ByPage(Vec<f64>),
}

table! {
    Capacity, "capacity", needed: true,
    must {
        user: String,
        over_provisioning_percent: f64,
    }
    may {
        /// `capacity` if it is left out: as many addresses as room. `iplfs`: seven areas of 2^58
        /// blocks.
        addresses: String,
        /// Set if a drive with more addresses than room fills its spare flash, too, but for what it
        /// needs to clean; only with a map in memory. Left out: it takes as many flash pages as
        /// `user` has, also where only a part of them is live.
        spare_is_room: bool,
    }
}

table! {
    Flash, "flash", needed: true,
    must {
        channels: i64,
        dies_per_channel: i64,
        planes_per_die: i64,
        pages_per_block: i64,
        page: String,
        endurance: i64,
        factory_bad_per_mille: f64,
    }
    may {
        /// `slc`, `mlc`, `tlc` or `qlc`. Left out: the pages of a block are all alike.
        cell: String,
        /// `one-shot` or `page`: a word line is programmed in one go, or a page at a time.
        program: String,
        /// The unit of the map: a part of a page. Left out: a page.
        map_unit: String,
        /// `together`, as if it were left out, or `apart`: each plane of a die reads by itself.
        plane_reads: String,
    }
}

table! {
    Times, "timing", needed: true,
    must {
        read_us: Times4,
        program_us: Times4,
        erase_us: f64,
        channel_mb_per_s: f64,
    }
    may {}
}

table! {
    Host, "host", needed: true,
    must {
        link_mb_per_s: f64,
        command_us: f64,
        write_buffer: String,
    }
    may {
        /// Time in which a core takes no other command. Left out: none.
        command_serial_us: f64,
        /// Left out: as `command_us`.
        write_command_us: f64,
        /// Added to `command_serial_us` for each 4 KiB of a write. Left out: none.
        write_serial_4k_us: f64,
        /// Time of a core for each request that firmware hands to hardware: 4 KiB over the link, a
        /// page to read or to program, for the host or in cleaning. Left out: none.
        request_serial_us: f64,
        /// From the end of the programs that a flush waits for to its own. Left out: none.
        flush_us: f64,
        /// From the end of a FUA write's programs to its own. Left out: none.
        fua_us: f64,
        /// Left out: one.
        cores: i64,
        /// Left out: none.
        power_loss_protection: bool,
        /// The rate of writes, where the link has one for each direction. Left out: reads and
        /// writes share it.
        link_write_mb_per_s: f64,
        /// Left out: by age.
        write_buffer_order: String,
    }
}

table! {
    Ftl, "ftl", needed: true,
    must {
        map: String,
        map_access_ns: i64,
        lines: String,
        streams: i64,
        gc: String,
        gc_choices: i64,
        gc_apart: bool,
        gc_foreground_percent: f64,
        gc_background_percent: f64,
        gc_idle_us: f64,
        wear_spread: i64,
    }
    may {
        /// Log blocks of the maps `bast` and `fast`, in lines; nothing to others. Left out: eight.
        log_blocks: i64,
        /// Left out: by the host's hints.
        streams_by: String,
        /// `all`: the percentages of lines are of all lines. Left out: of the spare ones (`spare`).
        gc_percent_of: String,
        /// Least garbage of a line that is cleaned before writes have to wait. Left out: none.
        gc_least_garbage_percent: f64,
        /// Set if moved pages stay on their die. Left out: they go to the die whose turn it is.
        gc_within_die: bool,
    }
}

table! {
    /// Left out by drives without an SLC cache.
    Slc, "slc", needed: false,
    must {
        read_us: f64,
        program_us: f64,
        erase_us: f64,
        /// Bytes of the host's that always fit.
        static_size: String,
        /// Bytes of the host's that fit beside them on an empty drive.
        dynamic_size: String,
        shrink_from_percent: f64,
        shrink_to_percent: f64,
        /// `direct` or `fold`.
        when_full: String,
    }
    may {
        /// Time without work after which it is folded. Left out: for room alone.
        fold_idle_us: f64,
    }
}

table! {
    /// Left out by drives that do not suspend.
    Suspension, "suspend", needed: false,
    must {
        program_us: f64,
        erase_us: f64,
        most_times: i64,
    }
    may {}
}

table! {
    /// Left out by drives whose channels are a backlog of data.
    BusTimes, "bus", needed: false,
    must {
        read_command_us: f64,
        program_command_us: f64,
        parity_percent: f64,
    }
    may {}
}

table! {
    /// Left out by drives whose reads always succeed at once. 0 erases, reads or days: they have no
    /// influence.
    Retries, "retry", needed: false,
    must {
        step_us: f64,
        erases_per_step: f64,
        reads_per_step: f64,
        days_per_step: f64,
        days_at_start: f64,
        most: i64,
    }
    may {
        /// Left out: blocks are not rewritten.
        refresh_reads: i64,
    }
}

table! {
    /// Left out by drives with their whole map in memory.
    MapCache, "map_cache", needed: false,
    must {
        policy: String,
        size: String,
    }
    may {}
}

table! {
    /// Left out by drives that do not remap.
    Remap, "remap", needed: false,
    must {
        store: String,
        pairs_per_command: i64,
        held_pairs: i64,
    }
    may {
        /// Left out by drives that do not devirtualise.
        renames: i64,
        /// With non-volatile memory only.
        entry_us: f64,
        discard_records: i64,
        /// The size of a segmented log there.
        log: String,
    }
}

table! {
    /// Left out by drives without zones.
    Zones, "zones", needed: false,
    must {
        /// From the start of one zone to that of the next.
        size: String,
        /// Conventional blocks in front.
        conventional: String,
        /// Dies that a zone lies on.
        dies: i64,
        /// Zones open at once; 0 for as many as are active.
        max_open: i64,
        max_active: i64,
        /// Blocks of each plane that take the place of bad ones.
        spare_percent: f64,
    }
    may {
        /// Left out: its size.
        capacity: String,
        /// Left out: no append.
        max_append: String,
        /// The random write area of a zone. Left out: none.
        window: String,
        /// By how much the write pointer moves on at least. Left out: by the window.
        window_step: String,
        /// Zones with a window at once. Left out: all active ones.
        windows: i64,
        /// Set if finishing a zone programs the rest of it. Left out: it does not.
        finish_fills: bool,
        /// The reset of a finished zone that holds nothing. Left out: 0.
        reset_us: f64,
        /// Time that the reset of a full zone takes beyond that. Left out: 0.
        reset_full_us: f64,
    }
}

table! {
    /// Left out by drives without flexible data placement. Its handles are the streams.
    Fdp, "fdp", needed: false,
    must {
        /// `initial` or `persistent`.
        isolation: String,
    }
    may {}
}
