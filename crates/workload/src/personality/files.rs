//! A file set while threads work on it: which files exist, which are open or in work, and whose
//! turn is next.
//!
//! Filebench picks in rotation (`fileset_pick`), not at random: existing files by one rotor and
//! missing ones by another, both shared by all threads. What is random is which files were
//! pre-allocated.

use std::collections::BTreeSet;

use super::model::SetSpec;
use super::tree::Entry;

/// Result of a pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    File(u32),
    /// There are such files, and another thread opens, closes or deletes each of them right now.
    AllBusy,
    /// There is no such file.
    Empty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Existing,
    Missing,
}

#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) spec: SetSpec,
    pub(super) entries: Vec<Entry>,
    existing: BTreeSet<u32>,
    missing: BTreeSet<u32>,
    /// A thread opens, closes, deletes or stats it.
    busy: Vec<bool>,
    opened: Vec<u32>,
    existing_rotor: u32,
    missing_rotor: u32,
}

impl Files {
    /// The set when the threads start; `existing` was pre-allocated.
    pub(super) fn new(spec: SetSpec, entries: Vec<Entry>, existing: BTreeSet<u32>) -> Self {
        let count = entries.len();
        let missing = (0..count as u32).filter(|file| !existing.contains(file)).collect();
        Self {
            spec,
            entries,
            existing,
            missing,
            busy: vec![false; count],
            opened: vec![0; count],
            existing_rotor: 0,
            missing_rotor: 0,
        }
    }

    /// The next file by the shared rotor; it is busy from now on.
    pub(super) fn pick(&mut self, wanted: Wanted) -> Pick {
        let rotor = match wanted {
            Wanted::Existing => self.existing_rotor,
            Wanted::Missing => self.missing_rotor,
        };
        let pick = self.pick_from(wanted, rotor);
        if let Pick::File(file) = pick {
            match wanted {
                Wanted::Existing => self.existing_rotor = file + 1,
                Wanted::Missing => self.missing_rotor = file + 1,
            }
        }
        pick
    }

    /// The next file from `rotor` on, for a thread that has a rotor of its own.
    pub(super) fn pick_from(&mut self, wanted: Wanted, rotor: u32) -> Pick {
        let tree = match wanted {
            Wanted::Existing => &self.existing,
            Wanted::Missing => &self.missing,
        };
        if tree.is_empty() {
            return Pick::Empty;
        }
        let found =
            tree.range(rotor..).chain(tree.range(..rotor)).find(|&&file| !self.busy[file as usize]);
        let Some(&file) = found else { return Pick::AllBusy };
        self.busy[file as usize] = true;
        Pick::File(file)
    }

    pub(super) fn is_busy(&self, file: u32) -> bool {
        self.busy[file as usize]
    }

    pub(super) fn set_busy(&mut self, file: u32, busy: bool) {
        self.busy[file as usize] = busy;
    }

    pub(super) fn opened(&self, file: u32) -> u32 {
        self.opened[file as usize]
    }

    /// The file was opened, and made if it was missing.
    pub(super) fn open_ended(&mut self, file: u32) {
        self.missing.remove(&file);
        self.existing.insert(file);
        self.opened[file as usize] += 1;
        self.busy[file as usize] = false;
    }

    pub(super) fn close_ended(&mut self, file: u32) {
        self.opened[file as usize] = self.opened[file as usize].saturating_sub(1);
        self.busy[file as usize] = false;
    }

    pub(super) fn delete_ended(&mut self, file: u32) {
        self.existing.remove(&file);
        self.missing.insert(file);
        self.opened[file as usize] = 0;
        self.busy[file as usize] = false;
    }
}
