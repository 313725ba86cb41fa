//! `fifo`: the line that was filled first, whatever it keeps.

use super::{Policy, Situation};
use crate::lines::LineId;

pub(super) const POLICY: Policy =
    Policy { name: "fifo", about: "the line that was filled first", choose };

fn choose(situation: Situation<'_>) -> Option<LineId> {
    situation.lines.oldest()
}
