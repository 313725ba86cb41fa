//! A Linux kernel as a program of this machine: user-mode Linux, with images or null_blk as disks.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::uml;

/// Script that the guest runs before that of the test. The host's files are its root, for reading
/// only; its output goes to `$OUT`. `cut_power` ends it at once, with whatever it had not written
/// lost.
const INIT: &str = r#"#!/usr/bin/busybox sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
for tool in mount umount mkdir mknod insmod uname dmesg sleep poweroff cp rm sync fsync; do
    eval "$tool() { /usr/bin/busybox $tool \"\$@\"; }"
done
mount -t proc p /proc
mount -t sysfs s /sys
mount -t tmpfs t /mnt
export OUT=/mnt/out
mkdir $OUT
mount -t hostfs -o @OUT@ none $OUT
@PREPARE@
end() { dmesg > $OUT/log; echo "$1" > $OUT/end; }
fail() { end "failed: $1"; poweroff -f; }
cut_power() { end done; echo o > /proc/sysrq-trigger; sleep 60; }
set -e
trap 'fail "line of the script with status $?"' EXIT
. @SCRIPT@
trap - EXIT
end done
poweroff -f
"#;

/// Modules of Debian's kernel, and nodes of the disks.
const WITH_MODULES: &str = r"modules=/usr/lib/uml/modules/$(uname -r)/kernel
for module in crypto/crc32_generic lib/lz4/lz4_compress lib/lz4/lz4hc_compress fs/f2fs/f2fs; do
    insmod $modules/$module.ko
done
for disk in 0 1 2 3 4 5 6 7; do
    mknod /mnt/disk$disk b 98 $((disk * 16))
    mkdir /mnt/$disk
done";

/// Functions of the kernel with zones: `disk NAME SETTING=VALUE...` makes the null_blk device
/// `/dev/NAME`, in memory and with a volatile cache; `no_disk NAME` takes it away. `expect_clean`
/// runs fsck.f2fs and reads its answer in the strict sense.
const WITH_NULL_BLK: &str = r#"rmdir() { /usr/bin/busybox rmdir "$@"; }
grep() { /usr/bin/busybox grep "$@"; }
mount -t devtmpfs d /dev
mount -t configfs c /sys/kernel/config
mkdir /mnt/volume
disk() {
    folder=/sys/kernel/config/nullb/$1; shift
    mkdir $folder
    for setting in memory_backed=1 cache_size=64 "$@" power=1; do
        echo ${setting#*=} > $folder/${setting%%=*}
    done
}
no_disk() { echo 0 > /sys/kernel/config/nullb/$1/power; rmdir /sys/kernel/config/nullb/$1; }
expect_clean() {
    fsck.f2fs --dry-run $1 > $2
    ! grep -qE '\[ASSERT\]|\[FIX\]|\[Fail\]|Reconnect [1-9]' $2
}"#;

/// A kernel that a guest runs.
pub(crate) struct Kernel {
    program: PathBuf,
    memory: &'static str,
    arguments: &'static [&'static str],
    /// Part of [`INIT`] that is its own.
    prepare: &'static str,
    /// Advice for when the program is missing.
    install: &'static str,
}

impl Kernel {
    /// Debian's, ready-made; images are its disks.
    pub(crate) fn of_debian() -> Self {
        Self {
            program: "linux.uml".into(),
            memory: "mem=256M",
            arguments: &[],
            prepare: WITH_MODULES,
            install: "install it with: apt-get install user-mode-linux busybox",
        }
    }

    /// The same with other memory, as `mem=256M`.
    #[allow(dead_code, reason = "tests of other crates that run a guest need it")]
    pub(crate) fn with_memory(self, memory: &'static str) -> Self {
        Self { memory, ..self }
    }

