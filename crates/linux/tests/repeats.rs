//! The same guest does the same in the same nanosecond.

use crate::common::{drive, guest, run, text};

/// Threads, fsyncs, direct reads, a checker: on each of the file systems.
const FIO: &str = r#"
mount -t $FS /dev/vda /mnt/volume
mark
fio --clocksource=clock_gettime --thread --name=f --directory=/mnt/volume --bs=4k --size=1m --numjobs=4 \
    --randseed=1 --allrandrepeat=1 --rw=randwrite --fsync=10 --output=/dev/null
fio --clocksource=clock_gettime --name=r --directory=/mnt/volume --filename=f.0.0 --bs=4k --size=1m \
    --rw=randread --direct=1 --ioengine=libaio --iodepth=4 --randseed=1 --output=/dev/null
sync
mark
cut -d' ' -f1 /proc/uptime > $OUT/uptime
umount /mnt/volume
"#;

#[test]
fn the_same_guest_asks_for_the_same_at_the_same_times() {
    for (fs, mkfs, check) in [
        ("f2fs", "mkfs.f2fs -q -f", "fsck.f2fs --dry-run"),
        ("ext4", "mkfs.ext4 -q -F", "e2fsck -f -n"),
    ] {
        let script = format!("FS={fs}\n{mkfs} /dev/vda{FIO}{check} /dev/vda");
        let runs: Vec<_> = (0..2)
            .filter_map(|_| {
                let out = tempfile::tempdir().unwrap();
                let guest = guest(&script, out.path())?;
                let (ended, lines) = run(&guest, drive("femu-32g", "1/32"), None)
                    .unwrap_or_else(|error| panic!("{error}\n{}", text(out.path(), "log")));
                assert!(!ended.was_cut);
                Some((ended.at, lines, text(out.path(), "uptime")))
            })
            .collect();
        let [first, second] = &runs[..] else { return };
        assert!(first.1.len() > 500, "{fs}: {} requests", first.1.len());
        assert!(first.1.iter().any(|line| line.1 == "Flush"));
        assert!(first == second, "{fs}");
    }
}
