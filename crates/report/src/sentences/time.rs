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
    let limit = limit(first, kind, is_paced);
    let whose = last.map(|_| format!("on {}, ", first.name)).unwrap_or_default();
    capitalised(&format!("{}; {whose}{limit}.", parts.join("; ")))
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

/// A figure of both sides, in their order.
fn both(first: &Side, last: Option<&Side>, text: impl Fn(&Side) -> String) -> String {
    last.map_or_else(|| text(first), |last| format!("{} and {}", text(first), text(last)))
}

fn calls(first: &Side, kind: usize, last: Option<&Side>) -> String {
    let share = |side: &Side| percent(side.call_share(kind));
    let (name, kind) = (&first.name, capitalised(KINDS[kind].0));
    let other = last.map(|side| format!(" and {} on {}", share(side), side.name));
    let other = other.unwrap_or_default();
    format!("{kind} took {} of the time in calls on {name}{other}", share(first))
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn busy(first: &Side, last: Option<&Side>) -> String {
    let cpu = |side: &Side| match side.cpus {
        0.0 => format!("{:.2}", side.cpus_busy),
        cpus => percent(side.cpus_busy / cpus),
    };
    let dies = both(first, last, |side| percent(side.dies_busy));
    let dies = format!("the dies worked {dies} of the time");
    if first.cpus_busy == 0.0 {
        return dies;
    }
    let (worked, busy) = match first.cpus {
        0.0 => ("the host kept", " CPUs busy"),
        _ => ("the CPUs worked", " of the time"),
    };
    format!("{worked} {}{busy}, {dies}", both(first, last, cpu))
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
        true => format!(", and writes waited for cleaning {}", both(first, last, shown)),
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
