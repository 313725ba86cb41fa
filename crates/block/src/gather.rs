//! A file system's way to its device: blocks in, runs of blocks out, and the virtual time at which
//! all is done.
//!
//! Writes to neighbouring blocks are gathered into one command, a run for each channel, as a
//! kernel's block layer does. A run is submitted when it ends, when it is as long as a command may
//! be, when one of its blocks is read or written again, and before any wait. After the device has
//! failed once nothing more is written: what is on it stays consistent.

use dovetail_time::SimTime;

use crate::addr::{BLOCK_SIZE, BlockRange, Lba, SectorRange};
use crate::command::{Command, Data, Hints, Inode, StreamId};
use crate::content::Content;
use crate::device::{Answer, Completion, DeviceError};
use crate::placement::Lifetime;
use crate::scheduler::{LockId, Scheduler, SchedulingHint};
use crate::zone::Zones;

/// Blocks that a file system gathers into one command at most (Linux: `BIO_MAX_VECS` pages of a
/// bio).
pub const REQUEST_BLOCKS: usize = 256;

/// Writes of one channel that follow each other on the device.
#[derive(Debug, Default)]
struct Run {
    start: u64,
    blocks: Vec<Content>,
}

impl Run {
    fn end(&self) -> u64 {
        self.start + self.blocks.len() as u64
    }

    fn touches(&self, lba: u64, blocks: u64) -> bool {
        !self.blocks.is_empty() && lba < self.end() && self.start < lba.saturating_add(blocks)
    }
}

/// The device, the time, and the writes that are still being gathered, in `CHANNELS` runs.
#[derive(Debug)]
pub struct Gatherer<D, const CHANNELS: usize> {
    device: D,
    hints: [Hints; CHANNELS],
    max_run: usize,
    now: SimTime,
    done: SimTime,
    runs: [Run; CHANNELS],
    /// Channels whose runs are not empty: a bit each.
    filled: u64,
    writers: Option<LockId>,
    /// First of the device's own addresses: no command goes across.
    edge: Option<u64>,
    /// No command goes from one zone into another.
    zones: Option<Zones>,
    failed: Option<DeviceError>,
}

impl<D: Scheduler, const CHANNELS: usize> Gatherer<D, CHANNELS> {
    /// The way to `device` from virtual time `now` on, with the hints of each channel, and at most
    /// `max_run` blocks in a command.
    pub fn new(device: D, hints: [Hints; CHANNELS], max_run: usize, now: SimTime) -> Self {
        const { assert!(CHANNELS <= 64, "a bit each") };
        let runs = std::array::from_fn(|_| Run::default());
        let capabilities = device.info().capabilities;
        let edge = capabilities.devirtualize.map(|space| space.first.0);
        Self {
            device,
            hints,
            max_run,
            now,
            done: now,
            runs,
            filled: 0,
            writers: None,
            edge,
            zones: capabilities.zones,
            failed: None,
        }
    }

    /// The device below.
    pub const fn device(&self) -> &D {
        &self.device
    }

    /// The device below, for hints, queries and switches; commands go through [`Self::perform`].
    pub const fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// The device below. What was gathered and not submitted is lost.
    pub fn into_device(self) -> D {
        self.device
    }

    /// The time that the owner has come to.
    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// The owner's clock; time never goes back.
    pub fn set_now(&mut self, now: SimTime) {
        self.now = self.now.max(now);
    }

    /// Error after which the device takes no more writes, if it has failed.
    pub const fn failure(&self) -> Option<&DeviceError> {
        self.failed.as_ref()
    }

    /// From now on a run is submitted, and [`Self::perform_among_writers`] performs, with this lock
    /// shared; `None` for none.
    pub fn set_writers(&mut self, lock: Option<LockId>) {
        self.writers = lock;
    }

