//! A real browser as referee of the report: it opens the file, runs its scripts, and shows what a
//! reader sees.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::common;
use std::path::Path;
use std::process::Command;

use dovetail_ftl::{Overrides, Profile};
use dovetail_lab::HostCosts;
use dovetail_lab::replay::{Pacing, ReplayJob, replay};
use dovetail_lab::results::{Provenance, Results};
use dovetail_report::{Figures, Reproduced, Statement, Swept, SweptPoint, SweptRun};
use dovetail_workload::trace::TraceOptions;

const NASTY: &str = "</script><script>document.title = 'taken'</script>";

fn results() -> Results {
    let overrides = Overrides { scale: "1/64".parse().ok(), ..Overrides::default() };
    let job = ReplayJob {
        label: NASTY.into(),
        trace: Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../examples/f2fs-randwrite.blkparse.zst"),
        trace_options: TraceOptions::default(),
        drive: Profile::load("femu-32g").unwrap().resolve(&overrides).unwrap(),
        pacing: Pacing::Timed { speed: 1.0 },
        wrap: true,
        precondition: true,
        interval: None,
        host: HostCosts::NONE,
        limit: None,
        zone_log: None,
    };
    let run = replay(&job, &mut |_| {}).unwrap();
    Results::of(NASTY.into(), 1.0 / 64.0, 1, vec![run])
}

fn bench_results() -> Results {
    let mut runs: Vec<_> = ["f2fs", "f2fs-lfs"].map(|stack| common::bench_run(stack, NASTY)).into();
    runs[1].error = Some(NASTY.into());
    runs[1].written.insert(NASTY.into(), 100);
    Results::of(NASTY.into(), 1.0 / 64.0, 1, runs)
}

/// The machine is declared to have no browser.
fn is_without_chromium() -> bool {
    std::env::var("DOVETAIL_WITHOUT")
        .is_ok_and(|list| list.split(',').any(|name| name == "chromium"))
}

/// Opens a file in headless Chromium; returns the page as its scripts have made it, and the
/// console.
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
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--enable-logging=stderr",
        ])
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect(
            "the tests need chromium: cargo xtask test installs it, or apt-get install chromium",
        );
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (status, dom, console) = (output.status, text(&output.stdout), text(&output.stderr));
    assert!(
        status.success() && dom.contains("<html"),
        "chromium shows no page on this machine ({status}), whatever is on it; if that is no fault of Dovetail, \
         DOVETAIL_WITHOUT=chromium leaves out this referee, and `cargo xtask test` says so at its end:\n{console}"
    );
    (dom, console)
}

/// Presses each chart's SVG button and leaves what it would save in the page, as a browser reads it: the
/// root, an error of the reader, the title, the number of shapes that show data, and all labels.
const SAVE_ALL: &str = r#"<script>
addEventListener("load", () => {
  const saved = [];
  window.Blob = class { constructor([text], { type }) { saved.push({ text, type }); } };
  URL.createObjectURL = () => "data:,";
  HTMLAnchorElement.prototype.click = () => {};
  for (const figure of document.querySelectorAll("figure")) {
    const button = [...figure.querySelectorAll("button")].find(button => button.textContent === "SVG");
    saved.length = 0;
    button.click();
    if (button.disabled || saved.length !== 1) continue;
    const svg = new DOMParser().parseFromString(saved[0].text, saved[0].type);
    const found = document.createElement("pre");
    const texts = [...svg.querySelectorAll("text")].map(text => text.textContent).join("|");
    const error = svg.querySelector("parsererror") ? "broken" : "none";
    const shapes = svg.querySelectorAll("path[clip-path], rect[height]:not([height='100%'])").length;
    found.textContent = `saved ${figure.id}: ${svg.documentElement.tagName} error=${error} shapes=${shapes} |${texts}|`;
    document.body.append(found);
  }
});
</script></body>"#;

/// Looks whether what a chart's button saves is an SVG file with shapes, its title and `labels`.
fn saves_svg(dom: &str, chart: &str, labels: &[&str]) {
    let start = format!("saved {chart}: ");
    let saved = dom.split(&start).nth(1).unwrap_or_else(|| panic!("{chart} saves no SVG"));
    let saved = saved.split("</pre>").next().unwrap();
    assert!(saved.starts_with("svg error=none"), "{chart}: {saved}");
    let shapes = saved.split("shapes=").nth(1).and_then(|rest| rest.split(' ').next());
    let shapes: u32 = shapes.unwrap().parse().unwrap();
    assert!(shapes > 0, "{chart} has no shapes: {saved}");
    for label in labels {
        assert!(saved.contains(label), "{chart} has no label {label:?}: {saved}");
    }
}

/// Opens `html` and looks whether each of `charts` is drawn and can be saved, and nothing is said on
/// the console.
fn draws(html: &str, charts: &[&str]) {
    draws_and_saves(html, charts, |dom| {
        let labels = ["Written (MB/s)", "Time since the start of the measurement"];
        saves_svg(dom, "throughput", &labels);
    });
}

