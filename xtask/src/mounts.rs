//! Images, and the file systems in user space that serve them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::run;

/// Longest time for a file system to appear or to end.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder of its own for images and mount points, gone at the end.
pub(crate) struct Workplace {
    pub(crate) path: PathBuf,
}

impl Workplace {
    pub(crate) fn new(name: &str) -> Result<Self, String> {
        Self::within(&std::env::temp_dir(), name)
    }

    /// In a folder that is there.
    pub(crate) fn within(folder: &Path, name: &str) -> Result<Self, String> {
        let path = folder.join(format!("dovetail-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path })
    }

    /// A sparse file of `bytes`.
    pub(crate) fn image(&self, name: &str, bytes: u64) -> Result<PathBuf, String> {
        let path = self.path.join(name);
        let made = File::create(&path).and_then(|file| file.set_len(bytes));
        made.map(|()| path.clone()).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.path.join(name);
        fs::create_dir_all(&path)
            .map(|()| path.clone())
            .map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path); // what is left lies in the system's folder for that
    }
}

/// A program that serves a mount, in the foreground.
pub(crate) struct Served {
    program: Child,
    pub(crate) directory: PathBuf,
}

impl Served {
    /// Starts `command`, which is to mount at `directory`, and waits until it has.
    pub(crate) fn start(command: &mut Command, directory: &Path) -> Result<Self, String> {
        let shown = format!("{command:?}");
        let program =
            command.stdout(Stdio::null()).spawn().map_err(|error| format!("{shown}: {error}"))?;
        let mut served = Self { program, directory: directory.to_path_buf() };
        let start = Instant::now();
        while !is_mounted(directory) {
            if let Ok(Some(status)) = served.program.try_wait() {
                return Err(format!("{shown} ended with {status}"));
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("{shown} has not mounted within {PATIENCE:?}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(served)
    }

    /// The program runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.program.try_wait(), Ok(None))
    }

    /// Memory of the program that no file stands behind, in MiB.
    pub(crate) fn own_memory(&self) -> Result<f64, String> {
        let path = format!("/proc/{}/status", self.program.id());
        let status = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
        kib.map(|kib| kib / 1024.0).ok_or_else(|| format!("{path} has no RssAnon"))
    }

    /// Unmounts and waits for the program to end as it should.
    pub(crate) fn end(mut self) -> Result<(), String> {
        run(Command::new("umount").arg(&self.directory))?;
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            match self.program.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("the mount ended with {status}")),
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(format!("the mount has not ended within {PATIENCE:?} of being unmounted"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if self.is_alive() {
            let _ = Command::new("umount").arg("-l").arg(&self.directory).status();
            let _ = self.program.kill(); // it was ours, and something went wrong before
            let _ = self.program.wait();
        }
    }
}

fn is_mounted(directory: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(1) == directory.to_str())
}

/// The command, built for speed, or the one that the environment names in DOVETAIL.
pub(crate) fn dovetail() -> Result<PathBuf, String> {
    if let Some(program) = std::env::var_os("DOVETAIL").map(PathBuf::from) {
        return program.canonicalize().map_err(|error| format!("{}: {error}", program.display()));
    }
    run(Command::new(env!("CARGO")).args(["build", "--release", "--quiet", "-p", "dovetail-cli"]))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let program = target.join("release/dovetail");
    program.canonicalize().map_err(|error| format!("{}: {error}", program.display()))
}

/// A file system that others have tools for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    F2fs,
    /// On a drive in a file; nobody else has tools for it.
    Iplfs,
    Ext4,
    Ext3,
}

impl Format {
    /// Takes `--fs NAME` out of the arguments; without it, F2FS.
    pub(crate) fn take(arguments: &[String]) -> Result<(Self, Vec<&str>), String> {
        let mut rest: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let Some(at) = rest.iter().position(|argument| *argument == "--fs") else {
            return Ok((Self::F2fs, rest));
        };
        let format = match rest.get(at + 1) {
            Some(&"f2fs") => Self::F2fs,
            Some(&"iplfs") => Self::Iplfs,
            Some(&"ext4") => Self::Ext4,
            Some(&"ext3") => Self::Ext3,
            _ => return Err("--fs is f2fs, iplfs, ext4 or ext3".to_string()),
        };
        rest.drain(at..at + 2);
        Ok((format, rest))
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::F2fs => "f2fs",
            Self::Iplfs => "iplfs",
            Self::Ext4 => "ext4",
            Self::Ext3 => "ext3",
        }
    }

    /// The crate that has its tests.
    pub(crate) const fn package(self) -> &'static str {
        match self {
            Self::F2fs | Self::Iplfs => "dovetail-f2fs",
            Self::Ext4 | Self::Ext3 => "dovetail-ext",
        }
    }

    /// An image of `gib`, made by the file system's own tool; IPLFS's is `program`.
    fn make_gib(self, place: &Workplace, program: &Path, gib: u64) -> Result<PathBuf, String> {
        if self == Self::Iplfs {
            return make_iplfs(&place.path.join("iplfs.img"), program, gib);
        }
        self.make(place, gib << 30, &[])
    }

    /// An image of `bytes`, made by the file system's own tool with options of its own.
    pub(crate) fn make(
        self,
        place: &Workplace,
        bytes: u64,
        options: &[&str],
    ) -> Result<PathBuf, String> {
        let image = place.image(&format!("{}.img", self.name()), bytes)?;
        let mut command = Command::new(if self == Self::F2fs { "mkfs.f2fs" } else { "mke2fs" });
        if self != Self::F2fs {
            command.args(["-F", "-t", self.name()]);
        }
        run(command.arg("-q").args(options).arg(&image).stdout(Stdio::null()))?;
        Ok(image)
    }

    /// The check that the file system's own tool makes, without changing anything; IPLFS has none
    /// but ours.
    pub(crate) fn checker(self, image: &Path) -> Option<Command> {
        let (program, option) = match self {
            Self::F2fs => ("fsck.f2fs", "--dry-run"),
            Self::Iplfs => return None,
            Self::Ext4 | Self::Ext3 => ("e2fsck", "-fn"),
        };
        let mut command = Command::new(program);
        command.arg(option).arg(image);
        Some(command)
    }

    /// A new image of `gib`, mounted by us.
    pub(crate) fn mount(
        self,
        place: &Workplace,
        program: &Path,
        gib: u64,
    ) -> Result<(PathBuf, Served), String> {
        let image = self.make_gib(place, program, gib)?;
        let directory = place.folder("mounted")?;
        let mut command = Command::new(program);
        command.args(["mount", "-f"]).args([&image, &directory]);
        Served::start(&mut command, &directory).map(|served| (image, served))
    }
}

/// A thin drive of `gib` in a file, and IPLFS on it.
fn make_iplfs(image: &Path, program: &Path, gib: u64) -> Result<PathBuf, String> {
    let scale = format!("{gib}/32");
    let mut drive = Command::new(program);
    drive.args(["drive", "make", "--profile", "femu-32g-log", "--scale", &scale]);
    drive.args(["--addresses", "iplfs", "--map", "interval"]).arg(image);
    run(drive.stdout(Stdio::null()))?;
    run(Command::new(program).args(["mkfs", "iplfs"]).arg(image).stdout(Stdio::null()))?;
    Ok(image.to_path_buf())
}
