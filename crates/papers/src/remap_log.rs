//! A figure of ours: where a drive keeps what its remaps change, on flash, in a table of
//! non-volatile memory, or in a log there.

use dovetail_block::{
    BlockDevice, BlockRange, Command, Data, DeviceError, Hints, Lba, Pattern, RemapPair, RemapWhen,
    SectorRange,
};
use dovetail_ftl::stats::Cause;
use dovetail_ftl::{Drive, DriveConfig, Overrides};
use dovetail_lab::bench::BenchError;
use dovetail_time::{Ratio, Rng, SimSpan, SimTime};

use super::{Comparison, Figure, Reproduction, Setting, direction, rounded};

pub(crate) const FIGURE: Figure = Figure {
    name: "remap-log",
    title: "Stores of remaps: a table in non-volatile memory, a log there after Remap-SSD, a log on flash",
    source: "a figure of ours: the table is from Lee et al. (HotStorage'22), the log in non-volatile memory from Zhou et al. (Remap-SSD, FAST'21)",
    setup: "The drive of the RM-IPU paper with each of the three stores, 70 % of it written. Updates: ten blocks written side by side, then moved to \
            places at random, as RM-IPU does. Cleaning: half of a section of 2 MiB is moved to another one, the rest of it written and of the old one \
            discarded. Again: pages change places with free addresses, back and forth, so that each gets many entries. As many pairs in all as \
            the drive has blocks. Memory is that of the drive at full size; the runs hold 1,024 pairs instead of 65,536, so that the log is as small as it may be.",
    reduced: 64,
    run,
    sensitivity: None,
};

/// A store, and the profile that has it.
const STORES: [(&str, &str); 3] = [
    ("table in memory", "femu-32g"),
    ("log in memory", "femu-32g-nvm-log"),
    ("log on flash", "femu-32g-log"),
];
const HELD_PAIRS: i64 = 1024;
const SECTION: u64 = 512;
/// Pairs of an update, and of the cleaning of a section.
const UPDATE: u64 = 10;
const MOVED: u64 = SECTION / 2;
const MIB: f64 = 1_048_576.0;

fn failed(error: &dyn std::fmt::Display) -> BenchError {
    BenchError::Drive(error.to_string())
}

/// A drive of a profile; with `held_pairs` instead of the profile's.
fn config(
    setting: &Setting<'_>,
    profile: &str,
    scale: Ratio,
    held_pairs: Option<i64>,
) -> Result<DriveConfig, BenchError> {
    let figures = held_pairs.map(|pairs| ("remap.held_pairs", pairs.into()));
    let profile = setting.changes.profile(profile)?;
    let profile = profile.with_figures(figures).map_err(|error| failed(&error))?;
    let overrides = Overrides { scale: Some(scale), seed: setting.seed, ..Overrides::default() };
    profile.resolve(&overrides).map_err(|error| failed(&error))
}

/// A host that waits for each of its commands.
struct Host {
    drive: Drive,
    now: SimTime,
    rng: Rng,
    /// Remaps, and the time that they took.
    remaps: u64,
    remapping: SimSpan,
    most_bytes: u64,
}

impl Host {
    fn submit(&mut self, command: Command<'_>) -> Result<SimSpan, DeviceError> {
        let done = self.drive.submit(self.now, command)?.done;
        let span = done.since(self.now);
        self.now = done;
        Ok(span)
    }

    fn write(&mut self, start: u64, blocks: u64) -> Result<(), DeviceError> {
        let range = BlockRange::new(Lba(start), blocks);
        let data = Data::Patterns(Pattern::new(self.rng.below(1 << 30)));
        self.submit(Command::Write { range, data, hints: Hints::default(), fua: false }).map(drop)
    }

    fn remap(&mut self, pairs: &[RemapPair]) -> Result<(), DeviceError> {
        let span = self.submit(Command::Remap { pairs, when: RemapWhen::Now })?;
        self.remapping += span;
        self.remaps += 1;
        self.most_bytes = self.most_bytes.max(self.drive.remap_entry_bytes());
        Ok(())
    }
}

