//! The effects of a scale on results, as a user sees them.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn dovetail(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.args(arguments.split_whitespace()).current_dir(folder).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_bench_names_what_the_scale_has_put_at_its_floor() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.fio"), "[a]\nrw=write\nbs=4k\nsize=64m\n").unwrap();
    let run = |scale: &str, more: &str| {
        let arguments = format!("bench a.fio --stack f2fs,ext4 --scale {scale} {more}");
        stdout(&dovetail(folder.path(), &arguments))
    };
    let text = run("1/128", "");
    let notes: Vec<&str> = text.lines().filter(|line| line.starts_with("note: ")).collect();
    let [pages, nodes] = notes[..] else { panic!("{text}") };
    assert!(pages.starts_with("note: flash.pages_per_block is at its floor: 8 pages"), "{pages}");
    assert!(
        pages.ends_with("not the 2 of the scale (in proportion from --scale 1/32 on)"),
        "{pages}"
    );
    assert!(nodes.starts_with("note: f2fs: ") && nodes.contains("1/64"), "{nodes}");
    assert!(!run("1/32", "").contains("note: "));
    let json: Value = serde_json::from_str(&run("1/64", "--json")).unwrap();
    let floors = json["runs"][1]["floors"].as_array().unwrap();
    assert_eq!(floors.len(), 1);
    assert_eq!((&floors[0]["value"], &floors[0]["from_scale"]), (&8.0.into(), &0.03125.into()));
}

#[test]
fn a_figure_at_several_scales_says_from_which_one_on_it_stays() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "reproduce iplfs-map-size --scales 1/16,1/64,1/32 --json out.json";
    let text = stdout(&dovetail(folder.path(), arguments));
    assert!(text.contains("stays from 1/") && text.contains("two largest scales"), "{text}");
    let json = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let figure = &json["iplfs-map-size"];
    assert_eq!(figure["scales"], serde_json::json!([0.015625, 0.03125, 0.0625]), "in order");
    assert_eq!(figure["statements"][0]["ours"].as_array().unwrap().len(), 3);
    for (wrong, says) in [("1/16", "two to eight"), ("1/16,1/8 --full", "cannot be used with")] {
        let arguments = format!("reproduce iplfs-map-size --scales {wrong}");
        let output = dovetail(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(says), "{wrong}: {output:?}");
    }
}

#[test]
fn a_figure_with_one_thing_changed_keeps_the_papers_statements() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &str| {
        let arguments = format!("reproduce rmipu-figure-1 --scale 1/128 --json out.json {more}");
        stdout(&dovetail(folder.path(), &arguments));
        let json = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
        let json: Value = serde_json::from_str(&json).unwrap();
        json["rmipu-figure-1"]["comparisons"][0].clone()
    };
    let (plain, slower) = (run(""), run("--with drive.host.command_serial_us=20"));
    assert_eq!(plain["paper"], slower["paper"]);
    assert_ne!(plain["ours"], slower["ours"]);
    let fails = [
        (
            "iplfs-map-size --with memory=1GiB",
            Some(1),
            "--with memory=1GiB changed none of its stacks",
        ),
        ("iplfs-map-size --with memory", Some(2), "KEY=VALUE"),
        ("rmipu-figure-1 --scale 1/128 --with memroy=1GiB", Some(1), "memroy"),
        ("rmipu-figure-1 --scale 1/128 --with drive.host.nothing=1", Some(1), "nothing"),
        ("rmipu-table-1 --scale 1/100000", Some(1), "without --scale it runs at 1/"),
        ("rmipu-metadata --scale 1/2", Some(0), "scale 1/1, the only one that it has"),
    ];
    for (arguments, status, says) in fails {
        let output = dovetail(folder.path(), &format!("reproduce {arguments}"));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == status && error.contains(says), "{arguments}: {error}");
    }
}
