//! `cargo xtask serve-bench`: a drive that is served over NBD beside nbdkit's memory plugin, which
//! is what the protocol and fio can do. Both answer at once. They take turns, so that both see the
//! same machine.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::mounts::{Workplace, dovetail};
use crate::{install, run};

const PACKAGES: [(&str, &str); 3] =
    [("fio", "fio"), ("libnbd-bin", "nbdcopy"), ("nbdkit", "nbdkit")];
/// Bytes that are read and written.
const SIZE: &str = "256m";
const DRIVE: &str = "femu-32g";
/// Turns of each server; the median counts.
const TURNS: usize = 5;
/// Least of nbdkit's requests a second that is asked for.
const ASKED: f64 = 0.8;
/// Longest time for a server to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// Depth of the queue, and what is done.
const MEASURES: [(&str, &str, &str); 4] = [
    ("random read 4 KiB, 1 in flight", "randread", "1"),
    ("random write 4 KiB, 1 in flight", "randwrite", "1"),
    ("random read 4 KiB, 32 in flight", "randread", "32"),
    ("random write 4 KiB, 32 in flight", "randwrite", "32"),
];

/// A server, until the end of the bench.
struct Serving {
    program: Child,
    uri: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // it has nothing that must be kept
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Fails if a measure is below what is asked for. An argument is the seconds of a turn.
pub(crate) fn serve_bench(arguments: &[String]) -> Result<(), String> {
    let seconds = arguments.first().map_or("3", String::as_str);
    install(&PACKAGES)?;
    let program = dovetail()?;
    let place = Workplace::new("serve-bench")?;
    let socket = |name: &str| place.path.join(name);
    let ours = Serving::start(
        Command::new(program)
            .args(["serve", DRIVE, "--scale", "1/16", "--speed", "0", "--unix"])
            .arg(socket("ours")),
        &socket("ours"),
    )?;
    let nbdkit = Serving::start(
        Command::new("nbdkit").args(["-f", "-U"]).arg(socket("nbdkit")).args(["memory", "2G"]),
        &socket("nbdkit"),
    )?;
    for serving in [&ours, &nbdkit] {
        fio(&serving.uri, &["--rw=write", "--bs=1m", "--iodepth=4"])?;
    }
    println!("| requests a second | dovetail | nbdkit memory | ratio |\n|---|---|---|---|");
    let mut below = Vec::new();
    for (name, rw, depth) in MEASURES {
        let arguments = [
            format!("--rw={rw}"),
            format!("--iodepth={depth}"),
            format!("--runtime={seconds}"),
            "--bs=4k".into(),
            "--time_based".into(),
        ];
        let arguments = arguments.each_ref().map(String::as_str);
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            a.push(fio(&ours.uri, &arguments)?);
            b.push(fio(&nbdkit.uri, &arguments)?);
        }
        let (a, b) = (median(a), median(b));
        println!("| {name} | {a:.0} | {b:.0} | {:.2} |", a / b);
        if a / b < ASKED {
            below.push(name);
        }
    }
    if below.is_empty() { Ok(()) } else { Err(format!("below {ASKED}: {}", below.join("; "))) }
}

impl Serving {
    fn start(command: &mut Command, socket: &Path) -> Result<Self, String> {
        let shown = format!("{command:?}");
        let program =
            command.stdout(Stdio::null()).spawn().map_err(|error| format!("{shown}: {error}"))?;
        let uri = format!("nbd+unix:///?socket={}", socket.display());
        let mut serving = Self { program, uri };
        let start = Instant::now();
        let mut ask = Command::new("nbdinfo");
        ask.args(["--size", &serving.uri]).stdout(Stdio::null()).stderr(Stdio::null());
        while run(&mut ask).is_err() {
            if let Ok(Some(status)) = serving.program.try_wait() {
                return Err(format!("{shown} ended with {status}"));
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("{shown} does not answer within {PATIENCE:?}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(serving)
    }
}

/// Runs fio and gives its requests a second.
fn fio(uri: &str, arguments: &[&str]) -> Result<f64, String> {
    let mut command = Command::new("fio");
    command.args(["--name=bench", "--ioengine=nbd", "--output-format=json"]).args(arguments);
    command.args([format!("--uri={uri}"), format!("--size={SIZE}")]);
    let output = command.output().map_err(|error| format!("fio: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = || format!("fio failed: {text}{}", String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(failed());
    }
    // notes of fio may stand before it
    let json = text.find('{').map_or("", |at| &text[at..]);
    let results: serde_json::Value = serde_json::from_str(json).map_err(|_| failed())?;
    let iops = |kind: &str| results["jobs"][0][kind]["iops"].as_f64().unwrap_or(0.0);
    Ok(iops("read") + iops("write"))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
