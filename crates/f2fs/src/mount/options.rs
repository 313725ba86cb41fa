//! Mount options, by the kernel's names.

use super::policy::{IpuPolicy, Logs, Updates};
use crate::error::Incompatible;

/// How space is taken (`mode=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Append while there are free segments, then fill holes; overwrite in place where the policy says so.
    Adaptive,
    /// Only append: no holes are filled, nothing is written in place.
    Lfs,
    /// RM-IPU: updates of files are written out of place, and the device moves them to where they were. Not a mode of
    /// Linux. For the rest as adaptive.
    RmIpu,
    /// Updates are appended, written in place or remapped, whichever pays. Not a mode of Linux.
    RmIpuAdaptive,
}

/// When an update that is written out of place moves to where it was (`remap=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemapOrder {
    /// As soon as it is written: after a power cut an update may be there whose fsync did not return, as with writing in
    /// place and with ext4's ordered mode.
    Eager,
    /// With the fsync of its file, all of it or nothing: an update shows only with its fsync, as with roll-forward.
    WithFsync,
}

/// Where the search for a free segment begins (`alloc_mode=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocMode {
    /// At the log's own place.
    Default,
    /// At the start of the volume, so that few segments are ever used.
    Reuse,
}

/// What an fsync does beyond POSIX (`fsync_mode=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsyncMode {
    /// What POSIX asks for.
    Posix,
    /// Also what other file systems do: a new file whose directory lost entries is made durable by a checkpoint.
    Strict,
    /// As posix, without flushing the device's cache: survives a crash of the host, not a power cut.
    NoBarrier,
}

/// When sections are cleaned without need (`background_gc=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundGc {
    /// When the volume is idle.
    On,
    /// When idle, at once to the device instead of by way of the cache. Here the same as on.
    Sync,
    /// Never.
    Off,
}

/// The options of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `mode=adaptive|lfs|rm-ipu|rm-ipu-adaptive`
    pub mode: Mode,
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
    /// `discard|nodiscard`
    pub discard: bool,
    /// `inline_data|noinline_data`: small files lie in their inodes.
    pub inline_data: bool,
    /// `inline_dentry|noinline_dentry`: small directories lie in their inodes.
    pub inline_dentry: bool,
    /// `inline_xattr|noinline_xattr`: new inodes keep room for extended attributes.
    pub inline_xattr: bool,
    /// `lazytime|nolazytime`: an fsync leaves out times that only the writing of content changed; they survive from the
    /// next checkpoint on. The default, as in Linux.
    pub lazytime: bool,
    /// `ro|rw`: nothing is written; what fsyncs left to recover is not seen.
    pub read_only: bool,
    /// `norecovery`, `disable_roll_forward`: what fsyncs wrote after the last checkpoint is ignored (and lost with the
    /// next checkpoint).
    pub no_recovery: bool,
    /// sysfs `ipu_policy`; `None`: the kernel's default for the size.
    pub ipu_policy: Option<IpuPolicy>,
    /// Treated as a volume of at most 16 GiB, or not; `None`: by its size. A simulation may shrink a volume and keep its ways.
    pub small_volume: Option<bool>,
    /// sysfs `gc_urgent`: sections are cleaned twice a second, idle or not.
    pub gc_urgent: bool,
    /// sysfs `cp_interval`: seconds between checkpoints when idle.
    pub checkpoint_interval_s: u64,
    /// Pages of content kept in memory, in bytes. Assumed default: 64 MiB.
    pub page_cache_bytes: u64,
    /// Dirty content, in bytes, from which the background writes it at once rather than every five seconds (Linux:
    /// `dirty_background_ratio`); `None` for never.
    pub dirty_background_bytes: Option<u64>,
    /// Node blocks kept in memory beside the dirty ones, in bytes. Assumed default: 32 MiB.
    pub node_cache_bytes: u64,
    /// Pointers may lead to the device's own addresses, if it has some and the mode leaves blocks where they are: a capability for
    /// [`dovetail_vfs::Devirtualize`], and on where the volume has such pointers.
    pub physical_pointers: bool,
    /// Seed of generation numbers.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Adaptive,
            remap: RemapOrder::Eager,
            logs: Logs::Six,
            alloc: None,
            fsync_mode: FsyncMode::Posix,
            background_gc: BackgroundGc::On,
            discard: true,
            inline_data: true,
            inline_dentry: true,
            inline_xattr: true,
            lazytime: true,
            read_only: false,
            no_recovery: false,
            ipu_policy: None,
            small_volume: None,
            gc_urgent: false,
            checkpoint_interval_s: 60,
            page_cache_bytes: 64 << 20,
            dirty_background_bytes: None,
            node_cache_bytes: 32 << 20,
            physical_pointers: false,
            seed: 0,
        }
    }
}

/// WritebackReason a list of mount options cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// No option of that name.
    #[error("there is no mount option \"{0}\"; docs/mount-options.md lists those there are")]
    Unknown(String),
    /// An option with a value that it cannot have.
    #[error("mount option \"{name}\" cannot be \"{value}\": allowed is {allowed}")]
    Value {
        /// The option.
        name: &'static str,
        /// What was given.
        value: String,
        /// What may be given.
        allowed: String,
    },
}

/// Options with a value, and the values there are.
const CHOICES: [(&str, &[&str]); 7] = [
    ("mode", &["adaptive", "lfs", "rm-ipu", "rm-ipu-adaptive"]),
    ("remap", &["eager", "fsync"]),
    ("active_logs", &["2", "4", "6"]),
    ("alloc_mode", &["default", "reuse"]),
    ("fsync_mode", &["posix", "strict", "nobarrier"]),
    ("background_gc", &["on", "off", "sync"]),
    ("checkpoint", &["enable"]),
];

