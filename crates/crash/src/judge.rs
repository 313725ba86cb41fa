//! The verdict on a power cut: the state it left is recovered, mounted, checked, and compared with
//! the promises.

use std::process::Command;

use dovetail_block::MemoryDevice;
use dovetail_ftl::UnrecoveredDrive;
use dovetail_lab::bench::Volume;
use dovetail_testkit::crash::{Snapshot, Survey, explain, survey};
use dovetail_time::{Rng, SimSpan, SimTime};
use dovetail_vfs::{FileSystem, Simulated};

use crate::player::Player;
use crate::rig::Rig;
use crate::wire::{Cut, Wire};

/// Of every so many moments one is looked at more closely: its recovery is cut as well, the drive's
/// maps are compared with its flash, and what filled it is looked for, page by page. It has no
/// divisor in common with the number of shares of a job, so that each share has such moments.
const CLOSER: u64 = 7;
/// Cuts in such a recovery.
const IN_RECOVERY: usize = 2;

/// The state after a cut that the promises explain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finding {
    /// Acknowledged operations that are not to be seen any more.
    pub(crate) lost_operations: u64,
    /// Virtual time from the first operation that is not to be seen until the cut.
    pub(crate) lost: SimSpan,
    /// Until the drive had recovered.
    pub(crate) drive_ready: SimSpan,
    /// From then until the volume was mounted, recovery included.
    pub(crate) mount: SimSpan,
    /// Blocks that mounting read.
    pub(crate) blocks_read: u64,
    /// Files with changes that were not durable, by how they were found.
    pub(crate) survey: Survey,
    /// Cuts within the recovery.
    pub(crate) in_recovery: u64,
}

/// A volume that is mounted after a cut.
struct Recovered {
    wire: Wire,
    fs: Box<dyn Simulated>,
    drive_ready: SimSpan,
    mount: SimSpan,
    blocks_read: u64,
    found: Snapshot,
}

/// Judges cuts of one run.
pub(crate) struct Judge<'a> {
    pub(crate) volume: Volume<'a>,
    pub(crate) seed: u64,
    /// The run's number. By it runs begin to count with different moments: short ones have few.
    pub(crate) run: u64,
    pub(crate) rig: &'a Rig,
    /// The file system's own checker is asked, too.
    pub(crate) with_referee: bool,
}

