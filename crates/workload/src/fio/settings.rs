//! Settings of a job, read from its options.

use dovetail_block::Lifetime;

use super::block_size::BlockSizes;
use super::distribution::Distribution;
use super::output::PERCENTILES;
use super::pattern::{Direction, Modifier, Pattern};
use super::value::{Expected, Extent, Value};

/// fio's default block size.
const BLOCK_BYTES: u64 = 4096;

/// Blocks larger than this are a slip (assumed; fio has no limit).
pub(super) const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// All options of a job that shape its I/O, with fio's defaults.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub name: Option<String>,
    pub description: Option<String>,
    pub kilo: u64,

    pub pattern: Pattern,
    pub identical: bool,
    pub blocks: [BlockSizes; 3],
    pub unaligned: bool,
    pub sequential_random_sizes: bool,
    /// `ba`, where given.
    pub align: [Option<u64>; 3],
    pub read_percent: u8,
    /// The hint about the lifetime of what is written.
    pub lifetime: Lifetime,

    pub directory: Vec<String>,
    pub filenames: Vec<String>,
    pub filename_format: String,
    pub size: Option<Extent>,
    pub io_size: Option<Extent>,
    pub file_sizes: Option<(u64, u64)>,
    pub nrfiles: Option<u64>,
    pub openfiles: Option<u64>,
    pub service: Service,
    pub offset: Extent,
    pub offset_increment: Extent,
    pub file_append: bool,

    pub fallocate: Fallocate,
    pub overwrite: bool,
    pub create_fsync: bool,
    pub create_on_open: bool,
    pub invalidate: bool,
    pub pre_read: bool,
    pub unlink: bool,

    pub engine: Engine,
    pub iodepth: u64,
    pub iodepth_low: u64,
    pub batch_complete_min: u64,
    pub direct: bool,
    pub fsync: u64,
    pub fdatasync: u64,
    pub end_fsync: bool,
    pub fsync_on_close: bool,
    pub sync: SyncWrites,
    pub verify: bool,
    pub do_verify: bool,

    pub distribution: Distribution,
    pub random_percent: [u8; 3],
    pub norandommap: bool,
    pub generator: Generator,
    pub randseed: Option<u64>,
    pub randrepeat: bool,
    pub allrandrepeat: bool,

    pub numjobs: u64,
    pub loops: u64,
    pub number_ios: Option<u64>,
    pub runtime_ns: u64,
    pub time_based: bool,
    pub ramp_ns: u64,
    pub startdelay_ns: (u64, u64),
    pub thinktime_ns: u64,
    pub thinktime_blocks: u64,
    pub rate: [u64; 3],
    pub rate_iops: [u64; 3],
    pub poisson: bool,

    pub stonewall: bool,
    pub wait_for: Option<String>,
    pub exitall: bool,
    pub exit_what: ExitWhat,
    pub new_group: bool,
    pub group_reporting: bool,
    pub logs: LogSettings,
    pub percentiles: Percentiles,
}

impl Settings {
    /// The same with all sizes shrunk to a share of theirs, in whole pages and at least one.
    pub(super) fn scaled(&self, share: f64) -> Self {
        let bytes = |bytes: u64| scaled_bytes(bytes, share);
        let extent = |extent: Extent| match extent {
            Extent::Bytes(0) => extent,
            Extent::Bytes(size) => Extent::Bytes(bytes(size)),
            Extent::Percent(_) => extent,
        };
        Self {
            size: self.size.map(extent),
            io_size: self.io_size.map(extent),
            file_sizes: self.file_sizes.map(|(from, to)| (bytes(from), bytes(to))),
            offset: extent(self.offset),
            offset_increment: extent(self.offset_increment),
            distribution: self.distribution.scaled(share),
            number_ios: self.number_ios.map(|count| ((count as f64 * share).ceil() as u64).max(1)),
            ..self.clone()
        }
    }
}

/// A size shrunk to a share, in whole pages and at least one.
pub(super) fn scaled_bytes(bytes: u64, share: f64) -> u64 {
    const PAGE: u64 = 4096;
    ((bytes as f64 * share) as u64 / PAGE * PAGE).max(PAGE.min(bytes))
}

