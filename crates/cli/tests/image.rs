//! Looking into an image as a user types it.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::process::{Command, Output};

use dovetail_testkit::program;

fn dovetail(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// An image of 64 MiB with a file `folder/file` in it; needs f2fs-tools.
fn image(folder: &std::path::Path) -> String {
    let image = folder.join("image").to_str().unwrap().to_string();
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let source = folder.join("source");
    std::fs::create_dir_all(source.join("folder")).unwrap();
    std::fs::write(source.join("folder/file"), "content\n").unwrap();
    for (tool, arguments) in [
        ("mkfs.f2fs", vec!["-q", &image]),
        ("sload.f2fs", vec!["-f", source.to_str().unwrap(), &image]),
    ] {
        let run = program(tool).args(arguments).output();
        run.unwrap_or_else(|error| {
            panic!("{tool}: {error}; install it with: apt-get install f2fs-tools")
        });
    }
    image
}

#[test]
fn an_image_is_listed_shown_extracted_and_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let list = stdout(&dovetail(&["ls", &image, "folder"]));
    assert!(list.starts_with("-rw") && list.trim_end().ends_with(" file"), "{list}");
    assert_eq!(stdout(&dovetail(&["cat", &image, "/folder/file"])), "content\n");
    let out = folder.path().join("out");
    let extract = dovetail(&["extract", &image, out.to_str().unwrap()]);
    assert_eq!(
        (extract.status.code(), std::fs::read(out.join("folder/file")).unwrap()),
        (Some(0), b"content\n".into())
    );
    let again = dovetail(&["extract", &image, out.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(2), "not into a directory that holds something");
    let json = dovetail(&["inspect", &image, "path", "folder/file", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((json["size"].as_u64(), json["name"].as_str()), (Some(8), Some("file")));
    assert!(stdout(&dovetail(&["inspect", &image, "checkpoint"])).contains("warm_node"));
}

fn inspect(image: &str, arguments: &[&str]) -> serde_json::Value {
    let run = dovetail(&[&["inspect", image, "--json"], arguments].concat());
    serde_json::from_slice(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

#[test]
fn segments_and_nodes_are_shown_with_whom_they_belong_to() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let large = folder.path().join("large");
    std::fs::write(&large, vec![1; 13 << 20]).unwrap();
    assert_eq!(
        dovetail(&["cp", large.to_str().unwrap(), &format!("{image}:/folder")]).status.code(),
        Some(0)
    );

    let node = inspect(&image, &["path", "folder/large"]);
    let (ino, address) = (node["nid"].as_u64().unwrap(), node["nat_block"].as_u64().unwrap());
    assert_eq!(node["footer"]["ino"].as_u64(), Some(ino));
    let segments = inspect(&image, &["segments"]);
    let segments = segments["segments"].as_array().unwrap();
    let states: Vec<_> =
        segments.iter().map(|segment| segment["state"].as_str().unwrap()).collect();
    for state in ["log", "used", "free"] {
        assert!(states.contains(&state), "{state}: {states:?}");
    }
    let text = stdout(&dovetail(&["inspect", &image, "segments"]));
    assert_eq!(text.lines().count(), segments.len());

    let first = inspect(&image, &["segment", "0"])["first_block"].as_u64().unwrap();
    let segment = inspect(&image, &["segment", &((address - first) / 512).to_string()]);
    let block = &segment["blocks"][address.to_string()];
    assert_eq!((block["nid"].as_u64(), block["path"].as_str()), (Some(ino), Some("/folder/large")));
    let valid = segment["valid_blocks"].as_u64().unwrap();
    assert_eq!(segment["blocks"].as_object().unwrap().len() as u64, valid);

    let direct = node["nids"][0].as_u64().unwrap();
    let direct = inspect(&image, &["nid", &direct.to_string()]);
    assert_eq!(
        (direct["node"].as_str(), direct["footer"]["node_offset"].as_u64()),
        (Some("direct"), Some(1))
    );
    let data = direct["addresses"]["0"].as_u64().unwrap();
    let segment = inspect(&image, &["segment", &((data - first) / 512).to_string()]);
    let block = &segment["blocks"][data.to_string()];
    assert_eq!(
        (block["file_block"].as_u64(), block["ino"].as_u64()),
        (node["pointers"].as_u64(), Some(ino))
    );
    let indirect = inspect(&image, &["nid", &node["nids"][2].to_string()]);
    assert_eq!(
        (indirect["node"].as_str(), indirect["pointers"].as_u64()),
        (Some("indirect"), Some(1))
    );

    for (arguments, words) in [
        (["segment", "99999"], "there is no segment 99999; the main area has 0 to "),
        (["nid", "99999999"], "there is no nid 99999999; the NAT has 1 to "),
    ] {
        let run = dovetail(&[&["inspect", &image], &arguments[..]].concat());
        assert!(String::from_utf8_lossy(&run.stderr).contains(words), "{run:?}");
        assert_eq!(run.status.code(), Some(1));
    }
    assert_eq!(inspect(&image, &["nid", "3000"])["note"], "the nid is free: there is no node");
}

#[test]
fn what_is_wrong_is_said_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let missing = dovetail(&["cat", &image, "nothing"]);
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&missing.stderr), "dovetail: there is no nothing\n");
    let none = dovetail(&["ls", env!("CARGO_BIN_EXE_dovetail")]);
    assert!(
        String::from_utf8_lossy(&none.stderr)
            .contains("it holds no file system that is known here"),
        "{none:?}"
    );
    assert_eq!(dovetail(&["ls"]).status.code(), Some(2));
}

#[test]
fn a_damaged_image_is_checked_and_repaired_with_the_exit_codes_of_fsck() {
    use std::os::unix::fs::FileExt;
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let sound = dovetail(&["fsck", &image]);
    assert_eq!(sound.status.code(), Some(0), "{}", stdout(&sound));
    let node = stdout(&dovetail(&["inspect", &image, "path", "folder", "--json"]));
    let node: serde_json::Value = serde_json::from_str(&node).unwrap();
    let links = node["nat_block"].as_u64().unwrap() * 4096 + 12;
    let file = std::fs::OpenOptions::new().write(true).open(&image).unwrap();
    file.write_all_at(&[9, 0, 0, 0], links).unwrap();
    let before = std::fs::read(&image).unwrap();
    let check = dovetail(&["fsck", &image]);
    let text = stdout(&check);
    assert!(text.contains("counts 9 links, 2 and its subdirectories are 2\n"), "{text}");
    assert_eq!(check.status.code(), Some(4));
    assert!(std::fs::read(&image).unwrap() == before, "without --repair nothing is written");
    let json: serde_json::Value =
        serde_json::from_slice(&dovetail(&["fsck", &image, "--json"]).stdout).unwrap();
    assert_eq!(
        (json["findings"][0]["kind"].as_str(), json["counts"]["errors"].as_u64()),
        (Some("DirectoryLinks"), Some(1))
    );
    assert_eq!(dovetail(&["fsck", "--repair", &image]).status.code(), Some(1));
    assert_eq!(dovetail(&["fsck", "--repair", &image]).status.code(), Some(0), "nothing is left");
    assert_eq!(stdout(&dovetail(&["cat", &image, "/folder/file"])), "content\n");
    let none = dovetail(&["fsck", env!("CARGO_BIN_EXE_dovetail")]);
    assert_eq!(none.status.code(), Some(8));
    assert!(
        String::from_utf8_lossy(&none.stderr)
            .contains("it holds no file system that is known here"),
        "{none:?}"
    );
}

#[test]
fn an_iplfs_volume_is_filled_listed_and_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (drive, source, out) = (path("drive"), path("source"), path("out"));
    let done = |arguments: &[&str]| {
        let run = dovetail(arguments);
        assert_eq!(run.status.code(), Some(0), "{arguments:?}: {run:?}");
        run
    };
    done(&[
        "drive",
        "make",
        &drive,
        "--scale",
        "1/256",
        "--addresses",
        "iplfs",
        "--map",
        "interval",
    ]);
    done(&["mkfs", "iplfs", &drive]);
    std::fs::create_dir_all(folder.path().join("source/below")).unwrap();
    let large: Vec<u8> = (0..9_000_000_u32).map(|n| (n / 5) as u8).collect();
    std::fs::write(folder.path().join("source/below/large"), &large).unwrap();
    std::fs::write(folder.path().join("source/small"), "content\n").unwrap();
    done(&["cp", "-r", &source, &format!("{drive}:/")]);
    done(&["cp", &format!("{source}/small"), &format!("{drive}:/source/below/large")]);
    done(&["cp", &format!("{source}/below/large"), &format!("{drive}:/source/again")]);
    assert!(stdout(&done(&["ls", &drive, "source"])).contains("9000000"));
    assert_eq!(stdout(&done(&["cat", &drive, "/source/below/large"])), "content\n");
    done(&["extract", &drive, &out]);
    assert!(std::fs::read(format!("{out}/source/again")).unwrap() == large);

    let superblock = inspect(&drive, &["superblock"]);
    assert_eq!(
        (superblock["format"].as_str(), superblock["capacity"].as_u64()),
        (Some("iplfs"), Some(32_768))
    );
    let checkpoint = inspect(&drive, &["checkpoint"]);
    let log = &checkpoint["logs"]["warm_data"];
    assert!(log["area"] == 2 && log["offset"].as_u64() >= Some(2 * 9_000_000 / 4096), "{log}");
    let node = inspect(&drive, &["path", "source/small"]);
    assert!(node["nat_block"].as_u64().unwrap() > 1 << 58, "{node}");
    assert!(inspect(&drive, &["discard-log"])["extents"].is_object());
    let areas = inspect(&drive, &["areas"]);
    let warm = &areas["areas"]["warm_data"];
    assert_eq!(warm["live_blocks"], 9_000_000_u64.div_ceil(4096), "{areas}");
    assert!(
        warm["position"] == log["offset"] && warm["last_live"].as_u64() < warm["position"].as_u64(),
        "{areas}"
    );
    let refused = dovetail(&["inspect", &drive, "segment", "0"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("IPLFS has no segments"),
        "{refused:?}"
    );
}

/// An image with a directory `d` of seven files, some of which have names to be damaged.
fn image_of_names(kind: &str, folder: &std::path::Path) -> String {
    let (image, source) =
        (folder.join("image").to_str().unwrap().to_string(), folder.join("source"));
    std::fs::create_dir_all(source.join("d")).unwrap();
    for name in ["a", "escape-x", "nul-name", "second-x", "inode-x", "y", "z"] {
        std::fs::write(source.join("d").join(name), format!("{name}\n")).unwrap();
    }
    let run = |tool: &str, arguments: &[&str]| {
        let run = program(tool).args(arguments).output().unwrap();
        assert!(run.status.success(), "{tool}: {run:?}");
    };
    let source = source.to_str().unwrap();
    match kind {
        "f2fs" => {
            std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
            run("mkfs.f2fs", &["-q", &image]);
            assert_eq!(
                dovetail(&["cp", "-r", &format!("{source}/d"), &format!("{image}:/d")])
                    .status
                    .code(),
                Some(0)
            );
        }
        "ext4" => run("mke2fs", &["-q", "-F", "-t", "ext4", "-d", source, &image, "64M"]),
        _ => run(
            "mke2fs",
            &["-q", "-F", "-t", "ext4", "-O", "^metadata_csum", "-d", source, &image, "64M"],
        ),
    }
    image
}

/// Replaces bytes wherever they stand in the image: entries, their copies in logs and inodes.
fn patch(image: &str, from: &[u8], to: &[u8]) {
    let mut bytes = std::fs::read(image).unwrap();
    let places: Vec<_> =
        (0..bytes.len() - from.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to));
    std::fs::write(image, bytes).unwrap();
}