impl Judge<'_> {
    /// Judges a cut.
    ///
    /// # Errors
    /// The violation, as a sentence.
    pub(crate) fn judge(&self, player: &Player, cut: Cut) -> Result<Finding, String> {
        let (number, at) = (cut.number, cut.at);
        let is_closer = (self.run.wrapping_add(number)).is_multiple_of(CLOSER);
        let recovered = self.recover(cut.drive, is_closer)?;
        if is_closer {
            recovered.wire.check().map_err(|what| format!("the drive: {what}"))?;
            self.check_filled(player, &recovered.wire)?;
        }
        let history = &player.history;
        let complete = history.complete_at(at.as_ns());
        let base = explain(history, complete, self.volume.guarantees(), &recovered.found)?.base;
        let in_recovery = if is_closer { self.cut_recovery(&recovered, number)? } else { 0 };
        let (survey, mut lost) = survey(history, complete, &recovered.found);
        lost.extend(base + 1..=complete);
        let since = |first: &usize| at.since(self.returned(player, *first));
        let finding = Finding {
            lost_operations: lost.len() as u64,
            lost: lost.first().map_or(SimSpan::ZERO, since),
            drive_ready: recovered.drive_ready,
            mount: recovered.mount,
            blocks_read: recovered.blocks_read,
            survey,
            in_recovery,
        };
        self.check(recovered)?;
        Ok(finding)
    }

    /// Looks for the blocks that filled the drive before the workload, but for those written or
    /// discarded since.
    fn check_filled(&self, player: &Player, wire: &Wire) -> Result<(), String> {
        match wire.first_lost(&self.rig.filled, self.rig.blocks, player.wire()) {
            Ok(None) => Ok(()),
            Ok(Some(lba)) => {
                Err(format!("the drive: block {lba}, which nobody has written to, is lost"))
            }
            Err(error) => Err(format!("the drive: {error}")),
        }
    }

    /// The time at which an operation returned.
    fn returned(&self, player: &Player, operation: usize) -> SimTime {
        SimTime::from_ns(player.history.position(operation))
    }

    fn recover(&self, drive: UnrecoveredDrive, remember: bool) -> Result<Recovered, String> {
        let (drive, report) =
            drive.recover().map_err(|lost| format!("the drive does not recover: {}", lost.1))?;
        let wire = Wire::new(drive);
        if remember {
            wire.remember();
        }
        let mut fs = self
            .volume
            .mount(Box::new(wire.clone()))
            .map_err(|error| format!("it cannot be mounted: {error}"))?;
        let (end, blocks_read) = wire.work();
        let found =
            Snapshot::read(&mut fs).map_err(|error| format!("it cannot be read: {error}"))?;
        Ok(Recovered {
            wire,
            fs,
            drive_ready: report.duration,
            mount: end.since(SimTime::ZERO + report.duration),
            blocks_read,
            found,
        })
    }

    /// A recovery that is cut and begun again comes to the same.
    fn cut_recovery(&self, first: &Recovered, number: u64) -> Result<u64, String> {
        let moments = first.wire.changes();
        let mut rng = Rng::new(self.seed).fork(number);
        let mut cuts = 0;
        for _ in 0..IN_RECOVERY.min(moments.len()) {
            let at = moments[rng.below(moments.len() as u64) as usize];
            let place = |what: String| {
                format!("cut again {} into its recovery: {what}", at.since(SimTime::ZERO))
            };
            let again = self.recover(first.wire.cut_at(at), false).map_err(place)?;
            first
                .found
                .same_tree(&again.found)
                .map_err(|what| place(format!("begun again, {what}")))?;
            cuts += 1;
        }
        Ok(cuts)
    }

    /// The volume, unmounted, is one that its checkers have nothing to say about.
    fn check(&self, recovered: Recovered) -> Result<(), String> {
        let Recovered { wire, fs, .. } = recovered;
        FileSystem::unmount(Box::new(fs))
            .map_err(|error| format!("it cannot be unmounted: {error}"))?;
        if let Some(foreign) = self.rig.foreign {
            wire.discard(foreign).map_err(|error| format!("the drive: {error}"))?;
        }
        let complaints = self.volume.check(Box::new(wire.clone()));
        if !complaints.is_empty() {
            return Err(format!("fsck says: {}", complaints.join("; ")));
        }
        match self.volume.referee().filter(|_| self.with_referee) {
            Some((program, arguments)) => referee(&wire, program, arguments),
            None => Ok(()),
        }
    }
}

/// Asks a program that this project did not write.
fn referee(wire: &Wire, program: &str, arguments: &[&str]) -> Result<(), String> {
    let unable = |error: &dyn std::fmt::Display| format!("{program} cannot be asked: {error}");
    let image = tempfile::NamedTempFile::new().map_err(|error| unable(&error))?;
    let mut memory = MemoryDevice::new(dovetail_block::BlockDevice::info(wire).blocks);
    for (lba, content) in wire.bytes() {
        let range = dovetail_block::BlockRange::new(lba, 1);
        let data = dovetail_block::Data::Blocks(std::slice::from_ref(&content));
        let hints = dovetail_block::Hints::default();
        if matches!(content, dovetail_block::Content::Bytes(_)) {
            let write = dovetail_block::Command::Write { range, data, hints, fua: false };
            dovetail_block::BlockDevice::submit(&mut memory, SimTime::ZERO, write)
                .map_err(|error| unable(&error))?;
        }
    }
    memory.write_to(image.path()).map_err(|error| unable(&error))?;
    let output = Command::new(program)
        .args(arguments)
        .arg(image.path())
        .output()
        .map_err(|error| unable(&error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // fsck.f2fs ends with 0 whatever it finds
    let complains = ["[ASSERT]", "[FIX]", "[Fail]"].iter().any(|mark| text.contains(mark));
    match output.status.success() && !complains {
        true => Ok(()),
        false => Err(format!("{program} says: {}", text.trim())),
    }
}
