//! Repetitions of a trace; the last one may be partial.

/// Passes over a trace: whole ones, and a last one of its first calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passes {
    calls: u64,
    whole: u64,
    rest: u64,
}

impl Passes {
    /// `times` a trace of so many calls, at least one call.
    pub(super) fn new(calls: u64, times: f64) -> Self {
        let all = ((calls as f64 * times).round() as u64).max(1);
        Self { calls, whole: all / calls, rest: all % calls }
    }

    /// Number of calls in a pass: it has the first ones of the trace.
    pub(super) fn calls(&self, pass: u64) -> u64 {
        if pass < self.whole { self.calls } else { self.rest }
    }

    pub(super) fn is_last(&self, pass: u64) -> bool {
        pass + 1 >= self.whole + u64::from(self.rest > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pass_is_what_is_left() {
        let passes = Passes::new(10, 2.5);
        assert_eq!(
            [0, 1, 2].map(|pass| (passes.calls(pass), passes.is_last(pass))),
            [(10, false), (10, false), (5, true)]
        );
        assert!(Passes::new(10, 1.0).is_last(0) && !Passes::new(10, 2.0).is_last(0));
        assert_eq!(Passes::new(10, 1e-9).calls(0), 1);
    }
}
