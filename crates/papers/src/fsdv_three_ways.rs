//! Three ways to make a drive's map smaller, on one workload: pointers that lead to device
//! addresses, an interval map under a log, and a map on flash that is paged on demand.

use dovetail_devirt::Run;
use dovetail_f2fs::format::Variant;
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, Mode, Options};
use dovetail_ftl::{Drive, Overrides};
use dovetail_lab::bench::{BenchError, Source};
use dovetail_time::{SimSpan, SimTime};

use super::fsdv_rig::{OnDrive, Rig, Spent, drive_config, no_runs};
use super::{Comparison, Figure, Reproduction, Setting, direction};

pub(crate) const FIGURE: Figure = Figure {
    name: "fsdv-three-ways",
    title: "Bytes of DRAM for the map against latency: FSDV, the interval map and the demand-paged map on the same workload",
    source: "Ours: no paper has more than one of them",
    setup: "F2FS with mode=lfs on fsdv-5g (IPLFS in one case), without a host between them. 64 files of 2 GiB together; then 2 GiB of calls of 4 KiB \
            past the page cache, one at a time, 70 % reads, places by a Zipf law. The tool runs five times; a call that comes during a \
            batch waits for it to the end. Caches of the demand-paged map are shares of a page map. Reading and changing a map in \
            memory costs 50 ns for each access. Means over all calls; the map's memory is the mean over the run. Every read gave what was last written.",
    reduced: 8,
    run,
    sensitivity: None,
};

/// The workload at full scale; how much is read, the law and its exponent are those of
/// examples/randrw-zipf.fio, with less skew.
const JOB: &str = "[mixed]
rw=randrw
rwmixread=70
bs=4k
size=2g
nrfiles=64
io_size=2g
random_distribution=zipf:0.9
direct=1
";
/// Calls of the workload, at full scale.
const CALLS: f64 = 524_288.0;
/// Runs of the tool in that time.
const RUNS: u64 = 5;
/// Calls between two batches of a run (assumed).
const CALLS_A_BATCH: u64 = 16;
/// Calls between two looks at the map.
const CALLS_A_SAMPLE: u64 = 64;
/// Bytes of an entry of a page map.
const ENTRY: u64 = 4;

/// One way to keep the map.
struct Way {
    name: String,
    map: &'static str,
    variant: Variant,
    tool: bool,
    cache: Option<Cache>,
}

/// Cache of a demand-paged map.
#[derive(Clone, Copy)]
struct Cache {
    policy: &'static str,
    /// The page map has so many times its bytes.
    part: u64,
}

fn in_memory(name: &str, map: &'static str) -> Way {
    Way { name: name.into(), map, variant: Variant::F2fs, tool: false, cache: None }
}

fn paged(policy: &'static str, part: u64) -> Way {
    let cache = Some(Cache { policy, part });
    Way { cache, ..in_memory(&format!("demand-paged, {policy}, 1/{part}"), "demand") }
}

/// One for each paper, the paper's and ours.
const POLICIES: [&str; 7] = ["dftl", "s-ftl", "extent", "tpftl", "cdftl", "split", "split-bounded"];
const PARTS: [u64; 4] = [2, 4, 8, 16];

const FSDV: &str = "FSDV";
const PAGE: &str = "page map";
const HASH: &str = "hash map";
const INTERVAL: &str = "interval map, F2FS";

fn ways() -> Vec<Way> {
    let mut ways = vec![
        in_memory(PAGE, "page"),
        in_memory(HASH, "hash"),
        Way { tool: true, ..in_memory(FSDV, "hash") },
        in_memory(INTERVAL, "interval"),
        Way { variant: Variant::IPLFS, ..in_memory("interval map, IPLFS", "interval") },
    ];
    ways.extend(POLICIES.iter().flat_map(|policy| PARTS.map(|part| paged(policy, part))));
    ways
}

/// Result of one way.
struct Seen {
    name: String,
    cache: Option<Cache>,
    /// Mean of the map, bytes.
    map: f64,
    reads: Spent,
    writes: Spent,
}

impl Way {
    fn drive(&self, setting: &Setting<'_>) -> Result<Drive, BenchError> {
        let addresses = self.variant.is_iplfs().then(|| "iplfs".to_owned());
        let plain = drive_config(setting, Overrides::default())?;
        let cache_size = self.cache.map(|cache| plain.user_blocks * ENTRY / cache.part);
        let cache = self.cache.map(|cache| cache.policy.to_owned());
        let overrides = Overrides {
            map: Some(self.map.to_owned()),
            addresses,
            cache,
            cache_size,
            ..Overrides::default()
        };
        let mut config = drive_config(setting, overrides)?;
        if !self.tool {
            (config.remap, config.devirtualize) = (None, None);
        }
        Drive::new(config).map_err(|error| BenchError::Drive(error.to_string()))
    }

    fn mounted(&self, setting: &Setting<'_>) -> Result<F2fs<Drive>, BenchError> {
        let failed = |error: dovetail_f2fs::Error| BenchError::Setup {
            stack: self.name.clone(),
            reason: error.to_string(),
        };
        let mut drive = self.drive(setting)?;
        mkfs(&mut drive, &MkfsOptions { variant: self.variant, ..MkfsOptions::default() })
            .map_err(failed)?;
        let options =
            Options { mode: Mode::Lfs, physical_pointers: self.tool, ..Options::default() };
        F2fs::mount(drive, options, SimTime::ZERO).map_err(failed)
    }

