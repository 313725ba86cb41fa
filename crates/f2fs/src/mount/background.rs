//! Background work of a kernel's threads, as steps: the owner asks when the next one is due, and
//! calls it.

use dovetail_block::Scheduler;
use dovetail_time::{SimSpan, SimTime};
use dovetail_vfs::BackgroundThread;
use dovetail_vfs::kit::{WRITE_BACK_EVERY, old_since};

use super::F2fs;
use super::checkpoint::CheckpointReason;
use super::data::{FirstError, WritebackReason};
use super::options::{BackgroundGc, GcSleep, Options};
use super::policy::{
    DISCARD_BUSY_MS, DISCARD_IDLE_MS, DiscardFacts, DiscardStep, Pace, ZONED_NOTHING_MS,
    ZONED_SLEEP_MS, discard_step,
};
use crate::error::Error;
use crate::format::Nid;

/// The volume is idle when no request came for this long (Linux 6.1: `idle_interval`).
const IDLE: SimSpan = SimSpan::from_ms(5_000);

/// Due times of the background work.
#[derive(Debug)]
pub(super) struct Background {
    pub(super) elapsed_at_mount_s: u64,
    pub(super) last_checkpoint: SimTime,
    pub(super) last_request: SimTime,
    gc_sleep_ms: u64,
    next_gc: SimTime,
    /// The section that is cleaned in windows, and the segments of it that are done.
    pub(super) window: Option<(u32, u32)>,
    next_discard: SimTime,
    next_write_back: SimTime,
}

impl Background {
    pub(super) fn new(now: SimTime, elapsed_at_mount_s: u64, options: &Options) -> Self {
        let sleep = options.gc_sleep;
        Self {
            elapsed_at_mount_s,
            last_checkpoint: now,
            last_request: now,
            gc_sleep_ms: sleep.min_ms,
            next_gc: now
                + SimSpan::from_ms(if options.gc_urgent { sleep.urgent_ms } else { sleep.min_ms }),
            window: None,
            next_discard: now + SimSpan::from_ms(DISCARD_BUSY_MS),
            next_write_back: now + WRITE_BACK_EVERY,
        }
    }

    /// There is something to discard again: the thread is woken, or looks when it next does.
    fn discards_came(&mut self, now: SimTime, is_woken: bool) {
        if is_woken {
            self.next_discard = self.next_discard.min(now + SimSpan::from_ms(DISCARD_BUSY_MS));
        } else if self.next_discard <= now {
            // nobody asked it while it had nothing to do, but it went on looking
            let looks = now.since(self.next_discard).as_ns() / 1_000_000 / DISCARD_IDLE_MS + 1;
            self.next_discard += SimSpan::from_ms(looks * DISCARD_IDLE_MS);
        }
    }
}

impl<D: Scheduler> F2fs<D> {
    /// Time at which [`Self::wake`] has something to do, unless calls in between change that;
    /// `None` if never.
    pub fn next_wake(&self) -> Option<SimTime> {
        BackgroundThread::ALL.into_iter().filter_map(|thread| self.next_wake_of(thread)).min()
    }

    /// The same of one thread.
    pub(super) fn next_wake_of(&self, thread: BackgroundThread) -> Option<SimTime> {
        let background = &self.background;
        match thread {
            _ if self.is_read_only() => None,
            BackgroundThread::WriteBack if self.writes_back(self.io.now()) => Some(self.io.now()),
            BackgroundThread::WriteBack => {
                let checkpoint = background.last_checkpoint + self.checkpoint_interval();
                let idle = background.last_request + IDLE;
                Some(background.next_write_back.min(checkpoint.max(idle)))
            }
            BackgroundThread::Cleaner => {
                let is_on = self.options.background_gc != BackgroundGc::Off;
                is_on.then_some(background.next_gc)
            }
            BackgroundThread::Discard => {
                self.space.has_discards().then_some(background.next_discard)
            }
        }
    }

    /// Does what is due by now: writes dirty pages back, writes a checkpoint, cleans, discards.
    ///
    /// # Errors
    /// [`Error::Io`] and damage that was met, the first of it: other work that is due is done. The
    /// volume goes read-only if the device failed.
    pub fn wake(&mut self) -> Result<(), Error> {
        let done = BackgroundThread::ALL.map(|thread| self.wake_thread(thread));
        done.into_iter().collect()
    }

    /// The same of one thread.
    pub(super) fn wake_thread(&mut self, thread: BackgroundThread) -> Result<(), Error> {
        let now = self.io.now();
        match thread {
            _ if self.is_read_only() => Ok(()),
            BackgroundThread::WriteBack => self.write_back_and_checkpoint(now),
            BackgroundThread::Cleaner => {
                let is_on = self.options.background_gc != BackgroundGc::Off;
                let is_due = is_on && now >= self.background.next_gc;
                if is_due { self.background_cleaning() } else { Ok(()) }
            }
            BackgroundThread::Discard => {
                let is_due = now >= self.background.next_discard;
                if is_due { self.background_discards() } else { Ok(()) }
            }
        }
    }

