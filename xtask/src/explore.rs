//! `cargo xtask crash-explore`: a million power cuts of whole stacks, piece by piece, so that it
//! can be stopped and goes on where it was. Remove `target/crash-explore` to begin anew, as after a
//! change of the code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::mounts::dovetail;
use crate::run;

/// Stacks that come with dovetail, and two with other promises.
const STACKS: [&str; 13] = [
    "f2fs",
    "f2fs-strict.toml",
    "f2fs-lfs",
    "f2fs-gc-remap",
    "rm-ipu",
    "rm-ipu-fsync",
    "rm-ipu-adaptive",
    "iplfs",
    "ext4",
    "ext4-journal.toml",
    "ext3",
    "fsdv-ext4",
    "fsdv-ext3",
];

/// Stacks of this target: name, the stack that they change, mount options.
const OWN: [(&str, &str, &str); 2] =
    [("f2fs-strict", "f2fs", "fsync_mode=strict"), ("ext4-journal", "ext4", "data=journal")];

/// A job that every stack plays.
struct Job {
    /// Names its results.
    name: &'static str,
    options: &'static [&'static str],
    pieces: u64,
    /// It ends as soon as there are enough cuts.
    is_filling: bool,
}

/// The jobs.
const JOBS: [Job; 4] = [
    Job { name: "ace-1", options: &["ace-1", "--cuts", "8"], pieces: 2, is_filling: false },
    Job {
        name: "ace-2",
        options: &["ace-2", "--count", "10000", "--cuts", "3"],
        pieces: 20,
        is_filling: false,
    },
    Job {
        name: "small-memory",
        options: &["random", "--seeds", "0..200", "--cuts", "12", "--memory", "160KiB"],
        pieces: 5,
        is_filling: false,
    },
    Job {
        name: "random",
        options: &["random", "--seeds", "0..2000", "--cuts", "24"],
        pieces: 50,
        is_filling: true,
    },
];

/// Power cuts that are wanted in all.
const CUTS: u64 = 1_000_000;

/// Explores until there are as many cuts as asked for, then renews the table in
/// docs/fault-model.md.
pub(crate) fn explore(arguments: &[String]) -> Result<(), String> {
    let wanted = match arguments.first() {
        Some(text) => text.parse().map_err(|_| format!("{text} is no number of cuts"))?,
        None => CUTS,
    };
    let program = dovetail()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = root.join("target/crash-explore");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    write_stacks(&root, &folder)?;
    for (job, piece) in pieces() {
        for stack in STACKS {
            if sum(&results(&folder)?).0 >= wanted && job.is_filling {
                return finish(&root, &folder, wanted);
            }
            let name = stack.trim_end_matches(".toml");
            let file = folder.join(format!("{}-{piece:02}-{name}.json", job.name));
            if !file.exists() {
                println!("{} {piece}/{} on {name}", job.name, job.pieces);
                one(&program, &folder, job, piece, stack, &file)?;
            }
        }
    }
    finish(&root, &folder, wanted)
}

/// All pieces of the first jobs, then of the last one, in the order in which they are played.
fn pieces() -> impl Iterator<Item = (&'static Job, u64)> {
    JOBS.iter().flat_map(|job| (1..=job.pieces).map(move |piece| (job, piece)))
}

