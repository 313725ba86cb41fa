use dovetail_lab::results::{ReplayResult, Results, RunResult, ScatterPoint, TraceResult};

use super::page::{
    CHARTS_JS, CSS, DARK_CSS, LIBRARY_CSS, LIBRARY_JS, LIBRARY_LICENSE, START_JS, TEMPLATE, fill,
};
use super::table::{COLOURS, DASHES};
use super::{html, results as results_page};

const NASTY: &str = "<script>alert(1)</script>&\"'{{js}}<!--";

fn results(labels: &[&str], run: fn(&str) -> RunResult) -> Results {
    let workload = labels.first().copied().unwrap_or_default().into();
    Results::of(workload, 0.25, 42, labels.iter().map(|label| run(label)).collect())
}

fn replay_run(label: &str) -> RunResult {
    let trace = TraceResult { name: format!("{label}.csv"), ..TraceResult::default() };
    let mut run = RunResult {
        label: label.into(),
        trace: Some(trace),
        replay: Some(ReplayResult::default()),
        ..RunResult::default()
    };
    run.drive.profile = label.into();
    run.totals.device_waf = Some(1.25);
    run.latency.read.percentiles.count = 2;
    run.latency.read.cdf = vec![(100, 0.5), (250, 1.0)];
    run.series.interval_s = Some(1.0);
    run.series.time_s = vec![1.0, 2.0];
    run.series.device_waf = vec![None, Some(1.5)];
    run.scatter = vec![ScatterPoint { t: 0.5, at: 4096, len: 512, op: 'w' }];
    run
}

/// A run whose every name is `label`.
fn bench_run(label: &str) -> RunResult {
    let mut run =
        RunResult { label: label.into(), error: Some(label.into()), ..RunResult::default() };
    run.stack.name = label.into();
    run.stack.mount = label.into();
    run.totals.fs_waf = Some(1.25);
    run.written = [(label.into(), 7)].into();
    run.events = [(label.into(), 3)].into();
    run.series.time_s = vec![1.0, 2.0];
    run.series.written_bytes = vec![0, 4096];
    run.series.fs_waf = vec![None, Some(1.5)];
    run.series.events = [(label.into(), vec![1, 2])].into();
    run.occupancy = vec![0.25, 1.0];
    run
}

/// Both reports on runs of these labels.
fn pages(labels: &[&str]) -> [String; 2] {
    [replay_run, bench_run].map(|run| html(&results(labels, run)))
}

fn embedded(page: &str) -> &str {
    let start = "<script type=\"application/json\" id=\"data\">";
    page.split_once(start)
        .and_then(|(_, rest)| rest.split_once("</script>"))
        .map(|(data, _)| data)
        .unwrap()
}

#[test]
fn the_embedded_results_parse_back_equal() {
    for run in [replay_run, bench_run] {
        let results = results(&["one", NASTY], run);
        let parsed: Results = serde_json::from_str(embedded(&html(&results))).unwrap();
        assert_eq!(parsed, results);
    }
}

#[test]
fn labels_never_become_markup() {
    for (page, plain) in pages(&[NASTY]).iter().zip(&pages(&["plain"])) {
        assert!(!page.contains("<script>alert"));
        assert!(!embedded(page).contains('<'));
        assert!(
            page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;{{js}}&lt;!--")
        );
        assert_eq!(page.matches("</script>").count(), plain.matches("</script>").count());
    }
}

#[test]
fn every_run_is_named_in_the_tables() {
    let labels = ["first", "second", "third", "fourth"];
    for page in pages(&labels) {
        for label in labels {
            assert_eq!(page.matches(&format!("<br>{label}</th>")).count(), 2, "{label}");
        }
    }
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let home = "https://github.com/leeoniya/uPlot"; // in the comment at the library's head
    for page in pages(&["one"]) {
        // the name of a format and of a fill in the same file: neither is loaded
        let page = page.replace("http://www.w3.org/2000/svg", "").replace("url(#", "");
        let without_comment = page.replace(home, "");
        for load in [
            "http://",
            "https://",
            "src=",
            "@import",
            "url(",
            "fetch(",
            "XMLHttpRequest",
            "import(",
        ] {
            assert!(!without_comment.contains(load), "{load}");
        }
        for target in without_comment.split("href=\"").skip(1) {
            assert!(target.starts_with('#') || target.starts_with("data:,"), "{target:.40}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn the_library_comes_with_its_license() {
    for page in pages(&[]) {
        assert!(page.contains("Permission is hereby granted, free of charge"));
    }
}

#[test]
fn an_axis_of_latencies_names_its_own_kind() {
    assert!(crate::results::JS.contains("{ read: \"Read\", write: \"Write\", flush: \"Sync\" }"));
    for label in ["`${LATENCY_OF[kind]} latency`", "`${LATENCY_OF[kind]} latency (log scale)`"] {
        assert_eq!(crate::results::JS.matches(label).count(), 1, "{label}");
    }
}

#[test]
fn scripts_cannot_end_early() {
    for part in [crate::results::JS, results_page::JS, START_JS, LIBRARY_JS, LIBRARY_LICENSE] {
        assert!(!part.contains("</script") && !part.contains("<!--"));
    }
    assert!(!LIBRARY_LICENSE.contains("*/"));
    for part in [CSS, DARK_CSS, LIBRARY_CSS] {
        assert!(!part.contains("</style"));
    }
}

#[test]
fn every_placeholder_is_filled() {
    let mut names = Vec::new();
    fill(TEMPLATE, |name| {
        names.push(name.to_owned());
        String::new()
    });
    for filled in pages(&["one"]) {
        for name in &names {
            assert!(!filled.contains(&format!("{{{{{name}}}}}")), "{name}");
        }
    }
    assert_eq!(fill("a{{x}}b{{y", |_| "{{x}}".into()), "a{{x}}b{{y");
}

#[test]
fn the_same_results_give_the_same_bytes() {
    assert_eq!(pages(&["one", "two"]), pages(&["one", "two"]));
}

#[test]
fn no_runs_give_a_page_that_says_so() {
    for page in pages(&[]) {
        assert!(page.contains("There are no runs."));
    }
}

#[test]
fn a_bench_that_ended_early_says_so_in_its_heading() {
    let mut results = results(&["one", "two"], bench_run);
    results.runs[1].error = None;
    assert!(html(&results).contains("<strong>1 run ended early</strong>"));
    results.runs[0].error = None;
    assert!(!html(&results).contains("ended early"));
}

#[test]
fn the_style_sheet_has_all_colours_and_dashes() {
    for index in 0..COLOURS {
        let name = format!("--run-{index}:");
        assert!(CSS.contains(&name) && DARK_CSS.contains(&name), "{name}");
    }
    for index in 0..DASHES {
        assert!(CSS.contains(&format!("--dash-{index}:")));
    }
    let script = format!("const COLOURS = {COLOURS};\nconst DASHES = {DASHES};");
    assert!(CHARTS_JS.contains(&script));
}