/// Gives the inode of `d/inode-x` a size that no file has.
fn damage_inode(kind: &str, image: &str) {
    use std::os::unix::fs::FileExt;
    if kind != "f2fs" {
        let arguments = ["-w", "-R", "clri /d/inode-x", image];
        assert!(program("debugfs").args(arguments).status().unwrap().success());
        return;
    }
    let node = inspect(image, &["path", "d/inode-x"]);
    let size = node["nat_block"].as_u64().unwrap() * 4096 + 16;
    let file = std::fs::OpenOptions::new().write(true).open(image).unwrap();
    file.write_all_at(&(1_u64 << 62).to_le_bytes(), size).unwrap();
}

fn names_of(list: &str) -> Vec<&str> {
    list.lines().filter_map(|line| line.split_whitespace().last()).collect()
}

#[test]
fn what_is_whole_in_a_damaged_directory_is_listed_and_saved() {
    for kind in ["f2fs", "ext4", "ext4 without checksums"] {
        let folder = tempfile::tempdir().unwrap();
        let image = image_of_names(kind, folder.path());
        damage_inode(kind, &image);
        patch(&image, b"escape-x", b"../../ab");
        patch(&image, b"nul-name", b"nul\0name");
        let list = dovetail(&["ls", &image, "d"]);
        let said = String::from_utf8_lossy(&list.stderr).into_owned();
        assert_eq!(names_of(&stdout(&list)), ["a", "second-x", "y", "z"], "{kind}: {said}");
        assert_eq!(list.status.code(), Some(1), "{kind}: {said}");
        for words in
            ["an entry is called ../../ab, ", "an entry is called $'nul\\000nam", "inode-x: "]
        {
            assert!(said.contains(words), "{kind}, {words}: {said}");
        }
        assert_eq!(said.contains("checksum"), kind == "ext4", "the block of entries: {said}");
        assert_eq!(stdout(&dovetail(&["cat", &image, "/d/z"])), "z\n", "{kind}");

        let out = folder.path().join("below/out");
        let run = dovetail(&["extract", &image, out.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(1), "{kind}: {said}");
        for name in ["a", "second-x", "y", "z"] {
            assert_eq!(
                std::fs::read_to_string(out.join("d").join(name)).unwrap(),
                format!("{name}\n"),
                "{kind}"
            );
        }
        assert_eq!(std::fs::read_dir(out.join("d")).unwrap().count(), 4, "{kind}");
        assert_eq!(
            std::fs::read_dir(folder.path().join("below")).unwrap().count(),
            1,
            "nothing escapes"
        );
        for words in ["/d: directory", "../../ab", "/d/inode-x: "] {
            assert!(said.contains(words), "{kind}, {words}: {said}");
        }
    }
}

#[test]
fn a_second_dot_dot_is_named_and_left_out() {
    for kind in ["f2fs", "ext4 without checksums"] {
        let folder = tempfile::tempdir().unwrap();
        let image = image_of_names(kind, folder.path());
        // the name's length goes before it: 2 bytes of a slot of its own (F2FS), or the byte before
        // the type (ext)
        let mut bytes = std::fs::read(&image).unwrap();
        let places: Vec<_> =
            (0..bytes.len() - 8).filter(|&at| bytes[at..].starts_with(b"second-x")).collect();
        for at in places {
            bytes[at..at + 8].copy_from_slice(b"..\0\0\0\0\0\0");
            if kind != "f2fs" {
                bytes[at - 2] = 2;
            }
        }
        if kind == "f2fs" {
            // hash of "second-x", inode, length 8: the length becomes 2
            let hash = dovetail_f2fs::format::name_hash(b"second-x").to_le_bytes();
            let at = (0..bytes.len() - 11)
                .filter(|&at| bytes[at..].starts_with(&hash) && bytes[at + 8] == 8);
            at.collect::<Vec<_>>().into_iter().for_each(|at| bytes[at + 8] = 2);
        }
        std::fs::write(&image, bytes).unwrap();
        let out = folder.path().join("out");
        let run = dovetail(&["extract", &image, out.to_str().unwrap(), "d"]);
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(
            run.status.code() == Some(1) && said.contains("a further entry is called .."),
            "{kind}: {said}"
        );
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 6, "{kind}: {said}");
        let list = dovetail(&["ls", &image, "d"]);
        assert_eq!((list.status.code(), names_of(&stdout(&list)).len()), (Some(1), 6), "{kind}");
    }
}

