//! The first program of a guest: a shell script.

use std::path::Path;

/// Prepares what programs of this machine need, runs the script, says how it ended. The host's
/// files are the guest's root, for reading only; `$OUT` is a folder of the host. `mark NAME` asks
/// the drive for its name: by that request the drive knows where the work stands. The virtio driver
/// calls every disk rotational and gives it a scheduler; the script takes back both.
const INIT: &str = r#"#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/mnt LC_ALL=C PYTHONHASHSEED=0
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /mnt
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
export OUT=/mnt/out
mkdir $OUT /mnt/volume
mount -t hostfs -o '@OUT@' none $OUT
cd /mnt
mark() { echo "$1" >> $OUT/marks; read serial < /sys/block/vda/serial || :; }
end() { echo "$1" > $OUT/end; while :; do mark over; sleep 1; done; }
fail() { end "failed: $*"; }
echo none > /sys/block/vda/queue/scheduler
echo 0 > /sys/block/vda/queue/rotational
echo @REQUEST_NS@ > /sys/module/virtio_blk/parameters/request_ns
set -e
trap 'fail "a command of the script ended with status $?"' EXIT
@SCRIPT@
trap - EXIT
end done
"#;

/// The script for a guest whose `$OUT` is the folder `out`.
pub(crate) fn init(out: &Path, script: &str, request_ns: u64) -> String {
    INIT.replace("@OUT@", &out.to_string_lossy())
        .replace("@REQUEST_NS@", &request_ns.to_string())
        .replace("@SCRIPT@", script)
}
