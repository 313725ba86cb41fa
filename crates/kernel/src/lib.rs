//! Builds the kernel that guests run, user-mode Linux with time travel, from a distribution's source.
//!
//! ```
//! use std::path::Path;
//!
//! use dovetail_kernel::{BuildError, Building, build, default_kernel};
//!
//! if let Err(missing) = default_kernel() {
//!     assert!(missing.to_string().contains("dovetail linux build"));
//! }
//! let mut steps: Vec<Building> = Vec::new();
//! let source = Path::new("/nowhere/linux-6.12.tar.xz");
//! let error = build(source, &mut |step| steps.push(step)).unwrap_err();
//! // it names what is to be installed, and nothing was begun
//! assert!(matches!(error, BuildError::NoSource(_) | BuildError::Programs(_)));
//! assert!(steps.is_empty());
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The archive of Debian's package `linux-source-6.12`.
pub const SOURCE: &str = "/usr/src/linux-source-6.12.tar.xz";

/// Options over `allnoconfig`. Under Linux' own licence (GPL-2.0), as the patch is.
const CONFIG: &str = include_str!("../config");
/// Costs of system calls and requests, and wide registers of the host.
const PATCH: &str = include_str!("../virtual-time.patch");

/// An environment variable that names another kernel.
const VARIABLE: &str = "DOVETAIL_KERNEL";

/// Programs that a build takes, each with the Debian package that has it.
const PROGRAMS: [(&str, &str); 9] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
    ("patch", "patch"),
    ("strip", "binutils"),
];

/// Parts of the source that no option of ours needs: two thirds of it.
const LEFT_OUT: [&str; 5] = [
    "*/drivers/gpu/*.[ch]",
    "*/drivers/net/*/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/sound/*.[ch]",
    "*/Documentation/*.rst",
];

/// A step of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Building {
    /// The source is unpacked.
    Unpacking,
    /// So many files of the kernel have been compiled, of about 1,900.
    Compiling(u32),
}

/// The kernel's program is not there.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no kernel at {0}: `dovetail linux build` makes one, in minutes; or name yours with kernel = PATH"
)]
pub struct NoKernel(pub String);

/// Reason why a kernel could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Programs are missing.
    #[error("to build the kernel takes programs that are missing here: apt-get install {0}")]
    Programs(String),
    /// There is no source.
    #[error(
        "there is no kernel source at {0}: apt-get install linux-source-6.12, or name an archive of Linux 6.12 \
         (.tar.xz) with --source"
    )]
    NoSource(String),
    /// There is no folder to keep it in.
    #[error("neither XDG_CACHE_HOME nor HOME is set: there is no folder to keep the kernel in")]
    NoFolder,
    /// Another process is at it.
    #[error("another process builds the kernel at this moment: wait until it is done")]
    UnderWay,
    /// A step failed.
    #[error("{what}: {why}")]
    Step {
        /// The step.
        what: &'static str,
        /// Its last words.
        why: String,
    },
    /// An option that this source does not give.
    #[error("this source gives no kernel with {0}: it takes Linux 6.12")]
    Option(String),
}

fn step(what: &'static str) -> impl FnOnce(io::Error) -> BuildError {
    move |error| BuildError::Step { what, why: error.to_string() }
}

/// Options and patch as one number: another kernel has another one.
fn fingerprint() -> u32 {
    let options = CONFIG.lines().filter(|line| !line.starts_with('#'));
    crc32fast::hash(options.chain(PATCH.lines()).collect::<Vec<_>>().join("\n").as_bytes())
}

/// The folder in which this kernel is kept, in the user's cache.
fn folder() -> Result<PathBuf, BuildError> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let kernel = format!("dovetail/linux-6.12-{:08x}", fingerprint());
    Ok(cache.ok_or(BuildError::NoFolder)?.join(kernel))
}

/// The kernel that `DOVETAIL_KERNEL` names, or the one that [`build`] made.
///
/// # Errors
/// It is not there.
pub fn default_kernel() -> Result<PathBuf, NoKernel> {
    let no_kernel = |path: &Path| NoKernel(path.display().to_string());
    let path = match std::env::var_os(VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => folder().map_err(|error| NoKernel(error.to_string()))?.join("linux"),
    };
    if path.exists() { Ok(path) } else { Err(no_kernel(&path)) }
}

/// The kernel that [`build`] made before, if it is there.
pub fn built() -> Option<PathBuf> {
    folder().ok().map(|folder| folder.join("linux")).filter(|program| program.exists())
}

