//! Profile-guided optimisation: a first build counts the branches and calls of example jobs
//! ([`TRAINING`]), and the compiler optimises the second build by these counts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run;

/// Folder of the counts, and of the first build.
const FOLDER: &str = "target/trained";
/// Commands of the first build, from the repository's root. Jobs that speed is measured with
/// (random-updates.fio, uniform traces) are not among them.
const TRAINING: [&str; 6] = [
    "bench examples/half-full.fio --stack f2fs,ext4 --drive nvme-250g --scale 1/64",
    "bench examples/database.fio --stack f2fs,rm-ipu,iplfs,ext4,ext3 --scale 1/64",
    "bench examples/mariadb-tpcc.file.tsv.zst --stack f2fs,ext4 --cpus 4 --whole-at 1/32 --scale 1/32 --loops 0.5",
    "bench varmail --stack f2fs,rm-ipu,iplfs,ext4 -D runtime=10",
    "bench examples/raw-drive.fio --stack raw --precondition --scale 1/16",
    "replay examples/f2fs-randwrite.blkparse.zst --drive femu-32g --scale 1/16 --precondition --wrap",
];

/// The compiler's flags for the second build. `build` makes the program with flags in a folder.
///
/// # Errors
/// `llvm-profdata` is missing, a build fails, or the program does.
pub(crate) fn flags(
    build: impl Fn(&str, &Path) -> Result<PathBuf, String>,
) -> Result<String, String> {
    let merge = llvm_profdata()?;
    let folder = std::env::current_dir().map_err(|error| error.to_string())?.join(FOLDER);
    let (counts, merged) = (folder.join("counts"), folder.join("merged.profdata"));
    if counts.exists() {
        std::fs::remove_dir_all(&counts)
            .map_err(|error| format!("{}: {error}", counts.display()))?;
    }
    let program =
        build(&format!("-C profile-generate={}", counts.display()), &folder.join("build"))?;
    for job in TRAINING {
        println!("training: dovetail {job}");
        run(Command::new(&program).args(job.split(' ')).stdout(Stdio::null()))?;
    }
    run(Command::new(merge).args(["merge", "-o"]).args([&merged, &counts]))?;
    Ok(format!("-C profile-use={}", merged.display()))
}

/// The tool of the compiler's own LLVM: another version cannot read its counts.
fn llvm_profdata() -> Result<PathBuf, String> {
    let library = output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let path = Path::new(library.trim()).with_file_name("bin").join("llvm-profdata");
    if !path.exists() {
        let added = run(Command::new("rustup").args(["component", "add", "llvm-tools"]));
        added.map_err(|error| {
            format!(
                "profile-guided optimisation needs llvm-profdata, which is missing ({error}): \
                 `rustup component add llvm-tools`, or build without: cargo xtask package release"
            )
        })?;
    }
    Ok(path)
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trainings_files_are_there_and_none_is_what_speed_is_measured_with() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let words = TRAINING.iter().flat_map(|job| job.split(' '));
        let examples: Vec<&str> = words.filter(|word| word.starts_with("examples/")).collect();
        assert!(examples.iter().all(|file| root.join(file).is_file()), "{examples:?}");
        assert!(!examples.is_empty() && !examples.contains(&"examples/random-updates.fio"));
    }
}
