//! Sentences about a run that keep its figures from being taken for more than they are.

use dovetail_block::BLOCK_SIZE;
use dovetail_time::{format_bytes, format_count};

use super::RunResult;

/// Facts about a run that sentences follow from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Facts {
    /// A trace, or a stack without a file system.
    is_raw: bool,
    /// The drive was filled and aged before.
    is_preconditioned: bool,
    /// It still held that when the run began.
    is_full: bool,
    /// The drive has zones, and no log of the host's over them that could clean.
    is_zoned: bool,
    /// Bytes that the host wrote to the drive in the run.
    written: u64,
    /// Bytes of the drive for the host.
    capacity: u64,
    /// Lines cleaned in the run.
    cleaned: u64,
    /// Pages programmed into the SLC cache, the drive's own among them.
    slc_pages: u64,
    /// Pages programmed for the host, wherever.
    host_pages: u64,
    /// Bytes that the file system wrote over those of the workload; `None` without either.
    fs_waf: Option<f64>,
    /// Blocks that the host read.
    read_blocks: u64,
    /// Those of them that held nothing.
    empty_read_blocks: u64,
    /// Runs of the devirtualizer; `None` without one.
    devirtualizer_runs: Option<u64>,
    /// Time of the measurement in seconds.
    elapsed_s: f64,
}

/// A sentence, where the facts give reason for it.
type Rule = fn(&Facts) -> Option<String>;

/// All sentences, in their order. A further one is a rule here, with its facts above.
const RULES: [Rule; 6] =
    [never_cleaned, in_the_cache, little_written, stayed_in_memory, read_nothing, pointers_stayed];

/// The sentences about a run.
pub(crate) fn notes(run: &RunResult, was_stopped: bool) -> Vec<String> {
    let facts = Facts::of(run);
    let stopped = was_stopped.then(|| STOPPED.to_owned());
    stopped.into_iter().chain(RULES.iter().filter_map(|rule| rule(&facts))).collect()
}

/// For who reads the results later.
const STOPPED: &str = "The run was stopped before its end; its figures are those until then.";

impl Facts {
    fn of(run: &RunResult) -> Self {
        let drive = &run.totals.drive;
        Self {
            is_raw: run.stack.is_raw(),
            is_preconditioned: run.precondition.is_some(),
            is_full: run.precondition.as_ref().is_some_and(|done| done.kept),
            is_zoned: run.drive.zones.is_some() && run.zone_log.is_none(),
            written: drive.written_blocks * BLOCK_SIZE,
            capacity: run.drive.capacity_bytes,
            cleaned: drive.gc_runs,
            slc_pages: drive.cells.as_ref().map_or(0, |cells| cells.slc_pages),
            host_pages: drive.programs.host,
            fs_waf: run.totals.fs_waf,
            read_blocks: drive.read_blocks,
            empty_read_blocks: drive.empty_read_blocks,
            devirtualizer_runs: run.devirtualize.as_ref().map(|devirtualizer| devirtualizer.count),
            elapsed_s: run.totals.elapsed_s,
        }
    }
}

fn never_cleaned(facts: &Facts) -> Option<String> {
    let sentence = match facts.is_zoned {
        false => {
            "The drive never cleaned in this run: spare flash and the way of cleaning made no \
             difference yet."
        }
        true => {
            "The drive has zones and cleans none of them: spare flash and the way of cleaning make \
             no difference."
        }
    };
    (facts.written > 0 && facts.cleaned == 0).then(|| sentence.into())
}

/// The drive's own pages go there, too: more pages than the host's alone.
fn in_the_cache(facts: &Facts) -> Option<String> {
    let sentence = "All writes went to the drive's SLC cache in this run: what it does when the \
                    cache is full was not seen.";
    (facts.host_pages > 0 && facts.slc_pages >= facts.host_pages).then(|| sentence.into())
}

/// A drive that was full and aged when the run began is in its state at once; one whose content
/// mkfs discarded is not.
fn little_written(facts: &Facts) -> Option<String> {
    if facts.is_full || facts.written == 0 || facts.written >= facts.capacity {
        return None;
    }
    let (before, what_to_do) = match (facts.is_preconditioned, facts.is_zoned) {
        (_, true) => ("was new", "write more"),
        (false, false) => ("was new", "write more, or give --precondition"),
        (true, false) => ("mkfs had emptied", "write more, or fill the volume with --fill"),
    };
    Some(format!(
        "Less was written in this run than the drive of {} holds, which {before}: write \
         amplification and latencies are not those of a drive in use; {what_to_do}.",
        format_bytes(facts.capacity)
    ))
}

/// Below 1 by more than a hundredth.
fn stayed_in_memory(facts: &Facts) -> Option<String> {
    let waf = facts.fs_waf.filter(|waf| *waf < 0.99)?;
    Some(format!(
        "The file system wrote {waf:.2} times what the workload did: pages were written over or \
         dropped in memory, or are still dirty there; with --final-sync none is at the end."
    ))
}

/// File systems read little that they never wrote; a job or trace on a raw drive may read nothing
/// else.
fn read_nothing(facts: &Facts) -> Option<String> {
    (facts.is_raw && facts.empty_read_blocks > 0).then(|| {
        let share = facts.empty_read_blocks as f64 / facts.read_blocks.max(1) as f64 * 100.0;
        format!(
            "{share:.0} % of the blocks read held nothing, and the drive answered without its \
             flash: write them first, or give --precondition."
        )
    })
}

