//! Mount options, by the kernel's names.

use std::num::NonZeroU32;

use dovetail_vfs::kit::{Flag, OptionError, OptionTable, Valued, Values};

use super::policy::{IpuPolicy, Logs, Updates};
use crate::error::Incompatible;
use crate::format::Features;

/// Policy of allocation (`mode=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Append while there are free segments, then fill holes; overwrite in place where the policy
    /// says so.
    Adaptive,
    /// Only append: no holes are filled, nothing is written in place.
    Lfs,
    /// RM-IPU: updates of files are written out of place, and the device moves them to where they
    /// were. Not a mode of Linux. For the rest as adaptive.
    RmIpu,
    /// Updates are appended, written in place or remapped, whichever pays. Not a mode of Linux.
    RmIpuAdaptive,
}

/// Time at which an update that is written out of place moves to where it was (`remap=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemapOrder {
    /// As soon as it is written: after a power cut an update may be there whose fsync did not
    /// return, as with writing in place and with ext4's ordered mode.
    Eager,
    /// With the fsync of its file, all of it or nothing: an update shows only with its fsync, as
    /// with roll-forward.
    WithFsync,
}

/// Start of the search for a free segment (`alloc_mode=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocMode {
    /// At the log's own place.
    Default,
    /// At the start of the volume, so that few segments are ever used.
    Reuse,
}

/// Guarantees of an fsync beyond POSIX (`fsync_mode=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsyncMode {
    /// Guarantees of POSIX.
    Posix,
    /// Also what other file systems do: a new file whose directory lost entries is made durable by
    /// a checkpoint.
    Strict,
    /// As posix, without flushing the device's cache: survives a crash of the host, not a power
    /// cut.
    NoBarrier,
}

/// Unit of discards (`discard_unit=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardUnit {
    /// Any blocks that became free.
    Block,
    /// Segments that are free as a whole.
    Segment,
    /// Sections that are free as a whole.
    Section,
}

/// Sleeps of cleaning without need, in ms (sysfs `gc_*_sleep_time`; Linux 6.12's defaults).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcSleep {
    /// `gc_min_sleep_time`: the shortest, and the step by which it grows.
    pub min_ms: u64,
    /// `gc_max_sleep_time`: the longest while there are victims.
    pub max_ms: u64,
    /// `gc_no_gc_sleep_time`: after no victim was found.
    pub nothing_ms: u64,
    /// `gc_urgent_sleep_time`: while cleaning is urgent.
    pub urgent_ms: u64,
}

impl Default for GcSleep {
    fn default() -> Self {
        Self { min_ms: 30_000, max_ms: 60_000, nothing_ms: 300_000, urgent_ms: 500 }
    }
}

/// Cleaning of sections without need (`background_gc=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundGc {
    /// Cleans when the volume is idle.
    On,
    /// Cleans when idle, at once to the device instead of by way of the cache. Here the same as on.
    Sync,
    /// Never.
    Off,
}

