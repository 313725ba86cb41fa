//! The work of a guest as a shell script: a volume, a job or a command on it, a check.

use dovetail_linux::FIO_CLOCK;

use crate::bench::Stack;

/// The file systems that a guest can make, with the programs that make and check them.
const FILE_SYSTEMS: [FileSystem; 4] = [
    FileSystem { name: "f2fs", mkfs: "mkfs.f2fs -q -f", check: "fsck.f2fs --dry-run" },
    FileSystem { name: "ext4", mkfs: "mkfs.ext4 -q -F", check: "e2fsck -f -n" },
    FileSystem { name: "btrfs", mkfs: "mkfs.btrfs -q -f", check: "btrfs check" },
    FileSystem { name: "xfs", mkfs: "mkfs.xfs -q -f", check: "xfs_repair -n" },
];

/// A file system of the guest's kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileSystem {
    pub(super) name: &'static str,
    mkfs: &'static str,
    check: &'static str,
}

impl FileSystem {
    /// The file system of that name.
    pub(super) fn find(name: &str) -> Option<Self> {
        FILE_SYSTEMS.into_iter().find(|system| system.name == name)
    }

    /// The names of all, for messages.
    pub(super) fn names() -> String {
        FILE_SYSTEMS.map(|system| system.name).join(", ")
    }

    /// Makes a volume on the drive.
    fn make(self, stack: &Stack) -> String {
        let options = stack.mkfs.get("options").and_then(|value| value.as_str()).unwrap_or("");
        format!("{} {options} /dev/vda", self.mkfs)
    }

    fn mount(self, stack: &Stack, is_shrunk: bool) -> String {
        let options = match stack.mount.as_str() {
            "" => String::new(),
            options => format!("-o '{options}'"),
        };
        let settings = self.settings(stack, is_shrunk);
        format!("mount -t {} {options} /dev/vda /mnt/volume\n{settings}", self.name)
    }

    /// Unmounts the volume and checks it; what the check says is in `$OUT/check`.
    fn check(self) -> String {
        let check = self.check;
        format!(
            r#"cd /mnt
umount /mnt/volume
{check} /dev/vda > $OUT/check 2>&1 || fail "$(echo; cat $OUT/check)""#
        )
    }

    /// Settings of sysfs: the stack's own, and what a shrunk volume takes to behave as a large one.
    fn settings(self, stack: &Stack, is_shrunk: bool) -> String {
        if self.name != "f2fs" {
            return String::new();
        }
        let own = stack.sysfs.iter().map(|(name, value)| (name.as_str(), value.to_string()));
        let mut settings: Vec<(&str, String)> = own.collect();
        let is_log = stack.mount.split(',').any(|option| option == "mode=lfs");
        if is_shrunk && !is_log && !stack.sysfs.contains_key(IPU_POLICY.0) {
            settings.push((IPU_POLICY.0, IPU_POLICY.1.into()));
        }
        let line = |(name, value)| format!("echo {value} > /sys/fs/f2fs/vda/{name}\n");
        settings.into_iter().map(line).collect()
    }
}

/// Linux lets volumes of up to 16 GiB overwrite in place whenever they can
/// (`f2fs_tuning_parameters`); with `mode=lfs` there is nothing to set. A volume that stands for a
/// larger one has that one's policy: in place for fsync of few pages only.
const IPU_POLICY: (&str, &str) = ("ipu_policy", "16");

/// Work in a guest, between two marks.
pub(super) struct Work<'a> {
    pub(super) stack: &'a Stack,
    /// `None` for the raw drive.
    pub(super) system: Option<FileSystem>,
    /// The drive is smaller than the one that it stands for.
    pub(super) is_shrunk: bool,
    /// Commands before the first mark, and those after it.
    pub(super) prepare: &'a str,
    pub(super) run: &'a str,
}

impl Work<'_> {
    /// Makes and mounts a volume, works on it between two marks, checks it.
    pub(super) fn script(&self) -> String {
        let Self { stack, system, is_shrunk, prepare, run } = *self;
        let (begin, end) = match system {
            Some(system) => {
                let (make, mount) = (system.make(stack), system.mount(stack, is_shrunk));
                (format!("{make}\n{mount}\ncd /mnt/volume"), system.check())
            }
            None => (String::new(), String::new()),
        };
        format!("exec > $OUT/log 2>&1\n{begin}\n{prepare}\nmark\n{run}\nmark\n{end}\n")
    }

    /// Mounts the volume after a power cut, and checks it.
    pub(super) fn recovery(&self) -> String {
        match self.system {
            Some(system) => {
                let mount = system.mount(self.stack, self.is_shrunk);
                format!("exec > $OUT/log 2>&1\nmark\n{mount}\nmark\n{}\n", system.check())
            }
            None => "mark\nmark\n".into(),
        }
    }
}

/// Lays out the files of `$OUT/job.fio`.
pub(super) const LAY_OUT: &str = "fio --create_only=1 --output=$OUT/layout.txt $OUT/job.fio\nsync";

/// Plays `$OUT/job.fio`; results are in `$OUT/fio.json`.
pub(super) fn play(final_sync: bool) -> String {
    let sync = if final_sync { "sync" } else { "" };
    format!("fio --output-format=json+ --output=$OUT/fio.json $OUT/job.fio || :\n{sync}")
}

/// The job for fio in a guest. Its clock must be the guest's, not the processor's.
pub(super) fn job_text(text: &str, seed: u64) -> String {
    format!(
        "[global]\n{FIO_CLOCK}\ndirectory=/mnt/volume\nallrandrepeat=1\nrandseed={seed}\n\
         lat_percentiles=1\nthread=1\n{text}"
    )
}
