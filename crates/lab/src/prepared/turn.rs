//! The turn of one run among those that begin with preconditioned drives.

use std::cell::Cell;

use tracing::info;

use super::places::Aged;
use super::{Found, NewDrive, NoDrive, Prepared};
use crate::precondition::{NotPrepared, precondition};
use crate::progress::Progress;

/// The turn of a run that was expected; if the run ends without its drive, it counts as over.
#[derive(Debug)]
pub struct Turn<'p> {
    prepared: &'p Prepared,
    drive: NewDrive,
    is_over: Cell<bool>,
}

impl<'p> Turn<'p> {
    pub(super) fn new(prepared: &'p Prepared, drive: NewDrive) -> Self {
        Self { prepared, drive, is_over: Cell::new(false) }
    }

    /// The drive as it is new.
    pub(crate) fn new_drive(&self) -> &NewDrive {
        &self.drive
    }

    /// The drive, preconditioned: a copy of one that is there, or made now. `failed` says what the
    /// caller calls a drive that cannot be made.
    pub(crate) fn aged<E: From<NotPrepared>>(
        &self,
        failed: impl FnOnce(NoDrive) -> E,
        stop: &dyn Fn() -> bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Aged, E> {
        self.is_over.set(true);
        let make = || -> Result<Aged, E> {
            let mut drive = self.drive.make().map_err(failed)?;
            let done = precondition(&mut drive, self.drive.config().seed, stop, progress)?;
            self.prepared.lock().aged += 1;
            Ok((drive, done))
        };
        match self.prepared.find(&self.drive) {
            Found::Kept(kept) => {
                let aged = kept.get();
                info!(
                    waf = aged.1.waf,
                    steady = aged.1.steady,
                    "took a drive preconditioned before"
                );
                Ok(aged)
            }
            Found::Nothing => make(),
            Found::First => {
                let _waiters = Waiters(self);
                let aged = make()?;
                self.prepared.keep(&self.drive, &aged);
                Ok(aged)
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_over.get() {
            self.prepared.passed(&self.drive);
        }
    }
}

/// Those who wait for the drive of a run: they go on when it is there, and when it is not to come.
struct Waiters<'a>(&'a Turn<'a>);

impl Drop for Waiters<'_> {
    fn drop(&mut self) {
        self.0.prepared.is_over(&self.0.drive);
    }
}
