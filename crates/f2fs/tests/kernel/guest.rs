//! A Linux kernel as a program of this machine: user-mode Linux, with images as its disks.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
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
modules=/usr/lib/uml/modules/$(uname -r)/kernel
for module in crypto/crc32_generic lib/lz4/lz4_compress lib/lz4/lz4hc_compress fs/f2fs/f2fs; do
    insmod $modules/$module.ko
done
for disk in 0 1 2 3 4 5 6 7; do
    mknod /mnt/disk$disk b 98 $((disk * 16))
    mkdir /mnt/$disk
done
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

/// Time limit of a run. It takes three seconds on an idle machine; assumed for a loaded one.
const TIMEOUT: Duration = Duration::from_secs(180);
/// Time limit of switching off; more than the second that a guest lets pass after a cut (assumed).
const SWITCHING_OFF: Duration = Duration::from_secs(20);
/// As many disks as the first script makes nodes for.
const MAX_DISKS: usize = 8;

/// Boots the kernel, runs `script` with each image of `images` as `/mnt/disk0` and so on, and
/// returns the kernel's log. `/mnt/0` and so on are there to mount them; what is written to `$OUT`
/// is in the folder `out`.
///
/// # Panics
/// The package is not installed, it cannot run on this host, the script failed, the guest did not
/// end in time.
pub(crate) fn run(script: &str, images: &[&Path], out: &Path) -> String {
    assert!(images.len() <= MAX_DISKS);
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("init.sh");
    let script_path = folder.path().join("script.sh");
    fs::write(&script_path, script).unwrap();
    let text = INIT
        .replace("@OUT@", out.to_str().unwrap())
        .replace("@SCRIPT@", script_path.to_str().unwrap());
    fs::write(&init, text).unwrap();
    fs::set_permissions(&init, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let console = folder.path().join("console");
    let mut guest = boot(&init, images, folder.path(), File::create(&console).unwrap());
    let ended = guest.wait(&out.join("end"));
    drop(guest);
    let text =
        |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let end = text(&out.join("end"));
    if let Some(why) = uml::cannot_run(&text(&console)) {
        panic!("{why}");
    }
    assert!(ended && end.trim() == "done", "the guest: {end}\nconsole:\n{}", text(&console));
    fs::remove_file(out.join("end")).unwrap();
    text(&out.join("log"))
}

fn boot(init: &Path, images: &[&Path], folder: &Path, console: File) -> Guest {
    let mut kernel = Command::new("linux.uml");
    kernel.args(["rootfstype=hostfs", "rootflags=/", "ro", "quiet", "selinux=0", "mem=256M"]);
    kernel.args(["con=null", "con0=null,fd:1"]);
    kernel.arg(format!("init={}", init.display())).arg(format!("uml_dir={}", folder.display()));
    kernel.args(
        images.iter().enumerate().map(|(disk, image)| format!("ubd{disk}={}", image.display())),
    );
    kernel.envs(uml::wide_registers().map(|library| ("LD_PRELOAD", library)));
    let errors = console.try_clone().unwrap();
    kernel.stdin(Stdio::null()).stdout(console).stderr(errors).process_group(0);
    let child = kernel.spawn();
    let install = "install it with: apt-get install user-mode-linux busybox";
    Guest(child.unwrap_or_else(|error| panic!("linux.uml: {error}; {install}")))
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
