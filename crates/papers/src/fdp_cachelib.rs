//! Flexible data placement under a flash cache: small objects at random beside large ones in a ring.

use dovetail_block::{
    BlockDevice, BlockRange, Command, Data, Hints, Lba, Pattern, PlacementEvent, PlacementReport,
    StreamId, placement,
};
use dovetail_ftl::{Drive, Overrides, Profile};
use dovetail_lab::bench::BenchError;
use dovetail_time::{Ratio, Rng, SimTime};
use serde::{Deserialize, Serialize};

use super::{Comparison, Figure, Reproduction, Setting, direction, rounded, within};

pub(crate) const FIGURE: Figure = Figure {
    name: "fdp-cachelib",
    title: "A flash cache on a drive with and without placement: the drive's write amplification",
    source: "Allison et al., Towards Efficient Flash Caches with Emerging NVMe Flexible Data Placement SSDs, EuroSys'25",
    setup: "The paper runs CacheLib with Meta's and Twitter's traces on a drive of 1.88 TB with reclaim units of about 6 GB (pm9d3-1880g-fdp; its spare flash is \
            not told, 9.6 % are assumed). Its cache has small objects, pages of 4 KiB at places that a hash gives, in 4 % of the space, and large ones in a log \
            that goes round the rest. Ours is that pair alone: random writes of 4 KiB, writes in order of 256 KiB. Which share of the bytes is small follows from the \
            traces and is not told: half is assumed, other shares and other spare flash stand beside it. With placement each has a handle of its own. \
            Measured over two drive writes after three. At full size a run takes 10 GB of memory (-j), and the rows of other assumptions are left out.",
    reduced: 256,
    run,
    sensitivity: None,
};

const DRIVE: &str = "pm9d3-1880g-fdp";
/// Blocks in a write of large objects.
const LARGE: u64 = 64;
/// Drive writes before measuring, and while measuring.
const WARM: u64 = 3;
const MEASURED: u64 = 2;
/// Share of the space that small objects have in the paper's configuration.
const SMALL: f64 = 0.04;
/// Share of the bytes that are small. Assumed.
const SHARE: f64 = 0.5;

/// A cache on the drive.
#[derive(Clone, Copy, Debug)]
struct Cache {
    /// Share of the drive that it takes.
    used: f64,
    /// Share of that for small objects.
    small: f64,
    /// Share of the bytes written that are small.
    share: f64,
    /// Each kind has a handle.
    placed: bool,
    /// Spare flash in percent, if it is another than the profile's.
    spare: Option<f64>,
}

impl Cache {
    const PAPER: Self = Self { used: 1.0, small: SMALL, share: SHARE, placed: true, spare: None };

    const fn mixed(self) -> Self {
        Self { placed: false, ..self }
    }
}

/// Shares of the space that small objects have, beside the paper's configuration.
const SMALL_SPACES: [f64; 3] = [0.16, 0.64, 0.9];
/// Shares of the bytes that are small, beside the assumed one, where half of the drive is used.
const SHARES_OF_SMALL: [f64; 2] = [0.75, 0.9];
/// Other values of what is assumed.
const OTHERS: [(&str, Cache); 8] = [
    ("25 % of the bytes small", Cache { share: 0.25, ..Cache::PAPER }),
    ("75 % of the bytes small", Cache { share: 0.75, ..Cache::PAPER }),
    ("80 % of the bytes small", Cache { share: 0.8, ..Cache::PAPER }),
    ("85 % of the bytes small", Cache { share: 0.85, ..Cache::PAPER }),
    ("90 % of the bytes small", Cache { share: 0.9, ..Cache::PAPER }),
    ("7 % of spare flash", Cache { spare: Some(7.0), ..Cache::PAPER }),
    ("14 % of spare flash", Cache { spare: Some(14.0), ..Cache::PAPER }),
    ("20 % of spare flash", Cache { spare: Some(20.0), ..Cache::PAPER }),
];

fn failed(error: &dyn std::fmt::Display) -> BenchError {
    BenchError::Drive(error.to_string())
}

/// The work of the drive for a cache.
#[derive(Serialize, Deserialize)]
struct Outcome {
    waf: f64,
    reallocations: u64,
}

/// The drive, its clock and the heads of the cache.
struct Rig {
    drive: Drive,
    now: SimTime,
    rng: Rng,
    small_blocks: u64,
    large_writes: u64,
    head: u64,
}

