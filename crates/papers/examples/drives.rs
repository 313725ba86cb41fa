//! Measurements of real drives beside the drive model, as a table in Markdown:
//! `cargo run --release -p dovetail-papers --example drives [-- PROFILE...]`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use dovetail_papers::measured::{Row, Setting, TESTS, ZONE_TESTS, markdown};

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let setting = Setting { seed: 1, scale: 1.0 };
    let wanted = |profile: &str| names.is_empty() || names.iter().any(|name| name == profile);
    let mut rows: Vec<Row> = Vec::new();
    for test in TESTS.iter().chain(ZONE_TESTS).filter(|test| wanted(test.profile)) {
        eprintln!("{}: {}", test.device, test.workload);
        match test.run(setting) {
            Ok(more) => rows.extend(more),
            Err(error) => eprintln!("  cannot be run: {error}"),
        }
    }
    println!("{}", markdown(&rows));
}