    /// Nothing, as long as the device takes writes.
    ///
    /// # Errors
    /// The error with which the device failed.
    pub fn check(&self) -> Result<(), DeviceError> {
        match &self.failed {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Asks for the content of neighbouring blocks and says when it will be there.
    ///
    /// # Errors
    /// An error of the device.
    pub fn start_read(&mut self, lba: u64, into: &mut [Content]) -> Result<SimTime, DeviceError> {
        let blocks = into.len() as u64;
        self.submit_touched(lba, blocks)?;
        let range = BlockRange::new(Lba(lba), blocks);
        Ok(self.device.submit(self.now, Command::Read { range, into: Some(into) })?.done)
    }

    /// Reads bytes from byte `at` of the device on, see [`BlockDevice::read_shared`]; false as well
    /// if one of their blocks waits to be submitted.
    ///
    /// [`BlockDevice::read_shared`]: crate::BlockDevice::read_shared
    pub fn read_shared(&self, at: u64, into: &mut [u8]) -> bool {
        !self.waits_to_write(at, into.len()) && self.device.read_shared(at, into)
    }

    /// Writes bytes from byte `at` of the device on, see [`BlockDevice::write_shared`]; false as
    /// well if one of their blocks waits to be submitted, or the device has failed.
    ///
    /// [`BlockDevice::write_shared`]: crate::BlockDevice::write_shared
    pub fn write_shared(&self, at: u64, bytes: &[u8]) -> bool {
        let may = self.failed.is_none() && !self.waits_to_write(at, bytes.len());
        may && self.device.write_shared(at, bytes)
    }

    /// A block with one of these bytes waits to be submitted.
    fn waits_to_write(&self, at: u64, len: usize) -> bool {
        let (lba, end) = (at / BLOCK_SIZE, at.saturating_add(len as u64));
        let blocks = end.div_ceil(BLOCK_SIZE) - lba;
        self.runs.iter().any(|run| run.touches(lba, blocks))
    }

    /// Goes on when the reads of this call are through, the last of them at `done`.
    pub fn wait_read(&mut self, done: SimTime) {
        self.device.hint(SchedulingHint::WaitReads);
        self.now = self.now.max(done);
    }

    fn submit_touched(&mut self, lba: u64, blocks: u64) -> Result<(), DeviceError> {
        for channel in set_bits(self.filled) {
            if self.runs[channel].touches(lba, blocks) {
                self.submit(channel, false)?;
            }
        }
        Ok(())
    }

    /// Assigns what is written to a channel from now on to `inode`.
    ///
    /// # Errors
    /// An error of the device, now or before: what was gathered for another inode is submitted.
    pub fn set_inode(&mut self, channel: usize, inode: Inode) -> Result<(), DeviceError> {
        self.set_hints(channel, Hints { inode, ..self.hints[channel] })
    }

    /// Gives what is written to a channel from now on a stream.
    ///
    /// # Errors
    /// An error of the device, now or before: what was gathered for another stream is submitted.
    pub fn set_stream(&mut self, channel: usize, stream: StreamId) -> Result<(), DeviceError> {
        self.set_hints(channel, Hints { stream, ..self.hints[channel] })
    }

    /// Gives what is written to a channel from now on a lifetime.
    ///
    /// # Errors
    /// An error of the device, now or before: what was gathered with another lifetime is submitted.
    pub fn set_lifetime(&mut self, channel: usize, lifetime: Lifetime) -> Result<(), DeviceError> {
        self.set_hints(channel, Hints { lifetime, ..self.hints[channel] })
    }

    fn set_hints(&mut self, channel: usize, hints: Hints) -> Result<(), DeviceError> {
        if self.hints[channel] != hints {
            self.submit(channel, false)?;
            self.hints[channel] = hints;
        }
        Ok(())
    }

    /// Writes a block, later or at once.
    ///
    /// # Errors
    /// An error of the device, now or before.
    pub fn write(&mut self, channel: usize, lba: u64, content: Content) -> Result<(), DeviceError> {
        self.check()?;
        self.submit_touched(lba, 1)?;
        let run = &self.runs[channel];
        let goes_on = run.end() == lba && !self.is_border(lba) && run.blocks.len() < self.max_run;
        if !goes_on {
            self.submit(channel, false)?;
        }
        let run = &mut self.runs[channel];
        if run.blocks.is_empty() {
            run.start = lba;
            self.filled |= 1 << channel;
        }
        run.blocks.push(content);
        Ok(())
    }

    /// Writes the bytes of whole blocks at once, without a copy of them.
    ///
    /// # Errors
    /// An error of the device, now or before.
    pub fn write_bytes(
        &mut self,
        channel: usize,
        lba: u64,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let (mut from, blocks) = (0, bytes.len() as u64 / BLOCK_SIZE);
        self.submit_touched(lba, blocks)?;
        while from < blocks {
            self.check()?;
            let most = (blocks - from).min(self.max_run as u64);
            let count = (1..most).find(|i| self.is_border(lba + from + i)).unwrap_or(most);
            let range = BlockRange::new(Lba(lba + from), count);
            let (data, hints) = (Data::Bytes(bytes).part(from, count), self.hints[channel]);
            let write = Command::Write { range, data, hints, fua: false };
            let completion = among_writers(&mut self.device, self.writers, |device| {
                device.submit(self.now, write)
            });
            self.complete(completion)?;
            from += count;
        }
        Ok(())
    }

    /// A block that no command has together with the one before it.
    fn is_border(&self, lba: u64) -> bool {
        let starts_zone = |zones: Zones| zones.index(Lba(lba)).map(|zone| zones.start(zone));
        self.edge == Some(lba) || self.zones.and_then(starts_zone) == Some(Lba(lba))
    }

    /// As [`Self::write`], but a block that was written just before is replaced: its parts are
    /// written one by one.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_part(
        &mut self,
        channel: usize,
        lba: u64,
        whole: Content,
    ) -> Result<(), DeviceError> {
        self.check()?;
        let run = &mut self.runs[channel];
        let is_last = run.end() == lba + 1;
        match run.blocks.last_mut() {
            Some(last) if is_last => {
                *last = whole;
                Ok(())
            }
            _ => self.write(channel, lba, whole),
        }
    }

    /// Submits the run of a channel; with `fua` it survives a power cut when it is done.
    ///
    /// # Errors
    /// An error of the device, now or before.
    pub fn submit(&mut self, channel: usize, fua: bool) -> Result<(), DeviceError> {
        if self.runs[channel].blocks.is_empty() {
            return Ok(());
        }
        self.check()?;
        let run = &mut self.runs[channel];
        let range = BlockRange::new(Lba(run.start), run.blocks.len() as u64);
        let hints = self.hints[channel];
        let write = Command::Write { range, data: Data::Blocks(&run.blocks), hints, fua };
        let completion =
            among_writers(&mut self.device, self.writers, |device| device.submit(self.now, write));
        run.blocks.clear();
        self.filled &= !(1 << channel);
        self.complete(completion).map(drop)
    }

    /// Performs a command that changes the device, without waiting; returns the device's answer.
    ///
    /// # Errors
    /// An error of the device, now or before.
    pub fn perform(&mut self, command: Command<'_>) -> Result<Answer, DeviceError> {
        self.check()?;
        let completion = self.device.submit(self.now, command);
        self.complete(completion)
    }

    /// The same with the lock of [`Self::set_writers`].
    ///
    /// # Errors
    /// An error of the device, now or before.
    pub fn perform_among_writers(&mut self, command: Command<'_>) -> Result<(), DeviceError> {
        self.check()?;
        let completion = among_writers(&mut self.device, self.writers, |device| {
            device.submit(self.now, command)
        });
        self.complete(completion).map(drop)
    }

    fn complete(
        &mut self,
        completion: Result<Completion, DeviceError>,
    ) -> Result<Answer, DeviceError> {
        let Completion { done, answer } =
            completion.inspect_err(|error| self.failed = Some(error.clone()))?;
        self.done = self.done.max(done);
        Ok(answer)
    }

    /// Submits all that was gathered, without waiting.
    ///
    /// # Errors
    /// An error of the device, now or before.
    pub fn kick(&mut self) -> Result<(), DeviceError> {
        set_bits(self.filled).try_for_each(|channel| self.submit(channel, false))
    }

    /// Submits all, and waits until the device has it (not until it survives a power cut).
    ///
    /// # Errors
    /// An error of the device, now or before.
    pub fn wait(&mut self) -> Result<(), DeviceError> {
        self.kick()?;
        self.wait_all();
        Ok(())
    }

    /// Waits for what was submitted.
    pub fn wait_all(&mut self) {
        self.device.hint(SchedulingHint::WaitAll);
        self.now = self.now.max(self.done);
    }

    /// Waits until everything written survives a power cut.
    ///
    /// # Errors
    /// An error of the device, now or before.
    pub fn flush(&mut self) -> Result<(), DeviceError> {
        self.check()?;
        self.wait()?;
        self.perform(Command::Flush)?;
        self.wait_all();
        Ok(())
    }

    /// Gives ranges back to the device; nothing happens on one without discard, or one that has
    /// failed.
    ///
    /// # Errors
    /// An error of the device in this call.
    pub fn discard(&mut self, ranges: &[SectorRange]) -> Result<(), DeviceError> {
        if !self.device.info().capabilities.discard || ranges.is_empty() || self.failed.is_some() {
            return Ok(());
        }
        self.perform(Command::Discard { ranges }).map(drop)
    }
}

/// The numbers of the bits that are set, in order.
fn set_bits(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (first < 64).then_some(first)
    })
}

