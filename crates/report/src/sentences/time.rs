//! The third sentence: where the time went.

use super::side::{KINDS, Side};
use crate::format::significant;

/// Share of the time from which on CPUs or dies count as the limit (assumed).
const LIMIT: f64 = 0.85;

/// The sentence on sides of which the best stands first.
pub(super) fn sentence(sides: &[Side], is_paced: bool) -> String {
    let Some(first) = sides.first() else { return "No time passed.".into() };
    let last = sides.last().filter(|_| sides.len() > 1);
    let kind = busiest(first);
    let has_calls = first.call_ns.iter().sum::<f64>() > 0.0;
    let calls = has_calls.then(|| calls(first, kind, last));
    let busy = format!("{}{}", busy(first, last), stalls(first, last));
    let parts: Vec<String> = calls.into_iter().chain([busy]).collect();
    format!("{}; {}.", parts.join("; "), limit(first, kind, is_paced))
}

fn busiest(side: &Side) -> usize {
    let share = |kind: usize| side.call_ns[kind];
    (0..KINDS.len()).max_by(|a, b| share(*a).total_cmp(&share(*b))).unwrap_or(0)
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent > 0.0 && percent < 1.0 => "below 1 %".into(),
        percent => format!("{percent:.0} %"),
    }
}

/// The second side's figure in brackets, with its name if asked for.
fn beside(last: Option<&Side>, is_named: bool, text: impl Fn(&Side) -> String) -> String {
    let name = |side: &Side| if is_named { format!("{} ", side.name) } else { String::new() };
    last.map(|side| format!(" ({}{})", name(side), text(side))).unwrap_or_default()
}

fn calls(first: &Side, kind: usize, last: Option<&Side>) -> String {
    format!(
        "On {} {} took {} of the time in calls{}",
        first.name,
        KINDS[kind].0,
        percent(first.call_share(kind)),
        beside(last, true, |side| percent(side.call_share(kind)))
    )
}

fn busy(first: &Side, last: Option<&Side>) -> String {
    let cpu = |side: &Side| match side.cpus {
        0.0 => format!("{:.2}", side.cpus_busy),
        cpus => percent(side.cpus_busy / cpus),
    };
    let dies = format!(
        "the dies worked {} of the time{}",
        percent(first.dies_busy),
        beside(last, false, |side| percent(side.dies_busy))
    );
    if first.cpus_busy == 0.0 {
        return dies;
    }
    let (worked, unit, busy) = match first.cpus {
        0.0 => ("the host kept", " CPUs", " busy"),
        _ => ("the CPUs worked", "", ""),
    };
    format!("{worked} {}{unit}{}{busy}, {dies}", cpu(first), beside(last, false, cpu))
}

/// Writes that had to wait for the drive's cleaning.
fn stalls(first: &Side, last: Option<&Side>) -> String {
    let is_there = first.stalls > 0.0 || last.is_some_and(|side| side.stalls > 0.0);
    let shown = |side: &Side| match side.stalls.round() {
        0.0 => "never".into(),
        1.0 => "once".into(),
        stalls => format!("{} times", significant(stalls)),
    };
    match is_there {
        true => format!(
            ", and writes waited for cleaning: {}{}",
            shown(first),
            beside(last, false, shown)
        ),
        false => String::new(),
    }
}

/// Limit of the first side, as far as the figures say.
fn limit(side: &Side, kind: usize, is_paced: bool) -> &'static str {
    let cpu = if side.cpus > 0.0 { side.cpus_busy / side.cpus } else { 0.0 };
    match KINDS[kind].0 {
        _ if side.dies_busy >= LIMIT => "the flash is the limit",
        _ if cpu >= LIMIT => "the CPUs are the limit",
        _ if is_paced => "the drive had time to spare",
        "syncs" if side.call_share(kind) >= 0.5 => "threads mostly wait for syncs",
        _ => "neither is the limit: calls wait for single commands or for the drive's link",
    }
}
