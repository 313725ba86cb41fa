//! `cargo xtask mutants`: faults that we had or could have, put into a copy of the code. The crash
//! explorer must find each within a minute: an instrument that finds nothing says nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::run;

/// A fault.
struct Mutant {
    name: &'static str,
    about: &'static str,
    /// File, what stands there once, and what is put in its place.
    edits: &'static [(&'static str, &'static str, &'static str)],
    /// The arguments of `dovetail crash`.
    explore: &'static [&'static str],
}

const MUTANTS: [Mutant; 3] = [
    Mutant {
        name: "directory-fsync",
        about: "ext leaves a directory out of the transaction when its times are already now",
        edits: &[
            (
                "crates/ext/src/mount/attributes.rs",
                "        let inode = self.edit_inode(ino)?;\n        (inode.mtime, inode.ctime) = (now, now);\n        Ok(())\n",
                "        self.stamp_overwrite(ino, now)\n",
            ),
            (
                "crates/ext/src/mount/meta.rs",
                "if let Place::Directory(ino, _) | Place::Pointers(ino) | Place::Extents(ino, _) = place {\n            self.add_content",
                "if let Place::Pointers(ino) | Place::Extents(ino, _) = place {\n            self.add_content",
            ),
        ],
        explore: &["ace-2", "--count", "3000", "--cuts", "1", "--stack", "ext4"],
    },
    Mutant {
        name: "erase-barrier",
        about: "the drive erases a line before the pages that it moved out of it are durable",
        edits: &[(
            "crates/ftl/src/drive/clean.rs",
            "self.cleaner.await_erase(line, self.all_durable_at());",
            "self.cleaner.await_erase(line, SimTime::ZERO);",
        )],
        explore: &["random", "--seeds", "0..60", "--cuts", "60", "--stack", "f2fs"],
    },
    Mutant {
        name: "turn",
        about: "a turn of the background's write-back takes all of a file for clean, and writes a part",
        edits: &[(
            "crates/vfs/src/cache/write_back.rs",
            "        pages.truncate(most);\n",
            "        let rest = pages.split_off(most.min(pages.len()));\n        rest.into_iter().for_each(|index| self.mark_clean(ino, index));\n",
        )],
        explore: &[
            "random",
            "--seeds",
            "0..60",
            "--cuts",
            "60",
            "--memory",
            "160KiB",
            "--stack",
            "f2fs,ext4",
        ],
    },
];

/// The time within which an exploration must find one.
const LIMIT: Duration = Duration::from_secs(60);

/// Builds each mutant, or those that are named, and explores it.
pub(crate) fn mutants(arguments: &[String]) -> Result<(), String> {
    let root = root();
    let chosen =
        |mutant: &&Mutant| arguments.is_empty() || arguments.iter().any(|name| name == mutant.name);
    if let Some(name) =
        arguments.iter().find(|name| MUTANTS.iter().all(|mutant| mutant.name != **name))
    {
        let names: Vec<&str> = MUTANTS.iter().map(|mutant| mutant.name).collect();
        return Err(format!("there is no mutant {name} (there are: {})", names.join(", ")));
    }
    let mut missed = Vec::new();
    for mutant in MUTANTS.iter().filter(chosen) {
        println!("== {}: {}", mutant.name, mutant.about);
        let program = build(&root, mutant)?;
        let began = Instant::now();
        let found = explore(&program, mutant)?;
        let took = began.elapsed();
        println!("{found}");
        if !found.contains("VIOLATION") || took > LIMIT {
            missed.push(mutant.name);
        }
        println!(
            "{} after {:.0} s",
            if found.contains("VIOLATION") { "found" } else { "NOT found" },
            took.as_secs_f64()
        );
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(format!("not found within {LIMIT:?}: {}", missed.join(", ")))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The command with the fault in it, built from a copy of what is checked in.
fn build(root: &Path, mutant: &Mutant) -> Result<PathBuf, String> {
    let folder =
        std::path::absolute(root.join("target/mutants")).map_err(|error| error.to_string())?;
    let copy = folder.join("code");
    let failed = |error: std::io::Error| format!("{}: {error}", copy.display());
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(failed)?;
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    run(Command::new("git").args(["clone", "--quiet", "--shared"]).arg(root).arg(&copy))?;
    for (file, from, to) in mutant.edits {
        let path = copy.join(file);
        let text = fs::read_to_string(&path).map_err(failed)?;
        fs::write(&path, edit(&text, from, to).map_err(|what| format!("{file}: {what}"))?)
            .map_err(failed)?;
    }
    let build = ["build", "--release", "--quiet", "-p", "dovetail-cli"];
    run(Command::new(env!("CARGO"))
        .args(build)
        .current_dir(&copy)
        .env("CARGO_TARGET_DIR", folder.join("build")))?;
    Ok(folder.join("build/release/dovetail"))
}

/// The text with the one occurrence of `from` replaced.
fn edit(text: &str, from: &str, to: &str) -> Result<String, String> {
    match text.matches(from).count() {
        1 => Ok(text.replace(from, to)),
        count => Err(format!(
            "{count} places to be changed instead of one; the mutant must follow the code"
        )),
    }
}

/// The first violation that `dovetail crash` shows, or all its output.
fn explore(program: &Path, mutant: &Mutant) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("crash").args(mutant.explore).stderr(Stdio::null());
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text
        .find("VIOLATION")
        .map_or(text.clone(), |at| text[at..].lines().take(20).collect::<Vec<_>>().join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_follow_the_code() {
        for mutant in &MUTANTS {
            for (file, from, to) in mutant.edits {
                let text = fs::read_to_string(root().join(file)).unwrap();
                let changed = edit(&text, from, to);
                assert!(changed.is_ok(), "{}: {file}: {changed:?}", mutant.name);
            }
        }
    }
}