/// The options of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `mode=adaptive|lfs|rm-ipu|rm-ipu-adaptive`
    pub mode: Mode,
    /// The mode was asked for: a zoned volume has its own unless another is.
    pub mode_given: bool,
    /// `remap=eager|fsync`
    pub remap: RemapOrder,
    /// `active_logs=2|4|6`
    pub logs: Logs,
    /// `alloc_mode=default|reuse`; `None`: reuse on volumes of at most 16 GiB, as the kernel does.
    pub alloc: Option<AllocMode>,
    /// `fsync_mode=posix|strict|nobarrier`
    pub fsync_mode: FsyncMode,
    /// `background_gc=on|off|sync`
    pub background_gc: BackgroundGc,
    /// `gc_after_checkpoint|nogc_after_checkpoint`: cleaning by need moves a section also where the
    /// checkpoint before it was enough, and with `mode=lfs` makes room for dirty content (Linux
    /// 6.12); or neither (before 6.4). Not an option of Linux.
    pub gc_after_checkpoint: bool,
    /// `gc_remap|nogc_remap`: cleaning has the device move blocks, in place of copying them. Not an
    /// option of Linux.
    pub gc_remap: bool,
    /// `discard|nodiscard`
    pub discard: bool,
    /// `discard_unit=block|segment|section`
    pub discard_unit: DiscardUnit,
    /// `inline_data|noinline_data`: small files lie in their inodes.
    pub inline_data: bool,
    /// `inline_dentry|noinline_dentry`: small directories lie in their inodes.
    pub inline_dentry: bool,
    /// `inline_xattr|noinline_xattr`: new inodes keep room for extended attributes.
    pub inline_xattr: bool,
    /// `inline_xattr_size=`: words of four bytes that a new inode keeps for them, 6 to 903. Only on
    /// a volume with the feature flexible_inline_xattr.
    pub inline_xattr_words: Option<u16>,
    /// `lazytime|nolazytime`: an fdatasync leaves out times that only the writing of content
    /// changed; an fsync writes them once a tick of the clock. The default, as in Linux.
    pub lazytime: bool,
    /// `ro|rw`: nothing is written; fsynced data is recovered in memory.
    pub read_only: bool,
    /// `norecovery`, `disable_roll_forward`: what fsyncs wrote after the last checkpoint is ignored
    /// (and lost with the next checkpoint).
    pub no_recovery: bool,
    /// sysfs `ipu_policy`; `None`: the kernel's default for the size.
    pub ipu_policy: Option<IpuPolicy>,
    /// Treated as a volume of at most 16 GiB, or not; `None`: by its size. A simulation may shrink
    /// a volume and keep its ways.
    pub small_volume: Option<bool>,
    /// sysfs `min_ipu_util`: percent of the user's blocks in use from which
    /// [`IpuPolicy::UTIL`] applies.
    pub min_ipu_util_percent: u64,
    /// sysfs `min_fsync_blocks`: an fsync of at most so many pages writes in place.
    pub min_fsync_blocks: usize,
    /// sysfs `gc_*_sleep_time`.
    pub gc_sleep: GcSleep,
    /// sysfs `max_discard_request`: discards that the background sends in a round, every 50 ms; 8 of
    /// F2FS and 80,000 of IPLFS if `None`.
    pub max_discard_request: Option<NonZeroU32>,
    /// sysfs `gc_urgent`: sections are cleaned twice a second, idle or not.
    pub gc_urgent: bool,
    /// sysfs `cp_interval`: seconds between checkpoints when idle.
    pub checkpoint_interval_s: u64,
    /// Dirty nodes at which a checkpoint is written at once (Linux 6.1: 4096).
    pub max_dirty_nodes: usize,
    /// Pages of content kept in memory, in bytes. Assumed default: 64 MiB.
    pub page_cache_bytes: u64,
    /// Large writes of bytes go to the device at once, past the page cache: for a mount, above which
    /// there is another cache. Otherwise writes of bytes and of named content take one way.
    pub writes_past_cache: bool,
    /// Dirty content, in bytes, from which the background writes it at once rather than when it is
    /// old (Linux: `dirty_background_ratio`); `None` for never.
    pub dirty_background_bytes: Option<u64>,
    /// Node blocks kept in memory beside the dirty ones, in bytes. Assumed default: 32 MiB.
    pub node_cache_bytes: u64,
    /// Pointers may lead to the device's own addresses, if it has some and the mode leaves blocks
    /// where they are: a capability for [`dovetail_vfs::Devirtualize`], and on where the volume has
    /// such pointers.
    pub physical_pointers: bool,
    /// Seed of generation numbers.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Adaptive,
            mode_given: false,
            remap: RemapOrder::Eager,
            logs: Logs::Six,
            alloc: None,
            fsync_mode: FsyncMode::Posix,
            background_gc: BackgroundGc::On,
            gc_after_checkpoint: true,
            gc_remap: false,
            discard: true,
            discard_unit: DiscardUnit::Block,
            inline_data: true,
            inline_dentry: true,
            inline_xattr: true,
            inline_xattr_words: None,
            lazytime: true,
            read_only: false,
            no_recovery: false,
            ipu_policy: None,
            min_ipu_util_percent: 70,
            min_fsync_blocks: 8,
            gc_sleep: GcSleep::default(),
            small_volume: None,
            max_discard_request: None,
            gc_urgent: false,
            checkpoint_interval_s: 60,
            max_dirty_nodes: 4096,
            page_cache_bytes: 64 << 20,
            writes_past_cache: false,
            dirty_background_bytes: None,
            node_cache_bytes: 32 << 20,
            physical_pointers: false,
            seed: 0,
        }
    }
}

