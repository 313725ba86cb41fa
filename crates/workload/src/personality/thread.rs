//! One thread: where it is in its list of flowops, its descriptors and the calls it has under way.

use std::collections::BTreeMap;

use dovetail_time::{Rng, SimTime};

use super::namespace::FileRef;
use super::tally::Tally;
use crate::call::{Call, Step};

/// Descriptors of `opennext` are numbered from here, beyond those that a file can name.
pub(super) const ROTATING_FDS: u32 = 1 << 16;

/// Stage of a flowop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Begin,
    /// It has begun, and has more to do.
    Running,
    /// Its data is written and has to be made durable.
    Durable,
    Over,
}

/// A descriptor. Filebench keeps the file of a closed one, for `deletefile`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    pub(super) file: FileRef,
    pub(super) open: bool,
    pub(super) position: u64,
}

/// Effect of a call's end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    Opened {
        fd: u32,
        file: FileRef,
    },
    Closed {
        fd: u32,
        file: FileRef,
    },
    Deleted {
        file: FileRef,
    },
    /// A file that was picked for it is free again.
    Looked {
        picked: Option<FileRef>,
    },
    /// One read or write; a sequential one moves the descriptor.
    Moved {
        sequential: bool,
        then: Stage,
    },
    /// A part of a whole file was read.
    ReadPart {
        asked: u64,
    },
    /// A part of a whole file was written.
    WrotePart {
        len: u64,
    },
    Synced {
        more: bool,
    },
}

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It will be asked at once.
    Asked,
    Sleeping(SimTime),
    /// For one of its own calls.
    Own,
    /// For what other threads do; how many changes there had been when it looked.
    Others {
        seen: u64,
    },
    Done,
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// Its place in the plan's list.
    pub(super) spec: usize,
    /// The flowop it is at.
    pub(super) at: usize,
    /// Times that the flowop ended since the thread came to it.
    pub(super) iteration: u64,
    pub(super) stage: Stage,
    /// The descriptor of the flowop.
    pub(super) fd: u32,
    /// Bytes, descriptors or targets that the flowop is through with.
    pub(super) progress: u64,
    /// Bytes that the flowop has moved.
    pub(super) moved: u64,
    pub(super) descriptors: BTreeMap<u32, Descriptor>,
    /// Number of times that `opennext` chose a descriptor.
    pub(super) rotation: u32,
    pub(super) rotor: u32,
    /// The call that it waits for.
    pub(super) pending: Option<(Call, Effect)>,
    /// Asynchronous writes under way, by the call that ends each.
    pub(super) aio: Vec<Call>,
    pub(super) aio_goal: usize,
    /// Calls under way, of every kind.
    pub(super) under_way: u64,
    /// A step that was decided when the last call ended, and is not told yet.
    pub(super) planned: Option<Step>,
    pub(super) standing: Standing,
    pub(super) rng: Rng,
    /// By flowop.
    pub(super) tallies: Vec<Tally>,
    /// By flowop, what its limit has seen and may let pass.
    pub(super) limits: Vec<Limiter>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limiter {
    pub(super) last: u64,
    pub(super) bucket: i128,
}

impl Thread {
    pub(super) fn new(spec: usize, flowops: usize, rng: Rng) -> Self {
        Self {
            spec,
            at: 0,
            iteration: 0,
            stage: Stage::Begin,
            fd: 0,
            progress: 0,
            moved: 0,
            descriptors: BTreeMap::new(),
            rotation: 0,
            rotor: 0,
            pending: None,
            aio: Vec::new(),
            aio_goal: 0,
            under_way: 0,
            planned: None,
            standing: Standing::Asked,
            rng,
            tallies: vec![Tally::default(); flowops],
            limits: vec![Limiter::default(); flowops],
        }
    }

    /// The next flowop, or the same once more.
    pub(super) fn advance(&mut self, iters: u64, flowops: usize) {
        self.iteration += 1;
        if self.iteration >= iters {
            self.iteration = 0;
            self.at = (self.at + 1) % flowops;
        }
        self.stage = Stage::Begin;
        self.progress = 0;
        self.moved = 0;
    }

    /// Sets where the present descriptor stands.
    pub(super) fn seek(&mut self, to: impl FnOnce(u64) -> u64) {
        if let Some(descriptor) = self.descriptors.get_mut(&self.fd) {
            descriptor.position = to(descriptor.position);
        }
    }

    /// The descriptor if it is open.
    pub(super) fn open(&self, fd: u32) -> Option<Descriptor> {
        self.descriptors.get(&fd).copied().filter(|descriptor| descriptor.open)
    }
}
