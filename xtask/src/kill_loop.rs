//! `cargo xtask kill-loop`: mounts are killed (SIGKILL) at any moment while processes work on them,
//! mounted again and looked at. Nothing that an fsync acknowledged may be missing, no process may
//! be left that cannot be killed, and no mount. Images lie in memory, where a flush takes no time:
//! what depends on slow flushes shows.
//!
//! A seed decides the operations and after how many of them the kill comes, not the instant: a
//! failing round may have to be played more than once.

mod model;
mod worker;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::mounts::{Format, Workplace, dovetail};
use crate::{install, run};
use worker::Random;

const PACKAGES: [(&str, &str); 3] =
    [("fuse3", "fusermount3"), ("e2fsprogs", "mke2fs"), ("f2fs-tools", "mkfs.f2fs")];
const MEMORY: &str = "/dev/shm";
const MIB: u64 = 64;
/// Processes that work at the same time, each in directories of its own.
const WORKERS: u64 = 3;
/// Longest time for a process to appear, or to go once it was killed.
const PATIENCE: Duration = Duration::from_secs(10);
const ROUNDS: u64 = 300;

/// Totals over rounds.
#[derive(Default)]
struct Tally {
    rounds: u64,
    operations: usize,
    syncs: usize,
    found: usize,
    failed: Vec<(u64, String)>,
}

/// `[--fs f2fs|ext4|ext3] [ROUNDS] [--seed SEED]`: without --fs all three, with --seed that round
/// alone.
pub(crate) fn kill_loop(arguments: &[String]) -> Result<(), String> {
    if let [first, directory, log, seed] = arguments
        && first == "worker"
    {
        return worker::work(Path::new(directory), Path::new(log), number(seed)?);
    }
    let one = arguments.iter().any(|argument| argument == "--fs");
    let (format, mut rest) = Format::take(arguments)?;
    if format == Format::Iplfs {
        return Err("--fs is f2fs, ext4 or ext3: others do not check IPLFS".to_string());
    }
    let seed = take_seed(&mut rest)?;
    let rounds = rest.first().map_or(Ok(ROUNDS), |rounds| number(rounds))?;
    install(&PACKAGES)?;
    let program = dovetail()?;
    let formats = if one { vec![format] } else { vec![Format::F2fs, Format::Ext4, Format::Ext3] };
    let start = seed.unwrap_or_else(|| u64::from(std::process::id()) << 32);
    let seeds = start..start + seed.map_or(rounds, |_| 1);
    let mut lines = Vec::new();
    let mut failed = false;
    for format in formats {
        let tally = play_all(format, &program, seeds.clone())?;
        failed |= !tally.failed.is_empty();
        lines.push(tally.line(format));
    }
    println!(
        "| file system | rounds | operations | syncs acknowledged | names found | failed rounds |"
    );
    println!("|---|---|---|---|---|---|");
    lines.iter().for_each(|line| println!("{line}"));
    if failed { Err("what was acknowledged is not there, see above".to_string()) } else { Ok(()) }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

fn take_seed(arguments: &mut Vec<&str>) -> Result<Option<u64>, String> {
    let Some(at) = arguments.iter().position(|argument| *argument == "--seed") else {
        return Ok(None);
    };
    let seed = arguments.get(at + 1).ok_or("--seed wants a number").copied();
    let seed = number(seed?)?;
    arguments.drain(at..at + 2);
    Ok(Some(seed))
}

impl Tally {
    fn line(&self, format: Format) -> String {
        let Self { rounds, operations, syncs, found, failed } = self;
        format!(
            "| {} | {rounds} | {operations} | {syncs} | {found} | {} |",
            format.name(),
            failed.len()
        )
    }
}

fn play_all(format: Format, program: &Path, seeds: std::ops::Range<u64>) -> Result<Tally, String> {
    let mut tally = Tally::default();
    println!("== {}: seeds {} to {}", format.name(), seeds.start, seeds.end - 1);
    for seed in seeds {
        tally.rounds += 1;
        if let Err(error) = Round::new(format, program, seed)?.play(&mut tally) {
            println!("{error}\nreplay: cargo xtask kill-loop --fs {} --seed {seed}", format.name());
            tally.failed.push((seed, error));
            if tally.failed.len() >= 10 {
                println!("no more rounds after ten that failed");
                break;
            }
        }
    }
    Ok(tally)
}

/// Choices of a seed beside the operations.
struct Plan {
    large_blocks: bool,
    /// Otherwise the mount is killed as soon as it is there.
    works: bool,
    /// Operations of the first worker, and the time after them.
    kill_after: (usize, Duration),
    /// The mount that recovers is killed as well, in recovery or soon after it.
    twice: bool,
}

impl Plan {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        Self {
            large_blocks: random.below(2) == 0,
            works: random.below(8) > 0,
            kill_after: (
                random.below(600) as usize,
                Duration::from_micros(random.below(400).into()),
            ),
            twice: random.below(4) == 0,
        }
    }
}

