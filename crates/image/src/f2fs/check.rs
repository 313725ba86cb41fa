//! Checking and repairing an F2FS or IPLFS image.

use dovetail_f2fs::fsck::{self, Area, Finding, Options, Progress, Remedy, RepairError, Report};
use dovetail_vfs::check::Severity;
use serde_json::{Map, Value, json};

use super::format::failed;
use super::segments::LOGS;
use crate::check::{by_kind, counted, found, severities};
use crate::format::device;
use crate::medium::Device;
use crate::{Check, Counted, Error, Found, Repair, Source};

pub(super) fn check(image: &Source, progress: &mut dyn FnMut(u64, u64)) -> Result<Check, Error> {
    let device = Box::new(device(image, false)?) as Device;
    let tell = |now| {
        if let Progress::Inodes { done, expected } = now {
            progress(done, expected);
        }
    };
    let report =
        fsck::check(device, Options::default(), tell).map_err(|error| failed(image, error))?;
    let areas_json: Value = report.counts.areas.iter().map(area_json).collect();
    Ok(Check {
        findings: report.findings.iter().map(finding).collect(),
        counts: counts(&report),
        kinds: by_kind(&report),
        lines: areas(&report).collect(),
        fields: Map::from_iter([("areas".to_string(), areas_json)]),
        is_clean: report.is_clean(),
        needs_repair: !report.is_clean() || report.count(Severity::Warning) > 0,
        can_be_repaired: true,
    })
}

pub(super) fn repair(image: &Source) -> Result<Repair, Error> {
    match fsck::repair(device(image, true)?) {
        Ok(done) => Ok(Repair::Done(done.iter().map(finding).collect())),
        Err(RepairError::Volume(error)) => Err(failed(image, error)),
        Err(refusal) => Ok(Repair::Refused(refusal.to_string())),
    }
}

fn finding(finding: &Finding) -> Found {
    let kind = finding.kind();
    found(kind, finding.to_string(), finding.values(), kind.remedy == Remedy::Repaired)
}

fn counts(report: &Report) -> Vec<Counted> {
    let c = &report.counts;
    let segments = c.areas.is_empty().then_some("free segments");
    let sums = [
        counted("inodes", c.inodes),
        counted("directories", c.directories),
        counted("files", c.files),
        counted("names", c.names),
        counted("orphans", c.orphans),
        Counted { key: "nodes", title: Some("node blocks"), count: c.nodes },
        Counted { key: "blocks", title: Some("blocks in use"), count: c.blocks },
        Counted { key: "free_segments", title: segments, count: c.free_segments },
    ];
    sums.into_iter().chain(severities(report)).collect()
}

/// The logs of IPLFS, one a line.
fn areas(report: &Report) -> impl Iterator<Item = String> {
    let head = (!report.counts.areas.is_empty())
        .then(|| "\nareas: position, live blocks, from, to, held by the drive\n".to_string());
    let or_none =
        |number: Option<u64>| number.map_or_else(|| "-".to_string(), |number| number.to_string());
    let line = move |area: &Area| {
        let (first, last) =
            (area.active.map(|(first, _)| first), area.active.map(|(_, last)| last));
        let (position, live, name) = (area.position, area.live, LOGS[usize::from(area.log)]);
        let (first, last, held) = (or_none(first), or_none(last), or_none(area.held));
        format!("  {name:10} {position:>20} {live:>12} {first:>20} {last:>20} {held:>12}\n")
    };
    head.into_iter().chain(report.counts.areas.iter().map(line))
}

pub(super) fn area_json(area: &Area) -> Value {
    json!({
        "log": LOGS[usize::from(area.log)],
        "position": area.position,
        "live_blocks": area.live,
        "first_live": area.active.map(|(first, _)| first),
        "last_live": area.active.map(|(_, last)| last),
        "held_blocks": area.held,
        "waiting_blocks": area.waiting,
        "blocks_beyond": area.beyond,
    })
}