/// Logs of a job's calls, as fio writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// `write_bw_log`: what the files' names begin with; `Some("")` for the job's own name.
    pub bandwidth: Option<String>,
    /// `write_lat_log`, alike.
    pub latency: Option<String>,
    /// `write_iops_log`, alike.
    pub iops: Option<String>,
    /// `log_avg_msec`: entries are means over so many ms; each call is one where it is 0.
    pub window_ms: u64,
    /// `log_max_value`: entries of latencies are the longest of their window, not the mean.
    pub longest: bool,
    /// `log_offset`: entries have the offset of their call.
    pub offset: bool,
    /// `per_job_logs=0`: threads whose logs have one name share the file.
    pub shared: bool,
}

impl LogSettings {
    /// Some log is written.
    pub const fn is_on(&self) -> bool {
        self.bandwidth.is_some() || self.latency.is_some() || self.iops.is_some()
    }
}

/// fio's own limit of `percentile_list`.
const PERCENTILES_MAX: usize = 20;

/// The percentiles of latencies that results show.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles {
    /// `percentile_list`: above 0, at most 100, in rising order.
    pub list: Vec<f64>,
    /// `clat_percentiles`: those of the time from where a call was taken up to its end.
    pub completion: bool,
    /// `slat_percentiles`: those of the time until a call was taken up.
    pub submission: bool,
    /// `lat_percentiles`: those of both together.
    pub total: bool,
}

impl Default for Percentiles {
    fn default() -> Self {
        Self { list: PERCENTILES.to_vec(), completion: true, submission: false, total: false }
    }
}

impl Percentiles {
    /// fio shows those of syncs with either kind.
    pub const fn of_syncs(&self) -> bool {
        self.completion || self.total
    }

    pub(super) fn parse_list(value: Value<'_>) -> Result<Vec<f64>, Expected> {
        const LIST: Expected = "up to 20 percentages above 0, at most 100, such as 50:99:99.9";
        let percent = |part| value.part(part).fraction().ok().filter(|p| *p > 0.0 && *p <= 100.0);
        let list: Option<Vec<f64>> = value.text.split(':').map(percent).collect();
        let mut list = list.filter(|list| list.len() <= PERCENTILES_MAX).ok_or(LIST)?;
        list.sort_by(f64::total_cmp);
        Ok(list)
    }
}

/// `file_service_type`: which of its files a job turns to next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub order: ServiceOrder,
    /// So many blocks before it turns to another.
    pub blocks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceOrder {
    RoundRobin,
    Random,
    /// One file to its end, then the next.
    Sequential,
}

/// `fallocate`: how space is reserved before a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fallocate {
    None,
    /// `native` and `posix`: fallocate(2).
    Reserve,
    /// The same, the size stays.
    KeepSize,
    /// ftruncate(2) alone.
    Truncate,
}

/// `exit_what`: the jobs that end with the first one, under `exitall`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExitWhat {
    /// Those of its group.
    Group,
    /// Those that run; the ones behind a `stonewall` go on.
    Stonewall,
    All,
}

/// `random_generator`: where random blocks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generator {
    /// They are drawn.
    Drawn,
    /// From a shift register: each block once.
    Lfsr,
}

impl Generator {
    pub(super) fn parse(value: Value<'_>) -> Result<Self, Expected> {
        match value.text {
            "tausworthe" | "tausworthe64" => Ok(Self::Drawn),
            "lfsr" => Ok(Self::Lfsr),
            _ => Err("tausworthe, tausworthe64 or lfsr"),
        }
    }
}

