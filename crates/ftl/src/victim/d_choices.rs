//! `d-choices`: draws d closed lines at random and takes the one that keeps the fewest pages (Van
//! Houdt, SIGMETRICS 2013).

use super::{Policy, Situation};
use crate::lines::LineId;

pub(super) const POLICY: Policy =
    Policy { name: "d-choices", about: "the best of d lines drawn at random (gc_choices)", choose };

fn choose(situation: Situation<'_>) -> Option<LineId> {
    let Situation { lines, choices, rng, .. } = situation;
    let closed = lines.closed();
    if closed.is_empty() {
        return None;
    }
    let draw = |_| closed[rng.below(closed.len() as u64) as usize];
    (0..choices.max(1)).map(draw).min_by_key(|&line| lines.kept(line))
}
