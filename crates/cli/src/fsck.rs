//! `dovetail fsck`: checking a file-system image, and repairing it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use dovetail_ext::fsck as ext;
use dovetail_f2fs::fsck::{Area, Finding, Options, RepairError, Report, Severity, check, repair};
use serde_json::{Map, Value, json};

use crate::image::LOGS;
use crate::medium::Medium;
use crate::mount::ImageLock;
use crate::{Failure, print};

/// An image, and what to do with it.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes, as fsck(8) has them: 0 no errors, 1 errors repaired, 4 errors left, 8 the check \
                        could not be made, as that of a volume which is mounted for writing."
)]
pub(crate) struct Arguments {
    /// The image file, a block device, or a drive file; it must not be mounted.
    image: PathBuf,
    /// Repair what can be repaired without guessing. Otherwise nothing is written.
    #[arg(long)]
    repair: bool,
    /// Only say what a repair would do; this is the default.
    #[arg(long, conflicts_with = "repair")]
    dry_run: bool,
    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// Exit codes of fsck(8).
const REPAIRED: u8 = 1;
const ERRORS_LEFT: u8 = 4;
const OPERATIONAL: u8 = 8;

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match run_to_code(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(Failure::Usage(message) | Failure::Failed(message)) => {
            crate::complain(&message);
            ExitCode::from(OPERATIONAL)
        }
    }
}

fn run_to_code(arguments: &Arguments) -> Result<u8, Failure> {
    // of a volume that changes meanwhile no two structures agree
    let _lock = ImageLock::take(&arguments.image, arguments.repair)?;
    if let Some(report) = check_ext(&arguments.image)? {
        return show_ext(arguments, &report);
    }
    let before = check_image(&arguments.image)?;
    if !arguments.repair || before.is_clean() && before.count(Severity::Warning) == 0 {
        show(arguments, &before, None)?;
        return Ok(if before.is_clean() { 0 } else { ERRORS_LEFT });
    }
    let device = Medium::open_read_write(&arguments.image).map_err(|error| {
        Failure::Failed(format!("{} cannot be opened: {error}", arguments.image.display()))
    })?;
    let done = match repair(device) {
        Ok(done) => done,
        Err(RepairError::Volume(error)) => return Err(failed(&arguments.image, error)),
        Err(refusal) => {
            show(arguments, &before, None)?;
            crate::complain(&failed_text(&arguments.image, refusal));
            return Ok(if before.is_clean() { 0 } else { ERRORS_LEFT });
        }
    };
    let after = check_image(&arguments.image)?;
    show(arguments, &before, Some((&done, &after)))?;
    Ok(match (after.is_clean(), done.is_empty()) {
        (false, _) => ERRORS_LEFT,
        (true, false) => REPAIRED,
        (true, true) => 0,
    })
}

fn failed(image: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::Failed(failed_text(image, error))
}

fn failed_text(image: &Path, error: impl std::fmt::Display) -> String {
    format!("{}: {error}", image.display())
}

fn check_image(image: &Path) -> Result<Report, Failure> {
    let device = Medium::open_read_only(image)
        .map_err(|error| Failure::Failed(format!("{} cannot be opened: {error}", image.display())))?;
    check(device, Options::default(), |_| {}).map_err(|error| failed(image, error))
}

/// What is found in an ext volume; `None` if it is of another kind.
fn check_ext(image: &Path) -> Result<Option<ext::Report>, Failure> {
    let device = Medium::open_read_only(image)
        .map_err(|error| Failure::Failed(format!("{} cannot be opened: {error}", image.display())))?;
    match ext::check(device, ext::Options::default()) {
        Ok(report) => Ok(Some(report)),
        Err(dovetail_ext::Error::NotExt { .. }) => Ok(None),
        Err(error) => Err(failed(image, error)),
    }
}

fn show_ext(arguments: &Arguments, report: &ext::Report) -> Result<u8, Failure> {
    if arguments.json {
        print(&format!("{:#}\n", ext_as_json(report)))?;
    } else {
        let lines = report.findings.iter().map(|f| format!("{:8} {f}\n", format!("{}:", f.severity())));
        let counts = ext_counts(report).into_iter().map(|(name, count)| format!("{name:24} {count:>12}\n"));
        print(&lines.chain(std::iter::once("\n".to_string())).chain(counts).collect::<String>())?;
    }
    if arguments.repair && !report.is_clean() {
        crate::complain(&failed_text(&arguments.image, "ext volumes are not repaired here; use e2fsck"));
    }
    Ok(if report.is_clean() { 0 } else { ERRORS_LEFT })
}