impl Rig {
    fn new(setting: &Setting<'_>, profile: &Profile, cache: Cache) -> Result<Self, BenchError> {
        let overrides = Overrides {
            scale: Some(setting.scale),
            seed: setting.seed,
            over_provisioning: cache.spare,
            ..Overrides::default()
        };
        let config = profile.resolve(&overrides).map_err(|error| failed(&error))?;
        let blocks = (config.user_blocks as f64 * cache.used) as u64;
        let small_blocks = ((blocks as f64 * cache.small) as u64).max(1);
        let large_writes = (blocks - small_blocks) / LARGE;
        let drive = Drive::new(config).map_err(|error| failed(&error))?;
        let rng = Rng::new(setting.seed);
        Ok(Self { drive, now: SimTime::ZERO, rng, small_blocks, large_writes, head: 0 })
    }

    fn write(&mut self, range: BlockRange, handle: u8) -> Result<(), BenchError> {
        // nothing is read back, and small numbers take no memory of their own
        let data = Data::Patterns(Pattern::new(1));
        let hints = Hints { stream: StreamId(handle), ..Hints::default() };
        let write = Command::Write { range, data, hints, fua: false };
        self.now = self.drive.submit(self.now, write).map_err(|error| failed(&error))?.done;
        Ok(())
    }

    /// Writes so many blocks of both kinds.
    fn write_both(
        &mut self,
        setting: &Setting<'_>,
        cache: Cache,
        blocks: u64,
    ) -> Result<(), BenchError> {
        let [small, large] = if cache.placed { [1, 2] } else { [0, 0] };
        // of LARGE blocks each: one write of large objects, or as many small ones
        for _ in 0..blocks / LARGE {
            setting.go_on()?;
            if self.rng.chance(cache.share) {
                for _ in 0..LARGE {
                    let at = Lba(self.rng.below(self.small_blocks));
                    self.write(BlockRange::new(at, 1), small)?;
                }
            } else if self.large_writes > 0 {
                let at = Lba(self.small_blocks + self.head % self.large_writes * LARGE);
                self.write(BlockRange::new(at, LARGE), large)?;
                self.head += 1;
            }
        }
        Ok(())
    }

    fn report(&mut self) -> Result<PlacementReport, BenchError> {
        let report = placement(&mut self.drive).map_err(|error| failed(&error))?;
        report.ok_or_else(|| failed(&"the drive has no reclaim units"))
    }
}

fn outcome(setting: &Setting<'_>, profile: &Profile, cache: Cache) -> Result<Outcome, BenchError> {
    let mut rig = Rig::new(setting, profile, cache)?;
    let blocks = rig.drive.config().user_blocks;
    rig.write_both(setting, cache, WARM * blocks)?;
    let before = rig.report()?;
    rig.write_both(setting, cache, MEASURED * blocks)?;
    let after = rig.report()?;
    let written = |report: &PlacementReport| (report.media_bytes, report.host_bytes);
    let ((media, host), (media_0, host_0)) = (written(&after), written(&before));
    let moved = |report: &PlacementReport| report.events(PlacementEvent::MediaReallocated);
    Ok(Outcome {
        waf: (media - media_0) as f64 / (host - host_0) as f64,
        reallocations: moved(&after) - moved(&before),
    })
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let half = Cache { used: 0.5, ..Cache::PAPER };
    let of_small = |&share| Cache { share, ..half }.mixed();
    // ten of twenty-three runs make the paper's statements
    let (shares_of_small, others): (&[_], &[_]) =
        if setting.scale == Ratio::ONE { (&[], &[]) } else { (&SHARES_OF_SMALL, &OTHERS) };
    let mut caches = vec![Cache::PAPER.mixed(), Cache::PAPER, half.mixed(), half];
    caches.extend(SMALL_SPACES.iter().flat_map(|&small| both(Cache { small, ..Cache::PAPER })));
    caches.extend(shares_of_small.iter().map(of_small));
    caches.extend(others.iter().flat_map(|(_, cache)| both(*cache)));
    let profile = setting.changes.profile(DRIVE)?;
    let what = format!("{}: {}", FIGURE.name, profile.text());
    let seen = setting.each_kept(&what, &caches, |cache| outcome(setting, &profile, *cache))?;
    let ([full_mixed, full_placed], half) = ([&seen[0], &seen[1]], &seen[2..4]);
    let (spaces, rest) = seen[4..].split_at(2 * SMALL_SPACES.len());
    let (more_small, with_others) = rest.split_at(shares_of_small.len());
    let mut comparisons = vec![
        within("half of the drive used, no placement", "", 1.3, half[0].waf, 1.1),
        within("half of the drive used, placement", "", 1.03, half[1].waf, 1.1),
        within("all of the drive used, no placement", "", 3.5, full_mixed.waf, 1.25),
        within("all of the drive used, placement", "", 1.03, full_placed.waf, 1.1),
        fewer_events(full_mixed, full_placed),
    ];
    comparisons.extend(shares_of_space([full_mixed, full_placed], spaces)?);
    comparisons.extend(assumed(others, with_others));
    for (share, mixed) in shares_of_small.iter().zip(more_small) {
        let percent = share * 100.0;
        let what = format!("half used, {percent:.0} % of the bytes small: no placement");
        comparisons.push(Comparison::shown(what, rounded(mixed.waf)));
    }
    let results = setting.no_runs(FIGURE.name);
    Ok(Reproduction { comparisons, results })
}

