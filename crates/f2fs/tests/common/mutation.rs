//! Damage, each kind with what a check must say of it.

use super::lab::Lab;

/// Kinds of findings that only a volume of IPLFS can have.
pub const OF_IPLFS: [&str; 7] = [
    "LogBeyond",
    "LogClass",
    "DiscardLog",
    "DiscardOutside",
    "DiscardLive",
    "DeviceLeak",
    "DeviceLost",
];

/// One thing to damage, and the kinds of findings that must come of it: the first is the thing
/// itself, the others follow from it of necessity (a link that is cut leaves something
/// unreachable).
#[derive(Clone, Copy)]
pub struct Mutation {
    pub name: &'static str,
    pub damage: fn(&mut Lab),
    pub kinds: &'static [&'static str],
}

impl Mutation {
    /// The kinds that must come, in order.
    pub fn sorted_kinds(&self) -> Vec<&'static str> {
        let mut kinds = self.kinds.to_vec();
        kinds.sort_unstable();
        kinds
    }
}

pub const fn one(
    name: &'static str,
    kinds: &'static [&'static str],
    damage: fn(&mut Lab),
) -> Mutation {
    Mutation { name, damage, kinds }
}
