//! Power cuts under the kernel's own file systems: each volume recovers, its checker is content,
//! and what was made durable is there.
//!
//! `DOVETAIL_SEEDS=N` cuts N times under each file system, from seed `DOVETAIL_FIRST_SEED` on (1).

use std::collections::BTreeMap;
use std::path::Path;

use dovetail_ftl::Storage;
use dovetail_linux::{Cut, FileSystem};
use dovetail_time::Rng;

use crate::common::{drive, guest, run, text};

/// File systems whose power is cut.
const SYSTEMS: [&str; 3] = ["f2fs", "ext4", "btrfs"];

/// Files of a random size are written anew, each line with the file and the number of the write;
/// when an fsync has returned, `$OUT/durable` says so. Some are renamed or removed without fsync.
const WORK: &str = r#"
cd /mnt/volume
mark begin
awk -v seed=$SEED 'BEGIN {
    srand(seed)
    for (n = 1; n <= 200; n++) {
        file = int(rand() * 12)
        lines = 1 + int(rand() * 900)
        print n, file, lines, int(rand() * 10)
    }
}' > $OUT/plan
while read n file lines sync; do
    awk -v n=$n -v file=$file -v lines=$lines 'BEGIN {
        for (i = 0; i < lines; i++) printf "file %04d write %08d line %06d\n", file, n, i
    }' > new
    if [ $sync -lt 7 ]; then
        echo begun $n $file $lines >> $OUT/durable
        dd if=new of=f$file bs=64k conv=fsync 2>/dev/null
        echo durable $n $file $lines >> $OUT/durable
    else
        echo begun $n $file $lines >> $OUT/durable
        dd if=new of=f$file bs=64k 2>/dev/null
    fi
done < $OUT/plan
mark end
"#;

const COPY: &str = "mkdir $OUT/files\ncp /mnt/volume/f* $OUT/files/ 2>/dev/null || :\n";

/// A line of write number `n` of a file.
fn line(file: u64, n: u64, i: usize) -> String {
    format!("file {file:04} write {n:08} line {i:06}\n")
}

/// Writes of a file that had begun since the last durable one, and that one.
#[derive(Default)]
struct Promise {
    durable: Option<(u64, usize)>,
    begun: Vec<(u64, usize)>,
}

fn promises(log: &str) -> BTreeMap<u64, Promise> {
    let mut promises: BTreeMap<u64, Promise> = BTreeMap::new();
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        // the last line may be cut off
        let [what, n, file, lines] = words[..] else { continue };
        let (Ok(n), Ok(file), Ok(lines)) = (n.parse(), file.parse(), lines.parse()) else {
            continue;
        };
        let promise = promises.entry(file).or_default();
        match what {
            "durable" => *promise = Promise { durable: Some((n, lines)), begun: Vec::new() },
            _ => promise.begun.push((n, lines)),
        }
    }
    promises
}

/// Files and lines that were held against what was promised.
#[derive(Debug, Default)]
struct Checked {
    durable: usize,
    lines_of_later_writes: usize,
}

/// A file after recovery holds its last durable write, or parts of those that had begun since.
fn check(out: &Path, recovered: &Path, context: &str, checked: &mut Checked) {
    let promises = promises(&text(out, "durable"));
    for (file, promise) in &promises {
        let Some((n, lines)) = promise.durable else { continue };
        checked.durable += 1;
        let found = std::fs::read(recovered.join(format!("files/f{file}")));
        let found = found.unwrap_or_else(|error| panic!("{context}: f{file}: {error}"));
        if !promise.begun.is_empty() {
            // it was truncated and is being written anew: what there is must be of these writes
            let known: Vec<u64> = promise.begun.iter().map(|(n, _)| *n).chain([n]).collect();
            let text = String::from_utf8_lossy(&found).replace('\0', "");
            let whole = line(0, 0, 0).len() - 1;
            for text in text.lines().filter(|line| line.starts_with("file ") && line.len() == whole)
            {
                let write: u64 = text[16..24].parse().unwrap();
                assert!(known.contains(&write), "{context}: f{file}: {text}");
                checked.lines_of_later_writes += 1;
            }
            continue;
        }
        let expected: String = (0..lines).map(|i| line(*file, n, i)).collect();
        assert!(
            found == expected.as_bytes(),
            "{context}: f{file}, write {n}, {lines} lines: {} bytes, {} expected",
            found.len(),
            expected.len()
        );
    }
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let first = number("DOVETAIL_FIRST_SEED").unwrap_or(1);
    first..first + number("DOVETAIL_SEEDS").unwrap_or(2)
}

/// Cuts the power once; `None` without a kernel.
fn cut_once(name: &str, seed: u64, checked: &mut Checked) -> Option<()> {
    let context = format!("{name}, seed {seed} (DOVETAIL_FIRST_SEED={seed} DOVETAIL_SEEDS=1)");
    let system = FileSystem::find(name).unwrap();
    let (out, recovered) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let begin = format!("SEED={seed}\n{}{}", system.make(""), system.mount(""));
    let work = guest(&format!("{begin}{WORK}"), out.path())?;
    let mut storage: Storage = drive("femu-32g", "1/32");
    storage.remember_operations();
    let at = 1 + Rng::new(seed).below(900);
    let (ended, _) = run(&work, storage, Some(Cut::Request(at)))
        .unwrap_or_else(|error| panic!("{context}: {error}\n{}", text(out.path(), "log")));
    let storage = match ended.was_cut {
        true => ended.drive.power_cycle_at(ended.at).unwrap().0,
        false => ended.drive.power_cycle().unwrap().0,
    };
    let script = format!("{}{COPY}{}", system.mount(""), system.check());
    let recover = guest(&script, recovered.path())?;
    run(&recover, storage, None).unwrap_or_else(|error| {
        panic!("{context}: after request {at}: {error}\n{}", text(recovered.path(), "log"))
    });
    check(out.path(), recovered.path(), &context, checked);
    Some(())
}

#[test]
fn what_the_kernel_made_durable_survives_power_cuts() {
    let mut checked = Checked::default();
    for seed in seeds() {
        for system in SYSTEMS {
            let Some(()) = cut_once(system, seed, &mut checked) else { return };
        }
    }
    let cuts = seeds().count() * SYSTEMS.len();
    println!("{checked:?} after {cuts} cuts");
    assert!(checked.durable > 0);
    // the two seeds of a common run may have none
    assert!(cuts < 30 || checked.lines_of_later_writes > 0);
}
