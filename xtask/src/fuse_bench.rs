//! `cargo xtask fuse-bench`: our mount beside fuse2fs and beside libfuse's passthrough_ll, which is
//! what FUSE itself can do: with its writeback cache, and with a request for each write, as ours
//! has it. One machine, one run: figures of different runs are not comparable.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::mounts::{Format, Served, Workplace, dovetail};
use crate::{install, run};

const PACKAGES: [(&str, &str); 7] = [
    ("fuse3", "fusermount3"),
    ("f2fs-tools", "mkfs.f2fs"),
    ("fuse2fs", "fuse2fs"),
    ("e2fsprogs", "mke2fs"),
    ("fio", "fio"),
    ("gcc", "gcc"),
    ("pkg-config", "pkg-config"),
];
/// Path of the passthrough example in Debian's libfuse3-dev.
const PASSTHROUGH: &str = "/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c";

/// Files of the small-file measure, and their size in bytes.
const FILES: usize = 20_000;
const FILE_SIZE: usize = 1024;
const GIB: u64 = 4;
/// Each measure is taken so often, and the best counts: what else the machine does only slows.
const TURNS: usize = 3;

/// One of the programs that are compared, and its figures: one a measure, larger is better.
struct Column {
    name: &'static str,
    served: Served,
    /// Small files that it can have.
    files: usize,
    /// The best of all turns, by the rows of the table.
    figures: Vec<f64>,
    /// Memory of its own in MiB, when the small files have been read.
    memory: f64,
}

impl Column {
    fn new(name: &'static str, served: Served, files: usize) -> Self {
        let figures = vec![0.0; MEASURES.len() + SMALL_FILES.len()];
        Self { name, served, files, figures, memory: 0.0 }
    }

    fn keep(&mut self, row: usize, what: &str, figure: f64) {
        eprintln!("{}: {what}: {figure:.0}", self.name);
        self.figures[row] = self.figures[row].max(figure);
    }
}

/// Random reads end when each block was read: the kernel has the second time's content.
const MEASURES: [(&str, &[&str], &str); 5] = [
    (
        "sequential write 1 MiB, MiB/s",
        &["--rw=write", "--bs=1m", "--size=1g", "--end_fsync=1"],
        "bw",
    ),
    ("sequential read 1 MiB, MiB/s", &["--rw=read", "--bs=1m", "--size=1g"], "bw"),
    (
        "random write 4 KiB, fsync=10, 4 jobs, IOPS",
        &[
            "--rw=randwrite",
            "--bs=4k",
            "--size=256m",
            "--numjobs=4",
            "--fsync=10",
            "--time_based",
            "--runtime=10",
        ],
        "iops",
    ),
    (
        "random read 4 KiB, 1 job, IOPS",
        &["--rw=randread", "--bs=4k", "--size=1g", "--runtime=10"],
        "iops",
    ),
    (
        "random read 4 KiB, 4 jobs, IOPS",
        &["--rw=randread", "--bs=4k", "--size=256m", "--numjobs=4", "--runtime=10"],
        "iops",
    ),
];
const SMALL_FILES: [&str; 4] =
    ["create, files/s", "stat, files/s", "read, files/s", "delete, files/s"];

/// Ours is F2FS, or what `--fs` says; fuse2fs is ext4. All are mounted at the same time, and each
/// measure is taken of one after the other, several times: what else the machine does changes with
/// time.
pub(crate) fn fuse_bench(arguments: &[String]) -> Result<(), String> {
    let (format, _) = Format::take(arguments)?;
    install(&PACKAGES)?;
    if !Path::new(PASSTHROUGH).is_file() {
        install(&[("libfuse3-dev", "libfuse3-dev has no program")])?;
    }
    let program = dovetail()?;
    let place = Workplace::new("fuse-bench")?;
    let example = compile_passthrough(&place)?;
    let fuse2fs = fuse2fs(&place)?;
    let few = FILES * 3 / 4;
    let mut columns = [
        Column::new("dovetail", format.mount(&place, &program, GIB)?.1, FILES),
        Column::new("fuse2fs", fuse2fs, FILES),
        Column::new("passthrough_ll", passthrough(&place, &example, "writeback,")?, few),
        Column::new("a request a write", passthrough(&place, &example, "")?, few),
    ];
    for turn in 0..TURNS {
        for (row, (what, arguments, field)) in MEASURES.into_iter().enumerate() {
            for column in &mut columns {
                let figure = fio(&column.served.directory, arguments, field)?;
                column.keep(row, what, figure);
            }
        }
        for column in &mut columns {
            small_files(column, turn)?;
        }
    }
    print_table(&columns);
    columns.into_iter().try_for_each(|column| column.served.end())
}

fn fuse2fs(place: &Workplace) -> Result<Served, String> {
    // ours may be called ext4.img as well
    let image = place.path.join("fuse2fs.img");
    fs::rename(Format::Ext4.make(place, GIB << 30, &[])?, &image)
        .map_err(|error| error.to_string())?;
    let directory = place.folder("fuse2fs")?;
    let mut command = Command::new("fuse2fs");
    command.args(["-f", "-o", "fakeroot"]).args([&image, &directory]).stderr(Stdio::null());
    Served::start(&mut command, &directory)
}

