//! Figures 17, 18 and 19 and table 3 of the IPLFS paper: holes, regions, and the size of the map
//! under a file server.

use std::cell::RefCell;
use std::rc::Rc;

use dovetail_ftl::mapping::interval::{CompactionPolicy, Layout, RegionSize};
use dovetail_host::Request;
use dovetail_lab::bench::BenchError;

use super::iplfs::{THERE, file_server, on_partition, watched};
use super::iplfs_shadow::{BLOCKS_PER_PAGE, Shadow, Volume, map_nodes, own_map_nodes, quantile};
use super::{Comparison, Figure, Reproduction, Setting, rounded};

pub(crate) const FIGURE: Figure = Figure {
    name: "iplfs-figures-17-19",
    title: "Holes, sizes of regions, and the size of the mapping tree under a file server",
    source: "Kim et al., IPLFS, ATC'22: figures 17, 18 and 19, table 3, section 6.4",
    setup: "Filebench's file server, 50 threads, 82,432 files of 2 MiB (161 GiB) of which four fifths are there at a time, on the drive of 230 GiB, 1,600 s, on IPLFS. Interval maps in pages of 16 KiB, each \
            with a policy of its own, are told every write and discard that the drive is told; compaction every 10 or 30 s, at a reduced scale as much earlier as the drive is \
            smaller. Sizes are those of map nodes as the published code counts them, a bit for each block included, by those of a page table with such bits; roots and zone nodes, a thousandth of a \
            large tree, do not shrink with the drive.",
    reduced: 8,
    run,
    sensitivity: None,
};

/// The file set: 82,432 files in the published job ("161GB"). Four fifths of it are there at a time.
const FILE_SET: f64 = 82_432.0 * 2_097_152.0;
/// The paper's name for it, which it compares the tree with.
const FILES: f64 = 160e9;
const SECONDS: f64 = 1600.0;

/// Areas of the logs: data then nodes, each hot, warm, cold.
const HOT_DATA: u64 = 1;
const WARM_DATA: u64 = 2;
const HOT_NODE: u64 = 4;
const WARM_NODE: u64 = 5;

/// Compacts all that does not get larger by it: so figure 18 was made, as the published discards
/// show (see `iplfs_shadow.rs`).
pub(crate) const ALL: CompactionPolicy =
    CompactionPolicy { kept_percent: 100, ..CompactionPolicy::PUBLISHED };

/// Maps that are compacted, or not, as time goes on.
const OVER_TIME: usize = 4;

/// Sizes of regions in blocks: 64 KiB, 256 KiB, 1 MiB, 4 MiB.
const FIXED: [u32; 4] = [16, 64, 256, 1024];

/// The maps in their order: [`OVER_TIME`] over time, then those that differ in their regions.
fn policies() -> Vec<(CompactionPolicy, bool)> {
    let over_time = [
        (CompactionPolicy::PAPER, false),
        (CompactionPolicy::PAPER, true),
        (CompactionPolicy::EAGER, true),
        (CompactionPolicy::PUBLISHED, true),
    ];
    let fixed = FIXED.map(RegionSize::Fixed);
    let regions = [RegionSize::SmallestInnerHole, RegionSize::LeastMemory].into_iter().chain(fixed);
    over_time
        .into_iter()
        .chain(regions.map(|regions| (CompactionPolicy { regions, ..ALL }, false)))
        .collect()
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let scale = setting.scale.value();
    let failed = |error: &dyn std::error::Error| BenchError::Workload(error.to_string());
    let layout = Layout::new(BLOCKS_PER_PAGE as u32).map_err(|error| failed(&error))?;
    let shadow = Rc::new(RefCell::new(Shadow::new(layout, &policies(), 1.0 / scale)));
    let watcher = Rc::clone(&shadow);
    let stack = on_partition(&["iplfs"], "230GiB")?.remove(0);
    let source = file_server(setting, FILE_SET * THERE, SECONDS)?;
    let watch = move |request: &Request| watcher.borrow_mut().see(request);
    let mut results = setting.no_runs("fileserver");
    results.runs.push(watched(setting, &stack, &source, watch)?);
    let mut shadow = shadow.borrow_mut();
    let mut comparisons = table_3(&shadow, scale);
    comparisons.push(figure_17(&shadow));
    comparisons.extend(figure_19(&shadow, scale));
    comparisons.extend(figure_18(&mut shadow));
    Ok(Reproduction { comparisons, results })
}

/// Median, 75 % and 90 % of the holes in KiB, and the paper's volumes in GB.
fn table_3(shadow: &Shadow, scale: f64) -> Vec<Comparison> {
    let logs = [
        ("warm node", WARM_NODE, [32, 32, 80], (1.99, 1.69)),
        ("warm data", WARM_DATA, [2860, 6352, 11764], (305.9, 170.4)),
        ("hot node", HOT_NODE, [48, 232, 816], (0.4, 0.38)),
        ("hot data", HOT_DATA, [8, 24, 40], (0.87, 0.36)),
    ];
    let gb = |blocks: u64| rounded(blocks as f64 * 4096.0 / 1e9 / scale);
    let mut rows: Vec<Comparison> = logs
        .into_iter()
        .map(|(what, area, paper, (written, discarded))| {
            let (holes, volume) = (shadow.holes_kib(area), shadow.volumes[area as usize]);
            let ours = [0.5, 0.75, 0.9].map(|share| quantile(&holes, share));
            Comparison {
                what: format!(
                    "table 3, {what}: holes at 50, 75, 90 % in KiB; GB written, discarded"
                ),
                paper: format!("{paper:?}; {written}, {discarded}"),
                ours: format!("{ours:?}; {}, {}", gb(volume.written), gb(volume.discarded)),
                rule: "the median within a factor of 4".into(),
                agrees: ours[0] * 4 >= paper[0] && ours[0] <= paper[0] * 4,
            }
        })
        .collect();
    rows.push(of_warm_data(shadow, "written", |volume| volume.written));
    rows.push(of_warm_data(shadow, "discarded", |volume| volume.discarded));
    rows
}

