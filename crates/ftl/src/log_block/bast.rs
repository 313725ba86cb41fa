//! BAST: a log line belongs to one logical block. When all are in use, the one that was opened
//! first is merged (assumed: the order is not part of the scheme).

use super::{Log, Place, Step};

/// The step for a write of `place` with `most` log lines.
pub(super) fn step(logs: &[Log], most: usize, place: Place) -> Step {
    let is_own = |log: &Log| log.owner == Some(place.block);
    if let Some(full) = logs.iter().position(|log| is_own(log) && log.frontier.is_none()) {
        return Step::Merge(full);
    }
    let open = logs.iter().find(|log| is_own(log)).and_then(|log| log.frontier);
    match open {
        Some(frontier) => Step::Append(frontier),
        None if logs.len() >= most => Step::Merge(0),
        None => Step::Open(Some(place.block)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_block::tests::{log, place};
    use crate::medium::FrontierId;

    #[test]
    fn each_block_has_a_log_line_of_its_own() {
        assert_eq!(step(&[], 2, place(7, 3)), Step::Open(Some(7)));
        let logs = [log(0, Some(7), Some(2)), log(1, Some(8), Some(3))];
        assert_eq!(step(&logs, 2, place(8, 0)), Step::Append(FrontierId(3)));
        assert_eq!(step(&logs, 2, place(9, 0)), Step::Merge(0), "all in use: the oldest");
        let full = [log(0, Some(7), Some(2)), log(1, Some(8), None)];
        assert_eq!(step(&full, 2, place(8, 5)), Step::Merge(1), "its own is full");
    }
}
