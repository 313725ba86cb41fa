//! The Linux kernel that the test `kernel` of F2FS runs for zoned volumes: user-mode Linux with
//! null_blk and zones, which Debian's ready-made one has not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{install, run};

const SOURCE: &str = "/usr/src/linux-source-6.12.tar.xz";

/// Debian packages that it takes, with what tells whether each is there.
const PACKAGES: [(&str, &str); 6] = [
    ("linux-source-6.12", SOURCE),
    ("xz-utils", "xz"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
];

/// Parts of the source that no option of ours needs: two thirds of it.
const LEFT_OUT: [&str; 5] = [
    "*/drivers/gpu/*.[ch]",
    "*/drivers/net/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/sound/*.[ch]",
    "*/Documentation/*.rst",
];

/// The kernel's program, built or not; the test has the same path.
pub(crate) fn program() -> PathBuf {
    folder().join("linux")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/zoned-kernel")
}

/// Builds it.
pub(crate) fn zoned_kernel(_: &[String]) -> Result<(), String> {
    install(&PACKAGES)?;
    let source = folder().join("source");
    let _ = fs::remove_dir_all(&source); // what an interrupted run left
    fs::create_dir_all(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    let left_out = LEFT_OUT.map(|pattern| format!("--exclude={pattern}"));
    run(Command::new("tar")
        .args(["xf", SOURCE, "--strip-components=1", "--wildcards"])
        .args(left_out)
        .arg("-C")
        .arg(&source))?;
    let wanted =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/f2fs/tests/kernel/zoned.config");
    let wanted = wanted.canonicalize().map_err(|error| format!("{}: {error}", wanted.display()))?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let make = || {
        let mut make = Command::new("make");
        make.arg("-C").arg(&source).args(["-s", "ARCH=um"]);
        make
    };
    run(make().arg("allnoconfig").env("KCONFIG_ALLCONFIG", &wanted))?;
    check_options(&wanted, &source.join(".config"))?;
    run(make().arg(format!("-j{jobs}")).arg("linux"))?;
    run(Command::new("strip").arg("-o").arg(program()).arg(source.join("linux")))?;
    fs::remove_dir_all(&source).map_err(|error| format!("{}: {error}", source.display()))
}

/// Every option that is wanted is there: one whose conditions are not met is dropped in silence.
fn check_options(wanted: &Path, found: &Path) -> Result<(), String> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let (wanted, found) = (read(wanted)?, read(found)?);
    let is_missing =
        |line: &&str| line.starts_with("CONFIG_") && !found.lines().any(|l| l == *line);
    match wanted.lines().find(is_missing) {
        Some(line) => Err(format!("this kernel cannot be built with {line}")),
        None => Ok(()),
    }
}