/// One image, mounted, worked on, killed and looked at.
struct Round<'a> {
    format: Format,
    program: &'a Path,
    seed: u64,
    plan: Plan,
    place: Workplace,
    image: PathBuf,
    directory: PathBuf,
}

impl<'a> Round<'a> {
    fn new(format: Format, program: &'a Path, seed: u64) -> Result<Self, String> {
        let place = Workplace::within(Path::new(MEMORY), "kill")?;
        let directory = place.folder("mounted")?;
        let plan = Plan::new(seed);
        let options: &[&str] = match format {
            Format::Ext4 | Format::Ext3 if plan.large_blocks => &["-b", "4096"],
            _ => &[],
        };
        let image = format.make(&place, MIB << 20, options)?;
        Ok(Self { format, program, seed, plan, place, image, directory })
    }

    fn play(&self, tally: &mut Tally) -> Result<(), String> {
        let mut mount = Mount::start(self.program, &self.image, &self.directory)?;
        if self.plan.works {
            self.work_and_kill(&mut mount)?;
        }
        mount.kill()?;
        if self.plan.twice {
            Mount::start(self.program, &self.image, &self.directory)?.kill()?;
        }
        let mount = Mount::start(self.program, &self.image, &self.directory)?;
        for worker in 0..WORKERS {
            self.check(worker, tally)?;
        }
        mount.end()?;
        self.check_volume()
    }

    fn root(&self, worker: u64) -> PathBuf {
        self.directory.join(format!("w{worker}"))
    }

    fn log(&self, worker: u64) -> PathBuf {
        self.place.path.join(format!("log{worker}"))
    }

    fn worker_seed(&self, worker: u64) -> u64 {
        self.seed.wrapping_mul(WORKERS).wrapping_add(worker)
    }

    /// Makes directories that are durable, lets workers use them, and kills the mount after some of
    /// their operations.
    fn work_and_kill(&self, mount: &mut Mount<'_>) -> Result<(), String> {
        for worker in 0..WORKERS {
            make_directories(&self.root(worker))
                .map_err(|error| format!("{}: {error}", self.seed))?;
        }
        let synced = File::open(&self.directory).and_then(|root| root.sync_all());
        synced.map_err(|error| format!("the first fsync: {error}"))?;
        let mut workers =
            (0..WORKERS).map(|worker| self.start_worker(worker)).collect::<Result<Vec<_>, _>>()?;
        let (wanted, delay) = self.plan.kill_after;
        let start = Instant::now();
        while start.elapsed() < PATIENCE && worker::acknowledged(&read_log(&self.log(0))) < wanted {
            let ended = workers.iter_mut().any(|worker| !matches!(worker.try_wait(), Ok(None)));
            if ended {
                break;
            }
            std::thread::yield_now();
        }
        let instant = Instant::now();
        while instant.elapsed() < delay {
            std::hint::spin_loop();
        }
        let early = workers.iter_mut().filter_map(|worker| worker.try_wait().ok().flatten()).next();
        mount.process.kill().map_err(|error| error.to_string())?;
        let ended: Result<Vec<()>, String> = workers.into_iter().map(end_worker).collect();
        mount.kill()?;
        ended?;
        early.map_or(Ok(()), |status| Err(format!("a worker ended before the kill: {status}")))
    }

    fn start_worker(&self, worker: u64) -> Result<Child, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let seed = self.worker_seed(worker).to_string();
        let mut command = Command::new(own);
        command
            .args(["kill-loop", "worker"])
            .arg(self.root(worker))
            .arg(self.log(worker))
            .arg(seed);
        command.stdin(Stdio::null()).spawn().map_err(|error| error.to_string())
    }

    fn check(&self, worker: u64, tally: &mut Tally) -> Result<(), String> {
        let log = read_log(&self.log(worker));
        if log.is_empty() {
            return Ok(()); // it was killed before there was work
        }
        let (model, syncs) = worker::replay(&log, self.worker_seed(worker));
        let found = worker::look(&self.root(worker))?;
        tally.operations += worker::acknowledged(&log);
        tally.syncs += syncs;
        tally.found += found.len();
        model.check(&found).map_err(|error| {
            let last = worker::last_operations(&log, self.worker_seed(worker)).join("\n  ");
            self.kept(&format!("worker {worker}: {error}\nits last operations:\n  {last}"))
        })
    }

    /// Both checkers find nothing.
    fn check_volume(&self) -> Result<(), String> {
        let mut own = Command::new(self.program);
        own.arg("fsck").arg(&self.image);
        for mut command in [Some(own), self.format.checker(&self.image)].into_iter().flatten() {
            let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
            if !output.status.success() {
                let text = String::from_utf8_lossy(&output.stdout);
                return Err(self.kept(&format!("{command:?}: {}\n{text}", output.status)));
            }
        }
        Ok(())
    }

    /// Keeps the image of a round that failed, and says where.
    fn kept(&self, error: &str) -> String {
        let name = format!("dovetail-kill-{}-{}.img", self.format.name(), self.seed);
        let kept = std::env::temp_dir().join(name);
        match fs::copy(&self.image, &kept) {
            Ok(_) => format!("{error}\nthe image: {}", kept.display()),
            Err(_) => error.to_string(),
        }
    }
}

