//! All figures of the papers, run one after the other, and the table of their statements.
//!
//! `docs/figures/reduced.json` and `full.json` hold the statements of the last runs, and
//! `docs/figures.md` and the tables of `docs/answers.md` are made of them: nothing in them is typed.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::{answers_page, run};

const SIZES: [&str; 2] = ["reduced", "full"];
/// Figures that cannot differ: workloads that are made after a paper's figures of them, and the
/// arithmetic of a paper, done again.
const INPUTS: [&str; 2] = ["mapcache-table-1", "iplfs-tables-1-2"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn results_of(size: &str) -> PathBuf {
    root().join(format!("docs/figures/{size}.json"))
}

/// The statements of the last runs at a size, by figure.
fn load(size: &str) -> Result<Map<String, Value>, String> {
    let path = results_of(size);
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(Map::new()) };
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs figures and renews the table: `[--full] [FIGURE...]`. Without a name all of them, but those
/// that this commit has run already. A figure that was ended goes on with the runs that are left,
/// if the program is the same. `--render` renews the table alone.
pub(crate) fn figures(arguments: &[String]) -> Result<(), String> {
    if arguments == ["--render"] {
        return render();
    }
    let all = all_figures()?;
    let (sizes, named): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| *argument == "--full");
    let is_full = !sizes.is_empty();
    if let Some(unknown) = named.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no figure {unknown}; there are: {}", all.join(", ")));
    }
    let size = SIZES[usize::from(is_full)];
    run(Command::new(env!("CARGO")).args(["build", "--release", "-p", "dovetail-cli"]))?;
    let commit = commit()?;
    let mut done = load(size)?;
    done.retain(|name, _| all.contains(name));
    let mut failed = Vec::new();
    for name in all {
        let is_done = done.get(&name).is_some_and(|figure| figure["commit"] == commit.as_str());
        let is_wanted = if named.is_empty() { !is_done } else { named.contains(&&name) };
        if !is_wanted {
            continue;
        }
        match perform(&name, size) {
            Ok(mut figure) => {
                figure["commit"] = commit.as_str().into();
                done.insert(name.clone(), figure);
                save(&results_of(size), &done)?;
                let runs = runs_of(&name, size);
                std::fs::remove_dir_all(&runs)
                    .map_err(|error| format!("{}: {error}", runs.display()))?;
            }
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    render()?;
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// The commit that is run; with "-dirty" if code has changed since.
fn commit() -> Result<String, String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root()).output();
        let output = output.map_err(|error| format!("git cannot be started: {error}"))?;
        Ok::<_, String>(String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let head = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed =
        git(&["status", "--porcelain", "--", "crates", "profiles", "stacks", "examples"])?;
    Ok(if changed.is_empty() { head } else { format!("{head}-dirty") })
}

/// The names of all figures, in the order of the papers.
fn all_figures() -> Result<Vec<String>, String> {
    let path = root().join("crates/papers/src/lib.rs");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path:?}: {error}"))?;
    let modules = text.lines().filter_map(|line| line.trim().strip_prefix('&'));
    let modules = modules.filter_map(|line| line.strip_suffix("::FIGURE,"));
    modules.map(|module| name_of(&root().join(format!("crates/papers/src/{module}.rs")))).collect()
}

/// The name of the figure in a file.
fn name_of(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path:?}: {error}"))?;
    let name =
        text.lines().find_map(|line| line.trim().strip_prefix("name: \"")?.strip_suffix("\","));
    name.map(str::to_string).ok_or_else(|| format!("{path:?} names no figure"))
}

/// The folder of a figure's finished runs, until all are.
fn runs_of(name: &str, size: &str) -> PathBuf {
    root().join(format!("target/figure-runs-{name}-{size}"))
}

