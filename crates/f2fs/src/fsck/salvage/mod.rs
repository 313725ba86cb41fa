//! Salvage of a damaged volume: what a repair without guessing leaves alone.
//!
//! First the NAT is put right in memory ([`Volume::find_nodes`]), and pointers that lead to nothing
//! of the volume (`pointers.rs`). Then the volume is checked, and one checkpoint more is written as
//! by [`super::repair()`], with pointers to lost nodes cut off, names of lost inodes removed, and
//! nodes of lost inodes given up. Last the volume is mounted, and inodes without a name get one in
//! `/lost+found`. One that fails does not keep the others from theirs.
//!
//! Until the new checkpoint is complete the old one stands. Between it and the end the volume has
//! inodes without a name, as before; another salvage goes on from there.
//!
//! Left out: indirect nodes made again from the direct ones, content of lost inodes, a lost root,
//! volumes whose SIT is damaged.

mod account;
mod names;
mod nat;
mod pointers;

pub use account::Saved;
pub use nat::FoundNodes;
pub(super) use pointers::Mended;

use dovetail_block::Scheduler;
use dovetail_vfs::Moment;

use super::repair::{KEPT, RepairError, salvage_segments, try_in_memory};
use super::{Finding, Options};
use crate::volume::Volume;
use names::Names;

/// Salvages the volume on `device`: all that [`super::repair()`] does, and what takes a guess.
/// Returns what was done, what is lost, and what could not be done. `now` is the date of the new
/// names.
///
/// # Errors
/// [`RepairError`]; nothing was written then, unless it is [`RepairError::Volume`] with a failed
/// write. What fails once the new checkpoint stands is in the account.
pub fn salvage<D: Scheduler>(mut device: D, now: Moment) -> Result<Vec<Saved>, RepairError> {
    try_in_memory(&mut device, |trial| salvage_on(trial, now).map(drop))?;
    salvage_on(device, now)
}

fn salvage_on<D: Scheduler>(mut device: D, now: Moment) -> Result<Vec<Saved>, RepairError> {
    let mut volume = Volume::open(&mut device)?;
    if volume.superblock.variant.is_iplfs() {
        return Err(RepairError::NotSalvaged);
    }
    if volume.superblock.devirtualized {
        return Err(RepairError::Devirtualized);
    }
    let found = volume.find_nodes()?.found;
    let mut silent = |_| {};
    let options = Options { kept_per_kind: KEPT };
    let mut checker = super::run(volume, options, &mut silent)?;
    let mended = checker.wrong_pointers()?;
    if !mended.is_empty() {
        let mut volume = checker.volume;
        pointers::mend(&mut volume, &mended)?;
        checker = super::run(volume, options, &mut silent)?;
    }
    refuse(&checker.report.findings)?;
    let names = Names::of(&mut checker);
    let mut saved = checker.account(found, &mended, &names.paths());
    salvage_segments(checker, &mended)?;
    if !names.is_empty() {
        names::reconnect(&mut device, &names, now).settle(&mut saved);
    }
    // counts of links, which the new names have changed
    if let Err(why) = super::repair(&mut device) {
        saved.push(Saved::Unfinished { what: "counts of links".into(), why: why.to_string() });
    }
    Ok(saved)
}

/// Damage of which it is not known what it hides.
fn refuse(findings: &[Finding]) -> Result<(), RepairError> {
    let is_cut = |finding: &Finding| match finding {
        Finding::NodeMissing { nid, ino } => nid != ino,
        Finding::NodeUnreachable { .. } => true,
        _ => false,
    };
    let left: Vec<_> = findings.iter().filter(|finding| !is_cut(finding)).cloned().collect();
    super::repair::refuse(&left)
}
