//! A thread's random numbers: one stream for each use, so that one does not shift the others.

use dovetail_time::Rng;

use super::settings::Settings;

#[derive(Clone, Debug)]
pub(super) struct Streams {
    pub offset: Rng,
    pub zone: Rng,
    pub block_size: Rng,
    pub mix: Rng,
    pub random_share: Rng,
    pub file: Rng,
    pub placement: Rng,
    pub start: Rng,
    pub rate: Rng,
    /// The state in which a shift register begins.
    pub register: u64,
}

/// The place of the first thread's register in fio 3.33 with `randrepeat`, seen in its logs; that
/// of the n-th is n times as far.
const FIRST_REGISTER: u64 = 0xb189_9bed;

impl Streams {
    /// Of thread `thread` in the run that `root` seeds. Without `randrepeat` and `allrandrepeat`
    /// every pass has numbers of its own.
    pub(super) fn new(root: &Rng, settings: &Settings, thread: u32, pass: u64) -> Self {
        let repeats = settings.randrepeat || settings.allrandrepeat || settings.randseed.is_some();
        let pass = if repeats { 0 } else { pass };
        let seeded = root.fork(settings.randseed.unwrap_or(0)).fork(u64::from(thread)).fork(pass);
        let stream = |label| seeded.fork(label);
        let register = if settings.randrepeat || settings.allrandrepeat {
            FIRST_REGISTER.wrapping_mul(u64::from(thread) + 1)
        } else {
            stream(10).next_u64()
        };
        Self {
            offset: stream(1),
            zone: stream(2),
            block_size: stream(3),
            mix: stream(4),
            random_share: stream(5),
            file: stream(6),
            // Hot blocks stay where they are from pass to pass.
            placement: root.fork(u64::from(thread)).fork(7),
            start: stream(8),
            rate: stream(9),
            register,
        }
    }
}
