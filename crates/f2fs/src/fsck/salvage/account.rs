//! Account of a salvage: what was found again, what got another name, what is lost.

use std::collections::BTreeMap;
use std::fmt;

use dovetail_block::BlockDevice;
use dovetail_vfs::shown;

use super::super::{Checker, Finding};
use super::Mended;
use crate::format::{BlockAddr, Nid};

/// Directories on a path, at most: more is a circle.
const DEEPEST: usize = 4096;

/// Something that a salvage did, or could not save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    /// Entries of the NAT that lead to their nodes again.
    Nodes {
        /// Number of nodes.
        count: u64,
    },
    /// A file or directory without a name has one in `/lost+found`.
    Reconnected {
        /// Its inode.
        ino: Nid,
        /// The name that it has itself.
        name: Vec<u8>,
        /// Its path now.
        path: Vec<u8>,
    },
    /// A name whose file is lost was removed.
    NameRemoved {
        /// The path that it had.
        path: Vec<u8>,
        /// The inode that is lost.
        ino: Nid,
    },
    /// A part of a file's content, or all of a directory's names in it, is lost: it is a hole now.
    ContentLost {
        /// The file's path.
        path: Vec<u8>,
        /// The node that is lost.
        nid: Nid,
    },
    /// A pointer that was wrong leads to its block again: the only one without an owner whose
    /// summary names the pointer.
    PointerRestored {
        /// The file's path.
        path: Vec<u8>,
        /// The node that the pointer lies in.
        nid: Nid,
        /// Its number there.
        index: u32,
        /// The block.
        address: BlockAddr,
    },
    /// A block of a file is lost, as the pointer to it was wrong: it is a hole now.
    BlockLost {
        /// The file's path.
        path: Vec<u8>,
        /// The node that the pointer lies in.
        nid: Nid,
        /// Its number there.
        index: u32,
    },
    /// Nothing that is left leads to a node with pointers, as its inode or the node above it is
    /// lost; its blocks are free now.
    NodeDropped {
        /// The node.
        nid: Nid,
        /// The inode that it belonged to.
        ino: Nid,
    },
    /// A file or directory could not get a name in `/lost+found`: it is still without one.
    Unnamed {
        /// Its inode.
        ino: Nid,
        /// The name that it has itself.
        name: Vec<u8>,
        /// The error.
        why: String,
    },
    /// Something else that could not be done, after the rest was written.
    Unfinished {
        /// Its name.
        what: String,
        /// The error.
        why: String,
    },
}

impl Saved {
    /// Name of the kind, for machines.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Nodes { .. } => "Nodes",
            Self::Reconnected { .. } => "Reconnected",
            Self::NameRemoved { .. } => "NameRemoved",
            Self::ContentLost { .. } => "ContentLost",
            Self::PointerRestored { .. } => "PointerRestored",
            Self::BlockLost { .. } => "BlockLost",
            Self::NodeDropped { .. } => "NodeDropped",
            Self::Unnamed { .. } => "Unnamed",
            Self::Unfinished { .. } => "Unfinished",
        }
    }

    /// Something is lost, or could not be done.
    pub const fn is_loss(&self) -> bool {
        !matches!(
            self,
            Self::Nodes { .. } | Self::Reconnected { .. } | Self::PointerRestored { .. }
        )
    }

    /// Puts path `to` in place of `from`, also in paths below it.
    pub(super) fn rename(&mut self, from: &[u8], to: &[u8]) {
        if let Self::Reconnected { path, .. }
        | Self::NameRemoved { path, .. }
        | Self::ContentLost { path, .. }
        | Self::PointerRestored { path, .. }
        | Self::BlockLost { path, .. } = self
            && let Some(below) = path.strip_prefix(from)
            && matches!(below.first(), None | Some(b'/'))
        {
            *path = [to, below].concat();
        }
    }

    /// Tells that inode `ino` got no name after all, if this told that it did.
    pub(super) fn unname(&mut self, ino: Nid, why: &str) {
        if let Self::Reconnected { ino: named, name, .. } = self
            && *named == ino
        {
            *self = Self::Unnamed { ino, name: std::mem::take(name), why: why.to_string() };
        }
    }

    /// The values by name.
    pub fn values(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Nodes { count } => vec![("count", count.to_string())],
            Self::Reconnected { ino, name, path } => {
                vec![("ino", ino.to_string()), ("name", shown(name)), ("path", shown(path))]
            }
            Self::NameRemoved { path, ino } => {
                vec![("path", shown(path)), ("ino", ino.to_string())]
            }
            Self::ContentLost { path, nid } => {
                vec![("path", shown(path)), ("nid", nid.to_string())]
            }
            Self::PointerRestored { path, nid, index, address } => vec![
                ("path", shown(path)),
                ("nid", nid.to_string()),
                ("index", index.to_string()),
                ("address", address.to_string()),
            ],
            Self::BlockLost { path, nid, index } => {
                vec![("path", shown(path)), ("nid", nid.to_string()), ("index", index.to_string())]
            }
            Self::NodeDropped { nid, ino } => {
                vec![("nid", nid.to_string()), ("ino", ino.to_string())]
            }
            Self::Unnamed { ino, name, why } => {
                vec![("ino", ino.to_string()), ("name", shown(name)), ("why", why.clone())]
            }
            Self::Unfinished { what, why } => vec![("what", what.clone()), ("why", why.clone())],
        }
    }
}

