//! The shortest sequence that still shows a violation.

use dovetail_testkit::crash::Clock;

use crate::judge::Judge;
use crate::player::{Player, Stop};
use crate::rig::Rig;
use crate::script::{Line, Lines};
use crate::wire::Choice;
use crate::{CrashError, Violation};

/// Runs that are spent on it at most, and operations of a workload that is tried at all: every
/// moment of each run is cut.
const MOST_RUNS: u32 = 300;
const MOST_OPERATIONS: usize = 1000;

/// Takes operations away, many at once and then one by one, as long as some cut of what is left is
/// still a violation. Returns the operations as they are if the violation does not show when they
/// are played again by themselves.
pub(crate) fn shortest(
    rig: &Rig,
    clock: Clock,
    judge: &Judge<'_>,
    lines: &[Line],
) -> Result<Vec<Line>, CrashError> {
    let mut left = lines.to_vec();
    if left.len() > MOST_OPERATIONS {
        return Ok(left);
    }
    let mut runs = MOST_RUNS;
    let mut size = left.len().div_ceil(2);
    while size > 0 && runs > 0 {
        let mut start = 0;
        while start < left.len() && runs > 0 {
            let mut fewer = left.clone();
            fewer.drain(start..(start + size).min(left.len()));
            runs -= 1;
            if is_violation(rig, clock, judge, &fewer)? {
                left = fewer;
            } else {
                start += size;
            }
        }
        size /= 2;
    }
    Ok(left)
}

fn is_violation(
    rig: &Rig,
    clock: Clock,
    judge: &Judge<'_>,
    lines: &[Line],
) -> Result<bool, CrashError> {
    let mut player = Player::new(rig, clock)?;
    let mut on_cut = |player: &Player, cut| {
        judge
            .judge(player, cut)
            .map(drop)
            .map_err(|what| Stop::Violation(Violation::without_cut(what)))
    };
    match player.run(&mut Lines(lines.iter()), Choice::All, &mut on_cut) {
        Ok(_) | Err(Stop::Early) => Ok(false),
        Err(Stop::Violation(_)) => Ok(true),
        Err(Stop::Error(error)) => Err(error),
    }
}
