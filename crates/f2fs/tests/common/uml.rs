//! Help for user-mode Linux to run on hosts that are newer than it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Console message of a host where its first process dies for want of [`wide_registers`].
const DIES: &str = "ptrace set fp regs failed";

/// A command for the kernel `program`, on the processor of the caller. Its processes take turns: with
/// two processors each turn wakes the other one, which takes twice to six times as long.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &rustix::thread::sched_getcpu().to_string()]).arg(program);
    command
}

/// The library to load before user-mode Linux, on every host: what only some of them ran would
/// break unseen. `None` where there is no such kernel.
pub fn wide_registers() -> Option<PathBuf> {
    let flags =
        ["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-mgeneral-regs-only", "-Wl,-z,now"];
    cfg!(target_arch = "x86_64").then(|| compile("wide_registers.c", &flags, "wide_registers.so"))
}

/// Compiles a source beside the kernel's test of F2FS into the target folder. Tests, also those of
/// other crates, may do so side by side.
pub fn compile(source: &str, flags: &[&str], name: &str) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../f2fs/tests/kernel");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (made, unfinished) =
        (folder.join(name), tempfile::NamedTempFile::new_in(folder).unwrap().into_temp_path());
    let compiled = Command::new("cc")
        .args(flags)
        .arg("-o")
        .arg(&unfinished)
        .arg(sources.join(source))
        .output();
    let compiled =
        compiled.unwrap_or_else(|error| panic!("cc: {error}; it is needed to compile {source}"));
    assert!(compiled.status.success(), "{source}: {}", String::from_utf8_lossy(&compiled.stderr));
    unfinished.persist(&made).unwrap();
    made
}

/// The sentence for a host on which user-mode Linux cannot run, by what its console says.
pub fn cannot_run(console: &str) -> Option<String> {
    console.contains(DIES).then(|| {
        "user-mode Linux cannot run its first process on this processor (its registers are wider than a kernel before 6.13 \
         expects, and tests/kernel/wide_registers.c did not help), which is no fault of Dovetail: with \
         DOVETAIL_WITHOUT=kernel the tests go without this referee, and `cargo xtask test` says so at its end"
            .into()
    })
}
