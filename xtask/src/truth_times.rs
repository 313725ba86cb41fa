//! Times of our file systems beside those of a real kernel: the same jobs on the same drive, the
//! kernel in virtual time.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::run;

/// Ours and, with `linux-` before the name, the kernel's.
const SYSTEMS: [&str; 3] = ["f2fs", "f2fs-lfs", "ext4"];
const SCALE: &str = "1/32";
/// Shares by which ours may differ: the time of the job, the 99th percentile of fsync, and the time
/// of the mount after a power cut.
const LIMITS: [f64; 3] = [0.15, 0.25, 0.25];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn folder() -> PathBuf {
    root().join("xtask/truth-times")
}

/// Runs the jobs that are named, or all, and writes the table of `docs/linux-times.md` anew.
pub(crate) fn truth_times(arguments: &[String]) -> Result<(), String> {
    run(Command::new(env!("CARGO")).args(["build", "-p", "dovetail-cli"]))?;
    let mut rows = load()?;
    for job in jobs()? {
        if !arguments.is_empty() && !arguments.contains(&job) {
            continue;
        }
        println!("{job}");
        let runs = perform(&job)?;
        rows.insert(job, runs);
        save(&rows)?;
    }
    render(&rows)
}

type Rows = serde_json::Map<String, Value>;

fn results() -> PathBuf {
    root().join("docs/linux-times.json")
}

fn load() -> Result<Rows, String> {
    match fs::read_to_string(results()) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| error.to_string()),
        Err(_) => Ok(Rows::new()),
    }
}

fn save(rows: &Rows) -> Result<(), String> {
    let text = serde_json::to_string_pretty(rows).map_err(|error| error.to_string())?;
    fs::write(results(), text + "\n").map_err(|error| error.to_string())
}

/// The names of the jobs, in their order.
fn jobs() -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder()).map_err(|error| error.to_string())?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let jobs = paths.filter(|path| path.extension().is_some_and(|extension| extension == "fio"));
    let mut names: Vec<String> =
        jobs.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

/// Runs a job on all stacks; returns what is kept of each run.
fn perform(job: &str) -> Result<Value, String> {
    let stacks: Vec<String> = SYSTEMS
        .iter()
        .flat_map(|system| [format!("linux-{system}"), (*system).to_owned()])
        .map(|name| folder().join(name + ".toml").display().to_string())
        .collect();
    let output = Command::new(root().join("target/debug/dovetail"))
        .arg("bench")
        .arg(folder().join(format!("{job}.fio")))
        .args([
            "--stack",
            &stacks.join(","),
            "--scale",
            SCALE,
            "--jobs",
            "1",
            "--restart",
            "--json",
        ])
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{job}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let results: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let runs = results["runs"].as_array().ok_or("no runs in the results")?;
    Ok(runs.iter().map(|run| (run["label"].as_str().unwrap_or(""), kept(run))).collect())
}

/// The figures of a run that the table shows.
fn kept(run: &Value) -> Value {
    let requests = &run["requests"];
    // fsync on close is no call of fio's that it times
    let percentile = |name: &str| run["latency"]["flush"][name].clone();
    serde_json::json!({
        "elapsed_s": run["totals"]["elapsed_s"],
        "fsync_p50_ns": percentile("p50_ns"),
        "fsync_p99_ns": percentile("p99_ns"),
        "reads": requests["read"]["count"],
        "writes": requests["write"]["count"],
        "written_bytes": requests["write"]["bytes"],
        "flushes": requests["flush"]["count"],
        "mount_s": run["restart"]["mount_s"],
        "mount_read_blocks": run["restart"]["mount_read_blocks"],
    })
}

fn render(rows: &Rows) -> Result<(), String> {
    let path = root().join("docs/linux-times.md");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    const BEGIN: &str = "<!-- the table: cargo xtask truth-times -->\n";
    const END: &str = "<!-- end of the table -->";
    let (head, rest) = text.split_once(BEGIN).ok_or("the page has no place for the table")?;
    let (_, tail) = rest.split_once(END).ok_or("the page has no end of the table")?;
    let table = table(rows)?;
    fs::write(path, format!("{head}{BEGIN}{table}{END}{tail}")).map_err(|error| error.to_string())
}

/// A row for each job and system: the kernel's figures, ours, and where ours are beyond a limit.
fn table(rows: &Rows) -> Result<String, String> {
    let mut text = String::from(
        "| job | file system | time, s | fsync p50, us | fsync p99, us | writes | MiB written | flushes | reads | mount, ms | blocks read |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut tallies = LIMITS.map(|limit| Tally { limit, ..Tally::default() });
    for (job, runs) in rows {
        for system in SYSTEMS {
            let run = |name: &str| match &runs[name] {
                Value::Null => Err(format!("{job}: there is no run of {name}: run it again")),
                run => Ok(run),
            };
            let cell = Cells { theirs: run(&format!("linux-{system}"))?, ours: run(system)? };
            let [times, tails, mounts] = &mut tallies;
            let beyond = [
                times.count(cell.both("elapsed_s")),
                tails.count(cell.both("fsync_p99_ns")),
                mounts.count(cell.both("mount_s")),
            ];
            let marked =
                |text: String, beyond: bool| if beyond { format!("**{text}**") } else { text };
            writeln!(
                text,
                "| {job} | {system} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                marked(cell.show("elapsed_s", 1.0, 3), beyond[0]),
                cell.show("fsync_p50_ns", 1e3, 0),
                marked(cell.show("fsync_p99_ns", 1e3, 0), beyond[1]),
                cell.show("writes", 1.0, 0),
                cell.show("written_bytes", 1_048_576.0, 1),
                cell.show("flushes", 1.0, 0),
                cell.show("reads", 1.0, 0),
                marked(cell.show("mount_s", 1e-3, 1), beyond[2]),
                cell.show("mount_read_blocks", 1.0, 0),
            )
            .map_err(|error| error.to_string())?;
        }
    }
    let [times, tails, mounts] = tallies;
    writeln!(
        text,
        "\n{} of {} times, {} of {} p99 and {} of {} mounts are within their limits.",
        times.within, times.all, tails.within, tails.all, mounts.within, mounts.all
    )
    .map_err(|error| error.to_string())?;
    Ok(text)
}

/// Counter of figures that both runs have, and of those within a limit.
#[derive(Default)]
struct Tally {
    limit: f64,
    within: u32,
    all: u32,
}

impl Tally {
    /// Counts the kernel's figure and ours; true if ours is beyond the limit.
    fn count(&mut self, both: Option<(f64, f64)>) -> bool {
        let Some((theirs, ours)) = both.filter(|(theirs, _)| *theirs > 0.0) else { return false };
        let is_beyond = (ours / theirs - 1.0).abs() > self.limit;
        self.all += 1;
        self.within += u32::from(!is_beyond);
        is_beyond
    }
}

/// Figures of one row.
struct Cells<'a> {
    theirs: &'a Value,
    ours: &'a Value,
}

impl Cells<'_> {
    fn both(&self, key: &str) -> Option<(f64, f64)> {
        Some((self.theirs[key].as_f64()?, self.ours[key].as_f64()?))
    }

    /// The kernel's figure and ours.
    fn show(&self, key: &str, unit: f64, digits: usize) -> String {
        match self.both(key) {
            Some((theirs, ours)) if theirs != 0.0 || ours != 0.0 => {
                let shown = |value: f64| match value {
                    0.0 => "-".to_owned(),
                    _ => format!("{:.digits$}", value / unit),
                };
                format!("{}, {}", shown(theirs), shown(ours))
            }
            _ => String::new(),
        }
    }
}
