//! Which way an update goes: to a new place, over its old one, or by way of the drive's remap.

use super::place::{IpuPolicy, PlaceFacts, in_place};

/// What happens to a block that has a place and is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It goes to a log and its pointer follows; the old block is given up. In a log that fills holes this is SSR.
    Append,
    /// It is written over.
    InPlace,
    /// It is written out of place, and the drive moves it to where it was.
    Remap,
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Updates {
    /// The kernel's rules: append or in place.
    Plain,
    /// RM-IPU: every update of a file is remapped.
    Remap,
    /// Remapped where that pays: see [`chosen`].
    Adaptive,
}

/// What the adaptive choice looks at: a run of neighbouring dirty blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunFacts {
    /// Blocks in the run.
    pub(crate) blocks: u32,
    /// Runs on the device that hold them: 1 if they lie side by side.
    pub(crate) pieces: u32,
    /// All small runs that are written together: their pieces, and their blocks that have a place.
    pub(crate) batch: (u32, u32),
    /// Appending does not fill holes, and does not show what must not show yet.
    pub(crate) may_append: bool,
    /// What the drive takes for a remap, and for each pair of it, in ns.
    pub(crate) remap_ns: (u64, u64),
    /// An update must not show before its fsync: in place is out of the question.
    pub(crate) deferred: bool,
}

/// Blocks of a large run: 64 KiB, from where the RM-IPU paper (section 5) expects remapping not to pay.
const LARGE_RUN: u32 = 16;
/// What one more command costs host and drive, in ns. Assumed: 10 us, as the block layer and the command handling of the
/// drive profiles add up to about that; `tests` hold the choice for a tenth and for ten times of it.
const COMMAND_NS: u64 = 10_000;

/// A run of so many blocks is large.
pub(crate) const fn is_large(blocks: u32) -> bool {
    blocks >= LARGE_RUN
}

/// The way of a run of updates:
/// 1. a large run in few pieces (16 blocks each or more) is written over: it is sequential as it is;
/// 2. a large run in many pieces is appended while there are free sections (and no fsync is to be waited for), which puts the file together again;
/// 3. anything else goes the cheaper way: written over it costs a command for each piece of the batch, remapped two
///    commands and what the drive takes for it.
pub(crate) const fn chosen(facts: RunFacts) -> Way {
    let large = is_large(facts.blocks);
    let sequential = facts.blocks >= facts.pieces.saturating_mul(LARGE_RUN);
    if large && !sequential && facts.may_append {
        return Way::Append;
    }
    if facts.deferred {
        return Way::Remap;
    }
    if large && sequential {
        return Way::InPlace;
    }
    let (pieces, blocks) = facts.batch;
    let over = (pieces as u64).saturating_mul(COMMAND_NS);
    let (command, pair) = facts.remap_ns;
    let remapped =
        (2 * COMMAND_NS).saturating_add(command).saturating_add(pair.saturating_mul(blocks as u64));
    if over <= remapped { Way::InPlace } else { Way::Remap }
}

/// The way of an update that is not left to [`chosen`].
pub(crate) const fn way(updates: Updates, policy: IpuPolicy, facts: PlaceFacts) -> Way {
    if facts.dir || facts.cleaning {
        return Way::Append;
    }
    match updates {
        Updates::Remap | Updates::Adaptive => Way::Remap,
        Updates::Plain if in_place(policy, facts) => Way::InPlace,
        Updates::Plain => Way::Append,
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
        assert_eq!(chosen(run(1, 1, (10, 10))), Way::Remap, "ten writes or two commands");
        assert_eq!(chosen(run(1, 1, (1, 1))), Way::InPlace, "one write or two commands");
        let dear = RunFacts { remap_ns: (0, 50_000), ..run(1, 1, (10, 10)) };
        assert_eq!(chosen(dear), Way::InPlace, "a drive to which a pair is dear");
        let with_log = |pieces| chosen(RunFacts { remap_ns: (500_000, 0), ..run(1, 1, (pieces, pieces)) });
        assert_eq!(
            (with_log(10), with_log(60)),
            (Way::InPlace, Way::Remap),
            "a drive that programs a page for a remap"
        );
        assert_eq!(chosen(RunFacts { deferred: true, ..run(1, 1, (1, 1)) }), Way::Remap);
    }

    #[test]
    fn large_runs_are_written_over_or_put_together_again() {
        assert_eq!(chosen(run(64, 1, (1, 64))), Way::InPlace);
        assert_eq!(chosen(run(64, 40, (40, 64))), Way::Append);
        assert_eq!(chosen(RunFacts { may_append: false, ..run(64, 40, (40, 64)) }), Way::Remap);
        assert_eq!(chosen(RunFacts { deferred: true, ..run(64, 1, (1, 64)) }), Way::Remap);
    }

    /// The assumed cost of a command shifts only where batches have two or three pieces.
    #[test]
    fn the_choice_hardly_depends_on_the_assumed_command() {
        for pieces in 4..64 {
            let with = |pair_ns| chosen(RunFacts { remap_ns: (0, pair_ns), ..run(1, 1, (pieces, pieces)) });
            assert_eq!((with(10), with(100), with(1000)), (Way::Remap, Way::Remap, Way::Remap), "{pieces}");
        }
    }

    #[test]
    fn directories_and_moved_blocks_are_never_remapped() {
        let base = PlaceFacts::default();
        for updates in [Updates::Remap, Updates::Adaptive] {
            assert_eq!(way(updates, IpuPolicy::FORCE, base), Way::Remap);
            assert_eq!(way(updates, IpuPolicy::FORCE, PlaceFacts { dir: true, ..base }), Way::Append);
            assert_eq!(way(updates, IpuPolicy::FORCE, PlaceFacts { cleaning: true, ..base }), Way::Append);
        }
        assert_eq!(way(Updates::Plain, IpuPolicy::FORCE, base), Way::InPlace);
        assert_eq!(way(Updates::Plain, IpuPolicy::FSYNC, base), Way::Append);
    }
}