fn ext_counts(report: &ext::Report) -> [(&'static str, u64); 8] {
    let c = &report.counts;
    [
        ("inodes", c.inodes),
        ("directories", c.directories),
        ("names", c.names),
        ("orphans", c.orphans),
        ("blocks", c.blocks),
        ("errors", report.count(Severity::Error)),
        ("warnings", report.count(Severity::Warning)),
        ("notes", report.count(Severity::Note)),
    ]
}

fn ext_as_json(report: &ext::Report) -> Value {
    let finding = |finding: &ext::Finding| {
        let values: Map<_, _> =
            finding.values().into_iter().map(|(name, value)| (name.to_string(), value.into())).collect();
        let (kind, text) = (finding.kind(), finding.to_string());
        json!({ "kind": kind.name, "severity": kind.severity.to_string(), "text": text, "values": values })
    };
    let counts: Map<_, _> =
        ext_counts(report).into_iter().map(|(name, count)| (name.to_string(), count.into())).collect();
    let findings: Vec<_> = report.findings.iter().map(finding).collect();
    json!({ "schema": 1, "clean": report.is_clean(), "findings": findings, "counts": counts })
}

type Repaired<'a> = Option<(&'a [Finding], &'a Report)>;

fn show(
    arguments: &Arguments,
    before: &Report,
    repaired: Option<(&Vec<Finding>, &Report)>,
) -> Result<(), Failure> {
    let repaired = repaired.map(|(done, after)| (done.as_slice(), after));
    if arguments.json {
        return print(&format!("{:#}\n", as_json(before, repaired)));
    }
    let mut text = lines(&before.findings);
    if let Some((done, after)) = repaired {
        text += &format!("\n{} repaired; what is left:\n{}", done.len(), lines(&after.findings));
    } else if before.findings.iter().any(is_repairable) {
        text += "\nnothing was written; --repair repairs what needs no guess\n";
    }
    print(&(text + &table(repaired.map_or(before, |(_, after)| after))))
}

fn is_repairable(finding: &Finding) -> bool {
    finding.kind().remedy == dovetail_f2fs::fsck::Remedy::Repaired
}

fn lines(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{:8} {finding}\n", format!("{}:", finding.severity()))).collect()
}

/// What was counted, and how many findings there were of each kind.
fn table(report: &Report) -> String {
    let c = &report.counts;
    let counts = [
        ("inodes", c.inodes),
        ("directories", c.directories),
        ("files", c.files),
        ("names", c.names),
        ("orphans", c.orphans),
        ("node blocks", c.nodes),
        ("blocks in use", c.blocks),
        ("free segments", c.free_segments),
        ("errors", report.count(Severity::Error)),
        ("warnings", report.count(Severity::Warning)),
        ("notes", report.count(Severity::Note)),
    ];
    let counts = counts.iter().map(|(name, count)| format!("{name:24} {count:>12}\n"));
    let counts = counts.filter(|line| report.counts.areas.is_empty() || !line.starts_with("free segments"));
    let kinds = report.kinds().map(|(kind, count)| format!("  {:22} {count:>12}\n", kind.name));
    std::iter::once("\n".to_string()).chain(counts).chain(kinds).chain(areas(report)).collect()
}

/// The logs of IPLFS, one a line.
fn areas(report: &Report) -> impl Iterator<Item = String> {
    let head = (!report.counts.areas.is_empty())
        .then(|| "\nareas: position, live blocks, from, to, held by the drive\n".to_string());
    let or_none = |number: Option<u64>| number.map_or_else(|| "-".to_string(), |number| number.to_string());
    let line = move |area: &Area| {
        let (first, last) = (area.active.map(|(first, _)| first), area.active.map(|(_, last)| last));
        let (position, live, name) = (area.position, area.live, LOGS[usize::from(area.log)]);
        let (first, last, held) = (or_none(first), or_none(last), or_none(area.held));
        format!("  {name:10} {position:>20} {live:>12} {first:>20} {last:>20} {held:>12}\n")
    };
    head.into_iter().chain(report.counts.areas.iter().map(line))
}

pub(crate) fn area_json(area: &Area) -> Value {
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

fn as_json(before: &Report, repaired: Repaired<'_>) -> Value {
    let findings = |findings: &[Finding]| findings.iter().map(finding_json).collect::<Vec<_>>();
    let last = repaired.map_or(before, |(_, after)| after);
    let c = &last.counts;
    json!({
        "schema": 1,
        "clean": last.is_clean(),
        "findings": findings(&before.findings),
        "repaired": repaired.map(|(done, _)| findings(done)),
        "left": repaired.map(|(_, after)| findings(&after.findings)),
        "counts": {
            "inodes": c.inodes,
            "directories": c.directories,
            "files": c.files,
            "names": c.names,
            "orphans": c.orphans,
            "nodes": c.nodes,
            "blocks": c.blocks,
            "free_segments": c.free_segments,
            "errors": last.count(Severity::Error),
            "warnings": last.count(Severity::Warning),
            "notes": last.count(Severity::Note),
        },
        "areas": last.counts.areas.iter().map(area_json).collect::<Vec<_>>(),
    })
}

fn finding_json(finding: &Finding) -> Value {
    let kind = finding.kind();
    let values: Map<_, _> =
        finding.values().into_iter().map(|(name, value)| (name.to_string(), value.into())).collect();
    json!({
        "kind": kind.name,
        "severity": kind.severity.to_string(),
        "text": finding.to_string(),
        "values": values,
    })
}