/// A shrunk drive is written in less time, and the devirtualizer's times stay.
fn pointers_stayed(facts: &Facts) -> Option<String> {
    (facts.devirtualizer_runs == Some(0)).then(|| {
        format!(
            "The devirtualizer never ran in these {:.1} s, so that no pointer was rewritten: run \
             longer, or let it begin earlier (--devirtualize every=5s).",
            facts.elapsed_s
        )
    })
}

/// The sentence about the lifetime of a drive that was shrunk.
pub(super) fn shrunk(run: &RunResult, scale: f64) -> Option<String> {
    (scale < 1.0 && run.lifetime.rated_years.is_some()).then(|| {
        let share = fraction(scale);
        format!(
            "The drive is shrunk to {share} and as fast as before: at full size the same writes \
             are {share} of the drive writes a day, and the rated erases come after {} times the \
             time and the bytes.",
            format_count((1.0 / scale).round() as u64)
        )
    })
}

fn fraction(scale: f64) -> String {
    let inverse = 1.0 / scale;
    match (inverse - inverse.round()).abs() < 1e-9 * inverse {
        true => format!("1/{}", inverse.round()),
        false => format!("{scale:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn sentences(facts: &Facts) -> Vec<String> {
        RULES.iter().filter_map(|rule| rule(facts)).collect()
    }

    /// Twice the capacity was written, and cleaned.
    fn settled() -> Facts {
        Facts { written: 64 * GIB, capacity: 32 * GIB, cleaned: 9, ..Facts::default() }
    }

    #[test]
    fn a_settled_drive_and_one_that_was_only_read_need_no_sentence() {
        assert_eq!(sentences(&settled()), [""; 0]);
        let read = Facts { capacity: GIB, read_blocks: 7, ..Facts::default() };
        assert_eq!(sentences(&read), [""; 0]);
    }

    #[test]
    fn a_run_within_the_slc_cache_says_so() {
        let within = Facts { slc_pages: 120, host_pages: 100, ..settled() };
        let [sentence] = sentences(&within).try_into().unwrap();
        assert!(sentence.contains("SLC cache"), "{sentence}");
        assert_eq!(sentences(&Facts { slc_pages: 40, ..within }), [""; 0]);
        assert_eq!(sentences(&Facts { slc_pages: 0, ..within }), [""; 0]);
    }

    #[test]
    fn what_stays_in_memory_explains_an_amplification_below_one() {
        let of = |fs_waf| sentences(&Facts { fs_waf, ..settled() });
        assert_eq!([Some(1.0), None].map(of), [const { Vec::<String>::new() }; 2]);
        let [sentence] = of(Some(0.886)).try_into().unwrap();
        assert!(sentence.contains("0.89 times") && sentence.contains("--final-sync"), "{sentence}");
    }

    #[test]
    fn a_run_too_short_for_the_devirtualizer_says_so() {
        let of = |runs| Facts { devirtualizer_runs: runs, elapsed_s: 13.64, ..settled() };
        let [sentence] = sentences(&of(Some(0))).try_into().unwrap();
        assert!(sentence.contains("never ran in these 13.6 s"), "{sentence}");
        assert_eq!(
            [Some(1), None].map(|runs| sentences(&of(runs))),
            [const { Vec::<String>::new() }; 2]
        );
    }

    #[test]
    fn a_fresh_drive_says_that_it_never_cleaned_and_how_little_was_written() {
        let facts = Facts { written: 4 * GIB, cleaned: 0, ..settled() };
        let [never, little] = sentences(&facts).try_into().unwrap();
        assert!(never.starts_with("The drive never cleaned in this run"), "{never}");
        assert!(
            little.contains("than the drive of 32.0 GiB holds, which was new")
                && little.contains("--precondition"),
            "{little}"
        );
        let but = Facts { cleaned: 1, ..facts };
        assert_eq!(sentences(&but), [little]);
    }

    #[test]
    fn a_zoned_drive_is_told_nothing_that_it_cannot_do() {
        let facts = Facts { written: GIB, cleaned: 0, is_zoned: true, ..settled() };
        let [never, little] = sentences(&facts).try_into().unwrap();
        assert!(never.contains("has zones") && never.contains("make no difference"), "{never}");
        assert!(little.ends_with("write more."), "{little}");
    }

    #[test]
    fn preconditioning_settles_a_drive_unless_mkfs_discarded_it() {
        let aged = Facts { written: GIB, is_preconditioned: true, ..settled() };
        assert_eq!(sentences(&Facts { is_full: true, ..aged }), [""; 0]);
        let [little] = sentences(&aged).try_into().unwrap();
        assert!(little.contains("which mkfs had emptied") && little.contains("--fill"), "{little}");
    }

    #[test]
    fn a_shrunk_drive_says_so_where_it_has_a_lifetime() {
        let mut run = RunResult::default();
        assert_eq!(shrunk(&run, 0.5), None);
        run.lifetime.rated_years = Some(3.0);
        assert_eq!(shrunk(&run, 1.0), None);
        let said = shrunk(&run, 1.0 / 48.0).unwrap_or_default();
        assert!(said.contains("are 1/48 of") && said.contains("after 48 times the time"), "{said}");
        assert_eq!(fraction(0.3), "0.3000");
    }

    #[test]
    fn reads_of_nothing_are_told_on_a_raw_drive() {
        let facts = Facts { read_blocks: 1000, empty_read_blocks: 250, ..settled() };
        assert_eq!(sentences(&facts), [""; 0]);
        let [read] = sentences(&Facts { is_raw: true, ..facts }).try_into().unwrap();
        assert!(read.starts_with("25 % of the blocks read held nothing"), "{read}");
    }
}
