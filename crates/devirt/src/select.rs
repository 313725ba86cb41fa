//! Selection of the files of a run.

use std::collections::BTreeSet;

use dovetail_time::SimSpan;
use dovetail_vfs::{Devirtualize, Error, Ino};

/// Rule for hot files: they will soon be written again, which would bring their map entries back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hot {
    /// Those that changed within this time before the run; zero for none. The paper's
    /// Thresh_HotFile is a share of the time between two runs (§III-B): 1/10, 1/20, 1/40 or none.
    pub within: SimSpan,
}

/// The files of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Files to be dealt with, in order.
    pub files: Vec<Ino>,
    /// Number of files that have changed and are left, being hot.
    pub hot: u64,
}

impl Selection {
    /// Files that have changed since a run dealt with them, but hot ones, and those of which the
    /// device has moved blocks.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn due(fs: &mut (impl Devirtualize + ?Sized), hot: Hot) -> Result<Self, Error> {
        let now = fs.now();
        let mut files = BTreeSet::new();
        let mut too_hot = BTreeSet::new();
        for (ino, at) in fs.changed_files()? {
            let is_hot = hot.within > SimSpan::ZERO && now.since(at) < hot.within;
            if is_hot {
                too_hot.insert(ino)
            } else {
                files.insert(ino)
            };
        }
        match fs.moved_files()? {
            Some(moved) => files.extend(moved),
            None => files.extend(fs.files()?),
        }
        files.retain(|ino| !too_hot.contains(ino));
        Ok(Self { files: files.into_iter().collect(), hot: too_hot.len() as u64 })
    }

    /// All files.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn all(fs: &mut (impl Devirtualize + ?Sized)) -> Result<Self, Error> {
        Ok(Self { files: fs.files()?, hot: 0 })
    }
}
