//! A drive as a disk of the machine's own Linux. The machine is user-mode Linux, of which the server
//! is a program as well: hosts seldom have the driver, and a test has no business with theirs.
//!
//! It takes the kernel of `dovetail linux build`; Debian's has no ublk.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]
#![allow(clippy::print_stdout, reason = "what is skipped is said")]

use std::fs;
use std::path::Path;

use crate::guest::{self, Kernel};

/// Functions of every script.
const BEGIN: &str = r#"
export LC_ALL=C
mount -t tmpfs run /run
set -x
serve() { @DOVETAIL@ serve "$@" > /mnt/serving & server=$!; until grep -q "as /dev/ublkb" /mnt/serving; do kill -0 $server; sleep 0.1; done; }
forget() { echo 3 > /proc/sys/vm/drop_caches; }
"#;

/// Runs a script in a guest whose kernel has ublk, and returns the kernel's log; `None` if there is no
/// kernel.
fn run(script: &str, out: &Path) -> Option<String> {
    if std::env::var("DOVETAIL_WITHOUT").is_ok_and(|list| list.split(',').any(|n| n == "kernel")) {
        return None;
    }
    let Some(kernel) = Kernel::with_zones() else {
        println!("serve --ublk: SKIPPED: there is no kernel; `cargo xtask linux-kernel` builds it");
        return None;
    };
    let begin = BEGIN.replace("@DOVETAIL@", env!("CARGO_BIN_EXE_dovetail"));
    let script = script.replace("@DOVETAIL@", env!("CARGO_BIN_EXE_dovetail"));
    Some(guest::run(&kernel, &format!("{begin}{script}"), &[], out))
}

fn told(out: &Path, name: &str) -> String {
    fs::read_to_string(out.join(name)).unwrap_or_default()
}

/// The seconds between the two times of each line.
fn times(out: &Path) -> Vec<f64> {
    let told = told(out, "times");
    let taken = told.lines().map(|line| {
        let (begin, end) = line.split_once(' ').unwrap();
        end.parse::<f64>().unwrap() - begin.parse::<f64>().unwrap()
    });
    taken.collect()
}

#[test]
fn linux_mounts_ext4_and_f2fs_on_a_disk_of_its_own() {
    let out = tempfile::tempdir().unwrap();
    let script = r#"
serve evo970-500g --scale 1/256 --ublk=2
disk=/dev/ublkb2 queue=/sys/block/ublkb2/queue
[ "$(cat $queue/logical_block_size $queue/physical_block_size)" = "4096
4096" ]
[ "$(cat $queue/discard_granularity $queue/rotational $queue/fua)" = "4096
0
1" ]
[ "$(cat $queue/write_cache)" = "write back" ]

dd if=/dev/urandom of=/mnt/random bs=1M count=8
dd if=/mnt/random of=$disk bs=1M oflag=direct
dd if=/mnt/random of=$disk bs=4k count=16 seek=4096 oflag=direct,dsync
forget
cmp -n 8388608 $disk /mnt/random
blkdiscard -f -o 1M -l 1M $disk
blkdiscard -f -z -o 2M -l 1M $disk
forget
dd if=$disk bs=1M skip=1 count=2 | cmp -n 2097152 - /dev/zero
dd if=$disk bs=1M skip=3 count=5 > /mnt/back
dd if=/mnt/random bs=1M skip=3 count=5 | cmp - /mnt/back

mkdir /mnt/source
for n in $(seq 400); do echo "file $n" > /mnt/source/$n; done
cp /mnt/random /mnt/source
for fs in ext4 f2fs; do
    case $fs in ext4) mkfs.ext4 -F $disk;; f2fs) mkfs.f2fs -f $disk;; esac > $OUT/mkfs.$fs
    mount -t $fs -o discard $disk /mnt/volume
    cp -r /mnt/source /mnt/volume/first
    sync
    rm -r /mnt/volume/first
    cp -r /mnt/source /mnt/volume/second
    dd if=/mnt/random of=/mnt/volume/synced bs=4k count=256 oflag=dsync conv=fsync
    fstrim /mnt/volume
    umount /mnt/volume
    forget
    case $fs in ext4) e2fsck -fn $disk;; f2fs) fsck.f2fs --dry-run $disk;; esac > $OUT/fsck.$fs
    mount -t $fs -o ro $disk /mnt/volume
    diff -r /mnt/source /mnt/volume/second
    cmp -n 1048576 /mnt/random /mnt/volume/synced
    umount /mnt/volume
