//! `greedy`: the line that keeps the fewest pages, so that the most are freed for the least work
//! now.

use super::{Policy, Situation};
use crate::lines::LineId;

pub(super) const POLICY: Policy =
    Policy { name: "greedy", about: "the line with the fewest pages to keep", choose };

fn choose(situation: Situation<'_>) -> Option<LineId> {
    situation.lines.least_kept()
}
