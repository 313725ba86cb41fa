//! All figures of the papers, run one after the other, and the table of their statements.
//!
//! `docs/figures/reduced.json`, `full.json` and `scales.json` hold the statements of the last runs,
//! and `docs/figures.md` and the tables of `docs/answers.md` are made of them: nothing in them is
//! typed.

mod page;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::{answers_page, run};
use page::{Results, comparisons, list, page};

/// A size at which figures are run.
enum Size {
    /// Each at its default scale.
    Reduced,
    /// The papers' own.
    Full,
    /// Each at several scales, as the command line of `reproduce` takes them.
    Scales(String),
}

impl Size {
    /// The name of the file with its results.
    const fn name(&self) -> &'static str {
        match self {
            Self::Reduced => "reduced",
            Self::Full => "full",
            Self::Scales(_) => "scales",
        }
    }

    fn options(&self) -> Vec<&str> {
        match self {
            Self::Reduced => vec![],
            Self::Full => vec!["--full"],
            Self::Scales(scales) => vec!["--scales", scales],
        }
    }

    /// The part of a figure's results that is kept.
    fn kept(&self, figure: &Value) -> Value {
        match self {
            Self::Reduced | Self::Full => json!({
                "scale": figure["results"]["scale"],
                "comparisons": figure["comparisons"],
            }),
            Self::Scales(_) => {
                let judged = list(figure, "statements").iter().filter(|row| row["rule"] != "");
                json!({ "scales": figure["scales"], "statements": judged.collect::<Vec<_>>() })
            }
        }
    }
}

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

/// The size that is asked for, and the figures.
fn asked(arguments: &[String]) -> Result<(Size, &[String]), String> {
    match arguments {
        [option, names @ ..] if option == "--full" => Ok((Size::Full, names)),
        [option, scales, names @ ..] if option == "--scales" && !names.is_empty() => {
            Ok((Size::Scales(scales.clone()), names))
        }
        [option, ..] if option == "--scales" => {
            Err("--scales takes scales and figures: --scales 1/32,1/16,1/8 answers".into())
        }
        names => Ok((Size::Reduced, names)),
    }
}

/// Runs figures and renews the table: `[--full | --scales LIST] [FIGURE...]`. Without a name all of
/// them, but those that this commit has run already. A figure that was ended goes on with the runs
/// that are left, if the program is the same. `--render` renews the table alone.
pub(crate) fn figures(arguments: &[String]) -> Result<(), String> {
    if arguments == ["--render"] {
        return render();
    }
    let all = all_figures()?;
    let (size, named) = asked(arguments)?;
    if let Some(unknown) = named.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no figure {unknown}; there are: {}", all.join(", ")));
    }
    run(Command::new(env!("CARGO")).args(["build", "--release", "-p", "dovetail-cli"]))?;
    let commit = commit()?;
    let mut done = load(size.name())?;
    done.retain(|name, _| all.contains(name));
    let mut failed = Vec::new();
    for name in all {
        let is_done = done.get(&name).is_some_and(|figure| figure["commit"] == commit.as_str());
        let is_wanted = if named.is_empty() { !is_done } else { named.contains(&name) };
        if !is_wanted {
            continue;
        }
        match perform(&name, &size) {
            Ok(mut figure) => {
                figure["commit"] = commit.as_str().into();
                done.insert(name.clone(), figure);
                save(&results_of(size.name()), &done)?;
                let runs = runs_of(&name, &size);
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
fn runs_of(name: &str, size: &Size) -> PathBuf {
    root().join(format!("target/figure-runs-{name}-{}", size.name()))
}

/// Runs a figure; what is kept of it.
fn perform(name: &str, size: &Size) -> Result<Value, String> {
    let file = root().join(format!("target/figure-{name}.json"));
    let mut command = Command::new(root().join("target/release/dovetail"));
    command.args(["reproduce", name, "--json"]).arg(&file);
    command.arg("--keep").arg(runs_of(name, size));
    run(command.args(size.options()))?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let all: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Ok(size.kept(&all[name]))
}

fn save(path: &Path, figures: &Map<String, Value>) -> Result<(), String> {
    let text = serde_json::to_string_pretty(figures).map_err(|error| error.to_string())?;
    std::fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
}

/// The results of all sizes.
fn results() -> Result<Results, String> {
    Ok(Results { reduced: load("reduced")?, full: load("full")?, scales: load("scales")? })
}

fn render() -> Result<(), String> {
    let path = root().join("docs/figures.md");
    let page = page(&all_figures()?, &results()?);
    std::fs::write(&path, page).map_err(|error| format!("{}: {error}", path.display()))?;
    let path = root().join("docs/answers.md");
    std::fs::write(&path, answers_page()?).map_err(|error| format!("{}: {error}", path.display()))
}

/// `docs/answers.md` with the tables of the last run.
fn answers_page() -> Result<String, String> {
    let path = root().join("docs/answers.md");
    let there = std::fs::read_to_string(&path);
    let there = there.map_err(|error| format!("{}: {error}", path.display()))?;
    let (reduced, full) = (load("reduced")?, load("full")?);
    let [reduced, full] =
        [&reduced, &full].map(|all| all.get("answers").map_or(&[][..], comparisons));
    answers_page::renewed(&there, reduced, full)
}

#[cfg(test)]
mod tests {
    use super::page::counted;
    use super::*;

    #[test]
    fn the_table_is_what_the_results_say() {
        let page = page(&all_figures().unwrap(), &results().unwrap());
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
