//! Checking an ext image.

use dovetail_ext::fsck::{Finding, Options, check as check_volume};
use serde_json::Map;

use super::format::failed;
use crate::check::{counted, found, severities};
use crate::format::device;
use crate::medium::Device;
use crate::{Check, Error, Found, Source};

pub(super) fn check(image: &Source) -> Result<Check, Error> {
    let device = Box::new(device(image, false)?) as Device;
    let report = check_volume(device, Options::default()).map_err(|error| failed(image, error))?;
    let c = &report.counts;
    let sums = [
        ("inodes", c.inodes),
        ("directories", c.directories),
        ("names", c.names),
        ("orphans", c.orphans),
        ("blocks", c.blocks),
    ];
    Ok(Check {
        findings: report.findings.iter().map(finding).collect(),
        counts: sums
            .map(|(name, count)| counted(name, count))
            .into_iter()
            .chain(severities(&report))
            .collect(),
        kinds: Vec::new(),
        lines: String::new(),
        fields: Map::new(),
        is_clean: report.is_clean(),
        needs_repair: !report.is_clean(),
        can_be_repaired: false,
    })
}

fn finding(finding: &Finding) -> Found {
    found(finding.kind(), finding.to_string(), finding.values(), false)
}
