//! The same guest does the same in the same nanosecond: eleven jobs, each twice.

use dovetail_block::{BlockDevice, BlockRange, Command, Content, Lba};
use dovetail_ftl::Storage;
use dovetail_linux::FileSystem;
use dovetail_time::SimTime;

use crate::common::{drive, guest, run, text};

/// After every guest's end.
const LATER: SimTime = SimTime::from_ns(1 << 60);
const THREADS: &str = "fio --clocksource=clock_gettime --thread --name=f --bs=4k --size=1m --numjobs=4 --randseed=1 \
                       --allrandrepeat=1 --rw=randwrite --fsync=10 --output=/dev/null";
const DEEP_READS: &str = "fio --clocksource=clock_gettime --name=r --bs=4k --size=4m --rw=randread --direct=1 \
                          --ioengine=libaio --iodepth=16 --randseed=1 --output=/dev/null";
const IO_URING: &str = "fio --clocksource=clock_gettime --name=r --bs=4k --size=4m --rw=randrw --direct=1 \
                        --ioengine=io_uring --iodepth=8 --randseed=1 --output=/dev/null";
const COPIES: &str =
    "cp -r /usr/share/perl5/Debconf c && sync && tar cf t.tar c && sync && rm -r c && sync";
const GIT: &str = "git init -q g && cd g && cp -r /usr/share/perl5/Debconf . && git add . && \
                   git -c user.name=a -c user.email=a@b -c gc.auto=0 commit -qm x && cd ..";
const SQLITE: &str = r#"/usr/bin/python3 -c "
import sqlite3
c = sqlite3.connect('a.db')
c.execute('create table t(a integer primary key, b text)')
for i in range(50):
    c.execute('insert into t(b) values(?)', ('x' * 100,))
    c.commit()
""#;
const WRITERS: &str = r#"/usr/bin/python3 -c "
import os, threading
def work(n):
    with open('t%d' % n, 'wb') as f:
        for i in range(20):
            f.write(b'y' * 5000); f.flush(); os.fsync(f.fileno())
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
""#;

/// A job on a file system, the end of the guest's clock in `$OUT`.
fn on(system: &str, job: &str) -> String {
    let system = FileSystem::find(system).unwrap();
    format!(
        "{}{}cd /mnt/volume\nmark begin\n{job}\nsync\nmark end\n\
         cut -d' ' -f1 /proc/uptime > $OUT/uptime\n{}",
        system.make(""),
        system.mount(""),
        system.check()
    )
}

/// All that a drive holds, as one number.
fn content(drive: &mut Storage) -> u32 {
    const PIECE: u64 = 256;
    let blocks = drive.info().capacity();
    let mut hasher = crc32fast::Hasher::new();
    for start in (0..blocks).step_by(PIECE as usize) {
        let mut piece = vec![Content::Empty; PIECE.min(blocks - start) as usize];
        let range = BlockRange::new(Lba(start), piece.len() as u64);
        let read = Command::Read { range, into: Some(&mut piece) };
        drive.submit(LATER, read).unwrap();
        for block in piece {
            match block {
                Content::Bytes(bytes) => hasher.update(&bytes[..]),
                other => hasher.update(format!("{other:?}").as_bytes()),
            }
        }
    }
    hasher.finalize()
}

/// Runs a script twice, and holds every request of one against the other's, and what the drives
/// hold at the end.
fn repeat(script: &str, requests: usize) {
    let runs: Vec<_> = (0..2)
        .filter_map(|_| {
            let out = tempfile::tempdir().unwrap();
            let guest = guest(script, out.path())?;
            let (mut ended, lines) = run(&guest, drive("femu-32g", "1/32"), None)
                .unwrap_or_else(|error| panic!("{error}\n{}", text(out.path(), "log")));
            let content = content(&mut ended.drive);
            Some((lines, (ended.at, text(out.path(), "uptime"), content)))
        })
        .collect();
    let [first, second] = &runs[..] else { return };
    assert!(first.0.len() > requests, "{} requests", first.0.len());
    let differs = first.0.iter().zip(&second.0).find(|(one, other)| one != other);
    assert_eq!(differs, None);
    assert_eq!((first.0.len(), &first.1), (second.0.len(), &second.1), "requests, end, content");
}

macro_rules! jobs {
    ($($name:ident: $script:expr, $requests:expr;)*) => {
        $(#[test]
        fn $name() {
            repeat(&$script, $requests);
        })*
    };
}

jobs! {
    threads_on_f2fs: on("f2fs", THREADS), 200;
    threads_on_ext4: on("ext4", THREADS), 500;
    threads_on_btrfs: on("btrfs", THREADS), 200;
    threads_on_xfs: on("xfs", THREADS), 200;
    deep_reads_on_f2fs: on("f2fs", DEEP_READS), 1000;
    io_uring_on_ext4: on("ext4", IO_URING), 1000;
    copies_on_xfs: on("xfs", COPIES), 50;
    git_on_btrfs: on("btrfs", GIT), 50;
    sqlite_on_f2fs: on("f2fs", SQLITE), 100;
    writers_on_ext4: on("ext4", WRITERS), 100;
    a_raw_drive: "blkdiscard /dev/vda\ndd if=/dev/zero of=/dev/vda bs=64k count=100 oflag=direct", 100;
}
