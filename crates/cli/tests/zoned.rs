//! Images of zoned devices, and volumes on several, as a user types them.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::Path;
use std::process::Command;

/// Runs a command in a folder; returns its exit code and what it wrote.
fn run(folder: &Path, line: &str) -> (Option<i32>, String, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    let output = program.current_dir(folder).args(line.split(' ')).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn done(folder: &Path, line: &str) -> String {
    let (code, out, error) = run(folder, line);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{line}: {out}");
    out
}

#[test]
fn an_image_of_a_zoned_device_goes_with_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("file"), [7; 10_000]).unwrap();
    done(
        at,
        "mkfs f2fs -m image --size 512M --zones zones --zone-size 16M --zone-capacity 12M --conventional 4",
    );
    done(at, "cp --zones zones file image:/copy");
    assert!(done(at, "ls --zones zones image").contains(" copy\n"));
    assert_eq!(done(at, "cat image /copy").len(), 10_000, "to read it needs no report");
    assert!(done(at, "fsck --zones zones image").contains("free segments"));
    assert!(done(at, "fsck image").contains("not checked: the free segments and write pointers"));
    let report = std::fs::read_to_string(at.join("zones")).unwrap();
    assert_eq!((report.lines().count(), report.matches("CONVENTIONAL").count()), (32, 4));
    let (code, _, error) = run(at, "cp file image:/blind");
    assert_eq!(code, Some(1));
    assert!(error.contains("give its zone report (--zones)"), "{error}");
    let (code, _, error) = run(at, "fsck --zones file image");
    assert_eq!(code, Some(8));
    assert!(error.contains("the zone report file cannot be used"), "{error}");
}

#[test]
fn a_volume_on_two_images_is_found_by_both() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("file"), [7; 10_000]).unwrap();
    std::fs::File::create(at.join("b")).unwrap().set_len(256 << 20).unwrap();
    done(at, "mkfs f2fs a --size 128M -c b");
    done(at, "cp --device b file a:/copy");
    assert_eq!(done(at, "cat a /copy --device b").len(), 10_000);
    assert!(done(at, "inspect --device b a superblock").contains("/b\""));
    let (code, _, error) = run(at, "ls a");
    assert_eq!(code, Some(1));
    assert!(error.contains("on 2 devices") && error.contains("--device names it"), "{error}");
    done(at, "mkfs f2fs c --size 128M");
    let (code, _, error) = run(at, "mkfs f2fs d --size 128M -c c");
    assert_eq!(code, Some(1));
    assert!(error.contains("c: an F2FS volume is there; -f overwrites it"), "{error}");
}

#[test]
fn a_trace_on_a_zoned_drive_is_refused_or_translated() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let trace =
        "fio version 2 iolog\n/f add\n/f open\n/f write 41943040 4096\n/f write 41943040 4096\n";
    std::fs::write(at.join("t.iolog"), trace).unwrap();
    let replay = "replay t.iolog --drive femu-32g-zoned --scale 1/32";
    let (code, _, error) = run(at, replay);
    assert_eq!(code, Some(1));
    for part in
        ["request 2, a write at byte 41943040", "its next block is 10241", "--zone-translate"]
    {
        assert!(error.contains(part), "{error}");
    }
    let shown = done(at, &format!("{replay} --zone-translate"));
    assert!(shown.contains("host log's write amplification") && shown.contains("host memory"));
    let (code, _, error) = run(at, "replay t.iolog --drive femu-32g --zone-translate");
    assert_eq!(code, Some(2));
    assert!(error.contains("none of these has any"), "{error}");
}

#[test]
fn a_zoned_drive_in_a_file_is_formatted_filled_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("file"), vec![7; 3_000_000]).unwrap();
    let made = done(at, "drive make drive --profile femu-32g-zoned --scale 1/32");
    assert!(made.contains("zones empty") && made.contains("conventional"), "{made}");
    done(at, "mkfs f2fs -m drive");
    done(at, "cp file drive:/copy");
    assert_eq!(done(at, "cat drive /copy").len(), 3_000_000);
    assert!(done(at, "fsck drive").contains("free segments"));
    let shown = done(at, "drive status drive");
    assert!(shown.contains("zones closed") && shown.contains("zones empty"), "{shown}");
}

#[test]
fn a_crash_exploration_of_zones_says_where_they_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, error) = run(folder.path(), "crash ace-1 --stack f2fs-zoned");
    assert_eq!(code, Some(1));
    assert!(error.contains("has a drive with zones") && error.contains("zoned_crash"), "{error}");
}

/// A use that does not go with zones is refused in a sentence that says what would do.
#[test]
fn what_does_not_go_with_zones_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let profile = |name: &str, key: &str, value: &str| {
        let text = format!(
            "name = \"{name}\"\nabout = \"\"\nbase = \"femu-32g-zoned\"\n[zones]\n{key} = \"{value}\"\n[sources]\n\"zones.{key}\" = \"test\"\n"
        );
        std::fs::write(at.join(format!("{name}.toml")), text).unwrap();
        done(at, &format!("drive make {name} --profile {name}.toml --scale 1/16"));
    };
    profile("odd", "size", "96MiB");
    profile("bare", "conventional", "0");
    done(at, "drive make drive --profile femu-32g-zoned --scale 1/32");
    let stack = |name: &str, filesystem: &str| {
        let text = format!(
            "name = \"{name}\"\nabout = \"\"\nfilesystem = \"{filesystem}\"\ndrive = \"femu-32g-zoned\"\n"
        );
        std::fs::write(at.join(format!("{name}.toml")), text).unwrap();
    };
    stack("ext", "ext4");
    stack("raw", "none");
    let file = "[r]\nrw=randwrite\nbs=4k\nsize=4m\n";
    std::fs::write(at.join("file.fio"), file).unwrap();
    let raw = "[r]\nfilename=/dev/nvme0n1\ndirect=1\nrw=randwrite\nbs=4k\nnumber_ios=100\n";
    std::fs::write(at.join("raw.fio"), raw).unwrap();
    let few = "mkfs f2fs -m few --size 512M --zones fewz --zone-size 64M --conventional 2";
    for (line, expected) in [
        ("mkfs f2fs -m odd", "power of two from 2 MiB"),
        ("mkfs f2fs -m odd", "use a drive with such zones"),
        (few, "use a device with more or smaller zones"),
        ("mkfs f2fs -m bare", "put an ordinary device of at least 28 MiB in front of it"),
        ("mkfs f2fs drive", "make the volume with the feature blkzoned (-m)"),
        ("mkfs ext4 drive", "use a drive without zones, or F2FS"),
        ("mkfs ext3 bare", "use a drive without zones, or F2FS"),
        ("bench file.fio --stack ext.toml --scale 1/32", "use a drive without zones, or F2FS"),
        ("bench raw.fio --stack raw.toml --scale 1/32", "no further than the zone's capacity"),
    ] {
        let (code, _, error) = run(at, line);
        assert_ne!(code, Some(0), "{line}");
        assert!(error.contains(expected), "{line}: {error}");
        assert_eq!(error.lines().count(), 1, "{line}: {error}");
    }
}
