//! Repairing what follows from the rest of the volume.
//!
//! A repair is one checkpoint more: changed nodes and directory blocks are written to free
//! segments, changed SIT and NAT blocks to their other copies, and the pack that is not in use
//! becomes the new one. Until its last block is written, the old checkpoint stands as it was, so
//! that a power cut at any time leaves the volume damaged as before, or repaired. In place are
//! written only summaries (SSA) and the copy of the superblock that cannot be used.
//!
//! Of IPLFS what leaked is discarded, and the superblock copied; nothing else is repaired.
//!
//! Left out: volumes on which fsynced files await recovery (mount them first), and volumes with
//! damage that hides blocks: there nobody knows what is in use.

mod edits;
mod lost_nodes;
mod pack;
mod space;
mod tables;

use std::collections::{BTreeMap, HashSet};

use dovetail_block::{BlockBytes, BlockDevice, OverlayDevice};

use super::Severity;
use super::finding::{Finding, Remedy};
use super::salvage::Mended;
use super::{Checker, Options};
use crate::error::Error;
use crate::format::{BlockAddr, Extent, NatEntry, Nid, SegNo};
use crate::volume::Volume;
use space::Space;

/// Findings of one kind that one repair deals with; the next one goes on from there.
pub(super) const KEPT: usize = 100_000;

/// Error of a repair. Nothing was written, unless it is [`RepairError::Volume`] with a failed
/// write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepairError {
    /// It cannot be checked, read or written.
    #[error(transparent)]
    Volume(#[from] Error),
    /// The chain of fsynced blocks would be lost with the checkpoint that it belongs to.
    #[error("{count} fsynced files await recovery: mount and unmount the volume first")]
    AwaitsRecovery {
        /// Number of fsynced files.
        count: u64,
    },
    /// Some blocks cannot be reached, so that nobody knows what is in use.
    #[error("not repaired, because it would take a guess what is in use: {0}")]
    Hidden(Box<Finding>),
    /// Of IPLFS what leaked is discarded where nothing else is wrong: otherwise it may be what a
    /// damaged pointer led to.
    #[error(
        "of an IPLFS volume only leaked blocks and superblocks are repaired, and not beside other errors: {0}"
    )]
    Iplfs(Box<Finding>),
    /// Pointers lead to places of the drive.
    #[error(
        "a volume with pointers to its drive's own addresses is not repaired: make it an ordinary one first with \
         `dovetail devirtualize --undo`"
    )]
    Devirtualized,
    /// Zones are written in order, and where they stand is not known.
    #[error("a zoned volume is repaired with its zones only: give its zone report (--zones)")]
    NoZones,
    /// Names without an inode would be removed, and the inodes are there; or nodes in use would be
    /// given up for their old copies.
    #[error(
        "not repaired, because {count} nodes are in use and the NAT does not lead to them: a salvage (-y) finds them \
         again"
    )]
    NodesAstray {
        /// Number of nodes.
        count: u64,
    },
    /// The volume would have an error that it does not have now, or that should have been repaired.
    #[error("not repaired, because that would leave this error: {0}")]
    Worse(Box<Finding>),
    /// Only F2FS is salvaged.
    #[error("volumes of IPLFS are not salvaged")]
    NotSalvaged,
    /// Repaired blocks are written to free segments, and there are too few.
    #[error("there is no free segment to write repaired blocks to")]
    NoSpace,
}

impl From<dovetail_block::DeviceError> for RepairError {
    fn from(error: dovetail_block::DeviceError) -> Self {
        Self::Volume(error.into())
    }
}

/// Repairs the volume on `device`, and returns the findings that were dealt with; none if there was
/// nothing to do. A second repair finds nothing, unless the first one uncovered more, or there were
/// more than 100,000 of a kind.
///
/// # Errors
/// [`RepairError`].
pub fn repair<D: BlockDevice>(mut device: D) -> Result<Vec<Finding>, RepairError> {
    try_in_memory(&mut device, |trial| repair_on(trial).map(drop))?;
    repair_on(device)
}

/// Refuses work after which an error is found that was none before, such as a log that goes on
/// before a block in use, or one that should have been repaired: a damaged volume that can be
/// mounted stays one. Zoned volumes are worked on without a trial.
pub(super) fn try_in_memory<D: BlockDevice>(
    device: D,
    work: impl FnOnce(&mut OverlayDevice<D>) -> Result<(), RepairError>,
) -> Result<(), RepairError> {
    // the rules of an overlay are not those of zones
    if device.info().capabilities.zones.is_some() {
        return Ok(());
    }
    let options = Options { kept_per_kind: 1 };
    let mut trial = OverlayDevice::new(device);
    let before = super::check(&mut trial, options, |_| {})?;
    let known: Vec<_> = before.findings.iter().map(|finding| finding.kind().name).collect();
    work(&mut trial)?;
    if trial.changes().next().is_none() {
        return Ok(());
    }
    let after = super::check(&mut trial, options, |_| {})?;
    let is_worse = |finding: &Finding| {
        let is_left =
            finding.kind().remedy == Remedy::Repaired && before.findings.contains(finding);
        finding.severity() == Severity::Error && (is_left || !known.contains(&finding.kind().name))
    };
    let worse = after.findings.into_iter().find(is_worse);
    worse.map_or(Ok(()), |worse| Err(RepairError::Worse(Box::new(worse))))
}

