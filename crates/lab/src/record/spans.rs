//! Spans of time, laid over each other.

use dovetail_time::{SimSpan, SimTime};

type Spans = Vec<(SimTime, SimTime)>;

/// The time that is within one of `spans` and within none of `others`.
pub(super) fn only_in(spans: Spans, others: Spans) -> SimSpan {
    let both = spans.iter().chain(&others).copied().collect();
    covered(both) - covered(others)
}

/// The time that is within one of the spans.
fn covered(mut spans: Spans) -> SimSpan {
    spans.sort_unstable();
    let (mut sum, mut until) = (SimSpan::ZERO, SimTime::ZERO);
    for (begin, end) in spans {
        if end > until {
            sum += end.since(begin.max(until));
            until = end;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(of: &[(u64, u64)]) -> Spans {
        of.iter().map(|&(a, b)| (SimTime::from_ns(a), SimTime::from_ns(b))).collect()
    }

    #[test]
    fn what_others_cover_is_left_out_once() {
        for (of, others, expected) in [
            (&[(0, 5), (10, 15)][..], &[][..], 10),
            (&[(0, 5), (3, 9)], &[(4, 6), (5, 7)], 6),
            (&[(2, 4)], &[(0, 10)], 0),
            (&[], &[(0, 10)], 0),
        ] {
            assert_eq!(only_in(spans(of), spans(others)).as_ns(), expected, "{of:?} {others:?}");
        }
    }
}
