//! The jobs that Linux 6.12 ran (`data/README.md`), run here: the same job file, partition, mkfs
//! and options.
//!
//! `cargo xtask truth` runs all of them and renews the table in `docs/bench-against-linux.md`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test ends where something fails")]

use std::fmt::Write as _;

use dovetail_lab::bench::{Experiment, Fill, FillAmount, FillWith, Source, Stack};
use dovetail_lab::results::RunResult;
use serde_json::Value;

const KERNEL: &str = include_str!("data/linux-6.12-fs.jsonl");

/// A figure of the kernel's beside ours.
struct Row {
    case: String,
    what: &'static str,
    kernel: f64,
    ours: f64,
    /// Largest accepted factor between the two.
    limit: f64,
}

impl Row {
    fn is_near(&self) -> bool {
        self.ours <= self.kernel * self.limit && self.ours >= self.kernel / self.limit
    }

    fn line(&self) -> String {
        let off = (self.ours / self.kernel - 1.0) * 100.0;
        let limit = match self.limit {
            limit if limit < 2.0 => format!("{:.0} %", (limit - 1.0) * 100.0),
            limit => format!("a factor of {limit:.0}"),
        };
        let shown =
            |value: f64| if value < 1000.0 { format!("{value:.1}") } else { format!("{value:.0}") };
        let verdict = if self.is_near() { "" } else { "**beyond**" };
        format!(
            "| {} | {} | {} | {} | {off:+.1} % | {limit} | {verdict} |",
            self.case,
            self.what,
            shown(self.kernel),
            shown(self.ours)
        )
    }
}

/// The kernel's line of a case.
fn kernel(case: &str, part: Option<&str>) -> Value {
    let lines = KERNEL.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_it = |line: &Value| line["case"] == case && line["part"].as_str() == part;
    lines.into_iter().find(is_it).unwrap()
}

fn number(line: &Value, name: &str) -> f64 {
    line[name].as_f64().unwrap()
}

/// The stack that the kernel had, by its name in the measurements.
fn stack(name: &str, disk: &str) -> Stack {
    let mut stack = Stack::load(name).unwrap();
    stack.partition = Some(disk.into());
    stack.memory = "4GiB".into();
    if name == "f2fs" {
        stack.mount = "alloc_mode=default".into();
        stack.sysfs.insert("ipu_policy".into(), toml::Value::Integer(16));
    }
    stack
}

fn run(job: &str, stack: &Stack, fill: Option<Fill>) -> RunResult {
    let source = Source::fio(job, "truth.fio", &[]).unwrap();
    let stacks = std::slice::from_ref(stack);
    let experiment = Experiment { fill, final_sync: true, ..Experiment::new(&source, stacks) };
    let (mut results, failures) = experiment.run(1, &|_| {});
    assert!(failures.is_empty(), "{}", failures[0]);
    let run = results.runs.remove(0);
    assert_eq!(run.error, None);
    run
}

/// Bytes, requests and flushes of the writes.
fn writes(case: &str, line: &Value, run: &RunResult, limit: f64) -> Vec<Row> {
    let row = |what, kernel, ours, limit| Row { case: case.into(), what, kernel, ours, limit };
    let (ours, requests) = (&run.requests.by_kind.write, number(line, "write_reqs"));
    let bytes = number(line, "write_bytes");
    vec![
        row("bytes written", bytes, ours.bytes as f64, limit),
        row("KiB a write", bytes / requests / 1024.0, ours.mean_kib, 1.15),
        row(
            "flushes",
            number(line, "flushes"),
            (run.requests.by_kind.flush.count + run.requests.merged_flushes) as f64,
            1.05,
        ),
    ]
}

/// ext4's commits hang on how many fsyncs fall into a tick of the clock.
fn limit_of_bytes(fs: &str) -> f64 {
    if fs == "ext4" { 1.1 } else { 1.05 }
}

fn meta(fs: &str, size: &str) -> Vec<Row> {
    let job = format!("[update]\nrw=randwrite\nbs=4k\nsize={size}\nfsync=10\noverwrite=1\n");
    let case = format!("meta {fs} {size}");
    writes(&case, &kernel(&case, None), &run(&job, &stack(fs, "32GiB"), None), limit_of_bytes(fs))
}