impl fmt::Display for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes { count } => {
                write!(f, "{count} nodes were found again by what they say of themselves")
            }
            Self::Reconnected { ino, name, path } if name.is_empty() => {
                write!(f, "inode {ino} is {} now", shown(path))
            }
            Self::Reconnected { ino, name, path } => {
                write!(f, "inode {ino}, once called {}, is {} now", shown(name), shown(path))
            }
            Self::NameRemoved { path, ino } => {
                write!(f, "{} is lost: there is no inode {ino} any more", shown(path))
            }
            Self::ContentLost { path, nid } => {
                write!(f, "{} has lost what node {nid} led to: it is a hole now", shown(path))
            }
            Self::PointerRestored { path, nid, index, address } => write!(
                f,
                "{}: pointer {index} of node {nid} was wrong and leads to block {address} again",
                shown(path)
            ),
            Self::BlockLost { path, nid, index } => write!(
                f,
                "{} has lost a block: pointer {index} of node {nid} was wrong, and is a hole now",
                shown(path)
            ),
            Self::NodeDropped { nid, ino } => {
                write!(f, "node {nid} of inode {ino} was given up with its blocks")
            }
            Self::Unnamed { ino, name, why } => {
                let once = match name.is_empty() {
                    true => String::new(),
                    false => format!(", once called {},", shown(name)),
                };
                write!(f, "inode {ino}{once} has no name in /lost+found yet: {why}")
            }
            Self::Unfinished { what, why } => write!(f, "{what} are not put right yet: {why}"),
        }
    }
}

impl<D: BlockDevice> Checker<'_, D> {
    /// The account of what the findings of this check will lead to, and of what was mended before
    /// it. What has no name has its path in `/lost+found` by `named`.
    pub(super) fn account(
        &self,
        found: u64,
        mended: &[Mended],
        named: &BTreeMap<Nid, Vec<u8>>,
    ) -> Vec<Saved> {
        let nodes = (found > 0).then_some(Saved::Nodes { count: found });
        let of = |finding: &Finding| match finding {
            Finding::InodeUnreachable { ino, name } => named.get(ino).map(|path| {
                Saved::Reconnected { ino: *ino, name: name.0.clone(), path: path.clone() }
            }),
            Finding::DentryDangling { dir, name, ino } => {
                let path = [self.path_of(*dir, named), name.0.clone()].join(&b'/');
                Some(Saved::NameRemoved { path, ino: *ino })
            }
            Finding::NodeMissing { nid, ino } if nid != ino => {
                Some(Saved::ContentLost { path: self.path_of(*ino, named), nid: *nid })
            }
            Finding::NodeUnreachable { nid, ino } => {
                Some(Saved::NodeDropped { nid: *nid, ino: *ino })
            }
            _ => None,
        };
        let mended = mended.iter().map(|&Mended { ino, nid, index, to, .. }| {
            let path = self.path_of(ino, named);
            match to {
                BlockAddr::NULL => Saved::BlockLost { path, nid, index },
                address => Saved::PointerRestored { path, nid, index, address },
            }
        });
        nodes.into_iter().chain(mended).chain(self.report.findings.iter().filter_map(of)).collect()
    }

    /// The path of an inode by the names and parents that inodes have themselves, without a slash
    /// at the end; of what has several names one.
    fn path_of(&self, ino: Nid, named: &BTreeMap<Nid, Vec<u8>>) -> Vec<u8> {
        let (mut names, mut here) = (Vec::new(), ino);
        for _ in 0..DEEPEST {
            if here == self.volume.superblock.root {
                break;
            }
            if let Some(path) = named.get(&here) {
                names.push(path[1..].to_vec());
                break;
            }
            let Some(visited) = self.inodes.get(&here) else {
                names.push(format!("#{here}").into_bytes());
                break;
            };
            names.push(visited.name.0.clone());
            here = visited.parent;
        }
        let mut path = Vec::new();
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        path
    }
}
