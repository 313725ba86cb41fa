//! `dovetail doctor`: what this machine has of what commands need.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use dovetail_time::format_bytes;

use crate::{Failure, memory, print};

/// Memory below which drives of tens of GB do not fit at full scale. Assumed: an `evo970-1t` takes
/// about 2 GiB.
const LITTLE_MEMORY: u64 = 2 << 30;

/// One thing that was looked at.
struct Found {
    what: &'static str,
    /// It is there.
    ok: bool,
    /// The state, and what to do where something is missing.
    text: String,
}

pub(crate) fn run() -> Result<(), Failure> {
    let all = [fuse_device(), fuse_helper(), others(), room(), processors(), kernel(), shared()];
    let lines = all.iter().map(|found| {
        let mark = if found.ok { "ok" } else { "--" };
        format!("{mark}  {:22} {}\n", found.what, found.text)
    });
    let missing = all.iter().filter(|found| !found.ok).count();
    let end = match missing {
        0 => "All commands can run.\n".to_string(),
        _ => format!(
            "{missing} of {} are missing: only the commands named there need them.\n",
            all.len()
        ),
    };
    print(&(lines.collect::<String>() + "\n" + &end))
}

fn found(what: &'static str, problem: Option<String>, there: impl Into<String>) -> Found {
    Found { what, ok: problem.is_none(), text: problem.unwrap_or_else(|| there.into()) }
}

fn fuse_device() -> Found {
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let problem = device.err().map(|error| {
        format!("/dev/fuse: {error}; `dovetail mount` needs it: modprobe fuse, in a container --device /dev/fuse")
    });
    found("FUSE", problem, "/dev/fuse can be used")
}

fn fuse_helper() -> Found {
    let is_root = rustix::process::geteuid().is_root();
    match program("fusermount3") {
        Some(path) => found("fusermount3", None, path.display().to_string()),
        None if is_root => found("fusermount3", None, "not there, and root needs none to mount"),
        None => {
            let problem = "not there; `dovetail mount` needs it without root: install fuse3";
            found("fusermount3", Some(problem.into()), "")
        }
    }
}

fn others() -> Found {
    let allows = |text: String| text.lines().any(|line| line.trim() == "user_allow_other");
    let is_allowed = rustix::process::geteuid().is_root()
        || std::fs::read_to_string("/etc/fuse.conf").is_ok_and(allows);
    let problem = "`mount -o allow_other` needs user_allow_other in /etc/fuse.conf without root";
    found("mounts for others", (!is_allowed).then(|| problem.into()), "allow_other can be given")
}

fn room() -> Found {
    match memory::room() {
        None => found("memory", Some("its size is not told; large drives may not fit".into()), ""),
        Some(bytes) => {
            let there = format!("{} are available", format_bytes(bytes));
            let problem = format!("{there}; large drives need --scale");
            found("memory", (bytes < LITTLE_MEMORY).then_some(problem), there)
        }
    }
}

fn processors() -> Found {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    found("processors", None, format!("{count}: as many runs at a time"))
}

fn kernel() -> Found {
    match dovetail_linux::default_kernel() {
        Ok(path) => found("Linux for guests", None, path.display().to_string()),
        Err(_) => {
            let problem =
                "not built; stacks linux-* and `dovetail linux run` need it: dovetail linux build";
            found("Linux for guests", Some(problem.into()), "")
        }
    }
}

/// Guests keep their memory in a file of a file system in memory.
fn shared() -> Found {
    let folder = Path::new("/dev/shm");
    let path = folder.join(format!("dovetail-doctor-{}", std::process::id()));
    let problem = File::create(&path).err();
    let _ = std::fs::remove_file(&path);
    let problem =
        problem.map(|error| format!("/dev/shm: {error}; Linux guests and `serve --vhost` need it"));
    found("shared memory", problem, "/dev/shm can be written")
}

/// The place of a program in PATH.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}
