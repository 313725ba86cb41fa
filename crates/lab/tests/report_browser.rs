//! A real browser as referee of the report: it opens the file, runs its scripts, and shows what a reader sees.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::Path;
use std::process::Command;

use dovetail_ftl::{Overrides, Profile};
use dovetail_lab::replay::{Pacing, ReplayJob, replay};
use dovetail_lab::report;
use dovetail_lab::results::{Results, SCHEMA, SCHEMA_VERSION};
use dovetail_workload::trace::TraceOptions;

fn results() -> Results {
    let overrides = Overrides { scale: "1/64".parse().ok(), ..Overrides::default() };
    let job = ReplayJob {
        label: "</script><script>document.title = 'taken'</script>".into(),
        trace: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/f2fs-randwrite.blkparse.zst"),
        trace_options: TraceOptions::default(),
        drive: Profile::load("femu-32g").unwrap().resolve(&overrides).unwrap(),
        pacing: Pacing::Timed { speed: 1.0 },
        wrap: true,
        precondition: true,
        interval: None,
        limit: None,
    };
    let run = replay(&job, &mut |_| {}).unwrap();
    Results { schema: SCHEMA.into(), version: SCHEMA_VERSION, seed: 1, runs: vec![run] }
}

/// Opens a file in headless Chromium; returns the page as its scripts have made it, and the console.
fn open(page: &Path, profile: &Path) -> (String, String) {
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-sync",
            "--disable-quic",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the tests need chromium: cargo xtask test installs it, or apt-get install chromium");
    (String::from_utf8_lossy(&output.stdout).into(), String::from_utf8_lossy(&output.stderr).into())
}

#[test]
fn a_browser_draws_every_chart_without_a_complaint() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    std::fs::write(&page, report::html(&results())).unwrap();
    let (dom, console) = open(&page, &folder.path().join("profile"));
    let complaints: Vec<_> = console.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    assert!(!dom.contains("<title>taken</title>"), "a label was run as a script");
    for chart in [
        "throughput",
        "waf",
        "write-latency",
        "load",
        "cleaning",
        "cdf",
        "addresses",
        "wear",
        "programs",
        "dies",
    ] {
        let figure = dom
            .split(&format!("<figure id=\"{chart}\""))
            .nth(1)
            .unwrap_or_else(|| panic!("no chart {chart}"));
        let figure = figure.split("</figure>").next().unwrap();
        let drawn = figure.contains("<canvas") || figure.contains("class=\"track\"");
        assert!(drawn, "nothing is drawn in {chart}");
    }
}
