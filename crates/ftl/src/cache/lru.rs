//! `lru`: single entries, least recently used first; a dirty one is written alone.

use super::Policy;
use super::segmented::{SegmentedLru, WriteBack};

pub(super) const POLICY: Policy = Policy {
    name: "lru",
    about: "single entries, the least recently used goes, dirty ones are written one by one",
    build: |config| Box::new(SegmentedLru::new(config, 0, WriteBack::Alone)),
};