fn repair_on<D: BlockDevice>(device: D) -> Result<Vec<Finding>, RepairError> {
    let volume = Volume::open(device)?;
    let mut silent = |_| {};
    let checker = super::run(volume, Options { kept_per_kind: KEPT }, &mut silent)?;
    let mut findings = checker.report.findings.clone();
    findings.retain(|finding| finding.kind().remedy == Remedy::Repaired);
    if findings.is_empty() {
        return Ok(findings);
    }
    if checker.volume.superblock.devirtualized {
        return Err(RepairError::Devirtualized);
    }
    refuse(&checker.report.findings)?;
    let mut checker = checker;
    // an inode may be there, and a node that the SIT calls free may be an old copy of one in use
    let is_astray = |finding: &Finding| {
        matches!(finding, Finding::DentryDangling { .. } | Finding::BlocksFree { .. })
    };
    if findings.iter().any(is_astray) {
        let count = checker.volume.find_nodes()?.found;
        if count > 0 {
            return Err(RepairError::NodesAstray { count });
        }
    }
    checker.repair(findings)
}

/// Writes a new checkpoint with all that is repaired, and without what is lost; `mended` pointers
/// are right in memory.
pub(super) fn salvage_segments<D: BlockDevice>(
    checker: Checker<'_, D>,
    mended: &[Mended],
) -> Result<(), RepairError> {
    if checker.volume.superblock.is_zoned() && checker.zones.is_none() {
        return Err(RepairError::NoZones);
    }
    let findings = checker.report.findings.clone();
    let mut repair = Repair::new(checker);
    for pointer in mended {
        repair.keep_node(pointer.nid)?;
    }
    repair.edit_nodes(&findings)?;
    repair.cut_lost_nodes(&findings)?;
    repair.edit_dentries()?;
    repair.move_blocks()?;
    repair.edit_summaries(&findings)?;
    repair.commit()?;
    repair.copy_superblock(&findings)?;
    Ok(repair.checker.volume.blocks.flush()?)
}

/// Writes a new checkpoint with all that is repaired in nodes and tables, and copies the
/// superblock.
pub(super) fn repair_segments<D: BlockDevice>(
    checker: Checker<'_, D>,
    findings: Vec<Finding>,
) -> Result<Vec<Finding>, RepairError> {
    if checker.volume.superblock.is_zoned() && checker.zones.is_none() {
        return Err(RepairError::NoZones);
    }
    let zones = checker.zones;
    let mut repair = Repair::new(checker);
    let is_apart = |finding: &Finding| {
        is_of_superblock(finding) || matches!(finding, Finding::ZoneLeft { .. })
    };
    if findings.iter().any(|finding| !is_apart(finding)) {
        repair.edit_nodes(&findings)?;
        repair.edit_dentries()?;
        repair.move_blocks()?;
        repair.edit_summaries(&findings)?;
        repair.commit()?;
    }
    repair.copy_superblock(&findings)?;
    for finding in &findings {
        if let (Finding::ZoneLeft { zone, .. }, Some(zones)) = (finding, zones)
            && !repair.has_written_to(*zone)
        {
            repair.checker.volume.blocks.reset_zone(zones.start(*zone))?;
        }
    }
    repair.checker.volume.blocks.flush()?;
    Ok(findings)
}

/// Discards what leaked, and copies the superblock.
pub(super) fn repair_iplfs<D: BlockDevice>(
    mut checker: Checker<'_, D>,
    mut findings: Vec<Finding>,
) -> Result<Vec<Finding>, RepairError> {
    let is_ours = |finding: &Finding| {
        matches!(finding, Finding::DeviceLeak { .. }) || is_of_superblock(finding)
    };
    let mut errors =
        checker.report.findings.iter().filter(|finding| finding.severity() == Severity::Error);
    if let Some(other) = errors.find(|finding| !is_ours(finding)) {
        return Err(RepairError::Iplfs(Box::new(other.clone())));
    }
    findings.retain(is_ours);
    for finding in &findings {
        if let Finding::DeviceLeak { first, blocks } = *finding {
            checker.volume.blocks.discard(Extent { start: first, blocks })?;
        }
    }
    checker.volume.blocks.flush()?;
    Repair::new(checker).copy_superblock(&findings)?;
    Ok(findings)
}

fn is_of_superblock(finding: &Finding) -> bool {
    matches!(finding, Finding::SuperblockCopy { .. } | Finding::SuperblocksDiffer { .. })
}

