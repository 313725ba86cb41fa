//! Drives that were filled and aged once, and are shared by the runs that begin with such a drive.
//!
//! A preconditioned drive follows from its [`NewDrive`] alone, so that runs whose new drives are
//! equal can begin with copies of one. Runs are counted before the first begins
//! ([`Prepared::expect`]). A drive is kept while one of them is to come, and while there is memory
//! for it; who wants one that is under way waits for it.

mod new_drive;
mod order;
mod places;
#[cfg(test)]
mod tests;
mod turn;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub use new_drive::NewDrive;
pub(crate) use new_drive::NoDrive;
pub use order::order;
use places::{Aged, Kept, Places, Stage};
pub use turn::Turn;

/// Preconditioned drives, and an amount of memory that they share with the runs.
#[derive(Debug)]
pub struct Prepared {
    total: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Bytes that neither runs nor kept drives have.
    left: u64,
    places: Places,
    aged: u64,
}

/// A part of the memory, given back when it is dropped.
#[derive(Debug)]
pub struct Reserved<'p> {
    prepared: &'p Prepared,
    bytes: u64,
}

/// Drive of a run when its turn comes.
enum Found {
    /// A drive to copy.
    Kept(Arc<Kept>),
    /// None yet: the run makes one, and others wait for it.
    First,
    /// None, and nobody waits for the run's own.
    Nothing,
}

impl Prepared {
    /// Nothing is kept: each run prepares its own drive.
    pub const fn none() -> Self {
        Self::within(0)
    }

    /// Drives are kept within so many bytes.
    pub const fn within(bytes: u64) -> Self {
        let state = State { left: bytes, places: Places::new(), aged: 0 };
        Self { total: bytes, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Counts a run to come that begins with such a drive, preconditioned.
    pub fn expect(&self, drive: &NewDrive) {
        if self.total > 0 {
            self.lock().places.expect(drive);
        }
    }

    /// Numbers of these drives among those that runs are expected for: runs of the same numbers
    /// share their drives.
    pub fn numbers(&self, drives: &[NewDrive]) -> Vec<usize> {
        let mut state = self.lock();
        drives.iter().filter_map(|drive| Some(state.places.find(drive)?.number)).collect()
    }

    /// The turn of a run that was expected.
    pub fn turn(&self, drive: NewDrive) -> Turn<'_> {
        Turn::new(self, drive)
    }

    /// Waits for so many bytes; kept drives make room. Who needs more than there is in all gets
    /// all of it, alone.
    pub fn reserve(&self, bytes: u64) -> Reserved<'_> {
        let bytes = bytes.min(self.total);
        let mut state = self.lock();
        while state.left < bytes {
            match state.places.give_up_one() {
                Some(freed) => state.left += freed,
                None => state = self.wait(state),
            }
        }
        state.left -= bytes;
        Reserved { prepared: self, bytes }
    }

    /// Drives that were preconditioned so far.
    pub fn aged(&self) -> u64 {
        self.lock().aged
    }

    /// Looks for a drive, and waits for one that is under way.
    fn find(&self, drive: &NewDrive) -> Found {
        let mut state = self.lock();
        loop {
            let State { left, places, .. } = &mut *state;
            let Some(place) = places.find(drive) else { return Found::Nothing };
            match &place.stage {
                Stage::UnderWay => state = self.wait(state),
                Stage::Kept(kept) => {
                    let kept = Arc::clone(kept);
                    *left += place.run_began();
                    self.changed.notify_all();
                    return Found::Kept(kept);
                }
                Stage::Missing | Stage::NoRoom => {
                    let is_first = matches!(place.stage, Stage::Missing);
                    place.run_began();
                    if place.to_come == 0 || !is_first {
                        return Found::Nothing;
                    }
                    place.stage = Stage::UnderWay;
                    return Found::First;
                }
            }
        }
    }

    /// Keeps a copy of a drive, if a run is to come that wants it and if there is room.
    fn keep(&self, drive: &NewDrive, aged: &Aged) {
        let bytes = drive.memory_bytes();
        let mut state = self.lock();
        let State { left, places, .. } = &mut *state;
        let Some(place) = places.find(drive) else { return };
        if place.to_come == 0 {
            return;
        }
        if *left < bytes {
            place.stage = Stage::NoRoom;
            return;
        }
        *left -= bytes;
        drop(state);
        let kept = Arc::new(Kept::new(aged.clone(), bytes));
        let mut state = self.lock();
        let State { left, places, .. } = &mut *state;
        match places.find(drive) {
            Some(place) if place.to_come > 0 => place.stage = Stage::Kept(kept),
            _ => *left += bytes,
        }
    }

    /// A drive was made, or could not be: nobody waits for it any more.
    fn is_over(&self, drive: &NewDrive) {
        if let Some(place) = self.lock().places.find(drive)
            && matches!(place.stage, Stage::UnderWay)
        {
            place.stage = Stage::Missing;
        }
        self.changed.notify_all();
    }

    /// An expected run ended without its drive.
    fn passed(&self, drive: &NewDrive) {
        let mut state = self.lock();
        let State { left, places, .. } = &mut *state;
        *left += places.find(drive).map_or(0, |place| place.run_began());
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.prepared.lock().left += self.bytes;
        self.prepared.changed.notify_all();
    }
}
