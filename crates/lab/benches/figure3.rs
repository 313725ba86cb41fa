//! Figure 3 of the RM-IPU paper: four files overwritten at random by 4 KiB, an fsync after every
//! ten, 100 GiB in all, on both of F2FS's modes. How many calls and blocks a second are simulated,
//! in how much memory, and what share of the time each layer takes; beside it what the machine does
//! with three dependent random touches of an array as large as the files' pointers.
//!
//! The shares come from a second run of the same writes, one at a time, with a clock around each
//! layer: it reads the clock some ten times a write, so it is slower than the first.
//!
//! `cargo bench -p dovetail-lab --bench figure3 [-- SCALE]`, 1/16 if no scale is given

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at a broken set-up")]

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use dovetail_block::{
    BlockDevice, Command, Completion, Content, DeviceError, DeviceInfo, EventId, Pattern,
    Scheduler, SchedulingHint,
};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{AllocMode, F2fs, IpuPolicy, Options};
use dovetail_ftl::Drive;
use dovetail_host::{Event, Machine, Planner};
use dovetail_lab::bench::{Experiment, Source, Stack};
use dovetail_time::{Ratio, Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, Simulated};

const JOB: &str = "[figure3]
rw=randwrite
bs=4k
numjobs=4
size=4g
io_size=25g
norandommap
fsync=10
overwrite=1
";
const FILES: u64 = 4;
/// Blocks of a file, and writes to it, at full scale.
const BLOCKS: f64 = (4_u64 << 30) as f64 / 4096.0;
const WRITES: f64 = (25_u64 << 30) as f64 / 4096.0;
const WRITES_A_SYNC: u64 = 10;

fn main() {
    let scale = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let scale: Ratio = scale.as_deref().unwrap_or("1/16").parse().unwrap();
    for name in ["f2fs", "f2fs-lfs"] {
        let stack = Stack::load(name).unwrap();
        whole(&stack, scale);
        Parts::new(&stack, scale).measure(scale);
    }
    touches((FILES as f64 * BLOCKS * scale.value()) as usize);
}

fn whole(stack: &Stack, scale: Ratio) {
    let source = Source::fio(JOB, "figure3.fio", &[]).unwrap();
    let experiment = Experiment { scale, ..Experiment::new(&source, std::slice::from_ref(stack)) };
    let start = Instant::now();
    let (results, failures) = experiment.run(1, &|_| ());
    let spent = start.elapsed().as_secs_f64();
    assert!(failures.is_empty(), "{failures:?}");
    let run = &results.runs[0];
    assert_eq!(run.error, None);
    let blocks: u64 = run.written.values().sum();
    let calls = WRITES * FILES as f64 * scale.value() * (1.0 + 1.0 / WRITES_A_SYNC as f64);
    println!(
        "{}: {spent:.1} s, {:.3} million calls/s, {:.3} million blocks/s to the drive, peak so far {} MiB",
        stack.name,
        calls / spent / 1e6,
        blocks as f64 / spent / 1e6,
        peak_kib() / 1024,
    );
}

/// The most memory that the process has had, in KiB; 0 where the system does not say.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

type Clock = Rc<Cell<Duration>>;

fn clocked<T>(clock: &Cell<Duration>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    clock.set(clock.get() + start.elapsed());
    done
}

/// A device with a clock around it.
struct Timed<D> {
    device: D,
    clock: Clock,
}

impl<D: BlockDevice> BlockDevice for Timed<D> {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        clocked(&self.clock, || self.device.submit(at, command))
    }
}

impl<D: Scheduler> Scheduler for Timed<D> {
    fn hint(&mut self, hint: SchedulingHint) {
        clocked(&self.clock, || self.device.hint(hint));
    }

    fn is_signalled(&self, event: EventId) -> bool {
        self.device.is_signalled(event)
    }

    fn pages_on_their_way(&self) -> usize {
        self.device.pages_on_their_way()
    }
}

/// The layers of a stack. The clock of each counts the time of the layer below it as well.
struct Parts {
    fs: F2fs<Timed<Planner>>,
    planner: Planner,
    machine: Machine<Timed<Drive>, u64>,
    files: Vec<Ino>,
    calling: Clock,
    planning: Clock,
    playing: Clock,
    driving: Clock,
}

