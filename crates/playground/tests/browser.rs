//! A real browser as referee of the page: it opens the file, runs the simulator, and shows what a
//! reader sees.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use dovetail_lab::Prepared;
use dovetail_lab::bench::{Experiment, Source, Stack};
use dovetail_lab::results::Results;
use serde_json::json;

use crate::devtools::Browser;

/// A workload of a second.
const JOB: &str = "[update]\nrw=randwrite\nbs=4k\nnumjobs=2\nsize=8g\nio_size=8g\nnorandommap\n\
                   overwrite=1\nfsync=10\n";

/// The page, built once; `None` where that or its referee is declared as absent.
fn page() -> Option<&'static PathBuf> {
    static PAGE: OnceLock<PathBuf> = OnceLock::new();
    let absent = std::env::var("DOVETAIL_WITHOUT").unwrap_or_default();
    if absent.split(',').any(|name| name == "chromium" || name == "wasm") {
        return None; // cargo xtask test says so
    }
    Some(PAGE.get_or_init(|| {
        let built = Command::new(env!("CARGO"))
            .args(["run", "--quiet", "--package", "xtask", "--", "playground"])
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(built.status.success(), "cargo xtask playground failed");
        PathBuf::from(String::from_utf8(built.stdout).unwrap().trim())
    }))
}

/// Chooses stacks and writes the job.
fn choose(browser: &mut Browser, stacks: &[&str], job: &str) {
    let chosen = json!(stacks);
    browser.value(&format!(
        "document.querySelectorAll('#stacks input').forEach(input => {{ input.checked = {chosen}.includes(input.value); }}); \
         playground.describe(true); document.getElementById('job').value = {}; 0",
        json!(job)
    ));
}

/// The console is silent, no network was asked for anything, and nothing is wider than the window.
fn is_sound(browser: &mut Browser) {
    assert_eq!(browser.complaints(), Vec::<&serde_json::Value>::new());
    let local = |url: &&str| ["file:", "blob:", "data:"].iter().any(|start| url.starts_with(start));
    let others: Vec<_> = browser.requests().into_iter().filter(|url| !local(url)).collect();
    assert_eq!(others, Vec::<&str>::new());
    let widths = browser.value("[document.documentElement.scrollWidth, innerWidth]");
    assert!(widths[0].as_u64() <= widths[1].as_u64(), "wider than the window: {widths}");
}

fn runs_at(width: u32, is_dark: bool) {
    let Some(page) = page() else { return };
    let mut browser = Browser::start();
    browser.open(page, width, is_dark);
    is_sound(&mut browser);
    choose(&mut browser, &["f2fs", "ext4"], JOB);
    browser.value("document.getElementById('run').click()");
    browser.wait_for("!playground.isBusy()");
    // the charts follow
    browser.wait_for("document.querySelectorAll('#charts canvas').length >= 3");
    let states = browser.value("playground.runs.map(run => run.where.textContent)");
    assert_eq!(states, json!(["Done", "Done"]));
    for number in 0..2 {
        let shown = browser.value(&format!("playground.runs[{number}].big.textContent"));
        let waf: f64 = shown.as_str().unwrap().parse().unwrap();
        assert!((1.0..100.0).contains(&waf), "{waf}");
        let painted = browser.value(&format!(
            "(() => {{ const canvas = playground.runs[{number}].drive.canvas; \
               const data = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer); \
               return new Set(data).size; }})()"
        ));
        assert!(painted.as_u64() > Some(3), "{painted} colours in the map of the flash");
    }
    let verdict = browser.value("document.getElementById('verdict').textContent");
    assert!(verdict.as_str().unwrap().contains("times"), "{verdict}");
    is_sound(&mut browser);
}

#[test]
fn it_runs_in_a_wide_window() {
    runs_at(1280, false);
}

#[test]
fn it_runs_on_a_phone_in_the_dark() {
    runs_at(400, true);
}

#[test]
fn its_results_are_those_of_the_command_line() {
    let Some(page) = page() else { return };
    let names = ["f2fs", "ext4", "rm-ipu"];
    let stacks = names.map(|name| Stack::load(name).unwrap());
    let source = Source::fio(JOB, "random-updates.fio", &[]).unwrap();
    let experiment = Experiment {
        source: &source,
        fill: None,
        stacks: &stacks,
        scale: "1/64".parse().unwrap(),
        seed: 1,
        repetitions: 1,
        stop: &AtomicBool::new(false),
        precondition: false,
        drives: &Prepared::none(),
        final_sync: false,
        restart: false,
        progress: &|_, _| {},
        finished: None,
    };
    let (native, failures) = experiment.run(1, &|_| {});
    assert!(failures.is_empty(), "{failures:?}");
    let read = |text: &str| serde_json::from_str::<Results>(text).unwrap();

    let mut browser = Browser::start();
    browser.open(page, 1280, false);
    choose(&mut browser, &names, JOB);
    browser.value("document.getElementById('run').click()");
    browser.wait_for("!playground.isBusy()");
    let shown = browser.value("JSON.stringify(playground.results())");
    let (mut there, here) =
        (read(shown.as_str().unwrap()), read(&serde_json::to_string(&native).unwrap()));
    // the page has the stacks in the order of its list
    there.runs.sort_by_key(|run| names.iter().position(|name| *name == run.label));
    assert_eq!(there.runs.len(), here.runs.len());
    for (there, here) in there.runs.iter().zip(&here.runs) {
        assert_eq!(there, here);
    }
    assert_eq!((there.workload, there.scale, there.seed), (here.workload, here.scale, here.seed));
}

#[test]
fn a_run_can_be_stopped_and_a_wrong_job_is_told() {
    let Some(page) = page() else { return };
    let mut browser = Browser::start();
    browser.open(page, 1280, false);
    choose(&mut browser, &["f2fs"], &JOB.replace("io_size=8g", "io_size=1000g"));
    browser.value("document.getElementById('run').click()");
    browser.wait_for("playground.runs[0].figures !== null");
    browser.value("document.getElementById('stop').click()");
    let stopped = browser.value("[playground.isBusy(), playground.runs[0].state]");
    assert_eq!(stopped, json!([false, "stopped"]));

    choose(&mut browser, &["f2fs"], "[a]\nrw=sideways\nsize=1m\n");
    browser.value("document.getElementById('run').click()");
    browser.wait_for("!playground.isBusy()");
    let told = browser.value("playground.runs[0].where.textContent");
    assert!(told.as_str().unwrap().contains("sideways"), "{told}");
    is_sound(&mut browser);
}
