//! Check that simulated drives fit into this machine's memory, before it is asked for.

use std::fs;

use dovetail_ftl::DriveConfig;
use dovetail_time::format_bytes;
use rustix::process::{Resource, getrlimit};

use crate::{Failure, complain};

/// Memory that the rest of a run takes beside its drive. Assumed.
const BESIDE: u64 = 64 << 20;

/// Memory of the machine that runs and the drives kept for others take at most, in percent: the
/// rest is for what estimates miss (assumed).
const PERCENT: u64 = 80;

/// Memory of the machine above which runs say before they begin how much they take, in percent
/// (assumed).
const TOLD_PERCENT: u64 = 25;

/// Bytes that runs and the drives kept for others may take in all.
pub(crate) fn in_all() -> u64 {
    room().map_or(u64::MAX, |bytes| bytes / 100 * PERCENT)
}

/// Bytes for preconditioned drives that are kept for further runs, while `at_a_time` of these
/// drives are there at once.
pub(crate) fn for_copies<'a>(
    drives: impl Iterator<Item = &'a DriveConfig>,
    at_a_time: usize,
) -> u64 {
    in_all().saturating_sub(of(drives).saturating_mul(at_a_time.max(1) as u64))
}

/// Bytes that a run takes on the largest of these drives.
pub(crate) fn of<'a>(drives: impl Iterator<Item = &'a DriveConfig>) -> u64 {
    drives.map(|drive| drive.memory_bytes().saturating_add(BESIDE)).max().unwrap_or(BESIDE)
}

/// Refuses drives that the machine has no room for, of which `at_a_time` are there at once, and says
/// how much they take where that is much of what is there. `less` tells how much one takes of which
/// not all is written; it is asked about those that would not fit.
pub(crate) fn check<'a>(
    drives: impl Iterator<Item = &'a DriveConfig>,
    at_a_time: usize,
    less: impl Fn(usize) -> Option<u64>,
) -> Result<(), Failure> {
    let Some(room) = room() else { return Ok(()) };
    let each = drives.enumerate().map(|(index, drive)| {
        let whole = drive.memory_bytes();
        let bytes = if whole.saturating_add(BESIDE) > room { less(index) } else { None };
        (bytes.unwrap_or(whole).saturating_add(BESIDE), drive.name.as_str())
    });
    let mut all: Vec<(u64, &str)> = each.collect();
    all.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    all.truncate(at_a_time.max(1));
    let Some(&(largest, name)) = all.first() else { return Ok(()) };
    let together = all.iter().fold(0, |sum: u64, (bytes, _)| sum.saturating_add(*bytes));
    if let Some(why) = refusal(room, (name, largest), (all.len(), together)) {
        return Err(Failure::Failed(why));
    }
    if together > room / 100 * TOLD_PERCENT {
        let (takes, there) = (format_bytes(together), format_bytes(room));
        complain(&format!(
            "note: this takes up to {takes} of memory, of {there} that are available"
        ));
    }
    Ok(())
}

/// Message if the largest drive does not fit, or those that are there at once do not.
fn refusal(
    room: u64,
    (name, largest): (&str, u64),
    (count, together): (usize, u64),
) -> Option<String> {
    let (shown, there) = (format_bytes(largest), format_bytes(room));
    if largest > room {
        let fits = (1..=20).map(|bits| 1_u64 << bits).find(|shrunk| largest / shrunk <= room)?;
        return Some(format!(
            "drive {name} takes up to {shown} of memory to simulate, and {there} are available: --scale 1/{fits} \
             shrinks it to what fits"
        ));
    }
    let fit =
        (1..count as u64).rev().find(|&count| largest.saturating_mul(count) <= room).unwrap_or(1);
    (together > room).then(|| {
        format!(
            "{count} drives at a time take up to {} of memory to simulate ({name}: {shown}), and {there} are \
             available: run fewer at a time (--jobs {fit}), or shrink them (--scale)",
            format_bytes(together)
        )
    })
}

/// A sentence if a drive that holds real bytes does not fit once all its flash is written; what is
/// overwritten stays until it is erased.
pub(crate) fn note_if_filled(drive: &DriveConfig) -> Option<String> {
    let filled = drive.memory_bytes().saturating_add(drive.nand.geometry.raw_bytes());
    let there = room().filter(|there| filled > *there)?;
    Some(format!(
        "note: once its flash is full of real bytes this drive takes {} of memory, and {} are available; a smaller \
         --scale takes less",
        format_bytes(filled),
        format_bytes(there)
    ))
}

/// Bytes that this process may still take: what the machine has, and what its limit leaves. `None`
/// where that is not told.
pub(crate) fn room() -> Option<u64> {
    let of = |text: &str, key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let available =
        machine.and_then(|text| Some((of(&text, "MemAvailable")? + of(&text, "SwapFree")?) * 1024));
    let own = fs::read_to_string("/proc/self/status").ok();
    let used = own.and_then(|text| of(&text, "VmSize")).map_or(0, |kib| kib * 1024);
    let limit = getrlimit(Resource::As).current.map(|limit| limit.saturating_sub(used));
    [available, limit].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        assert_eq!(refusal(8 * GIB, ("d", 7 * GIB), (1, 7 * GIB)), None);
        let one = refusal(8 * GIB, ("d", 11 * GIB), (1, 11 * GIB)).unwrap();
        assert!(
            one.contains("drive d takes up to 11.0 GiB") && one.contains("--scale 1/2 "),
            "{one}"
        );
        let far = refusal(GIB, ("d", 1000 * GIB), (1, 1000 * GIB)).unwrap();
        assert!(far.contains("--scale 1/1024 "), "{far}");
        let many = refusal(8 * GIB, ("d", 3 * GIB), (4, 12 * GIB)).unwrap();
        assert!(many.contains("4 drives at a time") && many.contains("--jobs 2)"), "{many}");
    }

    #[test]
    fn the_machine_tells_its_room() {
        assert!(room().is_some_and(|bytes| bytes > BESIDE));
    }
}
