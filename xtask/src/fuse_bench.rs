//! `cargo xtask fuse-bench`: our mount beside fuse2fs and beside libfuse's passthrough_ll, which is
//! what FUSE itself can do. One machine, one run: figures of different runs are not comparable.

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

/// Results of one file system: a figure a measure, larger is better.
struct Column {
    name: &'static str,
    figures: Vec<f64>,
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

/// Ours is F2FS, or what `--fs` says; fuse2fs is ext4.
pub(crate) fn fuse_bench(arguments: &[String]) -> Result<(), String> {
    let (format, _) = Format::take(arguments)?;
    install(&PACKAGES)?;
    if !Path::new(PASSTHROUGH).is_file() {
        install(&[("libfuse3-dev", "libfuse3-dev has no program")])?;
    }
    let program = dovetail()?;
    let place = Workplace::new("fuse-bench")?;
    let columns = [ours(format, &place, &program)?, fuse2fs(&place)?, passthrough(&place)?];
    print_table(&columns);
    Ok(())
}

fn ours(format: Format, place: &Workplace, program: &Path) -> Result<Column, String> {
    let (image, served) = format.mount(place, program, GIB)?;
    let column = measure("dovetail", &served.directory, FILES)?;
    served.end()?;
    fs::remove_file(image).map_err(|error| error.to_string())?;
    Ok(column)
}

fn fuse2fs(place: &Workplace) -> Result<Column, String> {
    let image = Format::Ext4.make(place, GIB << 30, &[])?;
    let directory = place.folder("fuse2fs")?;
    let mut command = Command::new("fuse2fs");
    command.args(["-f", "-o", "fakeroot"]).args([&image, &directory]).stderr(Stdio::null());
    let served = Served::start(&mut command, &directory)?;
    let column = measure("fuse2fs", &served.directory, FILES)?;
    served.end()?;
    fs::remove_file(image).map_err(|error| error.to_string())?;
    Ok(column)
}

/// passthrough_ll over a folder of the machine's own file system, with the kernel's cache for
/// writes and for names.
fn passthrough(place: &Workplace) -> Result<Column, String> {
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
    let (source, directory) = (place.folder("source")?, place.folder("passthrough")?);
    let options = format!("source={},writeback,cache=always,timeout=86400", source.display());
    // it keeps a file open for each inode that the kernel knows, and 20,000 is a usual limit of
    // open files
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n $(ulimit -Hn) && exec \"$@\"", "sh"]).arg(program);
    command.args(["-f", "-o", &options]).arg(&directory).stderr(Stdio::null());
    let served = Served::start(&mut command, &directory)?;
    let column = measure("passthrough_ll", &served.directory, FILES * 3 / 4)?;
    served.end()?;
    Ok(column)
}

fn measure(name: &'static str, directory: &Path, files: usize) -> Result<Column, String> {
    let mut figures = Vec::new();
    for (what, arguments, field) in MEASURES {
        let figure = fio(directory, arguments, field)?;
        eprintln!("{name}: {what}: {figure:.0}");
        figures.push(figure);
    }
    let small = small_files(&directory.join("small"), files)?;
    eprintln!("{name}: {files} small files: {small:.0?}");
    figures.extend(small);
    Ok(Column { name, figures })
}

/// Runs fio on files of its own and gives the sum over its jobs: `bw` in MiB/s, `iops`.
fn fio(directory: &Path, arguments: &[&str], field: &str) -> Result<f64, String> {
    let size = arguments
        .iter()
        .find(|argument| argument.starts_with("--size"))
        .copied()
        .unwrap_or_default();
    drop_caches();
    let mut command = Command::new("fio");
    command.arg(format!("--name=bench{}", size.replace(['=', '-'], ""))).args(arguments);
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

/// Files a second of making, looking at, reading and deleting; each starts without caches.
fn small_files(folder: &Path, count: usize) -> Result<[f64; 4], String> {
    fs::create_dir(folder).map_err(|error| error.to_string())?;
    let content = vec![b'x'; FILE_SIZE];
    let paths: Vec<PathBuf> = (0..count).map(|n| folder.join(format!("file{n}"))).collect();
    let make =
        |path: &PathBuf| fs::File::create(path).and_then(|mut file| file.write_all(&content));
    Ok([
        rate(&paths, make)?,
        rate(&paths, |path| fs::metadata(path).map(drop))?,
        rate(&paths, |path| fs::read(path).map(drop))?,
        rate(&paths, |path| fs::remove_file(path))?,
    ])
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

fn print_table(columns: &[Column; 3]) {
    let names = MEASURES.iter().map(|measure| measure.0).chain(SMALL_FILES);
    let [ours, fuse2fs, passthrough] = columns;
    println!(
        "| | {} | {} | {} | to fuse2fs | to passthrough_ll |",
        ours.name, fuse2fs.name, passthrough.name
    );
    println!("|---|---|---|---|---|---|");
    for (row, name) in names.enumerate() {
        let (a, b, c) = (ours.figures[row], fuse2fs.figures[row], passthrough.figures[row]);
        println!("| {name} | {a:.0} | {b:.0} | {c:.0} | {:.2} | {:.2} |", a / b, a / c);
    }
}