    /// The one of Linux stacks, which has zoned devices in memory; `None` before it is built.
    pub(crate) fn with_zones() -> Option<Self> {
        Some(Self {
            program: dovetail_linux::default_kernel().ok()?,
            memory: "mem=1536M",
            arguments: &["null_blk.nr_devices=0"],
            prepare: WITH_NULL_BLK,
            install: "build it anew with: cargo xtask linux-kernel",
        })
    }
}

/// Time limit of a run. It takes three seconds on an idle machine; assumed for a loaded one.
const TIMEOUT: Duration = Duration::from_secs(180);
/// Time limit of switching off; more than the second that a guest lets pass after a cut (assumed).
const SWITCHING_OFF: Duration = Duration::from_secs(20);
/// As many disks as the first script makes nodes for.
const MAX_DISKS: usize = 8;

/// Boots a kernel, runs `script` with each image of `images` as `/mnt/disk0` and so on, and
/// returns the kernel's log. `/mnt/0` and so on are there to mount them; what is written to `$OUT`
/// is in the folder `out`.
///
/// # Panics
/// The kernel is not installed, it cannot run on this host, the script failed, the guest did not
/// end in time.
pub(crate) fn run(kernel: &Kernel, script: &str, images: &[&Path], out: &Path) -> String {
    assert!(images.len() <= MAX_DISKS);
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("init.sh");
    let script_path = folder.path().join("script.sh");
    fs::write(&script_path, script).unwrap();
    let text = INIT
        .replace("@PREPARE@", kernel.prepare)
        .replace("@OUT@", out.to_str().unwrap())
        .replace("@SCRIPT@", script_path.to_str().unwrap());
    fs::write(&init, text).unwrap();
    fs::set_permissions(&init, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let console = folder.path().join("console");
    let mut guest = boot(kernel, &init, images, folder.path(), File::create(&console).unwrap());
    let ended = guest.wait(&out.join("end"));
    drop(guest);
    let text =
        |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let end = text(&out.join("end"));
    if let Some(why) = uml::cannot_run(&text(&console)) {
        panic!("{why}");
    }
    let is_missing = text(&console).contains("failed to execute");
    assert!(!is_missing, "{} is missing; {}", kernel.program.display(), kernel.install);
    assert!(ended && end.trim() == "done", "the guest: {end}\nconsole:\n{}", text(&console));
    fs::remove_file(out.join("end")).unwrap();
    text(&out.join("log"))
}

fn boot(kernel: &Kernel, init: &Path, images: &[&Path], folder: &Path, console: File) -> Guest {
    let mut command = uml::command(&kernel.program);
    command.args(["rootfstype=hostfs", "rootflags=/", "ro", "quiet", "selinux=0", kernel.memory]);
    command.args(["con=null", "con0=null,fd:1"]).args(kernel.arguments);
    command.arg(format!("init={}", init.display())).arg(format!("uml_dir={}", folder.display()));
    command.args(
        images.iter().enumerate().map(|(disk, image)| format!("ubd{disk}={}", image.display())),
    );
    command.envs(uml::wide_registers().map(|library| ("LD_PRELOAD", library)));
    let errors = console.try_clone().unwrap();
    command.stdin(Stdio::null()).stdout(console).stderr(errors).process_group(0);
    Guest(command.spawn().unwrap())
}

/// The running kernel; it ends with this value. Its processes are a process group of their own.
struct Guest(Child);

impl Guest {
    /// Waits for the guest, and returns whether it ended in time. One that has said so in `end` and
    /// does not switch itself off, which happens on a loaded machine, is through all the same: it
    /// has nothing left to write.
    fn wait(&mut self, end: &Path) -> bool {
        let (start, mut said) = (Instant::now(), None);
        while start.elapsed() < TIMEOUT {
            if self.0.try_wait().unwrap().is_some() {
                return true;
            }
            if said.is_none() && end.exists() {
                said = Some(Instant::now());
            }
            if said.is_some_and(|said| said.elapsed() > SWITCHING_OFF) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let group = rustix::process::Pid::from_child(&self.0);
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            let _ = self.0.wait();
        }
    }
}
