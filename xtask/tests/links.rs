//! Links of the documents lead somewhere: files that are there, and headings in them.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// All Markdown files of the project but the book's table of contents, by their path.
fn documents(folder: &Path, into: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            documents(&path, into);
        } else if name.ends_with(".md") && name != "SUMMARY.md" {
            into.insert(path.clone(), fs::read_to_string(&path).unwrap());
        }
    }
}

/// The text without fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The anchor that a heading has on the forges: small letters, digits, `-` and `_`; spaces become
/// `-`.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Anchors of all headings; of several that are the same, the second has `-1` at its end.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for line in prose(text).filter(|line| line.starts_with('#')) {
        let name = anchor(line.trim_start_matches('#'));
        let again = seen.entry(name.clone()).and_modify(|count| *count += 1).or_insert(0);
        found.push(if *again == 0 { name } else { format!("{name}-{again}") });
    }
    found
}

/// Targets of `[text](target)`, outside code.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for rest in plain.split("](").skip(1) {
            found.extend(rest.split_once(')').map(|(target, _)| target.to_string()));
        }
    }
    found
}

#[test]
fn every_relative_link_leads_to_a_file_and_to_a_heading_in_it() {
    let mut all = BTreeMap::new();
    documents(&root(), &mut all);
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (path, text) in &all {
        for target in targets(text).iter().filter(|target| !target.contains("://")) {
            count += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let there = match file {
                "" => path.clone(),
                _ => path.parent().unwrap().join(file),
            };
            let Ok(there) = there.canonicalize() else {
                wrong.push(format!("{}: {target}", path.display()));
                continue;
            };
            let known = all.get(&there).is_none_or(|text| anchors(text).contains(&heading.into()));
            if !heading.is_empty() && !known {
                wrong.push(format!("{}: {target}: no such heading", path.display()));
            }
        }
    }
    assert!(count > 200, "{count} links");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn anchors_are_those_of_the_forges() {
    let text = "# A smaller drive: `--scale`\n```sh\n# no heading\n```\n## Read\n## Read\n";
    assert_eq!(anchors(text), ["a-smaller-drive---scale", "read", "read-1"]);
    let text = "[a](b.md#c) `[x](y)`\n```\n[z](q)\n```\nand [d](e)";
    assert_eq!(targets(text), ["b.md#c", "e"]);
}
