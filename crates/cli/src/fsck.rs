//! `dovetail fsck`: checking a file-system image, and repairing it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use dovetail_image::{Check, Found, Repair, format_of};
use serde_json::{Map, Value, json};

use crate::image::Parts;
use crate::mount::ImageLock;
use crate::output::{Outputs, check_writable, is_stdout, write};
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
    #[command(flatten)]
    parts: Parts,
    /// Repair what can be repaired without guessing. Otherwise nothing is written. -y, -p and -a
    /// of fsck(8) mean the same: there is no question that could be asked.
    #[arg(long, short = 'y', visible_short_aliases = ['p', 'a'])]
    repair: bool,
    /// Only say what a repair would do; this is the default.
    #[arg(long, short = 'n', conflicts_with = "repair")]
    dry_run: bool,
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

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match run_to_code(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => fail(&failure),
    }
}

/// Tells why there was no check.
pub(crate) fn fail(failure: &Failure) -> ExitCode {
    let (Failure::Usage(message) | Failure::Failed(message)) = failure;
    crate::complain(message);
    ExitCode::from(OPERATIONAL)
}

fn run_to_code(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(path) = &arguments.json {
        let mut outputs = Outputs::default();
        outputs.input(&arguments.image);
        outputs.output("--json", path)?;
        check_writable([path].into_iter())?;
    }
    // of a volume that changes meanwhile no two structures agree
    let _lock = ImageLock::take(&arguments.image, arguments.repair)?;
    let image = &arguments.parts.of(&arguments.image)?;
    let format = format_of(image)?;
    let before = format.check(image)?;
    let code = if before.is_clean { 0 } else { ERRORS_LEFT };
    if !arguments.repair || !before.needs_repair {
        show(arguments, &before, None)?;
        return Ok(code);
    }
    let done = match format.repair(image)? {
        Repair::Done(done) => done,
        Repair::Refused(why) => {
            show(arguments, &before, None)?;
            crate::complain(&format!("{}: {why}", image.display()));
            return Ok(code);
        }
    };
    let after = format.check(image)?;
    show(arguments, &before, Some((&done, &after)))?;
    Ok(match (after.is_clean, done.is_empty()) {
        (false, _) => ERRORS_LEFT,
        (true, false) => REPAIRED,
        (true, true) => 0,
    })
}

/// The repaired findings, and the check after it.
type Repaired<'a> = Option<(&'a [Found], &'a Check)>;

fn show(arguments: &Arguments, before: &Check, repaired: Repaired<'_>) -> Result<(), Failure> {
    if let Some(path) = &arguments.json {
        let text = format!("{:#}\n", as_json(before, repaired));
        write(path, &text)?;
        if is_stdout(Some(path)) {
            return Ok(());
        }
    }
    let mut text = lines(&before.findings);
    if let Some((done, after)) = repaired {
        text += &format!("\n{} repaired; what is left:\n{}", done.len(), lines(&after.findings));
    } else if before.findings.iter().any(|found| found.is_repairable) {
        text += "\nnothing was written; --repair repairs what needs no guess\n";
    }
    print(&(text + &table(repaired.map_or(before, |(_, after)| after))))
}

fn lines(findings: &[Found]) -> String {
    let line = |found: &Found| format!("{:8} {}\n", format!("{}:", found.severity), found.text);
    findings.iter().map(line).collect()
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
        put("repaired", repaired.map(|(done, _)| findings(done)).into());
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
