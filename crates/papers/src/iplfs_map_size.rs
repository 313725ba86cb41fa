//! The example of section 5.3 of the IPLFS paper: what the map of a full drive takes.

use dovetail_block::Lba;
use dovetail_ftl::mapping::interval::{AREA_BLOCKS, IntervalMap, Layout, MapMemory};
use dovetail_lab::bench::BenchError;
use dovetail_nand::Ppn;

use super::{Comparison, Figure, Reproduction, Setting, within};

pub(crate) const FIGURE: Figure = Figure {
    name: "iplfs-map-size",
    title: "The map of a drive of 512 GB, all of it live: a page table and an interval map",
    source: "Kim et al., IPLFS, ATC'22: section 5.3, \"almost the same\"",
    setup: "Pages of 16 KiB, and a bit for each block of 4 KiB on both sides, which ours keeps beside the map. The paper's sizes are recomputed from its \
            parts; ours is an interval map into which every page is written, in one log, and counts slabs, records and the lookaside table too. \
            MB are MiB in the paper. At a reduced scale a smaller drive is written and its size scaled up.",
    reduced: 8,
    run,
    sensitivity: None,
};

const DRIVE: u64 = 512 << 30;
const BLOCK: u64 = 4096;
const BLOCKS_PER_PAGE: u64 = 4;
const MIB: f64 = 1_048_576.0;

/// The paper's parts: a root, 32 zone nodes, 2^15 map nodes, in bytes.
const ROOT: u64 = 128;
const ZONE_NODES: (u64, u64) = (32, 4096);
const MAP_NODES: (u64, u64) = (1 << 15, 4624);

/// A map of that many pages, written in order in the log of warm data.
fn written(pages: u64) -> Result<MapMemory, BenchError> {
    let failed = |error: &dyn std::error::Error| BenchError::Workload(error.to_string());
    let layout = Layout::new(BLOCKS_PER_PAGE as u32).map_err(|error| failed(&error))?;
    let mut map = IntervalMap::new(layout, 0);
    for page in 0..pages {
        let block = Lba(AREA_BLOCKS + page * BLOCKS_PER_PAGE);
        let page = layout.page_of(block).map_err(|error| failed(&error))?;
        map.update(page, Some(Ppn(page.index() as u32 / 2)));
    }
    Ok(map.memory())
}

/// Arithmetic over constants: no rule could fail.
fn in_mib(what: &str, bytes: f64) -> Comparison {
    Comparison::shown(what, format!("{:.1} MiB", bytes / MIB))
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let scale = setting.scale.value();
    let pages = DRIVE / BLOCK / BLOCKS_PER_PAGE;
    let bitmap = (DRIVE / BLOCK / 8) as f64;
    let table = pages as f64 * 4.0;
    let published = (ROOT + ZONE_NODES.0 * ZONE_NODES.1 + MAP_NODES.0 * MAP_NODES.1) as f64;
    let memory = written((pages as f64 * scale) as u64)?;
    let (tree, all) = (memory.tree() as f64 / scale, memory.total() as f64 / scale);
    let comparisons = vec![
        in_mib("page table and bitmap (paper: 144)", table + bitmap),
        in_mib("the paper's interval map, from its parts (paper: 144.6)", published),
        within(
            "our interval map as the paper counts it, and the bitmap",
            "MiB",
            144.6,
            (tree + bitmap) / MIB,
            1.01,
        ),
        Comparison {
            what: "our interval map with all that it needs, over the page table".into(),
            paper: "1.004 (with the bitmap on both sides)".into(),
            ours: format!("{:.4} ({:.4} without)", (all + bitmap) / (table + bitmap), all / table),
            rule: "at most 1.01, also without".into(),
            agrees: all / table <= 1.01,
        },
    ];
    Ok(Reproduction { comparisons, results: setting.no_runs(FIGURE.name) })
}