/// An option without a value, and what it sets.
type Flag = (&'static str, fn(&mut Options));

/// Options without a value.
const FLAGS: [Flag; 16] = [
    ("ro", |options| options.read_only = true),
    ("rw", |options| options.read_only = false),
    ("discard", |options| options.discard = true),
    ("nodiscard", |options| options.discard = false),
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

/// Options of the kernel that change nothing here, since they tune what this implementation does not have.
const WITHOUT_EFFECT: [&str; 14] = [
    "no_heap",
    "relatime",
    "noatime",
    "user_xattr",
    "acl",
    "extent_cache",
    "noextent_cache",
    "flush_merge",
    "noflush_merge",
    "checkpoint_merge",
    "nocheckpoint_merge",
    "gc_merge",
    "nogc_merge",
    "data_flush",
];

impl Options {
    /// Who decides where updates go.
    pub(super) const fn updates(&self) -> Updates {
        match self.mode {
            Mode::RmIpu => Updates::Remap,
            Mode::RmIpuAdaptive => Updates::Adaptive,
            Mode::Adaptive | Mode::Lfs => Updates::Plain,
        }
    }

    /// Refuses what an IPLFS volume cannot do. Other options that decide about segments and cleaning have no effect there.
    ///
    /// # Errors
    /// [`Incompatible::IplfsOption`].
    pub(super) fn check_iplfs(&self) -> Result<(), Incompatible> {
        let refused = |option, reason| Err(Incompatible::IplfsOption { option, reason });
        match self.mode {
            Mode::RmIpu | Mode::RmIpuAdaptive => {
                refused("mode=rm-ipu", "nothing is written where it was, so there is nothing to remap")
            }
            _ if !self.discard && !self.read_only => {
                refused("nodiscard", "only discards make room on its drive")
            }
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
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if let Some(&(name, allowed)) = CHOICES.iter().find(|choice| choice.0 == name) {
            if allowed.contains(&value) {
                self.choose(name, value);
                return Ok(());
            }
            return Err(OptionError::Value { name, value: value.into(), allowed: allowed.join(" or ") });
        }
        if let Some((_, set)) = FLAGS.iter().find(|flag| flag.0 == option) {
            set(self);
        } else if !WITHOUT_EFFECT.contains(&option) {
            return Err(OptionError::Unknown(option.into()));
        }
        Ok(())
    }

    /// Makes one of [`CHOICES`].
    fn choose(&mut self, name: &str, value: &str) {
        match (name, value) {
            ("mode", "lfs") => self.mode = Mode::Lfs,
            ("mode", "rm-ipu") => self.mode = Mode::RmIpu,
            ("mode", "rm-ipu-adaptive") => self.mode = Mode::RmIpuAdaptive,
            ("mode", _) => self.mode = Mode::Adaptive,
            ("remap", "fsync") => self.remap = RemapOrder::WithFsync,
            ("remap", _) => self.remap = RemapOrder::Eager,
            ("active_logs", "2") => self.logs = Logs::Two,
            ("active_logs", "4") => self.logs = Logs::Four,
            ("active_logs", _) => self.logs = Logs::Six,
            ("alloc_mode", "reuse") => self.alloc = Some(AllocMode::Reuse),
            ("alloc_mode", _) => self.alloc = Some(AllocMode::Default),
            ("fsync_mode", "strict") => self.fsync_mode = FsyncMode::Strict,
            ("fsync_mode", "nobarrier") => self.fsync_mode = FsyncMode::NoBarrier,
            ("fsync_mode", _) => self.fsync_mode = FsyncMode::Posix,
            ("background_gc", "off") => self.background_gc = BackgroundGc::Off,
            ("background_gc", "sync") => self.background_gc = BackgroundGc::Sync,
            ("background_gc", _) => self.background_gc = BackgroundGc::On,
            _ => {}
        }
    }

    /// Takes in options separated by commas, as `mount -o` has them. Empty ones say nothing.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn parse(list: &str) -> Result<Self, OptionError> {
        let mut options = Self::default();
        list.split(',').filter(|option| !option.is_empty()).try_for_each(|option| options.set(option))?;
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_by_the_kernels_names() {
        let options =
            Options::parse("mode=lfs,active_logs=4,nodiscard,fsync_mode=strict,background_gc=off").unwrap();
        assert_eq!((options.mode, options.logs, options.discard), (Mode::Lfs, Logs::Four, false));
        assert_eq!((options.fsync_mode, options.background_gc), (FsyncMode::Strict, BackgroundGc::Off));
        assert_eq!(Options::parse("").unwrap(), Options::default());
    }

    #[test]
    fn what_is_unknown_is_named() {
        let error = Options::parse("discard,atgc").unwrap_err().to_string();
        assert!(error.contains("\"atgc\""), "{error}");
        let error = Options::parse("mode=fragment:block").unwrap_err().to_string();
        assert!(error.contains("adaptive or lfs or rm-ipu"), "{error}");
    }

    /// The options that the first column of the page's tables names.
    fn documented() -> Vec<String> {
        let page = include_str!("../../../../docs/mount-options.md");
        let cells = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let options =
            cells.flat_map(|cell| cell.split(", ").map(|option| option.trim_matches('`').to_string()));
        options.collect()
    }

    #[test]
    fn the_page_names_what_is_accepted_and_nothing_else() {
        let choices = CHOICES
            .iter()
            .flat_map(|(name, values)| values.iter().map(move |value| format!("{name}={value}")));
        let flags = FLAGS.iter().map(|flag| flag.0).chain(WITHOUT_EFFECT).map(String::from);
        let mut accepted: Vec<String> = choices.chain(flags).collect();
        let mut documented = documented();
        for option in &documented {
            assert_eq!(Options::default().set(option), Ok(()), "{option}");
        }
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
