//! docs/fio-jobs.md lists the options as the code has them. `DOVETAIL_BLESS=1` writes the tables
//! anew.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::Path;

use dovetail_workload::fio::{Effect, JobOption, OPTIONS};

const START: &str = "<!-- options: from fio::OPTIONS -->\n";
const END: &str = "<!-- end of options -->\n";

fn with_effect(effect: Effect) -> impl Iterator<Item = &'static JobOption> {
    OPTIONS.iter().filter(move |option| option.effect() == effect)
}

fn names(option: &JobOption) -> String {
    let names = [option.name].into_iter().chain(option.aliases.iter().copied());
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn honoured() -> String {
    let rows = with_effect(Effect::Honoured)
        .map(|option| format!("| {} | {} |\n", names(option), option.about));
    "### Honoured\n| option | remarks |\n|---|---|\n".to_owned() + &rows.collect::<String>()
}

fn without_effect() -> String {
    let names: Vec<String> = with_effect(Effect::None).map(names).collect();
    format!("\n### Accepted, since they cannot change the I/O\n{}.\n", names.join(", "))
}

fn refused() -> String {
    let rows = with_effect(Effect::Refused).map(|option| {
        let harmless: Vec<String> =
            option.harmless_values().iter().map(|value| format!("`{value}`")).collect();
        format!("| {} | {} | {} |\n", names(option), harmless.join(", "), option.about)
    });
    "\n### Refused, since they would change it, or ask for output that is not made\n| option | but for | instead |\n|---|---|---|\n"
        .to_owned()
        + &rows.collect::<String>()
}

fn tables() -> String {
    [honoured(), without_effect(), refused()].concat()
}

#[test]
fn the_documentation_lists_all_options() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fio-jobs.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(START).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if std::env::var_os("DOVETAIL_BLESS").is_some() {
        std::fs::write(&path, [before, START, &tables(), END, after].concat()).unwrap();
        return;
    }
    assert_eq!(
        found,
        tables(),
        "run: DOVETAIL_BLESS=1 cargo test -p dovetail-workload --test all fio_docs::"
    );
}

/// fio's own list (`fio --cmdhelp`): none is missing in ours.
#[test]
fn every_option_of_fio_is_listed() {
    let output = std::process::Command::new("fio")
        .arg("--cmdhelp")
        .output()
        .expect("the tests need fio: cargo xtask test installs it, or apt-get install fio");
    let text = String::from_utf8_lossy(&output.stdout);
    let listed = text.lines().filter_map(|line| line.split_once(" : ").or(line.split_once(':')));
    let missing: Vec<&str> = listed
        .map(|(name, _)| name.trim())
        .filter(|name| {
            !OPTIONS.iter().any(|option| option.name == *name || option.aliases.contains(name))
        })
        .collect();
    assert!(text.lines().count() > 200 && missing.is_empty(), "{missing:?}");
}