fn pair(to: u64, from: u64) -> RemapPair {
    RemapPair { to: Lba(to), from: Lba(from) }
}

/// The addresses of a drive: what is written before, and sections that are free.
#[derive(Clone, Copy)]
struct Layout {
    used: u64,
    blocks: u64,
}

/// RM-IPU: updates are written to a section and moved to where they belong.
fn updates(host: &mut Host, layout: Layout) -> Result<(), DeviceError> {
    for number in 0..layout.blocks / UPDATE {
        let start = layout.used + number * UPDATE % (SECTION - UPDATE);
        host.write(start, UPDATE)?;
        let mut pairs = Vec::new();
        while pairs.len() < UPDATE as usize {
            let to = host.rng.below(layout.used);
            if pairs.iter().all(|pair: &RemapPair| pair.to.0 != to) {
                pairs.push(pair(to, start + pairs.len() as u64));
            }
        }
        host.remap(&pairs)?;
    }
    Ok(())
}

/// F2FS: half of a section is moved to the free one, the rest is written.
fn cleaning(host: &mut Host, layout: Layout) -> Result<(), DeviceError> {
    let mut free = layout.used / SECTION;
    for _ in 0..layout.blocks / MOVED {
        let victim = host.rng.below(layout.used / SECTION);
        if victim == free {
            continue;
        }
        let (from, to) = (victim * SECTION, free * SECTION);
        let first = host.rng.below(2) * MOVED;
        let pairs: Vec<_> =
            (0..MOVED).map(|block| pair(to + block, from + first + block)).collect();
        host.remap(&pairs)?;
        host.write(to + MOVED, SECTION - MOVED)?;
        let left = SectorRange::from(BlockRange::new(Lba(from + MOVED - first), MOVED));
        host.submit(Command::Discard { ranges: &[left] })?;
        free = victim;
    }
    Ok(())
}

/// A sixteenth of the pages goes back and forth between two addresses.
fn again(host: &mut Host, layout: Layout) -> Result<(), DeviceError> {
    let pages = layout.blocks / 16;
    for round in 0..layout.blocks / pages {
        let moved = |block| match round % 2 {
            0 => pair(layout.used + block, block),
            _ => pair(block, layout.used + block),
        };
        for start in (0..pages).step_by(UPDATE as usize) {
            let pairs: Vec<_> = (start..(start + UPDATE).min(pages)).map(moved).collect();
            host.remap(&pairs)?;
        }
    }
    Ok(())
}

type Workload = fn(&mut Host, Layout) -> Result<(), DeviceError>;
const WORKLOADS: [(&str, Workload); 3] =
    [("updates", updates), ("cleaning", cleaning), ("again", again)];

/// The costs of a store under a workload.
struct Costs {
    remap_us: f64,
    /// Pages programmed for remaps and for the record of discards, for a thousand pairs.
    pages: f64,
    most_bytes: u64,
    destaged: u64,
    /// Pages of the drive's own that recovery read.
    recovered: u64,
}

fn measure(config: DriveConfig, workload: Workload, seed: u64) -> Result<Costs, BenchError> {
    let blocks = config.user_blocks;
    let layout = Layout { used: blocks * 7 / 10 / SECTION * SECTION, blocks };
    let drive = Drive::new(config).map_err(|error| failed(&error))?;
    let (rng, now) = (Rng::new(seed), SimTime::ZERO);
    let (remapping, remaps, most_bytes) = (SimSpan::ZERO, 0, 0);
    let mut host = Host { drive, now, rng, remaps, remapping, most_bytes };
    let played = (0..layout.used).step_by(64).try_for_each(|start| host.write(start, 64));
    played.and_then(|()| workload(&mut host, layout)).map_err(|error| failed(&error))?;
    let counters = host.drive.counters();
    let own = counters.programs[Cause::Remap as usize] + counters.programs[Cause::Journal as usize];
    let switched_off = host.drive.into_unrecovered();
    let before = switched_off.flash_operations();
    let (drive, report) = switched_off.recover().map_err(|lost| failed(&lost.1))?;
    Ok(Costs {
        remap_us: host.remapping.as_ns() as f64 / 1000.0 / host.remaps.max(1) as f64,
        pages: 1000.0 * own as f64 / counters.remapped_pairs.max(1) as f64,
        most_bytes: host.most_bytes,
        destaged: counters.destaged_lines,
        recovered: drive.flash_operations() - before - report.pages_read,
    })
}

