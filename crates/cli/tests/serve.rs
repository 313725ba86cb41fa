//! A drive that is served, to the tools that people have.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::nbd_client::{Client, FLUSH, FUA, WRITE, request_bytes};
use crate::referee;

fn dovetail(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail")).args(arguments).output().unwrap()
}

fn succeeds(arguments: &[&str]) -> String {
    let output = dovetail(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A server that runs; killed when the test ends before it does.
struct Serving {
    program: Child,
    socket: PathBuf,
}

impl Serving {
    fn start(drive: &str, socket: &Path, rest: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
        command.args(["serve", drive, "--unix"]).arg(socket).args(rest);
        let mut program = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut told = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut told).unwrap();
        assert!(told.starts_with("serving "), "{told:?}");
        Self { program, socket: socket.to_path_buf() }
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    fn client(&self) -> Client {
        let mut client = Client::connect(&self.socket);
        client.begin(true);
        client
    }

    /// Ends it as a user does.
    fn end(mut self) {
        let pid = Pid::from_child(&self.program);
        kill_process(pid, Signal::TERM).unwrap();
        assert!(self.program.wait().unwrap().success());
        assert!(!self.socket.exists());
    }

    /// Ends it as the lack of memory does.
    fn kill(mut self) {
        self.program.kill().unwrap();
        self.program.wait().unwrap();
        assert!(self.socket.exists());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // ended already, where all went well
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn tool(program: &str, package: &str, arguments: &[&str]) -> String {
    let output = referee::run(program, package, arguments);
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A new drive in memory that answers at once.
fn at_once(folder: &Path) -> Serving {
    Serving::start("femu-32g", &folder.join("socket"), &["--scale", "1/64", "--speed", "0"])
}

/// A drive with a volatile write buffer of 6 MiB, in a file.
fn drive_file(folder: &Path) -> PathBuf {
    let file = folder.join("drive");
    succeeds(&["drive", "make", text(&file), "--profile", "evo970-500g", "--scale", "1/256"]);
    file
}

#[test]
fn nbdinfo_finds_what_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let serving = at_once(folder.path());
    let info = tool("nbdinfo", "libnbd-bin", &["--json", &serving.uri()]);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["structured"], true);
    let export = &info["exports"][0];
    for feature in ["can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero", "can_df"] {
        assert_eq!(export[feature], true, "{feature}: {export}");
    }
    for lacking in ["is_rotational", "is_read_only"] {
        assert_eq!(export[lacking], false, "{lacking}: {export}");
    }
    assert_eq!(
        (&export["block_size_minimum"], &export["block_size_preferred"]),
        (&512.into(), &4096.into())
    );
    assert_eq!(export["export-size"], 512 << 20);
    assert_eq!(export["contexts"], serde_json::json!(["base:allocation"]));
    assert_eq!(tool("nbdinfo", "libnbd-bin", &["--size", &serving.uri()]), "536870912\n");
    let list = tool("nbdinfo", "libnbd-bin", &["--list", &serving.uri()]);
    assert!(list.contains("export=\"femu-32g\":"), "{list}");
    serving.end();
}

#[test]
fn a_port_serves_as_a_socket_does() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.args(["serve", "femu-32g", "--scale", "1/64", "--read-only", "--tcp", "0"]);
    let mut program = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut told).unwrap();
    let serving = Serving { program, socket: PathBuf::new() };
    let uri = told.trim_end().rsplit(' ').next().unwrap();
    assert!(uri.starts_with("nbd://127.0.0.1:") && told.contains(", read-only"), "{told}");
    let info = tool("nbdinfo", "libnbd-bin", &[uri]);
    assert!(info.contains("is_read_only: true"), "{info}");
    let port = uri.rsplit(':').next().unwrap();
    assert!(succeeds(&["serve", "--status", port]).contains("femu-32g"));
    serving.end();
}

/// Volumes of Linux's own tools, written to the drive and read back, are what they were; and so is
/// what lies in them.
#[test]
fn volumes_go_to_the_drive_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["f2fs", "ext4"] {
        let (image, back) = (folder.path().join("image"), folder.path().join("back"));
        File::create(&image).unwrap().set_len(512 << 20).unwrap();
        let package = if kind == "f2fs" { "f2fs-tools" } else { "e2fsprogs" };
        tool(&format!("mkfs.{kind}"), package, &["-q", text(&image)]);
        let source = folder.path().join("source");
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
        fs::write(&source, &bytes).unwrap();
        succeeds(&["cp", text(&source), &format!("{}:/file", text(&image))]);
        let serving = at_once(folder.path());
        tool("nbdcopy", "libnbd-bin", &["--flush", text(&image), &serving.uri()]);
        tool("nbdcopy", "libnbd-bin", &[&serving.uri(), text(&back)]);
        serving.end();
        assert!(fs::read(&image).unwrap() == fs::read(&back).unwrap(), "{kind}");
        referee::check_clean(text(&back), kind);
        let file = dovetail(&["cat", text(&back), "/file"]).stdout;
        assert!(file == bytes, "{kind}: the file in the copy");
    }
}

