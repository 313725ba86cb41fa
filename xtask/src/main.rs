//! The project's chores. `cargo xtask` lists them.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

mod answers_page;
mod book;
mod drives;
mod explore;
mod failures;
mod figures;
mod files;
mod fuse_bench;
mod kill_loop;
mod licences;
mod linux_kernel;
mod mounts;
mod mutants;
mod package;
mod playground;
mod posix;
mod python;
mod qemu_guest;
mod record;
mod serve_bench;
mod trained;
mod truth_times;

use std::io::BufReader;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Debian packages that the tests need, with a program of each that tells whether it is there.
const PACKAGES: [(&str, &str); 10] = [
    ("fio", "fio"),
    ("chromium", "chromium"),
    ("f2fs-tools", "mkfs.f2fs"),
    ("user-mode-linux", "linux.uml"),
    ("busybox", "busybox"),
    ("acl", "setfacl"),
    ("libnbd-bin", "nbdcopy"),
    ("nbd-client", "nbd-client"),
    ("qemu-utils", "qemu-io"),
    ("android-sdk-libsparse-utils", "img2simg"),
];

/// Referees that a machine may be unable to run, whatever is installed on it, and the Debian
/// package of each. A test that needs one of them names it; the other programs run wherever
/// Dovetail does. `wasm` is no package: rustup has it, where there is rustup.
const REFEREES: [(&str, &str); 4] = [
    ("kernel", "user-mode-linux"),
    ("chromium", "chromium"),
    ("wasm", playground::TARGET),
    ("python", python::VENV),
];

