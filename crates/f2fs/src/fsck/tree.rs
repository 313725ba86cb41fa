//! From the root along all names. What is still to be visited stands on a list, so that no depth
//! matters.

use dovetail_block::BlockDevice;

use super::dentries::{DentryFix, DentryPosition, Fix};
use super::nodes::Node;
use super::{Checker, Finding, Name, Progress};
use crate::error::Error;
use crate::format::{BlockAddr, FileType, Footer, Nid};

/// Facts kept of an inode that was entered.
#[derive(Clone, Debug)]
pub(super) struct Visited {
    /// Its type, or 0 for an inode that cannot be used.
    pub(super) file_type: FileType,
    /// Link count that it stores.
    pub(super) links: u32,
    /// Names that led to it.
    pub(super) names: u32,
    /// Of a directory: the directories listed in it.
    pub(super) subdirs: u32,
    /// The directory that it names as its parent.
    pub(super) parent: Nid,
    /// The name that it has itself.
    pub(super) name: Name,
    /// Parent and name are kept up to date.
    pub(super) knows_name: bool,
    /// Role; an inode that is not [`Role::Named`] may lack a name.
    pub(super) role: Role,
}

/// Reason for which an inode was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Named,
    Orphan,
    Quota,
    Unreachable,
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) dir: Nid,
    pub(super) name: Name,
    pub(super) ino: Nid,
    pub(super) file_type: FileType,
    pub(super) place: DentryPosition,
}

impl<D: BlockDevice> Checker<'_, D> {
    pub(super) fn check_tree(&mut self) -> Result<(), Error> {
        let root = self.volume.superblock.root;
        let found = self.enter_inode(root, Role::Named)?;
        if let Some(mode) = found.filter(|_| self.inodes[&root].file_type != FileType::DIRECTORY) {
            self.found(Finding::RootType { found: mode });
        }
        self.follow_names()?;
        for ino in self.volume.superblock.quota_files.into_iter().filter(|ino| ino.is_some()) {
            if self.is_nid(ino) && !self.nodes.contains_key(&ino) {
                self.enter_inode(ino, Role::Quota)?;
            } else {
                self.found(Finding::NodeShared { nid: ino, ino });
            }
        }
        self.check_orphans()
    }

    /// Reads the directories on the list, which puts those that they hold on it.
    pub(super) fn follow_names(&mut self) -> Result<(), Error> {
        while let Some(ino) = self.todo.pop() {
            let entry = self.volume.nat(ino)?;
            let block = self.volume.blocks.metadata(entry.address)?;
            let footer = Footer::parse(&block);
            let node = Node { block, version: entry.version, footer };
            self.check_content(ino, &node, FileType::DIRECTORY)?;
        }
        Ok(())
    }

    /// Follows an entry of a directory. What is no directory is checked at once.
    pub(super) fn follow(&mut self, child: Child) -> Result<(), Error> {
        self.report.counts.names += 1;
        if self.report.counts.names.is_multiple_of(1024) {
            let (done, expected) =
                (self.report.counts.inodes, self.volume.checkpoint.valid_inodes.into());
            (self.progress)(Progress::Inodes { done, expected });
        }
        let Child { dir, ino, .. } = child;
        if !self.is_nid(ino) {
            self.fix(child.place, Fix::Remove);
            self.found(Finding::DentryInode { dir, name: child.name, ino });
            return Ok(());
        }
        if self.inodes.contains_key(&ino) {
            self.named_again(child);
            return Ok(());
        }
        if self.nodes.contains_key(&ino) {
            self.found(Finding::DentryNode { dir, name: child.name, nid: ino });
            return Ok(());
        }
        let entry = self.volume.nat(ino)?;
        if entry.address == BlockAddr::NULL {
            self.fix(child.place, Fix::Remove);
            self.found(Finding::DentryDangling { dir, name: child.name, ino });
            return Ok(());
        }
        if entry.ino.is_some() && entry.ino != ino && !self.is_inode(ino, entry.address)? {
            self.found(Finding::DentryNode { dir, name: child.name, nid: ino });
            return Ok(());
        }
        self.enter_inode(ino, Role::Named)?;
        self.check_own_name(&child);
        self.count_name(&child);
        Ok(())
    }

    /// Remembers what a repair does to an entry.
    pub(super) fn fix(&mut self, place: DentryPosition, fix: Fix) {
        if self.fixes.len() < self.options.kept_per_kind {
            self.fixes.push(DentryFix { place, fix });
        }
    }

    /// The node at `address` says itself that it is inode `ino`.
    pub(super) fn is_inode(&mut self, ino: Nid, address: BlockAddr) -> Result<bool, Error> {
        if !self.volume.superblock.in_main(address) && !self.is_held_address(address) {
            return Ok(false);
        }
        let footer = Footer::parse(&*self.volume.blocks.metadata(address)?);
        Ok(footer.nid == ino && footer.ino == ino)
    }

    fn named_again(&mut self, child: Child) {
        let is_dir = self.inodes[&child.ino].file_type == FileType::DIRECTORY;
        self.count_name(&child);
        if is_dir {
            self.found(Finding::DirectoryTwice {
                ino: child.ino,
                dir: child.dir,
                name: child.name,
            });
        }
    }

    fn count_name(&mut self, child: &Child) {
        let Some(visited) = self.inodes.get_mut(&child.ino) else { return };
        visited.names += 1;
        let usable = visited.file_type != FileType::UNKNOWN;
        let expected = if usable { visited.file_type } else { child.file_type };
        if expected == FileType::DIRECTORY
            && let Some(dir) = self.inodes.get_mut(&child.dir)
        {
            dir.subdirs += 1;
        }
        if child.file_type != expected || !(1..=7).contains(&child.file_type.0) {
            let (found, expected) = (child.file_type.0, expected.0);
            self.fix(child.place, Fix::Type(expected));
            self.found(Finding::DentryType {
                dir: child.dir,
                name: child.name.clone(),
                found,
                expected,
            });
        }
    }

    /// Checks the parent and the name that an inode stores, when it has only one name.
    fn check_own_name(&mut self, child: &Child) {
        let Some(visited) = self.inodes.get(&child.ino) else { return };
        let (ino, found, expected) = (child.ino, visited.parent, child.dir);
        if visited.file_type == FileType::DIRECTORY {
            if found != expected {
                self.found(Finding::DirectoryParent { ino, found, expected });
            }
        } else if visited.knows_name && visited.links == 1 && visited.file_type != FileType::UNKNOWN
        {
            let name = visited.name.clone();
            if found != expected {
                self.found(Finding::ParentInode { ino, found, expected });
            } else if name != child.name {
                self.found(Finding::ParentName { ino, name, expected: child.name.clone() });
            }
        }
    }

    /// The counts of links, after all names were followed.
    pub(super) fn check_links(&mut self) {
        let mut inos: Vec<_> = self.inodes.keys().copied().collect();
        inos.sort_unstable();
        for ino in inos {
            let visited = &self.inodes[&ino];
            let found = visited.links;
            if visited.file_type == FileType::DIRECTORY {
                let expected = 2 + visited.subdirs;
                if found != expected && visited.role != Role::Orphan {
                    self.found(Finding::DirectoryLinks { ino, found, expected });
                }
            } else if visited.role == Role::Named && visited.file_type != FileType::UNKNOWN {
                let expected = visited.names;
                if found != expected {
                    self.found(Finding::Links { ino, found, expected });
                }
            }
        }
    }
}