/// The options there are.
const TABLE: OptionTable<Options> = OptionTable {
    of: "",
    document: "`dovetail help mount-options`",
    flags: &FLAGS,
    valued: &VALUED,
    without_effect: &WITHOUT_EFFECT,
    refused: &REFUSED,
};

const fn words(
    name: &'static str,
    allowed: &'static str,
    words: &'static [Flag<Options>],
) -> Valued<Options> {
    Valued { name, allowed, values: Values::Words(words) }
}

/// Options with a value, and the values there are.
const VALUED: [Valued<Options>; 9] = [
    words(
        "mode",
        "adaptive or lfs or rm-ipu or rm-ipu-adaptive",
        &[
            ("adaptive", |options| options.ask_for(Mode::Adaptive)),
            ("lfs", |options| options.ask_for(Mode::Lfs)),
            ("rm-ipu", |options| options.ask_for(Mode::RmIpu)),
            ("rm-ipu-adaptive", |options| options.ask_for(Mode::RmIpuAdaptive)),
        ],
    ),
    words(
        "remap",
        "eager or fsync",
        &[
            ("eager", |options| options.remap = RemapOrder::Eager),
            ("fsync", |options| options.remap = RemapOrder::WithFsync),
        ],
    ),
    words(
        "active_logs",
        "2 or 4 or 6",
        &[
            ("2", |options| options.logs = Logs::Two),
            ("4", |options| options.logs = Logs::Four),
            ("6", |options| options.logs = Logs::Six),
        ],
    ),
    words(
        "alloc_mode",
        "default or reuse",
        &[
            ("default", |options| options.alloc = Some(AllocMode::Default)),
            ("reuse", |options| options.alloc = Some(AllocMode::Reuse)),
        ],
    ),
    words(
        "fsync_mode",
        "posix or strict or nobarrier",
        &[
            ("posix", |options| options.fsync_mode = FsyncMode::Posix),
            ("strict", |options| options.fsync_mode = FsyncMode::Strict),
            ("nobarrier", |options| options.fsync_mode = FsyncMode::NoBarrier),
        ],
    ),
    words(
        "background_gc",
        "on or off or sync",
        &[
            ("on", |options| options.background_gc = BackgroundGc::On),
            ("off", |options| options.background_gc = BackgroundGc::Off),
            ("sync", |options| options.background_gc = BackgroundGc::Sync),
        ],
    ),
    words(
        "discard_unit",
        "block or segment or section",
        &[
            ("block", |options| options.discard_unit = DiscardUnit::Block),
            ("segment", |options| options.discard_unit = DiscardUnit::Segment),
            ("section", |options| options.discard_unit = DiscardUnit::Section),
        ],
    ),
    Valued {
        name: "inline_xattr_size",
        allowed: "6 to 903 words of four bytes",
        values: Values::Parsed(set_inline_xattr_size),
    },
    words("checkpoint", "enable", &[("enable", |_| ())]),
];

/// Options without a value.
const FLAGS: [Flag<Options>; 20] = [
    ("ro", |options| options.read_only = true),
    ("rw", |options| options.read_only = false),
    ("discard", |options| options.discard = true),
    ("nodiscard", |options| options.discard = false),
    ("gc_after_checkpoint", |options| options.gc_after_checkpoint = true),
    ("nogc_after_checkpoint", |options| options.gc_after_checkpoint = false),
    ("gc_remap", |options| options.gc_remap = true),
    ("nogc_remap", |options| options.gc_remap = false),
    ("inline_data", |options| options.inline_data = true),
    ("noinline_data", |options| options.inline_data = false),
    ("inline_dentry", |options| options.inline_dentry = true),
    ("noinline_dentry", |options| options.inline_dentry = false),
    ("inline_xattr", |options| options.inline_xattr = true),
    ("noinline_xattr", |options| options.inline_xattr = false),
    ("lazytime", |options| options.lazytime = true),
    ("nolazytime", |options| options.lazytime = false),
    ("barrier", |options| {
        if options.fsync_mode == FsyncMode::NoBarrier {
            options.fsync_mode = FsyncMode::Posix;
        }
    }),
    ("nobarrier", |options| options.fsync_mode = FsyncMode::NoBarrier),
    ("norecovery", |options| options.no_recovery = true),
    ("disable_roll_forward", |options| options.no_recovery = true),
];

