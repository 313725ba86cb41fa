//! The second sentence: what was written more than once, and by whom.

use dovetail_lab::bench::written_figures;
use dovetail_lab::results::RunResult;

use super::side::Side;
use crate::format::{bytes, significant};

/// Change of write amplification that is worth a word.
const WORTH: f64 = 1.02;

/// Bytes written of each byte asked for: by the file system, by the drive of each that reached it,
/// and in all.
#[derive(Clone, Copy, Debug)]
struct Shares {
    of_files: f64,
    of_drive: f64,
    in_all: f64,
}

impl Shares {
    /// `None` where nothing was asked for, or nothing reached the drive.
    fn of(side: &Side) -> Option<Self> {
        let asked = if side.has_files { side.asked } else { side.reached };
        (asked > 0.0 && side.reached > 0.0).then(|| Self {
            of_files: side.reached / asked,
            of_drive: side.programmed / side.reached,
            in_all: side.programmed / asked,
        })
    }
}

/// The sentence on sides of which the best stands first.
pub(super) fn sentence(sides: &[Side], runs: &[&RunResult]) -> String {
    let Some(first) = sides.first() else { return "Nothing was measured.".into() };
    let last = &sides[sides.len() - 1];
    match (Shares::of(first), Shares::of(last)) {
        (Some(shares), _) if sides.len() == 1 => alone(first, shares, runs),
        (Some(best), Some(worst)) => beside(first, best, last, worst, runs),
        (one, other) => nothing(sides, one.is_some() || other.is_some()),
    }
}

/// There is no write amplification on one side at least.
fn nothing(sides: &[Side], is_some: bool) -> String {
    let reached = |side: &Side| bytes(side.reached as u64);
    let most = sides.iter().fold(0.0_f64, |most, side| most.max(side.reached));
    let asked = sides.iter().fold(0.0_f64, |most, side| most.max(side.asked));
    if is_some {
        let each: Vec<_> =
            sides.iter().map(|side| format!("{} {}", reached(side), side.name)).collect();
        return format!("Not every run wrote to its drive: {}.", each.join(", "));
    }
    match (asked > 0.0, most > 0.0) {
        (true, _) => "Nothing that was written had reached the drive by the end.".into(),
        (false, true) => format!(
            "The workload wrote nothing; the file system wrote up to {} of its own.",
            bytes(most as u64)
        ),
        (false, false) => "Nothing was written, so nothing was written twice.".into(),
    }
}

fn alone(side: &Side, shares: Shares, runs: &[&RunResult]) -> String {
    if !side.has_files {
        return format!(
            "For each byte that reached it, the drive wrote {} to flash{}.",
            significant(shares.of_drive),
            above_all(drive_cause(side).filter(|_| shares.of_drive > WORTH))
        );
    }
    let absorbed = if shares.of_files < 1.0 / WORTH {
        " (the rest was overwritten or still in memory)"
    } else {
        ""
    };
    format!(
        "Each byte of the workload became {} on flash: the file system wrote {}{}{absorbed}, and the drive {} \
         for each of those{}.",
        significant(shares.in_all),
        significant(shares.of_files),
        above_all(file_cause(side, runs).filter(|_| shares.of_files > WORTH)),
        significant(shares.of_drive),
        above_all(drive_cause(side).filter(|_| shares.of_drive > WORTH)),
    )
}

fn beside(a: &Side, of_a: Shares, b: &Side, of_b: Shares, runs: &[&RunResult]) -> String {
    let each = |side: &Side, of: Shares| match side.has_files {
        true => format!(
            "{} on {} (file system {} x drive {})",
            significant(of.in_all),
            side.name,
            significant(of.of_files),
            significant(of.of_drive)
        ),
        false => format!("{} on {}", significant(of.in_all), side.name),
    };
    let of_what = if a.has_files {
        "For each byte written, the flash took"
    } else {
        "For each byte that reached the drive, the flash took"
    };
    format!(
        "{of_what} {} and {}{}.",
        each(a, of_a),
        each(b, of_b),
        difference((a, of_a), (b, of_b), runs)
    )
}

/// The part of the difference that is the greater one: the file system's or the drive's.
fn difference(
    (a, of_a): (&Side, Shares),
    (b, of_b): (&Side, Shares),
    runs: &[&RunResult],
) -> String {
    let ratio = |of: fn(Shares) -> f64| (of(of_b) / of(of_a)).ln();
    let (files, drive) = (ratio(|of| of.of_files), ratio(|of| of.of_drive));
    let more = if of_b.in_all > of_a.in_all { b } else { a };
    if ratio(|of| of.in_all).abs() <= WORTH.ln() {
        return ": the same, within 2 %".into();
    }
    let by_files = above_all(file_cause(more, runs)).replacen(", ", ": ", 1);
    let by_drive = above_all(drive_cause(more)).replacen(", ", ": ", 1);
    match (a.has_files && b.has_files, files.abs() >= drive.abs()) {
        (true, true) => format!("; most of the difference is the file system's{by_files}"),
        (true, false) => format!("; most of the difference is the drive's{by_drive}"),
        (false, _) => by_drive,
    }
}

fn above_all(cause: Option<String>) -> String {
    cause.map(|cause| format!(", {cause} above all")).unwrap_or_default()
}

/// The greatest cause of the file system's writes besides content.
fn file_cause(side: &Side, runs: &[&RunResult]) -> Option<String> {
    let others = side.written.iter().filter(|(key, blocks)| key != "data" && *blocks > 0.0);
    let (key, _) = others.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let runs: Vec<RunResult> = runs.iter().map(|run| named(run)).collect();
    let figure = written_figures(&runs).into_iter().find(|figure| figure.key == key.as_str());
    Some(figure.map_or_else(|| key.clone(), |figure| figure.title.to_owned()))
}

/// A run of the same file system, and nothing else.
fn named(run: &RunResult) -> RunResult {
    let mut named = RunResult::default();
    named.stack.filesystem = run.stack.filesystem.clone();
    named
}

/// The greatest cause of the drive's programs besides the host.
fn drive_cause(side: &Side) -> Option<String> {
    let causes = side.programs.iter().filter(|(_, pages)| *pages > 0.0);
    causes.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(cause, _)| (*cause).to_owned())
}