/// Runs a figure; its scale and its statements.
fn perform(name: &str, size: &str) -> Result<Value, String> {
    let file = root().join(format!("target/figure-{name}.json"));
    let mut command = Command::new(root().join("target/release/dovetail"));
    command.args(["reproduce", name, "--json"]).arg(&file);
    command.arg("--keep").arg(runs_of(name, size));
    run(command.args((size == "full").then_some("--full")))?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let all: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let figure = &all[name];
    Ok(json!({ "scale": figure["results"]["scale"], "comparisons": figure["comparisons"] }))
}

fn save(path: &Path, figures: &Map<String, Value>) -> Result<(), String> {
    let text = serde_json::to_string_pretty(figures).map_err(|error| error.to_string())?;
    std::fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
}

fn render() -> Result<(), String> {
    let path = root().join("docs/figures.md");
    let page = page(&all_figures()?, &load("reduced")?, &load("full")?);
    std::fs::write(&path, page).map_err(|error| format!("{}: {error}", path.display()))?;
    let path = root().join("docs/answers.md");
    std::fs::write(&path, answers_page()?).map_err(|error| format!("{}: {error}", path.display()))
}

/// `docs/answers.md` with the tables of the last run.
fn answers_page() -> Result<String, String> {
    let path = root().join("docs/answers.md");
    let there = std::fs::read_to_string(&path);
    let there = there.map_err(|error| format!("{}: {error}", path.display()))?;
    let reduced = load("reduced")?;
    answers_page::renewed(&there, reduced.get("answers").map_or(&[], comparisons))
}

/// Is true for a row that counts: a statement that a paper makes of its results. Our own
/// statements do not, nor do inputs that are held against their source.
fn counts(name: &str, row: &Value) -> bool {
    let is_ours = row["paper"].as_str().is_some_and(|paper| paper.starts_with("none: "));
    !is_ours && !INPUTS.contains(&name)
}

/// The rows that count.
fn counted(results: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    results
        .iter()
        .flat_map(|(name, figure)| comparisons(figure).iter().filter(move |row| counts(name, row)))
}

/// The page: a table for each figure, and how many statements agree.
fn page(names: &[String], reduced: &Map<String, Value>, full: &Map<String, Value>) -> String {
    let mut page = "# The papers' figures, run again\n\n\
        Made by `cargo xtask figures` (default scales) and `cargo xtask figures --full` (the papers' own sizes). \
        \"Shown\" is a result of ours that no paper makes a statement about. Statements of ours, the inputs of mapcache-table-1 and the arithmetic of iplfs-tables-1-2 are not counted. Causes of what differs, with the \
        experiments that show them: [figures-causes.md](figures-causes.md).\n\n"
        .to_string();
    for (size, results) in SIZES.into_iter().zip([reduced, full]) {
        let count = |verdict: &str| {
            counted(results).filter(|comparison| comparison["verdict"] == verdict).count()
        };
        let (agree, differ) = (count("agrees"), count("differs"));
        if agree + differ > 0 {
            let title =
                if size == "full" { "At the papers' own sizes" } else { "At the default scales" };
            let _ = writeln!(
                page,
                "{title} {agree} of {} statements agree ({:.0} %), in {} figures.\n",
                agree + differ,
                100.0 * agree as f64 / (agree + differ) as f64,
                results.len()
            );
        }
    }
    let missing: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| !full.contains_key(*name)).collect();
    if !missing.is_empty() {
        let _ = writeln!(page, "Not run at full size: {}.\n", missing.join(", "));
    }
    for name in names {
        page += &section(name, reduced.get(name), full.get(name));
    }
    page
}

fn comparisons(figure: &Value) -> &[Value] {
    figure["comparisons"].as_array().map_or(&[], Vec::as_slice)
}