fn write_stacks(root: &Path, folder: &Path) -> Result<(), String> {
    for (name, base, mount) in OWN {
        let path = root.join("stacks").join(format!("{base}.toml"));
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if !text.contains("mount = \"\"") {
            return Err(format!("{}: it has mount options of its own", path.display()));
        }
        let text = text.replace("mount = \"\"", &format!("mount = \"{mount}\""));
        let text = text.replace(&format!("name = \"{base}\""), &format!("name = \"{name}\""));
        let path = folder.join(format!("{name}.toml"));
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// One piece. Its results appear under their name only when it has ended.
fn one(
    program: &Path,
    folder: &Path,
    job: &Job,
    piece: u64,
    stack: &str,
    file: &Path,
) -> Result<(), String> {
    let unfinished = file.with_extension("unfinished");
    let part = format!("{piece}/{}", job.pieces);
    let mut command = Command::new(program);
    command.current_dir(folder).arg("crash").args(job.options);
    command.args(["--stack", stack, "--part", &part]);
    command.arg(format!("--json={}", unfinished.display())).stdout(Stdio::null());
    let ran = run(&mut command);
    if let Err(error) = ran {
        let kept = file.with_extension("violations");
        let _ = fs::rename(&unfinished, &kept); // a run that was stopped has none
        return Err(format!("{error}; what it found is in {}", kept.display()));
    }
    fs::rename(&unfinished, file).map_err(|error| format!("{}: {error}", file.display()))
}

/// The results so far, by stack.
fn results(folder: &Path) -> Result<BTreeMap<String, Vec<Value>>, String> {
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    for path in files {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| failed(&error))?;
        let value: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        for stack in value["stacks"].as_array().into_iter().flatten() {
            all.entry(stack["stack"].as_str().unwrap_or("").into())
                .or_default()
                .push(stack.clone());
        }
    }
    Ok(all)
}

fn count(pieces: &[Value], field: &str) -> u64 {
    pieces.iter().filter_map(|piece| piece[field].as_u64()).sum()
}

/// Cuts and violations of all stacks.
fn sum(all: &BTreeMap<String, Vec<Value>>) -> (u64, usize) {
    let cuts = |pieces: &Vec<Value>| count(pieces, "cuts") + count(pieces, "cuts_in_recovery");
    let violations = |piece: &Value| piece["violations"].as_array().map_or(0, Vec::len);
    (all.values().map(cuts).sum(), all.values().flatten().map(violations).sum())
}

/// The mean of a distribution over all cuts.
fn mean(pieces: &[Value], field: &str) -> f64 {
    let sum: f64 = pieces
        .iter()
        .filter_map(|piece| Some(piece[field]["mean"].as_f64()? * piece["cuts"].as_f64()?))
        .sum();
    sum / (count(pieces, "cuts") as f64).max(1.0)
}

fn finish(root: &Path, folder: &Path, wanted: u64) -> Result<(), String> {
    let all = results(folder)?;
    let (cuts, violations) = sum(&all);
    let mut table = String::from(
        "| stack | runs | operations | fsyncs, syncs | cuts | in recovery | violations | old | new | mixed | absent | \
         operations lost | ready, ms | blocks read |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (stack, pieces) in &all {
        table += &row(stack, pieces);
    }
    let text = format!("{table}\n{cuts} cuts in all, {violations} violations.\n");
    println!("{text}");
    renew(&root.join("docs/fault-model.md"), &text)?;
    if cuts < wanted {
        Err(format!("{cuts} cuts of {wanted}: raise the seeds of JOBS and begin anew"))
    } else {
        Ok(())
    }
}

fn row(stack: &str, pieces: &[Value]) -> String {
    let number = |field: &str| count(pieces, field);
    let violations: usize =
        pieces.iter().map(|piece| piece["violations"].as_array().map_or(0, Vec::len)).sum();
    let shares = ["old", "new", "mixed", "absent"].map(number);
    let all: u64 = shares.iter().sum();
    let shares = shares
        .map(|share| format!("{:.1} %", 100.0 * share as f64 / all.max(1) as f64))
        .join(" | ");
    format!(
        "| {stack} | {} | {} | {} | {} | {} | {violations} | {shares} | {:.2} | {:.0} + {:.1} | {:.0} |\n",
        number("runs"),
        number("operations"),
        number("promises"),
        number("cuts"),
        number("cuts_in_recovery"),
        mean(pieces, "lost_operations"),
        mean(pieces, "drive_ms"),
        mean(pieces, "mount_ms"),
        mean(pieces, "blocks_read"),
    )
}

/// Puts the table between its marks.
fn renew(path: &Path, table: &str) -> Result<(), String> {
    const BEGIN: &str = "<!-- crash-explore -->\n";
    const END: &str = "<!-- end -->";
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    let (before, rest) =
        text.split_once(BEGIN).ok_or_else(|| failed(&"the mark of the table is missing"))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| failed(&"the table's end is missing"))?;
    fs::write(path, [before, BEGIN, table, END, after].concat()).map_err(|error| failed(&error))
}