/// A chore: its name, what it does, and how.
struct Chore {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

const CHORES: [Chore; 32] = [
    Chore { name: "test", about: "install what the tests need and run them all", run: test },
    Chore {
        name: "truth-times",
        about: "hold our file systems' times against a real kernel's: cargo xtask truth-times [JOBS] (five minutes)",
        run: truth_times::truth_times,
    },
    Chore {
        name: "theory",
        about: "compare cleaning on a large drive with theory (a quarter of an hour)",
        run: theory,
    },
    Chore {
        name: "crash",
        about: "cut the power over many seeds: cargo xtask crash [SEEDS] (100,000: four hours)",
        run: crash,
    },
    Chore {
        name: "crash-fs",
        about: "cut the power under F2FS: cargo xtask crash-fs [SEEDS] (20,000: an hour)",
        run: crash_fs,
    },
    Chore {
        name: "crash-remap",
        about: "cut the power of the drive under F2FS that remaps: cargo xtask crash-remap [SEEDS] (250: 40,000 cuts, half an hour)",
        run: crash_remap,
    },
    Chore {
        name: "crash-iplfs",
        about: "cut the power of the drive under IPLFS: cargo xtask crash-iplfs [SEEDS] (500: 20,000 cuts, 15 minutes)",
        run: crash_iplfs,
    },
    Chore {
        name: "crash-fsdv",
        about: "cut the power under the tool that rewrites pointers: cargo xtask crash-fsdv [CUTS] (5000 on each of six: 30,000)",
        run: crash_fsdv,
    },
    Chore {
        name: "crash-explore",
        about: "cut the power of whole stacks: cargo xtask crash-explore [CUTS] (1,000,000: 40 minutes on two cores; goes on where it was stopped)",
        run: explore::explore,
    },
    Chore {
        name: "mutants",
        about: "faults put into a copy of the code, which the crash explorer must find: cargo xtask mutants [NAME...] (15 minutes: three builds)",
        run: mutants::mutants,
    },
    Chore {
        name: "fio-plot",
        about: "draw charts of what bench writes as fio's JSON with fio-plot, which is installed from PyPI below target/",
        run: fio_plot,
    },
    Chore {
        name: "kernel-check",
        about: "the Linux kernel and we read each other's volumes: cargo xtask kernel-check [ROUNDS] (30: 4 minutes)",
        run: kernel_check,
    },
    Chore {
        name: "linux-kernel",
        about: "build the kernel of Linux stacks, which is a referee too: dovetail linux build, and what it needs (5 minutes)",
        run: linux_kernel::linux_kernel,
    },
    Chore {
        name: "fuzz",
        about: "damaged images, read, checked, repaired, mounted and changed: cargo xtask fuzz [--fs ext4] [INPUTS] (10,000,000: three hours)",
        run: fuzz,
    },
    Chore {
        name: "fsx",
        about: "random operations on one ext3 or ext4 file, in the library: cargo xtask fsx [OPERATIONS] (1,000,000 of each of seven kinds)",
        run: fsx,
    },
    Chore {
        name: "posix",
        about: "pjdfstest, fsx, stress-ng, fio, SQLite and git on a mount: cargo xtask posix [--fs iplfs|ext4|ext3] [--quick] [STEP...]",
        run: posix::posix,
    },
    Chore {
        name: "kill-loop",
        about: "kill mounts while they are used: cargo xtask kill-loop [--fs f2fs|ext4|ext3] [ROUNDS] [--seed SEED] (300 of each: 5 minutes)",
        run: kill_loop::kill_loop,
    },
    Chore {
        name: "fuse-bench",
        about: "our mount, fuse2fs and libfuse's passthrough_ll side by side: cargo xtask fuse-bench [--fs ext4] (10 minutes)",
        run: fuse_bench::fuse_bench,
    },
    Chore {
        name: "serve-bench",
        about: "a drive served over NBD beside nbdkit's memory plugin: cargo xtask serve-bench [SECONDS] (3 a turn: 3 minutes)",
        run: serve_bench::serve_bench,
    },
    Chore {
        name: "qemu-guest",
        about: "a real machine's Linux under QEMU on a drive that is served: cargo xtask qemu-guest [ext4] [f2fs] (9 minutes)",
        run: qemu_guest::qemu_guest,
    },
    Chore {
        name: "truth",
        about: "the jobs that Linux 6.12 ran, here; renews the table in docs/bench-against-linux.md (4 minutes)",
        run: truth,
    },
    Chore {
        name: "iplfs-discards",
        about: "tell our interval map the discards that IPLFS's authors published: cargo xtask iplfs-discards FILE (a minute)",
        run: iplfs_discards,
    },
    Chore {
        name: "figures",
        about: "run the papers' figures and renew docs/figures.md: cargo xtask figures [--full | --scales LIST] [FIGURE...] (15 minutes; hours with --full, goes on where it was stopped; --scales 1/64,1/32,1/16: from which scale on results stay; --render: the page alone)",
        run: figures::figures,
    },
    Chore {
        name: "drives",
        about: "play what was measured on real drives and renew the table in docs/drives.md (5 minutes)",
        run: drives::drives,
    },
    Chore {
        name: "record",
        about: "a program's calls on its files as a file-level trace: cargo xtask record TRACE FOLDER -- COMMAND...",
        run: record::record,
    },
    Chore {
        name: "record-tpcc",
        about: "TPC-C on MariaDB while the database grows, recorded: cargo xtask record-tpcc TRACE [--no-doublewrite] (5 minutes)",
        run: record::tpcc::record_tpcc,
    },
    Chore {
        name: "book",
        about: "the documentation as HTML pages with search, in target/book/html (mdBook; the first time five minutes)",
        run: book::book,
    },
    Chore {
        name: "package",
        about: "a program without libraries, optimised by a profile of example jobs, as an archive and a Debian package: cargo xtask package [PROFILE] (dist: ten minutes; release: without the profile)",
        run: package::package,
    },
    Chore {
        name: "licences",
        about: "the packages that the program is made of, and their licences",
        run: licences::licences,
    },
    Chore {
        name: "playground",
        about: "build the page with the simulator in it, target/playground/index.html (two minutes)",
        run: playground::playground,
    },
    Chore {
        name: "python",
        about: "build the wheel of the Python package, install it below target/ and run its tests: cargo xtask python [PYTEST...] (5 minutes)",
        run: python::python,
    },
    Chore { name: "bench", about: "run the benchmarks", run: bench },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let chore = arguments.first().and_then(|name| CHORES.iter().find(|chore| chore.name == name));
    let Some(chore) = chore else {
        println!("usage: cargo xtask CHORE");
        CHORES.iter().for_each(|chore| println!("  {:12} {}", chore.name, chore.about));
        return ExitCode::from(2);
    };
    match (chore.run)(&arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {}: {message}", chore.name);
            ExitCode::FAILURE
        }
    }
}

fn test(extra: &[String]) -> Result<(), String> {
    let absent = absent_referees(&std::env::var("DOVETAIL_WITHOUT").unwrap_or_default())?;
    let is_absent = |name: &str| absent.iter().any(|(_, package)| *package == name);
    let needed: Vec<_> = PACKAGES.into_iter().filter(|(package, _)| !is_absent(package)).collect();
    install(&needed)?;
    let tested = test_workspace(extra);
    if !is_absent("user-mode-linux") && dovetail_kernel::default_kernel().is_err() {
        eprintln!(
            "SKIPPED: a kernel in virtual time, and as referee of zoned volumes; cargo xtask linux-kernel builds it"
        );
    }
    for (referee, package) in absent {
        eprintln!(
            "SKIPPED: what needs the referee \"{referee}\" ({package}), as DOVETAIL_WITHOUT says"
        );
    }
    tested
}

