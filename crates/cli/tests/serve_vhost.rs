//! The Linux kernel on a drive that is served as a vhost-user-blk device, in user-mode Linux and in
//! real time.
//!
//! It takes the kernel of `dovetail linux build`: Debian's has the disk's driver as a module, and no
//! zones.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]
#![allow(clippy::print_stdout, reason = "what is skipped is said")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dovetail_linux::default_kernel;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::front_end::{FLUSH, FrontEnd, WRITE};

/// Time limit of a guest; it takes half a minute on an idle machine (assumed for a loaded one).
const TIMEOUT: Duration = Duration::from_secs(900);

/// The beginning of every guest's script. The host's files are the root, for reading only.
const INIT: &str = r#"#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/mnt
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /mnt
mount -t tmpfs tmpfs /tmp
mkdir /mnt/out /mnt/volume
mount -t hostfs -o '@OUT@' none /mnt/out
cd /mnt
OUT=/mnt/out
exec > $OUT/log 2>&1
set -ex
end() { dmesg > $OUT/dmesg; echo "$1" > $OUT/end; while :; do sleep 1; done; }
trap 'end "failed with status $?"' EXIT
verify() {
    fio --name=j --directory=/mnt/volume --rw=randwrite --bs=4k --size=8m --numjobs=2 --fsync=64 \
        --verify=crc32c --do_verify=1 --verify_fatal=1 --ioengine=psync --direct=$1 --group_reporting
}
compare() {
    cp -r /usr/include/linux /mnt/volume/first
    sync
    rm -r /mnt/volume/first
    cp -r /usr/include/linux /mnt/volume/second
    fstrim -v /mnt/volume
    umount /mnt/volume
    mount -t $1 -o ro $2 /mnt/volume
    diff -r /usr/include/linux /mnt/volume/second
    umount /mnt/volume
}
@SCRIPT@
trap - EXIT
end done
"#;

/// A program that is killed, with its process group, when the test ends before it does.
struct Running(Child);

