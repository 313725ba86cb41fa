//! Mount options, by the kernel's names.

use super::policy::{IpuPolicy, Logs};

/// How space is taken (`mode=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Append while there are free segments, then fill holes; overwrite in place where the policy says so.
    Adaptive,
    /// Only append: no holes are filled, nothing is written in place.
    Lfs,
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
    /// `mode=adaptive|lfs`
    pub mode: Mode,
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
    /// `ro|rw`: nothing is written; what fsyncs left to recover is refused.
    pub read_only: bool,
    /// `norecovery`, `disable_roll_forward`: what fsyncs wrote after the last checkpoint is ignored (and lost with the
    /// next checkpoint).
    pub no_recovery: bool,
    /// sysfs `ipu_policy`; `None`: the kernel's default for the size.
    pub ipu_policy: Option<IpuPolicy>,
    /// sysfs `gc_urgent`: sections are cleaned twice a second, idle or not.
    pub gc_urgent: bool,
    /// sysfs `cp_interval`: seconds between checkpoints when idle.
    pub checkpoint_interval_s: u64,
    /// Pages of content kept in memory, in bytes. Assumed default: 64 MiB.
    pub page_cache_bytes: u64,
    /// Node blocks kept in memory beside the dirty ones, in bytes. Assumed default: 32 MiB.
    pub node_cache_bytes: u64,
    /// Seed of generation numbers.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Adaptive,
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
            gc_urgent: false,
            checkpoint_interval_s: 60,
            page_cache_bytes: 64 << 20,
            node_cache_bytes: 32 << 20,
            seed: 0,
        }
    }
}

/// Why a list of mount options cannot be used.
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
        allowed: &'static str,
    },
}

/// Sets `field` to the choice called `value`.
fn choose<T: Copy>(
    name: &'static str,
    value: &str,
    field: &mut T,
    allowed: &'static str,
    choices: &[(&str, T)],
) -> Result<(), OptionError> {
    match choices.iter().find(|(choice, _)| *choice == value) {
        Some(&(_, choice)) => *field = choice,
        None => return Err(OptionError::Value { name, value: value.into(), allowed }),
    }
    Ok(())
}

/// Options of the kernel that change nothing here, since they tune what this implementation does not have.
const WITHOUT_EFFECT: [&str; 19] = [
    "rw",
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
    "no_heap",
    "barrier",
    "data_flush",
    "inline_xattr",
    "inline_data",
    "inline_dentry",
];

impl Options {
    /// Takes in one option, "name" or "name=value".
    ///
    /// # Errors
    /// An unknown name, a value that the option cannot have.
    pub fn set(&mut self, option: &str) -> Result<(), OptionError> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "mode" => {
                let choices = [("adaptive", Mode::Adaptive), ("lfs", Mode::Lfs)];
                choose("mode", value, &mut self.mode, "adaptive or lfs", &choices)?;
            }
            "active_logs" => {
                let choices = [("2", Logs::Two), ("4", Logs::Four), ("6", Logs::Six)];
                choose("active_logs", value, &mut self.logs, "2, 4 or 6", &choices)?;
            }
            "alloc_mode" => {
                let choices = [("default", Some(AllocMode::Default)), ("reuse", Some(AllocMode::Reuse))];
                choose("alloc_mode", value, &mut self.alloc, "default or reuse", &choices)?;
            }
            "fsync_mode" => {
                let choices = [
                    ("posix", FsyncMode::Posix),
                    ("strict", FsyncMode::Strict),
                    ("nobarrier", FsyncMode::NoBarrier),
                ];
                choose("fsync_mode", value, &mut self.fsync_mode, "posix, strict or nobarrier", &choices)?;
            }
            "background_gc" => {
                let choices =
                    [("on", BackgroundGc::On), ("off", BackgroundGc::Off), ("sync", BackgroundGc::Sync)];
                choose("background_gc", value, &mut self.background_gc, "on, off or sync", &choices)?;
            }
            "checkpoint" => choose("checkpoint", value, &mut (), "enable", &[("enable", ())])?,
            _ => return self.set_flag(option),
        }
        Ok(())
    }

    fn set_flag(&mut self, option: &str) -> Result<(), OptionError> {
        match option {
            "discard" => self.discard = true,
            "nodiscard" => self.discard = false,
            "noinline_data" => self.inline_data = false,
            "noinline_dentry" => self.inline_dentry = false,
            "noinline_xattr" => self.inline_xattr = false,
            "lazytime" => self.lazytime = true,
            "nolazytime" => self.lazytime = false,
            "ro" => self.read_only = true,
            "nobarrier" => self.fsync_mode = FsyncMode::NoBarrier,
            "norecovery" | "disable_roll_forward" => self.no_recovery = true,
            _ if WITHOUT_EFFECT.contains(&option) => {}
            _ => return Err(OptionError::Unknown(option.into())),
        }
        Ok(())
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
        assert!(error.contains("adaptive or lfs"), "{error}");
    }
}