/// As [`draws`], with more to be looked at in the page.
fn draws_and_saves(html: &str, charts: &[&str], more: impl Fn(&str)) {
    if is_without_chromium() {
        return; // cargo xtask test says so
    }
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    std::fs::write(&page, html.replace("</body>", SAVE_ALL)).unwrap();
    let (dom, console) = open(&page, &folder.path().join("profile"));
    let complaints: Vec<_> = console.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    assert!(!dom.contains("<title>taken</title>"), "a label was run as a script");
    for chart in charts {
        let figure = dom
            .split(&format!("<figure id=\"{chart}\""))
            .nth(1)
            .unwrap_or_else(|| panic!("no chart {chart}"));
        let figure = figure.split("</figure>").next().unwrap();
        let drawn = figure.contains("<canvas") || figure.contains("class=\"track\"");
        assert!(drawn, "nothing is drawn in {chart}");
        let title = figure.split("</h3>").next().unwrap().rsplit('>').next().unwrap();
        saves_svg(&dom, chart, &[title, &NASTY.replace('<', "&lt;").replace('>', "&gt;")]);
    }
    more(&dom);
}

/// Says how wide the window is, and what reaches beyond it outside of what scrolls by itself.
const MEASURE: &str = r#"<script>
addEventListener("load", () => {
  document.querySelectorAll("details").forEach(details => { details.open = true; });
  const width = document.documentElement.clientWidth;
  const is_wide = element => !element.closest(".scroll, .hidden, .skip") && element.getBoundingClientRect().right > width + 1;
  const wide = [...document.querySelectorAll("body *")].filter(is_wide).map(element => `${element.tagName}.${element.className}`);
  parent.postMessage(`measured ${width}, wide: ${[...new Set(wide)].join(" ")};`, "*");
});
</script></body>"#;

/// A page with the report in a frame as wide as a telephone: windows have a least width.
const NARROW: &str = r#"<!doctype html><html><body><pre id="found"></pre>
<script>addEventListener("message", ({ data }) => { document.getElementById("found").textContent = data; });</script>
<iframe src="report.html" style="width: 400px; height: 900px; border: 0"></iframe></body></html>"#;

/// A sweep over an axis of numbers and one of names, two seeds each.
fn swept() -> Swept {
    let mut swept = Swept { name: NASTY.into(), inputs: vec![NASTY.into()], ..Swept::default() };
    for (number, op) in ["7", "12", "28"].into_iter().enumerate() {
        for (place, gc) in ["greedy", NASTY].into_iter().enumerate() {
            for seed in ["1", "2"] {
                let values = [("op", op), ("gc", gc), ("seed", seed)];
                let waf = 4.0 - number as f64 + place as f64 + if seed == "1" { 0.0 } else { 0.3 };
                let figures = [("totals.device_waf", waf), ("latency.write.p99_ns", waf * 1e6)];
                let figures = figures.map(|(path, value)| (path.to_string(), value)).into();
                let values = values.map(|(axis, value)| (axis.to_string(), value.to_string()));
                let runs = vec![SweptRun { label: String::new(), figures }];
                swept.points.push(SweptPoint { values: values.into(), runs, error: None });
            }
        }
    }
    let (runs, error) = (Vec::new(), Some(NASTY.into()));
    swept.points.push(SweptPoint { values: vec![(NASTY.into(), NASTY.into())], runs, error });
    swept.planned = swept.points.len();
    swept
}

#[test]
fn a_browser_draws_a_sweep() {
    draws_and_saves(&dovetail_report::sweep_html(&swept()), &["sweep"], |dom| {
        // two lines, a bar of errors and points of each
        saves_svg(dom, "sweep", &["write p99 (ms)", "|op|", "|7|", "|12|", "|28|", "gc greedy"]);
        assert!(dom.contains("write p99 over op</h3>"), "the figure of the first sentence");
    });
}

/// The same points over the axis of names alone: of each name the points of `op 7`.
fn swept_over_names() -> Swept {
    let mut swept = swept();
    swept.points.retain(|point| point.values.contains(&("op".into(), "7".into())));
    swept
}

#[test]
fn names_are_not_joined_by_a_line() {
    draws_and_saves(&dovetail_report::sweep_html(&swept_over_names()), &["sweep"], |dom| {
        saves_svg(dom, "sweep", &["|gc|", "|greedy|"]);
        // the plot's area, errors and points
        assert!(dom.contains("saved sweep: svg error=none shapes=3 |"), "a line besides");
    });
}

/// Says how the heads of the first table look.
const HEADS: &str = r#"<script>
addEventListener("load", () => {
  const look = element => { const style = getComputedStyle(element); return `${style.verticalAlign} ${style.fontWeight}`; };
  const heads = [...document.querySelector("table.swept thead tr").children].map(look);
  document.body.append(`heads: ${[...new Set(heads)].join(", ")};`);
});
</script></body>"#;

