//! A device that writes down what is done to it, so that power cuts can be tried afterwards.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dovetail_block::{
    BlockDevice, BlockRange, Command, Completion, Content, Data, DeviceError, DeviceInfo,
    MemoryDevice, RemapPair, RemapWhen, SectorRange,
};
use dovetail_time::{Rng, SimTime};

use super::cuts::Survivors;

/// A command that changed the device or made changes durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Blocks were written.
    Write {
        /// Blocks that were written.
        range: BlockRange,
        /// Content written, one for each block.
        contents: Vec<Content>,
        /// Force unit access: the write was durable when it completed.
        fua: bool,
    },
    /// Ranges were discarded.
    Discard {
        /// The ranges as given.
        ranges: Vec<SectorRange>,
    },
    /// All that had completed became durable.
    Flush,
    /// Blocks moved, or are held to be moved.
    Remap {
        /// Destination and source of each block.
        pairs: Vec<RemapPair>,
        /// With this command, or later.
        when: RemapWhen,
    },
}

/// Record of the events on a device since recording began. Clones share one record, so that a test
/// can keep one while the device is in use elsewhere.
#[derive(Clone, Debug)]
pub struct Recording {
    base: Arc<MemoryDevice>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Recording {
    /// Number of events recorded so far: the number of a cut that happens now.
    pub fn position(&self) -> usize {
        self.lock().len()
    }

    /// State of the device when recording began. All of it counts as durable.
    pub fn base(&self) -> &MemoryDevice {
        &self.base
    }

    /// State of the device now: the state of no power cut.
    pub fn newest(&self) -> MemoryDevice {
        self.image_at(usize::MAX, Survivors::All, &mut Rng::new(0))
    }

    /// Everything recorded so far, in order.
    pub fn events(&self) -> Vec<Event> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        // an event is pushed as a whole: what a panicking thread left behind is sound
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes every command on to a device and records those that succeed, reads aside.
#[derive(Debug)]
pub struct RecordingDevice<D> {
    device: D,
    recording: Recording,
}

impl RecordingDevice<MemoryDevice> {
    /// Records what is done to `device` from now on.
    pub fn new(device: MemoryDevice) -> Self {
        let base = device.clone();
        Self::over(device, base)
    }
}

impl<D: BlockDevice> RecordingDevice<D> {
    /// Records what is done to `device` from now on; `base` holds what `device` holds now.
    pub fn over(device: D, base: MemoryDevice) -> Self {
        let recording = Recording { base: Arc::new(base), events: Arc::default() };
        Self { device, recording }
    }

    /// The record, shared with the device.
    pub fn recording(&self) -> Recording {
        self.recording.clone()
    }

    /// The device below.
    pub fn into_inner(self) -> D {
        self.device
    }
}

impl<D: BlockDevice> BlockDevice for RecordingDevice<D> {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        let event = event_of(&command);
        let completion = self.device.submit(at, command)?;
        self.recording.lock().extend(event);
        Ok(completion)
    }
}

dovetail_block::performs_at_once!(impl[D: BlockDevice] RecordingDevice<D>);

fn event_of(command: &Command<'_>) -> Option<Event> {
    match command {
        // a recorded device does neither devirtualise nor have zones: `MemoryDevice` could not
        // replay it
        Command::Read { .. }
        | Command::Devirtualize(_)
        | Command::Append { .. }
        | Command::Zone { .. }
        | Command::UpdateHandles(_)
        | Command::Query(_) => None,
        Command::Write { range, data, hints: _, fua } => {
            Some(Event::Write { range: *range, contents: contents(data, range.blocks), fua: *fua })
        }
        Command::Flush => Some(Event::Flush),
        Command::Discard { ranges } => Some(Event::Discard { ranges: ranges.to_vec() }),
        Command::Remap { pairs, when } => Some(Event::Remap { pairs: pairs.to_vec(), when: *when }),
    }
}

fn contents(data: &Data<'_>, blocks: u64) -> Vec<Content> {
    match data {
        Data::Patterns(_) | Data::Bytes(_) => (0..blocks).map(|i| data.block(i)).collect(),
        Data::Blocks(blocks) => blocks.to_vec(),
    }
}
