//! The write mode of an update: to a new address, over the old block, or by a remap of the drive.

use super::ipu::{IpuPolicy, UpdateFacts, in_place};

/// The treatment of a block that has an address and is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// It goes to a log and its pointer follows; the old block is given up. In a log that fills
    /// holes this is SSR.
    Append,
    /// It is written over.
    InPlace,
    /// It is written out of place, and the drive moves it to where it was.
    Remap,
}

/// Policy that chooses the write mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Updates {
    /// The kernel's rules: append or in place.
    Plain,
    /// RM-IPU: every update of a file is remapped.
    Remap,
    /// Remapped where that pays: see [`adaptive_mode`].
    Adaptive,
}

/// The facts of the adaptive choice: a run of neighbouring dirty blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunFacts {
    /// Blocks in the run.
    pub(crate) blocks: u32,
    /// Runs on the device that hold them: 1 if they lie side by side.
    pub(crate) pieces: u32,
    /// All small runs that are written together: their pieces, and their blocks that have an
    /// address.
    pub(crate) batch: (u32, u32),
    /// Appending does not fill holes, and does not show what must not show yet.
    pub(crate) may_append: bool,
    /// The time that the drive takes for a remap, and for each pair of it, in ns.
    pub(crate) remap_ns: (u64, u64),
    /// An update must not show before its fsync: in place is out of the question.
    pub(crate) deferred: bool,
}

/// Blocks of a large run: 64 KiB, from where the RM-IPU paper (section 5) expects remapping not to
/// pay.
const LARGE_RUN: u32 = 16;
/// The cost of one more command for host and drive, in ns. Assumed: 10 us, as the block layer and
/// the command handling of the drive profiles add up to about that; `tests` hold the choice for a
/// tenth and for ten times of it.
const COMMAND_NS: u64 = 10_000;

/// A run of so many blocks is large.
pub(crate) const fn is_large(blocks: u32) -> bool {
    blocks >= LARGE_RUN
}

/// The write mode of a run of updates:
/// 1. a large run in few pieces (16 blocks each or more) is written over: it is sequential as it
///    is;
/// 2. a large run in many pieces is appended while there are free sections (and no fsync is to be
///    waited for), which puts the file together again;
/// 3. anything else goes by the cheaper mode: written over it costs a command for each piece of the
///    batch, remapped two commands and what the drive takes for it.
pub(crate) const fn adaptive_mode(facts: RunFacts) -> WriteMode {
    let large = is_large(facts.blocks);
    let sequential = facts.blocks >= facts.pieces.saturating_mul(LARGE_RUN);
    if large && !sequential && facts.may_append {
        return WriteMode::Append;
    }
    if facts.deferred {
        return WriteMode::Remap;
    }
    if large && sequential {
        return WriteMode::InPlace;
    }
    let (pieces, blocks) = facts.batch;
    let over = (pieces as u64).saturating_mul(COMMAND_NS);
    let (command, pair) = facts.remap_ns;
    let remapped =
        (2 * COMMAND_NS).saturating_add(command).saturating_add(pair.saturating_mul(blocks as u64));
    if over <= remapped { WriteMode::InPlace } else { WriteMode::Remap }
}

/// The write mode of an update that is not left to [`adaptive_mode`].
pub(crate) const fn write_mode(
    updates: Updates,
    policy: IpuPolicy,
    facts: UpdateFacts,
) -> WriteMode {
    if facts.dir || facts.cleaning {
        return WriteMode::Append;
    }
    match updates {
        Updates::Remap | Updates::Adaptive => WriteMode::Remap,
        Updates::Plain if in_place(policy, facts) => WriteMode::InPlace,
        Updates::Plain => WriteMode::Append,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(blocks: u32, pieces: u32, batch: (u32, u32)) -> RunFacts {
        RunFacts { blocks, pieces, batch, may_append: true, remap_ns: (0, 100), deferred: false }
    }

    #[test]
    fn scattered_small_updates_are_remapped_and_lone_ones_are_not() {
        assert_eq!(
            adaptive_mode(run(1, 1, (10, 10))),
            WriteMode::Remap,
            "ten writes or two commands"
        );
        assert_eq!(
            adaptive_mode(run(1, 1, (1, 1))),
            WriteMode::InPlace,
            "one write or two commands"
        );
        let dear = RunFacts { remap_ns: (0, 50_000), ..run(1, 1, (10, 10)) };
        assert_eq!(adaptive_mode(dear), WriteMode::InPlace, "a drive to which a pair is dear");
        let with_log = |pieces| {
            adaptive_mode(RunFacts { remap_ns: (500_000, 0), ..run(1, 1, (pieces, pieces)) })
        };
        assert_eq!(
            (with_log(10), with_log(60)),
            (WriteMode::InPlace, WriteMode::Remap),
            "a drive that programs a page for a remap"
        );
        assert_eq!(
            adaptive_mode(RunFacts { deferred: true, ..run(1, 1, (1, 1)) }),
            WriteMode::Remap
        );
    }

    #[test]
    fn large_runs_are_written_over_or_put_together_again() {
        assert_eq!(adaptive_mode(run(64, 1, (1, 64))), WriteMode::InPlace);
        assert_eq!(adaptive_mode(run(64, 40, (40, 64))), WriteMode::Append);
        assert_eq!(
            adaptive_mode(RunFacts { may_append: false, ..run(64, 40, (40, 64)) }),
            WriteMode::Remap
        );
        assert_eq!(
            adaptive_mode(RunFacts { deferred: true, ..run(64, 1, (1, 64)) }),
            WriteMode::Remap
        );
    }

    /// The assumed cost of a command shifts only where batches have two or three pieces.
    #[test]
    fn the_choice_hardly_depends_on_the_assumed_command() {
        for pieces in 4..64 {
            let with = |pair_ns| {
                adaptive_mode(RunFacts { remap_ns: (0, pair_ns), ..run(1, 1, (pieces, pieces)) })
            };
            assert_eq!(
                (with(10), with(100), with(1000)),
                (WriteMode::Remap, WriteMode::Remap, WriteMode::Remap),
                "{pieces}"
            );
        }
    }

    #[test]
    fn directories_and_moved_blocks_are_never_remapped() {
        let base = UpdateFacts::default();
        for updates in [Updates::Remap, Updates::Adaptive] {
            assert_eq!(write_mode(updates, IpuPolicy::FORCE, base), WriteMode::Remap);
            assert_eq!(
                write_mode(updates, IpuPolicy::FORCE, UpdateFacts { dir: true, ..base }),
                WriteMode::Append
            );
            assert_eq!(
                write_mode(updates, IpuPolicy::FORCE, UpdateFacts { cleaning: true, ..base }),
                WriteMode::Append
            );
        }
        assert_eq!(write_mode(Updates::Plain, IpuPolicy::FORCE, base), WriteMode::InPlace);
        assert_eq!(write_mode(Updates::Plain, IpuPolicy::FSYNC, base), WriteMode::Append);
    }
}
