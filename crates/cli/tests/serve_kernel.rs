//! The Linux kernel on a drive that is served, through its own NBD client and in user-mode Linux.
//! The server runs in the guest as well.
//!
//! `DOVETAIL_WITHOUT=kernel` declares that user-mode Linux cannot run here.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fs;

use crate::guest::{self, Kernel};

/// Makes, fills, trims, checks and reads a volume of each kind, over two connections.
const SCRIPT: &str = r#"
for tool in cp diff fstrim seq dd cat kill; do
    eval "$tool() { /usr/bin/busybox $tool \"\$@\"; }"
done
modules=/usr/lib/uml/modules/$(uname -r)/kernel
insmod $modules/drivers/block/nbd.ko nbds_max=1
mkdir /mnt/source /mnt/volume
for n in $(seq 400); do echo "file $n" > /mnt/source/$n; done
cp -r $modules/drivers/block /mnt/source/modules
@DOVETAIL@ serve femu-32g --scale 1/256 --unix /mnt/socket > /mnt/serving &
server=$!
until [ -S /mnt/socket ]; do sleep 0.1; done
nbd-client -unix /mnt/socket /dev/nbd0 -C 2
fill() {
    mount -t $1 -o discard /dev/nbd0 /mnt/volume
    cp -r /mnt/source /mnt/volume/first
    sync
    rm -r /mnt/volume/first
    cp -r /mnt/source /mnt/volume/second
    fstrim /mnt/volume
    umount /mnt/volume
    echo 3 > /proc/sys/vm/drop_caches
}
compare() {
    mount -t $1 -o ro /dev/nbd0 /mnt/volume
    diff -r /mnt/source /mnt/volume/second
    umount /mnt/volume
}
mkfs.f2fs -f /dev/nbd0 > $OUT/mkfs.f2fs
fill f2fs
fsck.f2fs --dry-run /dev/nbd0 > $OUT/fsck.f2fs
compare f2fs
mkfs.ext4 -F /dev/nbd0 > $OUT/mkfs.ext4
fill ext4
e2fsck -fn /dev/nbd0 > $OUT/fsck.ext4
compare ext4
@DOVETAIL@ serve --status /mnt/socket --json > $OUT/status
nbd-client -d /dev/nbd0
kill $server
wait $server
"#;

#[test]
fn linux_mounts_f2fs_and_ext4_on_a_served_drive() {
    if std::env::var("DOVETAIL_WITHOUT").is_ok_and(|list| list.split(',').any(|n| n == "kernel")) {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let script = SCRIPT.replace("@DOVETAIL@", env!("CARGO_BIN_EXE_dovetail"));
    let kernel = Kernel::of_debian().with_memory("mem=1024M");
    let log = guest::run(&kernel, &script, &[], out.path());
    let told = |name: &str| fs::read_to_string(out.path().join(name)).unwrap();
    for mark in ["[ASSERT]", "[FIX]", "[Fail]"] {
        assert!(!told("fsck.f2fs").contains(mark), "{}", told("fsck.f2fs"));
    }
    assert!(!log.contains("I/O error"), "{log}");
    let status: serde_json::Value = serde_json::from_str(&told("status")).unwrap();
    let requests = &status["server"]["requests"];
    for kind in ["read", "write", "flush", "discard"] {
        assert!(requests[kind].as_u64().unwrap() > 10, "{kind}: {status}");
    }
    assert_eq!(requests["failed"], 0, "{status}");
    assert!(status["server"]["connections"].as_u64().unwrap() >= 3, "two, and who asks: {status}");
}
