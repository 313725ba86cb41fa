//! `cost-benefit`: the greatest age * (1 - u) / 2u, where u is the share of pages to keep
//! (Kawaguchi, Nishioka and Motoda, "A flash-memory based file system", USENIX 1995). The age of a
//! line is the number of pages programmed since it was filled.

use super::{Policy, Situation};
use crate::lines::LineId;

pub(super) const POLICY: Policy = Policy {
    name: "cost-benefit",
    about: "the greatest age * (1 - u) / 2u, u the share of pages to keep",
    choose,
};

fn choose(situation: Situation<'_>) -> Option<LineId> {
    let Situation { lines, now, .. } = situation;
    let pages = f64::from(lines.pages_per_line());
    let score = |line: LineId| {
        let u = f64::from(lines.kept(line)) / pages;
        let age = (now.0 - lines.closed_at(line).0) as f64;
        if u == 0.0 { f64::INFINITY } else { age * (1.0 - u) / (2.0 * u) }
    };
    let best = lines.closed().iter().map(|&line| (score(line), line));
    best.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).map(|(_, line)| line)
}
