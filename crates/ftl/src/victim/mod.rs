//! Victim policies, the choice of the line to clean next, as pure functions from the state of the
//! lines to a choice.
//!
//! A policy is one file and one line in [`POLICIES`].

mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;

use dovetail_nand::Seq;
use dovetail_time::Rng;

use crate::lines::{LineId, Lines};

/// The facts that a policy may look at.
#[derive(Debug)]
pub struct Situation<'a> {
    /// The lines; only closed ones may be chosen.
    pub lines: &'a Lines,
    /// The number of the next program operation, the clock by which lines age.
    pub now: Seq,
    /// Number of lines `d-choices` draws.
    pub choices: u32,
    /// Randomness for policies that draw.
    pub rng: &'a mut Rng,
}

/// One victim policy.
#[derive(Debug)]
pub struct Policy {
    /// Its name in profiles and on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The line to clean; `None` when no line is closed.
    pub choose: fn(Situation<'_>) -> Option<LineId>,
}

impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// All victim policies.
pub static POLICIES: [Policy; 4] =
    [greedy::POLICY, cost_benefit::POLICY, fifo::POLICY, d_choices::POLICY];

/// The policy of that name.
pub fn policy(name: &str) -> Option<&'static Policy> {
    POLICIES.iter().find(|policy| policy.name == name)
}