#[test]
fn all_heads_of_a_sweeps_table_look_alike() {
    let html = dovetail_report::sweep_html(&swept()).replace("</body>", HEADS);
    draws_and_saves(&html, &["sweep"], |dom| assert!(dom.contains("heads: bottom 600;"), "{dom}"));
}

#[test]
fn on_a_narrow_screen_nothing_but_tables_scrolls_sideways() {
    if is_without_chromium() {
        return; // cargo xtask test says so
    }
    let reports = [results(), bench_results()].map(|results| dovetail_report::html(&results));
    for html in reports.into_iter().chain([dovetail_report::sweep_html(&swept())]) {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("report.html");
        let html = html.replace("</body>", MEASURE);
        std::fs::write(&page, html).unwrap();
        let frame = folder.path().join("narrow.html");
        std::fs::write(&frame, NARROW).unwrap();
        let (dom, _) = open(&frame, &folder.path().join("profile"));
        let found = dom.split(">measured ").nth(1).and_then(|rest| rest.split(';').next());
        let width: Option<u32> = found.and_then(|found| found.split(',').next()?.parse().ok());
        // a scroll bar may take its part
        assert!(width.is_some_and(|width| (370..=400).contains(&width)), "{found:?}");
        assert!(found.unwrap().ends_with("wide: "), "{found:?}");
    }
}

#[test]
fn what_has_nothing_to_show_has_no_card() {
    let mut results = bench_results();
    for run in &mut results.runs {
        run.scatter.clear();
        run.series.erases.fill(0);
    }
    let html = dovetail_report::html(&results);
    draws_and_saves(&html, &["throughput"], |dom| {
        for chart in ["wear", "addresses"] {
            assert!(!dom.contains(&format!("<figure id=\"{chart}\"")), "{chart} has no figures");
        }
    });
}

#[test]
fn a_browser_draws_the_figures_of_papers() {
    let results = bench_results();
    let statement = |values: &[f64], paper_span| Statement {
        what: NASTY.into(),
        verdict: "agrees",
        paper_span,
        values: values.iter().map(|value| (String::new(), *value)).collect(),
        unit: "MiB".into(),
        ..Statement::default()
    };
    let mut figures = Figures::default();
    for name in ["one", "two"] {
        figures.add(&Reproduced {
            name,
            title: NASTY,
            source: "a paper",
            setup: "as there",
            statements: vec![statement(&[2.5], Some((1.0, 2.0))), statement(&[1.0; 9], None)],
            results: &results,
        });
    }
    let html = figures.html(&Provenance::default());
    draws_and_saves(&html, &["one-curves", "one-runs", "two-curves", "two-runs"], |dom| {
        saves_svg(dom, "two-statements", &["paper", "1 to 2 MiB", "2.5 MiB", "(agrees)"]);
    });
}

#[test]
fn a_browser_draws_every_chart_of_a_replay_without_a_complaint() {
    let charts = [
        "overview",
        "throughput",
        "calls",
        "device-waf",
        "write-latency",
        "flush-latency",
        "load",
        "cleaning",
        "map-memory",
        "cdf",
        "addresses",
        "sizes",
        "wear",
        "programs",
        "dies",
    ];
    draws(&dovetail_report::html(&results()), &charts);
}

/// Three in four bytes are of a ramp: calls asked for them, and the file system adds nothing.
#[test]
fn a_ramp_is_nothing_that_the_file_system_added() {
    let shows = |ramp_written_bytes: u64| {
        let mut results = bench_results();
        for run in &mut results.runs {
            run.totals.written_bytes = 4 << 20;
            run.totals.ramp_written_bytes = ramp_written_bytes;
            run.totals.drive.written_blocks = 4096;
            run.totals.device_waf = Some(1.0);
        }
        let is_added = std::cell::Cell::new(false);
        draws_and_saves(&dovetail_report::html(&results), &["overview"], |dom| {
            let figure = dom.split("<figure id=\"overview\"").nth(1).unwrap();
            let figure = figure.split("</figure>").next().unwrap();
            is_added.set(figure.contains("Added by the file system"));
        });
        is_added.get()
    };
    assert!(is_without_chromium() || (shows(0) && !shows(12 << 20)));
}

#[test]
fn a_browser_draws_every_chart_of_a_bench_without_a_complaint() {
    let curves = [
        "throughput",
        "calls",
        "fs-waf",
        "device-waf",
        "write-latency",
        "load",
        "write-size",
        "events",
    ];
    let over_volume = curves.map(|curve| format!("{curve}-written"));
    let others =
        ["overview", "causes", "programs", "cdf", "addresses", "sizes", "segments", "dies"];
    let charts: Vec<&str> =
        curves.into_iter().chain(over_volume.iter().map(String::as_str)).chain(others).collect();
    draws(&dovetail_report::html(&bench_results()), &charts);
}
