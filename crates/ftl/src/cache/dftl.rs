//! `dftl`: single entries in a segmented LRU list, written back by translation page (Gupta, Kim and
//! Urgaonkar, "DFTL: a flash translation layer employing demand-based selective caching of
//! page-level address mappings", ASPLOS 2009, section 3).

use super::Policy;
use super::segmented::{SegmentedLru, WriteBack};

pub(super) const POLICY: Policy = Policy {
    name: "dftl",
    about: "segmented LRU of single entries, written back by translation page (ASPLOS 2009)",
    build: |config| Box::new(SegmentedLru::new(config, PROTECTED_PERCENT, WriteBack::ByPage)),
};

/// The same with each dirty entry written alone, as FlashSim's DFTL does: apart from write-back by
/// page, this one differs from `dftl` in nothing. FlashSim's replacement is in `flashsim.rs`.
pub(super) const SINGLE: Policy = Policy {
    name: "dftl-single",
    about: "dftl with dirty entries written one by one",
    build: |config| Box::new(SegmentedLru::new(config, PROTECTED_PERCENT, WriteBack::Alone)),
};

/// Share of the protected segment in percent. The paper gives none; FlashSim's DFTL has 6,552
/// entries in one table and 1,640 in the other.
pub(super) const PROTECTED_PERCENT: usize = 80;