/// `sync`: whether every write is synchronous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncWrites {
    No,
    /// O_SYNC.
    All,
    /// O_DSYNC.
    Data,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: None,
            description: None,
            logs: LogSettings::default(),
            percentiles: Percentiles::default(),
            kilo: 1024,
            pattern: Pattern::READ,
            identical: false,
            blocks: Self::default_blocks(),
            unaligned: false,
            sequential_random_sizes: false,
            align: [None; 3],
            read_percent: 50,
            lifetime: Lifetime::NotSet,
            directory: Vec::new(),
            filenames: Vec::new(),
            filename_format: "$jobname.$jobnum.$filenum".to_owned(),
            size: None,
            io_size: None,
            file_sizes: None,
            nrfiles: None,
            openfiles: None,
            service: Service { order: ServiceOrder::RoundRobin, blocks: 1 },
            offset: Extent::Bytes(0),
            offset_increment: Extent::Bytes(0),
            file_append: false,
            fallocate: Fallocate::Reserve,
            overwrite: false,
            create_fsync: true,
            create_on_open: false,
            invalidate: true,
            pre_read: false,
            unlink: false,
            engine: Engine::Sync,
            iodepth: 1,
            iodepth_low: 0,
            batch_complete_min: 1,
            direct: false,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            fsync_on_close: false,
            sync: SyncWrites::No,
            verify: false,
            do_verify: true,
            distribution: Distribution::Uniform,
            random_percent: [100; 3],
            norandommap: false,
            generator: Generator::Drawn,
            randseed: None,
            randrepeat: true,
            allrandrepeat: false,
            numjobs: 1,
            loops: 1,
            number_ios: None,
            runtime_ns: 0,
            time_based: false,
            ramp_ns: 0,
            startdelay_ns: (0, 0),
            thinktime_ns: 0,
            thinktime_blocks: 1,
            rate: [0; 3],
            rate_iops: [0; 3],
            poisson: false,
            stonewall: false,
            wait_for: None,
            exitall: false,
            exit_what: ExitWhat::Group,
            new_group: false,
            group_reporting: false,
        }
    }
}

impl Settings {
    pub(super) const fn default_blocks() -> [BlockSizes; 3] {
        [
            BlockSizes::fixed(BLOCK_BYTES),
            BlockSizes::fixed(BLOCK_BYTES),
            BlockSizes::fixed(BLOCK_BYTES),
        ]
    }

    /// The directions that the job does.
    pub(super) fn directions(&self) -> impl Iterator<Item = Direction> {
        let pattern = self.pattern;
        Direction::ALL.into_iter().filter(move |direction| pattern.does(*direction))
    }

    /// The unit of offsets: sequential jobs know no other than their smallest block.
    pub(super) fn align_of(&self, direction: Direction) -> u64 {
        let given = self.align[direction.index()].filter(|_| self.pattern.random);
        given.unwrap_or(self.blocks[direction.index()].min)
    }

    /// All directions, also those that the job does not have, align to their smallest block.
    fn aligns_to_blocks(&self) -> bool {
        let block = |direction: Direction| self.blocks[direction.index()].min;
        Direction::ALL.into_iter().all(|direction| self.align_of(direction) == block(direction))
    }

    /// Returns whether random blocks come in the order of a shift register.
    pub(super) fn has_register(&self) -> bool {
        self.generator == Generator::Lfsr && self.distribution == Distribution::Uniform
    }

    /// Returns whether a block that was hit is left alone until all were.
    pub(super) fn has_map(&self) -> bool {
        self.pattern.random
            && !self.norandommap
            && !self.has_register()
            && self.aligns_to_blocks()
            && self.distribution.allows_map()
    }

    /// Number of calls that may be under way: only asynchronous engines past the page cache have
    /// more than one.
    pub(super) const fn depth(&self) -> u64 {
        if self.engine.is_async() && self.direct { self.iodepth } else { 1 }
    }

    /// Each write is synced as it ends (`sync`), while others are under way: the kernel does so for
    /// asynchronous requests past the page cache.
    pub(super) const fn syncs_beside(&self) -> bool {
        !matches!(self.sync, SyncWrites::No) && self.depth() > 1
    }

    /// The page cache of a file is dropped when it is opened. What was read on purpose stays.
    pub(super) const fn invalidates(&self) -> bool {
        self.invalidate && !self.pre_read
    }

    /// Number of calls under way at which a job that had reached its depth makes further ones.
    ///
    /// fio collects at least `iodepth_batch_complete_min` of them, until no more than
    /// `iodepth_low` are left; without either, one that ends makes room for the next.
    pub(super) const fn depth_low(&self) -> u64 {
        let low = self.depth().saturating_sub(self.batch_complete_min);
        match self.iodepth_low {
            0 => low,
            given if given < low => given,
            _ => low,
        }
    }

    /// A job that appends is over where its first pass ends, as in fio.
    pub(super) const fn passes_are_one(&self) -> bool {
        self.file_append && !self.time_based
    }