fn make_directories(root: &Path) -> std::io::Result<()> {
    fs::create_dir(root)?;
    (0..model::DIRECTORIES).try_for_each(|dir| fs::create_dir(worker::directory(root, dir)))?;
    File::open(root)?.sync_all()
}

fn read_log(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_default() // a worker that has not begun has none
}

fn end_worker(mut worker: Child) -> Result<(), String> {
    match end_of(&mut worker) {
        Some(true) => Ok(()),
        Some(false) => Err("an operation failed, see above".to_string()),
        None => Err(format!("a worker hangs: {}", state_of(worker.id()))),
    }
}

/// Waits for a process to end, and tells if it ended well; `None` if it does not end.
fn end_of(process: &mut Child) -> Option<bool> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Ok(Some(status)) = process.try_wait() {
            return Some(status.success());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

/// The state of a process, and where in the kernel it waits.
fn state_of(process: u32) -> String {
    let read =
        |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
    let status = read("status");
    let state = status.lines().find(|line| line.starts_with("State")).unwrap_or_default();
    format!("process {process}, {state}, in {}", read("wchan"))
}

/// A mount and the process that serves it.
struct Mount<'a> {
    process: Child,
    directory: &'a Path,
    killed: bool,
}

impl<'a> Mount<'a> {
    fn start(program: &Path, image: &Path, directory: &'a Path) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.args(["mount", "-f"]).arg(image).arg(directory).stdin(Stdio::null());
        let process = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let mut mount = Self { process, directory, killed: false };
        let start = Instant::now();
        while device_at(directory).is_none() {
            if let Ok(Some(status)) = mount.process.try_wait() {
                return Err(format!("{command:?} ended with {status}"));
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("{command:?} does not mount"));
            }
        }
        Ok(mount)
    }

    /// Kills the process if it lives, sees it end, and takes the dead mount away.
    fn kill(&mut self) -> Result<(), String> {
        if self.killed {
            return Ok(());
        }
        let _ = self.process.kill(); // it may have been killed before
        if end_of(&mut self.process).is_none() {
            let state = state_of(self.process.id());
            self.abort();
            return Err(format!("the mount was killed and is still there: {state}"));
        }
        self.killed = true;
        run(Command::new("umount").arg(self.directory))?;
        device_at(self.directory).map_or(Ok(()), |device| Err(format!("mount {device} is left")))
    }

    /// Ends it as a user does.
    fn end(mut self) -> Result<(), String> {
        run(Command::new("kill").arg(self.process.id().to_string()))?;
        self.killed = true;
        match end_of(&mut self.process) {
            Some(true) if device_at(self.directory).is_none() => Ok(()),
            Some(true) => Err("the process has ended, its mount has not".to_string()),
            Some(false) => Err("the mount ended with an error".to_string()),
            None => Err(format!("the mount does not end: {}", state_of(self.process.id()))),
        }
    }

    /// Has the kernel end all requests, so that nothing hangs any more.
    fn abort(&self) {
        if let Some(number) =
            device_at(self.directory).as_deref().and_then(|device| device.strip_prefix("0:"))
        {
            let _ = fs::write(format!("/sys/fs/fuse/connections/{number}/abort"), "1");
        }
        let _ = Command::new("umount").arg("-f").arg(self.directory).status();
        let _ = Command::new("umount").arg("-l").arg(self.directory).stderr(Stdio::null()).status();
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        if !self.killed {
            let _ = self.process.kill();
            self.abort();
            let _ = end_of(&mut self.process);
        }
    }
}

/// The device number of what is mounted at a directory, from the kernel's list: a stat would ask
/// the mount.
fn device_at(directory: &Path) -> Option<String> {
    let list = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut lines = list.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    lines
        .find(|fields| fields.get(4).copied() == directory.to_str())
        .map(|fields| fields[2].to_string())
}