/// A volume that was made on a drive file is served, and one that was written to the drive over NBD
/// is in its file.
#[test]
fn a_drive_file_is_the_same_drive_with_a_server_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let (drive, socket) = (drive_file(folder.path()), folder.path().join("socket"));
    let (source, image) = (folder.path().join("source"), folder.path().join("image"));
    fs::write(&source, [7; 100_000]).unwrap();
    succeeds(&["mkfs", "f2fs", text(&drive)]);
    succeeds(&["cp", text(&source), &format!("{}:/file", text(&drive))]);
    let serving = Serving::start(text(&drive), &socket, &["--speed", "0", "--read-only"]);
    tool("nbdcopy", "libnbd-bin", &[&serving.uri(), text(&image)]);
    serving.end();
    referee::check_clean(text(&image), "f2fs");
    assert_eq!(dovetail(&["cat", text(&image), "/file"]).stdout, [7; 100_000]);

    let mapped = File::options().write(true).open(&image).unwrap();
    mapped.set_len(fs::metadata(&image).unwrap().len()).unwrap();
    tool("mkfs.ext4", "e2fsprogs", &["-q", "-F", text(&image)]);
    succeeds(&["cp", text(&source), &format!("{}:/other", text(&image))]);
    let serving = Serving::start(text(&drive), &socket, &["--speed", "0"]);
    let refused = dovetail(&["drive", "status", text(&drive)]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("(dovetail)"), "{said}");
    tool("nbdcopy", "libnbd-bin", &[text(&image), &serving.uri()]);
    serving.end();
    assert_eq!(dovetail(&["cat", text(&drive), "/other"]).stdout, [7; 100_000]);
    assert!(dovetail(&["fsck", text(&drive)]).status.success());
}

fn fio(uri: &str, rest: &[&str]) -> String {
    let uri = format!("--uri={uri}");
    tool(
        "fio",
        "fio",
        &[&["--name=job", "--ioengine=nbd", &uri, "--minimal", "--verify_state_save=0"], rest]
            .concat(),
    )
}

#[test]
fn fio_verifies_what_it_wrote() {
    let folder = tempfile::tempdir().unwrap();
    for speed in ["0", "1"] {
        let rest = ["--scale", "1/64", "--speed", speed];
        let serving = Serving::start("femu-32g", &folder.path().join("socket"), &rest);
        let mixed = ["--rw=randwrite", "--bsrange=512-64k", "--size=16m", "--verify=crc32c"];
        fio(&serving.uri(), &[&mixed[..], &["--iodepth=16", "--fsync=100"]].concat());
        let jobs = ["--rw=randrw", "--bs=4k", "--size=4m", "--numjobs=4", "--offset_increment=8m"];
        fio(&serving.uri(), &[&jobs[..], &["--iodepth=8", "--verify=crc32c"]].concat());
        fio(&serving.uri(), &["--rw=randtrim", "--bs=4k", "--size=4m", "--iodepth=4"]);
        serving.end();
    }
}

#[test]
fn fio_verifies_after_the_server_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (drive, socket) = (drive_file(folder.path()), folder.path().join("socket"));
    let job = ["--rw=randwrite", "--bs=4k", "--size=24m", "--iodepth=32", "--verify=crc32c"];
    let serving = Serving::start(text(&drive), &socket, &["--speed", "0"]);
    fio(&serving.uri(), &[&job[..], &["--do_verify=0", "--end_fsync=1"]].concat());
    serving.kill();
    let serving = Serving::start(text(&drive), &socket, &["--speed", "0"]);
    fio(&serving.uri(), &[&job[..], &["--verify_only"]].concat());
    serving.end();
}

/// The block that a test writes as version `version` of block `n`.
fn block(n: u64, version: u8) -> Vec<u8> {
    (0..4096_u64).map(|i| if i % 2 == 0 { version } else { (n * 31 + i) as u8 }).collect()
}