/// Builds the kernel from an archive of the source, and returns where it is; tells its progress.
/// It takes 3 to 6 minutes on two cores and 2 GB of disk meanwhile; the result has 9 MB.
///
/// # Errors
/// Something is missing, a step failed, or another process builds it; see [`BuildError`].
pub fn build(source: &Path, progress: &mut dyn FnMut(Building)) -> Result<PathBuf, BuildError> {
    check_programs()?;
    if !source.exists() {
        return Err(BuildError::NoSource(source.display().to_string()));
    }
    let folder = folder()?;
    fs::create_dir_all(&folder).map_err(step("making a folder for the kernel"))?;
    let lock = File::create(folder.join("lock")).map_err(step("locking the folder"))?;
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => return Err(BuildError::UnderWay),
        locked => locked.map_err(io::Error::from).map_err(step("locking the folder"))?,
    }
    let tree = folder.join("source");
    let _ = fs::remove_dir_all(&tree); // what an interrupted build left
    fs::create_dir_all(&tree).map_err(step("making a folder for the source"))?;
    progress(Building::Unpacking);
    unpack(source, &tree)?;
    configure(&tree)?;
    compile(&tree, progress)?;
    let program = folder.join("linux");
    let mut strip = Command::new("strip");
    // whoever sees it sees all of it
    let stripped = tree.join("stripped");
    perform("strip", strip.arg("-o").arg(&stripped).arg(tree.join("linux")))?;
    fs::rename(stripped, &program).map_err(step("moving the kernel to its place"))?;
    fs::remove_dir_all(&tree).map_err(step("removing the source"))?;
    Ok(program)
}

fn check_programs() -> Result<(), BuildError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let is_missing = |program: &str| !folders.iter().any(|folder| folder.join(program).exists());
    let missing = PROGRAMS.iter().filter(|(program, _)| is_missing(program));
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if packages.is_empty() { Ok(()) } else { Err(BuildError::Programs(packages.join(" "))) }
}

fn unpack(source: &Path, tree: &Path) -> Result<(), BuildError> {
    let left_out = LEFT_OUT.map(|pattern| format!("--exclude={pattern}"));
    let mut tar = Command::new("tar");
    tar.arg("xf").arg(source).args(["--strip-components=1", "--wildcards"]).args(left_out);
    perform("unpacking the source", tar.arg("-C").arg(tree))?;
    let file = tree.join("virtual-time.patch");
    fs::write(&file, PATCH).map_err(step("writing the patch"))?;
    let mut patch = Command::new("patch");
    patch.args(["-p1", "-s", "-i"]).arg(&file).arg("-d").arg(tree);
    perform("patching the source", &mut patch)
}

fn make(tree: &Path) -> Command {
    let mut make = Command::new("make");
    make.arg("-C").arg(tree).arg("ARCH=um");
    make
}

fn configure(tree: &Path) -> Result<(), BuildError> {
    let wanted = tree.join("wanted.config");
    fs::write(&wanted, CONFIG).map_err(step("writing the configuration"))?;
    let mut config = make(tree);
    perform("configuring", config.args(["-s", "allnoconfig"]).env("KCONFIG_ALLCONFIG", &wanted))?;
    let found = fs::read_to_string(tree.join(".config")).map_err(step("configuring"))?;
    // an option whose conditions are not met is dropped in silence
    let is_missing = |line: &&str| line.ends_with("=y") && !found.lines().any(|l| l == *line);
    match CONFIG.lines().find(is_missing) {
        Some(line) => Err(BuildError::Option(line.into())),
        None => Ok(()),
    }
}

fn compile(tree: &Path, progress: &mut dyn FnMut(Building)) -> Result<(), BuildError> {
    const WHAT: &str = "compiling the kernel";
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let log = tree.join("errors.log");
    let errors = File::create(&log).map_err(step(WHAT))?;
    let mut make = make(tree);
    make.arg(format!("-j{jobs}")).arg("linux").stdout(Stdio::piped()).stderr(errors);
    let mut child = make.spawn().map_err(step(WHAT))?;
    let mut compiled = 0;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            compiled += u32::from(line.trim_start().starts_with("CC "));
            progress(Building::Compiling(compiled));
        }
    }
    if child.wait().map_err(step(WHAT))?.success() {
        return Ok(());
    }
    Err(BuildError::Step { what: WHAT, why: last_lines(&fs::read(&log).unwrap_or_default()) })
}

fn perform(what: &'static str, command: &mut Command) -> Result<(), BuildError> {
    let output = command.stdin(Stdio::null()).output().map_err(step(what))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(BuildError::Step { what, why: last_lines(&said) })
}

fn last_lines(text: &[u8]) -> String {
    const LINES: usize = 6;
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
