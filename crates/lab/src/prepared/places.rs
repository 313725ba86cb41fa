//! The drives that runs are expected for, and how far each is.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{Arc, Mutex, PoisonError};

use dovetail_host::CheckedDevice;

use super::NewDrive;
use crate::below::Below;
use crate::results::PreconditionResult;

/// A preconditioned drive, and what was done to it.
pub(crate) type Aged = (CheckedDevice<Below>, PreconditionResult);

/// A drive to be copied.
#[derive(Debug)]
pub(super) struct Kept {
    aged: Mutex<Aged>,
    bytes: u64,
}

impl Kept {
    pub(super) fn new(aged: Aged, bytes: u64) -> Self {
        Self { aged: Mutex::new(aged), bytes }
    }

    /// The drive itself for the last who wants it, a copy for all others.
    pub(super) fn get(self: Arc<Self>) -> Aged {
        match Arc::try_unwrap(self) {
            Ok(last) => last.aged.into_inner().unwrap_or_else(PoisonError::into_inner),
            Err(kept) => kept.aged.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// The stage of a drive.
#[derive(Debug)]
pub(super) enum Stage {
    /// It is not there.
    Missing,
    /// A run makes it.
    UnderWay,
    /// It is there.
    Kept(Arc<Kept>),
    /// There was no memory to keep it: each run makes its own.
    NoRoom,
}

/// A drive that runs are expected for.
#[derive(Debug)]
pub(super) struct Place {
    drive: NewDrive,
    pub(super) number: usize,
    /// Runs that do not have it yet.
    pub(super) to_come: u64,
    pub(super) stage: Stage,
}

impl Place {
    /// One run less is to come; returns the bytes that this frees.
    pub(super) fn run_began(&mut self) -> u64 {
        self.to_come = self.to_come.saturating_sub(1);
        if self.to_come == 0 { self.give_up() } else { 0 }
    }

    /// Gives up a kept drive; returns its bytes.
    fn give_up(&mut self) -> u64 {
        let Stage::Kept(kept) = &self.stage else { return 0 };
        let bytes = kept.bytes;
        self.stage = Stage::Missing;
        bytes
    }
}

/// All drives that runs are expected for, by a hash: whether two are the same, all their fields
/// decide.
#[derive(Debug)]
pub(super) struct Places {
    all: HashMap<u64, Vec<Place>, BuildHasherDefault<DefaultHasher>>,
    count: usize,
}

impl Places {
    pub(super) const fn new() -> Self {
        Self { all: HashMap::with_hasher(BuildHasherDefault::new()), count: 0 }
    }

    fn hash(&self, drive: &NewDrive) -> u64 {
        self.all.hasher().hash_one(format!("{drive:?}"))
    }

    pub(super) fn expect(&mut self, drive: &NewDrive) {
        if let Some(place) = self.find(drive) {
            place.to_come += 1;
            return;
        }
        let (hash, number) = (self.hash(drive), self.count);
        let place = Place { drive: drive.clone(), number, to_come: 1, stage: Stage::Missing };
        self.all.entry(hash).or_default().push(place);
        self.count += 1;
    }

    pub(super) fn find(&mut self, drive: &NewDrive) -> Option<&mut Place> {
        let hash = self.hash(drive);
        self.all.get_mut(&hash)?.iter_mut().find(|place| place.drive == *drive)
    }

    /// Gives up the kept drive that the fewest runs are to come for; returns its bytes.
    pub(super) fn give_up_one(&mut self) -> Option<u64> {
        let kept = |place: &&mut Place| matches!(place.stage, Stage::Kept(_));
        let places = self.all.values_mut().flatten().filter(kept);
        Some(places.min_by_key(|place| (place.to_come, place.number))?.give_up())
    }
}
