#!/bin/busybox sh
# The first program of a guest: this machine's files, for reading only, become the guest's.
/bin/busybox mkdir -p /proc /sys /dev /host
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
while read -r module; do
    /bin/busybox insmod "/modules/$module.ko" || echo "$module cannot be loaded"
done < /modules/order
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro host /host
/bin/busybox mount -t proc proc /host/proc
/bin/busybox mount -t sysfs sysfs /host/sys
/bin/busybox mount -t devtmpfs dev /host/dev
for place in mnt tmp run; do /bin/busybox mount -t tmpfs tmpfs "/host/$place"; done
/bin/busybox mkdir /host/mnt/out /host/mnt/volume
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none out /host/mnt/out
/bin/busybox chroot /host /bin/sh /mnt/out/script
/bin/busybox sync
/bin/busybox poweroff -f
