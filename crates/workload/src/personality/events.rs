//! The event generator (`eventgen.c`): events come at a fixed rate, limiting flowops take them.

use dovetail_time::{SimSpan, SimTime};

const SECOND_NS: u128 = 1_000_000_000;
/// Events that nobody takes pile up to this much (`eventgen_thread`: five seconds' worth).
const DEEPEST: SimSpan = SimSpan::from_ms(5000);

/// Generator of events. The taker of an event that has not come yet is told its time; the next one
/// waits behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Events {
    rate: u64,
    /// Time of the last event that was taken.
    taken: SimTime,
}

impl Events {
    pub(super) fn new(rate: u64, begin: SimTime) -> Self {
        Self { rate, taken: begin }
    }

    /// Takes `count` events; when the last of them comes.
    pub(super) fn take(&mut self, count: u64, now: SimTime) -> SimTime {
        let oldest = SimTime::from_ns(now.as_ns().saturating_sub(DEEPEST.as_ns()));
        let wait = u128::from(count) * SECOND_NS / u128::from(self.rate.max(1));
        self.taken =
            self.taken.max(oldest) + SimSpan::from_ns(u64::try_from(wait).unwrap_or(u64::MAX));
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_at_their_rate_and_pile_up_for_five_seconds() {
        let ms = |ms| SimTime::ZERO + SimSpan::from_ms(ms);
        let mut events = Events::new(100, SimTime::ZERO);
        assert_eq!(events.take(1, ms(0)), ms(10));
        assert_eq!(events.take(1, ms(0)), ms(20));
        assert_eq!(events.take(3, ms(100)), ms(50));
        assert_eq!(events.take(1, ms(60_000)), ms(55_010));
        assert_eq!(events.take(600, ms(60_000)), ms(61_010));
    }
}