/// Runs the tests of all crates, and shows the failed ones again at the end.
fn test_workspace(extra: &[String]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--workspace", "--no-fail-fast"]).args(extra).stdout(Stdio::piped());
    let shown = format!("{command:?}");
    let mut running = start(&mut command)?;
    let output = BufReader::new(running.stdout.take().ok_or("no output")?);
    let (send, failures) = mpsc::channel();
    std::thread::spawn(move || send.send(failures::copy(output, std::io::stdout())));
    let status = running.wait();
    // a program that a test left behind may hold the output open
    if let Ok(Ok(failures)) = failures.recv_timeout(Duration::from_secs(10)) {
        eprint!("{}", String::from_utf8_lossy(&failures));
    }
    ended_well(&shown, status)
}

/// The referees that DOVETAIL_WITHOUT declares as absent: names, separated by commas.
fn absent_referees(list: &str) -> Result<Vec<(&'static str, &'static str)>, String> {
    let known = |name: &str| REFEREES.into_iter().find(|(referee, _)| *referee == name);
    let names = list.split(',').filter(|name| !name.is_empty());
    let all = || REFEREES.map(|(referee, _)| referee).join(", ");
    names
        .map(|name| {
            known(name).ok_or_else(|| {
                format!("DOVETAIL_WITHOUT=\"{name}\": a test can do without: {}", all())
            })
        })
        .collect()
}

fn theory(extra: &[String]) -> Result<(), String> {
    let arguments = [
        "test",
        "--release",
        "-p",
        "dovetail-papers",
        "--lib",
        "--test",
        "all",
        "theory::",
        "--",
        "--ignored",
        "--nocapture",
    ];
    cargo(&arguments, extra, &[])
}

fn crash(extra: &[String]) -> Result<(), String> {
    let seeds = extra.first().map_or("100000", String::as_str);
    let arguments = [
        "test",
        "--release",
        "-p",
        "dovetail-ftl",
        "--test",
        "all",
        "integrity::",
        "--",
        "--nocapture",
    ];
    cargo(&arguments, &[], &[("DOVETAIL_SEEDS", seeds)])
}

fn crash_fs(extra: &[String]) -> Result<(), String> {
    install(&PACKAGES)?;
    let seeds = extra.first().map_or("20000", String::as_str);
    let arguments = [
        "test",
        "--release",
        "-p",
        "dovetail-f2fs",
        "--test",
        "all",
        "crash::",
        "--",
        "--nocapture",
    ];
    cargo(&arguments, &[], &[("DOVETAIL_SEEDS", seeds)])
}

fn crash_fsdv(extra: &[String]) -> Result<(), String> {
    install(&PACKAGES)?;
    let cuts = extra.first().map_or("5000", String::as_str);
    for (package, test) in [("dovetail-ftl", "devirtualize::"), ("dovetail-devirt", "crash::")] {
        let arguments = ["test", "-p", package, "--test", "all", test, "--", "--nocapture"];
        cargo(&arguments, &[], &[("DOVETAIL_FSDV_CUTS", cuts)])?;
    }
    Ok(())
}

fn crash_remap(extra: &[String]) -> Result<(), String> {
    cut_drives("remap_crash::", extra.first().map_or("250", String::as_str))
}

fn crash_iplfs(extra: &[String]) -> Result<(), String> {
    cut_drives("iplfs_crash::", extra.first().map_or("500", String::as_str))
}

/// Power cuts of a drive under a file system.
fn cut_drives(test: &str, seeds: &str) -> Result<(), String> {
    let arguments = ["test", "-p", "dovetail-lab", "--test", "all", test, "--", "--nocapture"];
    cargo(&arguments, &[], &[("DOVETAIL_SEEDS", seeds)])
}

fn kernel_check(extra: &[String]) -> Result<(), String> {
    install(&PACKAGES)?;
    linux_kernel::linux_kernel(&[])?;
    let rounds = extra.first().map_or("30", String::as_str);
    cargo(&["test", "-p", "dovetail-f2fs", "--test", "kernel"], &[], &[("DOVETAIL_SEEDS", rounds)])
}

