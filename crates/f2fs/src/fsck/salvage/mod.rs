//! Salvage of a damaged volume: what a repair without guessing leaves alone.
//!
//! First the NAT is put right in memory ([`Volume::find_nodes`]). Then the volume is checked, and
//! one checkpoint more is written as by [`super::repair()`], with pointers to lost nodes cut off,
//! names of lost inodes removed, and nodes of lost inodes given up. Last the volume is mounted, and
//! inodes without a name get one in `/lost+found`.
//!
//! Until the new checkpoint is complete the old one stands. Between it and the end the volume has
//! inodes without a name, as before; another salvage goes on from there.
//!
//! Left out: indirect nodes made again from the direct ones, content of lost inodes, a lost root,
//! volumes whose SIT is damaged.

mod account;
mod nat;

pub use account::Saved;
pub use nat::FoundNodes;

use std::collections::{HashMap, HashSet};

use dovetail_block::Scheduler;
use dovetail_vfs::mode::S_IFDIR;
use dovetail_vfs::{Caller, Error as CallError, FileSystem, MAX_NAME, Moment, NewNode, check_name};

use super::repair::{KEPT, RepairError, salvage_segments};
use super::{Checker, Finding, Options};
use crate::format::{Nid, Variant};
use crate::mount::{BackgroundGc, F2fs, Options as MountOptions};
use crate::volume::Volume;

const LOST_FOUND: &[u8] = b"lost+found";
/// Permissions of `/lost+found`, as mkfs.f2fs and mke2fs give them.
const LOST_FOUND_MODE: u16 = 0o700;

/// Salvages the volume on `device`: all that [`super::repair()`] does, and what takes a guess.
/// Returns what was done and what is lost. `now` is the date of the new names.
///
/// # Errors
/// [`RepairError`]; nothing was written then, unless it is [`RepairError::Volume`].
pub fn salvage<D: Scheduler>(mut device: D, now: Moment) -> Result<Vec<Saved>, RepairError> {
    let mut volume = Volume::open(&mut device)?;
    if volume.superblock.variant == Variant::Iplfs {
        return Err(RepairError::NotSalvaged);
    }
    if volume.superblock.devirtualized {
        return Err(RepairError::Devirtualized);
    }
    let found = volume.find_nodes()?.found;
    let mut silent = |_| {};
    let checker = super::run(volume, Options { kept_per_kind: KEPT }, &mut silent)?;
    refuse(&checker.report.findings)?;
    let names = Names::of(&checker);
    let saved = checker.account(found, &names.paths());
    salvage_segments(checker)?;
    if !names.is_empty() {
        reconnect(&mut device, &names, now)?;
    }
    // counts of links, which the new names have changed
    match super::repair(&mut device) {
        Ok(_) => Ok(saved),
        Err(RepairError::Volume(error)) => Err(error.into()),
        Err(_) => Ok(saved), // the next check shows it
    }
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

/// Names that are missing: of inodes in `/lost+found`, and "." and ".." in directories.
struct Names {
    /// Inodes with their names to be.
    lost: Vec<(Nid, Vec<u8>)>,
    /// Directories without "." or "..", and their parents.
    dots: Vec<(Nid, Nid)>,
}

impl Names {
    fn of<D: dovetail_block::BlockDevice>(checker: &Checker<'_, D>) -> Self {
        let (mut lost, mut dots, mut taken) = (Vec::new(), Vec::new(), HashSet::new());
        for finding in &checker.report.findings {
            match finding {
                Finding::InodeUnreachable { ino, name } => {
                    let name = free_name(*ino, &name.0, &taken);
                    taken.insert(name.clone());
                    lost.push((*ino, name));
                }
                Finding::Dots { ino, .. } => {
                    let parent = checker.inodes.get(ino).map_or(Nid::NONE, |inode| inode.parent);
                    dots.push((*ino, parent));
                }
                _ => {}
            }
        }
        Self { lost, dots }
    }

    fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.dots.is_empty()
    }

    /// The paths to be.
    fn paths(&self) -> HashMap<Nid, Vec<u8>> {
        let path = |name: &Vec<u8>| [b"/", LOST_FOUND, b"/", name].concat();
        self.lost.iter().map(|(ino, name)| (*ino, path(name))).collect()
    }
}

/// The name that an inode gets: its own, or with its number where that is taken or no name.
fn free_name(ino: Nid, name: &[u8], taken: &HashSet<Vec<u8>>) -> Vec<u8> {
    let number = format!("#{ino}").into_bytes();
    let is_name = check_name(name).is_ok() && !matches!(name, b"." | b"..");
    match (is_name, taken.contains(name)) {
        (true, false) => name.to_vec(),
        (true, true) => [&number, &b"-"[..], name].concat().into_iter().take(MAX_NAME).collect(),
        (false, _) => number,
    }
}

/// Mounts the volume, and gives names to what has none.
fn reconnect<D: Scheduler>(device: D, names: &Names, now: Moment) -> Result<(), RepairError> {
    let options = MountOptions { background_gc: BackgroundGc::Off, ..MountOptions::default() };
    let mut fs = F2fs::mount(device, options, now)?;
    let caller = Caller { uid: 0, gid: 0, now: now.date };
    let named = name_all(&mut fs, &caller, names);
    Box::new(fs).unmount().map_err(RepairError::Mounted)?;
    named.map_err(RepairError::Mounted)
}

fn name_all<D: Scheduler>(
    fs: &mut F2fs<D>,
    caller: &Caller,
    names: &Names,
) -> Result<(), CallError> {
    for (dir, parent) in &names.dots {
        fs.mend_dots(*dir, *parent)?;
    }
    if names.lost.is_empty() {
        return Ok(());
    }
    let root = FileSystem::root(fs);
    let found = match FileSystem::lookup(fs, root, LOST_FOUND) {
        Err(CallError::NotFound) => {
            let node = NewNode { mode: S_IFDIR | LOST_FOUND_MODE, rdev: (0, 0) };
            FileSystem::create(fs, caller, root, LOST_FOUND, &node)?
        }
        found => found?,
    };
    let lost_found = Nid(u32::try_from(found.ino.0).unwrap_or(0));
    for (ino, name) in &names.lost {
        fs.adopt(caller, *ino, lost_found, name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_where_they_can_be() {
        let mut taken = HashSet::new();
        assert_eq!(free_name(Nid(7), b"beach.txt", &taken), b"beach.txt");
        taken.insert(b"beach.txt".to_vec());
        assert_eq!(free_name(Nid(7), b"beach.txt", &taken), b"#7-beach.txt");
        for none in [&b""[..], b".", b"..", b"a/b", b"a\0b"] {
            assert_eq!(free_name(Nid(7), none, &taken), b"#7");
        }
        taken.insert(vec![b'x'; 255]);
        assert_eq!(free_name(Nid(7), &[b'x'; 255], &taken).len(), 255);
    }
}
