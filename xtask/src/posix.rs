//! `cargo xtask posix`: other people's tests of POSIX behaviour, on a mount. Each tool's closing
//! lines are shown as they are; docs/posix.md explains them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mounts::{Format, Workplace, dovetail};
use crate::{install, run};

const PACKAGES: [(&str, &str); 7] = [
    ("fuse3", "fusermount3"),
    ("e2fsprogs", "mke2fs"),
    ("f2fs-tools", "mkfs.f2fs"),
    ("stress-ng", "stress-ng"),
    ("fio", "fio"),
    ("sqlite3", "sqlite3"),
    ("git", "git"),
];
const CRATES: [(&str, &str); 2] = [("pjdfstest", "0.2.2"), ("fsx", "0.3.2")];

/// Features that Linux has, of pjdfstest's opt-in ones, and users that every Debian has.
const PJDFSTEST: &str = "[features]\nposix_fallocate = {}\nutime_now = {}\nutimensat = {}\nrename_ctime = {}\n\
                         [settings]\nnaptime = 0.02\n\
                         [dummy_auth]\nentries = [[\"nobody\", \"nogroup\"], [\"games\", \"games\"]]\n";
/// Everything that fsx can do on Linux.
const FSX: &str = "[weights]\nclose_open = 1\nread = 10\nwrite = 10\nmapread = 10\nmapwrite = 10\ninvalidate = 1\n\
                   truncate = 5\nfsync = 1\nfdatasync = 1\nposix_fallocate = 3\npunch_hole = 3\nsendfile = 2\n\
                   posix_fadvise = 2\ncopy_file_range = 3\n";

struct Tools {
    crates: PathBuf,
    place: Workplace,
    directory: PathBuf,
    operations: String,
}

type Step = (&'static str, fn(&Tools) -> Result<String, String>);

const STEPS: [Step; 6] = [
    ("pjdfstest", pjdfstest),
    ("fsx", fsx),
    ("stress-ng", stress_ng),
    ("fio --verify", fio_verify),
    ("SQLite", sqlite),
    ("git", git),
];

/// Runs all, on F2FS or on `--fs iplfs|ext4|ext3`; `--quick` with 20,000 operations of fsx instead
/// of a million, or only the steps that are named.
pub(crate) fn posix(arguments: &[String]) -> Result<(), String> {
    let (format, arguments) = Format::take(arguments)?;
    install(&PACKAGES)?;
    let crates = install_crates()?;
    let program = dovetail()?;
    let place = Workplace::new("posix")?;
    let (image, mut served) = format.mount(&place, &program, 4)?;
    let quick = arguments.contains(&"--quick");
    let operations = if quick { "20000" } else { "1000000" }.to_string();
    let tools = Tools { crates, place, directory: served.directory.clone(), operations };
    let named: Vec<&str> =
        arguments.into_iter().filter(|argument| *argument != "--quick").collect();
    let mut failed = Vec::new();
    for (name, step) in STEPS {
        if !named.is_empty() && !named.iter().any(|wanted| name.starts_with(wanted)) {
            continue;
        }
        println!("== {name}");
        match step(&tools) {
            Ok(lines) => println!("{lines}"),
            Err(lines) => {
                println!("{lines}\n{name} FAILED");
                failed.push(name);
            }
        }
        if !served.is_alive() {
            return Err(format!("the mount died in {name}"));
        }
    }
    served.end()?;
    println!("== its own fsck, and ours");
    if let Some(mut checker) = format.checker(&image) {
        println!("{}", last_lines(&mut checker, 2)?);
    }
    println!("{}", last_lines(Command::new(&program).arg("fsck").arg(&image), 3)?);
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

fn install_crates() -> Result<PathBuf, String> {
    let root =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let root = std::path::absolute(root.join("tools")).map_err(|error| error.to_string())?;
    for (name, version) in CRATES {
        if !root.join("bin").join(name).is_file() {
            let version = format!("{name}@{version}");
            run(Command::new(env!("CARGO"))
                .args(["install", "--quiet", &version, "--root"])
                .arg(&root))?;
        }
    }
    Ok(root.join("bin"))
}

/// Runs a command and gives its last lines; as an error if it fails.
fn last_lines(command: &mut Command, count: usize) -> Result<String, String> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(count)..].join("\n");
    if output.status.success() {
        Ok(last)
    } else {
        Err(format!("{last}\n{shown}: {}", output.status))
    }
}

