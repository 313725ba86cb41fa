//! Checking a volume, and repairing what can be repaired without guessing.
//!
//! [`check`] reads the volume as of its elected checkpoint: it follows every pointer from the root,
//! the orphans and the quota files, and then compares what it reached with what NAT, SIT, SSA and
//! checkpoint say. Each disagreement is a [`Finding`]; `docs/fsck.md` lists the kinds.
//!
//! A volume that was not unmounted is checked in the same way: what fsync wrote after the
//! checkpoint is not part of it, and only counted ([`Finding::AwaitsRecovery`]).
//!
//! A volume of IPLFS is checked in the same way, with its logs' positions, its discard log and what
//! its device holds in the place of SIT and SSA.
//!
//! A devirtualised volume is checked with its drive: a pointer to a place must lead to one by which
//! the drive holds a block. It is not repaired.
//!
//! Of a zoned volume the write pointers of the zones are compared with the logs and with what is in
//! use, if the device tells its zones. Without them the free segments cannot be counted: a zone may
//! have a capacity below its size, which no table says.
//!
//! Hazards: the volume is damaged, so no field is believed before it is checked. Every block and
//! every node is entered once, so that the work ends; memory follows what is in use: a bit for each
//! block of a segment in use, an entry for each node and inode.
//!
//! Left out: the content of quota files, the hashes of casefolded names, the format of encrypted
//! names.

mod chain;
mod checkpoints;
mod claims;
mod dentries;
mod directories;
mod finding;
mod held_addresses;
mod inodes;
mod iplfs;
mod logs;
mod nat;
mod nodes;
mod orphans;
mod pointers;
mod repair;
mod report;
mod salvage;
mod sit;
mod space;
mod summary;
mod superblocks;
mod tree;
mod zones;

pub use dovetail_vfs::check::{Name, Severity};
pub use finding::{Finding, Remedy};
pub use repair::{RepairError, repair};
pub use report::{Area, Counts, Report};
pub use salvage::{FoundNodes, Saved, salvage};

use std::collections::{BTreeSet, HashMap};

use dovetail_block::BlockDevice;

use crate::error::{Error, Incompatible};
use crate::format::{BlockAddr, Features, Nid};
use crate::section_zones::SectionZones;
use crate::volume::Volume;
use claims::Claims;
use dentries::DentryFix;
use held_addresses::HeldAddresses;
use logs::Logs;
use tree::Visited;

/// Options of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Findings kept of one kind; more are only counted.
    pub kept_per_kind: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { kept_per_kind: 1000 } // assumed: more than anybody reads
    }
}

/// Progress of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// This many inodes were checked, of as many as the checkpoint counts.
    Inodes {
        /// Checked.
        done: u64,
        /// Counted by the checkpoint, which may be wrong.
        expected: u64,
    },
    /// The tree is done; NAT and SIT are compared with it.
    Tables,
}

/// Checks the volume on `device`, without writing. `progress` is called now and then.
///
/// # Errors
/// [`Error::NotF2fs`], [`Error::Incompatible`], [`Error::Io`]. A volume that is too damaged to be
/// opened is a report with [`Finding::Unusable`].
pub fn check<D: BlockDevice>(
    device: D,
    options: Options,
    mut progress: impl FnMut(Progress),
) -> Result<Report, Error> {
    match Volume::open(device) {
        Ok(volume) => run(volume, options, &mut progress).map(|checker| checker.report),
        Err(Error::Corrupt(reason)) => {
            let mut report = Report::default();
            report.push(Finding::Unusable { reason }, 1);
            Ok(report)
        }
        Err(error) => Err(error),
    }
}

/// A check in progress.
struct Checker<'p, D> {
    volume: Volume<D>,
    options: Options,
    report: Report,
    progress: &'p mut dyn FnMut(Progress),
    logs: Logs,
    claims: Claims,
    held_addresses: HeldAddresses,
    /// Every node that was reached, and the inode it was reached from.
    nodes: HashMap<Nid, Nid>,
    inodes: HashMap<Nid, Visited>,
    /// Directories that were entered and are still to be read.
    todo: Vec<Nid>,
    /// Repairs of directory entries.
    fixes: Vec<DentryFix>,
    /// Pointers to content that lead out of the main area: inode, node, number in the node.
    outside: Vec<(Nid, Nid, u32)>,
    /// The orphans that exist.
    orphans: Vec<Nid>,
    /// The zones of the device, if the volume is zoned and they are known.
    zones: Option<SectionZones>,
    /// Sections whose zone can no longer be written.
    worn: BTreeSet<u32>,
    /// The SSA block last asked for.
    summary: Option<(BlockAddr, std::sync::Arc<dovetail_block::BlockBytes>)>,
}

impl<D> Checker<'_, D> {
    fn found(&mut self, finding: Finding) {
        self.report.push(finding, self.options.kept_per_kind);
    }
}

fn run<D: BlockDevice>(
    volume: Volume<D>,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Checker<'_, D>, Error> {
    if volume.superblock().features.has(Features::READ_ONLY) {
        return Err(Incompatible::ReadOnlyVolume.into());
    }
    let mut checker = Checker {
        volume,
        options,
        report: Report::default(),
        progress,
        logs: Logs::default(),
        claims: Claims::default(),
        held_addresses: HeldAddresses::default(),
        nodes: HashMap::new(),
        inodes: HashMap::new(),
        todo: Vec::new(),
        fixes: Vec::new(),
        outside: Vec::new(),
        orphans: Vec::new(),
        zones: None,
        worn: BTreeSet::new(),
        summary: None,
    };
    checker.read_device_addresses()?;
    checker.read_zones()?;
    checker.check_superblocks()?;
    checker.check_checkpoints()?;
    checker.check_logs()?;
    checker.check_chain()?;
    checker.check_tree()?;
    (checker.progress)(Progress::Tables);
    checker.check_nat()?;
    checker.check_links();
    checker.check_space()?;
    checker.check_write_pointers()?;
    checker.check_counters();
    Ok(checker)
}
