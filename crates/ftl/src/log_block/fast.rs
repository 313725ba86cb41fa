//! FAST: one log line takes writes in a row from the first page of a logical block on, the others
//! take the rest, whatever the block, one after the other. The oldest of them is merged when
//! another one is needed.
//!
//! A write in the middle of the block that the first one belongs to, but not behind its last page,
//! goes to the others: the line stays as it is until a block is begun.

use super::{Log, Place, Step};

/// The step for a write of `place` with `most` log lines; `next` is the index of the next page of
/// the one for writes in a row.
pub(super) fn step(logs: &[Log], most: usize, place: Place, next: Option<u32>) -> Step {
    let sequential = logs.iter().position(|log| log.owner.is_some());
    if place.offset == 0 {
        return match sequential {
            Some(index) => Step::Merge(index),
            None if logs.len() >= most => Step::Merge(0),
            None => Step::Open(Some(place.block)),
        };
    }
    let continued = sequential.map(|index| logs[index]);
    let continued = continued.filter(|log| log.owner == Some(place.block));
    if let Some(frontier) = continued.and_then(|log| log.frontier)
        && next == Some(place.offset)
    {
        return Step::Append(frontier);
    }
    let mut shared = logs.iter().filter(|log| log.owner.is_none());
    let full = shared.clone().count() + 1 >= most;
    match (shared.find_map(|log| log.frontier), full) {
        (Some(frontier), _) => Step::Append(frontier),
        (None, true) => Step::Merge(logs.iter().position(|log| log.owner.is_none()).unwrap_or(0)),
        (None, false) => Step::Open(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_block::tests::{log, place};
    use crate::medium::FrontierId;

    #[test]
    fn writes_in_a_row_have_a_line_and_all_others_share_the_rest() {
        assert_eq!(step(&[], 3, place(7, 0), None), Step::Open(Some(7)));
        assert_eq!(step(&[], 3, place(7, 1), None), Step::Open(None));
        let logs = [log(0, Some(7), Some(2)), log(1, None, None), log(2, None, Some(3))];
        let append = |frontier| Step::Append(FrontierId(frontier));
        assert_eq!(step(&logs, 3, place(7, 4), Some(4)), append(2));
        assert_eq!(step(&logs, 3, place(7, 5), Some(4)), append(3), "not behind the last page");
        assert_eq!(step(&logs, 3, place(8, 4), Some(4)), append(3), "another block");
        assert_eq!(step(&logs, 3, place(8, 0), Some(4)), Step::Merge(0), "a block begins");
        let full = [log(0, Some(7), Some(2)), log(1, None, None), log(2, None, None)];
        assert_eq!(step(&full, 3, place(8, 4), Some(4)), Step::Merge(1), "the oldest shared one");
    }
}
