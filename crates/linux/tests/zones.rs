//! A drive with zones under the kernel's F2FS.

use crate::common::{drive, guest, run, text};

const SCRIPT: &str = r#"
cat /sys/block/vda/queue/zoned
mkfs.f2fs -f -m /dev/vda
mount -t f2fs /dev/vda /mnt/volume
mark begin
for i in 1 2 3 4 5 6; do
    dd if=/dev/zero of=/mnt/volume/f$i bs=1M count=64 conv=fsync 2>/dev/null
    rm -f /mnt/volume/f$((i - 2))
done
sync
mark end
umount /mnt/volume
fsck.f2fs --dry-run /dev/vda
"#;

#[test]
fn f2fs_of_the_kernel_writes_zones_in_order_and_resets_them() {
    let out = tempfile::tempdir().unwrap();
    let Some(guest) = guest(SCRIPT, out.path()) else { return };
    let (_, lines) = run(&guest, drive("femu-32g-zoned", "1/8"), None)
        .unwrap_or_else(|error| panic!("{error}\n{}", text(out.path(), "log")));
    assert!(text(out.path(), "log").starts_with("host-managed"), "{}", text(out.path(), "log"));
    assert!(lines.iter().filter(|line| line.1 == "Zone").count() > 2);
}