    /// Times that everything is done: `loops`, where that counts.
    pub(super) const fn passes(&self) -> u64 {
        if self.passes_are_one() { 1 } else { self.loops }
    }

    /// Number of random calls from one random offset to the next; 1 is every one.
    pub(super) const fn calls_an_offset(&self) -> u64 {
        match self.pattern.modifier {
            Modifier::Every(calls) => calls,
            Modifier::None | Modifier::Skip(_) => 1,
        }
    }

    /// Bytes that sequential offsets skip.
    pub(super) const fn skip(&self) -> i64 {
        match self.pattern.modifier {
            Modifier::Skip(bytes) => bytes,
            Modifier::None | Modifier::Every(_) => 0,
        }
    }
}

impl Service {
    pub(super) fn parse(value: Value<'_>) -> Result<Self, Expected> {
        const SERVICE: Expected =
            "roundrobin, random or sequential, and maybe \":\" and a number of blocks";
        let (word, blocks) = match value.text.split_once(':') {
            Some((word, blocks)) => (word, value.part(blocks).some_size().map_err(|_| SERVICE)?),
            None => (value.text, 1),
        };
        let order = match word {
            "roundrobin" => ServiceOrder::RoundRobin,
            "random" => ServiceOrder::Random,
            "sequential" => ServiceOrder::Sequential,
            _ => return Err(SERVICE),
        };
        Ok(Self { order, blocks })
    }
}

impl Fallocate {
    pub(super) fn parse(value: Value<'_>) -> Result<Self, Expected> {
        match value.text {
            "none" | "0" => Ok(Self::None),
            "native" | "posix" | "1" => Ok(Self::Reserve),
            "keep" => Ok(Self::KeepSize),
            "truncate" => Ok(Self::Truncate),
            _ => Err("none, native, posix, keep or truncate"),
        }
    }
}

impl ExitWhat {
    pub(super) fn parse(value: Value<'_>) -> Result<Self, Expected> {
        match value.text {
            "group" => Ok(Self::Group),
            "stonewall" => Ok(Self::Stonewall),
            "all" => Ok(Self::All),
            _ => Err("group, stonewall or all"),
        }
    }
}

impl SyncWrites {
    pub(super) fn parse(value: Value<'_>) -> Result<Self, Expected> {
        match value.text {
            "none" | "0" => Ok(Self::No),
            "sync" | "1" => Ok(Self::All),
            "dsync" => Ok(Self::Data),
            _ => Err("none, sync or dsync"),
        }
    }
}

/// Engine of a job, as far as it makes a difference here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// A system call for each call, one at a time.
    Sync,
    /// `io_uring`: a system call hands over, the memory that both share tells the end.
    IoUring,
    /// `libaio`, `posixaio`: a system call hands over, another one collects.
    Aio,
}

impl Engine {
    pub(super) fn parse(value: Value<'_>) -> Result<Self, Expected> {
        match value.text {
            "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => Ok(Self::Sync),
            "io_uring" => Ok(Self::IoUring),
            "libaio" | "posixaio" => Ok(Self::Aio),
            _ => Err(
                "an engine that works on files: sync, psync, vsync, pvsync, pvsync2, libaio, io_uring or posixaio",
            ),
        }
    }

    /// It can have several calls under way.
    pub(super) const fn is_async(self) -> bool {
        !matches!(self, Self::Sync)
    }

    /// System calls that one of its calls takes.
    pub(super) const fn system_calls(self) -> u32 {
        match self {
            Self::Sync | Self::IoUring => 1,
            Self::Aio => 2,
        }
    }
}

/// `verify=`: any method means that what is written is read back. The content of all reads is
/// checked anyway.
pub(super) fn verify(value: Value<'_>) -> Result<bool, Expected> {
    const METHODS: [&str; 18] = [
        "md5",
        "crc64",
        "crc32",
        "crc32c-intel",
        "crc32c",
        "crc16",
        "crc7",
        "sha1",
        "sha256",
        "sha512",
        "sha3-224",
        "sha3-256",
        "sha3-384",
        "sha3-512",
        "xxhash",
        "meta",
        "pattern",
        "pattern_hdr",
    ];
    match value.text {
        "0" | "null" => Ok(false),
        word if METHODS.contains(&word) => Ok(true),
        _ => Err("0 or one of fio's methods, such as crc32c or md5"),
    }
}