fn of_warm_data(shadow: &Shadow, what: &str, blocks: impl Fn(&Volume) -> u64) -> Comparison {
    let all: u64 = shadow.volumes.iter().map(&blocks).sum();
    let share = blocks(&shadow.volumes[WARM_DATA as usize]) as f64 / all as f64;
    Comparison {
        what: format!("table 3: warm data's share of what is {what}"),
        paper: "99 %".into(),
        ours: format!("{:.1} %", share * 100.0),
        rule: "95 % at least".into(),
        agrees: share >= 0.95,
    }
}

fn figure_17(shadow: &Shadow) -> Comparison {
    let sizes = shadow.region_sizes_kib(WARM_DATA);
    let above =
        sizes.iter().filter(|&&size| size > 1024).count() as f64 / (sizes.len() as f64).max(1.0);
    let quartiles = [0.25, 0.5, 0.75].map(|share| quantile(&sizes, share));
    Comparison {
        what: "figure 17: regions of warm data that are larger than 1 MiB".into(),
        paper: "3/4".into(),
        ours: format!("{:.0} %, quartiles {quartiles:?} KiB", above * 100.0),
        rule: "60 to 90 %".into(),
        agrees: (0.6..=0.9).contains(&above),
    }
}

fn figure_18(shadow: &mut Shadow) -> Vec<Comparison> {
    let live = shadow.live_bytes();
    let mut own = Vec::new();
    let sizes: Vec<f64> = shadow.maps[OVER_TIME..]
        .iter_mut()
        .map(|tracked| {
            tracked.map.compact_all();
            own.push(own_map_nodes(&tracked.map));
            map_nodes(&tracked.map) / live
        })
        .collect();
    let (hole, least, fixed) = (sizes[0], sizes[1], &sizes[2..]);
    let shown: Vec<String> = FIXED
        .iter()
        .zip(fixed)
        .map(|(blocks, size)| format!("{} KiB {size:.3}", blocks * 4))
        .collect();
    vec![
        Comparison {
            what: "figure 18: the tree by the live pages' table, regions as the smallest hole and fixed"
                .into(),
            paper: "the smallest hole's is smaller than any fixed size's".into(),
            ours: format!("{hole:.3}; {}", shown.join(", ")),
            rule: "the smallest".into(),
            agrees: fixed.iter().all(|&size| hole <= size),
        },
        Comparison {
            what: "figure 18: the tree of regions of 64 KiB over that of the smallest hole".into(),
            paper: "13 % more".into(),
            ours: format!("{:+.1} %", (fixed[0] / hole - 1.0) * 100.0),
            rule: "6 to 20 % more".into(),
            agrees: (1.06..=1.2).contains(&(fixed[0] / hole)),
        },
        Comparison::shown(
            "figure 18: the same as our map stands in memory, with 4 bytes a region and no bitmap",
            format!("{:+.1} %", (own[2] / own[0] - 1.0) * 100.0),
        ),
        Comparison::shown(
            "figure 18: the same, our choice of what needs the least memory",
            format!("{least:.3}"),
        ),
    ]
}

fn figure_19(shadow: &Shadow, scale: f64) -> Vec<Comparison> {
    let files = shadow.table_of(FILES * scale);
    let at_most = |map: usize| shadow.most_in_second_half(map) / files;
    let last = |map: usize| shadow.sizes[map].last().copied().unwrap_or(f64::NAN);
    let [text, ours, published] = [1, 2, 3].map(at_most);
    let live = shadow.live_bytes();
    vec![
        Comparison {
            what: "figure 19: the tree without compaction over that with the published policy, at the end".into(),
            paper: "twice as much, 80 MB and growing (83.2 and 43.3 MiB in the published series)".into(),
            ours: rounded(last(0) / last(3)),
            rule: "1.5 to 2.5".into(),
            agrees: (1.5..=2.5).contains(&(last(0) / last(3))),
        },
        Comparison {
            what: "figure 19: the tree by a page table of the 160 GB, with compaction by the published policy, at most in the second half".into(),
            paper: "almost the same (40 MB for 160 GB)".into(),
            ours: rounded(published),
            rule: "0.9 to 1.15".into(),
            agrees: (0.9..=1.15).contains(&published),
        },
        Comparison::shown(
            "figure 19: the same, by the text's policy; by our default",
            format!("{}, {}", rounded(text), rounded(ours)),
        ),
        Comparison::shown(
            "figure 19: the tree by a page table of what is live, at the end: the published policy, the text's",
            format!("{}, {}", rounded(last(3) / live), rounded(last(1) / live)),
        ),
    ]
}
