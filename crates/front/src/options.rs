//! Options of a mount.

use std::fmt;

use crate::faults::{Fault, OnError};
use crate::flusher::Flush;
use fuser::{Config, MountOption, SessionACL};

/// Options of a mount. As root, set-id programs and device files work as on any disk, and everyone
/// may use the mount.
pub struct Options {
    /// Source that /proc/mounts shows.
    pub source: String,
    /// Type that /proc/mounts shows, after "fuse.".
    pub kind: String,
    /// Nothing is written.
    pub read_only: bool,
    /// Other users than the one who mounts may use it.
    pub allow_other: bool,
    /// Requests that are in work at a time; calls that change the file system are still one at a
    /// time.
    pub threads: usize,
    flags: Vec<MountOption>,
    pub(crate) on_error: OnError,
    pub(crate) flush: Option<Flush>,
}

/// Options that every fstab may have and that change nothing here: they are for who mounts at boot,
/// or ask for what is always so. Reading changes no times, whatever is asked for: access times are
/// those that programs set.
const WITHOUT_EFFECT: [&str; 18] = [
    "defaults",
    "auto",
    "noauto",
    "nouser",
    "nousers",
    "noowner",
    "nogroup",
    "_netdev",
    "nofail",
    "default_permissions",
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "diratime",
    "nodiratime",
    "silent",
    "loud",
];

/// `x-` and `X-` are for programs around mount(8), such as `x-systemd.automount`; `user=NAME` and
/// `comment=` are notes of theirs.
fn is_without_effect(option: &str) -> bool {
    let notes = ["x-", "X-", "user=", "comment="];
    WITHOUT_EFFECT.contains(&option) || notes.iter().any(|note| option.starts_with(note))
}

/// An unknown mount option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no mount option {0:?}")]
pub struct UnknownOption(pub String);

impl Options {
    /// The options of a mount of `source`, a file system of type `kind`.
    pub fn new(source: impl Into<String>, kind: impl Into<String>) -> Self {
        let root = nix::unistd::geteuid().is_root();
        let flags = if root { vec![MountOption::Suid, MountOption::Dev] } else { Vec::new() };
        Self {
            source: source.into(),
            kind: kind.into(),
            read_only: false,
            allow_other: root,
            threads: std::thread::available_parallelism()
                .map_or(4, |cores| cores.get().clamp(4, 16)),
            flags,
            on_error: Box::new(|_| {}),
            flush: None,
        }
    }

    /// Lets fsyncs wait for the device while others use the file system: `flush` makes durable all
    /// that the file system has written so far. After one that failed, the file system's own flush
    /// must fail as well.
    #[must_use]
    pub fn flush_apart(
        mut self,
        flush: impl Fn() -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.flush = Some(Box::new(flush));
        self
    }

    /// Has errors told that mean a failed device or a damaged volume: the first of each kind when
    /// it happens, and how many more there were when the mount ends.
    #[must_use]
    pub fn on_error(mut self, tell: impl Fn(Fault<'_>) + Send + Sync + 'static) -> Self {
        self.on_error = Box::new(tell);
        self
    }

    /// Sets an option by the name that mount(8) has for it: `ro`, `nosuid`, `allow_other` and the
    /// like, and those of fstab(5) that are for others than the file system. As for mount(8),
    /// `user` and `users` mean `noexec,nosuid,nodev` as well, `owner` and `group` mean
    /// `nosuid,nodev`; what stands behind them may take it back.
    ///
    /// # Errors
    /// [`UnknownOption`] for what is no option of every file system.
    pub fn set(&mut self, option: &str) -> Result<(), UnknownOption> {
        match option {
            "ro" => self.read_only = true,
            "rw" => self.read_only = false,
            "allow_other" => self.allow_other = true,
            // an ordinary user's mount must not make anybody root, whatever the volume holds
            "user" | "users" => self.set_flags(&["noexec", "nosuid", "nodev"])?,
            "owner" | "group" => self.set_flags(&["nosuid", "nodev"])?,
            _ if is_without_effect(option) => {}
            _ => self.set_flag(option)?,
        }
        Ok(())
    }

    fn set_flags(&mut self, options: &[&str]) -> Result<(), UnknownOption> {
        options.iter().try_for_each(|option| self.set_flag(option))
    }

    fn set_flag(&mut self, option: &str) -> Result<(), UnknownOption> {
        use MountOption::{
            Async, Atime, Dev, DirSync, Exec, NoAtime, NoDev, NoExec, NoSuid, Suid, Sync,
        };
        let pairs = [
            ("suid", Suid, "nosuid", NoSuid),
            ("dev", Dev, "nodev", NoDev),
            ("exec", Exec, "noexec", NoExec),
            ("atime", Atime, "noatime", NoAtime),
            ("async", Async, "sync", Sync),
        ];
        for (yes, flag, no, opposite) in pairs {
            if option == yes || option == no {
                self.flags.retain(|known| *known != flag && *known != opposite);
                self.flags.push(if option == yes { flag } else { opposite });
                return Ok(());
            }
        }
        match option {
            "dirsync" => self.flags.push(DirSync),
            _ => return Err(UnknownOption(option.to_string())),
        }
        Ok(())
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = Config::default();
        config.mount_options = self.flags.clone();
        config.mount_options.extend([
            MountOption::FSName(self.source.clone()),
            MountOption::CUSTOM(format!("subtype={}", self.kind)),
            MountOption::DefaultPermissions,
            if self.read_only { MountOption::RO } else { MountOption::RW },
        ]);
        config.acl = if self.allow_other { SessionACL::All } else { SessionACL::Owner };
        config.n_threads = Some(self.threads.max(1));
        config.clone_fd = true;
        config
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("source", &self.source)
            .field("kind", &self.kind)
            .field("read_only", &self.read_only)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_names_of_mount() {
        let mut options = Options::new("image", "f2fs");
        for option in ["nosuid", "nodev", "dev", "noatime", "ro"] {
            options.set(option).unwrap();
        }
        assert!(options.read_only);
        assert_eq!(options.flags, [MountOption::NoSuid, MountOption::Dev, MountOption::NoAtime]);
        assert_eq!(options.set("fast"), Err(UnknownOption("fast".to_string())));
    }

    #[test]
    fn options_of_every_fstab_are_taken() {
        let mut options = Options::new("image", "f2fs");
        let before = options.flags.clone();
        let line = "defaults,noauto,nofail,_netdev,nouser,nodiratime,strictatime,relatime,default_permissions,\
                    x-systemd.automount,x-systemd.requires=/data,comment=mine,user=joe";
        line.split(',').for_each(|option| options.set(option).unwrap());
        assert_eq!(options.flags, before, "and change nothing");
        for option in ["usrquota", "remount", "allow_root", "uid=5", "iversion"] {
            assert_eq!(options.set(option), Err(UnknownOption(option.to_string())));
        }
    }

    #[test]
    fn a_users_mount_makes_nobody_root() {
        let flags = |list: &str| {
            let mut options = Options::new("image", "f2fs");
            list.split(',').for_each(|option| options.set(option).unwrap());
            options.flags
        };
        use MountOption::{Dev, Exec, NoDev, NoExec, NoSuid};
        assert_eq!(flags("dev,user"), [NoExec, NoSuid, NoDev]);
        assert_eq!(flags("suid,dev,owner"), [NoSuid, NoDev]);
        assert_eq!(flags("users,exec,dev"), [NoSuid, Exec, Dev]);
    }
}
