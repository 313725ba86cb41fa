//! A paper's result is never an input of the code that is compared with it.
//!
//! The results are those in docs/figures/*.json. A number of one may stand in its figure's code as
//! often as statements are made with it, and nowhere else: not in the code that figures share, and
//! not among the figures of drives and stacks.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Numbers of a text, and how many significant digits each has.
fn numbers(text: &str) -> Vec<(f64, usize)> {
    let mut found = Vec::new();
    let mut before = ' ';
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_name = before.is_ascii_alphanumeric() || before == '_' || before == '.';
        if first.is_ascii_digit() && !is_name {
            let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
            let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
            let digits = rest[..end].trim_end_matches('.').replace('_', "");
            if let Ok(number) = digits.parse() {
                found.push((number, significant(&digits)));
            }
            rest = &rest[end..];
            before = '0';
        } else {
            before = first;
            rest = &rest[first.len_utf8()..];
        }
    }
    found
}

fn significant(digits: &str) -> usize {
    let all: String = digits.chars().filter(char::is_ascii_digit).collect();
    all.trim_matches('0').len()
}

/// Rust code without comments, texts, tests and the scale at which a figure runs.
fn code_of(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap();
    let (mut code, mut is_text) = (String::new(), false);
    for line in text.lines().filter(|line| !line.trim_start().starts_with("reduced: ")) {
        let mut previous = ' ';
        for (at, c) in line.char_indices() {
            match c {
                '"' if previous != '\\' && previous != '\'' => is_text = !is_text,
                '/' if !is_text && line[at..].starts_with("//") => break,
                c if !is_text => code.push(c),
                _ => {}
            }
            previous = c;
        }
        code.push('\n');
    }
    code
}

/// A number of a paper, its significant digits, and the places in statements that have it.
type Stated = (f64, usize, BTreeSet<String>);

/// Numbers of the papers' statements, by figure.
fn statements() -> BTreeMap<String, BTreeMap<String, Stated>> {
    let mut all: BTreeMap<String, BTreeMap<String, Stated>> = BTreeMap::new();
    for size in ["reduced", "full"] {
        let path = root().join(format!("docs/figures/{size}.json"));
        let figures: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        for (name, figure) in figures.as_object().unwrap() {
            for row in figure["comparisons"].as_array().unwrap() {
                let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
                if text("paper").starts_with("none") || text("rule").is_empty() {
                    continue;
                }
                let numbers = numbers(&text("paper").replace(',', ""));
                for (place, (number, digits)) in numbers.into_iter().enumerate() {
                    let of = all.entry(name.clone()).or_default();
                    let entry =
                        of.entry(number.to_string()).or_insert((number, digits, BTreeSet::new()));
                    entry.2.insert(format!("{}, {}", text("what"), place + 1));
                }
            }
        }
    }
    all
}

/// The file that has the figure of this name.
fn file_of(name: &str) -> PathBuf {
    let entries = fs::read_dir(root().join("crates/papers/src")).unwrap();
    let named = format!("name: \"{name}\"");
    let has = |path: &PathBuf| path.is_file() && fs::read_to_string(path).unwrap().contains(&named);
    entries.map(|entry| entry.unwrap().path()).find(has).unwrap_or_else(|| panic!("{name}"))
}

/// The number, or as a share of a hundred.
fn is_it(found: f64, number: f64) -> bool {
    let same = |a: f64, b: f64| (a - b).abs() <= b.abs() * 1e-9;
    same(found, number) || same(found, number / 100.0)
}

#[test]
fn a_number_stands_in_its_figures_code_as_often_as_statements_have_it() {
    let (mut checked, mut more) = (0, Vec::new());
    for (name, numbers_of) in statements() {
        let path = file_of(&name);
        let found = numbers(&code_of(&path));
        for (number, digits, places) in numbers_of.values() {
            if *digits < 2 {
                continue;
            }
            checked += 1;
            let count = found.iter().filter(|(found, _)| is_it(*found, *number)).count();
            if count > places.len() {
                more.push(format!("{name}: {number} stands {count} times, stated in {places:?}"));
            }
        }
    }
    assert!(more.is_empty(), "{more:#?}");
    assert!(checked > 50, "{checked}");
}

#[test]
fn no_number_of_a_paper_is_one_of_a_drive_or_a_stack() {
    let files = ["crates/ftl/profiles", "crates/lab/stacks"]
        .into_iter()
        .flat_map(|folder| fs::read_dir(root().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path());
    let shared = ["iplfs", "fsdv_rig", "mapcache", "mapcache_load", "iplfs_shadow"]
        .map(|name| root().join(format!("crates/papers/src/{name}.rs")));
    let mut inputs = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let figures = text.split("[sources]").next().unwrap();
        let is_prose =
            |line: &str| ["#", "name", "about"].iter().any(|start| line.starts_with(start));
        let lines = figures.lines().filter(|line| !is_prose(line));
        let values = lines.filter_map(|line| line.split_once('=')).map(|(_, value)| value);
        inputs.extend(values.flat_map(numbers).map(|(number, _)| (path.clone(), number)));
    }
    for path in shared {
        inputs.extend(numbers(&code_of(&path)).into_iter().map(|(n, _)| (path.clone(), n)));
    }
    for (name, numbers_of) in statements() {
        for (number, _, places) in numbers_of.values().filter(|(_, digits, _)| *digits >= 3) {
            let same = inputs.iter().find(|(_, input)| input == number);
            assert!(same.is_none(), "{name}: {number} of {places:?} is an input: {same:?}");
        }
    }
    assert!(inputs.len() > 300, "{}", inputs.len());
}
