//! A device in memory that remembers what was written in which order, to cut the power anywhere.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test uses a part of this")]

use std::sync::Arc;

use dovetail_block::{
    BlockBytes, BlockDevice, Capabilities, Command, Completion, Content, DeviceError, DeviceInfo,
};
use dovetail_time::{Rng, SimTime};

use super::MemoryImage;

/// One thing that was done.
#[derive(Clone, Debug)]
pub enum Step {
    Write(u64, Arc<BlockBytes>),
    Flush,
}

/// An image, and what was done to it.
#[derive(Clone, Debug)]
pub struct Recording {
    pub before: MemoryImage,
    pub after: MemoryImage,
    pub steps: Vec<Step>,
}

impl Recording {
    pub fn new(image: MemoryImage) -> Self {
        Self { before: image.clone(), after: image, steps: Vec::new() }
    }

    /// The image after a power cut behind step `cut`: what was flushed, and of the writes since then a random subset.
    pub fn cut(&self, cut: usize, rng: &mut Rng) -> MemoryImage {
        let mut image = self.before.clone();
        let flushed = self.steps[..cut].iter().rposition(|step| matches!(step, Step::Flush)).unwrap_or(0);
        for (index, step) in self.steps[..cut].iter().enumerate() {
            if let Step::Write(block, bytes) = step
                && (index < flushed || rng.chance(0.5))
            {
                image.blocks.insert(*block, Arc::clone(bytes));
            }
        }
        image
    }
}

/// The device.
pub struct Recorder<'a>(pub &'a mut Recording);

impl BlockDevice for Recorder<'_> {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { blocks: self.0.after.count, capabilities: Capabilities::default() }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Write { range, data, .. } => {
                for (index, lba) in range.iter().enumerate() {
                    let Content::Bytes(bytes) = data.block(index as u64) else { panic!("real bytes") };
                    self.0.after.blocks.insert(lba.0, Arc::clone(&bytes));
                    self.0.steps.push(Step::Write(lba.0, bytes));
                }
            }
            Command::Flush => self.0.steps.push(Step::Flush),
            read => return self.0.after.submit(at, read),
        }
        Ok(Completion { done: at })
    }
}