done
@DOVETAIL@ serve --status $disk --json > $OUT/status
kill $server
wait $server
[ -z "$(ls /dev | grep ublkb)$(ls /run)" ]
"#;
    let Some(log) = run(script, out.path()) else { return };
    assert!(!log.contains("I/O error"), "{log}");
    for mark in ["[ASSERT]", "[FIX]", "[Fail]"] {
        assert!(!told(out.path(), "fsck.f2fs").contains(mark), "{}", told(out.path(), "fsck.f2fs"));
    }
    let status: serde_json::Value = serde_json::from_str(&told(out.path(), "status")).unwrap();
    let requests = &status["server"]["requests"];
    for kind in ["read", "write", "flush", "discard", "write_zeroes"] {
        assert!(requests[kind].as_u64().unwrap() > 0, "{kind}: {status}");
    }
    assert_eq!(requests["failed"], 0, "{status}");
}

/// A direct write of 4 KiB with one in flight takes at least what the drive takes for it, and so do
/// reads; at speed 0 it takes less.
#[test]
fn answers_come_when_the_drive_is_done() {
    let out = tempfile::tempdir().unwrap();
    let script = r#"
for speed in 0.1 0; do
    serve femu-32g --scale 1/256 --ublk --speed $speed
    read begin rest < /proc/uptime
    dd if=/dev/zero of=/dev/ublkb0 bs=4k count=200 oflag=direct,dsync
    read end rest < /proc/uptime
    echo $begin $end >> $OUT/times
    kill -INT $server
    wait $server
done
"#;
    if run(script, out.path()).is_none() {
        return;
    }
    let times = times(out.path());
    // 200 durable writes of some 500 us, ten times as slow
    assert!(times[0] >= 0.9, "{times:?}");
    assert!(times[1] < times[0], "{times:?}");
}

/// A request that has some seconds left is not waited for when the server is asked to end.
#[test]
fn a_slow_disk_ends_when_it_is_asked_to() {
    let out = tempfile::tempdir().unwrap();
    let script = r#"
serve femu-32g --scale 1/256 --ublk --speed 0.0002
dd if=/dev/zero of=/dev/ublkb0 bs=1M count=4 oflag=direct &
sleep 1
read begin rest < /proc/uptime
kill $server
wait $server
read end rest < /proc/uptime
echo $begin $end > $OUT/times
"#;
    if run(script, out.path()).is_none() {
        return;
    }
    // the four requests take ten seconds each
    let times = times(out.path());
    assert!(times[0] < 8.0, "{times:?}");
}

#[test]
fn a_killed_server_is_followed_by_another_and_loses_nothing_that_was_durable() {
    let out = tempfile::tempdir().unwrap();
    let script = r#"
@DOVETAIL@ drive make /mnt/drive --profile femu-32g-log --scale 1/128
dd if=/dev/urandom of=/mnt/random bs=64k count=16
serve /mnt/drive --ublk=0 --speed 0
disk=/dev/ublkb0
dd if=/mnt/random of=$disk bs=64k count=16 oflag=direct conv=fsync
! @DOVETAIL@ serve femu-32g --scale 1/256 --ublk=0 2> $OUT/in-use
kill -9 $server
! wait $server
while [ -e $disk ]; do sleep 0.1; done
serve /mnt/drive --ublk=0 --read-only
[ "$(blockdev --getro $disk)" = 1 ]
cmp -n 1048576 $disk /mnt/random
! dd if=/dev/zero of=$disk bs=4k count=1 oflag=direct

# a disk that is still mounted goes all the same, and with it what the kernel had not written
kill $server
wait $server
serve /mnt/drive --ublk=0
mkfs.ext4 -q -F $disk
mount -t ext4 $disk /mnt/volume
cp /mnt/random /mnt/volume/random
kill $server
wait $server
umount /mnt/volume
serve /mnt/drive --ublk=0
e2fsck -fp $disk > $OUT/fsck || [ $? = 1 ]
mount -t ext4 -o ro $disk /mnt/volume
cmp /mnt/random /mnt/volume/random
umount /mnt/volume
kill $server
wait $server

! @DOVETAIL@ serve femu-32g-zoned --scale 1/64 --ublk 2> $OUT/zoned
"#;
    if run(script, out.path()).is_none() {
        return;
    }
    let in_use = told(out.path(), "in-use");
    assert!(in_use.contains("/dev/ublkb0 is there already"), "{in_use}");
    let zoned = told(out.path(), "zoned");
    assert!(zoned.contains("--vhost serves them"), "{zoned}");
}

/// Also where there is a kernel: this machine's own is not asked to make disks by a test.
#[test]
fn a_machine_without_ublk_is_told_so() {
    if Path::new("/dev/ublk-control").exists() {
        println!("serve --ublk: SKIPPED: this machine has ublk");
        return;
    }
    let mut serve = std::process::Command::new(env!("CARGO_BIN_EXE_dovetail"));
    let output = serve.args(["serve", "femu-32g", "--scale", "1/256", "--ublk"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("modprobe ublk_drv"), "{said}");
}