/// Range of the kernel: a header of xattrs at least; an inline directory has room beside it.
fn set_inline_xattr_size(options: &mut Options, value: &str) -> bool {
    let words = value.parse::<u16>().ok().filter(|words| (6..=903).contains(words));
    options.inline_xattr_words = words;
    words.is_some()
}

/// Options of the kernel that change nothing here, since they tune what this implementation does
/// not have.
const WITHOUT_EFFECT: [&str; 32] = [
    "no_heap",
    "relatime",
    "noatime",
    "user_xattr",
    "nouser_xattr",
    "acl",
    "noacl",
    "errors=remount-ro",
    "extent_cache",
    "noextent_cache",
    "flush_merge",
    "noflush_merge",
    "checkpoint_merge",
    "nocheckpoint_merge",
    "gc_merge",
    "nogc_merge",
    "data_flush",
    "atgc",
    "compress_algorithm=",
    "compress_log_size=",
    "compress_extension=",
    "nocompress_extension=",
    "compress_chksum",
    "compress_mode=",
    "compress_cache",
    "memory=normal",
    "memory=low",
    "reserve_root=",
    "resuid=",
    "resgid=",
    "inlinecrypt",
    "noquota",
];

const NO_QUOTA: &str = "quotas are not counted";
const NO_FAULTS: &str = "`dovetail crash` injects faults";

/// Options of the kernel that would change what is written, and the reason why they are not taken.
const REFUSED: [(&str, &str); 15] = [
    ("age_extent_cache", "data is not placed by its age"),
    ("disable_ext_identify", "files are placed by the volume's list of name endings"),
    ("errors", "an error ends the mount's writing, as errors=remount-ro"),
    ("whint_mode", "Linux no longer has it; a program gives hints itself, as fio's write_hint"),
    ("io_bits", "Linux no longer has it"),
    ("fault_injection", NO_FAULTS),
    ("fault_type", NO_FAULTS),
    ("usrquota", NO_QUOTA),
    ("grpquota", NO_QUOTA),
    ("prjquota", NO_QUOTA),
    ("quota", NO_QUOTA),
    ("usrjquota", NO_QUOTA),
    ("grpjquota", NO_QUOTA),
    ("prjjquota", NO_QUOTA),
    ("jqfmt", NO_QUOTA),
];

impl Options {
    /// Policy of updates, by the mode.
    pub(super) const fn updates(&self) -> Updates {
        match self.mode {
            Mode::RmIpu => Updates::Remap,
            Mode::RmIpuAdaptive => Updates::Adaptive,
            Mode::Adaptive | Mode::Lfs => Updates::Plain,
        }
    }

    /// Refuses what an IPLFS volume cannot do. Other options that decide about segments and
    /// cleaning have no effect there.
    ///
    /// # Errors
    /// [`Incompatible::IplfsOption`].
    pub(super) fn check_iplfs(&self) -> Result<(), Incompatible> {
        let refused = |option, reason| Err(Incompatible::IplfsOption { option, reason });
        match self.mode {
            Mode::RmIpu | Mode::RmIpuAdaptive => refused(
                "mode=rm-ipu",
                "nothing is written where it was, so there is nothing to remap",
            ),
            _ if !self.discard && !self.read_only => {
                refused("nodiscard", "only discards make room on its drive")
            }
            Mode::Adaptive | Mode::Lfs => Ok(()),
        }
    }

    /// Refuses `inline_xattr_size` where Linux does.
    ///
    /// # Errors
    /// [`Incompatible::InlineXattrSize`].
    pub(super) fn check_inline_xattr(&self, features: Features) -> Result<(), Incompatible> {
        let asked = self.inline_xattr_words.is_some();
        let reason = match (features.has(Features::FLEXIBLE_INLINE_XATTR), self.inline_xattr) {
            _ if !asked => return Ok(()),
            (true, true) => return Ok(()),
            (false, _) => "the volume does not have the feature flexible_inline_xattr",
            (true, false) => "noinline_xattr leaves no such room",
        };
        Err(Incompatible::InlineXattrSize(reason))
    }

