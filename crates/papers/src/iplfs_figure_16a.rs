//! Figure 16a of the IPLFS paper: what a lookup and a new entry cost in the interval map and in a
//! page table.

use std::time::Duration;

use dovetail_block::AREA_BLOCKS;
use dovetail_ftl::mapping::{MapShape, Mapping, scheme};
use dovetail_lab::bench::BenchError;
use dovetail_nand::{Lpn, Ppn};
use dovetail_time::Rng;

use super::{Comparison, Figure, Reproduction, Setting, rounded};

pub(crate) const FIGURE: Figure = Figure {
    name: "iplfs-figure-16a",
    title: "Get and set of the interval map by those of a page table: accesses in the model, time on the host",
    source: "Kim et al., IPLFS, ATC'22: figure 16a and section 6.3",
    setup: "A file of 10 GiB in pages of 16 KiB that is written at random, as in the paper; the file system appends, so that a set is a new entry at the \
            log's end and an old one falls away behind; the page table takes the same addresses modulo its length. The paper timed functions of its firmware; here they are timed on this \
            machine's CPU, where a clock is at hand: the best of several rounds of gets of which each waits for the one before, not deterministic, and only at full size with tables beyond the \
            CPU's caches. Accesses to the drive's memory, as each map counts them, are shown beside it (100 ns each in the profile openssd-230g); with pages of 16 KiB four segments share a place \
            of the lookaside table, so that three in four random gets walk the tree.",
    reduced: 1,
    run,
    sensitivity: None,
};

const FILE_BYTES: f64 = 10.0 * 1_073_741_824.0;
const PAGE_BYTES: f64 = 16384.0;
const BLOCKS_PER_PAGE: u32 = 4;
const BLOCK_BYTES: f64 = 4096.0;
/// Few, so that a round is seldom interrupted.
const GETS: usize = 1 << 14;
const ROUNDS: usize = 150;

/// The log of warm data.
const LOG: u64 = 2 * AREA_BLOCKS / BLOCKS_PER_PAGE as u64;

/// One of the two maps, with a log of `pages` live ones in it.
struct Subject {
    map: Box<dyn Mapping>,
    /// The address of the log's first page, and how many there are before it begins anew.
    first: u64,
    wraps_after: u64,
    /// Pages that were ever written.
    head: u64,
    live: u64,
}

/// Accesses of each operation, and its best time.
#[derive(Clone, Copy, Default)]
struct Cost {
    accesses: f64,
    time: Option<Duration>,
}

impl Subject {
    fn new(
        name: &str,
        blocks_per_page: u32,
        first: u64,
        addresses: u64,
        live: u64,
    ) -> Result<Self, BenchError> {
        let scheme =
            scheme(name).ok_or_else(|| BenchError::Drive(format!("there is no map \"{name}\"")))?;
        let shape = MapShape { pages: first + addresses, blocks_per_page };
        let wraps_after = if first == 0 { addresses } else { u64::MAX };
        let mut subject = Self { map: (scheme.build)(shape), first, wraps_after, head: 0, live };
        subject.set(live as usize);
        Ok(subject)
    }

    fn address(&self, page: u64) -> Lpn {
        Lpn(self.first + page % self.wraps_after)
    }

    /// Appends that many pages; what is older than the live ones falls away. Returns the accesses
    /// of the new entries.
    fn set(&mut self, pages: usize) -> u64 {
        let mut accesses = 0;
        for page in self.head..self.head + pages as u64 {
            accesses +=
                u64::from(self.map.update(self.address(page), Some(Ppn(page as u32))).1.accesses);
        }
        self.head += pages as u64;
        accesses
    }

    /// Unmaps what is older than the live pages.
    fn trim(&mut self, pages: usize) {
        let end = self.head - self.live;
        for page in end - pages as u64..end {
            self.map.update(self.address(page), None);
        }
    }

    /// Accesses of random gets. Each begins when the one before has its answer, as a request of
    /// firmware does: gets that a processor overlaps would hide how long one takes.
    fn get(&self, random: &[u64]) -> u64 {
        let first = self.head - self.live;
        let (mut accesses, mut last) = (0, 0);
        for number in random {
            let page = first + (number + last) % self.live;
            let (at, cost) = self.map.lookup(self.address(page));
            accesses += u64::from(cost.accesses);
            last = at.map_or(0, |at| u64::from(at.0));
        }
        accesses
    }
}