const BLOCKS: u64 = 300;

fn write_all(client: &mut Client, version: u8, flags: u16) {
    for n in 0..BLOCKS {
        let data = block(n, version);
        client.call(WRITE, flags, n * 8192, 4096, &data).unwrap();
    }
}

/// Versions of the blocks that are there, each as a whole.
fn versions(client: &mut Client) -> Vec<u8> {
    let version = |n: u64| {
        let read = client.read(n * 8192, 4096).unwrap();
        assert_eq!(read, block(n, read[0]), "block {n} is of one version");
        read[0]
    };
    (0..BLOCKS).map(version).collect()
}

#[test]
fn a_server_that_is_killed_loses_the_volatile_buffer_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let (drive, socket) = (drive_file(folder.path()), folder.path().join("socket"));
    let start = || Serving::start(text(&drive), &socket, &["--speed", "0"]);
    let serving = start();
    let mut client = serving.client();
    write_all(&mut client, 1, 0);
    client.call(FLUSH, 0, 0, 0, &[]).unwrap();
    write_all(&mut client, 2, 0);
    serving.kill();

    let serving = start();
    let mut client = serving.client();
    let found = versions(&mut client);
    assert!(found.iter().all(|version| [1, 2].contains(version)), "{found:?}");
    assert!(found.contains(&1), "writes that were not flushed are in a buffer of 6 MiB");
    write_all(&mut client, 3, FUA);
    serving.kill();

    let serving = start();
    let mut client = serving.client();
    assert_eq!(versions(&mut client), [3; BLOCKS as usize]);
    write_all(&mut client, 4, 0);
    serving.end();

    let serving = start();
    assert_eq!(versions(&mut serving.client()), [4; BLOCKS as usize], "SIGTERM flushes");
    serving.end();
}

/// A block that was written, as its writer knows it.
#[derive(Clone, Copy, Default)]
struct Written {
    /// The last version that was acknowledged as durable.
    durable: u64,
    /// The last version that was sent.
    sent: u64,
}

/// Writes versions of a few blocks of its own until the server is gone: every other round with FUA,
/// the others without, but with a flush behind. Counts the rounds that are durable.
fn write_until_killed(
    mut client: Client,
    first: u64,
    blocks: &mut [Written],
    durable_rounds: &AtomicU64,
) {
    let call = |client: &mut Client, command, flags, offset, data: &[u8]| {
        let mut bytes = request_bytes(command, flags, 1, offset, data.len() as u32);
        bytes.extend(data);
        let reply = client.stream.write_all(&bytes).and_then(|()| client.take(20));
        reply.map(|reply| assert_eq!(reply[4..8], [0, 1, 0, 0], "done, and no error"))
    };
    for round in 1_u64.. {
        let fua = if round % 2 == 0 { 0 } else { FUA };
        for (n, block) in blocks.iter_mut().enumerate() {
            block.sent += 1;
            let data = block.sent.to_le_bytes().repeat(512);
            let offset = (first + n as u64) * 4096;
            let Ok(()) = call(&mut client, WRITE, fua, offset, &data) else { return };
            if fua != 0 {
                block.durable = block.sent;
            }
        }
        if fua == 0 {
            let Ok(()) = call(&mut client, FLUSH, 0, 0, &[]) else { return };
            blocks.iter_mut().for_each(|block| block.durable = block.sent);
        }
        durable_rounds.store(round, Ordering::Relaxed);
    }
}