impl Tools {
    fn file(&self, name: &str, content: &str) -> Result<PathBuf, String> {
        let path = self.place.path.join(name);
        fs::write(&path, content)
            .map(|()| path.clone())
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// A folder on the mount.
    fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.directory.join(name);
        fs::create_dir_all(&path)
            .map(|()| path.clone())
            .map_err(|error| format!("{}: {error}", path.display()))
    }
}

fn pjdfstest(tools: &Tools) -> Result<String, String> {
    let configuration = tools.file("pjdfstest.toml", PJDFSTEST)?;
    let mut command = Command::new(tools.crates.join("pjdfstest"));
    command.arg("-c").arg(configuration).arg("-p").arg(tools.folder("pjdfstest")?);
    last_lines(&mut command, 1)
}

fn fsx(tools: &Tools) -> Result<String, String> {
    let configuration = tools.file("fsx.toml", FSX)?;
    let mut command = Command::new(tools.crates.join("fsx"));
    command.args(["-S", "1", "-N", &tools.operations, "-P"]).arg(&tools.place.path);
    command.arg("-f").arg(configuration).arg(tools.directory.join("fsx"));
    last_lines(&mut command, 2).map(|lines| format!("{lines}\n{} operations", tools.operations))
}

/// A few seconds each. Left out are those that ask for what no FUSE mount has: binderfs and
/// bind-mount mount on their own, verity, chattr, inode-flags and fiemap need ioctls.
fn stress_ng(tools: &Tools) -> Result<String, String> {
    let folder = tools.folder("stress")?;
    let mut command = Command::new("stress-ng");
    command
        .args(["--class", "filesystem", "--seq", "2", "--timeout", "3", "--temp-path"])
        .arg(&folder);
    command.args([
        "--verify",
        "--metrics-brief",
        "--exclude",
        "binderfs,bind-mount,verity,chattr,inode-flags,fiemap",
    ]);
    last_lines(&mut command, 5)
}

fn fio_verify(tools: &Tools) -> Result<String, String> {
    let mut command = Command::new("fio");
    command.args([
        "--name=verify",
        "--rw=randwrite",
        "--bs=4k",
        "--size=256m",
        "--numjobs=2",
        "--fsync=64",
    ]);
    command.args([
        "--verify=crc32c",
        "--do_verify=1",
        "--verify_fatal=1",
        "--verify_state_save=0",
        "--group_reporting",
        "--directory",
    ]);
    last_lines(command.arg(tools.folder("fio")?), 4)
}

fn sqlite(tools: &Tools) -> Result<String, String> {
    let database = tools.folder("sqlite")?.join("test.db");
    let mut results = String::new();
    for journal in ["delete", "truncate", "wal"] {
        let script = format!(
            "pragma journal_mode={journal}; create table if not exists t(a integer primary key, b blob);
             with recursive n(i) as (select 1 union all select i+1 from n where i<20000)
               insert into t(b) select randomblob(200) from n;
             delete from t where a % 3 = 0; update t set b = randomblob(400) where a % 5 = 0; vacuum;
             pragma integrity_check; select count(*) from t;"
        );
        results +=
            &last_lines(Command::new("sqlite3").arg(&database).arg(script), 2)?.replace('\n', " ");
        results += &format!(" ({journal}) ");
    }
    if results.matches("ok").count() == 3 { Ok(results) } else { Err(results) }
}

fn git(tools: &Tools) -> Result<String, String> {
    let clone = tools.folder("git")?.join("clone");
    let repository = repository()?;
    run(Command::new("git")
        .args(["clone", "--quiet", "--no-hardlinks"])
        .args([&repository, &clone]))?;
    let in_clone = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(&clone)
            .args(["-c", "user.name=test", "-c", "user.email=test@localhost"])
            .args(arguments);
        command
    };
    fs::write(clone.join("new"), "new\n").map_err(|error| error.to_string())?;
    run(&mut in_clone(&["add", "--all"]))?;
    run(&mut in_clone(&["commit", "--quiet", "--message", "new"]))?;
    run(&mut in_clone(&["gc", "--quiet", "--aggressive", "--prune=now"]))?;
    let checked = last_lines(&mut in_clone(&["fsck", "--full", "--strict"]), 2)?;
    let status = last_lines(&mut in_clone(&["status", "--short"]), 3)?;
    if status.is_empty() {
        Ok(format!("clone, commit, gc, fsck: clean {checked}"))
    } else {
        Err(status)
    }
}

/// This project's own repository.
fn repository() -> Result<PathBuf, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    here.canonicalize().map_err(|error| error.to_string())
}