/// Runs `work` with the clock, if there is one.
fn timed<T>(setting: &Setting<'_>, work: impl FnOnce() -> T) -> (T, Option<Duration>) {
    let start = setting.clock.map(|clock| clock());
    let done = work();
    (done, start.zip(setting.clock).map(|(start, clock)| clock().saturating_sub(start)))
}

fn least(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    a.into_iter().chain(b).min()
}

fn measure(setting: &Setting<'_>, subjects: &mut [Subject; 2], random: &[u64]) -> [[Cost; 2]; 2] {
    let mut costs = [[Cost::default(); 2]; 2];
    for _ in 0..ROUNDS {
        for (subject, [get, set]) in subjects.iter_mut().zip(&mut costs) {
            let (accesses, time) = timed(setting, || subject.get(random));
            *get = Cost { accesses: accesses as f64 / GETS as f64, time: least(get.time, time) };
            let (accesses, time) = timed(setting, || subject.set(GETS));
            *set = Cost { accesses: accesses as f64 / GETS as f64, time: least(set.time, time) };
            subject.trim(GETS);
        }
    }
    costs
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let live = ((FILE_BYTES / PAGE_BYTES * setting.scale.value()) as u64).max(GETS as u64);
    let mut rng = Rng::new(setting.seed);
    let random: Vec<u64> = (0..GETS).map(|_| rng.below(live)).collect();
    let addresses = 2 * live + GETS as u64;
    let mut subjects = [
        Subject::new("page", BLOCKS_PER_PAGE, 0, addresses, live)?,
        Subject::new("interval", BLOCKS_PER_PAGE, LOG, AREA_BLOCKS, live)?,
    ];
    let [dense, interval] = measure(setting, &mut subjects, &random);
    let mut comparisons = Vec::new();
    for (i, (what, paper)) in
        [("get, random", 1.88), ("set of a new entry", 3.3)].into_iter().enumerate()
    {
        comparisons.push(accesses(what, interval[i], dense[i]));
        comparisons.extend(time(what, paper, interval[i], dense[i]));
    }
    comparisons.push(with_small_pages(setting, &mut rng)?);
    Ok(Reproduction { comparisons, results: setting.no_runs(FIGURE.name) })
}

/// Each segment has a place of the lookaside table to itself then.
fn with_small_pages(setting: &Setting<'_>, rng: &mut Rng) -> Result<Comparison, BenchError> {
    let live = ((FILE_BYTES / BLOCK_BYTES * setting.scale.value()) as u64).max(GETS as u64);
    let subject = Subject::new("interval", 1, 2 * AREA_BLOCKS, AREA_BLOCKS, live)?;
    let random: Vec<u64> = (0..GETS).map(|_| rng.below(live)).collect();
    let gets = subject.get(&random) as f64 / GETS as f64;
    let what = "get, random, with pages of 4 KiB: accesses";
    Ok(Comparison::shown(
        what,
        format!("{} times ({} against 1.00 accesses)", rounded(gets), rounded(gets)),
    ))
}

fn accesses(what: &str, interval: Cost, dense: Cost) -> Comparison {
    let (interval, dense) = (interval.accesses, dense.accesses);
    Comparison::shown(
        format!("{what}: accesses"),
        format!(
            "{} times ({} against {} accesses)",
            rounded(interval / dense),
            rounded(interval),
            rounded(dense)
        ),
    )
}

fn time(what: &str, paper: f64, interval: Cost, dense: Cost) -> Option<Comparison> {
    let ns = |cost: Cost| Some(cost.time?.as_secs_f64() * 1e9 / GETS as f64);
    let (interval, dense) = (ns(interval)?, ns(dense)?);
    let ratio = interval / dense;
    Some(Comparison {
        what: format!("{what}: time on this machine"),
        paper: format!("{} times", rounded(paper)),
        ours: format!(
            "{} times ({} against {} ns)",
            rounded(ratio),
            rounded(interval),
            rounded(dense)
        ),
        rule: "above 1, at most the paper's and a tenth".into(),
        agrees: ratio > 1.0 && ratio <= 1.1 * paper,
    })
}