#[test]
fn a_server_killed_in_the_middle_keeps_what_it_acknowledged() {
    const WRITERS: usize = 4;
    const OWN: usize = 16;
    let folder = tempfile::tempdir().unwrap();
    let (drive, socket) = (drive_file(folder.path()), folder.path().join("socket"));
    let mut blocks = [[Written::default(); OWN]; WRITERS];
    for round in 0..5 {
        let serving = Serving::start(text(&drive), &socket, &["--speed", "0"]);
        let durable_rounds = [const { AtomicU64::new(0) }; WRITERS];
        thread::scope(|scope| {
            for ((writer, own), rounds) in blocks.iter_mut().enumerate().zip(&durable_rounds) {
                let client = serving.client();
                scope.spawn(move || write_until_killed(client, (writer * OWN) as u64, own, rounds));
            }
            thread::sleep(Duration::from_millis(200 + 137 * round));
            // where the host's fsync is slow, a round of each kind takes longer than that
            let slowest = || durable_rounds.iter().map(|n| n.load(Ordering::Relaxed)).min();
            let begun = Instant::now();
            while slowest() < Some(2) && begun.elapsed() < Duration::from_secs(60) {
                thread::sleep(Duration::from_millis(1));
            }
            serving.kill();
        });
        let serving = Serving::start(text(&drive), &socket, &["--speed", "0"]);
        let mut client = serving.client();
        for (n, block) in blocks.iter_mut().flatten().enumerate() {
            let read = client.read(n as u64 * 4096, 4096).unwrap();
            let version = u64::from_le_bytes(read[..8].try_into().unwrap());
            assert_eq!(read, version.to_le_bytes().repeat(512), "block {n} is of one version");
            assert!(
                (block.durable..=block.sent).contains(&version),
                "round {round}, block {n}: version {version}, acknowledged {}, sent {}",
                block.durable,
                block.sent
            );
            *block = Written { durable: version, sent: block.sent };
        }
        serving.end();
    }
    assert!(blocks.iter().flatten().all(|block| block.durable > 5), "each of them wrote");
}

#[test]
fn qemu_reads_and_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let serving = at_once(folder.path());
    let info = tool("qemu-img", "qemu-utils", &["info", "--output=json", &serving.uri()]);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["virtual-size"], 512 << 20);
    let commands = [
        "write -P 7 512 1536",
        "flush",
        "read -P 7 512 1536",
        "read -P 0 0 512",
        "write -f -P 3 3M 64k",
        "write -z -u 3M 32k",
        "read -P 0 3M 32k",
        "read -P 3 3104k 32k",
        "discard 3M 64k",
        "read -P 0 3M 64k",
        "write -z 4M 4k",
    ];
    let mut arguments = vec!["-f", "raw"];
    commands.iter().for_each(|command| arguments.extend(["-c", command]));
    let uri = serving.uri();
    arguments.push(&uri);
    let said = tool("qemu-io", "qemu-utils", &arguments);
    assert!(!said.contains("failed") && !said.contains("error"), "{said}");
    let map = tool("qemu-img", "qemu-utils", &["map", "--output=json", &uri]);
    let map: serde_json::Value = serde_json::from_str(&map).unwrap();
    let data: Vec<_> = map.as_array().unwrap().iter().filter(|e| e["data"] == true).collect();
    assert_eq!(data.len(), 2, "what was written, and zeros that may be no hole: {map}");
    for (extent, start) in data.iter().zip([0, 4 << 20]) {
        assert_eq!((&extent["start"], &extent["length"]), (&start.into(), &4096.into()));
    }
    serving.end();
}

#[test]
fn the_counters_of_a_running_drive_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let serving = at_once(folder.path());
    serving.client().write(0, &[1; 65536]).unwrap();
    let socket = text(&serving.socket).to_string();
    let shown = succeeds(&["serve", "--status", &socket]);
    assert!(shown.contains("64.0 KiB in 1 commands") && shown.contains("femu-32g"), "{shown}");
    let json = succeeds(&["serve", "--status", &socket, "--json"]);
    let status: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(status["since_power_on"]["flash_written_bytes"], 65536);
    assert_eq!(status["server"]["requests"]["write"], 1);
    assert_eq!(status["drive"]["erases_most"], 0);
    serving.end();
    let gone = dovetail(&["serve", "--status", &socket]);
    assert_eq!(gone.status.code(), Some(1));
}

#[test]
fn what_cannot_be_served_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let refused = |arguments: &[&str], code: i32, why: &str| {
        let output = dovetail(&[&["serve"], arguments].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.contains(why)), (Some(code), true), "{said}");
    };
    let unix = text(&socket);
    refused(&["femu-32g"], 2, "say where to listen");
    refused(&["nothing", "--unix", unix], 2, "nothing");
    refused(&["femu-32g", "--scale", "1/64", "--tcp", "0.0.0.0:0"], 1, "--allow-remote");
    refused(&["femu-32g-zoned", "--scale", "1/64", "--unix", unix], 1, "zones");
    refused(&["femu-32g", "--speed=-1", "--unix", unix], 2, "give a number");
    let file = drive_file(folder.path());
    refused(&[text(&file), "--scale", "1/64", "--unix", unix], 2, "stays as it was made");
    refused(&[], 2, "DRIVE");
    assert!(!socket.exists());
    let serving = at_once(folder.path());
    refused(&["femu-32g", "--scale", "1/64", "--unix", unix], 1, "a server answers there already");
    serving.end();
}
