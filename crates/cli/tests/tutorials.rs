//! The tutorials (`docs/tutorials`), as a reader follows them: the commands of their console blocks
//! run one after the other in an empty folder that has the project's `examples`, and print what the
//! tutorial shows; so does the first block of `docs/comparing.md`. Blocks of other languages are not
//! run: `sh` takes minutes, or needs the sources.
//!
//! Each line that is shown is printed, figure by figure; one that ends with "..." begins so. Where
//! a model has moved, the text around the figures may be wrong as well: read it again.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn tutorial(name: &str) -> String {
    fs::read_to_string(root().join("docs/tutorials").join(name)).unwrap()
}

/// A fenced block: its language, the last paragraph before it, its lines.
struct Block<'a> {
    language: &'a str,
    before: String,
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let (mut found, mut before, mut lines) = (Vec::new(), String::new(), text.lines());
    while let Some(line) = lines.next() {
        match line.strip_prefix("```") {
            Some(language) => {
                let inside = lines.by_ref().take_while(|line| *line != "```").collect();
                found.push(Block { language, before: std::mem::take(&mut before), lines: inside });
            }
            None if line.starts_with('#') => before.clear(),
            None => before = format!("{before}{line} "),
        }
    }
    found
}

/// A command and what is shown of its output.
#[derive(Debug, PartialEq, Eq)]
struct Shown<'a> {
    command: String,
    output: Vec<&'a str>,
}

/// The commands of a console block; one that ends with a backslash goes on in the next line.
fn commands<'a>(lines: &[&'a str]) -> Vec<Shown<'a>> {
    let mut found: Vec<Shown<'a>> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => {
                found.push(Shown { command: command.into(), output: Vec::new() });
            }
            (None, Some(last)) if last.output.is_empty() && last.command.ends_with('\\') => {
                last.command = format!("{}\n{line}", last.command);
            }
            (None, Some(last)) => last.output.push(line),
            (None, None) => panic!("a console block begins with a command, not with {line:?}"),
        }
    }
    found
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The part of a shown line that its output must have.
fn asked(line: &str) -> String {
    words(line.trim_end().trim_end_matches("..."))
}

/// Runs a command, which must succeed; both its outputs.
fn run(command: &str, folder: &Path) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_dovetail")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let shell = format!("{{ {command}\n}} 2>&1");
    let output =
        Command::new("sh").args(["-c", &shell]).env("PATH", path).current_dir(folder).output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // compare tells by 1 that the results differ
    let is_told = command.starts_with("dovetail compare") && output.status.code() == Some(1);
    assert!(output.status.success() || is_told, "{command}: {}\n{text}", output.status);
    text
}

/// Follows a tutorial; the number of its commands.
fn follow(name: &str) -> usize {
    follow_blocks(name, &blocks(&tutorial(name)))
}

fn follow_blocks(name: &str, blocks: &[Block<'_>]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("examples"), folder.path().join("examples")).unwrap();
    let mut count = 0;
    for block in blocks {
        if let Some((_, named)) = block.before.split_once("Save this as `") {
            let file = named.split('`').next().unwrap();
            fs::write(folder.path().join(file), block.lines.join("\n") + "\n").unwrap();
        }
        if block.language != "console" {
            continue;
        }
        for Shown { command, output } in commands(&block.lines) {
            let printed: Vec<_> = run(&command, folder.path()).lines().map(words).collect();
            for asked in output.iter().map(|line| asked(line)) {
                let there = printed.iter().any(|line| line.contains(&asked));
                assert!(there, "{name}: {command}\ndoes not print {asked:?}:\n{printed:#?}");
            }
            count += 1;
        }
    }
    count
}

#[test]
fn a_reader_chooses_a_file_system() {
    assert_eq!(follow("which-file-system.md"), 4);
}

#[test]
fn a_reader_replays_a_trace() {
    assert_eq!(follow("trace-on-drives.md"), 5);
}

#[test]
fn a_reader_saves_an_image() {
    assert_eq!(follow("save-an-image.md"), 24);
}

#[test]
fn a_reader_reproduces_a_figure() {
    assert_eq!(follow("reproduce-a-figure.md"), 6);
}

#[test]
fn the_first_example_of_a_comparison_prints_what_its_page_shows() {
    let page = fs::read_to_string(root().join("docs/comparing.md")).unwrap();
    assert_eq!(follow_blocks("comparing.md", &blocks(&page)[..1]), 3);
}

#[test]
fn the_scheme_that_a_reader_writes_is_the_example_that_is_built() {
    let example = fs::read_to_string(root().join("crates/ftl/examples/own_scheme.rs")).unwrap();
    let text = tutorial("own-mapping-scheme.md");
    let rust = blocks(&text).into_iter().find(|block| block.language == "rust").unwrap();
    assert!(rust.lines.len() > 40 && example.contains(&rust.lines.join("\n")));
}

#[test]
fn every_tutorial_has_a_test() {
    let files = fs::read_dir(root().join("docs/tutorials")).unwrap();
    let mut names: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let tested = [
        "own-mapping-scheme.md",
        "reproduce-a-figure.md",
        "save-an-image.md",
        "trace-on-drives.md",
        "which-file-system.md",
    ];
    assert_eq!(names, tested);
}

#[test]
fn commands_are_told_from_what_they_print() {
    let lines = ["$ a \\", "    b", "x 1", "...", "$ c"];
    let shown = commands(&lines);
    assert_eq!(shown[0], Shown { command: "a \\\n    b".into(), output: vec!["x 1", "..."] });
    assert_eq!(shown[1], Shown { command: "c".into(), output: vec![] });
    let asked = [" femu-32g   32 GiB", "WAF 1.0 ...", "..."].map(asked);
    assert_eq!(asked, ["femu-32g 32 GiB", "WAF 1.0", ""]);
}