/// A figure's table: its statements in the order of the run at the default scale.
fn section(name: &str, reduced: Option<&Value>, full: Option<&Value>) -> String {
    let Some(first) = reduced.or(full) else { return String::new() };
    let scale = reduced.and_then(|figure| figure["scale"].as_f64()).unwrap_or(1.0);
    let at = if scale < 1.0 { format!("1/{:.0}", 1.0 / scale) } else { "full size".into() };
    let beside = full.filter(|_| scale < 1.0);
    let commit = |figure: &Value| figure["commit"].as_str().unwrap_or_default().to_owned();
    let run_at = match beside.map(commit).filter(|full| *full != commit(first)) {
        Some(full) => format!("{}, at full size at {full}", commit(first)),
        None => commit(first),
    };
    let mut out = format!("## {name}\n\nRun at {run_at}.\n\n| | paper | ours, {at} |");
    out += if beside.is_some() {
        " ours, full size | agreement is | |\n"
    } else {
        " agreement is | |\n"
    };
    out += if beside.is_some() { "|---|---|---|---|---|---|\n" } else { "|---|---|---|---|---|\n" };
    for row in comparisons(first) {
        let same = |figure| comparisons(figure).iter().find(|other| other["what"] == row["what"]);
        let beside_row = beside.and_then(same);
        let other = beside.map(|_| {
            format!(" {} |", beside_row.map_or_else(String::new, |other| cell(&other["ours"])))
        });
        let verdicts = [Some(row), beside_row];
        let verdicts: Vec<&str> =
            verdicts.into_iter().flatten().filter_map(|row| row["verdict"].as_str()).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} |{} {} | {} |",
            cell(&row["what"]),
            cell(&row["paper"]),
            cell(&row["ours"]),
            other.unwrap_or_default(),
            cell(&row["rule"]),
            verdicts.join(", ")
        );
    }
    out + "\n"
}

fn cell(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_what_the_results_say() {
        let page = page(&all_figures().unwrap(), &load("reduced").unwrap(), &load("full").unwrap());
        let there = std::fs::read_to_string(root().join("docs/figures.md")).unwrap();
        assert!(page == there, "docs/figures.md was edited by hand: cargo xtask figures renews it");
    }

    #[test]
    fn the_tables_of_the_answers_are_those_of_the_last_run() {
        let there = std::fs::read_to_string(root().join("docs/answers.md")).unwrap();
        assert!(answers_page().unwrap() == there, "cargo xtask figures --render renews the tables");
    }

    /// Numbers with a point, as a text has them: whole ones are too common.
    fn decimals(text: &str) -> Vec<String> {
        let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
        let words =
            words.map(|word| word.trim_matches('.').trim_end_matches('0').trim_end_matches('.'));
        words.filter(|word| word.contains('.')).map(str::to_string).collect()
    }

    /// Results of a paper must not be put into the drives and stacks that are compared with it.
    #[test]
    fn no_compared_result_is_an_input() {
        let reduced = load("reduced").unwrap();
        let judged = counted(&reduced).filter(|row| row["verdict"] != "shown");
        let results: Vec<String> =
            judged.flat_map(|row| decimals(row["paper"].as_str().unwrap())).collect();
        assert!(results.len() > 20, "{results:?}");
        for folder in ["profiles", "stacks", "crates/workload/personalities"] {
            for file in std::fs::read_dir(root().join(folder)).unwrap() {
                let path = file.unwrap().path();
                let text = std::fs::read_to_string(&path).unwrap();
                let values = text.lines().take_while(|line| *line != "[sources]");
                let values = values.filter_map(|line| line.split_once(" = "));
                let values = values.filter(|(key, _)| *key != "source");
                for (key, value) in values {
                    let found = decimals(value).into_iter().find(|value| results.contains(value));
                    assert_eq!(found, None, "{path:?}: {key} is what a paper reports");
                }
            }
        }
    }

    #[test]
    fn every_figure_has_been_run() {
        let reduced = load("reduced").unwrap();
        let missing: Vec<String> =
            all_figures().unwrap().into_iter().filter(|name| !reduced.contains_key(name)).collect();
        assert!(missing.is_empty(), "cargo xtask figures {}", missing.join(" "));
    }
}
