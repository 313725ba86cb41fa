//! ARCHITECTURE.md is true: its code map names the crates that there are, and its invariants hold.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Crates in the order of the code map: who stands above may use who stands below.
fn code_map() -> Vec<String> {
    let text = read(&root().join("ARCHITECTURE.md"));
    let map = text.split("## Code map").nth(1).expect("a code map").split("\n## ").next().unwrap();
    let names = map.lines().filter_map(|line| line.strip_prefix("| `crates/"));
    names.map(|rest| rest.split('`').next().unwrap().to_string()).collect()
}

fn crates() -> Vec<String> {
    let folders =
        fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = folders.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// Crates of the project that each crate uses, outside its tests.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let of = |name: &String| {
        let text = read(&root().join("crates").join(name).join("Cargo.toml"));
        // those of all machines, and of some
        let sections = text.split("\n[").filter(|section| {
            let head = section.lines().next().unwrap_or("");
            head == "dependencies]" || head.ends_with(".dependencies]")
        });
        let used = sections.flat_map(str::lines).filter_map(|line| line.strip_prefix("dovetail-"));
        (name.clone(), used.map(|rest| rest.split('.').next().unwrap().to_string()).collect())
    };
    crates().iter().map(of).collect()
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

fn sources_of(name: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    sources(&root().join("crates").join(name).join("src"), &mut files);
    files.sort();
    files
}

#[test]
fn the_code_map_names_every_crate() {
    let mut map = code_map();
    map.sort();
    assert_eq!(map, crates());
}

#[test]
fn every_path_that_is_named_exists() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let quoted = text.split('`').skip(1).step_by(2);
    let paths: Vec<_> = quoted.filter(|word| word.contains('/') || word.ends_with(".rs")).collect();
    assert!(paths.len() > 20, "{paths:?}");
    for path in paths {
        let found = root().join(path).exists() || root().join("crates").join(path).exists();
        assert!(found, "ARCHITECTURE.md names {path}, which is not there");
    }
}

#[test]
fn dependencies_point_down() {
    let map = code_map();
    let place = |name: &String| map.iter().position(|known| known == name).unwrap();
    for (name, used) in dependencies() {
        for below in used {
            assert!(
                place(&below) > place(&name),
                "{name} uses {below}, which stands above it in ARCHITECTURE.md"
            );
        }
    }
}

#[test]
fn the_drive_knows_no_file_system_and_no_file_system_the_drive() {
    let map = dependencies();
    for name in ["f2fs", "ext", "vfs"].iter().filter(|name| map.contains_key(**name)) {
        let used = &map[*name];
        assert!(!used.iter().any(|used| used == "nand" || used == "ftl"), "{name} uses the drive");
    }
    for name in ["nand", "ftl"] {
        let used = &map[name];
        assert!(
            !used.iter().any(|used| ["f2fs", "ext", "vfs"].contains(&used.as_str())),
            "{name} uses {used:?}"
        );
    }
}

/// The first of `words` that stands in the code of a crate's file, outside its unit tests.
fn first_use<'a>(name: &str, words: &[&'a str], but_not_in: &str) -> Option<(PathBuf, &'a str)> {
    let files = sources_of(name)
        .into_iter()
        .filter(|file| but_not_in.is_empty() || !file.ends_with(but_not_in));
    files.into_iter().find_map(|file| {
        let text = read(&file);
        let code = text.split("#[cfg(test)]").next().unwrap();
        words.iter().find(|word| code.contains(**word)).map(|word| (file, *word))
    })
}

fn crates_but(names: &[&str]) -> Vec<String> {
    crates().into_iter().filter(|name| !names.contains(&name.as_str())).collect()
}

#[test]
fn only_the_command_line_and_tests_print() {
    for name in crates_but(&["cli", "testkit"]) {
        assert_eq!(first_use(&name, &["println!", "eprintln!"], ""), None);
    }
}

#[test]
fn only_the_outer_crates_see_the_clock_and_nothing_draws_unseeded() {
    let clocks = ["time::Instant", "SystemTime", "clock_gettime"];
    // a campaign of tests tells how fast it is, a guest that hangs is ended
    for name in crates_but(&["cli", "front", "linux", "serve", "testkit"]) {
        assert_eq!(first_use(&name, &clocks, ""), None);
    }
    for name in crates() {
        assert_eq!(first_use(&name, &["thread_rng", "rand::random"], ""), None);
    }
}

