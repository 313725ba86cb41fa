//! `s-ftl`: whole translation pages, condensed where addresses follow each other (Jiang, Zhang,
//! Yuan, Hu and Chen, "S-FTL: an efficient address translation for flash memory by exploiting
//! spatial locality", MSST 2011).
//!
//! A page takes a bit for each entry, set where a run begins, and an address for each run. A run has
//! entries whose addresses follow each other, or that have none: a hole is a run, too, since one bit
//! cannot tell it from an entry that goes on. The published one keeps single changes of pages that
//! went in a buffer of their own; this one does not.

use super::condensed::{CondensedPages, Measured};
use super::pages::EntrySet;
use super::{CacheConfig, Policy, Shape, TranslationPage};

pub(super) const POLICY: Policy = Policy {
    name: "s-ftl",
    about: "whole translation pages, condensed by runs of addresses (MSST 2011)",
    build: |config| Box::new(CondensedPages::new(config, by_runs)),
};

/// Bytes of an address, which may be none, and of a page's number.
const ADDRESS_BYTES: u64 = 4;

pub(super) fn by_runs(config: &CacheConfig, shape: &dyn Shape, page: TranslationPage) -> Measured {
    let bytes = condensed_bytes(config, shape.runs(page));
    Measured { bytes, misled: EntrySet::default() }
}

/// Bytes of a condensed page, at most those of a plain one.
fn condensed_bytes(config: &CacheConfig, runs: u32) -> u64 {
    let plain = config.page_entries() * ADDRESS_BYTES;
    let condensed = config.page_entries().div_ceil(8) + u64::from(runs) * ADDRESS_BYTES;
    ADDRESS_BYTES + condensed.min(plain)
}
