# What a guest does with /dev/vda, before its host checks what it left. @FS@ is a file system.
disk=/sys/block/vda
[ "$(ls $disk/mq | wc -l)" = @QUEUES@ ]
[ "$(cat $disk/queue/logical_block_size)" = 4096 ]
[ "$(cat $disk/serial)" = "$(cat $OUT/serial)" ]

# what a guest gives up reads as zeros, and so does what it asks to be zeros
dd if=/dev/urandom of=$disk_node bs=1M count=32 oflag=direct
blkdiscard -o 0 -l 8M $disk_node
blkdiscard -z -o 8M -l 8M $disk_node
echo 3 > /proc/sys/vm/drop_caches
cmp -n $((16 << 20)) $disk_node /dev/zero
! cmp -s -i $((16 << 20)) -n $((16 << 20)) $disk_node /dev/zero
! dd if=/dev/zero of=$disk_node bs=4k seek=$(($(cat $disk/size) / 8)) count=1 oflag=direct

case @FS@ in
ext4) mkfs.ext4 -F $disk_node ;;
f2fs) mkfs.f2fs -f $disk_node ;;
esac
volume() { mount -t @FS@ -o "$1" $disk_node /mnt/volume; }
check() {
    case @FS@ in
    ext4) e2fsck -fn $disk_node ;;
    f2fs) fsck.f2fs --dry-run $disk_node | tee /tmp/fsck; ! grep -E '\[(ASSERT|FIX|Fail)\]' /tmp/fsck ;;
    esac
}

volume discard
for direct in 0 1; do
    fio --name=j --directory=/mnt/volume --rw=randrw --bsrange=4k-256k --bs_unaligned=0 --blockalign=4k \
        --size=24m --numjobs=2 --iodepth=8 --ioengine=libaio --direct=$direct --fsync=32 \
        --verify=crc32c --do_verify=1 --verify_fatal=1 --group_reporting
done
mkdir /mnt/volume/small
for n in $(seq 1000); do echo "file $n" > /mnt/volume/small/$n; done
dd if=/dev/urandom of=/mnt/volume/random bs=1M count=48 conv=fsync
rm /mnt/volume/j.0.0
sync
fstrim -v /mnt/volume
(cd /mnt/volume && find . -type f | sort | xargs -d '\n' sha256sum) > $OUT/sums
umount /mnt/volume
echo 3 > /proc/sys/vm/drop_caches
check
volume ro
(cd /mnt/volume && sha256sum --quiet -c $OUT/sums)
umount /mnt/volume
# a kernel that goes on where it was: written, not flushed by hand, unmounted, off
volume rw
echo "the last words" > /mnt/volume/last
(cd /mnt/volume && sha256sum ./last) >> $OUT/sums
umount /mnt/volume

# a kernel that has ublk is served by a program of its own: a queue on each processor
if [ -e /dev/ublk-control ]; then
    @DOVETAIL@ serve femu-32g --scale 1/64 --ublk=1 --queues @QUEUES@ --speed 0 > /tmp/serving &
    server=$!
    until grep "as /dev/ublkb1" /tmp/serving; do kill -0 $server; sleep 0.2; done
    [ "$(ls /sys/block/ublkb1/mq | wc -l)" = @QUEUES@ ]
    fio --name=u --filename=/dev/ublkb1 --direct=1 --rw=randrw --bsrange=4k-128k --blockalign=4k --size=16m \
        --offset_increment=64m --numjobs=4 --iodepth=16 --ioengine=libaio --fsync=32 \
        --verify=crc32c --do_verify=1 --verify_fatal=1 --group_reporting
    mkfs.@FS@ /dev/ublkb1
    mount -t @FS@ /dev/ublkb1 /mnt/volume
    dd if=/dev/urandom of=/mnt/volume/random bs=1M count=8 conv=fsync
    sha256sum /mnt/volume/random > /tmp/sum
    umount /mnt/volume
    echo 3 > /proc/sys/vm/drop_caches
    mount -t @FS@ -o ro /dev/ublkb1 /mnt/volume
    sha256sum -c /tmp/sum
    umount /mnt/volume
    @DOVETAIL@ serve --status /dev/ublkb1 | grep failed
    kill $server
    wait $server
    [ ! -e /dev/ublkb1 ]
fi
