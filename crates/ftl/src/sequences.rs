//! Sequences: accesses that are told apart by their addresses alone.
//!
//! An access that begins where an earlier one ended goes on with its sequence. One that went on is
//! known, and keeps its number until sequences that were used since need the place. What goes on
//! with nothing is a candidate: candidates push out each other, and no known sequence.

/// Ends of accesses that a sequence may begin with (assumed).
const CANDIDATES: usize = 16;

/// The sequences that are known.
#[derive(Clone, Debug)]
pub(crate) struct Sequences {
    known: Vec<Head>,
    candidates: [Head; CANDIDATES],
    clock: u64,
}

/// The end of a sequence.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    /// The address that goes on with it.
    next: u64,
    /// Its last use; 0 is never.
    used: u64,
}

impl Sequences {
    /// No sequence is known yet. At most `most` are at a time, and at least one.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            known: vec![Head::default(); most.max(1)],
            candidates: [Head::default(); CANDIDATES],
            clock: 0,
        }
    }

    /// The address is accessed. Returns the number of the sequence that it goes on with.
    pub(crate) fn visit(&mut self, address: u64) -> Option<usize> {
        self.clock += 1;
        let head = Head { next: address + 1, used: self.clock };
        if let Some(number) = before(&self.known, address) {
            self.known[number] = head;
            return Some(number);
        }
        let candidate = before(&self.candidates, address);
        let at = candidate.unwrap_or_else(|| oldest(&self.candidates));
        if candidate.is_none() {
            self.candidates[at] = head;
            return None;
        }
        self.candidates[at] = Head::default();
        let number = oldest(&self.known);
        self.known[number] = head;
        Some(number)
    }
}

/// The one that `address` goes on with.
fn before(heads: &[Head], address: u64) -> Option<usize> {
    heads.iter().position(|head| head.next == address && head.used > 0)
}

fn oldest(heads: &[Head]) -> usize {
    let by_use = heads.iter().enumerate().min_by_key(|(_, head)| head.used);
    by_use.map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that accesses get.
    fn visits(sequences: &mut Sequences, addresses: &[u64]) -> Vec<Option<usize>> {
        addresses.iter().map(|&address| sequences.visit(address)).collect()
    }

    #[test]
    fn sequences_that_take_turns_keep_their_numbers() {
        let mut sequences = Sequences::new(3);
        let met = visits(&mut sequences, &[10, 50, 11, 51, 90, 12, 91, 52, 13]);
        let numbers = [None, None, Some(0), Some(1), None, Some(0), Some(2), Some(1), Some(0)];
        assert_eq!(met, numbers);
    }

    #[test]
    fn scattered_accesses_push_out_no_sequence() {
        let mut sequences = Sequences::new(1);
        visits(&mut sequences, &[10, 11]);
        assert!((0..100).all(|i| sequences.visit(1000 + 7 * i).is_none()));
        assert_eq!(sequences.visit(12), Some(0));
    }

    #[test]
    fn the_sequence_used_least_lately_gives_way() {
        let mut sequences = Sequences::new(2);
        visits(&mut sequences, &[10, 11, 20, 21, 12]);
        assert_eq!(visits(&mut sequences, &[30, 31, 22, 13]), [None, Some(1), None, Some(0)]);
    }

    #[test]
    fn a_candidate_is_forgotten_after_others() {
        let mut sequences = Sequences::new(1);
        sequences.visit(10);
        (0..CANDIDATES as u64).for_each(|i| assert!(sequences.visit(1000 + 7 * i).is_none()));
        assert_eq!(sequences.visit(11), None);
    }
}