fn frag(fs: &str) -> Vec<Row> {
    let job = "[global]\nfilename=file\nbs=4k\nsize=2g\n[update]\nrw=randwrite\nio_size=512m\nfsync=10\noverwrite=1\nend_fsync=1\n\
               [read]\nstonewall\nrw=read\nbs=1m\n";
    let case = format!("frag {fs}");
    let run = run(job, &stack(fs, "32GiB"), None);
    let mut rows = writes(&case, &kernel(&case, Some("writes")), &run, limit_of_bytes(fs));
    let read = kernel(&case, Some("seqread buffered"));
    let kib = number(&read, "read_bytes") / number(&read, "read_reqs") / 1024.0;
    rows.push(Row {
        case,
        what: "KiB a read, in order",
        kernel: kib,
        ours: run.requests.by_kind.read.mean_kib,
        limit: 1.1,
    });
    rows
}

fn gc(fs: &str) -> Vec<Row> {
    let mut job = String::from(
        "[global]\nrw=randwrite\nbs=4k\nsize=256m\nnumjobs=4\nfilename_format=f.$jobnum\nfsync=10\noverwrite=1\ngroup_reporting\n",
    );
    for pass in 1..=8 {
        write!(job, "[pass{pass}]\nstonewall\nrandseed={pass}\n").unwrap();
    }
    let case = format!("gc {fs}");
    let fill = Fill { amount: FillAmount::Bytes(2 << 30), with: FillWith::Large };
    let run = run(&job, &stack(fs, "4GiB"), Some(fill));
    let line = kernel(&case, Some("total"));
    let mut rows = writes(&case, &line, &run, 1.1);
    if fs == "ext4" {
        return rows;
    }
    let event = |name: &str| run.events.get(name).copied().unwrap_or(0) as f64;
    let row = |what, kernel, ours, limit| Row { case: case.clone(), what, kernel, ours, limit };
    let inner = &line["f2fs"];
    rows.push(row("checkpoints", number(inner, "cp_calls"), event("checkpoints"), 2.0));
    if fs == "f2fs" {
        rows.push(row("blocks into holes", number(inner, "ssr_blocks"), event("ssr_blocks"), 1.25));
    }
    let cleanings = event("foreground_cleanings") + event("background_cleanings");
    rows.push(row("sections cleaned", number(inner, "gc_calls"), cleanings, 2.0));
    rows.push(row("blocks moved", number(inner, "gc_moved"), event("moved_blocks"), 2.0));
    rows
}

fn check(rows: &[Row]) {
    rows.iter().for_each(|row| println!("{}", row.line()));
    let far: Vec<_> = rows.iter().filter(|row| !row.is_near()).map(Row::line).collect();
    assert!(far.is_empty(), "beyond the limits:\n{}", far.join("\n"));
}

#[test]
fn overwrites_write_what_linux_writes() {
    check(&meta("f2fs", "4m"));
    check(&meta("f2fs-lfs", "4m"));
    check(&meta("f2fs", "1g"));
}

/// All cases; what is beyond its limit is marked in the table, and known.
#[test]
#[ignore = "half a minute in release: `cargo xtask truth`"]
fn the_table_in_the_docs() {
    let mut rows = Vec::new();
    for fs in ["f2fs", "f2fs-lfs"] {
        rows.extend([meta(fs, "4m"), meta(fs, "1g"), frag(fs), gc(fs)].into_iter().flatten());
    }
    rows.extend(
        [meta("ext4", "4m"), meta("ext4", "1g"), frag("ext4"), gc("ext4")].into_iter().flatten(),
    );
    let mut table = String::from(
        "| case | figure | Linux 6.12 | Dovetail | off by | limit | |\n|---|---|---:|---:|---:|---|---|\n",
    );
    rows.iter().for_each(|row| table.push_str(&(row.line() + "\n")));
    rows.iter().filter(|row| !row.is_near()).for_each(|row| println!("beyond: {}", row.line()));
    println!("{table}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bench-against-linux.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (head, rest) = text.split_once("<!-- table -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- end -->").unwrap();
    std::fs::write(path, format!("{head}<!-- table -->\n{table}<!-- end -->{tail}")).unwrap();
}