fn shown(workload: &str, store: &str, costs: &Costs) -> Comparison {
    let Costs { remap_us, pages, most_bytes, destaged, recovered } = costs;
    Comparison::shown(
        format!(
            "{workload}, {store}: a remap; pages for 1,000 pairs; entries at most; lines whose entries went to flash; pages read at recovery beside the scan"
        ),
        format!(
            "{} us; {}; {} MiB; {destaged}; {recovered}",
            rounded(*remap_us),
            rounded(*pages),
            rounded(*most_bytes as f64 / MIB)
        ),
    )
}

const OURS: &str = "none: a figure of ours";
const SMALL: &str = "none: a figure of ours; Remap-SSD's abstract says that it is small";

fn statements(workload: &str, [table, log, flash]: [&Costs; 3]) -> [Comparison; 3] {
    let all =
        |of: fn(&Costs) -> f64| [log, table, flash].map(|costs| rounded(of(costs))).join(", ");
    [
        direction(
            format!(
                "{workload}: a remap to the log in memory is faster than to the log on flash (log, table, flash)"
            ),
            OURS,
            format!("{} us", all(|costs| costs.remap_us)),
            log.remap_us < flash.remap_us,
        ),
        direction(
            format!(
                "{workload}: it programs fewer pages than the log on flash (log, table, flash)"
            ),
            OURS,
            format!("{} for 1,000 pairs", all(|costs| costs.pages)),
            log.pages < flash.pages,
        ),
        direction(
            format!("{workload}: it holds fewer bytes than the table"),
            SMALL,
            format!(
                "{} against {} MiB",
                rounded(log.most_bytes as f64 / MIB),
                rounded(table.most_bytes as f64 / MIB)
            ),
            log.most_bytes < table.most_bytes,
        ),
    ]
}

/// Bytes of non-volatile memory at full size.
fn memory(setting: &Setting<'_>) -> Result<Comparison, BenchError> {
    let bytes = |(_, profile): (&str, &str)| {
        let drive = Drive::new(config(setting, profile, Ratio::ONE, None)?);
        Ok::<_, BenchError>(drive.map_err(|error| failed(&error))?.non_volatile_bytes())
    };
    let [table, log, flash] = [bytes(STORES[0])?, bytes(STORES[1])?, bytes(STORES[2])?];
    let mib = |bytes: u64| rounded(bytes as f64 / MIB);
    Ok(Comparison {
        what: "non-volatile memory of the log, of the table, of the log on flash".into(),
        paper: SMALL.into(),
        ours: format!("{}, {}, {} MiB", mib(log), mib(table), mib(flash)),
        rule: "the log at most a tenth of the table".into(),
        agrees: log * 10 <= table && flash == 0,
    })
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let mut comparisons = vec![memory(setting)?];
    for (name, workload) in WORKLOADS {
        let costs = setting.each(&STORES, |(_, profile)| {
            let config = config(setting, profile, setting.scale, Some(HELD_PAIRS))?;
            measure(config, workload, setting.seed)
        })?;
        let stores = STORES.into_iter().zip(&costs);
        comparisons.extend(stores.map(|((store, _), measured)| shown(name, store, measured)));
        if let [table, log, flash] = &costs[..] {
            comparisons.extend(statements(name, [table, log, flash]));
        }
    }
    Ok(Reproduction { comparisons, results: setting.no_runs(FIGURE.name) })
}