fn compile_passthrough(place: &Workplace) -> Result<PathBuf, String> {
    let program = place.path.join("passthrough_ll");
    let flags = Command::new("pkg-config").args(["fuse3", "--cflags", "--libs"]).output();
    let flags = flags.map_err(|error| error.to_string())?.stdout;
    let flags = String::from_utf8_lossy(&flags).into_owned();
    let mut compiler = Command::new("gcc");
    run(compiler
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(PASSTHROUGH)
        .args(flags.split_whitespace()))?;
    Ok(program)
}

/// passthrough_ll over a folder of the machine's own file system, with the kernel's cache for names
/// and for what is read, and more `options`.
fn passthrough(place: &Workplace, program: &Path, options: &str) -> Result<Served, String> {
    let number = options.len();
    let source = place.folder(&format!("source{number}"))?;
    let directory = place.folder(&format!("passthrough{number}"))?;
    let options = format!("source={},{options}cache=always,timeout=86400", source.display());
    // it keeps a file open for each inode that the kernel knows, and 20,000 is a usual limit of
    // open files
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n $(ulimit -Hn) && exec \"$@\"", "sh"]).arg(program);
    command.args(["-f", "-o", &options]).arg(&directory).stderr(Stdio::null());
    Served::start(&mut command, &directory)
}

/// Runs fio on files of its own and gives the sum over its jobs: `bw` in MiB/s, `iops`.
fn fio(directory: &Path, arguments: &[&str], field: &str) -> Result<f64, String> {
    let size = arguments
        .iter()
        .find(|argument| argument.starts_with("--size"))
        .copied()
        .unwrap_or_default();
    if arguments.iter().any(|argument| argument.starts_with("--rw") && argument.ends_with("write"))
    {
        forget_files(directory, size)?;
    }
    drop_caches();
    let mut command = Command::new("fio");
    command.arg(format!("--name={}", job_name(size))).args(arguments);
    command.args([
        "--ioengine=psync",
        "--group_reporting",
        "--output-format=terse",
        "--terse-version=3",
    ]);
    let output = command
        .arg("--directory")
        .arg(directory)
        .output()
        .map_err(|error| format!("fio: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("fio failed: {text}{}", String::from_utf8_lossy(&output.stderr)));
    }
    // terse version 3: KiB/s and IOPS of reads are fields 7 and 8, of writes 48 and 49, counted
    // from 1
    let fields: Vec<&str> =
        text.lines().find(|line| line.starts_with("3;")).unwrap_or_default().split(';').collect();
    let number =
        |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok(if field == "bw" { (number(6) + number(47)) / 1024.0 } else { number(7) + number(48) })
}

/// The reads of a size read what its writes have written.
fn job_name(size: &str) -> String {
    format!("bench{}", size.replace(['=', '-'], ""))
}

/// Writes of each turn make their files anew.
fn forget_files(directory: &Path, size: &str) -> Result<(), String> {
    let job = job_name(size);
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().starts_with(&job) {
            fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}

/// Files a second of making, looking at, reading and deleting, each of which starts without caches,
/// and the program's memory before they are deleted in the first turn.
fn small_files(column: &mut Column, turn: usize) -> Result<(), String> {
    let folder = column.served.directory.join(format!("small{turn}"));
    fs::create_dir(&folder).map_err(|error| error.to_string())?;
    let content = vec![b'x'; FILE_SIZE];
    let paths: Vec<PathBuf> = (0..column.files).map(|n| folder.join(format!("file{n}"))).collect();
    let make =
        |path: &PathBuf| fs::File::create(path).and_then(|mut file| file.write_all(&content));
    let keep = |column: &mut Column, at: usize, figure| {
        column.keep(MEASURES.len() + at, SMALL_FILES[at], figure);
    };
    keep(column, 0, rate(&paths, make)?);
    keep(column, 1, rate(&paths, |path| fs::metadata(path).map(drop))?);
    keep(column, 2, rate(&paths, |path| fs::read(path).map(drop))?);
    if turn == 0 {
        column.memory = column.served.own_memory()?;
    }
    keep(column, 3, rate(&paths, |path| fs::remove_file(path))?);
    Ok(())
}

fn rate(paths: &[PathBuf], work: impl Fn(&PathBuf) -> std::io::Result<()>) -> Result<f64, String> {
    drop_caches();
    let start = Instant::now();
    for path in paths {
        work(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(paths.len() as f64 / start.elapsed().as_secs_f64())
}

fn drop_caches() {
    let _ = Command::new("sync").status();
    let _ = fs::write("/proc/sys/vm/drop_caches", "3"); // not as root: all have the same advantage
}

/// Each figure, and ours as a multiple of the others'.
fn print_table(columns: &[Column; 4]) {
    let names = columns.each_ref().map(|column| column.name);
    let [_, others @ ..] = names;
    println!("| | {} | to {} |", names.join(" | "), others.join(" | to "));
    println!("|---|---|---|---|---|---|---|---|");
    let rows = MEASURES.iter().map(|measure| measure.0).chain(SMALL_FILES);
    for (row, name) in rows.enumerate() {
        let [ours, others @ ..] = columns.each_ref().map(|column| column.figures[row]);
        let ratios = others.map(|other| format!("{:.2}", ours / other)).join(" | ");
        let others = others.map(|other| format!("{other:.0}")).join(" | ");
        println!("| {name} | {ours:.0} | {others} | {ratios} |");
    }
    let memory = columns.each_ref().map(|column| format!("{:.0}", column.memory)).join(" | ");
    println!("| memory of its own, MiB | {memory} | | | |");
}