    fn measure(&self, setting: &Setting<'_>) -> Result<Seen, BenchError> {
        let source = Source::fio(JOB, "fsdv-three-ways.fio", &[])?;
        let mut rig =
            Rig::prepared(self.mounted(setting)?, source.start(setting.scale, setting.seed)?)?;
        rig.pause = SimSpan::ZERO;
        let calls_a_run = ((CALLS * setting.scale.value()) as u64 / RUNS).max(1);
        let (mut tool, mut map, mut samples) = (None, 0.0, 0.0);
        loop {
            let begins = rig.calls % calls_a_run == 0 && rig.calls / calls_a_run < RUNS;
            if self.tool && begins {
                tool = Some(rig.begin_run()?);
            }
            if rig.calls % CALLS_A_BATCH == 0 {
                step(&mut rig, &mut tool)?;
            }
            if rig.calls % CALLS_A_SAMPLE == 0 {
                (map, samples) = (map + rig.map_bytes() as f64, samples + 1.0);
            }
            if !rig.step()? {
                break;
            }
        }
        let (reads, writes) = (rig.reads, rig.writes);
        let (name, map) = (self.name.clone(), map / f64::max(samples, 1.0));
        Ok(Seen { name, cache: self.cache, map, reads, writes })
    }
}

/// A batch of the tool, if a run is under way.
fn step<F: OnDrive>(rig: &mut Rig<F>, tool: &mut Option<Run>) -> Result<(), BenchError> {
    if let Some(run) = tool
        && !rig.step_run(run)?
    {
        *tool = None;
    }
    Ok(())
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let seen = setting.each(&ways(), |way| way.measure(setting))?;
    let mut comparisons: Vec<Comparison> = seen.iter().map(shown).collect();
    comparisons.extend(in_whole(&seen)?);
    comparisons.push(against_paged(named(&seen, FSDV)?, &seen));
    comparisons.extend(POLICIES.iter().map(|policy| falls_with_the_cache(policy, &seen)));
    Ok(Reproduction { comparisons, results: no_runs(setting) })
}

fn named<'s>(seen: &'s [Seen], name: &str) -> Result<&'s Seen, BenchError> {
    let found = seen.iter().find(|seen| seen.name == name);
    found.ok_or_else(|| BenchError::Workload(format!("there is no {name}")))
}

/// The maps that are in memory as a whole.
fn in_whole(seen: &[Seen]) -> Result<[Comparison; 3], BenchError> {
    let of = |name| named(seen, name);
    let (page, hash, fsdv, interval) = (of(PAGE)?, of(HASH)?, of(FSDV)?, of(INTERVAL)?);
    Ok([
        ours(
            "FSDV has less than half of the page map's bytes",
            bytes(fsdv, page),
            fsdv.map < page.map / 2.0,
        ),
        ours(
            "FSDV, but for waiting for batches, reads as fast as the page map, to 1 %",
            format!("{:.1} and {:.1} us", fsdv.reads.mean_us(), page.reads.mean_us()),
            (fsdv.reads.mean_us() / page.reads.mean_us() - 1.0).abs() < 0.01,
        ),
        ours(
            "the interval map under F2FS has less than the hash map",
            bytes(interval, hash),
            interval.map < hash.map,
        ),
    ])
}

/// With each policy, in the largest cache that has FSDV's bytes or fewer.
fn against_paged(fsdv: &Seen, seen: &[Seen]) -> Comparison {
    let fits = |policy: &str| {
        let of_policy = move |seen: &&Seen| {
            seen.cache.is_some_and(|cache| cache.policy == policy) && seen.map <= fsdv.map
        };
        seen.iter().filter(of_policy).max_by(|one, other| one.map.total_cmp(&other.map))
    };
    let fitting: Vec<&Seen> = POLICIES.iter().filter_map(|policy| fits(policy)).collect();
    let each: Vec<String> = fitting
        .iter()
        .map(|seen| format!("{} {:.1}", seen.name, seen.reads.latency_us()))
        .collect();
    ours(
        "FSDV with its waiting reads faster than any demand-paged map of its bytes or fewer",
        format!("{:.1} us; {}", fsdv.reads.latency_us(), each.join(", ")),
        !fitting.is_empty()
            && fitting.iter().all(|seen| fsdv.reads.latency_us() < seen.reads.latency_us()),
    )
}

fn falls_with_the_cache(policy: &str, seen: &[Seen]) -> Comparison {
    let of_policy =
        seen.iter().filter(|seen| seen.cache.is_some_and(|cache| cache.policy == policy));
    let reads: Vec<f64> = of_policy.map(|seen| seen.reads.latency_us()).collect();
    let listed: Vec<String> = reads.iter().map(|us| format!("{us:.1}")).collect();
    ours(
        &format!("{policy}: the smaller the cache, the slower are reads"),
        listed.join(", ") + " us",
        reads.len() > 1 && reads.is_sorted_by(|one, next| one < next),
    )
}

fn bytes(one: &Seen, other: &Seen) -> String {
    format!("{:.0} and {:.0} KiB", one.map / 1024.0, other.map / 1024.0)
}

fn ours(what: &str, ours: String, agrees: bool) -> Comparison {
    direction(what, "none: a figure of ours", ours, agrees)
}

fn shown(seen: &Seen) -> Comparison {
    let (reads, writes) = (seen.reads, seen.writes);
    let mut ours = format!(
        "map {:.0} KiB, reads {:.1} us, writes {:.1} us",
        seen.map / 1024.0,
        reads.latency_us(),
        writes.latency_us(),
    );
    if reads.latency_us() > reads.mean_us() {
        ours += &format!(" ({:.1} and {:.1} but for batches)", reads.mean_us(), writes.mean_us());
    }
    Comparison::shown(seen.name.clone(), ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::with_setting;

    #[test]
    fn every_way_has_a_drive() {
        with_setting("1/8", |setting| {
            for way in ways() {
                assert!(way.drive(setting).is_ok(), "{}", way.name);
            }
        });
    }
}