    fn write_back_and_checkpoint(&mut self, now: SimTime) -> Result<(), Error> {
        self.pages.set_now(now);
        let is_periodic = now >= self.background.next_write_back;
        let (mut written, mut first) = (Ok(()), FirstError::default());
        if is_periodic || self.writes_back(now) {
            written = self.throttled(|fs| {
                if fs.writes_back(now) {
                    fs.write_back_turns(now, &mut first)?;
                }
                if is_periodic {
                    fs.write_back_old(now, &mut first)?;
                }
                if fs.space.has_many_prefree() {
                    fs.write_checkpoint(CheckpointReason::Sync)?;
                }
                Ok(())
            });
        }
        if is_periodic {
            self.background.next_write_back = self.io.now() + WRITE_BACK_EVERY;
        }
        written?;
        if self.is_idle()
            && self.io.now().since(self.background.last_checkpoint) >= self.checkpoint_interval()
        {
            self.checkpoint_if_dirty()?;
            self.background.last_checkpoint = self.io.now();
        }
        first.end()
    }

    /// A checkpoint has added to what is discarded.
    pub(super) fn note_discards(&mut self) {
        let is_woken = self.is_idle() || !self.discard_pace().waits_for_idle;
        self.background.discards_came(self.io.now(), is_woken);
    }

    fn background_discards(&mut self) -> Result<(), Error> {
        let pace = self.discard_pace();
        let found = self.space.has_discard_of(pace.granularity);
        let sleep = match discard_step(&pace, found, self.until_idle().as_ns().div_ceil(1_000_000))
        {
            DiscardStep::Sleep(ms) => ms,
            DiscardStep::Send => {
                self.discard_some(pace.commands, pace.granularity)?;
                if self.space.has_discards() { pace.busy_ms } else { pace.idle_ms }
            }
        };
        self.background.next_discard = self.io.now() + SimSpan::from_ms(sleep);
        Ok(())
    }

    fn discard_pace(&self) -> Pace {
        self.space.discard_pace(&DiscardFacts {
            valid_blocks: self.counts.valid_blocks,
            user_blocks: self.committed.checkpoint().user_block_count,
            is_small: self.is_small(),
            is_urgent: self.options.gc_urgent,
            waiting: self.space.has_discards(),
            commands: self.options.max_discard_request,
        })
    }

    /// So much content is dirty that the background does not wait for its time.
    fn is_too_dirty(&self) -> bool {
        let limit = self.options.dirty_background_bytes;
        limit.is_some_and(|bytes| {
            self.pages.dirty_total().saturating_sub(self.dirty_dent_pages() as usize) as u64 * 4096
                > bytes
        })
    }

    /// The background has to write back, or is not through with it.
    fn writes_back(&self, now: SimTime) -> bool {
        self.is_too_dirty() || (self.rounds.goes_on(now) && self.pages.dirty_total() > 0)
    }

    fn checkpoint_interval(&self) -> SimSpan {
        SimSpan::from_ms(self.options.checkpoint_interval_s.saturating_mul(1000))
    }

    pub(super) fn is_small(&self) -> bool {
        self.options.is_small(self.superblock.segment_count_main)
    }

    fn is_idle(&self) -> bool {
        self.until_idle() == SimSpan::ZERO
    }

    /// Time until the volume is idle if no request comes.
    fn until_idle(&self) -> SimSpan {
        let quiet = self.io.now().since(self.background.last_request);
        SimSpan::from_ns(IDLE.as_ns().saturating_sub(quiet.as_ns()))
    }

    /// Of a zoned volume: a window at a time, while sections are few and the volume is idle.
    fn zoned_cleaning(&mut self) -> Result<(), Error> {
        let sleep = match self.space.cleaning_window() {
            None => ZONED_NOTHING_MS,
            Some(_) if !self.is_idle() => {
                self.background.next_gc = self.background.last_request + IDLE;
                return Ok(());
            }
            Some(window) if self.clean_window(window)? => ZONED_SLEEP_MS,
            Some(_) => ZONED_NOTHING_MS,
        };
        self.background.next_gc = self.io.now() + SimSpan::from_ms(sleep);
        Ok(())
    }

    fn background_cleaning(&mut self) -> Result<(), Error> {
        // whatever comes of this look, the next one is not at once
        let least = SimSpan::from_ms(self.options.gc_sleep.min_ms);
        self.background.next_gc = self.io.now() + least;
        if self.superblock.is_zoned() && !self.options.gc_urgent {
            return self.zoned_cleaning();
        }
        let may = self.is_idle() || self.options.gc_urgent;
        let found = may && self.clean_in_background()?;
        let GcSleep { min_ms, max_ms, nothing_ms, urgent_ms } = self.options.gc_sleep;
        let sleep = if self.options.gc_urgent {
            urgent_ms
        } else if found || !self.is_idle() {
            self.background.gc_sleep_ms
        } else {
            nothing_ms
        };
        self.background.gc_sleep_ms = if found { min_ms } else { (sleep + min_ms).min(max_ms) };
        self.background.next_gc = self.io.now() + SimSpan::from_ms(sleep);
        Ok(())
    }

