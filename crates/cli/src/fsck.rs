//! `dovetail fsck`: checking a file-system image, and repairing it.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;
use dovetail_image::{Check, Format, Found, Repair, Source, format_of};
use dovetail_time::SimTime;
use serde_json::{Map, Value, json};

use crate::image::Parts;
use crate::mount::ImageLock;
use crate::output::{Outputs, check_writable, is_stdout, write};
use crate::progress::Heartbeat;
use crate::{Failure, clock, print};

/// An image, and what to do with it.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes, as fsck(8) has them: 0 no errors, 1 errors repaired, 4 errors left, 8 the check \
                        could not be made, as that of a volume which is mounted for writing, 16 options that make no sense."
)]
pub(crate) struct Arguments {
    /// The image file, a block device, or a drive file; it must not be mounted.
    image: PathBuf,
    #[command(flatten)]
    parts: Parts,
    /// Repair what can be repaired without guessing, as -p and -a of fsck(8). Otherwise nothing is
    /// written.
    #[arg(long, short = 'p', visible_short_alias = 'a')]
    repair: bool,
    /// Repair, and salvage (F2FS) where that is not enough: nodes that the NAT has lost are found
    /// again, what has no name goes to /lost+found, and what is lost is cut off and listed.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Only say what a repair would do; this is the default.
    #[arg(long, short = 'n', conflicts_with_all = ["repair", "yes"])]
    dry_run: bool,
    /// Show every finding, not only the first ten of each kind.
    #[arg(long)]
    all: bool,
    /// Of fsck(8): check even if the volume looks clean. It is checked always.
    #[arg(long, short = 'f')]
    force: bool,
    /// Write JSON: --json FILE to a file, --json alone to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// Exit codes of fsck(8).
const REPAIRED: u8 = 1;
const ERRORS_LEFT: u8 = 4;
const OPERATIONAL: u8 = 8;
pub(crate) const USAGE: u8 = 16;

/// Checks, and repairs if asked for; returns the exit code.
pub(crate) fn run(arguments: &Arguments) -> u8 {
    run_to_code(arguments).unwrap_or_else(|failure| fail(&failure))
}

/// Tells why there was no check.
pub(crate) fn fail(failure: &Failure) -> u8 {
    let (message, code) = match failure {
        Failure::Usage(message) => (message, USAGE),
        Failure::Failed(message) => (message, OPERATIONAL),
    };
    crate::complain(message);
    code
}

fn run_to_code(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(path) = &arguments.json {
        let mut outputs = Outputs::default();
        outputs.input(&arguments.image);
        outputs.output("--json", path)?;
        check_writable([path].into_iter())?;
    }
    let repairs = arguments.repair || arguments.yes;
    // of a volume that changes meanwhile no two structures agree
    let _lock = ImageLock::take(&arguments.image, repairs)?;
    let beat = Heartbeat::new(format!("checking {}", arguments.image.display()));
    let image = &arguments.parts.of(&arguments.image)?;
    let format = format_of(image)?;
    let before = format.check(image, &mut |done, all| beat.tell(done, all))?;
    let code = if before.is_clean { 0 } else { ERRORS_LEFT };
    if !repairs || !before.needs_repair {
        show(arguments, &before, None)?;
        return Ok(code);
    }
    let (done, after) = match repaired(format, image, arguments.yes, &beat)? {
        Ok(repaired) => repaired,
        Err(why) => {
            show(arguments, &before, None)?;
            crate::complain(&format!("{}: {why}", image.display()));
            return Ok(code);
        }
    };
    let is_changed = !matches!(&done, Repair::Done(done) if done.is_empty());
    show(arguments, &before, Some((&done, &after)))?;
    Ok(match (after.is_clean, is_changed) {
        (false, _) => ERRORS_LEFT,
        (true, true) => REPAIRED,
        (true, false) => 0,
    })
}

/// Repairs the image, and salvages it where that is asked for and more is wrong. Returns what was
/// done and the check after it, or why nothing was.
fn repaired(
    format: &dyn Format,
    image: &Source,
    salvages: bool,
    beat: &Heartbeat,
) -> Result<Result<(Repair, Check), String>, Failure> {
    let check = || format.check(image, &mut |done, all| beat.tell(done, all));
    let mut done = format.repair(image)?;
    let mut after = check()?;
    if salvages && !after.is_clean {
        let now = clock::mounting_at(SimTime::ZERO);
        done = match (format.salvage(image, now)?, done) {
            // what the repair did stays done
            (Repair::Refused(_), Repair::Done(done)) if !done.is_empty() => Repair::Done(done),
            (salvaged, _) => salvaged,
        };
        after = check()?;
    }
    match done {
        Repair::Refused(why) => Ok(Err(why)),
        done => Ok(Ok((done, after))),
    }
}

/// A repair or salvage, and the check after it.
type Repaired<'a> = Option<(&'a Repair, &'a Check)>;

/// Findings of a kind that are shown.
const SHOWN_OF_KIND: usize = 10;

fn show(arguments: &Arguments, before: &Check, repaired: Repaired<'_>) -> Result<(), Failure> {
    if let Some(path) = &arguments.json {
        let text = format!("{:#}\n", as_json(before, repaired));
        write(path, &text)?;
        if is_stdout(Some(path)) {
            return Ok(());
        }
    }
    let all = arguments.all;
    let mut text = lines(&before.findings, &before.kinds, all);
    match repaired {
        Some((Repair::Salvaged(account), after)) => {
            let left = lines(&after.findings, &after.kinds, all);
            text += &format!("\nsalvaged:\n{}\nwhat is left:\n{left}", lines(account, &[], all));
        }
        Some((Repair::Done(done), after)) => {
            let left = lines(&after.findings, &after.kinds, all);
            text += &format!("\n{} repaired; what is left:\n{left}", done.len());
        }
        _ if before.findings.iter().any(|found| found.is_repairable) => {
            text += "\nnothing was written; --repair repairs what needs no guess\n";
        }
        _ => {}
    }
    print(&(text + &table(repaired.map_or(before, |(_, after)| after))))
}

/// A line for each finding; of each kind the first ones and how many more there are, unless `all`.
/// `kinds` has the sums, where not all findings were kept.
fn lines(findings: &[Found], kinds: &[(&'static str, u64)], all: bool) -> String {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    findings.iter().for_each(|found| *counts.entry(found.kind).or_default() += 1);
    let (mut seen, mut text): (HashMap<&str, usize>, _) = (HashMap::new(), String::new());
    for found in findings {
        let seen = seen.entry(found.kind).or_default();
        *seen += 1;
        if all || *seen <= SHOWN_OF_KIND {
            text += &format!("{:8} {}\n", format!("{}:", found.severity), found.text);
        } else if *seen == SHOWN_OF_KIND + 1 {
            let total = kinds.iter().find(|(kind, _)| *kind == found.kind);
            let total = total.map_or(counts[found.kind] as u64, |(_, count)| *count);
            let more = total.saturating_sub(SHOWN_OF_KIND as u64);
            text += &format!("         and {more} more of {}; --all lists them\n", found.kind);
        }
    }
    text
}

/// Table of the counts, of the findings by kind, and of what the format adds.
fn table(check: &Check) -> String {
    let counts = check.counts.iter().filter_map(|counted| Some((counted.title?, counted.count)));
    let counts = counts.map(|(title, count)| format!("{title:24} {count:>12}\n"));
    let kinds = check.kinds.iter().map(|(kind, count)| format!("  {kind:22} {count:>12}\n"));
    let rest = std::iter::once(check.lines.clone());
    std::iter::once("\n".to_string()).chain(counts).chain(kinds).chain(rest).collect()
}

fn as_json(before: &Check, repaired: Repaired<'_>) -> Value {
    let findings = |found: &[Found]| found.iter().map(finding_json).collect::<Value>();
    let last = repaired.map_or(before, |(_, after)| after);
    let counts = last.counts.iter().map(|counted| (counted.key.to_string(), counted.count.into()));
    let mut all = Map::new();
    let mut put = |key: &str, value: Value| drop(all.insert(key.into(), value));
    put("schema", 1.into());
    put("clean", last.is_clean.into());
    put("findings", findings(&before.findings));
    if last.can_be_repaired {
        let (mut done, mut account) = (None, None);
        match repaired {
            Some((Repair::Done(found), _)) => done = Some(findings(found)),
            Some((Repair::Salvaged(found), _)) => account = Some(findings(found)),
            _ => {}
        }
        put("repaired", done.into());
        if account.is_some() {
            put("salvage", account.into());
        }
        put("left", repaired.map(|(_, after)| findings(&after.findings)).into());
    }
    put("counts", Value::Object(counts.collect()));
    all.extend(last.fields.clone());
    Value::Object(all)
}

fn finding_json(found: &Found) -> Value {
    let values = found.values.iter().map(|(name, value)| (name.to_string(), value.clone().into()));
    json!({
        "kind": found.kind,
        "severity": found.severity.to_string(),
        "text": found.text,
        "values": values.collect::<Map<_, _>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_vfs::check::Severity;

    #[test]
    fn of_each_kind_the_first_ones_are_shown() {
        let found = |kind, number: usize| Found {
            kind,
            severity: Severity::Error,
            text: format!("number {number}"),
            values: Vec::new(),
            is_repairable: false,
        };
        let mut all: Vec<_> = (0..12).map(|number| found("Many", number)).collect();
        all.push(found("Few", 12));
        let shown = lines(&all, &[], false);
        assert_eq!(shown.lines().count(), 12);
        let expected = "error:   number 9\n         and 2 more of Many; --all lists them\nerror:   number 12\n";
        assert!(shown.ends_with(expected), "{shown}");
        assert_eq!(lines(&all, &[], true).lines().count(), 13);
        assert!(lines(&all, &[("Many", 5000)], false).contains("and 4990 more of Many"));
    }
}