/// Without placement, and with it.
fn both(cache: Cache) -> [Cache; 2] {
    [cache.mixed(), cache]
}

/// Reclaim units that something is moved from, without placement over with.
fn events(mixed: &Outcome, placed: &Outcome) -> f64 {
    mixed.reallocations as f64 / placed.reallocations.max(1) as f64
}

fn fewer_events(mixed: &Outcome, placed: &Outcome) -> Comparison {
    let ratio = events(mixed, placed);
    let what = "all used: reclaim units that something is moved from, without placement over with";
    let mut comparison = within(what, "times", 3.6, ratio, 1.25);
    comparison.ours += &format!(" ({} over {})", mixed.reallocations, placed.reallocations);
    comparison
}

/// The gain over the share of space for small objects: the paper's, then [`SMALL_SPACES`].
fn shares_of_space(
    paper: [&Outcome; 2],
    others: &[Outcome],
) -> Result<Vec<Comparison>, BenchError> {
    let mut gains = vec![(paper[0].waf, paper[1].waf)];
    gains.extend(others.chunks_exact(2).map(|two| (two[0].waf, two[1].waf)));
    let shown =
        |&(mixed, placed): &(f64, f64)| format!("{} to {}", rounded(mixed), rounded(placed));
    let text: Vec<String> = gains.iter().map(shown).collect();
    let [.., (mixed_64, placed_64), (mixed_90, placed_90)] = gains[..] else {
        return Ok(Vec::new());
    };
    Ok(vec![
        Comparison::shown(
            "small objects take 4, 16, 64, 90 % of the space: no placement to placement",
            text.join("; "),
        ),
        within("64 % of the space, placement", "", 2.5, placed_64, 1.25),
        direction("64 % of the space, no placement", "above 3", rounded(mixed_64), mixed_64 > 3.0)
            .by("above 3"),
        Comparison {
            what: "90 % of the space: gain of placement".into(),
            paper: "none at 90 to 96 %".into(),
            ours: format!("{} to {}", rounded(mixed_90), rounded(placed_90)),
            rule: "within 10 %".into(),
            agrees: (placed_90 / mixed_90 - 1.0).abs() <= 0.1,
        },
    ])
}

/// The share of bytes that are small and the spare flash are assumed: the main statement with
/// others.
fn assumed(others: &[(&str, Cache)], seen: &[Outcome]) -> impl Iterator<Item = Comparison> {
    others.iter().zip(seen.chunks_exact(2)).map(|((name, _), two)| {
        let [waf, placed] = [&two[0], &two[1]].map(|outcome| rounded(outcome.waf));
        let times = rounded(events(&two[0], &two[1]));
        Comparison::shown(
            format!("all used, {name}: no placement to placement; reclaim units that something is moved from"),
            format!("{waf} to {placed}; {times} times"),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn with_setting<R>(stop: &AtomicBool, work: impl FnOnce(&Setting<'_>) -> R) -> R {
        // as large as word lines allow; the drive keeps its number of reclaim units
        let scale = "1/256".parse().unwrap();
        let changes = crate::Changes::default();
        let setting = Setting {
            scale,
            seed: 1,
            threads: 1,
            stop,
            clock: None,
            changes: &changes,
            finished: None,
        };
        work(&setting)
    }

    #[test]
    fn placement_pays_for_a_cache_that_takes_all_of_the_drive() {
        with_setting(&AtomicBool::new(false), |setting| {
            let few = Cache { used: 0.6, ..Cache::PAPER };
            let profile = Profile::load(DRIVE).unwrap();
            let seen = |cache| outcome(setting, &profile, cache).unwrap();
            let (mixed, placed) = (seen(few.mixed()), seen(few));
            assert!(placed.waf < 1.05 && placed.waf < mixed.waf, "{} to {}", mixed.waf, placed.waf);
        });
    }

    #[test]
    fn a_run_stops_before_its_end() {
        let stop = AtomicBool::new(false);
        let profile = Profile::load(DRIVE).unwrap();
        let stopped = std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                with_setting(&stop, |setting| outcome(setting, &profile, Cache::PAPER).map(|_| ()))
            });
            // far less than a run takes
            std::thread::sleep(std::time::Duration::from_millis(50));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            run.join().unwrap()
        });
        assert!(matches!(stopped, Err(BenchError::Stopped)), "{stopped:?}");
    }
}