#[test]
fn every_name_that_is_listed_can_be_given_back() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let source = folder.path().join("names");
    std::fs::create_dir(&source).unwrap();
    let names: [&[u8]; 6] =
        [b"caf\xe9", b"\x1b[31mred", b"it's", b"a\\b", b"two words", "Füße".as_bytes()];
    for name in names {
        std::fs::write(source.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    let copied = dovetail(&["cp", "-r", source.to_str().unwrap(), &format!("{image}:/names")]);
    assert_eq!(copied.status.code(), Some(0), "{copied:?}");
    let list = stdout(&dovetail(&["ls", &image, "names"]));
    assert!(list.contains(" $'caf\\351'\n") && list.contains(" Füße\n"), "{list}");
    assert_eq!(list.lines().count(), names.len());
    for line in list.lines() {
        assert!(!line.contains('\x1b'), "{line}");
        // behind the time
        let name = line.split_once(':').unwrap().1[6..].trim_start();
        let quoted = if name.starts_with("$'") { name.to_string() } else { format!("'{name}'") };
        let script =
            format!("exec '{}' cat '{image}' names/{quoted}", env!("CARGO_BIN_EXE_dovetail"));
        let cat = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(cat.status.success() && names.contains(&&cat.stdout[..]), "{line}: {cat:?}");
    }
}