impl Running {
    fn serve(drive: &str, socket: &Path, rest: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
        command.args(["serve", drive, "--vhost"]).arg(socket).args(rest).process_group(0);
        let mut program = Self(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut told = String::new();
        BufReader::new(program.0.stdout.take().unwrap()).read_line(&mut told).unwrap();
        assert!(told.contains("to a virtual machine at"), "{told:?}");
        program
    }

    fn boot(kernel: &Path, script: &str, socket: &Path, folder: &Path) -> Self {
        let (init, console) = (folder.join("init"), folder.join("console"));
        let text = INIT.replace("@OUT@", folder.to_str().unwrap()).replace("@SCRIPT@", script);
        fs::write(&init, text).unwrap();
        fs::set_permissions(&init, PermissionsExt::from_mode(0o755)).unwrap();
        let output = File::create(console).unwrap();
        let mut command = crate::uml::command(kernel);
        command.args(["rootfstype=hostfs", "rootflags=/", "ro", "quiet", "mem=384M", "selinux=0"]);
        command.args(["con=null", "con0=null,fd:1"]);
        command.arg(format!("init={}", init.display()));
        command.arg(format!("uml_dir={}", folder.display()));
        command.arg(format!("virtio_uml.device={}:2", socket.display()));
        command.stdin(Stdio::null()).stderr(output.try_clone().unwrap()).stdout(output);
        Self(command.process_group(0).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

/// Runs a guest's script on a drive that is served, and returns the status of the server after it.
fn run(drive: &str, rest: &[&str], script: &str) -> Option<serde_json::Value> {
    if std::env::var("DOVETAIL_WITHOUT").is_ok_and(|list| list.split(',').any(|n| n == "kernel")) {
        return None;
    }
    let kernel = match default_kernel() {
        Ok(kernel) => kernel,
        Err(error) => {
            println!("serve --vhost: SKIPPED: {error}");
            return None;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut serving = Running::serve(drive, &socket, rest);
    let mut guest = Running::boot(&kernel, script, &socket, folder.path());
    let told = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let begun = Instant::now();
    let is_over = |guest: &mut Running| {
        told("end").ends_with('\n')
            || begun.elapsed() > TIMEOUT
            || !matches!(guest.0.try_wait(), Ok(None))
    };
    while !is_over(&mut guest) {
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(told("end").trim(), "done", "{}\n{}", told("log"), told("console"));
    assert!(!told("dmesg").contains("I/O error"), "{}", told("dmesg"));
    for mark in ["[ASSERT]", "[FIX]", "[Fail]"] {
        assert!(!told("log").contains(mark), "{}", told("log"));
    }
    let mut ask = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    let status = ask.args(["serve", "--json", "--status"]).arg(&socket).output().unwrap();
    assert!(status.status.success(), "{status:?}");
    drop(guest);
    kill_process(Pid::from_child(&serving.0), Signal::TERM).unwrap();
    assert!(serving.0.wait().unwrap().success());
    assert!(!socket.exists());
    Some(serde_json::from_slice(&status.stdout).unwrap())
}

fn check(status: &serde_json::Value, kinds: &[&str]) {
    let requests = &status["server"]["requests"];
    for kind in kinds {
        assert!(requests[*kind].as_u64().unwrap() > 10, "{kind}: {status}");
    }
    assert_eq!(requests["failed"], 0, "{status}");
}

#[test]
fn linux_mounts_f2fs_and_ext4_on_a_drive_of_its_own() {
    let script = r#"
[ $(ls /sys/block/vda/mq | wc -l) -ge 1 ]
for fs in f2fs ext4; do
    case $fs in f2fs) mkfs.f2fs -f /dev/vda;; ext4) mkfs.ext4 -F /dev/vda;; esac
    mount -t $fs -o discard /dev/vda /mnt/volume
    verify 0
    verify 1
    compare $fs /dev/vda
    case $fs in f2fs) fsck.f2fs --dry-run /dev/vda;; ext4) e2fsck -fn /dev/vda;; esac
done
blkdiscard -f /dev/vda
cmp -n 1048576 /dev/vda /dev/zero
"#;
    let Some(status) = run("femu-32g", &["--scale", "1/64", "--queues", "4"], script) else {
        return;
    };
    check(&status, &["read", "write", "flush", "discard"]);
}

#[test]
fn linux_mounts_f2fs_on_a_drive_with_zones() {
    let script = r#"
[ $(cat /sys/block/vda/queue/zoned) = host-managed ]
mkfs.f2fs -f -m /dev/vda
mount -t f2fs /dev/vda /mnt/volume
verify 0
compare f2fs /dev/vda
fsck.f2fs --dry-run /dev/vda
"#;
    let Some(status) = run("femu-32g-zoned", &["--scale", "1/8"], script) else { return };
    check(&status, &["read", "write", "flush", "zone"]);
}

#[test]
fn what_was_flushed_survives_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (drive, socket) = (folder.path().join("drive"), folder.path().join("socket"));
    let drive = drive.to_str().unwrap();
    let mut make = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    make.args(["drive", "make", drive, "--profile", "evo970-500g", "--scale", "1/256"]);
    assert!(make.output().unwrap().status.success());
    for round in 1..=3 {
        let mut serving = Running::serve(drive, &socket, &["--speed", "0"]);
        let mut front_end = FrontEnd::connect(&socket);
        front_end.begin(1);
        for block in 0..64 {
            let expected = vec![if round == 1 { 0 } else { round - 1 }; 4096];
            assert_eq!(front_end.read(0, block * 16, 4096), expected, "block {block}");
            assert_eq!(front_end.request(0, WRITE, block * 16, &[round; 4096]), 0);
        }
        assert_eq!(front_end.request(0, FLUSH, 0, &[]), 0);
        // what comes after the flush may be lost, as long as the drive is whole
        assert_eq!(front_end.request(0, WRITE, 1 << 17, &[9; 65_536]), 0);
        serving.0.kill().unwrap();
        serving.0.wait().unwrap();
        assert!(front_end.is_closed());
    }
}