#[test]
fn only_the_outer_crates_have_threads_beside_the_parallel_runs() {
    // `kernel` asks how many processors there are to build on
    for name in crates_but(&["cli", "front", "kernel", "linux", "serve"]) {
        assert_eq!(
            first_use(
                &name,
                &["std::thread", "thread::spawn", "thread::scope"],
                "lab/src/parallel.rs"
            ),
            None
        );
    }
}

#[test]
fn every_scheme_and_policy_is_registered() {
    for (folder, registry) in
        [("crates/ftl/src/mapping", "SCHEME"), ("crates/ftl/src/victim", "POLICY")]
    {
        let folder = root().join(folder);
        let module = read(&folder.join("mod.rs"));
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        for entry in entries.filter(|entry| !entry.ends_with("mod.rs")) {
            let name = entry.file_stem().unwrap().to_string_lossy();
            assert!(
                module.contains(&format!("{name}::{registry}")),
                "{} is in no registry",
                entry.display()
            );
        }
    }
}

#[test]
fn every_unsafe_block_says_why_it_is_safe() {
    for name in crates() {
        for file in sources_of(&name) {
            let text = read(&file);
            let lines: Vec<_> = text.lines().collect();
            for (i, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("unsafe {"))
            {
                let before = lines[i.saturating_sub(3)..i].join("\n");
                assert!(before.contains("SAFETY:"), "{}:{}: {line}", file.display(), i + 1);
            }
        }
    }
}

/// Tests of a crate are modules of one program. A file that is no module of it would never run, and
/// nobody would see it.
#[test]
fn every_file_of_tests_is_a_module() {
    for folder in crates().iter().map(|name| root().join("crates").join(name).join("tests")) {
        let Ok(program) = fs::read_to_string(folder.join("main.rs")) else { continue };
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_stem().unwrap().to_str().unwrap();
            let is_file =
                entry.extension().is_some_and(|extension| extension == "rs") && name != "main";
            let is_named = program.lines().any(|line| line == format!("mod {name};"));
            assert!(
                !is_file || is_named,
                "{} is no module of tests/main.rs: it never runs",
                entry.display()
            );
        }
    }
}

/// Functions that a piece of code declares at the depth of a trait's or an impl's.
fn functions(code: &str) -> Vec<&str> {
    let names = code.lines().filter_map(|line| line.strip_prefix("    fn "));
    names.map(|rest| rest.split(['(', '<']).next().unwrap()).collect()
}

/// A default that is not forwarded would be a lie about what is in the box.
#[test]
fn boxes_forward_every_function() {
    for (file, name) in
        [("crates/vfs/src/fs.rs", "FileSystem"), ("crates/block/src/device.rs", "BlockDevice")]
    {
        let text = read(&root().join(file));
        let body = |head: &str| {
            let rest = text.split(head).nth(1).unwrap_or_else(|| panic!("{file} has no {head}"));
            rest.split("\n}\n").next().unwrap()
        };
        let forwarded = functions(body(&format!("{name} for Box<")));
        for function in functions(body(&format!("pub trait {name} {{"))) {
            assert!(forwarded.contains(&function), "{file}: a box does not forward {function}");
        }
    }
}

#[test]
fn every_library_has_an_example_in_its_module_docs_that_is_run() {
    for name in crates_but(&["cli"]) {
        let text = read(&root().join("crates").join(&name).join("src/lib.rs"));
        let mut docs = text.lines().take_while(|line| line.starts_with("//!"));
        let example: Vec<&str> = docs
            .by_ref()
            .skip_while(|line| *line != "//! ```")
            .skip(1)
            .take_while(|line| *line != "//! ```")
            .collect();
        let shown = example.iter().filter(|line| !line.starts_with("//! # ")).count();
        assert!((8..=25).contains(&shown), "{name}: an example of {shown} lines, not 8 to 25");
        assert!(example.iter().any(|line| line.contains("assert")), "{name}: it checks nothing");
    }
}