impl Parts {
    fn new(stack: &Stack, scale: Ratio) -> Self {
        let (planning, driving) = (Clock::default(), Clock::default());
        let drive = Drive::new(stack.drive_config(scale, 1).unwrap()).unwrap();
        let mut planner = Planner::new(drive.info(), stack.host.max_request_blocks());
        mkfs(&mut planner, &MkfsOptions::default()).unwrap();
        let options = Options {
            ipu_policy: Some(IpuPolicy::FSYNC),
            alloc: Some(AllocMode::Default),
            page_cache_bytes: stack.memory_bytes(scale),
            ..Options::parse(&stack.mount).unwrap()
        };
        let device = Timed { device: planner.clone(), clock: Rc::clone(&planning) };
        let mut fs = F2fs::mount(device, options, SimTime::ZERO).unwrap();
        let root = fs.root();
        let file = NewNode { mode: 0o100_644, rdev: (0, 0) };
        let mut make =
            |n| fs.create(&Caller::default(), root, format!("{n}").as_bytes(), &file).unwrap().ino;
        let files = (0..FILES).map(&mut make).collect();
        let drive = Timed { device: drive, clock: Rc::clone(&driving) };
        let machine = Machine::new(drive, stack.host, SimTime::ZERO, planner.events());
        let (calling, playing) = (Clock::default(), Clock::default());
        Self { fs, planner, machine, files, calling, planning, playing, driving }
    }

    fn measure(mut self, scale: Ratio) {
        let blocks = (BLOCKS * scale.value()) as u64;
        (0..FILES * blocks).for_each(|n| self.write(n / blocks, n % blocks, n));
        self.call(|fs| fs.sync().unwrap());
        for clock in [&self.calling, &self.planning, &self.playing, &self.driving] {
            clock.set(Duration::ZERO);
        }
        let mut rng = Rng::new(1);
        for n in 0..(FILES as f64 * WRITES * scale.value()) as u64 {
            self.write(n % FILES, rng.below(blocks), n);
            if n / FILES % WRITES_A_SYNC == WRITES_A_SYNC - 1 {
                let ino = self.files[(n % FILES) as usize];
                self.call(|fs| fs.fsync(ino, false).unwrap());
            }
        }
        self.report();
    }

    fn report(&self) {
        let whole = self.calling.get() + self.playing.get();
        let percent = |part: Duration| 100.0 * part.as_secs_f64() / whole.as_secs_f64();
        println!(
            "  of {:.1} s, one call at a time: file system {:.0} %, planner and mirror {:.0} %, machine {:.0} %, drive {:.0} %",
            whole.as_secs_f64(),
            percent(self.calling.get() - self.planning.get()),
            percent(self.planning.get()),
            percent(self.playing.get() - self.driving.get()),
            percent(self.driving.get()),
        );
    }

    fn write(&mut self, file: u64, block: u64, n: u64) {
        let (ino, content) = (self.files[file as usize], [Content::Pattern(Pattern::new(n))]);
        self.call(|fs| {
            fs.write_pages(&Caller::default(), ino, (block * 4096, 4096), &content, false).unwrap();
        });
    }

    /// Makes a call and plays it to its end, then what the background has to do.
    fn call(&mut self, call: impl FnOnce(&mut F2fs<Timed<Planner>>)) {
        self.play(call);
        if self.fs.next_wake().is_some_and(|due| due <= self.machine.now()) {
            self.play(|fs| fs.wake().unwrap());
        }
    }

    fn play(&mut self, work: impl FnOnce(&mut F2fs<Timed<Planner>>)) {
        let now = self.machine.now();
        clocked(&self.calling, || {
            self.fs.set_now(now);
            work(&mut self.fs);
        });
        clocked(&self.playing, || {
            let plan = self.planner.take(self.machine.spare());
            self.machine.start(now, 0_u64, plan);
            while !matches!(self.machine.advance().unwrap(), None | Some(Event::Ended { .. })) {}
        });
    }
}

fn touches(len: usize) {
    let array: Vec<u32> = {
        let mut rng = Rng::new(2);
        (0..len).map(|_| rng.below(len as u64) as u32).collect()
    };
    let count = 1_000_000;
    let start = Instant::now();
    let mut at = 0_usize;
    for n in 0..3 * count {
        at = array[(at ^ n) % len] as usize;
    }
    black_box(at);
    println!(
        "three dependent touches: {:.2} million/s",
        count as f64 / start.elapsed().as_secs_f64() / 1e6
    );
}
