//! Background work of a kernel, as steps: the owner asks when the next one is due, and calls it.

use dovetail_block::Scheduler;
use dovetail_time::{SimSpan, SimTime};
use dovetail_vfs::kit::{WRITE_BACK_EVERY, old_since};

use super::Ext;
use crate::error::Error;
use crate::format::Ino;

/// Times at which background work is due.
#[derive(Debug)]
pub(super) struct Background {
    next_write_back: SimTime,
    /// There was no room for what is dirty; the background tries again from this time on.
    room_from: SimTime,
}

impl Background {
    pub(super) fn new(now: SimTime) -> Self {
        Self { next_write_back: now + WRITE_BACK_EVERY, room_from: now }
    }
}

impl<D: Scheduler> Ext<D> {
    /// Time at which [`Self::wake`] has something to do, unless calls in between change that;
    /// `None` if never.
    pub fn next_wake(&self) -> Option<SimTime> {
        if self.is_read_only() {
            return None;
        }
        if self.writes_back(self.io.now()) {
            return Some(self.io.now().max(self.background.room_from));
        }
        let journal_waits = self.journal.as_ref().is_some_and(|journal| journal.waiting() > 0);
        let waits = journal_waits || self.pages.dirty_total() > 0;
        let write_back = waits.then_some(self.background.next_write_back);
        let commit = self.running.began.map(|began| began + self.commit_interval());
        write_back.into_iter().chain(commit).min()
    }

    /// Does what is due by now: commits, writes old dirty pages back, writes committed metadata
    /// home.
    ///
    /// # Errors
    /// [`Error::Io`] and damage that was met; the volume goes read-only if the device failed.
    pub fn wake(&mut self) -> Result<(), Error> {
        let now = self.io.now();
        if self.is_read_only() {
            return Ok(());
        }
        self.pages.set_now(now);
        self.edits_before_call = self.edits;
        self.throttled(|fs| fs.work_in_background(now))
    }

    fn work_in_background(&mut self, now: SimTime) -> Result<(), Error> {
        if self.writes_back(now) && now >= self.background.room_from {
            match self.write_back_turns(now) {
                // a sync says so
                Err(Error::NoSpace) => self.background.room_from = now + WRITE_BACK_EVERY,
                done => done?,
            }
        }
        let mut left = None;
        if now >= self.background.next_write_back {
            left = self.write_back_old()?;
            self.background.next_write_back = self.io.now() + WRITE_BACK_EVERY;
        }
        if self.running.began.is_some_and(|began| now >= began + self.commit_interval()) {
            self.commit()?;
            self.running.began = None;
        }
        // of a lack of space a sync tells
        left.filter(|error| *error != Error::NoSpace).map_or(Ok(()), Err)
    }

    /// Writes back a part of a round; content that goes through the journal is committed.
    fn write_back_turns(&mut self, now: SimTime) -> Result<(), Error> {
        self.rounds.begin(now, self.pages.dirty_files());
        let (before, most) = (self.pages.dirty_total(), self.throttle.turn_pages());
        let written = |fs: &Self| before.saturating_sub(fs.pages.dirty_total());
        while written(self) < most
            && self.rounds.take_turn()
            && let Some(ino) = self.pages.next_dirty_inode()
        {
            self.write_back_next(Ino(ino as u32), most)?;
            self.commit_if_large()?;
        }
        if written(self) == 0 && self.is_too_dirty() {
            self.commit()
        } else {
            Ok(self.io.kick()?)
        }
    }

    fn commit_interval(&self) -> SimSpan {
        SimSpan::from_ms(self.options.commit_interval_s.saturating_mul(1000))
    }

    /// Writes what is old; answers as [`Self::write_back_files`].
    fn write_back_old(&mut self) -> Result<Option<Error>, Error> {
        let Some(before) = old_since(self.io.now()) else { return Ok(None) };
        let files = self.pages.dirty_inodes_since(before);
        let left = self.write_back_files(files)?;
        if let Some(journal) = &mut self.journal
            && journal.oldest().is_some_and(|oldest| oldest <= before)
        {
            journal.checkpoint_older(&mut self.io, before)?;
        }
        self.io.kick()?;
        Ok(left)
    }

    /// So much content is dirty that the background does not wait until it is old.
    fn is_too_dirty(&self) -> bool {
        let limit = self.options.dirty_background_bytes;
        limit.is_some_and(|bytes| self.pages.dirty_total() as u64 * 4096 > bytes)
    }

    /// The background has to write back, or is not through with it.
    fn writes_back(&self, now: SimTime) -> bool {
        self.is_too_dirty() || (self.rounds.goes_on(now) && self.pages.dirty_total() > 0)
    }

    /// Writes back dirty files by turns until no more than so many pages are dirty, or until no
    /// turn helps: content that goes through the journal waits.
    fn write_back_to(&mut self, pages: usize) -> Result<(), Error> {
        let mut turns = self.pages.dirty_files();
        while self.pages.dirty_total() > pages
            && turns > 0
            && let Some(ino) = self.pages.next_dirty_inode()
        {
            let before = self.pages.dirty_total();
            self.write_back_next(Ino(ino as u32), self.throttle.turn_pages())?;
            self.commit_if_large()?;
            let helped = self.pages.dirty_total() < before;
            turns = if helped { self.pages.dirty_files() } else { turns - 1 };
        }
        Ok(self.io.kick()?)
    }

    /// Bounds memory and the transaction; every changing call ends with it.
    pub(super) fn after_call(&mut self) -> Result<(), Error> {
        let limit = ((self.options.page_cache_bytes / 4096 / 4) as usize).max(64);
        let written = if self.pages.dirty_total() > limit {
            self.throttled(|fs| {
                fs.write_back_to(limit / 2)?;
                if fs.pages.dirty_total() > limit {
                    fs.commit()?;
                }
                Ok(())
            })
        } else {
            Ok(())
        };
        // content without a place does not let the transaction grow
        if matches!(written, Ok(()) | Err(Error::NoSpace)) {
            self.commit_if_large()?;
        }
        written
    }

    /// Writes back, and lets other writers wait for it.
    fn throttled(
        &mut self,
        write_back: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.throttle.begin();
        let written = write_back(self);
        let submitted = self.throttle.end(self.pages.dirty_total(), self.io.gatherer_mut());
        written?;
        Ok(submitted?)
    }
}
