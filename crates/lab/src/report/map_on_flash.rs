//! The figures of a demand-paged map, for runs of any kind that may have one.

use super::comparison::{Best, Cell, Group, missing, number, row, whole};
use crate::map_cache::Cached;
use crate::results::MapCacheResult;

/// Runs whose maps can be compared.
pub(super) trait MapOnFlash: Cached + Sized + 'static {
    /// Whether two runs can be.
    const COMPARABLE: fn(&Self, &Self) -> bool;

    const LEAST: Best<Self> = Best::Least(Self::COMPARABLE);
    const MOST: Best<Self> = Best::Most(Self::COMPARABLE);

    /// The rows.
    const GROUP: Group<Self> = Group {
        name: "Map on flash",
        rows: &[
            row("Read hits, %", Self::MOST, |run| of_cache(run, |cache| percent(cache.hit_ratio.read))),
            row("Write hits, %", Self::MOST, |run| of_cache(run, |cache| percent(cache.hit_ratio.write))),
            row("Translation pages read", Self::LEAST, |run| {
                of_cache(run, |cache| Some(whole(cache.translation_reads.total())))
            }),
            row("Translation pages written", Self::LEAST, |run| {
                of_cache(run, |cache| Some(whole(cache.translation_writes.total())))
            }),
            row("Read latency, % of dftl's", Self::LEAST, |run| {
                of_cache(run, |cache| percent(cache.of_dftl.read))
            }),
            row("Write latency, % of dftl's", Self::LEAST, |run| {
                of_cache(run, |cache| percent(cache.of_dftl.write))
            }),
            row("Reads summed, % of dftl's", Self::LEAST, |run| {
                of_cache(run, |cache| percent(cache.summed_of_dftl.read))
            }),
            row("Writes summed, % of dftl's", Self::LEAST, |run| {
                of_cache(run, |cache| percent(cache.summed_of_dftl.write))
            }),
        ],
    };
}

fn of_cache(run: &impl Cached, cell: fn(&MapCacheResult) -> Option<Cell>) -> Cell {
    run.cache().and_then(cell).unwrap_or_else(missing)
}

fn percent(share: Option<f64>) -> Option<Cell> {
    share.map(|share| number(share * 100.0))
}