/// Refuses a block of which one pointer says that it is in use, and both tables say otherwise: the
/// pointer may be wrong, and what it led to would be given up.
fn refuse_lone_pointers(findings: &[Finding]) -> Result<(), RepairError> {
    let named_otherwise: HashSet<_> = findings
        .iter()
        .filter_map(|finding| match finding {
            Finding::SummaryData { address, .. } => Some(*address),
            _ => None,
        })
        .collect();
    let is_lone = |finding: &&Finding| match finding {
        Finding::BlocksFree { first, .. } => named_otherwise.contains(first),
        _ => false,
    };
    let lone = findings.iter().find(is_lone);
    lone.map_or(Ok(()), |lone| Err(RepairError::Hidden(Box::new(lone.clone()))))
}

/// Damage after which the blocks that were reached are not all that are in use, and logs that point
/// into used blocks.
pub(super) fn refuse(findings: &[Finding]) -> Result<(), RepairError> {
    refuse_lone_pointers(findings)?;
    let mut doubtful = HashSet::new();
    for finding in findings {
        match finding {
            Finding::AwaitsRecovery { count } => {
                return Err(RepairError::AwaitsRecovery { count: *count });
            }
            Finding::LogSegment { .. }
            | Finding::LogsCollide { .. }
            | Finding::LogAllocation { .. }
            | Finding::JournalCount { .. }
            | Finding::BlockShared { .. }
            | Finding::NatAddress { .. }
            | Finding::NidRange { .. }
            | Finding::NodeMissing { .. }
            | Finding::NodeShared { .. }
            | Finding::NodeUnreachable { .. }
            | Finding::FooterNid { .. }
            | Finding::InodeChecksum { .. }
            | Finding::InodeMode { .. }
            | Finding::BlocksHidden { .. }
            | Finding::RootType { .. }
            | Finding::DataAddress { .. }
            | Finding::ClusterMark { .. }
            | Finding::Compression { .. }
            | Finding::ExtraFlag { .. }
            | Finding::ExtraSize { .. }
            | Finding::InlineXattrSize { .. }
            | Finding::InlineFlags { .. }
            | Finding::InlineNodes { .. }
            | Finding::DentryLength { .. }
            | Finding::DentryNode { .. } => {
                return Err(RepairError::Hidden(Box::new(finding.clone())));
            }
            // a node of which two of three (pointer, NAT, footer) agree is repaired, otherwise it
            // is a guess
            Finding::NatInode { nid, .. }
            | Finding::NatNoInode { nid }
            | Finding::FooterInode { nid, .. }
                if !doubtful.insert(*nid) =>
            {
                return Err(RepairError::Hidden(Box::new(finding.clone())));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A repair in progress: what will be written, until it is.
struct Repair<'p, D> {
    checker: Checker<'p, D>,
    /// Nodes with changed content.
    nodes: BTreeMap<Nid, Box<BlockBytes>>,
    /// Blocks of directories with changed content, by directory and block of it.
    data: BTreeMap<(Nid, u64), Box<BlockBytes>>,
    /// Changed summary blocks of segments that no log writes to.
    summaries: BTreeMap<SegNo, Box<BlockBytes>>,
    nat: BTreeMap<Nid, NatEntry>,
    space: Space,
}

impl<'p, D: BlockDevice> Repair<'p, D> {
    fn new(checker: Checker<'p, D>) -> Self {
        Self {
            checker,
            nodes: BTreeMap::new(),
            data: BTreeMap::new(),
            summaries: BTreeMap::new(),
            nat: BTreeMap::new(),
            space: Space::default(),
        }
    }

    /// Writes the good copy of the superblock over the other one.
    fn copy_superblock(&mut self, findings: &[Finding]) -> Result<(), RepairError> {
        let Some(finding) = findings.iter().find(|finding| is_of_superblock(finding)) else {
            return Ok(());
        };
        let bad = if let Finding::SuperblockCopy { copy, .. } = finding { *copy } else { 1 };
        let blocks = &mut self.checker.volume.blocks;
        let good = blocks.metadata(BlockAddr(1 - u64::from(bad)))?;
        let mut block = *blocks.metadata(BlockAddr(bad.into()))?;
        block[1024..].copy_from_slice(&good[1024..]); // what stands before it may be a boot loader's
        blocks.write(BlockAddr(bad.into()), std::sync::Arc::new(block), false)?;
        Ok(blocks.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dovetail_block::MemoryDevice;

    use super::*;
    use crate::mkfs::{MkfsOptions, mkfs};

    #[test]
    fn work_that_leaves_a_new_error_is_refused_and_nothing_is_written() {
        let mut device = MemoryDevice::new(16 << 10);
        mkfs(&mut device, &MkfsOptions::default()).unwrap();
        let root = Volume::open(&mut device).unwrap().superblock.main_start;
        try_in_memory(&mut device, |_| Ok(())).unwrap();
        let spoiled = try_in_memory(&mut device, |trial| {
            let mut volume = Volume::open(trial)?;
            Ok(volume.blocks.write(root, Arc::new([0xA5; 4096]), false)?)
        });
        assert!(matches!(spoiled, Err(RepairError::Worse(_))), "{spoiled:?}");
        let report = crate::fsck::check(device, Options::default(), |_| {}).unwrap();
        assert_eq!(report.findings, []);
    }
}
