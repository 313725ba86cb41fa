//! The time between what is on flash and the answer to a flush or a FUA write.

use dovetail_block::Command;
use dovetail_time::{SimSpan, SimTime};

use crate::DriveConfig;

/// What a command asks for beyond its own work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    Nothing,
    /// All that was acknowledged is durable.
    Flush,
    /// This write is durable.
    Fua,
}

impl Promise {
    #[inline]
    pub(crate) fn of(command: &Command<'_>) -> Self {
        match command {
            Command::Flush => Self::Flush,
            Command::Write { fua: true, .. } | Command::Append { fua: true, .. } => Self::Fua,
            _ => Self::Nothing,
        }
    }
}

/// Promises of a drive: flushes one after the other, FUA writes beside each other.
#[derive(Clone, Debug)]
pub(crate) struct Durability {
    flush: SimSpan,
    fua: SimSpan,
    /// The end of the last flush.
    flushed: SimTime,
}

impl Durability {
    /// With capacitors nothing needs a promise.
    pub(crate) fn new(config: &DriveConfig) -> Self {
        let (flush, fua) = match config.power_loss_protection {
            true => (SimSpan::ZERO, SimSpan::ZERO),
            false => (config.flush, config.fua),
        };
        Self { flush, fua, flushed: SimTime::ZERO }
    }

    /// Returns when a promise is given, with all of the command on flash at `on_flash`.
    #[inline]
    pub(crate) fn given(&mut self, promise: Promise, on_flash: SimTime) -> SimTime {
        match promise {
            Promise::Nothing => on_flash,
            Promise::Fua => on_flash + self.fua,
            Promise::Flush => {
                self.flushed = on_flash.max(self.flushed) + self.flush;
                self.flushed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_take_turns_and_fua_writes_do_not() {
        let us = |n: u64| SimTime::from_ns(n * 1000);
        let span = SimSpan::from_us;
        let mut drive = Durability { flush: span(10), fua: span(3), flushed: SimTime::ZERO };
        let flushes = [0, 2, 30].map(|at| drive.given(Promise::Flush, us(at)));
        assert_eq!(flushes, [us(10), us(20), us(40)]);
        let writes = [31, 31].map(|at| drive.given(Promise::Fua, us(at)));
        assert_eq!(writes, [us(34), us(34)]);
        assert_eq!(drive.given(Promise::Nothing, us(35)), us(35));
    }
}
