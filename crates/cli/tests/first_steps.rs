//! Slips of people who use the command for the first time, and answers that once were wrong.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use dovetail_ftl::Profile;
use serde_json::Value;
use tempfile::TempDir;

/// Writes 1 MiB.
const JOB: &str = "[a]\nrw=write\nsize=1m\n";

fn dovetail(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.args(arguments.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A folder with files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Standard output of a command that succeeds.
fn done(folder: &Path, arguments: &str) -> String {
    let output = dovetail(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Standard error of a command that ends with a code, and says nothing else.
fn refused(folder: &Path, arguments: &str, code: i32) -> String {
    let output = dovetail(folder, arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments}: {message}");
    assert_eq!(text(&output.stdout), "", "{arguments}");
    message
}

fn json(folder: &Path, arguments: &str) -> Value {
    serde_json::from_str(&done(folder, arguments)).unwrap()
}

/// A stack on a small partition, with more lines.
fn stack(more: &str) -> String {
    format!(
        "name = \"small\"\nabout = \"\"\nfilesystem = \"f2fs\"\ndrive = \"femu-32g\"\npartition = \"192MiB\"\n{more}"
    )
}

#[test]
fn rates_leave_out_the_ramps_of_later_jobs() {
    let job = |name: &str, more: &str| {
        format!(
            "[{name}]\nrw=write\nbs=64k\nsize=16m\nrate=20m\ntime_based\nruntime=500ms\nramp_time=250ms\n{more}"
        )
    };
    let jobs = [job("one", ""), job("two", "stonewall\n"), job("three", "stonewall\n")].concat();
    let folder = folder(&[("ramps.fio", &jobs), ("small.toml", &stack(""))]);
    let results = json(folder.path(), "bench ramps.fio --stack small.toml --json");
    let run = &results["runs"][0];
    let rate = run["totals"]["write_mb_per_s"].as_f64().unwrap();
    for job in run["jobs"].as_array().unwrap() {
        let own = job["written_bytes"].as_f64().unwrap() / job["elapsed_s"].as_f64().unwrap() / 1e6;
        assert!((rate / own - 1.0).abs() < 0.05, "{rate} MB/s in all, {own} of {}", job["name"]);
    }
    let ramps = run["totals"]["ramp_s"].as_f64().unwrap();
    assert!((0.4..0.6).contains(&ramps), "{ramps}");
    let table = done(folder.path(), "bench ramps.fio --stack small.toml");
    assert!(table.contains("of which ramps, not counted"), "{table}");
}

#[test]
fn a_share_to_fill_needs_its_percent_sign() {
    let folder = folder(&[("j.fio", JOB), ("small.toml", &stack(""))]);
    let message = refused(folder.path(), "bench j.fio --stack small.toml --fill 50", 2);
    assert!(message.contains("50 bytes are less than a block: write 50% for a share"), "{message}");
    let run = &json(folder.path(), "bench j.fio --stack small.toml --fill 50% --json")["runs"][0];
    let parts = run["occupancy"].as_array().unwrap();
    let used = parts.iter().filter_map(Value::as_f64).sum::<f64>() / parts.len() as f64;
    assert!((0.45..0.7).contains(&used), "{used}");
}

#[test]
fn options_that_fio_takes_without_a_value_are_taken_so() {
    let bare = "hipri\nsqthread_poll\nregisterfiles\nfixedbufs\nuserspace_reap\n";
    let fdp = format!("{JOB}fdp\n");
    let folder = folder(&[("bare.fio", &format!("{JOB}{bare}exitall\n")), ("fdp.fio", &fdp)]);
    done(folder.path(), "bench bare.fio --stack f2fs --scale 1/64");
    let message = refused(folder.path(), "bench fdp.fio --stack f2fs --scale 1/64", 1);
    assert!(message.contains("\"fdp\" would change the I/O"), "{message}");
    assert!(message.contains("give write_hint"), "{message}");
}

/// Standard input is read once, and every run plays it.
#[test]
fn a_trace_may_come_from_standard_input() {
    let trace = "0 0 0 8 0\n1000000 0 8 8 0\n2000000 0 16 8 1\n";
    let folder = folder(&[("t.trace", trace)]);
    let play = |trace: &str| {
        let line = format!("replay {trace} -d femu-32g --scale 1/64 --op 7,12 --json");
        let input = std::fs::File::open(folder.path().join("t.trace")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
        let command = command.current_dir(folder.path()).args(line.split(' ')).stdin(input);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let results: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(results["runs"].as_array().unwrap().len(), 2);
        results["runs"].to_string().replace("\"t.trace", "\"stdin")
    };
    assert_eq!(play("-"), play("t.trace"));

    std::fs::write(folder.path().join("bad.trace"), "0 0 0 8 0\n1 0 8 8 0\nno request\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.args("replay - -d femu-32g --scale 1/64".split(' '));
    let bad = std::fs::File::open(folder.path().join("bad.trace")).unwrap();
    let output = command.stdin(bad).output().unwrap();
    let message = text(&output.stderr);
    assert!(message.starts_with("dovetail: standard input:3: expected"), "{message}");
}

#[test]
fn a_job_for_a_drive_on_a_file_system_is_told() {
    let job = "[a]\nfilename=/dev/nvme0n1\nrw=write\nsize=1m\ndirect=1\nbs=4k\n";
    let folder = folder(&[("dev.fio", job)]);
    let says = |stack: &str| {
        let table = done(folder.path(), &format!("bench dev.fio --stack {stack} --scale 1/64"));
        table.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(says("f2fs").contains("/dev/nvme0n1 of the job is a file of that name"));
    assert!(!says("raw").contains("is a file of that name"));
}

#[test]
fn a_file_that_is_no_trace_is_named() {
    let folder = folder(&[]);
    std::fs::write(folder.path().join("a.xz"), b"\xFD7zXZ\0\0rest").unwrap();
    let message = refused(folder.path(), "replay a.xz -d femu-32g --scale 1/64", 1);
    assert!(message.contains("a.xz is compressed with xz"), "{message}");
    let recorded =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/mariadb-ycsb-a.file.tsv.zst");
    let line = format!("replay {recorded} -d femu-32g --scale 1/64");
    let message = refused(folder.path(), &line, 1);
    assert!(message.contains("is a trace of file calls, not a trace of blocks"), "{message}");
    assert!(message.contains("dovetail bench"), "{message}");
}

#[test]
fn a_fio_job_may_have_any_name_and_come_from_standard_input() {
    let folder = folder(&[("job", JOB), ("job.ini", JOB), ("job.FIO", JOB)]);
    for name in ["job", "job.ini", "job.FIO"] {
        done(folder.path(), &format!("bench {name} --stack f2fs --scale 1/64"));
    }
    for name in ["-", "/dev/stdin"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
        command.args(["bench", name, "--stack", "f2fs", "--scale", "1/64"]);
        command.stdin(std::fs::File::open(folder.path().join("job")).unwrap());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let message = refused(folder.path(), "bench jib --stack f2fs", 1);
    assert!(message.contains("there is no file jib, and no personality of that name"), "{message}");
}

#[test]
fn a_free_inode_is_no_damage() {
    let folder = folder(&[]);
    done(folder.path(), "mkfs ext4 v.img --size 64M");
    for (what, expected) in [
        ("inode 3", "dovetail: inode 3 is not in use\n"),
        ("inode 16000", "dovetail: inode 16000 is not in use\n"),
        ("inode 999999999", "dovetail: there is no inode 999999999; the volume has 1 to 16384\n"),
        ("group 99", "dovetail: there is no group 99; the volume has 0 to 7\n"),
    ] {
        assert_eq!(refused(folder.path(), &format!("inspect v.img {what}"), 1), expected);
    }
    let found = json(folder.path(), "inspect v.img inode 2 --json");
    assert_eq!(found["ino"], 2);
}

#[test]
fn mkfs_ext4_takes_the_letters_of_mke2fs() {
    let folder = folder(&[]);
    let sizes = |image: &str| {
        let head =
            dovetail_testkit::program("dumpe2fs").arg("-h").arg(folder.path().join(image)).output();
        let keep = [
            "Filesystem features",
            "Inode",
            "Block",
            "Reserved",
            "Free",
            "Fragments",
            "Total journal",
        ];
        let lines = text(&head.unwrap().stdout);
        let kept = lines.lines().filter(|line| keep.iter().any(|start| line.starts_with(start)));
        kept.map(String::from).collect::<Vec<_>>()
    };
    for letters in [
        "-b 2k -g 8192 -I 128 -N 1000 -J size=4 -m 2 -O ^metadata_csum,^resize_inode",
        "-b 4096 -i 1k -O none,filetype,sparse_super,large_file",
        "-i 1M -O ^has_journal",
        "-O ^has_journal -J size=4",
    ] {
        done(folder.path(), &format!("mkfs ext4 -f {letters} ours.img --size 64M"));
        let theirs = folder.path().join("theirs.img");
        std::fs::File::create(&theirs).unwrap().set_len(64 << 20).unwrap();
        let mut mke2fs = dovetail_testkit::program("mke2fs");
        mke2fs.args(["-q", "-F", "-t", "ext4"]).args(letters.split_whitespace()).arg(theirs);
        assert!(mke2fs.status().unwrap().success(), "{letters}");
        let expected = sizes("theirs.img");
        assert!(expected.len() > 8, "{expected:?}");
        assert_eq!(sizes("ours.img"), expected, "{letters}");
    }
    for (letters, message) in [
        ("-J 64", "give size=MIB"),
        ("-g 300", "a multiple of 8 from 256 to 8192"),
        ("-O metadata_cksum", "did you mean \"metadata_csum\""),
        ("-b 0", "blocks of 0 bytes cannot be used"),
    ] {
        let output =
            dovetail(folder.path(), &format!("mkfs ext4 -f {letters} ours.img --size 64M"));
        assert!(!output.status.success() && text(&output.stderr).contains(message), "{letters}");
    }
}

#[test]
fn the_size_of_a_maps_cache_means_the_same_in_a_replay_and_in_a_bench() {
    let folder = folder(&[("j.fio", JOB)]);
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/f2fs-randwrite.blkparse.zst");
    let own = Profile::load("ufs31-256g").unwrap().map_cache_policy().unwrap().to_owned();
    for (drive, policy) in [("femu-32g", "dftl"), ("ufs31-256g", own.as_str())] {
        for run in [
            format!("replay {trace} --drive {drive} --scale 1/64 --wrap --limit 200"),
            format!("bench j.fio --stack f2fs --drive {drive} --scale 1/64"),
        ] {
            let results = json(folder.path(), &format!("{run} --cache-size 1M --json"));
            assert_eq!(results["runs"][0]["map_cache"]["policy"], policy, "{run}");
        }
    }
}

#[test]
fn a_figure_without_quotes_is_told_as_such() {
    let unquoted = stack("[drive-figures]\nhost.command_us = 5\n");
    let slip = stack("[drive-figures]\n\"host.comand_us\" = 5\n");
    let folder = folder(&[("j.fio", JOB), ("a.toml", &unquoted), ("b.toml", &slip)]);
    assert_eq!(
        refused(folder.path(), "bench j.fio --stack a.toml", 1),
        "dovetail: stack a.toml: [drive-figures] host.command_us: put the key into quotes: \"host.command_us\" = ...\n"
    );
    let message = refused(folder.path(), "bench j.fio --stack b.toml", 1);
    assert!(message.contains("did you mean command_us?"), "{message}");
}

#[test]
fn spare_flash_has_one_name_and_its_range_is_told() {
    let folder = folder(&[]);
    for flag in ["--op", "--over-provisioning"] {
        let message = refused(folder.path(), &format!("drive make d {flag} 0"), 2);
        assert!(message.contains("give a percentage from 0.1 to 1000"), "{message}");
    }
    let help = done(folder.path(), "drive make --help");
    assert!(help.contains("--op <PERCENT>") && !help.contains("--over-prov"), "{help}");
    assert!(!folder.path().join("d").exists());
}

#[test]
fn values_that_linux_refuses_in_sysfs_are_refused() {
    let stacks = ["ipu_policy = 999999", "gc_urgent = 4", "ipu_policy = \"fsync\""];
    let stacks = stacks.map(|line| stack(&format!("[sysfs]\n{line}\n")));
    for (stack, expected) in stacks.iter().zip([
        "[sysfs] ipu_policy is 999999, allowed is 0 to 255",
        "[sysfs] gc_urgent is 4, allowed is 0 to 3",
        "[sysfs]: invalid type: string \"fsync\", expected ",
    ]) {
        let folder = folder(&[("j.fio", JOB), ("s.toml", stack)]);
        let message = refused(folder.path(), "bench j.fio --stack s.toml", 1);
        assert!(message.contains(expected), "{message}");
    }
    let folder = folder(&[("j.fio", JOB), ("s.toml", &stack("[sysfs]\nipu_policy = 0x10\n"))]);
    done(folder.path(), "bench j.fio --stack s.toml");
}

#[test]
fn numbers_out_of_range_are_told_with_their_range() {
    let many = format!("{JOB}numjobs=100000\n");
    let large = "name = \"x\"\nabout = \"\"\nbase = \"femu-32g\"\n[capacity]\nuser = \"128PB\"\n";
    let huge = large.replace("128PB", "128EB");
    let folder = folder(&[("many.fio", &many), ("large.toml", large), ("huge.toml", &huge)]);
    let message = refused(folder.path(), "bench many.fio --stack f2fs", 1);
    assert!(message.contains("\"numjobs\" takes a number from 1 to 4096"), "{message}");
    let message = refused(folder.path(), "drive show large.toml", 1);
    assert!(message.contains("allowed is up to 1048576GiB"), "128PB is a size: {message}");
    let message = refused(folder.path(), "drive show huge.toml", 1);
    assert!(message.contains("a size such as 4KiB"), "{message}");
}

#[test]
fn results_name_the_job_and_not_its_folder() {
    let folder = folder(&[]);
    std::fs::create_dir(folder.path().join("secret")).unwrap();
    std::fs::write(folder.path().join("secret/phone.fio"), JOB).unwrap();
    let bench = "bench secret/phone.fio --stack f2fs --scale 1/64 --report r.html --json";
    assert_eq!(json(folder.path(), bench)["workload"], "phone.fio");
    let report = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
    assert!(report.contains("<title>Dovetail bench of phone.fio</title>"));
    assert!(!report.contains("secret"));
    std::fs::write(folder.path().join("secret/bad.fio"), "[a]\nxyz=1\n").unwrap();
    let message = refused(folder.path(), "bench secret/bad.fio --stack f2fs", 1);
    assert!(message.contains("secret/bad.fio:2: "), "{message}");
}

#[test]
fn a_stack_needs_no_sentence_about_it() {
    let short = stack("").replace("about = \"\"\n", "");
    let folder = folder(&[("j.fio", JOB), ("s.toml", &short)]);
    done(folder.path(), "bench j.fio --stack s.toml");
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/stacks.md");
    let stacks = std::fs::read_to_string(docs).unwrap();
    let row = stacks.lines().find(|line| line.starts_with("| `filesystem` |")).unwrap();
    for name in ["f2fs", "iplfs", "ext4", "ext3", "none"] {
        assert!(row.contains(&format!("`{name}`")), "{name}: {row}");
    }
}

#[test]
fn what_is_no_image_is_told_for_what_it_is() {
    let folder = folder(&[("tiny", "hello\n"), ("empty", "")]);
    std::fs::create_dir(folder.path().join("mnt")).unwrap();
    let disk = |name: &str, at: usize, bytes: &[u8]| {
        let mut disk = vec![0; 1 << 20];
        disk[at..at + bytes.len()].copy_from_slice(bytes);
        std::fs::write(folder.path().join(name), disk).unwrap();
    };
    disk("packed", 0, b"\xfd7zXZ\0");
    disk("btrfs", 65_600, b"_BHRfS_M");
    for (name, expected) in [
        ("tiny", "it has 6 bytes, and no file system is so small"),
        ("empty", "it is empty: no file system is on it"),
        ("packed", "it is compressed with xz: unpack it first (xz -d)"),
        ("btrfs", "it holds btrfs, which is not known here"),
    ] {
        for command in [format!("ls {name}"), format!("mount {name} mnt")] {
            let message = refused(folder.path(), &command, 1);
            assert_eq!(message, format!("dovetail: {name}: {expected}\n"));
        }
    }
}

#[test]
fn a_volume_in_a_partition_is_found_by_its_offset() {
    for kind in ["f2fs", "ext4"] {
        let folder = folder(&[("file", "hello\n")]);
        done(folder.path(), &format!("mkfs {kind} volume --size 64M"));
        let mut disk = vec![0; 1 << 20];
        disk[446 + 4] = 0x83;
        disk[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
        disk[446 + 12..446 + 16].copy_from_slice(&(128_u32 << 10).to_le_bytes());
        disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        disk.extend(std::fs::read(folder.path().join("volume")).unwrap());
        std::fs::write(folder.path().join("disk"), disk).unwrap();
        let message = refused(folder.path(), "ls disk", 1);
        let line = format!("\n    1: {kind}, 64.0 MiB from byte 1048576 on\n");
        assert!(message.contains("give --partition 1") && message.contains(&line), "{message}");
        done(folder.path(), "cp --offset 1MiB file disk:/file");
        assert_eq!(done(folder.path(), "cat --offset 1M disk /file"), "hello\n");
        for command in ["ls", "fsck", "inspect", "extract"] {
            let rest = match command {
                "inspect" => " superblock",
                "extract" => " out",
                _ => "",
            };
            done(folder.path(), &format!("{command} --partition 1 disk{rest}"));
        }
        done(folder.path(), "cp --partition 1 disk:/file again");
        let message = refused(folder.path(), "ls --partition 2 disk", 1);
        assert!(message.contains("it has no partition 2; it has 1"), "{message}");
        refused(folder.path(), "ls --partition 1 --offset 1M disk", 2);
        done(folder.path(), "fsck --offset 1M disk");
        let table = std::fs::read(folder.path().join("disk")).unwrap();
        assert!(table[512..1 << 20].iter().all(|byte| *byte == 0), "{kind}: the disk before it");
    }
}

#[test]
fn a_sparse_image_is_read_like_a_plain_one_and_never_written() {
    for kind in ["f2fs", "ext4"] {
        let folder = folder(&[("file", "hello\n")]);
        done(folder.path(), &format!("mkfs {kind} plain --size 64M"));
        done(folder.path(), "cp file plain:/file");
        let said = done(folder.path(), "image sparse plain v.simg");
        assert!(said.starts_with("v.simg: a sparse image of "), "{said}");
        let before = std::fs::read(folder.path().join("v.simg")).unwrap();
        assert_eq!(done(folder.path(), "cat v.simg /file"), "hello\n");
        assert_eq!(done(folder.path(), "cat v.simg:/file"), "hello\n");
        assert_eq!(done(folder.path(), "ls v.simg"), done(folder.path(), "ls plain"));
        done(folder.path(), "fsck v.simg");
        done(folder.path(), "extract v.simg out");
        done(folder.path(), "cp v.simg:/file again");
        let shown = done(folder.path(), "inspect v.simg superblock");
        assert_eq!(shown, done(folder.path(), "inspect plain superblock"));
        let message = refused(folder.path(), "cp file v.simg:/new", 1);
        assert!(message.contains("dovetail image unsparse"), "{message}");
        assert!(std::fs::read(folder.path().join("v.simg")).unwrap() == before);

        let message = refused(folder.path(), "image unsparse v.simg plain", 2);
        assert!(message.contains("--force"), "{message}");
        done(folder.path(), "image unsparse v.simg new");
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        assert!(read("new") == read("plain"));
        std::fs::write(folder.path().join("v.simg"), &before[..before.len() / 2]).unwrap();
        let message = refused(folder.path(), "ls v.simg", 1);
        assert!(message.contains("and a damaged one: "), "{message}");
        refused(folder.path(), "image unsparse v.simg cut", 1);
        assert!(!folder.path().join("cut").exists());
    }
}

#[test]
fn a_path_in_an_image_may_stand_behind_its_colon() {
    let folder = folder(&[("file", "hello\n")]);
    done(folder.path(), "mkfs f2fs v.img --size 64M");
    done(folder.path(), "cp file v.img:/file");
    assert_eq!(done(folder.path(), "ls v.img:/"), done(folder.path(), "ls v.img /"));
    assert_eq!(done(folder.path(), "cat v.img:/file"), "hello\n");
    let message = refused(folder.path(), "cat v.img", 2);
    assert!(message.contains("which file? give v.img PATH, or v.img:/PATH"), "{message}");
}

#[test]
fn fsck_takes_the_letters_of_fsck() {
    let folder = folder(&[]);
    done(folder.path(), "mkfs f2fs v.img --size 64M");
    for letters in ["-n", "-f", "-fn", "-y", "-p", "-a", "-fy"] {
        done(folder.path(), &format!("fsck {letters} v.img"));
    }
    let message = refused(folder.path(), "fsck -y -n v.img", 16);
    assert!(message.contains("cannot be used with"), "{message}");
    // the first superblock is damaged: -n leaves it, -y restores it from the second
    let image = folder.path().join("v.img");
    let mut damaged = std::fs::read(&image).unwrap();
    damaged[1024..2048].fill(0);
    std::fs::write(&image, &damaged).unwrap();
    assert_eq!(dovetail(folder.path(), "fsck -n v.img").status.code(), Some(4));
    assert!(std::fs::read(&image).unwrap() == damaged);
    assert_eq!(dovetail(folder.path(), "fsck -y v.img").status.code(), Some(1));
    done(folder.path(), "fsck -n v.img");
}

#[test]
fn a_file_for_results_may_stand_behind_its_flag_with_or_without_an_equals_sign() {
    let folder = folder(&[("j.fio", JOB)]);
    let bench = "--stack f2fs --scale 1/64";
    let expected = done(folder.path(), &format!("bench j.fio {bench} --json"));
    // also over results that are there, and without an ending
    for file in ["a.json", "a.json", "results"] {
        for arguments in [format!("--json {file}"), format!("--json={file}")] {
            let table = done(folder.path(), &format!("bench j.fio {bench} {arguments}"));
            assert!(table.contains("elapsed"), "{table}");
            let written = std::fs::read_to_string(folder.path().join(file)).unwrap();
            assert_eq!(written, expected, "{arguments}");
        }
    }
    for bare in ["bench --json j.fio", "bench j.fio --json -", "bench j.fio --json"] {
        assert_eq!(done(folder.path(), &format!("{bare} {bench}")), expected, "{bare}");
    }
    done(folder.path(), &format!("bench j.fio {bench} --csv a.csv --fio-json f.json"));
    assert!(std::fs::read_to_string(folder.path().join("a.csv")).unwrap().starts_with("label,"));
    assert!(folder.path().join("f.json").exists());
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/f2fs-randwrite.blkparse.zst");
    let replay = "--drive femu-32g --scale 1/64 --wrap --limit 100";
    let expected = done(folder.path(), &format!("replay {trace} {replay} --json"));
    assert_eq!(done(folder.path(), &format!("replay --json {trace} {replay}")), expected);
    for _ in 0..2 {
        done(folder.path(), &format!("replay --json r.json {trace} {replay}"));
        assert_eq!(std::fs::read_to_string(folder.path().join("r.json")).unwrap(), expected);
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("j.fio")).unwrap(), JOB);
}

#[test]
fn hints_of_a_job_survive_files_that_fill_the_volume() {
    let hinted = format!("{JOB}write_hint=short\n");
    let folder = folder(&[("j.fio", &hinted)]);
    let bench = "bench j.fio --stack f2fs-fdp --scale 1/64 --final-sync --json";
    let written = |fill: &str| {
        let run = &json(folder.path(), &format!("{bench} {fill}"))["runs"][0];
        let handles = run["totals"]["placement"]["handles"].as_array().unwrap().clone();
        handles.iter().filter(|handle| handle["host_blocks"].as_u64() > Some(200)).count()
    };
    assert_eq!(written(""), written("--fill 1MiB"));
}

#[test]
fn the_documentation_is_in_the_program() {
    let folder = folder(&[]);
    let page = done(folder.path(), "help fio-jobs");
    assert!(
        page.contains("write_hint") && !page.contains("](") && !page.contains("|---"),
        "{page}"
    );
    assert_eq!(done(folder.path(), "help docs/fio-jobs.md"), page);
    let long = page.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(long <= 100, "{long}");
    let serve = done(folder.path(), "help serve");
    assert!(serve.contains("Usage:") && serve.contains("help serve.md"), "{serve}");
    assert!(done(folder.path(), "help drive make").contains("--profile"));
    let all = done(folder.path(), "help");
    assert!(all.contains("mount-options") && all.contains("Examples:"), "{all}");
    let message = refused(folder.path(), "help fio-job", 2);
    assert!(message.contains("(did you mean \"fio-jobs\"?)"), "{message}");
    // what messages send people to is there
    let zoned = format!("{JOB}zonemode=zbd\n");
    let inside = self::folder(&[("z.fio", &zoned), ("v.fio", "[a]\nrw=write\nsize=${SZ}\n")]);
    let message = refused(inside.path(), "bench z.fio --stack f2fs", 1);
    assert!(message.contains("`dovetail help fio-jobs`"), "{message}");
    let message = refused(inside.path(), "bench v.fio --stack f2fs", 1);
    assert!(message.contains("${SZ} has no value here; give it one: -D NAME=VALUE"), "{message}");
    done(folder.path(), "mkfs f2fs v.img --size 64M");
    std::fs::create_dir(folder.path().join("mnt")).unwrap();
    let message = refused(folder.path(), "mount -o fsync_moed=posix v.img mnt", 1);
    assert!(
        message.contains("(did you mean \"fsync_mode\"?); `dovetail help mount-options`"),
        "{message}"
    );
}

#[test]
fn a_slip_in_a_name_gets_the_name_that_was_meant() {
    let folder = folder(&[("j.fio", JOB)]);
    for (command, meant) in [
        ("bench j.fio --stack ext44", "ext4"),
        ("bench j.fio --stack f2fs --drive femu-32", "femu-32g"),
        ("bench varmial --stack f2fs", "varmail"),
        ("reproduce rmipu-figure-33", "rmipu-figure-3"),
        ("reproduce figure-12a", "iplfs-figure-12a"),
        ("mkfs f2fs v.img --size 64M -O compresion", "compression"),
    ] {
        let output = dovetail(folder.path(), command);
        let message = text(&output.stderr);
        assert!(message.contains(&format!("(did you mean \"{meant}\"?)")), "{command}: {message}");
        assert!(matches!(output.status.code(), Some(1 | 2)), "{command}");
    }
}

#[test]
fn a_reproduction_says_what_it_would_run() {
    let folder = folder(&[]);
    let message = refused(folder.path(), "reproduce", 2);
    assert!(message.contains("reproduce --list") && message.contains("reproduce all"), "{message}");
    assert!(done(folder.path(), "reproduce --list").lines().count() > 20);
    done(folder.path(), "reproduce iplfs-map-size --scale 1/512 --csv a.csv --json a.json");
    let csv = std::fs::read_to_string(folder.path().join("a.csv")).unwrap();
    assert!(csv.starts_with("figure,scale,statement,paper,ours,rule,verdict\n"), "{csv}");
    let written = std::fs::read_to_string(folder.path().join("a.json")).unwrap();
    let value: Value = serde_json::from_str(&written).unwrap();
    let statements = value["iplfs-map-size"]["comparisons"].as_array().unwrap().len();
    let rows = csv::Reader::from_reader(csv.as_bytes()).into_records().count();
    assert!(statements > 1 && rows == statements, "{csv}");
    let said = std::fs::read_to_string(folder.path().join("a.json")).unwrap();
    assert!(said.contains("\"command\": \"dovetail reproduce iplfs-map-size --scale 1/512\""));
    let page = "reproduce iplfs-map-size iplfs-tables-1-2 --scale 1/512 --report figures.html";
    done(folder.path(), page);
    let page = std::fs::read_to_string(folder.path().join("figures.html")).unwrap();
    assert!(page.contains("<a href=\"#iplfs-map-size\">") && page.len() < 2_000_000);
    assert!(page.contains("page table and bitmap") && page.contains("\"unit\":\"MiB\""));
    let message = refused(folder.path(), "reproduce iplfs-map-size --csv a --json a", 2);
    assert!(message.contains("--csv cannot write to a"), "{message}");
}

#[test]
fn a_reproduction_takes_the_runs_that_it_has_kept() {
    let folder = folder(&[]);
    let call = "reproduce rmipu-table-1 --scale 1/256 --keep runs --json";
    let read = |path: PathBuf| -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let runs = |file: &str| {
        done(folder.path(), &format!("{call} {file}"));
        read(folder.path().join(file))["rmipu-table-1"]["results"]["runs"].clone()
    };
    let mut first = runs("a.json");
    for entry in std::fs::read_dir(folder.path().join("runs")).unwrap() {
        let path = entry.unwrap().path();
        let mut kept = read(path.clone());
        kept["result"]["totals"]["cpu_s"] = 70.into();
        std::fs::write(path, kept.to_string()).unwrap();
    }
    for run in first.as_array_mut().unwrap() {
        assert_ne!(std::mem::replace(&mut run["totals"]["cpu_s"], 70.0.into()), 70.0);
    }
    assert_eq!(runs("b.json"), first);
    std::fs::write(folder.path().join("file"), "").unwrap();
    let message = refused(folder.path(), "reproduce rmipu-table-1 --keep file", 1);
    assert!(message.contains("--keep file: it is no folder"), "{message}");
}

#[test]
fn each_job_has_its_own_figures_in_table_csv_and_report() {
    let jobs = "[global]\nsize=4m\n[db]\nrw=randwrite\nbs=4k\nfsync=1\n\
                [camera]\nstonewall\nrw=write\nbs=1m\nsize=8m\n";
    let folder = folder(&[("phone.fio", jobs)]);
    let bench = "bench phone.fio --stack f2fs,ext4 --scale 1/2 --csv c.csv --report r.html";
    let table = done(folder.path(), bench);
    for line in ["db: write MB/s", "db: sync p50 / p99 / p99.9", "camera: write MB/s"] {
        assert!(table.contains(line), "{line}: {table}");
    }
    assert!(!table.contains("camera: sync"), "{table}");
    let csv = std::fs::read_to_string(folder.path().join("c.csv")).unwrap();
    let header = csv.lines().next().unwrap();
    assert!(
        header.contains("jobs.camera.latency.write.p99_ns") && header.contains("jobs.db.elapsed_s")
    );
    let report = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
    assert!(report.contains("Job camera, over its own time"));
}

#[test]
fn lists_break_no_words() {
    let folder = folder(&[]);
    let list = |command: &str, columns: &str| {
        let mut call = Command::new(env!("CARGO_BIN_EXE_dovetail"));
        let output = call.args(command.split(' ')).env("COLUMNS", columns).output().unwrap();
        text(&output.stdout)
    };
    for command in ["drive list", "stack list", "reproduce --list"] {
        // a line for each entry where nobody says how wide it is: scripts read the first word
        let whole = done(folder.path(), command);
        let words = |list: &str| {
            let lines = list.lines().skip(1).flat_map(str::split_whitespace);
            lines.map(String::from).collect::<Vec<_>>()
        };
        assert!(whole.lines().all(|line| !line.starts_with(' ')), "{whole}");
        for columns in ["60", "80", "120", "200"] {
            let list = list(command, columns);
            let widest = list.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns.parse::<usize>().unwrap().max(80), "{columns}: {list}");
            assert!(list.lines().all(|line| line == line.trim_end()), "{list}");
            let found = words(&list);
            let missing = words(&whole).into_iter().find(|word| !found.contains(word));
            assert!(missing.is_none(), "{command} at {columns}: {missing:?} is broken in {list}");
        }
    }
    let drives = list("drive list", "60");
    for name in ["femu-32g-nvm-log", "sd-fast-a2-64g", "m7450max-800g"] {
        assert!(drives.lines().any(|line| line.starts_with(name)), "{drives}");
    }
    let job = folder.path().join("j.fio");
    std::fs::write(job, JOB).unwrap();
    let table = done(folder.path(), "bench j.fio --stack f2fs --scale 1/64");
    let latency = table.lines().find(|line| line.contains("write p50")).unwrap();
    assert!(latency.contains("constant ") || latency.contains("at most"), "{latency}");
}

#[test]
fn many_runs_are_rows() {
    let folder = folder(&[("j.fio", JOB)]);
    let bench = "bench j.fio --stack f2fs --scale 1/64 --final-sync --op";
    let four = done(folder.path(), &format!("{bench} 7,10,14,20"));
    assert!(four.contains("drive's write amplification"), "{four}");
    let five = done(folder.path(), &format!("{bench} 7,10,14,20,28"));
    let rows: Vec<&str> = five.lines().filter(|line| line.starts_with("op ")).collect();
    assert!(five.starts_with("all: f2fs\n") && rows.len() == 5, "{five}");
    let columns = done(folder.path(), &format!("{bench} 7,10,14,20,28 --table columns"));
    assert!(columns.contains("drive's write amplification"), "{columns}");
    let chosen = done(folder.path(), &format!("{bench} 7,28 --columns elapsed,MB/s"));
    let header = chosen.lines().nth(2).unwrap();
    assert_eq!(
        header.split_whitespace().collect::<Vec<_>>(),
        ["elapsed", "write", "MB/s"],
        "{chosen}"
    );
    let order = |by: &str| {
        let sorted = done(folder.path(), &format!("{bench} 7,10,14,20,28 --sort {by}"));
        let rows = sorted.lines().filter_map(|line| line.strip_prefix("op ")?.split(' ').next());
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    // more flash takes more bytes until its rated erases
    assert_eq!(order("rated"), ["7", "10", "14", "20", "28"]);
    assert_eq!(order("-rated"), ["28", "20", "14", "10", "7"]);
    for (option, expected) in [
        ("--sort speed", "--sort speed: some word is in no line"),
        ("--columns speed", "lines are elapsed; calls/s"),
    ] {
        let output = dovetail(folder.path(), &format!("{bench} 7,28 {option}"));
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(text(&output.stdout).contains("elapsed"), "the runs are shown all the same");
    }
}

#[test]
fn repeated_runs_have_their_mean_and_spread() {
    let random = "[a]\nrw=randwrite\nbs=4k\nsize=4m\nfsync=8\n";
    let folder = folder(&[("j.fio", random)]);
    let table =
        done(folder.path(), "bench j.fio --stack f2fs,ext4 --scale 1/4 --repeat 3 --table rows");
    for name in ["f2fs", "ext4"] {
        assert!(table.contains(&format!("\n{name}, 3 runs")), "{table}");
    }
    assert_eq!(table.matches("write MB/s").count(), 3, "{table}");
    let once = done(folder.path(), "bench j.fio --stack f2fs --scale 1/4");
    assert!(!once.contains("deviation"), "{once}");
}

#[test]
fn the_machine_is_looked_at() {
    let folder = folder(&[]);
    let report = done(folder.path(), "doctor");
    for what in ["FUSE", "fusermount3", "memory", "processors", "Linux for guests", "shared memory"]
    {
        let line = report.lines().find(|line| line.contains(what)).unwrap();
        assert!(line.starts_with("ok  ") || line.starts_with("--  "), "{line}");
    }
    // without a kernel the line says how to get one
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    let output = command.arg("doctor").env("DOVETAIL_KERNEL", "/no/kernel").output().unwrap();
    let report = text(&output.stdout);
    assert!(
        report.contains("--  Linux for guests") && report.contains("dovetail linux build"),
        "{report}"
    );
}

#[test]
fn shells_and_man_know_the_command() {
    let folder = folder(&[]);
    for shell in ["bash", "zsh", "fish"] {
        let script = done(folder.path(), &format!("completions {shell}"));
        assert!(script.contains("precondition") && script.contains("inspect"), "{shell}");
    }
    let script = folder.path().join("dovetail.bash");
    std::fs::write(&script, done(folder.path(), "completions bash")).unwrap();
    let complete = "source $0; COMP_WORDS=(dovetail ben); COMP_CWORD=1; _dovetail dovetail ben dovetail; echo ${COMPREPLY[@]}";
    let output = Command::new("bash").arg("-c").arg(complete).arg(&script).output().unwrap();
    assert_eq!(text(&output.stdout), "bench\n", "{}", text(&output.stderr));
    done(folder.path(), "man pages");
    for page in ["dovetail.1", "dovetail-bench.1", "dovetail-drive-make.1"] {
        let page = std::fs::read_to_string(folder.path().join("pages").join(page)).unwrap();
        assert!(page.contains(".SH OPTIONS") && page.contains(".SH NAME"), "{page}");
    }
}

#[test]
fn the_version_has_the_commit() {
    let folder = folder(&[]);
    let version = done(folder.path(), "--version");
    let rest = version.strip_prefix(concat!("dovetail ", env!("CARGO_PKG_VERSION"))).unwrap();
    let git = Command::new("git").args(["rev-parse", "HEAD"]).output();
    if git.is_ok_and(|output| output.status.success()) {
        let commit = rest.trim().trim_start_matches('(').trim_end_matches(')');
        assert!(commit.len() >= 12 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{version}");
    }
}

#[test]
fn logs_of_a_fio_job_are_written_as_fio_writes_them() {
    let job = "[log]\nrw=randwrite\nbs=4k\nsize=1m\nwrite_bw_log\nwrite_lat_log=lat\nwrite_iops_log=iops\n";
    let windows = format!("{job}log_avg_msec=1\nthinktime=200\n");
    let over = JOB.replace("size=1m", "size=1m\nwrite_bw_log=over");
    let folder = folder(&[("j.fio", job), ("w.fio", &windows), ("over_bw.1.log", &over)]);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    done(folder.path(), "bench j.fio --stack f2fs --scale 1");
    for name in ["log_bw.1.log", "lat_lat.1.log", "lat_clat.1.log", "iops_iops.1.log"] {
        let lines: Vec<Vec<u64>> = read(name)
            .lines()
            .map(|line| line.split(", ").map(|field| field.parse().unwrap()).collect())
            .collect();
        assert_eq!(lines.len(), 256, "{name}");
        assert!(
            lines.iter().all(|line| line.len() == 5 && line[1] > 0 && line[2..] == [1, 4096, 0])
        );
        assert!(lines.is_sorted_by_key(|line| line[0]), "{name}");
    }
    done(folder.path(), "bench w.fio --stack f2fs,ext4");
    let windows = read("iops-ext4_iops.1.log");
    assert!(windows.lines().count() > 20 && windows.starts_with("1, "), "{windows}");
    assert!(read("log-f2fs_bw.1.log").lines().all(|line| line.ends_with(", 1, 0, 0")));
    // a log does not take the place of the job
    let message =
        text(&dovetail(folder.path(), "bench over_bw.1.log --stack f2fs --scale 1/64").stderr);
    assert!(
        message.contains("the job's log cannot write to over_bw.1.log: it is the input"),
        "{message}"
    );
    assert_eq!(read("over_bw.1.log"), over);
}

#[test]
fn a_drive_without_flash_left_says_what_takes_more_than_the_files() {
    // three quarters of the drive, but nearly each of its flash pages of 16 KiB
    let update =
        "[update]\nrw=randwrite\nbs=4k\nsize=180g\nio_size=400g\nnorandommap\noverwrite=1\n";
    let folder = folder(&[("update.fio", update)]);
    let bench = "bench update.fio --stack iplfs --drive nvme-250g --scale 1/512";
    let message = refused(folder.path(), bench, 1);
    let flash =
        ", however scattered: a flash page of 16.0 KiB is taken while one of its blocks is in use";
    assert!(message.contains("no space is left") && message.contains(flash), "{message}");
}

#[test]
fn a_full_volume_says_how_much_was_wanted_and_how_much_there_is() {
    let write = "[big]\nrw=write\nbs=1m\nsize=300m\n";
    let read = "[big]\nrw=read\nbs=1m\nsize=300m\n";
    let folder = folder(&[("w.fio", write), ("r.fio", read), ("small.toml", &stack(""))]);
    for job in ["w.fio", "r.fio"] {
        let message = refused(folder.path(), &format!("bench {job} --stack small.toml"), 1);
        let room = "; all its files together have up to 300 MiB, the partition has 192 MiB";
        assert!(message.contains("no space is left") && message.contains(room), "{message}");
    }
    let message = refused(folder.path(), "mkfs f2fs v.img --size 10M", 1);
    assert!(
        message.contains("2560 blocks of 4 KiB (10.0 MiB) are too few: no room is left for"),
        "{message}"
    );
}
