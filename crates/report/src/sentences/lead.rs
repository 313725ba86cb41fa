//! The first sentence: the winner, and by how much.

use super::side::{KINDS, Side};
use super::{list, times};
use crate::format::{duration_ns, significant};

/// Ratio up to which two figures count as equal.
pub(super) const TIE: f64 = 1.02;

/// Ratio up to which rates count as near to each other (assumed).
const NEAR: f64 = 1.05;

/// Ratio from which on a p99 says more than rates that are [`NEAR`] (assumed).
const FAR: f64 = 2.0;

/// Share of the calls' time from which on a kind of call counts for a comparison (assumed).
const PART: f64 = 0.1;

/// Figure by which sides are ranked; more is better.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Measure {
    /// Bytes moved in a second.
    Rate,
    /// Calls in a second, where none moves bytes.
    Calls,
    /// The 99th percentile of a kind of call, by its place in [`KINDS`]; less is better.
    Latency(usize),
}

impl Measure {
    fn value(self, side: &Side) -> f64 {
        match self {
            Self::Rate => side.mb_per_s,
            Self::Calls => side.calls_per_s,
            Self::Latency(kind) => 1.0 / side.p99_ns[kind].max(1.0),
        }
    }

    fn text(self, side: &Side) -> String {
        match self {
            Self::Rate => format!("{} MB/s", significant(side.mb_per_s)),
            Self::Calls => format!("{} calls/s", significant(side.calls_per_s)),
            Self::Latency(kind) => duration_ns(side.p99_ns[kind]),
        }
    }

    /// The value as it is first named.
    fn full_text(self, side: &Side) -> String {
        let of = if self == Self::Rate && side.is_mixed { " of reads and writes" } else { "" };
        self.text(side) + of
    }
}

/// The sides, the best first, and the sentence. `is_paced`: the trace says when requests come, so
/// that rates are its own.
pub(super) fn ranked(mut sides: Vec<Side>, is_paced: bool) -> (Vec<Side>, String) {
    let rate =
        if sides.iter().any(|side| side.mb_per_s > 0.0) { Measure::Rate } else { Measure::Calls };
    let telling = telling_kind(&sides, rate).filter(|_| !is_paced);
    let kind = telling.or_else(|| busiest_kind(&sides));
    let by_rate = !is_paced && telling.is_none() && spread(&sides, rate) > TIE;
    let measure = if by_rate { rate } else { kind.map_or(rate, Measure::Latency) };
    sides.sort_by(|a, b| measure.value(b).total_cmp(&measure.value(a)));
    let sentence = match (sides.len(), measure) {
        (0, _) => "No run came to its end.".into(),
        (1, _) => alone(&sides[0], rate, kind, is_paced),
        _ if spread(&sides, measure) <= TIE => level(&sides, rate, kind, is_paced),
        (_, Measure::Latency(kind)) => by_latency(&sides, kind, rate, is_paced),
        _ => by_measure(&sides, measure),
    };
    (sides, sentence)
}

/// The kind of call whose p99 differs most, where rates are near to each other and this p99 is far
/// apart, such as with pauses between calls (`thinktime`, `rate`), which level rates.
fn telling_kind(sides: &[Side], rate: Measure) -> Option<usize> {
    let is_everywhere = |kind: &usize| {
        sides.iter().all(|side| side.p99_ns[*kind] > 0.0)
            && sides.iter().any(|side| side.call_share(*kind) >= PART)
    };
    let apart = |kind: usize| spread(sides, Measure::Latency(kind));
    let kinds = (0..KINDS.len()).filter(is_everywhere);
    let most = kinds.max_by(|a, b| apart(*a).total_cmp(&apart(*b)))?;
    (spread(sides, rate) <= NEAR && apart(most) >= FAR).then_some(most)
}

/// The kind of call that takes most of the time of all sides.
fn busiest_kind(sides: &[Side]) -> Option<usize> {
    let time = |kind: &usize| sides.iter().map(|side| side.call_ns[*kind]).sum::<f64>();
    let most = (0..KINDS.len()).max_by(|a, b| time(a).total_cmp(&time(b)))?;
    (time(&most) > 0.0).then_some(most)
}

/// The best over the worst.
fn spread(sides: &[Side], measure: Measure) -> f64 {
    let values = sides.iter().map(|side| measure.value(side));
    let (least, most) = values
        .fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    if most > 0.0 { most / least.max(most * 1e-9) } else { 1.0 }
}