fn fuzz(extra: &[String]) -> Result<(), String> {
    let (format, extra) = mounts::Format::take(extra)?;
    let inputs = extra.first().copied().unwrap_or("10000000");
    let arguments =
        ["test", "--release", "-p", format.package(), "--test", "fuzz", "--", "--nocapture"];
    // an overflow that wraps is a panic that nobody sees
    cargo(
        &arguments,
        &[],
        &[("DOVETAIL_FUZZ", inputs), ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")],
    )
}

fn fsx(extra: &[String]) -> Result<(), String> {
    let steps = extra.first().map_or("1000000", String::as_str);
    let arguments =
        ["test", "--release", "-p", "dovetail-ext", "--test", "all", "fsx::", "--", "--nocapture"];
    cargo(&arguments, &[], &[("DOVETAIL_STEPS", steps)])
}

fn truth(_: &[String]) -> Result<(), String> {
    let arguments = [
        "test",
        "--release",
        "-p",
        "dovetail-lab",
        "--test",
        "all",
        "truth::",
        "--",
        "--ignored",
        "--nocapture",
    ];
    cargo(&arguments, &[], &[])?;
    let zoned = ["test", "--release", "-p", "dovetail-f2fs", "--test", "all", "zoned_truth::"];
    cargo(&[&zoned[..], &["--", "--include-ignored", "--nocapture"]].concat(), &[], &[])
}

fn iplfs_discards(extra: &[String]) -> Result<(), String> {
    let [file] = extra else {
        return Err(
            "cargo xtask iplfs-discards FILE: the file is data_WARM_DATA of the repository \
                    ESOS-Lab/IPLFS, in exp_tools/compaction/fileserver_30min/submit"
                .into(),
        );
    };
    let file = std::path::absolute(file).map_err(|error| format!("{file}: {error}"))?;
    let name = "iplfs_shadow::tests::published_discards_make_a_tree_of_the_published_size";
    let test = ["test", "-p", "dovetail-papers", "--lib", name];
    let arguments = [&test[..], &["--", "--exact", "--ignored", "--nocapture"]].concat();
    cargo(&arguments, &[], &[("IPLFS_DISCARDS", &file.to_string_lossy())])
}

fn fio_plot(_: &[String]) -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/fio-plot");
    let programs = folder.join("bin");
    if !programs.join("fio-plot").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        run(Command::new(programs.join("pip")).args(["install", "--quiet", "fio-plot"]))?;
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs).chain(std::env::split_paths(&paths));
    let paths = std::env::join_paths(paths).map_err(|error| error.to_string())?;
    let arguments =
        ["test", "-p", "dovetail-workload", "--test", "all", "fio_output::", "--", "--ignored"];
    run(Command::new(env!("CARGO")).args(arguments).env("PATH", paths))
}

fn bench(extra: &[String]) -> Result<(), String> {
    cargo(&["bench", "-p", "dovetail-ftl", "--bench", "random_write"], extra, &[])?;
    cargo(&["bench", "-p", "dovetail-f2fs", "--bench", "overwrite"], &[], &[])?;
    cargo(&["bench", "-p", "dovetail-lab", "--bench", "figure3"], &[], &[])
}

fn cargo(arguments: &[&str], extra: &[String], environment: &[(&str, &str)]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).args(extra).envs(environment.iter().copied());
    run(&mut command)
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    let status = start(command)?.wait();
    ended_well(&shown, status)
}

fn start(command: &mut Command) -> Result<Child, String> {
    command.spawn().map_err(|error| format!("{command:?} cannot be started: {error}"))
}

fn ended_well(shown: &str, status: std::io::Result<ExitStatus>) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown} failed with {status}")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// Installs those Debian packages that are missing when run as root, and otherwise names them.
fn install(packages: &[(&'static str, &str)]) -> Result<(), String> {
    let missing: Vec<&str> =
        packages.iter().filter(|(_, program)| !is_there(program)).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !is_root() {
        let names = missing.join(" ");
        return Err(format!(
            "this needs Debian packages that are missing; install them with: apt-get install {names}"
        ));
    }
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    let install = ["install", "-y", "-qq", "--no-install-recommends"];
    run(Command::new("apt-get")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(install)
        .args(missing))
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(std::path::PathBuf::from); // where mkfs programs are, also for users
    std::env::split_paths(&path).chain(system).any(|folder| folder.join(program).is_file())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_referees_are_known_ones() {
        assert_eq!(absent_referees(""), Ok(vec![]));
        assert_eq!(absent_referees("chromium,kernel").map(|absent| absent.len()), Ok(2));
        assert!(absent_referees("kernel,fio").is_err_and(|error| error.contains("\"fio\"")));
        let packages = PACKAGES.map(|(package, _)| package);
        let others = [playground::TARGET, python::VENV];
        let is_known = |package: &str| others.contains(&package) || packages.contains(&package);
        assert!(REFEREES.iter().all(|(_, package)| is_known(package)));
    }
}
