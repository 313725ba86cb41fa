//! `--fio-json`: results in the layout of fio's own.

use std::path::{Path, PathBuf};

use dovetail_lab::bench::Source;
use dovetail_lab::results::RunResult;

use crate::Failure;
use crate::output::{Outputs, is_stdout, write};

/// A file for each run: the one that was named, or with several runs one named after each.
pub(super) fn files(
    path: &Path,
    source: &Source,
    labels: &[String],
) -> Result<Vec<PathBuf>, Failure> {
    let other = match source {
        Source::Fio(_) => None,
        Source::Personality(_) => Some("personality"),
        Source::FileTrace(_) => Some("file-level trace"),
    };
    if let Some(kind) = other {
        let name = source.name();
        let message =
            format!("--fio-json is for fio job files, and {name} is a {kind}: give --json");
        return Err(Failure::Usage(message));
    }
    match labels {
        [_] => Ok(vec![path.into()]),
        _ if is_stdout(Some(path)) => Err(Failure::Usage(
            "--fio-json writes a file for each run, and there are several: give --fio-json=FILE"
                .into(),
        )),
        _ => Ok(labels.iter().map(|label| of_run(path, label)).collect()),
    }
}

/// Writes the logs that the job asks for; with several runs their names have the runs' labels.
pub(super) fn write_logs(inputs: &Outputs, runs: &[RunResult]) -> Result<(), Failure> {
    for run in runs {
        for log in &run.fio_logs {
            let label =
                if runs.len() > 1 { format!("-{}", words(&run.label)) } else { String::new() };
            let path = PathBuf::from(format!("{}{label}{}", log.prefix, log.ending));
            inputs.allows("the job's log", &path)?;
            write(&path, &log.text)?;
        }
    }
    Ok(())
}

/// A label as part of a file's name.
fn words(label: &str) -> String {
    let words = label.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// out.json and "f2fs #2" make out-f2fs-2.json.
fn of_run(path: &Path, label: &str) -> PathBuf {
    let label = words(label);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending =
        path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{label}{ending}"))
}

/// Writes the runs that there are to the files of their labels.
pub(super) fn write_all(
    files: &[PathBuf],
    labels: &[String],
    runs: &[RunResult],
) -> Result<(), Failure> {
    for (file, label) in files.iter().zip(labels) {
        let run = runs.iter().find(|run| run.label == *label);
        let Some(fio) = run.and_then(|run| run.fio.as_ref()) else { continue };
        let text = serde_json::to_string_pretty(fio).map_err(Failure::failed)?;
        write(file, &(text + "\n"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_file_of_its_own() {
        for (path, label, expected) in [
            ("out.json", "f2fs", "out-f2fs.json"),
            ("a.b/out", "f2fs-lfs #2", "a.b/out-f2fs-lfs-2"),
            ("/x/out.json", "my/stack.toml", "/x/out-my-stack.toml.json"),
        ] {
            assert_eq!(of_run(Path::new(path), label), PathBuf::from(expected));
        }
    }
}