/// Submits something while the lock is shared, if there is one.
fn among_writers<D: Scheduler, T>(
    device: &mut D,
    lock: Option<LockId>,
    submit: impl FnOnce(&mut D) -> T,
) -> T {
    let Some(lock) = lock else { return submit(device) };
    device.hint(SchedulingHint::Lock { lock, shared: true });
    let answer = submit(device);
    device.hint(SchedulingHint::Unlock { lock });
    answer
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::content::Pattern;
    use crate::memory::MemoryDevice;
    use crate::zone::ZonedDevice;

    fn pattern(n: u64) -> Content {
        Content::Pattern(Pattern::new(n))
    }

    #[test]
    fn a_run_ends_where_a_zone_begins() {
        let zoned = ZonedDevice::new(MemoryDevice::new(24), Zones::covering(Lba(8), 16, 8, 8));
        let mut io = Gatherer::new(zoned, [Hints::default()], 64, SimTime::ZERO);
        (6..24).for_each(|lba| io.write(0, lba, pattern(lba)).unwrap());
        io.flush().unwrap();
        assert_eq!(io.device().below().used().count(), 18);
    }

    #[test]
    fn bytes_are_written_at_once_over_what_was_gathered_before() {
        let zoned = ZonedDevice::new(MemoryDevice::new(24), Zones::covering(Lba(8), 16, 8, 8));
        let mut io = Gatherer::new(zoned, [Hints::default()], 3, SimTime::ZERO);
        (0..6).for_each(|lba| io.write(0, lba, pattern(lba)).unwrap());
        let bytes: Vec<u8> = (0..8 * 4096).map(|at| (at / 4096) as u8).collect();
        io.write_bytes(0, 4, &bytes).unwrap();
        let mut found = vec![Content::Empty; 12];
        io.start_read(0, &mut found).unwrap();
        for (n, content) in (0_u8..).zip(found) {
            let of_bytes = n.checked_sub(4).map(|n| Content::Bytes(Arc::new([n; 4096])));
            assert_eq!(content, of_bytes.unwrap_or_else(|| pattern(n.into())), "block {n}");
        }
    }

    #[test]
    fn after_a_failure_nothing_is_written() {
        let mut io = Gatherer::new(MemoryDevice::new(8), [Hints::default()], 4, SimTime::ZERO);
        io.write(0, 9, pattern(1)).unwrap();
        let failed = io.flush().unwrap_err();
        assert_eq!(io.failure(), Some(&failed));
        assert_eq!(io.write(0, 1, pattern(1)), Err(failed));
    }
}