    /// Writes back dirty files by turns until no more than so many pages of content are dirty. A file
    /// of which something cannot be read stays dirty: its own fsync says so, no other call.
    fn write_back_to(&mut self, pages: usize) -> Result<(), Error> {
        let pages = pages.saturating_add(self.dirty_dent_pages() as usize);
        let mut may_fail = self.pages.dirty_files();
        while self.pages.dirty_total() > pages
            && may_fail > 0
            && let Some(ino) = self.pages.next_dirty_inode()
        {
            let written = self.write_back_turn(Nid(ino as u32));
            may_fail -= usize::from(self.concerns_one_file(written)?.is_some());
        }
        Ok(self.io.kick()?)
    }

    /// Writes back a part of a round. Notes the `first` error that concerns one file.
    fn write_back_turns(&mut self, now: SimTime, first: &mut FirstError) -> Result<(), Error> {
        self.rounds.begin(now, self.pages.dirty_files());
        let (before, most) = (self.pages.dirty_total(), self.throttle.turn_pages());
        while before.saturating_sub(self.pages.dirty_total()) < most
            && self.rounds.take_turn()
            && let Some(ino) = self.pages.next_dirty_inode()
        {
            let written = self.write_back_turn(Nid(ino as u32));
            first.note(self.concerns_one_file(written)?);
        }
        Ok(self.io.kick()?)
    }

    /// A file's turn.
    fn write_back_turn(&mut self, ino: Nid) -> Result<(), Error> {
        let most = self.throttle.turn_pages();
        self.with_room(ino, |fs| fs.write_back_next(ino, most, WritebackReason::Background))
    }

    /// Writes content of a file back and keeps room; directories wait for a checkpoint.
    fn with_room(
        &mut self,
        ino: Nid,
        write_back: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.dirty_dents.contains(&ino) {
            return Ok(());
        }
        self.look_for_headroom(0)?;
        write_back(self)?;
        self.balance_after_pages()
    }

    /// Writes back the files that have been dirty for long. Notes the `first` error that concerns
    /// one file.
    fn write_back_old(&mut self, now: SimTime, first: &mut FirstError) -> Result<(), Error> {
        let Some(before) = old_since(now) else { return Ok(()) };
        for ino in self.pages.dirty_inodes_since(before) {
            let ino = Nid(ino as u32);
            let written = self.with_room(ino, |fs| fs.write_back(ino, WritebackReason::Background));
            first.note(self.concerns_one_file(written)?);
        }
        Ok(self.io.kick()?)
    }

    /// Frees space, bounds memory, and writes a checkpoint if much has piled up.
    pub(super) fn balance(&mut self) -> Result<(), Error> {
        if self.state.is_recovering() {
            return Ok(());
        }
        self.balance_space()?;
        self.bound_nodes()
    }

    /// Writes a checkpoint if many nodes, or entries of their table, are dirty.
    pub(super) fn bound_nodes(&mut self) -> Result<(), Error> {
        if self.has_many_dirty_nodes()
            || self.nat.dirty_count() >= (self.nat.max_nid() / 10) as usize
        {
            self.write_checkpoint(CheckpointReason::Sync)?;
        }
        Ok(())
    }

    pub(super) fn has_many_dirty_nodes(&self) -> bool {
        self.nodes.dirty_count() >= self.options.max_dirty_nodes
    }

    /// [`Self::balance`] where all that is being written has its space: if there is none left, the
    /// next call that needs some says so.
    pub(super) fn keep_space(&mut self) -> Result<(), Error> {
        unless_full(self.balance())
    }

    /// Ends a call that changed the volume.
    pub(super) fn after_change(&mut self) -> Result<(), Error> {
        self.after_buffered_write()?;
        self.keep_space()
    }

    /// Notes a request, and writes dirty files back when more than a quarter of the cache is dirty.
    pub(super) fn after_buffered_write(&mut self) -> Result<(), Error> {
        self.background.last_request = self.io.now();
        let limit = (self.options.page_cache_bytes / 4096 / 4) as usize;
        if self.pages.dirty_total() <= limit.max(64) {
            return Ok(());
        }
        unless_full(self.throttled(|fs| {
            fs.write_back_to(limit / 2)?;
            if fs.pages.dirty_total() > limit.max(64) {
                fs.write_checkpoint(CheckpointReason::Sync)?;
            }
            Ok(())
        }))
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

/// The call itself had space enough; the next one, or a sync, says that there is none.
pub(super) fn unless_full(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(Error::NoSpace) => Ok(()),
        done => done,
    }
}