    fn ask_for(&mut self, mode: Mode) {
        (self.mode, self.mode_given) = (mode, true);
    }

    /// Refuses what a zoned volume cannot do, as Linux does.
    ///
    /// # Errors
    /// [`Incompatible::ZonedOption`].
    pub(super) fn check_zoned(&self) -> Result<(), Incompatible> {
        let refused = |option, reason| Err(Incompatible::ZonedOption { option, reason });
        match self.mode {
            Mode::Adaptive if self.mode_given => refused(
                "mode=adaptive",
                "a zone is only appended to; leave the mode out, or say mode=lfs",
            ),
            Mode::RmIpu | Mode::RmIpuAdaptive => refused(
                "mode=rm-ipu",
                "nothing is written where it was; leave the mode out, or say mode=lfs",
            ),
            _ if !self.discard => refused("nodiscard", "zones must be reset to be written again"),
            _ if self.background_gc == BackgroundGc::Off => {
                refused("background_gc=off", "only cleaning makes free zones; sync is allowed")
            }
            _ if self.gc_remap => refused("gc_remap", "a zone takes no block that another held"),
            Mode::Adaptive | Mode::Lfs => Ok(()),
        }
    }

    /// The volume is treated as a small one.
    pub(super) fn is_small(&self, main_segments: u32) -> bool {
        self.small_volume.unwrap_or(main_segments <= super::policy::SMALL_VOLUME_SEGMENTS)
    }

    /// Takes in one option, "name" or "name=value".
    ///
    /// # Errors
    /// An unknown name, a value that the option cannot have.
    pub fn set(&mut self, option: &str) -> Result<(), OptionError> {
        TABLE.set(self, option)
    }

    /// Takes in options separated by commas, as `mount -o` has them. Empty ones say nothing.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn parse(list: &str) -> Result<Self, OptionError> {
        TABLE.parse(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_by_the_kernels_names() {
        let options =
            Options::parse("mode=lfs,active_logs=4,nodiscard,fsync_mode=strict,background_gc=off")
                .unwrap();
        assert_eq!((options.mode, options.logs, options.discard), (Mode::Lfs, Logs::Four, false));
        assert_eq!(
            (options.fsync_mode, options.background_gc),
            (FsyncMode::Strict, BackgroundGc::Off)
        );
        assert_eq!(Options::parse("").unwrap(), Options::default());
    }

    #[test]
    fn what_is_unknown_is_named() {
        let error = Options::parse("discard,age_extent_cache").unwrap_err().to_string();
        assert!(error.contains("\"age_extent_cache\" is not supported: data"), "{error}");
        let error = Options::parse("discard,xtgc").unwrap_err().to_string();
        assert!(error.contains("there is no mount option \"xtgc\""), "{error}");
        let error = Options::parse("inline_xattr_size=5").unwrap_err().to_string();
        assert!(error.contains("6 to 903"), "{error}");
        let error = Options::parse("mode=fragment:block").unwrap_err().to_string();
        assert!(error.contains("adaptive or lfs or rm-ipu"), "{error}");
    }

    /// The options that the first column of the page's tables names.
    fn documented() -> Vec<String> {
        let page = include_str!("../../../../docs/mount-options.md");
        let (page, _) = page.split_once("## What is refused").unwrap();
        let cells = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let options = cells
            .flat_map(|cell| cell.split(", ").map(|option| option.trim_matches('`').to_string()));
        options.collect()
    }

    #[test]
    fn the_page_names_what_is_accepted_and_nothing_else() {
        let mut accepted = TABLE.accepted();
        let mut documented = documented();
        for option in &documented {
            let with_value =
                if option.ends_with('=') { format!("{option}50") } else { option.clone() };
            assert_eq!(Options::default().set(&with_value), Ok(()), "{option}");
        }
        let sized = VALUED.iter().filter(|valued| matches!(valued.values, Values::Parsed(_)));
        accepted.extend(sized.map(|valued| format!("{}=", valued.name)));
        accepted.sort();
        documented.sort();
        assert_eq!(accepted, documented);
    }

    #[test]
    fn the_last_of_two_that_contradict_each_other_holds() {
        let options = Options::parse("ro,noinline_data,nobarrier,rw,inline_data,barrier").unwrap();
        assert_eq!(options, Options::default());
    }
}