fn alone(side: &Side, rate: Measure, kind: Option<usize>, is_paced: bool) -> String {
    let latency = kind.map(|kind| {
        format!("99 % of its {} ended within {}", KINDS[kind].0, duration_ns(side.p99_ns[kind]))
    });
    let pace = if is_paced { ", at the trace's own pace" } else { "" };
    let calls = match rate {
        Measure::Rate => format!(" in {} calls/s", significant(side.calls_per_s)),
        _ => String::new(),
    };
    let moved = format!("{} moved {}{calls}{pace}", side.name, rate.full_text(side));
    let moved = if rate == Measure::Calls { moved.replacen("moved", "made", 1) } else { moved };
    [Some(moved), latency].into_iter().flatten().collect::<Vec<_>>().join("; ") + "."
}

/// All are equal within [`TIE`], in rate and in latency.
fn level(sides: &[Side], rate: Measure, kind: Option<usize>, is_paced: bool) -> String {
    let latency = kind.map(|kind| {
        format!("a p99 of {} for {}", duration_ns(sides[0].p99_ns[kind]), KINDS[kind].0)
    });
    let rate = (!is_paced).then(|| rate.full_text(&sides[0]));
    let figures: Vec<String> = [rate, latency].into_iter().flatten().collect();
    format!("{} are level, within 2 %: {}.", names(sides), figures.join(" and "))
}

/// Rates are equal or near, or the trace's own; latencies tell the sides apart.
fn by_latency(sides: &[Side], kind: usize, rate: Measure, is_paced: bool) -> String {
    let within = if spread(sides, rate) <= TIE { 2 } else { 5 };
    let pace = if is_paced {
        "The trace sets the pace".into()
    } else {
        format!("All run at {}, within {within} %", rate.full_text(&sides[0]))
    };
    let measure = Measure::Latency(kind);
    let (first, last) = (&sides[0], &sides[sides.len() - 1]);
    let best = leaders(sides, measure);
    let has = if best.len() > 1 { "have" } else { "has" };
    format!(
        "{pace}; {} {has} the quickest {}: p99 {} against {} on {} ({}).",
        names(best),
        KINDS[kind].0,
        measure.text(first),
        measure.text(last),
        last.name,
        times(last.p99_ns[kind] / first.p99_ns[kind].max(1.0)),
    )
}

fn by_measure(sides: &[Side], measure: Measure) -> String {
    let best = leaders(sides, measure);
    let against = |sides: &[Side]| {
        let over = times(measure.value(&best[0]) / measure.value(&sides[0]));
        format!("{over} {} ({})", names(sides), measure.text(&sides[0]))
    };
    let lead = match best.len() {
        1 if sides.len() == 2 => {
            format!("{} is faster: {}", best[0].name, measure.full_text(&sides[0]))
        }
        1 => format!("{} is the fastest: {}", best[0].name, measure.full_text(&sides[0])),
        _ => format!("{} lead together, within 2 %: {}", names(best), measure.full_text(&sides[0])),
    };
    let next = leaders(&sides[best.len()..], measure);
    let last = stragglers(sides, measure);
    let others = if best.len() + next.len() >= sides.len() {
        against(next)
    } else {
        format!("{}, the next, and {}, the slowest", against(next), against(last))
    };
    format!("{lead}, {others}.")
}

/// The worst and those within [`TIE`] of it.
fn stragglers(sides: &[Side], measure: Measure) -> &[Side] {
    let worst = sides.last().map_or(0.0, |side| measure.value(side));
    let count = sides.iter().rev().take_while(|side| measure.value(side) <= worst * TIE).count();
    &sides[sides.len() - count..]
}

/// The best and those within [`TIE`] of it.
fn leaders(sides: &[Side], measure: Measure) -> &[Side] {
    let best = sides.first().map_or(0.0, |side| measure.value(side));
    let count = sides.iter().take_while(|side| measure.value(side) * TIE >= best).count();
    &sides[..count]
}

/// The names of some sides, or how many there are if they are many.
fn names(sides: &[Side]) -> String {
    match sides.len() {
        1..=3 => list(&sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>()),
        many => format!("{} and {} others", sides[0].name, many - 1),
    }
}
